/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Priority core turbo: the relation between CPU classes and the classes of service (CLOS) of Intel
 * Speed Select. If classes set pctPriority, the platform is set up for them (managed). If they set
 * sstClosID, CPUs are put into CLOSes that an operator has set up (associated). This header answers
 * a policy's questions when it chooses CPUs; cpuclass.h applies the classes.
 *
 * In a power unit (punit) only a limited number of CPUs can be high and still be fast. What is left
 * of this number is its *room*.
 */
#pragma once

#include <stdbool.h>

#include <nri-rp/lib/cpualloc.h>
#include <nri-rp/lib/host.h>

#define PCT_PUNITS_MAX 512u

struct pct;
struct cpuclass_defs;

/* Returns true if classes require the setup of the platform. */
bool pct_is_managed(const struct cpuclass_defs *defs);
/* Returns why the machine has no Speed Select; NULL: it has. */
const char *pct_missing(const struct modhost *h);
/* Logs warnings for the operator about classes with Speed Select, before they are activated. */
void pct_warn(const struct modhost *h, const struct cpuclass_defs *defs);

/* Returns true if the class has high priority: its CPUs get power before others. False for
 * CPUCLASS_NONE. */
bool pct_is_high(const struct pct *p, uint32_t class);
bool pct_has_high(const struct pct *p); /* true if a class has high priority */

/* Suggestions for n more CPUs of a class, in order. Valid as long as the struct pct. */
struct pct_hints {
	bool has_clos, has_avoid;
	struct rp_idset clos; /* free CPUs that are in the class's CLOS already */
	struct rp_idset avoid; /* punits with high CPUs in use */
	bool packages; /* `reserve` has indexes of packages, else of punits */
	uint32_t n_reserve;
	uint16_t reserve[PCT_PUNITS_MAX]; /* places with room for high CPUs, best first */
};
/* Computes which CPUs a container of a CPU class should prefer and avoid. `high`: CPUs of high
 * classes in use, except those of the container. Without Speed Select (p NULL) there are no
 * hints. */
void pct_hint(const struct pct *p, uint32_t class, uint32_t n, struct rp_ids free,
	      struct rp_ids high, struct pct_hints *ret);
/* pct_prefer() keeps only CPUs of `from` that the hints recommend, pct_avoid() removes CPUs that
 * the hints advise against. Both leave the set unchanged and return false if fewer than n CPUs
 * would remain. */
bool pct_prefer(const struct pct *p, const struct pct_hints *hints, uint32_t n,
		struct rp_idset *from);
bool pct_avoid(const struct pct_hints *hints, uint32_t n, struct rp_idset *from);

/* Returns how many CPUs of a class are badly placed: high ones without room, others among high
 * ones. */
uint32_t pct_misses(const struct pct *p, uint32_t class, struct rp_ids high, struct rp_ids cpus);

/* Returns how many CPUs of the class are possible beside `held`, the CPUs of other classes: the
 * amount of the extended resource. */
int64_t pct_capacity(const struct pct *p, uint32_t class, struct rp_ids held);

/*
 * Sets the allocator's priorities of CPUs from Speed Select, where it is used. Other CPUs are
 * unchanged, and all with `managed`, because a policy's classes then change the priorities all the
 * time.
 */
void pct_priorities(const struct modhost *h, bool managed, struct cpualloc *a);
