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

struct wishes {
	struct irq_claim *claims;
	uint32_t n_claims;
	struct rp_idset sink, isolate;
};

static uint32_t count_balloons(const struct balloon *b)
{
	uint32_t n = 1;
	for (uint32_t i = 0; i < b->n_parts; i++)
		n += count_balloons(b->parts[i]);
	return n;
}

static void stage_hardware_collect(struct wishes *w, const struct balloon *b)
{
	const struct type *t = b->type;
	for (uint32_t i = 0; i < b->n_parts; i++)
		stage_hardware_collect(w, b->parts[i]);
	if (t->irq_claim.n)
		w->claims[w->n_claims++] = (struct irq_claim){{t->irq_claim.list, t->irq_claim.n},
							      rp_ids_of(&b->cpus)};
	if (t->irq_mode == IRQ_SINK)
		rp_idset_or(&w->sink, rp_ids_of(&w->sink), rp_ids_of(&b->cpus));
	if (t->irq_mode == IRQ_ISOLATE)
		rp_idset_or(&w->isolate, rp_ids_of(&w->isolate), rp_ids_of(&b->cpus));
}

static void follow_interrupts(struct rp_instance *inst)
{
	const struct state *s = inst->state;
	const struct rp_plan *p = inst->plan;
	struct wishes w = {NULL, 0, {0}, {0}};
	uint32_t n = 1;
	for (uint32_t i = 0; i < s->n; i++)
		n += count_balloons(s->list[i]);
	w.claims = calloc(n, sizeof *w.claims);
	if (!w.claims) {
		modhost_log(&inst->h, RP_LOG_ERROR, 0, "out of memory: interrupts are not moved");
		return;
	}
	rp_idset_clear(&w.sink);
	(void)isolation_interrupts(inst, &w.isolate);
	for (uint32_t i = 0; i < s->n; i++)
		if (s->list[i]->n_members)
			stage_hardware_collect(&w, s->list[i]);
	irq_commit(inst->irq, &(struct irq_wish){
				      .active = p->uses_irq,
				      .claims = w.claims,
				      .n_claims = w.n_claims,
				      .sink = rp_ids_of(&w.sink),
				      .isolate = rp_ids_of(&w.isolate),
				      .allowed = rp_ids_of(&p->allowed),
				      .controllable = {p->controllable.list, p->controllable.n},
			      });
	free(w.claims);
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
