/* SPDX-License-Identifier: Apache-2.0 */
/* Choice of NUMA nodes for a pod: free capacity, hints of CPUs and memory, and their merged
 * result. */
#include <string.h>

#include "modules/qos/qos.h"

#define NO_CPUS "no available CPU hints"

static uint64_t hints_bit(const struct node *node)
{
	return UINT64_C(1) << node->id;
}

/* ---- free capacity --------------------------------------------------------------------------- */

/* Subtracts the memory of a bound pod from its nodes, lower ones first. An exclusive pod has all
 * memory of its nodes. */
static void take_memory(const struct rp_plan *p, const struct record *rec, struct room *room)
{
	uint64_t left = rec->mem > 0 ? (uint64_t)rec->mem : 0;
	for (uint32_t i = 0; i < p->n_nodes; i++) {
		if (!(rec->mem_nodes & hints_bit(&p->nodes[i])))
			continue;
		uint64_t part = rec->flags & ASK_EXCLUSIVE || left > room->mem_free[i]
					? room->mem_free[i]
					: left;
		room->mem_free[i] -= part;
		left -= left < part ? left : part;
	}
}

static bool wants_no_neighbour(const struct ask *a, const struct record *rec)
{
	bool alike =
		rec->level == a->level && (a->level != LEVEL_SHARED || !strcmp(rec->pool, a->pool));
	return !alike && ((a->flags | rec->flags) & ASK_ALONE);
}

/* Returns the pod's CPU on each of its nodes in milli-CPU; dedicated CPUs are whole. */
static int64_t part_of(const struct record *rec)
{
	uint32_t n = hints_size(rec->nodes);
	int64_t cpu =
		rec->level == LEVEL_DEDICATED ? 1000 * (int64_t)ask_whole(rec->cpu) : rec->cpu;
	return (cpu + n - 1) / n;
}

static bool hints_do_counts(const struct entry *e)
{
	return e->is.role == ROLE_GRANT || entry_counts(e);
}

static void hints_count(const struct rp_plan *p, const struct record *rec, const struct ask *a,
			struct room *room)
{
	if (!rec->nodes || (rec->level != LEVEL_SHARED && rec->level != LEVEL_DEDICATED))
		return;
	room->bound |= rec->nodes;
	if (rec->level == LEVEL_DEDICATED)
		room->dedicated |= rec->nodes;
	if (rec->flags & ASK_EXCLUSIVE)
		room->exclusive |= rec->nodes;
	if (wants_no_neighbour(a, rec))
		room->refused |= rec->nodes;
	/* no container has taken the dedicated CPUs of a grant yet */
	bool asks = rec->level == LEVEL_SHARED || rec->role == ROLE_GRANT;
	for (uint32_t i = 0; asks && i < p->n_nodes; i++)
		if (rec->nodes & hints_bit(&p->nodes[i]))
			room->bound_cpu[i] += part_of(rec);
	take_memory(p, rec, room);
}

static void room_empty(const struct rp_plan *p, struct room *ret)
{
	memset(ret, 0, sizeof *ret);
	for (uint32_t i = 0; i < p->n_nodes; i++)
		ret->mem_free[i] = p->nodes[i].memory;
}

void room_memory_of(const struct rp_instance *inst, const struct entry *of, uint64_t ret[NODES_MAX])
{
	const struct ask nobody = {.level = LEVEL_SHARED};
	struct room room;
	room_empty(inst->plan, &room);
	for (uint32_t i = 0; i == 0 || inst->table.list[i - 1] != of; i++) {
		const struct entry *e = inst->table.list[i];
		memcpy(ret, room.mem_free, sizeof room.mem_free);
		if (hints_do_counts(e))
			hints_count(inst->plan, &e->is, &nobody, &room);
	}
	for (uint32_t i = 0; i < NODES_MAX; i++)
		ret[i] -= room.mem_free[i];
}

static bool is_unbound(const struct entry *e)
{
	return hints_do_counts(e) && e->is.level == LEVEL_SHARED && !e->is.nodes;
}

void room_count(struct table *t, struct entry *e, bool joins)
{
	if (!t->summed)
		return;
	if (is_unbound(e)) {
		t->unbound_cpu += joins ? e->is.cpu : -e->is.cpu;
		t->unbound_mem += joins ? e->is.mem : -e->is.mem;
	} else if (hints_do_counts(e) && e->is.nodes) {
		uint32_t i = t->n_bound;
		while (i && t->bound[i - 1]->number > e->number - !joins)
			i--;
		memmove(&t->bound[i + joins], &t->bound[i + !joins],
			(t->n_bound - i - !joins) * sizeof *t->bound);
		t->n_bound += joins ? 1 : UINT32_MAX;
		if (joins)
			t->bound[i] = e;
	}
}

static void room_sum(struct table *t)
{
	t->summed = true;
	t->n_bound = 0;
	t->unbound_cpu = t->unbound_mem = 0;
	for (uint32_t i = 0; i < t->n; i++)
		room_count(t, t->list[i], true);
}

void room_of(struct rp_instance *inst, rp_pod but, const struct ask *a, struct room *ret)
{
	const struct rp_plan *p = inst->plan;
	struct table *t = &inst->table;
	struct rp_idset own, of_exclusive;
	room_empty(p, ret);
	if (!t->summed)
		room_sum(t);
	ret->unbound_cpu = t->unbound_cpu;
	ret->unbound_mem = t->unbound_mem;
	for (const struct entry *e = NULL; (e = table_next(inst, but, e));)
		if (is_unbound(e)) {
			ret->unbound_cpu -= e->is.cpu;
			ret->unbound_mem -= e->is.mem;
		}
	for (uint32_t i = 0; i < t->n_bound; i++)
		if (t->bound[i]->pod != but)
			hints_count(p, &t->bound[i]->is, a, ret);
	(void)owners_owned(&inst->owners, but, &own);
	rp_idset_andnot(&ret->free, rp_ids_of(&p->pool), rp_ids_of(&inst->owners.taken));
	rp_idset_or(&ret->free, rp_ids_of(&ret->free), rp_ids_of(&own));
	rp_idset_and(&ret->free, rp_ids_of(&ret->free), rp_ids_of(&p->pool));
	plan_cpus_of(p, ret->exclusive, &of_exclusive);
	rp_idset_andnot(&ret->free, rp_ids_of(&ret->free), rp_ids_of(&of_exclusive));
	for (uint32_t i = 0; i < p->n_nodes; i++)
		if (!(ret->bound & hints_bit(&p->nodes[i])))
			ret->unbound_cpus += p->nodes[i].n_cpus;
}

/* ---- hints of CPUs --------------------------------------------------------------------------- */

static uint32_t nodes_needed(const struct rp_plan *p, const struct ask *a)
{
	uint32_t n = (ask_whole(a->cpu) + p->node_cpus - 1) / p->node_cpus;
	return n ? n : 1;
}

static uint32_t free_in(const struct room *room, const struct node *node)
{
	return rp_ids_count_and(rp_ids_of(&room->free), rp_ids_of(&node->cpus));
}

/* Returns the CPU of a node that bound shared pods do not request, in milli-CPU. */
int64_t hints_rest(const struct rp_plan *p, const struct room *room, uint32_t i)
{
	return 1000 * (int64_t)free_in(room, &p->nodes[i]) - room->bound_cpu[i];
}

/* Returns true if unbound shared pods would have too few CPUs outside of these nodes. */
static bool hints_starves(const struct rp_plan *p, const struct room *room, uint64_t nodes)
{
	int64_t left = room->unbound_cpus;
	for (uint32_t i = 0; i < p->n_nodes; i++)
		if (nodes & ~room->bound & hints_bit(&p->nodes[i]))
			left -= p->nodes[i].n_cpus;
	return (nodes & ~room->bound) && room->unbound_cpu > 1000 * left;
}

static bool several_nodes(const struct ask *a)
{
	return (a->flags & ASK_EXCLUSIVE) || a->numa_number > 1;
}

uint64_t hints_candidates(const struct rp_plan *p, const struct ask *a, const struct room *room)
{
	uint64_t r = 0;
	for (uint32_t i = 0; i < p->n_nodes; i++) {
		uint64_t node = hints_bit(&p->nodes[i]);
		if ((room->exclusive | room->refused) & node || !free_in(room, &p->nodes[i]))
			continue;
		if ((a->flags & ASK_EXCLUSIVE) && (room->bound & node))
			continue;
		if ((room->bound & node) ? a->numa_number > 1 || hints_rest(p, room, i) >= a->cpu
					 : !hints_starves(p, room, node))
			r |= node;
	}
	return r;
}

static uint32_t whole_cores(const struct rp_plan *p, const struct rp_idset *cpus)
{
	const struct machine_level_units *cores = &p->machine->level[MACHINE_CORE];
	uint32_t n = 0;
	for (uint32_t i = 0; i < cores->n_units; i++)
		n += machine_count_free(&cores->units[i], rp_ids_of(cpus)) ==
		     cores->units[i].n_cpus;
	return n;
}

static uint32_t sockets_of(const struct rp_plan *p, uint64_t nodes)
{
	uint32_t n = 0, last = MACHINE_NOWHERE;
	for (uint32_t i = 0; i < p->n_nodes; i++)
		if (nodes & hints_bit(&p->nodes[i]) && p->nodes[i].socket != last) {
			bool seen = false;
			last = p->nodes[i].socket;
			for (uint32_t k = 0; k < i; k++)
				seen = seen || (nodes & hints_bit(&p->nodes[k]) &&
						p->nodes[k].socket == last);
			n += !seen;
		}
	return n;
}

/* Returns true if each of the nodes has an equal part of the n CPUs free. */
static bool hints_divides(const struct rp_plan *p, const struct room *room, uint64_t nodes,
			  uint32_t n)
{
	uint32_t n_nodes = hints_size(nodes);
	if (n % n_nodes)
		return false;
	for (uint32_t i = 0; i < p->n_nodes; i++)
		if (nodes & hints_bit(&p->nodes[i]) && free_in(room, &p->nodes[i]) < n / n_nodes)
			return false;
	return true;
}

static bool suits_flags(const struct rp_plan *p, const struct ask *a, const struct room *room,
			uint64_t nodes, const struct rp_idset *cpus)
{
	uint32_t n = ask_whole(a->cpu);
	if (a->numa_ids && nodes != a->numa_ids)
		return false;
	if ((a->flags & ASK_EVEN) && !hints_divides(p, room, nodes, n))
		return false;
	if ((a->flags & ASK_PAIRING) && whole_cores(p, cpus) < n / p->machine->threads)
		return false;
	return !(a->flags & ASK_ALIGN_SOCKET) ||
	       sockets_of(p, nodes) == (n + p->socket_cpus - 1) / p->socket_cpus;
}

static bool suits_dedicated(const struct rp_plan *p, const struct ask *a, const struct room *room,
			    uint64_t nodes)
{
	struct rp_idset cpus;
	int64_t rest = 0;
	if (hints_size(nodes) <= p->socket_nodes && sockets_of(p, nodes) > 1)
		return false;
	if (hints_starves(p, room, nodes))
		return false;
	for (uint32_t i = 0; i < p->n_nodes; i++)
		if (nodes & hints_bit(&p->nodes[i]))
			rest += hints_rest(p, room, i);
	if (rest < 1000 * (int64_t)ask_whole(a->cpu))
		return false;
	plan_cpus_of(p, nodes, &cpus);
	rp_idset_and(&cpus, rp_ids_of(&cpus), rp_ids_of(&room->free));
	return suits_flags(p, a, room, nodes, &cpus);
}

/* Prefers hints with the number of nodes that the pod specifies, else with the fewest. */
static void prefer_size(const struct ask *a, struct hint *list, uint32_t n)
{
	uint32_t wanted = a->numa_number;
	for (uint32_t i = 0; !a->numa_number && i < n; i++)
		if (!wanted || hints_size(list[i].nodes) < wanted)
			wanted = hints_size(list[i].nodes);
	for (uint32_t i = 0; i < n; i++)
		list[i].preferred = hints_size(list[i].nodes) == wanted;
}

static uint32_t dedicated_hints(const struct rp_plan *p, const struct ask *a,
				const struct room *room, struct hint *ret)
{
	uint64_t masks[HINTS_MAX];
	uint32_t least = nodes_needed(p, a), n = 0;
	if (a->numa_number > least && p->n_nodes > HINTS_ALL_MASKS_NODES)
		least = a->numa_number;
	uint32_t n_masks = hints_masks(hints_candidates(p, a, room), least, masks);
	for (uint32_t i = 0; i < n_masks; i++)
		if ((several_nodes(a) || hints_size(masks[i]) == 1) &&
		    suits_dedicated(p, a, room, masks[i]))
			ret[n++].nodes = masks[i];
	prefer_size(a, ret, n);
	return n;
}

/* Returns the part of a node that would remain free, in thousandths. */
static int64_t left_ratio(const struct rp_plan *p, const struct room *room, uint32_t i, int64_t cpu)
{
	return (hints_rest(p, room, i) - cpu) / (p->nodes[i].n_cpus ? p->nodes[i].n_cpus : 1);
}

static uint32_t bound_hints(const struct rp_plan *p, const struct ask *a, const struct room *room,
			    struct hint *ret)
{
	uint64_t nodes = hints_candidates(p, a, room);
	int64_t most = INT64_MIN, least = INT64_MAX, threshold = (int64_t)(1000 * p->low_threshold);
	uint32_t n = 0, at[NODES_MAX];
	for (uint32_t i = 0; i < p->n_nodes; i++) {
		int64_t left = hints_rest(p, room, i) - a->cpu;
		if (!(nodes & hints_bit(&p->nodes[i])) || left < 0 ||
		    (a->numa_ids && a->numa_ids != hints_bit(&p->nodes[i])))
			continue;
		at[n] = i;
		ret[n++].nodes = hints_bit(&p->nodes[i]);
		most = left > most ? left : most;
		if (left < least && (p->spreading != DYNAMIC_PACKING ||
				     left_ratio(p, room, i, a->cpu) >= threshold))
			least = left;
	}
	bool pack = p->spreading != SPREADING && least != INT64_MAX;
	for (uint32_t i = 0; i < n; i++)
		ret[i].preferred = hints_rest(p, room, at[i]) - a->cpu == (pack ? least : most);
	return n;
}

/* ---- hints of memory ------------------------------------------------------------------------- */

static uint64_t memory_of(const struct rp_plan *p, const struct room *room, uint64_t nodes)
{
	uint64_t sum = 0;
	for (uint32_t i = 0; i < p->n_nodes; i++)
		if (nodes & hints_bit(&p->nodes[i]))
			sum += room->mem_free[i];
	return sum;
}

#define WHY_MAX 160u

/* Returns true if memory nodes have the huge pages of a container, or with ctr 0 of the pod that is
 * being admitted. why: WHY_MAX bytes for the reason. */
static bool memory_has_huge(const struct rp_instance *inst, const struct ask *a, rp_ctr ctr,
			    uint64_t nodes, char *why)
{
	const struct modhost *h = &inst->h;
	if ((!ctr && !a->admitted) || !RP_HAS(h->cache, hugepages))
		return true;
	return h->cache->hugepages(h->ctx, a->admitted, ctr, (struct rp_ids){&nodes, 1, 0}, why,
				   WHY_MAX) >= 0;
}

static uint32_t memory_hints(const struct rp_instance *inst, rp_ctr ctr, const struct ask *a,
			     const struct room *room, struct hint *ret)
{
	const struct rp_plan *p = inst->plan;
	char why[WHY_MAX];
	bool huge = !memory_has_huge(inst, a, ctr, 0, why);
	uint64_t masks[HINTS_MAX], needed = a->mem > 0 ? (uint64_t)a->mem : 0;
	uint32_t n = 0, least = 1;
	if (p->n_nodes > HINTS_ALL_MASKS_NODES)
		least = a->numa_number ? a->numa_number : nodes_needed(p, a);
	uint32_t n_masks = hints_masks(p->node_mask & ~room->exclusive, least, masks);
	bool within = false; /* a single socket suffices */
	for (uint32_t i = 0; i < n_masks; i++) {
		if (memory_of(p, room, masks[i]) < needed ||
		    (huge && !memory_has_huge(inst, a, ctr, masks[i], why)))
			continue;
		within = within || sockets_of(p, masks[i]) == 1;
		ret[n++].nodes = masks[i];
	}
	uint32_t kept = 0;
	for (uint32_t i = 0; i < n; i++)
		if (!within || hints_size(ret[i].nodes) > p->socket_nodes ||
		    sockets_of(p, ret[i].nodes) == 1)
			ret[kept++] = ret[i];
	prefer_size(a, ret, kept);
	return kept;
}

/* ---- merging --------------------------------------------------------------------------------- */

static void say_nodes(struct line *l, uint64_t nodes)
{
	char text[SET_TEXT_MAX];
	struct rp_ids ids = {&nodes, 1, 0};
	line_say(l, nodes == HINTS_ANY ? "any" : rp_ids_empty(ids) ? "none" : "");
	if (nodes && nodes != HINTS_ANY) {
		line_say(l, "{");
		line_say(l, modhost_set_text(ids, text, sizeof text));
		line_say(l, "}");
	}
}

static void hints_explain(struct rp_instance *inst, rp_ctr ctr, const char *what,
			  const struct hint *list, uint32_t n)
{
	struct line l = {.n = 0};
	if (!ctr)
		return;
	line_say(&l, what);
	for (uint32_t i = 0; i < n; i++) {
		line_say(&l, " ");
		say_nodes(&l, list[i].nodes);
		line_say(&l, list[i].preferred ? "*" : "");
	}
	line_say(&l, n ? "" : " none");
	modhost_note_line(&inst->h, ctr, l.text);
}

static int32_t hints_refuse(struct rp_instance *inst, enum refusal why, const char *text)
{
	inst->counters.refused[why]++;
	return modhost_fail(&inst->h, -RP_ENOSPC, "%s", text);
}

/* Checks that an unbound pod fits beside all other unbound pods together. */
static int32_t check_unbound(struct rp_instance *inst, const struct ask *a, const struct room *room)
{
	const struct rp_plan *p = inst->plan;
	uint64_t capacity = 0;
	int64_t sum = room->unbound_cpu + a->cpu;
	if (sum > 1000 * room->unbound_cpus) {
		inst->counters.refused[REFUSED_CPU]++;
		return modhost_fail(&inst->h, -RP_ENOSPC,
				    NO_CPUS ": shared_cores would request %lldm of %lld CPUs",
				    (long long)sum, (long long)room->unbound_cpus);
	}
	for (uint32_t i = 0; i < p->n_nodes; i++)
		if (!(room->bound & hints_bit(&p->nodes[i])))
			capacity += p->nodes[i].memory;
	if (p->memory_check && a->mem > 0 && (uint64_t)(room->unbound_mem + a->mem) > capacity)
		return hints_refuse(inst, REFUSED_MEMORY,
				    "not enough memory on the NUMA nodes without bound pods");
	return 0;
}

static int32_t check_size(struct rp_instance *inst, const struct ask *a)
{
	const struct rp_plan *p = inst->plan;
	uint32_t least = nodes_needed(p, a);
	if (least > 1 && (a->level == LEVEL_SHARED || !several_nodes(a)))
		return hints_refuse(inst, REFUSED_CPU,
				    "the pod requests more CPUs: it is larger than one NUMA node");
	return least > p->n_nodes
		       ? hints_refuse(inst, REFUSED_CPU, NO_CPUS ": the machine has fewer CPUs")
		       : 0;
}

/* Prefers the nodes that the scheduler chose, if they are possible. */
static void follow_wish(const struct ask *a, struct hint *list, uint32_t n)
{
	for (uint32_t i = 0; a->wished && i < n; i++)
		if (list[i].nodes == a->wished) {
			for (uint32_t k = 0; k < n; k++)
				list[k].preferred = k == i;
			return;
		}
}

/* Prefers the nodes of the container's devices, if they are possible. For dedicated CPUs, only
 * nodes that are preferred already. */
static void follow_devices(const struct rp_instance *inst, rp_ctr ctr, const struct ask *a,
			   struct hint *list, uint32_t n)
{
	struct hint near[2];
	bool any = false, dedicated = a->level == LEVEL_DEDICATED;
	if (inst->plan->topology == HINTS_NONE || !others_devices(inst, ctr, near))
		return;
	for (uint32_t i = 0; i < n; i++)
		any |= !(list[i].nodes & ~near[0].nodes) && (list[i].preferred || !dedicated);
	for (uint32_t i = 0; any && i < n; i++)
		list[i].preferred =
			!(list[i].nodes & ~near[0].nodes) && (list[i].preferred || !dedicated);
}

/* Reduces the hints to the nodes that the pod was granted before. */
static uint32_t keep_granted(const struct ask *a, struct hint *list, uint32_t n)
{
	for (uint32_t i = 0; a->granted && i < n; i++)
		if (list[i].nodes == a->granted) {
			list[0] = (struct hint){a->granted, true};
			return 1;
		}
	return a->granted ? 0 : n;
}

static bool hints_suits(const struct rp_plan *p, const struct ask *a, const struct room *room,
			uint64_t nodes)
{
	if (a->level != LEVEL_DEDICATED)
		return hints_size(nodes) == 1;
	return (several_nodes(a) || hints_size(nodes) == 1) && suits_dedicated(p, a, room, nodes);
}

static bool is_listed(const struct hints *l, uint64_t nodes)
{
	for (uint32_t i = 0; i < l->n; i++)
		if (l->list[i].nodes == nodes)
			return true;
	return false;
}

/*
 * Returns the smallest set of nodes that is listed for CPUs and for memory; 0: none. If no set is
 * preferred by both, their intersection may have less capacity than either set, and this one is
 * used instead.
 */
static uint64_t listed_by_both(const struct hints both[2])
{
	uint64_t best = 0;
	for (uint32_t i = 0; i < both[0].n; i++) {
		uint64_t nodes = both[0].list[i].nodes;
		if ((!best || hints_size(nodes) < hints_size(best)) && is_listed(&both[1], nodes))
			best = nodes;
	}
	return best;
}

static uint64_t nodes_of(const struct rp_plan *p, const struct hint *h)
{
	return h->nodes == HINTS_ANY ? p->node_mask : h->nodes;
}

/* Merges with the hints of resource plugins and devices, if there are any, and sends the plugins
 * the result. */
static int32_t merge_all(struct rp_instance *inst, rp_ctr ctr, rp_pod admitted,
			 const struct hints both[2], struct hint result[HINTS_RESOURCES_MAX])
{
	const struct rp_plan *p = inst->plan;
	struct hints lists[HINTS_RESOURCES_MAX] = {both[0], both[1]};
	struct others *o = NULL;
	struct hint near[2];
	int32_t r = others_of(inst, admitted, &o);
	if (r)
		return r;
	uint32_t n = 2 + (o ? o->n : 0);
	for (uint32_t i = 2; i < n; i++)
		lists[i] = o->list[i - 2].is;
	if (n < HINTS_RESOURCES_MAX && others_devices(inst, ctr, near)) {
		lists[n] = (struct hints){.list = near, .n = 2};
		n++;
		hints_explain(inst, ctr, "devices:", near, 2);
	}
	if (!hints_merge(p->topology, p->node_mask, lists, n, result))
		r = others_refuse(inst, o, "CPUs and memory");
	else if (o)
		others_choose(inst, admitted, o, &result[2], &result[0]);
	others_free(o);
	return r;
}

static int32_t hints_merge_one(struct rp_instance *inst, rp_ctr ctr, rp_pod admitted,
			       const struct hints both[2], struct record *rec)
{
	const struct rp_plan *p = inst->plan;
	struct hint result[HINTS_RESOURCES_MAX];
	struct line l = {.n = 0};
	int32_t r = 0;
	if (p->topology == HINTS_NONE) { /* by the CPUs alone */
		(void)hints_merge(HINTS_BEST_EFFORT, p->node_mask, both, 1, result);
		result[1] = result[0];
	} else {
		r = merge_all(inst, ctr, admitted, both, result);
	}
	if (r)
		return r;
	rec->nodes = nodes_of(p, &result[0]);
	rec->mem_nodes = nodes_of(p, &result[1]);
	if (!ctr)
		return 0;
	line_say(&l, "merged by ");
	line_say(&l, hints_policy_names[p->topology]);
	line_say(&l, ": ");
	say_nodes(&l, rec->nodes);
	line_say(&l, result[0].preferred ? "*" : "");
	if (rec->mem_nodes != rec->nodes) {
		line_say(&l, ", for memory ");
		say_nodes(&l, rec->mem_nodes);
		line_say(&l, result[1].preferred ? "*" : "");
	}
	modhost_note_line(&inst->h, ctr, l.text);
	return 0;
}

/* Checks that the merged nodes have enough capacity, else tries nodes listed by both. */
static int32_t hints_settle(struct rp_instance *inst, rp_ctr ctr, const struct ask *a,
			    const struct room *room, const struct hints both[2], struct record *rec)
{
	const struct rp_plan *p = inst->plan;
	bool cpus = hints_suits(p, a, room, rec->nodes);
	char why[WHY_MAX] = "";
	bool huge = memory_has_huge(inst, a, ctr, rec->mem_nodes, why);
	if (cpus && huge && (a->mem <= 0 || memory_of(p, room, rec->mem_nodes) >= (uint64_t)a->mem))
		return 0;
	const struct hint instead = {
		.nodes = p->topology == HINTS_BEST_EFFORT ? listed_by_both(both) : 0};
	hints_explain(inst, ctr, "not enough on these; nodes in both lists:", &instead, 1);
	rec->nodes = rec->mem_nodes = instead.nodes;
	if (instead.nodes && hints_suits(p, a, room, instead.nodes))
		return 0;
	if (cpus)
		return hints_refuse(inst, REFUSED_MEMORY,
				    huge ? "not enough memory on the NUMA nodes that have the CPUs"
					 : why);
	return hints_refuse(inst, REFUSED_HINTS,
			    NO_CPUS ": no NUMA nodes have both the CPUs and the memory");
}

static bool is_preferred(const struct hint *list, uint32_t n, uint64_t nodes)
{
	for (uint32_t i = 0; i < n; i++)
		if (list[i].nodes == nodes)
			return list[i].preferred;
	return false;
}

/* Keeps only the tightest nodes preferred among the nodes that hints of dedicated CPUs and of
 * memory prefer equally, so that the largest free areas are left to other pods. */
static void prefer_tight(const struct rp_plan *p, const struct room *room, struct hint *cpu,
			 uint32_t n_cpu, const struct hint *memory, uint32_t n_memory)
{
	int64_t rest[HINTS_MAX], least = INT64_MAX;
	for (uint32_t i = 0; i < n_cpu; i++) {
		rest[i] = INT64_MAX;
		if (!cpu[i].preferred || !is_preferred(memory, n_memory, cpu[i].nodes))
			continue;
		rest[i] = 0;
		for (uint32_t k = 0; k < p->n_nodes; k++)
			if (cpu[i].nodes & hints_bit(&p->nodes[k]))
				rest[i] += hints_rest(p, room, k);
		least = rest[i] < least ? rest[i] : least;
	}
	for (uint32_t i = 0; least != INT64_MAX && i < n_cpu; i++)
		cpu[i].preferred = cpu[i].preferred && rest[i] == least;
}

/* Returns true if a plugin has hints for the pod that is being admitted. */
static bool has_other_hints(struct rp_instance *inst, rp_pod admitted)
{
	struct others *o = NULL;
	bool has = others_of(inst, admitted, &o) || (o && o->n);
	others_free(o);
	return has;
}

#define TOLD_NODES 8u

/* Refuses a pod that is being admitted. No container exists yet whose explanation could have the
 * table, so the message contains it. */
static int32_t refuse_cpus(struct rp_instance *inst, const struct ask *a, const struct room *room)
{
	const struct rp_plan *p = inst->plan;
	struct line l = {.n = 0};
	char text[48];
	for (uint32_t i = 0; i < p->n_nodes && i < TOLD_NODES; i++) {
		bool closed = (room->exclusive | room->refused) & hints_bit(&p->nodes[i]);
		(void)snprintf(text, sizeof text, "%snode %u: %lldm", i ? ", " : "", p->nodes[i].id,
			       closed ? 0LL : (long long)hints_rest(p, room, i));
		line_say(&l, text);
	}
	inst->counters.refused[REFUSED_CPU]++;
	return modhost_fail(&inst->h, -RP_ENOSPC,
			    NO_CPUS
			    ": no NUMA node has %lldm left, or shared_cores need them (%s%s)",
			    (long long)a->cpu, l.text, p->n_nodes > TOLD_NODES ? ", …" : "");
}

static int32_t choose_bound(struct rp_instance *inst, rp_ctr ctr, const struct ask *a,
			    const struct room *room, struct record *rec)
{
	const struct rp_plan *p = inst->plan;
	struct hint cpu[HINTS_MAX], memory[HINTS_MAX];
	int32_t r = check_size(inst, a);
	if (r)
		return r;
	uint32_t n_cpu = a->level == LEVEL_DEDICATED ? dedicated_hints(p, a, room, cpu)
						     : bound_hints(p, a, room, cpu);
	uint32_t n_memory = memory_hints(inst, ctr, a, room, memory);
	follow_wish(a, cpu, n_cpu);
	follow_devices(inst, ctr, a, cpu, n_cpu);
	hints_explain(inst, ctr, "NUMA nodes for CPUs (* preferred):", cpu, n_cpu);
	hints_explain(inst, ctr, "NUMA nodes for memory (* preferred):", memory, n_memory);
	if (a->level == LEVEL_DEDICATED && !p->parity && !has_other_hints(inst, a->admitted))
		prefer_tight(p, room, cpu, n_cpu, memory, n_memory);
	n_cpu = keep_granted(a, cpu, n_cpu);
	if (!n_cpu)
		return refuse_cpus(inst, a, room);
	char why[WHY_MAX];
	if (!n_memory)
		return hints_refuse(inst, REFUSED_MEMORY,
				    memory_has_huge(inst, a, ctr, p->node_mask, why)
					    ? "not enough memory on the NUMA nodes"
					    : why);
	const struct hints both[2] = {{cpu, n_cpu, p->numeric_cpu},
				      {memory, n_memory, p->numeric_memory}};
	r = hints_merge_one(inst, ctr, a->admitted, both, rec);
	if (!r && a->granted && rec->nodes != a->granted)
		return -RP_ENOSPC;
	return r ? r : hints_settle(inst, ctr, a, room, both, rec);
}

/* Chooses the node with most reclaimed CPUs for each of its bound pods. */
static int32_t choose_reclaimed(struct rp_instance *inst, const struct ask *a, struct record *rec)
{
	const struct rp_plan *p = inst->plan;
	uint32_t best = 0;
	for (uint32_t i = 0; i < p->n_nodes; i++) {
		uint64_t node = hints_bit(&p->nodes[i]);
		uint32_t n = rp_ids_count_and(rp_ids_of(&inst->pools.reclaim),
					      rp_ids_of(&p->nodes[i].cpus)) *
			     RP_CPUS_MAX;
		uint32_t n_pods = 1;
		for (uint32_t k = 0; k < inst->table.n; k++) {
			const struct entry *e = inst->table.list[k];
			n_pods += entry_counts(e) && e->is.level == LEVEL_RECLAIMED &&
				  e->is.nodes == node;
		}
		if ((a->numa_ids && a->numa_ids != node) || (a->granted && a->granted != node))
			continue;
		if (a->wished == node && n)
			n = UINT32_MAX;
		if (n / n_pods <= best)
			continue;
		best = n / n_pods;
		rec->nodes = rec->mem_nodes = node;
	}
	return best ? 0
		    : hints_refuse(inst, REFUSED_CPU,
				   NO_CPUS ": no NUMA node has CPUs of the reclaim pool");
}

int32_t hints_choose(struct rp_instance *inst, rp_ctr ctr, const struct ask *a,
		     const struct room *room, struct record *rec)
{
	rec->nodes = rec->mem_nodes = 0;
	switch (a->level) {
	case LEVEL_DEDICATED:
		return choose_bound(inst, ctr, a, room, rec);
	case LEVEL_SHARED:
		return a->flags & ASK_BOUND ? choose_bound(inst, ctr, a, room, rec)
					    : check_unbound(inst, a, room);
	case LEVEL_RECLAIMED:
		if (rp_ids_empty(rp_ids_of(&inst->pools.reclaim)))
			return hints_refuse(inst, REFUSED_CPU,
					    NO_CPUS ": the reclaim pool is empty");
		return a->flags & ASK_BOUND ? choose_reclaimed(inst, a, rec) : 0;
	default:
		return 0;
	}
}
