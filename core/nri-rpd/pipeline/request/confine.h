/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps containers that no policy has pinned off the exclusive CPUs of other containers and off the
 * memory of devices.
 */
#pragma once

#include "core/nri-rpd/pipeline/request/decide.h"

/* Returns the CPUs that no container owns after the running transaction; NULL: out of memory. */
struct iset *unowned_cpus(struct pipeline *p);

/* Confines unpinned containers to CPUs that no container owns, and to memory that belongs to no
 * device: the last step of a decision, before the invariants are checked. -ENOSPC: no CPU is left
 * for the container that is being created. */
int confine(struct pipeline *p, struct err *err);

/* Makes the next confine() check all containers. Call this after a dropped decision or when the set
 * of containers has changed. */
void confine_unknown(struct pipeline *p);
