/* SPDX-License-Identifier: Apache-2.0 */
/* Shows the daemon's status, with the reasons if it is degraded. */
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/nri-rpd/control/internal.h"
#include "core/nri-rpd/pipeline/reload/reload.h"
#include "core/nri-rpd/pipeline/observe/conditions.h"
#include "core/nri-rpd/pipeline/observe/observe.h"
#include "core/nri-rpd/pipeline/node/cluster.h"
#include "core/nri-rpd/pipeline/node/evict.h"
#include "core/nri-rpd/pipeline/node/feed.h"
#include "core/nri-rpd/pipeline/pipeline.h"
#include "core/nri-rpd/pipeline/request/adjust.h"
#include "core/nri-rpd/pipeline/wait/admit.h"
#include "core/nri-rpd/pipeline/wait/devices.h"
#include "core/nri-rpd/pipeline/wait/plugins.h"
#include "core/nri-rpd/pipeline/request/request.h"
#include "core/lib/util/clock.h"
#include "core/nri-rpd/control/document.h"
#include "core/nri-rpd/control/speedselect.h"
#include "core/nri-rpd/control/status.h"
#include "core/nri-rpd/pipeline/observe/status.h"
#include "core/nri-rpd/pipeline/reload/undo.h"
#include "core/nri-rpd/pipeline/request/updates.h"

#define NS_PER_S UINT64_C(1000000000)

/* ---- reasons --------------------------------------------------------------------------------- */

static void put_reason(const struct condition *c, void *arg)
{
	json_str(arg, c->text);
}

static void put_condition(const struct condition *c, void *arg)
{
	static const char *const severities[] = {
		[SEVERITY_DEGRADED] = "degraded",
		[SEVERITY_UNHEALTHY] = "unhealthy",
	};
	struct json *j = arg;
	json_obj(j);
	json_kstr(j, "id", c->id);
	json_kstr(j, "severity", severities[c->severity]);
	json_kstr(j, "text", c->text);
	json_end_obj(j);
}

static void put_reasons(struct json *j, const struct pipeline *p)
{
	json_karr(j, "reasons");
	(void)conditions_each(p, put_reason, j);
	json_end_arr(j);
	json_karr(j, "conditions");
	(void)conditions_each(p, put_condition, j);
	json_end_arr(j);
}

/* ---- parts ----------------------------------------------------------------------------------- */

static void put_policy(struct json *j, struct pipeline *p, const struct pipeline_status *s)
{
	const struct instance *policy = pipeline_policy(p);
	json_kobj(j, "policy");
	put_text(j, "name", s->policy);
	put_text(j, "version", policy ? instance_module(policy)->version : NULL);
	put_text(j, "configured", s->configured_policy);
	json_kbool(j, "safe_mode", s->safe_mode);
	put_text(j, "safe_mode_reason", s->safe_mode_reason);
	json_end_obj(j);
	json_kobj(j, "config");
	json_kstr(j, "path", s->config_path);
	json_kuint(j, "generation", s->config_generation);
	json_kbool(j, "ok", s->config_ok);
	put_text(j, "error", s->config_error);
	put_lines(j, "problems", s->config_problems);
	put_time(j, "kept", s->config_kept_ns);
	json_kbool(j, "undone", s->config_undone);
	json_kuint(j, "unconfirmed_s", pipeline_unconfirmed_s(p));
	json_end_obj(j);
}

/* Writes the namespaces whose pods may take from other containers by annotation. */
static void put_annotations(struct json *j, struct pipeline *p)
{
	const struct conf_annotations *a = &conf_core(pipeline_conf(p))->annotations;
	json_kobj(j, "annotations");
	json_kstr(j, "takers", a->takers_named ? "named" : "peers");
	json_karr(j, "taker_namespaces");
	for (unsigned i = 0; i < a->taker_namespaces.n; i++)
		json_str(j, a->taker_namespaces.items[i]);
	json_end_arr(j);
	json_kuint(j, "rules", a->n);
	json_end_obj(j);
}

static void put_runtime(struct json *j, struct pipeline *p)
{
	const struct runtime_state *rt = pipeline_runtime(p);
	json_kobj(j, "runtime");
	JSON_MEMBERS(j, rt, connected, synchronized);
	put_text(j, "name", rt->facts.name);
	put_text(j, "version", rt->facts.version);
	put_text(j, "nri_version", rt->nri_version);
	put_time(j, "connected_at", rt->connected_ns);
	put_time(j, "synchronized_at", rt->synchronized_ns);
	JSON_MEMBERS(j, rt, request_timeout_ms, connects, disconnects);
	put_text(j, "error", rt->connected ? NULL : rt->last_error);
	put_text(j, "socket", rt->socket);
	put_text(j, "fallback", rt->fallback);
	json_kbool(j, "on_fallback", rt->on_fallback);
	json_kbool(j, "can_refuse", rt->facts.flags & RP_RUNTIME_CAN_REFUSE);
	json_kbool(j, "can_inject", rt->facts.flags & RP_RUNTIME_CAN_INJECT);
	json_kbool(j, "creation_is_late", rt->facts.flags & RP_RUNTIME_CREATION_IS_LATE);
	put_text(j, "fallback_reason", rt->on_fallback ? rt->fallback_why : NULL);
	json_end_obj(j);
}

static void put_counts(struct json *j, struct pipeline *p, const struct pipeline_status *s)
{
	const struct pipeline_stats *st = pipeline_stats(p);
	json_kuint(j, "pods", s->n_pods);
	json_kuint(j, "containers", s->n_ctrs);
	json_kuint(j, "degraded_containers", s->n_degraded);
	json_kuint(j, "module_deaths", s->n_module_deaths);
	json_kobj(j, "updates");
	json_kuint(j, "waiting", s->n_updates_waiting);
	json_kbool(j, "outstanding", updates_outstanding(p));
	json_kuint(j, "sent", st->updates_sent);
	json_kuint(j, "failed", st->updates_failed);
	json_kuint(j, "in_replies", st->updates_in_replies);
	json_end_obj(j);
	json_kobj(j, "counts");
	JSON_MEMBERS(j, st, policy_errors, invariant_breaks, resyncs, moved, unmanaged, adopted,
		     reloads, reloads_refused, store_errors);
	json_end_obj(j);
}

static void put_requests(struct json *j, struct pipeline *p)
{
	const struct pipeline_stats *st = pipeline_stats(p);
	json_karr(j, "requests");
	for (unsigned r = 0; r < N_REQUESTS; r++) {
		const struct request_stats *s = &st->requests[r];
		if (!s->n)
			continue;
		json_obj(j);
		json_kstr(j, "name", request_name(r));
		json_kuint(j, "count", s->n);
		json_kuint(j, "failed", s->failed);
		json_kuint(j, "mean_us", s->total_ns / s->n / 1000);
		json_kuint(j, "max_us", s->max_ns / 1000);
		json_end_obj(j);
	}
	json_end_arr(j);
}

static void put_controllers(struct json *j, struct pipeline *p)
{
	json_karr(j, "controllers");
	for (unsigned i = 0; i < pipeline_n_controllers(p); i++) {
		struct controller_status c;
		pipeline_controller(p, i, &c);
		json_obj(j);
		JSON_MEMBERS(j, &c, name, mode, running);
		put_text(j, "error", c.error);
		JSON_MEMBERS(j, &c, pending, done, partial, failed);
		json_end_obj(j);
	}
	json_end_arr(j);
}

static void put_store(struct json *j, struct pipeline *p, const struct pipeline_status *s)
{
	struct store_stats st;
	store_stats(pipeline_store(p), &st);
	json_kobj(j, "store");
	json_kstr(j, "state", s->store_state);
	JSON_MEMBERS(j, &st, commits, failures, records, file_bytes);
	put_time(j, "last_commit", st.last_commit_ns);
	json_kuint(j, "last_duration_us", st.last_duration_ns / 1000);
	json_end_obj(j);
}

static void put_machine(struct json *j, struct pipeline *p)
{
	struct topo *topo = pipeline_topo(p);
	json_kobj(j, "machine");
	json_kuint(j, "packages", topo_n_units(topo, RP_LEVEL_PACKAGE));
	json_kuint(j, "nodes", topo_n_units(topo, RP_LEVEL_NODE));
	json_kuint(j, "cores", topo_n_units(topo, RP_LEVEL_CORE));
	json_kuint(j, "cpus", topo_n_units(topo, RP_LEVEL_THREAD));
	json_kuint(j, "memory", topo_memory(topo));
	if (topo_n_notes(topo)) {
		json_karr(j, "notes");
		for (uint32_t i = 0; i < topo_n_notes(topo); i++)
			json_str(j, topo_note(topo, i));
		json_end_arr(j);
	}
	json_end_obj(j);
}

/* Writes the connection to the cluster; null: not configured. */
static void put_cluster(struct json *j, struct pipeline *p)
{
	struct cluster_status s;
	pipeline_cluster_status(p, &s);
	if (!put_object(j, "cluster", s.on))
		return;
	json_kbool(j, "connected", s.state && !s.state->unreachable[0]);
	put_text(j, "error",
		 !s.state		   ? "no agent of the cluster is connected"
		 : s.state->unreachable[0] ? s.state->unreachable
					   : NULL);
	put_text(j, "server", s.state ? s.state->server : NULL);
	put_text(j, "node", s.state ? s.state->node : NULL);
	put_text(j, "namespace", s.state ? s.state->ns : NULL);
	put_text(j, "configuration", s.source);
	put_time(j, "published", s.published_ns);
	json_kuint(j, "events_waiting", s.state ? s.state->events_waiting : 0);
	json_kuint(j, "events_lost", s.state ? s.state->events_lost : 0);
	json_karr(j, "written");
	for (unsigned i = 0; s.state && i < s.state->n_written; i++) {
		json_obj(j);
		json_kstr(j, "what", s.state->written[i].what);
		put_time(j, "time", (uint64_t)s.state->written[i].time_s * NS_PER_S);
		json_end_obj(j);
	}
	json_end_arr(j);
	json_karr(j, "problems");
	for (unsigned i = 0; s.state && i < s.state->n_problems; i++)
		json_str(j, s.state->problems[i]);
	json_end_arr(j);
	json_end_obj(j);
}

static void put_evictions(struct json *j, struct pipeline *p)
{
	json_karr(j, "evictions");
	for (const struct eviction *v = pipeline_evictions(p); v; v = v->next) {
		const struct pod *pod = cache_pod_of(pipeline_cache(p), v->pod);
		json_obj(j);
		json_kstr(j, "namespace", pod->ns);
		json_kstr(j, "pod", pod->name);
		json_kstr(j, "module", instance_name(v->owner));
		json_kstr(j, "reason", v->reason);
		json_kstr(j, "state", eviction_state_name(v->state));
		json_kuint(j, "asked", v->asked);
		put_text(j, "answer", v->why);
		json_end_obj(j);
	}
	json_end_arr(j);
}

/* Writes the claims of pods; null: agent.resourceSlices is off. */
static void put_claims(struct json *j, const struct devices_status *s)
{
	if (!put_object(j, "claims", s->claims))
		return;
	json_kuint(j, "known", s->n_claims);
	json_kuint(j, "located_devices", s->n_located);
	json_kuint(j, "unlocated_devices", s->n_unlocated);
	put_text(j, "unlocated", s->unlocated);
	put_text(j, "without_claim", s->unclaimed);
	json_end_obj(j);
}

/* Writes the connection to the agent; null: the configuration does not need one. */
static void put_agent(struct json *j, struct pipeline *p)
{
	struct devices_status s;
	pipeline_devices_status(p, &s);
	if (!put_object(j, "agent", s.on))
		return;
	json_kbool(j, "connected", s.reachable);
	put_text(j, "error", s.reachable ? NULL : s.why_not);
	json_kobj(j, "pods");
	json_kuint(j, "asked", s.n_asked);
	json_kuint(j, "known", s.n_known);
	json_kuint(j, "failed", s.n_failed);
	json_end_obj(j);
	json_kuint(j, "questions", s.asked);
	json_kuint(j, "answers", s.answered);
	json_kuint(j, "failures", s.failed);
	json_kuint(j, "late", s.late);
	put_text(j, "last_failure", s.last_error);
	put_claims(j, &s);
	json_end_obj(j);
}

/* Writes the resource plugins; null: none are registered and none can register. */
static void put_plugins(struct json *j, const struct pipeline *p)
{
	const struct plugin_desc *list;
	uint32_t n = pipeline_plugins(p, &list);
	const struct plugins_counts *c = pipeline_plugins_counts(p);
	if (!put_object(j, "resource_plugins", n || pipeline_plugins_reachable(p)))
		return;
	json_kbool(j, "reachable", pipeline_plugins_reachable(p));
	json_karr(j, "plugins");
	for (uint32_t i = 0; i < n; i++) {
		json_obj(j);
		JSON_MEMBERS(j, &list[i], resource, endpoint, connected);
		json_kbool(j, "hints", list[i].aligns);
		JSON_MEMBERS(j, &list[i], pre_start, reconciles, calls, failures);
		put_text(j, "error", list[i].error);
		json_end_obj(j);
	}
	json_end_arr(j);
	json_kuint(j, "questions", c->asked);
	json_kuint(j, "answers", c->answered);
	json_kuint(j, "failures", c->failed);
	JSON_MEMBERS(j, c, late, reconciled, left_alone, dropped);
	json_end_obj(j);
}

/* Writes the pod feed; null: not configured. */
static void put_feed(struct json *j, const struct pipeline *p)
{
	struct feed_status s;
	const struct admit_counts *c = pipeline_admit_counts(p);
	pipeline_feed_status(p, &s);
	if (!put_object(j, "pod_feed", s.on))
		return;
	json_kbool(j, "current", s.counts.current);
	json_kuint(j, "pods", s.n_pods);
	json_kstr(j, "request_source", s.source);
	JSON_MEMBERS(j, &s.counts, origin, problem, left_out);
	JSON_MEMBERS(j, c, by_feed, by_runtime, waited, late);
	json_end_obj(j);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void put_process(struct json *j)
{
	json_kuint(j, "resident", process_number("VmRSS", 10) * 1024);
	json_kuint(j, "resident_peak", process_number("VmHWM", 10) * 1024);
	json_kuint(j, "resident_anonymous", process_number("RssAnon", 10) * 1024);
	json_kuint(j, "resident_files", process_number("RssFile", 10) * 1024);
	json_kuint(j, "resident_shared", process_number("RssShmem", 10) * 1024);
}

static void put_memory(struct json *j, struct pipeline *p, const struct pipeline_status *s)
{
	const struct mallinfo2 heap = mallinfo2();
	struct store_stats st;
	store_stats(pipeline_store(p), &st);
	json_kobj(j, "memory");
	put_process(j);
	json_kuint(j, "heap_used", heap.uordblks + heap.hblkhd);
	json_kuint(j, "heap_free", heap.fordblks);
	json_kuint(j, "machine", topo_size(pipeline_topo(p)));
	json_kuint(j, "sets", intern_count(cache_sets(pipeline_cache(p))));
	json_kuint(j, "store_file", st.file_bytes);
	json_kuint(j, "containers", s->n_ctrs);
	json_end_obj(j);
}

/* ---- the command ----------------------------------------------------------------------------- */

enum call_result run_status(struct call *call)
{
	struct json *j = &call->j;
	struct pipeline_status s;
	pipeline_status(call->p, &s);
	json_obj(j);
	json_kstr(j, "version", NRI_RP_VERSION);
	json_kint(j, "pid", getpid());
	put_time(j, "started", s.started_ns);
	put_time(j, "now", clock_wall_ns());
	json_kbool(j, "degraded", s.degraded);
	put_reasons(j, call->p);
	put_policy(j, call->p, &s);
	put_annotations(j, call->p);
	put_runtime(j, call->p);
	put_machine(j, call->p);
	put_counts(j, call->p, &s);
	put_requests(j, call->p);
	put_controllers(j, call->p);
	put_extended(j, call->p);
	put_store(j, call->p, &s);
	put_agent(j, call->p);
	put_feed(j, call->p);
	put_plugins(j, call->p);
	put_cluster(j, call->p);
	json_kuint(j, "adjustments", pipeline_n_adjustments(call->p));
	put_evictions(j, call->p);
	if (call->req->flags & CTL_FLAG_MEMORY)
		put_memory(j, call->p, &s);
	json_end_obj(j);
	call->exit = s.degraded ? CTL_DEGRADED : CTL_OK;
	return CALL_DONE;
}
