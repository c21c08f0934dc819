/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An attempt: a function in a forked child that knows all that the loop's thread knows at this
 * moment. A configuration, a pod, a look at slow hardware: whatever is tried, or takes its time, is
 * one of these.
 *
 * The child is cut off: it has no worker, and writes nothing of the state. It has a time limit, and
 * ends with the daemon. Attempts under way are in one list.
 */
#ifndef PIPELINE_ATTEMPT_H
#define PIPELINE_ATTEMPT_H

#include "core/nri-rpd/host/trial.h"

struct pipeline;
struct topo;

/* In the child: writes its answer to out. Nothing of what it allocates needs to be freed. A
 * negative result comes with err. */
typedef int (*attempt_fn)(struct pipeline *p, void *arg, struct buf *out, struct err *err);
/* In the daemon, once and never from within attempt_start. NULL: the daemon ends, and there is no
 * answer. */
typedef void (*attempt_done)(void *arg, const struct trial_result *res);

struct attempt_spec {
	const char *what; /* as in struct trial_spec */
	attempt_fn fn;
	attempt_done done; /* of attempt_start */
	void *arg; /* of both */
	const struct topo
		*topo; /* a snapshot that is looked at, beside the one in force; or NULL */
	enum trial_log
		log; /* HELD: the daemon does the same when this has gone well; DRY: it does not */
};

int attempt_start(struct pipeline *p, const struct attempt_spec *spec, struct err *err);
/* The same while the caller waits, at a start. 0: there is a result, which the caller gives to
 * trial_result_fini. */
int attempt_wait(struct pipeline *p, const struct attempt_spec *spec, struct trial_result *ret,
		 struct err *err);
/* Ends all that are under way. */
void attempts_fini(struct pipeline *p);

#endif
