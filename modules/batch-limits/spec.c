/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the batch resources of a pod's annotation, and converts them to limits. */
#include <string.h>

#include "modules/batch-limits/batch-limits.h"
#include "modules/lib/annotation.h"

#define SPEC "node.koordinator.sh/extended-resource-spec"
#define SHARES_MIN 2
#define SHARES_MAX 262144
#define QUOTA_MIN 1000 /* the kernel's minimum */
#define AMOUNT_MAX (INT64_C(1) << 50) /* sums of such amounts fit 64 bits */

struct asked {
	int64_t request, cpu, memory; /* milli-CPU, bytes; limits may be BATCH_UNLIMITED */
	bool any;
};

/* Reads an amount; `none` is the result for an absent resource. */
static int32_t amount(const struct modhost *h, rp_cfg map, const char *resource, int64_t none,
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
		r = amount(h, requests, KOORD_BATCH_CPU, 0, &ret->any, &ret->request);
	if (!r)
		r = amount(h, limits, KOORD_BATCH_CPU, BATCH_UNLIMITED, &ret->any, &ret->cpu);
	if (!r)
		r = amount(h, limits, KOORD_BATCH_MEMORY, BATCH_UNLIMITED, &ret->any, &ret->memory);
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

static void add(int64_t *sum, int64_t more)
{
	*sum = *sum == BATCH_UNLIMITED || more == BATCH_UNLIMITED || *sum + more > AMOUNT_MAX
		       ? BATCH_UNLIMITED
		       : *sum + more;
}

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
		return 0;
	if (!r)
		r = annotation_member(h, SPEC, root, "containers", RP_NODE_MAP, &ctrs);
	for (uint32_t i = 0; !r && ctrs && i < h->config->count(h->ctx, ctrs); i++) {
		struct asked one;
		r = read_asked(h, h->config->item(h->ctx, ctrs, i), &one);
		if (r || !one.any)
			continue;
		all.request += one.request < AMOUNT_MAX - all.request ? one.request : 0;
		add(&all.cpu, one.cpu);
		add(&all.memory, one.memory);
		if (strcmp(h->config->key(h->ctx, ctrs, i), info->name) == 0) {
			*ret_ctr = limits_of(&one, ratio);
			found = true;
		}
	}
	if (r) {
		(void)ctl_format(
			why, CTL_TEXT_MAX,
			"annotation " SPEC " is not what it should be: a map of containers "
			"with requests and limits of " KOORD_BATCH_CPU " and " KOORD_BATCH_MEMORY);
		return -RP_EINVAL;
	}
	*ret_pod = limits_of(&all, ratio);
	return found;
}
