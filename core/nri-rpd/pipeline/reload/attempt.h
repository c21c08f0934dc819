/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attempts: runs a function in a forked child that has a copy of the daemon's state. Used for
 * everything that may crash, hang or take long: configurations, pods of a manifest, reads of slow
 * hardware.
 *
 * The child has no worker and writes nothing of the daemon's state. It has a time limit and ends
 * with the daemon. Running attempts are in one list.
 */
#pragma once

#include "core/nri-rpd/host/trial.h"

struct pipeline;
struct topo;

/* Runs in the child and writes its answer to out. Memory that it allocates need not be freed. A
 * negative result comes with err. */
typedef int (*attempt_fn)(struct pipeline *p, void *arg, struct buf *out, struct err *err);
/* Receives the result in the daemon: called once, and never from within attempt_start(). NULL: the
 * daemon stops, and there is no result. */
typedef void (*attempt_done)(void *arg, const struct trial_result *res);

struct attempt_spec {
	const char *what; /* name of the attempt in messages, as in struct trial_spec */
	attempt_fn fn;
	attempt_done done; /* called after attempt_start() only */
	void *arg; /* argument of fn and done */
	/* further topology that the child may read; NULL: none */
	const struct topo *topo;
	/* HELD: warnings are dropped after a success, because the daemon repeats the work; DRY:
	 * they are never logged */
	enum trial_log log;
};

/* Starts an attempt. Returns after the fork; done() gets the result. */
int attempt_start(struct pipeline *p, const struct attempt_spec *spec, struct err *err);
/* Runs an attempt and waits for its end; used during a start. 0: *ret holds a result, which the
 * caller releases with trial_result_fini(). */
int attempt_wait(struct pipeline *p, const struct attempt_spec *spec, struct trial_result *ret,
		 struct err *err);
/* Cancels all running attempts; their done() gets NULL. */
void attempts_fini(struct pipeline *p);
