/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a container's cgroup has the amounts that it was given: CPU shares, quota and period, and
 * the memory limit, as runtimes write them.
 */
#ifndef PIPELINE_LOOK_AMOUNTS_H
#define PIPELINE_LOOK_AMOUNTS_H

#include <stdbool.h>

#include "core/nri-rpd/cache/cache.h"
#include "core/lib/util/fs.h"

#define AMOUNTS_TEXT_MAX 96u

/* RP_NOT_SET: nothing was given, and anything will do. */
struct amounts {
	int64_t shares, quota, period, mem_limit;
};

/* What was decided of a container, and the runtime has. */
struct amounts amounts_of(const struct ctr *ctr);
bool amounts_any(const struct amounts *a);
/* Is that one of the files that are read? */
bool amounts_file(const char *name);
/*
 * DIFF_…: what is otherwise in the cgroup's directories for the controllers cpu and memory (the
 * same one on v2; -1: it is not there). text: the first of it for people, as in "cpu.max 50000
 * 100000 instead of 20000 100000".
 */
uint32_t amounts_other(const struct amounts *a, int cpu_dir, int memory_dir,
		       char text[AMOUNTS_TEXT_MAX]);

#endif
