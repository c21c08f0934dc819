/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values the runtime does not tell but that can be computed back: QoS class, CPU and memory
 * requests, effective annotations.
 *
 *   shares = max(2, min(262144, mcpu * 1024 / 1000))  2 means "no request"
 *   mcpu   = ceil(shares * 1000 / 1024)               exact for every request above 2m
 *   adj    = 1000 - 1000 * request / capacity         oom_score_adj of Burstable ones, 3 … 999
 */
#ifndef CACHE_DERIVE_H
#define CACHE_DERIVE_H

#include "core/nri-rpd/cache/cache.h"

/*
 * * The largest amounts of a container. Larger ones are cut where they are decoded: no machine
 * has them, and sums over all containers of a node stay within 64 bits.
 */
#define DERIVE_CPU_MAX                                                                             \
	INT64_C(1000000000000) /* shares, and microseconds of a quota and its period */
#define DERIVE_MCPU_MAX INT64_C(1000000000000)
#define DERIVE_BYTES_MAX (INT64_C(1) << 48)

/* From the cgroup parent: …besteffort… and …burstable… name their class, anything else is
 * Guaranteed. */
uint32_t derive_qos(const char *cgroup_parent);
int64_t derive_shares_to_mcpu(int64_t shares);
int64_t derive_quota_to_mcpu(int64_t quota, int64_t period); /* period > 0 */
int64_t derive_mcpu_to_shares(int64_t mcpu);
/* Smallest memory request with this oom_score_adj; 0 when it tells nothing. */
int64_t derive_mem_request(int64_t oom_score_adj, uint64_t capacity);
/* Requirements of a container of class `qos` with the runtime's resource values. */
void derive_needs(uint32_t qos, const struct values *res, int64_t oom_score_adj, uint64_t capacity,
		  struct needs *ret, bool *ret_estimated);

/* Is it the annotation of that name, as it stands or in one of the spellings with our domains, for
 * whichever container? */
bool annotation_is(const char *key, const char *name);
/* RP_CTR_PRESERVE_… of its flags. */
void derive_preserved(struct ctr *ctr);
/* Is any of them of our domains? Most pods have none, and are asked for a dozen keys a container:
 * pod->annotated. */
bool annotations_ours(const struct kvs *annotations);
/* KEY/container.NAME, KEY/pod, KEY; for each the canonical spelling, then its aliases. Keys may
 * come with or without the domain ("prefer-isolated-cpus" is taken to mean
 * "prefer-isolated-cpus.resource-policy.nri.io"). */
const char *annotation_effective(const struct pod *pod, const char *ctr_name, const char *key,
				 uint32_t *ret_scope);

#endif
