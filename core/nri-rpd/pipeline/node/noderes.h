/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The node's resources to lend: measured on a timer, calculated by the calculators of rp.conf, put
 * on the Node (lending.h). Nothing of it is on the way of a request.
 */
#ifndef PIPELINE_NODERES_H
#define PIPELINE_NODERES_H

#include "core/nri-rpd/noderes/past.h"
#include "core/nri-rpd/noderes/result.h"
#include "core/nri-rpd/noderes/strategy.h"

struct host_apps;
struct pipeline;
struct noderes;
struct usage;

struct noderes_view {
	bool enabled; /* by the strategy */
	const struct strategy *strategy;
	const struct rp_nr_measured *measured;
	const struct rp_nr_aggregated *aggregated;
	uint32_t n_aggregated;
	const int64_t *capacity, *allocatable; /* by RP_NR_… */
	const struct nr_result *result; /* of the last pass, with messages */
	const struct nr_result *node; /* what of it stands on the Node, or is to be written there */
	const struct past *past;
	uint64_t passes, writes; /* a write: what stands has changed */
	uint64_t cpu_ns; /* that passes have taken of the loop's thread */
	bool settling; /* not enough was measured since the start: what the Node has stays */
	uint64_t age_ms; /* of the last pass */
	const char *error; /* of measuring; "" */
};

/* 0 or -ENOMEM. */
int noderes_init(struct pipeline *p);
void noderes_fini(struct pipeline *p);
/* -EINVAL with the place: strategy or node entries are not valid. Nothing has changed. */
int noderes_check(const struct conf *conf, struct err *err);
/* Another configuration is in force. */
void noderes_configure(struct pipeline *p);
/* The agent has told another Node: results are put on that one at once, and calculated anew
 * soon. */
void noderes_node_changed(struct pipeline *p);
/* Calculators are about to end. */
void noderes_stop(struct pipeline *p);
/* False: there are no calculators. */
bool pipeline_noderes(const struct pipeline *p, struct noderes_view *ret);
struct calculator_view {
	const char *name, *error; /* error: of the last pass; "": none */
	const struct nr_cost *cost;
};
/* The zones that calculators have told of, "node-K" of type "Node". False: none. */
bool noderes_zones(const struct pipeline *p, const struct rp_zone_sink *sink);
/* In the order in which they are asked. False: there are no more. */
bool pipeline_calculator(const struct pipeline *p, unsigned i, struct calculator_view *ret);
/* Applications outside of pods, which the collector reads; what it has read of one of a generation
 * of the list goes here. NULL: the list is another one by now. */
const struct host_apps *pipeline_host_apps(const struct pipeline *p);
struct usage *pipeline_app_usage(struct pipeline *p, uint32_t generation, uint32_t index);

struct texts;

struct texts node_texts(const struct pipeline *p);

#endif
