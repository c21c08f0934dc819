/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Life cycle of controllers: their change with a configuration, in the steps prepare, switch and
 * take over, or abort (drawn in life.c).
 */
#pragma once

#include "core/nri-rpd/pipeline/controllers/controllers.h"

/* Returns true if the controller runs and gets hooks. */
bool controller_runs(const struct controller *c);
/* Stops and frees a controller. Returns NULL. */
struct controller *controller_free(struct controller *c);

/* Prepares the controllers of a configuration, in its order: each checks its section, and nothing
 * changes. Followed by controllers_abort() or controllers_switch(), also after an error. */
int controllers_prepare(struct pipeline *p, const struct conf *conf, struct err *err);

/* Starts required controllers that do not run yet, stops those that leave, and activates the new
 * list. Settings that stopped controllers restore have to be restored before the policy sets new
 * ones. Followed by controllers_abort() or controllers_take_over(). */
int controllers_switch(struct pipeline *p, const struct conf *conf, struct err *err);

/* Restores the previous list and state. */
void controllers_abort(struct pipeline *p);
/* Completes the change: commits the plans, starts the remaining controllers, and frees those that
 * left. */
void controllers_take_over(struct pipeline *p);
