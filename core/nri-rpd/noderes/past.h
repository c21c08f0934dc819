/* SPDX-License-Identifier: Apache-2.0 */
/* What each resource was calculated as in the last hour, and since when what stands on the Node
 * stands there. */
#ifndef NODERES_PAST_H
#define NODERES_PAST_H

#include "core/nri-rpd/noderes/result.h"

#define PAST_POINTS 60u
#define PAST_STEP_MS 60000u

struct past_row {
	char *name;
	int64_t list[PAST_POINTS]; /* thousandths; RP_NOT_SET: none; a ring */
	uint32_t n, next;
	int64_t written; /* on the Node; RP_NOT_SET: none */
	uint64_t written_ms; /* monotonic; since then */
};

/* All zeros: empty. */
struct past {
	struct past_row *rows;
	unsigned n;
	uint64_t point_ms; /* of the last point of all rows; 0: none */
};

/* After a pass; what could not be noted for want of memory is missing. */
void past_note(struct past *p, const struct nr_result *result, const struct nr_result *node,
	       uint64_t now_ms);
/* NULL: there is none of that name. */
const struct past_row *past_find(const struct past *p, const char *name);
/* The i-th from the oldest. */
int64_t past_point(const struct past_row *row, uint32_t i);
void past_fini(struct past *p);

#endif
