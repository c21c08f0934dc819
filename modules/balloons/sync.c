/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Places all containers at once. Balloons of the previous state that still fit are restored, and
 * containers whose record or CPUs match join them. Other containers are placed as if they were
 * created now. A container that cannot be placed keeps its CPUs and memory and waits.
 */
#include <string.h>

#include "modules/balloons/balloons.h"
#include "modules/balloons/place.h"
#include "modules/balloons/report.h"
#include "modules/balloons/stage.h"
#include "modules/lib/private/room.h"

/* ---- containers that keep their balloon ------------------------------------------------------ */

/* Returns the previous balloon of a container; NULL: none. A waiting container has none, although
 * its record names one: the members that were placed need the room of that balloon. A claim may
 * have got the number of a balloon that was not restored. */
static struct balloon *sync_balloon_before(struct rp_instance *inst, const struct rp_ctr_info *info,
					   const struct type *t, struct record *rec)
{
	struct balloon *b = NULL;
	*rec = (struct record){0};
	bool known = pin_read_record(inst, info->ctr, rec);
	if (!inst->before.size)
		b = state_with(inst->state, t, info->cpus);
	else if (known && !(info->flags & RP_CTR_DEGRADED) && strcmp(rec->type, t->name) == 0)
		b = state_find(inst->state, t, rec->instance);
	return b && claims_has(b) ? NULL : b;
}

/* Joins the container to its previous balloon. Returns 1, 0 if the container has to be placed,
 * or an error. */
static int32_t sync_rejoin(struct rp_instance *inst, const struct rp_ctr_info *info,
			   struct choice *c)
{
	const struct type *t = c->type;
	struct record rec;
	struct balloon *b = sync_balloon_before(inst, info, t, &rec);
	if (!b)
		return 0;
	c->group[0] = '\0';
	if (*t->group_by)
		(void)match_expand(&inst->h, info, t->group_by, c->group, sizeof c->group);
	struct member *m = choose_member(inst, info, t);
	if (m) {
		m->moves = rec.moves;
		m->keeps_memory = true;
	}
	if (!m || state_join(inst->state, b, m, t->per_namespace ? info->pod_namespace : NULL,
			     *t->group_by ? c->group : NULL))
		return modhost_no_memory(&inst->h);
	return rec.owns && devices_restore(inst, state_member(inst->state, info->ctr))
		       ? modhost_no_memory(&inst->h)
		       : 1;
}

/* Keeps the online CPUs of a container. A container with none left may use all allowed CPUs. */
static int32_t keep_cpus(struct rp_instance *inst, rp_txn txn, rp_ctr ctr)
{
	const struct modhost *h = &inst->h;
	struct rp_ctr_info info;
	struct rp_idset left;
	int32_t r = ctr_info(&inst->h, ctr, &info);
	if (!r)
		r = pin_own_nothing(inst, txn, ctr);
	if (r || rp_ids_empty(info.cpus))
		return r;
	rp_idset_and(&left, info.cpus, rp_ids_of(&inst->plan->machine->online));
	return h->cache->set_cpus(
		h->ctx, txn, ctr,
		rp_ids_of(rp_ids_empty(rp_ids_of(&left)) ? &inst->plan->allowed : &left));
}

static int32_t add_unplaced(struct rp_instance *inst, struct unplaced w)
{
	if (!room_for(&inst->unplaced, &inst->cap_unplaced, inst->n_unplaced + 1,
		      sizeof *inst->unplaced))
		return modhost_no_memory(&inst->h);
	inst->unplaced[inst->n_unplaced++] = w;
	return 0;
}

/* Sets *ret to true if a waiting container runs unmanaged until it has a place. That holds for a
 * container without CPUs to keep, which was created while the daemon was stopped. With pinCPU
 * off no container has CPUs to keep, and earlier CPUs are not restored when pinCPU is on again. */
static int32_t begin_roaming(struct rp_instance *inst, rp_txn txn, rp_ctr ctr, bool *ret)
{
	struct record rec = {0};
	struct rp_ctr_info info;
	int32_t r = ctr_info(&inst->h, ctr, &info);
	if (r)
		return r;
	bool known = pin_read_record(inst, ctr, &rec);
	bool pinned = known || !rp_ids_empty(info.cpus);
	bool lost = rp_ids_empty(info.cpus) || (known && (rec.roams || rec.loose));
	*ret = inst->plan->pin_cpu ? lost : pinned;
	return *ret && !rec.roams ? pin_record_roaming(inst, txn, ctr) : 0;
}

static int32_t wait_for_place(struct rp_instance *inst, rp_txn txn, rp_ctr ctr,
			      const struct choice *c)
{
	const struct modhost *h = &inst->h;
	bool roams = false;
	int32_t r = begin_roaming(inst, txn, ctr, &roams);
	if (r || add_unplaced(inst, (struct unplaced){ctr, .roams = roams}))
		return r ? r : -RP_ENOMEM;
	modhost_log(h, RP_LOG_WARNING, ctr, "not placed, %s: %s",
		    roams ? "runs unmanaged" : "keeps its CPUs", c->error);
	bool pins_memory = c->type ? c->type->pin_memory : inst->plan->pin_memory;
	r = inst->plan->pin_cpu ? keep_cpus(inst, txn, ctr) : pin_loosen(inst, txn, ctr, PIN_CPUS);
	if (!r && !pins_memory)
		r = pin_loosen(inst, txn, ctr, PIN_MEMORY);
	return r ? r : h->cache->set_degraded(h->ctx, txn, ctr, c->error);
}

/* Returns true if the container still runs and still has no balloon. */
static bool still_runs(const struct rp_instance *inst, rp_ctr ctr, struct rp_ctr_info *ret)
{
	return !state_member(inst->state, ctr) && !ctr_info(&inst->h, ctr, ret) &&
	       ret->state != RP_STATE_EXITED;
}

void sync_forget(struct rp_instance *inst, rp_ctr ctr)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < inst->n_unplaced; i++)
		if (inst->unplaced[i].ctr != ctr)
			inst->unplaced[n++] = inst->unplaced[i];
	inst->n_unplaced = n;
}

/* Drops the record, the exclusive CPUs and the degraded mark of a container that the policy does
 * not manage. Adds a container with CPUs to the list of unplaced containers, so that balloons do
 * not count these CPUs as exclusive. */
static int32_t leave_alone(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info)
{
	const struct modhost *h = &inst->h;
	struct record rec = {0};
	int32_t r = pin_own_nothing(inst, txn, info->ctr);
	if (!r)
		r = pin_leave(inst, txn, info->ctr);
	if (!r && pin_read_record(inst, info->ctr, &rec))
		r = h->cache->set_private(h->ctx, txn, info->ctr, NULL, 0);
	if (!r && info->flags & RP_CTR_DEGRADED)
		r = h->cache->set_degraded(h->ctx, txn, info->ctr, NULL);
	return r || rp_ids_empty(info->cpus)
		       ? r
		       : add_unplaced(inst, (struct unplaced){info->ctr, .left = true});
}

/* Joins containers to their previous balloons. The other containers become the first entries of
 * inst->list.ctrs. Returns their number, or an error. */
static int32_t sync_keep(struct rp_instance *inst, rp_txn txn, int32_t n, struct choice *c)
{
	int32_t n_left = 0;
	for (int32_t i = 0; i < n; i++) {
		struct rp_ctr_info info;
		rp_ctr ctr = inst->list.ctrs[i];
		int32_t r = ctr_info(&inst->h, ctr, &info);
		if (r)
			return r;
		if (choose_untouched(inst, &info))
			r = leave_alone(inst, txn, &info);
		else if (!inst->state->n) /* no balloon to rejoin */
			inst->list.ctrs[n_left++] = ctr;
		else if (choose_type(inst, &info, c))
			r = wait_for_place(inst, txn, ctr, c);
		else if ((r = sync_rejoin(inst, &info, c)) == 0)
			inst->list.ctrs[n_left++] = ctr;
		if (r < 0)
			return r;
	}
	return n_left;
}

/* ---- sizes of restored balloons -------------------------------------------------------------- */

/* Returns true if the balloon has CPUs that neither its members nor minCPUs need. The size of a
 * composite balloon depends on its history, so it never has excess. */
static bool has_excess(const struct balloon *b)
{
	int64_t least = b->type->min_cpus > 1 ? 1000 * b->type->min_cpus : 1000;
	return !b->n_parts &&
	       balloon_avail(b) - 1000 * b->type->core >= (b->request > least ? b->request : least);
}

/* Returns the number of CPUs that a balloon gets for mcpu. The parts of a composite balloon have
 * whole CPUs each, which may exceed maxCPUs together. */
static int64_t size_for(const struct balloon *b, int64_t mcpu)
{
	int64_t n = 0;
	for (uint32_t i = 0; i < b->n_parts; i++)
		n += size_for(b->parts[i], (mcpu + b->n_parts - 1) / b->n_parts);
	return b->n_parts ? n : balloon_wanted(b->type, mcpu);
}

static bool exceeds_limit(const struct balloon *b)
{
	int64_t max = b->type->max_cpus;
	return max && (max < 0 || b->n_cpus > size_for(b, 1000 * max));
}

/* Returns true if the balloon has a correct size. The size depends on the balloon's history, so
 * it stays unless the limits or the members changed. */
static bool is_settled(const struct balloon *b)
{
	int64_t avail = balloon_avail(b);
	return b->request == b->request_before && avail >= b->request && avail >= 1000 &&
	       avail >= 1000 * b->type->min_cpus && !exceeds_limit(b) && !has_excess(b);
}

/* Returns true, and logs it, if the balloon has fewer CPUs than minCPUs but enough for its
 * members. Keeping it is better than leaving members without a place. */
static bool is_bearable(struct rp_instance *inst, const struct balloon *b, int64_t want)
{
	const struct type *t = b->type;
	int64_t avail = balloon_avail(b);
	if (avail < want || avail < 1000 || (t->max_cpus && avail > 1000 * t->max_cpus))
		return false;
	modhost_log(&inst->h, RP_LOG_WARNING, 0,
		    "%s[%u] has %lld CPUs, fewer than minCPUs: no more CPUs are free", t->name,
		    b->instance, (long long)(avail / 1000));
	return true;
}

/* Removes members, the last ones first, until the balloon can have the size for the rest.
 * Removed members are appended to inst->list.ctrs. */
static int32_t sync_fit(struct rp_instance *inst, struct balloon *b, int32_t n_left)
{
	struct state *s = inst->state;
	const char *why = "";
	if (is_settled(b) || claims_has(b))
		return n_left;
	while (b->n_members) {
		int64_t want = b->request > 0 ? b->request : 1;
		uint32_t mark = state_mark(s);
		int32_t r = balloon_max_avail(s, b) < want ? -RP_ENOSPC
							   : balloon_resize(s, b, want, &why);
		if (!r && balloon_avail(b) >= want)
			return n_left;
		if (r == -RP_ENOMEM)
			return modhost_no_memory(&inst->h);
		state_undo_to(s, mark);
		if (is_bearable(inst, b, want))
			return n_left;
		struct member *last = b->members[b->n_members - 1];
		inst->list.ctrs[n_left++] = last->ctr;
		state_leave(s, last);
	}
	return n_left;
}

/* Resizes the restored balloons as if their members had just joined, or as if the missing ones
 * had just left. */
static int32_t sync_settle(struct rp_instance *inst, int32_t n_left)
{
	struct state *s = inst->state;
	int32_t r = 0;
	for (uint32_t i = s->n; i-- > 0 && !r;)
		if (!s->list[i]->n_members)
			r = balloon_emptied(s, s->list[i]);
	/* Shrinking balloons first frees CPUs for growing ones. */
	for (int grow = 0; grow < 2 && !r; grow++) {
		for (uint32_t i = 0; i < s->n && n_left >= 0; i++) {
			struct balloon *b = s->list[i];
			int64_t limit =
				b->type->max_cpus > 0 ? 1000 * b->type->max_cpus : INT64_MAX;
			bool grows = balloon_avail(b) < b->request && balloon_avail(b) < limit;
			if (b->n_members && grows == grow)
				n_left = sync_fit(inst, b, n_left);
		}
		if (n_left < 0)
			return n_left;
	}
	for (uint32_t i = s->n; i-- > 0 && !r;)
		if (!s->list[i]->n_members)
			r = balloon_emptied(s, s->list[i]);
	return r ? modhost_no_memory(&inst->h) : n_left;
}

/* ---- containers that are placed again -------------------------------------------------------- */

static int32_t sync_place(struct rp_instance *inst, rp_txn txn, rp_ctr ctr, struct choice *c)
{
	struct rp_ctr_info info;
	uint32_t mark = state_mark(inst->state);
	int32_t r = ctr_info(&inst->h, ctr, &info);
	if (r)
		return r;
	r = choose_type(inst, &info, c);
	if (!r)
		r = choose_balloon(inst, &info, c);
	if (!r)
		r = choose_join(inst, &info, c);
	if (!r) {
		report_placed(inst, &info, c);
		return 0;
	}
	state_undo_to(inst->state, mark);
	return wait_for_place(inst, txn, ctr, c);
}

static int32_t record_all(struct rp_instance *inst, rp_txn txn)
{
	const struct modhost *h = &inst->h;
	int32_t r = 0;
	for (uint32_t i = 0; i < inst->state->n; i++) {
		const struct balloon *b = inst->state->list[i];
		for (uint32_t k = 0; !r && k < b->n_members; k++) {
			r = pin_record(inst, txn, b->members[k]);
			if (!r)
				r = h->cache->set_degraded(h->ctx, txn, b->members[k]->ctr, NULL);
		}
	}
	return r;
}

/* ---- balloons from CPU sets of another policy ------------------------------------------------ */

struct find {
	const struct type *type;
	int64_t request; /* sum over the containers with these CPUs, milli-CPU */
	struct rp_idset cpus;
};

struct finds {
	struct find *list;
	uint32_t n;
};

static struct find *find_of(struct finds *f, const struct type *type, struct rp_ids cpus)
{
	for (uint32_t i = 0; i < f->n; i++)
		if (f->list[i].type == type && rp_ids_equal(rp_ids_of(&f->list[i].cpus), cpus))
			return &f->list[i];
	struct find *found = &f->list[f->n++];
	*found = (struct find){.type = type};
	rp_idset_copy(&found->cpus, cpus);
	return found;
}

/* Counts a container for a balloon with its CPUs. Composite types are skipped, because the CPUs
 * of each part are unknown. */
static int32_t look_at(struct rp_instance *inst, struct finds *f, rp_ctr ctr, struct choice *c)
{
	struct rp_ctr_info info;
	struct record rec = {0};
	int32_t r = ctr_info(&inst->h, ctr, &info);
	if (r || rp_ids_empty(info.cpus) || choose_untouched(inst, &info) ||
	    choose_type(inst, &info, c) || c->type->parts.n ||
	    (pin_read_record(inst, ctr, &rec) && (rec.roams || rec.loose)))
		return r;
	find_of(f, c->type, info.cpus)->request += ctr_counted_cpu(&info);
	return 0;
}

static int32_t sync_make(struct state *s, const struct find *found)
{
	struct rp_ids cpus = rp_ids_of(&found->cpus);
	if (!rp_ids_subset(cpus, rp_ids_of(&s->free)) ||
	    (found->type->core > 1 && !isolation_permits(s->h, &s->plan->isolation, cpus)) ||
	    rp_ids_count(cpus) !=
		    balloon_wanted(found->type, found->request > 0 ? found->request : 1))
		return 0;
	struct balloon *b = balloon_alloc(found->type, balloon_free_instance(s, found->type, NULL));
	if (!b)
		return -RP_ENOMEM;
	rp_idset_copy(&b->cpus, cpus);
	balloon_count_cpus(b);
	b->request_before = found->request;
	return state_bring_back(s, b);
}

static int32_t adopt_balloons(struct rp_instance *inst, uint32_t n, struct choice *c)
{
	struct finds f = {.list = calloc(n + 1u, sizeof *f.list)};
	int32_t r = f.list ? 0 : -RP_ENOMEM;
	for (uint32_t i = 0; !r && i < n; i++)
		r = look_at(inst, &f, inst->list.ctrs[i], c);
	for (uint32_t i = 0; !r && i < f.n; i++)
		r = sync_make(inst->state, &f.list[i]);
	free(f.list);
	return r;
}

/* ---- sync ------------------------------------------------------------------------------------ */

/* Creates a state with the containers that keep their balloon. The other containers become the
 * first entries of inst->list.ctrs. Returns their number, or an error. */
static int32_t sync_do_begin(struct rp_instance *inst, rp_txn txn, bool restore, struct choice *c)
{
	inst->n_unplaced = 0;
	inst->state = state_free(inst->state);
	int32_t n = state_new(&inst->h, inst->plan, &inst->state);
	if (!n)
		inst->state->pct = cpuclass_pct(inst->classes);
	if (!n && restore && image_restore(inst->state, &inst->before))
		n = modhost_no_memory(&inst->h);
	if (!n)
		n = ctr_list(&inst->h, &inst->list, RP_ORDER_SYNC);
	if (n > 0)
		n = claims_keep_all(inst, n, c);
	if (n > 0 && restore && !inst->before.size && adopt_balloons(inst, (uint32_t)n, c))
		n = modhost_no_memory(&inst->h);
	if (n >= 0)
		n = sync_keep(inst, txn, n, c);
	return n < 0 ? n : sync_settle(inst, n);
}

/* Does the same and creates the balloons of minBalloons. If these find no room, starts again
 * without restoring balloons. */
static int32_t begin_with_room(struct rp_instance *inst, rp_txn txn, struct choice *c)
{
	for (bool restore = true;; restore = false) {
		int32_t n = sync_do_begin(inst, txn, restore, c);
		int32_t r = n < 0 ? 0 : balloon_precreate(inst->state);
		if (r == -RP_ENOMEM)
			return modhost_no_memory(&inst->h);
		if (r && restore)
			modhost_log(&inst->h, RP_LOG_WARNING, 0,
				    "existing balloons leave no room for minBalloons: placing all "
				    "containers again");
		else if (r)
			modhost_log(&inst->h, RP_LOG_ERROR, 0,
				    "some of minBalloons cannot be created");
		if (!r || !restore)
			return n;
	}
}

/* Grows balloons that have fewer CPUs than minCPUs, as far as enough CPUs are free. */
static int32_t sync_complete(struct state *s)
{
	for (uint32_t i = 0; i < s->n; i++) {
		struct balloon *b = s->list[i];
		const char *why = "";
		uint32_t mark = state_mark(s);
		if (b->n_cpus >= b->type->min_cpus || claims_has(b))
			continue;
		int32_t r = balloon_resize(s, b, b->request, &why);
		if (r == -RP_ENOMEM)
			return r;
		if (r)
			state_undo_to(s, mark);
	}
	return 0;
}

int32_t sync_all(struct rp_instance *inst, rp_txn txn)
{
	struct choice c;
	/* Which containers wait for relief is unknown after a start: assume that some do. */
	inst->relief.waits = true;
	inst->in_sync = true;
	if (inst->state && image_write(inst->state, &inst->before))
		return modhost_no_memory(&inst->h);
	int32_t n = begin_with_room(inst, txn, &c);
	if (n < 0)
		return n;
	int32_t r = 0;
	for (int32_t i = 0; !r && i < n; i++)
		r = sync_place(inst, txn, inst->list.ctrs[i], &c);
	if (!r && sync_complete(inst->state))
		r = modhost_no_memory(&inst->h);
	if (!r)
		r = record_all(inst, txn);
	for (uint32_t i = 0; i < inst->state->n; i++)
		inst->state->list[i]->dirty = true;
	pin_keep_memory(inst);
	if (!r)
		r = pin_changed(inst, txn, NULL);
	return r ? r : sync_follow(inst, txn);
}

/* Places a waiting container. Returns false if there is no place, which then also holds for all
 * containers of its type that request as much. */
static bool place_waiting(struct rp_instance *inst, const struct rp_ctr_info *info,
			  struct choice *c)
{
	struct state *s = inst->state;
	uint32_t mark = state_mark(s);
	if (choose_type(inst, info, c) || ctr_counted_cpu(info) >= s->refused[c->type->index])
		return false;
	if (!choose_balloon(inst, info, c) && !choose_join(inst, info, c))
		return true;
	state_undo_to(s, mark);
	s->refused[c->type->index] = ctr_counted_cpu(info);
	return false;
}

int32_t sync_retry(struct rp_instance *inst, rp_txn txn)
{
	const struct modhost *h = &inst->h;
	struct choice c;
	uint32_t n = inst->n_unplaced;
	int32_t r = 0;
	for (uint32_t i = 0; n && i < inst->plan->n_types; i++)
		inst->state->refused[i] = INT64_MAX;
	inst->n_unplaced = 0;
	for (uint32_t i = 0; i < n; i++) {
		struct rp_ctr_info info;
		struct unplaced w = inst->unplaced[i];
		rp_ctr ctr = w.ctr;
		if (!still_runs(inst, ctr, &info))
			continue;
		/* The container stays in the list until the next call, because the transaction
		 * may be dropped. */
		inst->unplaced[inst->n_unplaced++] = w;
		if (r || w.left || !place_waiting(inst, &info, &c))
			continue;
		struct member *m = state_member(inst->state, ctr);
		m->balloon->dirty = true;
		r = pin_record(inst, txn, m);
		if (!r)
			r = h->cache->set_degraded(h->ctx, txn, ctr, NULL);
	}
	return r ? r : sync_complete(inst->state);
}

/* ---- containers without a balloon ------------------------------------------------------------ */

/* Returns the CPUs for containers without a balloon: the idle CPUs, else the CPUs of the default
 * balloon, else of the reserved balloon, else the reserved CPUs, else all allowed CPUs. */
static struct rp_ids roaming_cpus(struct rp_instance *inst, struct rp_idset *idle)
{
	const struct state *s = inst->state;
	rp_idset_and(idle, rp_ids_of(&s->free), rp_ids_of(&inst->plan->sharable));
	if (!rp_ids_empty(rp_ids_of(idle)))
		return rp_ids_of(idle);
	const struct type *types[] = {inst->plan->default_type, inst->plan->reserved_type};
	for (uint32_t k = 0; k < sizeof types / sizeof *types; k++)
		for (uint32_t i = 0; i < s->n; i++)
			if (s->list[i]->type == types[k] && s->list[i]->n_cpus &&
			    !claims_has(s->list[i]))
				return rp_ids_of(&s->list[i]->cpus);
	return rp_ids_of(rp_ids_empty(rp_ids_of(&inst->plan->reserved_cpus))
				 ? &inst->plan->allowed
				 : &inst->plan->reserved_cpus);
}

void sync_visited(struct rp_instance *inst, struct rp_idset *ret)
{
	rp_idset_clear(ret);
	for (uint32_t i = 0; inst->plan->pin_cpu && i < inst->n_unplaced; i++) {
		struct rp_ctr_info info;
		struct rp_idset idle;
		if (!still_runs(inst, inst->unplaced[i].ctr, &info))
			continue;
		rp_idset_or(ret, rp_ids_of(ret),
			    inst->unplaced[i].roams ? roaming_cpus(inst, &idle) : info.cpus);
	}
}

int32_t sync_roam(struct rp_instance *inst, rp_txn txn, rp_ctr ctr)
{
	struct rp_idset idle;
	/* The list may contain the container from a transaction that was dropped. */
	sync_forget(inst, ctr);
	int32_t r = add_unplaced(inst, (struct unplaced){ctr, .roams = true});
	if (!r)
		r = pin_record_roaming(inst, txn, ctr);
	if (r || !inst->plan->pin_cpu)
		return r;
	return inst->h.cache->set_cpus(inst->h.ctx, txn, ctr, roaming_cpus(inst, &idle));
}

int32_t sync_follow(struct rp_instance *inst, rp_txn txn)
{
	struct rp_idset idle;
	int32_t r = 0;
	for (uint32_t i = 0; !r && inst->plan->pin_cpu && i < inst->n_unplaced; i++) {
		struct rp_ctr_info info;
		rp_ctr ctr = inst->unplaced[i].ctr;
		if (inst->unplaced[i].roams && still_runs(inst, ctr, &info))
			r = inst->h.cache->set_cpus(inst->h.ctx, txn, ctr,
						    roaming_cpus(inst, &idle));
	}
	return r;
}
