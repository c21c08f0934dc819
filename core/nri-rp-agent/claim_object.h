/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the devices of this node that are allocated to a ResourceClaim of the API server. */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "core/nri-rp-agent/capacity.h"
#include "core/lib/util/err.h"
#include "core/lib/wire/agent_protocol.h"
#include "proto/agent.pb-c.h"

/* A device that is allocated to a claim. */
struct claim_result {
	const char *request; /* name of the request; a subrequest is cut off */
	size_t request_len;
	const char *device, *share_id; /* share_id NULL: none */
	int64_t cpus, memory; /* allocated whole CPUs and bytes of memory */
	Agent__Amount amounts[CAPACITY_SIZES], *huge[CAPACITY_SIZES];
	uint32_t n_huge; /* allocated sizes of huge pages */
};

/* Texts are borrowed from the object. */
struct claim_object {
	struct claim_result results[AGENT_CLAIM_PARTS_MAX];
	uint32_t n_results;
	const char *pods[AGENT_CLAIM_PODS_MAX]; /* UIDs of the pods that may use it */
	uint32_t n_pods;
};

/* Reads the claim with this UID. -ESTALE: the object is another claim, or has no device of this
 * driver and pool; -EINVAL: the allocation is not valid. */
int claim_object_read(const json_t *object, const char *uid, const char *driver, const char *pool,
		      struct claim_object *ret, struct err *err);
