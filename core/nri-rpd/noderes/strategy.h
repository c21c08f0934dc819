/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The strategy by which a node lends capacity: fields with defaults, set by the configuration, by
 * the first of its node entries whose labels the node has, and by the Node's annotation and labels.
 * The fields are those of <nri-rp/calculator.h>.
 */
#ifndef NODERES_STRATEGY_H
#define NODERES_STRATEGY_H

#include <stdbool.h>

#include <nri-rp/calculator.h>

#include "core/nri-rpd/cache/cache.h"
#include "core/lib/conf/conf.h"
#include "core/nri-rpd/noderes/aggregate.h"

#define STRATEGY_ANNOTATION "node.koordinator.sh/colocation-strategy"

/* Where the value of a field comes from. */
enum strategy_origin {
	STRATEGY_DEFAULT,
	STRATEGY_CONFIG,
	STRATEGY_NODE_CONFIG,
	STRATEGY_NODE_ANNOTATION,
	STRATEGY_NODE_LABEL,
};

struct strategy {
	int64_t values[RP_NR_FIELDS]; /* RP_NOT_SET: nobody said anything */
	enum strategy_origin origins[RP_NR_FIELDS];
	/* metricAggregatePolicy.durations, none longer than AGGREGATE_MAX_MS */
	int64_t durations_ms[AGGREGATES_MAX];
	uint32_t n_durations;
	enum strategy_origin durations_origin;
};

#define STRATEGY_DURATIONS "metricAggregatePolicy.durations"

const char *strategy_field_name(uint32_t field);
/* Nothing was said of it; of any. */
void strategy_default(struct strategy *s, uint32_t field);
void strategy_defaults(struct strategy *s);
/* The fields that a map has, nothing of the others. -EINVAL with a message: a value is out of its
 * range; nothing has changed then. */
int strategy_merge(struct strategy *s, rp_cfg map, enum strategy_origin origin, struct err *err);
/* The labels of Node and its annotation on top, by the names that the site has for them. What is
 * malformed in them is left out. */
void strategy_of_node(struct strategy *s, const struct prefixes *names, const struct kv *labels,
		      unsigned n_labels, const struct kv *annotations, unsigned n_annotations);
/* Do the labels have all of these (a map)? An empty map fits no node. */
bool strategy_selects(rp_cfg match_labels, const struct kv *labels, unsigned n_labels);

/* The value of a key; NULL: there is none. */
const char *kv_text(const struct kv *list, unsigned n, const char *key);

#endif
