/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Encodes the pipeline's replies and updates as NRI messages. Text and sets are borrowed from the
 * cache, not copied.
 */
#pragma once

#include "core/nri-rpd/nri/internal.h"

/* Encodes the answer to a creation. NULL: out of memory. */
Nri__ContainerAdjustment *encode_adjustment(struct arena *a, const struct reply *reply,
					    bool *ret_empty);

/* Encodes a list of updates. With ignore_failure the runtime continues after an update that fails;
 * without, it reports the failure and stops there. */
Nri__ContainerUpdate **encode_updates(struct arena *a, const struct update *updates, uint32_t n,
				      bool ignore_failure);
