/* SPDX-License-Identifier: Apache-2.0 */
/* The module blkio: chooses the class of each container and queues work. */
#include "modules/blkio/blkio.h"

#include "modules/lib/private/ctl_table.h"
#include <nri-rp/lib/section.h>

#define CLASS_KEY "blockioclass.resource-policy.nri.io"

struct rp_instance {
	CTL_LIFE;
	bool knows_devices; /* an item has read the disks */
	struct blkio_worker worker; /* used by the worker only */
};

static int32_t blkio_plan(struct rp_instance *inst, rp_cfg section, struct rp_plan *ret)
{
	return blkio_config_read(&inst->h, section, ret);
}

static void blkio_commit(struct rp_instance *inst, const struct rp_plan *former)
{
	inst->controller.takes =
		inst->plan->enable && inst->plan->forward ? 0 : RP_TAKES_BLOCKIO_CLASS;
}

/* Returns the class of a container; NULL: none. */
static const char *blkio_choose(struct rp_instance *inst, const struct rp_ctr_info *info,
				const char **ret_source)
{
	const char *class =
		ctl_class_of(&inst->h, info->ctr, RP_F_BLOCKIO_CLASS, CLASS_KEY, ret_source);
	if (class)
		return *class ? class : NULL;
	if (!inst->plan->qos_default)
		return NULL;
	*ret_source = "by its QoS class";
	class = ctl_qos_name(info->qos);
	return inst->plan->forward || blkio_config_class(inst->plan, class) ? class : NULL;
}

static int32_t blkio_pre_create(struct rp_instance *inst, rp_txn txn,
				const struct rp_ctr_info *info)
{
	const struct modhost *h = &inst->h;
	const char *source, *class = blkio_choose(inst, info, &source);
	if (!class)
		return 0;
	if (!inst->plan->forward && !blkio_config_class(inst->plan, class))
		return modhost_fail(h, -RP_EINVAL, "unknown block I/O class \"%s\" (%s)", class,
				    source);
	modhost_note(h, info->ctr, "block I/O class %s, %s", class, source);
	return inst->plan->forward
		       ? h->cache->set_text(h->ctx, txn, info->ctr, RP_F_BLOCKIO_CLASS, class)
		       : 0;
}

static int32_t blkio_do_apply(struct rp_instance *inst, const struct rp_ctr_info *info,
			      enum ctl_cause cause)
{
	struct blkio_item *b;
	struct ctl_item *item;
	const char *source;
	if (inst->plan->forward)
		return 0;
	const char *class = blkio_choose(inst, info, &source);
	int32_t r = ctl_life_give(inst, info, class, cause >= CTL_START, sizeof *b, &item);
	if (r || !item)
		return r;
	b = (struct blkio_item *)(void *)item;
	b->class = class ? blkio_config_class(inst->plan, class) : NULL;
	if (class && !b->class)
		(void)ctl_format(b->unknown, sizeof b->unknown, "%s", class);
	ctl_life_add(inst, item);
	return 0;
}

static void blkio_sync(struct rp_instance *inst)
{
	if (!inst->plan->forward)
		ctl_life_apply_all(inst);
}

static void blkio_run(struct rp_instance *inst, struct ctl_item *item)
{
	blkio_apply(&inst->worker, (struct blkio_item *)(void *)item);
}

/* Applies all classes again after disks were added or removed. The first list of disks was compared
 * with an empty one. */
static void blkio_done(struct rp_instance *inst, struct ctl_item *item, bool ran)
{
	bool first = !inst->knows_devices;
	if (!ran || !((struct blkio_item *)(void *)item)->new_devices)
		return;
	inst->knows_devices = true;
	if (first)
		return;
	ctl_table_mark_stale(inst->table);
	if (ctl_life_active(inst))
		blkio_sync(inst);
}

static int32_t blkio_collect(struct rp_instance *inst, const struct rp_metric_sink *sink)
{
	ctl_life_collect(inst, sink, "Containers with a class.");
	return 0;
}

static int32_t blkio_init(struct rp_instance *inst)
{
	inst->worker.h = &inst->h;
	return RP_HAS(inst->h.work, read_link) && inst->h.work->read_link
		       ? 0
		       : modhost_fail(&inst->h, -RP_ENOTSUP, "the host cannot read links");
}

static void blkio_fini(struct rp_instance *inst)
{
	blkio_devices_fini(&inst->worker.last);
}

/* ---- module definition ----------------------------------------------------------------------- */

#define BYTE_RATE "a rate in bytes per second (60M, 1Gi)"
#define OPERATION_RATE "a rate in operations per second (500, 10k)"

static const struct rp_key keys[] = {
	SECTION_BOOL("enable", "true", "Apply classes to containers."),
	SECTION_BOOL("usePodQoSAsDefaultClass", "false",
		     "By default, use the class named like the pod's QoS class: Guaranteed, "
		     "Burstable, BestEffort."),
	SECTION_MAP("classes",
		    "Classes by name. Without this key, class names are passed to the runtime."),
	SECTION_LIST("classes.*", "Entries; for a device, later entries override earlier ones."),
	SECTION_MAP("classes.*[]", "An entry."),
	SECTION_LIST("classes.*[].devices", "Disks, as paths or patterns of paths; without disks, "
					    "the weight is the default weight."),
	SECTION_KEY("classes.*[].devices[]", STRING,
		    "A path or pattern, such as /dev/sd[a-z] or /dev/disk/by-id/nvme-*.",
		    .flags = RP_KEY_NON_EMPTY),
	SECTION_KEY("classes.*[].weight", BYTES, "Share of the disk's time, 10 to 1000.",
		    .expected = "a weight from 10 to 1000"),
	SECTION_KEY("classes.*[].throttleReadBps", BYTES,
		    "Maximum bytes read per second; 0: no limit.", .expected = BYTE_RATE),
	SECTION_KEY("classes.*[].throttleWriteBps", BYTES,
		    "Maximum bytes written per second; 0: no limit.", .expected = BYTE_RATE),
	SECTION_KEY("classes.*[].throttleReadIOPS", BYTES, "Maximum reads per second; 0: no limit.",
		    .expected = OPERATION_RATE),
	SECTION_KEY("classes.*[].throttleWriteIOPS", BYTES,
		    "Maximum writes per second; 0: no limit.", .expected = OPERATION_RATE),
};

static const struct rp_schema schema = SECTION_SCHEMA(keys, .flags = RP_SCHEMA_FOLD_CASE);

static const struct ctl_life_ops ops = {
	.takes = RP_TAKES_BLOCKIO_CLASS,
	.changes = RP_CHANGED_CLASS,
	.retries = true,
	.records = true,
	.plan_size = sizeof(struct rp_plan),
	.init = blkio_init,
	.fini = blkio_fini,
	.plan = blkio_plan,
	.plan_fini = blkio_config_fini,
	.commit = blkio_commit,
	.pre_create = blkio_pre_create,
	.apply = blkio_do_apply,
	.sync = blkio_sync,
	.run = blkio_run,
	.done = blkio_done,
	.collect = blkio_collect,
	.schema = &schema,
};

CTL_MODULE("blkio", "1.0", ops, .summary = "weights and throttles of block I/O",
	   .licence = "Apache-2.0");
