/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on containers that all policies share: listing, annotations, CPU shares, memory near
 * CPUs, staging, records and data files. */
#ifndef NRI_RP_LIB_CTR_H
#define NRI_RP_LIB_CTR_H

#include <stdbool.h>

#include <nri-rp/lib/bytes.h>
#include <nri-rp/lib/host.h>

/* Buffer for walks over the live containers. All zeros: empty. */
struct ctr_list {
	rp_ctr *ctrs;
	uint32_t cap;
};

/* Fills the list, in an order RP_ORDER_…. Returns the number of containers, or -RP_ENOMEM with a
 * message. */
int32_t ctr_list(const struct modhost *h, struct ctr_list *list, uint32_t order);
void ctr_list_free(struct ctr_list *list);

/* Fills *ret by get_ctr(). An error has a message. */
int32_t ctr_info(const struct modhost *h, rp_ctr ctr, struct rp_ctr_info *ret);

/* Returns the annotation KEY.resource-policy.nri.io, or KEY in the domain of CRI Resource Manager.
 * NULL: none. */
const char *ctr_annotation(const struct modhost *h, rp_ctr ctr, const char *key);

/* Returns the value of an annotation that is true or false as 1 or 0. -1: absent, or another value,
 * which is logged as a warning. ret_scope: as of rp_host_cache.annotation, or NULL. */
int ctr_annotated_bool(const struct modhost *h, rp_ctr ctr, const char *key, uint32_t *ret_scope);

/* Returns true if the container may have exclusive CPUs. If its pod has resources at pod level,
 * only a container whose own CPU request equals its own limit may. */
bool ctr_may_own_cpus(const struct rp_ctr_info *info);

/* Returns the CPU request that a container contributes to a pool. It includes the part of the pod's
 * own request that exceeds its containers' requests; one container of the pod carries this part. */
static inline int64_t ctr_counted_cpu(const struct rp_ctr_info *info)
{
	return info->cpu_request + info->pod_cpu_extra;
}

/* Returns the CPU shares for a request in milli-CPU, as the kubelet computes them. */
int64_t ctr_shares_of(int64_t mcpu);
/* Stages the CPU shares for a request in milli-CPU. */
int32_t ctr_set_shares(const struct modhost *h, rp_txn txn, rp_ctr ctr, int64_t mcpu);

/* Stores the NUMA nodes of these CPUs. A node without memory is replaced by the nearest one with
 * memory. */
void ctr_memory_near(const struct modhost *h, struct rp_ids cpus, struct rp_idset *ret);
/* Stores the memory nodes for a container on these CPUs: the nodes near the CPUs, and further
 * nodes, the nearest first, until they have the huge pages that the container requests. */
void ctr_memory_for(const struct modhost *h, rp_ctr ctr, struct rp_ids cpus, struct rp_idset *ret);
/* Stages memory nodes. An empty set is replaced by all nodes with memory, since the runtime would
 * interpret the empty set as "unchanged". */
int32_t ctr_set_memory(const struct modhost *h, rp_txn txn, rp_ctr ctr, struct rp_ids nodes);
/* Stages the memory nodes near these CPUs, or with pin false all nodes if a policy pinned the
 * container before. A container annotated to keep its memory is left unchanged. A claim is always
 * pinned. */
int32_t ctr_pin_memory(const struct modhost *h, rp_txn txn, const struct rp_ctr_info *info,
		       bool pin, struct rp_ids cpus);

/* The complete decision for a container: members that are zero reset what was staged before. */
struct ctr_stage {
	struct rp_ids cpus; /* CPUs on which the container runs */
	struct rp_ids own; /* exclusive CPUs of the container or its group */
	/* group of containers that share exclusive CPUs (rp_host_cache.set_group); 0: none */
	uint32_t group;
	/* reason why the container has less than it requests; NULL: it has all */
	const char *degraded;
};
/* Stages a complete decision. Returns 0 or an error of the host. */
int32_t ctr_stage(const struct modhost *h, rp_txn txn, rp_ctr ctr, const struct ctr_stage *s);

/* Reads the record that the policy saved with the container: a struct that begins with its version,
 * a uint32_t. False: there is no record of this version and size, because another policy or none
 * has decided; *ret is unchanged. */
bool ctr_record(const struct modhost *h, rp_ctr ctr, uint32_t version, void *ret, uint32_t size);
/* Returns the bytes of a record for reading; no bytes if there is none. */
struct bytes_left ctr_record_bytes(const struct modhost *h, rp_ctr ctr);
/* Saves a record with the container, for ctr_record() or ctr_record_bytes(). */
int32_t ctr_set_record(const struct modhost *h, rp_txn txn, rp_ctr ctr, const void *record,
		       uint32_t size);
/* Drops the container's exclusive CPUs, group and record. */
int32_t ctr_forget(const struct modhost *h, rp_txn txn, rp_ctr ctr);

/* Writes a set as text for data files of containers. A text over the host's limit becomes "", with
 * a warning. Returns text. */
#define CTR_DATA_MAX 4096u
const char *ctr_data_text(const struct modhost *h, const char *key, struct rp_ids cpus,
			  char text[CTR_DATA_MAX + 1]);
/* Stages a set as a line KEY="list" of the container's data file. */
int32_t ctr_set_data_cpus(const struct modhost *h, rp_txn txn, rp_ctr ctr, const char *key,
			  struct rp_ids cpus);
/* Stages SHARED_CPUS, and the exclusive CPUs as ISOLATED_CPUS (CPUs that the kernel isolates) and
 * EXCLUSIVE_CPUS (all others). */
int32_t ctr_set_data_sets(const struct modhost *h, rp_txn txn, rp_ctr ctr, struct rp_ids shared,
			  struct rp_ids own);

#endif
