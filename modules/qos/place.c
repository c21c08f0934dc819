/* SPDX-License-Identifier: Apache-2.0 */
/* Placement of one container. Pools are not computed here, but from all containers afterwards
 * (pools.c). */
#include <string.h>

#include "modules/lib/private/adopt.h"
#include "modules/qos/qos.h"

static enum role role_of(const struct rp_instance *inst, const struct rp_ctr_info *info)
{
	const struct modhost *h = &inst->h;
	struct rp_pod_ctr_info told = {.size = sizeof told};
	char name[MAIN_NAME_MAX + 1];
	const char *main = h->cache->pod_annotation(h->ctx, info->pod, MAIN_KEY);
	if (info->flags & RP_CTR_INIT)
		return ROLE_INIT;
	if (table_main(inst, info->pod))
		return ROLE_SIDECAR;
	if (ask_main(inst, info->pod, &told))
		return strcmp(told.name, info->name) != 0 ? ROLE_SIDECAR : ROLE_MAIN;
	/* A lone container that has ended may have been an init container, which is not
	 * reported. */
	if ((!main || !*main) && !table_has_pod(inst, info->pod))
		return ROLE_MAIN;
	if (!main || !*main)
		main = admit_main(inst, info->pod, name);
	return *main && strcmp(main, info->name) != 0 ? ROLE_SIDECAR : ROLE_MAIN;
}

/* ---- dedicated CPUs -------------------------------------------------------------------------- */

static void take_dedicated(const struct rp_plan *p, const struct ask *a, uint64_t nodes,
			   struct rp_idset *free, struct rp_idset *ret)
{
	uint32_t n = ask_whole(a->cpu), n_nodes = hints_size(nodes);
	struct rp_idset cpus;
	if (!(a->flags & ASK_EVEN)) {
		plan_cpus_of(p, nodes, &cpus);
		rp_idset_and(&cpus, rp_ids_of(&cpus), rp_ids_of(free));
		take_topology(p, &cpus, n, ret);
		return;
	}
	for (uint64_t left = nodes; left; left &= left - 1) {
		plan_cpus_of(p, left & -left, &cpus);
		rp_idset_and(&cpus, rp_ids_of(&cpus), rp_ids_of(free));
		take_topology(p, &cpus, n / n_nodes, ret);
	}
}

/* Assigns dedicated CPUs. The pod may still own some through a sidecar when its main container is
 * created again. */
static void give_dedicated(struct rp_instance *inst, const struct ask *a, uint64_t nodes,
			   rp_pod pod, struct room *room)
{
	struct rp_idset cpus, had;
	uint32_t n = owners_release(&inst->owners, pod, &had);
	plan_cpus_of(inst->plan, nodes, &cpus);
	if (a->flags & ASK_EXCLUSIVE) {
		rp_idset_and(&cpus, rp_ids_of(&cpus), rp_ids_of(&room->free));
	} else if (n == ask_whole(a->cpu) && rp_ids_subset(rp_ids_of(&had), rp_ids_of(&cpus))) {
		rp_idset_copy(&cpus, rp_ids_of(&had));
	} else {
		rp_idset_clear(&cpus);
		take_dedicated(inst->plan, a, nodes, &room->free, &cpus);
	}
	owners_give(&inst->owners, rp_ids_of(&cpus), pod);
}

void place_loose(struct rp_instance *inst)
{
	for (uint32_t i = 0; i < inst->table.n; i++) {
		const struct entry *e = inst->table.list[i];
		struct ask a = {.level = LEVEL_DEDICATED, .flags = e->is.flags, .cpu = e->is.cpu};
		struct room room;
		if (!entry_counts(e) || e->is.level != LEVEL_DEDICATED || !(e->is.set & SET_LOOSE))
			continue;
		rp_idset_andnot(&room.free, rp_ids_of(&inst->plan->pool),
				rp_ids_of(&inst->owners.taken));
		give_dedicated(inst, &a, e->is.nodes, e->pod, &room);
	}
}

/* ---- CPUs of another policy, or of a lost store ---------------------------------------------- */

/* Returns true if the policy could have chosen these dedicated CPUs of these nodes. */
static bool place_could_give(const struct rp_plan *p, const struct ask *a, uint64_t nodes,
			     struct rp_ids cpus)
{
	struct rp_idset of;
	uint32_t n = ask_whole(a->cpu), has = rp_ids_count(cpus);
	plan_cpus_of(p, nodes, &of);
	if (a->flags & ASK_EXCLUSIVE)
		return has >= n && rp_ids_equal(cpus, rp_ids_of(&of));
	for (uint64_t left = a->flags & ASK_EVEN ? nodes : 0; left; left &= left - 1) {
		plan_cpus_of(p, left & -left, &of);
		if (rp_ids_count_and(rp_ids_of(&of), cpus) * hints_size(nodes) != n)
			return false;
	}
	return has == n;
}

/* Returns the nodes of the CPUs on which a container without a record runs, as bits, if the policy
 * could have bound the container to these nodes; else 0. */
static uint64_t place_ran_on(const struct rp_instance *inst, const struct rp_ctr_info *info,
			     const struct ask *a)
{
	const struct rp_plan *p = inst->plan;
	struct rp_ids cpus = adopt_cpus(info);
	uint64_t nodes = 0;
	bool dedicated = a->level == LEVEL_DEDICATED;
	if (rp_ids_empty(cpus) || !rp_ids_subset(cpus, rp_ids_of(&p->pool)) ||
	    rp_ids_overlap(cpus, rp_ids_of(&inst->owners.taken)) ||
	    (info->flags & RP_CTR_DEGRADED) || !(dedicated || a->flags & ASK_BOUND))
		return 0;
	for (uint32_t i = 0; i < p->n_nodes; i++)
		if (rp_ids_overlap(cpus, rp_ids_of(&p->nodes[i].cpus)))
			nodes |= UINT64_C(1) << p->nodes[i].id;
	return (dedicated ? place_could_give(p, a, nodes, cpus) : hints_size(nodes) == 1) ? nodes
											  : 0;
}

/* ---- main containers ------------------------------------------------------------------------- */

/* Chooses the nodes of a main container that asks for `whole`. */
static int32_t place_choose(struct rp_instance *inst, const struct rp_ctr_info *info,
			    const struct ask *whole, struct entry *e)
{
	struct record former;
	bool had = admit_grant(inst, e->pod, &former);
	int32_t r = admit_choose(inst, e->ctr, whole, had ? &former : NULL, e->pod, &e->is);
	if (r == -RP_ENOSPC && relief_make_room(inst, whole, e->pod, info) > 0)
		r = admit_choose(inst, e->ctr, whole, had ? &former : NULL, e->pod, &e->is);
	return r;
}

/* Chooses the nodes on which a main container runs. -RP_ENOSPC: the policy would choose others. */
static int32_t place_adopt(struct rp_instance *inst, const struct rp_ctr_info *info,
			   const struct ask *a, const struct ask *whole, struct entry *e)
{
	struct record ran = e->is, former;
	ran.flags |= ASK_USED;
	ran.cpu = whole->cpu;
	ran.nodes = place_ran_on(inst, info, a);
	if (!ran.nodes || admit_grant(inst, e->pod, &former) ||
	    admit_choose(inst, e->ctr, whole, &ran, e->pod, &e->is) || e->is.nodes != ran.nodes)
		return -RP_ENOSPC;
	return 0;
}

/* Chooses nodes and CPUs of a main container. After an error the table is unchanged. */
static int32_t place_main(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
			  struct ask *a, struct entry *e, enum place_as as)
{
	struct room room;
	struct ask whole = *a;
	int64_t cpu, mem;
	int32_t r = ask_aggregated(inst, e->pod, &cpu, &mem);
	if (r)
		return r;
	whole.cpu = cpu ? cpu : a->cpu;
	whole.mem = mem ? mem : a->mem;
	r = as == PLACE_ADOPTED ? place_adopt(inst, info, a, &whole, e)
				: place_choose(inst, info, &whole, e);
	if (!r)
		r = admit_use(inst, txn, e, info->name);
	if (r)
		return r;
	if (a->level == LEVEL_DEDICATED) {
		room_of(inst, e->pod, a, &room);
		if (as == PLACE_ADOPTED)
			owners_give(&inst->owners, adopt_cpus(info), e->pod);
		give_dedicated(inst, a, e->is.nodes, e->pod, &room);
	}
	if (a->level == LEVEL_DEDICATED || (a->level == LEVEL_SHARED && !e->is.ramp_end_ms))
		inst->past.sized = true;
	return 0;
}

static void follow_main(const struct entry *main, struct entry *e)
{
	e->is.nodes = main->is.nodes;
	e->is.mem_nodes = main->is.mem_nodes;
	e->is.flags = main->is.flags;
	e->changed = true;
}

static void call_sidecars(struct rp_instance *inst, const struct entry *main)
{
	for (struct entry *e = NULL; (e = table_next(inst, main->pod, e));)
		if (e->is.role == ROLE_SIDECAR) {
			follow_main(main, e);
			table_mark(inst, e);
		}
}

void place_give(struct rp_instance *inst, const struct ask *a, const struct entry *e)
{
	struct room room;
	room_of(inst, e->pod, a, &room);
	give_dedicated(inst, a, e->is.nodes, e->pod, &room);
	call_sidecars(inst, e);
}

/* Places a sidecar. In unbound shared pods it uses the pool in any case; in others it waits for the
 * main container. */
static void place_sidecar(struct rp_instance *inst, const struct ask *a, struct entry *e)
{
	const struct entry *main = table_main(inst, e->pod);
	if (main)
		follow_main(main, e);
	else if (a->level != LEVEL_SHARED || (a->flags & ASK_BOUND))
		e->is.flags |= ASK_WAITS;
}

static void place_note(struct rp_instance *inst, const struct entry *e)
{
	static const char *const roles[N_ROLES] = {"main container", "sidecar", "init container",
						   "pod"};
	char pool[POOL_TEXT_MAX];
	struct line l = {0};
	line_say(&l, "level ");
	line_say(&l, level_names[e->is.level]);
	line_say(&l, *e->is.pool ? ", pool " : "");
	line_say(&l, pool_text_of(&e->is, pool));
	line_say(&l, e->is.flags & ASK_BOUND ? ", bound to NUMA nodes" : "");
	line_say(&l, e->is.flags & ASK_EXCLUSIVE ? " that are exclusive to it" : "");
	line_say(&l, ", ");
	line_say(&l, roles[e->is.role]);
	line_say(&l, e->is.role == ROLE_INIT	  ? ": unmanaged"
		     : e->is.flags & ASK_WAITS	  ? ": waits for its main container"
		     : e->is.role == ROLE_SIDECAR ? ": has the CPUs of its main container"
		     : e->is.ramp_end_ms	  ? ": runs on the CPUs of all pools at first"
						  : "");
	modhost_note_line(&inst->h, e->ctr, l.text);
}

static void place_begin(const struct rp_instance *inst, const struct rp_ctr_info *info,
			const struct ask *a, struct entry *ret)
{
	*ret = (struct entry){.ctr = info->ctr,
			      .pod = info->pod,
			      .changed = true,
			      .is = {.version = RECORD_VERSION,
				     .level = (uint16_t)a->level,
				     .role = (uint16_t)role_of(inst, info),
				     .flags = a->flags,
				     .cpu = a->cpu,
				     .mem = a->mem}};
	memcpy(ret->is.pool, a->pool, sizeof ret->is.pool);
}

static int64_t place_cpu(const struct rp_ctr_info *info)
{
	return ctr_counted_cpu(info) > 0 ? ctr_counted_cpu(info) : 0;
}

static int32_t ask_of(struct rp_instance *inst, const struct rp_ctr_info *info, struct ask *ret)
{
	int32_t r = ask_read(inst, info->pod, ret);
	ret->cpu = place_cpu(info);
	ret->mem = ask_memory(info->mem_request, info->mem_limit);
	return r;
}

/* Returns true if the container is the main container of its pod, and is placed as such before
 * the others of the pod. The walk of sync() has listed the containers. */
static bool place_is_main(struct rp_instance *inst, const struct rp_ctr_info *info)
{
	bool main = role_of(inst, info) == ROLE_MAIN;
	for (uint32_t i = 0; main && inst->list.ctrs[i] != info->ctr; i++) {
		struct rp_ctr_info other;
		main = ctr_info(&inst->h, inst->list.ctrs[i], &other) || other.pod != info->pod ||
		       role_of(inst, &other) != ROLE_MAIN;
	}
	return main;
}

bool place_may_adopt(struct rp_instance *inst, const struct rp_ctr_info *info)
{
	struct ask a;
	char why[MODHOST_TEXT_MAX], *outer = inst->h.why;
	inst->h.why = why; /* a malformed annotation is reported when the container is placed */
	bool may = !ask_of(inst, info, &a) && place_ran_on(inst, info, &a) &&
		   place_is_main(inst, info);
	inst->h.why = outer;
	return may;
}

int32_t place_new(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
		  enum place_as as)
{
	struct ask a;
	struct entry e;
	const char *nothing;
	int32_t r = ask_for_nothing(inst, txn, info->pod, &nothing);
	if (nothing)
		modhost_note(&inst->h, info->ctr, "%s", nothing);
	if (!r && !nothing)
		r = ask_of(inst, info, &a);
	if (r || nothing)
		return r;
	place_begin(inst, info, &a, &e);
	if (as == PLACE_CREATED && a.level == LEVEL_SHARED && !(a.flags & ASK_BOUND) &&
	    inst->plan->ramp_up_ms)
		e.is.ramp_end_ms = sync_now_ms() + inst->plan->ramp_up_ms;
	if (e.is.role == ROLE_MAIN)
		r = place_main(inst, txn, info, &a, &e, as);
	else if (e.is.role == ROLE_SIDECAR)
		place_sidecar(inst, &a, &e);
	if (r)
		return r;
	place_note(inst, &e);
	r = table_add(inst, &e);
	if (!r && e.is.role == ROLE_MAIN)
		call_sidecars(inst, &e);
	if (!r && e.is.role != ROLE_INIT)
		r = level_begin(inst, txn, info, &a);
	inst->counters.placed[a.level]++;
	return r;
}

int32_t place_lost(struct rp_instance *inst, const struct rp_ctr_info *info)
{
	struct ask a;
	struct entry e;
	char why[MODHOST_TEXT_MAX];
	inst->waiting = true;
	inst->h.why = why; /* the malformed annotation was reported before */
	if (ask_of(inst, info, &a))
		a = (struct ask){.level = LEVEL_SHARED, .pool = SHARE_POOL};
	inst->h.why = NULL;
	place_begin(inst, info, &a, &e);
	if (e.is.role != ROLE_INIT)
		e.is.flags |= ASK_LOST;
	return table_add(inst, &e);
}

int32_t place_again(struct rp_instance *inst, rp_txn txn, struct entry *e)
{
	struct rp_ctr_info info;
	struct ask a;
	struct entry now = *e;
	int32_t r = ctr_info(&inst->h, e->ctr, &info);
	if (!r)
		r = ask_of(inst, &info, &a);
	if (r)
		return r;
	now.is.flags = a.flags;
	now.is.level = (uint16_t)a.level;
	memcpy(now.is.pool, a.pool, sizeof now.is.pool);
	now.changed = true;
	if (e->is.role == ROLE_SIDECAR)
		place_sidecar(inst, &a, &now);
	else
		r = place_main(inst, txn, &info, &a, &now, PLACE_EXISTING);
	if (r)
		return r;
	table_replace(inst, e, &now);
	if (e->is.role == ROLE_MAIN)
		call_sidecars(inst, e);
	place_note(inst, e);
	return 0;
}

/* ---- resize ---------------------------------------------------------------------------------- */

static int32_t place_fits(struct rp_instance *inst, const struct entry *e, int64_t cpu, int64_t mem)
{
	const struct rp_plan *p = inst->plan;
	struct room room;
	struct record chosen;
	struct ask a;
	int32_t r = ask_read(inst, e->pod, &a);
	if (r || (cpu <= e->is.cpu && mem <= e->is.mem))
		return r;
	a.cpu = cpu;
	a.mem = mem;
	if (a.level == LEVEL_SHARED && e->is.nodes)
		a.numa_ids = e->is.nodes; /* the container cannot move */
	room_of(inst, e->pod, &a, &room);
	for (uint32_t i = 0; e->is.nodes && i < p->n_nodes; i++)
		if (!(e->is.mem_nodes >> p->nodes[i].id & 1))
			room.mem_free[i] = 0;
	return hints_choose(inst, e->ctr, &a, &room, &chosen);
}

static bool place_is_resized(const struct rp_ctr_info *info, const struct entry *e)
{
	return place_cpu(info) != e->is.cpu ||
	       ask_memory(info->mem_request, info->mem_limit) != e->is.mem;
}

/* Counts the requests that a container has by now. */
static int32_t place_count(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
			   struct entry *e)
{
	table_resize(inst, e, place_cpu(info), ask_memory(info->mem_request, info->mem_limit));
	inst->past.sized = true;
	return e->is.role == ROLE_MAIN && !(e->is.flags & ASK_LOST)
		       ? admit_use(inst, txn, e, info->name)
		       : 0;
}

int32_t place_missed(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
		     struct entry *e)
{
	if (!place_is_resized(info, e) || e->is.level == LEVEL_DEDICATED)
		return 0;
	return place_count(inst, txn, info, e);
}

int32_t place_resize(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
		     struct entry *e)
{
	int32_t r = 0;
	if (!place_is_resized(info, e))
		return 0;
	if (e->is.role == ROLE_MAIN && e->is.level == LEVEL_DEDICATED)
		return modhost_fail(&inst->h, -RP_EINVAL,
				    "a container of dedicated_cores cannot be resized");
	if (e->is.role == ROLE_MAIN && e->is.ramp_end_ms)
		return modhost_fail(
			&inst->h, -RP_EAGAIN,
			"a container of shared_cores cannot be resized while it ramps up");
	if (e->is.role == ROLE_MAIN && e->is.level == LEVEL_SHARED && !(e->is.flags & ASK_LOST))
		r = place_fits(inst, e, place_cpu(info),
			       ask_memory(info->mem_request, info->mem_limit));
	return r ? r : place_count(inst, txn, info, e);
}

int32_t place_check(struct rp_instance *inst)
{
	char name[CTR_NAME_MAX];
	if (!inst->pools.overlapping && stage_starves(inst, name, sizeof name)) {
		inst->counters.refused[REFUSED_CPU]++;
		return modhost_fail(&inst->h, -RP_ENOSPC,
				    "no available CPU hints: all CPUs would be dedicated, and none "
				    "left for container %s, which is not pinned",
				    name);
	}
	if (!rp_ids_empty(rp_ids_of(&inst->pools.common)) ||
	    !rp_ids_empty(rp_ids_of(&inst->plan->reserved)))
		return 0;
	for (uint32_t i = 0; i < inst->table.n; i++) {
		const struct entry *e = inst->table.list[i];
		if (e->is.level == LEVEL_SHARED && !(e->is.flags & (ASK_BOUND | ASK_LOST)) &&
		    e->is.role < ROLE_INIT) {
			inst->counters.refused[REFUSED_CPU]++;
			return modhost_fail(&inst->h, -RP_ENOSPC,
					    "no available CPU hints: no CPU would be left for "
					    "shared_cores, and none is reserved");
		}
	}
	return 0;
}
