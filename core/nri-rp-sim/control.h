/* SPDX-License-Identifier: Apache-2.0 */
/* Client of nri-rpd's control socket. */
#pragma once

#include "core/nri-rp-sim/sim.h"

/* Calls a method of the control socket. *ret: the answer, a new reference; *ret_exit: the exit
 * status that nri-rpctl would have. */
int control_ask(struct sim *s, const char *method, const json_t *args, uint64_t timeout_ms,
		json_t **ret, int *ret_exit, struct err *err);
