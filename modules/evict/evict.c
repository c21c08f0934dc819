/* SPDX-License-Identifier: Apache-2.0 */
/* The module evict: section, readings on the worker, and hooks. rounds.c decides. */
#include "modules/evict/evict.h"

#include <stdlib.h>
#include <string.h>

#include <nri-rp/lib/section.h>

#define VALUE_MAX 8192u
#define WINDOW_MAX_S 600

struct round {
	struct ctl_item item; /* with the cgroup of any BE container, if there is one */
	int64_t capacity; /* online CPUs in milli-CPU */
	struct evict_reading read;
};

/* ---- configuration --------------------------------------------------------------------------- */

static int64_t evict_percent(const struct modhost *h, rp_cfg cfg, const char *key)
{
	return section_value(h, cfg, key, RP_T_INT, RP_NOT_SET);
}

static int32_t check_pair(const struct modhost *h, rp_cfg cfg, const char *lower_key,
			  const struct evict_percents *p)
{
	if (p->lower == RP_NOT_SET || (p->threshold != RP_NOT_SET && p->lower <= p->threshold))
		return 0;
	return modhost_refuse(h, section_get(h, cfg, lower_key), "expected at most the threshold%s",
			      p->threshold == RP_NOT_SET ? ", which is not set" : "");
}

static int32_t check_satisfaction(const struct modhost *h, rp_cfg cfg, const struct rp_plan *p)
{
	rp_cfg lower = section_get(h, cfg, "cpuEvictBESatisfactionLowerPercent");
	rp_cfg upper = section_get(h, cfg, "cpuEvictBESatisfactionUpperPercent");
	if ((p->be_lower == RP_NOT_SET) != (p->be_upper == RP_NOT_SET))
		return modhost_refuse(
			h, lower ? lower : upper,
			"set both cpuEvictBESatisfactionLowerPercent and UpperPercent");
	return p->be_lower <= p->be_upper
		       ? 0
		       : modhost_refuse(h, lower,
					"expected at most cpuEvictBESatisfactionUpperPercent");
}

static int32_t evict_plan(struct rp_instance *inst, rp_cfg cfg, struct rp_plan *p)
{
	const struct modhost *h = &inst->h;
	static const char *const usage[RP_NR_AMOUNTS][2] = {
		{"cpuEvictThresholdPercent", "cpuEvictLowerPercent"},
		{"memoryEvictThresholdPercent", "memoryEvictLowerPercent"}};
	static const char *const lent[RP_NR_AMOUNTS][2] = {
		{"cpuAllocatableEvictThresholdPercent", "cpuAllocatableEvictLowerPercent"},
		{"memoryAllocatableEvictThresholdPercent", "memoryAllocatableEvictLowerPercent"}};
	rp_cfg policy = section_get(h, cfg, "cpuEvictPolicy");
	p->by_allocatable = strcmp(h->config->text(h->ctx, policy, ""), "evictByAllocatable") == 0;
	p->be_lower = evict_percent(h, cfg, "cpuEvictBESatisfactionLowerPercent");
	p->be_upper = evict_percent(h, cfg, "cpuEvictBESatisfactionUpperPercent");
	p->be_usage = section_value(h, cfg, "cpuEvictBEUsageThresholdPercent", RP_T_INT, 90);
	p->be_window_s = section_value(h, cfg, "cpuEvictTimeWindowSeconds", RP_T_INT, 1);
	p->priority_max = evict_percent(h, cfg, "evictEnabledPriorityThreshold");
	p->lent_priority_max = evict_percent(h, cfg, "allocatableEvictPriorityThreshold");
	p->cool_ms[RP_NR_CPU] =
		(uint64_t)section_value(h, cfg, "cpuCoolTime", RP_T_DURATION, 20000);
	p->cool_ms[RP_NR_MEMORY] =
		(uint64_t)section_value(h, cfg, "memoryCoolTime", RP_T_DURATION, 4000);
	int32_t r = check_satisfaction(h, cfg, p);
	for (uint32_t k = 0; k < RP_NR_AMOUNTS; k++) {
		p->by_usage[k] = (struct evict_percents){evict_percent(h, cfg, usage[k][0]),
							 evict_percent(h, cfg, usage[k][1])};
		p->by_lent[k] = (struct evict_percents){evict_percent(h, cfg, lent[k][0]),
							evict_percent(h, cfg, lent[k][1])};
		if (k == RP_NR_MEMORY && p->by_usage[k].threshold == RP_NOT_SET)
			p->by_usage[k].threshold = 70;
		r = r ? r : check_pair(h, cfg, usage[k][1], &p->by_usage[k]);
		r = r ? r : check_pair(h, cfg, lent[k][1], &p->by_lent[k]);
	}
	r = r ? r : koord_interval(h, cfg, &p->interval_ms);
	return r;
}

static void evict_commit(struct rp_instance *inst, const struct rp_plan *former)
{
	inst->timer.rate = (struct koord_rate){0};
	evict_rounds_reset(inst->rounds);
}

/* ---- readings -------------------------------------------------------------------------------- */

static bool kib_of(const char *text, const char *key, int64_t *ret)
{
	uint64_t kib;
	const char *at = strstr(text, key), *end;
	if (!at || (at != text && at[-1] != '\n'))
		return false;
	at += strlen(key);
	at += strspn(at, " ");
	if (ctl_number(at, 10, &kib, &end) || kib > INT64_MAX / 1024)
		return false;
	*ret = (int64_t)kib * 1024;
	return true;
}

/* [worker] Reads total and used memory of the node. */
static int32_t read_memory(const struct modhost *h, struct evict_reading *ret)
{
	char *text = NULL;
	int64_t available;
	int32_t r = ctl_read(h, "/proc/meminfo", &text);
	if (r < 0)
		return r;
	bool good = kib_of(text, "MemTotal:", &ret->mem_total) &&
		    kib_of(text, "MemAvailable:", &available) && available <= ret->mem_total;
	free(text);
	if (!good)
		return -RP_EINVAL;
	ret->mem_used = ret->mem_total - available;
	return 0;
}

/* [worker] Reads the CPU that BE pods may use: the smaller one of their CPU set and their quota,
 * limited by `capacity`. All in milli-CPU. */
static int32_t read_be(const struct modhost *h, const char *ref, int64_t capacity, int64_t *ret)
{
	char dir[CTL_PATH_MAX], text[VALUE_MAX];
	struct rp_idset cpus;
	int64_t quota, period;
	int32_t r = koord_qos_dir(h, ref, dir, sizeof dir);
	if (!r)
		r = koord_read_quota(h, dir, &quota, &period);
	if (r)
		return r;
	*ret = capacity;
	if (!koord_read(h, dir, "cpuset.cpus.effective", text, sizeof text) && *text &&
	    !rp_idset_parse(&cpus, text, RP_CPUS_MAX))
		*ret = 1000 * (int64_t)rp_ids_count(rp_ids_of(&cpus));
	if (quota >= 0 && period > 0)
		*ret = calc_min(*ret, quota * 1000 / period);
	return 0;
}

static void evict_run(struct rp_instance *inst, struct ctl_item *item)
{
	struct round *r = (struct round *)(void *)item;
	int32_t bad = koord_busy_us(&inst->h, &r->read.busy_us);
	ctl_say(item, RP_APPLY_DONE, "%s", "");
	if (bad) {
		ctl_say(item, RP_APPLY_FAILED, "/proc/stat: %s", modhost_why(bad));
		return;
	}
	bad = read_memory(&inst->h, &r->read);
	if (bad)
		ctl_say(item, RP_APPLY_FAILED, "/proc/meminfo: %s", modhost_why(bad));
	r->read.be_limit = RP_NOT_SET;
	if (item->ref && read_be(&inst->h, item->ref, r->capacity, &r->read.be_limit))
		/* the cgroup was removed, or does not belong to the kubelet */
		r->read.be_limit = RP_NOT_SET;
}

/* ---- rounds ---------------------------------------------------------------------------------- */

static void evict_do_arm(struct rp_instance *inst)
{
	if (ctl_life_active(inst))
		koord_rounds_arm(&inst->timer, &inst->h, inst->plan->interval_ms);
}

struct looking {
	const struct modhost *h;
	rp_ctr be; /* any running BE container */
	uint32_t n;
};

static void look_at(void *arg, rp_ctr ctr)
{
	struct looking *l = arg;
	struct rp_ctr_info info = {.size = sizeof info};
	if (l->h->cache->get_ctr(l->h->ctx, ctr, &info))
		return;
	l->n++;
	if (info.qos == RP_QOS_BEST_EFFORT && info.state == RP_STATE_RUNNING)
		l->be = ctr;
}

static void evict_timer(struct rp_instance *inst, uint64_t cookie)
{
	struct looking l = {.h = &inst->h};
	if (!koord_rounds_tick(&inst->timer, cookie))
		return;
	(void)ctl_each_container(&inst->h, look_at, &l);
	struct round *r = l.n ? ctl_life_item(inst, l.be, 0, sizeof *r) : NULL;
	if (!r && l.n)
		r = ctl_life_item(inst, 0, 0, sizeof *r);
	if (r) {
		r->item.ctr = 0; /* the item's result is not the container's */
		r->capacity = koord_capacity(&inst->h);
		ctl_life_add(inst, &r->item);
	}
	/* Without containers the rounds pause until the next container starts. */
	if (l.n)
		evict_do_arm(inst);
}

static void evict_done(struct rp_instance *inst, struct ctl_item *item, bool ran)
{
	if (ran && item->result == RP_APPLY_DONE && ctl_life_active(inst))
		evict_decide(inst, &((const struct round *)(void *)item)->read);
}

static int32_t evict_started(struct rp_instance *inst, const struct rp_ctr_info *info,
			     enum ctl_cause cause)
{
	(void)info, (void)cause;
	evict_do_arm(inst);
	return 0;
}

static int32_t evict_start(struct rp_instance *inst)
{
	int32_t r = koord_needs_v2(&inst->h);
	if (!r)
		evict_do_arm(inst);
	return r;
}

static void evict_stop(struct rp_instance *inst)
{
	koord_rounds_stop(&inst->timer, &inst->h);
	evict_rounds_reset(inst->rounds);
}

static int32_t evict_init(struct rp_instance *inst)
{
	if (!(RP_HAS(inst->h.cache, list_pods) && inst->h.cache->list_pods))
		return modhost_fail(&inst->h, -RP_ENOTSUP, "the host cannot list pods");
	inst->rounds = evict_rounds_new();
	return inst->rounds ? koord_init(inst) : modhost_no_memory(&inst->h);
}

static void evict_fini(struct rp_instance *inst)
{
	evict_rounds_free(inst->rounds);
}

/* ---- module definition ----------------------------------------------------------------------- */

#define PERCENT(key, most, text)                                                                   \
	{                                                                                          \
		.path = (key), .type = RP_T_INT, .min = 0, .max = (most), .doc = (text)            \
	}

static const struct rp_key keys[] = {
	SECTION_BOOL("enable", "true", "Switch the controller on."),
	PERCENT("cpuEvictBESatisfactionLowerPercent", 60,
		"Lowest share in percent of their requested CPU that BE pods may get before they "
		"are evicted."),
	PERCENT("cpuEvictBESatisfactionUpperPercent", 99,
		"Share in percent that the remaining BE pods get after evictions."),
	SECTION_NUMBER("cpuEvictBEUsageThresholdPercent", 0, 100, "90",
		       "Evict only while BE pods use this percentage of their share."),
	SECTION_NUMBER(
		"cpuEvictTimeWindowSeconds", 1, WINDOW_MAX_S, "1",
		"Time over which that usage is averaged; the current usage must exceed it, too."),
	SECTION_CHOICE(
		"cpuEvictPolicy", "evictByRealLimit|evictByAllocatable", "evictByRealLimit",
		"Share of BE pods: by their cgroup, or by the node's overcommitted resources."),
	PERCENT("cpuEvictThresholdPercent", 100,
		"Threshold for CPU usage of the node in percent; off by default."),
	PERCENT("cpuEvictLowerPercent", 100,
		"Percentage at which evictions stop; default: two below the threshold."),
	SECTION_NUMBER("memoryEvictThresholdPercent", 0, 100, "70",
		       "Threshold for memory usage of the node in percent."),
	PERCENT("memoryEvictLowerPercent", 100,
		"Percentage at which evictions stop; default: two below the threshold."),
	PERCENT("cpuAllocatableEvictThresholdPercent", 1000,
		"Threshold for the requested part of overcommitted CPU in percent; off by "
		"default."),
	PERCENT("cpuAllocatableEvictLowerPercent", 1000,
		"Percentage at which evictions stop; default: two below the threshold."),
	PERCENT("memoryAllocatableEvictThresholdPercent", 1000,
		"Threshold for the requested part of overcommitted memory in percent; off by "
		"default."),
	PERCENT("memoryAllocatableEvictLowerPercent", 1000,
		"Percentage at which evictions stop; default: two below the threshold."),
	SECTION_KEY(
		"evictEnabledPriorityThreshold", INT,
		"Highest priority of pods evicted by usage, if they opted in; default: no pods.",
		.min = 0, .max = 7999),
	SECTION_KEY(
		"allocatableEvictPriorityThreshold", INT,
		"Highest priority of pods evicted by overcommitted resources; default: no pods.",
		.min = 0, .max = 7999),
	SECTION_KEY("interval", DURATION, "Interval between two rounds.", .fallback = "1s"),
	SECTION_KEY("cpuCoolTime", DURATION, "Interval between two evictions for CPU.",
		    .fallback = "20s"),
	SECTION_KEY("memoryCoolTime", DURATION, "Interval between two evictions for memory.",
		    .fallback = "4s"),
};

static const struct rp_schema schema = SECTION_SCHEMA(keys);

static const struct ctl_life_ops ops = {
	.need = KOORD_NEEDS,
	.plan_size = sizeof(struct rp_plan),
	.init = evict_init,
	.fini = evict_fini,
	.plan = evict_plan,
	.commit = evict_commit,
	.start = evict_start,
	.stop = evict_stop,
	.apply = evict_started,
	.sync = evict_do_arm,
	.timer = evict_timer,
	.run = evict_run,
	.done = evict_done,
	.collect = evict_collect,
	.schema = &schema,
	.decision = &evict_decision,
};

CTL_MODULE("evict", "1.0", ops,
	   .summary = "evicts pods when an overcommitted node runs short of CPU or memory",
	   .licence = "Apache-2.0");
