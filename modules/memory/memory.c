/* SPDX-License-Identifier: Apache-2.0 */
/* The module memory: hooks, records of changed containers, and queued work. */
#include <stdlib.h>

#include "modules/lib/private/ctl_table.h"
#include <nri-rp/lib/bytes.h>
#include "modules/memory/memory.h"
#include <nri-rp/lib/section.h>

enum { KIND_VALUES, KIND_MOVE };

struct rp_instance {
	CTL_LIFE; /* the record of its table has the containers with a class */
	struct ctl_table tiers; /* containers with a top-tier limit */
	struct bytes saved; /* saved state: both records */
	struct memory_migrations *migrations;
};

static int32_t memory_plan(struct rp_instance *inst, rp_cfg section, struct rp_plan *ret)
{
	return memory_config_read(&inst->h, section, ret);
}

/* ---- containers ------------------------------------------------------------------------------ */

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
		ctl_table_give(inst->table, info, v->class[0] ? v->class : NULL);
	if (!e)
		return -RP_ENOMEM;
	m->item.serial = e->serial;
	m->item.revokes = !v->class[0];
	if (!tier && !v->toptier)
		return 0;
	e = ctl_table_give(&inst->tiers, info, v->toptier ? "top tier" : NULL);
	if (!e)
		return -RP_ENOMEM;
	m->tier_serial = e->serial;
	return 0;
}

static int32_t memory_do_apply(struct rp_instance *inst, const struct rp_ctr_info *info,
			       enum ctl_cause cause)
{
	const struct modhost *h = &inst->h;
	const struct ctl_entry *was = ctl_table_know(inst->table, info),
			       *tier = ctl_table_know(&inst->tiers, info);
	if (cause == CTL_SYNC && was && !was->stale)
		return 0;
	struct memory_item *m = ctl_life_item(inst, info->ctr, KIND_VALUES, sizeof *m);
	if (!m)
		return modhost_no_memory(h);
	if (memory_values_of(h, inst->plan, info, &m->values))
		m->values.n = 0;
	memory_toptier_of(h, info->ctr, &m->values);
	memory_undo(inst, was, tier, &m->values);
	int32_t r = 0;
	if (!m->values.n && !m->values.why[0] && !was)
		h->work->report(h->ctx, info->ctr, RP_APPLY_DONE, "");
	else if (memory_give(inst, info, tier != NULL, m))
		r = modhost_no_memory(h);
	else
		return ctl_life_add(inst, &m->item), 0;
	ctl_life_drop(inst, &m->item);
	return r;
}

static int32_t memory_pre_create(struct rp_instance *inst, rp_txn txn,
				 const struct rp_ctr_info *info)
{
	const struct modhost *h = &inst->h;
	struct memory_values v;
	int32_t r = memory_values_of(h, inst->plan, info, &v);
	if (r)
		return modhost_fail(h, r, "%s", v.why);
	if (v.class[0])
		modhost_note(h, info->ctr, "memory class %s", v.class);
	/* Runtimes refuse such values on v1, so they are written when the container starts. */
	for (uint32_t i = 0; !r && !inst->plan->v1 && i < v.n; i++)
		r = h->cache->set_pair(h->ctx, txn, info->ctr, RP_F_UNIFIED, v.list[i].file,
				       v.list[i].text);
	return r;
}

static int32_t memory_updated(struct rp_instance *inst, rp_ctr ctr, uint32_t changed)
{
	return changed & RP_CHANGED_MEMS ? memory_migrate(inst->migrations, inst->plan, ctr) : 0;
}

static void memory_gone(struct rp_instance *inst, rp_ctr ctr)
{
	memory_migrate_forget(inst->migrations, ctr);
	ctl_table_del(&inst->tiers, ctr);
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
	ctl_life_apply_all(inst);
	ctl_table_sync(&inst->tiers, &inst->h, know_tier, inst);
}

static void memory_run(struct rp_instance *inst, struct ctl_item *item)
{
	if (item->kind == KIND_MOVE)
		memory_step_run(&inst->h, (struct memory_step *)(void *)item);
	else
		memory_apply(&inst->h, (struct memory_item *)(void *)item);
}

static void memory_done(struct rp_instance *inst, struct ctl_item *item, bool ran)
{
	const struct memory_item *m = (struct memory_item *)(void *)item;
	if (item->kind == KIND_MOVE)
		memory_migrate_done(inst->migrations, inst->plan,
				    (struct memory_step *)(void *)item, ran);
	else if (ran && !m->values.toptier && item->result == RP_APPLY_DONE)
		ctl_table_taken(&inst->tiers, item->ctr, m->tier_serial);
}

static void memory_timer(struct rp_instance *inst, uint64_t cookie)
{
	if (cookie == MEMORY_MOVE_COOKIE)
		memory_migrate_timer(inst->migrations, inst->plan);
}

static int32_t memory_collect(struct rp_instance *inst, const struct rp_metric_sink *sink)
{
	ctl_life_collect(inst, sink, "Containers with individual values.");
	memory_migrate_collect(inst->migrations, sink);
	return 0;
}

/* Saves the record of classes alone, as earlier versions did, or both records if a container has a
 * top-tier limit. */
static int32_t memory_save(struct rp_instance *inst, const void **ret_data, uint32_t *ret_size)
{
	const void *done, *tiers;
	uint32_t n_done, n_tiers;
	ctl_table_save(inst->table, &done, &n_done);
	ctl_table_save(&inst->tiers, &tiers, &n_tiers);
	uint64_t n = n_done;
	*ret_data = done;
	*ret_size = n_done;
	if (!inst->tiers.n_record)
		return 0;
	bytes_reset(&inst->saved);
	(void)bytes_put(&inst->saved, &n, sizeof n);
	(void)bytes_put(&inst->saved, done, n_done);
	(void)bytes_put(&inst->saved, tiers, n_tiers);
	if (inst->saved.failed)
		return modhost_no_memory(&inst->h);
	*ret_data = inst->saved.data;
	*ret_size = inst->saved.size;
	return 0;
}

/* Loads both records, which follow the length of the first record. */
static int32_t load_both(struct rp_instance *inst, const void *data, uint32_t size)
{
	struct bytes_left left = bytes_of(data, size);
	uint64_t n = 0;
	(void)bytes_take(&left, &n, sizeof n);
	const void *done = bytes_skip(&left, n);
	if (left.failed)
		return -RP_EINVAL;
	int32_t r = ctl_table_load(inst->table, done, (uint32_t)n);
	return r ? r : ctl_table_load(&inst->tiers, left.at, bytes_n_left(&left));
}

static int32_t memory_load(struct rp_instance *inst, const void *data, uint32_t size)
{
	int32_t r = ctl_table_load(inst->table, data, size);
	if (r == -RP_EINVAL)
		r = load_both(inst, data, size);
	return r ? modhost_fail(&inst->h, r, "not a record of containers") : 0;
}

static int32_t memory_init(struct rp_instance *inst)
{
	if (!RP_HAS(inst->h.work, cgroup_find) || !inst->h.work->cgroup_find)
		return modhost_fail(&inst->h, -RP_ENOTSUP, "the host cannot find cgroups");
	inst->migrations = memory_migrations_new(inst, &inst->h, KIND_MOVE);
	return inst->migrations ? 0 : modhost_no_memory(&inst->h);
}

static void memory_fini(struct rp_instance *inst)
{
	memory_migrations_free(inst->migrations);
	ctl_table_fini(&inst->tiers);
	free(inst->saved.data);
}

/* ---- module definition ----------------------------------------------------------------------- */

static const struct rp_key keys[] = {
	SECTION_BOOL("enable", "true", "Switch the controller on."),
	SECTION_BOOL("usePodQoSAsDefaultClass", "false",
		     "Without an annotation, use the class named like the pod's QoS class, if it "
		     "exists."),
	SECTION_LIST("unifiedAnnotations",
		     "Files of cgroup v2 that pods may set by annotations FILE.memory-qos.nri.io."),
	SECTION_KEY("unifiedAnnotations[]", STRING, "A file, such as memory.high.",
		    .flags = RP_KEY_NON_EMPTY),
	SECTION_MAP("pageMigration",
		    "Migration of pages of containers whose memory nodes changed."),
	SECTION_BOOL("pageMigration.enable", "false", "Move them to the new nodes."),
	SECTION_KEY("pageMigration.rate", BYTES,
		    "Bytes per second, for all containers together; at least 1Mi.",
		    .fallback = "256Mi", .expected = "a rate in bytes per second (256Mi, 1G)"),
	SECTION_LIST("classes", "Classes, chosen by the annotation class.memory-qos.nri.io."),
	SECTION_MAP("classes[]", "A class."),
	SECTION_KEY("classes[].name", STRING, "Unique name.",
		    .flags = RP_KEY_REQUIRED | RP_KEY_NON_EMPTY),
	SECTION_KEY("classes[].swapLimitRatio", NUMBER,
		    "Fraction of the memory limit that may be swapped out: the kernel reclaims "
		    "memory above the rest.",
		    .fallback = "0"),
};

static const struct rp_schema schema = SECTION_SCHEMA(keys, .flags = RP_SCHEMA_FOLD_CASE);

static const struct rp_state state = {
	.size = sizeof(struct rp_state),
	.save = memory_save,
	.load = memory_load,
};

static const struct ctl_life_ops ops = {
	.takes = RP_TAKES_TOPTIER_LIMIT,
	.changes = RP_CHANGED_MEMORY,
	.retries = true,
	.plan_size = sizeof(struct rp_plan),
	.init = memory_init,
	.fini = memory_fini,
	.plan = memory_plan,
	.plan_fini = memory_config_fini,
	.pre_create = memory_pre_create,
	.apply = memory_do_apply,
	.updated = memory_updated,
	.gone = memory_gone,
	.sync = memory_sync,
	.timer = memory_timer,
	.run = memory_run,
	.done = memory_done,
	.collect = memory_collect,
	.schema = &schema,
	.state = &state,
};

CTL_MODULE("memory", "1.0", ops, .summary = "memory.high, swap, tiers and pages of containers",
	   .licence = "Apache-2.0");
