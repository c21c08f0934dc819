/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What modules share that protect the pods of high quality on a node whose capacity was lent: which
 * class a pod is of, what the node uses, and the cgroups above a container.
 */
#ifndef NRI_RP_LIB_KOORD_H
#define NRI_RP_LIB_KOORD_H

#include <stdbool.h>

#include "modules/lib/ctl_file.h"
#include "modules/lib/ctl_queue.h"

#define KOORD_BATCH_CPU "kubernetes.io/batch-cpu"
#define KOORD_BATCH_MEMORY "kubernetes.io/batch-memory"

/* For create(): the queue and the services that all of these modules need. */
int32_t koord_open(struct modhost *h, const struct rp_host *host, const struct ctl_ops *ops,
		   void *arg, struct ctl_queue **ret);

/* RP_KOORD_…: of its label koordinator.sh/qosClass, else what its Kubernetes QoS implies:
 * Guaranteed is LSR, Burstable LS, BestEffort BE. */
uint32_t koord_qos(const struct modhost *h, rp_pod pod);
/* "LS"; RP_KOORD_NONE for what is none. */
uint32_t koord_qos_of(const char *text);
/* Does it use what was lent: BE by its label, or BestEffort? */
bool koord_is_lent(const struct modhost *h, rp_pod pod);
/* Is it of an LS pod, or of one that does not say what it is, with a limit and no CPUs of its own?
 * Those run on shared CPUs, held back by a quota alone. */
bool koord_has_quota(const struct modhost *h, const struct rp_ctr_info *info);
/* What a CPU of this node is worth, in hundredths of one that requests are made for: `configured`
 * where that is one, else what the Node's annotation says, else 100. */
int64_t koord_cpu_worth(const struct modhost *h, double configured);
#define KOORD_RATIO "node.koordinator.sh/cpu-normalization-ratio"
#define KOORD_SYSTEM_CPUS "node.koordinator.sh/system-qos-resource"
/* The CPUs that the Node's annotation gives to the system alone: {"cpuset": "0-1"}, unless it has
 * "cpusetExclusive": false. Empty: none. */
void koord_system_cpus(const struct modhost *h, struct rp_idset *ret);
/* "1.25"; 0: no number from 1 to 10. */
double koord_read_ratio(const char *text);
/* The number of a label or annotation of the pod. */
int64_t koord_number(const char *text, int64_t fallback);
/* Online CPUs in milli-CPU. */
int64_t koord_capacity(const struct modhost *h);

/* [any] CPU time that all CPUs have spent busy since boot, in microseconds. -errno. */
int32_t koord_busy_us(const struct modhost *h, int64_t *ret);
/* [any] The load averages of one minute and of five, in thousandths. -errno, -RP_EINVAL. */
int32_t koord_load(const struct modhost *h, int64_t ret[2]);
/* Milli-CPU between two readings; RP_NOT_SET: that cannot be told. */
struct koord_rate {
	uint64_t at_ms; /* 0: never read */
	int64_t busy_us;
};
int64_t koord_used(struct koord_rate *last, uint64_t now_ms, int64_t busy_us);

/* Has that controller a hierarchy of cgroup v1? */
bool koord_is_v1(const struct modhost *h, const char *controller);
/* [any] From the directory of a container's cgroup to the pod's, from there to those above; false:
 * the next one is not the kubelet's. */
bool koord_dir_above(char *dir);
/* [any] From a container's cgroup, the directory that all pods of its Kubernetes QoS are in.
 * -RP_ENOENT: not below the kubelet's. */
int32_t koord_qos_dir(const struct modhost *h, const char *ref, char *buf, size_t size);

/* [any] One line of a file without its end. -errno. */
int32_t koord_read(const struct modhost *h, const char *dir, const char *file, char *buf,
		   uint32_t cap);
/* [any] Writes unless it is there already; what is written is looked for afterwards. 1: written; 0:
 * it was there; -errno. */
int32_t koord_write(const struct modhost *h, const char *dir, const char *file, const char *text);
/* [any] "max 100000" of cpu.max: -1 is no limit. -errno. */
int32_t koord_read_quota(const struct modhost *h, const char *dir, int64_t *ret_quota,
			 int64_t *ret_period);

#endif
