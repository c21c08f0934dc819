/* SPDX-License-Identifier: Apache-2.0 */
/* Submits CPU classes and interrupt affinities to the host's worker. Containers are not
 * affected. */
#include <string.h>

#include "modules/balloons/balloons.h"
#include "modules/balloons/stage.h"

static void use_classes(struct rp_instance *inst, const struct balloon *b)
{
	for (uint32_t i = 0; i < b->n_parts; i++)
		use_classes(inst, b->parts[i]);
	if (!b->n_parts)
		cpuclass_use(inst->classes, b->type->cpu_class, rp_ids_of(&b->cpus));
}

static void follow_classes(struct rp_instance *inst)
{
	const struct state *s = inst->state;
	cpuclass_use(inst->classes, inst->plan->idle_class, rp_ids_of(&inst->plan->allowed));
	for (uint32_t i = 0; i < s->n; i++)
		use_classes(inst, s->list[i]);
	cpuclass_commit(inst->classes);
}

/* ---- interrupts ------------------------------------------------------------------------------ */

static void stage_hardware_collect(struct irq_rules *r, const struct balloon *b)
{
	const struct type *t = b->type;
	for (uint32_t i = 0; i < b->n_parts; i++)
		stage_hardware_collect(r, b->parts[i]);
	irq_rules_add(r, IRQ_CLAIM, &t->irq_claim, rp_ids_of(&b->cpus));
	if (t->irq_mode == IRQ_SINK)
		rp_idset_or(&r->sink, rp_ids_of(&r->sink), rp_ids_of(&b->cpus));
	if (t->irq_mode == IRQ_ISOLATE)
		rp_idset_or(&r->isolate, rp_ids_of(&r->isolate), rp_ids_of(&b->cpus));
}

static void follow_interrupts(struct rp_instance *inst)
{
	const struct state *s = inst->state;
	const struct rp_plan *p = inst->plan;
	struct irq_rules *r = irq_rules_new(p->uses_irq, rp_ids_of(&p->allowed));
	if (r)
		(void)isolation_interrupts(inst, &r->isolate);
	irq_rules_add(r, IRQ_CONTROLLABLE, &p->controllable, rp_ids_none());
	for (uint32_t i = 0; r && i < s->n; i++)
		if (s->list[i]->n_members)
			stage_hardware_collect(r, s->list[i]);
	irq_commit(&inst->irq, &inst->h, r);
}

/* ---- after an operation ---------------------------------------------------------------------- */

void outside_follow(struct rp_instance *inst)
{
	const struct rp_plan *p = inst->plan;
	if (!inst->state || (inst->outside_ready && !p->classes.n && !p->uses_irq))
		return;
	bool first = !inst->outside_ready;
	inst->outside_ready = true;
	if (first || inst->state->sets_changed)
		follow_classes(inst);
	if (first || p->uses_irq)
		follow_interrupts(inst);
}
