/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Accounting of memory over sets of nodes.
 *
 * A *request* (size, nodes it should be near, kinds of memory) is assigned to a *zone*, a set of
 * nodes. Every request whose zone lies within a set of nodes counts as usage of that set; no zone
 * in use may hold more than its nodes have. When a new request overfills zones, requests of low
 * priority are moved to larger zones around theirs until everything fits, or the new one is refused
 * and nothing has changed.
 *
 * Results are deterministic: they follow from the machine and the order of the calls. Time is
 * linear in the zones in use, and in the requests of a zone that has to be shrunk.
 */
#ifndef NRI_RP_LIB_MEMALLOC_H
#define NRI_RP_LIB_MEMALLOC_H

#include <nri-rp/module.h>
#include <nri-rp/set.h>
#include <nri-rp/topology.h>

#ifdef __cplusplus
extern "C" {
#endif

struct memalloc;

/*
 * A set of nodes: bit i is the i-th node of the machine, by ascending node number. Node numbers may
 * have holes; memalloc_mask() and memalloc_ids() translate.
 */
typedef uint64_t memalloc_mask;

#define MEMALLOC_NODES_MAX 64u
#define MEMALLOC_NODE_BYTES_MAX (UINT64_C(1) << 48)

/* Kinds of memory, a bit mask. */
#define MEMALLOC_DRAM 0x1u
#define MEMALLOC_PMEM 0x2u /* large and far: persistent memory, CXL */
#define MEMALLOC_HBM 0x4u
#define MEMALLOC_ALL_TYPES 0x7u

/* How unwilling a request is to be moved. */
#define MEMALLOC_PRIO_BEST_EFFORT 0u
#define MEMALLOC_PRIO_BURSTABLE 1024u
#define MEMALLOC_PRIO_GUARANTEED 16384u
#define MEMALLOC_PRIO_PRESERVED 32766u
#define MEMALLOC_PRIO_RESERVATION 32767u /* never moved */
uint32_t memalloc_prio_of(uint32_t qos); /* RP_QOS_… */

/* DRAM, PMEM and HBM as people write them, in any case of letters; 0: it is none of them. */
uint32_t memalloc_type_of(const char *name);
/* A list of them with commas between, or "mixed" for all; 0: it is no such list. */
uint32_t memalloc_types_of(const char *text);

struct memalloc_request {
	uint64_t id; /* the caller's, unique */
	int64_t size; /* bytes, 0 or more */
	memalloc_mask nodes; /* where it should be; not empty */
	uint32_t types; /* wanted kinds; 0: those of `nodes` */
	uint32_t strict; /* 1: no other kinds, all of them or nothing; 0: a preference */
	uint32_t priority; /* MEMALLOC_PRIO_… or a number between */
	uint32_t pad;
};

/* What a request would get. A plain value: copy and drop it freely. */
struct memalloc_offer {
	struct memalloc_request request;
	memalloc_mask zone; /* what commit will return */
	uint64_t version;
};

/* Another request that was moved to make room. */
struct memalloc_move {
	uint64_t id;
	memalloc_mask zone; /* where it is now */
};

/* ---- the machine ----------------------------------------------------------------------------- */

struct memalloc_node {
	uint32_t id;
	uint32_t type; /* one of MEMALLOC_DRAM, _PMEM, _HBM */
	uint32_t normal; /* 1: not only movable memory */
	uint32_t pad;
	uint64_t bytes; /* 0: a node without memory; it is never part of a result */
};

struct memalloc_machine {
	const struct memalloc_node *nodes; /* ascending by id */
	/* n_nodes × n_nodes, [from * n_nodes + to]; 0: not known, farther than all others */
	const uint32_t *distance;
	uint32_t n_nodes;
	uint32_t pad;
};

/*
 * Both copy what they need. The first reads the host's topology (ctx is rp_host.ctx): nodes with
 * neither CPUs nor memory do not count, CXL is PMEM, and distances that depend on the direction are
 * replaced by their mean. -RP_E2BIG: more than MEMALLOC_NODES_MAX nodes; -RP_EINVAL: none, not in
 * order, or of an unknown type or size; -RP_ENOMEM. `why` (may be NULL) then has a sentence for
 * people, at most why_size bytes with its NUL.
 */
int memalloc_new(const struct rp_host_topology *topo, void *ctx, struct memalloc **ret, char *why,
		 size_t why_size);
int memalloc_new_machine(const struct memalloc_machine *machine, struct memalloc **ret, char *why,
			 size_t why_size);
struct memalloc *memalloc_free(struct memalloc *m); /* NULL is fine; returns NULL */

memalloc_mask memalloc_all(const struct memalloc *m); /* all nodes */
memalloc_mask memalloc_with_memory(const struct memalloc *m); /* those that have memory */
memalloc_mask memalloc_of_types(const struct memalloc *m,
				uint32_t types); /* those that have memory of a kind */
uint32_t memalloc_types(const struct memalloc *m, memalloc_mask nodes); /* kinds of the nodes */
uint32_t memalloc_all_types(
	const struct memalloc *m); /* kinds that the machine has some memory of */
/* The nodes of a set, unknown ones left out. */
memalloc_mask memalloc_mask_of(const struct memalloc *m, struct rp_ids nodes);
void memalloc_ids(const struct memalloc *m, memalloc_mask nodes, struct rp_idset *ret);

/* ---- placing --------------------------------------------------------------------------------- */

/*
 * All of these return 0 or an error after which nothing has changed, and memalloc_why() explains
 * it:
 * -RP_EINVAL  the request makes no sense (no nodes, unknown nodes, strict types that the machine
 *             lacks, negative size)
 * -RP_EBUSY   its id is in use
 * -RP_ENOENT  there is no request of that id
 * -RP_ENOSPC  it does not fit
 * -RP_ESTALE  something was allocated or released since the offer was made
 * -RP_ENOMEM
 * After a success memalloc_moves() has the other requests that were moved, oldest first.
 */
int memalloc_offer(struct memalloc *m, const struct memalloc_request *req,
		   struct memalloc_offer *ret);
int memalloc_commit(struct memalloc *m, const struct memalloc_offer *offer,
		    memalloc_mask *ret_zone);
/* An offer and its commit. */
int memalloc_allocate(struct memalloc *m, const struct memalloc_request *req,
		      memalloc_mask *ret_zone);
/* Gives a request new properties and a new place; it keeps its age. */
int memalloc_replace(struct memalloc *m, const struct memalloc_request *req,
		     memalloc_mask *ret_zone);
/*
 * The same for a request whose size has not changed, without moving others where that can be
 * helped: if there is no room in its new place, it keeps its zone and gets, of the new one, what
 * that lacks.
 */
int memalloc_follow(struct memalloc *m, const struct memalloc_request *req,
		    memalloc_mask *ret_zone);
/*
 * Extends a request's zone by `nodes` (those of `types`, if there are any) and by the nearest
 * further nodes of `types` (0: the kinds of `nodes`). Without effect if its zone has all of that
 * already. Never shrinks.
 */
int memalloc_extend(struct memalloc *m, uint64_t id, memalloc_mask nodes, uint32_t types,
		    memalloc_mask *ret_zone);
int memalloc_release(struct memalloc *m, uint64_t id);
void memalloc_reset(struct memalloc *m); /* releases all */

/* Others that the last call has moved, none after an offer; valid until the next call. */
uint32_t memalloc_moves(const struct memalloc *m, const struct memalloc_move **ret);
/* One sentence on the last error, without newline; valid until the next call. */
const char *memalloc_why(const struct memalloc *m);

/*
 * Undo over several calls: between begin and keep everything can be taken back with drop, exactly,
 * ages included. Not nested (-RP_EBUSY). memalloc_reset() must not be called in between.
 */
int memalloc_begin(struct memalloc *m);
void memalloc_keep(struct memalloc *m);
void memalloc_drop(struct memalloc *m);

/* ---- looking --------------------------------------------------------------------------------- */

uint32_t memalloc_count(const struct memalloc *m); /* requests */
/* -RP_ENOENT: no such request. */
int memalloc_zone(const struct memalloc *m, uint64_t id, memalloc_mask *ret_zone);
/* Bytes of a set of nodes: what it has; what requests lying in it use; the difference; and how much
 * of that is really there, as larger zones around it may be fuller (0 or more). */
int64_t memalloc_capacity(const struct memalloc *m, memalloc_mask nodes);
int64_t memalloc_usage(const struct memalloc *m, memalloc_mask nodes);
int64_t memalloc_unused(const struct memalloc *m, memalloc_mask nodes);
int64_t memalloc_available(const struct memalloc *m, memalloc_mask nodes);

#ifdef __cplusplus
}
#endif
#endif
