/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of the daemon itself. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "core/nri-rpd/pipeline/observe/conditions.h"
#include "core/nri-rpd/pipeline/verify/drift.h"
#include "core/nri-rpd/pipeline/observe/events.h"
#include "core/nri-rpd/pipeline/observe/observe.h"
#include "core/nri-rpd/pipeline/node/cluster.h"
#include "core/nri-rpd/pipeline/node/noderes.h"
#include "core/nri-rpd/pipeline/pipeline.h"
#include "core/nri-rpd/pipeline/wait/admit.h"
#include "core/nri-rpd/pipeline/wait/devices.h"
#include "core/nri-rpd/pipeline/wait/plugins.h"
#include "core/nri-rpd/pipeline/request/request.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/str.h"
#include "core/nri-rpd/metrics/host.h"
#include "core/nri-rpd/pipeline/observe/status.h"
#include "core/nri-rpd/pipeline/request/updates.h"

/* ---- requests -------------------------------------------------------------------------------- */

static void add_histogram(struct expo *e, struct family *f, const char *event,
			  const struct request_stats *s)
{
	uint64_t below = 0;
	char labels[128];
	for (unsigned b = 0; b < HISTOGRAM_BUCKETS; b++) {
		below += s->bucket[b];
		if (b < HISTOGRAM_BUCKETS - 1)
			(void)snprintf(labels, sizeof labels, "event=\"%s\",le=\"%.6g\"", event,
				       histogram_le_us[b] / 1e6);
		else
			(void)snprintf(labels, sizeof labels, "event=\"%s\",le=\"+Inf\"", event);
		expo_add(e, f, "_bucket", labels, (double)below);
	}
	(void)snprintf(labels, sizeof labels, "event=\"%s\"", event);
	expo_add(e, f, "_sum", labels, (double)s->total_ns / 1e9);
	expo_add(e, f, "_count", labels, (double)s->n);
}

static void collect_requests(struct expo *e, const struct pipeline_stats *st)
{
	struct family *n = expo_family(e, "nri_rp_requests_total", EXPO_COUNTER,
				       "Requests of the runtime, by event.");
	struct family *failed = expo_family(e, "nri_rp_requests_failed_total", EXPO_COUNTER,
					    "Requests that were answered with an error, by event.");
	struct family *max = expo_family(e, "nri_rp_request_duration_max_seconds", EXPO_GAUGE,
					 "Longest request since the start, by event.");
	struct family *f =
		expo_family(e, "nri_rp_request_duration_seconds", EXPO_HISTOGRAM,
			    "Time from a request of the runtime to its answer, by event.");
	for (unsigned r = 0; r < N_REQUESTS; r++) {
		const struct request_stats *s = &st->requests[r];
		char labels[64];
		(void)snprintf(labels, sizeof labels, "event=\"%s\"", request_name(r));
		expo_add(e, n, "", labels, (double)s->n);
		expo_add(e, failed, "", labels, (double)s->failed);
		if (!s->n)
			continue;
		expo_add(e, max, "", labels, (double)s->max_ns / 1e9);
		add_histogram(e, f, request_name(r), s);
	}
}

static void collect_stats(struct expo *e, struct pipeline *p)
{
	const struct pipeline_stats *st = pipeline_stats(p);
	struct drift_stats drift;
	pipeline_drift(p, &drift);
	const struct expo_row rows[] = {
		{"nri_rp_policy_errors_total", "Callbacks of the policy that failed.",
		 (double)st->policy_errors},
		{"nri_rp_invariant_breaks_total",
		 "Decisions of the policy that were dropped because they violated an invariant.",
		 (double)st->invariant_breaks},
		{"nri_rp_policy_resyncs_total",
		 "Times the policy rebuilt its tables from the cache.", (double)st->resyncs},
		{"nri_rp_updates_sent_total", "Unsolicited container updates.",
		 (double)st->updates_sent},
		{"nri_rp_updates_failed_total", "Container updates that failed in the runtime.",
		 (double)st->updates_failed},
		{"nri_rp_updates_in_replies_total", "Container updates sent in replies.",
		 (double)st->updates_in_replies},
		{"nri_rp_updates_waiting", "Containers waiting for an update.", updates_waiting(p)},
		{"nri_rp_updates_outstanding",
		 "1 while the runtime is applying a batch of updates.", updates_outstanding(p)},
		{"nri_rp_containers_moved_total",
		 "Containers moved by a reload, a rebalancing or a hot-plug.", (double)st->moved},
		{"nri_rp_containers_unmanaged_total",
		 "Containers that run unmanaged because the policy could not place them.",
		 (double)st->unmanaged},
		{"nri_rp_containers_adopted_total",
		 "Containers first reported in a later request than their creation.",
		 (double)st->adopted},
		{"nri_rp_reloads_total", "Configurations that were reloaded or refused.",
		 (double)st->reloads},
		{"nri_rp_reloads_refused_total", "Configurations that were refused.",
		 (double)st->reloads_refused},
		{"nri_rp_drifts_total",
		 "Times a container had other CPUs or memory nodes than assigned.",
		 (double)drift.found},
		{"nri_rp_containers_watched", "Containers whose cgroup is watched.",
		 drift.n_watched},
		{"nri_rp_rebalances_total", "Successful rebalancings by the policy.",
		 (double)st->rebalances},
		{"nri_rp_store_errors_total", "Commits to the store that failed during requests.",
		 (double)st->store_errors},
		{"nri_rp_events_total", "Events recorded for nri-rpctl events.",
		 (double)pipeline_last_event(p)},
	};
	EXPO_ROWS(e, rows);
	collect_requests(e, st);
}

/* ---- state ----------------------------------------------------------------------------------- */

static void collect_state(struct expo *e, struct pipeline *p)
{
	struct pipeline_status s;
	pipeline_status(p, &s);
	const struct expo_row rows[] = {
		{"nri_rp_config_generation", "Number of the active configuration.",
		 (double)s.config_generation},
		{"nri_rp_config_ok",
		 "0 if the files were refused and another configuration is active.", s.config_ok},
		{"nri_rp_safe_mode", "1 if the configured policy could not be used.", s.safe_mode},
		{"nri_rp_degraded", "1 if any condition is degraded: see nri-rpctl status.",
		 s.degraded},
		{"nri_rp_pods", "Pods in the cache.", s.n_pods},
		{"nri_rp_containers", "Containers in the cache.", s.n_ctrs},
		{"nri_rp_containers_degraded", "Containers not placed as requested.", s.n_degraded},
		{"nri_rp_module_deaths", "Recorded crashes of the daemon inside a module.",
		 s.n_module_deaths},
	};
	const struct instance *policy = pipeline_policy(p);
	struct buf labels = BUF_INIT;
	expo_label(&labels, "policy", s.policy);
	expo_label(&labels, "version", policy ? instance_module(policy)->version : "");
	expo_label(&labels, "configured", s.configured_policy);
	expo_add(e,
		 expo_family(e, "nri_rp_policy_info", EXPO_GAUGE,
			     "The active policy and the configured one."),
		 "", buf_text(&labels), 1);
	buf_fini(&labels);
	EXPO_ROWS(e, rows);
}

static void count_condition(const struct condition *c, void *arg)
{
	unsigned *counts = arg;
	for (unsigned i = 0; condition_row(i); i++)
		counts[i] += str_eq(condition_row(i)->id, c->id);
}

static void collect_conditions(struct expo *e, struct pipeline *p)
{
	struct family *f = expo_family(e, "nri_rp_condition", EXPO_GAUGE,
				       "Number of degraded objects of this condition.");
	unsigned counts[CONDITIONS_MAX] = {0};
	(void)conditions_each(p, count_condition, counts);
	for (unsigned i = 0; condition_row(i); i++) {
		struct buf labels = BUF_INIT;
		expo_label(&labels, "condition", condition_row(i)->id);
		expo_add(e, f, "", buf_text(&labels), counts[i]);
		buf_fini(&labels);
	}
}

static void collect_plugins(struct expo *e, struct pipeline *p)
{
	const struct plugin_desc *list;
	uint32_t n = pipeline_plugins(p, &list), n_connected = 0;
	const struct plugins_counts *c = pipeline_plugins_counts(p);
	for (uint32_t i = 0; i < n; i++)
		n_connected += list[i].connected;
	const struct expo_row rows[] = {
		{"nri_rp_resource_plugins", "Registered resource plugins.", n},
		{"nri_rp_resource_plugins_connected", "Connected resource plugins.", n_connected},
		{"nri_rp_resource_plugin_questions_total", "Requests to resource plugins.",
		 (double)c->asked},
		{"nri_rp_resource_plugin_failures_total",
		 "Requests to resource plugins that failed.", (double)c->failed},
		{"nri_rp_resource_plugin_late_total",
		 "Requests to resource plugins without a reply in time.", (double)c->late},
	};
	if (n)
		EXPO_ROWS(e, rows);
}

static void collect_cluster(struct expo *e, struct pipeline *p)
{
	struct cluster_status s;
	pipeline_cluster_status(p, &s);
	const struct expo_row rows[] = {
		{"nri_rp_cluster_connected", "1 if the agent reaches the API server.",
		 s.state && !s.state->unreachable[0]},
		{"nri_rp_cluster_events_waiting", "Events not yet accepted by the API server.",
		 s.state ? s.state->events_waiting : 0},
		{"nri_rp_cluster_events_lost_total", "Events lost since the agent's start.",
		 s.state ? (double)s.state->events_lost : 0},
	};
	if (s.on)
		EXPO_ROWS(e, rows);
}

static void collect_claims(struct expo *e, struct pipeline *p)
{
	struct devices_status s;
	pipeline_devices_status(p, &s);
	const struct expo_row rows[] = {
		{"nri_rp_claims", "Claims of pods that the kubelet reports.", s.n_claims},
		{"nri_rp_claim_devices_located", "Devices of claims whose NUMA node is known.",
		 s.n_located},
		{"nri_rp_claim_devices_unlocated",
		 "Devices of claims whose NUMA node is unknown; they give no hint.", s.n_unlocated},
	};
	if (s.claims)
		EXPO_ROWS(e, rows);
}

static void collect_runtime(struct expo *e, struct pipeline *p)
{
	const struct runtime_state *rt = pipeline_runtime(p);
	const struct admit_counts *admitted = pipeline_admit_counts(p);
	const struct expo_row rows[] = {
		{"nri_rp_runtime_connected", "1 while the runtime is connected.", rt->connected},
		{"nri_rp_runtime_synchronized", "1 if the runtime has sent its list of containers.",
		 rt->synchronized},
		{"nri_rp_runtime_fallback",
		 "1 while runtime.fallback is used because runtime.socket is away.",
		 rt->connected && rt->on_fallback},
		{"nri_rp_runtime_connects_total", "Connections made to the runtime.",
		 (double)rt->connects},
		{"nri_rp_runtime_disconnects_total", "Connections to the runtime that were lost.",
		 (double)rt->disconnects},
		{"nri_rp_admission_waits_total",
		 "Pods that waited for their requests from the cluster.", (double)admitted->waited},
		{"nri_rp_admission_late_total",
		 "Pods whose requests from the cluster did not arrive in time.",
		 (double)admitted->late},
	};
	EXPO_ROWS(e, rows);
	collect_plugins(e, p);
	collect_cluster(e, p);
	collect_claims(e, p);
	if (!rt->connected)
		return;
	struct buf labels = BUF_INIT;
	expo_label(&labels, "name", rt->facts.name);
	expo_label(&labels, "version", rt->facts.version);
	expo_label(&labels, "nri_version", rt->nri_version);
	expo_add(e, expo_family(e, "nri_rp_runtime_info", EXPO_GAUGE, "The connected runtime."), "",
		 buf_text(&labels), 1);
	buf_fini(&labels);
}

static void collect_controllers(struct expo *e, struct pipeline *p)
{
	struct family *running = expo_family(e, "nri_rp_controller_running", EXPO_GAUGE,
					     "1 if the controller is running.");
	struct family *results =
		expo_family(e, "nri_rp_controller_results_total", EXPO_COUNTER,
			    "Results of applying containers' settings, by controller.");
	for (unsigned i = 0; i < pipeline_n_controllers(p); i++) {
		struct controller_status c;
		pipeline_controller(p, i, &c);
		const struct {
			const char *name;
			unsigned n;
		} by_result[] = {{"done", c.done}, {"partial", c.partial}, {"failed", c.failed}};
		char labels[128];
		(void)snprintf(labels, sizeof labels, "controller=\"%s\",mode=\"%s\"", c.name,
			       c.mode);
		expo_add(e, running, "", labels, c.running);
		for (size_t r = 0; r < sizeof by_result / sizeof by_result[0]; r++) {
			(void)snprintf(labels, sizeof labels, "controller=\"%s\",result=\"%s\"",
				       c.name, by_result[r].name);
			expo_add(e, results, "", labels, by_result[r].n);
		}
	}
}

static const char *unit_of(const char *resource)
{
	static const struct {
		const char *end, *unit;
	} rows[] = {{"-cpu", "milli-CPU"}, {"-memory", "bytes"}};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (str_has_suffix(resource, rows[i].end))
			return rows[i].unit;
	return "count";
}

static void collect_calculators(struct expo *e, struct pipeline *p)
{
	struct family *failures =
		expo_family(e, "nri_rp_calculator_failures_total", EXPO_COUNTER,
			    "Calls of a calculator of node resources that failed.");
	struct family *slow = expo_family(e, "nri_rp_calculator_slow_total", EXPO_COUNTER,
					  "Calculator calls that took longer than a second.");
	struct family *seconds = expo_family(e, "nri_rp_calculator_seconds_total", EXPO_COUNTER,
					     "Duration of calculator calls.");
	struct calculator_view c;
	for (unsigned i = 0; pipeline_calculator(p, i, &c); i++) {
		char labels[RP_NAME_MAX + 16];
		(void)snprintf(labels, sizeof labels, "calculator=\"%s\"", c.name);
		expo_add(e, failures, "", labels, (double)c.cost->failures);
		expo_add(e, slow, "", labels, (double)c.cost->slow);
		expo_add(e, seconds, "", labels, (double)c.cost->ns / 1e9);
	}
}

static void collect_node(struct expo *e, struct pipeline *p)
{
	static const char *const amounts[RP_NR_AMOUNTS] = {"cpu\",unit=\"milli-CPU",
							   "memory\",unit=\"bytes"};
	struct noderes_view v;
	char labels[NR_NAME_MAX + 48];
	if (!pipeline_noderes(p, &v) || !v.passes)
		return;
	struct family *values = expo_family(e, "nri_rp_node_resource", EXPO_GAUGE,
					    "Overcommitted resources of the node, as calculated.");
	struct family *reclaimable =
		expo_family(e, "nri_rp_node_reclaimable", EXPO_GAUGE,
			    "Requests of prod pods that they are not expected to use.");
	for (unsigned i = 0; i < v.result->n_values; i++) {
		const struct nr_value *value = &v.result->values[i];
		if (value->reset || value->quantity == RP_NOT_SET)
			continue;
		(void)snprintf(labels, sizeof labels, "resource=\"%s\",unit=\"%s\"", value->name,
			       unit_of(value->name));
		expo_add(e, values, "", labels, (double)value->quantity / 1000);
	}
	for (uint32_t k = 0; k < RP_NR_AMOUNTS; k++) {
		(void)snprintf(labels, sizeof labels, "resource=\"%s\"", amounts[k]);
		if (v.measured->prod_reclaimable[k] != RP_NOT_SET)
			expo_add(e, reclaimable, "", labels,
				 (double)v.measured->prod_reclaimable[k]);
	}
	const struct expo_row rows[] = {
		{"nri_rp_node_resource_degraded", "1 if measurements are missing or too old.",
		 v.measured->degraded != 0},
		{"nri_rp_node_resource_passes_total", "Passes of the calculators.",
		 (double)v.passes},
		{"nri_rp_node_resource_cpu_seconds_total", "CPU time of passes.",
		 (double)v.cpu_ns / 1e9},
		{"nri_rp_node_resource_writes_total",
		 "Times the Node changed enough to be written.", (double)v.writes},
	};
	EXPO_ROWS(e, rows);
	collect_calculators(e, p);
}

static void collect_store(struct expo *e, struct pipeline *p)
{
	struct store_stats st;
	store_stats(pipeline_store(p), &st);
	const struct expo_row rows[] = {
		{"nri_rp_store_commits_total", "Commits to the store.", (double)st.commits},
		{"nri_rp_store_commit_failures_total", "Commits to the store that failed.",
		 (double)st.failures},
		{"nri_rp_store_records_total", "Records written to the store or removed from it.",
		 (double)st.records},
		{"nri_rp_store_file_bytes", "Size of the store's file.", (double)st.file_bytes},
		{"nri_rp_store_last_commit_timestamp_seconds", "Time of the last commit.",
		 (double)st.last_commit_ns / 1e9},
		{"nri_rp_store_last_commit_duration_seconds", "Duration of the last commit.",
		 (double)st.last_duration_ns / 1e9},
	};
	EXPO_ROWS(e, rows);
}

void collect_host(struct expo *e, struct pipeline *p)
{
	collect_state(e, p);
	collect_conditions(e, p);
	collect_runtime(e, p);
	collect_stats(e, p);
	collect_controllers(e, p);
	collect_node(e, p);
	collect_store(e, p);
}

/* ---- the process ----------------------------------------------------------------------------- */

static unsigned open_files(void)
{
	unsigned n = 0;
	_closedir_ DIR *d = opendir("/proc/self/fd");
	while (d && readdir(d))
		n++;
	return n > 3 ? n - 3 : 0; /* ".", ".." and the descriptor of the listing itself */
}

/* Reads fields 22 (start), 23 (virtual size) and 24 (resident pages) of /proc/self/stat. */
static bool read_stat(unsigned long long *start, unsigned long long *size, long long *pages)
{
	char text[1024];
	_fclose_ FILE *f = fopen("/proc/self/stat", "re");
	size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
	text[n] = '\0';
	/* The name of the program may contain blanks and brackets. */
	const char *s = strrchr(text, ')');
	return s && sscanf(s + 1,
			   " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d "
			   "%*d %*d %llu %llu %lld",
			   start, size, pages) == 3;
}

static double boot_time(void)
{
	struct timespec wall, up;
	(void)clock_gettime(CLOCK_REALTIME, &wall);
	(void)clock_gettime(CLOCK_BOOTTIME, &up);
	return (double)(wall.tv_sec - up.tv_sec) + (double)(wall.tv_nsec - up.tv_nsec) / 1e9;
}

void collect_process(struct expo *e)
{
	unsigned long long start, size;
	long long pages;
	struct rusage ru;
	struct rlimit files;
	if (getrusage(RUSAGE_SELF, &ru) == 0)
		expo_single(e, "process_cpu_seconds_total", "CPU time used by the process.",
			    (double)(ru.ru_utime.tv_sec + ru.ru_stime.tv_sec) +
				    (double)(ru.ru_utime.tv_usec + ru.ru_stime.tv_usec) / 1e6);
	if (read_stat(&start, &size, &pages)) {
		expo_single(e, "process_start_time_seconds", "Start time of the process.",
			    boot_time() + (double)start / (double)sysconf(_SC_CLK_TCK));
		expo_single(e, "process_virtual_memory_bytes", "Address space of the process.",
			    (double)size);
		expo_single(e, "process_resident_memory_bytes", "Resident memory of the process.",
			    (double)pages * (double)sysconf(_SC_PAGESIZE));
	}
	expo_single(e, "process_open_fds", "Files the process has open.", open_files());
	if (getrlimit(RLIMIT_NOFILE, &files) == 0)
		expo_single(e, "process_max_fds", "Files the process may have open.",
			    (double)files.rlim_cur);
}
