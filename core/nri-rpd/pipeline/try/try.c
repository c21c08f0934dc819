/* SPDX-License-Identifier: Apache-2.0 */
/* Attempt to place the pods of a manifest: a forked child creates their containers one after the
 * other with the requests that the runtime would send. The daemon is not affected. */
#include "core/nri-rpd/pipeline/try/try.h"

#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "core/nri-rpd/pipeline/try/manifest.h"
#include "core/nri-rpd/pipeline/reload/report.h"
#include "core/nri-rpd/pipeline/internal.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/log.h"
#include "core/nri-rpd/cache/txn.h"
#include "core/nri-rpd/host/service/work.h"

#define ARENA_BLOCK 4096u

/* Place of a container before the attempt. */
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
	m->moved = true;
	report->moves[report->n_moves++] = m;
	return 0;
}

static unsigned try_look(struct pipeline *p, struct seen *seen)
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

/* ---- settings besides CPUs and memory nodes -------------------------------------------------- */

static void put_name(struct buf *text, const char *what, const struct blob *name)
{
	if (name)
		(void)buf_printf(text, "%s%s %s", buf_len(text) ? ", " : "", what, name->data);
}

static void put_number(struct buf *text, const char *what, int64_t asked, int64_t decided)
{
	if (decided == RP_NOT_SET || decided == asked)
		return;
	(void)buf_printf(text, "%s%s %lld", buf_len(text) ? ", " : "", what, (long long)decided);
	if (asked != RP_NOT_SET)
		(void)buf_printf(text, " (requested: %lld)", (long long)asked);
}

/* Adds a setting. The values of environment variables are omitted, because they may be secret. */
static void put_extra(struct buf *text, const struct extra *e)
{
	char value[EXTRA_VALUE_MAX];
	const char *comma = buf_len(text) ? ", " : "";
	extra_value(e, value);
	if (e->field == RP_F_ENV)
		(void)buf_printf(text, "%senvironment %s", comma, e->key);
	else if (e->field == RP_F_ANNOTATION || e->field == RP_F_UNIFIED)
		(void)buf_printf(text, "%s%s = %s", comma, e->key, value);
	else
		(void)buf_printf(text, "%s%s %s%s%s", comma, extra_name(e->field),
				 e->key ? e->key : "", e->key && *value ? " from " : "", value);
}

static void explain_settings(struct pipeline *p, struct ctr *ctr, const struct reply *reply)
{
	_cleanup_(buf_fini) struct buf text = BUF_INIT;
	const struct decision *d = &ctr->cur;
	const struct values *asked = &ctr->requested;
	put_name(&text, "RDT class", decision_rdt(d));
	put_name(&text, "block I/O class", decision_blockio(d));
	put_name(&text, "CPU class", d->cpu_class);
	put_number(&text, "CPU shares", asked->shares, d->shares);
	put_number(&text, "CPU quota", asked->quota, d->quota);
	put_number(&text, "CPU period", asked->period, d->period);
	put_number(&text, "memory limit", asked->mem_limit, d->mem_limit);
	put_number(&text, "limit of the top tier", RP_NOT_SET,
		   d->toptier_adjusted ? d->toptier_adjusted : RP_NOT_SET);
	for (uint32_t i = 0; reply->extras && i < reply->extras->n; i++)
		put_extra(&text, &reply->extras->list[i]);
	if (!buf_len(&text))
		return;
	_cleanup_(buf_fini) struct buf line = BUF_INIT;
	(void)buf_printf(&line, "would be set: %s", buf_text(&text));
	/* the decision is over; continue its trail */
	ctr->trail.txn = cache_running_txn(p->env.cache);
	host_note(p->env.cache, ctr, buf_text(&line));
}

/* ---- containers and pods --------------------------------------------------------------------- */

static int add_created(struct pipeline *p, const struct manifest_ctr *c, Trial__Report *report)
{
	const struct ctr *ctr = cache_ctr(p->env.cache, c->desc.id);
	return ctr ? add_move(report, ctr, NULL, NULL, ctr->trail.text ? ctr->trail.text : "") : 0;
}

static int try_create(struct pipeline *p, const struct manifest_pod *pod,
		      const struct manifest_ctr *c, Trial__Report *report, struct err *err)
{
	struct reply reply;
	request_begin(p, REQ_CREATE);
	int r = request_create(p, &pod->pod, &c->desc, &reply, err);
	if (!r)
		explain_settings(p, reply.created, &reply);
	reply_sent(p, r ? NULL : &reply, r != 0);
	if (r || !c->ends)
		return r;
	r = add_created(p, c, report);
	if (r)
		return r;
	request_begin(p, REQ_STOP);
	request_stop(p, &pod->pod, &c->desc, &reply);
	reply_sent(p, &reply, false);
	return 0;
}

/* Adds the pod to the cache's feed if the agent reports pods, so that it is known to the cluster's
 * side. */
static int try_feed(struct pipeline *p, const struct manifest_pod *pod, struct err *err)
{
	int r = p->node.feed.current ? feed_put(cache_feed(p->env.cache), pod->fed) : 0;
	return r ? err_errno(err, r, "pod %s/%s", pod->pod.ns, pod->pod.name) : 0;
}

static int create_pod(struct pipeline *p, const struct manifest_pod *pod, Trial__Report *report,
		      struct err *err)
{
	request_begin(p, REQ_RUN_POD);
	int r = try_feed(p, pod, err);
	if (!r)
		r = request_run_pod(p, &pod->pod, err);
	reply_sent(p, NULL, r != 0);
	for (uint32_t i = 0; !r && i < pod->n; i++)
		r = try_create(p, pod, &pod->ctrs[i], report, err);
	if (r && pod->n_replicas > 1)
		(void)err_prefix(err,
				 "%s: %u of %u replicas fit; the next is refused: ", pod->owner,
				 pod->replica - 1, pod->n_replicas);
	return r;
}

/* Adds containers that existed before and have moved. */
static int add_moved(struct pipeline *p, const struct seen *seen, unsigned n, Trial__Report *report)
{
	int r = 0;
	for (unsigned i = 0; !r && i < n; i++) {
		const struct ctr *ctr = cache_ctr_of(p->env.cache, seen[i].ctr);
		if (ctr && ctr_live(ctr->cur.state) &&
		    (ctr->cur.cpus != seen[i].cpus || ctr->cur.mems != seen[i].mems))
			r = add_move(report, ctr, seen[i].cpus, seen[i].mems, "");
	}
	return r;
}

/* Creates the pods and reports all places at the end, because later containers may move earlier
 * ones. Places are reported also if a pod was refused. */
static int try_place(struct pipeline *p, const struct manifest *m, Trial__Report *report,
		     struct err *err)
{
	_free_ struct seen *seen = calloc(cache_n_ctrs(p->env.cache) + 1, sizeof *seen);
	unsigned n = seen ? try_look(p, seen) : 0;
	report->moves = calloc(n + m->n_ctrs + 1, sizeof *report->moves);
	if (!seen || !report->moves)
		return err_errno(err, -ENOMEM, "pod");
	int refused = 0, r = 0;
	for (uint32_t i = 0; !refused && i < m->n; i++)
		refused = create_pod(p, &m->pods[i], report, err);
	for (uint32_t i = 0; !r && i < m->n; i++)
		for (uint32_t k = 0; !r && k < m->pods[i].n; k++)
			r = m->pods[i].ctrs[k].ends ? 0
						    : add_created(p, &m->pods[i].ctrs[k], report);
	if (!r)
		r = add_moved(p, seen, n, report);
	return refused ? refused : r;
}

static int add_notes(const struct manifest *m, Trial__Report *report)
{
	struct buf text = BUF_INIT;
	for (uint32_t i = 0; i < m->n_notes; i++)
		(void)buf_printf(&text, CONF_WARNING "%s\n", m->notes[i]);
	report->warnings = strdup(buf_text(&text));
	buf_fini(&text);
	return report->warnings ? 0 : -ENOMEM;
}

/* Turns off queries about devices, which the kubelet assigns later, and all log messages below
 * errors. */
static void ask_nobody(struct pipeline *p)
{
	p->env.pod_resource = NULL;
	p->wait.devices = NULL;
	log_set_level(LOG_ERROR);
}

int try_pods(struct pipeline *p, const char *name, const char *text, struct buf *out,
	     struct err *err)
{
	Trial__Report report = TRIAL__REPORT__INIT;
	struct manifest m = {0};
	struct arena *a = arena_new(ARENA_BLOCK, MANIFEST_ARENA_MAX);
	ask_nobody(p);
	int r = a ? manifest_read(a, name, text, topo_memory(p->env.topo), &m, err)
		  : err_errno(err, -ENOMEM, "pod");
	if (!r)
		r = add_notes(&m, &report);
	if (!r)
		r = try_place(p, &m, &report, err);
	int written = report_write(&report, out);
	return written ? written : r;
}
