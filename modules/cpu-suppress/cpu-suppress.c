/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The module cpu-suppress. It works in rounds, one per interval, as long as there are BestEffort
 * pods:
 *
 *   tick ──▶ [worker] read the node's usage and the BestEffort cgroup ──▶ decide ──▶ [worker] write
 */
#include "modules/cpu-suppress/cpu-suppress.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nri-rp/lib/section.h>

#define PATIENCE_MS 3000u /* delay before missing measurements are reported */
#define VALUE_MAX 8192u

enum { KIND_READ, KIND_WRITE };

struct rp_plan {
	CTL_PLAN;
	bool by_quota;
	int64_t threshold_percent, min_percent, reserved;
	struct rp_idset reserved_cpus;
	uint64_t interval_ms;
};

struct rp_instance {
	CTL_LIFE;
	struct koord_rounds rounds;
	/* time of the last round with known usage; if there was none, of the first round */
	uint64_t known_ms;
	bool steered[2]; /* a value was written: [0] CPUs, [1] quota */
	int64_t ceiling; /* result of the last round; RP_NOT_SET: none */
	uint64_t n_rounds, n_decided;
	char why[CTL_TEXT_MAX]; /* reason why no decision or write is possible */
};

struct round {
	struct ctl_item item; /* with the cgroup of any BestEffort container */
	char dir[CTL_PATH_MAX];
	int32_t failed;
	int64_t busy_us, quota, period;
	char cpus[VALUE_MAX]; /* present CPUs of the cgroup, as text */
	const char *file; /* file to write */
	char value[VALUE_MAX];
	char free_value[VALUE_MAX]; /* value of the file without suppression */
};

/* ---- configuration --------------------------------------------------------------------------- */

static int32_t suppress_plan(struct rp_instance *inst, rp_cfg cfg, struct rp_plan *p)
{
	const struct modhost *h = &inst->h;
	rp_cfg cpus = section_get(h, cfg, "reservedCPUs");
	p->by_quota = strcmp(section_text(h, cfg, "cpuSuppressPolicy", "cpuset"), "cfsQuota") == 0;
	p->threshold_percent = section_value(h, cfg, "cpuSuppressThresholdPercent", RP_T_INT, 65);
	p->min_percent = section_value(h, cfg, "cpuSuppressMinPercent", RP_T_INT, RP_NOT_SET);
	p->reserved = section_value(h, cfg, "reserved", RP_T_CPU, 0);
	int32_t r = koord_interval(h, cfg, &p->interval_ms);
	if (rp_idset_parse(&p->reserved_cpus, h->config->text(h->ctx, cpus, ""), RP_CPUS_MAX))
		r = modhost_refuse(h, cpus, "expected a list of CPUs");
	return r;
}

/* ---- survey of containers -------------------------------------------------------------------- */

struct survey {
	const struct rp_instance *inst;
	struct suppress_usage usage;
	struct suppress_sets sets;
	struct rp_idset pinned; /* CPUs to which a policy has pinned BE containers */
	rp_ctr any; /* any BestEffort container */
	uint32_t n, n_sampled; /* BE containers */
	bool apart; /* the BE containers have different CPU sets */
};

static void look_at_lent(struct survey *s, const struct rp_ctr_info *info, bool sampled)
{
	if (info->qos == RP_QOS_BEST_EFFORT && info->state == RP_STATE_RUNNING)
		s->any = info->ctr;
	s->apart = s->apart || (s->n && !rp_ids_equal(info->cpus, rp_ids_of(&s->pinned)));
	rp_idset_copy(&s->pinned, info->cpus);
	s->n++;
	s->n_sampled += sampled;
}

static void look_at(void *arg, rp_ctr ctr)
{
	struct survey *s = arg;
	const struct modhost *h = &s->inst->h;
	struct rp_ctr_info info = {.size = sizeof info};
	struct rp_usage used;
	if (h->cache->get_ctr(h->ctx, ctr, &info) || info.state == RP_STATE_CREATING)
		return;
	bool sampled = koord_usage(h, ctr, &used) && used.cpu != RP_NOT_MEASURED;
	bool lent = koord_is_lent(h, info.pod);
	struct rp_idset *own =
		koord_qos(h, info.pod) == RP_KOORD_LSE ? &s->sets.excluded : &s->sets.lsr;
	if (sampled) {
		s->usage.pods += used.cpu;
		s->usage.pods_kept += lent ? 0 : used.cpu;
	}
	if (lent)
		look_at_lent(s, &info, sampled);
	else
		rp_idset_or(own, rp_ids_of(own), info.exclusive);
}

static void cpu_suppress_survey(const struct rp_instance *inst, struct survey *s)
{
	memset(s, 0, sizeof *s);
	s->inst = inst;
	koord_system_cpus(&inst->h, &s->sets.excluded);
	rp_idset_or(&s->sets.excluded, rp_ids_of(&s->sets.excluded),
		    rp_ids_of(&inst->plan->reserved_cpus));
	s->usage.capacity = koord_capacity(&inst->h);
	s->usage.reserved = inst->plan->reserved;
	(void)ctl_each_container(&inst->h, look_at, s);
}

/* ---- rounds ---------------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static void cpu_suppress_complain(struct rp_instance *inst,
									const char *fmt, ...)
{
	char text[CTL_TEXT_MAX];
	va_list ap;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	if (*text && strcmp(text, inst->why) != 0)
		modhost_log(&inst->h, RP_LOG_WARNING, 0, "BestEffort pods are not suppressed: %s",
			    text);
	(void)ctl_format(inst->why, sizeof inst->why, "%s", text);
}

static bool has_to_do(const struct rp_instance *inst)
{
	return inst->plan->enable || inst->steered[false] || inst->steered[true];
}

static void cpu_suppress_arm(struct rp_instance *inst)
{
	if (inst->running && inst->plan && has_to_do(inst))
		koord_rounds_arm(&inst->rounds, &inst->h, inst->plan->interval_ms);
}

static void suppress_timer(struct rp_instance *inst, uint64_t cookie)
{
	struct survey *s = koord_rounds_tick(&inst->rounds, cookie) ? malloc(sizeof *s) : NULL;
	if (!s)
		return;
	cpu_suppress_survey(inst, s);
	/* The item belongs to no container: its result is not a container's. */
	struct round *r = s->any ? ctl_life_item(inst, s->any, KIND_READ, sizeof *r) : NULL;
	if (r) {
		r->item.ctr = 0;
		ctl_life_add(inst, &r->item);
	}
	/* Without containers the rounds pause until the next container starts. */
	if (s->n)
		cpu_suppress_arm(inst);
	free(s);
}

/* [worker] Reads the usage of the node, and the CPUs and quota of the BestEffort cgroup. */
static void read_round(const struct modhost *h, struct round *r)
{
	ctl_say(&r->item, RP_APPLY_DONE, "%s", "");
	r->failed = koord_busy_us(h, &r->busy_us);
	if (r->failed)
		ctl_say(&r->item, RP_APPLY_FAILED, "/proc/stat: %s", modhost_why(r->failed));
	if (!r->failed && (r->failed = koord_qos_dir(h, r->item.ref, r->dir, sizeof r->dir)))
		ctl_say(&r->item, RP_APPLY_FAILED, "their cgroup: %s", modhost_why(r->failed));
	if (!r->failed && (r->failed = koord_read_quota(h, r->dir, &r->quota, &r->period)))
		ctl_say(&r->item, RP_APPLY_FAILED, "%s/cpu.max: %s", r->dir,
			modhost_why(r->failed));
	if (!r->failed && koord_read(h, r->dir, "cpuset.cpus", r->cpus, sizeof r->cpus))
		r->cpus[0] = '\0';
}

static struct suppress_cpu *list_cpus(const struct modhost *h, uint32_t *ret_n)
{
	struct rp_idset online;
	modhost_set(h, RP_CPUS_ONLINE, &online);
	struct suppress_cpu *list = calloc(rp_ids_count(rp_ids_of(&online)) + 1u, sizeof *list);
	*ret_n = 0;
	RP_IDS_EACH (cpu, rp_ids_of(&online)) {
		struct rp_cpu_info info = {.size = offsetof(struct rp_cpu_info, base_khz)};
		if (list && !h->topology->cpu(h->ctx, cpu, &info))
			list[(*ret_n)++] = (struct suppress_cpu){cpu, info.unit[RP_LEVEL_CORE],
								 info.package_id, info.node_id};
	}
	return list;
}

/* Sets the file to write and its value without suppression. */
static void cpu_suppress_aim(const struct modhost *h, struct round *r, bool at_quota)
{
	struct rp_idset online;
	modhost_set(h, RP_CPUS_ONLINE, &online);
	r->file = at_quota ? "cpu.max" : "cpuset.cpus";
	if (at_quota)
		(void)snprintf(r->free_value, sizeof r->free_value, "max %d", SUPPRESS_PERIOD_US);
	else
		(void)rp_ids_format(rp_ids_of(&online), r->free_value, sizeof r->free_value);
}

/* Excludes CPUs outside of the CPUs to which a policy has pinned BE pods, if there are any. */
static void within_pinned(struct survey *s, const struct rp_idset *online)
{
	struct rp_idset outside;
	if (rp_ids_empty(rp_ids_of(&s->pinned)))
		return;
	rp_idset_andnot(&outside, rp_ids_of(online), rp_ids_of(&s->pinned));
	rp_idset_or(&s->sets.excluded, rp_ids_of(&s->sets.excluded), rp_ids_of(&outside));
}

static bool decide_cpus(struct rp_instance *inst, struct survey *s, struct round *r)
{
	struct rp_idset online, picked;
	uint32_t n;
	if (s->apart) {
		cpu_suppress_complain(inst, "the policy placed them on different CPUs; use "
					    "cpuSuppressPolicy: cfsQuota");
		return false;
	}
	modhost_set(&inst->h, RP_CPUS_ONLINE, &online);
	if (!r->cpus[0] || rp_idset_parse(&s->sets.old, r->cpus, RP_CPUS_MAX))
		rp_idset_copy(&s->sets.old, rp_ids_of(&online));
	within_pinned(s, &online);
	struct suppress_cpu *list = list_cpus(&inst->h, &n);
	bool found = list && suppress_cpus(list, n, &s->sets, inst->ceiling, &picked);
	free(list);
	if (!found)
		return false;
	(void)rp_ids_format(rp_ids_of(&picked), r->value, sizeof r->value);
	cpu_suppress_aim(&inst->h, r, false);
	return strcmp(r->value, r->cpus) != 0;
}

static bool decide_quota(struct rp_instance *inst, struct round *r)
{
	bool limited = r->quota >= 0 && r->period > 0;
	int64_t now = limited ? r->quota * SUPPRESS_PERIOD_US / r->period : -1;
	int64_t quota = suppress_quota(inst->ceiling, koord_capacity(&inst->h), now);
	(void)snprintf(r->value, sizeof r->value, "%lld %d", (long long)quota, SUPPRESS_PERIOD_US);
	cpu_suppress_aim(&inst->h, r, true);
	return quota != now;
}

/* Resets the file that was written under an earlier configuration. Returns true if the round
 * continues with a write. */
static bool cpu_suppress_recover(struct rp_instance *inst, struct round *r)
{
	for (unsigned at_quota = 0; at_quota < 2; at_quota++) {
		bool stays = inst->plan->enable && inst->plan->by_quota == at_quota;
		if (!inst->steered[at_quota] || stays)
			continue;
		inst->steered[at_quota] = false;
		cpu_suppress_aim(&inst->h, r, at_quota);
		memcpy(r->value, r->free_value, sizeof r->value);
		return true;
	}
	return false;
}

/* Returns true if the usage of BE pods is measured. Without it, the whole usage of the node would
 * be attributed to other pods. */
static bool is_measured(struct rp_instance *inst, const struct survey *s, uint64_t now)
{
	if (s->n_sampled || !inst->known_ms)
		inst->known_ms = now;
	if (now - inst->known_ms > PATIENCE_MS)
		cpu_suppress_complain(
			inst, "their usage is unknown; set metrics.collectInterval below 10s");
	return s->n_sampled != 0;
}

static bool cpu_suppress_decide(struct rp_instance *inst, struct round *r)
{
	struct survey *s = malloc(sizeof *s);
	uint64_t now = inst->h.timer->now_ms(inst->h.ctx);
	bool go_on = false;
	inst->ceiling = RP_NOT_SET;
	if (!s)
		return false;
	cpu_suppress_survey(inst, s);
	s->usage.node = koord_used(&inst->rounds.rate, now, r->busy_us);
	if (cpu_suppress_recover(inst, r)) {
		go_on = true;
	} else if (!inst->plan->enable) {
		go_on = false;
	} else if (is_measured(inst, s, now) && s->usage.node != RP_NOT_SET) {
		inst->n_rounds++;
		inst->ceiling = suppress_ceiling(&s->usage, inst->plan->threshold_percent,
						 inst->plan->min_percent);
		go_on = inst->plan->by_quota ? decide_quota(inst, r) : decide_cpus(inst, s, r);
	}
	free(s);
	return go_on;
}

/* [worker] Writes the file. The host restores the original value when the module ends. */
static void write_round(const struct modhost *h, struct round *r)
{
	char path[CTL_PATH_MAX];
	int32_t bad = ctl_format(path, sizeof path, "%s/%s", r->dir, r->file);
	if (!bad && h->settings)
		bad = h->settings->keep(h->ctx, path, r->value, r->free_value);
	if (!bad)
		bad = koord_write(h, r->dir, r->file, r->value);
	if (bad < 0)
		ctl_say(&r->item, RP_APPLY_FAILED, "%s: %s", path, modhost_why(bad));
	else
		ctl_say(&r->item, RP_APPLY_DONE, "%s", "");
}

static void suppress_run(struct rp_instance *inst, struct ctl_item *item)
{
	struct round *r = (struct round *)(void *)item;
	if (item->kind == KIND_READ)
		read_round(&inst->h, r);
	else
		write_round(&inst->h, r);
}

static void tell_written(struct rp_instance *inst, const struct round *r)
{
	bool is_quota = strcmp(r->file, "cpu.max") == 0;
	inst->n_decided++;
	inst->steered[is_quota] = inst->plan->enable && is_quota == inst->plan->by_quota;
	if (inst->ceiling == RP_NOT_SET)
		modhost_log(&inst->h, RP_LOG_INFO, 0,
			    "BestEffort pods are no longer limited: %s is %s", r->file, r->value);
	else
		modhost_log(&inst->h, RP_LOG_DEBUG, 0,
			    "BestEffort pods may use %lld milli-CPU: %s is %s",
			    (long long)(inst->ceiling > 0 ? inst->ceiling : 0), r->file, r->value);
}

static void suppress_done(struct rp_instance *inst, struct ctl_item *item, bool ran)
{
	struct round *r = (struct round *)(void *)item;
	bool failed = ran && item->result == RP_APPLY_FAILED;
	if (failed)
		cpu_suppress_complain(inst, "%s", item->text);
	if (!ran || failed)
		return;
	if (item->kind == KIND_WRITE) {
		cpu_suppress_complain(inst, "%s", "");
		tell_written(inst, r);
	} else if (inst->running && cpu_suppress_decide(inst, r)) {
		item->kind = KIND_WRITE;
		item->again = true;
	}
}

/* ---- containers ------------------------------------------------------------------------------ */

static int32_t suppress_started(struct rp_instance *inst, const struct rp_ctr_info *info,
				enum ctl_cause cause)
{
	if (koord_is_lent(&inst->h, info->pod))
		cpu_suppress_arm(inst);
	return 0;
}

static int32_t suppress_start(struct rp_instance *inst)
{
	int32_t r = koord_needs_v2(&inst->h);
	if (!r)
		cpu_suppress_arm(inst);
	return r;
}

static void suppress_stop(struct rp_instance *inst)
{
	koord_rounds_stop(&inst->rounds, &inst->h);
}

static int32_t suppress_init(struct rp_instance *inst)
{
	inst->ceiling = RP_NOT_SET;
	return koord_init(inst);
}

static int32_t suppress_collect(struct rp_instance *inst, const struct rp_metric_sink *sink)
{
	if (inst->ceiling != RP_NOT_SET)
		sink->gauge(sink->ctx, "ceiling_milli_cores",
			    "Limit of BestEffort pods from the last round.", "",
			    (double)inst->ceiling);
	sink->counter(sink->ctx, "rounds_total", "Decisions.", "", (double)inst->n_rounds);
	sink->counter(sink->ctx, "writes_total", "Decisions written.", "", (double)inst->n_decided);
	return 0;
}

/* ---- module definition ----------------------------------------------------------------------- */

static const struct rp_key keys[] = {
	SECTION_BOOL("enable", "true", "Switch the controller on."),
	SECTION_NUMBER("cpuSuppressThresholdPercent", 0, 100, "65",
		       "Highest usage of the node's CPUs in percent, including BestEffort pods."),
	SECTION_KEY("cpuSuppressMinPercent", INT,
		    "Percent of the node's CPUs that BestEffort pods always keep.", .min = 0,
		    .max = 100),
	SECTION_CHOICE("cpuSuppressPolicy", "cpuset|cfsQuota", "cpuset",
		       "Limit by a CPU set, or by a quota."),
	SECTION_KEY("reserved", CPU, "Minimum CPU usage counted for the system.", .fallback = "0"),
	SECTION_KEY("reservedCPUs", CPULIST, "CPUs on which BestEffort pods never run."),
	SECTION_KEY("interval", DURATION, "Interval between two rounds.", .fallback = "1s"),
};

static const struct rp_schema schema = SECTION_SCHEMA(keys);

static const struct ctl_life_ops ops = {
	.need = KOORD_NEEDS,
	.plan_size = sizeof(struct rp_plan),
	.init = suppress_init,
	.plan = suppress_plan,
	.start = suppress_start,
	.stop = suppress_stop,
	.apply = suppress_started,
	.sync = cpu_suppress_arm,
	.timer = suppress_timer,
	.run = suppress_run,
	.done = suppress_done,
	.collect = suppress_collect,
	.schema = &schema,
	.decision = &suppress_decision,
};

CTL_MODULE("cpu-suppress", "1.0", ops,
	   .summary = "CPU of BestEffort pods, limited by the usage of other pods",
	   .licence = "Apache-2.0");
