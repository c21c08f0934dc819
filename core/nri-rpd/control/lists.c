/* SPDX-License-Identifier: Apache-2.0 */
/* Lists pods and containers, and explains a single container in full. */
#include <string.h>

#include "core/nri-rpd/cache/derive.h"
#include "core/nri-rpd/cache/annotation_rules.h"
#include "core/nri-rpd/cache/claim.h"
#include "core/nri-rpd/cache/pod_level.h"
#include "core/nri-rpd/control/internal.h"
#include "core/nri-rpd/pipeline/reload/reload.h"
#include "core/nri-rpd/pipeline/observe/events.h"
#include "core/nri-rpd/pipeline/observe/observe.h"
#include "core/nri-rpd/pipeline/pipeline.h"
#include "core/nri-rpd/pipeline/request/adjust.h"
#include "core/lib/util/str.h"
#include "core/nri-rpd/cache/txn.h"
#include "core/nri-rpd/control/commands.h"
#include "core/nri-rpd/control/document.h"
#include "core/nri-rpd/control/events.h"
#include "core/nri-rpd/control/lists.h"
#include "core/nri-rpd/control/usage.h"
#include "core/nri-rpd/pipeline/controllers/controllers.h"
#include "core/nri-rpd/pipeline/observe/status.h"

/* ---- pods ------------------------------------------------------------------------------------ */

static void put_pod(struct json *j, const struct pod *pod)
{
	unsigned n = 0, n_live = 0, n_degraded = 0;
	int64_t mcpu = 0, memory = 0;
	for (const struct ctr *ctr = pod->ctrs; ctr; ctr = ctr->pod_next) {
		n++;
		if (!ctr_live(ctr->cur.state))
			continue;
		n_live++;
		n_degraded += ctr->cur.degraded != NULL;
		mcpu += ctr->wanted.cpu_request;
		memory += ctr->wanted.mem_request;
	}
	json_obj(j);
	json_kstr(j, "namespace", pod->ns);
	JSON_MEMBERS(j, pod, name, id);
	put_text(j, "uid", pod->uid);
	json_kstr(j, "qos", derive_qos_name(pod->qos));
	put_text(j, "runtime_handler", pod->runtime_handler);
	put_text(j, "cgroup_parent", pod->cgroup_parent);
	json_kbool(j, "stopped", pod->stopped);
	json_kuint(j, "containers", n);
	json_kuint(j, "live", n_live);
	json_kuint(j, "degraded", n_degraded);
	json_kint(j, "cpu_request_milli", mcpu);
	json_kint(j, "memory_request", memory);
	json_end_obj(j);
}

static bool pod_matches(const char *pattern, const struct pod *pod)
{
	char name[2 * CACHE_ID_MAX + 2];
	(void)snprintf(name, sizeof name, "%s/%s", pod->ns, pod->name);
	return matches(pattern, name) || matches(pattern, pod->name);
}

enum call_result run_pods(struct call *call)
{
	const char *pattern = call->req->n_args ? call->req->args[0] : NULL;
	json_arr(&call->j);
	call->exit = pattern ? CTL_FAILED : CTL_OK;
	for (const struct pod *pod = cache_pods(pipeline_cache(call->p)); pod; pod = pod->hh.next) {
		if ((pod->ctrs && pod->ctrs->device) || !pod_matches(pattern, pod))
			continue;
		put_pod(&call->j, pod);
		call->exit = CTL_OK;
	}
	json_end_arr(&call->j);
	return CALL_DONE;
}

/* ---- containers ------------------------------------------------------------------------------ */

static void put_needs(struct json *j, const char *key, const struct needs *n)
{
	json_kobj(j, key);
	json_kint(j, "cpu_request_milli", n->cpu_request);
	json_kint(j, "cpu_limit_milli", n->cpu_limit);
	json_kint(j, "memory_request", n->mem_request);
	json_kint(j, "memory_limit", n->mem_limit);
	json_end_obj(j);
}

static void put_flags(struct json *j, uint32_t flags)
{
	static const struct bit_name names[] = {
		{RP_CTR_ESTIMATED_MEM, "memory-estimated"},
		{RP_CTR_EXACT_NEEDS, "exact-needs"},
		{RP_CTR_POD_RESOURCES, "pod-resources"},
		{RP_CTR_PRESERVE_CPU, "preserve-cpu"},
		{RP_CTR_PRESERVE_MEM, "preserve-memory"},
		{RP_CTR_INIT, "init"},
		{RP_CTR_RESTORED, "restored"},
	};
	PUT_BITS(j, "flags", flags, names);
}

/* Finds CPUs that several live containers may use. */
static void crowded_cpus(struct cache *cache, struct rp_idset *ret)
{
	struct rp_idset once, both;
	rp_idset_clear(&once);
	rp_idset_clear(ret);
	for (const struct ctr *ctr = cache_ctrs(cache); ctr; ctr = ctr->next) {
		const struct iset *cpus = ctr_live(ctr->cur.state) ? ctr->cur.cpus : NULL;
		if (!cpus || ctr->device)
			continue;
		rp_idset_and(&both, rp_ids_of(&once), cpus->ids);
		rp_idset_or(ret, rp_ids_of(ret), rp_ids_of(&both));
		rp_idset_or(&once, rp_ids_of(&once), cpus->ids);
	}
}

static void put_alone(struct json *j, const struct ctr *ctr, const struct rp_idset *crowded)
{
	const struct iset *cpus = ctr_live(ctr->cur.state) ? ctr->cur.cpus : NULL;
	json_kbool(j, "alone",
		   cpus && cpus->count && !rp_ids_overlap(cpus->ids, rp_ids_of(crowded)));
}

static void put_ctr_members(struct json *j, const struct cache *cache, const struct ctr *ctr,
			    uint32_t flags)
{
	const struct decision *d = &ctr->cur;
	const struct iset *cpus = d->cpus ? d->cpus : NULL;
	json_kstr(j, "namespace", ctr->pod->ns);
	json_kstr(j, "pod", ctr->pod->name);
	JSON_MEMBERS(j, ctr, name, full_name, id);
	json_kstr(j, "state", state_name(d->state));
	json_kstr(j, "qos", derive_qos_name(ctr->pod->qos));
	put_set(j, "cpus", cpus);
	put_set(j, "exclusive", ctr_exclusive(cache, ctr));
	put_set(j, "mems", d->mems);
	put_needs(j, "wanted", &ctr->wanted);
	put_text(j, "rdt_class", blob_text(decision_rdt(d)));
	put_text(j, "blockio_class", blob_text(decision_blockio(d)));
	put_text(j, "cpu_class", blob_text(d->cpu_class));
	put_text(j, "policy", cache_policy_name(cache, d->policy));
	put_flags(j, ctr->flags);
	put_text(j, "degraded", told(blob_text(d->degraded), flags));
	if (!(flags & CTL_FLAG_PUBLIC))
		json_kuint(j, "pid", ctr->pid);
	put_time(j, "created", ctr->created_ns);
}

enum call_result run_containers(struct call *call)
{
	const char *pattern = call->req->n_args ? call->req->args[0] : NULL;
	struct cache *cache = pipeline_cache(call->p);
	struct rp_idset crowded;
	crowded_cpus(cache, &crowded);
	json_arr(&call->j);
	call->exit = pattern ? CTL_FAILED : CTL_OK;
	for (const struct ctr *ctr = cache_ctrs(cache); ctr; ctr = ctr->next) {
		const char *short_name = strchr(ctr->full_name, '/');
		if (ctr->device)
			continue;
		if (!matches(pattern, ctr->full_name) &&
		    !(short_name && matches(pattern, short_name + 1)))
			continue;
		call->exit = CTL_OK;
		json_obj(&call->j);
		put_ctr_members(&call->j, cache, ctr, call->req->flags);
		put_alone(&call->j, ctr, &crowded);
		put_usage(&call->j, call->p, ctr, false);
		json_end_obj(&call->j);
	}
	json_end_arr(&call->j);
	return CALL_DONE;
}

/* ---- claims ---------------------------------------------------------------------------------- */

static void put_claim(struct json *j, const struct ctr *claim)
{
	json_obj(j);
	json_kstr(j, "namespace", claim->pod->ns);
	json_kstr(j, "name", claim->pod->name);
	json_kstr(j, "uid", claim_uid(claim));
	json_kstr(j, "device", claim->device);
	put_set(j, "cpus", claim->cur.cpus);
	put_set(j, "mems", claim->cur.mems);
	json_kint(j, "memory", claim->wanted.mem_request);
	json_karr(j, "containers");
	const struct ctr *ctr = claim_first((struct ctr *)(uintptr_t)claim)->sharers;
	for (; ctr; ctr = ctr->sharer_next)
		if (ctr_live(ctr->cur.state))
			json_str(j, ctr->full_name);
	json_end_arr(j);
	json_end_obj(j);
}

enum call_result run_claims(struct call *call)
{
	struct cache *cache = pipeline_cache(call->p);
	json_arr(&call->j);
	for (const struct ctr *ctr = cache_ctrs(cache); ctr; ctr = ctr->next)
		if (ctr->device)
			put_claim(&call->j, ctr);
	json_end_arr(&call->j);
	call->exit = CTL_OK;
	return CALL_DONE;
}

/* ---- explain --------------------------------------------------------------------------------- */

static void put_value(struct json *j, const char *name, int64_t decided, int64_t asked,
		      int64_t acked)
{
	json_obj(j);
	json_kstr(j, "name", name);
	put_amount(j, "decided", decided);
	put_amount(j, "asked", asked);
	put_amount(j, "in_force", acked);
	json_end_obj(j);
}

static void put_set_value(struct json *j, const char *name, const struct iset *decided,
			  const struct iset *asked, const struct iset *acked)
{
	json_obj(j);
	json_kstr(j, "name", name);
	put_set(j, "decided", decided);
	put_set(j, "asked", asked);
	put_set(j, "in_force", acked);
	json_end_obj(j);
}

/* Writes each value in three forms: decided by the policy, requested by the runtime, and
 * acknowledged by it. */
static void put_values(struct json *j, const struct ctr *ctr)
{
	const struct decision *d = &ctr->cur;
	const struct values *r = &ctr->requested, *a = &ctr->acked;
	json_karr(j, "values");
	put_set_value(j, "cpus", d->cpus, r->cpus, a->cpus);
	put_set_value(j, "mems", d->mems, r->mems, a->mems);
	put_value(j, "shares", d->shares, r->shares, a->shares);
	put_value(j, "quota_us", d->quota, r->quota, a->quota);
	put_value(j, "period_us", d->period, r->period, a->period);
	put_value(j, "memory_limit", d->mem_limit, r->mem_limit, a->mem_limit);
	json_end_arr(j);
}

/* Writes the pod's annotations that may have influenced the decision. */
static void put_annotations(struct json *j, const struct ctr *ctr)
{
	static const char *const domains[] = {
		ANNOTATION_DOMAIN,
		ANNOTATION_ALIAS_DOMAIN,
		"noderesource.dev",
		"intel.com/resources",
	};
	json_kobj(j, "annotations");
	KVS_EACH(key, value, &ctr->pod->annotations)
	{
		bool ours = false;
		for (size_t i = 0; i < sizeof domains / sizeof domains[0]; i++)
			ours = ours || strstr(key, domains[i]);
		if (ours)
			json_kstr(j, key, value);
	}
	json_end_obj(j);
}

static void put_withheld(struct json *j, const struct ctr *ctr)
{
	json_karr(j, "withheld_annotations");
	for (const char *k = withheld_next(ctr, NULL); k; k = withheld_next(ctr, k))
		json_str(j, k);
	json_end_arr(j);
}

/* Returns the reason why an explanation may be incomplete. */
static const char *lists_remark(const struct ctr *ctr, const struct instance *policy)
{
	if (!ctr_live(ctr->cur.state))
		return "the container has exited and has no CPUs";
	if (!policy)
		return "no policy is active";
	if (ctr->cur.claimed)
		return "the container has the CPUs of its claim";
	if (!ctr->cur.policy)
		return "no policy has placed the container: it keeps the CPUs of the runtime";
	if (ctr->cur.policy != instance_number(policy))
		return "another policy placed the container, and the active policy kept its "
		       "placement";
	if (!ctr->trail.text && ctr->flags & RP_CTR_RESTORED)
		return "the container was placed before this start of the daemon, and its "
		       "placement was kept";
	return ctr->trail.text ? NULL : "the policy recorded no notes about the container";
}

static void put_section(struct json *j, const struct pipeline *p, const struct instance *policy)
{
	char where[CONF_PLACE_MAX];
	rp_cfg section = policy ? conf_section(pipeline_conf(p), instance_name(policy)) : NULL;
	put_text(j, "section", conf_where(section, where, sizeof where));
	put_text(j, "configured_at",
		 conf_where(conf_core(pipeline_conf(p))->policy_node, where, sizeof where));
}

/* Writes the latest reports of controllers on the container. */
static void put_controllers(struct json *j, const struct pipeline *p, const struct ctr *ctr,
			    uint32_t flags)
{
	static const char *const names[] = {
		[RP_APPLY_PENDING] = "pending",
		[RP_APPLY_DONE] = "done",
		[RP_APPLY_PARTIAL] = "partial",
		[RP_APPLY_FAILED] = "failed",
	};
	json_karr(j, "controllers");
	for (unsigned i = 0; i < pipeline_n_controllers(p); i++) {
		struct controller_status status;
		struct controller_result res;
		if (!pipeline_controller_result(p, i, ctr, &res) || res.result > RP_APPLY_FAILED)
			continue;
		pipeline_controller(p, i, &status);
		json_obj(j);
		json_kstr(j, "name", status.name);
		json_kstr(j, "result", names[res.result]);
		put_text(j, "text", told(res.text, flags));
		json_end_obj(j);
	}
	json_end_arr(j);
}

/* ---- names that are no living container ---- ---- */

/* Returns true if the event is about the name. "web/app" also matches "default/web/app", and "web"
 * also matches the pod of any of its containers. */
static bool is_about(const struct event *e, const char *name)
{
	size_t len = strlen(name);
	const char *subject = e->subject, *pod = subject ? strchr(subject, '/') : NULL;
	if (!pod || !len)
		return false;
	for (const char *at = subject; at; at = at == subject ? pod + 1 : NULL)
		if (strncmp(at, name, len) == 0 && (!at[len] || at[len] == '/'))
			return true;
	return false;
}

static enum call_result put_history(struct call *call, const char *name)
{
	const struct event *e = pipeline_event_after(call->p, 0);
	unsigned n = 0;
	json_obj(&call->j);
	json_kstr(&call->j, "document", "history");
	json_kstr(&call->j, "name", name);
	json_karr(&call->j, "history");
	for (; e; e = pipeline_event_after(call->p, e->seq)) {
		if (!is_about(e, name))
			continue;
		put_event(&call->j, e, call->req->flags);
		n++;
	}
	json_end_arr(&call->j);
	json_end_obj(&call->j);
	if (n)
		return CALL_DONE;
	return call_fail(call, CTL_FAILED,
			 "unknown container or pod \"%s\": see `nri-rpctl events`", name);
}

static const struct event *last_refusal(const struct pipeline *p, const char *name)
{
	const struct event *found = NULL;
	for (const struct event *e = pipeline_event_after(p, 0); e;
	     e = pipeline_event_after(p, e->seq))
		if (e->kind == EV_REFUSED && is_about(e, name))
			found = e;
	return found;
}

static const struct pod *find_pod(struct pipeline *p, const char *name)
{
	for (const struct pod *pod = cache_pods(pipeline_cache(p)); pod; pod = pod->hh.next) {
		size_t len = strlen(pod->ns);
		bool full = strncmp(name, pod->ns, len) == 0 && name[len] == '/';
		if (pod->ctrs && str_eq(full ? name + len + 1 : name, pod->name))
			return pod;
	}
	return NULL;
}

/* Explains a pod of several containers: its own resources, and how the containers share them. */
static enum call_result explain_pod(struct call *call, const struct pod *pod)
{
	struct json *j = &call->j;
	const struct cache *cache = pipeline_cache(call->p);
	const struct needs *own = pod_level_own(cache, pod);
	const uint32_t flags = call->req->flags;
	json_obj(j);
	json_kstr(j, "document", "pod");
	json_kstr(j, "namespace", pod->ns);
	json_kstr(j, "name", pod->name);
	json_kstr(j, "qos", derive_qos_name(pod->qos));
	if (own)
		put_needs(j, "own", own);
	json_karr(j, "containers");
	for (const struct ctr *ctr = pod->ctrs; ctr; ctr = ctr->pod_next) {
		json_obj(j);
		put_ctr_members(j, cache, ctr, flags);
		put_told(j, "why", ctr->trail.text, flags);
		json_end_obj(j);
	}
	json_end_arr(j);
	json_end_obj(j);
	return CALL_DONE;
}

/* Explains a name that is no living container: a refused one, a pod, or an unknown name. */
static enum call_result explain_other(struct call *call, const char *name, const struct err *err)
{
	const struct pod *pod = find_pod(call->p, name);
	const struct event *e = last_refusal(call->p, name);
	if (pod)
		return explain_pod(call, pod);
	if (e) {
		json_obj(&call->j);
		json_kstr(&call->j, "document", "refusal");
		json_kstr(&call->j, "name", name);
		json_key(&call->j, "refused");
		put_event(&call->j, e, call->req->flags);
		json_end_obj(&call->j);
		return CALL_DONE;
	}
	return call_fail(call, CTL_FAILED, "%s", err_text(err, -ENOENT));
}

/* Finds the container of that name, or the only container of the pod of that name. */
static const struct ctr *find_ctr(struct call *call, const char *name, struct err *err)
{
	const struct ctr *ctr = cache_ctr_find(pipeline_cache(call->p), name, err);
	const struct pod *pod = ctr ? NULL : find_pod(call->p, name);
	return pod && !pod->ctrs->pod_next ? pod->ctrs : ctr;
}

enum call_result run_explain(struct call *call)
{
	struct err err = ERR_INIT;
	struct json *j = &call->j;
	struct cache *cache = pipeline_cache(call->p);
	const char *name = call->req->args[0];
	const uint32_t flags = call->req->flags;
	const struct ctr *ctr = find_ctr(call, name, &err);
	const struct instance *policy = pipeline_policy(call->p);
	if (call->req->flags & CTL_FLAG_HISTORY)
		return put_history(call, ctr ? ctr->full_name : name);
	if (!ctr)
		return explain_other(call, name, &err);
	struct rp_idset crowded;
	crowded_cpus(cache, &crowded);
	json_obj(j);
	json_kstr(j, "document", "container");
	put_ctr_members(j, cache, ctr, flags);
	put_alone(j, ctr, &crowded);
	put_usage(j, call->p, ctr, true);
	put_needs(j, "decided_for", &ctr->cur.needs);
	put_text(j, "adjustment", pipeline_adjustment(call->p, ctr));
	if (ctr->cur.toptier_adjusted) {
		json_kint(j, "toptier_limit", ctr->cur.toptier_adjusted);
		json_kbool(j, "toptier_written", pipeline_writes_toptier(call->p));
	}
	put_amount(j, "oom_score_adj", ctr->oom_score_adj);
	if (!(flags & CTL_FLAG_PUBLIC))
		put_text(j, "cgroup", ctr->cgroups_path);
	put_values(j, ctr);
	put_controllers(j, call->p, ctr, flags);
	json_kbool(j, "update_waits", ctr->in_updates);
	if (!(flags & CTL_FLAG_PUBLIC)) {
		put_annotations(j, ctr);
		put_withheld(j, ctr);
	}
	put_text(j, "policy_in_force", policy ? instance_name(policy) : NULL);
	put_section(j, call->p, policy);
	put_text(j, "remark", lists_remark(ctr, policy));
	put_told(j, "why", ctr->trail.text, flags);
	put_told(j, "trail", ctr->trail.text, flags); /* earlier name of "why" */
	if (!(flags & CTL_FLAG_PUBLIC))
		put_text(j, "data", blob_text(ctr->cur.data));
	json_end_obj(j);
	return CALL_DONE;
}
