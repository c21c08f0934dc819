/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Expressions over containers, {key, operator, values}, as the sections of modules have them, for
 * the core: it is the matcher of modules/lib that reads and evaluates them, on the services that
 * modules get.
 */
#ifndef HOST_EXPRESSIONS_H
#define HOST_EXPRESSIONS_H

#include <stdbool.h>

#include "core/nri-rpd/host/instance.h"

struct expressions;

/* The texts stay the configuration's, which has to live as long. -EINVAL with the place,
 * -ENOMEM. */
int expressions_read(struct host_env *env, rp_cfg list, struct expressions **ret, struct err *err);
struct expressions *expressions_free(struct expressions *e); /* NULL is fine; returns NULL */
/* Does any of them hold? */
bool expressions_match(struct expressions *e, const struct ctr *ctr);

#endif
