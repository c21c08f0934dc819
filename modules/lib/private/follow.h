/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPUs that a scheduler chose for a pod: the member cpuset of the annotation resource-status of
 * koordinator. A policy with the key followScheduler gives them to all containers of the pod.
 */
#pragma once

#include <stdbool.h>

#include <nri-rp/lib/ctr.h>
#include <nri-rp/lib/section.h>

#define FOLLOW_ANNOTATION "scheduling.koordinator.sh/resource-status"

#define FOLLOW_KEY                                                                                 \
	SECTION_BOOL(                                                                              \
		"followScheduler", "false",                                                        \
		"Containers get exactly the CPUs that the scheduler of koordinator chose for "     \
		"their pod, without CPU quota.")

/* Returns true if the annotation of the pod names CPUs, or is invalid. */
bool follow_wants(const struct modhost *h, rp_pod pod);

/* CPU sets against which the named CPUs are checked. */
struct follow_limits {
	struct rp_ids online, available, reserved;
	struct rp_ids taken; /* exclusive CPUs of other pods */
};

/* Stores the CPUs that the annotation of a pod names. Returns 0, or -RP_EINVAL with a message if it
 * is invalid, a CPU is not allowed by `limits`, or the pod is known to request fewer CPUs. */
int32_t follow_cpus(const struct modhost *h, rp_pod pod, const struct follow_limits *limits,
		    struct rp_idset *ret);

/* Returns true if another container of the pod has exactly these CPUs as exclusive ones. */
bool follow_shares(const struct modhost *h, const struct rp_ctr_info *info, struct rp_ids cpus);
