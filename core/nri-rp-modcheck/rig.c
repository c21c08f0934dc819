/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-modcheck/rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "core/nri-rpd/cache/derive.h"
#include "core/nri-rpd/cache/txn.h"
#include "core/nri-rpd/host/service/services.h"
#include "core/lib/util/str.h"
#include "core/lib/util/clock.h"
#include "core/lib/util/worker.h"
#include "core/nri-rpd/cache/invariant.h"

#define JOBS_MS 5000u

/* ---- results --------------------------------------------------------------------------------- */

int rig_known_code(int code, const char *what, struct err *err)
{
	static const int known[] = {RP_ENOENT, RP_EAGAIN, RP_ENOMEM,  RP_EBUSY, RP_EINVAL,
				    RP_ENOSPC, RP_E2BIG,  RP_ENOTSUP, RP_ESTALE};
	for (unsigned i = 0; i < sizeof known / sizeof *known; i++)
		if (code == -known[i])
			return RIG_REFUSED;
	return err_set(err, -EPROTO, "%s returned %d, which is none of the RP_E codes", what, code);
}

bool text_differs(struct buf *a, struct buf *b, char *ret, size_t size)
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
	return topo_ids(r->env.topo, RP_CPUS_ONLINE);
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
	if (d->mems && !rp_ids_subset(d->mems->ids, topo_ids(r->env.topo, RP_NODES_MEMORY)))
		return err_set(err, -EINVAL,
			       "I4: container %s has memory nodes %s, not all of which have memory",
			       ctr->full_name, d->mems->text);
	if (d->exclusive && (!d->cpus || !rp_ids_subset(d->exclusive->ids, d->cpus->ids)))
		return err_set(err, -EINVAL,
			       "I2: container %s has exclusive CPUs %s that are not its CPUs",
			       ctr->full_name, d->exclusive->text);
	return 0;
}

/* Compares all pairs of containers, independently of the counts in the cache. */
static int check_exclusive(struct rig *r, const struct ctr *ctr, struct err *err)
{
	const struct ctr *other = NULL;
	if (!ctr->cur.exclusive)
		return 0;
	DL_FOREACH (cache_ctrs(r->env.cache), other) {
		if (other == ctr || (other->cur.group && other->cur.group == ctr->cur.group) ||
		    !ctr_live(other->cur.state) || !other->cur.cpus ||
		    !rp_ids_overlap(other->cur.cpus->ids, ctr->cur.exclusive->ids))
			continue;
		return err_set(
			err, -EINVAL,
			"I2: container %s has CPUs %s, of which %s belong to container %s alone",
			other->full_name, other->cur.cpus->text, ctr->cur.exclusive->text,
			ctr->full_name);
	}
	return 0;
}

int rig_check(struct rig *r, struct err *err)
{
	const struct ctr *ctr = NULL;
	DL_FOREACH (cache_ctrs(r->env.cache), ctr) {
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
	DL_FOREACH (cache_ctrs(r->env.cache), ctr) {
		if (ctr_live(ctr->cur.state))
			rig_do_describe(ctr, out);
	}
}

static void log_touched(struct rig *r)
{
	if (!r->log)
		return;
	for (const struct stage *s = txn_touched(r->txn); s; s = s->link)
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
	(void)arg;
	return 0;
}

static void all_done(void *arg, int result)
{
	(void)result;
	loop_stop(arg);
}

static bool is_busy(const struct rig *r)
{
	return worker_pending(r->env.worker) || r->env.posts;
}

/* Submits a job after the others, whose end stops the loop. Repeats, as done() functions may have
 * submitted more. */
int rig_finish_jobs(struct rig *r, struct err *err)
{
	uint64_t end_ms = clock_ms() + JOBS_MS;
	if (!is_busy(r))
		return 0;
	struct loop_timer *limit = loop_timer_new(r->env.loop, stop_loop, r->env.loop);
	if (!limit || loop_timer_arm(limit, JOBS_MS))
		return err_errno(err, -ENOMEM, "timer");
	while (is_busy(r) && clock_ms() < end_ms &&
	       !worker_submit(r->env.worker, rig_nothing, all_done, r->env.loop))
		(void)loop_run(r->env.loop);
	loop_timer_free(limit);
	if (worker_pending(r->env.worker))
		return err_set(err, -ETIME, "jobs were not done within %u ms", JOBS_MS);
	if (is_busy(r))
		return err_set(err, -ETIME,
			       "what is posted has come to no end within %u ms: each event posts "
			       "another one",
			       JOBS_MS);
	return r->posted.code ? err_set(err, r->posted.code, "%s", r->posted.text) : 0;
}

/* ---- decisions ------------------------------------------------------------------------------- */

typedef int (*decide_fn)(struct rig *r, struct ctr *ctr, struct err *err);

static int rig_begin(struct rig *r, struct err *err)
{
	r->txn = txn_begin(r->env.cache);
	return r->txn ? 0 : err_errno(err, -ENOMEM, "transaction");
}

static void rig_end(struct rig *r)
{
	txn_end(r->txn);
	r->txn = NULL;
}

static int rig_accept(struct rig *r, struct err *err)
{
	const struct invariants inv = {rig_online(r), topo_ids(r->env.topo, RP_NODES_MEMORY)};
	int bad = txn_check(r->txn, &inv, err);
	if (bad)
		return err_prefix(err, "the host refuses what the policy wants: ");
	txn_commit(r->txn);
	log_touched(r);
	return 0;
}

static int call_sync(struct rig *r, struct ctr *ctr, struct err *err)
{
	(void)ctr;
	return instance_sync(r->instance, err);
}

static int rig_resync(struct rig *r, struct err *err)
{
	int bad = rig_begin(r, err);
	if (bad)
		return bad;
	bad = instance_sync(r->instance, err);
	if (bad)
		(void)err_prefix(err, "sync() after a dropped transaction failed: ");
	else
		bad = rig_accept(r, err);
	rig_end(r);
	return bad;
}

static int rig_undo(struct rig *r, struct err *err)
{
	rig_end(r);
	if (instance_role(r->instance) != RP_KIND_POLICY ||
	    instance_rolled_back(r->instance) != RP_RESYNC)
		return 0;
	int bad = rig_resync(r, err);
	return bad && r->faulty ? rig_resync(r, err) : bad;
}

/* Makes one request. Returns 0, RIG_REFUSED, or an error that modules may not cause. */
int rig_decide(struct rig *r, decide_fn fn, struct ctr *ctr, const char *what, struct err *err)
{
	struct err again = ERR_INIT;
	int bad = rig_begin(r, err);
	if (bad)
		return bad;
	bad = fn(r, ctr, err);
	if (bad) {
		bad = rig_known_code(bad, what, err);
		if (bad == RIG_REFUSED && rig_undo(r, &again)) {
			*err = again;
			return again.code;
		}
		if (r->txn)
			rig_end(r);
		r->n_refused += bad == RIG_REFUSED;
		rig_log(r, "  refused: %s", err->text);
		return bad == RIG_REFUSED ? bad : err_prefix(err, "%s: ", what);
	}
	bad = rig_accept(r, err);
	rig_end(r);
	if (!bad && !r->late)
		bad = rig_finish_jobs(r, err);
	if (!bad)
		bad = rig_check(r, err);
	return bad ? err_prefix(err, "after %s: ", what) : 0;
}

/* Makes the request as a trial and drops it. */
static int rig_rehearse(struct rig *r, decide_fn fn, struct ctr *ctr, struct err *err)
{
	struct err ignored = ERR_INIT;
	int bad = rig_begin(r, err);
	if (bad)
		return bad;
	r->env.trial = true;
	(void)fn(r, ctr, &ignored);
	r->env.trial = false;
	return rig_undo(r, err);
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
	int64_t total = (int64_t)topo_memory(r->env.topo) / 1000;
	int64_t adj = 1000 - (total ? w->mem_request / total : 0);
	return adj < 3 ? 3 : adj > 999 ? 999 : adj;
}

static int put_pod(struct rig *r, const struct wish *w, struct pod **ret, struct err *err)
{
	char parent[160];
	const struct res_desc sums = resources_of(w);
	(void)snprintf(parent, sizeof parent, "%s%s", qos_parents[w->qos], w->pod);
	const struct pod_desc pd = {.id = w->pod,
				    .name = w->pod,
				    .uid = w->pod,
				    .ns = w->ns,
				    .runtime_handler = "",
				    .cgroup_parent = parent,
				    .annotations = w->annotations,
				    .n_annotations = w->n_annotations,
				    .sums = &sums};
	return cache_put_pod(r->env.cache, &pd, ret, err);
}

int rig_put(struct rig *r, const struct wish *w, struct ctr **ret, struct err *err)
{
	char path[256];
	struct pod *pod;
	(void)snprintf(path, sizeof path, "%s%s/%s", qos_parents[w->qos], w->pod, w->id);
	const struct ctr_desc cd = {.id = w->id,
				    .pod_id = w->pod,
				    .name = w->id,
				    .cgroups_path = path,
				    .state = RP_STATE_CREATING,
				    .created_ns = w->created_ns,
				    .oom_score_adj = oom_score_adj_of(r, w),
				    .res = resources_of(w)};
	int bad = put_pod(r, w, &pod, err);
	return bad ? bad : cache_put_ctr(r->env.cache, &cd, ret, err);
}

void rig_drop(struct rig *r, struct ctr *ctr)
{
	struct pod *pod = ctr->pod;
	cache_del_ctr(r->env.cache, ctr);
	if (!pod->ctrs)
		cache_del_pod(r->env.cache, pod);
}

static int call_allocate(struct rig *r, struct ctr *ctr, struct err *err)
{
	struct decision *d = txn_stage(r->txn, ctr);
	if (!d)
		return -ENOMEM;
	txn_set_created(r->txn, ctr);
	if (r->at_creation)
		r->at_creation(r, false);
	uint64_t start = clock_ns();
	int bad = instance_allocate(r->instance, ctr, err);
	r->last_allocate_ns = clock_ns() - start;
	if (r->at_creation)
		r->at_creation(r, true);
	if (!bad)
		d->state = RP_STATE_CREATED;
	return bad;
}

static int run_unmanaged(struct rig *r, struct ctr *ctr, struct err *err)
{
	struct err ignored = *err;
	int bad = r->dry ? rig_rehearse(r, rig_call_unmanaged, ctr, &ignored) : 0;
	bad = bad ? bad : rig_decide(r, rig_call_unmanaged, ctr, "unmanaged", err);
	r->n_unmanaged += !bad;
	return bad;
}

static int call_admit(struct rig *r, struct ctr *ctr, struct err *err)
{
	(void)ctr;
	return instance_admit_pod(r->instance, r->pod, err);
}

static int call_pod_removed(struct rig *r, struct ctr *ctr, struct err *err)
{
	(void)ctr;
	return instance_pod_removed(r->instance, r->pod, err);
}

/* Removes a pod without containers. */
static int drop_pod(struct rig *r, struct pod *pod, struct err *err)
{
	r->pod = pod;
	int bad = rig_decide(r, call_pod_removed, NULL, "pod_removed", err);
	if (bad == RIG_REFUSED && r->faulty)
		bad = 0;
	cache_del_pod(r->env.cache, pod);
	return bad == RIG_REFUSED ? err_prefix(err, "pod_removed() must not fail: ") : bad;
}

/* Removes a container, and its pod after the last one. */
static int rig_do_drop(struct rig *r, struct ctr *ctr, struct err *err)
{
	struct pod *pod = ctr->pod;
	cache_del_ctr(r->env.cache, ctr);
	return pod->ctrs ? 0 : drop_pod(r, pod, err);
}

/* Admits the container's pod unless it is admitted already. */
static int rig_admit(struct rig *r, const struct wish *w, struct err *err)
{
	struct err why = ERR_INIT;
	int bad = put_pod(r, w, &r->pod, err);
	if (bad || r->pod->ctrs)
		return bad;
	struct pod *pod = r->pod;
	if (r->dry)
		bad = rig_rehearse(r, call_admit, NULL, err);
	bad = bad ? bad : rig_decide(r, call_admit, NULL, "admit_pod", err);
	if (!bad || (bad == RIG_REFUSED && r->unmanaged))
		return 0;
	int worse = drop_pod(r, pod, &why);
	if (!worse)
		return bad;
	*err = why;
	return worse;
}

int rig_add(struct rig *r, const struct wish *w, struct ctr **ret, struct err *err)
{
	struct ctr *ctr;
	struct err why = ERR_INIT;
	int bad = rig_admit(r, w, err);
	if (!bad)
		bad = rig_put(r, w, &ctr, err);
	if (bad)
		return bad;
	ctr->coming = true;
	if (r->dry)
		bad = rig_rehearse(r, call_allocate, ctr, err);
	bad = bad ? bad : rig_decide(r, call_allocate, ctr, "allocate", err);
	if (bad == RIG_REFUSED && r->unmanaged)
		bad = run_unmanaged(r, ctr, err);
	ctr->coming = false;
	if (bad) {
		int worse = rig_do_drop(r, ctr, &why);
		if (worse)
			*err = why;
		return worse ? worse : bad;
	}
	ctr->cur.state = RP_STATE_RUNNING;
	*ret = ctr;
	return 0;
}

static int call_resize(struct rig *r, struct ctr *ctr, struct err *err)
{
	struct decision *d = txn_stage(r->txn, ctr);
	if (!d)
		return -ENOMEM;
	d->needs = ctr->wanted;
	return instance_update(r->instance, ctr, err);
}

int rig_resize(struct rig *r, struct ctr *ctr, const struct wish *w, struct err *err)
{
	struct needs had = ctr->wanted;
	bool estimated;
	struct values requested = VALUES_NONE;
	struct res_desc res = resources_of(w);
	(void)values_overlay(r->env.cache, &requested, &res, false);
	derive_needs(ctr->pod->qos, &requested, ctr->oom_score_adj, topo_memory(r->env.topo),
		     &ctr->wanted, &estimated);
	values_fini(r->env.cache, &requested);
	int bad = r->dry ? rig_rehearse(r, call_resize, ctr, err) : 0;
	bad = bad ? bad : rig_decide(r, call_resize, ctr, "update", err);
	if (bad)
		ctr->wanted = had;
	return bad;
}

static int stage_exited(struct rig *r, struct ctr *ctr)
{
	struct decision *d = txn_stage(r->txn, ctr);
	if (!d)
		return -ENOMEM;
	d->state = RP_STATE_EXITED;
	txn_put_set(r->env.cache, &d->exclusive, NULL);
	txn_put_blob(&d->private_data, NULL);
	txn_put_blob(&d->degraded, NULL);
	return 0;
}

static int call_release(struct rig *r, struct ctr *ctr, struct err *err)
{
	int bad = instance_release(r->instance, ctr, err);
	return bad ? bad : stage_exited(r, ctr);
}

/* Removes a container as the daemon does after a failed release(). */
static int call_force(struct rig *r, struct ctr *ctr, struct err *err)
{
	int bad = stage_exited(r, ctr);
	return bad ? bad : instance_sync(r->instance, err);
}

int rig_release(struct rig *r, struct ctr *ctr, struct err *err)
{
	int bad = rig_decide(r, call_release, ctr, "release", err);
	if (bad == RIG_REFUSED && r->faulty)
		bad = rig_decide(r, call_force, ctr, "sync without the container", err);
	return bad == RIG_REFUSED ? err_prefix(err, "release() must not fail: ") : bad;
}

int rig_remove(struct rig *r, struct ctr *ctr, struct err *err)
{
	int bad = rig_release(r, ctr, err);
	return bad ? bad : rig_do_drop(r, ctr, err);
}

/* ---- events ---------------------------------------------------------------------------------- */

int rig_sync(struct rig *r, struct err *err)
{
	int bad = rig_decide(r, call_sync, NULL, "sync", err);
	if (bad == RIG_REFUSED && r->faulty)
		bad = rig_decide(r, call_sync, NULL, "sync once more", err);
	return bad == RIG_REFUSED ? err_prefix(err, "sync() must not fail: ") : bad;
}

static int call_event(struct rig *r, struct ctr *ctr, struct err *err)
{
	(void)ctr;
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
	struct rig *r = arg;
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

int rig_set_online(struct rig *r, struct rp_ids cpus, struct err *err)
{
	struct topo *now, *old = r->env.topo;
	int bad = machine_set_online(r->check->machine, cpus, err);
	bad = bad ? bad : topo_reread(old, &now, err);
	if (bad)
		return bad;
	r->env.topo = now;
	/* A policy without an event function cannot follow the change. */
	r->lost_cpus = !instance_handles_events(r->instance);
	if (!r->lost_cpus) {
		r->lost_cpus = true;
		bad = rig_event(r, RP_EVENT_TOPOLOGY, NULL, err);
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
	*r = (struct rig){.check = c, .shim = shim};
	int bad = fs_root_open(&r->root, c->machine->root, err);
	if (bad)
		return bad;
	r->open = true;
	if (!shim) {
		r->shim = &r->own_shim;
		bad = shim_init(r->shim, c);
	}
	r->env.root = &r->root;
	r->env.foreign_call_aborts = true;
	r->env.crumb = c->crumb;
	r->env.event = on_event;
	r->env.arg = r;
	r->env.loop = loop_new();
	r->env.worker = r->env.loop ? worker_new(r->env.loop, "modcheck") : NULL;
	if (!bad)
		bad = r->env.worker ? topo_read(&r->root, &r->env.topo, err) : -ENOMEM;
	if (!bad) {
		r->env.cache = cache_new(topo_memory(r->env.topo));
		bad = r->env.cache ? 0 : -ENOMEM;
	}
	if (bad)
		rig_close(r);
	return bad;
}

void rig_close(struct rig *r)
{
	if (!r->open)
		return;
	r->open = false;
	if (r->txn)
		rig_end(r);
	r->instance = instance_free(r->instance);
	r->env.worker = r->env.worker ? worker_free_within(r->env.worker, JOBS_MS) : NULL;
	if (r->env.worker) { /* the worker's thread continues until the process ends */
		r->check->hung = true;
		return;
	}
	r->conf = conf_free(r->conf);
	r->env.cache = r->env.cache ? cache_free(r->env.cache) : NULL;
	r->env.topo = topo_free(r->env.topo);
	r->env.loop = r->env.loop ? loop_free(r->env.loop) : NULL;
	fs_root_close(&r->root);
	if (r->shim == &r->own_shim)
		shim_fini(r->shim);
}

int rig_wipe(struct rig *r, struct err *err)
{
	r->env.cache = cache_free(r->env.cache);
	r->env.cache = cache_new(topo_memory(r->env.topo));
	return r->env.cache ? 0 : err_errno(err, -ENOMEM, "cache");
}

int rig_create(struct rig *r, struct err *err)
{
	int bad = instance_new(&r->env, &r->shim->module, r->check->role, &r->instance, err);
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
		bad = err_prefix(err, "load() of its own state failed: ");
	free(copy);
	if (!bad) /* after load(), as the daemon does */
		bad = no_refusal(rig_commit(r, r->conf ? r->conf : r->check->conf, err),
				 "prepare()", err);
	return bad ? bad : rig_sync(r, err);
}
