/* SPDX-License-Identifier: Apache-2.0 */
#include "modules/lib/bounds.h"

#include "modules/lib/amount.h"
#include "modules/lib/section.h"

#define SET_TEXT_MAX 256u

static uint32_t count(const struct rp_idset *set)
{
	return rp_ids_count(rp_ids_of(set));
}

static void reserve(struct cpualloc *a, const struct reserve_past *past,
		    const struct amount *amount, struct bounds *b)
{
	struct rp_idset from, more;
	rp_idset_clear(&b->reserved);
	if (amount->kind == AMOUNT_CPUS) {
		rp_idset_and(&b->reserved, rp_ids_of(&amount->cpus), rp_ids_of(&b->available));
	} else if (amount_count(amount)) {
		uint32_t n = reserve_quantity(past, rp_ids_of(&b->available), cpualloc_online(a),
					      amount_count(amount), &b->reserved, &from);
		if (cpualloc_allocate(a, &from, n, CPUALLOC_NONE, CPUALLOC_PLAIN, &more) == 0)
			rp_idset_or(&b->reserved, rp_ids_of(&b->reserved), rp_ids_of(&more));
	}
}

static int32_t check_all(const struct modhost *h, rp_cfg available, rp_cfg reserved,
			 const struct amount *amount, const struct bounds *b)
{
	struct rp_idset missing;
	char text[SET_TEXT_MAX];
	if (!count(&b->available))
		return modhost_fail_at(h, available, -RP_EINVAL, "none of these CPUs is online");
	if (amount->kind == AMOUNT_QUANTITY && amount_count(amount) > count(&b->available))
		return modhost_fail_at(h, reserved, -RP_EINVAL,
				       "%u CPUs are to be reserved, and %u are available",
				       amount_count(amount), count(&b->available));
	rp_idset_clear(&missing);
	if (amount->kind == AMOUNT_CPUS)
		rp_idset_andnot(&missing, rp_ids_of(&amount->cpus), rp_ids_of(&b->available));
	return count(&missing)
		       ? modhost_fail_at(h, reserved, -RP_EINVAL,
					 "part of the reserved CPUs are not available: %s",
					 modhost_set_text(rp_ids_of(&missing), text, sizeof text))
		       : 0;
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
	reserve(a, past, &amount, ret);
	rp_idset_andnot(&ret->rest, rp_ids_of(&ret->available), rp_ids_of(&ret->reserved));
	if (past->hotplug)
		return 0;
	if (strict)
		return check_all(h, available, reserved, &amount, ret);
	if (!amount_count(&amount) || count(&ret->reserved))
		return 0;
	return modhost_fail_at(h, reserved, -RP_EINVAL,
			       "none of the CPUs to be reserved is available, or too few are");
}
