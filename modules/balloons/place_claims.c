/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Claims of Dynamic Resource Allocation: a device for each balloon type, "balloon-TYPE". A claim is
 * the only member of its balloon, which has exactly the claim's CPUs and is not moved by
 * rebalancing. The host gives these CPUs to the containers that use the claim.
 */
#include <string.h>

#include "modules/balloons/balloons.h"
#include "modules/balloons/place.h"
#include "modules/balloons/stage.h"

#define DEVICE_PREFIX "balloon-"
#define DEVICE_NAME_MAX 63u
#define DEVICE_CHARS "abcdefghijklmnopqrstuvwxyz0123456789-"

/* ---- devices --------------------------------------------------------------------------------- */

/* Returns true if claims can have balloons of the type, and its name is valid in a device's name.
 * The built-in type default is for plain containers, which a claim would leave without a balloon.
 * Members of a type with hideHyperthreads do not get all CPUs of their balloon. The parts of a
 * composite balloon are not restored from the CPUs of a claim. */
static bool claims_offer(const struct rp_plan *p, const struct type *t)
{
	size_t n = strlen(t->name);
	return p->pin_cpu && t->at && t != p->reserved_type && t->max_cpus >= 0 &&
	       !t->hide_threads && !t->parts.n && n &&
	       n < DEVICE_NAME_MAX - (sizeof DEVICE_PREFIX - 1) &&
	       t->name[strspn(t->name, DEVICE_CHARS)] == '\0' && t->name[n - 1] != '-';
}

/* Computes the CPUs and balloons that claims of the type can have, with those that they have. A
 * balloon has at least `least` CPUs. */
static void claims_capacity(const struct state *s, const struct type *t, int64_t least,
			    int64_t *ret_cpus, int64_t *ret_balloons)
{
	struct rp_idset free = s->free;
	int64_t taken = 0;
	if (t->core > 1)
		isolation_narrow(s->h, &s->plan->isolation, &free);
	*ret_cpus = rp_ids_count(rp_ids_of(&free));
	for (uint32_t i = 0; i < s->n; i++) {
		const struct balloon *b = s->list[i];
		if (b->type != t)
			continue;
		bool open = !b->n_members || claims_has(b);
		*ret_cpus += open ? b->n_cpus : 0;
		taken += !open;
	}
	*ret_balloons = *ret_cpus / least;
	if (t->max_balloons && *ret_balloons > t->max_balloons - taken)
		*ret_balloons = t->max_balloons - taken;
	if (t->max_cpus && *ret_cpus > *ret_balloons * t->max_cpus)
		*ret_cpus = *ret_balloons * t->max_cpus;
}

int32_t claims_devices(struct rp_instance *inst, const struct rp_devices_sink *sink)
{
	const struct rp_plan *p = inst->plan;
	char name[DEVICE_NAME_MAX + 1];
	for (uint32_t i = 0; inst->state && i < p->n_types; i++) {
		const struct type *t = &p->types[i];
		int64_t cpus, balloons, least = balloon_wanted(t, 1);
		if (!claims_offer(p, t))
			continue;
		claims_capacity(inst->state, t, least, &cpus, &balloons);
		(void)snprintf(name, sizeof name, DEVICE_PREFIX "%s", t->name);
		sink->device(sink->ctx, name);
		sink->capacity(sink->ctx, "cpu", cpus);
		modhost_limits(sink, least, t->max_cpus);
		sink->capacity(sink->ctx, "balloons", balloons);
		modhost_limits(sink, 1, 1);
		sink->text(sink->ctx, "type", t->name);
		if (*t->cpu_class_name)
			sink->text(sink->ctx, "cpuClass", t->cpu_class_name);
	}
	return 0;
}

const struct type *claims_type(const struct rp_plan *p, const char *device)
{
	const size_t n = sizeof DEVICE_PREFIX - 1;
	const struct type *t =
		strncmp(device, DEVICE_PREFIX, n) == 0 ? plan_type(p, device + n) : NULL;
	return t && claims_offer(p, t) ? t : NULL;
}

/* ---- balloons of claims ---------------------------------------------------------------------- */

bool claims_has(const struct balloon *b)
{
	return b->n_members && b->members[0]->claim;
}

void claims_choose_type(struct rp_instance *inst, const struct rp_ctr_info *info, struct choice *c)
{
	struct record rec = {0};
	c->type = inst->claimed;
	if (!c->type && pin_read_record(inst, info->ctr, &rec))
		c->type = plan_type(inst->plan, rec.type);
	if (!c->type)
		c->type = inst->plan->default_type;
	(void)snprintf(c->text, sizeof c->text, "balloon type %.*s of a claim",
		       (int)BALLOON_NAME_MAX, c->type->name);
	c->decided_at = c->type->at;
}

/* Fails a sync() that cannot keep a claim. Returns 0 if the claim has to be placed again instead,
 * because only the machine has changed. */
static int32_t claims_lose(struct rp_instance *inst, const struct rp_ctr_info *info,
			   const char *why)
{
	char cpus[200];
	if (!life_may_refuse(inst))
		return 0;
	return modhost_fail(&inst->h, -RP_EINVAL,
			    "claim %s/%s would lose its CPUs %s: %s; delete the pods that use the "
			    "claim first",
			    info->pod_namespace, info->pod_name,
			    modhost_set_text(info->exclusive, cpus, sizeof cpus), why);
}

/* Gives a claim a balloon with the CPUs that it has. Returns 1; 0 if it has to be placed again; or
 * an error. */
static int32_t claims_keep(struct rp_instance *inst, const struct rp_ctr_info *info,
			   struct choice *c)
{
	struct state *s = inst->state;
	struct record rec = {0};
	bool known = pin_read_record(inst, info->ctr, &rec);
	if (known && !plan_type(inst->plan, rec.type)) {
		int32_t r = claims_lose(inst, info, "its balloon type does not exist any more");
		if (r)
			return r;
	}
	claims_choose_type(inst, info, c);
	struct balloon *b = state_with(s, c->type, info->exclusive);
	if (!b && !rp_ids_subset(info->exclusive, rp_ids_of(&s->free)))
		return claims_lose(inst, info, "they are not available to balloons");
	if (c->type->core > 1 && !isolation_permits(s->h, &s->plan->isolation, info->exclusive)) {
		int32_t r = claims_lose(inst, info,
					"they are not whole cores, and isolation.siblings is own");
		if (r)
			return r;
	}
	if (!b) {
		b = balloon_alloc(c->type, balloon_free_instance(s, c->type, NULL));
		if (!b)
			return modhost_no_memory(&inst->h);
		rp_idset_copy(&b->cpus, info->exclusive);
		balloon_count_cpus(b);
		if (state_restore(s, b))
			return modhost_no_memory(&inst->h);
	}
	b->request_before = ctr_counted_cpu(info);
	struct member *m = choose_member(inst, info, c->type);
	return m && !state_join(s, b, m, NULL, NULL) ? 1 : modhost_no_memory(&inst->h);
}

int32_t claims_keep_all(struct rp_instance *inst, int32_t n, struct choice *c)
{
	int32_t n_left = 0;
	for (int32_t i = 0; i < n; i++) {
		struct rp_ctr_info info;
		rp_ctr ctr = inst->list.ctrs[i];
		int32_t r = ctr_info(&inst->h, ctr, &info);
		if (!r && info.flags & RP_CTR_CLAIM && !rp_ids_empty(info.exclusive))
			r = claims_keep(inst, &info, c);
		if (r < 0)
			return r;
		if (!r)
			inst->list.ctrs[n_left++] = ctr;
	}
	return n_left;
}
