/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The topology-aware policy: containers get CPUs and memory from a *pool*, a part of the machine.
 * Pools form a tree: the machine, sockets, dies, NUMA nodes, L3 caches. Each container is given to
 * the pool that suits it best; there it shares CPUs with others, has some for itself, or both.
 *
 *	config.c    section → settings
 *	tree.c      the pools
 *	request.c   what a container wants
 *	hints.c     near which devices
 *	place.c     one container into a pool
 *	plan.c      settings + machine → sets of CPUs, allocators
 *	ledger.c    who has what in which pool, and the way back
 *	affinity.c  next to whom
 *	score.c     which pool is best
 *	stage.c     into the transaction
 *	sync.c      everything at once             coldstart.c memory that comes later
 *	rebalance.c better places for those that run
 *	classes.c   scheduling and CPU classes     interrupts.c
 *	record.c    what is kept with a container
 *	report.c    zones, metrics, explanations
 *	ta.c        the callbacks
 *
 * All amounts of CPU are milli-CPU. Names of pools depend on the hardware alone, so they outlive
 * configurations and restarts.
 */
#ifndef TOPOLOGY_AWARE_TA_H
#define TOPOLOGY_AWARE_TA_H

#include <stdbool.h>

#include <nri-rp/policy.h>

#include "modules/lib/amount.h"
#include "modules/lib/cpualloc.h"
#include "modules/lib/cpuclass.h"
#include "modules/lib/ctr.h"
#include "modules/lib/glob.h"
#include "modules/lib/host.h"
#include "modules/lib/irq.h"
#include "modules/lib/life.h"
#include "modules/lib/match.h"
#include "modules/lib/memalloc.h"
#include "modules/lib/pct.h"
#include "modules/lib/reserve.h"
#include "modules/lib/schedclass.h"
#include "modules/lib/table.h"

#define TA_DOMAIN ".resource-policy.nri.io"
#define TA_TEXT_MAX 160u /* sets in messages */
#define NO_POOL UINT32_MAX
#define N_QOS 3u

/* ---- sets that are kept (sets.c) ------------------------------------------------------------- */

/* As small as its last word; NULL is the empty set. */
struct cpus {
	uint32_t nw, n; /* words, CPUs */
	uint64_t w[];
};

/* NULL for the empty set, and when out of memory: then *ret_code is -RP_ENOMEM. */
struct cpus *cpus_new(struct rp_ids ids, int32_t *ret_code);
static inline struct rp_ids cpus_ids(const struct cpus *c)
{
	return c ? (struct rp_ids){c->w, c->nw, 0} : rp_ids_none();
}
static inline uint32_t cpus_count(const struct cpus *c)
{
	return c ? c->n : 0;
}

/* ---- configuration (config.c) ---------------------------------------------------------------- */

enum overflow { OVERFLOW_RESERVED, OVERFLOW_REFUSE };

struct sched_rule {
	const char *namespace;
	int32_t class;
};

struct settings {
	rp_cfg section;
	struct blocks memory; /* of the lists below */
	bool pin_cpu, pin_memory, prefer_isolated, prefer_shared, colocate_pods,
		colocate_namespaces, test_hints;
	struct texts reserved_namespaces;
	struct texts interrupts; /* that may be moved; none: all */
	struct irq_names denied; /* those that may not */
	struct amount available, reserved;
	enum cpualloc_prio prio;
	uint32_t burstable_level; /* RP_LEVEL_…, as written */
	enum overflow overflow;
	struct schedclasses sched;
	struct sched_rule *sched_ns;
	uint32_t n_sched_ns;
	int32_t sched_qos[N_QOS];
	struct cpuclass_defs *classes; /* NULL: there are none */
	uint32_t shared_class, reserved_class, exclusive_class; /* or CPUCLASS_NONE */
	/* Where a decision comes from, for explanations. */
	rp_cfg isolated_at, shared_at, namespaces_at, level_at, prio_at, overflow_at, pods_at,
		ns_at;
};

extern const struct rp_schema ta_schema;
int32_t settings_read(const struct modhost *h, rp_cfg section, struct settings *ret);
void settings_fini(struct settings *s);
/* high, normal, low, none. -RP_EINVAL: none of these. */
int32_t prio_parse(const char *text, enum cpualloc_prio *ret);
const char *prio_name(enum cpualloc_prio prio);
/* system, package, die, numa, l3cache …; 0: none of these. */
uint32_t level_parse(const char *text);
const char *level_name(uint32_t level);
/* Does a list of patterns have one for this? A malformed one ends the search. */
bool strings_match(const struct texts *patterns, const char *text);

/* ---- pools (tree.c) -------------------------------------------------------------------------- */

#define POOL_NAME_MAX 64u
#define N_MEM_TYPES 3u /* MEMALLOC_DRAM, _PMEM, _HBM */

enum grant_type { GRANT_NORMAL, GRANT_RESERVED, GRANT_PRESERVE, N_GRANT_TYPES };

struct grant;

/*
 * Pools are numbered in post-order: those below pool P are P.first … P-1, the root is the last.
 * Sets have plan.n_words words. Sums are over the pool and all below it.
 */
struct pool {
	char name[POOL_NAME_MAX];
	uint32_t parent; /* NO_POOL: the root */
	uint32_t first; /* lowest number below it; its own: a leaf */
	uint32_t depth; /* of the root: 0 */
	uint32_t level; /* RP_LEVEL_… */
	uint32_t id; /* the kernel's number of what it stands for */
	uint32_t package; /* kernel's number; of all but a virtual root */
	memalloc_mask mem[N_MEM_TYPES]; /* memory near it, by type */
	uint32_t mem_group; /* pools of one group have the same memory */
	memalloc_mask nodes; /* those with a CPU in it */

	/* What it has. */
	uint64_t *cpus, *cap_sharable, *cap_isolated, *reserved;
	uint64_t *own; /* CPUs that are in no child */
	uint32_t n_cpus, n_cap_sharable, n_reserved;

	/* What is free of it. */
	uint64_t *sharable, *isolated;
	uint32_t n_sharable, n_isolated;
	uint64_t generation; /* of sharable */
	int64_t shared_own, shared_sum, reserved_own, reserved_sum;
	uint32_t zero_own, zero_sum; /* containers that ask for nothing */
	uint32_t n_grants[N_GRANT_TYPES]; /* of this very pool */
	struct grant *grants;
	bool changed; /* sharable, since ledger_begin */

	/* What may be given away of it (ledger_slices): limited by what is promised below it, and
	 * by what is promised here too. */
	uint64_t *whole_slice, *slice;
	uint32_t n_whole_slice, n_slice;
	uint64_t slice_generation; /* that of sharable; 0: not known */
	int64_t slice_limit; /* CPUs that slice may have */
	bool slice_stale; /* that of a child is another one */
};

struct rp_plan;

/* The pools of the machine, with hardware only: sets of CPUs that depend on the configuration
 * follow in pools_fill(). */
int32_t tree_build(const struct modhost *h, struct rp_plan *p);
void tree_free(struct rp_plan *p);
uint32_t tree_find(const struct rp_plan *p, const char *name); /* NO_POOL: there is none */
bool tree_within(const struct rp_plan *p, uint32_t pool,
		 uint32_t top); /* pool is top or below it */
/* The level that the tree really has for a wanted one. */
uint32_t tree_level(const struct rp_plan *p, uint32_t wanted);
memalloc_mask tree_memory(const struct pool *pool, uint32_t types);
const char *tree_kind(const struct pool *pool); /* "socket", "numa node" … */

/* What the memory allocator says of the pools that have the same memory. */
struct memory_group {
	bool known, offers, exact; /* exact: the zone has all types asked for and no others */
	bool complete; /* the pools have memory of all types asked for */
	uint32_t n_nodes; /* of the zone */
	int64_t capacity;
};

/* ---- a configuration on a machine (plan.c) --------------------------------------------------- */

struct rp_plan {
	struct settings settings;
	bool owns_settings;
	struct cpualloc *cpus;
	struct memalloc *mem;
	uint32_t n_words; /* of every set of CPUs */
	uint32_t n_pools, root;
	struct pool *pools;
	uint64_t *words; /* all sets of all pools */
	uint32_t n_mem_groups;
	struct rp_idset online, allowed, isolated, reserved;
	uint32_t *thread_of; /* by CPU: the lowest CPU of its core; RP_IDSET_NONE: not online */
	uint32_t *node_of; /* by CPU: its node's number */
	uint32_t mem_types; /* on the machine */
	bool cold_start; /* memory types allow it */
	uint32_t burstable_level;
	struct rp_idset prio_cpus[3]; /* by priority, as pools are compared */
	struct memory_group
		*groups; /* of the pools by their memory; answers of the running question */
	/* Scratch, by pool. */
	int64_t *room;
	double *affinity, *weight;
};

/* The machine is read anew. past->hotplug: what worked once goes on with the CPUs that are left.
 * The plan takes over the settings if it succeeds. */
int32_t plan_new(const struct modhost *h, const struct settings *s, const struct reserve_past *past,
		 struct rp_plan **ret);
struct rp_plan *plan_free(struct rp_plan *p); /* returns NULL */
/* Another set of reserved CPUs for a plan that nobody has used yet. */
int32_t plan_reserve(const struct modhost *h, struct rp_plan *p, const struct reserve_past *past);
/* What it reserves, for the plan that comes after it. */
void plan_past(const struct rp_plan *p, struct reserve_past *ret);

static inline struct rp_ids plan_ids(const struct rp_plan *p, const uint64_t *set)
{
	return (struct rp_ids){set, p->n_words, 0};
}

/* ---- hints (hints.c) ------------------------------------------------------------------------- */

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

/* ---- grants (ledger.c) ----------------------------------------------------------------------- */

#define GRANT_ZERO 0x01u /* asks for nothing, but is promised a CPU to share */
#define GRANT_HIDE_THREADS 0x02u
#define GRANT_PRESERVE_MEM 0x04u
#define GRANT_MEMORY 0x08u /* has a request in the memory allocator */
#define GRANT_OVERFLOW 0x10u /* on the reserved CPUs for want of shared ones */
#define GRANT_MISPLACED 0x20u /* could not be placed as it asks for */
#define GRANT_COLD 0x40u /* has no DRAM yet */
#define GRANT_ODD_SHARES 0x80u /* shares do not follow from its CPUs */

struct irq_ask;

struct namespace
{
	struct namespace *next;
	uint32_t n_users;
	uint32_t *n_grants; /* by pool */
	char name[];
};

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
	struct namespace *ns;
	char *reason; /* of MISPLACED and OVERFLOW */
	/* Links. */
	bool in, queued;
	struct grant *pod_next, *pod_prev, *pool_next, **pool_link;
};

struct ledger_entry {
	struct grant *grant;
	bool added;
};

struct ledger {
	struct table by_ctr; /* struct grant */
	struct table by_pod; /* its first grant */
	uint32_t n_grants, n_waiting; /* waiting: OVERFLOW or MISPLACED */
	uint32_t n_cold;
	struct namespace *namespaces;
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
struct grant *ledger_first_of_pod(const struct rp_instance *inst, rp_pod pod);

struct grant *grant_new(struct rp_instance *inst, const struct rp_ctr_info *info);
struct grant *grant_copy(struct rp_instance *inst, const struct grant *g);
struct grant *grant_free(struct rp_instance *inst, struct grant *g); /* returns NULL */

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

/* ---- what a container wants (request.c) ------------------------------------------------------ */

#define REQUEST_WHY_MAX 200u

struct request {
	struct rp_ctr_info info;
	struct needs needs;
	enum grant_type type;
	int64_t full, fraction;
	bool isolate, strict_isolated, hide_threads, zero;
	enum cpualloc_prio prio;
	uint32_t level; /* of unlimited Burstable containers */
	uint32_t mem_types;
	int64_t mem_size;
	bool mem_preserve, colocate_pod, colocate_ns;
	uint64_t cold_ms;
	struct hints *hints;
	bool strict_hints, pick_by_hints;
	uint32_t class; /* of its exclusive CPUs; CPUCLASS_NONE */
	int32_t sched; /* or SCHEDCLASS_NONE */
	struct irq_ask *irq;
	uint32_t pool_hint; /* NO_POOL */
	const struct grant *had; /* until now, when this is a resize; NULL */
	bool weighted; /* plan.affinity is of use */
	bool selective, averse; /* it has affinities of its own; some are against others */
	rp_cfg decided_at;
	char why[REQUEST_WHY_MAX];
};

/*
 * 0, or an error that refuses the container. `known`: hints from an earlier time, when its devices
 * were known; NULL: there are none, they are made now.
 */
int32_t request_read(struct rp_instance *inst, const struct rp_ctr_info *info, struct hints *known,
		     struct request *ret);
void request_fini(struct request *r);
/* A boolean annotation: `fallback` when it is not there or makes no sense. */
bool request_bool(struct rp_instance *inst, rp_ctr ctr, const char *key, bool fallback,
		  uint32_t *ret_scope);

/* ---- affinity (affinity.c) ------------------------------------------------------------------- */

/* Fills plan.affinity, by pool. r->weighted tells whether there was anything to count. */
int32_t affinity_weigh(struct rp_instance *inst, struct request *r);

/* ---- hints (hints.c) ------------------------------------------------------------------------- */

/* From devices, mounts and annotations of a container that is being created. NULL: none. */
int32_t hints_make(struct rp_instance *inst, const struct rp_ctr_info *info, struct hints **ret);
struct hints *hints_ref(struct hints *h);
struct hints *hints_unref(struct hints *h); /* returns NULL; NULL is fine */
/* Adds one; sets may be empty. -RP_ENOMEM; -RP_E2BIG: too many. */
int32_t hints_add(struct hints **h, const char *provider, struct rp_ids cpus, struct rp_ids nodes,
		  struct rp_ids sockets);
/* 0 … 1 for one hint. */
double hint_score(const struct rp_plan *p, uint32_t pool, const struct hint *h);
/* Product of all scores, and of those that are not zero (0: all are). */
void hints_score(const struct rp_plan *p, uint32_t pool, const struct hints *h, double *ret_all,
		 double *ret_some);
/* The first hint that a set of CPUs is not within; NULL: it is within all. */
const struct hint *hints_violated(const struct rp_plan *p, const struct hints *h,
				  struct rp_ids cpus);
const struct hint *hints_memory_violated(const struct rp_plan *p, const struct hints *h,
					 memalloc_mask zone);

/* ---- which pool (score.c) -------------------------------------------------------------------- */

struct score {
	uint32_t pool;
	bool unusable; /* no memory, nothing to share, or nothing left for others to share */
	bool preferred; /* its exclusive CPUs would be where their class likes them */
	int64_t isolated, shared; /* what would be left */
	double hint_all, hint_some;
	const struct memory_group *memory;
};

struct scoring {
	struct score best;
	struct score second; /* pool NO_POOL: there was one pool only */
	const char *rule; /* what the best one is better by */
};

/* Compares all pools. affinity_weigh() goes before. */
void score_pools(struct rp_instance *inst, const struct request *r, struct scoring *ret);
/* One of them, after score_pools(). */
void score_pool(struct rp_instance *inst, const struct request *r, uint32_t pool,
		struct score *ret);
bool score_sufficient(const struct request *r, const struct score *s);
/* Is `to` so much better for one that runs at `from` that it should move? By what it is, not by who
 * else is there; `spread`: also as more is left there. ret_rule: what decides. After
 * score_pools(). */
bool score_worth_moving(struct rp_instance *inst, const struct request *r, const struct score *to,
			const struct score *from, bool spread, const char **ret_rule);
/* What the memory allocator is asked for; false: the pool has none of the types. */
bool memory_request(const struct rp_plan *p, const struct request *r, uint32_t pool,
		    struct memalloc_request *ret);

/* ---- one container (place.c) ----------------------------------------------------------------- */

/* Gives a container its place in the ledger. 0, or an error with its text said and the ledger
 * changed only as far as the log can take back. */
int32_t place(struct rp_instance *inst, const struct request *r, struct grant **ret);
/* The same at the root with whatever is left, for one that runs already and cannot be placed. */
int32_t place_anyhow(struct rp_instance *inst, const struct request *r, const char *reason,
		     struct grant **ret);
/* A resize: takes `old` out and places anew. */
int32_t place_again(struct rp_instance *inst, struct request *r, struct grant *old,
		    struct grant **ret);
/* Takes a grant out of ledger and memory. */
void place_release(struct rp_instance *inst, struct grant *g);

/* ---- into the transaction (stage.c) ---------------------------------------------------------- */

/* Everything about one container; what it has already is not staged. */
int32_t stage_grant(struct rp_instance *inst, rp_txn txn, const struct grant *g);
/* Those whose shared CPUs or memory have changed in this callback, but for one. */
int32_t stage_others(struct rp_instance *inst, rp_txn txn, rp_ctr except);
/* Notes the zone changes of the memory allocator's last call for stage_others(). */
int32_t stage_note_moves(struct rp_instance *inst);
/* The CPUs a grant has now. */
void stage_cpus(const struct rp_plan *p, const struct grant *g, struct rp_idset *ret);

/* ---- classes (classes.c), interrupts (interrupts.c), cold start (coldstart.c) ---------------- */

/* Scheduling class and CPU class of a container. */
int32_t classes_of(struct rp_instance *inst, struct request *r);
/* The scheduling class of one that is being created. */
int32_t classes_stage_sched(struct rp_instance *inst, rp_txn txn, const struct request *r);
/* A new configuration is in force. */
int32_t classes_configure(struct rp_instance *inst);
/* Brings CPUs and interrupts in line with the ledger, if something has changed. */
void classes_apply(struct rp_instance *inst);
/* Narrows the CPUs that exclusive ones are to come from, as their class likes it. True: they would
 * be where it prefers them. */
bool classes_narrow(struct rp_instance *inst, const struct request *r, struct rp_idset *from);
void classes_stop(struct rp_instance *inst);
void classes_timer(struct rp_instance *inst, uint64_t cookie);
extern const struct rp_extended ta_extended;
int32_t interrupts_read(struct rp_instance *inst, struct request *r);
void interrupts_apply(struct rp_instance *inst);
struct irq_ask *irq_ask_ref(struct irq_ask *a);
struct irq_ask *irq_ask_unref(struct irq_ask *a);

int32_t cold_read(struct rp_instance *inst, rp_ctr ctr, uint64_t *ret_ms);
int32_t cold_started(struct rp_instance *inst, rp_txn txn, rp_ctr ctr);
int32_t cold_timer(struct rp_instance *inst, rp_txn txn);
/* Sets the timer to the next end. */
void cold_arm(struct rp_instance *inst);

/* ---- what is kept with a container (record.c) ------------------------------------------------ */

struct record_bytes {
	uint32_t size;
	uint8_t data[RP_PRIVATE_MAX];
};
void record_make(struct rp_instance *inst, const struct grant *g, struct record_bytes *ret);
/* Is this what is kept already? */
bool record_is_kept(struct rp_instance *inst, rp_ctr ctr, const struct record_bytes *rec);
struct record {
	enum grant_type type;
	uint32_t pool; /* NO_POOL: there is none of that name any more */
	uint32_t flags;
	int64_t portion, shares_mcpu, mem_size;
	uint32_t mem_types;
	memalloc_mask zone;
	struct rp_idset exclusive;
	uint64_t cold_ms, cold_until;
	struct needs needs;
	struct hints *hints;
};
/* 0, -RP_ENOENT: nothing that this version wrote, -RP_ENOMEM. hints are the caller's. */
int32_t record_read(struct rp_instance *inst, rp_ctr ctr, struct record *ret);

/* ---- everything at once (sync.c) ------------------------------------------------------------- */

int32_t sync_all(struct rp_instance *inst, rp_txn txn);
/* After CPUs came free: places those that had to make do with something else. */
int32_t sync_retry(struct rp_instance *inst, rp_txn txn);

/* ---- better places (rebalance.c) ------------------------------------------------------------- */

/* Moves at most `budget` containers (0: any number). */
int32_t rebalance_all(struct rp_instance *inst, rp_txn txn, uint64_t budget);
/* One that has begun to lack something (RP_PRESSURE_…). */
int32_t rebalance_one(struct rp_instance *inst, rp_txn txn, rp_ctr ctr, uint64_t lacks);

/* ---- reports (report.c) ---------------------------------------------------------------------- */

extern const struct rp_zones ta_zones;
extern const struct rp_metrics ta_metrics;
extern const struct rp_state ta_state;
void report_choice(struct rp_instance *inst, const struct request *r, const struct scoring *s);
void report_grant(struct rp_instance *inst, const struct request *r, const struct grant *g);

/* ---- the instance (ta.c) --------------------------------------------------------------------- */

struct counters {
	uint64_t placed, refused, resized, misplaced, overflowed, rebalanced;
};

struct rp_instance {
	LIFE;
	struct ledger ledger;
	struct counters counters;
	bool resync; /* the running callback cannot be undone from the log */
	bool replaced; /* another plan was in force before */
	bool memory_begun;
	uint32_t n_adopted; /* containers that keep what somebody else had given them */
	rp_ctr rebalance_from; /* where the next rebalancing goes on; 0: at the first container */
	/* Containers whose memory zone has changed in this callback. */
	rp_ctr *moved;
	uint32_t n_moved, cap_moved;
	/* Of walks that place containers one after the other, which walks over others do. */
	struct ctr_list order;
	struct reserve_past
		remembered; /* of the daemon's former run, until the first configuration */
	uint8_t saved[RESERVE_SAVED_MAX]; /* what save() hands out */
	struct cpuclass *classes;
	struct irq *irqs;
	bool irqs_used;
	char why[MODHOST_TEXT_MAX]; /* of the last failure */
};

#endif
