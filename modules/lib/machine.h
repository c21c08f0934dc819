/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The online CPUs by levels: packages, dies, NUMA nodes, last-level caches, cores and threads. A
 * level consists of units, a unit is a list of CPUs. It is a copy of the host's topology; create a
 * new one at RP_EVENT_TOPOLOGY. Nodes without CPUs are omitted.
 *
 * A level unknown to the host is one unit for the machine, for dies one per package, for cores one
 * per CPU. A CPU may have no cache.
 */
#ifndef NRI_RP_LIB_MACHINE_H
#define NRI_RP_LIB_MACHINE_H

#include <stdbool.h>

#include <nri-rp/lib/host.h>

enum machine_level {
	MACHINE_PACKAGE,
	MACHINE_DIE,
	MACHINE_NODE,
	MACHINE_CACHE, /* last-level cache */
	MACHINE_CORE,
	MACHINE_THREAD,
	MACHINE_N_LEVELS
};

#define MACHINE_NOWHERE UINT32_MAX /* the CPU is in no unit of this level */

struct machine_unit {
	uint32_t id; /* the kernel's number; for dies, cores and threads the lowest CPU */
	uint32_t n_cpus;
	const uint32_t *cpus; /* CPUs of the unit in ascending order */
	/* The set of these CPUs without its first `word` words, which are zero; n_words long. */
	const uint64_t *words;
	uint32_t word, n_words;
};

struct machine_level_units {
	struct machine_unit *units; /* units ordered by their lowest CPU */
	uint32_t n_units;
	uint32_t *unit_of; /* index: CPU id; index into units, or MACHINE_NOWHERE */
	uint32_t *cpus; /* memory for the lists of CPUs of the units */
	uint64_t *words; /* memory for the words of the units */
};

/* A unit with the criteria that order it in a list. */
struct machine_rank {
	uint32_t group, n_free, id, index;
};

struct machine {
	uint32_t n_cpus;
	uint32_t cpu_end; /* limit of CPU ids */
	uint32_t threads; /* average number of CPUs per core, rounded down, at least 1 */
	int hybrid; /* true: performance and efficient cores */
	struct rp_idset online, isolated;
	struct machine_level_units level[MACHINE_N_LEVELS];
	/* Preallocated memory for callers that order units, so that an allocation cannot fail. */
	struct machine_rank *ranks; /* scratch space for ranks of the units of any level */
	uint32_t *place[MACHINE_N_LEVELS]; /* a number for each unit of a level */
};

/* Creates a copy of the topology. -RP_ENOMEM, or -RP_EINVAL for a machine without CPUs; both with a
 * message. */
int32_t machine_new(const struct modhost *h, struct machine **ret);
struct machine *machine_free(struct machine *m); /* returns NULL */

/* Returns the unit of a CPU, or NULL. */
static inline const struct machine_unit *machine_unit_of(const struct machine *m,
							 enum machine_level level, uint32_t cpu)
{
	if (cpu >= m->cpu_end || m->level[level].unit_of[cpu] == MACHINE_NOWHERE)
		return NULL;
	return &m->level[level].units[m->level[level].unit_of[cpu]];
}

/* Returns the number of the unit's CPUs in `free`. */
uint32_t machine_count_free(const struct machine_unit *u, struct rp_ids free);
/* Adds the unit's CPUs that are in `free` to *ret. */
void machine_add_free(const struct machine_unit *u, struct rp_ids free, struct rp_idset *ret);
/* Stores the CPUs of cores whose online threads are all in `from`. */
void machine_whole_cores(const struct machine *m, struct rp_ids from, struct rp_idset *ret);
/* Stores all CPUs of the units of a level that contain a CPU of `cpus`. */
void machine_surround(const struct machine *m, enum machine_level level, struct rp_ids cpus,
		      struct rp_idset *ret);
/* Stores the lowest CPU of each core among these CPUs. */
void machine_one_per_core(const struct machine *m, struct rp_ids cpus, struct rp_idset *ret);
/* Stores the CPUs of NUMA nodes, which are selected by number. */
void machine_cpus_of(const struct machine *m, struct rp_ids nodes, struct rp_idset *ret);
/* Stores the numbers of the NUMA nodes of these CPUs. */
void machine_nodes_of(const struct machine *m, struct rp_ids cpus, struct rp_idset *ret);
/*
 * Chooses `more` CPUs of `free` for a container with the CPUs `own`, one by one, each the nearest
 * to the container's CPUs so far: first other threads of its cores, then CPUs of its NUMA nodes,
 * then of its packages; among equally near ones those of idle cores. -RP_ENOSPC: `free`, which must
 * not contain `own`, has fewer CPUs.
 */
int32_t machine_grow(const struct machine *m, struct rp_ids own, struct rp_ids free, uint32_t more,
		     struct rp_idset *ret);
/*
 * Chooses n of the free CPUs, of which there must be enough: first from partly used cores, whole
 * cores as late as possible, and CPU 0 last. Cores are ordered by their lowest CPU; distances
 * between CPUs are not considered.
 */
void machine_pack(const struct machine *m, struct rp_ids free, uint32_t n, struct rp_idset *ret);
/* Stores the free CPUs of the unit of a level that has the fewest of them, but at least n. False:
 * no unit has n. */
bool machine_tightest(const struct machine *m, enum machine_level level, struct rp_ids free,
		      uint32_t n, struct rp_idset *ret);
/*
 * Leaves of the free CPUs those of the best place for n of them: the NUMA node with the fewest free
 * CPUs that are enough, of equal ones that of the fullest package, then the lowest. With `cores`,
 * nodes that have n CPUs in whole cores come first. Where no node has room: as few nodes as
 * possible, of one package if one has room. Returns true if one node has room.
 */
bool machine_narrow(const struct machine *m, struct rp_idset *free, uint32_t n, bool cores);

#endif
