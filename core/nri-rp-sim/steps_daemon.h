/* SPDX-License-Identifier: Apache-2.0 */
/* Steps about nri-rpd, its configuration, and the runtime's process. */
#pragma once

#include "core/nri-rp-sim/sim.h"

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
