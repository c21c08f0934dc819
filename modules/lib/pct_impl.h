/* SPDX-License-Identifier: Apache-2.0 */
/* Between cpuclass and priority core turbo. */
#ifndef NRI_RP_LIB_PCT_IMPL_H
#define NRI_RP_LIB_PCT_IMPL_H

#include "modules/lib/cpuclass.h"
#include "modules/lib/pct.h"

#define PCT_NO_CLOS (-1)
#define PCT_CLOS_HIGH 0
#define PCT_CLOS_LOW 3

#define PCT_NO_CORE UINT32_MAX

struct pct_punit {
	uint32_t package_id, punit_id, supported;
	uint32_t most, least; /* CPUs that can be high: at all, and at the highest frequency */
	bool eligible; /* high CPUs are of use here */
	struct rp_idset cpus; /* all of it */
	struct rp_idset allowed; /* those that may be touched */
};

struct pct_package {
	uint32_t id;
	struct rp_idset allowed; /* of its eligible punits */
};

struct pct_cpu {
	uint32_t core, package, punit; /* core: the lowest CPU of it that may be touched */
	int8_t seen; /* CLOS it was in when the host looked */
	int8_t now; /* CLOS it is in, as far as we know */
	int8_t wanted; /* CLOS by its class */
	int8_t core_wanted; /* by the classes of all threads; of the lowest CPU of a core */
};

struct pct {
	bool managed;
	int8_t clos[CPUCLASS_MAX]; /* by class */
	/* of CPUs in no class with a CLOS; PCT_NO_CLOS: they stay where they are */
	int8_t fallback;
	uint64_t high; /* classes */
	struct rp_idset allowed;
	struct pct_punit *punits;
	struct pct_package *packages;
	uint32_t n_punits, n_packages;
	struct pct_cpu *cpus;
	uint32_t n_cpus;
};

/* PCT_NO_CLOS also for CPUCLASS_NONE. */
static inline int8_t pct_clos_of_class(const struct pct *p, uint32_t class)
{
	return class < CPUCLASS_MAX ? p->clos[class] : PCT_NO_CLOS;
}

/*
 * For the worker: how the platform is to be, or (on false) that it is to be as if nobody had
 * touched it. One block of memory.
 */
struct pct_unit {
	struct rp_sst_at at;
	uint32_t supported;
	uint32_t first, n; /* its CPUs, in cpus */
	/* The worker's own. */
	bool right; /* as wanted */
	int32_t result;
};

struct pct_setup {
	bool on;
	bool used[RP_CLOS_COUNT];
	int64_t min_khz[RP_CLOS_COUNT], max_khz[RP_CLOS_COUNT]; /* as in cpuclass_def */
	uint32_t n;
	struct pct_unit *units;
	uint32_t *cpus;
};

/* *ret is NULL when the classes have nothing to do with Speed Select, or the machine has none.
 * -RP_ENOMEM. */
int32_t pct_new(const struct modhost *h, const struct cpuclass_defs *defs, struct rp_ids allowed,
		struct pct **ret);
struct pct *pct_free(struct pct *p); /* NULL is fine; returns NULL */
bool pct_manages(const struct pct *p);
/*
 * Takes over which CPUs are in which CLOS from another one, that knows what has become of them
 * since the host looked. Where the host has seen something else now, that holds. NULL is fine.
 */
void pct_adopt(struct pct *p, const struct pct *former);
/* A CPU is in a class now. */
void pct_use(struct pct *p, uint32_t class, uint32_t cpu);
/* What CLOS it belongs in, with the other threads of its core; PCT_NO_CLOS: it stays where it is.
 * After pct_count(). */
void pct_count(struct pct *p);
int32_t pct_clos(const struct pct *p, uint32_t cpu);
/* Where it is to be associated. */
struct rp_sst_at pct_at(const struct pct *p, uint32_t cpu);
/* NULL: out of memory. free() frees it. */
struct pct_setup *pct_setup_new(const struct pct *p, const struct cpuclass_defs *defs, bool on);

#endif
