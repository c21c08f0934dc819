/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds a plan from settings and the topology of the node: allowed, isolated and reserved CPUs,
 * allocators, and a tree of pools without grants (plan_tree.c).
 */
#include <stdlib.h>

#include "modules/lib/private/pct.h"
#include <nri-rp/lib/section.h>
#include "modules/topology-aware/plan.h"

void plan_fini(struct rp_plan *p)
{
	cpualloc_free(p->cpus);
	memalloc_free(p->mem);
	tree_free(p);
	machine_free(p->machine);
	free(p->groups);
	free(p->room);
	free(p->affinity);
	free(p->weight);
	settings_fini(&p->settings);
}

/* ---- the machine ----------------------------------------------------------------------------- */

static int32_t read_cpus(const struct modhost *h, struct rp_plan *p)
{
	struct rp_idset present;
	int32_t r = machine_new(h, &p->machine);
	if (r)
		return r;
	rp_idset_copy(&p->online, rp_ids_of(&p->machine->online));
	modhost_set(h, RP_CPUS_PRESENT, &present);
	modhost_set(h, RP_CPUS_ISOLATED, &p->isolated);
	rp_idset_or(&present, rp_ids_of(&present), rp_ids_of(&p->online));
	p->n_words = present.nw;
	return 0;
}

/*
 * Returns true if cold starts are possible. A container cannot start on movable memory alone, so
 * persistent memory in movable zones rules cold starts out.
 */
static bool cold_start_possible(const struct modhost *h, const struct rp_plan *p)
{
	struct rp_idset nodes, normal, movable;
	memalloc_ids(p->mem, memalloc_of_types(p->mem, MEMALLOC_PMEM), &nodes);
	modhost_set(h, RP_NODES_NORMAL, &normal);
	rp_idset_andnot(&movable, rp_ids_of(&nodes), rp_ids_of(&normal));
	return rp_ids_empty(rp_ids_of(&movable));
}

/*
 * Reads the CPUs of each priority. On hybrid processors the core type decides; otherwise the
 * classification of the CPU allocator.
 */
static void read_priorities(const struct modhost *h, struct rp_plan *p)
{
	struct rp_idset efficient;
	modhost_set(h, RP_CPUS_EFFICIENT, &efficient);
	for (uint32_t i = 0; i < 3; i++)
		rp_idset_copy(&p->prio_cpus[i], cpualloc_prio_cpus(p->cpus, (enum cpualloc_prio)i));
	if (rp_ids_empty(rp_ids_of(&efficient)))
		return;
	rp_idset_copy(&p->prio_cpus[CPUALLOC_LOW], rp_ids_of(&efficient));
	modhost_set(h, RP_CPUS_PERFORMANCE, &p->prio_cpus[CPUALLOC_HIGH]);
}

static int32_t read_machine(const struct modhost *h, struct rp_plan *p)
{
	char why[TA_TEXT_MAX];
	int32_t r = read_cpus(h, p);
	if (r)
		return r;
	r = cpualloc_new(h->topology, h->ctx, &p->cpus);
	if (r)
		return modhost_fail(h, r, "the CPUs of the machine cannot be classified");
	pct_priorities(h, p->settings.classes && pct_is_managed(p->settings.classes), p->cpus);
	r = (p->settings.parity ? memalloc_new_by_size : memalloc_new)(h->topology, h->ctx, &p->mem,
								       why, sizeof why);
	if (r)
		return modhost_fail(h, r, "%s", why);
	p->mem_types = memalloc_all_types(p->mem);
	p->cold_start = cold_start_possible(h, p);
	r = tree_build(h, p);
	if (r)
		return r;
	p->burstable_level = tree_level(p, p->settings.burstable_level);
	p->groups = calloc(p->n_mem_groups, sizeof *p->groups);
	p->room = calloc(p->n_pools, sizeof *p->room);
	p->affinity = calloc(p->n_pools, sizeof *p->affinity);
	p->weight = calloc(p->n_pools, sizeof *p->weight);
	read_priorities(h, p);
	return p->groups && p->room && p->affinity && p->weight ? 0 : modhost_no_memory(h);
}

/* ---- CPUs of the configuration --------------------------------------------------------------- */

static void and_words(uint64_t *dst, const uint64_t *a, struct rp_ids b, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		dst[i] = a[i] & rp_ids_word(b, i);
}

static uint32_t count_words(const struct rp_plan *p, const uint64_t *w)
{
	return rp_ids_count(plan_ids(p, w));
}

void plan_empty_pool(const struct rp_plan *p, struct pool *pool)
{
	memcpy(pool->sharable, pool->cap_sharable, p->n_words * sizeof(uint64_t));
	memcpy(pool->isolated, pool->cap_isolated, p->n_words * sizeof(uint64_t));
	pool->n_sharable = pool->n_cap_sharable;
	pool->n_isolated = count_words(p, pool->isolated);
	pool->generation++;
	pool->shared_own = pool->shared_sum = pool->reserved_own = pool->reserved_sum = 0;
	pool->zero_own = pool->zero_sum = 0;
	memset(pool->n_grants, 0, sizeof pool->n_grants);
	pool->grants = NULL;
	pool->unshared = &pool->grants;
	pool->changed = true;
}

/*
 * Fills the CPU sets of all pools. A single isolated CPU may be reserved and is then not available
 * as an isolated CPU.
 */
static void fill_pools(struct rp_plan *p)
{
	struct rp_idset isolated, sharable;
	rp_idset_andnot(&isolated, rp_ids_of(&p->isolated), rp_ids_of(&p->reserved));
	isolation_narrow(p->h, &p->settings.isolation, &isolated);
	rp_idset_andnot(&sharable, rp_ids_of(&p->allowed), rp_ids_of(&p->isolated));
	rp_idset_andnot(&sharable, rp_ids_of(&sharable), rp_ids_of(&p->reserved));
	for (uint32_t i = 0; i < p->n_pools; i++) {
		struct pool *pool = &p->pools[i];
		and_words(pool->cap_isolated, pool->cpus, rp_ids_of(&isolated), p->n_words);
		and_words(pool->cap_sharable, pool->cpus, rp_ids_of(&sharable), p->n_words);
		and_words(pool->reserved, pool->cpus, rp_ids_of(&p->reserved), p->n_words);
		pool->n_cap_sharable = count_words(p, pool->cap_sharable);
		pool->n_reserved = count_words(p, pool->reserved);
		plan_empty_pool(p, pool);
	}
}

/* Reserves a number of CPUs, previously reserved CPUs first. */
static int32_t reserve_count(const struct modhost *h, struct rp_plan *p, rp_cfg at,
			     const struct reserve_past *past)
{
	uint32_t n = amount_count(&p->settings.reserved);
	struct rp_idset from, kept, others;
	rp_idset_andnot(&from, rp_ids_of(&p->allowed), rp_ids_of(&p->isolated));
	uint32_t n_missing =
		reserve_quantity(past, rp_ids_of(&from), rp_ids_of(&p->online), n, &kept, &others);
	int r = cpualloc_allocate(p->cpus, &others, n_missing, CPUALLOC_NORMAL, CPUALLOC_DEFAULT,
				  &p->reserved);
	if (r)
		return modhost_refuse(h, at,
				      "%u reserved CPUs requested, but only %u are available", n,
				      rp_ids_count(rp_ids_of(&from)));
	rp_idset_or(&p->reserved, rp_ids_of(&p->reserved), rp_ids_of(&kept));
	return 0;
}

/*
 * Reserves the configured CPU set. *ret_awaited: some of its CPUs are offline and expected to
 * return.
 */
static int32_t reserve_set(const struct modhost *h, struct rp_plan *p, rp_cfg at,
			   const struct reserve_past *past, bool *ret_awaited)
{
	char text[TA_TEXT_MAX];
	struct rp_idset wanted, awaited, isolated;
	const struct amount *a = &p->settings.reserved;
	rp_idset_copy(&wanted, rp_ids_of(&a->cpus));
	if (a->kind == AMOUNT_EXCEPT)
		rp_idset_andnot(&wanted, rp_ids_of(&p->allowed), rp_ids_of(&a->cpus));
	int32_t r = amount_check_reserved(h, at, past, rp_ids_of(&wanted), rp_ids_of(&p->allowed),
					  rp_ids_of(&p->online), &awaited);
	*ret_awaited = !rp_ids_empty(rp_ids_of(&awaited));
	if (r)
		return r;
	rp_idset_and(&p->reserved, rp_ids_of(&wanted), rp_ids_of(&p->allowed));
	rp_idset_and(&isolated, rp_ids_of(&p->reserved), rp_ids_of(&p->isolated));
	if (!rp_ids_empty(rp_ids_of(&isolated)) && rp_ids_count(rp_ids_of(&p->reserved)) > 1)
		return modhost_refuse(h, at,
				      "CPUs %s are isolated by the kernel: reserve either one "
				      "isolated CPU or any number of other CPUs",
				      modhost_set_text(rp_ids_of(&isolated), text, sizeof text));
	return 0;
}

int32_t plan_reserve(const struct modhost *h, struct rp_plan *p, const struct reserve_past *past)
{
	bool awaited = past->hotplug;
	rp_cfg at = section_get(h, p->settings.section, "reservedResources.cpu");
	int32_t r = p->settings.reserved.kind == AMOUNT_QUANTITY
			    ? reserve_count(h, p, at, past)
			    : reserve_set(h, p, at, past, &awaited);
	if (!r && rp_ids_empty(rp_ids_of(&p->reserved)) && !awaited)
		r = modhost_refuse(
			h, at, "cannot start without CPU reservation: no CPU is left to reserve");
	if (!r)
		fill_pools(p);
	return r;
}

int32_t plan_build(const struct modhost *h, struct rp_plan *p, const struct reserve_past *past)
{
	p->h = h;
	int32_t r = read_machine(h, p);
	if (r)
		return r;
	amount_pick(&p->settings.available, rp_ids_of(&p->online), &p->allowed);
	rp_idset_and(&p->isolated, rp_ids_of(&p->isolated), rp_ids_of(&p->allowed));
	return plan_reserve(h, p, past);
}
