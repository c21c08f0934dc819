/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of scenarios, tests and interactive use: each is a word with an argument. nri-rp-sim(1)
 * lists them. */
#pragma once

#include "core/nri-rp-sim/sim.h"

/*
 * Runs a step. Results are added to the map `result`. An error means that the step has failed; err
 * is for people. -EINVAL: the step itself is invalid.
 */
int step_run(struct sim *s, const char *name, const json_t *args, json_t *result, struct err *err);
/* Checks a step without running it: its word, the keys of its argument, the syntax of expressions.
 * -EINVAL: the step is invalid; err names the cause. */
int step_check(const json_t *step, struct err *err);
/* Returns the word of a step, or NULL when the map has none or several. */
const char *step_name(const json_t *step);

/* Matches the text with the regular expression `expected`; NULL matches any text. -EPROTO: no
 * match. */
int step_matches(const char *text, const json_t *expected, struct err *err);
