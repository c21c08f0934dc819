/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Choice of n CPUs from a set: whole packages, clusters, cache groups and cores before single
 * threads, and CPUs of the preferred priority first.
 *
 * An allocator is a copy of the topology with scratch memory. It does not record which CPUs are
 * taken: the caller owns the sets. Equal input gives equal results; ties are decided for the lower
 * id. After cpualloc_new() no function allocates memory.
 */
#ifndef NRI_RP_LIB_CPUALLOC_H
#define NRI_RP_LIB_CPUALLOC_H

#include <nri-rp/module.h>
#include <nri-rp/set.h>
#include <nri-rp/topology.h>

#ifdef __cplusplus
extern "C" {
#endif

struct cpualloc;

/* Priority of a CPU, or of CPUs that a caller prefers. A smaller number is a higher priority. */
enum cpualloc_prio {
	CPUALLOC_HIGH,
	CPUALLOC_NORMAL,
	CPUALLOC_LOW,
	/* as a preference: any; of a CPU: it is in none of the three priority sets */
	CPUALLOC_NONE,
};

/* Names for section_word(): "high", "normal", "low", "none". */
extern const char *const cpualloc_prio_names[];

/* Steps of an allocation. Single threads are always the last step. */
#define CPUALLOC_IDLE_PACKAGES 0x1u
/* take whole idle clusters; only on machines with two kinds of cores */
#define CPUALLOC_IDLE_CLUSTERS 0x2u
/* take groups of CPUs with a common cache; only for two CPUs or more */
#define CPUALLOC_CACHE_GROUPS 0x4u
#define CPUALLOC_IDLE_CORES 0x8u
/*
 * Selects the rules of older policies instead of a step.
 *
 * Packages: with this flag a package is taken as a whole or not at all. Without it, it suffices
 * that its CPUs of the preferred priority are idle, and these are taken.
 *
 * Single threads: with this flag they come from the package with most CPUs of the preferred
 * priority or lower. Without it a package with just enough is best, and normal CPUs replace high
 * ones where there are none.
 */
#define CPUALLOC_PLAIN_RULES 0x10u

#define CPUALLOC_DEFAULT                                                                           \
	(CPUALLOC_IDLE_PACKAGES | CPUALLOC_IDLE_CLUSTERS | CPUALLOC_CACHE_GROUPS |                 \
	 CPUALLOC_IDLE_CORES)
#define CPUALLOC_PLAIN (CPUALLOC_IDLE_PACKAGES | CPUALLOC_IDLE_CORES | CPUALLOC_PLAIN_RULES)

/* ---- the machine ----------------------------------------------------------------------------- */

/* An online CPU. Dies are numbered within their package, clusters within their die, cores within
 * the machine. */
struct cpualloc_cpu {
	uint32_t cpu;
	uint32_t package, die, cluster, core, node;
	uint32_t kind; /* kind of the core, RP_CORE_… */
	uint32_t epp; /* energy performance preference; RP_EPP_UNKNOWN: unknown */
	uint64_t base_khz; /* base frequency; 0: unknown */
};

/* A cache. A split cache is treated as two caches of a level. CPUs that are not online are
 * ignored. */
struct cpualloc_cache {
	uint32_t level;
	uint32_t pad;
	struct rp_ids cpus;
};

struct cpualloc_machine {
	const struct cpualloc_cpu *cpus; /* in any order, without duplicates */
	const struct cpualloc_cache *caches;
	uint32_t n_cpus, n_caches;
};

/*
 * Creates an allocator, from the host's topology (ctx is rp_host.ctx) or from a description. Both
 * copy what they need. At RP_EVENT_TOPOLOGY create a new allocator. -RP_EINVAL: no CPU, a duplicate
 * CPU, or an id of RP_CPUS_MAX or more; -RP_ENOMEM.
 *
 * Priorities are derived per package. If a package has several base frequencies, CPUs above its
 * lowest one are high and the others low. The same holds for CPUs below its largest energy
 * performance preference. Other CPUs are normal, and efficient cores are low.
 */
int cpualloc_new(const struct rp_host_topology *topo, void *ctx, struct cpualloc **ret);
int cpualloc_new_machine(const struct cpualloc_machine *machine, struct cpualloc **ret);
struct cpualloc *cpualloc_free(struct cpualloc *a); /* accepts NULL; returns NULL */

/* Sets the priority of CPUs, for callers with better knowledge (Speed Select). Efficient cores
 * never become high or normal on a machine with performance cores. -RP_EINVAL: no such priority. */
int cpualloc_set_prio(struct cpualloc *a, enum cpualloc_prio prio, struct rp_ids cpus);

/* Returns the CPUs of a priority (CPUALLOC_NONE: CPUs without a priority), and all online CPUs.
 * Valid as long as the allocator. */
struct rp_ids cpualloc_prio_cpus(const struct cpualloc *a, enum cpualloc_prio prio);
struct rp_ids cpualloc_online(const struct cpualloc *a);

/* ---- allocation and release ------------------------------------------------------------------ */

/*
 * Moves n CPUs from `from` to `ret`, which is overwritten. CPUs of `from` that are not online are
 * neither counted nor moved. -RP_ENOSPC: fewer than n; -RP_EINVAL: unknown preference or flag.
 * After an error both sets are unchanged.
 */
int cpualloc_allocate(struct cpualloc *a, struct rp_idset *from, uint32_t n,
		      enum cpualloc_prio prefer, uint32_t flags, struct rp_idset *ret);

/*
 * Moves n CPUs from `held` to `ret`: the CPUs that an allocation of the remaining number would not
 * choose. CPUs that are not online are never released. Errors are as of cpualloc_allocate().
 */
int cpualloc_release(struct cpualloc *a, struct rp_idset *held, uint32_t n,
		     enum cpualloc_prio prefer, uint32_t flags, struct rp_idset *ret);

#ifdef __cplusplus
}
#endif
#endif
