/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Internals of the memory allocator.
 *
 * Each zone stores the bytes of its own requests and its usage, which is that of all zones within
 * it. Every assignment and move updates both, so that they are never summed up again. A journal
 * records each request before a change. Undoing a change needs no memory, because arrays never
 * shrink.
 */
#pragma once

#include <stdbool.h>

#include <nri-rp/lib/memalloc.h>
#include "modules/lib/private/table.h"

#define N_TYPES 3u
#define WHY_MAX 256u

struct zone;

struct request {
	struct memalloc_request is;
	uint64_t age; /* age of the request: a smaller number is older */
	struct zone *zone; /* zone of the request; NULL: not assigned at present */
	/* the request is in the table; false: it was released, but the release can still be
	 * undone */
	bool listed;
	uint64_t seen; /* the operation that last reported it as moved */
};

struct zone {
	memalloc_mask nodes;
	/* the zone has users, or had some in this operation; other zones are kept for an undo
	 * only */
	bool live;
	uint32_t types;
	uint32_t n_users, cap_users;
	int64_t capacity, own, usage;
	/* in the order of moving: lowest priority, smallest, youngest first */
	struct request **users;
};

/* A request before a change. */
struct change {
	struct request *req;
	struct memalloc_request was;
	memalloc_mask zone; /* previous zone of the request; 0: the request did not exist */
	bool released;
};

struct distance {
	uint32_t distance;
	uint32_t pad;
	memalloc_mask nodes;
};

struct node {
	struct memalloc_node is;
	struct distance *others; /* nearest first, without the node itself */
	uint32_t n_others;
};

/* An overfull zone. */
struct excess {
	struct zone *zone;
	int64_t bytes;
	bool placed; /* the zone was already copied to over_sorted[] */
};

struct memalloc {
	struct node nodes[MEMALLOC_NODES_MAX];
	struct distance *distances;
	uint32_t n_nodes;
	uint32_t types; /* types of memory that the machine has */
	memalloc_mask all, with_memory, normal;
	memalloc_mask of_type[N_TYPES]; /* nodes with memory of a type */
	memalloc_mask of_kind[N_TYPES]; /* nodes of a type, with or without memory */
	int64_t total;

	struct zone **zones; /* n_zones zones in use, followed by n_spare spare ones */
	uint32_t n_zones, cap_zones, n_spare;
	struct excess *over, *over_sorted; /* arrays of cap_zones elements */

	struct table requests; /* struct request, by id */
	uint64_t next_age;

	struct change *journal;
	uint32_t n_journal, cap_journal;
	bool in_txn;

	struct memalloc_move *moves;
	struct request **moved; /* scratch, as long as `moves` */
	uint32_t n_moves, cap_moves;
	uint64_t version, operation;
	char why[WHY_MAX];
};

/* Stores the sentence for memalloc_why() and returns code. */
int memalloc_fail(struct memalloc *m, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* ---- memalloc_zone.c: accounting ---- */

/* Returns the zone of these nodes, creating it if necessary; NULL: out of memory. */
struct zone *memalloc_get_zone(struct memalloc *m, memalloc_mask nodes);
/* Returns the bytes of all requests whose zones lie within nodes. */
int64_t memalloc_used_by(const struct memalloc *m, memalloc_mask nodes);
/* Ends an operation: removes zones without users. */
void memalloc_tidy(struct memalloc *m);
/* Reserves memory for n more users, so that memalloc_assign() cannot fail. */
int memalloc_reserve_users(struct zone *z, uint32_t n);
/* Adds a request to the users of a zone, or removes it, and updates the usage of all zones
 * around. */
void memalloc_assign(struct memalloc *m, struct zone *z, struct request *req);
void memalloc_unassign(struct memalloc *m, struct request *req);
/*
 * Moves users of `from` with at most this priority to `to`, a larger zone with all memory types of
 * `types`, until `bytes` are moved. Returns the bytes moved, or -RP_ENOMEM with nothing moved.
 */
int64_t memalloc_move_users(struct memalloc *m, struct zone *from, struct zone *to, uint32_t types,
			    uint32_t priority, int64_t bytes);

/* Finds, adds or removes a request in the table of ids. */
struct request *memalloc_find(const struct memalloc *m, uint64_t id);
int memalloc_insert(struct memalloc *m, struct request *req);
void memalloc_erase(struct memalloc *m, struct request *req);

/* Reserves memory for n more changes, so that memalloc_note() cannot fail. */
int memalloc_reserve_journal(struct memalloc *m, uint32_t n);
/* Records the request in the journal before a change. Returns the record. */
struct change *memalloc_note(struct memalloc *m, struct request *req);
/* Undoes all changes down to a length of the journal. */
void memalloc_undo(struct memalloc *m, uint32_t n_journal);
/* Makes all changes final. */
void memalloc_settle(struct memalloc *m);

/* ---- memalloc_place.c: placement ---- */

/* Returns the nodes next to a zone, for each of the types the nearest. Stores their types in
 * ret_types, which may be NULL. */
memalloc_mask memalloc_expand(const struct memalloc *m, memalloc_mask zone, uint32_t types,
			      uint32_t *ret_types);
/* Stores the zone that a request gets if there is enough capacity; completes its types. */
int memalloc_initial_zone(struct memalloc *m, struct memalloc_request *req, memalloc_mask *ret);
/* Returns true if `size` more bytes fit without moving other requests. */
bool memalloc_fits(const struct memalloc *m, memalloc_mask nodes, int64_t size);
/* Moves other requests until no zone with a node of `nodes` is overfull. */
int memalloc_resolve(struct memalloc *m, memalloc_mask nodes);
