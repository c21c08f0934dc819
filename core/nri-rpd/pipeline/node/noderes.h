/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Overcommitted resources of the node (batch and mid resources): measures usage on a timer, runs
 * the calculators of rp.conf, and publishes their results on the Node (lending.h). Runs outside of
 * requests.
 */
#pragma once

#include "core/nri-rpd/noderes/past.h"
#include "core/nri-rpd/noderes/result.h"
#include "core/nri-rpd/noderes/strategy.h"

struct host_apps;
struct pipeline;
struct noderes;
struct usage;

struct noderes_view {
	bool enabled; /* enabled by the strategy */
	const struct strategy *strategy;
	const struct rp_nr_measured *measured;
	const struct rp_nr_aggregated *aggregated;
	uint32_t n_aggregated;
	const int64_t *capacity, *allocatable; /* amounts of the Node, by RP_NR_… */
	const struct nr_result *result; /* result of the last pass, with messages */
	/* part of the result that is on the Node or is to be written there */
	const struct nr_result *node;
	const struct past *past;
	uint64_t passes, writes; /* writes: changes of `node` */
	uint64_t cpu_ns; /* CPU time of the loop's thread in passes */
	/* too little has been measured since the start, so the Node's entries are unchanged */
	bool settling;
	uint64_t age_ms; /* time since the last pass */
	const char *error; /* error of the measurement; "": none */
};

/* Creates the state of overcommitment; schedules no pass. 0 or -ENOMEM. */
int noderes_init(struct pipeline *p);
void noderes_fini(struct pipeline *p);
/* Checks the strategy and its entries for nodes. Returns 0, or -EINVAL with the position in err.
 * Changes nothing. */
int noderes_check(const struct conf *conf, struct err *err);
/* Applies a new configuration. */
void noderes_configure(struct pipeline *p);
/* Publishes the results on a new Node at once, and schedules a new pass. */
void noderes_node_changed(struct pipeline *p);
/* Disarms the timer, before the calculators end. */
void noderes_stop(struct pipeline *p);
/* Fills a view for status and metrics. Returns false if there are no calculators. */
bool pipeline_noderes(const struct pipeline *p, struct noderes_view *ret);
struct calculator_view {
	const char *name, *error; /* error: of the last pass; "": none */
	const struct nr_cost *cost;
};
/* Writes the calculators' zones, "node-K" of type "Node". Returns false if there are none. */
bool noderes_zones(const struct pipeline *p, const struct rp_zone_sink *sink);
/* Fills the view of calculator number i, in the order of the passes. Returns false beyond the
 * last. */
bool pipeline_calculator(const struct pipeline *p, unsigned i, struct calculator_view *ret);
/* Returns the applications outside of pods, which the collector reads; pipeline_app_usage() returns
 * where a reading goes. NULL: the list has another generation by now. */
const struct host_apps *pipeline_host_apps(const struct pipeline *p);
struct usage *pipeline_app_usage(struct pipeline *p, uint32_t generation, uint32_t index);

/* Labels and annotations of the Node (state.h). */
struct texts;

struct texts node_texts(const struct pipeline *p);
