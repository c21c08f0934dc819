/* SPDX-License-Identifier: Apache-2.0 */
/* The module evict: section, readings on the worker, and hooks. rounds.c decides. */
#include "modules/evict/evict.h"

#include <stdlib.h>
#include <string.h>

#include <nri-rp/controller.h>

#include "modules/lib/private/ctl_table.h"
#include <nri-rp/lib/section.h>

#define TICK_COOKIE UINT64_C(0xe71c)
#define VALUE_MAX 8192u
#define WINDOW_MAX_S 600

struct round {
	struct ctl_item item;
	char *ref; /* reference to the cgroup of any BE container; NULL: there is none */
	int64_t capacity; /* online CPUs in milli-CPU */
	struct evict_reading read;
};

/* ---- configuration --------------------------------------------------------------------------- */

static int64_t evict_value(const struct modhost *h, rp_cfg cfg, const char *key, uint32_t type,
			   int64_t fallback)
{
	return h->config->value(h->ctx, section_get(h, cfg, key), type, fallback);
}

static int64_t evict_percent(const struct modhost *h, rp_cfg cfg, const char *key)
{
	return evict_value(h, cfg, key, RP_T_INT, RP_NOT_SET);
}

static int32_t check_pair(const struct modhost *h, rp_cfg cfg, const char *lower_key,
			  const struct evict_percents *p)
{
	if (p->lower == RP_NOT_SET || (p->threshold != RP_NOT_SET && p->lower <= p->threshold))
		return 0;
	return modhost_fail_at(h, section_get(h, cfg, lower_key), -RP_EINVAL,
			       "expected at most the threshold%s",
			       p->threshold == RP_NOT_SET ? ", which is not set" : "");
}

static int32_t check_satisfaction(const struct modhost *h, rp_cfg cfg, const struct rp_plan *p)
{
	rp_cfg lower = section_get(h, cfg, "cpuEvictBESatisfactionLowerPercent");
	rp_cfg upper = section_get(h, cfg, "cpuEvictBESatisfactionUpperPercent");
	if ((p->be_lower == RP_NOT_SET) != (p->be_upper == RP_NOT_SET))
		return modhost_fail_at(h, lower ? lower : upper, -RP_EINVAL,
				       "both cpuEvictBESatisfactionLowerPercent and UpperPercent "
				       "have to be set");
	return p->be_lower <= p->be_upper
		       ? 0
		       : modhost_fail_at(h, lower, -RP_EINVAL,
					 "expected at most cpuEvictBESatisfactionUpperPercent");
}

static int32_t read_plan(const struct modhost *h, rp_cfg cfg, struct rp_plan *p)
{
	static const char *const usage[RP_NR_AMOUNTS][2] = {
		{"cpuEvictThresholdPercent", "cpuEvictLowerPercent"},
		{"memoryEvictThresholdPercent", "memoryEvictLowerPercent"}};
	static const char *const lent[RP_NR_AMOUNTS][2] = {
		{"cpuAllocatableEvictThresholdPercent", "cpuAllocatableEvictLowerPercent"},
		{"memoryAllocatableEvictThresholdPercent", "memoryAllocatableEvictLowerPercent"}};
	rp_cfg policy = section_get(h, cfg, "cpuEvictPolicy");
	p->enable = evict_value(h, cfg, "enable", RP_T_BOOL, 1) != 0;
	p->by_allocatable = strcmp(h->config->text(h->ctx, policy, ""), "evictByAllocatable") == 0;
	p->be_lower = evict_percent(h, cfg, "cpuEvictBESatisfactionLowerPercent");
	p->be_upper = evict_percent(h, cfg, "cpuEvictBESatisfactionUpperPercent");
	p->be_usage = evict_value(h, cfg, "cpuEvictBEUsageThresholdPercent", RP_T_INT, 90);
	p->be_window_s = evict_value(h, cfg, "cpuEvictTimeWindowSeconds", RP_T_INT, 1);
	p->priority_max = evict_percent(h, cfg, "evictEnabledPriorityThreshold");
	p->lent_priority_max = evict_percent(h, cfg, "allocatableEvictPriorityThreshold");
	p->interval_ms = (uint64_t)evict_value(h, cfg, "interval", RP_T_DURATION, 1000);
	p->cool_ms[RP_NR_CPU] = (uint64_t)evict_value(h, cfg, "cpuCoolTime", RP_T_DURATION, 20000);
	p->cool_ms[RP_NR_MEMORY] =
		(uint64_t)evict_value(h, cfg, "memoryCoolTime", RP_T_DURATION, 4000);
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
	if (!r && (p->interval_ms < 100 || p->interval_ms > 60000))
		r = modhost_fail_at(h, section_get(h, cfg, "interval"), -RP_EINVAL,
				    "expected 100ms to 1m");
	return r;
}

static int32_t evict_prepare(struct rp_instance *inst, rp_cfg cfg, struct rp_plan **ret_plan)
{
	struct rp_plan *p = calloc(1, sizeof *p);
	int32_t r = p ? read_plan(&inst->h, cfg, p) : modhost_no_memory(&inst->h);
	if (r)
		free(p);
	else
		*ret_plan = p;
	return r;
}

static void evict_abort(struct rp_instance *inst, struct rp_plan *plan)
{
	(void)inst;
	free(plan);
}

static void evict_commit(struct rp_instance *inst, struct rp_plan *plan)
{
	free(inst->plan);
	inst->plan = plan;
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

/* Runs on the worker. */
static void run_item(void *arg, struct ctl_item *item)
{
	const struct rp_instance *inst = arg;
	struct round *r = (struct round *)(void *)item;
	int32_t bad = koord_busy_us(&inst->h, &r->read.busy_us);
	ctl_say(item, RP_APPLY_DONE, "%s", "");
	if (bad) {
		ctl_say(item, RP_APPLY_FAILED, "/proc/stat: %s", ctl_why(bad));
		return;
	}
	bad = read_memory(&inst->h, &r->read);
	if (bad)
		ctl_say(item, RP_APPLY_FAILED, "/proc/meminfo: %s", ctl_why(bad));
	r->read.be_limit = RP_NOT_SET;
	if (r->ref && read_be(&inst->h, r->ref, r->capacity, &r->read.be_limit))
		/* the cgroup was removed, or does not belong to the kubelet */
		r->read.be_limit = RP_NOT_SET;
}

/* ---- rounds ---------------------------------------------------------------------------------- */

static void evict_do_arm(struct rp_instance *inst)
{
	if (inst->running && inst->plan && inst->plan->enable && !inst->armed)
		inst->armed =
			inst->h.timer->arm(inst->h.ctx, TICK_COOKIE, inst->plan->interval_ms) == 0;
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

static void begin_round(struct rp_instance *inst)
{
	struct looking l = {.h = &inst->h};
	inst->armed = false;
	(void)ctl_each_container(&inst->h, look_at, &l);
	struct round *r = l.n ? calloc(1, sizeof *r) : NULL;
	if (r) {
		r->ref = l.be ? ctl_cgroup_ref(&inst->h, l.be) : NULL;
		r->capacity = koord_capacity(&inst->h);
		ctl_queue_add(inst->queue, &r->item);
	}
	/* Without containers, the next one that starts continues the rounds. */
	if (l.n)
		evict_do_arm(inst);
}

static void item_done(void *arg, struct ctl_item *item, int ran)
{
	struct rp_instance *inst = arg;
	struct round *r = (struct round *)(void *)item;
	if (ran && item->result == RP_APPLY_DONE && inst->running && inst->plan->enable)
		evict_decide(inst, &r->read);
	free(r->ref);
	free(r);
}

static int32_t evict_post_start(struct rp_instance *inst, rp_ctr ctr)
{
	(void)ctr;
	evict_do_arm(inst);
	return 0;
}

static void evict_sync(struct rp_instance *inst)
{
	evict_do_arm(inst);
}

static void evict_timer(struct rp_instance *inst, uint64_t cookie)
{
	if (cookie != TICK_COOKIE)
		ctl_queue_timer(inst->queue, cookie);
	else if (inst->running)
		begin_round(inst);
}

static int32_t evict_start(struct rp_instance *inst)
{
	if (koord_is_v1(&inst->h, "cpu"))
		return modhost_fail(&inst->h, -RP_ENOTSUP,
				    "cgroup v1: this module reads cgroup v2 alone");
	inst->running = true;
	evict_do_arm(inst);
	return 0;
}

static void evict_stop(struct rp_instance *inst)
{
	inst->running = inst->armed = false;
	(void)inst->h.timer->arm(inst->h.ctx, TICK_COOKIE, 0);
	ctl_queue_clear(inst->queue);
	evict_rounds_reset(inst->rounds);
}

/* ---- module definition ----------------------------------------------------------------------- */

#define PERCENT(key, most, text)                                                                   \
	{                                                                                          \
		.path = (key), .type = RP_T_INT, .min = 0, .max = (most), .doc = (text)            \
	}

static const struct rp_key keys[] = {
	{.path = "enable", .type = RP_T_BOOL, .fallback = "true", .doc = "Do anything at all."},
	PERCENT("cpuEvictBESatisfactionLowerPercent", 60,
		"BE pods that may have less of the CPU that they ask for are too many."),
	PERCENT("cpuEvictBESatisfactionUpperPercent", 99,
		"Pods go until the others may have as much of it."),
	{.path = "cpuEvictBEUsageThresholdPercent",
	 .type = RP_T_INT,
	 .min = 0,
	 .max = 100,
	 .fallback = "90",
	 .doc = "Only while they use as much of what they may have."},
	{.path = "cpuEvictTimeWindowSeconds",
	 .type = RP_T_INT,
	 .min = 1,
	 .max = WINDOW_MAX_S,
	 .fallback = "1",
	 .doc = "On average over so long, and now as well."},
	{.path = "cpuEvictPolicy",
	 .type = RP_T_ENUM,
	 .choices = "evictByRealLimit|evictByAllocatable",
	 .fallback = "evictByRealLimit",
	 .doc = "What BE pods may have: by their cgroup, or by what the node lends."},
	PERCENT("cpuEvictThresholdPercent", 100, "CPU of the node in use; off unless set."),
	PERCENT("cpuEvictLowerPercent", 100, "Pods go until it is so little; two less unless set."),
	{.path = "memoryEvictThresholdPercent",
	 .type = RP_T_INT,
	 .min = 0,
	 .max = 100,
	 .fallback = "70",
	 .doc = "Memory of the node in use."},
	PERCENT("memoryEvictLowerPercent", 100,
		"Pods go until it is so little; two less unless set."),
	PERCENT("cpuAllocatableEvictThresholdPercent", 1000,
		"CPU that was asked for of what is lent; off unless set."),
	PERCENT("cpuAllocatableEvictLowerPercent", 1000,
		"Pods go until it is so little; two less unless set."),
	PERCENT("memoryAllocatableEvictThresholdPercent", 1000,
		"Memory that was asked for of what is lent; off unless set."),
	PERCENT("memoryAllocatableEvictLowerPercent", 1000,
		"Pods go until it is so little; two less unless set."),
	{.path = "evictEnabledPriorityThreshold",
	 .type = RP_T_INT,
	 .min = 0,
	 .max = 7999,
	 .doc = "Pods up to this priority that have opted in go by usage; nobody unless set."},
	{.path = "allocatableEvictPriorityThreshold",
	 .type = RP_T_INT,
	 .min = 0,
	 .max = 7999,
	 .doc = "Pods up to this priority go by what is lent; nobody unless set."},
	{.path = "interval", .type = RP_T_DURATION, .fallback = "1s", .doc = "Between two rounds."},
	{.path = "cpuCoolTime",
	 .type = RP_T_DURATION,
	 .fallback = "20s",
	 .doc = "From one eviction for CPU to the next one."},
	{.path = "memoryCoolTime",
	 .type = RP_T_DURATION,
	 .fallback = "4s",
	 .doc = "From one eviction for memory to the next one."},
};

static const struct rp_schema schema = {
	.size = sizeof(struct rp_schema),
	.keys = keys,
	.n_keys = sizeof keys / sizeof keys[0],
	.key_size = sizeof(struct rp_key),
};

static const struct rp_controller controller = {
	.size = sizeof(struct rp_controller),
	.prepare = evict_prepare,
	.commit = evict_commit,
	.abort = evict_abort,
	.start = evict_start,
	.stop = evict_stop,
	.post_start = evict_post_start,
	.sync = evict_sync,
	.timer = evict_timer,
};

static const struct rp_metrics metrics = {
	.size = sizeof(struct rp_metrics),
	.collect = evict_collect,
};

static void evict_destroy(struct rp_instance *inst)
{
	inst->queue = ctl_queue_free(inst->queue);
	evict_rounds_free(inst->rounds);
	free(inst->plan);
	free(inst);
}

static int32_t evict_create(const struct rp_host *host, struct rp_instance **ret_inst)
{
	static const struct ctl_ops ops = {run_item, item_done, NULL};
	struct rp_instance *inst = calloc(1, sizeof *inst);
	if (!inst)
		return host->fail(host->ctx, -RP_ENOMEM, "out of memory");
	int32_t r = koord_open(&inst->h, host, &ops, inst, &inst->queue);
	if (!r && !(RP_HAS(inst->h.cache, list_pods) && inst->h.cache->list_pods))
		r = modhost_fail(&inst->h, -RP_ENOTSUP, "the host cannot list pods");
	inst->rounds = r ? NULL : evict_rounds_new();
	if (!r && !inst->rounds)
		r = modhost_no_memory(&inst->h);
	if (r) {
		evict_destroy(inst);
		return r;
	}
	inst->usage = host->service(host->ctx, RP_HOST_USAGE_1);
	if (!RP_HAS(inst->usage, get))
		inst->usage = NULL;
	*ret_inst = inst;
	return 0;
}

static const void *evict_service(struct rp_instance *inst, const char *id)
{
	static const struct modhost_service services[] = {{RP_SCHEMA_1, &schema},
							  {RP_CONTROLLER_1, &controller},
							  {RP_METRICS_1, &metrics},
							  {RP_DECISION_1, &evict_decision},
							  {NULL, NULL}};
	(void)inst;
	return modhost_service(services, id);
}

RP_MODULE_DEFINE("evict", "1.0", RP_KIND_CONTROLLER,
		 .summary = "pods that had better run elsewhere when a node that lends runs short",
		 .licence = "Apache-2.0", .create = evict_create, .destroy = evict_destroy,
		 .service = evict_service);
