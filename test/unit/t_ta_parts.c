/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the topology-aware policy: records, levels, warnings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "modules/topology-aware/stage.h"
#include "modules/topology-aware/topology-aware.h"
#include "test/unit/fake_host.h"

extern const struct rp_module rp_module_1;

#define PLAIN "{reservedResources: {cpu: 1}, preferIsolatedCPUs: false}"

static struct fake_host *start(void)
{
	struct fake_host *f = fake_host_new(&(struct fake_machine){.packages = 2, .cores = 4});
	assert_int_equal(fake_policy_open(f, &rp_module_1), 0);
	assert_int_equal(fake_configure(f, PLAIN), 0);
	return f;
}

/* Checks that the record of a container is equal after it has been saved and read again. */
static void test_records(void **state)
{
	struct fake_host *f = start();
	struct rp_instance *inst = fake_instance(f);
	rp_ctr c = fake_ctr(
		f, &(struct fake_ctr){
			   .name = "a",
			   .qos = RP_QOS_GUARANTEED,
			   .cpu_request = 1500,
			   .annotations = "test.topologyhints.resource-policy.nri.io={x: {NUMAs: "
					  "1}, y: {CPUs: \"4-7\", Sockets: 1}}"});
	assert_int_equal(fake_allocate(f, c), 0);
	const struct grant *g = ledger_find(inst, c);
	struct record rec;
	assert_int_equal(record_read(inst, c, &rec), 0);
	assert_int_equal(rec.pool, g->pool);
	assert_int_equal(rec.kept.portion, 500);
	assert_true(rp_ids_equal(rp_ids_of(&rec.exclusive), cpus_ids(g->exclusive)));
	assert_int_equal(rec.hints->n, 2);
	assert_string_equal(rec.hints->first->provider, "x");
	assert_int_equal(rec.hints->first->next->sockets->n, 1);
	hints_unref(rec.hints);
	struct record_bytes bytes;
	record_make(inst, g, &bytes);
	assert_true(record_is_kept(inst, c, &bytes));
	fake_host_free(f);
}

static void test_levels(void **state)
{
	struct fake_host *f = start();
	const struct rp_plan *p = fake_instance(f)->plan;
	assert_int_equal(p->n_pools, 3);
	assert_int_equal(tree_level(p, RP_LEVEL_NODE), RP_LEVEL_PACKAGE);
	assert_int_equal(tree_level(p, RP_LEVEL_SYSTEM), RP_LEVEL_SYSTEM);
	assert_int_equal(tree_find(p, "socket #1"), 1);
	assert_int_equal(tree_find(p, "socket #9"), NO_POOL);
	assert_int_equal(level_parse("L3CACHE"), RP_LEVEL_L3);
	assert_int_equal(level_parse("floor"), 0);
	fake_host_free(f);
}

/* A warning about the section is logged once, not again after each change of the machine. */
static void test_warned_once(void **state)
{
	struct fake_host *f = start();
	assert_int_equal(fake_configure(f, "{reservedResources: {cpu: 1}, "
					   "reservedPoolNamespaces: [\"[\"]}"),
			 0);
	assert_non_null(strstr(fake_log(f), "is not a valid pattern"));
	fake_log_clear(f);
	assert_int_equal(fake_set_offline(f, "7"), 0);
	assert_null(strstr(fake_log(f), "is not a valid pattern"));
	fake_host_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_records),
		cmocka_unit_test(test_levels),
		cmocka_unit_test(test_warned_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
