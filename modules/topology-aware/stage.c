/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stages grants of the ledger: writes into the transaction what differs from the current state of
 * containers. Makes and reads the records saved with containers.
 */
#include <stdio.h>
#include <stdlib.h>

#include <nri-rp/lib/bytes.h>
#include "modules/lib/private/room.h"
#include "modules/topology-aware/stage.h"
#include "modules/topology-aware/topology-aware.h"

/* ---- CPUs of a grant ------------------------------------------------------------------------- */

/* Returns the current CPUs of a grant. */
static void stage_cpus(const struct rp_plan *p, const struct grant *g, struct rp_idset *ret)
{
	const struct pool *pool = &p->pools[g->pool];
	if (g->type == GRANT_RESERVED)
		rp_idset_copy(ret, plan_ids(p, pool->reserved));
	else if (grant_shares(g))
		rp_idset_or(ret, plan_ids(p, pool->sharable), cpus_ids(g->exclusive));
	else
		rp_idset_copy(ret, cpus_ids(g->exclusive));
	/*
	 * A misplaced container whose last shared CPUs became exclusive runs on the reserved CPUs.
	 */
	if (g->flags & GRANT_MISPLACED && rp_ids_empty(rp_ids_of(ret)))
		rp_idset_copy(ret, plan_ids(p, p->pools[p->root].reserved));
	struct rp_idset all = *ret;
	if (g->flags & GRANT_HIDE_THREADS)
		machine_one_per_core(p->machine, rp_ids_of(&all), ret);
}

/* ---- CPU sets and container data ------------------------------------------------------------- */

static int32_t stage_set(struct rp_instance *inst, rp_txn txn, rp_ctr ctr, struct rp_ids cpus,
			 struct rp_ids exclusive)
{
	const struct modhost *h = &inst->h;
	int32_t r = h->cache->set_cpus(h->ctx, txn, ctr, cpus);
	return r ? r : h->cache->set_exclusive(h->ctx, txn, ctr, exclusive);
}

#define SHARED_CPUS "SHARED_CPUS"

/*
 * Stages the data that describe the container's CPUs and memory nodes. fresh: the container is
 * being created, so empty values are omitted.
 */
static int32_t stage_data(struct rp_instance *inst, rp_txn txn, const struct grant *g,
			  memalloc_mask zone, bool fresh)
{
	static const uint32_t types[] = {MEMALLOC_ALL_TYPES, MEMALLOC_DRAM, MEMALLOC_PMEM,
					 MEMALLOC_HBM};
	const struct modhost *h = &inst->h;
	const struct rp_plan *p = inst->plan;
	struct rp_idset isolated, ordinary, mems[4];
	rp_idset_and(&isolated, cpus_ids(g->exclusive), rp_ids_of(&p->isolated));
	rp_idset_andnot(&ordinary, cpus_ids(g->exclusive), rp_ids_of(&p->isolated));
	for (uint32_t i = 0; i < 4; i++)
		memalloc_ids(p->mem, zone & memalloc_of_types(p->mem, types[i]), &mems[i]);
	bool shares = g->type == GRANT_NORMAL && g->portion > 0;
	const struct {
		const char *key;
		struct rp_ids ids;
	} lines[] = {
		{SHARED_CPUS, shares ? plan_ids(p, p->pools[g->pool].sharable) : rp_ids_none()},
		{"ISOLATED_CPUS", rp_ids_of(&isolated)},
		{"EXCLUSIVE_CPUS", rp_ids_of(&ordinary)},
		{"ALL_MEMS", rp_ids_of(&mems[0])},
		{"DRAM_MEMS", rp_ids_of(&mems[1])},
		{"PMEM_MEMS", rp_ids_of(&mems[2])},
		{"HBM_MEMS", rp_ids_of(&mems[3])},
	};
	int32_t r = 0;
	for (size_t i = 0; !r && i < sizeof lines / sizeof lines[0]; i++)
		if (!fresh || !rp_ids_empty(lines[i].ids))
			r = ctr_set_data_cpus(h, txn, g->ctr, lines[i].key, lines[i].ids);
	return r;
}

/* ---- state of a container -------------------------------------------------------------------- */

/* Intended state of a container. Unset numbers and empty sets leave the current value. */
struct wanted {
	struct rp_idset cpus, exclusive, mems;
	int64_t shares;
	memalloc_mask zone;
};

static void want_cpus(const struct rp_plan *p, const struct grant *g,
		      const struct rp_ctr_info *info, struct wanted *w)
{
	rp_idset_clear(&w->cpus);
	rp_idset_clear(&w->exclusive);
	w->shares = RP_NOT_SET;
	if (g->type == GRANT_PRESERVE)
		return;
	if (p->settings.pin_cpu || g->claim) {
		stage_cpus(p, g, &w->cpus);
		rp_idset_and(&w->exclusive, rp_ids_of(&w->cpus), cpus_ids(g->exclusive));
		w->shares = ctr_shares_of(g->shares_mcpu);
		/*
		 * Containers without exclusive CPUs in a pod with pod-level resources keep the
		 * shares of the kubelet, which also depend on the pod's request.
		 */
		if (!cpus_count(g->exclusive) && (info->flags & RP_CTR_POD_RESOURCES))
			w->shares = info->asked_shares;
		return;
	}
	/* A cpuset cannot be removed again, so an unpinned container gets all online CPUs. */
	if (!rp_ids_empty(info->cpus))
		rp_idset_copy(&w->cpus, rp_ids_of(&p->online));
	if (info->shares != RP_NOT_SET)
		w->shares = ctr_shares_of(info->cpu_request);
}

static void want_memory(const struct rp_plan *p, const struct grant *g,
			const struct rp_ctr_info *info, struct wanted *w)
{
	w->zone = 0;
	rp_idset_clear(&w->mems);
	(void)memalloc_zone(p->mem, g->ctr, &w->zone);
	if (g->flags & GRANT_PRESERVE_MEM)
		return;
	if (p->settings.pin_memory || g->claim)
		memalloc_ids(p->mem, w->zone, &w->mems);
	else if (!rp_ids_empty(info->mems))
		memalloc_ids(p->mem, memalloc_with_memory(p->mem), &w->mems);
}

static int32_t stage_reason(struct rp_instance *inst, rp_txn txn, const struct grant *g,
			    const struct rp_ctr_info *info)
{
	const struct modhost *h = &inst->h;
	if (!g->reason && !(info->flags & RP_CTR_DEGRADED))
		return 0;
	return h->cache->set_degraded(h->ctx, txn, g->ctr, g->reason);
}

static int32_t stage_wanted(struct rp_instance *inst, rp_txn txn, const struct grant *g,
			    const struct rp_ctr_info *info, const struct wanted *w, bool kept)
{
	const struct modhost *h = &inst->h;
	struct rp_ids cpus = rp_ids_of(&w->cpus), mems = rp_ids_of(&w->mems);
	int32_t r = 0;
	/*
	 * Without a saved record the current CPUs may have been set by another policy or by the
	 * host.
	 */
	if (!rp_ids_empty(cpus) && (!kept || !rp_ids_equal(cpus, info->cpus) ||
				    !rp_ids_equal(rp_ids_of(&w->exclusive), info->exclusive)))
		r = stage_set(inst, txn, g->ctr, cpus, rp_ids_of(&w->exclusive));
	if (!r && w->shares != RP_NOT_SET && w->shares != info->shares)
		r = h->cache->set_int(h->ctx, txn, g->ctr, RP_F_SHARES, w->shares);
	if (!r && !rp_ids_empty(mems) && !rp_ids_equal(mems, info->mems))
		r = h->cache->set_mems(h->ctx, txn, g->ctr, mems);
	return r;
}

int32_t stage_grant(struct rp_instance *inst, rp_txn txn, const struct grant *g)
{
	const struct modhost *h = &inst->h;
	const struct rp_plan *p = inst->plan;
	struct rp_ctr_info info;
	struct wanted w;
	struct record_bytes rec;
	int32_t r = ctr_info(&inst->h, g->ctr, &info);
	if (r)
		return r;
	want_cpus(p, g, &info, &w);
	want_memory(p, g, &info, &w);
	record_make(inst, g, &rec);
	bool fresh = info.state == RP_STATE_CREATING, kept = record_is_kept(inst, g->ctr, &rec);
	bool same = kept && (rp_ids_empty(rp_ids_of(&w.cpus)) ||
			     rp_ids_equal(rp_ids_of(&w.cpus), info.cpus));
	r = stage_wanted(inst, txn, g, &info, &w, kept);
	if (!r)
		r = stage_reason(inst, txn, g, &info);
	if (!r && !same)
		r = stage_data(inst, txn, g, w.zone, fresh);
	if (!r && !kept)
		r = h->cache->set_private(h->ctx, txn, g->ctr, rec.data, rec.size);
	return r;
}

/* ---- other containers ------------------------------------------------------------------------ */

static int32_t stage_sharer(struct rp_instance *inst, rp_txn txn, const struct grant *g,
			    const char *shared)
{
	const struct modhost *h = &inst->h;
	struct rp_idset cpus, exclusive;
	stage_cpus(inst->plan, g, &cpus);
	rp_idset_and(&exclusive, rp_ids_of(&cpus), cpus_ids(g->exclusive));
	int32_t r = stage_set(inst, txn, g->ctr, rp_ids_of(&cpus), rp_ids_of(&exclusive));
	return r || g->portion <= 0 ? r
				    : h->cache->set_data(h->ctx, txn, g->ctr, SHARED_CPUS, shared);
}

static int32_t stage_sharers_of(struct rp_instance *inst, rp_txn txn, const struct pool *pool,
				rp_ctr except)
{
	char text[CTR_DATA_MAX + 1];
	const char *shared = NULL;
	int32_t r = 0;
	for (const struct grant *g = pool->grants; g != *pool->unshared && !r; g = g->pool_next) {
		if (g->ctr == except)
			continue;
		if (!shared)
			shared = ctr_data_text(&inst->h, SHARED_CPUS,
					       plan_ids(inst->plan, pool->sharable), text);
		r = stage_sharer(inst, txn, g, shared);
	}
	return r;
}

static int32_t stage_sharers(struct rp_instance *inst, rp_txn txn, rp_ctr except)
{
	const struct rp_plan *p = inst->plan;
	int32_t r = 0;
	for (uint32_t i = 0; i < p->n_pools && p->settings.pin_cpu && !r; i++)
		if (p->pools[i].changed)
			r = stage_sharers_of(inst, txn, &p->pools[i], except);
	return r;
}

int32_t stage_others(struct rp_instance *inst, rp_txn txn, rp_ctr except)
{
	int32_t r = stage_sharers(inst, txn, except);
	for (uint32_t i = 0; !r && i < inst->n_moved; i++) {
		const struct grant *g = ledger_find(inst, inst->moved[i]);
		if (!g || g->ctr == except)
			continue;
		modhost_log(&inst->h, RP_LOG_INFO, g->ctr,
			    "its memory was moved to free capacity for another container");
		r = stage_grant(inst, txn, g);
	}
	inst->n_moved = 0;
	return r;
}

int32_t stage_note_moves(struct rp_instance *inst)
{
	const struct memalloc_move *moves;
	uint32_t n = memalloc_moves(inst->plan->mem, &moves);
	if (!room_for(&inst->moved, &inst->cap_moved, inst->n_moved + n, sizeof *inst->moved))
		return modhost_no_memory(&inst->h);
	for (uint32_t i = 0; i < n; i++)
		inst->moved[inst->n_moved++] = moves[i].id;
	return 0;
}

/*
 * Record of a grant, saved with its container across restarts and reloads. The record names the
 * pool, because pool numbers change with the topology. It is written and read on the same node;
 * RECORD_VERSION changes with the layout.
 */

#define RECORD_VERSION 1u
#define AMOUNT_MAX                                                                                 \
	(INT64_MAX >> 16) /* milli-CPU; small enough that sums of many grants cannot overflow */

/* A saved hint has the numbers of words of its three sets, the length of the provider's name, the
 * words and the name. */

/* ---- writing of records ---------------------------------------------------------------------- */

static bool put_hint(struct bytes *b, const struct hint *h)
{
	const struct rp_ids sets[] = {cpus_ids(h->cpus), cpus_ids(h->nodes), cpus_ids(h->sockets)};
	const struct bytes before = *b;
	uint32_t n_provider = (uint32_t)strlen(h->provider);
	for (uint32_t i = 0; i < 3; i++)
		bytes_put_u32(b, sets[i].nw);
	bytes_put_u32(b, n_provider);
	for (uint32_t i = 0; i < 3; i++)
		bytes_put_set(b, sets[i]);
	(void)bytes_put(b, h->provider, n_provider);
	if (!b->failed)
		return true;
	*b = before;
	return false;
}

void record_make(struct rp_instance *inst, const struct grant *g, struct record_bytes *ret)
{
	const struct rp_plan *p = inst->plan;
	const struct pool *pool = &p->pools[g->pool];
	struct rp_idset zone;
	memalloc_mask mask = 0;
	(void)memalloc_zone(p->mem, g->ctr, &mask);
	memalloc_ids(p->mem, mask, &zone);
	struct kept head = {
		.facts = g->facts,
		.n_pool = (uint32_t)strlen(pool->name),
		.n_zone = zone.nw,
		.n_exclusive = g->exclusive ? g->exclusive->nw : 0,
	};
	head.version = RECORD_VERSION;
	struct bytes b = BYTES_IN(ret->data);
	(void)bytes_put(&b, &head, sizeof head);
	(void)bytes_put(&b, pool->name, head.n_pool);
	bytes_put_set(&b, rp_ids_of(&zone));
	bytes_put_set(&b, cpus_ids(g->exclusive));
	for (const struct hint *h = g->hints ? g->hints->first : NULL; h; h = h->next)
		head.n_hints += put_hint(&b, h);
	if (g->hints && head.n_hints < g->hints->n)
		modhost_log(&inst->h, RP_LOG_WARNING, g->ctr,
			    "%u of %u topology hints will be forgotten at the next restart",
			    g->hints->n - head.n_hints, g->hints->n);
	memcpy(ret->data, &head, sizeof head);
	ret->size = b.size;
}

bool record_is_kept(struct rp_instance *inst, rp_ctr ctr, const struct record_bytes *rec)
{
	struct bytes_left kept = ctr_record_bytes(&inst->h, ctr);
	return bytes_n_left(&kept) == rec->size && memcmp(kept.at, rec->data, rec->size) == 0;
}

/* ---- reading of records ---------------------------------------------------------------------- */

static int32_t get_hint(struct bytes_left *r, struct hints **hints)
{
	struct rp_idset cpus, nodes, sockets;
	char provider[RP_PRIVATE_MAX + 1];
	uint32_t n_cpus = bytes_take_u32(r), n_nodes = bytes_take_u32(r),
		 n_sockets = bytes_take_u32(r), n_provider = bytes_take_u32(r);
	(void)bytes_take_set(r, n_cpus, &cpus);
	(void)bytes_take_set(r, n_nodes, &nodes);
	(void)bytes_take_set(r, n_sockets, &sockets);
	const char *name = bytes_skip(r, n_provider);
	if (r->failed || n_provider > RP_PRIVATE_MAX)
		return -RP_ENOENT;
	memcpy(provider, name, n_provider);
	provider[n_provider] = '\0';
	return hints_add(hints, provider, rp_ids_of(&cpus), rp_ids_of(&nodes), rp_ids_of(&sockets));
}

static int32_t get_body(const struct rp_plan *p, struct bytes_left *r, const struct kept *head,
			struct record *ret)
{
	char pool[POOL_NAME_MAX];
	struct rp_idset zone;
	int32_t e = 0;
	if (head->n_pool >= sizeof pool || !bytes_take(r, pool, head->n_pool) ||
	    !bytes_take_set(r, head->n_zone, &zone) ||
	    !bytes_take_set(r, head->n_exclusive, &ret->exclusive))
		return -RP_ENOENT;
	pool[head->n_pool] = '\0';
	ret->pool = tree_find(p, pool);
	ret->zone = memalloc_mask_of(p->mem, rp_ids_of(&zone));
	for (uint32_t i = 0; !e && i < head->n_hints; i++)
		e = get_hint(r, &ret->hints);
	return e;
}

/* Returns false for damaged records, so that impossible amounts never enter the ledger. */
static bool is_sane(const struct kept *head)
{
	return head->version == RECORD_VERSION && head->type < N_GRANT_TYPES &&
	       head->portion >= 0 && head->portion <= AMOUNT_MAX && head->shares_mcpu >= 0 &&
	       head->shares_mcpu <= AMOUNT_MAX && head->mem_size >= 0;
}

int32_t record_read(struct rp_instance *inst, rp_ctr ctr, struct record *ret)
{
	struct bytes_left r = ctr_record_bytes(&inst->h, ctr);
	*ret = (struct record){.pool = NO_POOL};
	if (!bytes_take(&r, &ret->kept, sizeof ret->kept) || !is_sane(&ret->kept))
		return -RP_ENOENT;
	int32_t e = get_body(inst->plan, &r, &ret->kept, ret);
	if (e)
		ret->hints = hints_unref(ret->hints);
	return e;
}
