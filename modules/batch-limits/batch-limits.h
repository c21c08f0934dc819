/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch-limits.so: what a container gets that asks for batch resources. Its pod has no requests
 * that the runtime knows of and runs among those of BestEffort; what it asked for is in an
 * annotation of the pod. And, where a CPU is worth more than one, the quota of those whose limit
 * does not know of that.
 *
 *	spec.c		annotation → what a container and its pod are to have
 *	apply.c		[worker] that, in the files of their cgroups
 *	scale.c		[worker] smaller quotas of others
 *	batch-limits.c	the module
 */
#ifndef BATCH_LIMITS_H
#define BATCH_LIMITS_H

#include <stdbool.h>

#include <nri-rp/controller.h>

#include "modules/lib/koord.h"

#define BATCH_PERIOD 100000 /* microseconds */
#define BATCH_UNLIMITED (-1)

struct batch_limits {
	int64_t shares; /* 2 … 262144 */
	int64_t quota; /* microseconds a period, or BATCH_UNLIMITED */
	int64_t memory; /* bytes, or BATCH_UNLIMITED */
};

/*
 * 1: the container asks for batch resources; 0: it does not. -RP_EINVAL with `why`: its pod's
 * annotation cannot be read. ratio: what a CPU is worth here, in hundredths of one that requests
 * are made for.
 */
int32_t batch_limits_of(const struct modhost *h, const struct rp_ctr_info *info, int64_t ratio,
			struct batch_limits *ret_ctr, struct batch_limits *ret_pod,
			char why[CTL_TEXT_MAX]);

/* Limits of a container and of its pod, in milli-CPU that are worth one; 0: none. */
struct batch_scale {
	int64_t limit, pod_limit;
	int64_t ratio; /* as above */
	bool anew; /* it was another one before: less than the limit, too, was put there by us */
};

struct batch_item {
	struct ctl_item item;
	char *ref; /* of the container's cgroup */
	bool scales; /* by its limit; otherwise it asks for batch resources */
	struct batch_limits ctr, pod;
	struct batch_scale scale;
	uint32_t n_writes;
};
/* [worker] */
void batch_apply(const struct modhost *h, struct batch_item *b);
void batch_scale(const struct modhost *h, struct batch_item *b);

#endif
