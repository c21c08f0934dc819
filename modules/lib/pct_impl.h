/* SPDX-License-Identifier: Apache-2.0 */
/* Between cpuclass and priority core turbo. */
#ifndef NRI_RP_LIB_PCT_IMPL_H
#define NRI_RP_LIB_PCT_IMPL_H

#include "modules/lib/cpuclass.h"
#include "modules/lib/pct.h"

#define PCT_NO_CLOS (-1)
#define PCT_CLOS_HIGH 0
#define PCT_CLOS_LOW 3

/*
 * For the worker: how the platform is to be, or (on false) that it is to be as if nobody had touched it. One block of memory.
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

/* *ret is NULL when the classes have nothing to do with Speed Select, or the machine has none. -RP_ENOMEM. */
int32_t pct_new(const struct modhost *h, const struct cpuclass_defs *defs, struct rp_ids allowed,
		struct pct **ret);
struct pct *pct_free(struct pct *p); /* NULL is fine; returns NULL */
bool pct_manages(const struct pct *p);
/* Takes over which CPUs are in which CLOS from another one, that knows what has become of them since. NULL is fine. */
void pct_adopt(struct pct *p, const struct pct *former);
/* A CPU is in a class now. */
void pct_use(struct pct *p, uint32_t class, uint32_t cpu);
/* What CLOS it belongs in, with the other threads of its core; PCT_NO_CLOS: it stays where it is. After pct_count(). */
void pct_count(struct pct *p);
int32_t pct_clos(const struct pct *p, uint32_t cpu);
/* Where it is to be associated. */
struct rp_sst_at pct_at(const struct pct *p, uint32_t cpu);
/* NULL: out of memory. free() frees it. */
struct pct_setup *pct_setup_new(const struct pct *p, const struct cpuclass_defs *defs, bool on);

#endif
