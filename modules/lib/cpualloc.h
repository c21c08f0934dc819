/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Choosing n CPUs out of a set: whole packages, clusters, cache groups and cores before single
 * threads, those of the wanted priority first.
 *
 * An allocator is a picture of the machine and some scratch memory. It holds no state of what is
 * taken: the sets are the caller's. The same question always has the same answer; ties go to the
 * lower id. Nothing is allocated after cpualloc_new().
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

/* Priority of a CPU, and the one that is preferred. The order matters: a smaller number is a higher
 * priority. */
enum cpualloc_prio {
	CPUALLOC_HIGH,
	CPUALLOC_NORMAL,
	CPUALLOC_LOW,
	/* as a preference: do not care; as a CPU's own: it is in none of the three sets */
	CPUALLOC_NONE,
};

/* "high", "normal", "low", "none"; for section_word(). */
extern const char *const cpualloc_prio_names[];

/* Steps that an allocation may take; single threads are always the last one. */
#define CPUALLOC_IDLE_PACKAGES 0x1u
#define CPUALLOC_IDLE_CLUSTERS 0x2u /* machines with two kinds of cores only */
#define CPUALLOC_CACHE_GROUPS 0x4u /* for two CPUs or more */
#define CPUALLOC_IDLE_CORES 0x8u
/*
 * Not a step but the rules of an older generation of policies. A package is taken as a whole or not
 * at all; without this flag its CPUs of the preferred priority are what has to be idle and is
 * taken. And single threads come from the package with most CPUs of the preferred priority or
 * lower, whereas without it one with just enough is best, and normal CPUs stand in for high ones
 * where there are none.
 */
#define CPUALLOC_PLAIN_RULES 0x10u

#define CPUALLOC_DEFAULT                                                                           \
	(CPUALLOC_IDLE_PACKAGES | CPUALLOC_IDLE_CLUSTERS | CPUALLOC_CACHE_GROUPS |                 \
	 CPUALLOC_IDLE_CORES)
#define CPUALLOC_PLAIN (CPUALLOC_IDLE_PACKAGES | CPUALLOC_IDLE_CORES | CPUALLOC_PLAIN_RULES)

/* ---- the machine ----------------------------------------------------------------------------- */

/* An online CPU. Dies count within their package, clusters within their die, cores in the whole
 * machine. */
struct cpualloc_cpu {
	uint32_t cpu;
	uint32_t package, die, cluster, core, node;
	uint32_t kind; /* RP_CORE_… */
	uint32_t epp; /* RP_EPP_UNKNOWN: not known */
	uint64_t base_khz; /* 0: not known */
};

/* A cache; split caches of a level are two of them. CPUs that are not online are ignored. */
struct cpualloc_cache {
	uint32_t level;
	uint32_t pad;
	struct rp_ids cpus;
};

struct cpualloc_machine {
	const struct cpualloc_cpu *cpus; /* in any order, no CPU twice */
	const struct cpualloc_cache *caches;
	uint32_t n_cpus, n_caches;
};

/*
 * Both copy what they need. The first reads the host's topology (ctx is rp_host.ctx); when
 * RP_EVENT_TOPOLOGY comes, make a new one. -RP_EINVAL: no CPU, a CPU twice, or a CPU of RP_CPUS_MAX
 * or more; -RP_ENOMEM.
 *
 * Priorities are made up for each package: CPUs above its lowest base frequency are high and the
 * others low, if it has several; in the same way those below its largest energy performance
 * preference; normal otherwise. Efficient cores are low.
 */
int cpualloc_new(const struct rp_host_topology *topo, void *ctx, struct cpualloc **ret);
int cpualloc_new_machine(const struct cpualloc_machine *machine, struct cpualloc **ret);
struct cpualloc *cpualloc_free(struct cpualloc *a); /* NULL is fine; returns NULL */

/* Replaces the priority of CPUs, for those who know more (Speed Select). Efficient cores never get
 * into the high and normal sets of a machine that has performance cores. -RP_EINVAL: not a
 * priority. */
int cpualloc_set_prio(struct cpualloc *a, enum cpualloc_prio prio, struct rp_ids cpus);

/* CPUs of a priority (CPUALLOC_NONE: those of no priority) and all online ones. Valid as long as
 * the allocator. */
struct rp_ids cpualloc_prio_cpus(const struct cpualloc *a, enum cpualloc_prio prio);
struct rp_ids cpualloc_online(const struct cpualloc *a);

/* ---- questions ------------------------------------------------------------------------------- */

/*
 * Moves n CPUs from `from` to `ret` (overwritten). CPUs of `from` that are not online are left
 * alone and do not count. -RP_ENOSPC: there are fewer than n; -RP_EINVAL: unknown preference or
 * flag. `from` and `ret` change only on success.
 */
int cpualloc_allocate(struct cpualloc *a, struct rp_idset *from, uint32_t n,
		      enum cpualloc_prio prefer, uint32_t flags, struct rp_idset *ret);

/*
 * Takes n CPUs away from `held`, those an allocation of the rest would not choose, and puts them
 * into `ret`. CPUs that are not online are never given back. The same errors.
 */
int cpualloc_release(struct cpualloc *a, struct rp_idset *held, uint32_t n,
		     enum cpualloc_prio prefer, uint32_t flags, struct rp_idset *ret);

#ifdef __cplusplus
}
#endif
#endif
