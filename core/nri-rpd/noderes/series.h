/* SPDX-License-Identifier: Apache-2.0 */
/* Usage over time of a node, a container: the last readings, of which averages are made. */
#ifndef NODERES_SERIES_H
#define NODERES_SERIES_H

#include <stdbool.h>
#include <stdint.h>

#include "core/lib/util/err.h"
#include "core/lib/util/fs.h"

#define SERIES_READINGS 32u /* more are not kept: averages reach back as far as these do */

struct series_reading {
	uint64_t at_ms; /* monotonic */
	uint64_t cpu_ns; /* counted */
	int64_t memory; /* bytes */
};

/* All zeros: empty. */
struct series {
	struct series_reading list[SERIES_READINGS]; /* a ring */
	uint32_t n, next;
};

/*
 * What goes backwards, as the counter of a container that began anew, forgets what was before.
 * Readings that follow the last one so closely that all of them would not reach back over the
 * window are left out; the second one never is.
 */
void series_put(struct series *s, const struct series_reading *r, uint64_t window_ms);
/* Milli-CPU and bytes over the last window_ms. False: two readings are needed, and the last one not
 * older than that. */
bool series_average(const struct series *s, uint64_t now_ms, uint64_t window_ms, int64_t *ret_mcpu,
		    int64_t *ret_memory);

/* Between one reading and the next one. */
struct series_rate {
	int64_t mcpu, memory;
};
/* The rates within the last window_ms, the latest first. Returns their number. */
uint32_t series_rates(const struct series *s, uint64_t now_ms, uint64_t window_ms,
		      struct series_rate ret[SERIES_READINGS]);

/* CPU time of all CPUs since boot and memory in use of the machine, from /proc below the root.
 * `cached`: memory that holds files counts as used. */
int series_read_node(const struct fs_root *root, bool cached, struct series_reading *ret,
		     struct err *err);
/* The same from the files' texts. -EINVAL: they are not what the kernel writes. */
int series_parse_stat(const char *text, long ticks_per_second, uint64_t *ret_cpu_ns);
int series_parse_meminfo(const char *text, bool cached, int64_t *ret_used);

#endif
