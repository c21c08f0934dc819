/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the batch resources of a pod's annotation, and converts them to limits. */
#include <string.h>

#include "modules/batch-limits/batch-limits.h"
#include "modules/lib/private/annotation.h"
#include "modules/lib/private/ctl_table.h"

#define SPEC "node.koordinator.sh/extended-resource-spec"
#define SHARES_MIN 2
#define SHARES_MAX 262144
#define QUOTA_MIN 1000 /* smallest quota that the kernel accepts, in microseconds */
/* largest amount, in milli-CPU or bytes; its quota, times the percent of a ratio, fits 64 bits */
#define AMOUNT_MAX (INT64_C(1) << 49)

struct asked {
	int64_t request, cpu, memory; /* milli-CPU, bytes; limits may be BATCH_UNLIMITED */
	bool any;
};

/* Reads an amount; `none` is the result for an absent resource. */
static int32_t spec_amount(const struct modhost *h, rp_cfg map, const char *resource, int64_t none,
			   bool *any, int64_t *ret)
{
	rp_cfg node = annotation_named(h, map, resource);
	*ret = none;
	if (!node)
		return 0;
	*any = true;
	*ret = h->config->value(h->ctx, node, RP_T_BYTES, RP_NOT_SET);
	if (*ret < 0 || *ret > AMOUNT_MAX)
		return -RP_EINVAL;
	if (*ret == 0)
		*ret = none;
	return 0;
}

static int32_t read_asked(const struct modhost *h, rp_cfg ctr, struct asked *ret)
{
	rp_cfg requests, limits;
	ret->any = false;
	int32_t r = annotation_member(h, SPEC, ctr, "requests", RP_NODE_MAP, &requests);
	if (!r)
		r = annotation_member(h, SPEC, ctr, "limits", RP_NODE_MAP, &limits);
	if (!r)
		r = spec_amount(h, requests, KOORD_BATCH_CPU, 0, &ret->any, &ret->request);
	if (!r)
		r = spec_amount(h, limits, KOORD_BATCH_CPU, BATCH_UNLIMITED, &ret->any, &ret->cpu);
	if (!r)
		r = spec_amount(h, limits, KOORD_BATCH_MEMORY, BATCH_UNLIMITED, &ret->any,
				&ret->memory);
	return r;
}

static struct batch_limits limits_of(const struct asked *a, int64_t ratio)
{
	struct batch_limits l = {a->request * 1024 / 1000, BATCH_UNLIMITED, a->memory};
	l.shares = l.shares < SHARES_MIN   ? SHARES_MIN
		   : l.shares > SHARES_MAX ? SHARES_MAX
					   : l.shares;
	if (a->cpu != BATCH_UNLIMITED) {
		/* rounded up, like the quotas of other pods (scale.c) */
		l.quota = (a->cpu * (BATCH_PERIOD / 1000) * 100 + ratio - 1) / ratio;
		l.quota = l.quota < QUOTA_MIN ? QUOTA_MIN : l.quota;
	}
	return l;
}

static void spec_add(int64_t *sum, int64_t more)
{
	*sum = *sum == BATCH_UNLIMITED || more == BATCH_UNLIMITED || *sum + more > AMOUNT_MAX
		       ? BATCH_UNLIMITED
		       : *sum + more;
}

/* ---- without the annotation ------------------------------------------------------------------ */

/* Returns the amount of a resource, `none` for 0. */
static int64_t extended_amount(int64_t amount, int64_t none)
{
	return amount > 0 && amount <= AMOUNT_MAX ? amount : none;
}

/* Reads a container's batch resources from the cluster's report or the resources annotation.
 * Clusters without koordinator's webhook write no annotation of their own. */
static void read_extended(const struct modhost *h, rp_ctr ctr, struct asked *ret)
{
	int64_t request, limit;
	*ret = (struct asked){.cpu = BATCH_UNLIMITED, .memory = BATCH_UNLIMITED};
	if (!RP_HAS(h->cache, extended))
		return;
	if (!h->cache->extended(h->ctx, ctr, KOORD_BATCH_CPU, &request, &limit)) {
		ret->any = true;
		ret->request = extended_amount(request, 0);
		ret->cpu = extended_amount(limit, BATCH_UNLIMITED);
	}
	if (!h->cache->extended(h->ctx, ctr, KOORD_BATCH_MEMORY, &request, &limit)) {
		ret->any = true;
		ret->memory = extended_amount(limit, BATCH_UNLIMITED);
	}
}

/* Sums of the pod's containers that exist. */
struct extended_sum {
	const struct modhost *h;
	rp_pod pod;
	struct asked all;
};

static void add_extended(void *arg, rp_ctr ctr)
{
	struct extended_sum *s = arg;
	struct rp_ctr_info info = {.size = sizeof info};
	struct asked one;
	if (s->h->cache->get_ctr(s->h->ctx, ctr, &info) || info.pod != s->pod)
		return;
	read_extended(s->h, ctr, &one);
	if (!one.any)
		return;
	s->all.request += one.request < AMOUNT_MAX - s->all.request ? one.request : 0;
	spec_add(&s->all.cpu, one.cpu);
	spec_add(&s->all.memory, one.memory);
}

static int32_t extended_limits_of(const struct modhost *h, const struct rp_ctr_info *info,
				  int64_t ratio, struct batch_limits *ret_ctr,
				  struct batch_limits *ret_pod)
{
	struct extended_sum sum = {.h = h, .pod = info->pod};
	struct asked own;
	read_extended(h, info->ctr, &own);
	if (!own.any)
		return 0;
	(void)ctl_each_container(h, add_extended, &sum);
	*ret_ctr = limits_of(&own, ratio);
	*ret_pod = limits_of(&sum.all, ratio);
	return BATCH_OF_CLUSTER;
}

/* ---- both ------------------------------------------------------------------------------------ */

int32_t batch_limits_of(const struct modhost *h, const struct rp_ctr_info *info, int64_t ratio,
			struct batch_limits *ret_ctr, struct batch_limits *ret_pod,
			char why[CTL_TEXT_MAX])
{
	const char *text = h->cache->pod_annotation(h->ctx, info->pod, SPEC);
	struct asked all = {.any = false};
	rp_cfg root, ctrs = NULL;
	int32_t r = text ? annotation_parse(h, SPEC, text, &root) : -RP_ENOENT;
	bool found = false;
	if (!text)
		return extended_limits_of(h, info, ratio, ret_ctr, ret_pod);
	if (!r)
		r = annotation_member(h, SPEC, root, "containers", RP_NODE_MAP, &ctrs);
	for (uint32_t i = 0; !r && ctrs && i < h->config->count(h->ctx, ctrs); i++) {
		struct asked one;
		r = read_asked(h, h->config->item(h->ctx, ctrs, i), &one);
		if (r || !one.any)
			continue;
		all.request += one.request < AMOUNT_MAX - all.request ? one.request : 0;
		spec_add(&all.cpu, one.cpu);
		spec_add(&all.memory, one.memory);
		if (strcmp(h->config->key(h->ctx, ctrs, i), info->name) == 0) {
			*ret_ctr = limits_of(&one, ratio);
			found = true;
		}
	}
	if (r) {
		(void)ctl_format(
			why, CTL_TEXT_MAX,
			"annotation " SPEC
			" is not a map of containers with requests and limits of " KOORD_BATCH_CPU
			" and " KOORD_BATCH_MEMORY);
		return -RP_EINVAL;
	}
	*ret_pod = limits_of(&all, ratio);
	return found;
}
