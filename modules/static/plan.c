/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds a plan from settings and the topology of the node: ALL, ISO and RESERVED. Derives the
 * shared and the assignable CPUs from the owners, and checks a new plan against them.
 */

#include "modules/lib/private/pct.h"
#include <nri-rp/lib/section.h>
#include "modules/static/static.h"
#include <nri-rp/lib/bounds.h>

void plan_fini(struct rp_plan *p)
{
	machine_free(p->machine);
	cpualloc_free(p->common);
}

int32_t plan_take(const struct rp_plan *p, struct rp_ids free, uint32_t n, struct rp_idset *ret)
{
	if (!p->common)
		return kubelet_take(p->machine, p->settings.options, free, n, ret);
	struct rp_idset from;
	rp_idset_copy(&from, free);
	return cpualloc_allocate(p->common, &from, n, CPUALLOC_HIGH, CPUALLOC_PLAIN, ret);
}

static int32_t reserve_set(const struct modhost *h, struct rp_plan *p, rp_cfg at,
			   const struct reserve_past *past)
{
	struct rp_ids listed = rp_ids_of(&p->settings.reserved.cpus), all = rp_ids_of(&p->all);
	struct rp_idset awaited;
	rp_idset_and(&p->reserved, listed, all);
	return amount_check_reserved(h, at, past, listed, all, rp_ids_of(&p->machine->online),
				     &awaited);
}

static int32_t reserve_count(const struct modhost *h, struct rp_plan *p, rp_cfg at,
			     const struct reserve_past *past)
{
	uint32_t n = amount_count(&p->settings.reserved);
	struct rp_idset kept, others;
	uint32_t n_missing = reserve_quantity(past, rp_ids_of(&p->all),
					      rp_ids_of(&p->machine->online), n, &kept, &others);
	if (plan_take(p, rp_ids_of(&others), n_missing, &p->reserved))
		return modhost_refuse(h, at,
				      "%u reserved CPUs requested, but only %u are available", n,
				      rp_ids_count(rp_ids_of(&p->all)));
	rp_idset_or(&p->reserved, rp_ids_of(&p->reserved), rp_ids_of(&kept));
	return 0;
}

int32_t plan_reserve(const struct modhost *h, struct rp_plan *p, const struct reserve_past *past)
{
	rp_cfg at = section_get(h, p->settings.section, "reservedResources.cpu");
	int32_t r = p->settings.reserved.kind == AMOUNT_QUANTITY ? reserve_count(h, p, at, past)
								 : reserve_set(h, p, at, past);
	if (r)
		return r;
	if ((p->settings.options & OPT_STRICT_RESERVATION) &&
	    rp_ids_equal(rp_ids_of(&p->reserved), rp_ids_of(&p->all)))
		modhost_log(h, RP_LOG_WARNING, 0,
			    "all available CPUs are reserved and strict-cpu-reservation is on: "
			    "no container can be placed");
	return 0;
}

/*
 * Reads the settings. After a change of the machine those of the active plan are copied, so that
 * the files that a section names are not read again.
 */
static int32_t plan_settings(struct rp_instance *inst, rp_cfg section, struct settings *ret)
{
	if (!inst->plan || inst->plan->settings.section != section)
		return settings_read(&inst->h, section, ret);
	*ret = inst->plan->settings;
	return 0;
}

int32_t plan_fill(struct rp_instance *inst, rp_cfg section, const struct reserve_past *past,
		  struct rp_plan *p)
{
	const struct modhost *h = &inst->h;
	int32_t r = plan_settings(inst, section, &p->settings);
	if (!r)
		r = machine_new(h, &p->machine);
	if (!r)
		r = settings_check(h, &p->settings, p->machine);
	if (r)
		return r;
	if (p->settings.common_allocator && cpualloc_new(h->topology, h->ctx, &p->common))
		return modhost_no_memory(h);
	if (p->settings.hints != HINT_NONE)
		hint_read_distances(h, p->machine, &p->distances);
	if (p->common)
		pct_priorities(h, false, p->common);
	rp_idset_copy(&p->iso, rp_ids_of(&p->machine->isolated));
	rp_idset_andnot(&p->all, rp_ids_of(&p->machine->online), rp_ids_of(&p->iso));
	amount_pick(&p->settings.available, rp_ids_of(&p->all), &p->all);
	return plan_reserve(h, p, past);
}

int32_t plan_check_owners(struct rp_instance *inst, struct rp_plan *p)
{
	const struct modhost *h = &inst->h;
	const struct rp_plan *old = inst->plan;
	const struct owners *l = &inst->owners;
	struct rp_idset reserved, usable, was, shared;
	if (!old)
		return 0;
	rp_idset_andnot(&reserved, rp_ids_of(&p->reserved), rp_ids_of(&old->reserved));
	rp_idset_or(&usable, rp_ids_of(&p->all), rp_ids_of(&p->iso));
	int32_t r = bounds_check_owners(h, p->settings.section, rp_ids_of(&l->taken),
					rp_ids_of(&reserved), rp_ids_of(&usable));
	if (r)
		return r;
	plan_shared(old, l, &was);
	plan_shared(p, l, &shared);
	if (rp_ids_empty(rp_ids_of(&shared)) && !rp_ids_empty(rp_ids_of(&was)))
		return modhost_fail_at(h, p->settings.section, -RP_EBUSY, "this " SHARED_LEFT_TEXT);
	return 0;
}

void plan_assignable(const struct rp_plan *p, struct rp_idset *ret)
{
	rp_idset_or(ret, rp_ids_of(&p->all), rp_ids_of(&p->iso));
	rp_idset_andnot(ret, rp_ids_of(ret), rp_ids_of(&p->reserved));
}

void plan_shared(const struct rp_plan *p, const struct owners *l, struct rp_idset *ret)
{
	rp_idset_andnot(ret, rp_ids_of(&p->all), rp_ids_of(&l->taken));
	if (p->settings.options & OPT_STRICT_RESERVATION)
		rp_idset_andnot(ret, rp_ids_of(ret), rp_ids_of(&p->reserved));
}

void plan_free_isolated(const struct rp_plan *p, const struct owners *l, struct rp_idset *ret)
{
	rp_idset_andnot(ret, rp_ids_of(&p->iso), rp_ids_of(&l->taken));
}
