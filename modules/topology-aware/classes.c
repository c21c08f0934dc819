/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "modules/topology-aware/ta.h"

#define CLASS_KEY "cpu-class" TA_DOMAIN
#define CLASSES_COOKIE UINT64_C(0xc1a55) /* timer */
#define EXTENDED_DOMAIN "cpuclass.resource-policy.nri.io/"

/* ---- scheduling classes ---------------------------------------------------------------------- */

static int32_t find_sched(struct rp_instance *inst, const struct rp_ctr_info *info)
{
	const struct settings *s = &inst->plan->settings;
	int32_t class = info->qos < N_QOS ? s->sched_qos[info->qos] : SCHEDCLASS_NONE;
	for (uint32_t i = s->n_sched_ns; i-- > 0;)
		if (strcmp(s->sched_ns[i].namespace, info->pod_namespace) == 0)
			class = s->sched_ns[i].class;
	return schedclass_annotated(&inst->h, &s->sched, info->ctr, class);
}

int32_t classes_stage_sched(struct rp_instance *inst, rp_txn txn, const struct request *r)
{
	if (r->sched == SCHEDCLASS_NONE || r->info.state != RP_STATE_CREATING)
		return 0;
	return schedclass_stage(&inst->h, txn, r->info.ctr,
				&inst->plan->settings.sched.list[r->sched]);
}

/* ---- CPU classes ----------------------------------------------------------------------------- */

static int32_t find_class(struct rp_instance *inst, struct request *r)
{
	const struct settings *s = &inst->plan->settings;
	const struct modhost *h = &inst->h;
	uint32_t scope = 0;
	const char *name = h->cache->annotation(h->ctx, r->info.ctr, CLASS_KEY, &scope);
	bool own = name && scope == RP_SCOPE_CONTAINER;
	if (r->info.qos != RP_QOS_GUARANTEED)
		return own ? modhost_fail(h, -RP_EINVAL,
					  "CPU class \"%.64s\" is invalid for non-Guaranteed QoS "
					  "class",
					  name)
			   : 0;
	if (!name) {
		r->class = r->full ? s->exclusive_class : CPUCLASS_NONE;
		return 0;
	}
	uint32_t class = s->classes ? cpuclass_find(s->classes, name) : CPUCLASS_NONE;
	if (!r->full)
		return own ? modhost_fail(h, -RP_EINVAL,
					  "CPU class \"%.64s\" is invalid without exclusive CPUs",
					  name)
			   : 0;
	if (class == CPUCLASS_NONE)
		return modhost_fail(h, -RP_EINVAL, "there is no CPU class \"%.64s\"", name);
	r->class = class;
	return 0;
}

int32_t classes_of(struct rp_instance *inst, struct request *r)
{
	r->sched = find_sched(inst, &r->info);
	return find_class(inst, r);
}

int32_t classes_configure(struct rp_instance *inst)
{
	static const struct cpuclass_defs none;
	const struct settings *s = &inst->plan->settings;
	if (!s->classes && !inst->classes)
		return 0;
	if (!inst->classes)
		inst->classes = cpuclass_new(&inst->h);
	if (!inst->classes)
		return modhost_no_memory(&inst->h);
	cpuclass_retry(inst->classes, CLASSES_COOKIE, NULL, NULL);
	inst->ledger.classes_changed = true;
	return cpuclass_configure(inst->classes, s->classes ? s->classes : &none,
				  rp_ids_of(&inst->plan->allowed));
}

void classes_apply(struct rp_instance *inst)
{
	const struct rp_plan *p = inst->plan;
	if (!inst->classes || !inst->ledger.classes_changed)
		return;
	inst->ledger.classes_changed = false;
	cpuclass_use(inst->classes, p->settings.shared_class, rp_ids_of(&p->allowed));
	cpuclass_use(inst->classes, p->settings.reserved_class, rp_ids_of(&p->reserved));
	for (uint32_t i = 0; p->settings.pin_cpu && i < p->n_pools; i++)
		for (const struct grant *g = p->pools[i].grants; g; g = g->pool_next)
			if (g->exclusive && g->class != CPUCLASS_NONE)
				cpuclass_use(inst->classes, g->class, cpus_ids(g->exclusive));
	cpuclass_commit(inst->classes);
}

void classes_stop(struct rp_instance *inst)
{
	cpuclass_stop(inst->classes);
}

void classes_timer(struct rp_instance *inst, uint64_t cookie)
{
	if (inst->classes)
		cpuclass_timer(inst->classes, cookie);
}

/* ---- Speed Select ---------------------------------------------------------------------------- */

static void put_if_high(const struct pct *pct, uint32_t class, struct rp_ids cpus,
			struct rp_idset *ret)
{
	if (pct_is_high(pct, class))
		rp_idset_or(ret, rp_ids_of(ret), cpus);
	else
		rp_idset_andnot(ret, rp_ids_of(ret), cpus);
}

/* CPUs that classes of high priority have: what classes_apply() will make of the ledger. */
static void high_cpus(struct rp_instance *inst, const struct pct *pct, struct rp_idset *ret)
{
	const struct rp_plan *p = inst->plan;
	rp_idset_clear(ret);
	if (!pct_has_high(pct))
		return;
	put_if_high(pct, p->settings.shared_class, rp_ids_of(&p->allowed), ret);
	put_if_high(pct, p->settings.reserved_class, rp_ids_of(&p->reserved), ret);
	for (uint32_t i = 0; p->settings.pin_cpu && i < p->n_pools; i++)
		for (const struct grant *g = p->pools[i].grants; g; g = g->pool_next)
			if (g->exclusive && g->class != CPUCLASS_NONE)
				put_if_high(pct, g->class, cpus_ids(g->exclusive), ret);
}

bool classes_narrow(struct rp_instance *inst, const struct request *r, struct rp_idset *from)
{
	const struct pct *pct = cpuclass_pct(inst->classes);
	uint32_t n = r->full > 0 ? (uint32_t)r->full : 0;
	struct pct_hints hints;
	struct rp_idset high;
	if (!pct || r->class == CPUCLASS_NONE || rp_ids_count(rp_ids_of(from)) < n)
		return false;
	high_cpus(inst, pct, &high);
	pct_hint(pct, r->class, n, rp_ids_of(from), rp_ids_of(&high), &hints);
	bool preferred = pct_prefer(pct, &hints, n, from);
	(void)pct_avoid(&hints, n, from);
	return preferred;
}

static int32_t report_extended(struct rp_instance *inst, const struct rp_extended_sink *sink)
{
	const struct pct *pct =
		cpuclass_platform_fails(inst->classes) ? NULL : cpuclass_pct(inst->classes);
	const struct cpuclass_defs *defs = inst->plan ? inst->plan->settings.classes : NULL;
	sink->own(sink->ctx, EXTENDED_DOMAIN "*");
	for (uint32_t i = 0; pct && defs && i < defs->n; i++) {
		char name[sizeof EXTENDED_DOMAIN + CPUCLASS_NAME_MAX];
		if (!defs->list[i].publish)
			continue;
		(void)snprintf(name, sizeof name, EXTENDED_DOMAIN "%s", defs->list[i].name);
		sink->resource(sink->ctx, name, pct_capacity(pct, i, rp_ids_none()));
	}
	return 0;
}

const struct rp_extended ta_extended = {
	.size = sizeof(struct rp_extended),
	.extended = report_extended,
};
