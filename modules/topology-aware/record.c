/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A grant as it is kept with its container, over restarts and reloads. Pools are named, as their
 * numbers may change with the machine. Written and read on one machine only, and by one version of
 * this module: another layout has another number.
 */
#include "modules/topology-aware/ta.h"

#define RECORD_VERSION 1u
#define AMOUNT_MAX                                                                                 \
	(INT64_MAX >> 16) /* milli-CPU; sums of many stay far from the end of the numbers */

struct head {
	uint32_t version, type, flags, mem_types;
	int64_t portion, shares_mcpu, mem_size;
	struct needs needs;
	uint64_t cold_ms, cold_until;
	uint32_t n_pool, n_zone, n_exclusive, n_hints; /* bytes; words; words; hints */
};

/* Followed by the words of three sets and the provider's name. */
struct hint_head {
	uint32_t n_cpus, n_nodes, n_sockets, n_provider;
};

/* ---- writing --------------------------------------------------------------------------------- */

static void put(struct record_bytes *b, const void *data, size_t n)
{
	if (n)
		memcpy(b->data + b->size, data, n);
	b->size += (uint32_t)n;
}

static void put_set(struct record_bytes *b, struct rp_ids ids)
{
	put(b, ids.w, ids.nw * sizeof ids.w[0]);
}

static bool put_hint(struct record_bytes *b, const struct hint *h)
{
	struct rp_ids sets[3] = {cpus_ids(h->cpus), cpus_ids(h->nodes), cpus_ids(h->sockets)};
	struct hint_head head = {sets[0].nw, sets[1].nw, sets[2].nw, (uint32_t)strlen(h->provider)};
	size_t n = sizeof head + head.n_provider +
		   (size_t)(head.n_cpus + head.n_nodes + head.n_sockets) * sizeof(uint64_t);
	if (b->size + n > sizeof b->data)
		return false;
	put(b, &head, sizeof head);
	for (uint32_t i = 0; i < 3; i++)
		put_set(b, sets[i]);
	put(b, h->provider, head.n_provider);
	return true;
}

void record_make(struct rp_instance *inst, const struct grant *g, struct record_bytes *ret)
{
	const struct rp_plan *p = inst->plan;
	const struct pool *pool = &p->pools[g->pool];
	struct rp_idset zone;
	memalloc_mask mask = 0;
	(void)memalloc_zone(p->mem, g->ctr, &mask);
	memalloc_ids(p->mem, mask, &zone);
	struct head head = {
		.version = RECORD_VERSION,
		.type = g->type,
		.flags = g->flags,
		.mem_types = g->mem_types,
		.portion = g->portion,
		.shares_mcpu = g->shares_mcpu,
		.mem_size = g->mem_size,
		.needs = g->needs,
		.cold_ms = g->cold_ms,
		.cold_until = g->cold_until,
		.n_pool = (uint32_t)strlen(pool->name),
		.n_zone = zone.nw,
		.n_exclusive = g->exclusive ? g->exclusive->nw : 0,
	};
	ret->size = 0;
	put(ret, &head, sizeof head);
	put(ret, pool->name, head.n_pool);
	put_set(ret, rp_ids_of(&zone));
	put_set(ret, cpus_ids(g->exclusive));
	for (const struct hint *h = g->hints ? g->hints->first : NULL; h; h = h->next)
		head.n_hints += put_hint(ret, h);
	if (g->hints && head.n_hints < g->hints->n)
		modhost_log(&inst->h, RP_LOG_WARNING, g->ctr,
			    "%u of %u topology hints will be forgotten at the next restart",
			    g->hints->n - head.n_hints, g->hints->n);
	memcpy(ret->data, &head, sizeof head);
}

bool record_is_kept(struct rp_instance *inst, rp_ctr ctr, const struct record_bytes *rec)
{
	const void *data;
	uint32_t size;
	return inst->h.cache->get_private(inst->h.ctx, ctr, &data, &size) == 0 &&
	       size == rec->size && memcmp(data, rec->data, size) == 0;
}

/* ---- reading --------------------------------------------------------------------------------- */

struct reader {
	const uint8_t *p;
	uint64_t left;
};

static bool get(struct reader *r, void *ret, uint64_t n)
{
	if (n > r->left)
		return false;
	if (n)
		memcpy(ret, r->p, n);
	r->p += n;
	r->left -= n;
	return true;
}

static bool get_set(struct reader *r, uint32_t n_words, struct rp_idset *ret)
{
	rp_idset_clear(ret);
	if (n_words > RP_IDSET_WORDS || !get(r, ret->w, (uint64_t)n_words * sizeof ret->w[0]))
		return false;
	ret->nw = n_words;
	rp_idset_trim(ret);
	return true;
}

static int32_t get_hint(struct reader *r, struct hints **hints)
{
	struct hint_head head;
	struct rp_idset cpus, nodes, sockets;
	char provider[RP_PRIVATE_MAX + 1];
	if (!get(r, &head, sizeof head) || !get_set(r, head.n_cpus, &cpus) ||
	    !get_set(r, head.n_nodes, &nodes) || !get_set(r, head.n_sockets, &sockets) ||
	    head.n_provider > RP_PRIVATE_MAX || !get(r, provider, head.n_provider))
		return -RP_ENOENT;
	provider[head.n_provider] = '\0';
	return hints_add(hints, provider, rp_ids_of(&cpus), rp_ids_of(&nodes), rp_ids_of(&sockets));
}

static int32_t get_body(const struct rp_plan *p, struct reader *r, const struct head *head,
			struct record *ret)
{
	char pool[POOL_NAME_MAX];
	struct rp_idset zone;
	int32_t e = 0;
	if (head->n_pool >= sizeof pool || !get(r, pool, head->n_pool) ||
	    !get_set(r, head->n_zone, &zone) || !get_set(r, head->n_exclusive, &ret->exclusive))
		return -RP_ENOENT;
	pool[head->n_pool] = '\0';
	ret->pool = tree_find(p, pool);
	ret->zone = memalloc_mask_of(p->mem, rp_ids_of(&zone));
	for (uint32_t i = 0; !e && i < head->n_hints; i++)
		e = get_hint(r, &ret->hints);
	return e;
}

/* Bytes that were damaged are nobody's, rather than amounts that nobody has. */
static bool is_sane(const struct head *head)
{
	return head->version == RECORD_VERSION && head->type < N_GRANT_TYPES &&
	       head->portion >= 0 && head->portion <= AMOUNT_MAX && head->shares_mcpu >= 0 &&
	       head->shares_mcpu <= AMOUNT_MAX && head->mem_size >= 0;
}

int32_t record_read(struct rp_instance *inst, rp_ctr ctr, struct record *ret)
{
	const struct modhost *h = &inst->h;
	const void *data;
	uint32_t size;
	struct head head;
	if (h->cache->get_private(h->ctx, ctr, &data, &size))
		return -RP_ENOENT;
	struct reader r = {data, size};
	if (!get(&r, &head, sizeof head) || !is_sane(&head))
		return -RP_ENOENT;
	*ret = (struct record){.type = (enum grant_type)head.type,
			       .flags = head.flags,
			       .portion = head.portion,
			       .shares_mcpu = head.shares_mcpu,
			       .mem_size = head.mem_size,
			       .mem_types = head.mem_types,
			       .cold_ms = head.cold_ms,
			       .cold_until = head.cold_until,
			       .needs = head.needs};
	int32_t e = get_body(inst->plan, &r, &head, ret);
	if (e)
		ret->hints = hints_unref(ret->hints);
	return e;
}
