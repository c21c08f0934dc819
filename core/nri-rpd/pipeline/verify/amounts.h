/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Comparison of a container's cgroup with its amounts: CPU shares, quota and period, and memory
 * limit, in the forms that runtimes write.
 */
#pragma once

#include <stdbool.h>

#include "core/nri-rpd/cache/cache.h"
#include "core/lib/util/fs.h"

#define AMOUNTS_TEXT_MAX 96u

/* Returns the decided amounts that the runtime has acknowledged; RP_NOT_SET: not to be compared. */
struct cpu_amounts amounts_of(const struct ctr *ctr);
bool amounts_any(const struct cpu_amounts *a);
/* Returns true if `name` is a cgroup file with one of the amounts. */
bool amounts_file(const char *name);
/*
 * Compares the amounts with the cgroup's directories for the controllers cpu and memory (the same
 * one on v2; -1: none). Returns DIFF_… of those that differ. text: the first difference, as
 * "cpu.max 50000 100000 instead of 20000 100000".
 */
uint32_t amounts_other(const struct cpu_amounts *a, int cpu_dir, int memory_dir,
		       char text[AMOUNTS_TEXT_MAX]);
