/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The online CPUs by levels: packages, dies, NUMA nodes, last-level caches, cores and threads. A
 * level has units, a unit is a list of CPUs. A copy of the host's topology, to be made anew at
 * RP_EVENT_TOPOLOGY. Nodes without CPUs are left out.
 *
 * A level that the host knows nothing of is one unit (dies: one a package, cores: one a CPU); a CPU
 * may be in no cache.
 */
#ifndef NRI_RP_LIB_MACHINE_H
#define NRI_RP_LIB_MACHINE_H

#include <stdbool.h>

#include "modules/lib/host.h"

enum machine_level {
	MACHINE_PACKAGE,
	MACHINE_DIE,
	MACHINE_NODE,
	MACHINE_CACHE, /* the last level of cache */
	MACHINE_CORE,
	MACHINE_THREAD,
	MACHINE_N_LEVELS
};

#define MACHINE_NOWHERE UINT32_MAX /* "in no unit of this level" */

struct machine_unit {
	uint32_t id; /* the kernel's number; of dies, cores and threads the lowest CPU */
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
	/* Memory for whoever lists units in an order of its own, so that an allocation cannot fail
	 * for want of it. */
	struct machine_rank *ranks; /* for the units of any level */
	uint32_t *place[MACHINE_N_LEVELS]; /* for the units of the level: position in such a list */
};

/* -RP_ENOMEM, or -RP_EINVAL for a machine without CPUs; both with a message. */
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
/* All CPUs of the units of a level that `cpus` touches. */
void machine_surround(const struct machine *m, enum machine_level level, struct rp_ids cpus,
		      struct rp_idset *ret);
/* Of each core the lowest of these CPUs. */
void machine_one_per_core(const struct machine *m, struct rp_ids cpus, struct rp_idset *ret);
/* The CPUs of NUMA nodes by their numbers. */
void machine_cpus_of(const struct machine *m, struct rp_ids nodes, struct rp_idset *ret);
/* Numbers of the NUMA nodes of these CPUs. */
void machine_nodes_of(const struct machine *m, struct rp_ids cpus, struct rp_idset *ret);
/*
 * Adds `more` CPUs of `free` to a container's own: always the one nearest to what it has by then,
 * which is a thread of a core of its own, then one of its NUMA nodes, then of its packages, and of
 * equally near ones a thread of an idle core. -RP_ENOSPC when `free`, which holds none of its own,
 * has fewer.
 */
int32_t machine_grow(const struct machine *m, struct rp_ids own, struct rp_ids free, uint32_t more,
		     struct rp_idset *ret);
/*
 * n of the free CPUs, of which there have to be as many: broken cores are used up first, whole
 * cores stay whole as long as they can, and CPU 0 is given away last. Cores are walked by their
 * lowest CPU; nothing but that makes CPUs near to each other.
 */
void machine_pack(const struct machine *m, struct rp_ids free, uint32_t n, struct rp_idset *ret);
/* The free CPUs of the level's unit that has the fewest of them, n at least. false: none has as
 * many. */
bool machine_tightest(const struct machine *m, enum machine_level level, struct rp_ids free,
		      uint32_t n, struct rp_idset *ret);

#endif
