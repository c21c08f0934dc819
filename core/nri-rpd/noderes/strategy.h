/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Strategy of overcommitment of a node: fields with defaults, set by the configuration, by the
 * first of its node entries whose labels the node has, and by the Node's annotation and labels. The
 * fields are those of <nri-rp/calculator.h>.
 */
#pragma once

#include <stdbool.h>

#include <nri-rp/calculator.h>

#include "core/nri-rpd/cache/cache.h"
#include "core/lib/conf/conf.h"
#include "core/nri-rpd/noderes/aggregate.h"

#define STRATEGY_ANNOTATION "node.koordinator.sh/colocation-strategy"

/* Origin of a field's value. */
enum strategy_origin {
	STRATEGY_DEFAULT,
	STRATEGY_CONFIG,
	STRATEGY_NODE_CONFIG,
	STRATEGY_NODE_ANNOTATION,
	STRATEGY_NODE_LABEL,
};

struct strategy {
	int64_t values[RP_NR_FIELDS]; /* RP_NOT_SET: not configured */
	enum strategy_origin origins[RP_NR_FIELDS];
	/* metricAggregatePolicy.durations, none longer than AGGREGATE_MAX_MS */
	int64_t durations_ms[AGGREGATES_MAX];
	uint32_t n_durations;
	enum strategy_origin durations_origin;
};

#define STRATEGY_DURATIONS "metricAggregatePolicy.durations"

const char *strategy_field_name(uint32_t field);
/* Sets a field, or all fields, to the default. */
void strategy_default(struct strategy *s, uint32_t field);
void strategy_defaults(struct strategy *s);
/* Takes over the fields of a map and leaves the others unchanged. -EINVAL with a message: a value
 * is out of range, and nothing has changed. */
int strategy_merge(struct strategy *s, rp_cfg map, enum strategy_origin origin, struct err *err);
/* Applies the Node's labels and its annotation, under the site's names. Malformed values are left
 * out. */
void strategy_of_node(struct strategy *s, const struct prefixes *names, const struct kv *labels,
		      unsigned n_labels, const struct kv *annotations, unsigned n_annotations);
/* Returns true if the labels include all of these (a map). An empty map fits no node. */
bool strategy_selects(rp_cfg match_labels, const struct kv *labels, unsigned n_labels);
