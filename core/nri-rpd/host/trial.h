/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A function in a forked child: whatever it does, the daemon stays as it is.
 *
 * The child has the whole state of the loop's thread as it was at the fork, and nothing else of the
 * process: no other thread, no descriptors but stderr, those in keep_fds and its end of the result
 * pipe, signals at their defaults, its own limits, no core file. It dies with its parent.
 * Breadcrumb and watchdog are detached; a shared page takes the crumbs, so that the sentence about
 * a crash can name module and function.
 */
#ifndef HOST_TRIAL_H
#define HOST_TRIAL_H

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
	/* Time until SIGKILL in which the child runs or sleeps. Time in which it waits for a CPU
	 * or a disk, or in which the whole machine stands still, does not count, within 12 times
	 * this limit. */
	uint32_t time_ms;
	uint32_t
		cpu_s; /* RLIMIT_CPU; more than time_ms, which is to be the answer for one thread */
	/* bytes of address space beyond what the parent has; not in instrumented builds */
	uint64_t memory_max;
	size_t output_max; /* bytes of payload */
	int nice; /* added to the parent's */
};
#define TRIAL_LIMITS_DEFAULT                                                                       \
	{                                                                                          \
		5000, 10, UINT64_C(1) << 30, (size_t)16 << 20, 5                                   \
	}

enum trial_outcome {
	TRIAL_DONE, /* the function returned 0 or more */
	TRIAL_REFUSED, /* it returned a negative value, and said why */
	TRIAL_CRASHED, /* a signal */
	TRIAL_EXITED, /* somebody called exit */
	TRIAL_TIMED_OUT,
	TRIAL_TOO_LONG, /* more than output_max */
	TRIAL_GARBLED, /* what came through the pipe is no result */
};

struct trial_result {
	enum trial_outcome outcome;
	int code; /* what the function returned; a negative errno for what is none of its doing */
	int status; /* signal of CRASHED, exit status of EXITED */
	/* inside of which it ended; "" when in none, and for DONE and REFUSED */
	char module[RP_NAME_MAX];
	unsigned call; /* enum crumb_call, with module */
	struct err err; /* the sentence, for all but DONE */
	const uint8_t *data; /* what the function wrote to out; for DONE and REFUSED */
	size_t size;
	uint64_t took_us;
	void *memory; /* what data is in */
	struct log_held *held; /* what it has warned of and is not logged; NULL: nothing */
};

/* Runs in the child. Writes its answer to out; a negative result is a refusal and comes with err
 * filled. */
typedef int (*trial_fn)(void *arg, struct buf *out, struct err *err);

/* Where the child's log goes. */
enum trial_log {
	TRIAL_LOG_LIVE, /* it is the daemon's own */
	/* warnings and less are logged only if it does not end as DONE; else the parent is going to
	 * say them */
	TRIAL_LOG_HELD,
	TRIAL_LOG_DRY, /* it is never logged: result.held has it, whatever the outcome */
};

struct trial_spec {
	const char *
		what; /* completes "… while": "the configuration was tried". Borrowed until done. */
	trial_fn fn;
	void *arg;
	struct trial_limits limits;
	struct loop *loop; /* abandoned in the child; may be NULL for trial_run */
	struct crumb *crumb; /* may be NULL */
	struct watchdog *watchdog; /* may be NULL */
	enum trial_log log;
	int keep_fds[TRIAL_KEEP_FDS_MAX];
	unsigned n_keep_fds;
};

/*
 * Starts it and returns; done is called once from the loop, never from within trial_start. The
 * result is valid during done, the trial is freed after it. ret may be NULL.
 */
int trial_start(const struct trial_spec *spec,
		void (*done)(void *arg, const struct trial_result *res), void *done_arg,
		struct trial **ret, struct err *err);
/* Kills it; done is not called. */
void trial_cancel(struct trial *t);

/* The same while the caller waits, for start-up. 0 when there is a result, whatever it is. */
int trial_run(const struct trial_spec *spec, struct trial_result *ret, struct err *err);
/* The parent is not going to say it after all: what was held is logged. */
void trial_tell_held(const struct trial_result *res);
/* Frees a result of trial_run. */
void trial_result_fini(struct trial_result *res);

#endif
