/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cpu-suppress.so: how much CPU the pods that use lent capacity (BE) may have, by what all others
 * use, every second: as a set of CPUs or as a quota of the cgroup that all BestEffort pods are in.
 * cgroup v2 alone.
 *
 *	rule.c		how much, which CPUs, what quota
 *	answer.c	the same of given figures
 *	cpu-suppress.c	the module: read on the worker, decide, write on the worker
 */
#ifndef CPU_SUPPRESS_H
#define CPU_SUPPRESS_H

#include <stdbool.h>

#include "modules/lib/decide.h"
#include "modules/lib/koord.h"

#define SUPPRESS_PERIOD_US 100000
#define SUPPRESS_MIN_CPUS 2u
#define SUPPRESS_MIN_QUOTA_US 2000

/* Milli-CPU. */
struct suppress_usage {
	int64_t capacity, node, reserved;
	int64_t pods, pods_kept; /* of all pods, of those that are not BE */
	int64_t apps, apps_kept; /* the same of applications outside of pods */
};

/* min_percent: RP_NOT_SET where there is none. May be below 0. */
int64_t suppress_ceiling(const struct suppress_usage *u, int64_t threshold_percent,
			 int64_t min_percent);

struct suppress_cpu {
	uint32_t cpu, core, socket, node;
};

/* Sets of CPUs that matter. */
struct suppress_sets {
	struct rp_idset lsr; /* of LSR pods alone: BE pods may share them */
	struct rp_idset excluded; /* of LSE pods and of the system, and reserved ones */
	struct rp_idset old; /* in force */
};

/* Which CPUs. list: by no order. False: nothing can be picked, the old set stays. -RP_ENOMEM is
 * told the same way. */
bool suppress_cpus(const struct suppress_cpu *list, uint32_t n, const struct suppress_sets *sets,
		   int64_t ceiling, struct rp_idset *ret);
/* What quota, of SUPPRESS_PERIOD_US; current -1: there is no limit. */
int64_t suppress_quota(int64_t ceiling, int64_t capacity, int64_t current);

extern const struct rp_decision suppress_decision;
/* For answers, which need no more of an instance. */
const struct modhost *suppress_host(const struct rp_instance *inst);

#endif
