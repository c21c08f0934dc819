/* SPDX-License-Identifier: Apache-2.0 */
/* Hints of resource plugins, which the host has requested: reads them, merges them with the hints
 * of CPUs and memory, and sends the choice to the plugins. Also hints of a container's devices. */
#include <stdlib.h>

#include "modules/qos/qos.h"

struct others *others_free(struct others *o)
{
	free(o);
	return NULL;
}

static uint64_t mask_of(struct rp_ids nodes)
{
	uint64_t mask = 0;
	if (rp_ids_empty(nodes))
		return HINTS_ANY;
	RP_IDS_EACH (node, nodes)
		mask |= node < 64 ? UINT64_C(1) << node : 0;
	return mask;
}

static void read_list(const struct modhost *h, rp_pod pod, uint32_t index,
		      const struct rp_hint_list *from, struct other *to)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < from->n && n < HINTS_MAX; i++) {
		struct rp_hint hint = {.size = sizeof hint};
		if (h->hints->hint(h->ctx, pod, index, i, &hint))
			break;
		to->hints[n++] = (struct hint){mask_of(hint.nodes), hint.preferred};
	}
	bool told = n || from->flags & RP_HINTS_NOTHING_FITS;
	to->is = (struct hints){.list = told ? to->hints : NULL, .n = n};
	to->list = index;
	to->resource = from->resource;
}

int32_t others_of(const struct rp_instance *inst, rp_pod pod, struct others **ret)
{
	const struct modhost *h = &inst->h;
	struct rp_hint_list list = {.size = sizeof list};
	*ret = NULL;
	if (!pod || !h->hints || h->hints->list(h->ctx, pod, 0, &list))
		return 0;
	struct others *o = calloc(1, sizeof *o);
	if (!o)
		return modhost_no_memory(h);
	for (uint32_t i = 0; !h->hints->list(h->ctx, pod, i, &list); i++) {
		o->n_lists = i + 1;
		if (list.flags & RP_HINTS_MAIN && o->n < OTHERS_MAX)
			read_list(h, pod, i, &list, &o->list[o->n++]);
		list = (struct rp_hint_list){.size = sizeof list};
	}
	*ret = o;
	return 0;
}

bool others_devices(const struct rp_instance *inst, rp_ctr ctr, struct hint ret[2])
{
	const struct modhost *h = &inst->h;
	uint64_t near = 0;
	for (uint32_t i = 0; ctr && RP_HAS(h->cache, pod_resource) && i < HINTS_MAX; i++) {
		struct rp_pod_resource_info r = {.size = sizeof r};
		if (h->cache->pod_resource(h->ctx, ctr, i, &r))
			break;
		near |= mask_of(r.nodes) & inst->plan->node_mask;
	}
	ret[0] = (struct hint){near, true};
	ret[1] = (struct hint){HINTS_ANY, false};
	return near != 0;
}

static void others_do_choose(const struct rp_instance *inst, rp_pod pod, uint32_t list,
			     const struct hint *hint)
{
	const struct rp_plan *p = inst->plan;
	struct rp_idset nodes;
	rp_idset_clear(&nodes);
	for (uint32_t i = 0; i < 64 && hint->nodes != HINTS_ANY; i++)
		if (hint->nodes & p->node_mask & UINT64_C(1) << i)
			rp_idset_add(&nodes, i);
	const struct rp_hint chosen = {
		.size = sizeof chosen, .preferred = hint->preferred, .nodes = rp_ids_of(&nodes)};
	(void)inst->h.hints->choose(inst->h.ctx, pod, list, &chosen);
}

void others_choose(const struct rp_instance *inst, rp_pod pod, const struct others *o,
		   const struct hint *results, const struct hint *pods)
{
	for (uint32_t i = 0; i < o->n_lists; i++) {
		/* other containers use the main container's result */
		const struct hint *hint = pods;
		for (uint32_t k = 0; k < o->n; k++)
			if (o->list[k].list == i)
				hint = &results[k];
		others_do_choose(inst, pod, i, hint);
	}
}

int32_t others_merge(struct rp_instance *inst, rp_pod pod)
{
	const struct rp_plan *p = inst->plan;
	struct hints lists[OTHERS_MAX];
	struct hint results[OTHERS_MAX];
	static const struct hint any = {HINTS_ANY, true};
	struct others *o;
	int32_t r = others_of(inst, pod, &o);
	if (r || !o)
		return r;
	for (uint32_t i = 0; i < o->n; i++)
		lists[i] = o->list[i].is;
	if (!hints_merge(p->topology, p->node_mask, lists, o->n, results))
		r = others_refuse(inst, o, "");
	else if (p->topology != HINTS_NONE)
		others_choose(inst, pod, o, results, o->n ? &results[0] : &any);
	others_free(o);
	return r;
}

int32_t others_refuse(struct rp_instance *inst, const struct others *o, const char *own)
{
	inst->counters.refused[REFUSED_HINTS]++;
	return modhost_fail(&inst->h, -RP_ENOSPC,
			    "topology policy %s refuses the pod: no NUMA nodes are preferred for "
			    "all of %s%s%s%s",
			    hints_policy_names[inst->plan->topology], own,
			    *own && o && o->n ? " and " : "", o && o->n ? o->list[0].resource : "",
			    o && o->n > 1 ? " and others" : "");
}
