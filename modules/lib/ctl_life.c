/* SPDX-License-Identifier: Apache-2.0 */
/* Callbacks of all controllers; struct ctl_life_ops adds what differs between controllers. */
#include <nri-rp/lib/ctl_life.h>

#include <stdarg.h>
#include <stdlib.h>

#include "modules/lib/private/ctl_queue.h"
#include "modules/lib/private/ctl_table.h"
#include <nri-rp/lib/section.h>

struct rp_plan {
	CTL_PLAN;
};

struct rp_instance {
	CTL_LIFE;
};

/* ---- configuration --------------------------------------------------------------------------- */

static void plan_unref(const struct ctl_life_ops *ops, struct rp_plan *p)
{
	if (!p || --p->refs)
		return;
	if (ops->plan_fini)
		ops->plan_fini(p);
	free(p);
}

static int32_t ctl_life_prepare(struct rp_instance *inst, rp_cfg cfg, struct rp_plan **ret)
{
	struct rp_plan *p = calloc(1, inst->ops->plan_size);
	if (!p)
		return modhost_no_memory(&inst->h);
	p->refs = 1;
	p->enable = section_bool(&inst->h, cfg, "enable", true);
	int32_t r = inst->ops->plan ? inst->ops->plan(inst, cfg, p) : 0;
	if (r)
		plan_unref(inst->ops, p);
	else
		*ret = p;
	return r;
}

static void ctl_life_abort(struct rp_instance *inst, struct rp_plan *plan)
{
	plan_unref(inst->ops, plan);
}

static void ctl_life_commit(struct rp_instance *inst, struct rp_plan *plan)
{
	struct rp_plan *former = inst->plan;
	inst->plan = plan;
	ctl_table_mark_stale(inst->table);
	if (inst->ops->commit)
		inst->ops->commit(inst, former);
	plan_unref(inst->ops, former);
}

/* ---- items ----------------------------------------------------------------------------------- */

void ctl_say(struct ctl_item *item, uint32_t result, const char *fmt, ...)
{
	va_list ap;
	item->result = result;
	va_start(ap, fmt);
	int n = vsnprintf(item->text, sizeof item->text, fmt, ap);
	va_end(ap);
	if (n < 0)
		item->text[0] = '\0';
}

int32_t ctl_find_cgroup(const struct modhost *h, struct ctl_item *item, const char *controller,
			char *buf, uint32_t size)
{
	int32_t r = h->work->cgroup_find(h->ctx, item->ref, controller, buf, size);
	if (r)
		ctl_say(item, RP_APPLY_FAILED, "its cgroup was not found: %s", modhost_why(r));
	return r;
}

/* Frees an item. An item without a plan was made before the first commit. */
static void item_free(const struct ctl_life_ops *ops, struct ctl_item *item)
{
	plan_unref(ops, item->plan);
	free(item->ref);
	free(item);
}

void *ctl_life_item(struct rp_instance *inst, rp_ctr ctr, uint32_t kind, size_t size)
{
	struct ctl_item *item = calloc(1, size);
	if (!item)
		return NULL;
	item->ctr = ctr;
	item->kind = kind;
	item->ref = ctr ? ctl_cgroup_ref(&inst->h, ctr) : NULL;
	if (ctr && !item->ref) {
		free(item);
		return NULL;
	}
	item->plan = inst->plan;
	if (item->plan)
		item->plan->refs++;
	return item;
}

void ctl_life_add(struct rp_instance *inst, struct ctl_item *item)
{
	ctl_queue_add(inst->queue, item);
}

void ctl_life_drop(struct rp_instance *inst, struct ctl_item *item)
{
	item_free(inst->ops, item);
}

int32_t ctl_life_give(struct rp_instance *inst, const struct rp_ctr_info *info, const char *class,
		      bool all, size_t size, struct ctl_item **ret)
{
	const struct ctl_entry *was = ctl_table_know(inst->table, info);
	*ret = NULL;
	if (!class && !was) {
		inst->h.work->report(inst->h.ctx, info->ctr, RP_APPLY_DONE, "");
		return 0;
	}
	if (!all && was && !was->stale && strcmp(was->class, class ? class : "") == 0)
		return 0;
	struct ctl_item *item = ctl_life_item(inst, info->ctr, 0, size);
	const struct ctl_entry *e = item ? ctl_table_give(inst->table, info, class) : NULL;
	if (!e) {
		if (item)
			item_free(inst->ops, item);
		return modhost_no_memory(&inst->h);
	}
	item->serial = e->serial;
	item->revokes = !class;
	*ret = item;
	return 0;
}

static void ctl_life_run(void *arg, struct ctl_item *item)
{
	struct rp_instance *inst = arg;
	inst->ops->run(inst, item);
}

static void ctl_life_done(void *arg, struct ctl_item *item, int ran)
{
	struct rp_instance *inst = arg;
	if (ran && item->revokes && item->result == RP_APPLY_DONE)
		ctl_table_taken(inst->table, item->ctr, item->serial);
	inst->n_writes += item->n_writes;
	item->again = false;
	if (inst->ops->done)
		inst->ops->done(inst, item, ran);
	if (!item->again) {
		item_free(inst->ops, item);
		return;
	}
	item->n_writes = 0;
	ctl_queue_add(inst->queue, item);
}

/* ---- containers ------------------------------------------------------------------------------ */

bool ctl_life_active(const struct rp_instance *inst)
{
	return inst->running && inst->plan && inst->plan->enable;
}

static int32_t ctl_life_apply(struct rp_instance *inst, rp_ctr ctr, enum ctl_cause cause)
{
	struct rp_ctr_info info = {.size = sizeof info};
	if (!inst->ops->apply || !ctl_life_active(inst) ||
	    inst->h.cache->get_ctr(inst->h.ctx, ctr, &info) || info.state == RP_STATE_EXITED ||
	    info.state == RP_STATE_CREATING)
		return 0;
	return inst->ops->apply(inst, &info, cause);
}

static void ctl_life_retry(void *arg, rp_ctr ctr)
{
	(void)ctl_life_apply(arg, ctr, CTL_RETRY);
}

static void apply_one(void *arg, rp_ctr ctr)
{
	(void)ctl_life_apply(arg, ctr, CTL_SYNC);
}

void ctl_life_apply_all(struct rp_instance *inst)
{
	ctl_table_sync(inst->table, &inst->h, apply_one, inst);
}

static int32_t ctl_life_pre_create(struct rp_instance *inst, rp_txn txn, rp_ctr ctr)
{
	struct rp_ctr_info info = {.size = sizeof info};
	if (!inst->ops->pre_create || !inst->plan->enable)
		return 0;
	int32_t r = inst->h.cache->get_ctr(inst->h.ctx, ctr, &info);
	return r ? modhost_fail(&inst->h, r, "the container is unknown")
		 : inst->ops->pre_create(inst, txn, &info);
}

static int32_t ctl_life_post_start(struct rp_instance *inst, rp_ctr ctr)
{
	return ctl_life_apply(inst, ctr, CTL_START);
}

static int32_t ctl_life_post_update(struct rp_instance *inst, rp_ctr ctr, uint32_t changed)
{
	bool asks = inst->ops->updated && ctl_life_active(inst);
	int32_t r = asks ? inst->ops->updated(inst, ctr, changed) : 0;
	return !r && (changed & inst->ops->changes) ? ctl_life_apply(inst, ctr, CTL_UPDATE) : r;
}

static int32_t ctl_life_post_stop(struct rp_instance *inst, rp_ctr ctr)
{
	ctl_queue_forget(inst->queue, ctr);
	if (inst->ops->gone)
		inst->ops->gone(inst, ctr);
	ctl_table_del(inst->table, ctr);
	return 0;
}

static void ctl_life_sync(struct rp_instance *inst)
{
	if (!ctl_life_active(inst))
		return;
	if (inst->ops->sync)
		inst->ops->sync(inst);
	else
		ctl_life_apply_all(inst);
}

/* ---- life ------------------------------------------------------------------------------------ */

static int32_t ctl_life_start(struct rp_instance *inst)
{
	inst->running = true;
	int32_t r = inst->ops->start ? inst->ops->start(inst) : 0;
	inst->running = r == 0;
	return r;
}

/* Stops the queue. Dropped items are applied at the next start. */
static void ctl_life_stop(struct rp_instance *inst)
{
	inst->running = false;
	ctl_queue_clear(inst->queue);
	ctl_table_mark_stale(inst->table);
	if (inst->ops->stop)
		inst->ops->stop(inst);
}

static void ctl_life_timer(struct rp_instance *inst, uint64_t cookie)
{
	if (inst->ops->timer && inst->running && inst->plan)
		inst->ops->timer(inst, cookie);
	ctl_queue_timer(inst->queue, cookie);
}

static void ctl_life_measure(struct rp_instance *inst)
{
	if (inst->ops->measure && inst->plan)
		inst->ops->measure(inst);
}

void ctl_life_collect(const struct rp_instance *inst, const struct rp_metric_sink *sink,
		      const char *containers_help)
{
	sink->gauge(sink->ctx, "containers", containers_help, "", inst->table->entries.n);
	sink->counter(sink->ctx, "writes_total", "Writes to files of cgroups.", "",
		      (double)inst->n_writes);
}

static int32_t ctl_life_do_collect(struct rp_instance *inst, const struct rp_metric_sink *sink)
{
	if (inst->ops->retries)
		ctl_queue_collect(inst->queue, sink); /* before `collect` adds items */
	return inst->ops->collect(inst, sink);
}

static int32_t ctl_life_save(struct rp_instance *inst, const void **ret_data, uint32_t *ret_size)
{
	ctl_table_save(inst->table, ret_data, ret_size);
	return 0;
}

static int32_t ctl_life_load(struct rp_instance *inst, const void *data, uint32_t size)
{
	int32_t r = ctl_table_load(inst->table, data, size);
	return r ? modhost_fail(&inst->h, r, "not a record of containers") : 0;
}

void ctl_life_destroy(struct rp_instance *inst)
{
	inst->queue = ctl_queue_free(inst->queue);
	if (inst->ops->fini)
		inst->ops->fini(inst);
	if (inst->table)
		ctl_table_fini(inst->table);
	free(inst->table);
	plan_unref(inst->ops, inst->plan);
	free(inst);
}

static const struct rp_controller callbacks = {
	.size = sizeof(struct rp_controller),
	.prepare = ctl_life_prepare,
	.commit = ctl_life_commit,
	.abort = ctl_life_abort,
	.start = ctl_life_start,
	.stop = ctl_life_stop,
	.pre_create = ctl_life_pre_create,
	.post_start = ctl_life_post_start,
	.post_update = ctl_life_post_update,
	.post_stop = ctl_life_post_stop,
	.sync = ctl_life_sync,
	.timer = ctl_life_timer,
};

int32_t ctl_life_create(const struct rp_host *host, size_t size, const struct ctl_life_ops *ops,
			struct rp_instance **ret)
{
	struct rp_instance *inst;
	int32_t r = modhost_instance(
		host, size, ops->need | MODHOST_CACHE | MODHOST_CONFIG | MODHOST_WORK, &inst);
	if (r)
		return r;
	const struct ctl_ops queue_ops = {ctl_life_run, ctl_life_done,
					  ops->retries ? ctl_life_retry : NULL};
	inst->ops = ops;
	inst->controller = callbacks;
	inst->controller.takes = ops->takes;
	inst->controller.measure = ops->measure ? ctl_life_measure : NULL;
	inst->queue = ctl_queue_new(&inst->h, &queue_ops, inst);
	inst->table = calloc(1, sizeof *inst->table);
	if (!inst->queue || !inst->table)
		r = modhost_no_memory(&inst->h);
	else if (ops->init)
		r = ops->init(inst);
	if (r)
		ctl_life_destroy(inst);
	else
		*ret = inst;
	return r;
}

const void *ctl_life_service(const struct ctl_life_ops *ops, struct rp_instance *inst,
			     const char *id)
{
	static const struct rp_metrics metrics = {.size = sizeof metrics,
						  .collect = ctl_life_do_collect};
	static const struct rp_state state = {
		.size = sizeof state, .save = ctl_life_save, .load = ctl_life_load};
	const struct modhost_service services[] = {
		{RP_SCHEMA_1, ops->schema},
		{RP_CONTROLLER_1, inst ? &inst->controller : &callbacks},
		{RP_METRICS_1, ops->collect ? &metrics : NULL},
		{RP_STATE_1, ops->records ? &state : ops->state},
		{RP_DECISION_1, ops->decision},
		{RP_DEVICES_1, ops->devices},
		{NULL, NULL}};
	return modhost_service(services, id);
}

/* ---- classes of containers ------------------------------------------------------------------- */

int32_t ctl_each_container(const struct modhost *h, void (*fn)(void *arg, rp_ctr ctr), void *arg)
{
	uint32_t n = h->cache->list(h->ctx, RP_ORDER_CREATED, NULL, 0);
	rp_ctr *list = calloc(n + 1, sizeof *list);
	if (!list)
		return -RP_ENOMEM;
	n = h->cache->list(h->ctx, RP_ORDER_CREATED, list, n);
	for (uint32_t i = 0; i < n; i++)
		fn(arg, list[i]);
	free(list);
	return 0;
}

const char *ctl_class_of(const struct modhost *h, rp_ctr ctr, uint32_t field, const char *key,
			 const char **ret_source)
{
	const char *class = field ? h->cache->get_text(h->ctx, ctr, field) : NULL;
	*ret_source = "decided by the policy or an adjustment";
	if (class && *class)
		return class;
	*ret_source = "from an annotation";
	return h->cache->annotation(h->ctx, ctr, key, NULL);
}

const char *ctl_qos_name(uint32_t qos)
{
	static const char *const names[] = {"Guaranteed", "Burstable", "BestEffort"};
	return names[qos <= RP_QOS_BEST_EFFORT ? qos : 0];
}
