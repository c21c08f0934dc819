/* SPDX-License-Identifier: Apache-2.0 */
/* Types of the pipeline's status and statistics, for the control socket and metrics. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/nri-rpd/cache/cache.h"
#include "core/nri-rpd/host/instance.h"
#include "core/nri-rpd/pipeline/request/request.h"
#include "core/nri-rpd/pipeline/request/updates.h"

struct pipeline;

/* ---- status, metrics and control socket ------------------------------------------------------ */

struct pipeline_status {
	const char *policy; /* active policy; "none" in safe mode */
	const char *configured_policy;
	bool safe_mode;
	const char *safe_mode_reason; /* why the daemon is in safe mode; "": it is not */
	const char *config_path;
	uint64_t config_generation;
	bool config_undone; /* the active configuration is older than the files */
	bool config_ok; /* the active configuration equals the files read last */
	const char *config_error;
	const char *config_problems; /* all problems of the files, lines; NULL: none */
	/* activation time of the saved configuration if the start used that one; else 0 */
	uint64_t config_kept_ns;
	uint64_t started_ns; /* time of the start, by the wall clock */
	unsigned n_pods, n_ctrs, n_degraded, n_updates_waiting, n_module_deaths;
	const char *store_state; /* "restored", "fresh", or another outcome of the start */
	bool degraded; /* a condition limits the daemon (conditions.h) */
};

struct controller_status {
	const char *name, *mode;
	bool running;
	bool calculator; /* true: a calculator; false: a controller */
	const char *error; /* reason why the controller does not run */
	unsigned pending, done, partial, failed; /* numbers of containers, by their latest report */
};
/* Latest report of a controller about a container: one of RP_APPLY_…, with the reason. */
struct controller_result {
	uint32_t result;
	const char *text;
};

#define HISTOGRAM_BUCKETS 12
struct request_stats {
	uint64_t n, failed;
	uint64_t total_ns, max_ns;
	/* by histogram_le_us[]; the last counts all longer ones */
	uint64_t bucket[HISTOGRAM_BUCKETS];
};
extern const uint32_t histogram_le_us[HISTOGRAM_BUCKETS - 1];

struct pipeline_stats {
	struct request_stats requests[N_REQUESTS];
	uint64_t policy_errors, invariant_breaks, resyncs, updates_sent, updates_failed,
		updates_in_replies, moved, unmanaged, reloads, reloads_refused, store_errors,
		adopted, rebalances;
};

/* Cost of measuring usage, from the collector. */
struct usage_stats {
	bool on;
	unsigned n_ctrs; /* containers in the last round */
	uint64_t rounds, skipped; /* rounds not begun because the previous one was still running */
	uint64_t files, missing; /* missing: containers whose cgroup was not found */
	uint64_t cpu_ns; /* CPU time of the collector's thread */
	uint64_t last_ns; /* duration of the last round */
};
