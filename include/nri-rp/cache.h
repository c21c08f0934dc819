/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nri-rp.host.cache/1: pods and containers, and the transaction that changes them.
 *
 * Getters return the state as it will be when the running transaction commits: they include what
 * the module has staged. They may be called in every callback, on the main thread. An unknown or
 * removed id makes them return -RP_ESTALE (or NULL).
 *
 * Setters stage a decision in the transaction that the callback received. Outside of such a
 * callback nothing can be changed. They return 0 or:
 *   -RP_EINVAL   the transaction is not the running one, or an argument is malformed
 *   -RP_ESTALE   the container or pod no longer exists
 *   -RP_E2BIG    a limit of the host is exceeded
 *   -RP_ENOTSUP  the setting exists only at creation, and the container is not being created
 *   -RP_EBUSY    another module has staged another value (see RP_F_… below)
 *   -RP_ENOMEM
 * Setters check only their arguments. The invariants (policy.h) are checked when the callback
 * returns.
 */
#ifndef NRI_RP_CACHE_H
#define NRI_RP_CACHE_H

#include <nri-rp/policy.h>
#include <nri-rp/set.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RP_HOST_CACHE_1 "nri-rp.host.cache/1"

#define RP_QOS_GUARANTEED 0u
#define RP_QOS_BURSTABLE 1u
#define RP_QOS_BEST_EFFORT 2u

#define RP_STATE_CREATING 0u
#define RP_STATE_CREATED 1u
#define RP_STATE_RUNNING 2u
#define RP_STATE_PAUSED 3u
#define RP_STATE_EXITED 4u /* ended, without resources, awaiting its removal */

#define RP_CTR_ESTIMATED_MEM 0x1u /* mem_request was estimated from oom_score_adj */
#define RP_CTR_PRESERVE_CPU 0x2u /* annotation: its CPUs must not be changed */
/* annotation: its memory nodes must not be changed */
#define RP_CTR_PRESERVE_MEM 0x4u
#define RP_CTR_INIT 0x8u /* init container (not always detectable) */
#define RP_CTR_RESTORED 0x10u /* existed before this start of the daemon */
/* runs with less than it requests, see set_degraded() */
#define RP_CTR_DEGRADED 0x20u
/* Requests and limits are those of the pod's specification, from the resources annotation, instead
 * of values derived from the runtime's parameters. [since 1.3] */
#define RP_CTR_EXACT_NEEDS 0x40u
/* The container already runs when allocate() is called, because the runtime reports creations late
 * (RP_RUNTIME_CREATION_IS_LATE in host.h). Settings that exist only at creation do not reach it.
 * [since 1.3] */
#define RP_CTR_RUNS_ALREADY 0x80u
/* The pod has resources at pod level (spec.resources). Requests and limits here are the container's
 * own; 0 where it uses those of the pod. [since 1.3] */
#define RP_CTR_POD_RESOURCES 0x100u
/* a claim, not a container (RP_DEVICES_1 in policy.h) [since 1.3] */
#define RP_CTR_CLAIM 0x200u

#define RP_NOT_SET INT64_MIN /* an amount that is not set */

/* Description of a container. Texts and sets are valid until the callback returns. */
struct rp_ctr_info {
	uint32_t size;
	uint32_t state;
	uint32_t qos;
	uint32_t flags;
	rp_ctr ctr;
	rp_pod pod;
	const char *id, *name, *pod_name, *pod_namespace;
	uint64_t created_ns; /* creation time, wall clock */
	int64_t cpu_request, cpu_limit; /* CPU in milli-CPU; 0: none */
	int64_t mem_request, mem_limit; /* memory in bytes; 0: none */
	/* CPUs and memory nodes decided by this policy or an earlier one; empty: none */
	struct rp_ids cpus, mems;
	struct rp_ids exclusive; /* the exclusive CPUs, a subset of cpus */
	int64_t shares, quota, period; /* decided values; RP_NOT_SET: none */

	/* ---- since 1.2 ---- */

	/* CPUs and memory nodes that the runtime reports, whichever component decided them; empty:
	 * not reported */
	struct rp_ids has_cpus, has_mems;

	/* ---- since 1.3 ---- */

	/* Values that the runtime requested at creation or in the last resize, before anything was
	 * derived from them; RP_NOT_SET: not reported */
	int64_t asked_shares, asked_quota, asked_period;
	/* The part of the pod's own request (spec.resources) that exceeds its containers' requests,
	 * in milli-CPU; set for the pod's first application container, 0 for the others. A policy
	 * counts it, but gives no exclusive CPUs for it. */
	int64_t pod_cpu_extra;
};

/* Description of a pod. Texts are valid until the callback returns. */
struct rp_pod_info {
	uint32_t size;
	uint32_t qos;
	rp_pod pod;
	const char *id, *name, *pod_namespace, *uid, *runtime_handler, *cgroup_parent;

	/* ---- since 1.3 ---- */

	uint32_t flags; /* RP_POD_… */
	int32_t priority; /* the pod's priority, with RP_POD_FED; 0 without */
	/* Requests and limits of the pod's containers together, as the cluster reports them or else
	 * as the runtime reported them for the pod: milli-CPU, bytes; 0: none. RP_NOT_SET: unknown,
	 * for example after a restart of the daemon. mem_request is known only from the cluster. */
	int64_t cpu_request, cpu_limit, mem_limit;
	int64_t mem_request;
};

#define RP_POD_STOPPED 0x1u /* no further container can be created in the pod */
/* The cluster has reported the pod: the amounts are exact, and pod_ctr() returns its containers. */
#define RP_POD_FED 0x2u
/* With RP_POD_FED: the pod has resources at pod level (spec.resources), and the amounts are these.
 * [since 1.3] */
#define RP_POD_OWN_RESOURCES 0x8u
#define RP_POD_DAEMON_SET 0x4u /* with RP_POD_FED: belongs to a DaemonSet */

/* A container of a pod as the cluster specifies it, created or not. */
struct rp_pod_ctr_info {
	uint32_t size;
	uint32_t kind; /* RP_POD_CTR_… */
	const char *name;
	int64_t cpu_request, cpu_limit; /* CPU in milli-CPU; 0: none */
	int64_t mem_request, mem_limit; /* memory in bytes; 0: none */
};

#define RP_POD_CTR_APP 1u
#define RP_POD_CTR_INIT 2u /* runs to completion before the next container starts */
#define RP_POD_CTR_SIDECAR 3u /* an init container that keeps running */

/* Orders of list(). */
#define RP_ORDER_CREATED 0u /* by creation; includes the container that is being created */
/* Order in which sync() places: Guaranteed, Burstable, BestEffort, each by creation time, then id.
 * Excludes the container that is being created. */
#define RP_ORDER_SYNC 1u

/* Scopes in which an annotation was found. */
#define RP_SCOPE_CONTAINER 1u
#define RP_SCOPE_POD 2u
#define RP_SCOPE_UNSCOPED 3u

/* Fields of set_int(), with their units. Fields marked * take effect only while the container is
 * being created. */
#define RP_F_SHARES 1u /* 2 … 262144 */
#define RP_F_QUOTA 2u /* microseconds; -1: unlimited */
#define RP_F_PERIOD 3u /* microseconds */
#define RP_F_MEMORY_LIMIT 4u /* bytes */
#define RP_F_SCHED_POLICY 5u /* * Linux SCHED_ number */
#define RP_F_SCHED_PRIORITY 6u /* * */
#define RP_F_NICE 7u /* * */
#define RP_F_IO_CLASS 8u /* * Linux IOPRIO_CLASS_ number */
#define RP_F_IO_PRIORITY 9u /* * */
#define RP_F_OOM_SCORE_ADJ 10u /* * */
#define RP_F_SCHED_FLAGS 11u /* * Linux SCHED_FLAG_ bits */
#define RP_F_SCHED_RUNTIME 12u /* * nanoseconds */
#define RP_F_SCHED_DEADLINE 13u /* * nanoseconds */
#define RP_F_SCHED_PERIOD 14u /* * nanoseconds */
#define RP_F_MEMPOLICY_MODE 15u /* * Linux MPOL_ number */
/* * Bytes of memory and swap together; -1: unlimited. Only runtimes with RP_RUNTIME_CAN_SWAP
 * (host.h) apply it. For other runtimes on cgroup v2, use RP_F_UNIFIED with memory.swap.max, which
 * limits swap alone. [since 1.3] */
#define RP_F_SWAP 16u
/* Bytes of the fastest memory tier that the kernel leaves to the container under contention, above
 * 0: the value of an adjustment (rp.conf). Only get_int() of controllers returns it, and a
 * controller writes it where the kernel has such a file. Runtimes do not know the field, and
 * set_int() refuses it. post_update() reports changes with RP_CHANGED_MEMORY. [since 1.3] */
#define RP_F_TOPTIER_LIMIT 17u

/* Fields of set_text(). */
#define RP_F_RDT_CLASS 100u /* "" clears */
#define RP_F_BLOCKIO_CLASS 101u
#define RP_F_CPU_CLASS 102u /* read by controllers; runtimes do not know it */
#define RP_F_MEMPOLICY_NODES 103u /* * node list, used with RP_F_MEMPOLICY_MODE */
#define RP_F_MEMPOLICY_FLAGS 104u /* * comma-separated list: static, relative, numa-balancing */
/* * Name of an existing resctrl group in which the container begins, for runtimes with
 * RP_RUNTIME_CAN_RDT (host.h). [since 1.3] */
#define RP_F_RDT_GROUP 105u

/* Fields of set_pair(), all *. */
#define RP_F_ENV 200u
#define RP_F_ANNOTATION 201u
#define RP_F_UNIFIED 202u /* name of a cgroup v2 file and its content */
/* A page size as cgroups name it ("2MB", "1GB"), and the limit in bytes as decimal digits. A size
 * that the machine does not have fails the creation. [since 1.3] */
#define RP_F_HUGEPAGES 203u

/*
 * Settings that exist only at creation (fields marked *, set_pair(), set_args(), add_mount(),
 * add_device(), add_cdi()) may be requested by the policy, by controllers and by resource plugins.
 * They replace what the container's own specification has. A module that requests a setting again
 * replaces its earlier value. Equal values of two modules are no conflict. For a different value
 * the second module gets -RP_EBUSY; the host has then already recorded a sentence that names both
 * modules, so do not call fail(), only return the code. -RP_ENOTSUP: the container is not being
 * created. -RP_E2BIG: more than 256 settings. [since 1.3; before, the last value was used]
 */

#define RP_GROUP_MAX 65535u /* largest number for set_group() */
#define RP_WAIT_MAX_MS 60000u /* largest delay for may_wait(), in milliseconds */
#define RP_ARGS_MAX 4096u /* limit of set_args(): process arguments */
#define RP_ARGS_BYTES_MAX 131072u /* limit of set_args(): bytes, including the NULs */
#define RP_PRIVATE_MAX 4096u /* limit of set_private(), bytes */
#define RP_ANNOTATION_MAX 65536u /* longer annotations are hidden from lookups, with a warning */

/* A mount of a container as the runtime reports it. */
struct rp_mount_info {
	uint32_t size;
	uint32_t read_only;
	const char *source, *destination, *type;
};

/* A device of a container as the runtime reports it. */
struct rp_device_info {
	uint32_t size;
	uint32_t writable;
	const char *path, *type; /* type: c, b, u, p */
	int64_t major, minor;
};

/* A mount for add_mount(). [since 1.3] */
struct rp_mount {
	uint32_t size;
	uint32_t read_only; /* 0 or 1 */
	/* source: path on the host; destination: absolute path in the container; type: "bind",
	 * "tmpfs" … */
	const char *source, *destination, *type;
	/* Options as in an OCI bundle, separated by commas, without ro and rw: "rbind,rprivate". A
	 * mount of type bind needs bind or rbind. */
	const char *options;
};

#define RP_MOUNT_OPTIONS_MAX 32u
#define RP_OWNER_NOT_SET 0xffffffffu

/* A device file for add_device(), which the container may read and write. [since 1.3] */
struct rp_device {
	uint32_t size;
	uint32_t mode; /* permission bits of the file, at most 0777; 0: chosen by the runtime */
	const char *path, *type; /* path: absolute path in the container; type: c, b, u, p */
	int64_t major, minor; /* device number; 0 for a pipe (type p) */
	uint32_t uid, gid; /* owner of the file; RP_OWNER_NOT_SET: chosen by the runtime */
};

/* Devices of one resource that the kubelet assigned to a container. */
struct rp_pod_resource_info {
	uint32_t size;
	uint32_t pad;
	const char *resource; /* name of the resource, such as "vendor.example/gpu" */
	/* NUMA nodes of the devices, at least one; this machine may have none of them */
	struct rp_ids nodes;
};

/* Huge pages of one size on a memory node, in bytes. [since 1.3] */
struct rp_hugepages_info {
	uint32_t size;
	uint32_t pad;
	const char *resource; /* "hugepages-2Mi"; "": a size without a name */
	uint64_t page; /* size of a page */
	uint64_t total; /* pages that the node has */
	uint64_t others; /* pages that programs use which are no containers */
	uint64_t left; /* pages that neither containers, claims nor other programs have */
	uint64_t claimed; /* pages that claims have */
};

struct rp_host_cache {
	uint32_t size;
	uint32_t pad;

	/* ---- getters ---- */

	/* Writes the ids of the containers that have not ended, in an order RP_ORDER_…, at most cap
	 * of them. Returns the number of all such containers, which may exceed cap. */
	uint32_t (*list)(void *ctx, uint32_t order, rp_ctr *ret, uint32_t cap);
	/* Fills *out, whose size the caller has set. -RP_ESTALE: there is no such container. */
	int32_t (*get_ctr)(void *ctx, rp_ctr ctr, struct rp_ctr_info *out);
	/* Fills *out, whose size the caller has set. -RP_ESTALE: there is no such pod. */
	int32_t (*get_pod)(void *ctx, rp_pod pod, struct rp_pod_info *out);
	/* Returns the effective annotation of a container: the first of KEY/container.NAME, KEY/pod
	 * and KEY on its pod, each in the canonical spelling and then its aliases. Keys of other
	 * domains, with a "/" or ending in ".nri.io", have no aliases. NULL: none.
	 * Stores the scope (RP_SCOPE_…) in *ret_scope, which may be NULL. */
	const char *(*annotation)(void *ctx, rp_ctr ctr, const char *key, uint32_t *ret_scope);
	/* Return the value of exactly this key, NULL: none. */
	const char *(*pod_annotation)(void *ctx, rp_pod pod, const char *key);
	const char *(*pod_label)(void *ctx, rp_pod pod, const char *key);
	const char *(*ctr_label)(void *ctx, rp_ctr ctr, const char *key);
	const char *(*ctr_annotation)(void *ctx, rp_ctr ctr, const char *key);
	/* Read the container's environment, mounts and devices. They are known while the
	 * container is being created, and after a Synchronize for containers that existed.
	 * Otherwise, and past the last one, env() returns NULL and the others -RP_ENOENT. */
	const char *(*env)(void *ctx, rp_ctr ctr, const char *name);
	int32_t (*mount)(void *ctx, rp_ctr ctr, uint32_t index, struct rp_mount_info *out);
	int32_t (*device)(void *ctx, rp_ctr ctr, uint32_t index, struct rp_device_info *out);
	/* Return a decided value, by the fields of set_int() and set_text(). Not set:
	 * -RP_ENOENT, or NULL. */
	int32_t (*get_int)(void *ctx, rp_ctr ctr, uint32_t field, int64_t *ret);
	const char *(*get_text)(void *ctx, rp_ctr ctr, uint32_t field);
	/* Returns the bytes that this policy saved with set_private(), valid until the callback
	 * returns. -RP_ENOENT: none, also after a decision of another policy. */
	int32_t (*get_private)(void *ctx, rp_ctr ctr, const void **ret, uint32_t *ret_size);
	/* Stores an extended resource's request and limit, from the cluster's description of the
	 * pod or else from the resources annotation. -RP_ENOENT: the container requests none. */
	int32_t (*extended)(void *ctx, rp_ctr ctr, const char *resource, int64_t *ret_request,
			    int64_t *ret_limit);

	/* ---- staging ---- */

	/* Stages the CPUs on which the container runs. They must be online. The empty set is
	 * refused by the invariants, since it would allow all CPUs: to leave a container where it
	 * is, do not call the function. */
	int32_t (*set_cpus)(void *ctx, rp_txn txn, rp_ctr ctr, struct rp_ids cpus);
	/* Stages the container's memory nodes, which must have memory. The empty set removes an
	 * earlier decision without moving memory: runtimes keep the nodes that the container has.
	 * To allow all memory nodes, pass all of them. */
	int32_t (*set_mems)(void *ctx, rp_txn txn, rp_ctr ctr, struct rp_ids mems);
	/* Stages the CPUs that no other container may use, a subset of the container's CPUs. The
	 * host enforces it. The empty set: no exclusive CPUs, as for a container without a call. */
	int32_t (*set_exclusive)(void *ctx, rp_txn txn, rp_ctr ctr, struct rp_ids cpus);
	/* Stages a number, by RP_F_…. -RP_EINVAL: unknown field or value out of range. */
	int32_t (*set_int)(void *ctx, rp_txn txn, rp_ctr ctr, uint32_t field, int64_t value);
	/* Stages a text, by RP_F_…. "" clears it. */
	int32_t (*set_text)(void *ctx, rp_txn txn, rp_ctr ctr, uint32_t field, const char *value);
	/* Stages a key and its value, by RP_F_…. */
	int32_t (*set_pair)(void *ctx, rp_txn txn, rp_ctr ctr, uint32_t field, const char *key,
			    const char *value);
	/* Saves bytes with the container, over restarts, for this policy alone. Size 0 drops them.
	 * -RP_E2BIG: more than RP_PRIVATE_MAX. */
	int32_t (*set_private)(void *ctx, rp_txn txn, rp_ctr ctr, const void *data, uint32_t size);
	/* Marks the container as running, but with less than it requests. Status shows the reason,
	 * and the policy should try again. NULL: removes the mark. */
	int32_t (*set_degraded)(void *ctx, rp_txn txn, rp_ctr ctr, const char *reason);
	/* Stages a line KEY="value" of the data file that the container can read
	 * (RP_DATA_DIR/resources.sh). NULL or "" removes the line. -RP_EINVAL: the key is no name
	 * of a shell variable in capitals. */
	int32_t (*set_data)(void *ctx, rp_txn txn, rp_ctr ctr, const char *key, const char *value);

	/* ---- since 1.2 ---- */

	/* Fills *out with the devices that the kubelet's pod-resources API reports for the
	 * container, one resource per index. -RP_ENOENT: past the last one. There are none when the
	 * kubelet is not queried, has not answered, or was not queried since the daemon's start: a
	 * policy must save what it needs over a restart. */
	int32_t (*pod_resource)(void *ctx, rp_ctr ctr, uint32_t index,
				struct rp_pod_resource_info *out);

	/* ---- since 1.3 ---- */

	/* Returns a process argument of the container, the program first. Known when env() is.
	 * NULL: past the last one. */
	const char *(*arg)(void *ctx, rp_ctr ctr, uint32_t index);
	/* Replaces all process arguments while the container is being created. n is at least 1 and
	 * the first argument not "". -RP_E2BIG: more than RP_ARGS_MAX or RP_ARGS_BYTES_MAX. */
	int32_t (*set_args)(void *ctx, rp_txn txn, rp_ctr ctr, const char *const *args, uint32_t n);
	/* Puts the container in a group (1 … RP_GROUP_MAX, numbers chosen by the policy). The
	 * members of a group may share their exclusive CPUs with each other, and with no other
	 * container: each member that may run on an exclusive CPU of the group must own this CPU
	 * too. 0: no group, as without a call. */
	int32_t (*set_group)(void *ctx, rp_txn txn, rp_ctr ctr, uint32_t group);
	/* Writes the ids of all pods that are not removed, in order of arrival, at most cap of
	 * them. Returns the number of all pods, which may exceed cap. */
	uint32_t (*list_pods)(void *ctx, rp_pod *ret, uint32_t cap);
	/* Returns the bytes that this policy saved with set_pod_private(), valid until the callback
	 * returns. -RP_ENOENT: none, also after a decision of another policy. */
	int32_t (*get_pod_private)(void *ctx, rp_pod pod, const void **ret, uint32_t *ret_size);
	/* Saves bytes with the pod until it is removed, over restarts, for this policy alone. Size
	 * 0 drops them. -RP_E2BIG: more than RP_PRIVATE_MAX. */
	int32_t (*set_pod_private)(void *ctx, rp_txn txn, rp_pod pod, const void *data,
				   uint32_t size);
	/* Delays updates of this transaction that only grow containers and are not part of the
	 * reply. They are sent when no such decision was made for quiet_ms, at the latest
	 * longest_ms after the first one. So many containers that end in a row cause one update of
	 * those that grow. A transaction that takes a CPU from a container is sent at once,
	 * together with the delayed updates. The last call is effective; without one, and with
	 * longest_ms 0, nothing is delayed. -RP_EINVAL: longest_ms exceeds RP_WAIT_MAX_MS or is
	 * below quiet_ms. */
	int32_t (*may_wait)(void *ctx, rp_txn txn, uint32_t quiet_ms, uint32_t longest_ms);
	/* Fills *out with a container of a pod with RP_POD_FED, one per index: first the init
	 * containers and sidecars, then the app containers, each in the pod's order. -RP_ENOENT:
	 * past the last one, and for other pods. The list is lost in a restart of the daemon: a
	 * policy must save what it needs. */
	int32_t (*pod_ctr)(void *ctx, rp_pod pod, uint32_t index, struct rp_pod_ctr_info *out);
	/* Add a mount, identified by its destination, or a device file, identified by its
	 * path, to the container that is being created. Both paths are absolute, without "..", ".",
	 * "//" or a "/" at the end. -RP_E2BIG: also when the struct has members that this host does
	 * not know. -RP_EINVAL: malformed, or inside of RP_DATA_DIR, which belongs to the host. */
	int32_t (*add_mount)(void *ctx, rp_txn txn, rp_ctr ctr, const struct rp_mount *mount);
	int32_t (*add_device)(void *ctx, rp_txn txn, rp_ctr ctr, const struct rp_device *device);
	/* Adds a device by its name in the Container Device Interface, "vendor.example/gpu=0": the
	 * runtime edits the container as the device's file describes. A runtime without CDI ignores
	 * it or fails the creation. -RP_EINVAL: malformed name. */
	int32_t (*add_cdi)(void *ctx, rp_txn txn, rp_ctr ctr, const char *name);
	/* Returns the name of a device that the runtime adds by the Container Device Interface, one
	 * per index. Known when env() is. NULL: past the last one. */
	const char *(*cdi)(void *ctx, rp_ctr ctr, uint32_t index);
	/* Checks that these memory nodes have the huge pages left that a container requests, or
	 * with ctr 0 those that a pod with RP_POD_FED requests for its containers. Pages count on
	 * the memory nodes of the other containers that request some. Pages that other programs use
	 * are not left. Returns 1: they have; 0: no huge pages are requested; -RP_ENOSPC: `why` has
	 * a sentence of at most cap bytes with its NUL. */
	int32_t (*hugepages)(void *ctx, rp_pod pod, rp_ctr ctr, struct rp_ids nodes, char *why,
			     uint32_t cap);
	/* Fills *out with the huge pages of a node, one page size per index, ascending. -RP_ENOENT:
	 * past the last one. */
	int32_t (*node_hugepages)(void *ctx, uint32_t node, uint32_t index,
				  struct rp_hugepages_info *out);
	/* Stores for each of n keys what pod_annotation() returns. */
	void (*pod_annotations)(void *ctx, rp_pod pod, const char *const *keys, uint32_t n,
				const char **ret);
	/* Returns the bytes of memory that a container may use, mem_limit or else mem_request of
	 * get_ctr(), with less work than that. 0: none is stated, or there is no such container. */
	int64_t (*memory)(void *ctx, rp_ctr ctr);
	/* Leaves the container on all CPUs, exclusive CPUs of other containers included, as with
	 * RP_CTR_PRESERVE_CPU. Without this call the host keeps a container that has no CPUs from
	 * set_cpus() off exclusive CPUs. Effective until set_cpus(), a restart of the daemon, or a
	 * change of the policy: a policy repeats the call in sync(). No effect on a container that
	 * already has CPUs. */
	int32_t (*leave_unpinned)(void *ctx, rp_txn txn, rp_ctr ctr);
};

#define RP_DATA_DIR "/.nri-resource-policy"

#ifdef __cplusplus
}
#endif
#endif
