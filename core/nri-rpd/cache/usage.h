/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measured usage of a container: the last two readings of each figure. The collector fills it on
 * the loop's thread, modules and metrics read it. Not stored: a restart measures again.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum figure {
	FIG_CPU, /* used CPU time: a counter in nanoseconds */
	FIG_PERIODS, /* periods of the CPU quota, counter */
	FIG_THROTTLED_PERIODS, /* periods with throttling, counter */
	FIG_THROTTLED, /* throttled time: a counter in nanoseconds */
	FIG_MEMORY, /* used memory in bytes */
	FIG_MEMORY_ANON, /* anonymous memory, bytes */
	FIG_MEMORY_KEPT, /* bytes that dropping file pages does not free */
	FIG_MEMORY_FILES, /* bytes that dropping file pages frees */
	FIG_MEMORY_FAULTS, /* major page faults, counter */
	FIG_OOM_KILLS, /* number of OOM kills, a counter */
	FIG_CPU_WAIT, /* us in which any task waited, counter */
	FIG_MEMORY_WAIT,
	FIG_IO_WAIT,
	FIG_IO_READ, /* bytes read from disks, a counter */
	FIG_IO_WRITTEN,
	FIG_LLC, /* occupied last-level cache in bytes */
	FIG_TRAFFIC, /* memory traffic: a counter in bytes */
	N_FIGURES
};

struct reading {
	uint64_t value;
	uint64_t at_ms; /* monotonic time of the reading; 0: none */
};

struct usage {
	struct reading now[N_FIGURES], before[N_FIGURES];
	uint32_t pressure; /* RP_PRESSURE_…, as last reported */
	uint8_t streak[4]; /* by bit: consecutive readings that support a change */
};

/* Stores the next reading of a figure. A counter that went back has restarted, so there is no rate
 * until the next reading. */
void usage_put(struct usage *u, enum figure f, uint64_t value, uint64_t now_ms);
bool usage_known(const struct usage *u, enum figure f);
/* Returns a counter's growth per second between its last two readings. Returns false if it is not
 * known. */
bool usage_rate(const struct usage *u, enum figure f, double *ret);
/* Returns the growth of `part` for each 1000 of growth of `whole`. Returns false if it is not
 * known. */
bool usage_permille(const struct usage *u, enum figure part, enum figure whole, int64_t *ret);
