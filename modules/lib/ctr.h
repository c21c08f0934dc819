/* SPDX-License-Identifier: Apache-2.0 */
/* What policies do with containers, whatever they decide: list them, look at them, and set what
 * follows from CPUs and requests. */
#ifndef NRI_RP_LIB_CTR_H
#define NRI_RP_LIB_CTR_H

#include <stdbool.h>

#include "modules/lib/host.h"

/* Scratch for walks over the live containers. All zeros: empty. */
struct ctr_list {
	rp_ctr *ctrs;
	uint32_t cap;
};

/* Fills the list, by RP_ORDER_…; how many, or -RP_ENOMEM with a message. */
int32_t ctr_list(const struct modhost *h, struct ctr_list *list, uint32_t order);
void ctr_list_free(struct ctr_list *list);

/* get_ctr(), with a message when the host does not know it. */
int32_t ctr_info(const struct modhost *h, rp_ctr ctr, struct rp_ctr_info *ret);

/* The annotation KEY.resource-policy.nri.io, or KEY in the domain that CRI Resource Manager has.
 * NULL: none. */
const char *ctr_annotation(const struct modhost *h, rp_ctr ctr, const char *key);

/* An annotation that is true or false: 1 or 0; -1: it is not there or is neither, with a warning.
 * scope: as of rp_host_cache.annotation, or NULL. */
int ctr_annotated_bool(const struct modhost *h, rp_ctr ctr, const char *key, uint32_t *ret_scope);

/* Returns whether the container may get exclusive CPUs as far as its pod's own resources decide:
 * under those its own request has to be its own limit. */
bool ctr_may_own_cpus(const struct rp_ctr_info *info);

/* The CPU request that a container counts for in a pool: with what its pod requests beyond all of
 * the pod's containers, which one of them carries. */
static inline int64_t ctr_counted_cpu(const struct rp_ctr_info *info)
{
	return info->cpu_request + info->pod_cpu_extra;
}

/* CPU shares for a request in milli-CPU, as the kubelet would set them. */
int64_t ctr_shares_of(int64_t mcpu);
int32_t ctr_set_shares(const struct modhost *h, rp_txn txn, rp_ctr ctr, int64_t mcpu);

/* NUMA nodes of these CPUs; instead of one without memory the nearest one that has some. */
void ctr_memory_near(const struct modhost *h, struct rp_ids cpus, struct rp_idset *ret);
/* Pins memory to nodes; to all of them when there are none, as the empty set would mean "as it is"
 * to the runtime. */
int32_t ctr_set_memory(const struct modhost *h, rp_txn txn, rp_ctr ctr, struct rp_ids nodes);
/* Its memory is pinned near these CPUs, or no longer if a policy pinned it; one that is annotated
 * to keep its memory is left alone. */
int32_t ctr_pin_memory(const struct modhost *h, rp_txn txn, const struct rp_ctr_info *info,
		       bool pin, struct rp_ids cpus);

/* What a container shall have: all of it is set, so that nothing of what it had before is left. */
struct ctr_stage {
	struct rp_ids cpus; /* where it runs */
	struct rp_ids own; /* of these: its own, or its group's */
	/* of containers that share what they own (rp_host_cache.set_group); 0: none */
	uint32_t group;
	const char *degraded; /* why that is not what it asks for; NULL: it is */
};
int32_t ctr_stage(const struct modhost *h, rp_txn txn, rp_ctr ctr, const struct ctr_stage *s);

/* What is kept with a container: a struct of the policy that begins with its version, a uint32_t.
 * False: there is none of that version and size, so that another policy has decided, or nobody;
 * *ret is as it was. */
bool ctr_record(const struct modhost *h, rp_ctr ctr, uint32_t version, void *ret, uint32_t size);
int32_t ctr_set_record(const struct modhost *h, rp_txn txn, rp_ctr ctr, const void *record,
		       uint32_t size);
/* It owns nothing, and nothing is kept with it. */
int32_t ctr_forget(const struct modhost *h, rp_txn txn, rp_ctr ctr);

/* A set as text for containers' data files; "", with a warning, when it has more than the host
 * takes. Returns text. */
#define CTR_DATA_MAX 4096u
const char *ctr_data_text(const struct modhost *h, const char *key, struct rp_ids cpus,
			  char text[CTR_DATA_MAX + 1]);
int32_t ctr_set_data_cpus(const struct modhost *h, rp_txn txn, rp_ctr ctr, const char *key,
			  struct rp_ids cpus);
/* SHARED_CPUS, and of its own ones ISOLATED_CPUS, those that the kernel isolates, and
 * EXCLUSIVE_CPUS, the others. */
int32_t ctr_set_data_sets(const struct modhost *h, rp_txn txn, rp_ctr ctr, struct rp_ids shared,
			  struct rp_ids own);

#endif
