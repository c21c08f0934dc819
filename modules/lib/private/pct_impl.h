/* SPDX-License-Identifier: Apache-2.0 */
/* Interface between cpuclass and priority core turbo. */
#pragma once

#include "modules/lib/private/cpuclass.h"
#include "modules/lib/private/pct.h"

#define PCT_NO_CLOS (-1)
#define PCT_CLOS_HIGH 0
#define PCT_CLOS_LOW 3

#define PCT_NO_CORE UINT32_MAX

struct pct_punit {
	uint32_t package_id, punit_id, supported;
	/* numbers of CPUs that can be high: at all, and at the highest frequency */
	uint32_t most, least;
	bool eligible; /* the punit can have high CPUs */
	struct rp_idset cpus; /* all CPUs of the punit */
	struct rp_idset allowed; /* CPUs that may be changed */
};

struct pct_package {
	uint32_t id;
	struct rp_idset allowed; /* CPUs of its eligible punits that may be changed */
};

struct pct_cpu {
	uint32_t core, package, punit; /* core: its lowest CPU that may be changed */
	int8_t seen; /* CLOS when the host read it */
	int8_t now; /* present CLOS, as far as known */
	int8_t wanted; /* CLOS of the CPU's class */
	/* CLOS of the core by the classes of all its threads; valid for the core's lowest CPU */
	int8_t core_wanted;
};

struct pct {
	bool managed;
	int8_t clos[CPUCLASS_MAX]; /* CLOS of each class */
	/* CLOS for CPUs in classes without one; PCT_NO_CLOS: unchanged */
	int8_t fallback;
	uint64_t high; /* set of classes with high priority */
	struct rp_idset allowed;
	struct pct_punit *punits;
	struct pct_package *packages;
	uint32_t n_punits, n_packages;
	struct pct_cpu *cpus;
	uint32_t n_cpus;
};

/* Returns the CLOS of a class; PCT_NO_CLOS also for CPUCLASS_NONE. */
static inline int8_t pct_clos_of_class(const struct pct *p, uint32_t class)
{
	return class < CPUCLASS_MAX ? p->clos[class] : PCT_NO_CLOS;
}

/*
 * The wanted state of the platform for the worker; on false: the state before any setup. One block
 * of memory.
 */
struct pct_unit {
	struct rp_sst_at at;
	uint32_t supported;
	uint32_t first, n; /* the punit's CPUs: cpus[first … first + n - 1] */
	/* Used by the worker only. */
	bool right; /* the punit is already in the wanted state */
	int32_t result;
};

struct pct_setup {
	bool on;
	bool used[RP_CLOS_COUNT];
	/* frequencies of each CLOS, as in struct cpuclass_def */
	int64_t min_khz[RP_CLOS_COUNT], max_khz[RP_CLOS_COUNT];
	uint32_t n;
	struct pct_unit *units;
	uint32_t *cpus;
};

/* Creates the Speed Select part of classes. *ret is NULL if they do not use it, or the machine has
 * none. -RP_ENOMEM. */
int32_t pct_new(const struct modhost *h, const struct cpuclass_defs *defs, struct rp_ids allowed,
		struct pct **ret);
struct pct *pct_free(struct pct *p); /* accepts NULL; returns NULL */
bool pct_manages(const struct pct *p);
/*
 * Copies the present CLOS of CPUs from the previous struct, which is more recent than what the host
 * read before. Where the host has now read a new value, this value is used. Accepts NULL.
 */
void pct_adopt(struct pct *p, const struct pct *former);
/* Records that a CPU is in a class now. */
void pct_use(struct pct *p, uint32_t class, uint32_t cpu);
/* pct_clos() returns the CLOS for a CPU and the other threads of its core; PCT_NO_CLOS: unchanged.
 * Requires pct_count() after changes. */
void pct_count(struct pct *p);
int32_t pct_clos(const struct pct *p, uint32_t cpu);
/* Returns the hardware place of a CPU. */
struct rp_sst_at pct_at(const struct pct *p, uint32_t cpu);
/* Creates a state for the worker; the caller frees it with free(). NULL: out of memory. */
struct pct_setup *pct_setup_new(const struct pct *p, const struct cpuclass_defs *defs, bool on);
