/* SPDX-License-Identifier: Apache-2.0 */
/* The module blkio: chooses the class of each container and queues work. */
#include <stdlib.h>

#include <nri-rp/controller.h>

#include "modules/blkio/blkio.h"

#define CLASS_KEY "blockioclass.resource-policy.nri.io"

struct rp_plan {
	struct blkio_config *config;
};

struct rp_instance {
	struct modhost h;
	struct rp_controller controller; /* `takes` depends on the configuration */
	struct blkio_config *config; /* active configuration */
	struct ctl_queue *queue;
	struct ctl_table done; /* containers with applied values */
	bool running, again;
	uint64_t n_writes;
	struct blkio_worker worker; /* used by the worker only */
};

/* ---- configuration --------------------------------------------------------------------------- */

static int32_t blkio_prepare(struct rp_instance *inst, rp_cfg cfg, struct rp_plan **ret_plan)
{
	struct rp_plan *p = calloc(1, sizeof *p);
	if (!p)
		return modhost_no_memory(&inst->h);
	int32_t r = blkio_config_read(&inst->h, cfg, &p->config);
	if (r)
		free(p);
	else
		*ret_plan = p;
	return r;
}

static void blkio_abort(struct rp_instance *inst, struct rp_plan *plan)
{
	(void)inst;
	blkio_config_unref(plan->config);
	free(plan);
}

static void blkio_commit(struct rp_instance *inst, struct rp_plan *plan)
{
	blkio_config_unref(inst->config);
	inst->config = plan->config;
	free(plan);
	inst->controller.takes =
		inst->config->enable && inst->config->forward ? 0 : RP_TAKES_BLOCKIO_CLASS;
	ctl_table_mark_stale(&inst->done);
}

/* ---- containers ------------------------------------------------------------------------------ */

/* Returns the class of a container; NULL: none. */
static const char *blkio_choose(struct rp_instance *inst, const struct rp_ctr_info *info,
				const char **ret_source)
{
	const char *class =
		ctl_class_of(&inst->h, info->ctr, RP_F_BLOCKIO_CLASS, CLASS_KEY, ret_source);
	if (class)
		return *class ? class : NULL;
	if (!inst->config->qos_default)
		return NULL;
	*ret_source = "by its QoS class";
	class = ctl_qos_name(info->qos);
	return inst->config->forward || blkio_config_class(inst->config, class) ? class : NULL;
}

static void item_free(struct blkio_item *b)
{
	blkio_config_unref(b->config);
	free(b->ref);
	free(b);
}

static struct blkio_item *new_item(struct rp_instance *inst, rp_ctr ctr)
{
	struct blkio_item *b = calloc(1, sizeof *b);
	if (!b)
		return NULL;
	b->item.ctr = ctr;
	b->config = inst->config;
	b->config->refs++;
	b->ref = ctl_cgroup_ref(&inst->h, ctr);
	if (b->ref)
		return b;
	item_free(b);
	return NULL;
}

static int32_t blkio_do_apply(struct rp_instance *inst, rp_ctr ctr, bool all)
{
	const struct modhost *h = &inst->h;
	struct rp_ctr_info info = {.size = sizeof info};
	const char *source;
	if (!inst->config->enable || inst->config->forward ||
	    h->cache->get_ctr(h->ctx, ctr, &info) || info.state == RP_STATE_EXITED ||
	    info.state == RP_STATE_CREATING)
		return 0;
	const char *class = blkio_choose(inst, &info, &source);
	const struct ctl_entry *was = ctl_table_know(&inst->done, &info);
	if (!class && !was) {
		h->work->report(h->ctx, ctr, RP_APPLY_DONE, ""); /* there is nothing to undo */
		return 0;
	}
	if (!all && was && !was->stale && strcmp(was->class, class ? class : "") == 0)
		return 0;
	struct blkio_item *b = new_item(inst, ctr);
	const struct ctl_entry *e = b ? ctl_table_give(&inst->done, &info, class) : NULL;
	if (!e) {
		if (b)
			item_free(b);
		return modhost_no_memory(h);
	}
	b->class = class ? blkio_config_class(b->config, class) : NULL;
	if (class && !b->class)
		(void)ctl_format(b->unknown, sizeof b->unknown, "%s", class);
	b->serial = e->serial;
	ctl_queue_add(inst->queue, &b->item);
	return 0;
}

static int32_t blkio_pre_create(struct rp_instance *inst, rp_txn txn, rp_ctr ctr)
{
	const struct modhost *h = &inst->h;
	struct rp_ctr_info info = {.size = sizeof info};
	const char *source;
	if (!inst->config->enable || h->cache->get_ctr(h->ctx, ctr, &info))
		return 0;
	const char *class = blkio_choose(inst, &info, &source);
	if (!class)
		return 0;
	if (!inst->config->forward && !blkio_config_class(inst->config, class))
		return modhost_fail(h, -RP_EINVAL, "there is no block I/O class \"%s\" (%s)", class,
				    source);
	modhost_note(h, ctr, "block I/O class %s, %s", class, source);
	return inst->config->forward
		       ? h->cache->set_text(h->ctx, txn, ctr, RP_F_BLOCKIO_CLASS, class)
		       : 0;
}

static int32_t blkio_post_start(struct rp_instance *inst, rp_ctr ctr)
{
	return blkio_do_apply(inst, ctr, true);
}

static int32_t blkio_post_update(struct rp_instance *inst, rp_ctr ctr, uint32_t changed)
{
	return changed & RP_CHANGED_CLASS ? blkio_do_apply(inst, ctr, false) : 0;
}

static int32_t blkio_post_stop(struct rp_instance *inst, rp_ctr ctr)
{
	ctl_queue_forget(inst->queue, ctr);
	ctl_table_del(&inst->done, ctr);
	return 0;
}

static void sync_one(void *arg, rp_ctr ctr)
{
	(void)blkio_do_apply(arg, ctr, false);
}

static void blkio_sync(struct rp_instance *inst)
{
	if (!inst->config || !inst->config->enable || inst->config->forward)
		return;
	ctl_table_sync(&inst->done, &inst->h, sync_one, inst);
}

static void run_item(void *arg, struct ctl_item *item)
{
	struct rp_instance *inst = arg;
	blkio_apply(&inst->worker, (struct blkio_item *)(void *)item);
}

/* Applies all classes again after disks were added or removed. */
static void look_again(struct rp_instance *inst)
{
	inst->again = true;
	ctl_table_mark_stale(&inst->done);
	if (inst->running)
		blkio_sync(inst);
}

static void item_done(void *arg, struct ctl_item *item, int ran)
{
	struct rp_instance *inst = arg;
	struct blkio_item *b = (struct blkio_item *)(void *)item;
	bool first = !inst->again; /* the first list is compared with an empty one */
	if (ran)
		inst->n_writes += b->n_writes;
	bool news = ran && b->new_devices;
	if (ran && !b->class && !b->unknown[0] && item->result == RP_APPLY_DONE)
		ctl_table_taken(&inst->done, item->ctr, b->serial);
	item_free(b);
	if (!news)
		return;
	inst->again = true;
	if (!first)
		look_again(inst);
}

static void blkio_again(void *arg, rp_ctr ctr)
{
	(void)blkio_do_apply(arg, ctr, true);
}

static void blkio_timer(struct rp_instance *inst, uint64_t cookie)
{
	ctl_queue_timer(inst->queue, cookie);
}

static int32_t blkio_start(struct rp_instance *inst)
{
	inst->running = true;
	return 0;
}

static void blkio_stop(struct rp_instance *inst)
{
	inst->running = false;
	ctl_queue_clear(inst->queue);
	/* waiting items were dropped: apply them at the next start */
	ctl_table_mark_stale(&inst->done);
}

static int32_t blkio_collect(struct rp_instance *inst, const struct rp_metric_sink *sink)
{
	sink->gauge(sink->ctx, "containers", "Containers with a class.", "", inst->done.n);
	sink->counter(sink->ctx, "writes_total", "Writes to files of cgroups.", "",
		      (double)inst->n_writes);
	ctl_queue_collect(inst->queue, sink);
	return 0;
}

static int32_t blkio_save(struct rp_instance *inst, const void **ret_data, uint32_t *ret_size)
{
	ctl_table_save(&inst->done, ret_data, ret_size);
	return 0;
}

static int32_t blkio_load(struct rp_instance *inst, const void *data, uint32_t size)
{
	int32_t r = ctl_table_load(&inst->done, data, size);
	return r ? modhost_fail(&inst->h, r, "it is no record of containers") : 0;
}

/* ---- module definition ----------------------------------------------------------------------- */

static const struct rp_key keys[] = {
	{.path = "enable",
	 .type = RP_T_BOOL,
	 .fallback = "true",
	 .doc = "Give containers their classes."},
	{.path = "usePodQoSAsDefaultClass",
	 .type = RP_T_BOOL,
	 .fallback = "false",
	 .doc = "Without another class a container has that of its QoS class: Guaranteed, "
		"Burstable, BestEffort."},
	{.path = "classes",
	 .type = RP_T_MAP,
	 .doc = "Classes by name. Without this key class names are passed on to the runtime."},
	{.path = "classes.*",
	 .type = RP_T_LIST,
	 .doc = "Entries; what later ones say of a device goes over what earlier ones say."},
	{.path = "classes.*[]", .type = RP_T_MAP, .doc = "An entry."},
	{.path = "classes.*[].devices",
	 .type = RP_T_LIST,
	 .doc = "Disks, as paths or patterns of paths; without it the weight is the default one."},
	{.path = "classes.*[].devices[]",
	 .type = RP_T_STRING,
	 .flags = RP_KEY_NON_EMPTY,
	 .doc = "Such as /dev/sd[a-z] or /dev/disk/by-id/nvme-*."},
	{.path = "classes.*[].weight",
	 .type = RP_T_BYTES,
	 .doc = "Share of the disk's time, 10 to 1000."},
	{.path = "classes.*[].throttleReadBps",
	 .type = RP_T_BYTES,
	 .doc = "Bytes read a second, at most; 0: no limit."},
	{.path = "classes.*[].throttleWriteBps",
	 .type = RP_T_BYTES,
	 .doc = "Bytes written a second, at most."},
	{.path = "classes.*[].throttleReadIOPS",
	 .type = RP_T_BYTES,
	 .doc = "Reads a second, at most."},
	{.path = "classes.*[].throttleWriteIOPS",
	 .type = RP_T_BYTES,
	 .doc = "Writes a second, at most."},
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
	.prepare = blkio_prepare,
	.commit = blkio_commit,
	.abort = blkio_abort,
	.start = blkio_start,
	.stop = blkio_stop,
	.pre_create = blkio_pre_create,
	.post_start = blkio_post_start,
	.post_update = blkio_post_update,
	.post_stop = blkio_post_stop,
	.sync = blkio_sync,
	.timer = blkio_timer,
};

static const struct rp_metrics metrics = {
	.size = sizeof(struct rp_metrics),
	.collect = blkio_collect,
};

static const struct rp_state state = {
	.size = sizeof(struct rp_state),
	.save = blkio_save,
	.load = blkio_load,
};

static void blkio_destroy(struct rp_instance *inst)
{
	inst->queue = ctl_queue_free(inst->queue);
	ctl_table_fini(&inst->done);
	blkio_config_unref(inst->config);
	blkio_devices_fini(&inst->worker.last);
	free(inst);
}

static int32_t blkio_create(const struct rp_host *host, struct rp_instance **ret_inst)
{
	static const struct ctl_ops ops = {run_item, item_done, blkio_again};
	struct rp_instance *inst = calloc(1, sizeof *inst);
	if (!inst)
		return host->fail(host->ctx, -RP_ENOMEM, "out of memory");
	inst->controller = controller;
	inst->worker.h = &inst->h;
	int32_t r = ctl_queue_open(&inst->h, host, &ops, inst, &inst->queue);
	if (!r && (!RP_HAS(inst->h.work, read_link) || !inst->h.work->read_link))
		r = modhost_fail(&inst->h, -RP_ENOTSUP, "the host cannot read links");
	if (r) {
		blkio_destroy(inst);
		return r;
	}
	*ret_inst = inst;
	return 0;
}

static const void *blkio_service(struct rp_instance *inst, const char *id)
{
	static const struct modhost_service services[] = {{RP_SCHEMA_1, &schema},
							  {RP_CONTROLLER_1, &controller},
							  {RP_METRICS_1, &metrics},
							  {RP_STATE_1, &state},
							  {NULL, NULL}};
	const void *service = modhost_service(services, id);
	return inst && service == &controller ? &inst->controller : service;
}

RP_MODULE_DEFINE("blkio", "1.0", RP_KIND_CONTROLLER,
		 .summary = "weights and throttles of block I/O", .licence = "Apache-2.0",
		 .create = blkio_create, .destroy = blkio_destroy, .service = blkio_service);
