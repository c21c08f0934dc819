/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ledger of grants: which container has which CPUs and amounts of which pool, and the free capacity
 * of each pool. Changes can be undone within a callback. The memory of grants is accounted by the
 * memory allocator.
 */
#pragma once

#include <stdbool.h>

#include <nri-rp/policy.h>

#include "modules/topology-aware/plan.h"
#include <nri-rp/lib/ctr.h>
#include "modules/lib/private/cpus.h"
#include "modules/lib/private/table.h"

/* ---- hints ----------------------------------------------------------------------------------- */

/*
 * Topology hint: a device or volume of the container is close to these CPUs, NUMA nodes or sockets.
 * Each set may be NULL.
 */
struct hint {
	struct hint *next;
	struct cpus *cpus, *nodes, *sockets;
	bool pod_resource; /* hint from the kubelet's pod resources, named after the resource */
	char provider[];
};

struct hints {
	struct hint *first;
	uint32_t n, n_users;
};

/* ---- grants ---------------------------------------------------------------------------------- */

#define GRANT_ZERO 0x01u /* no CPU request; at least one shared CPU stays free for it */
#define GRANT_HIDE_THREADS 0x02u
#define GRANT_PRESERVE_MEM 0x04u
#define GRANT_MEMORY 0x08u /* the memory allocator has a request of this container */
#define GRANT_OVERFLOW 0x10u /* on the reserved CPUs because no shared CPUs are left */
#define GRANT_MISPLACED 0x20u /* could not be placed as requested */
#define GRANT_COLD 0x40u /* cold start: no DRAM yet */
#define GRANT_ODD_SHARES 0x80u /* CPU shares are not derived from the granted CPUs */
/* The container waits for CPUs that become free, or lacks a part of what it requests. */
#define GRANT_WAITS (GRANT_OVERFLOW | GRANT_MISPLACED)
#define GRANT_LACKS (GRANT_WAITS | GRANT_ODD_SHARES)

struct irq_ask;

/* Requests and limits of a container; a record with the same needs can be reinstated. */
struct needs {
	int64_t cpu_request, cpu_limit, mem_request, mem_limit;
};

/* The members of a grant that its record saves, in their layout there. */
#define GRANT_FACTS_MEMBERS                                                                        \
	uint32_t version; /* version of the record; unused in a grant */                           \
	uint32_t type; /* a value of enum grant_type */                                            \
	uint32_t flags; /* properties of the grant, GRANT_… */                                   \
	uint32_t mem_types;                                                                        \
	int64_t portion; /* milli-CPU of shared or reserved CPUs */                                \
	int64_t shares_mcpu; /* milli-CPU from which cpu.shares are computed */                    \
	int64_t mem_size;                                                                          \
	struct needs needs;                                                                        \
	uint64_t cold_ms; /* duration of the cold start */                                         \
	uint64_t cold_until /* end of the cold start by the host's clock; 0: not started */
struct grant_facts {
	GRANT_FACTS_MEMBERS;
};
#define GRANT_FACTS                                                                                \
	union {                                                                                    \
		struct grant_facts facts;                                                          \
		struct {                                                                           \
			GRANT_FACTS_MEMBERS;                                                       \
		};                                                                                 \
	}

/*
 * Grant: the CPUs and memory of one container. Only the links of a grant in the ledger change; any
 * other change replaces the grant by another one.
 */
struct grant {
	GRANT_FACTS;
	rp_ctr ctr;
	rp_pod pod;
	uint32_t pool;
	uint32_t class; /* CPU class of the exclusive CPUs, or CPUCLASS_NONE */
	struct cpus *exclusive;
	struct hints *hints;
	bool claim; /* the container is a claim, which stays in its place */
	struct irq_ask *irq;
	char *reason; /* reason of GRANT_MISPLACED or GRANT_OVERFLOW; otherwise NULL */
	/* Links of the ledger. */
	bool in, queued;
	uint32_t at; /* index in ledger.sizes */
	struct grant *pool_next, **pool_link;
	struct grant *pod_next, *pod_prev;
	struct space *space; /* the namespace; NULL: namespaces are not placed near each other */
};

struct ledger_entry {
	struct grant *grant;
	bool added;
};

/* The members of a grant that relief reads of all grants, without gaps between the grants. */
struct ledger_size {
	rp_ctr ctr;
	uint32_t pool, size; /* size: grant_size(); 0: the grant must not move */
	int64_t cost; /* relief_cost() of the grant */
};

/* A namespace that has grants. */
struct space {
	struct ledger *ledger;
	struct space *next; /* another namespace of the same hash */
	uint64_t hash;
	char *name;
	uint32_t n_users; /* grants, in the ledger or not */
	uint32_t n_at[]; /* grants of each pool */
};

struct ledger {
	struct table by_ctr; /* struct grant, by container */
	struct table by_pod; /* the first struct grant of a pod */
	struct table spaces; /* struct space, by hash */
	struct ledger_size *sizes; /* n_grants of them, in any order */
	uint32_t cap_sizes;
	uint32_t n_grants, n_waiting; /* n_waiting: grants with GRANT_WAITS */
	uint32_t n_cold;
	struct ledger_entry *log;
	uint32_t n_log, cap_log;
	bool irqs_changed, classes_changed;
};

struct rp_instance;
struct request;

/* Reserves memory for n more log entries. After that n additions and removals cannot fail. */
int32_t ledger_reserve(struct rp_instance *inst, uint32_t n);
/* Begins a callback: earlier changes become final and are no longer undone. */
void ledger_begin(struct rp_instance *inst);
/* Undoes all changes of the running callback. */
void ledger_undo(struct rp_instance *inst);
/*
 * Undoes the changes made after the log had n_log entries. No grant removed since then may have
 * been added again.
 */
void ledger_undo_to(struct rp_instance *inst, uint32_t n_log);
/* Removes all grants and the undo log; all pools become fully free. */
void ledger_clear(struct rp_instance *inst);
/* Adds a grant; the ledger owns it afterwards. */
void ledger_add(struct rp_instance *inst, struct grant *g);
/* Returns the exclusive CPUs of all containers. */
void ledger_exclusive(const struct rp_instance *inst, struct rp_idset *ret);
/* Removes a grant; the grant stays readable until the callback ends. */
void ledger_remove(struct rp_instance *inst, struct grant *g);
/* Returns the grant of a container, or NULL. */
struct grant *ledger_find(const struct rp_instance *inst, rp_ctr ctr);
/* Returns the first grant of a pod, to which the others are linked by pod_next, or NULL. */
struct grant *ledger_of_pod(const struct rp_instance *inst, rp_pod pod);
/* Returns how many grants of a namespace each pool has; NULL: no pool has any. Only for a plan that
 * places namespaces near each other. */
const uint32_t *ledger_of_namespace(const struct rp_instance *inst, const char *name);

/* Allocates a grant without facts that is not in the ledger; NULL: out of memory. */
struct grant *grant_new(struct rp_instance *inst, const struct request *r, uint32_t pool,
			struct rp_ids exclusive, struct hints *hints);
struct grant *grant_copy(const struct grant *g);
struct grant *grant_free(struct grant *g); /* accepts NULL; returns NULL */
/* Returns the CPUs of a grant in milli-CPU. */
static inline int64_t grant_size(const struct grant *g)
{
	return 1000 * (int64_t)cpus_count(g->exclusive) + g->portion;
}
/* Returns true if the container runs on the shared CPUs of its pool. */
static inline bool grant_shares(const struct grant *g)
{
	return g->type == GRANT_NORMAL && (g->portion > 0 || !g->exclusive);
}
/*
 * Returns true for grants that must not move: a move could harm the container, or its place is
 * required.
 */
bool grant_is_fixed(const struct grant *g);

/*
 * Returns the milli-CPU that can still be granted in a pool. zero: deduct one milli-CPU if the pool
 * or a descendant has containers without CPU request. ledger_rooms() computes plan.room for all
 * pools with this deduction.
 */
int64_t ledger_room(const struct rp_plan *p, uint32_t pool, bool zero);
void ledger_rooms(struct rp_plan *p);
/* Returns the milli-CPU of reserved CPUs that can still be granted; -1: the pool has none. */
int64_t ledger_reserved_room(const struct rp_plan *p, uint32_t pool);
/*
 * Returns true if granting n shared CPUs of a pool exclusively would leave containers without CPU
 * request in an ancestor pool without any CPU.
 */
bool ledger_drains(const struct rp_plan *p, uint32_t pool, int64_t n);
/* Updates whole_slice and slice of all pools. The caller calls ledger_rooms() first. */
void ledger_slices(struct rp_plan *p);
/*
 * Returns the CPUs of a pool that can become exclusive: whole_slice of an inner pool, slice of a
 * leaf.
 */
const uint64_t *ledger_sliceable(const struct rp_plan *p, uint32_t pool, uint32_t *ret_n);
