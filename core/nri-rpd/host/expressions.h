/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Evaluates expressions over containers, {key, operator, values}, for the core. The matcher of
 * modules/lib, which modules use in their sections, reads and evaluates them on the host services.
 */
#pragma once

#include <stdbool.h>

#include "core/nri-rpd/host/instance.h"

struct expressions;

/* Reads a list of expressions. Texts are borrowed from the configuration, which has to live as
 * long. -EINVAL with the place, -ENOMEM. */
int expressions_read(struct host_env *env, rp_cfg list, struct expressions **ret, struct err *err);
struct expressions *expressions_free(struct expressions *e); /* accepts NULL; returns NULL */
/* Returns true if at least one expression matches the container. */
bool expressions_match(struct expressions *e, const struct ctr *ctr);
