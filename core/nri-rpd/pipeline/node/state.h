/* SPDX-License-Identifier: Apache-2.0 */
/* What noderes.c keeps between passes, for the files that it is in. */
#ifndef PIPELINE_NODE_STATE_H
#define PIPELINE_NODE_STATE_H

#include "core/nri-rpd/noderes/devices.h"
#include "core/nri-rpd/noderes/facts.h"
#include "core/nri-rpd/pipeline/node/apps.h"
#include "core/nri-rpd/pipeline/node/forecast.h"
#include "core/nri-rpd/pipeline/node/lending.h"
#include "core/nri-rpd/pipeline/node/measure.h"
#include "core/nri-rpd/pipeline/node/noderes.h"
#include "core/nri-rpd/pipeline/node/outcome.h"

struct noderes {
	struct loop_timer *timer;
	bool reading; /* a job is under way */
	struct series_reading read; /* its result */
	struct cpu_facts cpu; /* the same */
	char error[ERR_TEXT_MAX];
	const char *inventory; /* the file of devices, the configuration's text; NULL: none */
	char *inventory_text; /* as it was read last */
	struct nr_devices devices;
	char devices_error[ERR_TEXT_MAX];
	struct measure measure;
	struct forecast forecast;
	struct forecast_limits limits;
	bool keep_on_error;
	struct strategy strategy;
	struct kv *labels, *annotations; /* texts are the configuration's */
	unsigned n_labels, n_annotations;
	struct host_apps apps;
	int64_t capacity[RP_NR_AMOUNTS], allocatable[RP_NR_AMOUNTS];
	struct rp_nr_measured measured;
	struct rp_nr_aggregated aggregated[AGGREGATES_MAX];
	uint32_t n_aggregated;
	struct nr_result result;
	struct lending lending;
	struct prefixes names; /* those that result has */
	uint32_t zone_ids[NR_ZONES_MAX],
		n_zones; /* of the machine's nodes, as calculators see them */
	struct past past;
	struct outcome outcome;
	uint64_t started_ms, due_ms; /* monotonic; due: of the timer */
	bool settled; /* since the start enough was measured, or is not to be waited for any more */
	struct err failed[NR_CALCULATORS_MAX];
	uint64_t gave_ms[NR_CALCULATORS_MAX]; /* monotonic; 0: in no pass yet */
	struct nr_cost costs[NR_CALCULATORS_MAX];
	struct instance *calculators[NR_CALCULATORS_MAX];
	unsigned n_calculators;
	uint64_t passes, pass_ms; /* ms: monotonic; 0: never */
	uint64_t cpu_ns; /* that passes have taken */
};

/* Labels and annotations of the Node in the cluster; without one, those of rp.conf. */
struct texts {
	const struct kv *labels, *annotations;
	unsigned n_labels, n_annotations;
	const struct prefixes *names; /* that the site has for their keys */
};

/* How far averages reach back. */
static inline uint64_t window_ms(const struct noderes *n)
{
	return 1000 * (uint64_t)n->strategy.values[RP_NR_AGGREGATE_SECONDS];
}

/* Memory that holds files counts as used. */
static inline bool counts_cached(const struct noderes *n)
{
	return n->strategy.values[RP_NR_MEMORY_COLLECT] == RP_NR_COLLECT_WITH_CACHE;
}

#endif
