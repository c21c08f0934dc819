/* SPDX-License-Identifier: Apache-2.0 */
/* The module memory-qos: hooks, queued work, and decisions for given figures. */
#include <nri-rp/lib/section.h>
#include "modules/memory-qos/memory-qos.h"

#include <stdlib.h>

#define SUMS_COOKIE UINT64_C(0x5e75)
#define SUMS_DELAY_MS 200u /* delay that combines containers created together into one sum */

enum { KIND_VALUES, KIND_SUMS };

struct rp_plan {
	struct memqos_config config;
};

struct rp_instance {
	struct modhost h;
	struct rp_plan *plan; /* active plan */
	struct ctl_queue *queue;
	struct ctl_table done; /* containers with applied values */
	struct memqos_dir *dirs; /* used by the worker only */
	bool sums_wanted, running;
	uint64_t n_writes;
	char why[CTL_TEXT_MAX]; /* failure of the last sum */
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

static int32_t memqos_prepare(struct rp_instance *inst, rp_cfg cfg, struct rp_plan **ret_plan)
{
	const struct modhost *h = &inst->h;
	struct rp_plan *p = calloc(1, sizeof *p);
	if (!p)
		return modhost_no_memory(h);
	for (uint32_t i = 0; i < MEMQOS_CLASSES; i++)
		read_rule(h, section_get(h, cfg, class_keys[i]), &p->config.rules[i]);
	p->config.annotations = section_bool(h, cfg, "annotations", true);
	p->config.allocatable = h->config->value(h->ctx, section_get(h, cfg, "allocatable"),
						 RP_T_BYTES, (int64_t)h->topology->memory(h->ctx));
	*ret_plan = p;
	return 0;
}

static void memqos_abort(struct rp_instance *inst, struct rp_plan *plan)
{
	(void)inst;
	free(plan);
}

static void memqos_commit(struct rp_instance *inst, struct rp_plan *plan)
{
	free(inst->plan);
	inst->plan = plan;
	ctl_table_mark_stale(&inst->done);
}

/* ---- sums above containers ------------------------------------------------------------------- */

static void want_sums(struct rp_instance *inst)
{
	if (inst->sums_wanted || !inst->running)
		return;
	inst->sums_wanted = inst->h.timer->arm(inst->h.ctx, SUMS_COOKIE, SUMS_DELAY_MS) == 0;
}

static void sums_free(struct memqos_sums *s)
{
	for (uint32_t i = 0; i < s->n; i++)
		free(s->parts[i].ref);
	free(s->parts);
	free(s);
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
	(void)memqos_values_of(h, &c->inst->plan->config, &info, &v, why);
	if (!v.min && !v.low)
		return;
	struct memqos_part *part = &c->sums->parts[c->sums->n];
	*part = (struct memqos_part){ctl_cgroup_ref(h, ctr), v.min, v.low};
	c->sums->n += part->ref != NULL;
}

static void add_sums(struct rp_instance *inst)
{
	const struct modhost *h = &inst->h;
	struct collecting c = {inst, calloc(1, sizeof *c.sums), 0};
	inst->sums_wanted = false;
	if (!c.sums)
		return;
	c.cap = h->cache->list(h->ctx, RP_ORDER_CREATED, NULL, 0);
	c.sums->item.kind = KIND_SUMS;
	c.sums->dirs = &inst->dirs;
	c.sums->parts = calloc(c.cap + 1u, sizeof *c.sums->parts);
	if (!c.sums->parts || ctl_each_container(h, collect_one, &c)) {
		sums_free(c.sums);
		return;
	}
	ctl_queue_add(inst->queue, &c.sums->item);
}

static void sums_done(struct rp_instance *inst, struct memqos_sums *s, bool ran)
{
	const char *why = ran && s->item.result == RP_APPLY_FAILED ? s->item.text : "";
	if (*why && strcmp(why, inst->why) != 0)
		modhost_log(&inst->h, RP_LOG_WARNING, 0,
			    "memory is not kept for pods as a whole: %s", why);
	(void)ctl_format(inst->why, sizeof inst->why, "%s", why);
	inst->n_writes += s->n_writes;
	sums_free(s);
}

/* ---- containers ------------------------------------------------------------------------------ */

static void item_free(struct memqos_item *m)
{
	free(m->ref);
	free(m);
}

static int32_t memory_qos_apply(struct rp_instance *inst, rp_ctr ctr, bool all)
{
	const struct modhost *h = &inst->h;
	struct rp_ctr_info info = {.size = sizeof info};
	struct memqos_values v;
	char why[CTL_TEXT_MAX] = "";
	if (!inst->running || h->cache->get_ctr(h->ctx, ctr, &info) ||
	    info.state == RP_STATE_EXITED || info.state == RP_STATE_CREATING)
		return 0;
	const struct ctl_entry *was = ctl_table_know(&inst->done, &info);
	if (!all && was && !was->stale)
		return 0;
	if (memqos_values_of(h, &inst->plan->config, &info, &v, why))
		modhost_log(h, RP_LOG_WARNING, ctr, "%s", why);
	bool nothing = memqos_is_nothing(&v);
	if (nothing && !was) {
		h->work->report(h->ctx, ctr, RP_APPLY_DONE, "");
		return 0;
	}
	struct memqos_item *m = calloc(1, sizeof *m);
	const struct ctl_entry *e =
		m ? ctl_table_give(&inst->done, &info, nothing ? NULL : "memory") : NULL;
	if (e)
		m->ref = ctl_cgroup_ref(h, ctr);
	if (!e || !m->ref) {
		if (m)
			item_free(m);
		return modhost_no_memory(h);
	}
	m->item.ctr = ctr;
	m->item.kind = KIND_VALUES;
	m->serial = e->serial;
	m->values = v;
	ctl_queue_add(inst->queue, &m->item);
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
static int32_t memqos_pre_create(struct rp_instance *inst, rp_txn txn, rp_ctr ctr)
{
	const struct modhost *h = &inst->h;
	struct rp_ctr_info info = {.size = sizeof info};
	struct memqos_values v;
	char why[CTL_TEXT_MAX] = "", high[32];
	int32_t r = h->cache->get_ctr(h->ctx, ctr, &info);
	if (r)
		return modhost_fail(h, r, "the container is not known");
	r = memqos_values_of(h, &inst->plan->config, &info, &v, why);
	if (r)
		return modhost_fail(h, r, "%s", why);
	memqos_text(v.high, high, sizeof high);
	if (!memqos_is_nothing(&v))
		modhost_note(h, ctr, "memory: %lld bytes kept, %lld protected, held back above %s",
			     (long long)v.min, (long long)v.low, high);
	r = memory_qos_stage(h, txn, ctr, "memory.min", v.min, 0);
	if (!r)
		r = memory_qos_stage(h, txn, ctr, "memory.low", v.low, 0);
	return r ? r : memory_qos_stage(h, txn, ctr, "memory.high", v.high, MEMQOS_NO_LIMIT);
}

static int32_t memqos_post_start(struct rp_instance *inst, rp_ctr ctr)
{
	return memory_qos_apply(inst, ctr, true);
}

static int32_t memqos_post_update(struct rp_instance *inst, rp_ctr ctr, uint32_t changed)
{
	return changed & RP_CHANGED_MEMORY ? memory_qos_apply(inst, ctr, true) : 0;
}

static int32_t memqos_post_stop(struct rp_instance *inst, rp_ctr ctr)
{
	ctl_queue_forget(inst->queue, ctr);
	ctl_table_del(&inst->done, ctr);
	want_sums(inst);
	return 0;
}

static void sync_one(void *arg, rp_ctr ctr)
{
	(void)memory_qos_apply(arg, ctr, false);
}

static void memqos_sync(struct rp_instance *inst)
{
	if (!inst->running)
		return;
	ctl_table_sync(&inst->done, &inst->h, sync_one, inst);
	want_sums(inst);
}

static void run_item(void *arg, struct ctl_item *item)
{
	struct rp_instance *inst = arg;
	if (item->kind == KIND_SUMS)
		memqos_sum(&inst->h, (struct memqos_sums *)(void *)item);
	else
		memqos_apply(&inst->h, (struct memqos_item *)(void *)item);
}

static void item_done(void *arg, struct ctl_item *item, int ran)
{
	struct rp_instance *inst = arg;
	struct memqos_item *m = (struct memqos_item *)(void *)item;
	if (item->kind == KIND_SUMS) {
		sums_done(inst, (struct memqos_sums *)(void *)item, ran);
		return;
	}
	if (ran && memqos_is_nothing(&m->values) && item->result == RP_APPLY_DONE)
		ctl_table_taken(&inst->done, item->ctr, m->serial);
	inst->n_writes += m->n_writes;
	item_free(m);
}

static void memqos_again(void *arg, rp_ctr ctr)
{
	(void)memory_qos_apply(arg, ctr, true);
}

static void memqos_timer(struct rp_instance *inst, uint64_t cookie)
{
	if (cookie != SUMS_COOKIE)
		ctl_queue_timer(inst->queue, cookie);
	else if (inst->running)
		add_sums(inst);
}

static int32_t memqos_start(struct rp_instance *inst)
{
	if (koord_is_v1(&inst->h, "memory"))
		return modhost_fail(&inst->h, -RP_ENOTSUP,
				    "cgroup v1 can keep no memory for containers");
	inst->running = true;
	return 0;
}

static void memqos_stop(struct rp_instance *inst)
{
	inst->running = false;
	(void)inst->h.timer->arm(inst->h.ctx, SUMS_COOKIE, 0);
	inst->sums_wanted = false;
	ctl_queue_clear(inst->queue);
	ctl_table_mark_stale(&inst->done);
}

static int32_t memqos_collect(struct rp_instance *inst, const struct rp_metric_sink *sink)
{
	sink->gauge(sink->ctx, "containers", "Containers with values of their own.", "",
		    inst->done.n);
	sink->counter(sink->ctx, "writes_total", "Writes to files of cgroups.", "",
		      (double)inst->n_writes);
	ctl_queue_collect(inst->queue, sink);
	return 0;
}

static int32_t memqos_save(struct rp_instance *inst, const void **ret_data, uint32_t *ret_size)
{
	ctl_table_save(&inst->done, ret_data, ret_size);
	return 0;
}

static int32_t memqos_load(struct rp_instance *inst, const void *data, uint32_t size)
{
	int32_t r = ctl_table_load(&inst->done, data, size);
	return r ? modhost_fail(&inst->h, r, "it is no record of containers") : 0;
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
	{.path = (name_), .type = RP_T_MAP, .doc = "Containers of " who_ "."},                     \
		PERCENT(name_ ".minLimitPercent",                                                  \
			"Percent of the request that the kernel never takes (memory.min)."),       \
		PERCENT(name_ ".lowLimitPercent",                                                  \
			"Percent of the request that it takes last (memory.low)."),                \
		PERCENT(name_ ".throttlingPercent",                                                \
			"Percent of the way from request to limit at which the container is held " \
			"back (memory.high); 0 is never.")

static const struct rp_key keys[] = {
	CLASS("lsr", "class LSE and LSR, or Guaranteed pods"),
	CLASS("ls", "class LS, or Burstable pods"),
	CLASS("be", "class BE, or BestEffort pods"),
	{.path = "annotations",
	 .type = RP_T_BOOL,
	 .fallback = "true",
	 .doc = "Pods may say otherwise by the annotation koordinator.sh/memoryQOS."},
	{.path = "allocatable",
	 .type = RP_T_BYTES,
	 .doc = "The limit of containers without one; by default the machine's memory."},
};

static const struct rp_schema schema = {
	.size = sizeof(struct rp_schema),
	.keys = keys,
	.n_keys = sizeof keys / sizeof keys[0],
	.key_size = sizeof(struct rp_key),
};

static const struct rp_controller controller = {
	.size = sizeof(struct rp_controller),
	.prepare = memqos_prepare,
	.commit = memqos_commit,
	.abort = memqos_abort,
	.start = memqos_start,
	.stop = memqos_stop,
	.pre_create = memqos_pre_create,
	.post_start = memqos_post_start,
	.post_update = memqos_post_update,
	.post_stop = memqos_post_stop,
	.sync = memqos_sync,
	.timer = memqos_timer,
};

static const struct rp_metrics metrics = {
	.size = sizeof(struct rp_metrics),
	.collect = memqos_collect,
};

static const struct rp_state state = {
	.size = sizeof(struct rp_state),
	.save = memqos_save,
	.load = memqos_load,
};

static const char *const kinds[] = {"memory-qos", NULL};

static const struct rp_decision decision = {
	.size = sizeof(struct rp_decision),
	.kinds = kinds,
	.decide = memqos_answer,
};

static void memqos_destroy(struct rp_instance *inst)
{
	inst->queue = ctl_queue_free(inst->queue);
	ctl_table_fini(&inst->done);
	memqos_dirs_free(inst->dirs);
	free(inst->plan);
	free(inst);
}

static int32_t memqos_create(const struct rp_host *host, struct rp_instance **ret_inst)
{
	static const struct ctl_ops ops = {run_item, item_done, memqos_again};
	struct rp_instance *inst = calloc(1, sizeof *inst);
	if (!inst)
		return host->fail(host->ctx, -RP_ENOMEM, "out of memory");
	int32_t r = koord_open(&inst->h, host, &ops, inst, &inst->queue);
	if (r) {
		memqos_destroy(inst);
		return r;
	}
	*ret_inst = inst;
	return 0;
}

static const void *memqos_service(struct rp_instance *inst, const char *id)
{
	static const struct modhost_service services[] = {
		{RP_SCHEMA_1, &schema}, {RP_CONTROLLER_1, &controller}, {RP_METRICS_1, &metrics},
		{RP_STATE_1, &state},	{RP_DECISION_1, &decision},	{NULL, NULL}};
	(void)inst;
	return modhost_service(services, id);
}

RP_MODULE_DEFINE("memory-qos", "1.0", RP_KIND_CONTROLLER,
		 .summary = "memory kept for containers, by the class of their pods",
		 .licence = "Apache-2.0", .create = memqos_create, .destroy = memqos_destroy,
		 .service = memqos_service);
