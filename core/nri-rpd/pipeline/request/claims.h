/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Claims (claim.h) in decisions: allocating them from devices of the policy, releasing them, and
 * staging their CPUs for containers that use them.
 */
#pragma once

#include "core/nri-rpd/cache/claim.h"
#include "core/nri-rpd/pipeline/pipeline.h"

/* Allocates a claim, or accepts one that was allocated before, whose users are replaced. *ret is
 * valid until the claim is released. -EAGAIN: the runtime has not synchronized yet; -ENOTSUP: the
 * policy has no devices; -EINVAL, -ENOENT, -ENOSPC and others: refused, with the reason in err. */
int pipeline_claim_prepare(struct pipeline *p, const struct claim_desc *desc,
			   const struct ctr **ret, struct err *err);
/* Releases a claim, if it exists. Containers that use it are placed by the policy, and marked as
 * degraded. */
void pipeline_claim_release(struct pipeline *p, const char *uid);
/* Reports the devices of the policy and of the controllers. */
int pipeline_devices(struct pipeline *p, const struct rp_devices_sink *sink, struct err *err);

/* Stages the sets of the claim that a container uses, by the CDI devices that the runtime reports.
 * Returns 1: staged; 0: it uses no claim; -EINVAL: it uses several. */
int claims_stage(struct pipeline *p, struct ctr *ctr, struct err *err);
/* Stages the new sets of claims that the transaction moves, for the containers that use them. */
int claims_follow(struct pipeline *p, struct err *err);
/* Stages the CPUs and memory nodes of claims for all live containers in the runtime's list that
 * have no claim staged yet. */
int claims_stage_listed(struct pipeline *p, struct err *err);
