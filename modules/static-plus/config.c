/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Schema of the static-plus policy. Builds a plan from a configuration section and the topology of
 * the node.
 */
#include <nri-rp/lib/bounds.h>
#include "modules/static-plus/static-plus.h"

static const struct rp_key keys[] = {
	BOUNDS_KEYS("Resources of the containers of kube-system.",
		    "Their CPUs: a set, or a quantity that is rounded up to whole CPUs. At least "
		    "one is needed."),
	SECTION_PARITY,
	RELIEF_KEYS,
};

const struct rp_schema plus_schema = SECTION_SCHEMA(keys, .flags = RP_SCHEMA_FOLD_CASE);

void plan_fini(struct rp_plan *p)
{
	machine_free(p->machine);
	cpualloc_free(p->alloc);
}

static int32_t read_section(const struct modhost *h, struct rp_plan *p)
{
	int32_t r = amount_read_both(h, p->section, AMOUNT_TAKES_QUANTITY | AMOUNT_TAKES_CPUS,
				     &p->available, &p->reserve);
	if (!r && !amount_count(&p->reserve))
		return modhost_refuse(h, p->section,
				      "static-plus cannot start without any reserved CPUs: set "
				      "reservedResources.cpu to a set or a quantity");
	return r;
}

static int32_t reserve_set(const struct modhost *h, struct rp_plan *p,
			   const struct reserve_past *past)
{
	struct rp_idset awaited;
	rp_idset_and(&p->reserved, rp_ids_of(&p->reserve.cpus), rp_ids_of(&p->pool));
	return amount_check_reserved(h, section_get(h, p->section, "reservedResources.cpu"), past,
				     rp_ids_of(&p->reserve.cpus), rp_ids_of(&p->pool),
				     rp_ids_of(&p->machine->online), &awaited);
}

static int32_t reserve_count(const struct modhost *h, struct rp_plan *p,
			     const struct reserve_past *past)
{
	uint32_t n = amount_count(&p->reserve);
	struct rp_idset kept, from;
	uint32_t n_more = reserve_quantity(past, rp_ids_of(&p->pool),
					   rp_ids_of(&p->machine->online), n, &kept, &from);
	/* A single reserved CPU is CPU 0 if the policy is free to choose. */
	bool first =
		n_more == 1 && rp_ids_empty(rp_ids_of(&kept)) && rp_ids_has(rp_ids_of(&from), 0);
	rp_idset_clear(&p->reserved);
	if (first)
		rp_idset_add(&p->reserved, 0);
	else if (cpualloc_allocate(p->alloc, &from, n_more, CPUALLOC_NORMAL, CPUALLOC_PLAIN,
				   &p->reserved))
		return modhost_refuse(h, section_get(h, p->section, "reservedResources.cpu"),
				      "%u reserved CPUs requested, but only %u are available", n,
				      rp_ids_count(rp_ids_of(&p->pool)));
	rp_idset_or(&p->reserved, rp_ids_of(&p->reserved), rp_ids_of(&kept));
	return 0;
}

int32_t plan_fill(struct rp_instance *inst, rp_cfg section, const struct reserve_past *past,
		  struct rp_plan *p)
{
	const struct modhost *h = &inst->h;
	p->section = section;
	p->parity = section_bool(h, section, "parity", false);
	relief_read(h, section, p->parity, &p->relief);
	int32_t r = read_section(h, p);
	if (!r)
		r = machine_new(h, &p->machine);
	if (r)
		return r;
	if (cpualloc_new(h->topology, h->ctx, &p->alloc))
		return modhost_no_memory(h);
	amount_pick(&p->available, rp_ids_of(&p->machine->online), &p->pool);
	rp_idset_and(&p->isolated, rp_ids_of(&p->machine->isolated), rp_ids_of(&p->pool));
	rp_idset_andnot(&p->pool, rp_ids_of(&p->pool), rp_ids_of(&p->isolated));
	r = p->reserve.kind == AMOUNT_QUANTITY ? reserve_count(h, p, past)
					       : reserve_set(h, p, past);
	rp_idset_andnot(&p->pool, rp_ids_of(&p->pool), rp_ids_of(&p->reserved));
	return r;
}
