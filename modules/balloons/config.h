/* SPDX-License-Identifier: Apache-2.0 */
/* A section as it is written: types of balloons, loads, classes. */
#ifndef BALLOONS_CONFIG_H
#define BALLOONS_CONFIG_H

#include <stdbool.h>

#include <nri-rp/policy.h>

#include "modules/balloons/plan_tree.h"
#include "modules/lib/amount.h"
#include "modules/lib/cpualloc.h"
#include "modules/lib/cpuclass.h"
#include "modules/lib/glob.h"
#include "modules/lib/match.h"
#include "modules/lib/memalloc.h"
#include "modules/lib/mempolicy.h"
#include "modules/lib/schedclass.h"

#define BALLOON_TYPE_NAME_MAX 1023u
#define BALLOON_NAME_MAX 160u /* of a type, and of a balloon with its number */

/* What CPUs can be near to, or far from. */
enum device_kind {
	DEVICE_PATH,
	DEVICE_RESERVED,
	DEVICE_ISOLATED,
	DEVICE_PERFORMANCE,
	DEVICE_EFFICIENT,
	DEVICE_LOAD, /* CPUs that a load class makes slow; they change with the balloons */
	DEVICE_POD, /* what the kubelet gave the container that a balloon is made for */
};

struct device {
	enum device_kind kind;
	uint32_t load; /* of a LOAD: the class */
	const char *path; /* of a PATH; of a POD: a glob of resources */
	struct rp_idset cpus; /* not of a LOAD or POD */
};

struct load_class {
	const char *name;
	enum tree_level level; /* CORE or L2 */
	bool in_balloon; /* CPUs of one balloon should not load each other either */
};

enum irq_mode { IRQ_NORMAL, IRQ_SINK, IRQ_ISOLATE };

struct indexes {
	uint32_t *list;
	uint32_t n;
};

struct type {
	const char *name;
	uint32_t index;
	rp_cfg at; /* NULL: built in */
	struct texts namespaces;
	struct exprs match;
	const char *group_by; /* "": none */
	int64_t min_cpus, max_cpus, min_balloons,
		max_balloons; /* max 0: no limit; max_cpus < 0: nothing fits */
	bool prefer_new, spread_pods, per_namespace, balancing, spread_cores, hide_threads;
	bool pin_memory, show_containers, prefer_isolated, balance_parts;
	enum cpualloc_prio priority;
	const char *core_type; /* "", "performance", "efficient" */
	struct texts close_paths, irq_claim;
	enum irq_mode irq_mode;
	struct indexes loads;
	struct indexes close, far; /* devices */
	bool overloads_itself; /* one of its load classes counts within a balloon */
	int share; /* enum tree_level, or -1 */
	uint32_t memory_types; /* MEMALLOC_…; 0: any near */
	const char *cpu_class_name;
	uint32_t cpu_class; /* CPUCLASS_NONE: none */
	int32_t sched; /* or SCHEDCLASS_NONE */
	int32_t mempolicy; /* or MEMPOLICY_NONE */
	struct texts part_names;
	struct indexes parts; /* types; some: it is composite */
};

struct rp_plan;

extern const struct rp_schema balloons_schema;
/* Section → plan without its machine part. Errors name the place. */
int32_t config_read(const struct modhost *h, rp_cfg section, struct rp_plan *p);

#endif
