/* SPDX-License-Identifier: Apache-2.0 */
/* Reduced quotas of containers whose limit counts nominal CPUs, on nodes whose CPUs are worth
 * more. */
#include <stdio.h>
#include <string.h>

#include "modules/batch-limits/batch-limits.h"

#define TEXT_MAX 64u
#define QUOTA_MIN 1000 /* smallest quota that the kernel accepts, in microseconds */

struct place {
	char dir[CTL_PATH_MAX];
	int64_t quota, period; /* present values; quota -1: no limit */
	int64_t target; /* value to write; equal to quota: none */
};

/* Reads a number; negative ones are stored as -1. */
static int32_t read_number(const struct modhost *h, const char *dir, const char *file, int64_t *ret)
{
	char text[TEXT_MAX];
	uint64_t v = 0;
	int32_t r = koord_read(h, dir, file, text, sizeof text);
	if (!r && text[0] != '-')
		r = ctl_number(text, 10, &v, NULL);
	if (r || v > INT64_MAX)
		return r ? r : -RP_EINVAL;
	*ret = text[0] == '-' ? -1 : (int64_t)v;
	return 0;
}

static int32_t read_quota(const struct modhost *h, bool v1, struct place *p)
{
	if (!v1)
		return koord_read_quota(h, p->dir, &p->quota, &p->period);
	int32_t r = read_number(h, p->dir, "cpu.cfs_quota_us", &p->quota);
	return r ? r : read_number(h, p->dir, "cpu.cfs_period_us", &p->period);
}

/* Determines the quota to write. A value of the runtime or the kubelet is replaced. A quota that
 * another program (such as cpu-burst) enlarged or removed is left to it. */
static int32_t scale_look(const struct modhost *h, struct batch_item *b, bool v1, int64_t limit,
			  struct place *p)
{
	const struct batch_scale *s = &b->scale;
	int32_t r = read_quota(h, v1, p);
	if (r) {
		ctl_say(&b->item, RP_APPLY_FAILED, "%s: its quota: %s", p->dir, modhost_why(r));
		return r;
	}
	int64_t plain =
		p->period > 0 && limit < INT64_MAX / 100 / p->period ? limit * p->period / 1000 : 0;
	bool ours = plain > 0 && p->quota > 0 && (s->anew ? p->quota <= plain : p->quota == plain);
	int64_t scaled = (plain * 100 + s->ratio - 1) / s->ratio;
	p->target = !ours ? p->quota : scaled < QUOTA_MIN ? QUOTA_MIN : scaled;
	return 0;
}

static int32_t scale_put(const struct modhost *h, struct batch_item *b, bool v1,
			 const struct place *p)
{
	const char *file = v1 ? "cpu.cfs_quota_us" : "cpu.max";
	char text[TEXT_MAX];
	if (p->target == p->quota)
		return 0;
	if (v1)
		(void)ctl_format(text, sizeof text, "%lld", (long long)p->target);
	else
		(void)ctl_format(text, sizeof text, "%lld %lld", (long long)p->target,
				 (long long)p->period);
	return koord_put(h, &b->item, p->dir, file, text);
}

void batch_scale(const struct modhost *h, struct batch_item *b)
{
	bool v1 = koord_is_v1(h, "cpu");
	struct place own, pod;
	int32_t r = ctl_find_cgroup(h, &b->item, v1 ? "cpu" : "", own.dir, sizeof own.dir);
	if (r)
		return;
	ctl_say(&b->item, RP_APPLY_DONE, "%s", "");
	memcpy(pod.dir, own.dir, sizeof pod.dir);
	bool has_pod = koord_dir_above(pod.dir);
	if (scale_look(h, b, v1, b->scale.limit, &own) ||
	    (has_pod && scale_look(h, b, v1, b->scale.pod_limit, &pod)))
		return;
	/* cgroup v1 requires that a container's quota never exceeds its pod's. */
	bool grows = has_pod && pod.target > pod.quota;
	if (grows)
		r = scale_put(h, b, v1, &pod);
	if (!r)
		r = scale_put(h, b, v1, &own);
	if (!r && has_pod && !grows)
		(void)scale_put(h, b, v1, &pod);
}
