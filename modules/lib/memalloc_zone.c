/* SPDX-License-Identifier: Apache-2.0 */
/* State of the memory allocator: zones, their users, requests by id, and the journal. */
#include <stdlib.h>
#include <string.h>

#include "modules/lib/private/memalloc_impl.h"
#include "modules/lib/private/room.h"

/* ---- zones ----------------------------------------------------------------------------------- */

static struct zone *memalloc_find_zone(const struct memalloc *m, memalloc_mask nodes)
{
	for (uint32_t i = 0; i < m->n_zones; i++)
		if (m->zones[i]->nodes == nodes)
			return m->zones[i];
	return NULL;
}

static int grow_zones(struct memalloc *m)
{
	uint32_t cap = m->cap_zones, cap_over = cap, cap_sorted = cap;
	uint32_t n = m->n_zones + m->n_spare + 1;
	if (!room_for(&m->over, &cap_over, n, sizeof *m->over) ||
	    !room_for(&m->over_sorted, &cap_sorted, n, sizeof *m->over_sorted) ||
	    !room_for(&m->zones, &cap, n, sizeof(struct zone *)))
		return -RP_ENOMEM;
	m->cap_zones = cap;
	return 0;
}

/* Returns a spare zone, allocating it if necessary. Unused zones stay allocated behind the zones in
 * use. */
static struct zone *spare_zone(struct memalloc *m)
{
	if (!m->n_spare) {
		struct zone *z = grow_zones(m) ? NULL : calloc(1, sizeof *z);
		if (!z)
			return NULL;
		m->zones[m->n_zones] = z;
		m->n_spare++;
	}
	m->n_spare--;
	return m->zones[m->n_zones++];
}

int64_t memalloc_used_by(const struct memalloc *m, memalloc_mask nodes)
{
	int64_t bytes = 0;
	for (uint32_t i = 0; i < m->n_zones; i++)
		if (!(m->zones[i]->nodes & ~nodes))
			bytes += m->zones[i]->own;
	return bytes;
}

struct zone *memalloc_get_zone(struct memalloc *m, memalloc_mask nodes)
{
	struct zone *z = memalloc_find_zone(m, nodes);
	if (z && z->live)
		return z;
	if (!z) {
		z = spare_zone(m);
		if (!z)
			return NULL;
		z->nodes = nodes;
		z->types = memalloc_types(m, nodes);
		z->capacity = memalloc_capacity(m, nodes);
	}
	z->live = true;
	z->usage = memalloc_used_by(m, nodes);
	return z;
}

void memalloc_tidy(struct memalloc *m)
{
	for (uint32_t i = m->n_zones; i-- > 0;) {
		struct zone *z = m->zones[i];
		if (z->n_users)
			continue;
		z->live = false;
		if (m->n_journal)
			continue; /* an undo may restore users without allocating memory */
		m->zones[i] = m->zones[--m->n_zones];
		m->zones[m->n_zones] = z;
		m->n_spare++;
	}
}

/* ---- users ----------------------------------------------------------------------------------- */

static bool moves_before(const struct request *a, const struct request *b)
{
	if (a->is.priority != b->is.priority)
		return a->is.priority < b->is.priority;
	if (a->is.size != b->is.size)
		return a->is.size < b->is.size;
	return a->age > b->age;
}

/* Returns the position of a request among the users of a zone. */
static uint32_t user_place(const struct zone *z, const struct request *req)
{
	uint32_t lo = 0, hi = z->n_users;
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		if (moves_before(z->users[mid], req))
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

int memalloc_reserve_users(struct zone *z, uint32_t n)
{
	return room_for(&z->users, &z->cap_users, z->n_users + n, sizeof(struct request *))
		       ? 0
		       : -RP_ENOMEM;
}

static void insert_user(struct zone *z, struct request *req)
{
	uint32_t i = user_place(z, req);
	memmove(z->users + i + 1, z->users + i, (z->n_users - i) * sizeof(struct request *));
	z->users[i] = req;
	z->n_users++;
	req->zone = z;
}

/* Adds bytes to the usage of all zones that contain `nodes`, except zones that also contain
 * `but`. */
static void add_usage(struct memalloc *m, memalloc_mask nodes, memalloc_mask but, int64_t bytes)
{
	for (uint32_t i = 0; i < m->n_zones; i++) {
		struct zone *z = m->zones[i];
		if (!(nodes & ~z->nodes) && (!but || but & ~z->nodes))
			z->usage += bytes; /* irrelevant for a zone that is not live */
	}
}

void memalloc_assign(struct memalloc *m, struct zone *z, struct request *req)
{
	insert_user(z, req);
	z->own += req->is.size;
	add_usage(m, z->nodes, 0, req->is.size);
}

void memalloc_unassign(struct memalloc *m, struct request *req)
{
	struct zone *z = req->zone;
	uint32_t i = user_place(z, req);
	z->n_users--;
	memmove(z->users + i, z->users + i + 1, (z->n_users - i) * sizeof(struct request *));
	req->zone = NULL;
	z->own -= req->is.size;
	add_usage(m, z->nodes, 0, -req->is.size);
}

int64_t memalloc_move_users(struct memalloc *m, struct zone *from, struct zone *to, uint32_t types,
			    uint32_t priority, int64_t bytes)
{
	uint32_t kept = 0, i = 0;
	int64_t moved = 0;
	if (!from->n_users)
		return 0;
	if (memalloc_reserve_users(to, from->n_users) || memalloc_reserve_journal(m, from->n_users))
		return -RP_ENOMEM;
	for (; i < from->n_users && from->users[i]->is.priority <= priority && moved < bytes; i++) {
		struct request *req = from->users[i];
		if (req->is.strict && req->is.types != types) {
			from->users[kept++] = req;
			continue;
		}
		(void)memalloc_note(m, req);
		insert_user(to, req);
		moved += req->is.size;
	}
	memmove(from->users + kept, from->users + i,
		(from->n_users - i) * sizeof(struct request *));
	from->n_users -= i - kept;
	from->own -= moved;
	to->own += moved;
	add_usage(m, from->nodes, to->nodes, -moved);
	return moved;
}

/* ---- requests by id -------------------------------------------------------------------------- */

struct request *memalloc_find(const struct memalloc *m, uint64_t id)
{
	return table_get(&m->requests, id);
}

int memalloc_insert(struct memalloc *m, struct request *req)
{
	if (table_put(&m->requests, req->is.id, req))
		return -RP_ENOMEM;
	req->listed = true;
	return 0;
}

void memalloc_erase(struct memalloc *m, struct request *req)
{
	table_del(&m->requests, req->is.id);
	req->listed = false;
}

/* ---- journal --------------------------------------------------------------------------------- */

int memalloc_reserve_journal(struct memalloc *m, uint32_t n)
{
	return room_for(&m->journal, &m->cap_journal, m->n_journal + n, sizeof *m->journal)
		       ? 0
		       : -RP_ENOMEM;
}

struct change *memalloc_note(struct memalloc *m, struct request *req)
{
	struct change *c = &m->journal[m->n_journal++];
	*c = (struct change){req, req->is, req->zone ? req->zone->nodes : 0, false};
	return c;
}

void memalloc_undo(struct memalloc *m, uint32_t n_journal)
{
	while (m->n_journal > n_journal) {
		struct change *c = &m->journal[m->n_journal - 1];
		struct request *req = c->req;
		if (req->zone)
			memalloc_unassign(m, req);
		if (!req->listed)
			(void)memalloc_insert(m, req); /* cannot fail: tables never shrink */
		req->is = c->was;
		if (c->zone) {
			memalloc_assign(m, memalloc_get_zone(m, c->zone), req);
		} else {
			memalloc_erase(m, req);
			free(req);
		}
		m->n_journal--;
	}
	memalloc_tidy(m);
}

void memalloc_settle(struct memalloc *m)
{
	for (uint32_t i = 0; i < m->n_journal; i++)
		if (m->journal[i].released)
			free(m->journal[i].req);
	m->n_journal = 0;
	memalloc_tidy(m);
}
