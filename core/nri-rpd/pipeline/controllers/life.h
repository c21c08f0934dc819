/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_CONTROLLERS_LIFE_H
#define PIPELINE_CONTROLLERS_LIFE_H

#include "core/nri-rpd/pipeline/controllers/controllers.h"

bool controller_runs(const struct controller *c);
struct controller *controller_free(struct controller *c);

/* The controllers of the configuration, in its order, have looked at their sections: nothing has
 * changed yet. Followed by controllers_abort() or by controllers_switch(), after an error too. */
int controllers_prepare(struct pipeline *p, const struct conf *conf, struct err *err);

/* Required ones that do not run yet are started, those that leave are stopped, and the new list is
 * told of containers from now on. What they put back has to come before what the policy sets.
 * Followed by controllers_abort() or by controllers_take_over(). */
int controllers_switch(struct pipeline *p, const struct conf *conf, struct err *err);

/* All is as it was before. */
void controllers_abort(struct pipeline *p);
void controllers_take_over(struct pipeline *p);

#endif
