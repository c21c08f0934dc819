/* SPDX-License-Identifier: Apache-2.0 */
/* [worker] Writes quota and burst of a container and its pod. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "modules/cpu-burst/cpu-burst.h"
#include <nri-rp/lib/calc.h>

struct place {
	const struct modhost *h;
	struct burst_item *b;
	char dir[CTL_PATH_MAX];
	/* present values; burst RP_NOT_SET: the kernel does not have the file */
	int64_t quota, period, burst;
};

static int32_t apply_failed(struct burst_item *b, const char *dir, const char *file, int32_t r)
{
	ctl_say(&b->item, RP_APPLY_FAILED, "%s/%s: %s", dir, file, modhost_why(r));
	return r;
}

static int32_t apply_look(struct place *p)
{
	char text[32];
	uint64_t burst;
	int32_t r = koord_read_quota(p->h, p->dir, &p->quota, &p->period);
	if (r)
		return apply_failed(p->b, p->dir, "cpu.max", r);
	p->burst = RP_NOT_SET;
	r = koord_read(p->h, p->dir, "cpu.max.burst", text, sizeof text);
	if (!r && !ctl_number(text, 10, &burst, NULL) && burst < INT64_MAX)
		p->burst = (int64_t)burst;
	return r && r != -ENOENT ? apply_failed(p->b, p->dir, "cpu.max.burst", r) : 0;
}

static int32_t put_burst(struct place *p, int64_t burst)
{
	char text[32];
	(void)snprintf(text, sizeof text, "%lld", (long long)burst);
	return p->burst == RP_NOT_SET ? 0
				      : koord_put(p->h, &p->b->item, p->dir, "cpu.max.burst", text);
}

/* Writes quota and burst. The kernel refuses burst > quota: when shrinking, write the burst first;
 * when growing, the quota first. */
static int32_t put_both(struct place *p, int64_t quota, int64_t burst)
{
	char text[64];
	int32_t r = 0;
	bool limited = p->quota >= 0;
	(void)snprintf(text, sizeof text, "%lld %lld", (long long)quota, (long long)p->period);
	if (limited)
		burst = calc_min(burst, quota);
	if (!limited)
		return put_burst(p, burst);
	if (quota < p->quota)
		r = put_burst(p, burst);
	if (!r)
		r = koord_put(p->h, &p->b->item, p->dir, "cpu.max", text);
	return r || quota < p->quota ? r : put_burst(p, burst);
}

void burst_apply(const struct modhost *h, struct burst_item *b)
{
	struct place own = {.h = h, .b = b}, pod = {.h = h, .b = b};
	int32_t r = ctl_find_cgroup(h, &b->item, "", own.dir, sizeof own.dir);
	b->ret_quota = RP_NOT_SET;
	if (r)
		return;
	ctl_say(&b->item, RP_APPLY_DONE, "%s", "");
	memcpy(pod.dir, own.dir, sizeof pod.dir);
	bool has_pod = koord_dir_above(pod.dir);
	if (apply_look(&own) || (has_pod && apply_look(&pod)))
		return;
	b->ret_quota = own.quota;
	b->ret_period = own.period;
	if (own.quota < 0)
		return;
	int64_t base = b->limit * own.period / 1000;
	int64_t quota = burst_quota(b->way, base, b->quota_percent, own.quota);
	int64_t burst = calc_min(calc_percent(base, b->kernel_percent), quota);
	int64_t more = quota - own.quota;
	int64_t more_burst = own.burst == RP_NOT_SET ? 0 : burst - own.burst;
	int64_t pod_quota = calc_max(pod.quota + more, 1000), pod_burst = pod.burst;
	if (pod.burst != RP_NOT_SET)
		pod_burst = calc_max(pod.burst + more_burst, 0);
	if (has_pod && (more > 0 || (!more && more_burst > 0)))
		r = put_both(&pod, pod_quota, pod_burst);
	if (!r)
		r = put_both(&own, quota, burst);
	if (!r && has_pod && (more < 0 || (!more && more_burst < 0)))
		r = put_both(&pod, pod_quota, pod_burst);
	if (!r)
		b->ret_quota = quota;
}
