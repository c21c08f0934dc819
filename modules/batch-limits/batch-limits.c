/* SPDX-License-Identifier: Apache-2.0 */
/* The module batch-limits: hooks, queued work, and the timer that restores changed values. */
#include "modules/batch-limits/batch-limits.h"

#include <stdlib.h>

#include "modules/lib/private/ctl_table.h"
#include <nri-rp/lib/section.h>

#define AGAIN_COOKIE UINT64_C(0xba7c)
#define AGAIN_MS 10000u /* interval of restoring values that other programs changed */

struct rp_plan {
	double ratio; /* 0: use the Node's annotation */
	bool scales; /* also scale quotas of containers outside of batch pods */
};

struct rp_instance {
	struct modhost h;
	struct rp_plan *plan; /* active plan */
	struct ctl_queue *queue;
	bool running;
	uint32_t n_ctrs; /* as of the last count */
	int64_t ratio; /* ratio of the last scaling */
	uint64_t n_writes;
};

/* ---- configuration --------------------------------------------------------------------------- */

static int32_t limits_prepare(struct rp_instance *inst, rp_cfg cfg, struct rp_plan **ret_plan)
{
	const struct modhost *h = &inst->h;
	rp_cfg at = section_get(h, cfg, "cpuNormalizationRatio");
	const char *text = h->config->text(h->ctx, at, NULL);
	struct rp_plan *p = calloc(1, sizeof *p);
	if (!p)
		return modhost_no_memory(h);
	p->ratio = koord_read_ratio(text);
	p->scales = section_bool(h, cfg, "normalizeQuotas", true);
	if (text && p->ratio <= 0) {
		free(p);
		return modhost_fail_at(h, at, -RP_EINVAL, "expected a number from 1 to 10");
	}
	*ret_plan = p;
	return 0;
}

static void limits_abort(struct rp_instance *inst, struct rp_plan *plan)
{
	(void)inst;
	free(plan);
}

static void limits_commit(struct rp_instance *inst, struct rp_plan *plan)
{
	free(inst->plan);
	inst->plan = plan;
}

/* Returns the capacity of a CPU in hundredths of a nominal CPU. */
static int64_t ratio_of(const struct rp_instance *inst)
{
	return koord_cpu_worth(&inst->h, inst->plan->ratio);
}

/* Returns the ratio for quotas of containers outside of batch pods. */
static int64_t scale_of(const struct rp_instance *inst)
{
	return inst->running && inst->plan->scales ? ratio_of(inst) : 100;
}

/* ---- containers ------------------------------------------------------------------------------ */

static void item_free(struct batch_item *b)
{
	free(b->ref);
	free(b);
}

static int32_t add_item(struct rp_instance *inst, const struct batch_item *like)
{
	struct batch_item *b = calloc(1, sizeof *b);
	if (b) {
		*b = *like;
		b->ref = ctl_cgroup_ref(&inst->h, like->item.ctr);
	}
	if (!b || !b->ref) {
		free(b);
		return modhost_no_memory(&inst->h);
	}
	ctl_queue_add(inst->queue, &b->item);
	return 0;
}

static bool is_up(const struct modhost *h, rp_ctr ctr, struct rp_ctr_info *ret)
{
	*ret = (struct rp_ctr_info){.size = sizeof *ret};
	return !h->cache->get_ctr(h->ctx, ctr, ret) && ret->state != RP_STATE_EXITED &&
	       ret->state != RP_STATE_CREATING;
}

/* Returns the CPU limit that the pod's quota is derived from; 0: none, or unknown. */
static int64_t pod_limit(const struct modhost *h, rp_pod pod)
{
	struct rp_pod_info info = {.size = sizeof info};
	bool known = !h->cache->get_pod(h->ctx, pod, &info) && info.cpu_limit != RP_NOT_SET;
	return known ? info.cpu_limit : 0;
}

/* Scales a container's quota, unless the policy has decided it. */
static int32_t batch_limits_scale(struct rp_instance *inst, const struct rp_ctr_info *info)
{
	int64_t ratio = scale_of(inst);
	bool anew = ratio != inst->ratio;
	if (!koord_has_quota(&inst->h, info) || info->quota != RP_NOT_SET)
		return 0;
	inst->n_ctrs += inst->plan->scales; /* the ratio may change while such containers exist */
	if (ratio == 100 && !anew)
		return 0;
	const struct batch_item item = {
		.item.ctr = info->ctr,
		.scales = true,
		.scale = {info->cpu_limit, pod_limit(&inst->h, info->pod), ratio, anew}};
	return add_item(inst, &item);
}

static int32_t batch_limits_apply(struct rp_instance *inst, rp_ctr ctr)
{
	const struct modhost *h = &inst->h;
	struct rp_ctr_info info;
	struct batch_item item = {.item.ctr = ctr};
	char why[CTL_TEXT_MAX];
	if (!inst->running || !is_up(h, ctr, &info))
		return 0;
	int32_t r = batch_limits_of(h, &info, ratio_of(inst), &item.ctr, &item.pod, why);
	if (!r)
		return batch_limits_scale(inst, &info);
	if (r < 0)
		return 0;
	inst->n_ctrs++;
	return add_item(inst, &item);
}

static void apply_one(void *arg, rp_ctr ctr)
{
	(void)batch_limits_apply(arg, ctr);
}

/* Applies the limits of all containers, and again periodically as long as there are some. */
static void apply_all(struct rp_instance *inst)
{
	const struct modhost *h = &inst->h;
	inst->n_ctrs = 0;
	(void)ctl_each_container(h, apply_one, inst);
	inst->ratio = scale_of(inst);
	(void)h->timer->arm(h->ctx, AGAIN_COOKIE, inst->n_ctrs ? AGAIN_MS : 0);
}

static int32_t batch_limits_stage(const struct modhost *h, rp_txn txn, rp_ctr ctr,
				  const struct batch_limits *l)
{
	int32_t r = h->cache->set_int(h->ctx, txn, ctr, RP_F_SHARES, l->shares);
	if (!r && l->quota != BATCH_UNLIMITED)
		r = h->cache->set_int(h->ctx, txn, ctr, RP_F_QUOTA, l->quota);
	if (!r && l->quota != BATCH_UNLIMITED)
		r = h->cache->set_int(h->ctx, txn, ctr, RP_F_PERIOD, BATCH_PERIOD);
	if (!r && l->memory != BATCH_UNLIMITED)
		r = h->cache->set_int(h->ctx, txn, ctr, RP_F_MEMORY_LIMIT, l->memory);
	return r;
}

static int32_t limits_pre_create(struct rp_instance *inst, rp_txn txn, rp_ctr ctr)
{
	const struct modhost *h = &inst->h;
	struct rp_ctr_info info = {.size = sizeof info};
	struct batch_limits own, pod;
	char why[CTL_TEXT_MAX];
	int32_t r = h->cache->get_ctr(h->ctx, ctr, &info);
	if (r)
		return modhost_fail(h, r, "the container is not known");
	r = batch_limits_of(h, &info, ratio_of(inst), &own, &pod, why);
	if (r < 0)
		return modhost_fail(h, r, "%s", why);
	if (!r)
		return 0;
	modhost_note(h, ctr, "batch: %lld shares, quota %lld of %d µs, %lld bytes, by %s",
		     (long long)own.shares, (long long)own.quota, BATCH_PERIOD,
		     (long long)own.memory,
		     r == BATCH_OF_CLUSTER ? "the pod's extended resources"
					   : "the annotation extended-resource-spec");
	return batch_limits_stage(h, txn, ctr, &own);
}

static int32_t limits_post_start(struct rp_instance *inst, rp_ctr ctr)
{
	uint32_t before = inst->n_ctrs;
	int32_t r = batch_limits_apply(inst, ctr);
	if (!before && inst->n_ctrs)
		(void)inst->h.timer->arm(inst->h.ctx, AGAIN_COOKIE, AGAIN_MS);
	return r;
}

static int32_t limits_post_update(struct rp_instance *inst, rp_ctr ctr, uint32_t changed)
{
	return changed & (RP_CHANGED_MEMORY | RP_CHANGED_CPU_SHARE) ? batch_limits_apply(inst, ctr)
								    : 0;
}

static int32_t limits_post_stop(struct rp_instance *inst, rp_ctr ctr)
{
	ctl_queue_forget(inst->queue, ctr);
	return 0;
}

static void limits_sync(struct rp_instance *inst)
{
	if (inst->running)
		apply_all(inst);
}

static void limits_timer(struct rp_instance *inst, uint64_t cookie)
{
	if (cookie != AGAIN_COOKIE)
		ctl_queue_timer(inst->queue, cookie);
	else
		limits_sync(inst);
}

static int32_t limits_start(struct rp_instance *inst)
{
	inst->running = true;
	return 0;
}

static void scale_back(void *arg, rp_ctr ctr)
{
	struct rp_instance *inst = arg;
	struct rp_ctr_info info;
	if (is_up(&inst->h, ctr, &info))
		(void)batch_limits_scale(inst, &info);
}

/* Restores reduced quotas. Limits of batch pods are kept. */
static void limits_stop(struct rp_instance *inst)
{
	inst->running = false;
	(void)inst->h.timer->arm(inst->h.ctx, AGAIN_COOKIE, 0);
	ctl_queue_clear(inst->queue);
	if (inst->ratio != 100)
		(void)ctl_each_container(&inst->h, scale_back, inst);
	inst->ratio = 100;
	inst->n_ctrs = 0;
}

/* ---- worker ---------------------------------------------------------------------------------- */

static void run_item(void *arg, struct ctl_item *item)
{
	struct rp_instance *inst = arg;
	struct batch_item *b = (struct batch_item *)(void *)item;
	if (b->scales)
		batch_scale(&inst->h, b);
	else
		batch_apply(&inst->h, b);
}

static void item_done(void *arg, struct ctl_item *item, int ran)
{
	struct rp_instance *inst = arg;
	struct batch_item *b = (struct batch_item *)(void *)item;
	(void)ran;
	inst->n_writes += b->n_writes;
	item_free(b);
}

static int32_t limits_collect(struct rp_instance *inst, const struct rp_metric_sink *sink)
{
	sink->gauge(sink->ctx, "containers",
		    "Containers that ask for batch resources, or whose quota is normalized.", "",
		    inst->n_ctrs);
	sink->counter(sink->ctx, "writes_total", "Writes to files of cgroups.", "",
		      (double)inst->n_writes);
	ctl_queue_collect(inst->queue, sink);
	return 0;
}

/* ---- module definition ----------------------------------------------------------------------- */

static const struct rp_key keys[] = {
	{.path = "cpuNormalizationRatio",
	 .type = RP_T_NUMBER,
	 .doc = "What a CPU of this node is worth, from 1 to 10: quotas are divided by it. By "
		"default what the Node's annotation " KOORD_RATIO " says."},
	{.path = "normalizeQuotas",
	 .type = RP_T_BOOL,
	 .fallback = "true",
	 .doc = "Divide the quotas of LS pods, too, and of those without the label "
		"koordinator.sh/qosClass; but not where CPUs are their own."},
};

static const struct rp_schema schema = {
	.size = sizeof(struct rp_schema),
	.keys = keys,
	.n_keys = sizeof keys / sizeof keys[0],
	.key_size = sizeof(struct rp_key),
};

static const struct rp_controller controller = {
	.size = sizeof(struct rp_controller),
	.takes = RP_TAKES_AMOUNTS,
	.prepare = limits_prepare,
	.commit = limits_commit,
	.abort = limits_abort,
	.start = limits_start,
	.stop = limits_stop,
	.pre_create = limits_pre_create,
	.post_start = limits_post_start,
	.post_update = limits_post_update,
	.post_stop = limits_post_stop,
	.sync = limits_sync,
	.timer = limits_timer,
};

static const struct rp_metrics metrics = {
	.size = sizeof(struct rp_metrics),
	.collect = limits_collect,
};

static void limits_destroy(struct rp_instance *inst)
{
	inst->queue = ctl_queue_free(inst->queue);
	free(inst->plan);
	free(inst);
}

static int32_t limits_create(const struct rp_host *host, struct rp_instance **ret_inst)
{
	static const struct ctl_ops ops = {run_item, item_done, apply_one};
	struct rp_instance *inst = calloc(1, sizeof *inst);
	if (!inst)
		return host->fail(host->ctx, -RP_ENOMEM, "out of memory");
	int32_t r = koord_open(&inst->h, host, &ops, inst, &inst->queue);
	if (r) {
		limits_destroy(inst);
		return r;
	}
	inst->ratio = 100;
	*ret_inst = inst;
	return 0;
}

static const void *limits_service(struct rp_instance *inst, const char *id)
{
	static const struct modhost_service services[] = {{RP_SCHEMA_1, &schema},
							  {RP_CONTROLLER_1, &controller},
							  {RP_METRICS_1, &metrics},
							  {NULL, NULL}};
	(void)inst;
	return modhost_service(services, id);
}

RP_MODULE_DEFINE(
	"batch-limits", "1.0", RP_KIND_CONTROLLER,
	.summary =
		"shares and limits of containers that ask for batch resources, normalized quotas",
	.licence = "Apache-2.0", .create = limits_create, .destroy = limits_destroy,
	.service = limits_service);
