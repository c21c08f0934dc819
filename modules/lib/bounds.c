/* SPDX-License-Identifier: Apache-2.0 */
/* Available and reserved CPUs of a section. reserve.c decides which CPUs stay reserved. */
#include <nri-rp/lib/bounds.h>

#include "modules/lib/private/amount.h"
#include <nri-rp/lib/section.h>

#define SET_TEXT_MAX 256u

static uint32_t bounds_count(const struct rp_idset *set)
{
	return rp_ids_count(rp_ids_of(set));
}

static int32_t reserve_set(const struct modhost *h, rp_cfg node, struct cpualloc *a,
			   const struct reserve_past *past, bool strict, struct bounds *b)
{
	struct rp_ids listed = rp_ids_of(&b->listed), available = rp_ids_of(&b->available);
	struct rp_idset wrong, awaited;
	rp_idset_and(&b->reserved, listed, available);
	if (strict)
		return amount_check_reserved(h, node, past, listed, available, cpualloc_online(a),
					     &awaited);
	reserve_list(h, past, listed, available, cpualloc_online(a), &wrong, &awaited);
	return !bounds_count(&wrong) || bounds_count(&b->reserved) || bounds_count(&awaited)
		       ? 0
		       : modhost_refuse(h, node, "none of the reserved CPUs is available");
}

static int32_t reserve_count(const struct modhost *h, rp_cfg node, struct cpualloc *a,
			     const struct reserve_past *past, uint32_t n, struct bounds *b)
{
	struct rp_idset from, more;
	uint32_t n_more = reserve_quantity(past, rp_ids_of(&b->available), cpualloc_online(a), n,
					   &b->reserved, &from);
	if (cpualloc_allocate(a, &from, n_more, CPUALLOC_NONE, CPUALLOC_PLAIN, &more))
		return modhost_refuse(h, node,
				      "%u reserved CPUs requested, but only %u are available", n,
				      bounds_count(&b->available));
	rp_idset_or(&b->reserved, rp_ids_of(&b->reserved), rp_ids_of(&more));
	return 0;
}

int32_t bounds_read(const struct modhost *h, rp_cfg section, struct cpualloc *a,
		    const struct reserve_past *past, bool strict, struct bounds *ret)
{
	rp_cfg available = section_get(h, section, "availableResources.cpu"),
	       reserved = section_get(h, section, "reservedResources.cpu");
	struct amount from, amount;
	int32_t r = amount_read_both(h, section, AMOUNT_TAKES_QUANTITY | AMOUNT_TAKES_CPUS, &from,
				     &amount);
	if (r)
		return r;
	amount_pick(&from, cpualloc_online(a), &ret->available);
	rp_idset_clear(&ret->reserved);
	rp_idset_clear(&ret->listed);
	if (amount.kind == AMOUNT_CPUS)
		ret->listed = amount.cpus;
	if (strict && !past->hotplug && !bounds_count(&ret->available))
		return modhost_refuse(h, available, "none of these CPUs is online");
	if (amount.kind == AMOUNT_CPUS)
		r = reserve_set(h, reserved, a, past, strict, ret);
	else if (amount_count(&amount))
		r = reserve_count(h, reserved, a, past, amount_count(&amount), ret);
	rp_idset_andnot(&ret->rest, rp_ids_of(&ret->available), rp_ids_of(&ret->reserved));
	return r;
}

void bounds_past(const struct bounds *b, struct rp_ids busy, struct reserve_past *ret)
{
	*ret = (struct reserve_past){.listed = b->listed};
	if (!bounds_count(&b->listed))
		ret->cpus = b->reserved;
	rp_idset_copy(&ret->busy, busy);
}

int32_t bounds_check_owners(const struct modhost *h, rp_cfg section, struct rp_ids taken,
			    struct rp_ids reserved, struct rp_ids usable)
{
	char text[SET_TEXT_MAX];
	struct rp_idset bad;
	rp_idset_and(&bad, taken, reserved);
	if (bounds_count(&bad))
		return modhost_fail_at(h, section_get(h, section, "reservedResources.cpu"),
				       -RP_EBUSY,
				       "some reserved CPUs (%s) are exclusive to containers",
				       modhost_set_text(rp_ids_of(&bad), text, sizeof text));
	rp_idset_andnot(&bad, taken, usable);
	if (bounds_count(&bad))
		return modhost_fail_at(
			h, section_get(h, section, "availableResources.cpu"), -RP_EBUSY,
			"some exclusive CPUs of containers (%s) would be unavailable",
			modhost_set_text(rp_ids_of(&bad), text, sizeof text));
	return 0;
}
