/* SPDX-License-Identifier: Apache-2.0 */
/* Stages the CPUs and memory of containers in the transaction. Handles only the balloons that an
 * operation has changed. */
#include <string.h>

#include "modules/balloons/balloons.h"
#include "modules/balloons/place.h"
#include "modules/balloons/stage.h"

struct pin {
	struct rp_instance *inst;
	rp_txn txn;
	const struct balloon *balloon;
	struct rp_idset cpus, own; /* CPUs of the members, and the exclusive part */
	struct rp_idset one_per_core,
		own_one_per_core; /* single threads of the cores, for hideHyperthreads */
	bool has_one_per_core;
	bool nodes_changed;
};

void pin_pinnable(const struct balloon *b, struct rp_idset *ret)
{
	rp_idset_or(ret, rp_ids_of(&b->cpus),
		    claims_has(b) ? rp_ids_none() : rp_ids_of(&b->shared));
}

/* ---- idle CPUs ------------------------------------------------------------------------------- */

static void share_idle(struct state *s, struct balloon *b, struct rp_ids idle)
{
	struct rp_idset shared;
	rp_idset_clear(&shared);
	plan_machine_surround(s->plan->machine, (enum tree_level)b->type->share,
			      rp_ids_of(&b->cpus), &shared);
	rp_idset_and(&shared, rp_ids_of(&shared), idle);
	if (rp_ids_equal(rp_ids_of(&shared), rp_ids_of(&b->shared)))
		return;
	state_save(s, b);
	rp_idset_copy(&b->shared, rp_ids_of(&shared));
}

static void share_all(struct state *s)
{
	struct rp_idset idle;
	rp_idset_and(&idle, rp_ids_of(&s->free), rp_ids_of(&s->plan->sharable));
	for (uint32_t i = 0; i < s->n; i++)
		if (s->list[i]->type->share >= 0)
			share_idle(s, s->list[i], rp_ids_of(&idle));
}

/* ---- memory ---------------------------------------------------------------------------------- */

static int32_t set_mems(const struct pin *p, rp_ctr ctr, memalloc_mask zone)
{
	const struct modhost *h = &p->inst->h;
	struct rp_idset nodes;
	memalloc_ids(p->inst->state->memory, zone, &nodes);
	return rp_ids_empty(rp_ids_of(&nodes))
		       ? 0
		       : h->cache->set_mems(h->ctx, p->txn, ctr, rp_ids_of(&nodes));
}

static int32_t set_moved(const struct pin *p)
{
	const struct memalloc_move *moves;
	uint32_t n = memalloc_moves(p->inst->state->memory, &moves);
	for (uint32_t i = 0; i < n; i++) {
		const struct member *m = state_member(p->inst->state, moves[i].id);
		int32_t r = m && !m->preserve_memory ? set_mems(p, m->ctr, moves[i].zone) : 0;
		if (r)
			return r;
	}
	return 0;
}

/* Accounts for the memory of a container with preserved memory, with its current size, at its
 * current nodes. */
static int32_t preserve_memory(const struct pin *p, const struct member *m)
{
	const struct modhost *h = &p->inst->h;
	struct memalloc *mem = p->inst->state->memory;
	struct rp_ctr_info info = {.size = sizeof info};
	memalloc_mask zone;
	bool known = memalloc_zone(mem, m->ctr, &zone) == 0;
	if (known && !m->fresh)
		return 0;
	int32_t r = h->cache->get_ctr(h->ctx, m->ctr, &info);
	if (r)
		return r;
	/* Without a decision of the policy, the memory nodes are those that the runtime reports. */
	struct rp_ids mems = rp_ids_empty(info.mems) ? info.has_mems : info.mems;
	struct memalloc_request req = {
		.id = m->ctr,
		.size = m->mem_limit,
		.nodes = memalloc_mask_of(mem, mems),
		.priority = MEMALLOC_PRIO_PRESERVED,
	};
	if (!req.nodes)
		return 0;
	int e = known ? memalloc_replace(mem, &req, &zone) : memalloc_allocate(mem, &req, &zone);
	if (!e)
		return set_moved(p);
	modhost_log(h, RP_LOG_WARNING, m->ctr, "its memory cannot be accounted for: %s",
		    memalloc_why(mem));
	return 0;
}

static struct memalloc_request memory_request(const struct member *m, memalloc_mask nodes)
{
	return (struct memalloc_request){
		.id = m->ctr,
		.size = m->mem_limit,
		.nodes = nodes,
		.types = m->memory_types,
		.priority = memalloc_prio_of(m->qos),
	};
}

static int32_t place_memory(const struct pin *p, const struct member *m)
{
	struct memalloc *mem = p->inst->state->memory;
	memalloc_mask zone;
	bool known = memalloc_zone(mem, m->ctr, &zone) == 0;
	if (known && !p->nodes_changed && !m->fresh && !m->follow)
		return 0;
	if (known && m->keeps_memory)
		return set_mems(p, m->ctr, zone);
	struct memalloc_request req = memory_request(m, p->balloon->nodes);
	int r = !req.nodes ? -RP_EINVAL
		: !known   ? memalloc_allocate(mem, &req, &zone)
		: m->fresh ? memalloc_replace(mem, &req, &zone)
			   : memalloc_follow(mem, &req, &zone);
	if (!r) {
		r = set_moved(p);
		return r ? r : set_mems(p, m->ctr, zone);
	}
	modhost_log(&p->inst->h, RP_LOG_WARNING, m->ctr, "no memory for it near its CPUs: %s",
		    req.nodes ? memalloc_why(mem) : "none is near its CPUs");
	return known ? 0 : set_mems(p, m->ctr, req.nodes & memalloc_with_memory(mem));
}

/* ---- containers ------------------------------------------------------------------------------ */

static void look_at_one_per_core(struct pin *p)
{
	if (p->has_one_per_core)
		return;
	plan_machine_one_per_core(p->inst->plan->machine, rp_ids_of(&p->cpus), &p->one_per_core);
	rp_idset_and(&p->own_one_per_core, rp_ids_of(&p->one_per_core), rp_ids_of(&p->own));
	p->has_one_per_core = true;
}

static int32_t set_cpus(struct pin *p, const struct member *m)
{
	const struct modhost *h = &p->inst->h;
	if (m->hide_threads)
		look_at_one_per_core(p);
	const struct rp_idset *cpus = m->hide_threads ? &p->one_per_core : &p->cpus;
	const struct rp_idset *own = m->hide_threads ? &p->own_one_per_core : &p->own;
	if (rp_ids_empty(rp_ids_of(cpus)))
		return 0;
	int32_t r = h->cache->set_cpus(h->ctx, p->txn, m->ctr, rp_ids_of(cpus));
	if (!r)
		r = h->cache->set_exclusive(h->ctx, p->txn, m->ctr, rp_ids_of(own));
	return r ? r
		 : h->cache->set_group(h->ctx, p->txn, m->ctr, m->claim ? 0 : p->balloon->group);
}

int32_t pin_leave(struct rp_instance *inst, rp_txn txn, rp_ctr ctr)
{
	const struct rp_host_cache *c = inst->h.cache;
	return RP_HAS(c, leave_unpinned) ? c->leave_unpinned(inst->h.ctx, txn, ctr) : 0;
}

int32_t pin_own_nothing(struct rp_instance *inst, rp_txn txn, rp_ctr ctr)
{
	const struct modhost *h = &inst->h;
	struct rp_ctr_info info = {.size = sizeof info};
	int32_t r = h->cache->get_ctr(h->ctx, ctr, &info);
	if (r || rp_ids_empty(info.exclusive))
		return r;
	r = h->cache->set_exclusive(h->ctx, txn, ctr, rp_ids_none());
	return r ? r : h->cache->set_group(h->ctx, txn, ctr, 0);
}

int32_t pin_loosen(struct rp_instance *inst, rp_txn txn, rp_ctr ctr, uint32_t what)
{
	const struct modhost *h = &inst->h;
	struct rp_ctr_info info = {.size = sizeof info};
	struct rp_idset mems;
	int32_t r = what ? h->cache->get_ctr(h->ctx, ctr, &info) : 0;
	if (!r && what & PIN_CPUS)
		r = pin_own_nothing(inst, txn, ctr);
	if (!r && what & PIN_CPUS && !rp_ids_empty(info.cpus))
		r = h->cache->set_cpus(h->ctx, txn, ctr, rp_ids_of(&inst->plan->machine->online));
	if (!r && what & PIN_MEMORY && !rp_ids_empty(info.mems) &&
	    !(info.flags & RP_CTR_PRESERVE_MEM)) {
		modhost_set(h, RP_NODES_MEMORY, &mems);
		r = h->cache->set_mems(h->ctx, txn, ctr, rp_ids_of(&mems));
	}
	return r;
}

/* Returns PIN_CPUS and PIN_MEMORY for the resources that an earlier configuration may have confined
 * and this one does not. */
static uint32_t not_pinned(const struct pin *p, const struct member *m)
{
	return (p->inst->plan->pin_cpu ? 0 : PIN_CPUS) | (m->pin_memory ? 0 : PIN_MEMORY);
}

static int32_t pin_member(struct pin *p, struct member *m)
{
	int32_t r = m->fresh ? pin_loosen(p->inst, p->txn, m->ctr, not_pinned(p, m)) : 0;
	if (!r && p->inst->plan->pin_cpu) {
		r = set_cpus(p, m);
		if (!r && m->fresh)
			r = m->request > 0 ? ctr_set_shares(&p->inst->h, p->txn, m->ctr, m->request)
					   : 0;
	}
	if (!r && m->pin_memory && p->inst->state->memory)
		r = m->preserve_memory ? preserve_memory(p, m) : place_memory(p, m);
	m->fresh = m->follow = m->keeps_memory = false;
	return r;
}

/* ---- balloons -------------------------------------------------------------------------------- */

/* Returns the memory nodes near CPUs. */
static memalloc_mask nodes_near(const struct state *s, struct rp_ids cpus)
{
	const struct plan_machine *m = s->plan->machine;
	struct rp_idset nodes;
	rp_idset_clear(&nodes);
	RP_IDS_EACH (cpu, cpus)
		rp_idset_add(&nodes, m->node_of[cpu]);
	return memalloc_mask_of(s->memory, rp_ids_of(&nodes));
}

static void begin_balloon(struct pin *p, struct balloon *b)
{
	struct state *s = p->inst->state;
	p->balloon = b;
	p->has_one_per_core = p->nodes_changed = false;
	pin_pinnable(b, &p->cpus);
	rp_idset_andnot(&p->own, rp_ids_of(&b->cpus), rp_ids_of(&s->visited));
	if (!s->memory || (!b->dirty && b->nodes))
		return;
	memalloc_mask mask = nodes_near(s, rp_ids_of(&p->cpus));
	if (mask == b->nodes)
		return;
	state_save(s, b);
	b->nodes = mask;
	p->nodes_changed = true;
}

static int32_t pin_all(struct pin *p, struct balloon *b)
{
	int32_t r = 0;
	begin_balloon(p, b);
	for (uint32_t i = 0; !r && i < b->n_members; i++)
		r = pin_member(p, b->members[i]);
	b->dirty = false;
	return r;
}

/* Accounts for the memory of a container at the nodes that it has. Returns false if these do not
 * contain the nodes that its request prefers, or have no room for it. */
static bool keep_memory(struct state *s, const struct member *m, memalloc_mask nodes)
{
	struct rp_ctr_info info = {.size = sizeof info};
	struct memalloc_request req = memory_request(m, nodes);
	struct memalloc_offer offer;
	memalloc_mask zone;
	req.size = 0; /* an offer of this size moves no other request */
	if (!m->pin_memory || m->preserve_memory ||
	    s->h->cache->get_ctr(s->h->ctx, m->ctr, &info) ||
	    memalloc_offer(s->memory, &req, &offer))
		return false;
	memalloc_mask has = memalloc_mask_of(s->memory, info.mems);
	if (offer.zone & ~has)
		return false;
	req.size = m->mem_limit;
	req.nodes = has;
	req.types = memalloc_types(s->memory, has);
	return memalloc_allocate(s->memory, &req, &zone) == 0 && zone == has;
}

void pin_keep_memory(struct rp_instance *inst)
{
	struct state *s = inst->state;
	struct rp_idset cpus;
	if (!s->memory)
		return;
	share_all(s);
	for (uint32_t i = 0; i < s->n; i++) {
		const struct balloon *b = s->list[i];
		pin_pinnable(b, &cpus);
		bool same = b->nodes_before && b->types_before == b->type->memory_types &&
			    b->nodes_before == nodes_near(s, rp_ids_of(&cpus));
		for (uint32_t k = 0; k < b->n_members; k++) {
			struct member *m = b->members[k];
			m->keeps_memory =
				m->keeps_memory && same && keep_memory(s, m, b->nodes_before);
		}
	}
}

/* Marks balloons dirty whose exclusive CPUs changed, because containers without a balloon
 * started or stopped to use their CPUs. */
static void see_visitors(struct rp_instance *inst)
{
	struct state *s = inst->state;
	struct rp_idset visited, lost, gained;
	sync_visited(inst, &visited);
	if (rp_ids_equal(rp_ids_of(&visited), rp_ids_of(&s->visited)))
		return;
	rp_idset_andnot(&lost, rp_ids_of(&visited), rp_ids_of(&s->visited));
	rp_idset_andnot(&gained, rp_ids_of(&s->visited), rp_ids_of(&visited));
	rp_idset_or(&lost, rp_ids_of(&lost), rp_ids_of(&gained));
	for (uint32_t i = 0; i < s->n; i++)
		s->list[i]->dirty |= rp_ids_overlap(rp_ids_of(&s->list[i]->cpus), rp_ids_of(&lost));
	rp_idset_copy(&s->visited, rp_ids_of(&visited));
}

int32_t pin_changed(struct rp_instance *inst, rp_txn txn, struct member *m)
{
	struct state *s = inst->state;
	struct pin p = {.inst = inst, .txn = txn};
	int32_t r = 0;
	if (s->sets_changed)
		share_all(s);
	see_visitors(inst);
	if (m && !m->balloon->dirty) {
		begin_balloon(&p, m->balloon);
		r = pin_member(&p, m);
	}
	for (uint32_t i = 0; !r && i < s->n; i++)
		if (s->list[i]->dirty)
			r = pin_all(&p, s->list[i]);
	return r;
}

/* ---- scheduling class ------------------------------------------------------------------------ */

int32_t pin_scheduling(struct rp_instance *inst, rp_txn txn, rp_ctr ctr, const struct type *t)
{
	const struct schedclasses *classes = &inst->plan->scheds;
	int32_t class = schedclass_annotated(&inst->h, classes, ctr, t->sched);
	return class == SCHEDCLASS_NONE
		       ? 0
		       : schedclass_stage(&inst->h, txn, ctr, &classes->list[class]);
}

/* ---- saved records of containers ------------------------------------------------------------- */

/* Layout: u32 version, u32 instance, u32 moves, u32 flags, then two NUL-terminated texts: the
 * name of the type, and the device lines. Version 2 has no flags and no device lines. */
#define RECORD_VERSION 3u
#define RECORD_VERSION_PLAIN 2u
#define RECORD_OWNS 0x1u
#define RECORD_ROAMS 0x2u
#define RECORD_LOOSE 0x4u

static int32_t save_record(struct rp_instance *inst, rp_txn txn, rp_ctr ctr,
			   const struct record *from)
{
	uint8_t data[4 * sizeof(uint32_t) + BALLOON_TYPE_NAME_MAX + 1 + DEVICES_TEXT_MAX];
	struct bytes rec = BYTES_IN(data);
	bytes_put_u32(&rec, RECORD_VERSION);
	bytes_put_u32(&rec, from->instance);
	bytes_put_u32(&rec, from->moves);
	bytes_put_u32(&rec, (from->owns ? RECORD_OWNS : 0) | (from->roams ? RECORD_ROAMS : 0) |
				    (from->loose ? RECORD_LOOSE : 0));
	bytes_put_text(&rec, from->type);
	bytes_put_text(&rec, from->devices);
	return ctr_set_record(&inst->h, txn, ctr, data, rec.size);
}

int32_t pin_record(struct rp_instance *inst, rp_txn txn, const struct member *m)
{
	char devices[DEVICES_TEXT_MAX];
	devices[0] = '\0';
	if (inst->plan->uses_pods)
		devices_text(inst, m->ctr, devices, sizeof devices);
	return save_record(inst, txn, m->ctr,
			   &(struct record){.instance = m->balloon->instance,
					    .moves = m->moves,
					    .owns = devices_owns(m),
					    .loose = !inst->plan->pin_cpu,
					    .type = m->balloon->type->name,
					    .devices = devices});
}

int32_t pin_record_roaming(struct rp_instance *inst, rp_txn txn, rp_ctr ctr)
{
	return save_record(inst, txn, ctr,
			   &(struct record){.roams = true, .type = "", .devices = ""});
}

bool pin_read_record(struct rp_instance *inst, rp_ctr ctr, struct record *ret)
{
	struct bytes_left left = ctr_record_bytes(&inst->h, ctr);
	uint32_t version = bytes_take_u32(&left);
	ret->instance = bytes_take_u32(&left);
	ret->moves = bytes_take_u32(&left);
	uint32_t flags = version == RECORD_VERSION ? bytes_take_u32(&left) : 0;
	ret->owns = flags & RECORD_OWNS;
	ret->roams = flags & RECORD_ROAMS;
	ret->loose = flags & RECORD_LOOSE;
	ret->type = bytes_take_text(&left);
	ret->devices = bytes_n_left(&left) ? bytes_take_text(&left) : "";
	return !left.failed && (version == RECORD_VERSION || version == RECORD_VERSION_PLAIN);
}
