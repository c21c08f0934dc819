/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scheduling classes, memory policies, CPU classes and interrupt affinities of containers. Reads
 * them from configuration and annotations, and applies CPU classes and interrupt affinities to the
 * grants of the ledger.
 */
#include <stdio.h>
#include <stdlib.h>

#include "modules/lib/private/annotation.h"
#include "modules/topology-aware/stage.h"
#include "modules/topology-aware/topology-aware.h"

#define CLASS_KEY "cpu-class" TA_DOMAIN
#define CLASSES_COOKIE UINT64_C(0xc1a55) /* timer cookie */

/* ---- scheduling classes and memory policies -------------------------------------------------- */

static int32_t class_of_namespace(const struct namespace_classes *classes,
				  const struct rp_ctr_info *info, int32_t fallback)
{
	for (uint32_t i = 0; i < classes->n; i++)
		if (strcmp(classes->list[i].namespace, info->pod_namespace) == 0)
			return classes->list[i].class;
	return fallback;
}

static int32_t find_sched(struct rp_instance *inst, const struct rp_ctr_info *info)
{
	const struct settings *s = &inst->plan->settings;
	int32_t class = info->qos < N_QOS ? s->sched_qos[info->qos] : SCHEDCLASS_NONE;
	class = class_of_namespace(&s->sched_ns, info, class);
	return schedclass_annotated(&inst->h, &s->sched, info->ctr, class);
}

int32_t classes_stage_sched(struct rp_instance *inst, rp_txn txn, const struct request *r)
{
	if (r->sched == SCHEDCLASS_NONE || r->info.state != RP_STATE_CREATING)
		return 0;
	return schedclass_stage(&inst->h, txn, r->info.ctr,
				&inst->plan->settings.sched.list[r->sched]);
}

int32_t classes_stage_mempolicy(struct rp_instance *inst, rp_txn txn, const struct request *r)
{
	const struct settings *s = &inst->plan->settings;
	int32_t class = class_of_namespace(&s->mempolicy_ns, &r->info, MEMPOLICY_NONE);
	return mempolicy_stage(&inst->h, txn, r->info.ctr, &s->mempolicies, class);
}

/* ---- CPU classes ----------------------------------------------------------------------------- */

/*
 * Determines the CPU class of the exclusive CPUs. A container's own annotation is refused without
 * exclusive CPUs; an annotation of the pod is ignored then.
 */
static int32_t find_class(struct rp_instance *inst, struct request *r)
{
	const struct settings *s = &inst->plan->settings;
	const struct modhost *h = &inst->h;
	uint32_t scope = 0;
	const char *name = h->cache->annotation(h->ctx, r->info.ctr, CLASS_KEY, &scope);
	bool own = name && scope == RP_SCOPE_CONTAINER;
	r->ineligible |= own && (r->info.qos != RP_QOS_GUARANTEED || !r->full);
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
	r->class = class == CPUCLASS_NONE ? s->exclusive_class : class;
	return class == CPUCLASS_NONE
		       ? modhost_fail(h, -RP_EINVAL, "unknown CPU class \"%.64s\"", name)
		       : 0;
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

/* ---- Speed Select ---------------------------------------------------------------------------- */

static void put_if_high(const struct pct *pct, uint32_t class, struct rp_ids cpus,
			struct rp_idset *ret)
{
	if (pct_is_high(pct, class))
		rp_idset_or(ret, rp_ids_of(ret), cpus);
	else
		rp_idset_andnot(ret, rp_ids_of(ret), cpus);
}

/* Returns the CPUs that classes_apply() will assign to CPU classes of high priority. */
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
	cpuclass_extended(inst->classes, inst->plan ? inst->plan->settings.classes : NULL, sink,
			  "cpuclass.resource-policy.nri.io/", NULL, NULL);
	return 0;
}

const struct rp_extended ta_extended = {
	.size = sizeof(struct rp_extended),
	.extended = report_extended,
};

/* ---- interrupts ------------------------------------------------------------------------------ */

/*
 * Interrupts that containers want on their exclusive CPUs (claims) or away from them (masks). irq.h
 * moves the interrupts on the host's worker thread.
 */
#define IRQ_KEY "irq-affinity" TA_DOMAIN
#define IRQ_WHAT "invalid IRQ affinity, annotation " IRQ_KEY
#define PATTERNS_MAX 256u

struct irq_ask {
	uint32_t n_users;
	bool claim_first;
	struct blocks memory; /* memory of the patterns */
	struct texts claims, masks;
};

struct irq_ask *irq_ask_ref(struct irq_ask *a)
{
	if (a)
		a->n_users++;
	return a;
}

struct irq_ask *irq_ask_unref(struct irq_ask *a)
{
	if (!a || --a->n_users)
		return NULL;
	blocks_fini(&a->memory);
	free(a);
	return NULL;
}

/* ---- reading interrupts ---------------------------------------------------------------------- */

static int32_t check_interrupts(struct rp_instance *inst, const struct texts *patterns)
{
	for (uint32_t i = 0; i < patterns->n; i++) {
		const struct irq_name *denied =
			irq_find_denied(inst->plan->settings.denied, patterns->list[i]);
		if (denied)
			return modhost_fail(&inst->h, -RP_EINVAL,
					    "denied interrupt: \"%.64s\" matches \"%.64s\", which "
					    "is not in controllableInterrupts",
					    patterns->list[i], denied->description);
	}
	return 0;
}

static int32_t read_list(struct rp_instance *inst, rp_cfg map, const char *key, struct irq_ask *a,
			 struct texts *ret)
{
	const struct modhost *h = &inst->h;
	rp_cfg list;
	int32_t r = annotation_texts(h, IRQ_WHAT, map, key, &list);
	if (!r && h->config->count(h->ctx, list) > PATTERNS_MAX)
		return modhost_fail(h, -RP_E2BIG, "invalid IRQ affinity: more than %u interrupts",
				    PATTERNS_MAX);
	if (!r)
		r = texts_read(h, &a->memory, list, 0, ret);
	/* The texts of the annotation are freed after this callback, so copy them. */
	for (uint32_t i = 0; !r && i < ret->n; i++) {
		size_t size = strlen(ret->list[i]) + 1;
		char *copy = blocks_alloc(&a->memory, size, 1);
		if (!copy)
			return modhost_no_memory(h);
		ret->list[i] = memcpy(copy, ret->list[i], size);
		if (!glob_valid(copy))
			return modhost_fail(
				h, -RP_EINVAL,
				"invalid IRQ affinity: \"%.64s\" is not a valid pattern", copy);
	}
	return r;
}

static int32_t read_ask(struct rp_instance *inst, const char *text, struct irq_ask *a)
{
	const struct modhost *h = &inst->h;
	rp_cfg map, at;
	int32_t r = annotation_parse(h, IRQ_WHAT, text, &map);
	if (!r)
		r = annotation_member(h, IRQ_WHAT, map, "mode", RP_NODE_SCALAR, &at);
	if (r)
		return r;
	const char *mode = h->config->text(h->ctx, at, "mask-first");
	a->claim_first = strcmp(mode, "claim-first") == 0;
	if (!a->claim_first && strcmp(mode, "mask-first") != 0)
		return modhost_fail(h, -RP_EINVAL, "invalid IRQ affinity mode \"%.64s\"", mode);
	r = read_list(inst, map, "claim", a, &a->claims);
	return r ? r : read_list(inst, map, "mask", a, &a->masks);
}

/*
 * Checks that a container may control interrupts. A container without exclusive CPUs is an error
 * only if the annotation names this container, not the whole pod.
 */
static int32_t check_eligible(struct rp_instance *inst, struct request *r, bool own,
			      bool *ret_eligible)
{
	bool guaranteed = r->info.qos == RP_QOS_GUARANTEED;
	*ret_eligible = guaranteed && r->full;
	if (*ret_eligible || !own)
		return 0;
	r->ineligible = true;
	if (!guaranteed)
		return modhost_fail(&inst->h, -RP_EINVAL,
				    "IRQ affinity is invalid: the pod is not Guaranteed");
	return modhost_fail(&inst->h, -RP_EINVAL, "IRQ affinity is invalid without exclusive CPUs");
}

int32_t interrupts_read(struct rp_instance *inst, struct request *r)
{
	const struct modhost *h = &inst->h;
	uint32_t scope = 0;
	bool eligible;
	const char *text = h->cache->annotation(h->ctx, r->info.ctr, IRQ_KEY, &scope);
	if (!text)
		return 0;
	struct irq_ask *a = calloc(1, sizeof *a);
	if (!a)
		return modhost_no_memory(h);
	a->n_users = 1;
	int32_t e = read_ask(inst, text, a);
	if (!e)
		e = check_eligible(inst, r, scope == RP_SCOPE_CONTAINER, &eligible);
	if (!e && eligible && r->info.state == RP_STATE_CREATING)
		e = check_interrupts(inst, &a->claims);
	if (!e && eligible && r->info.state == RP_STATE_CREATING)
		e = check_interrupts(inst, &a->masks);
	if (e || !eligible)
		irq_ask_unref(a);
	else
		r->irq = a;
	return e;
}

/* ---- moving interrupts ----------------------------------------------------------------------- */

void interrupts_apply(struct rp_instance *inst)
{
	const struct rp_plan *p = inst->plan;
	struct rp_idset away;
	if (!isolation_interrupts(inst, &away) && !inst->ledger.irqs_changed)
		return;
	inst->ledger.irqs_changed = false;
	struct irq_rules *r =
		irq_rules_new(!rp_ids_empty(rp_ids_of(&away)), rp_ids_of(&p->allowed));
	if (r)
		rp_idset_copy(&r->isolate, rp_ids_of(&away));
	irq_rules_add(r, IRQ_CONTROLLABLE, &p->settings.interrupts, rp_ids_none());
	for (uint32_t i = 0; i < p->n_pools; i++)
		for (const struct grant *g = p->pools[i].grants; g; g = g->pool_next) {
			const struct irq_ask *a = g->exclusive ? g->irq : NULL;
			if (!a)
				continue;
			irq_rules_add(r, IRQ_CLAIM, &a->claims, cpus_ids(g->exclusive));
			irq_rules_add(r, a->claim_first ? IRQ_STRICT_MASK : IRQ_MASK, &a->masks,
				      cpus_ids(g->exclusive));
		}
	irq_commit(&inst->irqs, &inst->h, r);
}
