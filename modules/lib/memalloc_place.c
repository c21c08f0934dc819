/* SPDX-License-Identifier: Apache-2.0 */
/* Placement of memory requests, and the choice of requests that are moved for others. */
#include <stdio.h>

#include "modules/lib/private/memalloc_impl.h"

static uint32_t count_nodes(memalloc_mask nodes)
{
	return (uint32_t)__builtin_popcountll(nodes);
}

/* ---- initial zone ---------------------------------------------------------------------------- */

/* Returns the nearest nodes of one type around a zone. Nodes are visited in order; the nearest ones
 * so far are kept when a later node of the zone has neighbours that are nearer still. */
static memalloc_mask expand_type(const struct memalloc *m, memalloc_mask zone,
				 memalloc_mask of_type)
{
	memalloc_mask found = 0, wanted = of_type & ~zone;
	uint32_t nearest = UINT32_MAX;
	for (memalloc_mask left = wanted ? zone : 0; left; left &= left - 1) {
		const struct node *n = &m->nodes[__builtin_ctzll(left)];
		for (uint32_t i = 0; i < n->n_others && n->others[i].distance <= nearest; i++) {
			memalloc_mask near = n->others[i].nodes & wanted;
			if (!near)
				continue;
			nearest = n->others[i].distance;
			found |= near;
			break;
		}
	}
	return found;
}

memalloc_mask memalloc_expand(const struct memalloc *m, memalloc_mask zone, uint32_t types,
			      uint32_t *ret_types)
{
	memalloc_mask found = 0;
	uint32_t found_types = 0;
	for (uint32_t t = 0; t < N_TYPES; t++) {
		memalloc_mask nodes = types >> t & 1 ? expand_type(m, zone, m->of_type[t]) : 0;
		if (nodes)
			found_types |= 1u << t;
		found |= nodes;
	}
	if (ret_types)
		*ret_types = found_types;
	return found;
}

/* Adds a node with memory that is not only movable, if the zone has none: the kernel needs some for
 * itself. */
static int add_normal(struct memalloc *m, struct memalloc_request *req, memalloc_mask *zone)
{
	uint32_t normal = memalloc_types(m, m->normal), types = req->types & normal;
	if (*zone & m->normal)
		return 0;
	if (!types && req->strict)
		return memalloc_fail(
			m, -RP_ENOSPC,
			"no memory of the requested kinds is usable by the kernel itself");
	if (!types)
		types = normal & -normal;
	for (memalloc_mask z = *zone, more; (more = memalloc_expand(m, z, types, NULL));) {
		z |= more;
		if (!(z & m->normal))
			continue;
		*zone = z;
		req->types |= types;
		return 0;
	}
	return memalloc_fail(m, -RP_ENOSPC,
			     "the machine has no memory that is usable by the kernel itself");
}

int memalloc_initial_zone(struct memalloc *m, struct memalloc_request *req, memalloc_mask *ret)
{
	memalloc_mask zone = req->nodes;
	uint32_t missing;
	req->types &= m->types;
	if (!req->types)
		req->types = memalloc_types(m, req->nodes);
	missing = req->types & ~memalloc_types(m, zone);
	zone |= memalloc_expand(m, zone, missing, NULL);
	memalloc_mask preferred = zone & memalloc_of_types(m, req->types);
	if (preferred || req->strict)
		zone = preferred;
	if (req->strict && req->types & ~memalloc_types(m, zone))
		return memalloc_fail(
			m, -RP_ENOSPC,
			"the requested nodes and their neighbours lack a requested kind of memory");
	int r = add_normal(m, req, &zone);
	if (!r)
		*ret = zone;
	return r;
}

/* ---- freeing capacity ------------------------------------------------------------------------ */

bool memalloc_fits(const struct memalloc *m, memalloc_mask nodes, int64_t size)
{
	bool known = false;
	for (uint32_t i = 0; i < m->n_zones; i++) {
		const struct zone *z = m->zones[i];
		if (!z->live || nodes & ~z->nodes)
			continue;
		if (z->usage + size > z->capacity)
			return false;
		known |= z->nodes == nodes;
	}
	return known || memalloc_used_by(m, nodes) + size <= memalloc_capacity(m, nodes);
}

static bool is_before(const struct zone *a, const struct zone *b)
{
	uint32_t size_a = count_nodes(a->nodes), size_b = count_nodes(b->nodes);
	if (a->n_users != b->n_users)
		return a->n_users > b->n_users;
	return size_a != size_b ? size_a > size_b : a->nodes > b->nodes;
}

/* Returns true if another zone with as many users must be handled first, because it lies within
 * z. */
static bool has_subset(const struct excess *over, uint32_t n, const struct zone *z)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct zone *o = over[i].zone;
		if (!over[i].placed && o != z && o->n_users == z->n_users &&
		    !(o->nodes & ~z->nodes))
			return true;
	}
	return false;
}

/*
 * Finds overfull zones. Those with most users come first; among equals a zone follows those within
 * it; then larger ones come first, then those of higher nodes.
 */
static uint32_t find_excess(struct memalloc *m, memalloc_mask nodes)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < m->n_zones; i++) {
		struct zone *z = m->zones[i];
		if (z->live && z->nodes & nodes && z->usage > z->capacity)
			m->over[n++] = (struct excess){z, z->usage - z->capacity, false};
	}
	for (uint32_t k = 0; k < n; k++) {
		struct excess *first = NULL;
		for (uint32_t i = 0; i < n; i++) {
			struct excess *e = &m->over[i];
			if (!e->placed && (!first || is_before(e->zone, first->zone)) &&
			    !has_subset(m->over, n, e->zone))
				first = e;
		}
		first->placed = true;
		m->over_sorted[k] = *first;
	}
	return n;
}

/* Moves users of an overfull zone to a larger one. Returns the bytes moved or -RP_ENOMEM. */
static int64_t memalloc_place_shrink(struct memalloc *m, const struct excess *e, uint32_t priority,
				     uint32_t extra)
{
	uint32_t types;
	memalloc_mask more = memalloc_expand(m, e->zone->nodes, e->zone->types | extra, &types);
	if (!more)
		return 0;
	struct zone *to = memalloc_get_zone(m, e->zone->nodes | more);
	if (!to)
		return -RP_ENOMEM;
	return memalloc_move_users(m, e->zone, to, e->zone->types | types, priority, e->bytes);
}

/* Shrinks each overfull zone once and checks again. Returns the number of zones that are still
 * overfull, or -RP_ENOMEM. */
static int64_t shrink_all(struct memalloc *m, memalloc_mask nodes, uint32_t n, uint32_t priority,
			  uint32_t extra, bool *moved)
{
	for (uint32_t i = 0; i < n; i++) {
		struct excess e = m->over_sorted[i]; /* a copy: new zones may move the array */
		int64_t bytes = memalloc_place_shrink(m, &e, priority, extra);
		if (bytes < 0)
			return bytes;
		*moved |= bytes > 0;
	}
	return find_excess(m, nodes);
}

static int fail_full(struct memalloc *m, uint32_t n)
{
	struct rp_idset ids;
	char list[64];
	int64_t bytes = m->over_sorted[0].bytes;
	memalloc_ids(m, m->over_sorted[0].zone->nodes, &ids);
	(void)rp_ids_format(rp_ids_of(&ids), list, sizeof list);
	return memalloc_fail(m, -RP_ENOSPC, "not enough memory: %lld bytes too few on nodes %s%s",
			     (long long)bytes, list, n > 1 ? " and more" : "");
}

int memalloc_resolve(struct memalloc *m, memalloc_mask nodes)
{
	static const uint32_t priorities[] = {MEMALLOC_PRIO_BURSTABLE, MEMALLOC_PRIO_GUARANTEED,
					      MEMALLOC_PRIO_PRESERVED};
	int64_t n = find_excess(m, nodes);
	for (bool moved = true; n > 0 && moved;) {
		moved = false;
		for (uint32_t p = 0; n > 0 && p < sizeof priorities / sizeof *priorities; p++) {
			n = shrink_all(m, nodes, (uint32_t)n, priorities[p], 0, &moved);
			for (uint32_t t = 0, extra = 0; n > 0 && t < N_TYPES; t++) {
				extra |= m->types & 1u << t;
				if (m->types & 1u << t)
					n = shrink_all(m, nodes, (uint32_t)n, priorities[p], extra,
						       &moved);
			}
		}
	}
	if (n < 0)
		return memalloc_fail(m, -RP_ENOMEM, "out of memory");
	return n ? fail_full(m, (uint32_t)n) : 0;
}
