/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_REQUEST_CONFINE_H
#define PIPELINE_REQUEST_CONFINE_H

#include "core/nri-rpd/pipeline/request/decide.h"

/* All CPUs that are nobody's own, as the running transaction leaves them. NULL: out of memory. */
struct iset *unowned_cpus(struct pipeline *p);

/* Keeps containers that nobody has pinned off the CPUs that others own: the last step of a
 * decision, before the invariants. -ENOSPC: the container that is being created would have nowhere
 * to run. */
int confine(struct pipeline *p, struct err *err);

/* Nothing is known of who is pinned and who is confined: a decision has been dropped, or the
 * containers are others. */
void confine_unknown(struct pipeline *p);

#endif
