/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include <nri-rp/controller.h>

#include "modules/memory/memory.h"

enum { KIND_VALUES, KIND_MOVE };

struct rp_plan {
	struct memory_config *config;
	bool v1;
};

struct rp_instance {
	struct modhost h;
	struct rp_plan *plan; /* in force */
	struct ctl_queue *queue;
	struct ctl_table done; /* containers that were given something */
	struct memory_migrations *migrations;
	uint64_t n_writes;
};

/* ---- configuration --------------------------------------------------------------------------- */

static void plan_free(struct rp_plan *p)
{
	if (p)
		memory_config_free(p->config);
	free(p);
}

static int32_t memory_prepare(struct rp_instance *inst, rp_cfg cfg, struct rp_plan **ret_plan)
{
	struct rp_plan *p = calloc(1, sizeof *p);
	if (!p)
		return modhost_no_memory(&inst->h);
	int32_t r = memory_config_read(&inst->h, cfg, &p->config);
	if (r) {
		plan_free(p);
		return r;
	}
	p->v1 = ctl_is_v1(&inst->h);
	*ret_plan = p;
	return 0;
}

static void memory_abort(struct rp_instance *inst, struct rp_plan *plan)
{
	(void)inst;
	plan_free(plan);
}

static void memory_commit(struct rp_instance *inst, struct rp_plan *plan)
{
	plan_free(inst->plan);
	inst->plan = plan;
	ctl_table_mark_stale(&inst->done);
}

/* ---- containers ------------------------------------------------------------------------------ */

static void item_free(struct memory_item *m)
{
	free(m->ref);
	free(m);
}

static struct memory_item *new_item(const struct modhost *h, rp_ctr ctr)
{
	struct memory_item *m = calloc(1, sizeof *m);
	if (!m)
		return NULL;
	m->item.ctr = ctr;
	m->ref = ctl_cgroup_ref(h, ctr);
	if (m->ref)
		return m;
	item_free(m);
	return NULL;
}

/* A class that is gone takes its limit with it. */
static void undo(const struct rp_instance *inst, struct memory_values *v)
{
	const char *file = inst->plan->v1 ? "memory.soft_limit_in_bytes" : "memory.high";
	for (uint32_t i = 0; i < v->n; i++)
		if (strcmp(v->list[i].file, file) == 0)
			return;
	(void)ctl_format(v->list[v->n].file, MEMORY_FILE_MAX, "%s", file);
	(void)ctl_format(v->list[v->n].text, MEMORY_VALUE_MAX, "%s", inst->plan->v1 ? "-1" : "max");
	v->n++;
}

static int32_t apply(struct rp_instance *inst, rp_ctr ctr, bool all)
{
	const struct modhost *h = &inst->h;
	struct rp_ctr_info info = {.size = sizeof info};
	if (!inst->plan->config->enable || h->cache->get_ctr(h->ctx, ctr, &info) ||
	    info.state == RP_STATE_EXITED || info.state == RP_STATE_CREATING)
		return 0;
	const struct ctl_entry *was = ctl_table_know(&inst->done, &info);
	if (!all && was && !was->stale)
		return 0;
	struct memory_item *m = new_item(h, ctr);
	if (!m)
		return modhost_no_memory(h);
	if (memory_values_of(h, inst->plan->config, ctr, inst->plan->v1, &m->values))
		m->values.n = 0;
	if (was && was->given && !m->values.class[0])
		undo(inst, &m->values);
	if (!m->values.n && !m->values.why[0] && !was) {
		item_free(m);
		h->work->report(h->ctx, ctr, RP_APPLY_DONE, "");
		return 0;
	}
	const struct ctl_entry *e =
		ctl_table_give(&inst->done, &info, m->values.class[0] ? m->values.class : NULL);
	if (!e) {
		item_free(m);
		return modhost_no_memory(h);
	}
	m->serial = e->serial;
	ctl_queue_add(inst->queue, &m->item);
	return 0;
}

static int32_t memory_pre_create(struct rp_instance *inst, rp_txn txn, rp_ctr ctr)
{
	const struct modhost *h = &inst->h;
	struct memory_values v;
	if (!inst->plan->config->enable)
		return 0;
	int32_t r = memory_values_of(h, inst->plan->config, ctr, inst->plan->v1, &v);
	if (r)
		return modhost_fail(h, r, "%s", *v.why ? v.why : "the container is not known");
	if (v.class[0])
		modhost_note(h, ctr, "memory class %s", v.class);
	/* runtimes refuse such values on v1: they are written when the container starts */
	for (uint32_t i = 0; !r && !inst->plan->v1 && i < v.n; i++)
		r = h->cache->set_pair(h->ctx, txn, ctr, RP_F_UNIFIED, v.list[i].file,
				       v.list[i].text);
	return r;
}

static int32_t memory_post_start(struct rp_instance *inst, rp_ctr ctr)
{
	return apply(inst, ctr, true);
}

static int32_t memory_post_update(struct rp_instance *inst, rp_ctr ctr, uint32_t changed)
{
	int32_t r = changed & RP_CHANGED_MEMS
			    ? memory_migrate(inst->migrations, inst->plan->config, ctr)
			    : 0;
	if (r)
		return r;
	return changed & RP_CHANGED_MEMORY ? apply(inst, ctr, true) : 0;
}

static int32_t memory_post_stop(struct rp_instance *inst, rp_ctr ctr)
{
	ctl_queue_forget(inst->queue, ctr);
	memory_migrate_forget(inst->migrations, ctr);
	ctl_table_del(&inst->done, ctr);
	return 0;
}

static void sync_one(void *arg, rp_ctr ctr)
{
	(void)apply(arg, ctr, false);
}

static void memory_sync(struct rp_instance *inst)
{
	if (!inst->plan || !inst->plan->config->enable)
		return;
	ctl_table_sync(&inst->done, &inst->h, sync_one, inst);
}

static void run_item(void *arg, struct ctl_item *item)
{
	struct rp_instance *inst = arg;
	if (item->kind == KIND_MOVE)
		memory_step_run(&inst->h, (struct memory_step *)(void *)item);
	else
		memory_apply(&inst->h, (struct memory_item *)(void *)item);
}

static void item_done(void *arg, struct ctl_item *item, int ran)
{
	struct rp_instance *inst = arg;
	struct memory_item *m = (struct memory_item *)(void *)item;
	if (item->kind == KIND_MOVE) {
		memory_migrate_done(inst->migrations, inst->plan->config,
				    (struct memory_step *)(void *)item, ran);
		return;
	}
	if (ran && !m->values.class[0] && item->result == RP_APPLY_DONE)
		ctl_table_taken(&inst->done, item->ctr, m->serial);
	if (ran)
		inst->n_writes += m->n_writes;
	item_free(m);
}

static void memory_again(void *arg, rp_ctr ctr)
{
	(void)apply(arg, ctr, true);
}

static void memory_timer(struct rp_instance *inst, uint64_t cookie)
{
	if (cookie == MEMORY_MOVE_COOKIE)
		memory_migrate_timer(inst->migrations, inst->plan->config);
	else
		ctl_queue_timer(inst->queue, cookie);
}

static int32_t memory_start(struct rp_instance *inst)
{
	(void)inst;
	return 0;
}

static void memory_stop(struct rp_instance *inst)
{
	ctl_queue_clear(inst->queue);
	ctl_table_mark_stale(
		&inst->done); /* what waited has not been done, if it is ever started again */
}

static int32_t memory_collect(struct rp_instance *inst, const struct rp_metric_sink *sink)
{
	sink->gauge(sink->ctx, "containers", "Containers with values of their own.", "",
		    inst->done.n);
	sink->counter(sink->ctx, "writes_total", "Writes to files of cgroups.", "",
		      (double)inst->n_writes);
	ctl_queue_collect(inst->queue, sink);
	memory_migrate_collect(inst->migrations, sink);
	return 0;
}

static int32_t memory_save(struct rp_instance *inst, const void **ret_data, uint32_t *ret_size)
{
	ctl_table_save(&inst->done, ret_data, ret_size);
	return 0;
}

static int32_t memory_load(struct rp_instance *inst, const void *data, uint32_t size)
{
	int32_t r = ctl_table_load(&inst->done, data, size);
	return r ? modhost_fail(&inst->h, r, "it is no record of containers") : 0;
}

/* ---- the module ------------------------------------------------------------------------------ */

static const struct rp_key keys[] = {
	{.path = "enable", .type = RP_T_BOOL, .fallback = "true", .doc = "Do anything at all."},
	{.path = "usePodQoSAsDefaultClass",
	 .type = RP_T_BOOL,
	 .fallback = "false",
	 .doc = "Without an annotation a container has the class that is named like its QoS class, "
		"if there is one."},
	{.path = "unifiedAnnotations",
	 .type = RP_T_LIST,
	 .doc = "Files of cgroup v2 that pods may set by annotations FILE.memory-qos.nri.io."},
	{.path = "unifiedAnnotations[]",
	 .type = RP_T_STRING,
	 .flags = RP_KEY_NON_EMPTY,
	 .doc = "Such as memory.high."},
	{.path = "pageMigration",
	 .type = RP_T_MAP,
	 .doc = "Pages of containers whose memory nodes have changed."},
	{.path = "pageMigration.enable",
	 .type = RP_T_BOOL,
	 .fallback = "false",
	 .doc = "Move them to the new nodes."},
	{.path = "pageMigration.rate",
	 .type = RP_T_BYTES,
	 .fallback = "256Mi",
	 .doc = "So many bytes a second, of all containers together; at least 1Mi."},
	{.path = "classes",
	 .type = RP_T_LIST,
	 .doc = "Classes, chosen by the annotation class.memory-qos.nri.io."},
	{.path = "classes[]", .type = RP_T_MAP, .doc = "A class."},
	{.path = "classes[].name",
	 .type = RP_T_STRING,
	 .flags = RP_KEY_REQUIRED | RP_KEY_NON_EMPTY,
	 .doc = "Its name, unique."},
	{.path = "classes[].swapLimitRatio",
	 .type = RP_T_NUMBER,
	 .fallback = "0",
	 .doc = "The part of the memory limit that may be swapped out: the kernel reclaims what is "
		"over the rest."},
};

static const struct rp_schema schema = {
	.size = sizeof(struct rp_schema),
	.flags = RP_SCHEMA_FOLD_CASE,
	.keys = keys,
	.n_keys = sizeof keys / sizeof keys[0],
	.key_size = sizeof(struct rp_key),
};

static const struct rp_controller controller = {
	.size = sizeof(struct rp_controller),
	.prepare = memory_prepare,
	.commit = memory_commit,
	.abort = memory_abort,
	.start = memory_start,
	.stop = memory_stop,
	.pre_create = memory_pre_create,
	.post_start = memory_post_start,
	.post_update = memory_post_update,
	.post_stop = memory_post_stop,
	.sync = memory_sync,
	.timer = memory_timer,
};

static const struct rp_metrics metrics = {
	.size = sizeof(struct rp_metrics),
	.collect = memory_collect,
};

static const struct rp_state state = {
	.size = sizeof(struct rp_state),
	.save = memory_save,
	.load = memory_load,
};

static void memory_destroy(struct rp_instance *inst)
{
	inst->queue = ctl_queue_free(inst->queue);
	memory_migrations_free(inst->migrations);
	ctl_table_fini(&inst->done);
	plan_free(inst->plan);
	free(inst);
}

static int32_t memory_create(const struct rp_host *host, struct rp_instance **ret_inst)
{
	static const struct ctl_ops ops = {run_item, item_done, memory_again};
	struct rp_instance *inst = calloc(1, sizeof *inst);
	if (!inst)
		return host->fail(host->ctx, -RP_ENOMEM, "out of memory");
	int32_t r = ctl_queue_open(&inst->h, host, &ops, inst, &inst->queue);
	if (!r && (!RP_HAS(inst->h.work, cgroup_find) || !inst->h.work->cgroup_find))
		r = modhost_fail(&inst->h, -RP_ENOTSUP, "the host cannot find cgroups");
	inst->migrations = r ? NULL : memory_migrations_new(&inst->h, inst->queue, KIND_MOVE);
	if (!r && !inst->migrations)
		r = modhost_no_memory(&inst->h);
	if (r) {
		memory_destroy(inst);
		return r;
	}
	*ret_inst = inst;
	return 0;
}

static const void *memory_service(struct rp_instance *inst, const char *id)
{
	static const struct modhost_service services[] = {{RP_SCHEMA_1, &schema},
							  {RP_CONTROLLER_1, &controller},
							  {RP_METRICS_1, &metrics},
							  {RP_STATE_1, &state},
							  {NULL, NULL}};
	(void)inst;
	return modhost_service(services, id);
}

RP_MODULE_DEFINE("memory", "1.0", RP_KIND_CONTROLLER,
		 .summary = "memory.high, swap and pages of containers", .licence = "Apache-2.0",
		 .create = memory_create, .destroy = memory_destroy, .service = memory_service);
