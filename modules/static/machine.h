/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The online CPUs as the allocator walks them: packages, NUMA nodes, last-level caches and cores, each as a list of CPUs. A copy of the
 * host's topology, made anew when that changes. Nodes without CPUs are left out.
 */
#ifndef STATIC_MACHINE_H
#define STATIC_MACHINE_H

#include "modules/lib/host.h"

enum machine_level { MACHINE_PACKAGE, MACHINE_NODE, MACHINE_CACHE, MACHINE_CORE, MACHINE_N_LEVELS };

#define MACHINE_NOWHERE UINT32_MAX /* "in no unit of this level" */

struct machine_unit {
	uint32_t id; /* the kernel's; a core's lowest CPU */
	uint32_t n_cpus;
	const uint32_t *cpus; /* ascending */
};

struct machine_level_units {
	struct machine_unit *units; /* by lowest CPU */
	uint32_t n_units;
	uint32_t *unit_of; /* by CPU id: index into units, or MACHINE_NOWHERE */
	uint32_t *cpus; /* what the units' lists point into */
};

/* A unit with what decides its place in a list. */
struct machine_rank {
	uint32_t group, n_free, id, index;
};

struct machine {
	uint32_t n_cpus;
	uint32_t cpu_end; /* all CPU ids are below this */
	uint32_t threads; /* CPUs per core on average, rounded down, at least 1 */
	int hybrid; /* it has performance and efficient cores */
	struct rp_idset online, isolated;
	struct machine_level_units level[MACHINE_N_LEVELS];
	/* Memory for the allocator's lists, so that an allocation can not fail for want of it. */
	struct machine_rank *ranks; /* for the units of the largest level */
	uint32_t *place[2]; /* for the packages, for the nodes: position in their list */
};

/* -RP_ENOMEM, -RP_EINVAL for a machine without CPUs; both with a message. */
int32_t machine_new(const struct modhost *h, struct machine **ret);
struct machine *machine_free(struct machine *m); /* returns NULL */

static inline const struct machine_unit *machine_unit_of(const struct machine *m,
							 enum machine_level level, uint32_t cpu)
{
	if (cpu >= m->cpu_end || m->level[level].unit_of[cpu] == MACHINE_NOWHERE)
		return NULL;
	return &m->level[level].units[m->level[level].unit_of[cpu]];
}

uint32_t machine_count_free(const struct machine_unit *u, struct rp_ids free);
/* Adds those of the unit's CPUs that are in `free`. */
void machine_add_free(const struct machine_unit *u, struct rp_ids free, struct rp_idset *ret);
/* The cores all of whose online threads are in `from`. */
void machine_whole_cores(const struct machine *m, struct rp_ids from, struct rp_idset *ret);
/* All threads of the cores that `cpus` touches. */
void machine_with_siblings(const struct machine *m, struct rp_ids cpus, struct rp_idset *ret);
/* Numbers of the NUMA nodes of these CPUs. */
void machine_nodes_of(const struct machine *m, struct rp_ids cpus, struct rp_idset *ret);

#endif
