/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Usage of the node and of each container over time: series of readings for averages. Containers
 * are read by the collector, the node by the timer of noderes.c.
 */
#pragma once

#include "core/nri-rpd/cache/cache.h"
#include "core/nri-rpd/noderes/aggregate.h"
#include "core/nri-rpd/noderes/series.h"

struct used;

/* Measured usage of the node and its pods; all zeros: no measurement yet. */
struct measure {
	struct series node;
	struct series_reading last; /* node's reading of the latest aggregate */
	struct aggregates aggregates; /* aggregates of the node */
	struct used *used; /* hash table by container */
	uint64_t round;
};

/* Drops all measurements. */
void measure_forget(struct measure *m);
/* Computes the present usage from the last two readings. `cached`: file pages are counted as used
 * memory. Returns false if the container is not measured, or has not been for too long. */
bool measure_rate(const struct usage *u, bool cached, uint64_t now_ms, int64_t ret[RP_NR_AMOUNTS]);
/* Adds a reading of the node. `others`: usage of pods and applications at that time; NULL: not all
 * of them are measured. */
void measure_machine(struct measure *m, const struct series_reading *r, uint64_t window_ms,
		     const int64_t *others);
/* Adds the latest reading of a container or application to its series. */
void measure_put(struct series *s, const struct usage *u, bool cached, uint64_t window_ms);
/* Adds the collector's latest readings of all containers, and drops series of removed
 * containers. */
void measure_ctrs(struct measure *m, struct cache *cache, bool cached, uint64_t window_ms);
/* Returns a container's series; NULL: not measured. */
const struct series *measure_ctr(const struct measure *m, rp_ctr ctr);
