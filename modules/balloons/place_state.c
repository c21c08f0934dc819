/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Balloons, their members, and the undo log of the running operation. The log holds copies of
 * changed CPU sets and one entry for each other change. Removed balloons and members are freed
 * when the next operation begins.
 */
#include <string.h>

#include <nri-rp/lib/text.h>
#include "modules/balloons/place.h"
#include "modules/lib/private/cpus.h"
#include "modules/lib/private/room.h"

/* ---- undo log -------------------------------------------------------------------------------- */

enum undo_what {
	UNDO_SETS, /* CPUs, shared CPUs and nodes of a balloon, or the free CPUs (NULL) changed */
	UNDO_ADD, /* a balloon was added */
	UNDO_REMOVE, /* a balloon was removed from index `at` */
	UNDO_JOIN,
	UNDO_LEAVE,
	UNDO_MEMBER, /* request, memory limit, `fresh` or moves of a member changed */
};

struct undo {
	enum undo_what what;
	uint32_t at, moves;
	struct balloon *balloon;
	struct member *member;
	int64_t request, mem_limit;
	bool fresh;
	struct cpus *cpus, *shared; /* old sets */
	memalloc_mask nodes;
};

static struct undo *place_state_note(struct state *s, enum undo_what what, struct balloon *b,
				     struct member *m)
{
	if (!room_for(&s->undo, &s->cap_undo, s->n_undo + 1, sizeof *s->undo)) {
		s->failed_undo = true;
		return NULL;
	}
	struct undo *u = &s->undo[s->n_undo++];
	*u = (struct undo){.what = what, .balloon = b, .member = m};
	return u;
}

static void free_sets(const struct undo *u)
{
	free(u->cpus);
	free(u->shared);
}

static void save_sets(struct state *s, struct balloon *b, const struct rp_idset *cpus,
		      struct rp_ids shared, memalloc_mask nodes)
{
	int32_t failed = 0;
	struct undo *u = place_state_note(s, UNDO_SETS, b, NULL);
	if (!u)
		return;
	u->cpus = cpus_new(rp_ids_of(cpus), &failed);
	u->shared = cpus_new(shared, &failed);
	u->nodes = nodes;
	s->failed_undo = s->failed_undo || failed;
}

void state_save(struct state *s, struct balloon *b)
{
	b->dirty = true;
	s->image_stale = true;
	save_sets(s, b, &b->cpus, rp_ids_of(&b->shared), b->nodes);
}

void state_save_free(struct state *s)
{
	s->sets_changed = true;
	save_sets(s, NULL, &s->free, rp_ids_none(), 0);
}

/* ---- balloons -------------------------------------------------------------------------------- */

static void member_free(struct member *m)
{
	free(m->space);
	free(m->group);
	free(m);
}

struct balloon *balloon_free(struct balloon *b)
{
	if (!b)
		return NULL;
	for (uint32_t i = 0; i < b->n_parts; i++)
		balloon_free(b->parts[i]);
	free(b->parts);
	near_free(b->near);
	free(b->members);
	free(b);
	return NULL;
}

static void insert_balloon(struct state *s, struct balloon *b, uint32_t at)
{
	memmove(&s->list[at + 1], &s->list[at], (s->n - at) * sizeof s->list[0]);
	s->list[at] = b;
	s->n++;
	s->image_stale = s->sets_changed = true;
}

static uint32_t take_balloon(struct state *s, const struct balloon *b)
{
	uint32_t at = 0;
	while (s->list[at] != b)
		at++;
	s->n--;
	memmove(&s->list[at], &s->list[at + 1], (s->n - at) * sizeof s->list[0]);
	s->image_stale = s->sets_changed = true;
	return at;
}

static bool is_group_taken(const struct state *s, uint32_t group)
{
	for (uint32_t i = 0; i < s->n; i++)
		if (s->list[i]->group == group)
			return true;
	return false;
}

/* Returns an unused group for the balloon. The group is the same after a restart, unless a type
 * has very many balloons. */
static uint32_t new_group(const struct state *s, const struct balloon *b)
{
	uint32_t each = RP_GROUP_MAX / s->plan->n_types;
	uint32_t group = b->type->index * each + b->instance + 1;
	if (b->instance < each && !is_group_taken(s, group))
		return group;
	for (group = RP_GROUP_MAX; is_group_taken(s, group); group--)
		;
	return group;
}

int32_t state_add_balloon(struct state *s, struct balloon *b)
{
	if (s->n >= RP_GROUP_MAX ||
	    !room_for(&s->list, &s->cap, s->n + 1, sizeof(struct balloon *)))
		return -RP_ENOMEM;
	b->group = new_group(s, b);
	if (!place_state_note(s, UNDO_ADD, b, NULL))
		return -RP_ENOMEM;
	insert_balloon(s, b, s->n);
	return 0;
}

int32_t state_bring_back(struct state *s, struct balloon *b)
{
	if (!balloon_is_welcome(s, b)) {
		balloon_free(b);
		return 0;
	}
	return state_restore(s, b);
}

int32_t state_restore(struct state *s, struct balloon *b)
{
	if (state_add_balloon(s, b)) {
		balloon_free(b);
		return -RP_ENOMEM;
	}
	state_save_free(s);
	rp_idset_andnot(&s->free, rp_ids_of(&s->free), rp_ids_of(&b->cpus));
	b->dirty = true;
	return 0;
}

void state_remove_balloon(struct state *s, struct balloon *b)
{
	uint32_t at = take_balloon(s, b);
	struct undo *u = place_state_note(s, UNDO_REMOVE, b, NULL);
	if (u)
		u->at = at;
	else /* failed_undo is set, so the state will be rebuilt and no undo uses the balloon. */
		balloon_free(b);
}

struct balloon *state_find(const struct state *s, const struct type *t, uint32_t instance)
{
	for (uint32_t i = 0; i < s->n; i++)
		if (s->list[i]->type == t && s->list[i]->instance == instance)
			return s->list[i];
	return NULL;
}

struct balloon *state_with(const struct state *s, const struct type *t, struct rp_ids cpus)
{
	for (uint32_t i = 0; i < s->n; i++)
		if (s->list[i]->type == t && s->list[i]->n_cpus &&
		    rp_ids_equal(rp_ids_of(&s->list[i]->cpus), cpus))
			return s->list[i];
	return NULL;
}

uint32_t state_count(const struct state *s, const struct type *t)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < s->n; i++)
		n += s->list[i]->type == t;
	return n;
}

/* ---- members --------------------------------------------------------------------------------- */

struct member *state_member(const struct state *s, rp_ctr ctr)
{
	return table_get(&s->by_ctr, ctr);
}

uint32_t state_hash(const char *text)
{
	return text ? (uint32_t)(text_hash(text) >> 32) & (STATE_HASHES - 1) : 0;
}

/* Changes the sum of the requests. Only the size of a composite balloon depends on earlier
 * requests, so other balloons need no new image. */
static void add_request(struct state *s, struct balloon *b, int64_t request)
{
	b->request += request;
	s->image_stale |= request && b->n_parts;
}

/* Links the member. Cannot fail: room_for_member() has reserved the space. */
static void link_member(struct state *s, struct balloon *b, struct member *m)
{
	struct member *head = table_get(&s->by_pod, m->pod);
	m->balloon = b;
	m->index = b->n_members;
	b->members[b->n_members++] = m;
	b->n_of_group[state_hash(m->group)]++;
	b->n_of_space[state_hash(m->space)]++;
	add_request(s, b, m->request);
	m->pod_prev = NULL;
	m->pod_next = head;
	if (head)
		head->pod_prev = m;
	(void)table_put(&s->by_pod, m->pod, m);
	(void)table_put(&s->by_ctr, m->ctr, m);
	devices_moved(m, true);
}

static void unlink_member(struct state *s, struct member *m)
{
	struct balloon *b = m->balloon;
	b->members[m->index] = b->members[--b->n_members];
	b->members[m->index]->index = m->index;
	b->n_of_group[state_hash(m->group)]--;
	b->n_of_space[state_hash(m->space)]--;
	add_request(s, b, -m->request);
	if (m->pod_next)
		m->pod_next->pod_prev = m->pod_prev;
	if (m->pod_prev)
		m->pod_prev->pod_next = m->pod_next;
	else if (m->pod_next)
		(void)table_put(&s->by_pod, m->pod, m->pod_next);
	else
		table_del(&s->by_pod, m->pod);
	table_del(&s->by_ctr, m->ctr);
	devices_moved(m, false);
}

static int32_t room_for_member(struct state *s, struct balloon *b)
{
	/* Reserves two entries, because link_member() must also succeed when undo restores a
	 * member. */
	return room_for(&b->members, &b->cap_members, b->n_members + 1, sizeof(struct member *)) &&
			       !table_reserve(&s->by_ctr, 2) && !table_reserve(&s->by_pod, 2)
		       ? 0
		       : -RP_ENOMEM;
}

int32_t state_join(struct state *s, struct balloon *b, struct member *m, const char *space,
		   const char *group)
{
	m->space = space ? strdup(space) : NULL;
	m->group = group ? strdup(group) : NULL;
	bool tagged = (m->space || !space) && (m->group || !group);
	if (!tagged || room_for_member(s, b) || !place_state_note(s, UNDO_JOIN, NULL, m)) {
		member_free(m);
		return -RP_ENOMEM;
	}
	link_member(s, b, m);
	return 0;
}

void state_leave(struct state *s, struct member *m)
{
	/* An error means that the container's memory is not pinned, which is fine. */
	if (s->memory)
		(void)memalloc_release(s->memory, m->ctr);
	state_detach(s, m);
}

void state_detach(struct state *s, struct member *m)
{
	unlink_member(s, m);
	if (!place_state_note(s, UNDO_LEAVE, NULL, m))
		member_free(m);
}

static int32_t save_member(struct state *s, struct member *m)
{
	struct undo *u = place_state_note(s, UNDO_MEMBER, NULL, m);
	if (!u)
		return -RP_ENOMEM;
	u->request = m->request;
	u->mem_limit = m->mem_limit;
	u->fresh = m->fresh;
	u->moves = m->moves;
	return 0;
}

int32_t state_count_move(struct state *s, struct member *m)
{
	int32_t r = save_member(s, m);
	m->moves += !r;
	return r;
}

int32_t state_set_request(struct state *s, struct member *m, int64_t request, int64_t mem_limit)
{
	if (save_member(s, m))
		return -RP_ENOMEM;
	m->fresh = true;
	m->mem_limit = mem_limit;
	add_request(s, m->balloon, request - m->request);
	m->request = request;
	return 0;
}

/* ---- operations ------------------------------------------------------------------------------ */

static void forget_undo(struct state *s)
{
	for (uint32_t i = 0; i < s->n_undo; i++) {
		const struct undo *u = &s->undo[i];
		if (u->what == UNDO_REMOVE)
			balloon_free(u->balloon);
		if (u->what == UNDO_LEAVE)
			member_free(u->member);
		free_sets(u);
	}
	s->n_undo = 0;
}

void state_begin(struct state *s)
{
	forget_undo(s);
	rp_idset_copy(&s->visited_before, rp_ids_of(&s->visited));
	s->sets_changed = false;
	if (s->memory) {
		memalloc_keep(s->memory);
		if (memalloc_begin(s->memory))
			s->failed_undo = true;
	}
}

uint32_t state_mark(const struct state *s)
{
	return s->n_undo;
}

static void undo_one(struct state *s, const struct undo *u)
{
	switch (u->what) {
	case UNDO_SETS:
		rp_idset_copy(u->balloon ? &u->balloon->cpus : &s->free, cpus_ids(u->cpus));
		if (!u->balloon)
			break;
		balloon_count_cpus(u->balloon);
		rp_idset_copy(&u->balloon->shared, cpus_ids(u->shared));
		u->balloon->nodes = u->nodes;
		break;
	case UNDO_ADD:
		/* Entries before this one still refer to the balloon: it is freed after them. */
		(void)take_balloon(s, u->balloon);
		u->balloon->next = s->undone;
		s->undone = u->balloon;
		break;
	case UNDO_REMOVE:
		insert_balloon(s, u->balloon, u->at);
		break;
	case UNDO_JOIN:
		unlink_member(s, u->member);
		member_free(u->member);
		break;
	case UNDO_LEAVE:
		link_member(s, u->member->balloon, u->member);
		break;
	case UNDO_MEMBER:
		u->member->balloon->request += u->request - u->member->request;
		u->member->request = u->request;
		u->member->mem_limit = u->mem_limit;
		u->member->moves = u->moves;
		u->member->fresh = u->fresh;
		break;
	}
}

void state_undo_to(struct state *s, uint32_t mark)
{
	/* Undo entries are missing, and others may refer to freed objects. The state is rebuilt
	 * instead. */
	if (s->failed_undo)
		return;
	while (s->n_undo > mark) {
		undo_one(s, &s->undo[--s->n_undo]);
		free_sets(&s->undo[s->n_undo]);
	}
	while (s->undone) {
		struct balloon *next = s->undone->next;
		balloon_free(s->undone);
		s->undone = next;
	}
	s->image_stale = true;
}

bool state_undo(struct state *s)
{
	if (s->failed_undo)
		return false;
	state_undo_to(s, 0);
	rp_idset_copy(&s->visited, rp_ids_of(&s->visited_before));
	if (s->memory)
		memalloc_drop(s->memory);
	for (uint32_t i = 0; i < s->n; i++)
		s->list[i]->dirty = false;
	return true;
}

static int32_t new_memory(const struct modhost *h, const struct rp_plan *plan, struct state *s)
{
	char why[200] = "out of memory";
	int r = (plan->parity ? memalloc_new_by_size : memalloc_new)(h->topology, h->ctx,
								     &s->memory, why, sizeof why);
	return r ? modhost_fail(h, r, "the node's memory cannot be described: %s", why) : 0;
}

int32_t state_new(const struct modhost *h, const struct rp_plan *plan, struct state **ret)
{
	struct state *s = calloc(1, sizeof *s);
	if (!s)
		return modhost_no_memory(h);
	s->h = h;
	s->plan = plan;
	s->image_stale = true;
	rp_idset_copy(&s->free, rp_ids_of(&plan->allowed));
	s->load_cpus = calloc(plan->n_loads + 1u, sizeof *s->load_cpus);
	s->refused = calloc(plan->n_types, sizeof *s->refused);
	s->counted = calloc(plan->n_types, sizeof *s->counted);
	bool pins = false;
	for (uint32_t i = 0; i < plan->n_types; i++)
		pins = pins || plan->types[i].pin_memory;
	int32_t r = s->load_cpus && s->refused && s->counted ? 0 : modhost_no_memory(h);
	if (!r && pins)
		r = new_memory(h, plan, s);
	if (r) {
		state_free(s);
		return r;
	}
	state_begin(s);
	*ret = s;
	return 0;
}

struct state *state_free(struct state *s)
{
	if (!s)
		return NULL;
	forget_undo(s);
	for (uint32_t i = 0; i < s->n; i++) {
		for (uint32_t k = 0; k < s->list[i]->n_members; k++)
			member_free(s->list[i]->members[k]);
		balloon_free(s->list[i]);
	}
	free(s->list);
	table_fini(&s->by_ctr);
	table_fini(&s->by_pod);
	free(s->load_cpus);
	free(s->refused);
	free(s->counted);
	free(s->undo);
	memalloc_free(s->memory);
	free(s);
	return NULL;
}
