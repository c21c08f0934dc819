/* SPDX-License-Identifier: Apache-2.0 */
/* Creates a node for each test. */
#ifndef T_SIM_ONE_H
#define T_SIM_ONE_H

#include <stdlib.h>

#include "core/nri-rp-sim/expect.h"
#include "t_sim.h"

static struct sim *s;

static inline int tear_down(void **state)
{
	sim_free(s);
	return 0;
}

/* Returns 1, 0, or an error with err. */
static inline int holds_or(const char *text, struct err *err)
{
	bool ret = false;
	int r = expect_holds(s, text, &ret, NULL, err);
	return r ? r : ret;
}

#endif
