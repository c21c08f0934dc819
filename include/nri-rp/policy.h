/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nri-rp.policy/1: what a policy module does.
 *
 * A policy decides where containers run. It owns no truth: containers, their requests and what was
 * decided for them live in the host's cache (cache.h) and survive restarts there; a policy's own
 * tables are an index over it that sync() can rebuild.
 *
 * Life of an instance:
 *
 *   create ─▶ prepare ─▶ commit ─▶ sync ─▶ { allocate | update | release | event }* ─▶ stop ─▶ destroy
 *                └─▶ abort            ▲                    │
 *                                     └── prepare/commit ◀─┘   (reload)
 *
 * Every callback that gets a transaction stages its decisions with the setters of cache.h, for the
 * container in question and for any other one. When it returns 0 the host checks the invariants
 * (below) and makes all of it true at once; when it returns an error, or an invariant does not
 * hold, nothing has happened and rolled_back() follows.
 *
 * Invariants the host checks: CPU sets lie within the online CPUs; sets given with set_exclusive
 * overlap nobody else's CPUs; no live container that has been given CPUs ends up with none; memory
 * nodes are online and have memory; containers marked immovable keep what they have.
 *
 * The same calls serve trials (`nri-rpctl try`, `plan`, reloads): those run in a forked child whose
 * transactions are never committed. A policy needs no code for it.
 */
#ifndef NRI_RP_POLICY_H
#define NRI_RP_POLICY_H

#include <nri-rp/config.h>
#include <nri-rp/module.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RP_POLICY_1 "nri-rp.policy/1"

/* rolled_back(): "my tables may be wrong now, call sync()". */
#define RP_RESYNC 1

#define RP_EVENT_STARTED 1u /* object = the container that has started */
/* CPUs or memory nodes came or went: the topology service shows the new machine */
#define RP_EVENT_TOPOLOGY 2u
#define RP_EVENT_TIMER 3u /* cookie = that of arm() (host.h) */
/* a good moment to move containers, if it pays; cookie = how many at most, 0: any number. A
 * container counts whose CPUs or memory nodes change together with what set_private keeps of it, or
 * that nothing is kept of: a set that several share may grow or shrink. One that is degraded no
 * more does not count */
#define RP_EVENT_REBALANCE 4u
/* object = a container that has begun or ceased to lack something, cookie = RP_PRESSURE_… (host.h)
 * of what it lacks now; 0: nothing. It may be moved, and others; not more of them than a
 * rebalancing may move */
#define RP_EVENT_PRESSURE 5u
/* another runtime has synchronised, or one that can do other things (rp_host_runtime of host.h);
 * sync() has just returned. Only for modules of 1.3 and later. [since 1.3] */
#define RP_EVENT_RUNTIME 6u
/* cookie and data are those of a post() (host.h) of this instance. [since 1.3] */
#define RP_EVENT_POSTED 7u

struct rp_event {
	uint32_t size;
	uint32_t type;
	uint64_t object;
	uint64_t cookie;

	/* ---- since 1.3 ---- */

	const void *data; /* of RP_EVENT_POSTED, for the call; NULL: none. Aligned for any type */
	uint32_t data_size;
	uint32_t pad;
};

struct rp_plan; /* a checked configuration, the module's own */
typedef uint64_t rp_txn;

struct rp_policy {
	uint32_t size;
	uint32_t pad;
	/* Checks a configuration and builds whatever the policy needs from it, without changing
	 * anything that is in force. Errors about a key go through config.h's fail_at(). `cfg`
	 * stays valid until abort() or the next commit(). */
	int32_t (*prepare)(struct rp_instance *inst, rp_cfg cfg, struct rp_plan **ret_plan);
	/* Puts a prepared configuration in force; the plan is the policy's again. Cannot fail.
	 * sync() follows. */
	void (*commit)(struct rp_instance *inst, struct rp_plan *plan);
	void (*abort)(struct rp_instance *inst, struct rp_plan *plan);
	/* Rebuilds all tables from the cache: keeps every recorded assignment that is still right,
	 * re-places what is not, places what has none, in the order in which the cache lists
	 * containers for sync. A container that cannot be placed is marked with set_degraded, which
	 * is no error of sync. After a switch from another policy, a container whose CPUs sync does
	 * not set (even to the same ones) is left to the host: it runs on CPUs that no container
	 * owns. */
	int32_t (*sync)(struct rp_instance *inst, rp_txn txn);
	/* Places a container that is being created. */
	int32_t (*allocate)(struct rp_instance *inst, rp_txn txn, rp_ctr ctr);
	/* The container's requirements have changed (in-place resize): get_ctr() shows the new
	 * ones. On an error the container keeps what it has. */
	int32_t (*update)(struct rp_instance *inst, rp_txn txn, rp_ctr ctr);
	/* The container is gone. Must accept containers that were never placed; may be called
	 * twice. */
	int32_t (*release)(struct rp_instance *inst, rp_txn txn, rp_ctr ctr);
	/* Optional. */
	int32_t (*event)(struct rp_instance *inst, rp_txn txn, const struct rp_event *ev);
	/* The transaction was dropped, with everything the last callback staged. Return 0 when the
	 * tables are right again, or RP_RESYNC for a sync() of everything. Optional: absent means
	 * RP_RESYNC. */
	int32_t (*rolled_back)(struct rp_instance *inst);
	/* Optional: the last call but destroy(), of an instance whose configuration was committed:
	 * the daemon stops, or another policy is in force. What it submits to the worker is still
	 * done. */
	void (*stop)(struct rp_instance *inst);
	/* Optional. allocate() has refused the container, but it runs all the same (onPolicyError:
	 * unmanaged). The host has staged all CPUs that are nobody's own for it, and why it is
	 * degraded. The policy may stage other ones, and take a note of it to place it later, at
	 * the next sync() at the latest if there is room by then: it clears the reason
	 * (set_degraded) then. What fails here refuses the container. [since 1.2] */
	int32_t (*unmanaged)(struct rp_instance *inst, rp_txn txn, rp_ctr ctr);

	/* ---- since 1.3 ---- */

	/* Optional. A pod begins: its sandbox is about to be made, none of its containers is known
	 * yet. rp_pod_info (cache.h) has what is said of the pod as a whole. An error refuses the
	 * pod, and people read its sentence in the pod's events; the runtime tries again later,
	 * with another rp_pod. What the policy grants it keeps with set_pod_private(), and finds it
	 * there at allocate(): a pod may as well be older than the policy and never have been
	 * admitted. A pod that was admitted may be asked for again. Other containers may be
	 * changed, too; they are told afterwards. */
	int32_t (*admit_pod)(struct rp_instance *inst, rp_txn txn, rp_pod pod);
	/* Optional. The pod is removed: its containers were released before, what is kept with it
	 * goes when this returns, whatever that is. Where the cluster tells that it has ended for
	 * good it may be told then already, and once more later. Pods that are gone when the
	 * runtime lists what there is are not told: sync() follows, and list_pods() has them no
	 * more. */
	int32_t (*pod_removed)(struct rp_instance *inst, rp_txn txn, rp_pod pod);
};

/* nri-rp.zones/1, optional: the policy's view of the machine, for NodeResourceTopology and
 * `nri-rpctl zones`. */
#define RP_ZONES_1 "nri-rp.zones/1"

struct rp_zone_sink {
	uint32_t size;
	uint32_t pad;
	void *ctx;
	/* Begins a zone; `parent` is the name of an earlier one or "". The calls below are about
	 * the zone begun last. */
	void (*zone)(void *ctx, const char *name, const char *type, const char *parent);
	/* CPU in milli-CPU, memory in bytes. */
	void (*resource)(void *ctx, const char *name, int64_t capacity, int64_t allocatable,
			 int64_t available);
	void (*attribute)(void *ctx, const char *name, const char *value);
	/* Distance to another zone, as the kernel counts it (10 = local). */
	void (*cost)(void *ctx, const char *other, int64_t value);
};

struct rp_zones {
	uint32_t size;
	uint32_t pad;
	int32_t (*zones)(struct rp_instance *inst, const struct rp_zone_sink *sink);
};

/*
 * nri-rp.extended/1, optional: extended resources of the node, for the scheduler. Names end in
 * ".nri.io/NAME"; the node agent publishes what is told here, and takes away what the policy owns
 * and does not tell.
 */
#define RP_EXTENDED_1 "nri-rp.extended/1"

struct rp_extended_sink {
	uint32_t size;
	uint32_t pad;
	void *ctx;
	/* All names that match are the policy's; a star stands for the name in "DOMAIN/NAME". */
	void (*own)(void *ctx, const char *pattern);
	void (*resource)(void *ctx, const char *name, int64_t amount);
};

struct rp_extended {
	uint32_t size;
	uint32_t pad;
	int32_t (*extended)(struct rp_instance *inst, const struct rp_extended_sink *sink);
};

/*
 * nri-rp.allocation/1 [since 1.3], optional: what a policy has to give, and has given. The host
 * asks it between transactions, when somebody asks the node (the kubelet's pod-resources API).
 */
#define RP_ALLOCATION_1 "nri-rp.allocation/1"

struct rp_idset; /* set.h */

struct rp_memory_sink {
	uint32_t size;
	uint32_t pad;
	void *ctx;
	/* Bytes of that NUMA node's memory. Each node once, in any order; a node without memory and
	 * no bytes at all are errors of the module. */
	void (*part)(void *ctx, uint32_t node, uint64_t bytes);
};

struct rp_allocation {
	uint32_t size;
	uint32_t pad;
	/* The online CPUs that containers may be given at all, whoever has them now; what is kept
	 * for the system is none of them. NUMA nodes are found by rp_cpu_info.node_id. *ret is the
	 * host's, and undefined after an error; -RP_EAGAIN: there is no configuration yet. Without
	 * this service a host takes all online CPUs but those in the attributes of zones that are
	 * named "reserved cpuset". */
	int32_t (*allocatable)(struct rp_instance *inst, struct rp_idset *ret);
	/* Optional: how much of each NUMA node's memory a live container has been given, by a
	 * policy that counts memory by node. Of a container that nothing is told of, and of all
	 * when this is NULL, a host tells what the container asks for as one amount of all its
	 * memory nodes. How many CPUs of which node a container has its CPUs tell. */
	int32_t (*memory)(struct rp_instance *inst, rp_ctr ctr, const struct rp_memory_sink *sink);
};

/* nri-rp.metrics/1, optional, for any kind of module. */
#define RP_METRICS_1 "nri-rp.metrics/1"

struct rp_metric_sink {
	uint32_t size;
	uint32_t pad;
	void *ctx;
	/* `name` without prefix, as Prometheus writes it; `labels` as in {a="b",c="d"} without the
	 * braces, or "". */
	void (*gauge)(void *ctx, const char *name, const char *help, const char *labels,
		      double value);
	void (*counter)(void *ctx, const char *name, const char *help, const char *labels,
			double value);
};

struct rp_metrics {
	uint32_t size;
	uint32_t pad;
	int32_t (*collect)(struct rp_instance *inst, const struct rp_metric_sink *sink);
};

/* nri-rp.state/1, optional: what cannot live with a container. At most RP_STATE_MAX bytes, kept
 * with each commit. */
#define RP_STATE_1 "nri-rp.state/1"
#define RP_STATE_MAX 65536u

struct rp_state {
	uint32_t size;
	uint32_t pad;
	/* The bytes to keep; unchanged bytes cost a comparison. */
	int32_t (*save)(struct rp_instance *inst, const void **ret_data, uint32_t *ret_size);
	/* What was saved last, before the first sync(). An error means "not mine": the state is
	 * dropped. */
	int32_t (*load)(struct rp_instance *inst, const void *data, uint32_t size);
};

#ifdef __cplusplus
}
#endif
#endif
