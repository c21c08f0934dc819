/* SPDX-License-Identifier: Apache-2.0 */
/* Quotas of containers whose limit counts CPUs that are worth one, where a CPU is worth more. */
#include <stdio.h>
#include <string.h>

#include "modules/batch-limits/batch-limits.h"

#define TEXT_MAX 64u
#define QUOTA_MIN 1000 /* less the kernel does not take */

struct place {
	char dir[CTL_PATH_MAX];
	int64_t quota, period; /* that it has; quota -1: none */
	int64_t target; /* what it is to be; quota: it stays */
};

/* A number, or -1 for one below zero. */
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

/* What the runtime or the kubelet has written is replaced; a quota that somebody else has made
 * larger, as cpu-burst does, or has taken away, is theirs. */
static int32_t look(const struct modhost *h, struct batch_item *b, bool v1, int64_t limit,
		    struct place *p)
{
	const struct batch_scale *s = &b->scale;
	int32_t r = read_quota(h, v1, p);
	if (r) {
		ctl_say(&b->item, RP_APPLY_FAILED, "%s: its quota: %s", p->dir, ctl_why(r));
		return r;
	}
	int64_t plain =
		p->period > 0 && limit < INT64_MAX / 100 / p->period ? limit * p->period / 1000 : 0;
	bool ours = plain > 0 && p->quota > 0 && (s->anew ? p->quota <= plain : p->quota == plain);
	int64_t scaled = (plain * 100 + s->ratio - 1) / s->ratio;
	p->target = !ours ? p->quota : scaled < QUOTA_MIN ? QUOTA_MIN : scaled;
	return 0;
}

static int32_t put(const struct modhost *h, struct batch_item *b, bool v1, const struct place *p)
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
	int32_t r = koord_write(h, p->dir, file, text);
	b->n_writes += r > 0;
	if (r < 0)
		ctl_say(&b->item, RP_APPLY_FAILED, "%s/%s: %s", p->dir, file, ctl_why(r));
	return r < 0 ? r : 0;
}

void batch_scale(const struct modhost *h, struct batch_item *b)
{
	bool v1 = koord_is_v1(h, "cpu");
	struct place own, pod;
	int32_t r = h->work->cgroup_find(h->ctx, b->ref, v1 ? "cpu" : "", own.dir, sizeof own.dir);
	ctl_say(&b->item, RP_APPLY_DONE, "%s", "");
	if (r) {
		ctl_say(&b->item, RP_APPLY_FAILED, "its cgroup is not found: %s", ctl_why(r));
		return;
	}
	memcpy(pod.dir, own.dir, sizeof pod.dir);
	bool has_pod = koord_dir_above(pod.dir);
	if (look(h, b, v1, b->scale.limit, &own) ||
	    (has_pod && look(h, b, v1, b->scale.pod_limit, &pod)))
		return;
	/* a container's quota is never above its pod's, which v1 insists on */
	bool grows = has_pod && pod.target > pod.quota;
	if (grows)
		r = put(h, b, v1, &pod);
	if (!r)
		r = put(h, b, v1, &own);
	if (!r && has_pod && !grows)
		(void)put(h, b, v1, &pod);
}
