/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration section as written: balloon types, load classes, CPU classes. Nothing here
 * depends on the topology; plan.h adds that. */
#pragma once

#include <stdbool.h>

#include <nri-rp/policy.h>

#include "modules/balloons/plan_tree.h"
#include "modules/lib/private/amount.h"
#include <nri-rp/lib/cpualloc.h>
#include "modules/lib/private/cpuclass.h"
#include <nri-rp/lib/glob.h>
#include "modules/lib/private/match.h"
#include <nri-rp/lib/memalloc.h>
#include "modules/lib/private/mempolicy.h"
#include "modules/lib/private/schedclass.h"

#define BALLOON_TYPE_NAME_MAX 1023u
#define BALLOON_NAME_MAX 160u /* largest size of a name in texts, in bytes; longer names are cut */

/* Kinds of CPU sets that a balloon type prefers or avoids. */
enum device_kind {
	DEVICE_PATH,
	DEVICE_RESERVED,
	DEVICE_ISOLATED,
	DEVICE_PERFORMANCE,
	DEVICE_EFFICIENT,
	DEVICE_LOAD, /* CPUs slowed by a load class; these change with the balloons */
	DEVICE_POD, /* devices of the container for which a balloon is created */
};

struct device {
	enum device_kind kind;
	uint32_t load; /* DEVICE_LOAD: index of the class */
	const char *path; /* DEVICE_PATH: path; DEVICE_POD: glob of resource names */
	struct rp_idset cpus; /* CPUs near the device; unused for DEVICE_LOAD and DEVICE_POD */
};

struct load_class {
	const char *name;
	enum tree_level level; /* level of the units, TREE_CORE or TREE_L2 */
	bool in_balloon; /* CPUs of one balloon also slow each other */
};

enum irq_mode { IRQ_NORMAL, IRQ_SINK, IRQ_ISOLATE };

struct indexes {
	uint32_t *list;
	uint32_t n;
};

struct type {
	const char *name;
	uint32_t index;
	rp_cfg at; /* configuration node; NULL: built-in type */
	struct texts namespaces;
	struct exprs match;
	const char *group_by; /* expression by which members are grouped; "": no grouping */
	int64_t min_cpus, max_cpus, min_balloons,
		max_balloons; /* max_balloons 0: no limit; max_cpus 0: no limit, < 0: no CPUs */
	int64_t core; /* number of CPUs by which balloons grow; 1, or the CPUs of a core */
	bool prefer_new, spread_pods, per_namespace, balancing, spread_cores, hide_threads;
	bool pin_memory, show_containers, prefer_isolated, balance_parts;
	enum cpualloc_prio priority;
	const char *core_type; /* "", "performance" or "efficient" */
	struct texts close_paths, irq_claim;
	enum irq_mode irq_mode;
	struct indexes loads;
	struct indexes close, far; /* indexes of devices */
	bool overloads_itself; /* at least one load class has in_balloon set */
	int share; /* enum tree_level, or -1: no sharing of idle CPUs */
	uint32_t memory_types; /* MEMALLOC_… flags; 0: any type near the CPUs */
	const char *cpu_class_name;
	uint32_t cpu_class; /* index of the CPU class, or CPUCLASS_NONE */
	int32_t sched; /* index, or SCHEDCLASS_NONE */
	int32_t mempolicy; /* index, or MEMPOLICY_NONE */
	struct texts part_names;
	struct indexes parts; /* indexes of component types; not empty: composite type */
};

struct rp_plan;

extern const struct rp_schema balloons_schema;
/* Reads the section into the parts of the plan that do not depend on the topology. Errors name
 * the place in the configuration. */
int32_t config_read(const struct modhost *h, rp_cfg section, struct rp_plan *p);
