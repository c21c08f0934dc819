/* SPDX-License-Identifier: Apache-2.0 */
/* A module's instance and the services that it is given, with a module of this program. */
#include "test/unit/t_topo_tree.h"

#include "core/nri-rpd/cache/txn.h"
#include "core/nri-rpd/host/service/services.h"
#include "core/lib/util/log.h"
#include "core/lib/util/worker.h"
/* Results of the module's calls and the arguments they received. */
static struct {
	int32_t create, result, job_result;
	const char *says; /* through fail() */
	bool no_policy, no_state, too_much;
	unsigned calls, destroyed, jobs_done, stopped;
	struct instance *submitter; /* instance for which stop() submits a job */
	const struct rp_host *host;
} script;

static struct rp_instance {
	int unused;
} the_instance;
static struct rp_plan {
	int unused;
} the_plan;

static int32_t answer(void)
{
	script.calls++;
	return script.says ? (script.host->fail)(script.host->ctx, script.result, script.says)
			   : script.result;
}

static int32_t m_create(const struct rp_host *host, struct rp_instance **ret)
{
	script.host = host;
	*ret = &the_instance;
	return script.create;
}

static void m_destroy(struct rp_instance *i)
{
	assert_ptr_equal(i, &the_instance);
	script.destroyed++;
}

static int32_t m_prepare(struct rp_instance *i, rp_cfg cfg, struct rp_plan **ret)
{
	*ret = &the_plan;
	return answer();
}

static void m_plan(struct rp_instance *i, struct rp_plan *plan)
{
	assert_ptr_equal(plan, &the_plan);
	script.calls++;
}

static int32_t m_sync(struct rp_instance *i, rp_txn txn)
{
	return answer();
}

static int32_t m_about(struct rp_instance *i, rp_txn txn, rp_ctr ctr)
{
	assert_true(ctr != 0);
	return answer();
}

static int32_t m_event(struct rp_instance *i, rp_txn txn, const struct rp_event *ev)
{
	return answer();
}

static int32_t m_plain(struct rp_instance *i)
{
	return answer();
}

static int32_t m_save(struct rp_instance *i, const void **ret, uint32_t *ret_size)
{
	*ret = "state";
	*ret_size = script.too_much ? RP_STATE_MAX + 1 : 5;
	return answer();
}

static int32_t m_load(struct rp_instance *i, const void *data, uint32_t size)
{
	assert_memory_equal(data, "state", size);
	return answer();
}

static int32_t m_zones(struct rp_instance *i, const struct rp_zone_sink *sink)
{
	return answer();
}

static int32_t m_collect(struct rp_instance *i, const struct rp_metric_sink *sink)
{
	return answer();
}

static void m_stop(struct rp_instance *i)
{
	script.calls++;
}

static int32_t m_hook(struct rp_instance *i, rp_ctr ctr)
{
	return answer();
}

static int32_t m_post_update(struct rp_instance *i, rp_ctr ctr, uint32_t changed)
{
	return answer();
}

static void m_timer(struct rp_instance *i, uint64_t cookie)
{
	script.calls++;
}

static struct rp_policy policy = {sizeof policy, 0,	  m_prepare, m_plan,  m_plan,
				  m_sync,	 m_about, m_about,   m_about, m_event,
				  m_plain,	 NULL,	  NULL,	     m_about, m_about};
static struct rp_controller controller = {.size = sizeof controller,
					  .prepare = m_prepare,
					  .commit = m_plan,
					  .abort = m_plan,
					  .start = m_plain,
					  .stop = m_stop,
					  .pre_create = m_about,
					  .post_start = m_hook,
					  .post_update = m_post_update,
					  .post_stop = m_hook,
					  .takes = RP_TAKES_RDT_CLASS,
					  .sync = m_stop,
					  .timer = m_timer};
static const struct rp_state saved = {sizeof saved, 0, m_save, m_load};
static const struct rp_zones zones = {sizeof zones, 0, m_zones};
static const struct rp_metrics metrics = {sizeof metrics, 0, m_collect};
static const void *m_service(struct rp_instance *i, const char *id)
{
	assert_ptr_equal(i, &the_instance);
	if (strcmp(id, RP_POLICY_1) == 0)
		return script.no_policy ? NULL : &policy;
	if (strcmp(id, RP_CONTROLLER_1) == 0)
		return &controller;
	if (script.no_state)
		return NULL;
	if (strcmp(id, RP_STATE_1) == 0)
		return &saved;
	return strcmp(id, RP_ZONES_1) == 0     ? (const void *)&zones
	       : strcmp(id, RP_METRICS_1) == 0 ? &metrics
					       : NULL;
}

static const struct rp_module abi = {.size = sizeof abi,
				     .name = "inner",
				     .create = m_create,
				     .destroy = m_destroy,
				     .service = m_service};

/* ---- a place for it -------------------------------------------------------------------------- */

struct place {
	struct tree tree;
	struct host_env env;
	struct module module;
	struct instance *i; /* as a policy */
	struct instance *controller;
	struct ctr *ctr;
	struct txn *txn;
	unsigned n_timer, n_reported;
	uint32_t reported;
};

static void on_event(struct instance *i, const struct rp_event *ev, void *arg)
{
	struct place *p = arg;
	assert_true(i == p->i && ev->type == RP_EVENT_TIMER && ev->cookie == 5);
	p->n_timer++;
	loop_stop(p->env.loop);
}

static void on_reported(struct instance *i, rp_ctr ctr, uint32_t result, const char *text,
			void *arg)
{
	struct place *p = arg;
	p->n_reported++;
	p->reported = result;
}

static int setup(void **state)
{
	struct place *p = calloc(1, sizeof *p);
	struct err err = ERR_INIT;
	struct pod *pod;
	static const struct kv notes[] = {{"x/key", "value"}, {"x/key/container.main", "mine"}};
	static const char *const env[] = {"PATH=/bin", "PAT=x"};
	static const struct rp_mount_info mounts[] = {
		{sizeof mounts[0], 1, "/from", "/to", "bind"}};
	static const struct rp_device_info devices[] = {
		{sizeof devices[0], 1, "/dev/x", "c", 1, 2}};
	static const struct pod_desc pod_desc = {"p1",	"pod", "uid", "ns", "handler", "/parent",
						 notes, notes, 2,     2,    NULL};
	static const struct ctr_desc desc = {
		.id = "c1",
		.pod_id = "p1",
		.name = "main",
		.cgroups_path = "/pods/c1",
		.oom_score_adj = RP_NOT_SET,
		.res = {.amounts = {2048, RP_NOT_SET, RP_NOT_SET, RP_NOT_SET}},
		.labels = notes,
		.annotations = notes,
		.n_labels = 2,
		.n_annotations = 2,
		.env = env,
		.n_env = 2,
		.mounts = mounts,
		.n_mounts = 1,
		.devices = devices,
		.n_devices = 1};
	log_init("test");
	log_set_level(LOG_ERROR - 1);
	memset(&script, 0, sizeof script);
	assert_non_null(p);
	tree_init(&p->tree);
	tree_machine(&p->tree, &(struct machine){2, 1, 2, 2, 2, 0, 0});
	p->env = (struct host_env){.loop = loop_new(),
				   .cache = cache_new(UINT64_C(1) << 30),
				   .topo = tree_read(&p->tree),
				   .root = &p->tree.root,
				   .event = on_event,
				   .reported = on_reported,
				   .arg = p};
	p->env.worker = worker_new(p->env.loop, "test");
	p->module = (struct module){
		.name = "inner", .kinds = RP_KIND_POLICY | RP_KIND_CONTROLLER, .abi = &abi};
	assert_int_equal(cache_put_pod(p->env.cache, &pod_desc, &pod, &err), 0);
	assert_int_equal(cache_put_ctr(p->env.cache, &desc, &p->ctr, &err), 0);
	p->ctr->desc = &desc;
	assert_int_equal(
		instance_new(&p->env, &p->module, RP_KIND_CONTROLLER, &p->controller, &err), 0);
	assert_int_equal(instance_new(&p->env, &p->module, RP_KIND_POLICY, &p->i, &err), 0);
	p->txn = txn_begin(p->env.cache);
	*state = p;
	return 0;
}

static int teardown(void **state)
{
	struct place *p = *state;
	txn_end(p->txn);
	p->i = instance_free(p->i);
	p->controller = instance_free(p->controller);
	worker_free(p->env.worker);
	cache_free(p->env.cache);
	topo_free(p->env.topo);
	loop_free(p->env.loop);
	tree_fini(&p->tree);
	free(p);
	return 0;
}

/* ---- the instance ---------------------------------------------------------------------------- */

static void test_calls(void **state)
{
	struct place *p = *state;
	struct err err = ERR_INIT;
	struct rp_plan *plan;
	const struct rp_event ev = {sizeof ev, RP_EVENT_STARTED, .object = p->ctr->handle};
	const void *data;
	uint32_t size;
	assert_string_equal(instance_name(p->i), "inner");
	assert_ptr_equal(instance_module(p->i), &p->module);
	assert_int_equal(instance_role(p->i), RP_KIND_POLICY);
	assert_true(instance_handles_starts(p->i));
	assert_int_equal(instance_jobs(p->i), 0);
	assert_int_equal(instance_prepare(p->i, NULL, &plan, &err), 0);
	instance_commit(p->i, plan);
	instance_abort(p->i, plan);
	assert_int_equal(instance_sync(p->i, &err), 0);
	assert_int_equal(instance_allocate(p->i, p->ctr, &err), 0);
	assert_int_equal(instance_update(p->i, p->ctr, &err), 0);
	assert_int_equal(instance_release(p->i, p->ctr, &err), 0);
	assert_int_equal(instance_rolled_back(p->i), 0);
	assert_int_equal(instance_zones(p->i, NULL, &err), 0);
	assert_int_equal(instance_collect(p->i, NULL, &err), 0);
	assert_int_equal(instance_save(p->i, &data, &size, &err), 0);
	assert_int_equal(size, 5);
	assert_int_equal(instance_load(p->i, data, size, &err), 0);
	assert_int_equal(instance_event(p->i, &ev, &err), 0);
	assert_int_equal(script.calls, 13);
	script.too_much = true;
	assert_int_equal(instance_save(p->i, &data, &size, &err), -E2BIG);
}

static void call_hooks(struct place *p, struct instance *i)
{
	struct err err = ERR_INIT;
	assert_int_equal(instance_pre_create(i, p->ctr, &err), 0);
	assert_int_equal(instance_post_start(i, p->ctr, &err), 0);
	assert_int_equal(instance_post_update(i, p->ctr, 1, &err), 0);
	assert_int_equal(instance_post_stop(i, p->ctr, &err), 0);
	instance_controller_sync(i);
	instance_controller_timer(i, 1);
}

/* Checks that a module of two kinds receives, as a controller, the calls of a controller alone. */
static void test_controller_calls(void **state)
{
	struct place *p = *state;
	struct err err = ERR_INIT;
	struct rp_plan *plan;
	const struct rp_policy whole = policy;
	assert_int_equal(instance_role(p->controller), RP_KIND_CONTROLLER);
	assert_false(instance_handles_events(p->controller));
	policy = (struct rp_policy){.size = sizeof policy};
	assert_int_equal(instance_prepare(p->controller, NULL, &plan, &err), 0);
	instance_commit(p->controller, plan);
	instance_abort(p->controller, plan);
	policy = whole;
	assert_int_equal(instance_start(p->controller, &err), 0);
	call_hooks(p, p->controller);
	assert_int_equal(instance_takes(p->controller), RP_TAKES_RDT_CLASS);
	instance_stop(p->controller);
	assert_int_equal(script.calls, 11);
}

static void test_errors(void **state)
{
	struct place *p = *state;
	struct err err = ERR_INIT;
	struct rp_plan *plan;
	script.result = -RP_ENOSPC;
	script.says = "there is no room";
	assert_int_equal(instance_allocate(p->i, p->ctr, &err), -RP_ENOSPC);
	assert_string_equal(err.text, "there is no room");
	script.says = NULL;
	err = (struct err)ERR_INIT;
	assert_int_equal(instance_sync(p->i, &err), -RP_ENOSPC);
	assert_non_null(strstr(err.text, "module inner failed in"));
	assert_int_equal(instance_prepare(p->i, NULL, &plan, NULL), -RP_ENOSPC);
	assert_int_equal(instance_rolled_back(p->i), RP_RESYNC);
	/* An error text is ignored if the call succeeded. */
	script.result = 0;
	script.says = "never mind";
	err = (struct err)ERR_INIT;
	assert_int_equal(instance_update(p->i, p->ctr, &err), 0);
	assert_string_equal(err.text, "");
}

static void test_without_optional_parts(void **state)
{
	struct place *p = *state;
	struct err err = ERR_INIT;
	struct instance *bare;
	const struct rp_event ev = {.size = sizeof ev};
	const void *data;
	uint32_t size;
	const struct rp_policy whole = policy;
	const struct rp_controller all = controller;
	script.no_state = true;
	policy.size = offsetof(struct rp_policy, event);
	controller.size = offsetof(struct rp_controller, pre_create);
	assert_int_equal(instance_new(&p->env, &p->module, RP_KIND_POLICY, &bare, &err), 0);
	assert_false(instance_handles_events(bare));
	assert_int_equal(instance_event(bare, &ev, &err), 0);
	assert_int_equal(instance_rolled_back(bare), 0); /* the module was not called */
	assert_int_equal(instance_zones(bare, NULL, &err), 0);
	assert_int_equal(instance_collect(bare, NULL, &err), 0);
	assert_int_equal(instance_save(bare, &data, &size, &err), 0);
	assert_null(data);
	assert_int_equal(instance_load(bare, "x", 1, &err), 0);
	assert_int_equal(script.calls, 0);
	assert_null(instance_free(bare));
	assert_int_equal(script.destroyed, 1);
	assert_null(instance_free(NULL));
	/* as a controller */
	policy = whole;
	assert_int_equal(instance_new(&p->env, &p->module, RP_KIND_CONTROLLER, &bare, &err), 0);
	call_hooks(p, bare);
	assert_int_equal(instance_takes(bare), 0);
	assert_int_equal(script.calls, 0);
	controller = all;
	instance_free(bare);
}

static void cannot_be(struct place *p, struct err *why, uint32_t role, int code)
{
	struct instance *bad;
	*why = (struct err)ERR_INIT;
	assert_int_equal(instance_new(&p->env, &p->module, role, &bad, why), code);
}

static void test_not_to_be_used(void **state)
{
	struct place *p = *state;
	struct err why;
	const struct rp_policy whole = policy;
	const struct rp_controller all = controller;
	script.no_policy = true;
	cannot_be(p, &why, RP_KIND_POLICY, -EBADMSG);
	assert_non_null(strstr(why.text, RP_POLICY_1));
	script.no_policy = false;
	policy.allocate = NULL;
	cannot_be(p, &why, RP_KIND_POLICY, -EBADMSG);
	policy = whole;
	policy.size = 16;
	cannot_be(p, &why, RP_KIND_POLICY, -EBADMSG);
	policy = whole;
	controller.start = NULL;
	cannot_be(p, &why, RP_KIND_CONTROLLER, -EBADMSG);
	assert_non_null(strstr(why.text, RP_CONTROLLER_1));
	controller = all;
	assert_int_equal(script.destroyed, 4);
	script.create = -RP_ENOTSUP;
	cannot_be(p, &why, RP_KIND_POLICY, -RP_ENOTSUP);
	assert_int_equal(script.destroyed, 4);
}

static void test_host(void **state)
{
	struct place *p = *state;
	const struct rp_host *h = script.host;
	static const char *const ids[] = {RP_HOST_CACHE_1,   RP_HOST_TOPOLOGY_1, RP_HOST_CONFIG_1,
					  RP_HOST_EXPLAIN_1, RP_HOST_TIMER_1,	 RP_HOST_WORK_1};
	for (unsigned i = 0; i < 6; i++)
		assert_non_null(h->service(h->ctx, ids[i]));
	assert_null(h->service(h->ctx, "nri-rp.host.cache/2"));
	h->log(h->ctx, 99, p->ctr->handle, "quiet");
	log_set_level(LOG_DEBUG);
	h->log(h->ctx, 0, p->ctr->handle, "about a container");
	h->log(h->ctx, RP_LOG_ERROR, 0, "about nothing");
	log_set_level(LOG_ERROR - 1);
	/* structs of callers that know less, or more */
	struct {
		struct rp_ctr_info info;
		uint64_t more;
	} out;
	memset(&out, 0xff, sizeof out);
	out.info.size = sizeof out;
	assert_int_equal(host_cache_service.get_ctr(p->i, p->ctr->handle, &out.info), 0);
	assert_int_equal(out.more, 0);
	assert_int_equal(out.info.cpu_request, 2000);
	assert_int_equal(out.info.size, sizeof out.info);
	memset(&out, 0xff, sizeof out);
	out.info.size = offsetof(struct rp_ctr_info, created_ns);
	assert_int_equal(host_cache_service.get_ctr(p->i, p->ctr->handle, &out.info), 0);
	assert_string_equal(out.info.name, "main");
	assert_int_equal(out.info.created_ns, UINT64_MAX);
}

/* ---- the cache's service --------------------------------------------------------------------- */
#define C host_cache_service
static void test_getters(void **state)
{
	struct place *p = *state;
	rp_ctr h = p->ctr->handle, all[4];
	rp_pod pod = p->ctr->pod->handle;
	struct rp_pod_info info = {.size = sizeof info};
	struct rp_mount_info mount = {.size = sizeof mount};
	struct rp_device_info device = {.size = sizeof device};
	uint32_t scope, size;
	int64_t n, limit;
	const void *data;
	assert_int_equal(C.list(p->i, RP_ORDER_SYNC, all, 4), 1);
	assert_int_equal(all[0], h);
	assert_int_equal(C.list(p->i, RP_ORDER_CREATED, NULL, 0), 1);
	p->ctr->coming = true; /* reserved for the container's own creation request */
	assert_int_equal(C.list(p->i, RP_ORDER_SYNC, all, 4), 0);
	p->ctr->coming = false;
	assert_int_equal(C.get_pod(p->i, pod, &info), 0);
	assert_string_equal(info.cgroup_parent, "/parent");
	assert_string_equal(C.annotation(p->i, h, "x/key", &scope), "mine");
	assert_int_equal(scope, RP_SCOPE_CONTAINER);
	assert_string_equal(C.pod_annotation(p->i, pod, "x/key"), "value");
	assert_string_equal(C.pod_label(p->i, pod, "x/key"), "value");
	assert_string_equal(C.ctr_label(p->i, h, "x/key"), "value");
	assert_string_equal(C.ctr_annotation(p->i, h, "x/key"), "value");
	assert_string_equal(C.env(p->i, h, "PAT"), "x");
	assert_null(C.env(p->i, h, "P"));
	assert_int_equal(C.mount(p->i, h, 0, &mount), 0);
	assert_string_equal(mount.destination, "/to");
	assert_int_equal(C.mount(p->i, h, 1, &mount), -RP_ENOENT);
	assert_int_equal(C.device(p->i, h, 0, &device), 0);
	assert_int_equal(device.minor, 2);
	assert_int_equal(C.device(p->i, h, 1, &device), -RP_ENOENT);
	assert_int_equal(C.get_int(p->i, h, RP_F_SHARES, &n), -RP_ENOENT);
	assert_null(C.get_text(p->i, h, RP_F_RDT_CLASS));
	assert_null(C.get_text(p->i, h, 9999));
	assert_int_equal(C.get_private(p->i, h, &data, &size), -RP_ENOENT);
	assert_int_equal(C.extended(p->i, h, "x.y/z", &n, &limit), -RP_ENOENT);
	p->ctr->desc = NULL;
	assert_null(C.env(p->i, h, "PATH"));
	assert_int_equal(C.mount(p->i, h, 0, &mount), -RP_ENOENT);
}

static void test_strangers(void **state)
{
	struct place *p = *state;
	struct rp_ctr_info info = {.size = sizeof info};
	struct rp_pod_info pod = {.size = sizeof pod};
	struct rp_mount_info mount = {.size = sizeof mount};
	struct rp_device_info device = {.size = sizeof device};
	rp_ctr nobody = p->ctr->handle + 1000;
	int64_t n;
	uint32_t size;
	const void *data;
	char buf[64];
	rp_txn t = txn_id(p->txn);
	assert_int_equal(C.get_ctr(p->i, nobody, &info), -RP_ESTALE);
	assert_int_equal(C.get_pod(p->i, 12345, &pod), -RP_ESTALE);
	assert_null(C.annotation(p->i, nobody, "x/key", NULL));
	assert_null(C.pod_annotation(p->i, 12345, "x/key"));
	assert_null(C.pod_label(p->i, 12345, "x/key"));
	assert_null(C.ctr_label(p->i, nobody, "x/key"));
	assert_null(C.ctr_annotation(p->i, nobody, "x/key"));
	assert_null(C.env(p->i, nobody, "PATH"));
	assert_int_equal(C.mount(p->i, nobody, 0, &mount), -RP_ESTALE);
	assert_int_equal(C.device(p->i, nobody, 0, &device), -RP_ESTALE);
	assert_int_equal(C.get_int(p->i, nobody, RP_F_SHARES, &n), -RP_ESTALE);
	assert_null(C.get_text(p->i, nobody, RP_F_RDT_CLASS));
	assert_int_equal(C.get_private(p->i, nobody, &data, &size), -RP_ESTALE);
	assert_int_equal(C.extended(p->i, nobody, "x", &n, &n), -RP_ESTALE);
	assert_int_equal(C.set_int(p->i, t, nobody, RP_F_SHARES, 5), -RP_ESTALE);
	assert_int_equal(C.set_int(p->i, t + 1, p->ctr->handle, RP_F_SHARES, 5), -RP_EINVAL);
	assert_int_equal(C.set_text(p->i, t, nobody, RP_F_RDT_CLASS, "x"), -RP_ESTALE);
	assert_int_equal(C.set_pair(p->i, t, nobody, RP_F_ENV, "x", "y"), -RP_ESTALE);
	assert_int_equal(C.set_pair(p->i, t + 1, p->ctr->handle, RP_F_ENV, "x", "y"), -RP_EINVAL);
	assert_int_equal(C.set_private(p->i, t, nobody, "x", 1), -RP_ESTALE);
	assert_int_equal(C.set_degraded(p->i, t, nobody, "x"), -RP_ESTALE);
	assert_int_equal(C.set_data(p->i, t, nobody, "X", "x"), -RP_ESTALE);
	assert_int_equal(C.set_cpus(p->i, t, nobody, rp_ids_none()), -RP_ESTALE);
	assert_int_equal(host_work_service.cgroup_dir(p->i, nobody, "", buf, sizeof buf),
			 -RP_ESTALE);
}

static void test_ranges(void **state)
{
	struct place *p = *state;
	rp_txn t = txn_id(p->txn);
	rp_ctr h = p->ctr->handle;
	static const struct {
		uint32_t field;
		int64_t value;
		int32_t r;
	} cases[] = {
		{RP_F_SHARES, 1, -RP_EINVAL},
		{RP_F_SHARES, 2, 0},
		{RP_F_SHARES, 262144, 0},
		{RP_F_SHARES, 262145, -RP_EINVAL},
		{RP_F_QUOTA, -1, 0},
		{RP_F_QUOTA, 999, -RP_EINVAL},
		{RP_F_QUOTA, 1000, 0},
		{RP_F_PERIOD, 999, -RP_EINVAL},
		{RP_F_PERIOD, 1000000, 0},
		{RP_F_PERIOD, 1000001, -RP_EINVAL},
		{RP_F_MEMORY_LIMIT, 0, -RP_EINVAL},
		{RP_F_MEMORY_LIMIT, 1, 0},
		{RP_F_NICE, -21, -RP_EINVAL},
		{RP_F_NICE, 19, 0},
		{RP_F_OOM_SCORE_ADJ, 1001, -RP_EINVAL},
		{RP_F_OOM_SCORE_ADJ, -1000, 0},
		{RP_F_IO_CLASS, 4, -RP_EINVAL},
		{RP_F_IO_CLASS, 3, 0},
		{RP_F_IO_PRIORITY, 8, -RP_EINVAL},
		{RP_F_IO_PRIORITY, 7, 0},
		{RP_F_SCHED_RUNTIME, -1, -RP_EINVAL},
		{RP_F_SCHED_RUNTIME, 5, 0},
		{RP_F_MEMPOLICY_MODE, 3, 0},
		{RP_F_SWAP, -1, 0},
		{RP_F_SWAP + 1, 1, -RP_ENOTSUP},
		{0, 1, -RP_ENOTSUP},
	};
	txn_set_created(p->txn, p->ctr);
	for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
		int32_t r = C.set_int(p->i, t, h, cases[i].field, cases[i].value);
		if (r != cases[i].r)
			fail_msg("field %u, %lld: %d", cases[i].field, (long long)cases[i].value,
				 r);
	}
	int64_t n;
	assert_int_equal(C.get_int(p->i, h, RP_F_SHARES, &n), 0);
	assert_int_equal(n, 262144);
	/* creation-only values of one that is not being created */
	txn_set_created(p->txn, NULL);
	assert_int_equal(C.set_int(p->i, t, h, RP_F_NICE, 1), -RP_ENOTSUP);
	assert_int_equal(C.set_pair(p->i, t, h, RP_F_ENV, "A", "b"), -RP_ENOTSUP);
}

static void test_sets(void **state)
{
	struct place *p = *state;
	rp_txn t = txn_id(p->txn);
	rp_ctr h = p->ctr->handle;
	struct rp_idset set;
	rp_idset_clear(&set);
	rp_idset_add(&set, 3);
	assert_int_equal(C.set_cpus(p->i, t, h, rp_ids_of(&set)), 0);
	assert_int_equal(C.set_exclusive(p->i, t, h, rp_ids_of(&set)), 0);
	assert_int_equal(C.set_mems(p->i, t, h, rp_ids_of(&set)), 0);
	assert_string_equal(txn_view(p->ctr)->exclusive->text, "3");
	assert_int_equal(C.set_exclusive(p->i, t, h, rp_ids_none()), 0);
	assert_null(txn_view(p->ctr)->exclusive);
	rp_idset_add(&set, RP_NODES_MAX);
	assert_int_equal(C.set_mems(p->i, t, h, rp_ids_of(&set)), -RP_E2BIG);
	struct rp_ids huge = rp_ids_of(&set);
	huge.nw = RP_IDSET_WORDS + 1;
	assert_int_equal(C.set_cpus(p->i, t, h, huge), -RP_E2BIG);
}

static void test_texts(void **state)
{
	struct place *p = *state;
	rp_txn t = txn_id(p->txn);
	rp_ctr h = p->ctr->handle;
	static char longest[RP_ANNOTATION_MAX + 2];
	const void *data;
	uint32_t size;
	memset(longest, 'x', sizeof longest - 1);
	assert_int_equal(C.set_text(p->i, t, h, RP_F_RDT_CLASS, "gold"), 0);
	assert_string_equal(C.get_text(p->i, h, RP_F_RDT_CLASS), "gold");
	assert_int_equal(C.set_text(p->i, t, h, RP_F_CPU_CLASS, "fast"), 0);
	assert_int_equal(C.set_text(p->i, t, h, RP_F_BLOCKIO_CLASS, "slow"), 0);
	assert_int_equal(C.set_text(p->i, t, h, RP_F_RDT_CLASS, "\xff"), -RP_EINVAL);
	assert_int_equal(C.set_text(p->i, t, h, RP_F_RDT_CLASS, longest), -RP_EINVAL);
	assert_int_equal(C.set_text(p->i, t, h, 99, "x"), -RP_ENOTSUP);
	assert_int_equal(C.set_text(p->i, t, h, RP_F_MEMPOLICY_NODES, "0"), -RP_ENOTSUP);
	assert_int_equal(C.set_text(p->i, t, h, RP_F_RDT_CLASS, ""), 0);
	assert_true(!C.get_text(p->i, h, RP_F_RDT_CLASS) || !*C.get_text(p->i, h, RP_F_RDT_CLASS));
	txn_set_created(p->txn, p->ctr);
	assert_int_equal(C.set_text(p->i, t, h, RP_F_MEMPOLICY_FLAGS, "static"), 0);
	assert_int_equal(C.set_pair(p->i, t, h, RP_F_ENV, "A", "b"), 0);
	assert_int_equal(C.set_pair(p->i, t, h, RP_F_ENV, "", "b"), -RP_EINVAL);
	assert_int_equal(C.set_pair(p->i, t, h, RP_F_ENV, "A", longest), -RP_EINVAL);
	assert_int_equal(C.set_pair(p->i, t, h, 1, "A", "b"), -RP_ENOTSUP);
	/* private data */
	assert_int_equal(C.set_private(p->i, t, h, longest, RP_PRIVATE_MAX + 1), -RP_E2BIG);
	assert_int_equal(C.set_private(p->i, t, h, "abc", 3), 0);
	assert_int_equal(C.set_private(p->i, t, h, "abc", 3), 0);
	assert_int_equal(C.get_private(p->i, h, &data, &size), 0);
	assert_int_equal(size, 3);
	assert_int_equal(C.set_private(p->i, t, h, NULL, 0), 0);
	assert_int_equal(C.get_private(p->i, h, &data, &size), -RP_ENOENT);
	/* degraded */
	struct rp_ctr_info info = {.size = sizeof info};
	assert_int_equal(C.set_degraded(p->i, t, h, "tight"), 0);
	assert_int_equal(C.get_ctr(p->i, h, &info), 0);
	assert_true(info.flags & RP_CTR_DEGRADED);
	assert_int_equal(C.set_degraded(p->i, t, h, NULL), 0);
}

static void test_data(void **state)
{
	struct place *p = *state;
	rp_txn t = txn_id(p->txn);
	rp_ctr h = p->ctr->handle;
	static char longest[4096];
	memset(longest, 'x', sizeof longest - 1);
	assert_int_equal(C.set_data(p->i, t, h, "A", "1"), 0);
	assert_int_equal(C.set_data(p->i, t, h, "B_2", "a \"b\" $c `d` \\"), 0);
	assert_int_equal(C.set_data(p->i, t, h, "A", "2"), 0);
	assert_string_equal(txn_view(p->ctr)->data->data,
			    "A=\"2\"\nB_2=\"a \\\"b\\\" \\$c \\`d\\` \\\\\"\n");
	/* in the order of keys, whatever came first; one may be the start of another */
	assert_int_equal(C.set_data(p->i, t, h, "AB", "4"), 0);
	assert_int_equal(C.set_data(p->i, t, h, "A_B", "5"), 0);
	assert_int_equal(C.set_data(p->i, t, h, "B_2", "3"), 0);
	assert_int_equal(C.set_data(p->i, t, h, "AB", "6"), 0);
	assert_int_equal(C.set_data(p->i, t, h, "Z", ""), 0);
	assert_string_equal(txn_view(p->ctr)->data->data,
			    "A=\"2\"\nAB=\"6\"\nA_B=\"5\"\nB_2=\"3\"\n");
	assert_int_equal(C.set_data(p->i, t, h, "A_B", NULL), 0);
	assert_int_equal(C.set_data(p->i, t, h, "AB", NULL), 0);
	assert_int_equal(C.set_data(p->i, t, h, "A", NULL), 0);
	assert_int_equal(C.set_data(p->i, t, h, "B_2", ""), 0);
	assert_null(txn_view(p->ctr)->data);
	static const char *const bad[] = {"", "a", "A-B", "A\nB"};
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(C.set_data(p->i, t, h, bad[i], "x"), -RP_EINVAL);
	assert_int_equal(C.set_data(p->i, t, h, "A", "x\ny"), -RP_EINVAL);
	/* Data that a damaged store left behind is not a valid line. */
	struct decision *d = txn_stage(p->txn, p->ctr);
	txn_put_blob(&d->data, blob_str("no newline"));
	assert_int_equal(C.set_data(p->i, t, h, "A", "1"), 0);
	assert_string_equal(txn_view(p->ctr)->data->data, "A=\"1\"\n");
	char key[2] = "A";
	int32_t r = 0;
	for (; *key <= 'Z' && !r; ++*key)
		r = C.set_data(p->i, t, h, key, longest);
	assert_int_equal(r, -RP_E2BIG);
}

/* ---- explanations, timers, work -------------------------------------------------------------- */

static void test_trail(void **state)
{
	struct place *p = *state;
	const struct rp_host_explain *e = &host_explain_service;
	e->note(p->i, p->ctr->handle + 99, "nobody's");
	e->note(p->i, p->ctr->handle, "first");
	e->decided_by(p->i, p->ctr->handle, NULL, "because");
	assert_string_equal(p->ctr->trail.text, "first\ndefault: because\n");
	for (unsigned i = 0; i < 500; i++)
		e->note(p->i, p->ctr->handle, "and so on and so forth");
	assert_true(strlen(p->ctr->trail.text) < RP_TRAIL_MAX);
	assert_non_null(strstr(p->ctr->trail.text, "more output than is kept"));
	/* another decision, another trail */
	txn_end(p->txn);
	p->txn = txn_begin(p->env.cache);
	e->note(p->i, p->ctr->handle, "anew");
	assert_string_equal(p->ctr->trail.text, "anew\n");
}

static void test_timers(void **state)
{
	struct place *p = *state;
	const struct rp_host_timer *t = &host_timer_service;
	assert_int_equal(t->arm(p->i, 5, 100000), 0);
	assert_int_equal(t->arm(p->i, 5, 1), 0);
	assert_int_equal(t->arm(p->i, 6, 0), 0);
	assert_int_equal(loop_run(p->env.loop), 0);
	assert_int_equal(p->n_timer, 1);
	for (unsigned i = 0; i < RP_TIMERS_MAX; i++) /* neither 5 nor 6 takes a place */
		assert_int_equal(t->arm(p->i, 100 + i, 100000), 0);
	assert_int_equal(t->arm(p->i, 7, 1), -RP_E2BIG);
	assert_true(t->now_ms(p->i) > 0);
	p->env.trial = true;
	assert_int_equal(t->arm(p->i, 7, 1), 0);
}

static int32_t job(void *arg)
{
	return 42;
}

static void job_done(void *arg, int32_t result)
{
	script.jobs_done++;
	script.job_result = result;
	loop_stop(arg);
}

static void test_work(void **state)
{
	struct place *p = *state;
	const struct rp_host_work *w = &host_work_service;
	char buf[128];
	assert_int_equal(w->submit(p->i, job, job_done, p->env.loop), 0);
	assert_int_equal(instance_jobs(p->i), 1);
	assert_int_equal(loop_run(p->env.loop), 0);
	assert_int_equal(script.jobs_done, 1);
	assert_int_equal(script.job_result, 42);
	assert_int_equal(instance_jobs(p->i), 0);
	p->env.trial = true;
	assert_int_equal(w->submit(p->i, job, job_done, p->env.loop), -RP_ENOTSUP);
	p->env.trial = false;
	tree_put(&p->tree, "proc/some", "text\n");
	assert_int_equal(w->read_file(p->i, "/proc/some", buf, sizeof buf), 4);
	assert_string_equal(buf, "text");
	assert_true(w->read_file(p->i, "/proc/none", buf, sizeof buf) < 0);
	assert_int_equal(w->write_file(p->i, "/proc/some", "new"), 0);
	assert_true(w->write_file(p->i, "/proc/none", "new") < 0);
	w->report(p->i, p->ctr->handle, RP_APPLY_DONE, "");
	assert_int_equal(p->n_reported, 1);
	assert_int_equal(p->reported, RP_APPLY_DONE);
	assert_int_equal(w->cgroup_dir(p->i, p->ctr->handle, "", buf, sizeof buf), -RP_ENOENT);
	tree_put(&p->tree, "sys/fs/cgroup/pods/c1/x", "1");
	assert_int_equal(w->cgroup_dir(p->i, p->ctr->handle, "", buf, sizeof buf), 0);
	assert_non_null(strstr(buf, "sys/fs/cgroup/pods/c1"));
}

/* Checks that an instance freed during a job is destroyed when the job is done. */
static void test_closing(void **state)
{
	struct place *p = *state;
	assert_int_equal(host_work_service.submit(p->i, job, job_done, p->env.loop), 0);
	assert_int_equal(host_work_service.submit(p->i, job, NULL, NULL), 0);
	p->i = instance_free(p->i);
	assert_int_equal(script.destroyed, 0);
	p->env.worker = worker_free(p->env.worker);
	assert_int_equal(script.destroyed, 1);
	assert_int_equal(script.jobs_done, 1);
}

static void wants_more(void *arg, int32_t result)
{
	struct instance *i = arg;
	script.jobs_done++;
	(void)host_timer_service.arm(i, 9, 1);
	assert_int_equal(host_work_service.submit(i, job, NULL, NULL), -RP_ENOTSUP);
}

static void stop_loop(void *arg)
{
	loop_stop(arg);
}

/* Checks that a timer that the module arms in its last done() is freed with the instance. */
static void test_closing_with_a_timer(void **state)
{
	struct place *p = *state;
	assert_int_equal(host_work_service.submit(p->i, job, wants_more, p->i), 0);
	p->i = instance_free(p->i);
	p->env.worker = worker_free(p->env.worker);
	assert_int_equal(script.jobs_done, 1);
	assert_int_equal(script.destroyed, 1);
	struct loop_timer *end = loop_timer_new(p->env.loop, stop_loop, p->env.loop);
	assert_int_equal(loop_timer_arm(end, 20), 0);
	assert_int_equal(loop_run(p->env.loop), 0);
	assert_null(loop_timer_free(end));
}

/* Records the last call of an active policy. A job that it submits here is still run. */
static void m_policy_stop(struct rp_instance *i)
{
	assert_ptr_equal(i, &the_instance);
	assert_int_equal(script.destroyed, 0);
	script.stopped++;
	assert_int_equal(host_work_service.submit(script.submitter, job, NULL, NULL), 0);
}

static void test_stop(void **state)
{
	struct place *p = *state;
	struct err err = ERR_INIT;
	struct rp_plan *plan;
	policy.stop = m_policy_stop;
	assert_int_equal(instance_prepare(p->i, NULL, &plan, &err), 0);
	instance_commit(p->i, plan);
	script.submitter = p->i;
	p->i = instance_free(p->i);
	assert_int_equal(script.stopped, 1);
	assert_int_equal(script.destroyed, 0);
	p->env.worker = worker_free(p->env.worker);
	assert_int_equal(script.destroyed, 1);
	policy.stop = NULL;
}

#define T(f) cmocka_unit_test_setup_teardown(test_##f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(calls),
		T(controller_calls),
		T(errors),
		T(without_optional_parts),
		T(not_to_be_used),
		T(host),
		T(getters),
		T(strangers),
		T(ranges),
		T(sets),
		T(texts),
		T(data),
		T(trail),
		T(timers),
		T(work),
		T(closing),
		T(closing_with_a_timer),
		T(stop),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
