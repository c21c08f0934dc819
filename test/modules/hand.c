/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A controller that does what it is told: a key of its section for each call ("prepare", "start",
 * "preCreate", "postStart", "postUpdate", "postStop"), whose text "CODE TEXT" makes the call fail,
 * and a "report" "RESULT TEXT" that it makes about each container started. With "once" PATH the
 * text of "prepare" holds only if the file is there, and the file is made: a trial goes well, and
 * the real thing fails. "evict" TEXT is the reason for which pods whose name begins with "victim"
 * have to leave the node, as soon as one of their containers runs. "env" TEXT is what containers
 * that are created get as the variable of its name, "trace" PATH a file for a line "PROCESS NAME
 * CALL TEXT" of each commit, start and stop; TEXT is that of "env". With "runtime" there is a line
 * for each container created, too, whose CALL is the runtime's name and flags.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <nri-rp/cache.h>
#include <nri-rp/config.h>
#include <nri-rp/controller.h>
#include <nri-rp/host.h>

#define TEXT_MAX 128

/* Controller that is built under several names. */
#ifndef HAND_NAME
#define HAND_NAME "hand"
#define HAND_ENV "HAND"
#endif

struct rp_plan {
	char start[TEXT_MAX], pre_create[TEXT_MAX], post_start[TEXT_MAX], post_update[TEXT_MAX],
		post_stop[TEXT_MAX], report[TEXT_MAX], env[TEXT_MAX], evict[TEXT_MAX],
		trace[TEXT_MAX], runtime[TEXT_MAX];
	int64_t arm_ms;
};

struct rp_instance {
	const struct rp_host *host;
	const struct rp_host_cache *cache;
	const struct rp_host_config *config;
	const struct rp_host_timer *timer;
	const struct rp_host_work *work;
	struct rp_plan plan;
};

static int32_t verdict(struct rp_instance *inst, const char *text)
{
	char *rest;
	long code = strtol(text, &rest, 10);
	if (!*text)
		return 0;
	return inst->host->fail(inst->host->ctx, (int32_t)-code, *rest == ' ' ? rest + 1 : rest);
}

static void take(struct rp_instance *inst, rp_cfg cfg, const char *key, char ret[TEXT_MAX])
{
	void *ctx = inst->host->ctx;
	snprintf(ret, TEXT_MAX, "%s",
		 inst->config->text(ctx, inst->config->get(ctx, cfg, key), ""));
}

static void trace(const struct rp_instance *inst, const char *call)
{
	FILE *f = *inst->plan.trace ? fopen(inst->plan.trace, "ae") : NULL;
	if (!f)
		return;
	fprintf(f, "%d " HAND_NAME " %s %s\n", (int)getpid(), call, inst->plan.env);
	fclose(f);
}

static int first_time(const char *path)
{
	FILE *f = fopen(path, "wxe");
	if (!f)
		return 0;
	fclose(f);
	return 1;
}

static int32_t prepare(struct rp_instance *inst, rp_cfg cfg, struct rp_plan **ret_plan)
{
	char text[TEXT_MAX], once[TEXT_MAX];
	struct rp_plan *plan;
	void *ctx = inst->host->ctx;
	take(inst, cfg, "prepare", text);
	take(inst, cfg, "once", once);
	int32_t r = *once && first_time(once) ? 0 : verdict(inst, text);
	if (r)
		return r;
	plan = calloc(1, sizeof *plan);
	if (!plan)
		return -RP_ENOMEM;
	take(inst, cfg, "start", plan->start);
	take(inst, cfg, "preCreate", plan->pre_create);
	take(inst, cfg, "postStart", plan->post_start);
	take(inst, cfg, "postUpdate", plan->post_update);
	take(inst, cfg, "postStop", plan->post_stop);
	take(inst, cfg, "report", plan->report);
	take(inst, cfg, "env", plan->env);
	take(inst, cfg, "evict", plan->evict);
	take(inst, cfg, "trace", plan->trace);
	take(inst, cfg, "runtime", plan->runtime);
	plan->arm_ms = inst->config->value(ctx, inst->config->get(ctx, cfg, "armMs"), RP_T_INT, 0);
	*ret_plan = plan;
	return 0;
}

static void commit(struct rp_instance *inst, struct rp_plan *plan)
{
	inst->plan = *plan;
	free(plan);
	trace(inst, "commit");
}

static void forget(struct rp_instance *inst, struct rp_plan *plan)
{
	free(plan);
}

static int32_t start(struct rp_instance *inst)
{
	if (inst->plan.arm_ms)
		inst->timer->arm(inst->host->ctx, 1, (uint64_t)inst->plan.arm_ms);
	int32_t r = verdict(inst, inst->plan.start);
	if (!r)
		trace(inst, "start");
	return r;
}

static void stop(struct rp_instance *inst)
{
	trace(inst, "stop");
	inst->host->log(inst->host->ctx, RP_LOG_NOTICE, 0, "stopped");
}

static void trace_runtime(const struct rp_instance *inst)
{
	void *ctx = inst->host->ctx;
	const struct rp_host_runtime *rt = inst->host->service(ctx, RP_HOST_RUNTIME_1);
	char text[TEXT_MAX];
	snprintf(text, sizeof text, "%s %u", rt->name(ctx), rt->flags(ctx));
	trace(inst, text);
}

static int32_t pre_create(struct rp_instance *inst, rp_txn txn, rp_ctr ctr)
{
	int32_t r = *inst->plan.env ? inst->cache->set_pair(inst->host->ctx, txn, ctr, RP_F_ENV,
							    HAND_ENV, inst->plan.env)
				    : 0;
	if (*inst->plan.runtime)
		trace_runtime(inst);
	return r ? r : verdict(inst, inst->plan.pre_create);
}

static void evict(const struct rp_instance *inst, rp_ctr ctr)
{
	void *ctx = inst->host->ctx;
	const struct rp_host_evict *e = inst->host->service(ctx, RP_HOST_EVICT_1);
	struct rp_ctr_info info = {.size = sizeof info};
	struct rp_pod_info pod = {.size = sizeof pod};
	if (inst->cache->get_ctr(ctx, ctr, &info) || inst->cache->get_pod(ctx, info.pod, &pod) ||
	    strncmp(pod.name, "victim", 6) != 0)
		return;
	int32_t r = e->evict(ctx, info.pod, 5, inst->plan.evict);
	if (r)
		inst->host->fail(ctx, r, "cannot evict");
}

static int32_t post_start(struct rp_instance *inst, rp_ctr ctr)
{
	char *text = NULL;
	long result = strtol(inst->plan.report, &text, 10);
	if (*inst->plan.report)
		inst->work->report(inst->host->ctx, ctr, (uint32_t)result,
				   *text == ' ' ? text + 1 : text);
	if (*inst->plan.evict)
		evict(inst, ctr);
	return verdict(inst, inst->plan.post_start);
}

static void trace_ctr(const struct rp_instance *inst, const char *call, rp_ctr ctr)
{
	struct rp_ctr_info info = {.size = sizeof info};
	char text[TEXT_MAX];
	if (inst->cache->get_ctr(inst->host->ctx, ctr, &info))
		return;
	snprintf(text, sizeof text, "%s %s", call, info.id);
	trace(inst, text);
}

static int32_t post_update(struct rp_instance *inst, rp_ctr ctr, uint32_t changed)
{
	trace_ctr(inst, "changed", ctr);
	return verdict(inst, inst->plan.post_update);
}

static int32_t post_stop(struct rp_instance *inst, rp_ctr ctr)
{
	trace_ctr(inst, "ended", ctr);
	return verdict(inst, inst->plan.post_stop);
}

static void timer(struct rp_instance *inst, uint64_t cookie)
{
	inst->work->report(inst->host->ctx, 0, RP_APPLY_FAILED, "timer of the hand");
}

static int32_t create(const struct rp_host *host, struct rp_instance **ret_inst)
{
	struct rp_instance *inst = calloc(1, sizeof *inst);
	if (!inst)
		return -RP_ENOMEM;
	inst->host = host;
	inst->cache = host->service(host->ctx, RP_HOST_CACHE_1);
	inst->config = host->service(host->ctx, RP_HOST_CONFIG_1);
	inst->timer = host->service(host->ctx, RP_HOST_TIMER_1);
	inst->work = host->service(host->ctx, RP_HOST_WORK_1);
	*ret_inst = inst;
	return 0;
}

static void destroy(struct rp_instance *inst)
{
	free(inst);
}

static const struct rp_controller controller = {
	.size = sizeof controller,
	.prepare = prepare,
	.commit = commit,
	.abort = forget,
	.start = start,
	.stop = stop,
	.pre_create = pre_create,
	.post_start = post_start,
	.post_update = post_update,
	.post_stop = post_stop,
	.timer = timer,
};

static const void *service(struct rp_instance *inst, const char *id)
{
	return inst && strcmp(id, RP_CONTROLLER_1) == 0 ? &controller : NULL;
}

RP_MODULE_DEFINE(HAND_NAME, "1.0", RP_KIND_CONTROLLER, .summary = "Does what it is told",
		 .create = create, .destroy = destroy, .service = service);
