/* SPDX-License-Identifier: Apache-2.0 */
/* Usage over time of a node or a container: the last readings, from which averages are computed. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/lib/util/err.h"
#include "core/lib/util/fs.h"

#define SERIES_READINGS 32u /* limits how far back averages reach */

struct series_reading {
	uint64_t at_ms; /* monotonic time of the reading */
	uint64_t cpu_ns; /* used CPU time since boot */
	int64_t memory; /* used memory in bytes */
};

/* Readings; all zeros: empty. */
struct series {
	struct series_reading list[SERIES_READINGS]; /* ring buffer of readings */
	uint32_t n, next;
};

/*
 * Adds a reading. A value below the previous one, such as the counter of a restarted container,
 * clears the series. A reading that follows too soon for all readings to span the window is left
 * out, except the second one.
 */
void series_put(struct series *s, const struct series_reading *r, uint64_t window_ms);
/* Returns milli-CPU and bytes over the last window_ms. False: fewer than two readings, or the last
 * one is older than that. */
bool series_average(const struct series *s, uint64_t now_ms, uint64_t window_ms, int64_t *ret_mcpu,
		    int64_t *ret_memory);

/* Rate between two successive readings. */
struct series_rate {
	int64_t mcpu, memory;
};
/* Returns the number of rates within the last window_ms, and the rates, the latest first. */
uint32_t series_rates(const struct series *s, uint64_t now_ms, uint64_t window_ms,
		      struct series_rate ret[SERIES_READINGS]);

/* Reads CPU time of all CPUs since boot and used memory of the machine, from /proc below the root.
 * `cached`: memory that caches files is counted as used. */
int series_read_node(const struct fs_root *root, bool cached, struct series_reading *ret,
		     struct err *err);
/* Parses the texts of these files. -EINVAL: not in the kernel's format. */
int series_parse_stat(const char *text, long ticks_per_second, uint64_t *ret_cpu_ns);
int series_parse_meminfo(const char *text, bool cached, int64_t *ret_used);
