/* SPDX-License-Identifier: Apache-2.0 */
/* QoS classes of pods, usage of the node, and files of cgroups above containers. */
#include "modules/lib/private/koord.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "modules/lib/private/annotation.h"
#include <nri-rp/lib/section.h>

#define QOS_LABEL "koordinator.sh/qosClass"
#define TICKS_PER_SECOND 100 /* USER_HZ, the unit of /proc/stat on all machines */
#define STAT_FIELDS 8u
#define RATIO_MIN 1.0
#define RATIO_MAX 10.0
#define STALE_MS 10000 /* age in milliseconds at which usage is treated as unknown */
#define KUBELET "kubepods" /* part of the names of all cgroups of the kubelet's pods */

const struct modhost *koord_host(const struct rp_instance *inst)
{
	return &((const struct ctl_life *)(const void *)inst)->h;
}

int32_t koord_init(struct rp_instance *inst)
{
	const struct modhost *h = koord_host(inst);
	return RP_HAS(h->work, cgroup_find) && h->work->cgroup_find
		       ? 0
		       : modhost_fail(h, -RP_ENOTSUP, "the host cannot find cgroups");
}

uint32_t koord_qos_of(const char *text)
{
	static const char *const names[] = {[RP_KOORD_LSE] = "LSE",
					    [RP_KOORD_LSR] = "LSR",
					    [RP_KOORD_LS] = "LS",
					    [RP_KOORD_BE] = "BE",
					    [RP_KOORD_SYSTEM] = "SYSTEM"};
	for (uint32_t i = RP_KOORD_LSE; i <= RP_KOORD_SYSTEM; i++)
		if (strcmp(text, names[i]) == 0)
			return i;
	return RP_KOORD_NONE;
}

static uint32_t kubernetes_qos(const struct modhost *h, rp_pod pod)
{
	struct rp_pod_info info = {.size = sizeof info};
	return h->cache->get_pod(h->ctx, pod, &info) ? RP_QOS_GUARANTEED : info.qos;
}

uint32_t koord_qos(const struct modhost *h, rp_pod pod)
{
	const char *label = h->cache->pod_label(h->ctx, pod, QOS_LABEL);
	if (label)
		return koord_qos_of(label);
	uint32_t qos = kubernetes_qos(h, pod);
	return qos == RP_QOS_GUARANTEED	 ? RP_KOORD_LSR
	       : qos == RP_QOS_BURSTABLE ? RP_KOORD_LS
					 : RP_KOORD_BE;
}

bool koord_has_quota(const struct modhost *h, const struct rp_ctr_info *info)
{
	const char *label = h->cache->pod_label(h->ctx, info->pod, QOS_LABEL);
	return info->cpu_limit > 0 && rp_ids_empty(info->exclusive) &&
	       (!label || koord_qos_of(label) == RP_KOORD_LS);
}

double koord_read_ratio(const char *text)
{
	char *end;
	errno = 0;
	double v = text ? strtod(text, &end) : 0;
	return text && !errno && !*end && v >= RATIO_MIN && v <= RATIO_MAX ? v : 0;
}

int64_t koord_cpu_worth(const struct modhost *h, double configured)
{
	double ratio = configured;
	if (ratio <= 0 && h->node)
		ratio = koord_read_ratio(h->node->annotation(h->ctx, KOORD_RATIO));
	return ratio > 0 ? (int64_t)(ratio * 100 + 0.5) : 100;
}

void koord_system_cpus(const struct modhost *h, struct rp_idset *ret)
{
	const char *text = h->node ? h->node->annotation(h->ctx, KOORD_SYSTEM_CPUS) : NULL;
	rp_cfg map;
	rp_idset_clear(ret);
	if (!text || annotation_parse(h, "annotation " KOORD_SYSTEM_CPUS, text, &map))
		return;
	const char *cpus = section_text(h, map, "cpuset", "");
	if (!section_bool(h, map, "cpusetExclusive", true) ||
	    rp_idset_parse(ret, cpus, RP_CPUS_MAX))
		rp_idset_clear(ret);
}

bool koord_is_lent(const struct modhost *h, rp_pod pod)
{
	const char *label = h->cache->pod_label(h->ctx, pod, QOS_LABEL);
	return (label && koord_qos_of(label) == RP_KOORD_BE) ||
	       kubernetes_qos(h, pod) == RP_QOS_BEST_EFFORT;
}

int64_t koord_number(const char *text, int64_t fallback)
{
	char *end;
	errno = 0;
	long long v = text ? strtoll(text, &end, 10) : 0;
	return !text || errno || end == text || *end ? fallback : v;
}

int64_t koord_capacity(const struct modhost *h)
{
	struct rp_idset online;
	modhost_set(h, RP_CPUS_ONLINE, &online);
	return 1000 * (int64_t)rp_ids_count(rp_ids_of(&online));
}

/* ---- the node -------------------------------------------------------------------------------- */

int32_t koord_busy_us(const struct modhost *h, int64_t *ret)
{
	char *text = NULL;
	uint64_t v[STAT_FIELDS] = {0};
	int32_t r = ctl_read(h, "/proc/stat", &text);
	if (r < 0)
		return r;
	const char *at = strncmp(text, "cpu ", 4) == 0 ? text + 4 : NULL;
	for (uint32_t i = 0; at && i < STAT_FIELDS; i++) {
		at += strspn(at, " ");
		if (ctl_number(at, 10, &v[i], &at))
			at = NULL;
	}
	free(text);
	if (!at)
		return -RP_EINVAL;
	/* user, nice, system, irq, softirq; the fields between are idle and iowait */
	uint64_t ticks = v[0] + v[1] + v[2] + v[5] + v[6];
	if (ticks > INT64_MAX / 1000000)
		return -RP_EINVAL;
	*ret = (int64_t)ticks * (1000000 / TICKS_PER_SECOND);
	return 0;
}

int64_t koord_used(struct koord_rate *last, uint64_t now_ms, int64_t busy_us)
{
	struct koord_rate was = *last;
	*last = (struct koord_rate){now_ms, busy_us};
	if (!was.at_ms || now_ms <= was.at_ms || busy_us < was.busy_us)
		return RP_NOT_SET;
	return (busy_us - was.busy_us) / (int64_t)(now_ms - was.at_ms);
}

int32_t koord_load(const struct modhost *h, int64_t ret[2])
{
	char text[64], *end;
	int32_t n = h->work->read_file(h->ctx, "/proc/loadavg", text, sizeof text);
	if (n < 0)
		return n;
	double one = strtod(text, &end), five = strtod(end, &end);
	if (!(one >= 0 && one < 1e9 && five >= 0 && five < 1e9))
		return -RP_EINVAL;
	ret[0] = (int64_t)(1000 * one);
	ret[1] = (int64_t)(1000 * five);
	return 0;
}

/* ---- cgroups --------------------------------------------------------------------------------- */

static int32_t any_entry(void *arg, const char *name, uint32_t kind)
{
	return 1;
}

bool koord_is_v1(const struct modhost *h, const char *controller)
{
	char path[CTL_PATH_MAX];
	return !ctl_format(path, sizeof path, "/sys/fs/cgroup/%s", controller) &&
	       h->work->list_dir(h->ctx, path, any_entry, NULL) >= 0;
}

bool koord_dir_above(char *dir)
{
	char *slash = strrchr(dir, '/');
	if (!slash)
		return false;
	*slash = '\0';
	return strstr(dir, KUBELET) != NULL;
}

int32_t koord_qos_dir(const struct modhost *h, const char *ref, char *buf, size_t size)
{
	int32_t r = h->work->cgroup_find(h->ctx, ref, "", buf, (uint32_t)size);
	if (r)
		return r;
	bool found = koord_dir_above(buf);
	found = found && koord_dir_above(buf);
	return found ? 0 : -RP_ENOENT;
}

int32_t koord_read(const struct modhost *h, const char *dir, const char *file, char *buf,
		   uint32_t cap)
{
	char path[CTL_PATH_MAX];
	int32_t r = ctl_format(path, sizeof path, "%s/%s", dir, file);
	if (!r)
		r = h->work->read_file(h->ctx, path, buf, cap);
	if (r < 0)
		return r;
	buf[strcspn(buf, "\n")] = '\0';
	return 0;
}

int32_t koord_write(const struct modhost *h, const char *dir, const char *file, const char *text)
{
	char path[CTL_PATH_MAX], is[256];
	int32_t r = ctl_format(path, sizeof path, "%s/%s", dir, file);
	if (!r)
		r = koord_read(h, dir, file, is, sizeof is);
	if (r)
		return r;
	if (strcmp(is, text) == 0)
		return 0;
	r = h->work->write_file(h->ctx, path, text);
	return r ? r : 1;
}

int32_t koord_read_quota(const struct modhost *h, const char *dir, int64_t *ret_quota,
			 int64_t *ret_period)
{
	char text[64];
	const char *at = text;
	uint64_t quota = 0, period;
	int32_t r = koord_read(h, dir, "cpu.max", text, sizeof text);
	if (r)
		return r;
	bool unlimited = strncmp(text, "max ", 4) == 0;
	if (unlimited)
		at += 3;
	else
		r = ctl_number(text, 10, &quota, &at);
	at += strspn(at, " ");
	if (!r)
		r = ctl_number(at, 10, &period, NULL);
	if (r || quota > INT64_MAX || period > INT64_MAX)
		return -RP_EINVAL;
	*ret_quota = unlimited ? -1 : (int64_t)quota;
	*ret_period = (int64_t)period;
	return 0;
}

int32_t koord_put(const struct modhost *h, struct ctl_item *item, const char *dir, const char *file,
		  const char *text)
{
	int32_t r = koord_write(h, dir, file, text);
	item->n_writes += r > 0;
	if (r < 0)
		ctl_say(item, RP_APPLY_FAILED, "%s/%s: %s", dir, file, modhost_why(r));
	return r < 0 ? r : 0;
}

/* ---- rounds ---------------------------------------------------------------------------------- */

bool koord_usage(const struct modhost *h, rp_ctr ctr, struct rp_usage *ret)
{
	return modhost_usage(h, ctr, ret) && ret->age_ms < STALE_MS;
}

int32_t koord_interval(const struct modhost *h, rp_cfg section, uint64_t *ret_ms)
{
	rp_cfg node = section_get(h, section, "interval");
	*ret_ms = (uint64_t)h->config->value(h->ctx, node, RP_T_DURATION, 1000);
	return *ret_ms >= 100 && *ret_ms <= 60000 ? 0
						  : modhost_refuse(h, node, "expected 100ms to 1m");
}

int32_t koord_needs_v2(const struct modhost *h)
{
	return koord_is_v1(h, "cpu")
		       ? modhost_fail(h, -RP_ENOTSUP, "the host has cgroup v1, and v2 is needed")
		       : 0;
}

void koord_rounds_arm(struct koord_rounds *r, const struct modhost *h, uint64_t interval_ms)
{
	if (!r->armed)
		r->armed = h->timer->arm(h->ctx, KOORD_TICK, interval_ms) == 0;
}

bool koord_rounds_tick(struct koord_rounds *r, uint64_t cookie)
{
	if (cookie == KOORD_TICK)
		r->armed = false;
	return cookie == KOORD_TICK;
}

void koord_rounds_stop(struct koord_rounds *r, const struct modhost *h)
{
	(void)h->timer->arm(h->ctx, KOORD_TICK, 0);
	*r = (struct koord_rounds){0};
}
