/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nri-rp.policy/1: the interface of a policy module.
 *
 * A policy decides where containers run. The host's cache (cache.h) holds containers, their
 * requests and the decisions, and keeps them over restarts. A policy's own tables are an index over
 * the cache that sync() can rebuild.
 *
 * Life of an instance:
 *
 *   create ─▶ prepare ─▶ commit ─▶ sync ─▶ { allocate | update | release | event }* ─▶ stop
 *                └─▶ abort            ▲                    │                              │
 *                                     └── prepare/commit ◀─┘   (reload)                   ▼
 *                                                                                      destroy
 *
 * All callbacks run on the main thread, one at a time.
 *
 * A callback that receives a transaction stages its decisions with the setters of cache.h, for the
 * container of the call and for any other one. When it returns 0, the host checks the invariants
 * below and applies all staged decisions at once. When it returns an error, or an invariant does
 * not hold, the host drops all of them and calls rolled_back().
 *
 * The host checks these invariants:
 *   - CPU sets contain only online CPUs, and set_exclusive() only CPUs of the container's own set.
 *   - CPUs given with set_exclusive() are used by no other container (but see set_group()).
 *   - No container gets the empty CPU set, and one with CPUs does not lose them.
 *   - Memory nodes are online and have memory.
 *   - Containers with RP_CTR_PRESERVE_CPU keep their CPUs.
 *
 * The same callbacks serve trials (`nri-rpctl try`, `plan`, reloads). Trials run in a forked child
 * whose transactions are never committed; a policy needs no code for them.
 */
#ifndef NRI_RP_POLICY_H
#define NRI_RP_POLICY_H

#include <nri-rp/config.h>
#include <nri-rp/module.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RP_POLICY_1 "nri-rp.policy/1"

/* Result of rolled_back(): the policy's tables may be wrong, the host must call sync(). */
#define RP_RESYNC 1
/* Result of event(). [since 1.3] */
#define RP_IGNORED 1

#define RP_EVENT_STARTED 1u /* object: the container that has started */
/* CPUs or memory nodes went online or offline; the topology service already shows the new
 * machine */
#define RP_EVENT_TOPOLOGY 2u
#define RP_EVENT_TIMER 3u /* cookie: the one passed to arm() (host.h) */
/* A good moment to improve placements. cookie: the largest number of containers to move; 0: no
 * limit. A container counts as moved when its CPUs or memory nodes change and its private data
 * (set_private) changes too, or when it has no private data. Members of a shared set that grows or
 * shrinks therefore do not count. A container that is degraded no longer does not count either. */
#define RP_EVENT_REBALANCE 4u
/* object: a container whose pressure began, changed or ended; cookie: its present pressure as
 * RP_PRESSURE_… (host.h), 0: none. The policy may move this container and others, within the limit
 * of a rebalancing. */
#define RP_EVENT_PRESSURE 5u
/* A different runtime, or one with other capabilities (rp_host_runtime in host.h), has
 * synchronised. sync() has returned before. Sent only to modules of 1.3 and later. [since 1.3] */
#define RP_EVENT_RUNTIME 6u
/* cookie and data: those passed to post() (host.h) by this instance [since 1.3] */
#define RP_EVENT_POSTED 7u

/* An event of a policy. `object` and `cookie` depend on the type, see RP_EVENT_…. */
struct rp_event {
	uint32_t size;
	uint32_t type;
	uint64_t object;
	uint64_t cookie;

	/* ---- since 1.3 ---- */

	/* data of RP_EVENT_POSTED, valid for the call, aligned for any type; NULL: none */
	const void *data;
	uint32_t data_size;
	uint32_t pad;
};

struct rp_plan; /* a checked configuration; the module's own type */
typedef uint64_t rp_txn;

struct rp_policy {
	uint32_t size;
	uint32_t pad;
	/* Checks a configuration and builds a plan from it, without changing the active one. Errors
	 * about a key are recorded with fail_at() (config.h). `cfg` stays valid until abort() or
	 * the next commit(). */
	int32_t (*prepare)(struct rp_instance *inst, rp_cfg cfg, struct rp_plan **ret_plan);
	/* Activates a prepared configuration; the policy owns the plan from now on. Cannot fail.
	 * sync() follows. A plan of an unchanged configuration may be committed too. */
	void (*commit)(struct rp_instance *inst, struct rp_plan *plan);
	/* Frees a prepared plan that will not be committed. */
	void (*abort)(struct rp_instance *inst, struct rp_plan *plan);
	/* Places all containers. Rebuilds the policy's tables from the cache: keeps each recorded
	 * placement that is still valid, and places all other containers, in the order
	 * RP_ORDER_SYNC. A container that cannot be placed is marked with
	 * set_degraded() and is no error of sync. After a switch from another policy, a container
	 * whose CPUs sync does not set (even to the same ones) is placed by the host on CPUs that
	 * no container owns. */
	int32_t (*sync)(struct rp_instance *inst, rp_txn txn);
	/* Places a container that is being created. It is the only moment for fields marked * in
	 * cache.h. An error refuses the container (or see unmanaged). */
	int32_t (*allocate)(struct rp_instance *inst, rp_txn txn, rp_ctr ctr);
	/* Handles changed requirements of a container (in-place resize); get_ctr() returns the new
	 * ones. After an error the container keeps its resources. */
	int32_t (*update)(struct rp_instance *inst, rp_txn txn, rp_ctr ctr);
	/* Releases the resources of a container that has ended. Must accept containers that were
	 * never placed, and may be called twice for one container. */
	int32_t (*release)(struct rp_instance *inst, rp_txn txn, rp_ctr ctr);
	/* Optional. Handles an event, see RP_EVENT_…. RP_IGNORED for RP_EVENT_STARTED means
	 * that the policy does nothing about such events under its configuration: the host need not
	 * send more of them until the next commit(). */
	int32_t (*event)(struct rp_instance *inst, rp_txn txn, const struct rp_event *ev);
	/* Optional. Called after the host has dropped the transaction of the last callback with
	 * everything staged in it. Returns 0 if the policy has restored its tables, or RP_RESYNC to
	 * request a sync(). Without this function the host acts as for RP_RESYNC. */
	int32_t (*rolled_back)(struct rp_instance *inst);
	/* Optional. Called once before destroy(), for an instance whose configuration was
	 * committed: the daemon stops, or another policy is active now. Jobs submitted here are
	 * still carried out. */
	void (*stop)(struct rp_instance *inst);
	/* Optional. allocate() has refused the container, but it runs nevertheless (onPolicyError:
	 * unmanaged). The host has staged all CPUs that no container owns, and a reason with
	 * set_degraded(). The policy may stage other CPUs, and may remember the container in order
	 * to place it later, at the latest in the next sync() with enough free capacity; it then
	 * clears the reason with set_degraded(). An error refuses the container. [since 1.2] */
	int32_t (*unmanaged)(struct rp_instance *inst, rp_txn txn, rp_ctr ctr);

	/* ---- since 1.3 ---- */

	/* Optional. Admits a pod whose sandbox is about to be created; none of its containers is
	 * known yet. rp_pod_info (cache.h) describes the pod as a whole. An error refuses the pod:
	 * its sentence appears in the pod's events, and the runtime tries again later with another
	 * rp_pod. The policy saves what it grants with set_pod_private() and reads it in
	 * allocate(). A pod may be older than the policy and never have been admitted, and a pod
	 * may be admitted twice. Other containers may be changed too; the runtime receives these
	 * updates afterwards. */
	int32_t (*admit_pod)(struct rp_instance *inst, rp_txn txn, rp_pod pod);
	/* Optional. Releases what the pod was granted. Its containers were released before; the
	 * pod's private data is dropped after this function, whatever it returns. If the cluster
	 * reports that the pod has ended for good, the call may come then already, and again at its
	 * removal. There is no call for pods that are missing when the runtime synchronises: sync()
	 * follows, and list_pods() does not return them. */
	int32_t (*pod_removed)(struct rp_instance *inst, rp_txn txn, rp_pod pod);
};

/* nri-rp.zones/1, optional: the policy's view of the machine, for NodeResourceTopology and
 * `nri-rpctl zones`. The host calls zones() between transactions. */
#define RP_ZONES_1 "nri-rp.zones/1"

/* Receives the zones. Texts are copied. */
struct rp_zone_sink {
	uint32_t size;
	uint32_t pad;
	void *ctx;
	/* Begins a zone. `parent` is the name of an earlier zone, or "". The other functions add to
	 * the zone begun last. */
	void (*zone)(void *ctx, const char *name, const char *type, const char *parent);
	/* Adds a resource. CPU in milli-CPU, memory in bytes. */
	void (*resource)(void *ctx, const char *name, int64_t capacity, int64_t allocatable,
			 int64_t available);
	/* Adds a named text to the zone. */
	void (*attribute)(void *ctx, const char *name, const char *value);
	/* Adds the distance to another zone, as the kernel counts it (10: local). */
	void (*cost)(void *ctx, const char *other, int64_t value);
};

struct rp_zones {
	uint32_t size;
	uint32_t pad;
	/* Reports all zones to the sink. Returns 0 or an error code. */
	int32_t (*zones)(struct rp_instance *inst, const struct rp_zone_sink *sink);
};

/*
 * nri-rp.extended/1, optional: extended resources of the node, for the scheduler. Names have the
 * form DOMAIN.nri.io/NAME. The node agent publishes the reported resources and removes those that
 * match a pattern of own() but are not reported.
 */
#define RP_EXTENDED_1 "nri-rp.extended/1"

struct rp_extended_sink {
	uint32_t size;
	uint32_t pad;
	void *ctx;
	/* Claims all resource names that match; a star in "DOMAIN/NAME" matches any name. */
	void (*own)(void *ctx, const char *pattern);
	/* Reports a resource in whole units. */
	void (*resource)(void *ctx, const char *name, int64_t amount);
};

struct rp_extended {
	uint32_t size;
	uint32_t pad;
	/* Reports the patterns and resources to the sink. Returns 0 or an error code. */
	int32_t (*extended)(struct rp_instance *inst, const struct rp_extended_sink *sink);
};

/*
 * nri-rp.allocation/1 [since 1.3], optional: the CPUs and memory that a policy can allocate and has
 * allocated. The host calls it between transactions, for clients of the kubelet's pod-resources
 * API.
 */
#define RP_ALLOCATION_1 "nri-rp.allocation/1"

struct rp_idset; /* set.h */

struct rp_memory_sink {
	uint32_t size;
	uint32_t pad;
	void *ctx;
	/* Reports bytes of memory on a NUMA node. Each node is reported at most once, in any order.
	 * A node without memory and 0 bytes are errors of the module. */
	void (*part)(void *ctx, uint32_t node, uint64_t bytes);
};

struct rp_allocation {
	uint32_t size;
	uint32_t pad;
	/* Stores the online CPUs that containers may be assigned, whether they are free or not,
	 * without the CPUs reserved for the system. *ret belongs to the host, and is undefined
	 * after an error. -RP_EAGAIN: there is no configuration yet. Without this service the host
	 * assumes all online CPUs except those in zone attributes named "reserved cpuset". The NUMA
	 * node of a CPU is rp_cpu_info.node_id. */
	int32_t (*allocatable)(struct rp_instance *inst, struct rp_idset *ret);
	/* Optional, for policies that count memory by node. Reports the bytes of each NUMA node's
	 * memory that are allocated to a live container. For a container without a report, and for
	 * all containers without this function, the host publishes the container's memory request
	 * as one amount of all its memory nodes. The CPUs of each node follow from the container's
	 * CPU set. */
	int32_t (*memory)(struct rp_instance *inst, rp_ctr ctr, const struct rp_memory_sink *sink);
};

/*
 * nri-rp.devices/1 [since 1.3], optional: what pods can claim from a policy or a controller by
 * Dynamic Resource Allocation. The host publishes the devices in ResourceSlices, and asks for the
 * allocation of claims.
 *
 * A claim is an object of the host's cache like a container that has no process: rp_ctr_info has
 * RP_CTR_CLAIM, the class Guaranteed, and the claimed amounts as requests and limits. list()
 * returns it, and sync() keeps its CPUs and memory nodes. The containers that use a claim get its
 * CPUs and memory nodes from the host; the policy does not see them while the claim exists. The
 * host refuses every decision that takes online CPUs from a claim.
 *
 * A claim of several devices is one such object for each of them, in one pod, all of which are
 * allocated in one transaction. The containers get the CPUs and memory nodes of all.
 *
 * The names of a controller's devices begin with the name of the module and "-", and have no
 * capacity "cpu". Only this controller sees their claims. It stages no CPUs but may stage
 * RP_F_RDT_CLASS, which the host gives to the containers that use the claim.
 */
#define RP_DEVICES_1 "nri-rp.devices/1"

/* Receives the devices. Texts are copied. */
struct rp_devices_sink {
	uint32_t size;
	uint32_t pad;
	void *ctx;
	/* Begins a device; the other functions add to the device begun last. `name` has at most 63
	 * of the characters a-z, 0-9 and "-", and names the same device as long as it exists. */
	void (*device)(void *ctx, const char *name);
	/* Adds an amount that claims share: "cpu" in CPUs, others in bytes or units. It is what all
	 * claims together can get now, with what they have already. */
	void (*capacity)(void *ctx, const char *name, int64_t amount);
	/* Add an attribute, such as "numaNode". */
	void (*number)(void *ctx, const char *name, int64_t value);
	void (*text)(void *ctx, const char *name, const char *value);
	/* Limits what one claim gets of the capacity added last. Without a call: at least 1 CPU, 1
	 * MiB of memory or 1 unit. max 0: no limit. Check RP_HAS. */
	void (*limits)(void *ctx, int64_t min, int64_t max);
};

struct rp_devices {
	uint32_t size;
	uint32_t pad;
	/* Reports all devices to the sink, between transactions. Returns 0 or an error code. */
	int32_t (*devices)(struct rp_instance *inst, const struct rp_devices_sink *sink);
	/* Allocates a new claim from a device: stages exclusive CPUs, as many as it requests, and
	 * memory nodes. A policy may move other containers. -RP_ENOENT: no such device;
	 * -RP_ENOSPC: too little is left. */
	int32_t (*allocate)(struct rp_instance *inst, rp_txn txn, rp_ctr claim, const char *device);
	/* Releases what a claim has. Must accept claims that were never allocated. */
	int32_t (*release)(struct rp_instance *inst, rp_txn txn, rp_ctr claim);
};

/* nri-rp.metrics/1, optional, for modules of any kind. */
#define RP_METRICS_1 "nri-rp.metrics/1"

struct rp_metric_sink {
	uint32_t size;
	uint32_t pad;
	void *ctx;
	/* Adds a gauge. `name` is without prefix, as Prometheus writes it; `labels` is the text
	 * between the braces of {a="b",c="d"}, or "". Texts are copied. */
	void (*gauge)(void *ctx, const char *name, const char *help, const char *labels,
		      double value);
	/* Adds a counter, with arguments as of gauge(). */
	void (*counter)(void *ctx, const char *name, const char *help, const char *labels,
			double value);
};

struct rp_metrics {
	uint32_t size;
	uint32_t pad;
	/* Reports the metrics to the sink. Returns 0 or an error code. */
	int32_t (*collect)(struct rp_instance *inst, const struct rp_metric_sink *sink);
};

/* nri-rp.state/1, optional: state that belongs to no container, at most RP_STATE_MAX bytes. The
 * host saves it with each commit of a transaction. */
#define RP_STATE_1 "nri-rp.state/1"
#define RP_STATE_MAX 65536u

struct rp_state {
	uint32_t size;
	uint32_t pad;
	/* Returns the bytes to save. Unchanged bytes cost only a comparison. */
	int32_t (*save)(struct rp_instance *inst, const void **ret_data, uint32_t *ret_size);
	/* Restores the bytes saved last. Called before the first sync(). An error means that the
	 * state is not of this policy; the host drops it. */
	int32_t (*load)(struct rp_instance *inst, const void *data, uint32_t size);
};

#ifdef __cplusplus
}
#endif
#endif
