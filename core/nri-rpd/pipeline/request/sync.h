/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_REQUEST_SYNC_H
#define PIPELINE_REQUEST_SYNC_H

#include "core/nri-rpd/pipeline/request/decide.h"
#include "core/nri-rpd/pipeline/request/request.h"

/* The policy has placed all containers, if not when the runtime listed them: what the last process
 * has set of the machine need not wait. */
void sync_recovered(struct pipeline *p);

/* Synchronize, an object at a time: all pods, then all containers, then the end, which decides.
 * `later`: what can be asked of a new one until then, its environment, mounts and devices; NULL:
 * nothing. sync_abandon instead of sync_end: the list was not complete, nothing is dropped. */
void sync_begin(struct pipeline *p);
void sync_pod(struct pipeline *p, const struct pod_desc *pod);
void sync_ctr(struct pipeline *p, const struct ctr_desc *ctr, const struct ctr_desc *later);
void sync_end(struct pipeline *p, struct reply *ret);
void sync_abandon(struct pipeline *p);

#endif
