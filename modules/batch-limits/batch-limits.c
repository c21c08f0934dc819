/* SPDX-License-Identifier: Apache-2.0 */
/* The module batch-limits: hooks, queued work, and the timer that restores changed values. */
#include "modules/batch-limits/batch-limits.h"

#include <nri-rp/lib/section.h>

#define AGAIN_COOKIE UINT64_C(0xba7c)
#define AGAIN_MS 10000u /* interval of restoring values that other programs changed */

struct rp_plan {
	CTL_PLAN;
	double ratio; /* configured ratio of CPU normalization; 0: use the Node's annotation */
	bool scales; /* scale also quotas of containers outside of batch pods */
};

struct rp_instance {
	CTL_LIFE;
	uint32_t n_ctrs; /* number of containers at the last count */
	int64_t ratio; /* ratio of the last scaling */
};

/* ---- configuration --------------------------------------------------------------------------- */

static int32_t limits_plan(struct rp_instance *inst, rp_cfg cfg, struct rp_plan *p)
{
	const struct modhost *h = &inst->h;
	rp_cfg at = section_get(h, cfg, "cpuNormalizationRatio");
	const char *text = h->config->text(h->ctx, at, NULL);
	p->ratio = koord_read_ratio(text);
	p->scales = section_bool(h, cfg, "normalizeQuotas", true);
	return text && p->ratio <= 0 ? modhost_refuse(h, at, "expected a number from 1 to 10") : 0;
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
	struct batch_item *b = ctl_life_item(inst, info->ctr, 0, sizeof *b);
	if (!b)
		return modhost_no_memory(&inst->h);
	b->scales = true;
	b->scale =
		(struct batch_scale){info->cpu_limit, pod_limit(&inst->h, info->pod), ratio, anew};
	ctl_life_add(inst, &b->item);
	return 0;
}

static int32_t limits_apply(struct rp_instance *inst, const struct rp_ctr_info *info,
			    enum ctl_cause cause)
{
	struct batch_limits own, pod;
	char why[CTL_TEXT_MAX];
	bool first = cause == CTL_START && !inst->n_ctrs;
	int32_t r = batch_limits_of(&inst->h, info, ratio_of(inst), &own, &pod, why);
	if (r < 0)
		return 0;
	struct batch_item *b = r ? ctl_life_item(inst, info->ctr, 0, sizeof *b) : NULL;
	if (b) {
		inst->n_ctrs++;
		b->ctr = own;
		b->pod = pod;
		ctl_life_add(inst, &b->item);
		r = 0;
	} else {
		r = r ? modhost_no_memory(&inst->h) : batch_limits_scale(inst, info);
	}
	if (first && inst->n_ctrs)
		(void)inst->h.timer->arm(inst->h.ctx, AGAIN_COOKIE, AGAIN_MS);
	return r;
}

/* Applies the limits of all containers, and again periodically as long as there are some. */
static void limits_sync(struct rp_instance *inst)
{
	inst->n_ctrs = 0;
	ctl_life_apply_all(inst);
	inst->ratio = scale_of(inst);
	(void)inst->h.timer->arm(inst->h.ctx, AGAIN_COOKIE, inst->n_ctrs ? AGAIN_MS : 0);
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

static int32_t limits_pre_create(struct rp_instance *inst, rp_txn txn,
				 const struct rp_ctr_info *info)
{
	const struct modhost *h = &inst->h;
	struct batch_limits own, pod;
	char why[CTL_TEXT_MAX];
	int32_t r = batch_limits_of(h, info, ratio_of(inst), &own, &pod, why);
	if (r < 0)
		return modhost_fail(h, r, "%s", why);
	if (!r)
		return 0;
	modhost_note(h, info->ctr, "batch: %lld shares, quota %lld of %d µs, %lld bytes, by %s",
		     (long long)own.shares, (long long)own.quota, BATCH_PERIOD,
		     (long long)own.memory,
		     r == BATCH_OF_CLUSTER ? "the pod's extended resources"
					   : "the annotation extended-resource-spec");
	return batch_limits_stage(h, txn, info->ctr, &own);
}

static void limits_timer(struct rp_instance *inst, uint64_t cookie)
{
	if (cookie == AGAIN_COOKIE)
		limits_sync(inst);
}

static void scale_back(void *arg, rp_ctr ctr)
{
	struct rp_instance *inst = arg;
	struct rp_ctr_info info = {.size = sizeof info};
	if (!inst->h.cache->get_ctr(inst->h.ctx, ctr, &info) && info.state != RP_STATE_EXITED &&
	    info.state != RP_STATE_CREATING)
		(void)batch_limits_scale(inst, &info);
}

/* Restores reduced quotas. Limits of batch pods are kept. */
static void limits_stop(struct rp_instance *inst)
{
	(void)inst->h.timer->arm(inst->h.ctx, AGAIN_COOKIE, 0);
	if (inst->ratio != 100)
		(void)ctl_each_container(&inst->h, scale_back, inst);
	inst->ratio = 100;
	inst->n_ctrs = 0;
}

static int32_t limits_init(struct rp_instance *inst)
{
	inst->ratio = 100;
	return koord_init(inst);
}

/* ---- worker ---------------------------------------------------------------------------------- */

static void limits_run(struct rp_instance *inst, struct ctl_item *item)
{
	struct batch_item *b = (struct batch_item *)(void *)item;
	if (b->scales)
		batch_scale(&inst->h, b);
	else
		batch_apply(&inst->h, b);
}

static int32_t limits_collect(struct rp_instance *inst, const struct rp_metric_sink *sink)
{
	sink->gauge(sink->ctx, "containers",
		    "Containers that request batch resources, or whose quota is normalized.", "",
		    inst->n_ctrs);
	sink->counter(sink->ctx, "writes_total", "Writes to files of cgroups.", "",
		      (double)inst->n_writes);
	return 0;
}

/* ---- module definition ----------------------------------------------------------------------- */

static const struct rp_key keys[] = {
	SECTION_KEY("cpuNormalizationRatio", NUMBER,
		    "Normalization ratio of this node's CPUs, from 1 to 10: quotas are divided by "
		    "it. Default: the Node's annotation " KOORD_RATIO " says."),
	SECTION_BOOL("normalizeQuotas", "true",
		     "Also divide the quotas of LS pods and of pods without the label "
		     "koordinator.sh/qosClass, except for containers with exclusive CPUs."),
};

static const struct rp_schema schema = SECTION_SCHEMA(keys);

static const struct ctl_life_ops ops = {
	.need = KOORD_NEEDS,
	.takes = RP_TAKES_AMOUNTS,
	.changes = RP_CHANGED_MEMORY | RP_CHANGED_CPU_SHARE,
	.retries = true,
	.plan_size = sizeof(struct rp_plan),
	.init = limits_init,
	.plan = limits_plan,
	.stop = limits_stop,
	.pre_create = limits_pre_create,
	.apply = limits_apply,
	.sync = limits_sync,
	.timer = limits_timer,
	.run = limits_run,
	.collect = limits_collect,
	.schema = &schema,
};

CTL_MODULE(
	"batch-limits", "1.0", ops,
	.summary =
		"shares and limits of containers that request batch resources, normalized quotas",
	.licence = "Apache-2.0");
