/* SPDX-License-Identifier: Apache-2.0 */
/* What takes its time and needs all that the loop's thread knows: in a forked child, without modules. */
#include <stdlib.h>

#include <utlist.h>

#include "core/pipeline/internal.h"

struct aside {
	struct pipeline *p;
	aside_fn fn;
	aside_done done;
	void *arg;
	struct trial *trial;
	struct aside *prev, *next;
};

static int run(void *arg, struct buf *out, struct err *err)
{
	struct aside *a = arg;
	a->p->env.trial = true;
	a->p->env.worker = NULL;
	a->p->store = store_abandon(a->p->store);
	return a->fn(a->p, a->arg, out, err);
}

static void ended(void *arg, const struct trial_result *res)
{
	struct aside *a = arg;
	DL_DELETE(a->p->asides, a);
	a->done(a->arg, res);
	free(a);
}

int pipeline_aside(struct pipeline *p, const char *what, const struct topo *topo, aside_fn fn,
		   aside_done done, void *arg, struct err *err)
{
	struct aside *a = calloc(1, sizeof *a);
	if (!a)
		return err_errno(err, -ENOMEM, "%s", what);
	*a = (struct aside){.p = p, .fn = fn, .arg = arg, .done = done};
	const struct trial_spec spec = {
		.what = what,
		.fn = run,
		.arg = a,
		.limits = TRIAL_LIMITS_DEFAULT,
		.loop = p->env.loop,
		.crumb = p->env.crumb,
		.watchdog = p->watchdog,
		.keep_fds = {p->root.fd, topo_root_fd(p->env.topo), topo ? topo_root_fd(topo) : -1},
		.n_keep_fds = topo ? 3 : 2,
	};
	int r = trial_start(&spec, ended, a, &a->trial, err);
	if (r) {
		free(a);
		return r;
	}
	DL_APPEND(p->asides, a);
	return 0;
}

void asides_fini(struct pipeline *p)
{
	while (p->asides) {
		struct aside *a = p->asides;
		DL_DELETE(p->asides, a);
		trial_cancel(a->trial);
		a->done(a->arg, NULL);
		free(a);
	}
}
