/* SPDX-License-Identifier: Apache-2.0 */
/* Pods, containers, and one container with everything that is known about it. */
#include <string.h>

#include "core/cache/derive.h"
#include "core/ctl/internal.h"
#include "core/util/str.h"

/* ---- pods ------------------------------------------------------------------------------------- */

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
	json_kstr(j, "name", pod->name);
	json_kstr(j, "id", pod->id);
	put_text(j, "uid", pod->uid);
	json_kstr(j, "qos", qos_name(pod->qos));
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
	return matches(pattern, name);
}

enum call_result run_pods(struct call *call)
{
	const char *pattern = call->req->n_args ? call->req->args[0] : NULL;
	json_arr(&call->j);
	for (const struct pod *pod = cache_pods(pipeline_cache(call->p)); pod; pod = pod->hh.next)
		if (pod_matches(pattern, pod))
			put_pod(&call->j, pod);
	json_end_arr(&call->j);
	return CALL_DONE;
}

/* ---- containers ------------------------------------------------------------------------------- */

static void put_needs(struct json *j, const char *key, const struct needs *n)
{
	json_key(j, key);
	json_obj(j);
	json_kint(j, "cpu_request_milli", n->cpu_request);
	json_kint(j, "cpu_limit_milli", n->cpu_limit);
	json_kint(j, "memory_request", n->mem_request);
	json_kint(j, "memory_limit", n->mem_limit);
	json_end_obj(j);
}

static void put_flags(struct json *j, uint32_t flags)
{
	static const struct {
		uint32_t bit;
		const char *name;
	} names[] = {
		{RP_CTR_ESTIMATED_MEM, "memory-estimated"},
		{RP_CTR_EXACT_NEEDS, "exact-needs"},
		{RP_CTR_PRESERVE_CPU, "preserve-cpu"},
		{RP_CTR_PRESERVE_MEM, "preserve-memory"},
		{RP_CTR_INIT, "init"},
		{RP_CTR_RESTORED, "restored"},
	};
	json_key(j, "flags");
	json_arr(j);
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (flags & names[i].bit)
			json_str(j, names[i].name);
	json_end_arr(j);
}

static void put_ctr_members(struct json *j, const struct cache *cache, const struct ctr *ctr)
{
	const struct decision *d = &ctr->cur;
	const struct iset *cpus = d->cpus ? d->cpus : NULL;
	json_kstr(j, "namespace", ctr->pod->ns);
	json_kstr(j, "pod", ctr->pod->name);
	json_kstr(j, "name", ctr->name);
	json_kstr(j, "full_name", ctr->full_name);
	json_kstr(j, "id", ctr->id);
	json_kstr(j, "state", state_name(d->state));
	json_kstr(j, "qos", qos_name(ctr->pod->qos));
	put_set(j, "cpus", cpus);
	put_set(j, "exclusive", ctr_exclusive(cache, ctr));
	put_set(j, "mems", d->mems);
	put_needs(j, "wanted", &ctr->wanted);
	put_text(j, "rdt_class", blob_text(d->rdt_class));
	put_text(j, "blockio_class", blob_text(d->blockio_class));
	put_text(j, "cpu_class", blob_text(d->cpu_class));
	put_text(j, "policy", cache_policy_name(cache, d->policy));
	put_flags(j, ctr->flags);
	put_text(j, "degraded", blob_text(d->degraded));
	json_kuint(j, "pid", ctr->pid);
	put_time(j, "created", ctr->created_ns);
}

enum call_result run_containers(struct call *call)
{
	const char *pattern = call->req->n_args ? call->req->args[0] : NULL;
	struct cache *cache = pipeline_cache(call->p);
	json_arr(&call->j);
	for (const struct ctr *ctr = cache_ctrs(cache); ctr; ctr = ctr->next) {
		if (!matches(pattern, ctr->full_name))
			continue;
		json_obj(&call->j);
		put_ctr_members(&call->j, cache, ctr);
		json_end_obj(&call->j);
	}
	json_end_arr(&call->j);
	return CALL_DONE;
}

/* ---- explain ---------------------------------------------------------------------------------- */

static void put_trail(struct json *j, const char *trail)
{
	json_key(j, "trail");
	json_arr(j);
	while (trail && *trail) {
		char line[RP_TRAIL_MAX + 64];
		size_t n = strcspn(trail, "\n"), len = n < sizeof line - 1 ? n : sizeof line - 1;
		memcpy(line, trail, len);
		line[len] = '\0';
		if (len)
			json_str(j, line);
		trail += n + (trail[n] == '\n');
	}
	json_end_arr(j);
}

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

/* Each value: what the policy decided, what the runtime asked for itself, what it is known to have. */
static void put_values(struct json *j, const struct ctr *ctr)
{
	const struct decision *d = &ctr->cur;
	const struct values *r = &ctr->requested, *a = &ctr->acked;
	json_key(j, "values");
	json_arr(j);
	put_set_value(j, "cpus", d->cpus, r->cpus, a->cpus);
	put_set_value(j, "mems", d->mems, r->mems, a->mems);
	put_value(j, "shares", d->shares, r->shares, a->shares);
	put_value(j, "quota_us", d->quota, r->quota, a->quota);
	put_value(j, "period_us", d->period, r->period, a->period);
	put_value(j, "memory_limit", d->mem_limit, r->mem_limit, a->mem_limit);
	json_end_arr(j);
}

/* Annotations of the pod that may have had a say. */
static void put_annotations(struct json *j, const struct ctr *ctr)
{
	static const char *const domains[] = {
		ANNOTATION_DOMAIN,
		ANNOTATION_ALIAS_DOMAIN,
		"noderesource.dev",
		"intel.com/resources",
	};
	json_key(j, "annotations");
	json_obj(j);
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

/* Why an explanation may be missing something. */
static const char *remark(const struct ctr *ctr, const struct instance *policy)
{
	if (!ctr_live(ctr->cur.state))
		return "it has exited and holds nothing any more";
	if (!policy)
		return "no policy is in force";
	if (!ctr->cur.policy)
		return "no policy has decided about it: it keeps what the runtime gave it";
	if (ctr->cur.policy != instance_number(policy))
		return "another policy decided about it, and this one has left it at that";
	if (!ctr->trail && ctr->flags & RP_CTR_RESTORED)
		return "it was placed before this daemon's start, and what was right was kept";
	return ctr->trail ? NULL : "the policy has left no notes about it";
}

static void put_section(struct json *j, const struct pipeline *p, const struct instance *policy)
{
	char where[CONF_PLACE_MAX];
	rp_cfg section = policy ? conf_section(pipeline_conf(p), instance_name(policy)) : NULL;
	put_text(j, "section", conf_where(section, where, sizeof where));
	put_text(j, "configured_at",
		 conf_where(conf_core(pipeline_conf(p))->policy_node, where, sizeof where));
}

/* What controllers said of it last. */
static void put_controllers(struct json *j, const struct pipeline *p, const struct ctr *ctr)
{
	static const char *const names[] = {
		[RP_APPLY_PENDING] = "pending",
		[RP_APPLY_DONE] = "done",
		[RP_APPLY_PARTIAL] = "partial",
		[RP_APPLY_FAILED] = "failed",
	};
	json_key(j, "controllers");
	json_arr(j);
	for (unsigned i = 0; i < pipeline_n_controllers(p); i++) {
		struct controller_status status;
		struct controller_result res;
		if (!pipeline_controller_result(p, i, ctr, &res) || res.result > RP_APPLY_FAILED)
			continue;
		pipeline_controller(p, i, &status);
		json_obj(j);
		json_kstr(j, "name", status.name);
		json_kstr(j, "result", names[res.result]);
		put_text(j, "text", res.text);
		json_end_obj(j);
	}
	json_end_arr(j);
}

enum call_result run_explain(struct call *call)
{
	struct err err = ERR_INIT;
	struct json *j = &call->j;
	struct cache *cache = pipeline_cache(call->p);
	const struct ctr *ctr = cache_ctr_find(cache, call->req->args[0], &err);
	const struct instance *policy = pipeline_policy(call->p);
	if (!ctr)
		return call_fail(call, CTL_FAILED, "%s", err_text(&err, -ENOENT));
	json_obj(j);
	put_ctr_members(j, cache, ctr);
	put_needs(j, "decided_for", &ctr->cur.needs);
	put_amount(j, "oom_score_adj", ctr->oom_score_adj);
	put_text(j, "cgroup", ctr->cgroups_path);
	put_values(j, ctr);
	put_controllers(j, call->p, ctr);
	json_kbool(j, "update_waits", ctr->in_updates);
	put_annotations(j, ctr);
	put_text(j, "policy_in_force", policy ? instance_name(policy) : NULL);
	put_section(j, call->p, policy);
	put_text(j, "remark", remark(ctr, policy));
	put_trail(j, ctr->trail);
	put_text(j, "data", blob_text(ctr->cur.data));
	json_end_obj(j);
	return CALL_DONE;
}
