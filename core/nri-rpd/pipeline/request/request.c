/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handling of the runtime's requests about pods and containers, one function a request: admission
 * of pods, creation, resize, start, stop and removal of containers, and adoption of containers that
 * the daemon does not know.
 *
 * Synchronize is in sync.c, the decision itself in decide.c. This file parses and sends nothing:
 * the front end does.
 */
#include <assert.h>
#include <string.h>

#include <utlist.h>

#include "core/nri-rpd/cache/feed.h"
#include "core/nri-rpd/cache/annotation_rules.h"
#include "core/nri-rpd/pipeline/internal.h"
#include "core/nri-rpd/pipeline/request/adjust.h"
#include "core/nri-rpd/pipeline/request/claims.h"
#include "core/nri-rpd/pipeline/request/empty_pods.h"
#include "core/nri-rpd/pipeline/wait/plugins.h"
#include "core/lib/util/buf.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/log.h"
#include "core/lib/util/str.h"
#include "core/lib/util/clock.h"
#include "core/nri-rpd/cache/txn.h"
#include "core/nri-rpd/host/service/settings.h"
#include "core/nri-rpd/host/service/work.h"
#include "core/nri-rpd/pipeline/controllers/life.h"
#include "core/nri-rpd/pipeline/request/confine.h"
#include "core/nri-rpd/pipeline/request/request.h"
#include "core/nri-rpd/pipeline/request/updates.h"
#include "core/nri-rpd/pipeline/state/export.h"
#include "core/nri-rpd/pipeline/wait/plugin_grants.h"
#include "core/nri-rpd/pipeline/wait/plugin_question.h"
#include "core/nri-rpd/pipeline/request/decide.h"

#define LOG_SOURCE "request"
/* default timeout of requests for a runtime that does not report its timeout */
#define ALLOWED_MS 2000u

const uint32_t histogram_le_us[HISTOGRAM_BUCKETS - 1] = {10,   25,   50,    100,    250,    500,
							 1000, 5000, 25000, 100000, 1000000};

static const char *const request_names[N_REQUESTS] = {
	[REQ_CONFIGURE] = "Configure",
	[REQ_SYNCHRONIZE] = "Synchronize",
	[REQ_RUN_POD] = "RunPodSandbox",
	[REQ_UPDATE_POD] = "UpdatePodSandbox",
	[REQ_STOP_POD] = "StopPodSandbox",
	[REQ_REMOVE_POD] = "RemovePodSandbox",
	[REQ_CREATE] = "CreateContainer",
	[REQ_POST_CREATE] = "PostCreateContainer",
	[REQ_START] = "StartContainer",
	[REQ_POST_START] = "PostStartContainer",
	[REQ_UPDATE] = "UpdateContainer",
	[REQ_POST_UPDATE] = "PostUpdateContainer",
	[REQ_STOP] = "StopContainer",
	[REQ_REMOVE] = "RemoveContainer",
	[REQ_OTHER] = "other",
};

const char *request_name(enum request r)
{
	return r < N_REQUESTS ? request_names[r] : "?";
}

/* ---- begin and end of a request -------------------------------------------------------------- */

void request_begin(struct pipeline *p, enum request r)
{
	assert(r < N_REQUESTS && !p->txn);
	p->requests.kind = r;
	p->requests.began_ns = clock_ns();
	watchdog_begin(p->watchdog);
}

static void request_count(struct pipeline *p, bool failed)
{
	struct request_stats *s = &p->stats.requests[p->requests.kind];
	uint64_t took = clock_ns() - p->requests.began_ns;
	unsigned b = 0;
	while (b < HISTOGRAM_BUCKETS - 1 && took > (uint64_t)histogram_le_us[b] * 1000)
		b++;
	s->n++;
	s->failed += failed;
	s->total_ns += took;
	s->bucket[b]++;
	if (took > s->max_ns)
		s->max_ns = took;
	if (took > request_allowed_ms(p) * 500000)
		log_warning("%s took %llu ms, more than half of what the runtime allows",
			    request_name(p->requests.kind), (unsigned long long)(took / 1000000));
}

/* Describes a created container in the log and in an event. */
static void describe_created(struct pipeline *p, const struct ctr *ctr)
{
	const struct decision *d = &ctr->cur;
	const struct iset *own = ctr_exclusive(p->env.cache, ctr);
	_cleanup_(buf_fini) struct buf text = BUF_INIT;
	(void)buf_add_str(&text, ctr->full_name);
	(void)buf_add_str(&text, ": CPUs ");
	(void)buf_add_str(&text, d->cpus ? d->cpus->text : "not pinned");
	if (own)
		(void)buf_add_str(&text, " (exclusive");
	if (own && own != d->cpus) {
		(void)buf_add_str(&text, " ");
		(void)buf_add_str(&text, own->text);
	}
	(void)buf_add_str(&text, own ? "), memory nodes " : ", memory nodes ");
	(void)buf_add_str(&text, d->mems ? d->mems->text : "not pinned");
	if (text.failed)
		return;
	log_info("%s", buf_text(&text));
	pipeline_event_text(p, EV_CREATED, ctr, buf_text(&text));
}

/* Logs a pod or container that the cache refuses, at a limited rate. Policies log their own
 * refusals. */
static int not_taken(const struct pipeline *p, int r, const struct err *err)
{
	static struct log_limit limit = LOG_LIMIT(10, 60000);
	if (log_allowed(&limit, LOG_SOURCE))
		log_error("refused: %s: %s", request_name(p->requests.kind), err->text);
	return r;
}

static void ack_reply(struct pipeline *p, const struct reply *reply)
{
	if (reply->created || reply->n_updates)
		persist_later(p);
	updates_told(p);
	if (reply->created) {
		ctr_ack(p->env.cache, reply->created, reply->created_fields);
		describe_created(p, reply->created);
	}
	decide_tell_others(p, reply->created);
}

void reply_sent(struct pipeline *p, struct reply *reply, bool failed)
{
	if (reply && !failed)
		ack_reply(p, reply);
	decide_close(p, reply ? reply->created : NULL);
	/* A runtime list that could not be placed keeps the settings of the previous process. */
	if (p->requests.kind == REQ_SYNCHRONIZE && !failed) {
		controllers_sync(p);
		if (!p->requests.sync_failed)
			settings_release_former(&p->env);
		verify_all(p);
	}
	assert(!p->txn);
	watchdog_end(p->watchdog);
	request_count(p, failed);
	const struct pod *ended = cache_pod_of(p->env.cache, p->requests.ended);
	p->requests.ended = 0;
	if (p->requests.kind == REQ_SYNCHRONIZE)
		admit_settle(p, NULL);
	else if (ended)
		admit_settle(p, ended->uid);
}

uint64_t request_allowed_ms(const struct pipeline *p)
{
	return p->runtime.request_timeout_ms ? p->runtime.request_timeout_ms : ALLOWED_MS;
}

/* ---- pods ------------------------------------------------------------------------------------ */

static void remove_pod(struct pipeline *p, struct pod *pod)
{
	store_del_pod(p->store, pod);
	cache_del_pod(p->env.cache, pod);
	persist_later(p);
}

/* Asks resource plugins to allocate for a pod that the policy has admitted. */
static int plugins_admit(struct pipeline *p, struct pod *pod, bool known, struct err *err)
{
	int r = inquiry_admitted(p, pod, known, err);
	return r < 0 ? admit_refused(p, pod, err) : r;
}

int request_run_pod(struct pipeline *p, const struct pod_desc *desc, struct err *err)
{
	struct pod *pod;
	bool known = cache_pod(p->env.cache, desc->id) != NULL;
	int r = cache_put_pod(p->env.cache, desc, &pod, err);
	if (r)
		return not_taken(p, r, err);
	store_put_pod(p->store, pod);
	persist_later(p);
	if (!known) /* the new sandbox may get what the earlier ones had */
		empty_pods_remove_earlier(p, pod);
	r = admit_pod(p, pod, err);
	if (!r)
		r = plugins_admit(p, pod, known, err);
	if (r < 0 && !known)
		remove_pod(p, pod);
	if (!r)
		devices_pod_came(p, pod);
	return r;
}

int request_pod_granted(struct pipeline *p, const struct pod_desc *desc, struct err *err)
{
	struct pod *pod = cache_pod(p->env.cache, desc->id);
	bool known;
	if (!pod)
		return err_set(err, -ENOENT, "pod %s/%s was removed", desc->ns, desc->name);
	int r = inquiry_granted(p, pod, &known, err);
	if (!r) {
		devices_pod_came(p, pod);
		return 0;
	}
	r = admit_refused(p, pod, err);
	if (!known)
		remove_pod(p, pod);
	return r;
}

void request_pause(struct pipeline *p)
{
	decide_close(p, NULL);
	assert(!p->txn);
	watchdog_end(p->watchdog);
}

/* Releases a container that ends. Updates of other containers go into the reply; if reply is NULL,
 * into the queue. */
static void request_release(struct pipeline *p, struct ctr *ctr, struct reply *reply)
{
	decide_release(p, ctr);
	if (reply)
		decide_reply(p, reply, ctr);
	else
		decide_settle(p);
	controllers_post_stop(p, ctr);
	p->requests.ended = ctr->pod->handle;
}

/* Releases the remaining containers of a pod. The updates of other containers go into the queue. */
static void release_pod(struct pipeline *p, struct pod *pod)
{
	for (struct ctr *ctr = pod->ctrs; ctr; ctr = ctr->pod_next) {
		if (!ctr_live(ctr->cur.state))
			continue;
		request_release(p, ctr, NULL);
		pipeline_event_of(p, EV_RELEASED, ctr, NULL, "%s: its pod ended", ctr->full_name);
	}
}

void request_stop_pod(struct pipeline *p, const struct pod_desc *desc)
{
	struct pod *pod = cache_pod(p->env.cache, desc->id);
	if (!pod)
		return;
	release_pod(p, pod);
	devices_pod_ended(p, pod);
	pod->stopped = true;
	p->requests.ended = pod->handle;
}

void request_forget_ctr(struct pipeline *p, struct ctr *ctr)
{
	export_removed(p, ctr);
	controllers_forget(p, ctr->handle);
	drift_forget(p, ctr);
	store_del_ctr(p->store, ctr);
	cache_del_ctr(p->env.cache, ctr);
}

void request_forget_pod(struct pipeline *p, struct pod *pod)
{
	devices_pod_ended(p, pod);
	while (pod->ctrs)
		request_forget_ctr(p, pod->ctrs);
	admit_end(p, pod);
	plugins_pod_gone(p, pod);
	remove_pod(p, pod);
}

void request_remove_pod(struct pipeline *p, const struct pod_desc *desc)
{
	struct pod *pod = cache_pod(p->env.cache, desc->id);
	if (!pod)
		return;
	release_pod(p, pod);
	request_forget_pod(p, pod);
}

/* ---- creation -------------------------------------------------------------------------------- */

int request_adopt_pod(struct pipeline *p, const struct pod_desc *desc, struct pod **ret,
		      struct err *err)
{
	int r = cache_put_pod(p->env.cache, desc, ret, err);
	if (r)
		return r;
	store_put_pod(p->store, *ret);
	persist_later(p);
	p->stats.adopted++;
	return 0;
}

/* Returns the container of a request. Adopts pod and container if they are unknown. */
static int request_adopt(struct pipeline *p, const struct pod_desc *pod_desc,
			 const struct ctr_desc *desc, struct ctr **ret, struct err *err)
{
	struct pod *pod = cache_pod(p->env.cache, pod_desc->id);
	if (!pod) {
		int r = request_adopt_pod(p, pod_desc, &pod, err);
		if (r)
			return r;
	}
	return cache_put_ctr(p->env.cache, desc, ret, err);
}

struct creation {
	struct ctr *ctr;
	/* previous container of the same name, whose end was not reported; NULL: none */
	struct ctr *replaced;
	bool required; /* a controller or resource plugin that has to agree has refused */
	bool adopts; /* the container runs already */
};

/* Notes in the container's trail that an optional controller failed. The container starts without
 * it. */
static void explain_refusing(struct pipeline *p, struct ctr *ctr, const char *controller,
			     const char *why)
{
	_cleanup_(buf_fini) struct buf line = BUF_INIT;
	(void)buf_printf(&line, "controller %s does not apply its settings: %s", controller, why);
	host_note(p->env.cache, ctr, buf_text(&line));
}

static int ask_controllers(struct pipeline *p, struct creation *c, struct err *err)
{
	for (unsigned i = 0; i < p->controllers.n; i++) {
		struct controller *ctl = p->controllers.list[i];
		struct err why = ERR_INIT;
		if (!controller_runs(ctl) || !instance_pre_create(ctl->instance, c->ctr, &why))
			continue;
		c->required = ctl->mode != CONF_RELAXED;
		if (c->required)
			return err_set(err, why.code, "controller %s: %s", ctl->name, why.text);
		log_warning("%s: controller %s: %s", c->ctr->full_name, ctl->name, why.text);
		explain_refusing(p, c->ctr, ctl->name, why.text);
	}
	return 0;
}

#define WITHHELD_TOLD 8u

/* Logs annotations of the container that are not allowed in its namespace, and notes them in its
 * trail. */
static void tell_withheld(struct pipeline *p, struct ctr *ctr)
{
	const char *key = NULL;
	for (unsigned i = 0; i < WITHHELD_TOLD && (key = withheld_next(ctr, key)); i++) {
		_cleanup_(buf_fini) struct buf line = BUF_INIT;
		(void)buf_printf(&line,
				 "annotation %.317s has no effect in namespace %s: see "
				 "annotations.allow in rp.conf(5)",
				 key, ctr->pod->ns);
		host_note(p->env.cache, ctr, buf_text(&line));
		log_notice("%s: %s", ctr->full_name, buf_text(&line));
	}
}

#define HOLDERS_NOTED 8u

/* Notes in the trail of a container that the policy refuses which containers have exclusive
 * CPUs. Stops when all of these CPUs are named, so that most containers are not visited. */
static void request_note_holders(struct pipeline *p, struct ctr *refused)
{
	_cleanup_(buf_fini) struct buf line = BUF_INIT;
	char cpus[128]; /* a longer list is cut */
	unsigned n = 0;
	uint32_t owned = cache_owned(p->env.cache);
	struct rp_idset named;
	struct ctr *ctr;
	rp_idset_clear(&named);
	DL_FOREACH (cache_ctrs(p->env.cache), ctr) {
		if (n > HOLDERS_NOTED || rp_ids_count(rp_ids_of(&named)) >= owned)
			break;
		if (ctr == refused || !ctr_live(ctr->cur.state) || !ctr->cur.exclusive ||
		    !ctr->cur.exclusive->count || n++ >= HOLDERS_NOTED)
			continue;
		rp_idset_or(&named, rp_ids_of(&named), ctr->cur.exclusive->ids);
		(void)rp_ids_format(ctr->cur.exclusive->ids, cpus, sizeof cpus);
		(void)buf_printf(&line, "%s%s %s", n > 1 ? ", " : "exclusive CPUs belong to ",
				 ctr->full_name, cpus);
	}
	if (n > HOLDERS_NOTED)
		(void)buf_printf(&line, " and more containers");
	if (n)
		host_note(p->env.cache, refused, buf_text(&line));
}

/* Stages the allocations of resource plugins. A failure refuses the container. */
static int request_grant(struct pipeline *p, struct creation *c, struct err *err)
{
	int r = granted_stage(p, c->ctr, !c->adopts, err);
	c->required = c->required || r;
	return r;
}

static int request_place(struct pipeline *p, void *arg, struct err *err)
{
	struct creation *c = arg;
	int r = c->replaced ? decide_stage_release(p, c->replaced, err) : 0;
	struct decision *d = r ? NULL : txn_stage(p->txn, c->ctr);
	if (!d)
		return r ? r : err_errno(err, -ENOMEM, "container %s", c->ctr->full_name);
	txn_set_created(p->txn, c->ctr);
	tell_withheld(p, c->ctr);
	adjust_stage(p, c->ctr, d);
	devices_explain(p, c->ctr);
	if (!c->adopts)
		r = inquiry_allows(p, c->ctr, err);
	if (!r && (r = claims_stage(p, c->ctr, err)) > 0)
		r = 0;
	c->required = r;
	if (!r && p->policy && !d->claimed)
		r = instance_allocate(p->policy, c->ctr, err);
	if (r && !c->required)
		request_note_holders(p, c->ctr);
	if (!r)
		r = request_grant(p, c, err);
	if (!r)
		r = ask_controllers(p, c, err);
	d->state = RP_STATE_CREATED;
	return r;
}

static bool runs_unmanaged(const struct pipeline *p)
{
	return pipeline_conf(p) && conf_core(pipeline_conf(p))->on_policy_error == CONF_UNMANAGED;
}

/* Stages a container without the policy, on all CPUs that no container owns. On entry err holds the
 * reason why the policy has not placed the container. */
static int run_unmanaged(struct pipeline *p, void *arg, struct err *err)
{
	struct creation *c = arg;
	struct decision *d = txn_stage(p->txn, c->ctr);
	struct blob *reason = blob_str(err->text);
	struct iset *cpus = unowned_cpus(p);
	if (!d || !reason || !cpus) {
		blob_unref(reason);
		intern_unref(cache_sets(p->env.cache), cpus);
		return err_errno(err, -ENOMEM, "container %s", c->ctr->full_name);
	}
	if (!c->adopts)
		txn_set_created(p->txn, c->ctr);
	adjust_stage(p, c->ctr, d);
	if (cpus->count && !(c->ctr->flags & RP_CTR_PRESERVE_CPU))
		txn_put_set(p->env.cache, &d->cpus, intern_ref(cpus));
	intern_unref(cache_sets(p->env.cache), cpus);
	txn_put_blob(&d->degraded, reason);
	int r = p->policy ? instance_unmanaged(p->policy, c->ctr, err) : 0;
	if (!r)
		r = request_grant(p, c, err);
	if (!r)
		r = ask_controllers(p, c, err);
	d->state = RP_STATE_CREATED;
	return r;
}

/* Adds the container's name to an error that does not mention it. The text becomes an event of the
 * pod. */
static void name_container(struct err *err, const struct ctr *ctr)
{
	if (!strstr(err->text, ctr->full_name))
		(void)err_prefix(err, "container %s: ", ctr->full_name);
}

static void request_refused(struct pipeline *p, struct ctr *ctr, struct err *err)
{
	name_container(err, ctr);
	log_notice("refused: %s", err->text);
	pipeline_event_of(p, EV_REFUSED, ctr, ctr->trail.text, "%s", err->text);
	conditions_refused(p, ctr->full_name, err->text);
	request_forget_ctr(p, ctr);
}

/* Returns the live container of the same name with another id, or NULL. The runtime has not
 * reported the end of such a container. */
static struct ctr *replaced_by(struct pipeline *p, const struct pod_desc *pod,
			       const struct ctr_desc *desc)
{
	struct ctr *old = cache_ctr_named(p->env.cache, pod->ns, pod->name, desc->name);
	return old && ctr_live(old->cur.state) && !str_eq(old->id, desc->id) ? old : NULL;
}

/* Retries a refused creation without the policy (onPolicyError unmanaged). On failure err keeps the
 * policy's error, unless a required controller or plugin refused. */
static int create_unmanaged(struct pipeline *p, struct creation *c, struct err *err)
{
	struct err why = *err;
	if (c->replaced) /* the previous container has ended, even if its successor fails */
		request_release(p, c->replaced, NULL);
	c->replaced = NULL;
	int r = decide(p, run_unmanaged, c, &why);
	if (r) {
		if (c->required)
			*err = why;
		return r;
	}
	p->stats.unmanaged++;
	log_warning("%s: runs unmanaged: %s", c->ctr->full_name, err->text);
	pipeline_event_of(p, EV_DEGRADED, c->ctr, NULL, "%s runs unmanaged: %s", c->ctr->full_name,
			  err->text);
	return 0;
}

int request_create(struct pipeline *p, const struct pod_desc *pod, const struct ctr_desc *desc,
		   struct reply *ret, struct err *err)
{
	struct creation c = {.replaced = replaced_by(p, pod, desc)};
	reply_clear(ret);
	int r = request_adopt(p, pod, desc, &c.ctr, err);
	if (r)
		return not_taken(p, r, err);
	c.ctr->desc = desc;
	c.ctr->coming = true;
	r = decide(p, request_place, &c, err);
	if (!r)
		conditions_created(p);
	if (r && !c.required && runs_unmanaged(p))
		r = create_unmanaged(p, &c, err);
	c.ctr->desc = NULL;
	c.ctr->coming = false;
	if (r) {
		request_refused(p, c.ctr, err);
		if (c.replaced)
			cache_claim_name(p->env.cache, c.replaced);
		return r;
	}
	ret->created = c.ctr;
	ret->created_fields = ctr_diff(c.ctr);
	ret->taken = controllers_take(p);
	ret->extras = txn_extras(p->txn);
	decide_reply(p, ret, c.ctr);
	export_created(p, c.ctr, ret);
	if (c.replaced)
		controllers_post_stop(p, c.replaced);
	return 0;
}

void reply_dropped(struct pipeline *p, struct reply *reply)
{
	struct ctr *created = reply->created;
	updates_untold(p);
	reply_sent(p, reply, true);
	if (!created)
		return;
	/* Either the runtime refused the container, or it created the container without the reply
	 * and lists it in the next Synchronize. */
	watchdog_begin(p->watchdog);
	request_release(p, created, NULL);
	watchdog_end(p->watchdog);
	request_forget_ctr(p, created);
	persist_later(p);
}

/* ---- start, resize, stop and removal --------------------------------------------------------- */

/* Updates the facts that later requests carry: state, pid, times, and a cgroup path if none is
 * known yet. */
static void request_refresh(struct pipeline *p, struct ctr *ctr, const struct ctr_desc *desc,
			    uint32_t state)
{
	if (desc->pid)
		ctr->pid = desc->pid;
	if (!*ctr->cgroups_path && *desc->cgroups_path)
		cache_set_cgroup(ctr, desc->cgroups_path);
	cache_set_created(ctr, desc->created_ns);
	if (ctr_live(ctr->cur.state) && ctr->cur.state != state) {
		ctr->cur.state = state;
		ctr->store.missing |= TXN_CHANGED_OTHER;
	}
	if (!ctr->store.facts || ctr->store.missing) {
		store_put_ctr(p->store, ctr);
		persist_later(p);
	}
}

static int request_started(struct pipeline *p, void *arg, struct err *err)
{
	const struct ctr *ctr = arg;
	const struct rp_event ev = {
		.size = sizeof ev, .type = RP_EVENT_STARTED, .object = ctr->handle};
	return instance_event(p->policy, &ev, err);
}

/* Places a running container that the policy refuses. The daemon cannot stop the container, so it
 * runs unmanaged on CPUs that no container owns, whatever onPolicyError says. */
static int adopt_unplaced(struct pipeline *p, struct creation *c, const struct err *why)
{
	struct err err = *why;
	log_error("%s: was not registered and cannot be placed: %s", c->ctr->full_name, why->text);
	pipeline_event_of(p, EV_DEGRADED, c->ctr, c->ctr->trail.text, "%s: %s", c->ctr->full_name,
			  why->text);
	if (c->replaced) /* ended, even if its successor cannot be placed */
		request_release(p, c->replaced, NULL);
	c->replaced = NULL;
	int r = decide(p, run_unmanaged, c, &err);
	if (r)
		log_error("%s: cannot be kept off the exclusive CPUs of other containers: %s",
			  c->ctr->full_name, err.text);
	else
		p->stats.unmanaged++;
	return r;
}

/* Adopts and places a running container that was created while the daemon was not connected.
 * Returns NULL if the container cannot be adopted. */
static struct ctr *adopt_running(struct pipeline *p, const struct pod_desc *pod,
				 const struct ctr_desc *desc)
{
	struct err err = ERR_INIT;
	struct creation c = {.replaced = replaced_by(p, pod, desc), .adopts = true};
	struct ctr_desc living = *desc;
	if (living.state == RP_STATE_CREATING)
		living.state = RP_STATE_RUNNING;
	if (!*pod->name || request_adopt(p, pod, &living, &c.ctr, &err)) {
		log_warning("container %s is not registered and cannot be taken over: %s", desc->id,
			    err.code ? err.text : "the runtime does not report its pod");
		return NULL;
	}
	c.ctr->desc = desc;
	int r = decide(p, request_place, &c, &err);
	if (r)
		r = adopt_unplaced(p, &c, &err);
	c.ctr->desc = NULL;
	if (r)
		return c.ctr;
	c.ctr->cur.state = living.state;
	decide_settle(p);
	if (c.replaced)
		controllers_post_stop(p, c.replaced);
	return c.ctr;
}

void request_start(struct pipeline *p, const struct pod_desc *pod, const struct ctr_desc *desc)
{
	struct err err = ERR_INIT;
	struct ctr *ctr = cache_ctr(p->env.cache, desc->id);
	if (!ctr) {
		ctr = adopt_running(p, pod, desc);
		if (ctr)
			controllers_post_start(p, ctr);
		return;
	}
	request_refresh(p, ctr, desc, RP_STATE_RUNNING);
	if (p->policy && !ctr->cur.claimed && instance_handles_starts(p->policy)) {
		if (decide_event(p, request_started, ctr, &err))
			log_warning("%s: policy %s: %s", ctr->full_name, instance_name(p->policy),
				    err.text);
	}
	controllers_post_start(p, ctr);
}

void request_note(struct pipeline *p, const struct pod_desc *pod, const struct ctr_desc *desc)
{
	struct ctr *ctr = cache_ctr(p->env.cache, desc->id);
	if (ctr && desc->state != RP_STATE_CREATING && desc->state != RP_STATE_EXITED)
		request_refresh(p, ctr, desc, desc->state);
}

struct resizing {
	struct ctr *ctr;
	struct values requested; /* values before the resize */
	struct needs wanted;
	uint32_t flags;
	bool pod_resized;
};

/* Restores the container's requested values after a resize that was refused. */
static void resize_undo(struct pipeline *p, void *arg)
{
	struct resizing *a = arg;
	values_fini(p->env.cache, &a->ctr->requested);
	a->ctr->requested = a->requested;
	a->requested = (struct values){0};
	a->ctr->wanted = a->wanted;
	a->ctr->flags = a->flags;
	a->ctr->pod_cpu_extra = a->ctr->pod_cpu_extra_before;
	a->ctr->pod->resized = a->pod_resized;
}

static int request_resize(struct pipeline *p, void *arg, struct err *err)
{
	const struct resizing *a = arg;
	struct ctr *ctr = a->ctr;
	struct needs needs;
	struct decision *d = txn_stage(p->txn, ctr);
	if (!d)
		return err_errno(err, -ENOMEM, "container %s", ctr->full_name);
	decision_follow(d, &a->requested, &ctr->requested);
	adjusted_needs(p, ctr, &needs);
	/* a container without a request may share resources that its pod gained or lost */
	if (memcmp(&d->needs, &needs, sizeof needs) == 0 && (!ctr->pod->resized || d->degraded))
		return 0;
	ctr->pod->resized = false;
	adjust_stage(p, ctr, d);
	return p->policy && !d->claimed ? instance_update(p->policy, ctr, err) : 0;
}

static void put_amount(struct buf *text, const char *what, int64_t was, int64_t now,
		       const char *unit)
{
	if (was != now)
		(void)buf_printf(text, "%s%s %lld%s → %lld%s", buf_len(text) ? ", " : "", what,
				 (long long)was, unit, (long long)now, unit);
}

static void describe_resized(struct pipeline *p, const struct ctr *ctr, const struct needs *had)
{
	const struct needs *n = &ctr->wanted;
	struct buf text = BUF_INIT;
	put_amount(&text, "CPU request", had->cpu_request, n->cpu_request, "m");
	put_amount(&text, "CPU limit", had->cpu_limit, n->cpu_limit, "m");
	put_amount(&text, "memory limit", had->mem_limit >> 20, n->mem_limit >> 20, " MiB");
	if (buf_len(&text))
		pipeline_event_of(p, EV_RESIZED, ctr, NULL, "%s: %s; CPUs %s", ctr->full_name,
				  buf_text(&text), ctr->cur.cpus ? ctr->cur.cpus->text : "any");
	buf_fini(&text);
}

int request_update(struct pipeline *p, const struct pod_desc *pod, const struct ctr_desc *desc,
		   const struct res_desc *res, struct reply *ret, struct err *err)
{
	reply_clear(ret);
	struct ctr *ctr = cache_ctr(p->env.cache, desc->id);
	if (!ctr)
		ctr = adopt_running(p, pod, desc);
	if (!ctr || !ctr_live(ctr->cur.state))
		return 0;
	if (res->cpus && *res->cpus && ctr->cur.cpus && !p->requests.warned_kubelet) {
		p->requests.warned_kubelet = true;
		log_warning("%s: the kubelet itself sets CPUs %s; set its cpuManagerPolicy to none "
			    "(logged once)",
			    ctr->full_name, res->cpus);
	}
	struct cache *c = p->env.cache;
	struct resizing resizing = {.ctr = ctr,
				    .wanted = ctr->wanted,
				    .flags = ctr->flags,
				    .pod_resized = ctr->pod->resized};
	values_copy(&resizing.requested, &ctr->requested);
	(void)values_overlay(c, &ctr->requested, res, true);
	cache_derive_resized(c, ctr);
	feed_follow_pod(c, ctr);
	ctr->store.facts = false; /* requested values are stored together with the decision */
	p->requests.undo = resize_undo;
	p->requests.undo_arg = &resizing;
	int r = decide(p, request_resize, &resizing, err);
	if (r) {
		request_undo(p); /* needed if decide() failed before it began a transaction */
		name_container(err, ctr);
		pipeline_event_of(p, EV_REFUSED, ctr, NULL, "resize of %s", err->text);
		return r;
	}
	p->requests.undo = NULL;
	values_fini(c, &resizing.requested);
	describe_resized(p, ctr, &resizing.wanted);
	/* The runtime applies the requested values now. The reply overrides differing ones. */
	(void)values_overlay(c, &ctr->acked, res, true);
	ctr->store.facts = false;
	store_put_ctr(p->store, ctr);
	persist_later(p);
	decide_reply(p, ret, NULL);
	return 0;
}

/* ---- resize of a pod's own resources --------------------------------------------------------- */

struct pod_resizing {
	struct pod *pod;
	struct needs sums; /* the pod's resources before the resize */
	bool sums_stale, resized;
};

/* Restores the pod's resources after a resize that was refused. */
static void pod_resize_undo(struct pipeline *p, void *arg)
{
	const struct pod_resizing *a = arg;
	a->pod->sums = a->sums;
	a->pod->sums_stale = a->sums_stale;
	a->pod->resized = a->resized;
	for (struct ctr *ctr = a->pod->ctrs; ctr; ctr = ctr->pod_next)
		ctr->pod_cpu_extra = ctr->pod_cpu_extra_before;
}

static int request_resize_pod(struct pipeline *p, void *arg, struct err *err)
{
	const struct pod_resizing *a = arg;
	int r = 0;
	for (struct ctr *ctr = a->pod->ctrs; ctr && !r; ctr = ctr->pod_next) {
		/* A degraded container lacks resources already: no reason to refuse the resize. */
		if (!ctr_live(ctr->cur.state) || ctr->cur.claimed || ctr->cur.degraded ||
		    ctr->device)
			continue;
		struct decision *d = txn_stage(p->txn, ctr);
		if (!d)
			return err_errno(err, -ENOMEM, "container %s", ctr->full_name);
		adjust_stage(p, ctr, d);
		r = instance_update(p->policy, ctr, err);
	}
	return r;
}

int request_update_pod(struct pipeline *p, const struct pod_desc *desc, const struct res_desc *res,
		       struct err *err)
{
	struct pod *pod = cache_pod(p->env.cache, desc->id);
	if (!pod)
		return 0;
	struct pod_resizing a = {pod, pod->sums, pod->sums_stale, pod->resized};
	cache_resize_pod(pod, res);
	if (!p->policy || (!a.resized && !memcmp(&a.sums, &pod->sums, sizeof a.sums)))
		return 0;
	for (struct ctr *ctr = pod->ctrs; ctr; ctr = ctr->pod_next)
		feed_follow_pod(p->env.cache, ctr);
	p->requests.undo = pod_resize_undo;
	p->requests.undo_arg = &a;
	int r = decide(p, request_resize_pod, &a, err);
	if (r) {
		request_undo(p); /* needed if decide() failed before it began a transaction */
		(void)err_prefix(err, "pod %s/%s: CPU and memory of the pod: ", pod->ns, pod->name);
		pipeline_event(p, EV_REFUSED, "resize of %s", err->text);
		return r;
	}
	p->requests.undo = NULL;
	decide_settle(p);
	return 0;
}

/* ---- end of a container ---------------------------------------------------------------------- */

void request_stop(struct pipeline *p, const struct pod_desc *pod, const struct ctr_desc *desc,
		  struct reply *ret)
{
	struct ctr *ctr = cache_ctr(p->env.cache, desc->id);
	reply_clear(ret);
	if (!ctr || !ctr_live(ctr->cur.state))
		return;
	request_release(p, ctr, ret);
	pipeline_event_text(p, EV_RELEASED, ctr, ctr->full_name);
}

void request_remove(struct pipeline *p, const struct pod_desc *pod, const struct ctr_desc *desc)
{
	struct ctr *ctr = cache_ctr(p->env.cache, desc->id);
	if (!ctr)
		return;
	if (ctr_live(ctr->cur.state))
		request_release(p, ctr, NULL);
	request_forget_ctr(p, ctr);
	persist_later(p);
}
