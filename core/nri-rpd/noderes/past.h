/* SPDX-License-Identifier: Apache-2.0 */
/* Calculated amounts of each resource in the last hour, and the time since which the present amount
 * is on the Node. */
#pragma once

#include "core/nri-rpd/noderes/result.h"

#define PAST_POINTS 60u
#define PAST_STEP_MS 60000u

struct past_row {
	char *name;
	int64_t list[PAST_POINTS]; /* ring; thousandths; RP_NOT_SET: none */
	uint32_t n, next;
	int64_t written; /* amount on the Node; RP_NOT_SET: none */
	uint64_t written_ms; /* monotonic time of that write */
};

/* History of all resources; all zeros: empty. */
struct past {
	struct past_row *rows;
	unsigned n;
	uint64_t point_ms; /* time of the last point of all rows; 0: none */
};

/* Records the result of a pass. Without memory, points are missing. */
void past_note(struct past *p, const struct nr_result *result, const struct nr_result *node,
	       uint64_t now_ms);
/* Returns the row of a resource; NULL: none. */
const struct past_row *past_find(const struct past *p, const char *name);
/* Returns the i-th point from the oldest. */
int64_t past_point(const struct past_row *row, uint32_t i);
void past_fini(struct past *p);
