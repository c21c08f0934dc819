/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Common parts of modules that protect pods on a node with overcommitted capacity: the QoS class of
 * a pod, the usage of the node, and the cgroups above a container.
 */
#pragma once

#include <stdbool.h>

#include <nri-rp/lib/ctl_life.h>

#define KOORD_BATCH_CPU "kubernetes.io/batch-cpu"
#define KOORD_BATCH_MEMORY "kubernetes.io/batch-memory"

/* Host services that the koordinator modules need. */
#define KOORD_NEEDS (MODHOST_TIMER | MODHOST_TOPOLOGY)
/* For ops.init: returns -RP_ENOTSUP if the host cannot find cgroups. */
int32_t koord_init(struct rp_instance *inst);

/* Returns the host of a controller, for files that do not see its struct rp_instance. */
const struct modhost *koord_host(const struct rp_instance *inst);

/* Returns the class RP_KOORD_… of a pod: by its label koordinator.sh/qosClass, else by its
 * Kubernetes QoS. Guaranteed is LSR, Burstable LS, BestEffort BE. */
uint32_t koord_qos(const struct modhost *h, rp_pod pod);
/* Returns the class of a name such as "LS"; RP_KOORD_NONE for an unknown one. */
uint32_t koord_qos_of(const char *text);
/* Returns true if the pod uses overcommitted capacity: its class is BE by label, or it is
 * BestEffort. */
bool koord_is_lent(const struct modhost *h, rp_pod pod);
/* Returns true if the container is limited by a CPU quota alone: it has a limit and no exclusive
 * CPUs, and its pod is of class LS or has no class. Such containers run on shared CPUs. */
bool koord_has_quota(const struct modhost *h, const struct rp_ctr_info *info);
/* Returns the capacity of a CPU of this node in hundredths of a nominal CPU: `configured` if it is
 * a valid ratio, else the Node's annotation, else 100. */
int64_t koord_cpu_worth(const struct modhost *h, double configured);
#define KOORD_RATIO "node.koordinator.sh/cpu-normalization-ratio"
#define KOORD_SYSTEM_CPUS "node.koordinator.sh/system-qos-resource"
/* Stores the CPUs that the Node's annotation reserves for the system: {"cpuset": "0-1"}, unless it
 * contains "cpusetExclusive": false. Empty: none. */
void koord_system_cpus(const struct modhost *h, struct rp_idset *ret);
/* Parses a ratio such as "1.25"; 0: no number between 1 and 10. */
double koord_read_ratio(const char *text);
/* Parses the number of a label or annotation of a pod, or returns the fallback. */
int64_t koord_number(const char *text, int64_t fallback);
/* Returns the online CPUs in milli-CPU. */
int64_t koord_capacity(const struct modhost *h);

/* [any] Stores the time that all CPUs have been busy since boot, in microseconds. Returns 0 or
 * -errno. */
int32_t koord_busy_us(const struct modhost *h, int64_t *ret);
/* [any] Stores the load averages of one and of five minutes, in thousandths. Returns 0, -errno or
 * -RP_EINVAL. */
int32_t koord_load(const struct modhost *h, int64_t ret[2]);
/* Usage between two readings in milli-CPU; RP_NOT_SET: unknown. */
struct koord_rate {
	uint64_t at_ms; /* time of the last reading; 0: no reading yet */
	int64_t busy_us;
};
/* Returns the usage since the last reading in milli-CPU, and stores this reading. RP_NOT_SET: there
 * was none. */
int64_t koord_used(struct koord_rate *last, uint64_t now_ms, int64_t busy_us);

/* Stores the usage of a container. False: none was measured in the last ten seconds. */
bool koord_usage(const struct modhost *h, rp_ctr ctr, struct rp_usage *ret);

/* ---- rounds: a timer that expires each interval as long as the module arms it ---------------- */

#define KOORD_TICK UINT64_C(0x5099) /* cookie of the timer of rounds */
struct koord_rounds {
	bool armed;
	struct koord_rate rate; /* usage of the node between two rounds */
};
/* Reads the key `interval` of a section; by default 1 s. */
int32_t koord_interval(const struct modhost *h, rp_cfg section, uint64_t *ret_ms);
/* For ops.start: returns -RP_ENOTSUP with cgroup v1. */
int32_t koord_needs_v2(const struct modhost *h);
/* Arms the timer for the next round, unless it is armed. */
void koord_rounds_arm(struct koord_rounds *r, const struct modhost *h, uint64_t interval_ms);
/* Returns true if a round begins with this timer. */
bool koord_rounds_tick(struct koord_rounds *r, uint64_t cookie);
/* Cancels the timer and drops the last reading. */
void koord_rounds_stop(struct koord_rounds *r, const struct modhost *h);

/* Returns true if the controller has a hierarchy of cgroup v1. */
bool koord_is_v1(const struct modhost *h, const char *controller);
/* [any] Changes the directory of a container's cgroup to its parent: the pod's directory, then the
 * directories above. False: the parent does not belong to the kubelet. */
bool koord_dir_above(char *dir);
/* [any] Writes the directory of all pods with the Kubernetes QoS of a container's cgroup.
 * -RP_ENOENT: the cgroup is not below the kubelet's. */
int32_t koord_qos_dir(const struct modhost *h, const char *ref, char *buf, size_t size);

/* [any] Reads one line of a file without its newline. Returns 0 or -errno. */
int32_t koord_read(const struct modhost *h, const char *dir, const char *file, char *buf,
		   uint32_t cap);
/* [any] Writes a file unless it has the value already, and reads it back. Returns 1 if written, 0
 * if the value was there, or -errno. */
int32_t koord_write(const struct modhost *h, const char *dir, const char *file, const char *text);
/* [worker] Calls koord_write() for an item: counts the write and reports a failure. Returns 0 or
 * -errno. */
int32_t koord_put(const struct modhost *h, struct ctl_item *item, const char *dir, const char *file,
		  const char *text);
/* [any] Reads cpu.max ("max 100000"); quota -1: no limit. Returns 0 or -errno. */
int32_t koord_read_quota(const struct modhost *h, const char *dir, int64_t *ret_quota,
			 int64_t *ret_period);
