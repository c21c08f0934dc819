/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interrupts that containers want on their exclusive CPUs, or off them. Moving them is the library's work, on the host's worker. There, too, is
 * read which ones there are: on a large machine the kernel's table is one of megabytes. So a container that asks for one it may not
 * have is refused only once the names are known; before that, as ever, such an interrupt just stays where it is.
 */
#include <stdio.h>
#include <stdlib.h>

#include "modules/topology-aware/ta.h"

#define KEY "irq-affinity" TA_DOMAIN
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

/* ---- which ones there are ------------------------------------------------------------------------------------------------- */

struct irq_names {
	char **list; /* descriptions */
	uint32_t n, cap;
};

struct names_job {
	struct rp_instance *inst;
	struct modhost h; /* the worker's; it keeps no sentences */
	struct irq_names *names;
};

struct irq_names *irq_names_free(struct irq_names *n)
{
	if (!n)
		return NULL;
	for (uint32_t i = 0; i < n->n; i++)
		free(n->list[i]);
	free(n->list);
	free(n);
	return NULL;
}

static int32_t add_name(void *arg, uint32_t number, const char *description)
{
	struct irq_names *n = arg;
	(void)number;
	if (n->n == n->cap) {
		uint32_t cap = n->cap * 2 + 64;
		char **grown = realloc(n->list, cap * sizeof *grown);
		if (!grown)
			return -RP_ENOMEM;
		n->list = grown;
		n->cap = cap;
	}
	n->list[n->n] = strdup(description);
	if (!n->list[n->n])
		return -RP_ENOMEM;
	n->n++;
	return 0;
}

static int32_t names_run(void *arg)
{
	struct names_job *j = arg;
	return irq_each(&j->h, add_name, j->names);
}

static void names_done(void *arg, int32_t result)
{
	struct names_job *j = arg;
	struct rp_instance *inst = j->inst;
	inst->irqs_asked = false;
	if (!result) {
		irq_names_free(inst->irq_names);
		inst->irq_names = j->names;
	} else {
		irq_names_free(j->names);
	}
	free(j);
}

void interrupts_learn(struct rp_instance *inst)
{
	const struct modhost *h = &inst->h;
	if (inst->irqs_asked || !h->work)
		return;
	struct names_job *j = calloc(1, sizeof *j);
	struct irq_names *names = calloc(1, sizeof *names);
	if (j && names) {
		*j = (struct names_job){inst, *h, names};
		j->h.why = NULL;
		inst->irqs_asked = true;
		if (h->work->submit(h->ctx, names_run, names_done, j) == 0)
			return;
		inst->irqs_asked = false;
	}
	free(names);
	free(j);
}

/* ---- reading ------------------------------------------------------------------------------------------------------------- */

static int32_t check_interrupt(struct rp_instance *inst, const struct irq_ask *ask,
			       const char *description)
{
	if (strings_match(&inst->plan->settings.interrupts, description))
		return 0;
	for (uint32_t i = 0; i < ask->n_claims + ask->n_masks; i++)
		if (glob_match(ask->patterns[i], description))
			return modhost_fail(&inst->h, -RP_EINVAL,
					    "denied interrupt: \"%.64s\" matches \"%.64s\", which "
					    "controllableInterrupts does not have",
					    ask->patterns[i], description);
	return 0;
}

static int32_t check_interrupts(struct rp_instance *inst, const struct irq_ask *ask)
{
	const struct irq_names *n = inst->irq_names;
	int32_t r = 0;
	if (!n)
		interrupts_learn(inst);
	for (uint32_t i = 0; n && i < n->n && !r; i++)
		r = check_interrupt(inst, ask, n->list[i]);
	return r;
}

static int32_t read_list(struct rp_instance *inst, rp_cfg map, const char *key, struct irq_ask *a,
			 uint32_t *count)
{
	const struct modhost *h = &inst->h;
	rp_cfg list = h->config->get(h->ctx, map, key);
	uint32_t n = h->config->count(h->ctx, list), has = a->n_claims + a->n_masks;
	if (n > PATTERNS_MAX)
		return modhost_fail(h, -RP_E2BIG, "invalid IRQ affinity: more than %u interrupts",
				    PATTERNS_MAX);
	char **grown = n ? realloc(a->patterns, (has + n) * sizeof *grown) : NULL;
	if (n && !grown)
		return modhost_fail(h, -RP_ENOMEM, "out of memory");
	if (n)
		a->patterns = grown;
	for (uint32_t i = 0; i < n; i++) {
		a->patterns[has + i] =
			strdup(h->config->text(h->ctx, h->config->item(h->ctx, list, i), ""));
		if (!a->patterns[has + i])
			return modhost_fail(h, -RP_ENOMEM, "out of memory");
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
	int32_t r;
	if (!RP_HAS(h->config, parse))
		return modhost_fail(h, -RP_ENOTSUP, "this host can not read annotation " KEY);
	rp_cfg map = h->config->parse(h->ctx, "invalid IRQ affinity, annotation " KEY, text, &r);
	if (r)
		return r;
	const char *mode =
		h->config->text(h->ctx, h->config->get(h->ctx, map, "mode"), "mask-first");
	a->claim_first = strcmp(mode, "claim-first") == 0;
	if (!a->claim_first && strcmp(mode, "mask-first") != 0)
		return modhost_fail(h, -RP_EINVAL, "invalid IRQ affinity mode \"%.64s\"", mode);
	r = read_list(inst, map, "claim", a, &a->n_claims);
	return r ? r : read_list(inst, map, "mask", a, &a->n_masks);
}

/* Neither a pod-wide annotation nor one without interrupts says anything about a container without exclusive CPUs. */
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
		return modhost_fail(h, -RP_ENOMEM, "out of memory");
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

/* ---- doing ---------------------------------------------------------------------------------------------------------------- */

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
		inst->irqs = irq_new(&inst->h, glob_match);
	if (inst->irqs && complete) {
		const struct irq_wish wish = {
			.active = r.n_claims + r.n_masks > 0,
			.claims = r.claims,
			.n_claims = r.n_claims,
			.masks = r.masks,
			.n_masks = r.n_masks,
			.allowed = rp_ids_of(&p->allowed),
			.controllable = {p->settings.interrupts.items, p->settings.interrupts.n},
		};
		irq_commit(inst->irqs, &wish);
	} else if (inst->irqs_used) {
		modhost_log(&inst->h, RP_LOG_ERROR, 0,
			    "out of memory: interrupts stay where they are");
	}
	free(r.claims);
	free(r.masks);
}
