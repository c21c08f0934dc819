/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pods whose CPUs a scheduler chose (followScheduler). The pod owns the CPUs, as with pod_set.h,
 * and all of its containers run on them as a group. place_followed() does not stage.
 */
#include "modules/lib/private/follow.h"
#include "modules/static/pod_set.h"

#define SET_TEXT_MAX 128u

bool place_follows(const struct rp_instance *inst, const struct rp_ctr_info *info)
{
	return inst->plan->settings.isolation.follow && !(info->flags & RP_CTR_CLAIM) &&
	       follow_wants(&inst->h, info->pod);
}

static int32_t followed_own(struct rp_instance *inst, rp_pod pod, struct rp_idset *ret)
{
	const struct modhost *h = &inst->h;
	const struct rp_plan *p = inst->plan;
	struct rp_idset own, taken, usable, shared;
	(void)owners_owned(&inst->owners, pod_set_owner(pod), &own);
	rp_idset_andnot(&taken, rp_ids_of(&inst->owners.taken), rp_ids_of(&own));
	rp_idset_or(&usable, rp_ids_of(&p->all), rp_ids_of(&p->iso));
	const struct follow_limits l = {.online = rp_ids_of(&p->machine->online),
					.available = rp_ids_of(&usable),
					.reserved = rp_ids_of(&p->reserved),
					.taken = rp_ids_of(&taken)};
	int32_t r = follow_cpus(h, pod, &l, ret);
	if (r)
		return r;
	r = isolation_check_named(h, &p->settings.isolation, FOLLOW_ANNOTATION, rp_ids_of(ret));
	if (r)
		return r;
	owners_take(&inst->owners, pod_set_owner(pod), rp_ids_of(&own));
	plan_shared(p, &inst->owners, &shared);
	if (rp_ids_subset(rp_ids_of(&shared), rp_ids_of(ret))) {
		owners_give(&inst->owners, rp_ids_of(&own), pod_set_owner(pod));
		return modhost_fail(h, -RP_ENOSPC, SHARED_LEFT_TEXT);
	}
	owners_give(&inst->owners, rp_ids_of(ret), pod_set_owner(pod));
	return 0;
}

int32_t place_followed(struct rp_instance *inst, const struct rp_ctr_info *info,
		       struct rp_idset *ret)
{
	char text[SET_TEXT_MAX];
	int32_t r = followed_own(inst, info->pod, ret);
	if (!r)
		modhost_note(&inst->h, info->ctr, "CPUs %s chosen by the scheduler",
			     modhost_set_text(rp_ids_of(ret), text, sizeof text));
	return r;
}

static bool followed_own_one(struct rp_instance *inst, rp_pod pod)
{
	struct rp_idset cpus;
	return follow_wants(&inst->h, pod) && !followed_own(inst, pod, &cpus);
}

void place_followed_pods(struct rp_instance *inst)
{
	if (inst->plan->settings.isolation.follow)
		(void)pod_set_each_pod(inst, false, followed_own_one);
}
