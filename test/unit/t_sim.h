/* SPDX-License-Identifier: Apache-2.0 */
/* A simulated node without nri-rpd, for tests of what judges it. */
#ifndef T_SIM_H
#define T_SIM_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/nri-rp-sim/sim.h"
#include "core/nri-rp-sim/steps.h"

static inline json_t *sim_json(const char *text)
{
	json_error_t why;
	json_t *node = json_loads(text, JSON_DECODE_ANY, &why);
	if (!node)
		fail_msg("%s: %s", text, why.text);
	return node;
}

static inline struct sim *sim_made(const char *head)
{
	const struct sim_options options = {.seed = 1, .settle_ms = 50};
	struct err err = ERR_INIT;
	struct sim *s = NULL;
	_json_ json_t *map = sim_json(head);
	if (sim_new(&options, &s, &err) || sim_setup(s, map, &err))
		fail_msg("%s", err.text);
	return s;
}

/* Runs a step given as JSON; its error, err may be NULL. */
static inline int sim_step(struct sim *s, const char *text, struct err *err)
{
	_json_ json_t *step = sim_json(text), *result = json_object();
	struct err own = ERR_INIT;
	const char *name = step_name(step);
	if (!name)
		fail_msg("not a step: %s", text);
	return step_run(s, name, json_object_get(step, name), result, err ? err : &own);
}

static inline void assert_step(struct sim *s, const char *text)
{
	struct err err = ERR_INIT;
	if (sim_step(s, text, &err))
		fail_msg("%s: %s", text, err.text);
}

/* Returns true if a problem so far contains the text. Clears the problems. */
static inline bool sim_has_problem(struct sim *s, const char *text)
{
	size_t i;
	json_t *p;
	bool found = false;
	json_array_foreach(s->problems, i, p)
	{
		found |= strstr(json_string_value(p), text) != NULL;
	}
	(void)json_array_clear(s->problems);
	return found;
}

#endif
