/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the kernel has what the runtime was told. */
#ifndef PIPELINE_LOOK_VERIFY_H
#define PIPELINE_LOOK_VERIFY_H

#include "core/nri-rpd/cache/cache.h"

struct pipeline;

int verify_init(struct pipeline *p);
void verify_fini(struct pipeline *p); /* the worker has ended before */
/* Somebody ought to look whether the kernel has what the runtime was told. */
void verify_later(struct pipeline *p, struct ctr *ctr);
/* The same where nobody has to be waited for: a container that starts has its cgroup. */
void verify_soon(struct pipeline *p, struct ctr *ctr);
/* At all that run and were given something. */
void verify_all(struct pipeline *p);
/* Are any of its amounts ours to look after? */
bool verify_has_amounts(const struct pipeline *p, const struct ctr *ctr);

#endif
