/* SPDX-License-Identifier: Apache-2.0 */
/* What a scenario, a test or a person can have done: each step is a word with an argument.
 * nri-rp-sim(1) lists them. */
#ifndef SIM_STEPS_H
#define SIM_STEPS_H

#include "core/nri-rp-sim/sim.h"

/*
 * Runs the step. What there is to tell goes into result, a map. An error: it did not do what it
 * should, with err for people; -EINVAL when the step itself is wrong.
 */
int step_run(struct sim *s, const char *name, const json_t *args, json_t *result, struct err *err);
/* Is there a step of that name? -EINVAL, with the nearest one. */
int step_known(const char *name, struct err *err);
/* What is wrong with a step and can be known before anything runs: its word, keys, brackets of
 * expressions. -EINVAL. */
int step_check(const json_t *step, struct err *err);
/* The word a step begins with, or NULL when the map has none or several. */
const char *step_name(const json_t *step);

/* Does the text match the regular expression? expected may be NULL: whatever it is. -EPROTO: no. */
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
