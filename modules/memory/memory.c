/* SPDX-License-Identifier: Apache-2.0 */
/* The module memory: hooks, records of changed containers, and queued work. */
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
	struct rp_plan *plan; /* active plan */
	struct ctl_queue *queue;
	/* containers with applied values; the record has those with a class */
	struct ctl_table done;
	struct ctl_table tiers; /* containers with a top-tier limit */
	unsigned char *saved; /* both records */
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

/* Adds resets for the limits of a class and of an adjustment that no longer apply. */
static void memory_undo(const struct rp_instance *inst, const struct ctl_entry *was,
			const struct ctl_entry *tier, struct memory_values *v)
{
	bool v1 = inst->plan->v1;
	if (was && was->given && !v->class[0])
		memory_values_add(v, v1 ? "memory.soft_limit_in_bytes" : "memory.high",
				  v1 ? "-1" : "max");
	if (tier && tier->given && !v->toptier)
		memory_values_add(v, MEMORY_TOPTIER_FILE, "-1");
}

/* Records that a container is about to receive the values of m; tier: it has a top-tier limit. */
static int32_t memory_give(struct rp_instance *inst, const struct rp_ctr_info *info, bool tier,
			   struct memory_item *m)
{
	const struct memory_values *v = &m->values;
	const struct ctl_entry *e =
		ctl_table_give(&inst->done, info, v->class[0] ? v->class : NULL);
	if (!e)
		return -RP_ENOMEM;
	m->serial = e->serial;
	if (!tier && !v->toptier)
		return 0;
	e = ctl_table_give(&inst->tiers, info, v->toptier ? "top tier" : NULL);
	if (!e)
		return -RP_ENOMEM;
	m->tier_serial = e->serial;
	return 0;
}

static int32_t memory_do_apply(struct rp_instance *inst, rp_ctr ctr, bool all)
{
	const struct modhost *h = &inst->h;
	struct rp_ctr_info info = {.size = sizeof info};
	if (!inst->plan->config->enable || h->cache->get_ctr(h->ctx, ctr, &info) ||
	    info.state == RP_STATE_EXITED || info.state == RP_STATE_CREATING)
		return 0;
	const struct ctl_entry *was = ctl_table_know(&inst->done, &info),
			       *tier = ctl_table_know(&inst->tiers, &info);
	if (!all && was && !was->stale)
		return 0;
	struct memory_item *m = new_item(h, ctr);
	if (!m)
		return modhost_no_memory(h);
	if (memory_values_of(h, inst->plan->config, ctr, inst->plan->v1, &m->values))
		m->values.n = 0;
	memory_toptier_of(h, ctr, &m->values);
	memory_undo(inst, was, tier, &m->values);
	if (!m->values.n && !m->values.why[0] && !was) {
		item_free(m);
		h->work->report(h->ctx, ctr, RP_APPLY_DONE, "");
		return 0;
	}
	if (memory_give(inst, &info, tier != NULL, m)) {
		item_free(m);
		return modhost_no_memory(h);
	}
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
	/* Runtimes refuse such values on v1, so they are written when the container starts. */
	for (uint32_t i = 0; !r && !inst->plan->v1 && i < v.n; i++)
		r = h->cache->set_pair(h->ctx, txn, ctr, RP_F_UNIFIED, v.list[i].file,
				       v.list[i].text);
	return r;
}

static int32_t memory_post_start(struct rp_instance *inst, rp_ctr ctr)
{
	return memory_do_apply(inst, ctr, true);
}

static int32_t memory_post_update(struct rp_instance *inst, rp_ctr ctr, uint32_t changed)
{
	int32_t r = changed & RP_CHANGED_MEMS
			    ? memory_migrate(inst->migrations, inst->plan->config, ctr)
			    : 0;
	if (r)
		return r;
	return changed & RP_CHANGED_MEMORY ? memory_do_apply(inst, ctr, true) : 0;
}

static int32_t memory_post_stop(struct rp_instance *inst, rp_ctr ctr)
{
	ctl_queue_forget(inst->queue, ctr);
	memory_migrate_forget(inst->migrations, ctr);
	ctl_table_del(&inst->done, ctr);
	ctl_table_del(&inst->tiers, ctr);
	return 0;
}

static void sync_one(void *arg, rp_ctr ctr)
{
	(void)memory_do_apply(arg, ctr, false);
}

/* Keeps a container in the record of top-tier limits. */
static void know_tier(void *arg, rp_ctr ctr)
{
	struct rp_instance *inst = arg;
	struct rp_ctr_info info = {.size = sizeof info};
	if (!inst->h.cache->get_ctr(inst->h.ctx, ctr, &info))
		(void)ctl_table_know(&inst->tiers, &info);
}

static void memory_sync(struct rp_instance *inst)
{
	if (!inst->plan || !inst->plan->config->enable)
		return;
	ctl_table_sync(&inst->done, &inst->h, sync_one, inst);
	ctl_table_sync(&inst->tiers, &inst->h, know_tier, inst);
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
	if (ran && !m->values.toptier && item->result == RP_APPLY_DONE)
		ctl_table_taken(&inst->tiers, item->ctr, m->tier_serial);
	if (ran)
		inst->n_writes += m->n_writes;
	item_free(m);
}

static void memory_again(void *arg, rp_ctr ctr)
{
	(void)memory_do_apply(arg, ctr, true);
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
		&inst->done); /* waiting items were dropped: apply them at the next start */
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

/* Saves the record of classes alone, as earlier versions did, or both records if a container has a
 * top-tier limit. */
static int32_t memory_save(struct rp_instance *inst, const void **ret_data, uint32_t *ret_size)
{
	const void *done, *tiers;
	uint32_t n_done, n_tiers;
	ctl_table_save(&inst->done, &done, &n_done);
	ctl_table_save(&inst->tiers, &tiers, &n_tiers);
	uint64_t n = n_done;
	*ret_data = done;
	*ret_size = n_done;
	if (!inst->tiers.n_record)
		return 0;
	unsigned char *both = realloc(inst->saved, sizeof n + n_done + n_tiers);
	if (!both)
		return modhost_no_memory(&inst->h);
	memcpy(both, &n, sizeof n);
	memcpy(both + sizeof n, done, n_done);
	memcpy(both + sizeof n + n_done, tiers, n_tiers);
	*ret_data = inst->saved = both;
	*ret_size = (uint32_t)sizeof n + n_done + n_tiers;
	return 0;
}

/* Loads both records, which follow the length of the first one. */
static int32_t load_both(struct rp_instance *inst, const unsigned char *data, uint32_t size)
{
	uint64_t n;
	if (size < sizeof n)
		return -RP_EINVAL;
	memcpy(&n, data, sizeof n);
	data += sizeof n;
	size -= (uint32_t)sizeof n;
	if (n > size)
		return -RP_EINVAL;
	int32_t r = ctl_table_load(&inst->done, data, (uint32_t)n);
	return r ? r : ctl_table_load(&inst->tiers, data + n, size - (uint32_t)n);
}

static int32_t memory_load(struct rp_instance *inst, const void *data, uint32_t size)
{
	int32_t r = ctl_table_load(&inst->done, data, size);
	if (r == -RP_EINVAL)
		r = load_both(inst, data, size);
	return r ? modhost_fail(&inst->h, r, "it is no record of containers") : 0;
}

/* ---- module definition ----------------------------------------------------------------------- */

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
	.takes = RP_TAKES_TOPTIER_LIMIT,
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
	ctl_table_fini(&inst->tiers);
	free(inst->saved);
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
		 .summary = "memory.high, swap, tiers and pages of containers",
		 .licence = "Apache-2.0", .create = memory_create, .destroy = memory_destroy,
		 .service = memory_service);
