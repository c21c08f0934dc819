/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Places one container: finds the pool, the exclusive CPUs, the portion of the shared CPUs and the
 * memory. The ledger changes only after all of them have been found.
 */
#include <stdio.h>
#include <stdlib.h>

#include "modules/topology-aware/report.h"
#include "modules/topology-aware/stage.h"
#include "modules/topology-aware/topology-aware.h"

struct placing {
	struct rp_instance *inst;
	const struct request *r;
	enum grant_type type;
	uint32_t pool;
	/* pool with the smallest shortage if no pool suffices; otherwise NO_POOL */
	uint32_t nearest;
	uint32_t flags;
	struct rp_idset exclusive;
	struct memalloc_offer offer;
	const char *reason; /* reason of GRANT_MISPLACED or GRANT_OVERFLOW; otherwise NULL */
};

static const struct pool *pool_of(const struct placing *l)
{
	return &l->inst->plan->pools[l->pool];
}

/* ---- exclusive CPUs -------------------------------------------------------------------------- */

/*
 * Picks the same number of CPUs close to each device that the kubelet assigned. Returns false if
 * that is impossible or not requested.
 */
static bool pick_by_hints(const struct placing *l, const struct rp_idset *from, uint32_t n,
			  struct rp_idset *ret)
{
	const struct rp_plan *p = l->inst->plan;
	uint32_t k = 0;
	for (const struct hint *h = l->r->hints ? l->r->hints->first : NULL; h; h = h->next)
		k += h->pod_resource && h->cpus;
	if (!l->r->pick_by_hints || !k || k > n)
		return false;
	uint32_t each = k < n && n % k == 0 ? n / k : 1;
	struct rp_idset left, near, got;
	rp_idset_copy(&left, rp_ids_of(from));
	rp_idset_clear(ret);
	for (const struct hint *h = l->r->hints->first; h; h = h->next) {
		if (!h->pod_resource || !h->cpus)
			continue;
		rp_idset_and(&near, rp_ids_of(&left), cpus_ids(h->cpus));
		if (cpualloc_allocate(p->cpus, &near, each, l->r->prio, CPUALLOC_DEFAULT, &got))
			return false;
		rp_idset_or(ret, rp_ids_of(ret), rp_ids_of(&got));
		rp_idset_andnot(&left, rp_ids_of(&left), rp_ids_of(&got));
	}
	if (cpualloc_allocate(p->cpus, &left, n - k * each, l->r->prio, CPUALLOC_DEFAULT, &got))
		return false;
	rp_idset_or(ret, rp_ids_of(ret), rp_ids_of(&got));
	return true;
}

static int32_t take_from(struct placing *l, const uint64_t *set)
{
	const struct rp_plan *p = l->inst->plan;
	uint32_t n = (uint32_t)l->r->full;
	struct rp_idset from;
	rp_idset_copy(&from, plan_ids(p, set));
	/* CPUs near several devices would be parts of cores. */
	if (p->settings.isolation.threads < 2 && pick_by_hints(l, &from, n, &l->exclusive))
		return 0;
	(void)classes_narrow(l->inst, l->r, &from);
	return cpualloc_allocate(p->cpus, &from, n, l->r->prio, CPUALLOC_DEFAULT, &l->exclusive);
}

/*
 * Returns a prefix for error messages. If the chosen pool lacks CPUs, every pool does, so the
 * message must not name only the chosen one.
 */
static const char *place_blame(const struct placing *l)
{
	bool only = pool_of(l)->parent == NO_POOL || l->pool == l->r->pod_pool;
	return only ? "" : "no pool has enough CPUs; the best, ";
}

/*
 * Keeps the exclusive CPUs of a resized container if their number is unchanged. Returns false if
 * other CPUs are needed.
 */
static bool keep_exclusive(struct placing *l)
{
	const struct grant *had = l->r->had;
	if (!had || had->pool != l->pool || cpus_count(had->exclusive) != l->r->full)
		return false;
	rp_idset_copy(&l->exclusive, cpus_ids(had->exclusive));
	return true;
}

/*
 * Chooses the exclusive CPUs: isolated CPUs if the request prefers them and the pool has enough,
 * otherwise CPUs from the slice of the pool. Returns 0, or -RP_ENOSPC with a message.
 */
static int32_t take_exclusive(struct placing *l)
{
	const struct modhost *h = &l->inst->h;
	struct rp_plan *p = l->inst->plan;
	const struct pool *pool = pool_of(l);
	int64_t room = ledger_room(p, l->pool, true);
	long long n = l->r->full;
	uint32_t n_sliceable;
	if (keep_exclusive(l))
		return 0;
	int32_t r = isolation_check_number(h, &p->settings.isolation, "", n);
	if (r)
		return r;
	if (l->r->isolate && pool->n_isolated >= l->r->full) {
		if (take_from(l, pool->isolated) == 0)
			return 0;
		return modhost_fail(h, -RP_ENOSPC, "%s: needs %lld isolated CPUs, fewer are free",
				    pool->name, n);
	}
	if (l->r->strict_isolated)
		return modhost_fail(h, -RP_ENOSPC,
				    "%s has only %u free isolated CPUs, but %lld are needed",
				    pool->name, pool->n_isolated, n);
	if (room < 1000 * l->r->full)
		return modhost_fail(h, -RP_ENOSPC,
				    "%s%s: needs %lld exclusive CPUs, but only %lldm of its shared "
				    "CPUs are available",
				    place_blame(l), pool->name, n,
				    (long long)(room > 0 ? room : 0));
	if (ledger_drains(p, l->pool, l->r->full))
		return modhost_fail(h, -RP_ENOSPC,
				    "%s: needs %lld exclusive CPUs, but containers of a parent "
				    "pool run on its last shared CPUs",
				    pool->name, n);
	const uint64_t *slice = ledger_sliceable(p, l->pool, &n_sliceable);
	if (n_sliceable >= l->r->full && take_from(l, slice) == 0)
		return 0;
	return modhost_fail(h, -RP_ENOSPC,
			    "%s: needs %lld exclusive CPUs: %lldm are available, but only %u whole "
			    "CPU%s, because containers use parts of the others",
			    pool->name, n, (long long)room, n_sliceable,
			    n_sliceable == 1 ? "" : "s");
}

/* ---- checks ---------------------------------------------------------------------------------- */

/*
 * Checks that the pool has the requested milli-CPU of shared CPUs left after the exclusive CPUs
 * have been taken from it.
 */
static int32_t check_fraction(struct placing *l)
{
	const struct rp_plan *p = l->inst->plan;
	if (!l->r->fraction || l->type != GRANT_NORMAL)
		return 0;
	struct rp_idset sliced;
	rp_idset_and(&sliced, rp_ids_of(&l->exclusive), plan_ids(p, pool_of(l)->sharable));
	int64_t room =
		ledger_room(p, l->pool, true) - 1000 * (int64_t)rp_ids_count(rp_ids_of(&sliced));
	if (room >= l->r->fraction)
		return 0;
	return modhost_fail(&l->inst->h, -RP_ENOSPC,
			    "%s%s: needs %lldm of shared CPUs, but only %lldm are available",
			    place_blame(l), pool_of(l)->name, (long long)l->r->fraction,
			    (long long)(room > 0 ? room : 0));
}

static int32_t place_violates(const struct placing *l, const char *what, struct rp_ids set,
			      const struct hint *hint)
{
	char text[TA_TEXT_MAX];
	if (!hint)
		return 0;
	return modhost_fail(
		&l->inst->h, -RP_ENOSPC, "%s: granted %s %s do not satisfy the strict hint %.64s",
		pool_of(l)->name, what, modhost_set_text(set, text, sizeof text), hint->provider);
}

/*
 * Checks that the chosen CPUs and memory nodes satisfy all topology hints if the container is
 * annotated with strict hints.
 */
static int32_t check_hints(const struct placing *l)
{
	const struct rp_plan *p = l->inst->plan;
	const struct hints *hints = l->r->hints;
	struct rp_idset shared, nodes;
	if (!hints || !l->r->strict_hints || l->type == GRANT_PRESERVE)
		return 0;
	struct rp_ids exclusive = rp_ids_of(&l->exclusive);
	int32_t r =
		place_violates(l, "exclusive CPUs", exclusive, hints_violated(p, hints, exclusive));
	if (!r && l->r->fraction && l->type == GRANT_RESERVED) {
		struct rp_ids reserved = plan_ids(p, pool_of(l)->reserved);
		r = place_violates(l, "reserved CPUs", reserved,
				   hints_violated(p, hints, reserved));
	}
	if (!r && l->r->fraction && l->type == GRANT_NORMAL) {
		rp_idset_andnot(&shared, plan_ids(p, pool_of(l)->sharable), exclusive);
		r = place_violates(l, "shared CPUs", rp_ids_of(&shared),
				   hints_violated(p, hints, rp_ids_of(&shared)));
	}
	if (r || l->r->mem_preserve)
		return r;
	memalloc_ids(p->mem, l->offer.zone, &nodes);
	return place_violates(l, "memory nodes", rp_ids_of(&nodes),
			      hints_memory_violated(p, hints, l->offer.zone));
}

/* ---- memory ---------------------------------------------------------------------------------- */

/*
 * Narrows the memory request to the NUMA nodes of the kubelet's devices if these lie within the
 * request and have its memory types.
 */
static void narrow_by_hints(const struct placing *l, struct memalloc_request *req)
{
	const struct rp_plan *p = l->inst->plan;
	memalloc_mask nodes = 0;
	for (const struct hint *h = l->r->hints ? l->r->hints->first : NULL; h; h = h->next)
		if (h->pod_resource)
			nodes |= memalloc_mask_of(p->mem, cpus_ids(h->nodes));
	if (l->r->pick_by_hints && nodes && !(nodes & ~req->nodes) &&
	    memalloc_types(p->mem, nodes) == req->types)
		req->nodes = nodes;
}

static int32_t find_memory(struct placing *l)
{
	const struct rp_plan *p = l->inst->plan;
	struct memalloc_request req;
	if (!memory_request(p, l->r, l->pool, &req))
		return modhost_fail(&l->inst->h, -RP_ENOSPC, "%s: has no memory of these types",
				    pool_of(l)->name);
	struct memalloc_request near = req;
	char why[PLACE_WHY_MAX];
	narrow_by_hints(l, &near);
	if (near.nodes != req.nodes && memalloc_offer(p->mem, &near, &l->offer) == 0 &&
	    memory_has_huge(l->inst, l->r, l->offer.zone, why))
		return 0;
	int r = memalloc_offer(p->mem, &req, &l->offer);
	if (r)
		return modhost_fail(&l->inst->h, r, "%s: no offer of memory: %s", pool_of(l)->name,
				    memalloc_why(p->mem));
	if (l->r->pod_pool != NO_POOL && l->offer.zone & ~req.nodes)
		return modhost_fail(&l->inst->h, -RP_ENOSPC,
				    "%s: its memory is allocated to other containers",
				    pool_of(l)->name);
	if (memory_has_huge(l->inst, l->r, l->offer.zone, why))
		return 0;
	if (!memory_has_huge(l->inst, l->r, memalloc_with_memory(p->mem), why))
		return modhost_fail(&l->inst->h, -RP_ENOSPC, "%s", why);
	return modhost_fail(&l->inst->h, -RP_ENOSPC, "%s: %s", pool_of(l)->name, why);
}

/* ---- the pool -------------------------------------------------------------------------------- */

/*
 * Returns the pool with the smallest shortage, for error messages; of equal pools the one with the
 * lowest number. The pool with the best score may be a different one.
 */
static uint32_t find_nearest(struct rp_instance *inst, const struct request *r)
{
	uint32_t nearest = NO_POOL;
	int64_t least = INT64_MIN;
	for (uint32_t i = 0; i < inst->plan->n_pools; i++) {
		struct score s;
		score_pool(inst, r, i, &s);
		int64_t left = r->strict_isolated ? s.isolated : s.shared;
		if (left <= least)
			continue;
		least = left;
		nearest = i;
	}
	return nearest;
}

/* Returns true if the previous grant of a resized container already has the requested CPUs. */
static bool has_its_cpus(const struct request *r)
{
	const struct grant *had = r->had;
	return had && had->type == r->type && had->needs.cpu_request == r->needs.cpu_request &&
	       had->needs.cpu_limit == r->needs.cpu_limit &&
	       cpus_count(had->exclusive) == r->full && had->portion == r->fraction &&
	       !(had->flags & GRANT_LACKS);
}

/* Chooses the pool with the best score. A sufficient pool_hint of the request takes precedence. */
static int32_t choose_pool(struct placing *l)
{
	struct rp_instance *inst = l->inst;
	struct request r = *l->r;
	struct scoring s;
	int32_t e = affinity_weigh(inst, &r);
	if (e)
		return e;
	if (r.pod_pool == NO_POOL)
		r.pod_pool = place_pod_pool(inst, &r);
	score_pools(inst, &r, &s);
	if (r.pool_hint != NO_POOL && r.pool_hint != s.best.pool) {
		struct score hinted;
		score_pool(inst, &r, r.pool_hint, &hinted);
		if (score_sufficient(&r, &hinted)) {
			s.second = s.best;
			s.best = hinted;
			s.rule = "it was placed before";
			s.by_best = s.by_second = 0;
		}
	}
	l->pool = s.best.pool;
	if (score_sufficient(&r, &s.best)) {
		report_choice(inst, &r, &s);
		return 0;
	}
	if (l->r->pod_pool != NO_POOL) {
		l->pool = l->r->pod_pool;
		return 0;
	}
	struct score nearest;
	l->nearest = find_nearest(inst, &r);
	score_pool(inst, &r, l->nearest, &nearest);
	report_none(inst, &r, &nearest);
	return 0;
}

/*
 * Moves a container without CPU request to the reserved CPUs, because no shared CPU is left.
 * Returns an error if the configuration forbids that.
 */
static int32_t place_overflow(struct placing *l)
{
	const struct rp_plan *p = l->inst->plan;
	if (p->settings.overflow == OVERFLOW_REFUSE || !p->pools[p->root].n_reserved)
		return modhost_fail(&l->inst->h, -RP_ENOSPC,
				    "no shared CPUs are left: all CPUs are exclusive");
	l->type = GRANT_RESERVED;
	l->pool = p->root;
	l->flags |= GRANT_OVERFLOW;
	l->reason = "runs on the reserved CPUs: no shared CPUs are left";
	modhost_decided_by(&l->inst->h, l->r->info.ctr, p->settings.overflow_at,
			   "no shared CPUs are left: overflow to the reserved CPUs");
	return 0;
}

/*
 * Finds the pool of a container: the current pool if its CPUs are unchanged, the root for preserved
 * and reserved CPUs, otherwise the best pool.
 */
static int32_t find_pool(struct placing *l)
{
	struct rp_plan *p = l->inst->plan;
	const struct request *r = l->r;
	l->pool = p->root;
	if (has_its_cpus(r)) {
		modhost_note(&l->inst->h, r->info.ctr,
			     "it requests the same number of CPUs: unchanged");
		l->pool = r->had->pool;
		return 0;
	}
	if (l->type == GRANT_NORMAL && r->hint_suffices) {
		l->pool = r->pool_hint;
		return 0;
	}
	if (l->type == GRANT_PRESERVE)
		return 0;
	if (l->type == GRANT_RESERVED) {
		if (p->pools[p->root].n_reserved && ledger_reserved_room(p, p->root) >= r->fraction)
			return 0;
		modhost_log(&l->inst->h, RP_LOG_WARNING, r->info.ctr,
			    "not enough reserved CPUs for %lldm: it uses shared CPUs",
			    (long long)r->fraction);
		modhost_note(&l->inst->h, r->info.ctr,
			     "not enough reserved CPUs: shared CPUs of %s", p->pools[p->root].name);
		l->type = GRANT_NORMAL;
	} else {
		int32_t e = choose_pool(l);
		if (e)
			return e;
	}
	return !r->full && !r->fraction && !pool_of(l)->n_sharable ? place_overflow(l) : 0;
}

/* ---- grants ---------------------------------------------------------------------------------- */

static struct grant *make_grant(const struct placing *l)
{
	const struct request *r = l->r;
	struct grant *g = grant_new(l->inst, r, l->pool, rp_ids_of(&l->exclusive), r->hints);
	if (!g)
		return NULL;
	int64_t portion = l->type == GRANT_PRESERVE ? 0 : r->fraction;
	bool zero = l->type == GRANT_NORMAL && !portion && !g->exclusive;
	g->facts = (struct grant_facts){
		.type = l->type,
		.flags = l->flags | GRANT_MEMORY | (r->hide_threads ? GRANT_HIDE_THREADS : 0) |
			 (r->mem_preserve ? GRANT_PRESERVE_MEM : 0) |
			 (r->cold_ms ? GRANT_COLD : 0) | (zero ? GRANT_ZERO : 0),
		.mem_types = l->offer.request.types,
		.portion = portion,
		.shares_mcpu = portion ? portion : 1000 * (int64_t)cpus_count(g->exclusive),
		.mem_size = r->mem_size,
		.needs = r->needs,
		.cold_ms = r->cold_ms,
		.cold_until = r->cold_ms ? r->cold_until : 0};
	g->reason = l->reason ? strdup(l->reason) : NULL;
	return l->reason && !g->reason ? grant_free(g) : g;
}

static int32_t place_commit(const struct placing *l, struct grant **ret)
{
	struct rp_instance *inst = l->inst;
	memalloc_mask zone;
	int32_t r = ledger_reserve(inst, 1);
	if (r)
		return r;
	struct grant *g = make_grant(l);
	if (!g)
		return modhost_no_memory(&inst->h);
	r = memalloc_commit(inst->plan->mem, &l->offer, &zone);
	if (r) {
		grant_free(g);
		return modhost_fail(&inst->h, r, "%s: %s", pool_of(l)->name,
				    memalloc_why(inst->plan->mem));
	}
	ledger_add(inst, g);
	r = stage_note_moves(inst);
	if (r)
		return r;
	inst->counters.placed++;
	report_grant(inst, l->r, g);
	*ret = g;
	return 0;
}

static int32_t take_from_pool(struct placing *l)
{
	int32_t e = l->r->full ? take_exclusive(l) : 0;
	return e ? e : check_fraction(l);
}

static int32_t take_cpus(struct placing *l)
{
	int32_t e = take_from_pool(l);
	uint32_t best = l->pool;
	if (e != -RP_ENOSPC || l->nearest == NO_POOL || l->nearest == best)
		return e;
	l->pool = l->nearest;
	if (take_from_pool(l) == -RP_ENOSPC)
		return e;
	l->pool = best; /* the nearest pool has enough CPUs: report the error of the best pool */
	return take_from_pool(l);
}

int32_t place(struct rp_instance *inst, const struct request *r, struct grant **ret)
{
	struct placing l = {.inst = inst, .r = r, .type = r->type, .nearest = NO_POOL};
	rp_idset_clear(&l.exclusive);
	modhost_decided_line(&inst->h, r->info.ctr, r->decided_at, r->why);
	int32_t e = find_pool(&l);
	if (!e)
		e = take_cpus(&l);
	if (!e)
		e = find_memory(&l);
	if (!e)
		e = check_hints(&l);
	return e ? e : place_commit(&l, ret);
}

int32_t place_anyhow(struct rp_instance *inst, const struct request *r, const char *reason,
		     struct grant **ret)
{
	const struct rp_plan *p = inst->plan;
	struct request modest = *r;
	struct placing l = {.inst = inst, .r = &modest, .reason = reason};
	rp_idset_clear(&l.exclusive);
	modest.full = modest.fraction = 0;
	modest.huge = false;
	if (modest.cold_ms)
		modest.mem_types = modest.warm_types;
	modest.cold_ms = 0;
	l.pool = p->root;
	l.type = p->pools[p->root].n_sharable ? GRANT_NORMAL : GRANT_RESERVED;
	l.flags = GRANT_MISPLACED;
	int32_t e = find_memory(&l);
	if (e) {
		/*
		 * The memory of the running container exceeds the free memory: place it without
		 * accounting its size.
		 */
		modest.mem_size = 0;
		modest.mem_types = p->mem_types;
		e = find_memory(&l);
	}
	return e ? e : place_commit(&l, ret);
}

/* ---- resizing -------------------------------------------------------------------------------- */

void place_release(struct rp_instance *inst, struct grant *g)
{
	ledger_remove(inst, g);
	if (g->flags & GRANT_MEMORY)
		(void)memalloc_release(inst->plan->mem, g->ctr);
}

struct place_mark place_mark(const struct rp_instance *inst)
{
	return (struct place_mark){inst->ledger.n_log, inst->n_moved, inst->relief.n_noted};
}

void place_begin_memory(struct rp_instance *inst)
{
	memalloc_keep(inst->plan->mem);
	(void)memalloc_begin(inst->plan->mem); /* cannot fail after memalloc_keep() */
}

void place_return(struct rp_instance *inst, const struct place_mark *mark)
{
	memalloc_drop(inst->plan->mem);
	(void)memalloc_begin(inst->plan->mem);
	ledger_undo_to(inst, mark->n_log);
	inst->n_moved = mark->n_moved;
	relief_forget_moves(&inst->relief.moved, inst->relief.n_noted - mark->n_noted);
	inst->relief.n_noted = mark->n_noted;
}

/* Lets a container that shrinks but fits nowhere keep its CPUs, and lowers its CPU shares only. */
static int32_t keep_and_lower(struct rp_instance *inst, const struct request *r,
			      const struct grant *old, memalloc_mask zone, struct grant **ret)
{
	const struct rp_plan *p = inst->plan;
	struct memalloc_request req;
	if (!memory_request(p, r, p->root, &req))
		return -RP_ENOSPC;
	req.nodes = zone;
	req.types = memalloc_types(p->mem, zone);
	struct grant *g = grant_copy(old);
	if (!g)
		return modhost_no_memory(&inst->h);
	int32_t e = memalloc_allocate(p->mem, &req, &zone);
	if (!e)
		e = ledger_reserve(inst, 1);
	if (e) {
		grant_free(g);
		return e;
	}
	g->needs = r->needs;
	g->mem_size = r->mem_size;
	g->shares_mcpu = r->info.cpu_request;
	g->flags |= GRANT_ODD_SHARES;
	ledger_add(inst, g);
	modhost_note(&inst->h, g->ctr,
		     "does not fit anywhere: it keeps its CPUs and gets lower shares");
	*ret = g;
	return stage_note_moves(inst);
}

int32_t place_again(struct rp_instance *inst, struct request *r, struct grant *old,
		    struct grant **ret)
{
	memalloc_mask zone = 0;
	bool shrinks = r->info.cpu_request < old->needs.cpu_request;
	if (memalloc_zone(inst->plan->mem, old->ctr, &zone))
		zone = tree_memory(&inst->plan->pools[inst->plan->root], MEMALLOC_ALL_TYPES);
	int32_t e = ledger_reserve(inst, 2);
	if (e)
		return e;
	r->pool_hint = old->type == GRANT_NORMAL ? old->pool : NO_POOL;
	r->had = old;
	place_release(inst, old);
	e = place(inst, r, ret);
	if (e == -RP_ENOSPC && has_its_cpus(r)) {
		r->had = NULL; /* another pool may have enough memory */
		e = place(inst, r, ret);
	}
	if (e != -RP_ENOSPC || !shrinks)
		return e;
	int32_t kept = keep_and_lower(inst, r, old, zone, ret);
	return kept == -RP_ENOSPC ? e : kept;
}
