/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The qos policy: pods say how well they want to be served, in four levels.
 *
 *	dedicated_cores  CPUs of its own on NUMA nodes that hints choose; an exclusive pod has its
 *                       nodes to itself
 *	shared_cores     a pool, as large as its pods ask for; with binding one for each node
 *	reclaimed_cores  what the pools leave
 *	system_cores     the pools that it names, else all CPUs
 *
 * A pod is its main container: that one is placed, sidecars have what it has. What was decided of a
 * container is kept with it in the host's cache; `struct table` is an index over that, and pools
 * are worked out from the table as a whole.
 *
 *	config.c  section and machine → plan       hints.c  which nodes suit a pod
 *	ask.c     what a pod asks for              place.c  what one container gets
 *	admit.c   pods before their containers
 *	table.c   who is there                     stage.c  into the transaction
 *	take.c    which CPUs of a set sync.c everything at once, those that wait, ramp-up
 *	pools.c   how large pools are, and where   env.c    environment
 *	level.c   what else a level sets           report.c zones, metrics
 *	advise.c  pools by what is used            qos.c    the callbacks
 */
#ifndef QOS_QOS_H
#define QOS_QOS_H

#include <stdbool.h>
#include <stddef.h>

#include <nri-rp/policy.h>

#include "modules/lib/blocks.h"
#include "modules/lib/ctr.h"
#include "modules/lib/hints.h"
#include "modules/lib/life.h"
#include "modules/lib/line.h"
#include "modules/lib/machine.h"
#include "modules/lib/owners.h"

#define SET_TEXT_MAX 256u
#define POOL_NAME_MAX 63u
#define POOLS_MAX 256u /* at a time: their names are those of annotations */
#define NODES_MAX 64u /* numbers of NUMA nodes are below this: sets of them are words */
#define SHARE_POOL "share"

enum level { LEVEL_DEDICATED, LEVEL_SHARED, LEVEL_RECLAIMED, LEVEL_SYSTEM, N_LEVELS };
extern const char *const level_names[N_LEVELS];

/* ---- configuration (config.c) ---------------------------------------------------------------- */

enum spreading { SPREADING, PACKING, DYNAMIC_PACKING };
enum quota { QUOTA_AS_IS, QUOTA_NONE, QUOTA_LIMIT, QUOTA_BURST };

enum { CLASS_RDT, CLASS_BLOCKIO, CLASS_CPU, N_CLASSES };

/* What a level sets beyond CPUs and memory nodes. */
struct level_settings {
	bool any; /* quota or a class */
	enum quota quota;
	int64_t burst; /* percent of the limit */
	double memory_low, memory_high; /* of the request, of the limit; 0: not set */
	const char *classes[N_CLASSES]; /* "": not set */
};

struct env {
	const char *name, *value;
	uint32_t levels; /* bits of the levels that have it */
	bool override;
};

struct node {
	uint32_t id, unit, socket; /* unit, socket: indexes of the machine's */
	struct rp_idset cpus; /* but for reserved ones */
	uint32_t n_cpus;
	uint64_t memory; /* bytes */
};

struct rp_plan {
	rp_cfg section;
	bool reclaim, overlap, pin_cpu, pin_memory, memory_check;
	bool parity; /* of NUMA nodes that suit dedicated pods alike the lowest is chosen */
	int64_t ramp_up_ms;
	enum spreading spreading;
	double low_threshold;
	enum hints_policy topology;
	bool numeric_cpu, numeric_memory;
	uint32_t min_reclaimed;
	bool advise; /* pools are as large as what is used of them */
	int64_t advise_reserve; /* milli-CPU */
	uint64_t advise_period_ms;
	struct blocks memory;
	struct texts debug;
	struct env *envs;
	uint32_t n_envs;
	struct level_settings levels[N_LEVELS];

	struct machine *machine;
	struct rp_idset reserved, pool; /* pool: what is not reserved */
	struct rp_idset listed; /* named by reservedCPUs, online or not */
	struct node *nodes; /* those with CPUs, by number */
	uint32_t n_nodes, node_cpus; /* node_cpus: CPUs of a node, on average, rounded up */
	uint32_t n_sockets, socket_cpus, socket_nodes;
	uint64_t node_mask; /* their numbers */
};

extern const struct rp_schema qos_schema;
int32_t plan_new(const struct modhost *h, rp_cfg section, const struct reserve_past *past,
		 struct rp_plan **ret);
struct rp_plan *plan_free(struct rp_plan *p); /* returns NULL */
/* May it follow another one, with these CPUs dedicated? -RP_EBUSY with a message. */
int32_t plan_check_owners(const struct modhost *h, const struct rp_plan *p, struct rp_ids taken);
/* CPUs of a set of nodes, but for reserved ones. */
void plan_cpus_of(const struct rp_plan *p, uint64_t nodes, struct rp_idset *ret);
/* A default of a key of an enhancement; NULL: none. */
const char *plan_default(const struct modhost *h, const struct rp_plan *p, const char *key);

/* ---- what a pod asks for (ask.c) ------------------------------------------------------------- */

#define ASK_BOUND 0x01u
#define ASK_EXCLUSIVE 0x02u
#define ASK_ALONE 0x04u /* numa_share "false" */
#define ASK_ALIGN_SOCKET 0x08u
#define ASK_EVEN 0x10u
#define ASK_PAIRING 0x20u
#define ASK_LOST 0x40u /* it could not be placed, and runs on what is nobody's own */
#define ASK_WAITS 0x80u /* a sidecar whose main container has not come yet */
/* a grant whose main container is there, and in the table in its place */
#define ASK_USED 0x100u

struct ask {
	enum level level;
	uint32_t flags;
	char pool[POOL_NAME_MAX + 1]; /* "": not named */
	uint32_t numa_number; /* 0: not given */
	uint64_t numa_ids, wished; /* 0: not given */
	/* the nodes that it has to have, as it had them before; 0: any that suit */
	uint64_t granted;
	int64_t cpu, mem; /* milli-CPU, bytes */
	rp_pod admitted; /* the pod that is being admitted; 0: none is */
	const char *burst_policy; /* NULL: not given */
	int64_t burst_percent;
	const char *not_followed[4]; /* keys that nothing here acts by; NULL: no more */
};

/* Whole CPUs for a request: one at least, as none would mean any. */
static inline uint32_t ask_whole(int64_t mcpu)
{
	if (mcpu > 1000 * (int64_t)RP_CPUS_MAX)
		return RP_CPUS_MAX + 1;
	return mcpu > 0 ? (uint32_t)((mcpu + 999) / 1000) : 1;
}

/* 0, or -RP_EINVAL and another error with a message. */
int32_t ask_read(struct rp_instance *inst, rp_pod pod, struct ask *ret);
/* What the pod as a whole is to be counted with; 0: not said. */
int32_t ask_aggregated(struct rp_instance *inst, rp_pod pod, int64_t *ret_cpu, int64_t *ret_mem);
/* A pod that is neither admitted nor pinned, and why; NULL: it is none. */
int32_t ask_for_nothing(struct rp_instance *inst, rp_txn txn, rp_pod pod, const char **ret_why);
int64_t ask_memory(int64_t request, int64_t limit);
/* A pod's main container, if the cluster has told of it. */
#define MAIN_KEY "kubernetes.io/main-container-name"
bool ask_main(const struct rp_instance *inst, rp_pod pod, struct rp_pod_ctr_info *ret);

/* ---- who is there (table.c) ------------------------------------------------------------------ */

enum role {
	ROLE_MAIN,
	ROLE_SIDECAR,
	ROLE_INIT,
	ROLE_GRANT,
	N_ROLES
}; /* ROLE_GRANT: a pod's (admit.c) */

/* What is kept with a container. */
struct record {
	uint32_t version;
	uint16_t level, role;
	uint32_t flags; /* ASK_… */
	uint32_t set; /* SET_…: by its level */
	int64_t cpu, mem;
	uint64_t nodes; /* chosen by hints, by their numbers; 0: none */
	int64_t ramp_end_ms; /* wall clock; 0: it is where it belongs */
	uint64_t uid; /* a hash of its pod's; of grants, and main containers that used one */
	char pool[POOL_NAME_MAX + 1];
	uint64_t mem_nodes; /* likewise for memory; since version 2 */
};
#define RECORD_VERSION 2u
#define RECORD_1_SIZE offsetof(struct record, mem_nodes)

#define SET_QUOTA 0x1u
#define SET_RDT 0x2u
#define SET_BLOCKIO 0x4u
#define SET_CPU_CLASS 0x8u
#define SET_LOOSE 0x10u /* pinCPU was off: its CPUs in the cache are not the dedicated ones */

struct entry {
	rp_ctr ctr; /* 0: of a grant */
	rp_pod pod;
	bool changed; /* it has to be staged, whatever the pools are */
	struct record is;
};

/* What an entry is looked for by: of thousands of them these are a part of the bytes. */
struct key {
	rp_pod pod;
	rp_ctr ctr; /* 0: of a grant */
	uint64_t uid; /* of a grant and of a main container that had one; else 0 */
};

struct table {
	struct entry *list; /* by creation */
	struct key *keys; /* of the entries, one each */
	uint32_t n, cap;
};

/* Whoever has a record in the cache; dedicated CPUs go to the owners. Errors of the host. */
int32_t table_load(struct rp_instance *inst);
struct entry *table_find(const struct rp_instance *inst, rp_ctr ctr);
/* The next one of a pod, the latest first: *at is 0 at first. NULL: there is none. Whoever is asked
 * for has often come last. */
struct entry *table_next(const struct rp_instance *inst, rp_pod pod, uint32_t *at);
/* The main container of a pod; NULL: it is not there. */
struct entry *table_main(const struct rp_instance *inst, rp_pod pod);
struct entry *table_grant(const struct rp_instance *inst, rp_pod pod);
/* The next grant, or main container that used one, from *at on whose pod may have this UID, by its
 * hash; *at is moved behind it. */
struct entry *table_of_uid(const struct rp_instance *inst, uint64_t uid, uint32_t *at);
int32_t table_add(struct rp_instance *inst, const struct entry *e);
void table_remove(struct rp_instance *inst, struct entry *e);
bool table_has_pod(const struct rp_instance *inst, rp_pod pod);
bool record_is_sound(const struct record *rec);
bool record_read(const struct rp_instance *inst, rp_ctr ctr, struct record *ret);

static inline bool entry_counts(const struct entry *e)
{
	return e->is.role == ROLE_MAIN && !(e->is.flags & ASK_LOST);
}

/* ---- which CPUs of a set (take.c) ------------------------------------------------------------ */

/* Each adds n CPUs of `from`, all of them when there are fewer, to `ret`, and takes them out of
 * `from`. `last`: the highest ones. */
void take_threads(const struct rp_plan *p, struct rp_idset *from, uint32_t n, bool last,
		  struct rp_idset *ret);
void take_cores(const struct rp_plan *p, struct rp_idset *from, uint32_t n, bool last,
		struct rp_idset *ret);
void take_topology(const struct rp_plan *p, struct rp_idset *from, uint32_t n,
		   struct rp_idset *ret);

/* ---- pools (pools.c) ------------------------------------------------------------------------- */

struct pool {
	char name[POOL_NAME_MAX + 1];
	uint64_t node; /* its bit; 0: not bound */
	int64_t request; /* milli-CPU of main containers */
	uint32_t size;
	struct rp_idset cpus;
};

struct pools {
	struct pool list[POOLS_MAX]; /* by node, those that are not bound last; then by name */
	uint32_t n;
	struct rp_idset open; /* neither reserved nor dedicated */
	struct rp_idset common; /* of that, nodes without bound pools: where pods ramp up */
	struct rp_idset reclaim;
	struct rp_idset unbound_reclaim; /* of that, for reclaimed pods that are not bound */
	/* Nodes of pods that are bound, by level; those of them that are exclusive. */
	uint64_t shared, dedicated, reclaimed, exclusive;
	bool overlapping; /* somebody runs on dedicated CPUs */
	int64_t next_ramp_ms; /* when the next of those that ramp up is done; 0: none does */
	uint64_t digest; /* of all this */
};

/* From the table and the owners. -RP_E2BIG: too many pools. */
int32_t pools_make(struct rp_instance *inst);
/* The pool of a container of shared_cores; NULL: there is none. */
const struct pool *pools_of(const struct rp_instance *inst, const struct record *rec);
/* How a pool is called: its name, of bound ones with the node. */
#define POOL_TEXT_MAX (POOL_NAME_MAX + 16u)
const char *pool_text(const struct pool *p, char text[POOL_TEXT_MAX]);
/* The one that a container belongs to; "": none. */
const char *pool_text_of(const struct record *rec, char text[POOL_TEXT_MAX]);

/* ---- pools by what is used (advise.c) -------------------------------------------------------- */

#define RAMP_TIMER 1u
#define ADVISE_TIMER 2u

struct advice {
	char pool[POOL_NAME_MAX + 1];
	uint32_t size, wanted; /* CPUs; wanted: as soon as it may be */
	int64_t used, load; /* milli-CPU; used RP_NOT_SET: nothing was measured */
};

/* How large a pool is that `asked` CPUs are asked for. */
uint32_t advise_size(const struct rp_instance *inst, const struct pool *p, uint32_t asked);
/* From the CPUs that containers have. */
void advise_learn(struct rp_instance *inst);
void advise_arm(struct rp_instance *inst);
int32_t advise_now(struct rp_instance *inst, rp_txn txn);

/* ---- hints of resource plugins (others.c) ---------------------------------------------------- */

/* Besides CPUs and memory; what is more is not looked at. */
#define OTHERS_MAX (HINTS_RESOURCES_MAX - 2u)

struct other {
	uint32_t list; /* the host's number of it */
	const char *resource;
	struct hints is;
	struct hint hints[HINTS_MAX];
};

/* Of the pod that is being admitted. */
struct others {
	uint32_t n_lists; /* all that the host has, of all containers */
	uint32_t n;
	struct other list[OTHERS_MAX]; /* those of the main container, or of the pod as a whole */
};

/* NULL: there are none, or the pod is not being admitted. */
int32_t others_of(const struct rp_instance *inst, rp_pod pod, struct others **ret);
struct others *others_free(struct others *o); /* NULL is fine; returns NULL */
/* The plugins are told: a result for each of list, and `pods` for those of other containers. */
void others_choose(const struct rp_instance *inst, rp_pod pod, const struct others *o,
		   const struct hint *results, const struct hint *pods);
/* Merges them alone, for pods that are bound to no nodes. */
int32_t others_merge(struct rp_instance *inst, rp_pod pod);
/* own: "CPUs and memory", ""; o: may be NULL. -RP_ENOSPC. */
int32_t others_refuse(struct rp_instance *inst, const struct others *o, const char *own);

/* ---- hints (hints.c) ------------------------------------------------------------------------- */

/* What others leave of the machine. */
struct room {
	uint64_t bound, dedicated,
		exclusive; /* nodes by who is on them; bound: shared and dedicated pods */
	uint64_t refused; /* nodes of which this pod or a neighbour wants no other one */
	int64_t unbound_cpu, unbound_mem; /* that unbound shared pods ask for */
	int64_t bound_cpu[NODES_MAX]; /* that bound shared pods ask for; by index of the node */
	uint64_t mem_free[NODES_MAX];
	struct rp_idset free; /* neither reserved nor dedicated */
	int64_t unbound_cpus; /* of nodes without bound pods */
};

/* Without the pod itself. */
void room_of(const struct rp_instance *inst, rp_pod but, const struct ask *a, struct room *ret);
/* What of each node's memory is counted as this entry's; by index of the node. */
void room_memory_of(const struct rp_instance *inst, const struct entry *of,
		    uint64_t ret[NODES_MAX]);
/* Chooses the nodes for a pod (rec->nodes, mem_nodes), or finds that it fits where none is chosen
 * (0). -RP_ENOSPC and -RP_EINVAL with a message. ctr: whose trail it is told in; 0: nobody's. */
int32_t hints_choose(struct rp_instance *inst, rp_ctr ctr, const struct ask *a,
		     const struct room *room, struct record *rec);

/* ---- pods before their containers (admit.c) -------------------------------------------------- */

#define MAIN_NAME_MAX 63u

/* Reserves what the pod asks for as a whole; an error refuses it. */
int32_t admit_pod(struct rp_instance *inst, rp_txn txn, rp_pod pod);
/* The grants that the host has, into the table. */
int32_t admit_load(struct rp_instance *inst);
/* What is kept of a pod; false: nothing. */
bool admit_grant(const struct rp_instance *inst, rp_pod pod, struct record *ret);
/* hints_choose() in the room that others leave, with the nodes of a former grant (may be NULL) if
 * they do. */
int32_t admit_choose(struct rp_instance *inst, rp_ctr ctr, const struct ask *a,
		     const struct record *former, rp_pod but, struct record *rec);
/* The main container has come, and is counted in place of the grant; has gone, and what it had
 * stays granted. */
int32_t admit_use(struct rp_instance *inst, rp_txn txn, struct entry *main, const char *name);
int32_t admit_unuse(struct rp_instance *inst, rp_txn txn, rp_pod pod);
int32_t admit_end(struct rp_instance *inst, rp_txn txn, rp_pod pod);
/* The name of the main container that the pod had; "". */
const char *admit_main(const struct rp_instance *inst, rp_pod pod, char name[MAIN_NAME_MAX + 1]);
/* At sync: grants of nodes that are gone, or of containers that nobody told of. */
int32_t admit_check(struct rp_instance *inst, rp_txn txn);

/* ---- what one container gets (place.c) ------------------------------------------------------- */

/* A container that has no entry yet gets one. `ramp`: it is new, and ramps up. */
int32_t place_new(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info, bool ramp);
/* The container asks for other amounts. */
int32_t place_resize(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
		     struct entry *e);
/* It runs on what is nobody's own, until there is room. */
int32_t place_lost(struct rp_instance *inst, const struct rp_ctr_info *info);
/* One that is lost is placed, if there is room. */
/* Chooses dedicated CPUs for pods that own none as pinCPU was off when they came. */
void place_loose(struct rp_instance *inst);
int32_t place_again(struct rp_instance *inst, rp_txn txn, struct entry *e);
/* -RP_ENOSPC with a message: the pools leave somebody without CPUs. */
int32_t place_check(struct rp_instance *inst);

/* ---- into the transaction (stage.c) ---------------------------------------------------------- */

/* What the entry has, by the pools; empty: it is not pinned. */
void stage_cpus_of(const struct rp_instance *inst, const struct entry *e, struct rp_idset *ret);
void stage_mems_of(const struct rp_instance *inst, const struct entry *e, struct rp_idset *ret);
/* Makes the pools again and stages all containers that this changes. */
int32_t stage_all(struct rp_instance *inst, rp_txn txn);
/* The same for a request or another configuration, which place_check() may refuse. What has
 * happened already, as CPUs that went offline and containers that ended, cannot be refused. */
int32_t stage_checked(struct rp_instance *inst, rp_txn txn);

/* ---- everything at once (sync.c) ------------------------------------------------------------- */

int32_t sync_all(struct rp_instance *inst, rp_txn txn);
/* Something came free: the lost are tried again. */
int32_t sync_retry(struct rp_instance *inst, rp_txn txn);
/* Those whose time has come move to their pools. */
int32_t sync_ramp(struct rp_instance *inst, rp_txn txn);
/* A timer for the next one of them. */
void sync_arm(struct rp_instance *inst);
int64_t sync_now_ms(void); /* wall clock: times are kept over restarts */

/* ---- environment (env.c) --------------------------------------------------------------------- */

/* "": it is fine; else the placeholder that is not known. */
const char *env_unknown(const char *value);
int32_t env_stage(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
		  const struct entry *e);

/* ---- what else a level sets (level.c) -------------------------------------------------------- */

/* Quota and classes, which follow a resize and another configuration. */
int32_t level_stage(struct rp_instance *inst, rp_txn txn, rp_ctr ctr, struct record *rec);
/* Files of its cgroup, which come with its creation alone, and what is said of the rest. */
int32_t level_begin(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
		    const struct ask *a);

/* ---- the instance (qos.c) -------------------------------------------------------------------- */

enum refusal {
	REFUSED_LEVEL,
	REFUSED_CPU,
	REFUSED_MEMORY,
	REFUSED_HINTS,
	REFUSED_OTHER,
	N_REFUSALS
};

struct counters {
	uint64_t placed[N_LEVELS], refused[N_REFUSALS];
};

/* What cannot be worked out from containers. */
struct past {
	bool sized; /* pools have been sized since the node was empty */
	bool overlap; /* reclaim is that of the overlap mode */
	struct rp_idset reclaim;
};

struct rp_instance {
	LIFE;
	struct owners owners; /* of dedicated CPUs; an owner is a pod */
	struct table table;
	struct pools pools;
	struct past past, past_before; /* before: this callback */
	uint64_t staged; /* the digest of the pools that all have */
	int64_t armed_ms; /* when the timer goes off; 0: it does not */
	int64_t fired_ms; /* the time for which it went off last */
	const struct rp_host_usage *usage; /* NULL: the host has none */
	struct advice advice[POOLS_MAX];
	uint32_t n_advice;
	uint32_t n_blind; /* periods in a row without a measurement */
	struct counters counters;
	rp_pod *pods; /* scratch, for n_pods of them */
	uint32_t n_pods;
	uint8_t saved[16 + sizeof(struct rp_idset)]; /* for the host */
};

/* ---- reports (report.c) ---------------------------------------------------------------------- */

void report_allocatable(const struct rp_instance *inst, struct rp_idset *ret);
int32_t report_memory(struct rp_instance *inst, rp_ctr ctr, const struct rp_memory_sink *sink);
extern const struct rp_zones qos_zones;
extern const struct rp_metrics qos_metrics;

#endif
