/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NRI_ENCODE_H
#define NRI_ENCODE_H

#include "core/nri-rpd/nri/internal.h"

/* encode.c: NULL: out of memory */
Nri__ContainerAdjustment *encode_adjustment(struct arena *a, const struct reply *reply,
					    bool *ret_empty);

/* Without ignore_failure the runtime says that something failed, but gives up with the first that
 * does. */
Nri__ContainerUpdate **encode_updates(struct arena *a, const struct update *updates, uint32_t n,
				      bool ignore_failure);

#endif
