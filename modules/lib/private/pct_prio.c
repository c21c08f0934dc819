/* SPDX-License-Identifier: Apache-2.0 */
/* Priorities of CPUs for the allocator, derived from Speed Select. */
#include "modules/lib/private/pct.h"

/* The CPUs of each CLOS. */
struct classes {
	struct rp_idset cpus[RP_CLOS_COUNT];
};

static void sort_out(const struct modhost *h, const struct rp_sst_punit *u, struct classes *ret)
{
	for (uint32_t i = 0; i < RP_CLOS_COUNT; i++)
		rp_idset_clear(&ret->cpus[i]);
	RP_IDS_EACH (cpu, u->cpus) {
		uint32_t clos = h->speedselect->clos_of(h->ctx, cpu);
		if (clos < RP_CLOS_COUNT)
			rp_idset_add(&ret->cpus[clos], cpu);
	}
}

static void by_turbo(struct cpualloc *a, const struct classes *c)
{
	for (uint32_t i = 0; i < RP_CLOS_COUNT; i++)
		(void)cpualloc_set_prio(a, i < 2 ? CPUALLOC_HIGH : CPUALLOC_LOW,
					rp_ids_of(&c->cpus[i]));
}

/* Returns the rank of a CLOS in the distribution of power; smaller is earlier. */
static uint32_t turn_of(const struct rp_sst_punit *u, uint32_t clos)
{
	return u->priority == RP_SST_ORDERED ? clos : u->clos[clos].weight;
}

/* Makes the first CLOS in use high and the last one low. */
static void by_power(struct cpualloc *a, const struct rp_sst_punit *u, const struct classes *c)
{
	uint32_t first = UINT32_MAX, last = 0;
	for (uint32_t i = 0; i < RP_CLOS_COUNT; i++) {
		uint32_t turn = turn_of(u, i);
		if (rp_ids_empty(rp_ids_of(&c->cpus[i])))
			continue;
		first = turn < first ? turn : first;
		last = turn > last ? turn : last;
	}
	for (uint32_t i = 0; i < RP_CLOS_COUNT; i++) {
		uint32_t turn = turn_of(u, i);
		(void)cpualloc_set_prio(a,
					first == last	? CPUALLOC_NORMAL
					: turn == first ? CPUALLOC_HIGH
					: turn == last	? CPUALLOC_LOW
							: CPUALLOC_NORMAL,
					rp_ids_of(&c->cpus[i]));
	}
}

static void by_classes(const struct modhost *h, struct cpualloc *a, const struct rp_sst_punit *u)
{
	struct classes c;
	sort_out(h, u, &c);
	if (u->enabled & RP_SST_TF)
		by_turbo(a, &c);
	else
		by_power(a, u, &c);
}

static void by_base(struct cpualloc *a, const struct rp_sst_punit *u)
{
	if (rp_ids_empty(u->bf_cpus))
		return;
	(void)cpualloc_set_prio(a, CPUALLOC_NORMAL, u->cpus);
	(void)cpualloc_set_prio(a, CPUALLOC_HIGH, u->bf_cpus);
}

/* Returns true if a package has classes of service in use. Its base frequencies are then
 * meaningless. */
static bool package_has_classes(const struct modhost *h, uint32_t package)
{
	const struct rp_host_speedselect *s = h->speedselect;
	for (uint32_t i = 0; i < s->n_punits(h->ctx); i++) {
		struct rp_sst_punit u = {.size = sizeof u};
		if (s->punit(h->ctx, i, &u) == 0 && u.package_id == package &&
		    (u.enabled & (RP_SST_CP | RP_SST_TF)))
			return true;
	}
	return false;
}

void pct_priorities(const struct modhost *h, bool managed, struct cpualloc *a)
{
	const struct rp_host_speedselect *s = h->speedselect;
	for (uint32_t i = 0; s && !managed && i < s->n_punits(h->ctx); i++) {
		struct rp_sst_punit u = {.size = sizeof u};
		if (s->punit(h->ctx, i, &u))
			continue;
		if (u.enabled & (RP_SST_TF | RP_SST_CP))
			by_classes(h, a, &u);
		else if ((u.enabled & RP_SST_BF) && !package_has_classes(h, u.package_id))
			by_base(a, &u);
	}
}
