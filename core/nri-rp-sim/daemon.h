/* SPDX-License-Identifier: Apache-2.0 */
/* The real nri-rpd of a simulated node: its process and its log. */
#ifndef SIM_DAEMON_H
#define SIM_DAEMON_H

#include "core/nri-rp-sim/sim.h"

int daemon_new(struct sim *s, struct err *err);
void daemon_free(struct sim *s); /* kills what runs */

/* Starts it; it is there, not yet connected. -EALREADY when it runs. */
int daemon_start(struct sim *s, struct err *err);
bool daemon_running(const struct sim *s);
int daemon_pid(const struct sim *s); /* 0: it does not run */
/* Sends a signal: -ESRCH when it does not run. */
int daemon_signal(struct sim *s, int signo, struct err *err);
/* Waits until it has exited. The wait status goes to ret_status, which may be NULL. */
int daemon_wait_exit(struct sim *s, uint64_t timeout_ms, int *ret_status, struct err *err);
/* As people say it: "exit status 70", "signal 9". */
const char *daemon_status_text(int status, char *buf, size_t size);
/* Of the last one that has ended; -1: none has. */
int daemon_last_status(const struct sim *s);

/* Where the log ends now, to look only at what comes later. */
uint64_t daemon_log_end(const struct sim *s);
/* Waits for a line that matches the extended regular expression. -ETIMEDOUT; -EINVAL: no such
 * expression. */
int daemon_wait_log(struct sim *s, const char *regex, uint64_t from, uint64_t timeout_ms,
		    struct err *err);
/* The whole log from there on, malloc'd. */
char *daemon_read_log(const struct sim *s, uint64_t from);
/* The last lines, for messages. */
char *daemon_log_tail(const struct sim *s, unsigned n_lines);

/* The control socket: the document that a method answers, a new reference, and the exit status that
 * nri-rpctl would have. */
int control_ask(struct sim *s, const char *method, const json_t *args, uint64_t timeout_ms,
		json_t **ret, int *ret_exit, struct err *err);

#endif
