/* SPDX-License-Identifier: Apache-2.0 */
/* Callbacks of the module memory-qos: hooks, queued work, and its rules as decisions
 * (nri-rp.decision/1). */
#include <nri-rp/lib/section.h>
#include "modules/memory-qos/memory-qos.h"

#include <stdlib.h>

#define SUMS_COOKIE UINT64_C(0x5e75)
#define SUMS_DELAY_MS 200u /* delay that combines containers created together into one sum */

enum { KIND_VALUES, KIND_SUMS };

struct rp_instance {
	CTL_LIFE;
	struct memqos_dir *dirs; /* used by the worker only */
	bool sums_wanted;
	char why[CTL_TEXT_MAX]; /* text of the failure of the last sum */
};

/* ---- configuration --------------------------------------------------------------------------- */

static const char *const class_keys[MEMQOS_CLASSES] = {"lsr", "ls", "be"};

static void read_rule(const struct modhost *h, rp_cfg node, struct memqos_rule *ret)
{
	const char *const keys[] = {"minLimitPercent", "lowLimitPercent", "throttlingPercent"};
	int64_t *const to[] = {&ret->min_percent, &ret->low_percent, &ret->high_percent};
	for (uint32_t i = 0; i < 3; i++)
		*to[i] = section_int(h, node, keys[i], 0);
}

static int32_t memqos_plan(struct rp_instance *inst, rp_cfg cfg, struct rp_plan *p)
{
	const struct modhost *h = &inst->h;
	for (uint32_t i = 0; i < MEMQOS_CLASSES; i++)
		read_rule(h, section_get(h, cfg, class_keys[i]), &p->rules[i]);
	p->annotations = section_bool(h, cfg, "annotations", true);
	p->allocatable = section_value(h, cfg, "allocatable", RP_T_BYTES,
				       (int64_t)h->topology->memory(h->ctx));
	return 0;
}

/* ---- sums above containers ------------------------------------------------------------------- */

static void want_sums(struct rp_instance *inst)
{
	if (inst->sums_wanted || !inst->running)
		return;
	inst->sums_wanted = inst->h.timer->arm(inst->h.ctx, SUMS_COOKIE, SUMS_DELAY_MS) == 0;
}

static void parts_free(struct memqos_sums *s)
{
	for (uint32_t i = 0; i < s->n; i++)
		free(s->parts[i].ref);
	free(s->parts);
}

struct collecting {
	struct rp_instance *inst;
	struct memqos_sums *sums;
	uint32_t cap;
};

static void collect_one(void *arg, rp_ctr ctr)
{
	struct collecting *c = arg;
	const struct modhost *h = &c->inst->h;
	struct rp_ctr_info info = {.size = sizeof info};
	struct memqos_values v;
	char why[CTL_TEXT_MAX];
	if (c->sums->n == c->cap || h->cache->get_ctr(h->ctx, ctr, &info) ||
	    info.state == RP_STATE_CREATING)
		return;
	(void)memqos_values_of(h, c->inst->plan, &info, &v, why);
	if (!v.min && !v.low)
		return;
	struct memqos_part *part = &c->sums->parts[c->sums->n];
	*part = (struct memqos_part){ctl_cgroup_ref(h, ctr), v.min, v.low};
	c->sums->n += part->ref != NULL;
}

static void add_sums(struct rp_instance *inst)
{
	const struct modhost *h = &inst->h;
	struct collecting c = {inst, ctl_life_item(inst, 0, KIND_SUMS, sizeof *c.sums), 0};
	inst->sums_wanted = false;
	if (!c.sums)
		return;
	c.cap = h->cache->list(h->ctx, RP_ORDER_CREATED, NULL, 0);
	c.sums->dirs = &inst->dirs;
	c.sums->parts = calloc(c.cap + 1u, sizeof *c.sums->parts);
	if (!c.sums->parts || ctl_each_container(h, collect_one, &c)) {
		parts_free(c.sums);
		ctl_life_drop(inst, &c.sums->item);
		return;
	}
	ctl_life_add(inst, &c.sums->item);
}

static void sums_done(struct rp_instance *inst, struct memqos_sums *s, bool ran)
{
	const char *why = ran && s->item.result == RP_APPLY_FAILED ? s->item.text : "";
	if (*why && strcmp(why, inst->why) != 0)
		modhost_log(&inst->h, RP_LOG_WARNING, 0,
			    "memory is not reserved for whole pods: %s", why);
	(void)ctl_format(inst->why, sizeof inst->why, "%s", why);
	parts_free(s);
}

/* ---- containers ------------------------------------------------------------------------------ */

static int32_t memory_qos_apply(struct rp_instance *inst, const struct rp_ctr_info *info,
				enum ctl_cause cause)
{
	struct memqos_values v;
	struct ctl_item *item;
	char why[CTL_TEXT_MAX] = "";
	if (memqos_values_of(&inst->h, inst->plan, info, &v, why) && cause != CTL_SYNC)
		modhost_log(&inst->h, RP_LOG_WARNING, info->ctr, "%s", why);
	int32_t r = ctl_life_give(inst, info, memqos_is_nothing(&v) ? NULL : "memory",
				  cause != CTL_SYNC, sizeof(struct memqos_item), &item);
	if (r || !item)
		return r;
	((struct memqos_item *)(void *)item)->values = v;
	ctl_life_add(inst, item);
	want_sums(inst);
	return 0;
}

static int32_t memory_qos_stage(const struct modhost *h, rp_txn txn, rp_ctr ctr, const char *file,
				int64_t value, int64_t nothing)
{
	char text[32];
	if (value == nothing)
		return 0;
	memqos_text(value, text, sizeof text);
	return h->cache->set_pair(h->ctx, txn, ctr, RP_F_UNIFIED, file, text);
}

/* Stages the values at creation, so that they are effective before the container's first
 * instruction. */
static int32_t memqos_pre_create(struct rp_instance *inst, rp_txn txn,
				 const struct rp_ctr_info *info)
{
	const struct modhost *h = &inst->h;
	struct memqos_values v;
	char why[CTL_TEXT_MAX] = "", high[32];
	int32_t r = memqos_values_of(h, inst->plan, info, &v, why);
	if (r)
		return modhost_fail(h, r, "%s", why);
	memqos_text(v.high, high, sizeof high);
	if (!memqos_is_nothing(&v))
		modhost_note(h, info->ctr,
			     "memory: %lld bytes reserved, %lld protected, throttled above %s",
			     (long long)v.min, (long long)v.low, high);
	r = memory_qos_stage(h, txn, info->ctr, "memory.min", v.min, 0);
	if (!r)
		r = memory_qos_stage(h, txn, info->ctr, "memory.low", v.low, 0);
	return r ? r : memory_qos_stage(h, txn, info->ctr, "memory.high", v.high, MEMQOS_NO_LIMIT);
}

static void memqos_gone(struct rp_instance *inst, rp_ctr ctr)
{
	want_sums(inst);
}

static void memqos_sync(struct rp_instance *inst)
{
	ctl_life_apply_all(inst);
	want_sums(inst);
}

static void memqos_run(struct rp_instance *inst, struct ctl_item *item)
{
	if (item->kind == KIND_SUMS)
		memqos_sum(&inst->h, (struct memqos_sums *)(void *)item);
	else
		memqos_apply(&inst->h, (struct memqos_item *)(void *)item);
}

static void memqos_done(struct rp_instance *inst, struct ctl_item *item, bool ran)
{
	if (item->kind == KIND_SUMS)
		sums_done(inst, (struct memqos_sums *)(void *)item, ran);
}

static void memqos_timer(struct rp_instance *inst, uint64_t cookie)
{
	if (cookie == SUMS_COOKIE)
		add_sums(inst);
}

static int32_t memqos_start(struct rp_instance *inst)
{
	return koord_is_v1(&inst->h, "memory")
		       ? modhost_fail(&inst->h, -RP_ENOTSUP,
				      "cgroup v1 cannot reserve memory for containers")
		       : 0;
}

static void memqos_stop(struct rp_instance *inst)
{
	(void)inst->h.timer->arm(inst->h.ctx, SUMS_COOKIE, 0);
	inst->sums_wanted = false;
}

static int32_t memqos_collect(struct rp_instance *inst, const struct rp_metric_sink *sink)
{
	ctl_life_collect(inst, sink, "Containers with individual values.");
	return 0;
}

static void memqos_fini(struct rp_instance *inst)
{
	memqos_dirs_free(inst->dirs);
}

/* ---- decisions for given figures ------------------------------------------------------------- */

static int32_t memqos_answer(struct rp_instance *inst, const struct rp_question *q,
			     const struct rp_answer *a)
{
	const struct modhost *h = &inst->h;
	const struct memqos_rule rule = {decide_in(h, q, "minLimitPercent", RP_T_INT, 0),
					 decide_in(h, q, "lowLimitPercent", RP_T_INT, 0),
					 decide_in(h, q, "throttlingPercent", RP_T_INT, 0)};
	const struct memqos_values v =
		memqos_decide(&rule, decide_in(h, q, "request", RP_T_BYTES, 0),
			      decide_in(h, q, "limit", RP_T_BYTES, 0),
			      decide_in(h, q, "nodeAllocatable", RP_T_BYTES, 0));
	char high[32];
	memqos_text(v.high, high, sizeof high);
	decide_out(a, "min", v.min);
	decide_out(a, "low", v.low);
	a->result(a->ctx, "high", high);
	return 0;
}

/* ---- module definition ----------------------------------------------------------------------- */

#define PERCENT(path_, doc_)                                                                       \
	{                                                                                          \
		.path = (path_), .type = RP_T_INT, .min = 0, .max = 100, .fallback = "0",          \
		.doc = (doc_)                                                                      \
	}
#define CLASS(name_, who_)                                                                         \
	SECTION_MAP((name_), "Containers of " who_ "."),                                           \
		PERCENT(name_ ".minLimitPercent",                                                  \
			"Percent of the request that the kernel never reclaims (memory.min)."),    \
		PERCENT(name_ ".lowLimitPercent",                                                  \
			"Percent of the request that the kernel reclaims last (memory.low)."),     \
		PERCENT(name_ ".throttlingPercent",                                                \
			"Percent of the way from request to limit above which the container is "   \
			"throttled (memory.high); 0: never.")

static const struct rp_key keys[] = {
	CLASS("lsr", "class LSE and LSR, or Guaranteed pods"),
	CLASS("ls", "class LS, or Burstable pods"),
	CLASS("be", "class BE, or BestEffort pods"),
	SECTION_BOOL(
		"annotations", "true",
		"Pods may override these values with the annotation koordinator.sh/memoryQOS."),
	SECTION_KEY("allocatable", BYTES,
		    "Limit assumed for containers without a memory limit; by default the node's "
		    "memory."),
};

static const struct rp_schema schema = SECTION_SCHEMA(keys);

static const char *const kinds[] = {"memory-qos", NULL};

static const struct rp_decision decision = {
	.size = sizeof(struct rp_decision),
	.kinds = kinds,
	.decide = memqos_answer,
};

static const struct ctl_life_ops ops = {
	.need = KOORD_NEEDS,
	.changes = RP_CHANGED_MEMORY,
	.retries = true,
	.records = true,
	.plan_size = sizeof(struct rp_plan),
	.init = koord_init,
	.fini = memqos_fini,
	.plan = memqos_plan,
	.start = memqos_start,
	.stop = memqos_stop,
	.pre_create = memqos_pre_create,
	.apply = memory_qos_apply,
	.gone = memqos_gone,
	.sync = memqos_sync,
	.timer = memqos_timer,
	.run = memqos_run,
	.done = memqos_done,
	.collect = memqos_collect,
	.schema = &schema,
	.decision = &decision,
};

CTL_MODULE("memory-qos", "1.0", ops,
	   .summary = "memory reserved for containers, by the class of their pods",
	   .licence = "Apache-2.0");
