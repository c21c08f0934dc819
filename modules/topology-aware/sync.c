/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Places all containers into an empty ledger. Saved grants that still fit are reinstated first; the
 * remaining containers are placed afterwards in sync order. Reinstating handles containers without
 * CPU request last, because all others leave them a CPU.
 *
 * A running container that cannot be placed must leave its CPUs, which may belong to another
 * container now. It runs on the remaining CPUs and is retried whenever CPUs become free.
 */
#include <stdio.h>

#include "modules/lib/private/adopt.h"
#include "modules/topology-aware/stage.h"
#include "modules/topology-aware/sync.h"
#include "modules/topology-aware/topology-aware.h"

/* ---- reinstating ----------------------------------------------------------------------------- */

static bool cpus_fit(const struct rp_plan *p, const struct record *rec)
{
	const struct pool *pool = &p->pools[rec->pool];
	struct rp_idset isolated, sliced;
	rp_idset_and(&isolated, rp_ids_of(&rec->exclusive), rp_ids_of(&p->isolated));
	rp_idset_andnot(&sliced, rp_ids_of(&rec->exclusive), rp_ids_of(&p->isolated));
	switch (rec->kept.type) {
	case GRANT_RESERVED:
		return pool->n_reserved &&
		       (!rec->kept.portion ||
			ledger_reserved_room(p, rec->pool) >= rec->kept.portion);
	case GRANT_NORMAL:
		if (rec->kept.flags & GRANT_ZERO)
			return pool->n_sharable > 0;
		return rp_ids_subset(rp_ids_of(&isolated), plan_ids(p, pool->isolated)) &&
		       rp_ids_subset(rp_ids_of(&sliced), plan_ids(p, pool->sharable)) &&
		       ledger_room(p, rec->pool, false) >=
			       1000 * (int64_t)rp_ids_count(rp_ids_of(&sliced)) + rec->kept.portion;
	default:
		return true;
	}
}

/*
 * Returns true if the request still has the kind of the saved grant: preserved or placed CPUs and
 * memory. Changed preferences and reserved namespaces do not matter.
 */
static bool sort_fits(const struct request *r, const struct record *rec)
{
	if (rec->kept.flags & GRANT_WAITS)
		return false;
	return (r->type == GRANT_PRESERVE) == (rec->kept.type == GRANT_PRESERVE) &&
	       r->mem_preserve == ((rec->kept.flags & GRANT_PRESERVE_MEM) != 0);
}

/*
 * Makes a grant from a saved record. Class, interrupts and hidden threads come from the current
 * request.
 */
static struct grant *grant_of(struct rp_instance *inst, const struct request *r,
			      const struct record *rec)
{
	struct grant *g = grant_new(inst, r, rec->pool, rp_ids_of(&rec->exclusive), rec->hints);
	if (!g)
		return NULL;
	g->facts = rec->kept.facts;
	g->flags &= ~GRANT_HIDE_THREADS;
	g->flags |= r->hide_threads ? GRANT_HIDE_THREADS : 0;
	return g;
}

/*
 * Fills a memory request for an earlier zone. Adopted containers have no earlier zone and get the
 * memory of their pool.
 */
static bool memory_of(const struct rp_plan *p, const struct request *r, uint32_t pool, int64_t size,
		      memalloc_mask zone, struct memalloc_request *ret)
{
	bool any = memory_request(p, r, pool, ret);
	ret->size = size;
	if (zone) {
		ret->nodes = zone;
		ret->types = memalloc_types(p->mem, zone);
	}
	return any;
}

/* Reinstates a saved grant. Returns 1, 0 if the container has to be placed, or an error. */
static int32_t sync_reinstate(struct rp_instance *inst, const struct request *r,
			      const struct record *rec)
{
	const struct rp_plan *p = inst->plan;
	struct memalloc_request req;
	memalloc_mask zone;
	if (!cpus_fit(p, rec) || !memory_of(p, r, rec->pool, rec->kept.mem_size, rec->zone, &req))
		return 0;
	int32_t e = ledger_reserve(inst, 1);
	if (e)
		return e;
	struct grant *g = grant_of(inst, r, rec);
	if (!g)
		return modhost_no_memory(&inst->h);
	if (memalloc_allocate(p->mem, &req, &zone)) {
		grant_free(g);
		return 0;
	}
	ledger_add(inst, g);
	return 1;
}

/* Returns true if a container with exclusive CPUs has as many of them as it would get now. */
static bool cores_fit(const struct rp_plan *p, const struct request *r, const struct record *rec)
{
	int64_t n = rp_ids_count(rp_ids_of(&rec->exclusive));
	return !n || ((!r->full || r->full == n) &&
		      isolation_permits(p->h, &p->settings.isolation, rp_ids_of(&rec->exclusive)));
}

static bool is_right(const struct rp_plan *p, const struct request *r, const struct record *rec)
{
	return cores_fit(p, r, rec) && rec->pool != NO_POOL && rec->zone &&
	       memcmp(&rec->kept.needs, &r->needs, sizeof r->needs) == 0 && sort_fits(r, rec);
}

static int32_t reinstate_one(struct rp_instance *inst, rp_ctr ctr, bool zero)
{
	struct rp_ctr_info info;
	struct record rec;
	struct request r;
	if (ledger_find(inst, ctr))
		return 0;
	int32_t e = record_read(inst, ctr, &rec);
	if (e == -RP_ENOENT)
		return 0;
	if (e)
		return modhost_fail(&inst->h, e, "out of memory");
	if (((rec.kept.flags & GRANT_ZERO) != 0) != zero || ctr_info(&inst->h, ctr, &info) ||
	    request_read(inst, &info, rec.hints, &r)) {
		hints_unref(rec.hints);
		return 0;
	}
	e = is_right(inst->plan, &r, &rec) ? sync_reinstate(inst, &r, &rec) : 0;
	if (e > 0)
		request_warn(inst, &r);
	request_fini(&r);
	hints_unref(rec.hints);
	return e < 0 ? e : 0;
}

/* ---- adopting -------------------------------------------------------------------------------- */

/*
 * Returns the lowest pool in which all CPUs of `cpus` are free, as isolated or as shared CPUs;
 * NO_POOL: none.
 */
static uint32_t pool_with(const struct rp_plan *p, struct rp_ids cpus, bool isolated)
{
	for (uint32_t i = 0; i < p->n_pools; i++) {
		const struct pool *pool = &p->pools[i];
		if (rp_ids_subset(cpus, plan_ids(p, isolated ? pool->isolated : pool->sharable)))
			return i;
	}
	return NO_POOL;
}

/*
 * Makes a record from CPUs that another policy or program assigned to a container. Returns false if
 * this policy could not have granted these CPUs exclusively.
 */
static bool make_record(const struct rp_plan *p, const struct request *r, struct record *ret)
{
	struct rp_ids cpus = adopt_cpus(&r->info);
	bool isolated = rp_ids_overlap(cpus, rp_ids_of(&p->isolated));
	if (r->type != GRANT_NORMAL || !r->full || r->fraction || r->hide_threads || r->cold_ms ||
	    (r->info.flags & RP_CTR_DEGRADED) || rp_ids_count(cpus) != r->full ||
	    (isolated ? !r->isolate : r->strict_isolated) ||
	    !isolation_permits(p->h, &p->settings.isolation, cpus) ||
	    (r->strict_hints && hints_violated(p, r->hints, cpus)))
		return false;
	*ret = (struct record){
		.kept = {.type = GRANT_NORMAL,
			 .shares_mcpu = 1000 * r->full,
			 .flags = GRANT_MEMORY | (r->mem_preserve ? GRANT_PRESERVE_MEM : 0),
			 .mem_size = r->mem_size,
			 .mem_types = r->mem_types,
			 .needs = r->needs},
		.pool = pool_with(p, cpus, isolated),
		.hints = r->hints};
	rp_idset_copy(&ret->exclusive, cpus);
	return ret->pool != NO_POOL;
}

static bool has_own_cpus(const struct rp_ctr_info *info, struct rp_ids common)
{
	struct rp_ids cpus = adopt_cpus(info);
	return !rp_ids_empty(cpus) && !rp_ids_overlap(cpus, common);
}

static int32_t adopt_one(struct rp_instance *inst, rp_ctr ctr, struct rp_ids common)
{
	struct rp_ctr_info info;
	struct record rec;
	struct request r;
	const void *kept;
	uint32_t size;
	if (ledger_find(inst, ctr) ||
	    inst->h.cache->get_private(inst->h.ctx, ctr, &kept, &size) == 0 ||
	    ctr_info(&inst->h, ctr, &info) || !has_own_cpus(&info, common) ||
	    request_read(inst, &info, NULL, &r))
		return 0;
	request_follow_cold(&r, NULL);
	int32_t e = make_record(inst->plan, &r, &rec) ? sync_reinstate(inst, &r, &rec) : 0;
	if (e > 0)
		modhost_note(&inst->h, ctr, "keeps its CPUs: exclusive CPUs of %s",
			     inst->plan->pools[rec.pool].name);
	if (e > 0)
		request_warn(inst, &r);
	inst->n_adopted += e > 0;
	request_fini(&r);
	return e < 0 ? e : 0;
}

static int32_t sync_adopt(struct rp_instance *inst, int32_t n)
{
	struct rp_idset common;
	int32_t e = adopt_common(&inst->h, inst->order.ctrs, (uint32_t)n, &common);
	for (int32_t i = 0; !e && i < n; i++)
		e = adopt_one(inst, inst->order.ctrs[i], rp_ids_of(&common));
	return e;
}

/* Reinstates or adopts the CPUs of a claim. */
static int32_t sync_keep_claim(struct rp_instance *inst, rp_ctr ctr)
{
	struct rp_ctr_info info;
	struct rp_idset none = {0};
	int32_t e = ctr_info(&inst->h, ctr, &info);
	if (e || !(info.flags & RP_CTR_CLAIM))
		return e;
	e = reinstate_one(inst, ctr, false);
	return e ? e : adopt_one(inst, ctr, rp_ids_of(&none));
}

/* ---- placing --------------------------------------------------------------------------------- */

static int32_t place_misfit(struct rp_instance *inst, const struct request *r, struct grant **ret)
{
	char reason[MODHOST_TEXT_MAX + 64];
	(void)snprintf(reason, sizeof reason, "runs on the remaining CPUs: %s", inst->why);
	modhost_log(&inst->h, RP_LOG_WARNING, r->info.ctr,
		    "cannot be placed (request %lldm), runs on the remaining CPUs: %s",
		    (long long)r->info.cpu_request, inst->why);
	return place_anyhow(inst, r, reason, ret);
}

/*
 * Fails, so that a configuration is not activated under which a running container would lose its
 * CPUs.
 */
static int32_t refuse_misfit(struct rp_instance *inst, const struct rp_ctr_info *info)
{
	char why[MODHOST_TEXT_MAX];
	(void)snprintf(why, sizeof why, "%s", inst->why);
	return modhost_fail(&inst->h, -RP_ENOSPC,
			    "%s/%s/%s runs with %lldm and would no longer fit: %s; stop it first",
			    info->pod_namespace, info->pod_name, info->name,
			    (long long)info->cpu_request, why);
}

/*
 * Places a container that was not reinstated. reconfigured: refuse the configuration if the
 * container does not fit.
 */
static int32_t place_one(struct rp_instance *inst, rp_ctr ctr, bool reconfigured)
{
	struct rp_ctr_info info;
	struct record rec = {.pool = NO_POOL};
	struct request r;
	struct grant *g;
	if (ledger_find(inst, ctr))
		return 0;
	int32_t e = ctr_info(&inst->h, ctr, &info);
	if (e)
		return e;
	if (record_read(inst, ctr, &rec))
		rec = (struct record){.pool = NO_POOL};
	e = request_read(inst, &info, rec.hints, &r);
	hints_unref(rec.hints);
	if (e)
		return e;
	request_warn(inst, &r);
	r.pool_hint = rec.kept.type == GRANT_NORMAL ? rec.pool : NO_POOL;
	request_follow_cold(&r, &rec.kept.facts);
	if (info.flags & RP_CTR_CLAIM && rec.pool != NO_POOL)
		r.pod_pool = claim_pool(inst->plan,
					plan_ids(inst->plan, inst->plan->pools[rec.pool].cpus));
	if (info.flags & RP_CTR_CLAIM && r.pod_pool == NO_POOL)
		r.pod_pool = rec.pool; /* several NUMA nodes */
	e = place(inst, &r, &g);
	if (e == -RP_ENOSPC && r.pod_pool != NO_POOL) { /* not near its device any more */
		r.pod_pool = NO_POOL;
		e = place(inst, &r, &g);
	}
	if (e && e != -RP_ENOMEM)
		e = reconfigured && !(info.flags & RP_CTR_DEGRADED) ? refuse_misfit(inst, &info)
								    : place_misfit(inst, &r, &g);
	request_fini(&r);
	return e;
}

static int32_t stage_all(struct rp_instance *inst, rp_txn txn, int32_t n)
{
	int32_t r = 0;
	for (int32_t i = 0; !r && i < n; i++) {
		const struct grant *g = ledger_find(inst, inst->order.ctrs[i]);
		r = g ? stage_grant(inst, txn, g) : 0;
	}
	inst->n_moved = 0;
	return r;
}

/*
 * Places all containers again. adopting: containers may keep CPUs assigned by others. Returns the
 * number of containers, or an error.
 */
static int32_t place_all(struct rp_instance *inst, bool reconfigured, bool adopting)
{
	ledger_clear(inst);
	memalloc_reset(inst->plan->mem);
	inst->n_adopted = 0;
	int32_t n = ctr_list(&inst->h, &inst->order, RP_ORDER_SYNC), r = n < 0 ? n : 0;
	/* The host refuses a decision that changes the CPUs of a claim. */
	for (int32_t i = 0; !r && i < n; i++)
		r = sync_keep_claim(inst, inst->order.ctrs[i]);
	for (uint32_t zero = 0; zero < 2; zero++)
		for (int32_t i = 0; !r && i < n; i++)
			r = reinstate_one(inst, inst->order.ctrs[i], zero == 1);
	if (!r && adopting)
		r = sync_adopt(inst, n);
	for (int32_t i = 0; !r && i < n; i++)
		r = place_one(inst, inst->order.ctrs[i], reconfigured);
	return r ? r : n;
}

int32_t sync_all(struct rp_instance *inst, rp_txn txn)
{
	/*
	 * The first synchronization after a reload refuses containers that do not fit. A repetition
	 * places these containers on the remaining CPUs.
	 */
	bool reconfigured = inst->changed && inst->replaced;
	/* Which containers wait for relief is unknown after a start: assume that some do. */
	inst->relief.waits = true;
	inst->changed = false;
	inst->resync = true;
	memalloc_keep(inst->plan->mem);
	int32_t n = place_all(inst, reconfigured, true);
	/*
	 * If containers cannot be placed beside adopted ones, place all again without adoption.
	 * Return to adoption if that does not place more containers. A configuration is refused
	 * only if its containers do not fit without adoption either.
	 */
	uint32_t n_waiting = inst->ledger.n_waiting;
	if (inst->n_adopted && (n < 0 || n_waiting)) {
		bool failed = n < 0;
		n = place_all(inst, reconfigured, false);
		if (n >= 0 && !failed && inst->ledger.n_waiting >= n_waiting)
			n = place_all(inst, reconfigured, true);
	}
	int32_t r = n < 0 ? n : stage_all(inst, txn, n);
	if (!r)
		cold_arm(inst);
	return r;
}

/* ---- retries --------------------------------------------------------------------------------- */

/* Restores a grant and its memory zone after a failed retry. */
static int32_t put_back(struct rp_instance *inst, const struct request *r, struct grant *g,
			memalloc_mask zone)
{
	const struct rp_plan *p = inst->plan;
	struct memalloc_request req;
	(void)memory_of(p, r, p->root, g->mem_size, zone, &req);
	if (zone && memalloc_allocate(p->mem, &req, &zone))
		g->flags &= ~GRANT_MEMORY;
	ledger_add(inst, g);
	return stage_note_moves(inst);
}

/*
 * Places an overflowed or misplaced container again. If no place suffices, its previous grant is
 * restored.
 */
static int32_t sync_do_retry(struct rp_instance *inst, rp_txn txn, struct grant *old)
{
	struct rp_ctr_info info;
	struct request r;
	struct grant *g;
	memalloc_mask zone = 0;
	int32_t e = ledger_reserve(inst, 3);
	if (e || ctr_info(&inst->h, old->ctr, &info))
		return e;
	struct grant *back = grant_copy(old);
	if (!back)
		return modhost_no_memory(&inst->h);
	e = request_read(inst, &info, old->hints, &r);
	if (e) {
		grant_free(back);
		return e;
	}
	request_follow_cold(&r, &old->facts);
	(void)memalloc_zone(inst->plan->mem, old->ctr, &zone);
	place_release(inst, old);
	e = place(inst, &r, &g);
	if (!e)
		e = stage_grant(inst, txn, g);
	else if (e != -RP_ENOMEM)
		e = put_back(inst, &r, back, zone);
	if (!back->in)
		grant_free(back);
	request_fini(&r);
	return e;
}

int32_t sync_retry(struct rp_instance *inst, rp_txn txn)
{
	if (!inst->ledger.n_waiting)
		return 0;
	int32_t n = ctr_list(&inst->h, &inst->order, RP_ORDER_SYNC), r = n < 0 ? n : 0;
	for (int32_t i = 0; !r && i < n; i++) {
		struct grant *g = ledger_find(inst, inst->order.ctrs[i]);
		if (g && g->flags & GRANT_WAITS)
			r = sync_do_retry(inst, txn, g);
	}
	return r;
}
