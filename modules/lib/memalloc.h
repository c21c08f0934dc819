/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Accounting of memory over sets of nodes.
 *
 * A *request* (size, preferred nodes, types of memory) is assigned to a *zone*, a set of nodes.
 * Every request whose zone lies within a set of nodes counts as usage of that set. No zone in use
 * may hold more than its nodes have. When a new request overfills zones, requests of low priority
 * are moved to larger zones around theirs until everything fits. Otherwise the new request is
 * refused and nothing has changed.
 *
 * Results are deterministic: they depend on the machine and the order of the calls only. Time is
 * linear in the number of zones in use, and in the requests of a zone that must be emptied.
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
 * have gaps; memalloc_mask_of() and memalloc_ids() convert.
 */
typedef uint64_t memalloc_mask;

#define MEMALLOC_NODES_MAX 64u
#define MEMALLOC_NODE_BYTES_MAX (UINT64_C(1) << 48)

/* Types of memory, a bit mask. */
#define MEMALLOC_DRAM 0x1u
#define MEMALLOC_PMEM 0x2u /* large and distant: persistent memory, CXL */
#define MEMALLOC_HBM 0x4u
#define MEMALLOC_ALL_TYPES 0x7u

/* Priorities of requests: requests with a low priority are moved first. */
#define MEMALLOC_PRIO_BEST_EFFORT 0u
#define MEMALLOC_PRIO_BURSTABLE 1024u
#define MEMALLOC_PRIO_GUARANTEED 16384u
#define MEMALLOC_PRIO_PRESERVED 32766u
#define MEMALLOC_PRIO_RESERVATION 32767u /* never moved */
uint32_t memalloc_prio_of(uint32_t qos); /* Returns the priority for a class RP_QOS_…. */

/* Returns the type of a name, DRAM, PMEM or HBM in any case of letters; 0: another text. */
uint32_t memalloc_type_of(const char *name);
/* Returns the types of a list of names separated by commas, or all for "mixed"; 0: another text. */
uint32_t memalloc_types_of(const char *text);

struct memalloc_request {
	uint64_t id; /* unique id, chosen by the caller */
	int64_t size; /* size of the request in bytes, at least 0 */
	memalloc_mask nodes; /* preferred nodes; not empty */
	uint32_t types; /* requested memory types; 0: the types of `nodes` */
	uint32_t strict; /* 1: exactly these types, else an error; 0: a preference */
	uint32_t priority; /* MEMALLOC_PRIO_… or a number in between */
	uint32_t pad;
};

/* The result that a request would have. A plain value, which may be copied and dropped. */
struct memalloc_offer {
	struct memalloc_request request;
	memalloc_mask zone; /* result of memalloc_commit() */
	uint64_t version;
};

/* Another request that was moved to free capacity. */
struct memalloc_move {
	uint64_t id;
	memalloc_mask zone; /* new zone of the request */
};

/* ---- the machine ----------------------------------------------------------------------------- */

struct memalloc_node {
	uint32_t id;
	uint32_t type; /* MEMALLOC_DRAM, _PMEM or _HBM */
	uint32_t normal; /* 1: the node has memory outside ZONE_MOVABLE */
	uint32_t pad;
	uint64_t bytes; /* memory of the node; 0: none, and the node is never part of a result */
};

struct memalloc_machine {
	const struct memalloc_node *nodes; /* nodes in ascending order of their ids */
	/* n_nodes × n_nodes, [from * n_nodes + to]; 0: unknown, farther than all others */
	const uint32_t *distance;
	uint32_t n_nodes;
	uint32_t pad;
};

/*
 * Creates an allocator, from the host's topology (ctx is rp_host.ctx) or from a description. Both
 * copy what they need. From the topology, nodes with neither CPUs nor memory are ignored, CXL is
 * PMEM, and distances that depend on the direction are replaced by their mean.
 *
 * -RP_E2BIG: more than MEMALLOC_NODES_MAX nodes; -RP_EINVAL: no nodes, wrong order, or unknown type
 * or size; -RP_ENOMEM. After an error `why` (may be NULL) contains a sentence for people, at most
 * why_size bytes with its NUL.
 */
int memalloc_new(const struct rp_host_topology *topo, void *ctx, struct memalloc **ret, char *why,
		 size_t why_size);
/* As memalloc_new(), but classifies memory without CPUs as the original policies do: HBM if it is
 * smaller than the average node with CPUs, else PMEM. */
int memalloc_new_by_size(const struct rp_host_topology *topo, void *ctx, struct memalloc **ret,
			 char *why, size_t why_size);
int memalloc_new_machine(const struct memalloc_machine *machine, struct memalloc **ret, char *why,
			 size_t why_size);
struct memalloc *memalloc_free(struct memalloc *m); /* accepts NULL; returns NULL */

memalloc_mask memalloc_all(const struct memalloc *m); /* all nodes */
memalloc_mask memalloc_with_memory(const struct memalloc *m); /* nodes with memory */
memalloc_mask memalloc_of_types(const struct memalloc *m,
				uint32_t types); /* nodes with memory of these types */
uint32_t memalloc_types(const struct memalloc *m, memalloc_mask nodes); /* types of the nodes */
/* Returns the types of memory that the machine has. */
uint32_t memalloc_all_types(const struct memalloc *m);
/* Converts a set of node numbers, in which unknown ones are ignored, and back. */
memalloc_mask memalloc_mask_of(const struct memalloc *m, struct rp_ids nodes);
void memalloc_ids(const struct memalloc *m, memalloc_mask nodes, struct rp_idset *ret);
/* Returns the nodes of `among` that are closest to another node; all of them are equally close. */
memalloc_mask memalloc_nearest(const struct memalloc *m, memalloc_mask node, memalloc_mask among);

/* ---- requests -------------------------------------------------------------------------------- */

/*
 * Returns 0, or an error after which nothing has changed and memalloc_why() explains
 * it:
 *   -RP_EINVAL  malformed request: no or unknown nodes, strict types that the machine lacks,
 *               negative size
 *   -RP_EBUSY   the id is in use
 *   -RP_ENOENT  there is no request with this id
 *   -RP_ENOSPC  not enough memory
 *   -RP_ESTALE  a request was allocated or released since the offer was made
 *   -RP_ENOMEM
 * After a success memalloc_moves() returns the other requests that were moved, oldest first.
 */
int memalloc_offer(struct memalloc *m, const struct memalloc_request *req,
		   struct memalloc_offer *ret);
int memalloc_commit(struct memalloc *m, const struct memalloc_offer *offer,
		    memalloc_mask *ret_zone);
/* Makes an offer and commits it. */
int memalloc_allocate(struct memalloc *m, const struct memalloc_request *req,
		      memalloc_mask *ret_zone);
/* Changes the properties of a request and places it again; it keeps its age. */
int memalloc_replace(struct memalloc *m, const struct memalloc_request *req,
		     memalloc_mask *ret_zone);
/*
 * Places a request of unchanged size again, for example near other CPUs. If the new zone has not
 * enough capacity, the request keeps its old zone and gets the nodes of the new zone in addition.
 */
int memalloc_follow(struct memalloc *m, const struct memalloc_request *req,
		    memalloc_mask *ret_zone);
/*
 * Extends a request's zone by `nodes` (only those of `types`, if there are any) and by the nearest
 * further nodes of `types` (0: the types of `nodes`). No effect if the zone contains all of them
 * already. Never reduces a zone.
 */
int memalloc_extend(struct memalloc *m, uint64_t id, memalloc_mask nodes, uint32_t types,
		    memalloc_mask *ret_zone);
/* Releases a request. -RP_ENOENT: there is none with this id. */
int memalloc_release(struct memalloc *m, uint64_t id);
void memalloc_reset(struct memalloc *m); /* releases all requests */

/* Returns the number of other requests that the last call moved, 0 after an offer. *ret is valid
 * until the next call. */
uint32_t memalloc_moves(const struct memalloc *m, const struct memalloc_move **ret);
/* Returns one sentence about the last error, without newline; valid until the next call. */
const char *memalloc_why(const struct memalloc *m);

/*
 * Undoes over several calls: memalloc_drop() restores the exact state of memalloc_begin(), ages
 * included; memalloc_keep() ends the undo. Not nested (-RP_EBUSY). memalloc_reset() must not be
 * called in between.
 */
int memalloc_begin(struct memalloc *m);
void memalloc_keep(struct memalloc *m);
void memalloc_drop(struct memalloc *m);

/* ---- queries --------------------------------------------------------------------------------- */

/* Returns the number of requests. */
uint32_t memalloc_count(const struct memalloc *m);
/* Stores the zone of a request. -RP_ENOENT: there is no such request. */
int memalloc_zone(const struct memalloc *m, uint64_t id, memalloc_mask *ret_zone);
/* Returns bytes of a set of nodes: its capacity; the usage by requests within it; the difference;
 * and the part of the difference that is available, as larger zones around it may be fuller (at
 * least 0). */
int64_t memalloc_capacity(const struct memalloc *m, memalloc_mask nodes);
int64_t memalloc_usage(const struct memalloc *m, memalloc_mask nodes);
int64_t memalloc_unused(const struct memalloc *m, memalloc_mask nodes);
int64_t memalloc_available(const struct memalloc *m, memalloc_mask nodes);

#ifdef __cplusplus
}
#endif
#endif
