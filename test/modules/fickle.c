/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A policy that sets up Speed Select as soon as it has a configuration, places nobody in the trial,
 * and refuses in the daemon: when the file of its key "once" is there, which it makes. With
 * "reprogram" it has changed what the first class of the first punit may do by then. With "set", a
 * file, and "to" it sets that. What it has taken over and set it takes back when it ends, like the
 * policies with CPU classes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nri-rp/config.h>
#include <nri-rp/host.h>
#include <nri-rp/policy.h>
#include <nri-rp/speedselect.h>

struct rp_plan {
	char once[256], set[256], to[RP_SETTING_MAX];
	int64_t reprogram;
};

struct rp_instance {
	const struct rp_host *host;
	const struct rp_host_config *config;
	const struct rp_host_work *work;
	const struct rp_host_speedselect *sst;
	const struct rp_host_settings *settings;
	struct rp_plan plan;
};

static const struct rp_sst_at first = {0, 0, 0};

static int32_t reprogram(void *arg)
{
	const struct rp_instance *inst = arg;
	const struct rp_clos value = {.min_mhz = 1000, .max_mhz = 1100};
	return inst->sst->set_clos(inst->host->ctx, &first, 0, &value);
}

static int32_t set_file(void *arg)
{
	const struct rp_instance *inst = arg;
	void *ctx = inst->host->ctx;
	char found[RP_SETTING_MAX];
	int32_t r = inst->work->read_file(ctx, inst->plan.set, found, sizeof found);
	if (r < 0)
		return r;
	found[strcspn(found, "\n")] = '\0';
	r = inst->settings->keep(ctx, inst->plan.set, inst->plan.to, found);
	return r ? r : inst->work->write_file(ctx, inst->plan.set, inst->plan.to);
}

static int32_t put_back(void *arg)
{
	const struct rp_instance *inst = arg;
	void *ctx = inst->host->ctx;
	char rest[RP_SETTING_MAX];
	int32_t r = inst->settings->without(ctx, inst->plan.set, rest, sizeof rest);
	return r < 0 ? r : inst->work->write_file(ctx, inst->plan.set, rest);
}

static int32_t switch_off(void *arg)
{
	const struct rp_instance *inst = arg;
	int32_t r = inst->sst->set_tf(inst->host->ctx, &first, 0);
	return r ? r : inst->sst->set_cp(inst->host->ctx, &first, 0, RP_SST_ORDERED);
}

static int32_t prepare(struct rp_instance *inst, rp_cfg cfg, struct rp_plan **ret_plan)
{
	const struct rp_host_config *c = inst->config;
	void *ctx = inst->host->ctx;
	struct rp_plan *plan = calloc(1, sizeof *plan);
	if (!plan)
		return -RP_ENOMEM;
	snprintf(plan->once, sizeof plan->once, "%s", c->text(ctx, c->get(ctx, cfg, "once"), ""));
	snprintf(plan->set, sizeof plan->set, "%s", c->text(ctx, c->get(ctx, cfg, "set"), ""));
	snprintf(plan->to, sizeof plan->to, "%s", c->text(ctx, c->get(ctx, cfg, "to"), ""));
	plan->reprogram = c->value(ctx, c->get(ctx, cfg, "reprogram"), RP_T_BOOL, 0);
	*ret_plan = plan;
	return 0;
}

static void commit(struct rp_instance *inst, struct rp_plan *plan)
{
	inst->plan = *plan;
	free(plan);
	(void)inst->sst->manage(inst->host->ctx, 1);
	if (inst->plan.reprogram)
		(void)inst->work->submit(inst->host->ctx, reprogram, NULL, inst);
	if (*inst->plan.set)
		(void)inst->work->submit(inst->host->ctx, set_file, NULL, inst);
}

static void forget(struct rp_instance *inst, struct rp_plan *plan)
{
	free(plan);
}

static int32_t sync_all(struct rp_instance *inst, rp_txn txn)
{
	FILE *f = fopen(inst->plan.once, "wxe");
	if (!f)
		return inst->host->fail(inst->host->ctx, -RP_EBUSY, "not twice");
	fclose(f);
	return 0;
}

static void stop(struct rp_instance *inst)
{
	if (inst->sst->manage(inst->host->ctx, 0) == 0)
		(void)inst->work->submit(inst->host->ctx, switch_off, NULL, inst);
	if (*inst->plan.set)
		(void)inst->work->submit(inst->host->ctx, put_back, NULL, inst);
}

static int32_t nothing(struct rp_instance *inst, rp_txn txn, rp_ctr ctr)
{
	return 0;
}

static int32_t create(const struct rp_host *host, struct rp_instance **ret_inst)
{
	struct rp_instance *inst = calloc(1, sizeof *inst);
	if (!inst)
		return -RP_ENOMEM;
	inst->host = host;
	inst->config = host->service(host->ctx, RP_HOST_CONFIG_1);
	inst->work = host->service(host->ctx, RP_HOST_WORK_1);
	inst->sst = host->service(host->ctx, RP_HOST_SPEEDSELECT_1);
	inst->settings = host->service(host->ctx, RP_HOST_SETTINGS_1);
	*ret_inst = inst;
	return 0;
}

static void destroy(struct rp_instance *inst)
{
	free(inst);
}

static const struct rp_policy policy = {
	.size = sizeof policy,
	.prepare = prepare,
	.commit = commit,
	.abort = forget,
	.sync = sync_all,
	.allocate = nothing,
	.update = nothing,
	.release = nothing,
	.stop = stop,
};

static const void *service(struct rp_instance *inst, const char *id)
{
	return inst && strcmp(id, RP_POLICY_1) == 0 ? &policy : NULL;
}

RP_MODULE_DEFINE("fickle", "1.0", RP_KIND_POLICY, .summary = "Refuses when it is serious",
		 .create = create, .destroy = destroy, .service = service);
