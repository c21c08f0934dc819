/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the node and each of its containers use over time: the last readings, of which averages are
 * made. Containers are read by the collector, the node by the pass (noderes.h).
 */
#ifndef PIPELINE_MEASURE_H
#define PIPELINE_MEASURE_H

#include "core/nri-rpd/cache/cache.h"
#include "core/nri-rpd/noderes/aggregate.h"
#include "core/nri-rpd/noderes/series.h"

struct used;

/* All zeros: nothing was measured yet. */
struct measure {
	struct series node;
	struct series_reading last; /* of the node, that the last point of aggregates was made of */
	struct aggregates aggregates; /* of the node */
	struct used *used; /* by container */
	uint64_t round;
};

void measure_forget(struct measure *m); /* all of it */
/* What was read of one last. `cached`: memory that holds files counts, too. */
/* What it uses as of its last two readings. False: it was not measured, or is not any more. */
bool measure_rate(const struct usage *u, bool cached, uint64_t now_ms, int64_t ret[RP_NR_AMOUNTS]);
/* The next reading of the node, and of what pods and applications use meanwhile; others NULL: not
 * all of them are measured. */
void measure_machine(struct measure *m, const struct series_reading *r, uint64_t window_ms,
		     const int64_t *others);
void measure_put(struct series *s, const struct usage *u, bool cached, uint64_t window_ms);
/* What the collector has read since; containers that are gone are forgotten. */
void measure_ctrs(struct measure *m, struct cache *cache, bool cached, uint64_t window_ms);
/* NULL: nothing was measured. */
const struct series *measure_ctr(const struct measure *m, rp_ctr ctr);

#endif
