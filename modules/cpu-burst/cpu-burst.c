/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The module cpu-burst. It works in rounds, one per interval, as long as there are containers that
 * may burst:
 *
 *   tick ──▶ [worker] read the node's usage ──▶ decide by container ──▶ [worker] write changes
 */
#include "modules/cpu-burst/cpu-burst.h"

#include <stdio.h>
#include <stdlib.h>

#include "modules/lib/private/table.h"
#include "modules/lib/private/annotation.h"
#include <nri-rp/lib/section.h>

#define RETRY_MS 30000u /* delay of the next attempt after a failure */
/* initial savings as a part of the capacity: more than none, less than half */
#define FIRST_SAVINGS_PERMILLE 250
#define KEY "koordinator.sh/cpuBurst"

enum { KIND_LOOK, KIND_WRITE };

struct rp_plan {
	CTL_PLAN;
	struct burst_config config;
	int64_t threshold_percent;
	bool annotations;
	uint64_t interval_ms;
};

/* State of a container that may burst. */
struct known {
	rp_ctr ctr;
	struct burst_savings savings;
	int64_t quota, kernel_percent; /* written last; quota RP_NOT_SET: unknown */
	int64_t limit;
	uint64_t at_ms, retry_ms;
	bool waits; /* an item for the container is queued */
};

struct rp_instance {
	CTL_LIFE;
	struct koord_rounds rounds;
	struct table known; /* struct known, by container */
	enum burst_node node;
	uint64_t n_ways[BURST_UP + 1];
};

struct look {
	struct ctl_item item;
	int64_t busy_us;
};

/* ---- configuration --------------------------------------------------------------------------- */

/* Reads the keys of the section or of the annotation; absent keys keep their value. */
static bool read_config(const struct modhost *h, rp_cfg map, struct burst_config *c)
{
	const struct {
		const char *key;
		int64_t *to, min, max;
	} numbers[] = {
		{"cpuBurstPercent", &c->kernel_percent, 1, 10000},
		{"cfsQuotaBurstPercent", &c->quota_percent, 1, 10000},
		{"cfsQuotaBurstPeriodSeconds", &c->period_s, BURST_NO_PERIOD, 604800},
	};
	rp_cfg policy = section_get(h, map, "policy");
	if (policy && !burst_policy(h->config->text(h->ctx, policy, ""), c))
		return false;
	for (uint32_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
		rp_cfg node = section_get(h, map, numbers[i].key);
		int64_t v =
			node ? h->config->value(h->ctx, node, RP_T_INT, INT64_MIN) : *numbers[i].to;
		if (v < numbers[i].min || v > numbers[i].max)
			return false;
		*numbers[i].to = v;
	}
	return true;
}

static int32_t burst_plan(struct rp_instance *inst, rp_cfg cfg, struct rp_plan *p)
{
	const struct modhost *h = &inst->h;
	p->config = (struct burst_config){
		.kernel_percent = 1000, .quota_percent = 300, .period_s = BURST_NO_PERIOD};
	p->threshold_percent = section_int(h, cfg, "sharePoolThresholdPercent", 50);
	p->annotations = section_bool(h, cfg, "annotations", true);
	int32_t r = koord_interval(h, cfg, &p->interval_ms);
	if (!r && !read_config(h, cfg, &p->config))
		r = modhost_refuse(h, cfg, "a number is out of range");
	return r;
}

/* ---- containers ------------------------------------------------------------------------------ */

/* Returns the configuration for the container's pod. A malformed annotation is ignored. */
static struct burst_config config_of(const struct rp_instance *inst, rp_pod pod)
{
	const struct modhost *h = &inst->h;
	struct burst_config c = inst->plan->config;
	const char *text =
		inst->plan->annotations ? h->cache->pod_annotation(h->ctx, pod, KEY) : NULL;
	rp_cfg map;
	if (!text)
		return c;
	if (annotation_parse(h, "annotation " KEY, text, &map) || !read_config(h, map, &c))
		return inst->plan->config;
	return c;
}

static bool may_burst(const struct rp_instance *inst, const struct rp_ctr_info *info)
{
	return info->state == RP_STATE_RUNNING && koord_has_quota(&inst->h, info);
}

/* Returns the limit in CPUs of this node. The configured limit is in nominal CPUs, and a CPU of
 * this node may equal several of them. */
static int64_t limit_here(const struct rp_instance *inst, const struct rp_ctr_info *info)
{
	int64_t worth = koord_cpu_worth(&inst->h, 0);
	return (info->cpu_limit * 100 + worth - 1) / worth;
}

static struct known *cpu_burst_know(struct rp_instance *inst, rp_ctr ctr)
{
	struct known *k = table_make(&inst->known, ctr, sizeof *k);
	if (k && !k->ctr) {
		k->ctr = ctr;
		k->quota = RP_NOT_SET;
	}
	return k;
}

static void burst_gone(struct rp_instance *inst, rp_ctr ctr)
{
	struct known *k = table_get(&inst->known, ctr);
	table_del(&inst->known, ctr);
	free(k);
}

static void add_item(struct rp_instance *inst, struct known *k, enum burst_way way,
		     const struct burst_config *c)
{
	struct burst_item *b = ctl_life_item(inst, k->ctr, KIND_WRITE, sizeof *b);
	if (!b)
		return;
	b->way = way;
	b->limit = k->limit;
	b->quota_percent = c->quota_percent;
	b->kernel_percent = c->by_kernel ? c->kernel_percent : 0;
	k->kernel_percent = b->kernel_percent;
	k->waits = true;
	inst->n_ways[way]++;
	ctl_life_add(inst, &b->item);
}

/* ---- rounds ---------------------------------------------------------------------------------- */

struct survey {
	struct rp_instance *inst;
	/* milli-CPU; used: by containers whose usage is not part of the shared CPUs' usage */
	int64_t node, used, shared;
	uint64_t now;
	uint32_t n;
};

static int64_t used_of(const struct modhost *h, rp_ctr ctr, struct rp_usage *ret)
{
	return koord_usage(h, ctr, ret) && ret->cpu != RP_NOT_MEASURED ? ret->cpu : RP_NOT_SET;
}

static void look_at(void *arg, rp_ctr ctr)
{
	struct survey *s = arg;
	const struct modhost *h = &s->inst->h;
	struct rp_ctr_info info = {.size = sizeof info};
	struct rp_usage usage;
	if (h->cache->get_ctr(h->ctx, ctr, &info) || info.state == RP_STATE_CREATING)
		return;
	bool owns = !rp_ids_empty(info.exclusive);
	int64_t used = used_of(h, ctr, &usage);
	if ((owns || koord_is_lent(h, info.pod)) && used != RP_NOT_SET)
		s->used += used;
	if (owns)
		s->shared -= info.cpu_request;
	s->n += may_burst(s->inst, &info);
}

static void cpu_burst_steer(void *arg, rp_ctr ctr)
{
	struct survey *s = arg;
	struct rp_instance *inst = s->inst;
	struct rp_ctr_info info = {.size = sizeof info};
	struct rp_usage usage;
	if (inst->h.cache->get_ctr(inst->h.ctx, ctr, &info) || !may_burst(inst, &info))
		return;
	struct known *k = cpu_burst_know(inst, ctr);
	if (!k || k->waits || s->now < k->retry_ms)
		return;
	struct burst_config c = config_of(inst, info.pod);
	int64_t limit = limit_here(inst, &info);
	int64_t used = used_of(&inst->h, ctr, &usage);
	bool throttled = used != RP_NOT_SET && usage.throttled > 0, allowed = true;
	if (c.period_s >= 0 && c.quota_percent > 100) {
		if (k->savings.period_s != c.period_s || k->savings.max_percent != c.quota_percent)
			burst_savings_begin(&k->savings, c.period_s, c.quota_percent,
					    FIRST_SAVINGS_PERMILLE);
		allowed = burst_savings_put(&k->savings,
					    used == RP_NOT_SET ? 100 : 100 * used / limit,
					    k->at_ms ? (int64_t)(s->now - k->at_ms) / 1000 : 0);
	}
	k->at_ms = s->now;
	if (k->limit != limit)
		k->quota = RP_NOT_SET;
	k->limit = limit;
	enum burst_way way = burst_way(&c, allowed, throttled, inst->node);
	int64_t kernel = c.by_kernel ? c.kernel_percent : 0, base = k->limit * 100;
	bool same = k->quota != RP_NOT_SET && kernel == k->kernel_percent &&
		    burst_quota(way, base, c.quota_percent, k->quota) == k->quota;
	bool first_of_nothing = k->quota == RP_NOT_SET && !c.by_quota && !c.by_kernel;
	if (first_of_nothing)
		k->quota = base; /* the first round wants no change: leave the file alone */
	else if (!same)
		add_item(inst, k, way, &c);
}

static void cpu_burst_arm(struct rp_instance *inst)
{
	if (ctl_life_active(inst))
		koord_rounds_arm(&inst->rounds, &inst->h, inst->plan->interval_ms);
}

static void burst_timer(struct rp_instance *inst, uint64_t cookie)
{
	struct survey s = {.inst = inst};
	if (!koord_rounds_tick(&inst->rounds, cookie))
		return;
	(void)ctl_each_container(&inst->h, look_at, &s);
	struct look *l = s.n ? ctl_life_item(inst, 0, KIND_LOOK, sizeof *l) : NULL;
	if (l)
		ctl_life_add(inst, &l->item);
	/* Without containers the rounds pause until the next container starts. */
	if (s.n)
		cpu_burst_arm(inst);
}

static void cpu_burst_decide(struct rp_instance *inst, const struct look *l)
{
	struct survey s = {.inst = inst, .now = inst->h.timer->now_ms(inst->h.ctx)};
	bool read = l->item.result == RP_APPLY_DONE;
	s.shared = koord_capacity(&inst->h);
	bool known = read && s.shared > 0;
	(void)ctl_each_container(&inst->h, look_at, &s);
	s.node = known ? koord_used(&inst->rounds.rate, s.now, l->busy_us) : RP_NOT_SET;
	inst->node = burst_node_state(s.shared, s.node == RP_NOT_SET ? RP_NOT_SET : s.node - s.used,
				      inst->plan->threshold_percent);
	(void)ctl_each_container(&inst->h, cpu_burst_steer, &s);
}

static void burst_run(struct rp_instance *inst, struct ctl_item *item)
{
	if (item->kind == KIND_WRITE) {
		burst_apply(&inst->h, (struct burst_item *)(void *)item);
		return;
	}
	int32_t r = koord_busy_us(&inst->h, &((struct look *)(void *)item)->busy_us);
	ctl_say(item, r ? RP_APPLY_FAILED : RP_APPLY_DONE, "%s", "");
}

static void cpu_burst_written(struct rp_instance *inst, const struct burst_item *b, bool ran)
{
	struct known *k = table_get(&inst->known, b->item.ctr);
	if (!k)
		return;
	k->waits = false;
	k->quota = RP_NOT_SET;
	if (ran && b->item.result == RP_APPLY_FAILED)
		k->retry_ms = inst->h.timer->now_ms(inst->h.ctx) + RETRY_MS;
	else if (ran && b->ret_quota < 0)
		/* another program removed the limit: nothing to do until it has one again */
		k->quota = burst_quota(BURST_RESET, k->limit * 100, b->quota_percent, 0);
	else if (ran && b->ret_period > 0)
		k->quota = b->ret_quota * 100000 / b->ret_period;
	if (ran && b->item.n_writes)
		modhost_log(&inst->h, RP_LOG_DEBUG, k->ctr,
			    "quota %lld us of 100 ms, the node is %s", (long long)k->quota,
			    burst_node_names[inst->node]);
}

static void burst_done(struct rp_instance *inst, struct ctl_item *item, bool ran)
{
	if (item->kind == KIND_WRITE)
		cpu_burst_written(inst, (const struct burst_item *)(void *)item, ran);
	else if (ran && inst->running)
		cpu_burst_decide(inst, (const struct look *)(void *)item);
}

/* ---- hooks ----------------------------------------------------------------------------------- */

static int32_t burst_started(struct rp_instance *inst, const struct rp_ctr_info *info,
			     enum ctl_cause cause)
{
	if (may_burst(inst, info))
		cpu_burst_arm(inst);
	return 0;
}

/* Handles an update: the runtime has written its limit. */
static int32_t burst_updated(struct rp_instance *inst, rp_ctr ctr, uint32_t changed)
{
	struct known *k = table_get(&inst->known, ctr);
	if (k && (changed & RP_CHANGED_CPU_SHARE)) {
		k->quota = RP_NOT_SET;
		k->retry_ms = 0;
	}
	cpu_burst_arm(inst);
	return 0;
}

static void burst_sync(struct rp_instance *inst)
{
	const struct known *k;
	struct rp_ctr_info info = {.size = sizeof info};
	TABLE_EACH (k, &inst->known)
		if (inst->h.cache->get_ctr(inst->h.ctx, k->ctr, &info) ||
		    info.state == RP_STATE_EXITED)
			burst_gone(inst, k->ctr);
	cpu_burst_arm(inst);
}

static int32_t burst_start(struct rp_instance *inst)
{
	int32_t r = koord_needs_v2(&inst->h);
	if (!r)
		cpu_burst_arm(inst);
	return r;
}

/* Resets larger quotas and savings. */
static void burst_stop(struct rp_instance *inst)
{
	const struct burst_config none = {.quota_percent = 100};
	struct known *k;
	koord_rounds_stop(&inst->rounds, &inst->h);
	TABLE_EACH (k, &inst->known)
		if (k->quota == RP_NOT_SET || k->quota > k->limit * 100 || k->kernel_percent)
			add_item(inst, k, BURST_RESET, &none);
}

static void burst_fini(struct rp_instance *inst)
{
	table_free(&inst->known);
}

static int32_t burst_collect(struct rp_instance *inst, const struct rp_metric_sink *sink)
{
	static const char *const ways[] = {"way=\"reset\"", "way=\"down\"", "way=\"remain\"",
					   "way=\"up\""};
	sink->gauge(sink->ctx, "node_state",
		    "State of the shared CPUs: 0 unknown, 1 idle, 2 cooling, 3 overload.", "",
		    (double)inst->node);
	sink->gauge(sink->ctx, "containers", "Containers that may burst.", "", inst->known.n);
	for (unsigned i = 0; i <= BURST_UP; i++)
		sink->counter(sink->ctx, "decisions_total", "Decisions that changed a quota.",
			      ways[i], (double)inst->n_ways[i]);
	sink->counter(sink->ctx, "writes_total", "Writes to files of cgroups.", "",
		      (double)inst->n_writes);
	return 0;
}

/* ---- module definition ----------------------------------------------------------------------- */

static const struct rp_key keys[] = {
	SECTION_CHOICE("policy", "none|auto|cpuBurstOnly|cfsQuotaBurstOnly", "none",
		       "Kind of burst: saved quota of the kernel, larger quotas, both, or none."),
	SECTION_NUMBER("cpuBurstPercent", 1, 10000, "1000",
		       "Percent of the limit that the kernel may save up; at most the quota."),
	SECTION_NUMBER("cfsQuotaBurstPercent", 1, 10000, "300",
		       "Percent of the limit up to which a quota grows."),
	SECTION_NUMBER("cfsQuotaBurstPeriodSeconds", -1, 604800, "-1",
		       "Time for which a container may use its grown quota if it saved that up; "
		       "-1: no limit."),
	SECTION_NUMBER("sharePoolThresholdPercent", 1, 100, "50",
		       "Usage of the shared CPUs in percent above which quotas shrink again."),
	SECTION_BOOL("annotations", "true",
		     "Pods may override these values with the annotation koordinator.sh/cpuBurst."),
	SECTION_KEY("interval", DURATION, "Interval between two rounds.", .fallback = "1s"),
};

static const struct rp_schema schema = SECTION_SCHEMA(keys);

static const struct ctl_life_ops ops = {
	.need = KOORD_NEEDS,
	.takes = RP_TAKES_AMOUNTS,
	.plan_size = sizeof(struct rp_plan),
	.init = koord_init,
	.fini = burst_fini,
	.plan = burst_plan,
	.start = burst_start,
	.stop = burst_stop,
	.apply = burst_started,
	.updated = burst_updated,
	.gone = burst_gone,
	.sync = burst_sync,
	.timer = burst_timer,
	.run = burst_run,
	.done = burst_done,
	.collect = burst_collect,
	.schema = &schema,
	.decision = &burst_decision,
};

CTL_MODULE("cpu-burst", "1.0", ops,
	   .summary = "CPU time above their limit for throttled containers",
	   .licence = "Apache-2.0");
