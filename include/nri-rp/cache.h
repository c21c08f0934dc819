/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nri-rp.host.cache/1: pods and containers, and the transaction through which they are changed.
 *
 * Getters show the state as it will be when the running transaction commits: what the module has
 * staged is already there. Setters take the transaction that the callback was given; outside of a
 * callback there is none and nothing can be changed.
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
#define RP_STATE_EXITED 4u /* holds nothing any more; waits for its removal */

#define RP_CTR_ESTIMATED_MEM 0x1u /* mem_request was estimated from oom_score_adj */
#define RP_CTR_PRESERVE_CPU 0x2u /* annotation: leave its CPUs alone */
#define RP_CTR_PRESERVE_MEM 0x4u
#define RP_CTR_INIT 0x8u /* known to be an init container (not always known) */
#define RP_CTR_RESTORED 0x10u /* was there before this daemon's start */
#define RP_CTR_DEGRADED 0x20u
/* requests and limits are what the pod says, by the resources annotation, and not computed back
 * from what the runtime was told. [since 1.3] */
#define RP_CTR_EXACT_NEEDS 0x40u
/* allocate() is asked although it has begun to run, since the runtime tells late (host.h,
 * RP_RUNTIME_CREATION_IS_LATE): nothing that only a creation can give reaches it. [since 1.3] */
#define RP_CTR_RUNS_ALREADY 0x80u
/* its pod has resources of its own (spec.resources): requests and limits here are those that the
 * container has itself; 0 where it uses the pod's. [since 1.3] */
#define RP_CTR_POD_RESOURCES 0x100u

#define RP_NOT_SET INT64_MIN /* an amount nobody has set */

struct rp_ctr_info {
	uint32_t size;
	uint32_t state;
	uint32_t qos;
	uint32_t flags;
	rp_ctr ctr;
	rp_pod pod;
	const char *id, *name, *pod_name, *pod_namespace;
	uint64_t created_ns; /* wall clock */
	int64_t cpu_request, cpu_limit; /* milli-CPU; 0: none */
	int64_t mem_request, mem_limit; /* bytes; 0: none */
	/* What is decided, by this policy or before it; empty: nothing. */
	struct rp_ids cpus, mems;
	struct rp_ids exclusive; /* the part of cpus that is its own */
	int64_t shares, quota, period; /* RP_NOT_SET: not decided by us */

	/* ---- since 1.2 ---- */

	/* What the runtime has for it, whoever decided that; empty: it does not say. */
	struct rp_ids has_cpus, has_mems;

	/* ---- since 1.3 ---- */

	/* As the runtime asked for them at creation or in the last resize, before anything was
	 * derived from them. RP_NOT_SET: it did not say. */
	int64_t asked_shares, asked_quota, asked_period;
	/* CPU in milli that its pod itself (spec.resources) requests beyond the pod's containers,
	 * for the pod's first application container; 0 for the others. It is to be counted, and is
	 * no reason for exclusive CPUs. */
	int64_t pod_cpu_extra;
};

struct rp_pod_info {
	uint32_t size;
	uint32_t qos;
	rp_pod pod;
	const char *id, *name, *pod_namespace, *uid, *runtime_handler, *cgroup_parent;

	/* ---- since 1.3 ---- */

	uint32_t flags; /* RP_POD_… */
	int32_t priority; /* with RP_POD_FED: its number; 0 without */
	/* What its containers ask for together, as the cluster has it or else as the runtime was
	 * told of the pod: milli-CPU, bytes; 0: none. RP_NOT_SET: neither is known, as after a
	 * start of the daemon; of mem_request only the cluster knows. */
	int64_t cpu_request, cpu_limit, mem_limit;
	int64_t mem_request;
};

#define RP_POD_STOPPED 0x1u /* no container can be created in it any more */
/* the cluster has told of it: the amounts are exact, and pod_ctr() knows its containers */
#define RP_POD_FED 0x2u
/* with RP_POD_FED: the pod has resources of its own (spec.resources), which the amounts are
 * [since 1.3] */
#define RP_POD_OWN_RESOURCES 0x8u
#define RP_POD_DAEMON_SET 0x4u /* with RP_POD_FED: it is one of a DaemonSet */

/* A container of a pod as the cluster has it, whether it has been created or not. */
struct rp_pod_ctr_info {
	uint32_t size;
	uint32_t kind; /* RP_POD_CTR_… */
	const char *name;
	int64_t cpu_request, cpu_limit; /* milli-CPU; 0: none */
	int64_t mem_request, mem_limit; /* bytes; 0: none */
};

#define RP_POD_CTR_APP 1u
#define RP_POD_CTR_INIT 2u /* it ends before the next one begins */
#define RP_POD_CTR_SIDECAR 3u /* an init container that goes on */

/* Orders of list(). */
#define RP_ORDER_CREATED 0u /* by creation */
/* Guaranteed, Burstable, BestEffort; each by creation time, then id: in which sync() places.
 * Without the one that is being created */
#define RP_ORDER_SYNC 1u

/* Where an annotation was found. */
#define RP_SCOPE_CONTAINER 1u
#define RP_SCOPE_POD 2u
#define RP_SCOPE_UNSCOPED 3u

/* Fields of set_int(), with their units. Fields marked * only take effect while a container is
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
/* * bytes of memory and swap together; -1: unlimited. Only runtimes with RP_RUNTIME_CAN_SWAP
 * (host.h) take it; on cgroup v2 RP_F_UNIFIED with memory.swap.max, of swap alone, reaches the
 * others. [since 1.3] */
#define RP_F_SWAP 16u
/* bytes of the fastest memory that the kernel lets it have while others want some, more than 0:
 * what an adjustment says (rp.conf). For get_int() of controllers alone, which write it where the
 * kernel has such a file: no runtime knows it, and set_int() does not take it. post_update() tells
 * of it with RP_CHANGED_MEMORY. [since 1.3] */
#define RP_F_TOPTIER_LIMIT 17u

/* Fields of set_text(). */
#define RP_F_RDT_CLASS 100u /* "" clears */
#define RP_F_BLOCKIO_CLASS 101u
#define RP_F_CPU_CLASS 102u /* not known to runtimes: for controllers */
#define RP_F_MEMPOLICY_NODES 103u /* * node list, with RP_F_MEMPOLICY_MODE */
#define RP_F_MEMPOLICY_FLAGS 104u /* * comma list: static, relative, numa-balancing */

/* Fields of set_pair(), all *. */
#define RP_F_ENV 200u
#define RP_F_ANNOTATION 201u
#define RP_F_UNIFIED 202u /* a cgroup v2 file and its content */
/* a page size as cgroups call it ("2MB", "1GB") and the bytes that it may use of them, in decimal
 * digits. A size that the machine does not have fails the creation. [since 1.3] */
#define RP_F_HUGEPAGES 203u

/*
 * What only a creation can give (fields with *, set_pair(), set_args(), add_mount(), add_device(),
 * add_cdi()) may be asked for by several: the policy, controllers, plugins of resources. Who asks
 * for the same again changes its mind. Who asks for what another one has asked for with another
 * value is told -RP_EBUSY, and the host has recorded a sentence with both names as by fail(); the
 * same value is no conflict. What the container had there itself is replaced. -RP_ENOTSUP: it is
 * not being created; -RP_E2BIG: over 256 of them. [the rule: since 1.3; before, the last one
 * counted]
 */

#define RP_GROUP_MAX 65535u /* of set_group */
#define RP_WAIT_MAX_MS 60000u /* of may_wait */
#define RP_ARGS_MAX 4096u /* process arguments of set_args … */
#define RP_ARGS_BYTES_MAX 131072u /* … and their bytes, the NULs included */
#define RP_PRIVATE_MAX 4096u /* bytes of set_private */
#define RP_ANNOTATION_MAX 65536u /* longer ones are cut off from lookups with a warning */

struct rp_mount_info {
	uint32_t size;
	uint32_t read_only;
	const char *source, *destination, *type;
};

struct rp_device_info {
	uint32_t size;
	uint32_t writable;
	const char *path, *type; /* type: c, b, u, p */
	int64_t major, minor;
};

/* A mount that add_mount() gives a container. [since 1.3] */
struct rp_mount {
	uint32_t size;
	uint32_t read_only; /* 0 or 1 */
	/* of the host; where in the container, absolute; "bind", "tmpfs" and the like */
	const char *source, *destination, *type;
	/* As in an OCI bundle, between commas, without ro and rw: "rbind,rprivate". For a mount of
	 * type bind, bind or rbind is among them. */
	const char *options;
};

#define RP_MOUNT_OPTIONS_MAX 32u
#define RP_OWNER_NOT_SET 0xffffffffu

/* A device file that add_device() gives a container, with the right to read and write it.
 * [since 1.3] */
struct rp_device {
	uint32_t size;
	uint32_t mode; /* permission bits of the file, at most 0777; 0: the runtime's choice */
	const char *path, *type; /* path: in the container, absolute; type: c, b, u, p */
	int64_t major, minor; /* of p, a pipe: 0 */
	uint32_t uid, gid; /* of the file; RP_OWNER_NOT_SET: the runtime's choice */
};

/* Devices of one resource that the kubelet gave a container. */
struct rp_pod_resource_info {
	uint32_t size;
	uint32_t pad;
	const char *resource; /* as "vendor.example/gpu" */
	/* that any of them is at; at least one, but perhaps none that this machine has */
	struct rp_ids nodes;
};

struct rp_host_cache {
	uint32_t size;
	uint32_t pad;

	/* ---- reading ---- */

	/* Live containers (not EXITED), in an order; returns how many there are, writes at most
	 * cap. */
	uint32_t (*list)(void *ctx, uint32_t order, rp_ctr *ret, uint32_t cap);
	int32_t (*get_ctr)(void *ctx, rp_ctr ctr, struct rp_ctr_info *out);
	int32_t (*get_pod)(void *ctx, rp_pod pod, struct rp_pod_info *out);
	/* The effective annotation of a container: KEY/container.NAME, then KEY/pod, then KEY, all
	 * on its pod; for each the canonical spelling, then its aliases. NULL: none. ret_scope may
	 * be NULL. */
	const char *(*annotation)(void *ctx, rp_ctr ctr, const char *key, uint32_t *ret_scope);
	/* Plain look-ups; NULL: none. */
	const char *(*pod_annotation)(void *ctx, rp_pod pod, const char *key);
	const char *(*pod_label)(void *ctx, rp_pod pod, const char *key);
	const char *(*ctr_label)(void *ctx, rp_ctr ctr, const char *key);
	const char *(*ctr_annotation)(void *ctx, rp_ctr ctr, const char *key);
	/* Only known while the container is being created, and for those that existed, after
	 * Synchronize: -RP_ENOENT elsewhere and past the last one. */
	const char *(*env)(void *ctx, rp_ctr ctr, const char *name);
	int32_t (*mount)(void *ctx, rp_ctr ctr, uint32_t index, struct rp_mount_info *out);
	int32_t (*device)(void *ctx, rp_ctr ctr, uint32_t index, struct rp_device_info *out);
	/* Decided values, by the fields of set_int and set_text. -RP_ENOENT: not set. */
	int32_t (*get_int)(void *ctx, rp_ctr ctr, uint32_t field, int64_t *ret);
	const char *(*get_text)(void *ctx, rp_ctr ctr, uint32_t field);
	/* What this policy kept with the container. -RP_ENOENT: nothing (also when another policy
	 * decided last). */
	int32_t (*get_private)(void *ctx, rp_ctr ctr, const void **ret, uint32_t *ret_size);
	/* An extended resource's request and limit from the resources annotation. -RP_ENOENT:
	 * none. */
	int32_t (*extended)(void *ctx, rp_ctr ctr, const char *resource, int64_t *ret_request,
			    int64_t *ret_limit);

	/* ---- staging ---- */

	int32_t (*set_cpus)(void *ctx, rp_txn txn, rp_ctr ctr, struct rp_ids cpus);
	int32_t (*set_mems)(void *ctx, rp_txn txn, rp_ctr ctr, struct rp_ids mems);
	/* The part of its CPUs that nobody else may use. The host enforces it. The empty set: none,
	 * as without a call. */
	int32_t (*set_exclusive)(void *ctx, rp_txn txn, rp_ctr ctr, struct rp_ids cpus);
	int32_t (*set_int)(void *ctx, rp_txn txn, rp_ctr ctr, uint32_t field, int64_t value);
	int32_t (*set_text)(void *ctx, rp_txn txn, rp_ctr ctr, uint32_t field, const char *value);
	int32_t (*set_pair)(void *ctx, rp_txn txn, rp_ctr ctr, uint32_t field, const char *key,
			    const char *value);
	/* Kept with the container over restarts, for this policy alone. Size 0 forgets it. */
	int32_t (*set_private)(void *ctx, rp_txn txn, rp_ctr ctr, const void *data, uint32_t size);
	/* The container runs, but not as it should: shown in status with the reason and retried by
	 * the policy. NULL: all is well again. */
	int32_t (*set_degraded)(void *ctx, rp_txn txn, rp_ctr ctr, const char *reason);
	/* A KEY="value" line of the data file that the container can read
	 * (RP_DATA_DIR/resources.sh). NULL or "" takes it out. */
	int32_t (*set_data)(void *ctx, rp_txn txn, rp_ctr ctr, const char *key, const char *value);

	/* ---- since 1.2 ---- */

	/* What the kubelet's pod-resources API says of the container, by name of the resource.
	 * -RP_ENOENT past the last one; there is none where the kubelet is not asked, has not
	 * answered, or the daemon has been started anew and nobody has asked yet: what is to last
	 * has to be kept by the policy. */
	int32_t (*pod_resource)(void *ctx, rp_ctr ctr, uint32_t index,
				struct rp_pod_resource_info *out);

	/* ---- since 1.3 ---- */

	/* The container's process arguments, the program first; known when env is. NULL past the
	 * last. */
	const char *(*arg)(void *ctx, rp_ctr ctr, uint32_t index);
	/* Replaces all of them, while the container is being created; n is at least 1 and the first
	 * one not "". -RP_ENOTSUP: the container is not being created; -RP_E2BIG: over RP_ARGS_MAX
	 * or RP_ARGS_BYTES_MAX. */
	int32_t (*set_args)(void *ctx, rp_txn txn, rp_ctr ctr, const char *const *args, uint32_t n);
	/* The members of a group (1 … RP_GROUP_MAX, numbers of the policy's choosing) may share
	 * their exclusive CPUs with each other, and with nobody else: a CPU that one of them owns,
	 * every one that may run there has to own. 0: no group, as without a call. */
	int32_t (*set_group)(void *ctx, rp_txn txn, rp_ctr ctr, uint32_t group);
	/* All pods that are not removed, in order of arrival; returns how many there are, writes at
	 * most cap. */
	uint32_t (*list_pods)(void *ctx, rp_pod *ret, uint32_t cap);
	/* What this policy kept with the pod. -RP_ENOENT: nothing (also when another policy decided
	 * last). */
	int32_t (*get_pod_private)(void *ctx, rp_pod pod, const void **ret, uint32_t *ret_size);
	/* Kept with the pod until it is removed, over restarts, for this policy alone. Size 0
	 * forgets it. -RP_E2BIG: over RP_PRIVATE_MAX. */
	int32_t (*set_pod_private)(void *ctx, rp_txn txn, rp_pod pod, const void *data,
				   uint32_t size);
	/* What this transaction gives to containers, and no reply tells, the runtime is told when
	 * nothing of that kind has been decided for quiet_ms, and at the latest longest_ms after
	 * the first of it: many containers that end in a row are one update of those that grow. A
	 * transaction that takes a CPU from a container is never held back, and takes along what
	 * waits. The last call counts; without one, and with longest_ms 0, nothing waits.
	 * -RP_EINVAL: longest_ms is over RP_WAIT_MAX_MS, or below quiet_ms. */
	int32_t (*may_wait)(void *ctx, rp_txn txn, uint32_t quiet_ms, uint32_t longest_ms);
	/* The containers of a pod with RP_POD_FED, those that begin before the apps first, each
	 * kind in the pod's order. -RP_ENOENT past the last one, and of other pods. What is to last
	 * has to be kept by the policy: a daemon that is started anew knows nothing of it. */
	int32_t (*pod_ctr)(void *ctx, rp_pod pod, uint32_t index, struct rp_pod_ctr_info *out);
	/* Gives the container that is being created a mount, by its destination, or a device file,
	 * by its path: absolute, without "..", ".", "//" or a "/" at the end. The structs are
	 * options: -RP_E2BIG also where one says more than this host knows. -RP_EINVAL: malformed,
	 * or at RP_DATA_DIR, which is the host's. */
	int32_t (*add_mount)(void *ctx, rp_txn txn, rp_ctr ctr, const struct rp_mount *mount);
	int32_t (*add_device)(void *ctx, rp_txn txn, rp_ctr ctr, const struct rp_device *device);
	/* A device by its name in the Container Device Interface, "vendor.example/gpu=0": the
	 * runtime edits the container as the device's file says. A runtime that knows nothing of
	 * such names leaves it out or fails the creation. -RP_EINVAL: no such name. */
	int32_t (*add_cdi)(void *ctx, rp_txn txn, rp_ctr ctr, const char *name);
	/* Names of the devices that the runtime has for the container in the Container Device
	 * Interface; known when env is. NULL past the last. */
	const char *(*cdi)(void *ctx, rp_ctr ctr, uint32_t index);
};

#define RP_DATA_DIR "/.nri-resource-policy"

#ifdef __cplusplus
}
#endif
#endif
