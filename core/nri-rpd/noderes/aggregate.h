/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Usage of the node and its system over longer times, as averages and percentiles: a point every 15
 * seconds for half an hour.
 */
#pragma once

#include <stdbool.h>

#include <nri-rp/calculator.h>

#define AGGREGATE_POINTS 128u
/* shortest time between two points; readings that follow sooner are left out */
#define AGGREGATE_STEP_MS 14000u
#define AGGREGATE_MAX_MS (30 * 60 * 1000) /* age at which points are dropped */
#define AGGREGATES_MAX 8u

struct aggregate_point {
	uint64_t at_ms; /* monotonic time of the reading */
	int64_t node[RP_NR_AMOUNTS];
	int64_t system[RP_NR_AMOUNTS]; /* RP_NOT_SET: cannot be separated from pods */
};

/* Recorded points; all zeros: none. */
struct aggregates {
	struct aggregate_point list[AGGREGATE_POINTS]; /* ring buffer of points */
	uint32_t n, next;
};

/* Returns true if the next point is due. */
bool aggregate_due(const struct aggregates *a, uint64_t now_ms);
void aggregate_put(struct aggregates *a, const struct aggregate_point *p);
/* Aggregates the last duration_ms. Returns false if the points span less than half of that time. */
bool aggregate_over(const struct aggregates *a, uint64_t now_ms, int64_t duration_ms,
		    struct rp_nr_aggregated *ret);
