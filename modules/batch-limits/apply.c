/* SPDX-License-Identifier: Apache-2.0 */
/* [worker] Writes the limits of a container and its pod. */
#include <string.h>

#include "modules/batch-limits/batch-limits.h"

#define TEXT_MAX 64u
#define PAGE 4096

static int32_t put_cpu(const struct modhost *h, struct batch_item *b, const char *dir, bool v1,
		       const struct batch_limits *l)
{
	char shares[TEXT_MAX], quota[TEXT_MAX];
	int64_t weight =
		/* the conversion of runtimes */
		1 + (l->shares - 2) * 9999 / 262142;
	if (v1) {
		(void)ctl_format(shares, sizeof shares, "%lld", (long long)l->shares);
		(void)ctl_format(quota, sizeof quota, "%lld", (long long)l->quota);
	} else {
		(void)ctl_format(shares, sizeof shares, "%lld", (long long)weight);
		if (l->quota == BATCH_UNLIMITED)
			(void)ctl_format(quota, sizeof quota, "max %d", BATCH_PERIOD);
		else
			(void)ctl_format(quota, sizeof quota, "%lld %d", (long long)l->quota,
					 BATCH_PERIOD);
	}
	int32_t r = koord_put(h, &b->item, dir, v1 ? "cpu.shares" : "cpu.weight", shares);
	return r ? r : koord_put(h, &b->item, dir, v1 ? "cpu.cfs_quota_us" : "cpu.max", quota);
}

static int32_t put_memory(const struct modhost *h, struct batch_item *b, const char *dir, bool v1,
			  const struct batch_limits *l)
{
	char text[TEXT_MAX];
	int64_t whole_pages = l->memory / PAGE * PAGE;
	if (l->memory == BATCH_UNLIMITED)
		return 0;
	(void)ctl_format(text, sizeof text, "%lld", (long long)whole_pages);
	return koord_put(h, &b->item, dir, v1 ? "memory.limit_in_bytes" : "memory.max", text);
}

/* Writes the container's values before the pod's values, which are at least as large. */
static int32_t put_both(const struct modhost *h, struct batch_item *b, const char *controller,
			bool v1,
			int32_t (*put_limits)(const struct modhost *h, struct batch_item *b,
					      const char *dir, bool v1,
					      const struct batch_limits *l))
{
	char dir[CTL_PATH_MAX];
	int32_t r = ctl_find_cgroup(h, &b->item, v1 ? controller : "", dir, sizeof dir);
	if (r)
		return r;
	r = put_limits(h, b, dir, v1, &b->ctr);
	return r || !koord_dir_above(dir) ? r : put_limits(h, b, dir, v1, &b->pod);
}

void batch_apply(const struct modhost *h, struct batch_item *b)
{
	ctl_say(&b->item, RP_APPLY_DONE, "%s", "");
	if (!put_both(h, b, "cpu", koord_is_v1(h, "cpu"), put_cpu))
		(void)put_both(h, b, "memory", koord_is_v1(h, "memory"), put_memory);
}
