/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that the kernel's cgroups have the values that were sent to the runtime, and has
 * differences repaired. */
#pragma once

#include "core/nri-rpd/cache/cache.h"

struct pipeline;

int verify_init(struct pipeline *p);
void verify_fini(struct pipeline *p); /* called after the end of the worker */
/* Schedules a check of a container. */
void verify_later(struct pipeline *p, struct ctr *ctr);
/* Schedules an early check of a container that starts, whose cgroup is complete. */
void verify_soon(struct pipeline *p, struct ctr *ctr);
/* Schedules checks of all running containers with decided values. */
void verify_all(struct pipeline *p);
/* Returns true if the daemon has decided amounts of the container that are to be checked. */
bool verify_has_amounts(const struct pipeline *p, const struct ctr *ctr);
