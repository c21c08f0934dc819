/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A policy that asks the host for everything there is and tells of itself all it can. CURIOUS_CASE
 * says what it gets wrong; with 0 that is nothing. For tests of nri-rp-modcheck, which has to
 * notice.
 */
#define RP_MIN_HOST_MINOR 3u
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nri-rp/cache.h>
#include <nri-rp/config.h>
#include <nri-rp/host.h>
#include <nri-rp/policy.h>
#include <nri-rp/topology.h>

#define NAME_OF(n) NAME_OF_(n)
#define NAME_OF_(n) "curious-" #n
#define IS(n) (CURIOUS_CASE == (n))

#define UNTYPED_ZONE 1
#define ZONE_TWICE 2
#define CHILD_FIRST 3
#define TOO_MANY_ZONES 4
#define RESOURCE_OF_NOTHING 5
#define MORE_THAN_THERE_IS 6
#define EMPTY_ATTRIBUTE 7
#define NEGATIVE_COST 8
#define BAD_METRIC 9
#define BAD_LABELS 10
#define ODD_LEVEL 11
#define SILENT_LOG 12
#define FAILS_WITH_SUCCESS 13
#define FAILS_SILENTLY 14
#define SILENT_NOTE 15
#define ANOTHER_STRUCT 16
#define SHORT_STRUCT 17
#define TWO_TABLES 18
#define FORGETS_STATE 19
#define REFUSES_RELOAD 20
#define OFFLINE_ALLOCATABLE 21
#define OTHER_ALLOCATABLE 22
#define NO_NODE 23
#define OTHER_MEMORY 24

struct rp_plan {
	int unused;
};

struct rp_instance {
	const struct rp_host *host;
	const struct rp_host_cache *cache;
	const struct rp_host_topology *topology;
	const struct rp_host_config *config;
	const struct rp_host_explain *explain;
	rp_cfg cfg;
	unsigned n_prepared;
	uint64_t seen; /* counts results, so that no call is optimized away */
};

/* ---- configuration --------------------------------------------------------------------------- */

#define REQUIRED .flags = RP_KEY_REQUIRED
#define FULL .flags = RP_KEY_REQUIRED | RP_KEY_NON_EMPTY

/* Schema with a required value of each type. */
static const struct rp_key keys[] = {
	{.path = "truth", .type = RP_T_BOOL, REQUIRED},
	{.path = "whole", .type = RP_T_INT, REQUIRED},
	{.path = "large", .type = RP_T_INT, .min = 7, .max = 9, REQUIRED},
	{.path = "debt", .type = RP_T_INT, .min = INT64_MIN, .max = -1, REQUIRED},
	{.path = "number", .type = RP_T_NUMBER, REQUIRED},
	{.path = "text", .type = RP_T_STRING, FULL},
	{.path = "one", .type = RP_T_ENUM, .choices = "first|second", REQUIRED},
	{.path = "cpu", .type = RP_T_CPU, REQUIRED},
	{.path = "bytes", .type = RP_T_BYTES, REQUIRED},
	{.path = "time", .type = RP_T_DURATION, REQUIRED},
	{.path = "amount", .type = RP_T_AMOUNT, REQUIRED},
	{.path = "list", .type = RP_T_CPULIST, REQUIRED},
	{.path = "any", .type = RP_T_ANY, REQUIRED},
	{.path = "freq", .type = RP_T_FREQ, REQUIRED},
	{.path = "words", .type = RP_T_LIST, FULL},
	{.path = "words[]", .type = RP_T_STRING},
	{.path = "items", .type = RP_T_LIST, FULL},
	{.path = "items[]", .type = RP_T_MAP},
	{.path = "items[].name", .type = RP_T_STRING, FULL},
	{.path = "items[].left", .type = RP_T_STRING},
	{.path = "empty", .type = RP_T_LIST, REQUIRED},
	{.path = "map", .type = RP_T_MAP, REQUIRED},
	{.path = "map.key", .type = RP_T_INT, REQUIRED},
	{.path = "left", .type = RP_T_STRING},
};
static const struct rp_schema table = {
	.size = sizeof table,
	.keys = keys,
	.n_keys = sizeof keys / sizeof keys[0],
	.key_size = sizeof keys[0],
};
static const struct rp_schema other_table = {
	.size = sizeof table,
	.keys = keys,
	.n_keys = 2,
	.key_size = sizeof keys[0],
};

/* Adds what the configuration says to what it has seen, all the ways there are. */
static void read_section(struct rp_instance *inst, rp_cfg cfg)
{
	const struct rp_host_config *c = inst->config;
	void *ctx = inst->host->ctx;
	for (uint32_t i = 0; i < c->count(ctx, cfg); i++) {
		rp_cfg node = c->item(ctx, cfg, i);
		inst->seen += strlen(c->key(ctx, cfg, i)) + strlen(c->where(ctx, node));
		inst->seen += c->kind(ctx, node) + strlen(c->text(ctx, node, ""));
	}
	inst->seen += (uint64_t)c->value(ctx, c->get(ctx, cfg, "whole"), RP_T_INT, 0);
	inst->seen += (uint64_t)c->number(ctx, c->get(ctx, cfg, "number"), 0);
}

static int32_t prepare(struct rp_instance *inst, rp_cfg cfg, struct rp_plan **ret_plan)
{
	void *ctx = inst->host->ctx;
	int32_t code = 0;
	read_section(inst, cfg);
	if (!inst->config->parse(ctx, "a text", "key: [1, {2: 3}]", &code) || code)
		return code ? code : -RP_EINVAL;
	if (IS(REFUSES_RELOAD) && inst->n_prepared)
		return inst->config->fail_at(ctx, inst->config->get(ctx, cfg, "text"), -RP_EINVAL,
					     "it is as before");
	inst->n_prepared++;
	*ret_plan = calloc(1, sizeof **ret_plan);
	return *ret_plan ? 0 : -RP_ENOMEM;
}

static void drop(struct rp_instance *inst, struct rp_plan *plan)
{
	free(plan);
}

static void commit(struct rp_instance *inst, struct rp_plan *plan)
{
	free(plan);
}

/* ---- containers ------------------------------------------------------------------------------ */

/* Reads every kind of data on a container and its pod; the host may have none. */
static void look_at(struct rp_instance *inst, rp_ctr ctr, rp_pod pod)
{
	const struct rp_host_cache *c = inst->cache;
	void *ctx = inst->host->ctx;
	struct rp_pod_info info = {.size = sizeof info};
	struct rp_mount_info mount = {.size = sizeof mount};
	struct rp_device_info device = {.size = sizeof device};
	struct rp_pod_resource_info resource = {.size = sizeof resource};
	const void *kept;
	uint32_t size = 0;
	int64_t request = 0, limit = 0;
	inst->seen += c->get_pod(ctx, pod, &info) ? 0 : strlen(info.name);
	inst->seen += c->pod_label(ctx, pod, "x") != NULL;
	inst->seen += c->pod_annotation(ctx, pod, "x") != NULL;
	inst->seen += c->ctr_label(ctx, ctr, "x") != NULL;
	inst->seen += c->ctr_annotation(ctx, ctr, "x") != NULL;
	inst->seen += c->env(ctx, ctr, "x") != NULL;
	inst->seen += c->arg(ctx, ctr, 0) != NULL;
	inst->seen += c->mount(ctx, ctr, 0, &mount) == 0;
	inst->seen += c->device(ctx, ctr, 0, &device) == 0;
	inst->seen += c->pod_resource(ctx, ctr, 0, &resource) == 0;
	inst->seen += c->get_int(ctx, ctr, RP_F_SHARES, &request) == 0;
	inst->seen += c->get_text(ctx, ctr, RP_F_RDT_CLASS) != NULL;
	inst->seen += c->get_private(ctx, ctr, &kept, &size) ? 0 : size;
	inst->seen += c->extended(ctx, ctr, "example.com/x", &request, &limit) == 0;
}

/* Reads the topology; no decision depends on its shape. */
static void look_around(struct rp_instance *inst)
{
	const struct rp_host_topology *t = inst->topology;
	void *ctx = inst->host->ctx;
	struct rp_cpu_info cpu = {.size = sizeof cpu};
	struct rp_unit_info unit = {.size = sizeof unit};
	struct rp_node_info node = {.size = sizeof node};
	struct rp_cache_info cache = {.size = sizeof cache};
	struct rp_idset cpus, nodes;
	char path[64];
	inst->seen += t->generation(ctx) + t->memory(ctx);
	inst->seen += t->cpu(ctx, 0, &cpu) == 0;
	for (uint32_t level = 0; level < RP_N_LEVELS; level++)
		inst->seen += t->n_units(ctx, level) && !t->unit(ctx, level, 0, &unit);
	inst->seen += t->node(ctx, 0, &node) == 0;
	inst->seen += t->distance(ctx, 0, 0);
	inst->seen += t->n_caches(ctx) && !t->cache(ctx, 0, &cache);
	inst->seen += t->device(ctx, "/sys/devices/none", &cpus, &nodes) == 0;
	inst->seen += t->device_path(ctx, "/no/such/file", path, sizeof path) == 0;
	inst->seen += RP_HAS(t, simulated) && t->simulated(ctx);
}

static void tell(struct rp_instance *inst, rp_ctr ctr)
{
	void *ctx = inst->host->ctx;
	inst->explain->note(ctx, ctr, IS(SILENT_NOTE) ? NULL : "all CPUs there are");
	inst->explain->decided_by(ctx, ctr, inst->cfg, "as nothing else is asked for");
	inst->host->log(ctx, IS(ODD_LEVEL) ? 99 : RP_LOG_DEBUG, 0,
			IS(SILENT_LOG) ? NULL : "a container");
}

static int32_t stage_pod(struct rp_instance *inst, rp_txn txn, rp_ctr ctr)
{
	const struct rp_host_cache *c = inst->cache;
	void *ctx = inst->host->ctx;
	struct rp_ctr_info info = {.size = sizeof info};
	const void *kept;
	struct rp_pod_ctr_info one = {.size = sizeof one};
	rp_pod pods[1];
	uint32_t size;
	int32_t r = c->get_ctr(ctx, ctr, &info);
	(void)c->list_pods(ctx, pods, 1);
	(void)c->pod_ctr(ctx, info.pod, 0, &one);
	r = r ? r : c->set_pod_private(ctx, txn, info.pod, "kept", 4);
	return r ? r : c->get_pod_private(ctx, info.pod, &kept, &size);
}

static int32_t stage(struct rp_instance *inst, rp_txn txn, rp_ctr ctr)
{
	const struct rp_host_cache *c = inst->cache;
	void *ctx = inst->host->ctx;
	struct rp_ids online = rp_ids_none();
	int32_t r = inst->topology->set(ctx, RP_CPUS_ONLINE, &online);
	r = r ? r : c->set_cpus(ctx, txn, ctr, online);
	r = r ? r : c->set_mems(ctx, txn, ctr, rp_ids_none());
	r = r ? r : c->set_exclusive(ctx, txn, ctr, rp_ids_none());
	r = r ? r : c->set_group(ctx, txn, ctr, 0);
	r = r ? r : c->leave_unpinned(ctx, txn, ctr);
	r = r ? r : c->may_wait(ctx, txn, 0, 0);
	r = r ? r : c->set_int(ctx, txn, ctr, RP_F_SHARES, 1024);
	r = r ? r : c->set_text(ctx, txn, ctr, RP_F_CPU_CLASS, "");
	r = r ? r : c->set_private(ctx, txn, ctr, "kept", 4);
	r = r ? r : c->set_data(ctx, txn, ctr, "KEY", "value");
	r = r ? r : stage_pod(inst, txn, ctr);
	return r ? r : c->set_degraded(ctx, txn, ctr, NULL);
}

static int32_t allocate(struct rp_instance *inst, rp_txn txn, rp_ctr ctr)
{
	void *ctx = inst->host->ctx;
	struct rp_ctr_info info = {.size = sizeof info};
	if (IS(FAILS_WITH_SUCCESS))
		return inst->host->fail(ctx, 0, "nothing is wrong");
	if (IS(FAILS_SILENTLY))
		return inst->host->fail(ctx, -RP_EBUSY, "");
	int32_t r = inst->cache->get_ctr(ctx, ctr, &info);
	if (r || (info.flags & RP_CTR_PRESERVE_CPU))
		return r;
	look_at(inst, ctr, info.pod);
	look_around(inst);
	tell(inst, ctr);
	static const char *const args[] = {"/bin/sh"};
	static const struct rp_mount mount = {.size = sizeof mount,
					      .source = "/srv",
					      .destination = "/srv",
					      .type = "bind",
					      .options = "bind"};
	static const struct rp_device device = {
		.size = sizeof device, .path = "/dev/null", .type = "c", .major = 1, .minor = 3};
	r = inst->cache->set_pair(ctx, txn, ctr, RP_F_ENV, "CURIOUS", "yes");
	r = r ? r : inst->cache->set_args(ctx, txn, ctr, args, 1);
	r = r ? r : inst->cache->add_mount(ctx, txn, ctr, &mount);
	r = r ? r : inst->cache->add_device(ctx, txn, ctr, &device);
	r = r ? r : inst->cache->add_cdi(ctx, txn, ctr, "example.org/gpu=0");
	return r ? r : stage(inst, txn, ctr);
}

/* Stages all values again: the daemon lets them follow the request unless update() sets them. */
static int32_t resize(struct rp_instance *inst, rp_txn txn, rp_ctr ctr)
{
	struct rp_ctr_info info = {.size = sizeof info};
	int32_t r = inst->cache->get_ctr(inst->host->ctx, ctr, &info);
	return r || (info.flags & RP_CTR_PRESERVE_CPU) ? r : stage(inst, txn, ctr);
}

static int32_t nothing(struct rp_instance *inst, rp_txn txn, rp_ctr ctr)
{
	return 0;
}

static int32_t sync_all(struct rp_instance *inst, rp_txn txn)
{
	rp_ctr ctrs[256];
	uint32_t n = inst->cache->list(inst->host->ctx, RP_ORDER_SYNC, ctrs, 256);
	int32_t r = 0;
	for (uint32_t i = 0; !r && i < n; i++)
		r = resize(inst, txn, ctrs[i]);
	return r;
}

static int32_t event(struct rp_instance *inst, rp_txn txn, const struct rp_event *ev)
{
	return ev->type == RP_EVENT_TOPOLOGY ? sync_all(inst, txn) : 0;
}

static int32_t rolled_back(struct rp_instance *inst)
{
	return 0;
}

/* ---- reported state -------------------------------------------------------------------------- */

static int32_t zones(struct rp_instance *inst, const struct rp_zone_sink *s)
{
	char name[16];
	if (IS(RESOURCE_OF_NOTHING))
		s->resource(s->ctx, "cpu", 0, 0, 0);
	if (IS(CHILD_FIRST))
		s->zone(s->ctx, "part", "part", "whole");
	s->zone(s->ctx, "whole", IS(UNTYPED_ZONE) ? "" : "machine", "");
	s->resource(s->ctx, "cpu", 4000, 4000, IS(MORE_THAN_THERE_IS) ? 5000 : 1000);
	s->attribute(s->ctx, IS(EMPTY_ATTRIBUTE) ? "" : "kind", "test");
	s->zone(s->ctx, IS(ZONE_TWICE) ? "whole" : "part", "part", "whole");
	s->cost(s->ctx, "whole", IS(NEGATIVE_COST) ? -1 : 10);
	for (unsigned i = 0; IS(TOO_MANY_ZONES) && i < 2000; i++) {
		(void)snprintf(name, sizeof name, "zone%u", i);
		s->zone(s->ctx, name, "part", "whole");
	}
	return 0;
}

static int32_t collect(struct rp_instance *inst, const struct rp_metric_sink *s)
{
	const char *name = IS(BAD_METRIC) ? "2 much" : "seen";
	s->gauge(s->ctx, name, "What it has seen.", IS(BAD_LABELS) ? "{a}" : "kind=\"all\"", 1);
	s->counter(s->ctx, "asked_total", "How often it has asked.", "", 1);
	return 0;
}

static int32_t save(struct rp_instance *inst, const void **ret_data, uint32_t *ret_size)
{
	*ret_data = "state";
	*ret_size = 5;
	return 0;
}

static int32_t load(struct rp_instance *inst, const void *data, uint32_t size)
{
	if (IS(FORGETS_STATE) || size != 5 || memcmp(data, "state", 5) != 0)
		return inst->host->fail(inst->host->ctx, -RP_EINVAL, "not mine");
	return 0;
}

static const struct rp_policy policy = {
	.size = IS(SHORT_STRUCT) ? 16 : sizeof policy,
	.prepare = prepare,
	.commit = commit,
	.abort = drop,
	.sync = sync_all,
	.allocate = allocate,
	.update = resize,
	.release = nothing,
	.event = event,
	.rolled_back = rolled_back,
};
static const struct rp_zones zones_service = {.size = sizeof zones_service, .zones = zones};

static int32_t allocatable(struct rp_instance *inst, struct rp_idset *ret)
{
	inst->seen++;
	rp_idset_add(ret, 0);
	rp_idset_add(ret, IS(OFFLINE_ALLOCATABLE) ? 8000 : 1);
	if (IS(OTHER_ALLOCATABLE) && inst->seen % 2)
		rp_idset_del(ret, 0);
	return 0;
}

static int32_t memory(struct rp_instance *inst, rp_ctr ctr, const struct rp_memory_sink *sink)
{
	inst->seen++;
	sink->part(sink->ctx, IS(NO_NODE) ? 1000 : 0, IS(OTHER_MEMORY) ? inst->seen : 4096);
	return 0;
}

static const struct rp_allocation allocation = {
	.size = sizeof allocation, .allocatable = allocatable, .memory = memory};
static const struct rp_metrics metrics[2] = {{.size = sizeof metrics[0], .collect = collect},
					     {.size = sizeof metrics[0], .collect = collect}};
static const struct rp_state state = {.size = sizeof state, .save = save, .load = load};

static int32_t create(const struct rp_host *host, struct rp_instance **ret_inst)
{
	struct rp_instance *inst = calloc(1, sizeof *inst);
	if (!inst)
		return host->fail(host->ctx, -RP_ENOMEM, "out of memory");
	inst->host = host;
	inst->cache = host->service(host->ctx, RP_HOST_CACHE_1);
	inst->topology = host->service(host->ctx, RP_HOST_TOPOLOGY_1);
	inst->config = host->service(host->ctx, RP_HOST_CONFIG_1);
	inst->explain = host->service(host->ctx, RP_HOST_EXPLAIN_1);
	if (!inst->cache || !inst->topology || !inst->config || !inst->explain) {
		free(inst);
		return host->fail(host->ctx, -RP_ENOTSUP, "the host lacks services");
	}
	*ret_inst = inst;
	return 0;
}

static void destroy(struct rp_instance *inst)
{
	free(inst);
}

static const void *service(struct rp_instance *inst, const char *id)
{
	static unsigned n_asked;
	if (strcmp(id, RP_SCHEMA_1) == 0)
		return IS(TWO_TABLES) && inst ? &other_table : &table;
	if (!inst)
		return NULL;
	if (strcmp(id, RP_METRICS_1) == 0)
		return &metrics[IS(ANOTHER_STRUCT) ? n_asked++ % 2 : 0];
	if (strcmp(id, RP_ZONES_1) == 0)
		return &zones_service;
	if (strcmp(id, RP_ALLOCATION_1) == 0)
		return &allocation;
	if (strcmp(id, RP_STATE_1) == 0)
		return &state;
	return strcmp(id, RP_POLICY_1) == 0 ? &policy : NULL;
}

RP_MODULE_DEFINE(NAME_OF(CURIOUS_CASE), "1.0", RP_KIND_POLICY, .summary = "A test",
		 .licence = "Apache-2.0", .create = create, .destroy = destroy, .service = service);
