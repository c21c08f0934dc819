/* SPDX-License-Identifier: Apache-2.0 */
/* The public functions of the memory allocator: each one is an operation that is undone if it
 * fails. */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "modules/lib/private/memalloc_impl.h"

int memalloc_fail(struct memalloc *m, int code, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	(void)vsnprintf(m->why, sizeof m->why, fmt, ap);
	va_end(ap);
	return code;
}

const char *memalloc_why(const struct memalloc *m)
{
	return m->why;
}

uint32_t memalloc_moves(const struct memalloc *m, const struct memalloc_move **ret)
{
	*ret = m->moves;
	return m->n_moves;
}

/* Returns the nodes of a request's zone that have memory; there is at least one. */
static memalloc_mask memalloc_visible(const struct memalloc *m, const struct request *req)
{
	return req->zone->nodes & m->with_memory;
}

/* ---- operations ------------------------------------------------------------------------------ */

/* Begins an operation. Returns the journal position to which an error undoes. */
static uint32_t memalloc_start(struct memalloc *m)
{
	m->n_moves = 0;
	m->why[0] = '\0';
	m->operation++;
	return m->n_journal;
}

static void memalloc_stop(struct memalloc *m)
{
	m->version++;
	if (m->in_txn)
		memalloc_tidy(m);
	else
		memalloc_settle(m);
}

static int compare_age(const void *x, const void *y)
{
	uint64_t a = (*(struct request *const *)x)->age, b = (*(struct request *const *)y)->age;
	return (a > b) - (a < b);
}

static int grow_moves(struct memalloc *m, uint32_t n)
{
	struct memalloc_move *moves = reallocarray(m->moves, n, sizeof *moves);
	if (!moves)
		return -RP_ENOMEM;
	m->moves = moves;
	struct request **moved = reallocarray(m->moved, n, sizeof(struct request *));
	if (!moved)
		return -RP_ENOMEM;
	m->moved = moved;
	m->cap_moves = n;
	return 0;
}

/* Lists the requests that were moved since a journal position, oldest first, except one. */
static int list_moves(struct memalloc *m, uint32_t n_journal, const struct request *but)
{
	uint32_t most = m->n_journal - n_journal, n = 0;
	if (most > m->cap_moves && grow_moves(m, most < 16 ? 16 : most))
		return memalloc_fail(m, -RP_ENOMEM, "out of memory");
	for (uint32_t i = n_journal; i < m->n_journal; i++) {
		struct request *req = m->journal[i].req;
		if (req == but || req->seen == m->operation)
			continue;
		req->seen = m->operation;
		m->moved[n++] = req;
	}
	if (n > 1)
		qsort(m->moved, n, sizeof(struct request *), compare_age);
	for (uint32_t i = 0; i < n; i++)
		m->moves[i] = (struct memalloc_move){m->moved[i]->is.id,
						     memalloc_visible(m, m->moved[i])};
	m->n_moves = n;
	return 0;
}

/* Ends an operation on a request with the result r: lists the moves and stores the zone, or undoes
 * the operation. Returns 0 or the error. */
static int memalloc_end(struct memalloc *m, uint32_t n_journal, const struct request *req, int r,
			memalloc_mask *ret_zone)
{
	if (!r)
		r = list_moves(m, n_journal, req);
	if (r) {
		memalloc_undo(m, n_journal);
		m->n_moves = 0;
		return r;
	}
	*ret_zone = memalloc_visible(m, req);
	memalloc_stop(m);
	return 0;
}

static int memalloc_check(struct memalloc *m, const struct memalloc_request *req)
{
	if (req->size < 0)
		return memalloc_fail(m, -RP_EINVAL, "a request of %lld bytes",
				     (long long)req->size);
	if (!req->nodes)
		return memalloc_fail(m, -RP_EINVAL, "a request for memory without a node");
	if (req->nodes & ~m->all)
		return memalloc_fail(m, -RP_EINVAL, "a request for memory of unknown nodes");
	if (req->strict && req->types & ~m->types)
		return memalloc_fail(m, -RP_EINVAL, "the node has no memory of a requested kind");
	if (req->size > m->total)
		return memalloc_fail(m, -RP_ENOSPC,
				     "a request for %lld bytes, but the node has %lld",
				     (long long)req->size, (long long)m->total);
	return 0;
}

/* Assigns a request without a zone to one, moving other requests if necessary. */
static int memalloc_do_place(struct memalloc *m, struct request *req)
{
	memalloc_mask nodes;
	int r = memalloc_initial_zone(m, &req->is, &nodes);
	if (r)
		return r;
	bool fits = memalloc_fits(m, nodes, req->is.size);
	struct zone *z = memalloc_get_zone(m, nodes);
	if (!z || memalloc_reserve_users(z, 1))
		return memalloc_fail(m, -RP_ENOMEM, "out of memory");
	memalloc_assign(m, z, req);
	return fits ? 0 : memalloc_resolve(m, nodes);
}

/* Adds a request and places it. The caller undoes the addition after an error. */
static int memalloc_add(struct memalloc *m, const struct memalloc_request *is, struct request **ret)
{
	struct request *req = memalloc_reserve_journal(m, 1) ? NULL : calloc(1, sizeof *req);
	if (!req)
		return memalloc_fail(m, -RP_ENOMEM, "out of memory");
	req->is = *is;
	req->age = m->next_age;
	if (memalloc_insert(m, req)) {
		free(req);
		return memalloc_fail(m, -RP_ENOMEM, "out of memory");
	}
	(void)memalloc_note(m, req);
	*ret = req;
	return memalloc_do_place(m, req);
}

static int check_new(struct memalloc *m, const struct memalloc_request *req)
{
	if (memalloc_find(m, req->id))
		return memalloc_fail(m, -RP_EBUSY, "a request with this id exists");
	return memalloc_check(m, req);
}

int memalloc_offer(struct memalloc *m, const struct memalloc_request *is,
		   struct memalloc_offer *ret)
{
	struct memalloc_request wanted = *is;
	struct request *req;
	memalloc_mask nodes;
	uint32_t mark = memalloc_start(m);
	int r = check_new(m, is);
	if (!r)
		r = memalloc_initial_zone(m, &wanted, &nodes);
	if (r)
		return r;
	if (!memalloc_fits(m, nodes, is->size)) {
		r = memalloc_add(m, is, &req);
		if (!r)
			nodes = req->zone->nodes;
		memalloc_undo(m, mark);
		m->n_moves = 0;
	}
	if (!r)
		*ret = (struct memalloc_offer){*is, nodes & m->with_memory, m->version};
	return r;
}

int memalloc_allocate(struct memalloc *m, const struct memalloc_request *is,
		      memalloc_mask *ret_zone)
{
	struct request *req = NULL;
	uint32_t mark = memalloc_start(m);
	int r = check_new(m, is);
	if (!r)
		r = memalloc_add(m, is, &req);
	r = memalloc_end(m, mark, req, r, ret_zone);
	m->next_age += !r;
	return r;
}

int memalloc_commit(struct memalloc *m, const struct memalloc_offer *offer, memalloc_mask *ret_zone)
{
	if (offer->version != m->version) {
		(void)memalloc_start(m);
		return memalloc_fail(m, -RP_ESTALE, "the offer has expired");
	}
	/* The state is unchanged since the offer, so the result is the same. */
	return memalloc_allocate(m, &offer->request, ret_zone);
}

/* Assigns a request without a zone to its new place, or to that and its old zone together if the
 * new place has not enough capacity. */
static int memalloc_do_follow(struct memalloc *m, struct request *req, memalloc_mask was)
{
	memalloc_mask nodes;
	int r = memalloc_initial_zone(m, &req->is, &nodes);
	if (r)
		return r;
	if (!memalloc_fits(m, nodes, req->is.size))
		nodes |= was;
	struct zone *z = memalloc_get_zone(m, nodes);
	if (!z || memalloc_reserve_users(z, 1))
		return memalloc_fail(m, -RP_ENOMEM, "out of memory");
	memalloc_assign(m, z, req);
	/* The old zone held the request before, so it cannot be overfull now. */
	return nodes == was ? 0 : memalloc_resolve(m, nodes);
}

/* Places a request again. follows: the request has its old size, and its pages may stay. */
static int place_again(struct memalloc *m, const struct memalloc_request *is, bool follows,
		       memalloc_mask *ret_zone)
{
	uint32_t mark = memalloc_start(m);
	struct request *req = memalloc_find(m, is->id);
	if (!req)
		return memalloc_fail(m, -RP_ENOENT, "no request with this id");
	int r = memalloc_check(m, is);
	if (!r && follows && is->size != req->is.size)
		r = memalloc_fail(m, -RP_EINVAL, "the size of the request has changed");
	if (!r && memalloc_reserve_journal(m, 1))
		r = memalloc_fail(m, -RP_ENOMEM, "out of memory");
	if (r)
		return r;
	memalloc_mask was = req->zone->nodes;
	(void)memalloc_note(m, req);
	memalloc_unassign(m, req);
	req->is = *is;
	r = follows ? memalloc_do_follow(m, req, was) : memalloc_do_place(m, req);
	return memalloc_end(m, mark, req, r, ret_zone);
}

int memalloc_replace(struct memalloc *m, const struct memalloc_request *is, memalloc_mask *ret_zone)
{
	return place_again(m, is, false, ret_zone);
}

int memalloc_follow(struct memalloc *m, const struct memalloc_request *is, memalloc_mask *ret_zone)
{
	return place_again(m, is, true, ret_zone);
}

/* Moves a request to a larger zone. */
static int memalloc_enlarge(struct memalloc *m, struct request *req, memalloc_mask nodes,
			    uint32_t types)
{
	struct zone *z = memalloc_reserve_journal(m, 1) ? NULL : memalloc_get_zone(m, nodes);
	if (!z || memalloc_reserve_users(z, 1))
		return memalloc_fail(m, -RP_ENOMEM, "out of memory");
	(void)memalloc_note(m, req);
	memalloc_unassign(m, req);
	req->is.types |= types;
	memalloc_assign(m, z, req);
	return memalloc_resolve(m, nodes);
}

int memalloc_extend(struct memalloc *m, uint64_t id, memalloc_mask nodes, uint32_t types,
		    memalloc_mask *ret_zone)
{
	uint32_t mark = memalloc_start(m), new_types;
	struct request *req = memalloc_find(m, id);
	if (!req)
		return memalloc_fail(m, -RP_ENOENT, "no request with this id");
	if (nodes & ~m->all)
		return memalloc_fail(m, -RP_EINVAL, "a request for memory of unknown nodes");
	memalloc_mask zone = req->zone->nodes;
	if ((nodes == req->is.nodes && types == req->is.types) ||
	    (!(nodes & ~zone) && !(types & ~memalloc_types(m, zone)))) {
		*ret_zone = memalloc_visible(m, req);
		return 0;
	}
	if (types)
		nodes &= memalloc_of_types(m, types);
	else
		types = memalloc_types(m, nodes);
	zone |= nodes;
	memalloc_mask more = memalloc_expand(m, zone, types, &new_types);
	if (!more)
		return memalloc_fail(m, -RP_ENOSPC,
				     "no further nodes with the requested kinds of memory");
	int r = memalloc_enlarge(m, req, zone | more, new_types);
	return memalloc_end(m, mark, req, r, ret_zone);
}

int memalloc_release(struct memalloc *m, uint64_t id)
{
	(void)memalloc_start(m);
	struct request *req = memalloc_find(m, id);
	if (!req)
		return memalloc_fail(m, -RP_ENOENT, "no request with this id");
	if (memalloc_reserve_journal(m, 1))
		return memalloc_fail(m, -RP_ENOMEM, "out of memory");
	memalloc_note(m, req)->released = true;
	memalloc_unassign(m, req);
	memalloc_erase(m, req);
	memalloc_stop(m);
	return 0;
}

void memalloc_reset(struct memalloc *m)
{
	(void)memalloc_start(m);
	assert(!m->in_txn);
	struct request *req;
	TABLE_EACH (req, &m->requests) {
		memalloc_unassign(m, req);
		memalloc_erase(m, req);
		free(req);
	}
	memalloc_stop(m);
}

/* ---- undo ------------------------------------------------------------------------------------ */

int memalloc_begin(struct memalloc *m)
{
	if (m->in_txn)
		return -RP_EBUSY;
	m->in_txn = true;
	return 0;
}

void memalloc_keep(struct memalloc *m)
{
	m->in_txn = false;
	memalloc_settle(m);
}

void memalloc_drop(struct memalloc *m)
{
	if (m->n_journal)
		m->version++;
	m->in_txn = false;
	memalloc_undo(m, 0);
}

/* ---- queries --------------------------------------------------------------------------------- */

uint32_t memalloc_count(const struct memalloc *m)
{
	return m->requests.n;
}

int memalloc_zone(const struct memalloc *m, uint64_t id, memalloc_mask *ret_zone)
{
	const struct request *req = memalloc_find(m, id);
	if (!req)
		return -RP_ENOENT;
	*ret_zone = memalloc_visible(m, req);
	return 0;
}

int64_t memalloc_usage(const struct memalloc *m, memalloc_mask nodes)
{
	return memalloc_used_by(m, nodes | ~m->with_memory);
}

int64_t memalloc_unused(const struct memalloc *m, memalloc_mask nodes)
{
	return memalloc_capacity(m, nodes) - memalloc_usage(m, nodes);
}

int64_t memalloc_available(const struct memalloc *m, memalloc_mask nodes)
{
	int64_t bytes = memalloc_unused(m, nodes);
	for (uint32_t i = 0; i < m->n_zones; i++) {
		const struct zone *z = m->zones[i];
		if (z->live && !(nodes & m->with_memory & ~z->nodes) &&
		    z->capacity - z->usage < bytes)
			bytes = z->capacity - z->usage;
	}
	return bytes > 0 ? bytes : 0;
}
