/* SPDX-License-Identifier: Apache-2.0 */
/* Who has what in which pool. */
#ifndef TOPOLOGY_AWARE_PLACE_LEDGER_H
#define TOPOLOGY_AWARE_PLACE_LEDGER_H

#include <stdbool.h>

#include <nri-rp/policy.h>

#include "modules/topology-aware/plan.h"
#include "modules/lib/ctr.h"
#include "modules/lib/cpus.h"
#include "modules/lib/table.h"

/* ---- hints ----------------------------------------------------------------------------------- */

/* Something that the container uses is near these CPUs, or these nodes, or these sockets; each may
 * be empty. */
struct hint {
	struct hint *next;
	struct cpus *cpus, *nodes, *sockets;
	bool pod_resource; /* from the kubelet, by resource name */
	char provider[];
};

struct hints {
	struct hint *first;
	uint32_t n, n_users;
};

/* ---- grants ---------------------------------------------------------------------------------- */

#define GRANT_ZERO 0x01u /* asks for nothing, but is promised a CPU to share */
#define GRANT_HIDE_THREADS 0x02u
#define GRANT_PRESERVE_MEM 0x04u
#define GRANT_MEMORY 0x08u /* has a request in the memory allocator */
#define GRANT_OVERFLOW 0x10u /* on the reserved CPUs for want of shared ones */
#define GRANT_MISPLACED 0x20u /* could not be placed as it asks for */
#define GRANT_COLD 0x40u /* has no DRAM yet */
#define GRANT_ODD_SHARES 0x80u /* shares do not follow from its CPUs */

struct irq_ask;

/* What a container asks for, as it counts for "nothing has changed". */
struct needs {
	int64_t cpu_request, cpu_limit, mem_request, mem_limit;
};

/* Never changed while it is in the ledger, but for links: a change is another grant in its
 * place. */
struct grant {
	rp_ctr ctr;
	rp_pod pod;
	uint32_t pool;
	uint8_t type; /* enum grant_type */
	uint8_t qos;
	uint16_t flags; /* GRANT_… */
	struct cpus *exclusive;
	int64_t portion; /* of shared or reserved CPUs */
	int64_t shares_mcpu; /* what cpu.shares are made of */
	uint32_t mem_types;
	uint32_t class; /* of its exclusive CPUs; CPUCLASS_NONE */
	int64_t mem_size;
	uint64_t cold_ms,
		/* duration, and on the host's clock when it ends (0: has not started) */
		cold_until;
	struct needs needs;
	struct hints *hints;
	struct irq_ask *irq;
	char *namespace;
	char *reason; /* of MISPLACED and OVERFLOW */
	/* Links. */
	bool in, queued;
	struct grant *pool_next, **pool_link;
};

struct ledger_entry {
	struct grant *grant;
	bool added;
};

struct ledger {
	struct table by_ctr; /* struct grant */
	uint32_t n_grants, n_waiting; /* waiting: OVERFLOW or MISPLACED */
	uint32_t n_cold;
	struct ledger_entry *log;
	uint32_t n_log, cap_log;
	bool irqs_changed, classes_changed;
};

struct rp_instance;

/* Room for n more entries of the log; after it as many additions and removals cannot fail. */
int32_t ledger_reserve(struct rp_instance *inst, uint32_t n);
/* Begins a callback: what was done before is final. */
void ledger_begin(struct rp_instance *inst);
void ledger_undo(struct rp_instance *inst);
/* Takes back what came after the log had n_log entries. No grant that was removed since may have
 * been added again. */
void ledger_undo_to(struct rp_instance *inst, uint32_t n_log);
/* No grants, nothing to undo. The plan's sets become what they are without any. */
void ledger_clear(struct rp_instance *inst);
/* The ledger takes the grant over. */
void ledger_add(struct rp_instance *inst, struct grant *g);
/* All CPUs that belong to containers. */
void ledger_exclusive(const struct rp_instance *inst, struct rp_idset *ret);
/* It stays readable until the callback ends. */
void ledger_remove(struct rp_instance *inst, struct grant *g);
struct grant *ledger_find(const struct rp_instance *inst, rp_ctr ctr);

struct grant *grant_new(const struct rp_ctr_info *info);
struct grant *grant_copy(const struct grant *g);
struct grant *grant_free(struct grant *g); /* returns NULL */

/* What is still there to share, for one pool or for all at once (plan.room). Without `zero` the one
 * milli-CPU of those who ask for nothing does not count. */
int64_t ledger_room(const struct rp_plan *p, uint32_t pool, bool zero);
void ledger_rooms(struct rp_plan *p);
int64_t ledger_reserved_room(const struct rp_plan *p, uint32_t pool); /* -1: it has none */
/* Would those that ask for nothing in a pool above it be left without a CPU, if n shared CPUs of it
 * were given away? */
bool ledger_drains(const struct rp_plan *p, uint32_t pool, int64_t n);
/* Brings whole_slice and slice of all pools up to date; needs ledger_rooms(). */
void ledger_slices(struct rp_plan *p);
/* What may be given away of a pool: plan.pools[pool].whole_slice for inner ones, .slice for
 * leaves. */
const uint64_t *ledger_sliceable(const struct rp_plan *p, uint32_t pool, uint32_t *ret_n);

#endif
