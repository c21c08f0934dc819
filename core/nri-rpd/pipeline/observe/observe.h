/* SPDX-License-Identifier: Apache-2.0 */
/* What others show of the pipeline: status, figures, events. */
#ifndef PIPELINE_LOOK_LOOK_H
#define PIPELINE_LOOK_LOOK_H

#include <stdbool.h>
#include <stdint.h>

#include "core/nri-rpd/cache/cache.h"
#include "core/nri-rpd/host/instance.h"
#include "core/nri-rpd/pipeline/request/request.h"
#include "core/nri-rpd/pipeline/request/updates.h"

struct pipeline;

/* ---- for status, metrics and the control socket ---------------------------------------------- */

struct pipeline_status {
	const char *policy; /* in force; "none" in safe mode */
	const char *configured_policy;
	bool safe_mode;
	const char *safe_mode_reason; /* "" */
	const char *config_path;
	uint64_t config_generation;
	bool config_undone; /* what is in force was in force before what the files say */
	bool config_ok; /* what is in force is what the files said last */
	const char *config_error;
	const char *config_problems; /* all that is wrong with them, lines; NULL when nothing is */
	/* the start could not use them: what is in force was so at that time; else 0 */
	uint64_t config_kept_ns;
	uint64_t started_ns; /* wall clock */
	unsigned n_pods, n_ctrs, n_degraded, n_updates_waiting, n_module_deaths;
	const char *store_state; /* "restored", "fresh", or what became of it at the start */
	bool degraded; /* conditions.h has the reasons */
};

struct controller_status {
	const char *name, *mode;
	bool running;
	bool calculator; /* and no controller */
	const char *error; /* why not */
	unsigned pending, done, partial, failed; /* containers */
};
/* What the controller said last of a container: one of RP_APPLY_…, with the reason; false:
 * nothing. */
struct controller_result {
	uint32_t result;
	const char *text;
};

#define HISTOGRAM_BUCKETS 12
struct request_stats {
	uint64_t n, failed;
	uint64_t total_ns, max_ns;
	uint64_t bucket[HISTOGRAM_BUCKETS]; /* of histogram_le_us[], the last is the rest */
};
extern const uint32_t histogram_le_us[HISTOGRAM_BUCKETS - 1];

struct pipeline_stats {
	struct request_stats requests[N_REQUESTS];
	uint64_t policy_errors, invariant_breaks, resyncs, updates_sent, updates_failed,
		updates_in_replies, moved, unmanaged, reloads, reloads_refused, store_errors,
		adopted, rebalances;
};

/* What measuring costs; the collector fills it in. */
struct usage_stats {
	bool on;
	unsigned n_ctrs; /* in the last round */
	uint64_t rounds, skipped; /* skipped: the one before was still under way */
	uint64_t files, missing; /* missing: containers whose cgroup was not found */
	uint64_t cpu_ns; /* of its thread */
	uint64_t last_ns; /* that the last round took */
};

#endif
