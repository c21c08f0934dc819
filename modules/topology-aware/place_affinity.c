/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Affinities between containers. Each container that an affinity matches adds the affinity's weight
 * to the container's pool. The weights then spread to ancestor and descendant pools and shrink with
 * each step. affinity_weigh() is the entry point.
 */
#include <stdio.h>
#include <stdlib.h>

#include "modules/lib/private/annotation.h"
#include "modules/lib/private/room.h"
#include <nri-rp/lib/section.h>
#include "modules/topology-aware/place.h"
#include "modules/topology-aware/topology-aware.h"

#define WEIGHT_MAX 1000
#define COLOCATION_WEIGHT 10
#define STEP 0.75 /* fraction of a weight that reaches a parent or child pool */
#define AFFINITIES_MAX 256u /* maximum number of affinities of one container */

struct affinity {
	/* matches containers of the same pod; otherwise scope selects the containers */
	bool same_pod;
	/* name of the matching container, "*": any; NULL: the expression `match` selects the
	 * containers */
	const char *name;
	struct expr scope, match;
	int64_t weight;
};

struct affinities {
	struct blocks memory; /* allocated memory that the expressions point into */
	struct affinity *list;
	uint32_t n, cap;
};

static uint32_t place_affinity_kind(struct rp_instance *inst, rp_cfg node)
{
	return inst->h.config->kind(inst->h.ctx, node);
}

static void affinities_fini(struct affinities *a)
{
	blocks_fini(&a->memory);
	free(a->list);
	*a = (struct affinities){0};
}

static int32_t place_affinity_add(struct rp_instance *inst, struct affinities *a,
				  const struct affinity *one)
{
	if (a->n == AFFINITIES_MAX)
		return modhost_fail(&inst->h, -RP_E2BIG, "more than %u affinities", AFFINITIES_MAX);
	if (!room_for(&a->list, &a->cap, a->n + 1, sizeof *a->list))
		return modhost_no_memory(&inst->h);
	a->list[a->n++] = *one;
	return 0;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Returns true if the annotation has the short form: container names mapped to lists of names. */
static bool is_simple(struct rp_instance *inst, rp_cfg map)
{
	const struct modhost *h = &inst->h;
	for (uint32_t i = 0; i < h->config->count(h->ctx, map); i++) {
		rp_cfg list = h->config->item(h->ctx, map, i);
		if (place_affinity_kind(inst, list) != RP_NODE_LIST &&
		    place_affinity_kind(inst, list) != RP_NODE_NULL)
			return false;
		for (uint32_t k = 0; k < h->config->count(h->ctx, list); k++)
			if (place_affinity_kind(inst, h->config->item(h->ctx, list, k)) !=
			    RP_NODE_SCALAR)
				return false;
	}
	return true;
}

static bool has_name(const struct affinities *a, uint32_t from, const char *name)
{
	for (uint32_t i = from; i < a->n; i++)
		if (a->list[i].name && strcmp(a->list[i].name, name) == 0)
			return true;
	return false;
}

/*
 * Reads the short form. Adds an affinity to each container that this container names, and to each
 * container that names this one.
 */
static int32_t read_simple(struct rp_instance *inst, rp_cfg map, const char *name, int64_t sign,
			   struct affinities *a)
{
	const struct modhost *h = &inst->h;
	uint32_t from = a->n;
	for (uint32_t i = 0; i < h->config->count(h->ctx, map); i++) {
		rp_cfg list = h->config->item(h->ctx, map, i);
		const char *key = h->config->key(h->ctx, map, i);
		bool own = strcmp(key, name) == 0;
		for (uint32_t k = 0; k < h->config->count(h->ctx, list); k++) {
			const char *other =
				h->config->text(h->ctx, h->config->item(h->ctx, list, k), "");
			struct affinity one = {.same_pod = true, .weight = sign};
			one.name = own ? other : strcmp(other, name) == 0 ? key : NULL;
			if (!one.name || has_name(a, from, one.name))
				continue;
			int32_t r = place_affinity_add(inst, a, &one);
			if (r)
				return r;
		}
	}
	return 0;
}

static int32_t read_one(struct rp_instance *inst, rp_cfg node, int64_t sign, struct blocks *memory,
			struct affinity *ret)
{
	const struct modhost *h = &inst->h;
	struct affinity one = {.weight = sign};
	if (place_affinity_kind(inst, node) != RP_NODE_MAP)
		return modhost_fail(h, -RP_EINVAL,
				    "an affinity needs match, and may have scope and weight");
	rp_cfg weight = section_get(&inst->h, node, "weight"),
	       scope = section_get(&inst->h, node, "scope");
	if (weight) {
		int64_t w = h->config->value(h->ctx, weight, RP_T_INT, INT64_MIN);
		if (w == INT64_MIN)
			return modhost_fail(h, -RP_EINVAL,
					    "the weight of an affinity is not an integer");
		w = w > WEIGHT_MAX ? WEIGHT_MAX : w < -WEIGHT_MAX ? -WEIGHT_MAX : w;
		one.weight = w ? sign * w : sign;
	}
	one.same_pod = place_affinity_kind(inst, scope) == RP_NODE_NULL;
	int32_t r = one.same_pod ? 0 : match_read_one(h, memory, scope, "scope", &one.scope);
	if (!r)
		r = match_read_one(h, memory, section_get(&inst->h, node, "match"), "match",
				   &one.match);
	if (!r)
		*ret = one;
	return r;
}

/*
 * Reads the full form: container names mapped to lists of affinities with scope, match and weight.
 */
static int32_t read_full(struct rp_instance *inst, rp_cfg map, const char *name, int64_t sign,
			 struct affinities *a)
{
	const struct modhost *h = &inst->h;
	for (uint32_t i = 0; i < h->config->count(h->ctx, map); i++) {
		rp_cfg list = h->config->item(h->ctx, map, i);
		if (place_affinity_kind(inst, list) != RP_NODE_LIST)
			return modhost_fail(h, -RP_EINVAL,
					    "expected a list of affinities for container %.64s",
					    h->config->key(h->ctx, map, i));
		for (uint32_t k = 0; k < h->config->count(h->ctx, list); k++) {
			struct affinity one;
			int32_t r = read_one(inst, h->config->item(h->ctx, list, k), sign,
					     &a->memory, &one);
			if (r)
				return r;
			/*
			 * Affinities of other containers of the pod are only checked; a mistake in
			 * one of them refuses all.
			 */
			if (strcmp(h->config->key(h->ctx, map, i), name) == 0)
				r = place_affinity_add(inst, a, &one);
			if (r)
				return r;
		}
	}
	return 0;
}

static int32_t read_annotation(struct rp_instance *inst, const struct rp_ctr_info *info,
			       const char *const keys[2], int64_t sign, struct affinities *a)
{
	const struct modhost *h = &inst->h;
	const char *text = h->cache->pod_annotation(h->ctx, info->pod, keys[0]);
	if (!text)
		text = h->cache->pod_annotation(h->ctx, info->pod, keys[1]);
	if (!text)
		return 0;
	rp_cfg map;
	char what[sizeof "annotation " + 64];
	(void)snprintf(what, sizeof what, "annotation %s", keys[0]);
	int32_t r = annotation_parse(h, what, text, &map);
	if (r)
		return r;
	return is_simple(inst, map) ? read_simple(inst, map, info->name, sign, a)
				    : read_full(inst, map, info->name, sign, a);
}

static int32_t read_all(struct rp_instance *inst, const struct rp_ctr_info *info,
			struct affinities *a)
{
	static const char *const affinity[2] = {"resource-policy.nri.io/affinity",
						"cri-resource-manager.intel.com/affinity"};
	static const char *const anti[2] = {"resource-policy.nri.io/anti-affinity",
					    "cri-resource-manager.intel.com/anti-affinity"};
	int32_t r = read_annotation(inst, info, affinity, 1, a);
	return r ? r : read_annotation(inst, info, anti, -1, a);
}

/* ---- weights --------------------------------------------------------------------------------- */

static bool place_affinity_matches(struct rp_instance *inst, const struct affinity *a,
				   const struct rp_ctr_info *own, const struct rp_ctr_info *other)
{
	if (a->same_pod ? other->pod != own->pod : !match_holds(&inst->h, &a->scope, other))
		return false;
	return a->name ? strcmp(a->name, "*") == 0 || strcmp(a->name, other->name) == 0
		       : match_holds(&inst->h, &a->match, other);
}

static bool add_weight(struct rp_plan *p, uint32_t pool, double weight)
{
	p->weight[pool] += weight;
	return weight != 0;
}

static int32_t weigh_explicit(struct rp_instance *inst, struct request *r,
			      const struct affinities *a)
{
	int32_t n = ctr_list(&inst->h, &inst->list, RP_ORDER_CREATED);
	for (int32_t i = 0; i < n; i++) {
		struct rp_ctr_info other;
		const struct grant *g = ledger_find(inst, inst->list.ctrs[i]);
		if (!g || g->ctr == r->info.ctr || ctr_info(&inst->h, g->ctr, &other))
			continue;
		for (uint32_t k = 0; k < a->n; k++)
			if (place_affinity_matches(inst, &a->list[k], &r->info, &other))
				r->weighted |=
					add_weight(inst->plan, g->pool, (double)a->list[k].weight);
	}
	return n < 0 ? n : 0;
}

static void weigh_implicit(struct rp_instance *inst, struct request *r)
{
	struct rp_plan *p = inst->plan;
	const struct settings *s = &p->settings;
	const struct grant *g = s->colocate_pods ? ledger_of_pod(inst, r->info.pod) : NULL;
	const uint32_t *n_at =
		s->colocate_namespaces ? ledger_of_namespace(inst, r->info.pod_namespace) : NULL;
	for (; g; g = g->pod_next)
		if (g->ctr != r->info.ctr)
			r->weighted |= add_weight(p, g->pool, COLOCATION_WEIGHT);
	for (uint32_t i = 0; n_at && i < p->n_pools; i++)
		r->weighted |= add_weight(p, i, n_at[i] * COLOCATION_WEIGHT);
}

double affinity_of_ancestors(const struct rp_plan *p, uint32_t parent)
{
	return parent == NO_POOL ? 0 : STEP * p->weight[parent];
}

/*
 * Spreads the weights along the tree. The first pass sums the weights of descendants into
 * affinity[], the second adds the weights of ancestors.
 */
static void place_affinity_spread(struct rp_plan *p)
{
	for (uint32_t i = 0; i < p->n_pools; i++)
		p->affinity[i] = p->weight[i];
	for (uint32_t i = 0; i < p->n_pools; i++)
		if (p->pools[i].parent != NO_POOL)
			p->affinity[p->pools[i].parent] += STEP * p->affinity[i];
	/*
	 * From here on weight[] holds the pool's own weight plus the part received from its
	 * ancestors.
	 */
	for (uint32_t i = p->n_pools; i-- > 0;) {
		double above = affinity_of_ancestors(p, p->pools[i].parent);
		p->affinity[i] += above;
		p->weight[i] += above;
	}
}

int32_t affinity_weigh(struct rp_instance *inst, struct request *r)
{
	struct rp_plan *p = inst->plan;
	struct affinities a = {0};
	r->weighted = false;
	int32_t e = read_all(inst, &r->info, &a);
	r->selective = a.n > 0;
	r->averse = false;
	for (uint32_t i = 0; i < a.n; i++)
		r->averse |= a.list[i].weight < 0;
	if (!e && (a.n || p->settings.colocate_pods || p->settings.colocate_namespaces)) {
		memset(p->weight, 0, p->n_pools * sizeof *p->weight);
		if (a.n)
			e = weigh_explicit(inst, r, &a);
		else
			weigh_implicit(inst, r);
		if (!e && r->weighted)
			place_affinity_spread(p);
	}
	affinities_fini(&a);
	return e;
}
