/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-modcheck/rig.h"
#include "core/nri-rp-modcheck/machines.h"
#include "core/nri-rp-modcheck/config.h"
#include "core/nri-rp-modcheck/shim_module.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "core/nri-rpd/cache/derive.h"
#include "core/nri-rpd/cache/txn.h"
#include "core/nri-rpd/host/service/services.h"
#include "core/nri-rpd/pipeline/internal.h"
#include "core/nri-rpd/pipeline/reload/apply.h"
#include "core/nri-rpd/pipeline/request/updates.h"
#include "core/lib/util/clock.h"
#include "core/lib/util/worker.h"

#define JOBS_MS 5000u

/* ---- results --------------------------------------------------------------------------------- */

int rig_known_code(int code, const char *what, struct err *err)
{
	if (shim_may_return(code))
		return RIG_REFUSED;
	return err_set(err, -EPROTO, "%s returned %d, which is not an RP_E code", what, code);
}

static bool text_differs(struct buf *a, struct buf *b, char *ret, size_t size)
{
	const char *x = buf_text(a), *y = buf_text(b);
	unsigned line = 1;
	for (;;) {
		size_t n = strcspn(x, "\n"), m = strcspn(y, "\n");
		if (n != m || memcmp(x, y, n) != 0) {
			(void)snprintf(ret, size, "line %u: \"%.*s\" instead of \"%.*s\"", line,
				       (int)(m < 300 ? m : 300), y, (int)(n < 300 ? n : 300), x);
			return true;
		}
		if (!x[n] || !y[m])
			break;
		x += n + 1;
		y += m + 1;
		line++;
	}
	return false;
}

int text_same(struct buf *expected, struct buf *found, struct err *err, const char *fmt, ...)
{
	char what[256], where[700];
	va_list ap;
	if (!text_differs(expected, found, where, sizeof where))
		return 0;
	va_start(ap, fmt);
	(void)vsnprintf(what, sizeof what, fmt, ap);
	va_end(ap);
	return err_set(err, -EINVAL, "%s: %s", what, where);
}

void rig_log(struct rig *r, const char *fmt, ...)
{
	va_list ap;
	if (!r->log)
		return;
	va_start(ap, fmt);
	(void)buf_vprintf(r->log, fmt, ap);
	va_end(ap);
	(void)buf_add_str(r->log, "\n");
}

/* ---- invariants ------------------------------------------------------------------------------ */

struct rp_ids rig_online(const struct rig *r)
{
	return topo_ids(r->env->topo, RP_CPUS_ONLINE);
}

static int check_cpus(struct rig *r, const struct ctr *ctr, struct err *err)
{
	const struct decision *d = &ctr->cur;
	struct rp_ids online = rig_online(r);
	if (d->cpus && !rp_ids_overlap(d->cpus->ids, online))
		return err_set(err, -EINVAL, "I3: container %s has no CPU online: %s",
			       ctr->full_name, d->cpus->text);
	/* a container that could not be placed again keeps its CPUs */
	if (d->cpus && !r->lost_cpus && !d->degraded && !rp_ids_subset(d->cpus->ids, online))
		return err_set(err, -EINVAL, "I1: container %s has CPUs %s, not all of them online",
			       ctr->full_name, d->cpus->text);
	if (d->mems && !rp_ids_subset(d->mems->ids, topo_ids(r->env->topo, RP_NODES_MEMORY)))
		return err_set(err, -EINVAL,
			       "I4: container %s has memory nodes %s, not all of which have memory",
			       ctr->full_name, d->mems->text);
	if (d->exclusive && (!d->cpus || !rp_ids_subset(d->exclusive->ids, d->cpus->ids)))
		return err_set(err, -EINVAL,
			       "I2: container %s has exclusive CPUs %s that are not among its CPUs",
			       ctr->full_name, d->exclusive->text);
	return 0;
}

/* Compares all pairs of containers, independently of the counts in the cache. */
static int check_exclusive(struct rig *r, const struct ctr *ctr, struct err *err)
{
	const struct ctr *other = NULL;
	if (!ctr->cur.exclusive)
		return 0;
	DL_FOREACH (cache_ctrs(r->env->cache), other) {
		if (other == ctr || (other->cur.group && other->cur.group == ctr->cur.group) ||
		    !ctr_live(other->cur.state) || !other->cur.cpus ||
		    !rp_ids_overlap(other->cur.cpus->ids, ctr->cur.exclusive->ids))
			continue;
		return err_set(err, -EINVAL,
			       "I2: container %s has CPUs %s, of which %s are exclusive CPUs of "
			       "container %s",
			       other->full_name, other->cur.cpus->text, ctr->cur.exclusive->text,
			       ctr->full_name);
	}
	return 0;
}

int rig_check(struct rig *r, struct err *err)
{
	const struct ctr *ctr = NULL;
	DL_FOREACH (cache_ctrs(r->env->cache), ctr) {
		if (!ctr_live(ctr->cur.state))
			continue;
		int bad = check_cpus(r, ctr, err);
		bad = bad ? bad : check_exclusive(r, ctr, err);
		if (bad)
			return bad;
	}
	return 0;
}

/* ---- descriptions ---------------------------------------------------------------------------- */

static const char *text_of(const struct iset *s)
{
	return s ? s->text : "-";
}

static void describe_number(const char *name, int64_t value, struct buf *out)
{
	if (value != RP_NOT_SET)
		(void)buf_printf(out, " %s %lld", name, (long long)value);
}

static void rig_do_describe(const struct ctr *ctr, struct buf *out)
{
	const struct decision *d = &ctr->cur;
	const struct blob *blobs[] = {d->rdt_class, d->blockio_class, d->cpu_class, d->data,
				      d->degraded};
	(void)buf_printf(out, "  %s cpus %s mems %s exclusive %s", ctr->full_name, text_of(d->cpus),
			 text_of(d->mems), text_of(d->exclusive));
	describe_number("shares", d->shares, out);
	describe_number("quota", d->quota, out);
	describe_number("period", d->period, out);
	describe_number("memory", d->mem_limit, out);
	for (unsigned i = 0; i < sizeof blobs / sizeof *blobs; i++)
		if (blobs[i] && blobs[i]->len)
			(void)buf_printf(out, " %.*s", (int)strcspn(blobs[i]->data, "\n"),
					 blobs[i]->data);
	(void)buf_add_str(out, "\n");
}

void rig_describe(struct rig *r, struct buf *out)
{
	const struct ctr *ctr = NULL;
	DL_FOREACH (cache_ctrs(r->env->cache), ctr) {
		if (ctr_live(ctr->cur.state))
			rig_do_describe(ctr, out);
	}
}

static void log_touched(struct rig *r)
{
	if (!r->log)
		return;
	for (const struct stage *s = decide_touched(r->pipeline); s; s = s->link)
		if (txn_changed(s))
			rig_do_describe(s->ctr, r->log);
}

/* ---- jobs ------------------------------------------------------------------------------------ */

static void stop_loop(void *arg)
{
	loop_stop(arg);
}

static int rig_nothing(void *arg)
{
	return 0;
}

static void all_done(void *arg, int result)
{
	loop_stop(arg);
}

static bool is_busy(const struct rig *r)
{
	return worker_pending(r->env->worker) || r->env->posts;
}

/* Submits a job after the others, whose end stops the loop. Repeats, as done() functions may have
 * submitted more. */
int rig_finish_jobs(struct rig *r, struct err *err)
{
	uint64_t end_ms = clock_ms() + JOBS_MS;
	if (!is_busy(r))
		return 0;
	struct loop_timer *limit = loop_timer_new(r->env->loop, stop_loop, r->env->loop);
	if (!limit || loop_timer_arm(limit, JOBS_MS))
		return err_errno(err, -ENOMEM, "timer");
	while (is_busy(r) && clock_ms() < end_ms &&
	       !worker_submit(r->env->worker, rig_nothing, all_done, r->env->loop))
		(void)loop_run(r->env->loop);
	loop_timer_free(limit);
	if (worker_pending(r->env->worker)) {
		r->check->hung = true;
		return err_set(err, -ETIME, "jobs on the worker did not end within %u ms", JOBS_MS);
	}
	if (is_busy(r))
		return err_set(err, -ETIME,
			       "posted events did not end within %u ms: each event posts another",
			       JOBS_MS);
	return r->posted.code ? err_set(err, r->posted.code, "%s", r->posted.text) : 0;
}

struct txn *rig_txn(const struct rig *r)
{
	return r->pipeline->txn;
}

/* ---- requests -------------------------------------------------------------------------------- */

typedef int (*decide_fn)(struct rig *r, struct ctr *ctr, struct err *err);

/* Sets what happens to refused containers. A trial admits no pod that the policy refuses. */
static void rig_set_on_error(struct rig *r, enum request kind)
{
	struct conf_core *core = (struct conf_core *)(uintptr_t)conf_core(r->pipeline->conf);
	bool unmanaged = r->unmanaged && (kind != REQ_RUN_POD || !r->shim->rehearses);
	core->on_policy_error = unmanaged ? CONF_UNMANAGED : CONF_REJECT;
}

/* Gives the pipeline the rig's instance and configuration, and begins a request. */
static void rig_begin(struct rig *r, enum request kind)
{
	struct pipeline *p = r->pipeline;
	bool policy = r->instance && instance_role(r->instance) == RP_KIND_POLICY;
	p->policy = policy ? r->instance : NULL;
	p->conf = r->conf ? r->conf : r->check->conf;
	r->n_breaks = p->stats.invariant_breaks;
	rig_set_on_error(r, kind);
	request_begin(p, kind);
}

/* Takes the queued updates, as a runtime does. */
static void rig_take_updates(struct pipeline *p)
{
	uint32_t n;
	updates_hurry(p);
	while (updates_next(p, &n))
		updates_acked(p);
}

/* Places all containers after a failed resync. Only a call that is made to fail excuses the
 * failure. */
static int rig_recover(struct rig *r, struct err *err)
{
	if (!r->pipeline->requests.sync_failed)
		return 0;
	r->pipeline->requests.sync_failed = false;
	if (r->faulty)
		return rig_sync(r, err);
	return err_set(err, -EINVAL, "sync() after a dropped transaction failed");
}

/* Judges the result of a request. Returns 0, RIG_REFUSED, or an error that modules may not
 * cause. */
static int rig_judge(struct rig *r, int bad, const char *what, struct err *err)
{
	struct err again = ERR_INIT;
	rig_take_updates(r->pipeline);
	if (bad && r->pipeline->stats.invariant_breaks != r->n_breaks)
		bad = err_prefix(err, "the host refuses the policy's decision: ");
	else if (bad)
		bad = rig_known_code(bad, what, err);
	if (rig_recover(r, &again)) {
		*err = again;
		return again.code;
	}
	if (bad) {
		r->n_refused += bad == RIG_REFUSED;
		rig_log(r, "  refused: %s", err->text);
		return bad == RIG_REFUSED ? bad : err_prefix(err, "%s: ", what);
	}
	if (r->pipeline->stats.invariant_breaks != r->n_breaks)
		bad = err_set(err, -EINVAL, "the policy violates an invariant");
	if (!bad && !r->late)
		bad = rig_finish_jobs(r, err);
	if (!bad)
		bad = rig_check(r, err);
	return bad ? err_prefix(err, "after %s: ", what) : 0;
}

struct rig_call {
	struct rig *rig;
	decide_fn fn;
	struct ctr *ctr;
};

static int rig_run_call(struct pipeline *p, void *arg, struct err *err)
{
	const struct rig_call *call = arg;
	return call->fn(call->rig, call->ctr, err);
}

int rig_decide(struct rig *r, decide_fn fn, struct ctr *ctr, const char *what, struct err *err)
{
	struct rig_call call = {r, fn, ctr};
	rig_begin(r, REQ_OTHER);
	int bad = decide(r->pipeline, rig_run_call, &call, err);
	if (!bad) {
		log_touched(r);
		decide_take_effect(r->pipeline);
	}
	reply_sent(r->pipeline, NULL, bad != 0);
	return rig_judge(r, bad, what, err);
}

/* Makes a request as a trial: what its calls of the policy decide is dropped. */
static int rig_rehearse(struct rig *r, int (*request)(struct rig *r, void *arg, struct err *err),
			void *arg)
{
	struct err ignored = ERR_INIT;
	struct buf *log = r->log;
	unsigned n_refused = r->n_refused;
	r->log = NULL;
	r->env->trial = r->shim->rehearses = true;
	int bad = request(r, arg, &ignored);
	r->env->trial = r->shim->rehearses = false;
	r->log = log;
	r->n_refused = n_refused;
	return bad == RIG_REFUSED ? 0 : bad;
}

/* ---- containers ------------------------------------------------------------------------------ */

static const char *const qos_parents[] = {"/kubepods/pod", "/kubepods/burstable/pod",
					  "/kubepods/besteffort/pod"};

static struct res_desc resources_of(const struct wish *w)
{
	return (struct res_desc){
		.shares = w->cpu_request ? derive_mcpu_to_shares(w->cpu_request) : 2,
		.quota = w->cpu_limit ? w->cpu_limit * 100 : RP_NOT_SET,
		.period = w->cpu_limit ? 100000 : RP_NOT_SET,
		.mem_limit = w->mem_limit ? w->mem_limit : RP_NOT_SET,
	};
}

static int64_t oom_score_adj_of(const struct rig *r, const struct wish *w)
{
	if (w->qos == RP_QOS_GUARANTEED)
		return -997;
	if (w->qos == RP_QOS_BEST_EFFORT)
		return 1000;
	int64_t total = (int64_t)topo_memory(r->env->topo) / 1000;
	int64_t adj = 1000 - (total ? w->mem_request / total : 0);
	return adj < 3 ? 3 : adj > 999 ? 999 : adj;
}

/* A container to create or resize, as the runtime describes it. */
struct rig_wish {
	const struct wish *wish;
	char parent[160], path[256];
	struct res_desc sums;
	struct pod_desc pod;
	struct ctr_desc desc;
	struct ctr *ctr; /* the container that is resized, or was created */
};

static void rig_describe_wish(const struct rig *r, const struct wish *w, struct rig_wish *ret)
{
	*ret = (struct rig_wish){.wish = w, .sums = resources_of(w)};
	(void)snprintf(ret->parent, sizeof ret->parent, "%s%s", qos_parents[w->qos], w->pod);
	(void)snprintf(ret->path, sizeof ret->path, "%s/%s", ret->parent, w->id);
	ret->pod = (struct pod_desc){.id = w->pod,
				     .name = w->pod,
				     .uid = w->pod,
				     .ns = w->ns,
				     .runtime_handler = "",
				     .cgroup_parent = ret->parent,
				     .annotations = w->annotations,
				     .n_annotations = w->n_annotations,
				     .sums = &ret->sums};
	ret->desc = (struct ctr_desc){.id = w->id,
				      .pod_id = w->pod,
				      .name = w->id,
				      .cgroups_path = ret->path,
				      .state = RP_STATE_CREATING,
				      .created_ns = w->created_ns,
				      .oom_score_adj = oom_score_adj_of(r, w),
				      .res = ret->sums};
}

int rig_put(struct rig *r, const struct wish *w, struct ctr **ret, struct err *err)
{
	struct rig_wish a;
	struct pod *pod;
	rig_describe_wish(r, w, &a);
	int bad = cache_put_pod(r->env->cache, &a.pod, &pod, err);
	return bad ? bad : cache_put_ctr(r->env->cache, &a.desc, ret, err);
}

/* Removes a pod with its containers. */
static int rig_remove_pod(struct rig *r, const char *id, struct err *err)
{
	const struct pod_desc desc = {.id = id};
	rig_begin(r, REQ_REMOVE_POD);
	request_remove_pod(r->pipeline, &desc);
	reply_sent(r->pipeline, NULL, false);
	return rig_judge(r, 0, "pod_removed", err);
}

static int rig_admit(struct rig *r, void *arg, struct err *err)
{
	struct rig_wish *a = arg;
	rig_begin(r, REQ_RUN_POD);
	r->admitting = a->pod.id;
	int bad = request_run_pod(r->pipeline, &a->pod, err);
	r->admitting = NULL;
	reply_sent(r->pipeline, NULL, bad != 0);
	return rig_judge(r, bad, "admit_pod", err);
}

static int rig_place(struct rig *r, void *arg, struct err *err)
{
	struct rig_wish *a = arg;
	struct reply reply;
	uint64_t n_unmanaged = r->pipeline->stats.unmanaged;
	rig_begin(r, REQ_CREATE);
	int bad = request_create(r->pipeline, &a->pod, &a->desc, &reply, err);
	a->ctr = reply.created;
	if (!bad)
		log_touched(r);
	reply_sent(r->pipeline, &reply, bad != 0);
	if (bad)
		return rig_judge(r, bad, "allocate", err);
	r->n_unmanaged += r->pipeline->stats.unmanaged != n_unmanaged;
	a->desc.state = RP_STATE_RUNNING;
	request_note(r->pipeline, &a->pod, &a->desc);
	return rig_judge(r, 0, "allocate", err);
}

int rig_add(struct rig *r, const struct wish *w, struct ctr **ret, struct err *err)
{
	struct rig_wish a;
	struct err why = ERR_INIT;
	int bad = 0;
	rig_describe_wish(r, w, &a);
	if (!cache_pod(r->env->cache, w->pod)) {
		bad = r->dry ? rig_rehearse(r, rig_admit, &a) : 0;
		bad = bad ? bad : rig_admit(r, &a, err);
	}
	if (bad)
		return bad;
	bad = r->dry ? rig_rehearse(r, rig_place, &a) : 0;
	bad = bad ? bad : rig_place(r, &a, err);
	*ret = a.ctr;
	const struct pod *pod = cache_pod(r->env->cache, w->pod);
	if (!bad || pod->ctrs || !rig_remove_pod(r, w->pod, &why))
		return bad;
	*err = why;
	return why.code;
}

static int rig_do_resize(struct rig *r, void *arg, struct err *err)
{
	struct rig_wish *a = arg;
	const struct ctr_desc desc = {.id = a->ctr->id};
	struct reply reply;
	rig_begin(r, REQ_UPDATE);
	int bad = request_update(r->pipeline, NULL, &desc, &a->sums, &reply, err);
	if (!bad)
		log_touched(r);
	reply_sent(r->pipeline, &reply, bad != 0);
	return rig_judge(r, bad, "update", err);
}

int rig_resize(struct rig *r, struct ctr *ctr, const struct wish *w, struct err *err)
{
	struct rig_wish a = {.wish = w, .sums = resources_of(w), .ctr = ctr};
	int bad = r->dry ? rig_rehearse(r, rig_do_resize, &a) : 0;
	return bad ? bad : rig_do_resize(r, &a, err);
}

static int call_release(struct rig *r, struct ctr *ctr, struct err *err)
{
	return decide_stage_release(r->pipeline, ctr, err);
}

/* Ends a container whose release() has failed, as the daemon does. */
static int rig_force(struct rig *r, struct ctr *ctr, struct err *err)
{
	const struct ctr_desc desc = {.id = ctr->id};
	struct reply reply;
	rig_begin(r, REQ_STOP);
	request_stop(r->pipeline, NULL, &desc, &reply);
	reply_sent(r->pipeline, &reply, false);
	return rig_judge(r, 0, "release", err);
}

int rig_release(struct rig *r, struct ctr *ctr, struct err *err)
{
	int bad = rig_decide(r, call_release, ctr, "release", err);
	if (bad == RIG_REFUSED && r->faulty)
		bad = rig_force(r, ctr, err);
	return bad == RIG_REFUSED ? err_prefix(err, "release() must not fail: ") : bad;
}

int rig_drop(struct rig *r, struct ctr *ctr, struct err *err)
{
	struct pod *pod = ctr->pod;
	if (!ctr->pod_next && pod->ctrs == ctr)
		return rig_remove_pod(r, pod->id, err);
	rig_begin(r, REQ_REMOVE);
	request_forget_ctr(r->pipeline, ctr);
	reply_sent(r->pipeline, NULL, false);
	return 0;
}

int rig_remove(struct rig *r, struct ctr *ctr, struct err *err)
{
	int bad = rig_release(r, ctr, err);
	return bad ? bad : rig_drop(r, ctr, err);
}

/* ---- events ---------------------------------------------------------------------------------- */

static int call_sync(struct rig *r, struct ctr *ctr, struct err *err)
{
	return instance_sync(r->instance, err);
}

int rig_sync(struct rig *r, struct err *err)
{
	int bad = rig_decide(r, call_sync, NULL, "sync", err);
	if (bad == RIG_REFUSED && r->faulty)
		bad = rig_decide(r, call_sync, NULL, "sync once more", err);
	return bad == RIG_REFUSED ? err_prefix(err, "sync() must not fail: ") : bad;
}

static int call_event(struct rig *r, struct ctr *ctr, struct err *err)
{
	return instance_event(r->instance, &r->event, err);
}

int rig_event(struct rig *r, uint32_t type, const struct ctr *ctr, struct err *err)
{
	static const char *const names[] = {[RP_EVENT_STARTED] = "event (started)",
					    [RP_EVENT_TOPOLOGY] = "event (topology)",
					    [RP_EVENT_TIMER] = "event (timer)",
					    [RP_EVENT_REBALANCE] = "event (rebalance)",
					    [RP_EVENT_RUNTIME] = "event (runtime)"};
	r->event = (struct rp_event){.size = sizeof r->event,
				     .type = type,
				     .object = type == RP_EVENT_STARTED ? ctr->handle : 0,
				     .cookie = r->cookie};
	return rig_decide(r, call_event, NULL, names[type], err);
}

int rig_timer(struct rig *r, uint64_t cookie, struct err *err)
{
	r->cookie = cookie;
	int bad = rig_event(r, RP_EVENT_TIMER, NULL, err);
	r->cookie = 0;
	return bad;
}

/* Delivers an event that the policy has posted. The loop runs already, so the jobs of this request
 * are not waited for. */
static void on_event(struct instance *i, const struct rp_event *ev, void *arg)
{
	const struct pipeline *p = arg;
	struct rig *r = p->cfg.arg;
	bool late = r->late;
	if (ev->type != RP_EVENT_POSTED || i != r->instance || r->posted.code)
		return;
	r->late = true;
	r->event = *ev;
	struct err err = ERR_INIT;
	if (rig_settle(rig_decide(r, call_event, NULL, "event (posted)", &err)))
		r->posted = err;
	r->late = late;
	r->n_posted++;
}

static int rig_follow(struct rig *r, struct err *err)
{
	rig_begin(r, REQ_OTHER);
	int bad = apply_topology(r->pipeline, err);
	reply_sent(r->pipeline, NULL, bad != 0);
	return rig_judge(r, bad, "event (topology)", err);
}

int rig_set_online(struct rig *r, struct rp_ids cpus, struct err *err)
{
	struct topo *now, *old = r->env->topo;
	int bad = machine_set_online(r->check->machine, cpus, err);
	bad = bad ? bad : topo_reread(old, &now, err);
	if (bad)
		return bad;
	r->env->topo = now;
	/* A policy without an event function cannot follow the change. */
	r->lost_cpus = true;
	if (instance_handles_events(r->instance)) {
		bad = rig_follow(r, err);
		r->lost_cpus = bad == RIG_REFUSED;
	}
	topo_free(old);
	if (bad)
		return bad == RIG_REFUSED ? 0 : bad;
	bad = rig_check(r, err);
	return bad ? err_prefix(err, "after event (topology): ") : 0;
}

/* ---- life ------------------------------------------------------------------------------------ */

int rig_open(struct rig *r, struct check *c, struct shim *shim, struct err *err)
{
	*r = (struct rig){.check = c, .shim = shim ? shim : &r->own_shim};
	int bad = shim ? 0 : shim_init(r->shim, c);
	const struct pipeline_config config = {
		.loop = loop_new(), .config_path = "", .host_root = c->machine->root, .arg = r};
	if (bad || !config.loop)
		return err_errno(err, -ENOMEM, "rig");
	bad = pipeline_new_alone(&config, &r->pipeline, err);
	if (bad) {
		loop_free(config.loop);
		return bad;
	}
	r->env = &r->pipeline->env;
	r->env->foreign_call = shim_foreign;
	r->env->crumb = c->crumb;
	r->env->event = on_event;
	return 0;
}

void rig_close(struct rig *r)
{
	struct pipeline *p = r->pipeline;
	if (!p)
		return;
	struct loop *loop = r->env->loop;
	r->instance = instance_free(r->instance);
	r->pipeline = NULL;
	p->policy = NULL;
	p->conf = NULL; /* the rig's */
	p->env.crumb = NULL; /* the check's */
	p->env.worker = worker_free_within(p->env.worker, r->check->hung ? 0 : JOBS_MS);
	if (p->env.worker) { /* the worker's thread continues until the process ends */
		r->check->hung = true;
		return;
	}
	pipeline_free(p);
	r->conf = conf_free(r->conf);
	loop_free(loop);
	if (r->shim == &r->own_shim)
		shim_fini(r->shim);
}

int rig_wipe(struct rig *r, struct err *err)
{
	int bad = 0;
	while (!bad && cache_pods(r->env->cache))
		bad = rig_remove_pod(r, cache_pods(r->env->cache)->id, err);
	return bad;
}

int rig_create(struct rig *r, struct err *err)
{
	int bad = instance_new(r->env, &r->shim->module, r->check->role, &r->instance, err);
	return bad == -EBADMSG || !bad ? bad : rig_known_code(bad, "create", err);
}

int rig_commit(struct rig *r, struct conf *conf, struct err *err)
{
	struct rp_plan *plan;
	int bad = instance_prepare(r->instance, conf_section(conf, r->check->o->name), &plan, err);
	if (bad)
		return rig_known_code(bad, "prepare", err);
	instance_commit(r->instance, plan);
	return 0;
}

int rig_configure(struct rig *r, struct err *err)
{
	int bad = r->conf ? 0 : config_load(r->check, &r->conf, err);
	bad = bad ? bad : rig_commit(r, r->conf, err);
	return bad ? bad : rig_sync(r, err);
}

int rig_reload(struct rig *r, struct err *err)
{
	struct conf *conf;
	int bad = config_load(r->check, &conf, err);
	if (bad)
		return bad;
	bad = rig_commit(r, conf, err);
	if (bad) {
		conf_free(conf);
		return bad == RIG_REFUSED ? err_prefix(err, "a reload of the same configuration "
							    "was refused: ")
					  : bad;
	}
	conf_free(r->conf);
	r->conf = conf;
	return rig_sync(r, err);
}

static int no_refusal(int bad, const char *what, struct err *err)
{
	if (bad != RIG_REFUSED)
		return bad;
	(void)err_prefix(err, "%s failed: ", what);
	return err->code;
}

int rig_start(struct rig *r, struct err *err)
{
	int bad = no_refusal(rig_create(r, err), "create()", err);
	return bad ? bad : no_refusal(rig_configure(r, err), "prepare()", err);
}

struct rp_instance *rig_instance(const struct rig *r)
{
	return shim_real(r->instance->inst);
}

void rig_destroy(struct rig *r)
{
	r->instance = instance_free(r->instance);
	if (!r->late)
		(void)rig_finish_jobs(r, NULL);
}

int rig_restart(struct rig *r, struct err *err)
{
	const void *state;
	uint32_t size;
	int bad = instance_save(r->instance, &state, &size, err);
	if (bad)
		return err_prefix(err, "save() of the state failed: ");
	void *copy = malloc(size ? size : 1);
	if (!copy)
		return err_errno(err, -ENOMEM, "state");
	if (size)
		memcpy(copy, state, size);
	rig_destroy(r);
	bad = no_refusal(rig_create(r, err), "create()", err);
	if (!bad && size && instance_load(r->instance, copy, size, err))
		bad = err_prefix(err, "load() of its saved state failed: ");
	free(copy);
	if (!bad) /* after load(), as the daemon does */
		bad = no_refusal(rig_commit(r, r->conf ? r->conf : r->check->conf, err),
				 "prepare()", err);
	return bad ? bad : rig_sync(r, err);
}
