/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Derived values that the runtime does not report: QoS class, CPU and memory requests, effective
 * annotations.
 *
 *   shares = max(2, min(262144, mcpu * 1024 / 1000))  2 means "no request"
 *   mcpu   = ceil(shares * 1000 / 1024)               exact for every request above 2m
 *   adj    = 1000 - 1000 * request / capacity         oom_score_adj of Burstable pods, 3 … 999
 */
#pragma once

#include "core/nri-rpd/cache/cache.h"

/* Limits of the kernel. */
#define DERIVE_SHARES_MIN 2
#define DERIVE_SHARES_MAX 262144
/*
 * Largest amounts of a container. Decoders cut larger ones: no node has them, and sums over all
 * containers stay within 64 bits.
 */
#define DERIVE_CPU_MAX                                                                             \
	INT64_C(1000000000000) /* shares, and microseconds of a quota and its period */
#define DERIVE_MCPU_MAX INT64_C(1000000000000)
#define DERIVE_BYTES_MAX (INT64_C(1) << 48)

/* Returns the QoS class of a pod from its cgroup parent: names with besteffort or burstable, else
 * Guaranteed. */
uint32_t derive_qos(const char *cgroup_parent);
/* Returns the name of a QoS class: "Burstable". */
const char *derive_qos_name(uint32_t qos);
/* Converts between shares, quota and milli-CPUs, within the limits above. */
int64_t derive_shares_to_mcpu(int64_t shares);
int64_t derive_quota_to_mcpu(int64_t quota, int64_t period); /* period > 0 */
int64_t derive_mcpu_to_shares(int64_t mcpu);
/* Returns the smallest memory request with this oom_score_adj; 0: the request cannot be derived. */
int64_t derive_mem_request(int64_t oom_score_adj, uint64_t capacity);
/* Derives the needs of a container of class `qos` from the runtime's values. *ret_estimated: the
 * memory request comes from oom_score_adj. */
void derive_needs(uint32_t qos, const struct values *res, int64_t oom_score_adj, uint64_t capacity,
		  struct needs *ret, bool *ret_estimated);

/* Returns true if the key is the annotation `name`, in any spelling with our domains and for any
 * container. */
bool annotation_is(const char *key, const char *name);
/* Sets RP_CTR_PRESERVE_… of the container's flags from its annotations. */
void derive_preserved(struct ctr *ctr);
/* Returns true if an annotation has one of our domains. The result is saved in pod->annotated: most
 * pods have none, and each container looks up a dozen keys. */
bool annotations_ours(const struct kvs *annotations);
/* Returns the effective value of an annotation for a container, or NULL. Order: KEY/container.NAME,
 * KEY/pod, KEY, each in the canonical spelling and then its aliases. `key` may omit the domain:
 * "prefer-isolated-cpus" means "prefer-isolated-cpus.resource-policy.nri.io". */
const char *annotation_effective(const struct pod *pod, const char *ctr_name, const char *key,
				 uint32_t *ret_scope);
