/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Devices of a container that gets exclusive CPUs, as the kubelet and the container's claims report
 * them. A topologyManagerPolicy other than none takes the CPUs from the NUMA nodes of the devices.
 * If these have too few, restricted and single-numa-node refuse the container, and best-effort
 * takes the missing CPUs from other nodes.
 */
#include <stdio.h>

#include "modules/static/static.h"

#define RESOURCES_MAX 64u

/* Collects the CPUs of the nodes of the container's devices. Returns false if it has none there. */
static bool devices_cpus(const struct rp_instance *inst, rp_ctr ctr, struct rp_idset *ret)
{
	const struct modhost *h = &inst->h;
	struct rp_idset of;
	rp_idset_clear(ret);
	for (uint32_t i = 0; RP_HAS(h->cache, pod_resource) && i < RESOURCES_MAX; i++) {
		struct rp_pod_resource_info r = {.size = sizeof r};
		if (h->cache->pod_resource(h->ctx, ctr, i, &r))
			break;
		machine_cpus_of(inst->plan->machine, r.nodes, &of);
		rp_idset_or(ret, rp_ids_of(ret), rp_ids_of(&of));
	}
	return !rp_ids_empty(rp_ids_of(ret));
}

int32_t place_near_devices(const struct rp_instance *inst, struct rp_ids candidates,
			   struct placing *p)
{
	const struct rp_plan *plan = inst->plan;
	enum hint_policy hints = plan->settings.hints;
	struct rp_idset near, rest;
	if (hints == HINT_NONE || !devices_cpus(inst, p->ctr, &near))
		return place_with_huge(inst, candidates, p);
	rp_idset_and(&near, rp_ids_of(&near), candidates);
	uint32_t n = (uint32_t)p->n, n_near = rp_ids_count(rp_ids_of(&near));
	if (n_near >= n)
		return place_with_huge(inst, rp_ids_of(&near), p);
	if (hints != HINT_BEST_EFFORT)
		return place_refuse(p, "%lld CPUs are requested, %u are free near its devices",
				    (long long)p->n, n_near);
	rp_idset_andnot(&rest, candidates, rp_ids_of(&near));
	int32_t r = plan_take(plan, rp_ids_of(&rest), n - n_near, &rest);
	if (r)
		return r;
	rp_idset_or(&p->cpus, rp_ids_of(&near), rp_ids_of(&rest));
	(void)snprintf(p->hint, sizeof p->hint,
		       "topology manager, %s: %u of %u CPUs near its devices",
		       hint_policy_name(hints), n_near, n);
	return 0;
}

bool place_is_bound(const struct rp_instance *inst, rp_ctr ctr)
{
	struct placing p = {.ctr = ctr};
	struct rp_idset near;
	return place_requests_huge(inst, &p) ||
	       (inst->plan->settings.hints != HINT_NONE && devices_cpus(inst, ctr, &near));
}
