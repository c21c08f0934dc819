/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a function in a forked child, whose failures do not affect the daemon.
 *
 * The child has the state of the loop's thread at the fork and nothing else of the process: no
 * other thread, no descriptors but stderr, those in keep_fds and its end of the result pipe. It has
 * default signal actions, separate limits and no core file, and dies with its parent. Breadcrumb
 * and watchdog are detached; a shared page takes the crumbs, so that the sentence about a crash can
 * name module and function.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nri-rp/module.h>

#include "core/lib/util/buf.h"
#include "core/lib/util/err.h"

struct crumb;
struct log_held;
struct loop;
struct trial;
struct watchdog;

#define TRIAL_KEEP_FDS_MAX 16u

struct trial_limits {
	/* Milliseconds until SIGKILL in which the child runs or sleeps. Time in which it waits for
	 * a CPU or a disk, or in which the whole machine is suspended, does not count, up to 12
	 * times this limit. */
	uint32_t time_ms;
	uint32_t cpu_s; /* RLIMIT_CPU; above time_ms, which ends a child with one thread first */
	/* bytes of address space beyond the parent's; no limit in instrumented builds */
	uint64_t memory_max;
	size_t output_max; /* largest payload, in bytes */
	int nice; /* added to the parent's nice value */
};
#define TRIAL_LIMITS_DEFAULT                                                                       \
	{                                                                                          \
		5000, 10, UINT64_C(1) << 30, (size_t)16 << 20, 5                                   \
	}

enum trial_outcome {
	TRIAL_DONE, /* the function returned 0 or more */
	TRIAL_REFUSED, /* the function returned a negative value, with an error text */
	TRIAL_CRASHED, /* a signal has ended the child */
	TRIAL_EXITED, /* the child has called exit() */
	TRIAL_TIMED_OUT,
	TRIAL_TOO_LONG, /* output is longer than output_max */
	TRIAL_GARBLED, /* the bytes of the pipe are no valid result */
};

struct trial_result {
	enum trial_outcome outcome;
	int code; /* result of the function; a negative errno if the function did not return */
	int status; /* signal of CRASHED, exit status of EXITED */
	/* module in whose call the child ended; "" for none, and for DONE and REFUSED */
	char module[RP_NAME_MAX];
	unsigned call; /* enum crumb_call, with module */
	struct err err; /* sentence about the outcome, for all but DONE */
	const uint8_t *data; /* output of the function, for DONE and REFUSED */
	size_t size;
	uint64_t took_us;
	void *memory; /* memory that contains data */
	struct log_held *held; /* warnings of the child that are not logged; NULL: none */
};

/* Runs in the child. Writes its answer to out. A negative result is a refusal and comes with err
 * filled. */
typedef int (*trial_fn)(void *arg, struct buf *out, struct err *err);

/* Treatment of the child's log messages. */
enum trial_log {
	TRIAL_LOG_LIVE, /* written at once to the daemon's log */
	/* Warnings and less are logged only if the outcome is not DONE; otherwise the parent is
	 * going to log them. */
	TRIAL_LOG_HELD,
	TRIAL_LOG_DRY, /* never log: result.held has all messages */
};

struct trial_spec {
	const char *
		what; /* completes "… while": "the configuration was tried". Borrowed until done. */
	trial_fn fn;
	void *arg;
	struct trial_limits limits;
	struct loop *loop; /* abandoned in the child; may be NULL for trial_run */
	struct crumb *crumb; /* breadcrumb of the daemon; NULL: none */
	struct watchdog *watchdog; /* watchdog of the daemon; NULL: none */
	enum trial_log log;
	int keep_fds[TRIAL_KEEP_FDS_MAX];
	unsigned n_keep_fds;
};

/*
 * Starts the child and returns. done is called once from the loop, never from within trial_start.
 * The result is valid during done, the trial is freed after it. ret may be NULL.
 */
int trial_start(const struct trial_spec *spec,
		void (*done)(void *arg, const struct trial_result *res), void *done_arg,
		struct trial **ret, struct err *err);
/* Kills the child; done is not called. */
void trial_cancel(struct trial *t);

/* Runs the child and waits for it, for start-up. 0: there is a result, of any outcome. */
int trial_run(const struct trial_spec *spec, struct trial_result *ret, struct err *err);
/* Logs the held messages, because the parent will not log them itself. */
void trial_tell_held(const struct trial_result *res);
/* Frees a result of trial_run. */
void trial_result_fini(struct trial_result *res);
