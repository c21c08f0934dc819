/* SPDX-License-Identifier: Apache-2.0 */
/* State of noderes.c between passes, shared with the files that it calls. */
#pragma once

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
	bool reading; /* a job of the disk worker is running */
	struct series_reading read; /* latest result of the job */
	struct cpu_facts cpu; /* latest result of the job */
	char error[ERR_TEXT_MAX];
	/* path of the inventory of devices, a text of the configuration; NULL: none */
	const char *inventory;
	char *inventory_text; /* content read last */
	struct nr_devices devices;
	char devices_error[ERR_TEXT_MAX];
	struct measure measure;
	struct forecast forecast;
	struct forecast_limits limits;
	bool keep_on_error;
	struct strategy strategy;
	struct kv *labels, *annotations; /* texts of the configuration */
	unsigned n_labels, n_annotations;
	struct host_apps apps;
	int64_t capacity[RP_NR_AMOUNTS], allocatable[RP_NR_AMOUNTS];
	struct rp_nr_measured measured;
	struct rp_nr_aggregated aggregated[AGGREGATES_MAX];
	uint32_t n_aggregated;
	struct nr_result result;
	struct lending lending;
	struct prefixes names; /* prefixes of the names in `result` */
	/* NUMA nodes in the order of calculators' zones */
	uint32_t zone_ids[NR_ZONES_MAX], n_zones;
	struct past past;
	struct outcome outcome;
	uint64_t started_ms, due_ms; /* monotonic; due: the timer's next pass */
	bool settled; /* enough was measured since the start, or the time limit is over */
	struct err failed[NR_CALCULATORS_MAX];
	uint64_t gave_ms[NR_CALCULATORS_MAX]; /* last success, monotonic; 0: never */
	struct nr_cost costs[NR_CALCULATORS_MAX];
	struct instance *calculators[NR_CALCULATORS_MAX];
	unsigned n_calculators;
	uint64_t passes, pass_ms; /* pass_ms: last pass, monotonic; 0: never */
	uint64_t cpu_ns; /* CPU time of passes */
};

/* Labels and annotations of the Node; without a Node those of rp.conf. */
struct texts {
	const struct kv *labels, *annotations;
	unsigned n_labels, n_annotations;
	const struct prefixes *names; /* the site's prefixes of their keys */
};

/* Returns the period over which usage is averaged, in milliseconds. */
static inline uint64_t window_ms(const struct noderes *n)
{
	return 1000 * (uint64_t)n->strategy.values[RP_NR_AGGREGATE_SECONDS];
}

/* Returns true if file pages are counted as used memory. */
static inline bool counts_cached(const struct noderes *n)
{
	return n->strategy.values[RP_NR_MEMORY_COLLECT] == RP_NR_COLLECT_WITH_CACHE;
}
