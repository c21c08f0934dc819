/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Huge pages of a container that gets exclusive CPUs: its CPUs come from one NUMA node that has
 * both the CPUs and the pages, else from one package that has both. With topologyManagerPolicy
 * restricted or single-numa-node a container whose CPUs fit into one node is refused otherwise.
 * With the other policies it gets CPUs as usual, and the memory nodes of its CPUs and the nearest
 * others that the pages need (ctr_memory_for).
 */
#include "modules/static/static.h"

/* Returns the answer of rp_host_cache.hugepages for memory nodes. */
static int32_t huge_check(const struct rp_instance *inst, struct placing *p, struct rp_ids nodes)
{
	const struct modhost *h = &inst->h;
	return RP_HAS(h->cache, hugepages)
		       ? h->cache->hugepages(h->ctx, 0, p->ctr, nodes, p->text, sizeof p->text)
		       : 0;
}

bool place_requests_huge(const struct rp_instance *inst, struct placing *p)
{
	return huge_check(inst, p, rp_ids_none()) != 0;
}

/* Returns true if the memory near these CPUs has the huge pages that the container requests. */
static bool huge_is_near(const struct rp_instance *inst, struct placing *p, struct rp_ids cpus)
{
	struct rp_idset nodes;
	ctr_memory_near(&inst->h, cpus, &nodes);
	return huge_check(inst, p, rp_ids_of(&nodes)) >= 0;
}

/* Collects the candidates of the NUMA nodes that alone have the CPUs and the pages. */
static bool narrow_to_nodes(const struct rp_instance *inst, struct rp_ids candidates,
			    struct placing *p, struct rp_idset *ret, bool *ret_small)
{
	const struct machine *m = inst->plan->machine;
	const struct machine_level_units *nodes = &m->level[MACHINE_NODE];
	rp_idset_clear(ret);
	*ret_small = false;
	for (uint32_t i = 0; i < nodes->n_units; i++) {
		struct rp_idset of;
		*ret_small = *ret_small || nodes->units[i].n_cpus >= p->n;
		rp_idset_clear(&of);
		machine_add_free(&nodes->units[i], candidates, &of);
		if (rp_ids_count(rp_ids_of(&of)) >= p->n && huge_is_near(inst, p, rp_ids_of(&of)))
			rp_idset_or(ret, rp_ids_of(ret), rp_ids_of(&of));
	}
	return !rp_ids_empty(rp_ids_of(ret));
}

int32_t place_with_huge(const struct rp_instance *inst, struct rp_ids candidates, struct placing *p)
{
	const struct rp_plan *plan = inst->plan;
	const struct machine_level_units *packages = &plan->machine->level[MACHINE_PACKAGE];
	enum hint_policy hints = plan->settings.hints;
	struct rp_idset all, near;
	bool small;
	modhost_set(&inst->h, RP_NODES_MEMORY, &all);
	int32_t r = huge_check(inst, p, rp_ids_of(&all));
	if (r <= 0)
		return r ? -RP_ENOSPC : place_take_hinted(plan, candidates, p);
	if (narrow_to_nodes(inst, candidates, p, &near, &small))
		return place_take_hinted(plan, rp_ids_of(&near), p);
	if (small && (hints == HINT_RESTRICTED || hints == HINT_SINGLE_NODE))
		return place_refuse(p, "no NUMA node has %lld CPUs and the huge pages left",
				    (long long)p->n);
	for (uint32_t i = 0; i < packages->n_units; i++) {
		rp_idset_clear(&near);
		machine_add_free(&packages->units[i], candidates, &near);
		if (rp_ids_count(rp_ids_of(&near)) >= p->n &&
		    huge_is_near(inst, p, rp_ids_of(&near)))
			return place_take_hinted(plan, rp_ids_of(&near), p);
	}
	return place_take_hinted(plan, candidates, p);
}
