/* SPDX-License-Identifier: Apache-2.0 */
/* nri-rp.host.speedselect/1: whose it is, and what a trial may do. The rest is core/lib/topo's
 * (t_topo_sst.c). */
#include "test/preload/isst.c"

#include "core/nri-rpd/host/service/services.h"
#include "test/unit/t_topo_tree.h"

static const struct rp_host_speedselect *const s = &host_speedselect_service;

struct place {
	struct host_env env;
	struct instance one, other;
};

static void begin(struct place *p, const struct tree *tree)
{
	*p = (struct place){.env = {.topo = tree_read(tree), .root = &tree->root}};
	p->one.env = p->other.env = &p->env;
	p->one.thread = p->other.thread = pthread_self();
}

static void test_without(void **state)
{
	struct place p;
	struct rp_sst_punit info = {.size = sizeof info};
	const struct rp_sst_at at = {0, 0, 0};
	const struct rp_clos value = {0};
	uint32_t clos;
	begin(&p, *state);
	assert_int_equal(s->n_punits(&p.one), 0);
	assert_non_null(strstr(s->why(&p.one), "isst_interface"));
	assert_int_equal(s->punit(&p.one, 0, &info), -RP_ENOENT);
	assert_int_equal(s->clos_of(&p.one, 0), RP_CLOS_UNKNOWN);
	assert_int_equal(s->punit_now(&p.one, &at, &info), -RP_ENOTSUP);
	assert_int_equal(s->clos_now(&p.one, &at, &clos), -RP_ENOTSUP);
	assert_int_equal(s->set_cp(&p.one, &at, 1, RP_SST_ORDERED), -RP_ENOTSUP);
	assert_int_equal(s->set_tf(&p.one, &at, 1), -RP_ENOTSUP);
	assert_int_equal(s->set_clos(&p.one, &at, 0, &value), -RP_ENOTSUP);
	assert_int_equal(s->associate(&p.one, &at, 0), -RP_ENOTSUP);
	topo_free(p.env.topo);
}

/* Checks that the last instance that claimed it is the manager. */
static void test_manager(void **state)
{
	struct place p;
	begin(&p, *state);
	assert_int_equal(s->manage(&p.one, 0), -RP_EBUSY);
	assert_int_equal(s->manage(&p.one, 1), 0);
	assert_int_equal(s->manage(&p.other, 1), 0);
	assert_int_equal(s->manage(&p.one, 0), -RP_EBUSY);
	assert_int_equal(s->manage(&p.other, 0), 0);
	assert_null(p.env.sst_manager);
	topo_free(p.env.topo);
}

static void test_trial(void **state)
{
	const struct tree *tree = *state;
	struct place p;
	struct rp_sst_punit info = {.size = offsetof(struct rp_sst_punit, priority)};
	const struct rp_sst_at at = {0, 0, 2};
	const struct rp_clos value = {.max_mhz = 3000};
	uint32_t clos = 7;
	tree_put(tree, ISST_PATH, "api 2\nthreads 2\npunit 0 0 0 7 7 0 2\npunit 1 0 8 15 7 0 2\n");
	begin(&p, tree);
	assert_int_equal(s->n_punits(&p.one), 2);
	assert_string_equal(s->why(&p.one), "");
	assert_int_equal(s->associate(&p.one, &at, 3), 0);
	assert_int_equal(s->clos_now(&p.one, &at, &clos), 0);
	assert_int_equal(clos, 3);
	assert_int_equal(s->set_tf(&p.one, &at, 1), 0);
	p.env.trial = true;
	assert_int_equal(s->associate(&p.one, &at, 0), -RP_ENOTSUP);
	assert_int_equal(s->set_tf(&p.one, &at, 0), -RP_ENOTSUP);
	assert_int_equal(s->set_cp(&p.one, &at, 1, RP_SST_ORDERED), -RP_ENOTSUP);
	assert_int_equal(s->set_clos(&p.one, &at, 0, &value), -RP_ENOTSUP);
	assert_int_equal(s->clos_now(&p.one, &at, &clos), 0);
	assert_int_equal(clos, 3);
	assert_int_equal(s->punit_now(&p.one, &at, &info), 0);
	assert_int_equal(info.enabled, RP_SST_TF);
	topo_free(p.env.topo);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		tree_test(test_without),
		tree_test(test_manager),
		tree_test(test_trial),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
