/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a container was measured to use: a row a figure, the two last readings of it. Filled by the
 * collector on the loop's thread, read by modules and the exposition; nobody decides by it here.
 * Not stored: a restart measures anew.
 */
#ifndef CACHE_USAGE_H
#define CACHE_USAGE_H

#include <stdbool.h>
#include <stdint.h>

enum figure {
	FIG_CPU, /* ns, counted */
	FIG_PERIODS, /* of its CPU quota, counted */
	FIG_THROTTLED_PERIODS, /* those of them that it was stopped in */
	FIG_THROTTLED, /* ns, counted */
	FIG_MEMORY, /* bytes */
	FIG_MEMORY_ANON, /* bytes that no file is behind */
	FIG_MEMORY_KEPT, /* bytes that cannot be had back by dropping files */
	FIG_MEMORY_FILES, /* bytes that can */
	FIG_MEMORY_FAULTS, /* major page faults, counted */
	FIG_OOM_KILLS, /* counted */
	FIG_CPU_WAIT, /* us that any task waited, counted */
	FIG_MEMORY_WAIT,
	FIG_IO_WAIT,
	FIG_IO_READ, /* bytes, counted */
	FIG_IO_WRITTEN,
	FIG_LLC, /* bytes */
	FIG_TRAFFIC, /* bytes, counted */
	N_FIGURES
};

struct reading {
	uint64_t value;
	uint64_t at_ms; /* monotonic; 0: none */
};

struct usage {
	struct reading now[N_FIGURES], before[N_FIGURES];
	uint32_t pressure; /* RP_PRESSURE_…, as told */
	uint8_t streak[4]; /* by bit: readings in a row that speak for a change of it */
};

/* The next reading of a figure. A counter that went back has begun anew: there is no rate then. */
void usage_put(struct usage *u, enum figure f, uint64_t value, uint64_t now_ms);
bool usage_known(const struct usage *u, enum figure f);
/* What a counter grew by a second between its last two readings; false: not known. */
bool usage_rate(const struct usage *u, enum figure f, double *ret);
/* The growth of one counter for each 1000 that the other grew by. */
bool usage_permille(const struct usage *u, enum figure part, enum figure whole, int64_t *ret);

#endif
