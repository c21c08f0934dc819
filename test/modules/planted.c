/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A module that is sound, with places where a defect can be planted: test/abi/test_planted.py
 * defines the macro of a place, a statement list that sees what the function around it has, and
 * includes this file. As a policy it gives all containers all CPUs, keeps a record of each, looks
 * at an annotation, and has a job, a timer, state, zones and metrics; as a controller it has a job
 * for each.
 */
#include <stdlib.h>
#include <string.h>

#include <nri-rp/cache.h>
#include <nri-rp/config.h>
#include <nri-rp/controller.h>
#include <nri-rp/host.h>
#include <nri-rp/policy.h>
#include <nri-rp/topology.h>

#ifndef NUMBER_DEFAULT
#define NUMBER_DEFAULT "2"
#endif
#ifndef KIND
#define KIND RP_KIND_POLICY
#endif

struct record {
	rp_ctr ctr;
	uint32_t speed;
	struct record *next;
};

/* The size is that of few other objects, so the memory of a freed plan is seldom used again. */
struct rp_plan {
	int64_t number;
	int64_t limit_ms;
	char unused[1000];
	char *name;
};

struct rp_instance {
	const struct rp_host *host;
	void *ctx;
	const struct rp_host_cache *cache;
	const struct rp_host_topology *topology;
	const struct rp_host_config *config;
	const struct rp_host_explain *explain;
	const struct rp_host_timer *timer;
	const struct rp_host_work *work;
	const struct rp_host_usage *usage;
	const struct rp_host_settings *settings;
	struct rp_plan *plan;
	struct record *records;
	uint32_t n_calls;
	uint32_t saved;
	void *kept;
};

struct job {
	struct rp_instance *inst;
	rp_ctr ctr;
	struct rp_plan *plan;
	struct record *record;
};

#include "scope.h" /* file scope of the defect */

static int32_t leave_it(int32_t value)
{
	return value;
}

#include "planted.h"

/* ---- jobs ------------------------------------------------------------------------------------ */

static int32_t run(void *arg)
{
	struct job *job = arg;
	struct rp_instance *inst = job->inst;
	(void)inst;
	IN_RUN;
	return 0;
}

static void done(void *arg, int32_t result)
{
	struct job *job = arg;
	struct rp_instance *inst = job->inst;
	inst->work->report(inst->ctx, job->ctr, result ? RP_APPLY_FAILED : RP_APPLY_DONE, "");
	IN_DONE;
	FREE_JOB(job);
}

static void begin_job(struct rp_instance *inst, rp_ctr ctr, struct record *record)
{
	struct job *job = inst->work ? malloc(sizeof *job) : NULL;
	if (!job)
		return;
	*job = (struct job){inst, ctr, inst->plan, record};
	if (inst->work->submit(inst->ctx, run, done, job))
		free(job);
}

/* ---- records --------------------------------------------------------------------------------- */

static struct record *record_of(struct rp_instance *inst, rp_ctr ctr)
{
	struct record *r = inst->records;
	while (r && r->ctr != ctr)
		r = r->next;
	return r;
}

static struct record *keep(struct rp_instance *inst, rp_ctr ctr)
{
	struct record *r = record_of(inst, ctr);
	if (r)
		return r;
	r = malloc(sizeof *r);
	if (!r)
		return NULL;
	*r = (struct record){ctr, 0, inst->records};
	inst->records = r;
	return r;
}

static void forget(struct rp_instance *inst, rp_ctr ctr)
{
	for (struct record **at = &inst->records; *at; at = &(*at)->next) {
		struct record *r = *at;
		if (r->ctr != ctr)
			continue;
		*at = r->next;
		FREE_RECORD(r);
		return;
	}
}

static void forget_all(struct rp_instance *inst)
{
	while (inst->records)
		forget(inst, inst->records->ctr);
}

/* ---- configuration --------------------------------------------------------------------------- */

static int32_t prepare(struct rp_instance *inst, rp_cfg cfg, struct rp_plan **ret_plan)
{
	const struct rp_host_config *config = inst->config;
	void *ctx = inst->ctx;
	const char *mode = config->text(ctx, config->get(ctx, cfg, "mode"), "plain");
	const char *name = config->text(ctx, config->get(ctx, cfg, "name"), "none");
	int64_t number = config->value(ctx, config->get(ctx, cfg, "number"), RP_T_INT, 2);
	rp_cfg list = config->get(ctx, cfg, "list");
	(void)mode;
	(void)list;
	IN_PREPARE;
	if (name[0] == '[')
		return REFUSE_NAME(config->fail_at(ctx, config->get(ctx, cfg, "name"), -RP_EINVAL,
						   "a name does not begin with a bracket"));
	struct rp_plan *plan = calloc(1, sizeof *plan);
	if (plan)
		plan->name = strdup(name);
	if (!plan || !plan->name) {
		free(plan);
		return inst->host->fail(ctx, -RP_ENOMEM, "out of memory");
	}
	plan->number = number;
	plan->limit_ms = config->value(ctx, config->get(ctx, cfg, "limit"), RP_T_DURATION, 1000);
	*ret_plan = plan;
	return PREPARED(0);
}

static void free_plan(struct rp_plan *plan)
{
	if (plan)
		free(plan->name);
	free(plan);
}

static void commit(struct rp_instance *inst, struct rp_plan *plan)
{
	IN_COMMIT;
	free_plan(inst->plan);
	inst->plan = plan;
}

static void abort_plan(struct rp_instance *inst, struct rp_plan *plan)
{
	IN_ABORT;
	free_plan(plan);
}

/* ---- a policy -------------------------------------------------------------------------------- */

static int32_t place(struct rp_instance *inst, rp_txn txn, rp_ctr ctr)
{
	const struct rp_host_cache *cache = inst->cache;
	void *ctx = inst->ctx;
	struct rp_ids online = rp_ids_none();
	struct rp_ctr_info info = {.size = INFO_SIZE};
	int32_t r = cache->get_ctr(ctx, ctr, &info);
	AFTER_GET;
	if (r || (info.flags & RP_CTR_PRESERVE_CPU))
		return r;
	struct record *record = keep(inst, ctr);
	if (!record)
		return inst->host->fail(ctx, -RP_ENOMEM, "out of memory");
	const char *text = cache->annotation(ctx, ctr, "planted.example/speed", NULL);
	if (text) {
		IN_ANNOTATION;
		record->speed = strcmp(text, "fast") == 0;
	}
	(void)inst->topology->set(ctx, RP_CPUS_ONLINE, &online);
	IN_PLACE;
	r = cache->set_cpus(ctx, txn, ctr, online);
	AFTER_SET;
	if (inst->explain)
		inst->explain->note(ctx, ctr, "all CPUs");
	return r;
}

static int32_t allocate(struct rp_instance *inst, rp_txn txn, rp_ctr ctr)
{
	IN_ALLOCATE;
	int32_t r = place(inst, txn, ctr);
	if (!r)
		begin_job(inst, ctr, record_of(inst, ctr));
	if (!r && inst->timer)
		(void)inst->timer->arm(inst->ctx, ctr, 1000);
	return ALLOCATED(r);
}

static int32_t update(struct rp_instance *inst, rp_txn txn, rp_ctr ctr)
{
	IN_UPDATE;
	return UPDATED(place(inst, txn, ctr));
}

static int32_t release(struct rp_instance *inst, rp_txn txn, rp_ctr ctr)
{
	IN_RELEASE;
	if (inst->timer)
		(void)inst->timer->arm(inst->ctx, ctr, 0);
	forget(inst, ctr);
	return RELEASED(0);
}

static int32_t sync_all(struct rp_instance *inst, rp_txn txn)
{
	uint32_t n = inst->cache->list(inst->ctx, RP_ORDER_SYNC, NULL, 0);
	rp_ctr *ctrs = calloc(n ? n : 1, sizeof *ctrs);
	int32_t r = 0;
	if (!ctrs)
		return inst->host->fail(inst->ctx, -RP_ENOMEM, "out of memory");
	IN_SYNC;
	forget_all(inst);
	(void)inst->cache->list(inst->ctx, RP_ORDER_SYNC, ctrs, n);
	for (uint32_t i = 0; !r && i < n; i++)
		r = place(inst, txn, ctrs[i]);
	free(ctrs);
	return SYNCED(r);
}

static int32_t event(struct rp_instance *inst, rp_txn txn, const struct rp_event *ev)
{
	IN_EVENT;
	return EVENT_DONE(ev->type == RP_EVENT_TOPOLOGY ? sync_all(inst, txn) : 0);
}

static int32_t rolled_back(struct rp_instance *inst)
{
	return ROLLED_BACK(RP_RESYNC);
}

static const struct rp_policy policy = {
	.size = sizeof policy,
	.prepare = prepare,
	.commit = commit,
	.abort = abort_plan,
	.sync = sync_all,
	.allocate = allocate,
	.update = update,
	.release = release,
	.event = event,
	.rolled_back = rolled_back,
};

/* ---- a controller ---------------------------------------------------------------------------- */

static int32_t start(struct rp_instance *inst)
{
	IN_START;
	return STARTED(0);
}

static void stop(struct rp_instance *inst)
{
	IN_STOP;
}

static int32_t pre_create(struct rp_instance *inst, rp_txn txn, rp_ctr ctr)
{
	if (!keep(inst, ctr))
		return inst->host->fail(inst->ctx, -RP_ENOMEM, "out of memory");
	IN_PRE_CREATE;
	return PRE_CREATED(0);
}

static int32_t post_start(struct rp_instance *inst, rp_ctr ctr)
{
	IN_POST_START;
	begin_job(inst, ctr, record_of(inst, ctr));
	return POST_STARTED(0);
}

static int32_t post_stop(struct rp_instance *inst, rp_ctr ctr)
{
	IN_POST_STOP;
	forget(inst, ctr);
	return 0;
}

static void measure(struct rp_instance *inst)
{
	IN_MEASURE;
}

static const struct rp_controller controller = {
	.size = sizeof controller,
	.prepare = prepare,
	.commit = commit,
	.abort = abort_plan,
	.start = start,
	.stop = stop,
	.pre_create = pre_create,
	.post_start = post_start,
	.post_stop = post_stop,
	.measure = measure,
};

/* ---- reported state -------------------------------------------------------------------------- */

static int32_t zones(struct rp_instance *inst, const struct rp_zone_sink *sink)
{
	sink->zone(sink->ctx, "all", "machine", "");
	IN_ZONES;
	return TOLD(0);
}

static int32_t collect(struct rp_instance *inst, const struct rp_metric_sink *sink)
{
	sink->counter(sink->ctx, "calls", "Containers placed.", "", inst->n_calls);
	IN_COLLECT;
	return COLLECTED(0);
}

static int32_t save(struct rp_instance *inst, const void **ret, uint32_t *ret_size)
{
	IN_SAVE;
	*ret = &inst->saved;
	*ret_size = sizeof inst->saved;
	return SAVED(0);
}

static int32_t load(struct rp_instance *inst, const void *data, uint32_t size)
{
	IN_LOAD;
	if (size != sizeof inst->saved)
		return -RP_EINVAL;
	memcpy(&inst->saved, data, size);
	return LOADED(0);
}

static const struct rp_zones zones_service = {.size = sizeof zones_service, .zones = zones};
static const struct rp_metrics metrics = {.size = sizeof metrics, .collect = collect};
static const struct rp_state state = {.size = sizeof state, .save = save, .load = load};

static const struct rp_key keys[] = {
	{.path = "mode", .type = RP_T_ENUM, .choices = "plain|odd|fast", .doc = "How."},
	{.path = "number",
	 .type = RP_T_INT,
	 .min = 1,
	 .max = 100000,
	 .fallback = NUMBER_DEFAULT,
	 .doc = "How many."},
	{.path = "name", .type = RP_T_STRING, .doc = "Who."},
	{.path = "list", .type = RP_T_LIST, .doc = "What else."},
	{.path = "limit", .type = RP_T_DURATION, .doc = "How long."},
};
static const struct rp_schema schema = {.size = sizeof schema,
					.keys = keys,
					.n_keys = sizeof keys / sizeof *keys,
					.key_size = sizeof(struct rp_key)};

/* ---- the module ------------------------------------------------------------------------------ */

static int32_t create(const struct rp_host *host, struct rp_instance **ret_inst)
{
	void *ctx = host->ctx;
	struct rp_instance *inst = calloc(1, sizeof *inst);
	if (!inst)
		return host->fail(ctx, -RP_ENOMEM, "out of memory");
	inst->host = host;
	inst->ctx = ctx;
	inst->cache = host->service(ctx, RP_HOST_CACHE_1);
	inst->topology = host->service(ctx, RP_HOST_TOPOLOGY_1);
	inst->config = host->service(ctx, RP_HOST_CONFIG_1);
	inst->explain = host->service(ctx, RP_HOST_EXPLAIN_1);
	inst->timer = host->service(ctx, RP_HOST_TIMER_1);
	inst->work = host->service(ctx, RP_HOST_WORK_1);
	inst->usage = host->service(ctx, RP_HOST_USAGE_1);
	inst->settings = host->service(ctx, RP_HOST_SETTINGS_1);
	IN_CREATE;
	if (NEEDED_IS_MISSING) {
		FREE_UNBORN(inst);
		return host->fail(ctx, -RP_ENOTSUP, "the host lacks services");
	}
	*ret_inst = inst;
	return CREATED(0);
}

static void destroy(struct rp_instance *inst)
{
	IN_DESTROY;
	forget_all(inst);
	free_plan(inst->plan);
	free(inst);
}

static const void *service(struct rp_instance *inst, const char *id)
{
	if (strcmp(id, RP_SCHEMA_1) == 0)
		return &schema;
	if (!inst)
		return NULL;
	if (strcmp(id, RP_POLICY_1) == 0)
		return (KIND)&RP_KIND_POLICY ? &policy : NULL;
	if (strcmp(id, RP_CONTROLLER_1) == 0)
		return (KIND)&RP_KIND_CONTROLLER ? &controller : NULL;
	if (strcmp(id, RP_ZONES_1) == 0)
		return &zones_service;
	if (strcmp(id, RP_METRICS_1) == 0)
		return &metrics;
	return strcmp(id, RP_STATE_1) == 0 ? &state : NULL;
}

DEFINE_MODULE
