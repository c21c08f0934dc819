/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of scenarios, tests and interactive use: each is a word with an argument. nri-rp-sim(1)
 * lists them. */
#ifndef SIM_STEPS_H
#define SIM_STEPS_H

#include "core/nri-rp-sim/sim.h"

/*
 * Runs a step. Results are added to the map `result`. An error means that the step has failed; err
 * is for people. -EINVAL: the step itself is invalid.
 */
int step_run(struct sim *s, const char *name, const json_t *args, json_t *result, struct err *err);
/* Checks that a step of that name exists. -EINVAL: err suggests the most similar name. */
int step_known(const char *name, struct err *err);
/* Checks a step before anything runs: its word, its keys, the syntax of expressions. -EINVAL. */
int step_check(const json_t *step, struct err *err);
/* Returns the word of a step, or NULL when the map has none or several. */
const char *step_name(const json_t *step);

/* Matches the text with the regular expression `expected`; NULL matches any text. -EPROTO: no
 * match. */
int step_matches(const char *text, const json_t *expected, struct err *err);

/* ---- steps_daemon.c -------------------------------------------------------------------------- */

int step_start(struct sim *s, const json_t *args, json_t *result, struct err *err);
int step_stop(struct sim *s, const json_t *args, json_t *result, struct err *err);
int step_kill(struct sim *s, const json_t *args, json_t *result, struct err *err);
int step_restart(struct sim *s, const json_t *args, json_t *result, struct err *err);
int step_signal(struct sim *s, const json_t *args, json_t *result, struct err *err);
int step_exited(struct sim *s, const json_t *args, json_t *result, struct err *err);
int step_runtime_stop(struct sim *s, const json_t *args, json_t *result, struct err *err);
int step_runtime_start(struct sim *s, const json_t *args, json_t *result, struct err *err);
int step_runtime_restart(struct sim *s, const json_t *args, json_t *result, struct err *err);
int step_write_config(struct sim *s, const json_t *args, json_t *result, struct err *err);
int step_reload(struct sim *s, const json_t *args, json_t *result, struct err *err);
int step_config(struct sim *s, const json_t *args, json_t *result, struct err *err);
int step_badconfig(struct sim *s, const json_t *args, json_t *result, struct err *err);
int step_control(struct sim *s, const json_t *args, json_t *result, struct err *err);
int step_log(struct sim *s, const json_t *args, json_t *result, struct err *err);
int step_connected(struct sim *s, const json_t *args, json_t *result, struct err *err);

#endif
