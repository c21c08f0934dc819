/* SPDX-License-Identifier: Apache-2.0 */
/* The real nri-rpd process of a simulated node, and its log. */
#pragma once

#include "core/nri-rp-sim/sim.h"

int daemon_new(struct sim *s, struct err *err);
void daemon_free(struct sim *s); /* kills a running process */

/* Starts the process without waiting for its connection. -EALREADY: it runs. */
int daemon_start(struct sim *s, struct err *err);
bool daemon_running(const struct sim *s);
int daemon_pid(const struct sim *s); /* Returns the process id of the daemon; 0: not running. */
/* Sends a signal. -ESRCH: not running. */
int daemon_signal(struct sim *s, int signo, struct err *err);
/* Waits until the process has exited. ret_status, which may be NULL, receives the wait status. */
int daemon_wait_exit(struct sim *s, uint64_t timeout_ms, int *ret_status, struct err *err);
/* Formats a wait status for people: "exit status 70", "signal 9". */
const char *daemon_status_text(int status, char *buf, size_t size);
/* Returns the wait status of the last process; -1: none has exited. */
int daemon_last_status(const struct sim *s);

/* Returns the present end of the log, as the start of a later search. */
uint64_t daemon_log_end(const struct sim *s);
/* Waits for a line that matches the extended regular expression. -ETIMEDOUT; -EINVAL: invalid
 * expression. */
int daemon_wait_log(struct sim *s, const char *regex, uint64_t from, uint64_t timeout_ms,
		    struct err *err);
/* Returns the log from a position on, malloc'd. */
char *daemon_read_log(const struct sim *s, uint64_t from);
/* Returns the last lines of the log for error messages, malloc'd. */
char *daemon_log_tail(const struct sim *s, unsigned n_lines);
