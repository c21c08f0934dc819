/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside the memory allocator.
 *
 * Each zone knows the bytes of its own requests and the usage of its nodes, which is that of all
 * zones within it; both are kept up to date by whoever assigns and moves requests, so that nothing
 * is ever summed up again. A journal has each request as it was before a change; undoing one never
 * needs memory, because the arrays it puts things back into never shrink.
 */
#ifndef NRI_RP_LIB_MEMALLOC_IMPL_H
#define NRI_RP_LIB_MEMALLOC_IMPL_H

#include <stdbool.h>

#include "modules/lib/memalloc.h"

#define N_TYPES 3u
#define WHY_MAX 256u

struct zone;

struct request {
	struct memalloc_request is;
	uint64_t age; /* smaller is older */
	struct zone *zone; /* NULL: not assigned now */
	struct request *next; /* of the same hash */
	bool listed; /* it is in the table; else it was released and that can be undone */
	uint64_t seen; /* the operation that has reported it as moved */
};

struct zone {
	memalloc_mask nodes;
	/* it has users, or had some in this operation; the others only wait for an undo */
	bool live;
	uint32_t types;
	uint32_t n_users, cap_users;
	int64_t capacity, own, usage;
	struct request *
		*users; /* as they are to be moved: lowest priority, smallest, youngest first */
};

/* A request as it was. */
struct change {
	struct request *req;
	struct memalloc_request was;
	memalloc_mask zone; /* 0: it was not there */
	bool released;
};

struct distance {
	uint32_t distance;
	uint32_t pad;
	memalloc_mask nodes;
};

struct node {
	struct memalloc_node is;
	struct distance *others; /* nearest first, without itself */
	uint32_t n_others;
};

/* A zone that holds too much. */
struct excess {
	struct zone *zone;
	int64_t bytes;
	bool placed; /* in the order of handling */
};

struct memalloc {
	struct node nodes[MEMALLOC_NODES_MAX];
	struct distance *distances;
	uint32_t n_nodes;
	uint32_t types; /* that there is memory of */
	memalloc_mask all, with_memory, normal;
	memalloc_mask of_type[N_TYPES]; /* nodes with memory of a kind */
	memalloc_mask of_kind[N_TYPES]; /* the same with those that have none */
	int64_t total;

	struct zone **zones; /* the first n_zones; n_spare spare ones follow */
	uint32_t n_zones, cap_zones, n_spare;
	struct excess *over, *over_sorted; /* room for cap_zones */

	struct request **table;
	uint32_t n_table, n_requests;
	uint64_t next_age;

	struct change *journal;
	uint32_t n_journal, cap_journal;
	bool in_txn;

	struct memalloc_move *moves;
	struct request **moved; /* scratch, as long as moves */
	uint32_t n_moves, cap_moves;
	uint64_t version, operation;
	char why[WHY_MAX];
};

/* Leaves the sentence for memalloc_why() and returns code. */
int memalloc_fail(struct memalloc *m, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* ---- memalloc_zone.c: accounting ---- */

/* The zone of these nodes, made when there is none; NULL: out of memory. */
struct zone *memalloc_get_zone(struct memalloc *m, memalloc_mask nodes);
struct zone *memalloc_find_zone(const struct memalloc *m, memalloc_mask nodes);
/* Bytes of all requests whose zones lie within nodes. */
int64_t memalloc_used_by(const struct memalloc *m, memalloc_mask nodes);
/* Ends an operation: zones that nobody uses are no zones any more. */
void memalloc_tidy(struct memalloc *m);
/* Room for n more users; after it memalloc_assign() cannot fail. */
int memalloc_reserve_users(struct zone *z, uint32_t n);
void memalloc_assign(struct memalloc *m, struct zone *z, struct request *req);
void memalloc_unassign(struct memalloc *m, struct request *req);
/*
 * Moves users of `from` up to a priority to `to`, a zone around it with all kinds of memory in
 * `types`, until `bytes` have been moved. Returns how many bytes were, or -RP_ENOMEM with nothing
 * moved.
 */
int64_t memalloc_move_users(struct memalloc *m, struct zone *from, struct zone *to, uint32_t types,
			    uint32_t priority, int64_t bytes);

struct request *memalloc_find(const struct memalloc *m, uint64_t id);
int memalloc_insert(struct memalloc *m, struct request *req);
void memalloc_erase(struct memalloc *m, struct request *req);

/* Room for n more changes; after it memalloc_note() cannot fail. */
int memalloc_reserve_journal(struct memalloc *m, uint32_t n);
struct change *memalloc_note(struct memalloc *m, struct request *req);
/* Takes back all changes down to a length of the journal. */
void memalloc_undo(struct memalloc *m, uint32_t n_journal);
/* Makes them final. */
void memalloc_settle(struct memalloc *m);

/* ---- memalloc_place.c: where to ---- */

/* Nodes next to a zone, for each of the types the nearest; their kinds in ret_types (may be
 * NULL). */
memalloc_mask memalloc_expand(const struct memalloc *m, memalloc_mask zone, uint32_t types,
			      uint32_t *ret_types);
/* Where a request goes if there is room; completes its types. */
int memalloc_initial_zone(struct memalloc *m, struct memalloc_request *req, memalloc_mask *ret);
/* Do `size` more bytes fit without moving anybody? */
bool memalloc_fits(const struct memalloc *m, memalloc_mask nodes, int64_t size);
/* Moves requests out of the way until no zone that has a node of `nodes` holds too much. */
int memalloc_resolve(struct memalloc *m, memalloc_mask nodes);

#endif
