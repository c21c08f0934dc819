/* SPDX-License-Identifier: Apache-2.0 */
/* What policies do with containers, whatever they decide: list them, look at them, and set what follows from CPUs and requests. */
#ifndef NRI_RP_LIB_CTR_H
#define NRI_RP_LIB_CTR_H

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

/* The annotation KEY.resource-policy.nri.io, or KEY in the domain that CRI Resource Manager has. NULL: none. */
const char *ctr_annotation(const struct modhost *h, rp_ctr ctr, const char *key);

/* CPU shares for a request in milli-CPU, as the kubelet would set them. */
int64_t ctr_shares_of(int64_t mcpu);
int32_t ctr_set_shares(const struct modhost *h, rp_txn txn, rp_ctr ctr, int64_t mcpu);

/* NUMA nodes of these CPUs; instead of one without memory the nearest one that has some. */
void ctr_memory_near(const struct modhost *h, struct rp_ids cpus, struct rp_idset *ret);
/* Pins memory to nodes; to all of them when there are none, as the empty set would mean "as it is" to the runtime. */
int32_t ctr_set_memory(const struct modhost *h, rp_txn txn, rp_ctr ctr, struct rp_ids nodes);

/* A set as text for containers' data files; "", with a warning, when it has more than the host takes. Returns text. */
#define CTR_DATA_MAX 4096u
const char *ctr_data_text(const struct modhost *h, const char *key, struct rp_ids cpus,
			  char text[CTR_DATA_MAX + 1]);
int32_t ctr_set_data_cpus(const struct modhost *h, rp_txn txn, rp_ctr ctr, const char *key,
			  struct rp_ids cpus);

#endif
