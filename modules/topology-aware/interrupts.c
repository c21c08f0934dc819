/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interrupts that containers want on their exclusive CPUs, or off them. Moving them is the
 * library's work, on the host's worker.
 */
#include <stdio.h>
#include <stdlib.h>

#include "modules/lib/annotation.h"
#include "modules/topology-aware/ta.h"

#define KEY "irq-affinity" TA_DOMAIN
#define WHAT "invalid IRQ affinity, annotation " KEY
#define PATTERNS_MAX 256u

struct irq_ask {
	uint32_t n_users;
	bool claim_first;
	uint32_t n_claims, n_masks;
	char **patterns; /* claims, then masks */
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
	for (uint32_t i = 0; i < a->n_claims + a->n_masks; i++)
		free(a->patterns[i]);
	free(a->patterns);
	free(a);
	return NULL;
}

/* ---- reading --------------------------------------------------------------------------------- */

static int32_t check_interrupts(struct rp_instance *inst, const struct irq_ask *ask)
{
	for (uint32_t i = 0; i < ask->n_claims + ask->n_masks; i++) {
		const struct irq_name *denied =
			irq_find_denied(&inst->plan->settings.denied, ask->patterns[i]);
		if (denied)
			return modhost_fail(&inst->h, -RP_EINVAL,
					    "denied interrupt: \"%.64s\" matches \"%.64s\", which "
					    "controllableInterrupts does not have",
					    ask->patterns[i], denied->description);
	}
	return 0;
}

static int32_t read_list(struct rp_instance *inst, rp_cfg map, const char *key, struct irq_ask *a,
			 uint32_t *count)
{
	const struct modhost *h = &inst->h;
	rp_cfg list;
	int32_t r = annotation_texts(h, WHAT, map, key, &list);
	uint32_t n = h->config->count(h->ctx, list), has = a->n_claims + a->n_masks;
	if (r)
		return r;
	if (n > PATTERNS_MAX)
		return modhost_fail(h, -RP_E2BIG, "invalid IRQ affinity: more than %u interrupts",
				    PATTERNS_MAX);
	char **grown = n ? realloc(a->patterns, (has + n) * sizeof *grown) : NULL;
	if (n && !grown)
		return modhost_no_memory(h);
	if (n)
		a->patterns = grown;
	for (uint32_t i = 0; i < n; i++) {
		a->patterns[has + i] =
			strdup(h->config->text(h->ctx, h->config->item(h->ctx, list, i), ""));
		if (!a->patterns[has + i])
			return modhost_no_memory(h);
		(*count)++;
		if (!glob_valid(a->patterns[has + i]))
			return modhost_fail(h, -RP_EINVAL,
					    "invalid IRQ affinity: \"%.64s\" is no valid pattern",
					    a->patterns[has + i]);
	}
	return 0;
}

static int32_t read_ask(struct rp_instance *inst, const char *text, struct irq_ask *a)
{
	const struct modhost *h = &inst->h;
	rp_cfg map, at;
	int32_t r = annotation_parse(h, WHAT, text, &map);
	if (!r)
		r = annotation_member(h, WHAT, map, "mode", RP_NODE_SCALAR, &at);
	if (r)
		return r;
	const char *mode = h->config->text(h->ctx, at, "mask-first");
	a->claim_first = strcmp(mode, "claim-first") == 0;
	if (!a->claim_first && strcmp(mode, "mask-first") != 0)
		return modhost_fail(h, -RP_EINVAL, "invalid IRQ affinity mode \"%.64s\"", mode);
	r = read_list(inst, map, "claim", a, &a->n_claims);
	return r ? r : read_list(inst, map, "mask", a, &a->n_masks);
}

/* Neither a pod-wide annotation nor one without interrupts says anything about a container without
 * exclusive CPUs. */
static int32_t check_eligible(struct rp_instance *inst, const struct request *r, bool own,
			      bool *ret_eligible)
{
	bool guaranteed = r->info.qos == RP_QOS_GUARANTEED;
	*ret_eligible = guaranteed && r->full;
	if (*ret_eligible || !own)
		return 0;
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
	const char *text = h->cache->annotation(h->ctx, r->info.ctr, KEY, &scope);
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
		e = check_interrupts(inst, a);
	if (e || !eligible)
		irq_ask_unref(a);
	else
		r->irq = a;
	return e;
}

/* ---- doing ----------------------------------------------------------------------------------- */

struct rules {
	struct irq_claim *claims;
	struct irq_mask *masks;
	uint32_t n_claims, n_masks, cap;
};

static bool has_room(struct rules *r)
{
	if (r->n_claims < r->cap && r->n_masks < r->cap)
		return true;
	uint32_t cap = r->cap * 2 + 8;
	struct irq_claim *claims = realloc(r->claims, cap * sizeof *claims);
	if (claims)
		r->claims = claims;
	struct irq_mask *masks = realloc(r->masks, cap * sizeof *masks);
	if (masks)
		r->masks = masks;
	if (!claims || !masks)
		return false;
	r->cap = cap;
	return true;
}

static bool add_rules(struct rules *r, const struct grant *g)
{
	const struct irq_ask *a = g->irq;
	const char *const *patterns = (const char *const *)(uintptr_t)a->patterns;
	if (!has_room(r))
		return false;
	if (a->n_claims)
		r->claims[r->n_claims++] =
			(struct irq_claim){{patterns, a->n_claims}, cpus_ids(g->exclusive)};
	if (a->n_masks)
		r->masks[r->n_masks++] = (struct irq_mask){
			{{patterns + a->n_claims, a->n_masks}, cpus_ids(g->exclusive)},
			a->claim_first};
	return true;
}

void interrupts_apply(struct rp_instance *inst)
{
	const struct rp_plan *p = inst->plan;
	struct rules r = {0};
	bool complete = true;
	if (!inst->ledger.irqs_changed)
		return;
	inst->ledger.irqs_changed = false;
	for (uint32_t i = 0; i < p->n_pools; i++)
		for (const struct grant *g = p->pools[i].grants; g && complete; g = g->pool_next)
			if (g->irq && g->exclusive)
				complete = add_rules(&r, g);
	inst->irqs_used |= r.n_claims + r.n_masks > 0;
	if (inst->irqs_used && !inst->irqs)
		inst->irqs = irq_new(&inst->h);
	if (inst->irqs && complete) {
		const struct irq_wish wish = {
			.active = r.n_claims + r.n_masks > 0,
			.claims = r.claims,
			.n_claims = r.n_claims,
			.masks = r.masks,
			.n_masks = r.n_masks,
			.allowed = rp_ids_of(&p->allowed),
			.controllable = {p->settings.interrupts.list, p->settings.interrupts.n},
		};
		irq_commit(inst->irqs, &wish);
	} else if (inst->irqs_used) {
		modhost_log(&inst->h, RP_LOG_ERROR, 0,
			    "out of memory: interrupts stay where they are");
	}
	free(r.claims);
	free(r.masks);
}
