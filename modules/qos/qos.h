/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The qos policy: pods request one of four levels of service.
 *
 *	dedicated_cores  exclusive CPUs on NUMA nodes chosen by hints; an exclusive pod has all CPUs
 *	                 of its nodes
 *	shared_cores     a pool sized by the requests of its pods; with binding, one pool per node
 *	reclaimed_cores  the CPUs that the pools leave
 *	system_cores     the pools that it names, else all CPUs
 *
 * A pod is represented by its main container: this one is placed, and sidecars use its CPUs. The
 * decision for a container is saved with it in the host's cache. `struct table` is an index over
 * these records, and pools are computed from the whole table.
 *
 *	config.c  section and machine → plan       hints.c  nodes for a pod
 *	ask.c     request of a pod                 others.c hints of resource plugins
 *	admit.c   pods before their containers     place.c  placement of one container
 *	table.c   containers and grants            stage.c  decisions into the transaction
 *	take.c    CPUs of a set                    sync.c   synchronization, retries, ramp-up
 *	pools.c   sizes and CPUs of pools          env.c    environment
 *	level.c   other settings of a level        report.c zones, metrics
 *	advise.c  sizes by usage                   relief.c room by moving other pods
 *	qos.c     the callbacks
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <nri-rp/policy.h>

#include <nri-rp/lib/blocks.h>
#include <nri-rp/lib/ctr.h>
#include "modules/lib/private/hints.h"
#include <nri-rp/lib/life.h>
#include "modules/lib/private/line.h"
#include <nri-rp/lib/machine.h>
#include <nri-rp/lib/owners.h>
#include <nri-rp/lib/relief_owned.h>

#define SET_TEXT_MAX 256u
#define POOL_NAME_MAX 63u
#define POOLS_MAX 256u /* largest number of pools at a time; their names come from annotations */
#define NODES_MAX 64u /* limit of node numbers: sets of nodes are 64-bit words */
#define SHARE_POOL "share"

enum level { LEVEL_DEDICATED, LEVEL_SHARED, LEVEL_RECLAIMED, LEVEL_SYSTEM, N_LEVELS };
extern const char *const level_names[N_LEVELS];

/* ---- configuration (config.c) ---------------------------------------------------------------- */

enum spreading { SPREADING, PACKING, DYNAMIC_PACKING };
enum quota { QUOTA_AS_IS, QUOTA_NONE, QUOTA_LIMIT, QUOTA_BURST };

enum { CLASS_RDT, CLASS_BLOCKIO, CLASS_CPU, N_CLASSES };

/* Settings of a level beyond CPUs and memory nodes. */
struct level_settings {
	bool any; /* true: a quota or a class is set */
	enum quota quota;
	int64_t burst; /* CPU burst in percent of the limit */
	double memory_low, memory_high; /* parts of the request and of the limit; 0: not set */
	/* names of the classes for containers of the level; "": not set */
	const char *classes[N_CLASSES];
};

struct env {
	const char *name, *value;
	uint32_t levels; /* levels that have the variable, as bits */
	bool override;
};

struct node {
	uint32_t id, unit, socket; /* unit, socket: indexes in the machine */
	struct rp_idset cpus; /* CPUs that are not reserved */
	uint32_t n_cpus;
	uint64_t memory; /* memory of the node in bytes */
};

struct rp_plan {
	rp_cfg section;
	rp_cfg defaults; /* enhancementDefaults of the section */
	uint32_t n_defaults;
	bool reclaim, overlap, pin_cpu, pin_memory, memory_check;
	struct relief_settings relief;
	bool parity; /* choose the lowest of NUMA nodes that suit a dedicated pod equally */
	int64_t ramp_up_ms;
	enum spreading spreading;
	double low_threshold;
	enum hints_policy topology;
	bool numeric_cpu, numeric_memory;
	uint32_t min_reclaimed;
	bool advise; /* the size of pools follows the measured usage */
	int64_t advise_reserve; /* CPUs that are reserved beyond the measured usage, in milli-CPU */
	uint64_t advise_period_ms;
	struct blocks memory;
	struct texts debug;
	struct env *envs;
	uint32_t n_envs;
	struct level_settings levels[N_LEVELS];

	struct machine *machine;
	struct rp_idset reserved, pool; /* pool: CPUs that are not reserved */
	struct rp_idset listed; /* CPUs named by reservedCPUs, online or not */
	struct node *nodes; /* nodes with CPUs, by number */
	uint32_t n_nodes, node_cpus; /* node_cpus: average number of CPUs of a node, rounded up */
	uint32_t n_sockets, socket_cpus, socket_nodes;
	uint64_t node_mask; /* numbers of the nodes, as bits */
};

extern const struct rp_schema qos_schema;
/* ops.fill, ops.check and ops.plan_fini (life.h). */
int32_t plan_fill(struct rp_instance *inst, rp_cfg section, const struct reserve_past *past,
		  struct rp_plan *p);
int32_t plan_check(struct rp_instance *inst, struct rp_plan *p);
void plan_fini(struct rp_plan *p);
/* Stores the CPUs of a set of nodes that are not reserved. */
void plan_cpus_of(const struct rp_plan *p, uint64_t nodes, struct rp_idset *ret);
/* Returns the configured default of an enhancement's key; NULL: none. */
const char *plan_default(const struct modhost *h, const struct rp_plan *p, const char *key);

/* ---- requests of pods (ask.c) ---------------------------------------------------------------- */

#define ASK_BOUND 0x01u
#define ASK_EXCLUSIVE 0x02u
#define ASK_ALONE 0x04u /* numa_share "false" */
#define ASK_ALIGN_SOCKET 0x08u
#define ASK_EVEN 0x10u
#define ASK_PAIRING 0x20u
#define ASK_LOST 0x40u /* could not be placed, and runs on unassigned CPUs */
#define ASK_WAITS 0x80u /* a sidecar whose main container was not created yet */
/* grant whose main container was created; while that container is in the table, the grant is not */
#define ASK_USED 0x100u

struct ask {
	enum level level;
	uint32_t flags;
	char pool[POOL_NAME_MAX + 1]; /* name of the pool that the pod requests; "": none */
	uint32_t numa_number; /* number of NUMA nodes that the pod requests; 0: not specified */
	/* nodes that the pod requires, and nodes of its bind-result annotation, as bits; 0: not
	 * specified */
	uint64_t numa_ids, wished;
	/* nodes that the pod must get, because it had them before; 0: any */
	uint64_t granted;
	int64_t cpu, mem; /* requested milli-CPU and bytes of memory */
	rp_pod admitted; /* the pod that is being admitted; 0: none */
	const char *burst_policy; /* burst policy that the pod requests; NULL: not specified */
	int64_t burst_percent;
	/* keys of the pod that this policy does not support; NULL ends the list */
	const char *not_followed[4];
};

/* Returns a request in whole CPUs, at least one, as 0 would mean any number. */
static inline uint32_t ask_whole(int64_t mcpu)
{
	if (mcpu > 1000 * (int64_t)RP_CPUS_MAX)
		return RP_CPUS_MAX + 1;
	return mcpu > 0 ? (uint32_t)((mcpu + 999) / 1000) : 1;
}

/* Reads the request of a pod. Returns 0, -RP_EINVAL for a malformed annotation, or another error,
 * with a message. */
int32_t ask_read(struct rp_instance *inst, rp_pod pod, struct ask *ret);
/* Checks keys and values of enhancementDefaults. -RP_EINVAL with a message. */
int32_t ask_check_defaults(const struct modhost *h, const struct rp_plan *p);
/* Stores the amounts to count for the pod as a whole; 0: not specified. */
int32_t ask_aggregated(struct rp_instance *inst, rp_pod pod, int64_t *ret_cpu, int64_t *ret_mem);
/* Determines whether the pod is left unpinned and not admitted. *ret_why is the reason; NULL: it is
 * a normal pod. */
int32_t ask_for_nothing(struct rp_instance *inst, rp_txn txn, rp_pod pod, const char **ret_why);
int64_t ask_memory(int64_t request, int64_t limit);
/* Reads a pod's main container if the cluster has reported it. */
#define MAIN_KEY "kubernetes.io/main-container-name"
bool ask_main(const struct rp_instance *inst, rp_pod pod, struct rp_pod_ctr_info *ret);

/* ---- containers and grants (table.c) --------------------------------------------------------- */

enum role {
	ROLE_MAIN,
	ROLE_SIDECAR,
	ROLE_INIT,
	ROLE_GRANT,
	N_ROLES
}; /* ROLE_GRANT: the grant of a pod (admit.c) */

/* The data saved with a container. */
struct record {
	uint32_t version;
	uint16_t level, role;
	uint32_t flags; /* properties of the request, ASK_… */
	uint32_t set; /* SET_…: settings made by the level */
	int64_t cpu, mem;
	uint64_t nodes; /* numbers of the nodes chosen by hints, as bits; 0: none */
	int64_t ramp_end_ms; /* end of the ramp-up, wall clock; 0: none */
	uint64_t uid; /* hash of the pod's UID, for grants and for main containers that used one */
	char pool[POOL_NAME_MAX + 1];
	uint64_t mem_nodes; /* nodes for memory, as bits; since version 2 */
};
#define RECORD_VERSION 2u
#define RECORD_1_SIZE offsetof(struct record, mem_nodes)

#define SET_QUOTA 0x1u
#define SET_RDT 0x2u
#define SET_BLOCKIO 0x4u
#define SET_CPU_CLASS 0x8u
#define SET_LOOSE 0x10u /* pinCPU was off: the CPUs in the cache are not the dedicated ones */

/* Keys by which entries are found. Entries whose key is 0 are not found. */
enum chain { OF_POD, OF_CTR, OF_UID, N_CHAINS };

struct entry {
	rp_ctr ctr; /* container of the record; 0: the record is a grant of the pod */
	rp_pod pod;
	bool changed; /* the entry must be staged even if the pools are unchanged */
	/* Set by the table: is.uid when the entry was added; number by creation, ascending in the
	 * list; next entries of the hash chains. */
	uint64_t uid, number;
	struct entry *next[N_CHAINS];
	struct record is;
};

struct table {
	struct entry **list; /* entries sorted by creation */
	struct entry **chains; /* for each key n_chains hash chains, latest entry first */
	struct entry **bound; /* entries with nodes that count, by creation */
	uint32_t n, cap, n_chains, n_bound;
	uint32_t first_changed; /* entries before this index are unchanged */
	uint64_t last_number; /* number of the latest entry */
	bool summed; /* `bound` and the sums below were computed from the present entries */
	int64_t unbound_cpu, unbound_mem; /* requests of shared pods without nodes */
};

/* Loads all containers with a record in the cache, and assigns dedicated CPUs to their owners.
 * Errors are errors of the host. */
int32_t table_load(struct rp_instance *inst);
struct entry *table_find(const struct rp_instance *inst, rp_ctr ctr);
/* Returns the entry of a pod after this one, the latest first; NULL: the first, or none. */
struct entry *table_next(const struct rp_instance *inst, rp_pod pod, const struct entry *after);
/* Returns the main container of a pod; NULL: none. */
struct entry *table_main(const struct rp_instance *inst, rp_pod pod);
struct entry *table_grant(const struct rp_instance *inst, rp_pod pod);
/* Returns the next grant, or main container that used one, whose pod may have this UID (by its
 * hash), the latest first; NULL: the first, or none. */
struct entry *table_of_uid(const struct rp_instance *inst, uint64_t uid, const struct entry *after);
int32_t table_add(struct rp_instance *inst, const struct entry *e);
void table_remove(struct rp_instance *inst, struct entry *e);
/* Lets an entry be staged again. */
void table_mark(struct rp_instance *inst, struct entry *e);
/* Changes the requests of an entry, which is staged. */
void table_resize(struct rp_instance *inst, struct entry *e, int64_t cpu, int64_t mem);
/* Notes that an entry of the table was modified: it is staged, and the pools are counted again. */
void table_changed(struct rp_instance *inst, struct entry *e);
/* Replaces the record of an entry by the record of another entry of the same container. */
void table_replace(struct rp_instance *inst, struct entry *e, const struct entry *now);
/* Frees the memory of the table. */
void table_release(struct rp_instance *inst);
bool table_has_pod(const struct rp_instance *inst, rp_pod pod);
bool record_is_sound(const struct record *rec);
bool record_read(const struct rp_instance *inst, rp_ctr ctr, struct record *ret);

static inline bool entry_counts(const struct entry *e)
{
	return e->is.role == ROLE_MAIN && !(e->is.flags & ASK_LOST);
}

/* ---- CPUs of a set (take.c) ------------------------------------------------------------------ */

/* Moves n CPUs of `from`, or all if there are fewer, to `ret`. `last`: the highest
 * ones. */
void take_threads(const struct rp_plan *p, struct rp_idset *from, uint32_t n, bool last,
		  struct rp_idset *ret);
void take_cores(const struct rp_plan *p, struct rp_idset *from, uint32_t n, bool last,
		struct rp_idset *ret);
void take_topology(const struct rp_plan *p, struct rp_idset *from, uint32_t n,
		   struct rp_idset *ret);

/* ---- pools (pools.c) ------------------------------------------------------------------------- */

struct pool {
	char name[POOL_NAME_MAX + 1];
	uint64_t node; /* bit of the node; 0: not bound */
	int64_t request; /* requests of main containers in milli-CPU */
	uint32_t n; /* number of these containers */
	uint32_t size;
	struct rp_idset cpus;
};

struct pools {
	struct pool list[POOLS_MAX]; /* sorted by node, unbound pools last, then by name */
	uint32_t n;
	struct rp_idset open; /* neither reserved nor dedicated */
	/* open CPUs on nodes without bound pools, for containers in ramp-up */
	struct rp_idset common;
	struct rp_idset reclaim;
	struct rp_idset unbound_reclaim; /* reclaimed CPUs for unbound reclaimed pods */
	/* Nodes of bound pods by level, and nodes of exclusive pods. */
	uint64_t shared, dedicated, reclaimed, exclusive;
	/* Entries by level and node, and entries of exclusive pods by node, for the masks above. */
	uint32_t on_node[N_LEVELS + 1][NODES_MAX];
	/* n and request of the pools, masks and next_ramp_ms were computed from the present
	 * entries */
	bool counted;
	bool overlapping; /* a container runs on dedicated CPUs of another pod */
	int64_t next_ramp_ms; /* end of the next ramp-up; 0: none */
	uint64_t digest; /* digest of the sets and masks */
	uint64_t masks; /* digest of the masks, on which memory nodes depend */
	/* Digest from which the sets were computed; 0: the list of pools was changed. */
	uint64_t inputs;
};

/* Adds or removes the contribution of an entry that joins or leaves the table. */
void pools_count(struct rp_instance *inst, const struct entry *e, bool joins);
/* Computes the pools from the table and the owners. -RP_E2BIG: too many pools. */
int32_t pools_make(struct rp_instance *inst);
/* Returns the pool of a container of shared_cores; NULL: none. */
const struct pool *pools_of(const struct rp_instance *inst, const struct record *rec);
/* Writes the display name of a pool: its name, for bound ones with the node. */
#define POOL_TEXT_MAX (POOL_NAME_MAX + 16u)
const char *pool_text(const struct pool *p, char text[POOL_TEXT_MAX]);
/* Writes the display name of a container's pool; "": none. */
const char *pool_text_of(const struct record *rec, char text[POOL_TEXT_MAX]);

/* ---- sizes by usage (advise.c) --------------------------------------------------------------- */

#define RAMP_TIMER 1u
#define ADVISE_TIMER 2u

struct advice {
	char pool[POOL_NAME_MAX + 1];
	uint32_t size, wanted; /* CPUs; wanted: the size without the limit per period */
	int64_t used, load; /* milli-CPU; used RP_NOT_SET: nothing was measured */
};

/* Returns the size of a pool for which `asked` CPUs are requested. */
uint32_t advise_size(const struct rp_instance *inst, const struct pool *p, uint32_t asked);
/* Learns the sizes of pools from the CPUs of their containers. */
void advise_learn(struct rp_instance *inst);
void advise_arm(struct rp_instance *inst);
int32_t advise_now(struct rp_instance *inst, rp_txn txn);

/* ---- hints of resource plugins (others.c) ---------------------------------------------------- */

/* Resources besides CPUs and memory; further ones are ignored. */
#define OTHERS_MAX (HINTS_RESOURCES_MAX - 2u)

struct other {
	uint32_t list; /* index of the host's list */
	const char *resource;
	struct hints is;
	struct hint hints[HINTS_MAX];
};

/* The hints for the pod that is being admitted. */
struct others {
	uint32_t n_lists; /* number of lists of the host, for all containers */
	uint32_t n;
	struct other list[OTHERS_MAX]; /* lists of the main container, or of the pod as a whole */
};

/* Reads the hints. *ret is NULL if there are none, or the pod is not being admitted. */
int32_t others_of(const struct rp_instance *inst, rp_pod pod, struct others **ret);
struct others *others_free(struct others *o); /* accepts NULL; returns NULL */
/* Stores the hints of the container's devices: their nodes, preferred, or any. Returns false if it
 * has none on nodes of this machine. */
bool others_devices(const struct rp_instance *inst, rp_ctr ctr, struct hint ret[2]);
/* Sends the plugins the choice: a result for each member of list, and `pods` for the lists of other
 * containers. */
void others_choose(const struct rp_instance *inst, rp_pod pod, const struct others *o,
		   const struct hint *results, const struct hint *pods);
/* Merges the hints of plugins alone, for pods that are not bound to nodes. */
int32_t others_merge(struct rp_instance *inst, rp_pod pod);
/* Refuses a pod with a message about the resources. own: "CPUs and memory" or ""; o may be NULL.
 * Returns -RP_ENOSPC. */
int32_t others_refuse(struct rp_instance *inst, const struct others *o, const char *own);

/* ---- hints (hints.c) ------------------------------------------------------------------------- */

/* Free capacity of the machine for a pod. */
struct room {
	/* nodes by the pods on them; bound: shared and dedicated pods */
	uint64_t bound, dedicated, exclusive;
	uint64_t refused; /* nodes that are excluded, because this pod or one there must be alone */
	int64_t unbound_cpu, unbound_mem; /* requests of unbound shared pods */
	int64_t bound_cpu[NODES_MAX]; /* requests of bound shared pods, by index of the node */
	uint64_t mem_free[NODES_MAX];
	struct rp_idset free; /* neither reserved nor dedicated */
	int64_t unbound_cpus; /* CPUs of nodes without bound pods */
};

/* Computes the free capacity, without counting the pod `but` itself. */
void room_of(struct rp_instance *inst, rp_pod but, const struct ask *a, struct room *ret);
/* Adds or removes the contribution of an entry that joins or leaves the table. */
void room_count(struct table *t, struct entry *e, bool joins);
/* Stores the memory that is counted for this entry, by index of the node. */
void room_memory_of(const struct rp_instance *inst, const struct entry *of,
		    uint64_t ret[NODES_MAX]);
/* Chooses the nodes of a pod (rec->nodes, mem_nodes); 0 for a pod that fits without nodes.
 * -RP_ENOSPC and -RP_EINVAL with a message. ctr: the container whose trail explains the choice; 0:
 * none. */
int32_t hints_choose(struct rp_instance *inst, rp_ctr ctr, const struct ask *a,
		     const struct room *room, struct record *rec);

/* ---- pods before their containers (admit.c) -------------------------------------------------- */

#define MAIN_NAME_MAX 63u

/* Reserves the request of the pod as a whole. An error refuses the pod. */
int32_t admit_pod(struct rp_instance *inst, rp_txn txn, rp_pod pod);
/* Adds the saved grants of pods without a main container to the table, which has the containers. */
int32_t admit_load(struct rp_instance *inst);
/* Reads the grant of a pod; false: there is none. */
bool admit_grant(const struct rp_instance *inst, rp_pod pod, struct record *ret);
/* Chooses nodes as hints_choose() does, within the free capacity, preferably those of an earlier
 * grant (may be NULL). */
int32_t admit_choose(struct rp_instance *inst, rp_ctr ctr, const struct ask *a,
		     const struct record *former, rp_pod but, struct record *rec);
/* admit_use() replaces a grant in the table by the created main container. admit_unuse() adds
 * the saved grant again after that container has ended. */
int32_t admit_use(struct rp_instance *inst, rp_txn txn, struct entry *main, const char *name);
int32_t admit_unuse(struct rp_instance *inst, rp_pod pod);
int32_t admit_end(struct rp_instance *inst, rp_txn txn, rp_pod pod);
/* Returns the name of the pod's main container, "" if it was never created. */
const char *admit_main(const struct rp_instance *inst, rp_pod pod, char name[MAIN_NAME_MAX + 1]);
/* For sync: drops grants of nodes that no longer exist. */
int32_t admit_check(struct rp_instance *inst, rp_txn txn);

/* ---- placement of one container (place.c) ---------------------------------------------------- */

enum place_as {
	PLACE_CREATED, /* the container is new, and begins its ramp-up */
	PLACE_EXISTING, /* the container runs, and may get any CPUs */
	PLACE_ADOPTED /* the container keeps its nodes and dedicated CPUs */
};

/* Creates and places the entry of a container without an entry. With PLACE_ADOPTED, an error means
 * that the container cannot keep what it has, and changes nothing. */
int32_t place_new(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
		  enum place_as as);
/* Returns true if a main container without an entry runs on CPUs of which this policy could have
 * chosen the nodes: they were chosen before the store was lost, or by another policy. */
bool place_may_adopt(struct rp_instance *inst, const struct rp_ctr_info *info);
/* Handles changed requests of a container. */
int32_t place_resize(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
		     struct entry *e);
/* Counts the requests of a container that may have been resized while the daemon was not connected.
 * Dedicated CPUs do not change. */
int32_t place_missed(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
		     struct entry *e);
/* Adds a container that cannot be placed: it runs on unassigned CPUs until there is capacity. */
int32_t place_lost(struct rp_instance *inst, const struct rp_ctr_info *info);
/* place_loose() chooses dedicated CPUs for pods that own none because pinCPU was off at their
 * creation. place_again() places a lost container if there is capacity. */
void place_loose(struct rp_instance *inst);
int32_t place_again(struct rp_instance *inst, rp_txn txn, struct entry *e);
/* Checks that the pools leave CPUs for every container. -RP_ENOSPC with a message. */
int32_t place_check(struct rp_instance *inst);

/* ---- decisions into the transaction (stage.c) ------------------------------------------------ */

/* Stores the CPUs and memory nodes of an entry by the present pools; empty: not pinned. */
void stage_cpus_of(const struct rp_instance *inst, const struct entry *e, struct rp_idset *ret);
void stage_mems_of(const struct rp_instance *inst, const struct entry *e, struct rp_idset *ret);
/* Returns true if all CPUs are dedicated, so that none is left for a container that is not pinned,
 * whose name is stored. */
#define CTR_NAME_MAX 256u
bool stage_starves(const struct rp_instance *inst, char *ret_name, uint32_t size);
/* Computes the pools and stages all containers that this changes. */
int32_t stage_all(struct rp_instance *inst, rp_txn txn);
/* Does the same for a request or another configuration, which place_check() may refuse. Events such
 * as CPUs that went offline and containers that ended cannot be refused. */
int32_t stage_checked(struct rp_instance *inst, rp_txn txn);

/* ---- synchronization (sync.c) ---------------------------------------------------------------- */

int32_t sync_all(struct rp_instance *inst, rp_txn txn);
/* Tries again to place lost containers, after capacity became free. */
int32_t sync_retry(struct rp_instance *inst, rp_txn txn);
/* Moves containers whose ramp-up has ended to their pools. */
int32_t sync_ramp(struct rp_instance *inst, rp_txn txn);
/* Arms the timer for the end of the next ramp-up. */
void sync_arm(struct rp_instance *inst);
int64_t sync_now_ms(void); /* wall clock: times are saved over restarts */

/* ---- environment (env.c) --------------------------------------------------------------------- */

/* Returns the first unknown placeholder, or "". */
const char *env_unknown(const char *value);
int32_t env_stage(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
		  const struct entry *e);

/* ---- other settings of a level (level.c) ----------------------------------------------------- */

/* Stages quota and classes, which change with a resize and with the configuration. */
int32_t level_stage(struct rp_instance *inst, rp_txn txn, rp_ctr ctr, struct record *rec);
/* Stages cgroup files, which exist only at creation, and notes about other settings. */
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

/* State that cannot be computed from containers. */
struct past {
	bool sized; /* pools were sized since the node was empty */
	bool overlap; /* `reclaim` was computed for the overlap mode */
	struct rp_idset reclaim;
};

struct rp_instance {
	LIFE;
	struct owners owners; /* owners of dedicated CPUs; an owner is a pod */
	struct relief relief;
	struct table table;
	struct pools pools;
	struct past past, past_before; /* past_before: state before this callback */
	uint64_t staged; /* digest of the pools that are staged for all containers */
	uint64_t staged_masks; /* digest of their masks */
	int64_t armed_ms; /* expiry of the timer; 0: not armed */
	int64_t fired_ms; /* the time for which it expired last */
	struct advice advice[POOLS_MAX];
	uint32_t n_advice;
	uint32_t n_blind; /* periods in a row without a measurement */
	struct counters counters;
	rp_pod *pods; /* scratch array of n_pods elements */
	uint32_t n_pods;
	uint8_t saved[16 + sizeof(struct rp_idset)]; /* buffer for the saved state */
};

/* ---- room by moving other pods (relief.c) ---------------------------------------------------- */

/* Moves main containers of other pods so that a pod fits into a NUMA node, if the configuration
 * requires relief at admission. Returns 1; 0: no moves help; or an error. */
int32_t relief_make_room(struct rp_instance *inst, const struct ask *a, rp_pod but,
			 const struct rp_ctr_info *other);
/* Gives a dedicated main container CPUs of the nodes that its entry has by now; sidecars follow. */
void place_give(struct rp_instance *inst, const struct ask *a, const struct entry *e);
/* Nodes that could have room for a pod, as bits of their numbers; milli-CPU left in one of them. */
uint64_t hints_candidates(const struct rp_plan *p, const struct ask *a, const struct room *room);
int64_t hints_rest(const struct rp_plan *p, const struct room *room, uint32_t i);

/* ---- reports (report.c) ---------------------------------------------------------------------- */

void report_allocatable(const struct rp_instance *inst, struct rp_idset *ret);
int32_t report_memory(struct rp_instance *inst, rp_ctr ctr, const struct rp_memory_sink *sink);
int32_t qos_zones(struct rp_instance *inst, const struct rp_zone_sink *sink);
int32_t qos_metrics(struct rp_instance *inst, const struct rp_metric_sink *sink);
