/* SPDX-License-Identifier: Apache-2.0 */
/* Machine settings that a module can no longer restore, because its create() failed or because
 * it ended without a stop. */
#include "core/nri-rpd/host/service/services.h"
#include "core/lib/util/log.h"
#include "test/unit/t_topo_tree.h"
#include "core/lib/util/worker.h"
#include "core/nri-rpd/host/service/settings.h"

#define SET_FILE "/sys/devices/system/cpu/cpu0/cpufreq/scaling_max_freq"

static struct {
	int32_t create;
	bool submits;
	unsigned destroyed;
} script;

static struct rp_instance {
	int unused;
} the_instance;

static int32_t do_nothing(void *arg)
{
	return 0;
}

static int32_t m_create(const struct rp_host *host, struct rp_instance **ret)
{
	const struct rp_host_settings *settings = host->service(host->ctx, RP_HOST_SETTINGS_1);
	const struct rp_host_work *work = host->service(host->ctx, RP_HOST_WORK_1);
	assert_int_equal(settings->keep(host->ctx, SET_FILE, "2", "1"), 0);
	assert_int_equal(work->write_file(host->ctx, SET_FILE, "2"), 0);
	if (script.submits)
		assert_int_equal(work->submit(host->ctx, do_nothing, NULL, NULL), 0);
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
	return -RP_ENOTSUP;
}

static void m_plan(struct rp_instance *i, struct rp_plan *plan)
{
}

static int32_t m_start(struct rp_instance *i)
{
	return -RP_ENOTSUP;
}

static void m_stop(struct rp_instance *i)
{
}

static const void *m_service(struct rp_instance *i, const char *id)
{
	static const struct rp_controller controller = {.size = sizeof controller,
							.prepare = m_prepare,
							.commit = m_plan,
							.abort = m_plan,
							.start = m_start,
							.stop = m_stop};
	return strcmp(id, RP_CONTROLLER_1) == 0 ? &controller : NULL;
}

static const struct rp_module abi = {.size = sizeof abi,
				     .name = "inner",
				     .create = m_create,
				     .destroy = m_destroy,
				     .service = m_service};

struct place {
	struct tree tree;
	struct host_env env;
	struct module module;
};

static int setup(void **state)
{
	struct place *p = calloc(1, sizeof *p);
	assert_non_null(p);
	log_init("test");
	log_set_level(LOG_ERROR - 1);
	memset(&script, 0, sizeof script);
	tree_init(&p->tree);
	tree_put(&p->tree, SET_FILE, "1\n");
	p->env = (struct host_env){
		.loop = loop_new(), .cache = cache_new(UINT64_C(1) << 30), .root = &p->tree.root};
	p->module = (struct module){.name = "inner", .kinds = RP_KIND_CONTROLLER, .abi = &abi};
	*state = p;
	return 0;
}

static int teardown(void **state)
{
	struct place *p = *state;
	assert_null(p->env.settings);
	cache_free(p->env.cache);
	loop_free(p->env.loop);
	tree_fini(&p->tree);
	free(p);
	return 0;
}

/* Ends the worker, which does all submitted jobs first and accepts no more. */
static void rest(struct place *p)
{
	p->env.worker = worker_free(p->env.worker);
}

static void work(struct place *p)
{
	p->env.worker = worker_new(p->env.loop, "test");
	assert_non_null(p->env.worker);
}

static void is(struct place *p, const char *wanted)
{
	char text[8];
	assert_true(fs_read(p->env.root, SET_FILE, text, sizeof text) >= 0);
	assert_string_equal(text, wanted);
}

static void test_not_created(void **state)
{
	struct place *p = *state;
	struct err err = ERR_INIT;
	struct instance *i = NULL;
	work(p);
	script.create = -RP_EBUSY;
	assert_int_equal(instance_new(&p->env, &p->module, RP_KIND_CONTROLLER, &i, &err),
			 -RP_EBUSY);
	assert_null(i);
	rest(p);
	is(p, "1");
	assert_int_equal(script.destroyed, 0);
}

/* Checks that the instance ends after its job, and its setting is restored by the next worker. */
static void test_not_created_with_a_job(void **state)
{
	struct place *p = *state;
	struct err err = ERR_INIT;
	struct instance *i;
	work(p);
	script.create = -RP_EBUSY;
	script.submits = true;
	assert_int_equal(instance_new(&p->env, &p->module, RP_KIND_CONTROLLER, &i, &err),
			 -RP_EBUSY);
	assert_int_equal(worker_pending(p->env.worker), 1);
	rest(p);
	assert_int_equal(script.destroyed, 0);
	is(p, "2");
	work(p);
	settings_put_back(&p->env);
	rest(p);
	is(p, "1");
}

/* Checks an instance that ends with the daemon, whose worker accepts no more jobs. */
static void test_ended_with_the_worker(void **state)
{
	struct place *p = *state;
	struct err err = ERR_INIT;
	struct instance *i;
	work(p);
	script.submits = true;
	assert_int_equal(instance_new(&p->env, &p->module, RP_KIND_CONTROLLER, &i, &err), 0);
	instance_free(i);
	assert_int_equal(script.destroyed, 0);
	rest(p);
	assert_int_equal(script.destroyed, 1);
	is(p, "2");
	settings_close(&p->env);
	is(p, "1");
}

/* Checks that closing the settings does not restore a setting that an instance still claims. */
static void test_closed_under_an_instance(void **state)
{
	struct place *p = *state;
	struct err err = ERR_INIT;
	struct instance *i;
	work(p);
	assert_int_equal(instance_new(&p->env, &p->module, RP_KIND_CONTROLLER, &i, &err), 0);
	rest(p);
	settings_close(&p->env);
	is(p, "2");
	instance_free(i);
}

static void test_ended(void **state)
{
	struct place *p = *state;
	struct err err = ERR_INIT;
	struct instance *i;
	work(p);
	assert_int_equal(instance_new(&p->env, &p->module, RP_KIND_CONTROLLER, &i, &err), 0);
	instance_free(i);
	assert_int_equal(script.destroyed, 1);
	rest(p);
	is(p, "1");
}

#define T(f) cmocka_unit_test_setup_teardown(test_##f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(not_created),		  T(not_created_with_a_job),   T(ended),
		T(ended_with_the_worker), T(closed_under_an_instance),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
