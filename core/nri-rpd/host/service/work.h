/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HOST_SERVICE_WORK_H
#define HOST_SERVICE_WORK_H

#include "core/nri-rpd/host/instance.h"

/* A line of the explanation of what the running transaction decides for a container. */
void host_note(struct cache *c, struct ctr *ctr, const char *text);

#endif
