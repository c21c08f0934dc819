/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the node and its system have used over longer times, as averages and percentiles: a point
 * every 15 seconds for half an hour.
 */
#ifndef NODERES_AGGREGATE_H
#define NODERES_AGGREGATE_H

#include <stdbool.h>

#include <nri-rp/calculator.h>

#define AGGREGATE_POINTS 128u
#define AGGREGATE_STEP_MS 14000u /* points that follow more closely are left out */
#define AGGREGATE_MAX_MS (30 * 60 * 1000) /* points reach back that far */
#define AGGREGATES_MAX 8u

struct aggregate_point {
	uint64_t at_ms; /* monotonic */
	int64_t node[RP_NR_AMOUNTS];
	int64_t system[RP_NR_AMOUNTS]; /* RP_NOT_SET: it cannot be told from pods */
};

/* All zeros: none. */
struct aggregates {
	struct aggregate_point list[AGGREGATE_POINTS]; /* a ring */
	uint32_t n, next;
};

/* Is it time for the next point? */
bool aggregate_due(const struct aggregates *a, uint64_t now_ms);
void aggregate_put(struct aggregates *a, const struct aggregate_point *p);
/* Over the last duration_ms. False: the points in it do not span half of it. */
bool aggregate_over(const struct aggregates *a, uint64_t now_ms, int64_t duration_ms,
		    struct rp_nr_aggregated *ret);

#endif
