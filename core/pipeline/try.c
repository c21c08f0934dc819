/* SPDX-License-Identifier: Apache-2.0 */
/* Where would this pod go? All of it happens in a forked child: its containers are created there, one after the other, and nobody hears of it. */
#include "core/pipeline/try.h"

#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "core/pipeline/internal.h"
#include "core/pipeline/manifest.h"
#include "core/pipeline/report.h"
#include "core/util/cleanup.h"
#include "core/util/log.h"

#define ARENA_BLOCK 4096u
#define ARENA_MAX (4u << 20)

/* What a container had before. */
struct seen {
	rp_ctr ctr;
	struct iset *cpus, *mems;
};

static int add_move(Trial__Report *report, const struct ctr *ctr, const struct iset *cpus,
		    const struct iset *mems, const char *why)
{
	Trial__Move *m = report_move(ctr, &ctr->cur, cpus, mems, why);
	if (!m)
		return -ENOMEM;
	report->moves[report->n_moves++] = m;
	return 0;
}

static unsigned look(struct pipeline *p, struct seen *seen)
{
	const struct ctr *ctr;
	unsigned n = 0;
	DL_FOREACH (cache_ctrs(p->env.cache), ctr) {
		if (ctr_live(ctr->cur.state))
			seen[n++] = (struct seen){ctr->handle, intern_ref(ctr->cur.cpus),
						  intern_ref(ctr->cur.mems)};
	}
	return n;
}

static int add_created(struct pipeline *p, const struct manifest_ctr *c, Trial__Report *report)
{
	const struct ctr *ctr = cache_ctr(p->env.cache, c->desc.id);
	return ctr ? add_move(report, ctr, NULL, NULL, ctr->trail ? ctr->trail : "") : 0;
}

static int create(struct pipeline *p, const struct manifest *m, const struct manifest_ctr *c,
		  Trial__Report *report, struct err *err)
{
	struct reply reply;
	request_begin(p, REQ_CREATE);
	int r = request_create(p, &m->pod, &c->desc, &reply, err);
	reply_sent(p, r ? NULL : &reply, r != 0);
	if (r || !c->ends)
		return r;
	r = add_created(p, c, report);
	if (r)
		return r;
	request_begin(p, REQ_STOP);
	request_stop(p, &m->pod, &c->desc, &reply);
	reply_sent(p, &reply, false);
	return 0;
}

static int place(struct pipeline *p, const struct manifest *m, Trial__Report *report,
		 struct err *err)
{
	_free_ struct seen *seen = calloc(cache_n_ctrs(p->env.cache) + 1, sizeof *seen);
	unsigned n = seen ? look(p, seen) : 0;
	report->moves = calloc(n + m->n + 1, sizeof *report->moves);
	if (!seen || !report->moves)
		return err_errno(err, -ENOMEM, "pod");
	request_begin(p, REQ_RUN_POD);
	int r = request_run_pod(p, &m->pod, err);
	reply_sent(p, NULL, r != 0);
	for (uint32_t i = 0; !r && i < m->n; i++)
		r = create(p, m, &m->ctrs[i], report, err);
	/* Those that came later may have moved those before them. */
	for (uint32_t i = 0; !r && i < m->n; i++)
		r = m->ctrs[i].ends ? 0 : add_created(p, &m->ctrs[i], report);
	for (unsigned i = 0; !r && i < n; i++) {
		const struct ctr *ctr = cache_ctr_of(p->env.cache, seen[i].ctr);
		if (ctr && ctr_live(ctr->cur.state) &&
		    (ctr->cur.cpus != seen[i].cpus || ctr->cur.mems != seen[i].mems))
			r = add_move(report, ctr, seen[i].cpus, seen[i].mems, "");
	}
	return r;
}

static int read_file(struct pipeline *p, const char *path, struct arena *a, struct manifest *ret,
		     struct err *err)
{
	struct fs_root real;
	char *text = NULL;
	size_t len;
	int r = fs_root_open(&real, "/", err);
	if (r)
		return r;
	r = fs_read_all(&real, path, MANIFEST_TEXT_MAX, &text, &len);
	fs_root_close(&real);
	if (r)
		return err_errno(err, r, "%s", path);
	r = strlen(text) == len ? manifest_read(a, text, topo_memory(p->env.topo), ret, err)
				: err_set(err, -EINVAL, "it is no text");
	free(text);
	return r ? err_prefix(err, "%s: ", path) : 0;
}

/* Nobody is asked about the pod, as it is none. */
static void ask_nobody(struct pipeline *p)
{
	p->env.pod_resource = NULL;
	p->devices = NULL;
	p->n_controllers = 0;
	log_set_level(LOG_ERROR);
}

int try_pod(struct pipeline *p, const char *path, struct buf *out, struct err *err)
{
	Trial__Report report = TRIAL__REPORT__INIT;
	struct manifest m = {0};
	struct arena *a = arena_new(ARENA_BLOCK, ARENA_MAX);
	ask_nobody(p);
	int r = a ? read_file(p, path, a, &m, err) : err_errno(err, -ENOMEM, "pod");
	if (!r)
		r = place(p, &m, &report, err);
	int written = report_write(&report, out);
	return written ? written : r;
}
