/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cpu-suppress.so: limits the CPU usage of pods that use overcommitted capacity (BE), each second,
 * by the usage of all other pods: with the CPU set or the quota of the BestEffort cgroup. Requires
 * cgroup v2.
 *
 *	rule.c		the ceiling, the CPUs, the quota
 *	answer.c	decisions for given figures
 *	cpu-suppress.c	the module: reads on the worker, decides, writes on the worker
 */
#pragma once

#include <stdbool.h>

#include "modules/lib/private/decide.h"
#include "modules/lib/private/koord.h"

#define SUPPRESS_PERIOD_US 100000
#define SUPPRESS_MIN_CPUS 2u
#define SUPPRESS_MIN_QUOTA_US 2000

/* Usage in milli-CPU. */
struct suppress_usage {
	int64_t capacity, node, reserved;
	int64_t pods, pods_kept; /* all pods; pods that are not BE */
	/* applications outside of pods: all, and the applications that are not BE */
	int64_t apps, apps_kept;
};

/* Returns the CPU that BE pods may use, in milli-CPU; may be negative. min_percent RP_NOT_SET: no
 * minimum. */
int64_t suppress_ceiling(const struct suppress_usage *u, int64_t threshold_percent,
			 int64_t min_percent);

struct suppress_cpu {
	uint32_t cpu, core, socket, node;
};

/* CPU sets that influence the choice. */
struct suppress_sets {
	struct rp_idset lsr; /* exclusive CPUs of LSR pods, which BE pods may share */
	/* exclusive CPUs of LSE pods, CPUs of the system, reserved CPUs */
	struct rp_idset excluded;
	struct rp_idset old; /* present CPUs of BE pods */
};

/* Chooses CPUs from a list in any order. False: no choice is possible, so the present set remains;
 * also if out of memory. */
bool suppress_cpus(const struct suppress_cpu *list, uint32_t n, const struct suppress_sets *sets,
		   int64_t ceiling, struct rp_idset *ret);
/* Returns the quota per SUPPRESS_PERIOD_US; current -1: no limit. */
int64_t suppress_quota(int64_t ceiling, int64_t capacity, int64_t current);

extern const struct rp_decision suppress_decision;
