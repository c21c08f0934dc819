/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch-limits.so: limits of containers that request batch resources. The runtime knows no requests
 * of such a pod and places it in the BestEffort cgroup; the pod's annotation has the requests. On
 * nodes whose CPUs are worth more than a nominal CPU, the module also reduces the quotas of other
 * containers, whose limits count nominal CPUs.
 *
 *	spec.c		annotation → limits of a container and its pod
 *	apply.c		[worker] limits into the files of their cgroups
 *	scale.c		[worker] reduced quotas of other containers
 *	batch-limits.c	the module
 */
#pragma once

#include <stdbool.h>

#include "modules/lib/private/koord.h"

#define BATCH_PERIOD 100000 /* period of CPU quotas, in microseconds */
#define BATCH_UNLIMITED (-1)

struct batch_limits {
	int64_t shares; /* CPU shares, 2 … 262144 */
	int64_t quota; /* microseconds per period, or BATCH_UNLIMITED */
	int64_t memory; /* bytes, or BATCH_UNLIMITED */
};

#define BATCH_OF_CLUSTER 2 /* a result of batch_limits_of: not by the annotation */

/*
 * Determines the limits of a container and its pod. Returns 1 or BATCH_OF_CLUSTER if the container
 * requests batch resources, else 0. -RP_EINVAL with `why`: the pod's annotation is malformed.
 * ratio: capacity of a CPU of this node in hundredths of a nominal CPU.
 */
int32_t batch_limits_of(const struct modhost *h, const struct rp_ctr_info *info, int64_t ratio,
			struct batch_limits *ret_ctr, struct batch_limits *ret_pod,
			char why[CTL_TEXT_MAX]);

/* CPU limits of a container and its pod in milli-CPU of nominal CPUs; 0: none. */
struct batch_scale {
	int64_t limit, pod_limit;
	int64_t ratio; /* capacity of a CPU in hundredths of a nominal CPU */
	/* The ratio has changed since the last pass: any quota up to the limit is treated as
	 * written by this module and is scaled again. */
	bool anew;
};

struct batch_item {
	struct ctl_item item;
	bool scales; /* true: scale the quota; false: apply batch limits */
	struct batch_limits ctr, pod;
	struct batch_scale scale;
};

/* [worker] Applies shares and limits; batch_scale() normalizes quotas. */
void batch_apply(const struct modhost *h, struct batch_item *b);
void batch_scale(const struct modhost *h, struct batch_item *b);
