/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "test/unit/fake_host.h"

extern const struct rp_module rp_module_1;

static const struct fake_machine n4c16 = {.packages = 2, .nodes = 2, .cores = 2, .threads = 2};

static void test_leaves_alone(void **state)
{
	(void)state;
	struct fake_host *f = fake_host_new(&n4c16);
	assert_int_equal(fake_policy_open(f, &rp_module_1), 0);
	assert_int_equal(fake_configure(f, "{reservedResources: {cpu: 2}}"), 0);
	assert_int_equal(fake_prepare_only(f, "{}"), 0);
	rp_ctr had = fake_ctr(f, &(struct fake_ctr){.name = "had"});
	fake_decide(f, had, "3-4", "3", "1");
	rp_ctr c = fake_ctr(
		f, &(struct fake_ctr){.name = "c", .qos = RP_QOS_GUARANTEED, .cpu_request = 2000});
	assert_int_equal(fake_allocate(f, c), 0);
	assert_int_equal(fake_update(f, c), 0);
	assert_int_equal(fake_try(f, c), 0);
	assert_int_equal(fake_sync(f), 0);
	assert_int_equal(fake_restart(f), 0);
	assert_int_equal(fake_n_changed(f), 0);
	assert_string_equal(fake_cpus(f, c), "");
	assert_string_equal(fake_cpus(f, had), "3-4");
	assert_string_equal(fake_mems(f, had), "1");
	assert_int_equal(fake_set_offline(f, "3"), 0);
	assert_int_equal(fake_release(f, c), 0);
	assert_string_equal(fake_zones(f), "");
	assert_string_equal(fake_metrics(f), "");
	fake_host_free(f);
}

/* It has to work on a host that offers nothing, and there is nothing that could fail. */
static const void *no_service(void *ctx, const char *id)
{
	(void)ctx;
	(void)id;
	return NULL;
}

static void test_needs_nothing(void **state)
{
	(void)state;
	struct rp_instance *inst;
	const struct rp_host host = {.size = sizeof host, .service = no_service};
	assert_int_equal(rp_module_1.create(&host, &inst), 0);
	assert_non_null(rp_module_1.service(inst, RP_POLICY_1));
	rp_module_1.destroy(inst);
}

static void test_schema(void **state)
{
	(void)state;
	const struct rp_schema *s = rp_module_1.service(NULL, RP_SCHEMA_1);
	assert_non_null(s);
	assert_true(s->flags & RP_SCHEMA_FOLD_CASE);
	for (uint32_t i = 0; i < s->n_keys; i++)
		assert_true(s->keys[i].path[0] && s->keys[i].doc[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_leaves_alone),
		cmocka_unit_test(test_needs_nothing),
		cmocka_unit_test(test_schema),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
