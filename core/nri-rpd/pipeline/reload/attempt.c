/* SPDX-License-Identifier: Apache-2.0 */
/* Forked attempts: prepares the child on both sides of host/trial.h, and keeps the list of running
 * attempts. */
#include "core/nri-rpd/pipeline/reload/attempt.h"

#include <assert.h>
#include <stdlib.h>

#include <utlist.h>

#include "core/nri-rpd/pipeline/internal.h"

struct attempt {
	struct pipeline *p;
	struct attempt_spec spec;
	struct trial *trial;
	struct attempt *prev, *next;
};

/* Detaches the child from the worker and from the store's file. */
static void cut_off(struct pipeline *p)
{
	assert(!p->env.trial);
	p->env.trial = true;
	p->env.worker = NULL;
	/* modules still read their saved state from memory */
	p->store = store_abandon(p->store);
}

static int attempt_run(void *arg, struct buf *out, struct err *err)
{
	struct attempt *a = arg;
	cut_off(a->p);
	return a->spec.fn(a->p, a->spec.arg, out, err);
}

static struct trial_spec trial_of(struct attempt *a)
{
	struct pipeline *p = a->p;
	const struct topo *topo = a->spec.topo;
	return (struct trial_spec){
		.what = a->spec.what,
		.fn = attempt_run,
		.arg = a,
		.log = a->spec.log,
		.limits = TRIAL_LIMITS_DEFAULT,
		.loop = p->env.loop,
		.crumb = p->env.crumb,
		.watchdog = p->watchdog,
		/* modules read the topology when they check their sections */
		.keep_fds = {p->root.fd, topo_root_fd(p->env.topo), topo ? topo_root_fd(topo) : -1},
		.n_keep_fds = topo ? 3 : 2,
	};
}

static void attempt_ended(void *arg, const struct trial_result *res)
{
	assert(((struct attempt *)arg)->p->reloads.attempts);
	struct attempt *a = arg;
	DL_DELETE(a->p->reloads.attempts, a);
	a->spec.done(a->spec.arg, res);
	free(a);
}

int attempt_start(struct pipeline *p, const struct attempt_spec *spec, struct err *err)
{
	struct attempt *a = p->reloads.stopping ? NULL : calloc(1, sizeof *a);
	if (p->reloads.stopping)
		return err_set(err, -ESHUTDOWN, "nri-rpd is stopping");
	if (!a)
		return err_errno(err, -ENOMEM, "%s", spec->what);
	*a = (struct attempt){.p = p, .spec = *spec};
	const struct trial_spec trial = trial_of(a);
	int r = trial_start(&trial, attempt_ended, a, &a->trial, err);
	if (r) {
		free(a);
		return r;
	}
	DL_APPEND(p->reloads.attempts, a);
	return 0;
}

int attempt_wait(struct pipeline *p, const struct attempt_spec *spec, struct trial_result *ret,
		 struct err *err)
{
	struct attempt a = {.p = p, .spec = *spec};
	const struct trial_spec trial = trial_of(&a);
	return trial_run(&trial, ret, err);
}

void attempts_fini(struct pipeline *p)
{
	while (p->reloads.attempts) {
		struct attempt *a = p->reloads.attempts;
		trial_cancel(a->trial);
		attempt_ended(a, NULL);
	}
}
