/* SPDX-License-Identifier: Apache-2.0 */
/* Tests that a saved record with the number of a pool that does not exist affects no pool. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "modules/dynamic-pools/dynamic-pools.h"
#include "test/unit/fake_host.h"

#define FOREIGN 65u /* a shift by 65 bits selects pool 1 */

static struct rp_plan the_plan;
static unsigned n_staged;

/* The parts of the policy that members.c calls. */
struct pool_choice dynpools_choose(struct rp_instance *inst, const struct rp_ctr_info *info)
{
	return (struct pool_choice){.pool = POOL_SHARED, .why = "by the test"};
}

bool size_fits(const struct rp_plan *p)
{
	return true;
}

int32_t dynpools_stage(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
		       uint32_t pool, const char *degraded)
{
	assert_in_range(pool, 0, inst->plan->n - 1);
	n_staged++;
	return 0;
}

static int32_t plan_of_test(struct rp_instance *inst, rp_cfg section, struct rp_plan **ret)
{
	*ret = &the_plan;
	return 0;
}

static int32_t look_of_test(struct rp_instance *inst, struct rp_plan **ret)
{
	return plan_of_test(inst, NULL, ret);
}

static struct rp_plan *plan_stays(struct rp_plan *p)
{
	return NULL;
}

static int32_t sync_of_test(struct rp_instance *inst, rp_txn txn)
{
	return 0;
}

/* Places a container. The second one gets the record of a pool that no plan has. */
static int32_t place(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info)
{
	const struct {
		uint32_t version, pool;
		int64_t mcpu;
		uint32_t overflows, pad;
	} foreign = {1, FOREIGN, 500, 0, 0};
	if (info->ctr == 2)
		return ctr_set_record(&inst->h, txn, info->ctr, &foreign, sizeof foreign);
	return members_join(inst, txn, info) == 1 ? 0 : -RP_ENOSPC;
}

/* Stages all containers, each by itself and by the mask of all pools. */
static int32_t rebalance(struct rp_instance *inst, rp_txn txn, uint64_t cookie)
{
	for (rp_ctr ctr = 1; ctr <= 2; ctr++) {
		const struct rp_ctr_info info = {.ctr = ctr};
		assert_int_equal(members_stage_one(inst, txn, &info), 0);
	}
	return members_stage(inst, txn, UINT64_MAX, 0);
}

static const struct life_ops ops = {.plan = plan_of_test,
				    .look = look_of_test,
				    .plan_free = plan_stays,
				    .sync = sync_of_test,
				    .place = place,
				    .release = place,
				    .rebalance = rebalance};

LIFE_MODULE("members", "1.0", ops, .summary = "members of pools", .licence = "Apache-2.0");

static void test_foreign_pool(void **state)
{
	const struct fake_machine two = {.packages = 1, .cores = 2};
	const struct rp_event event = {.size = sizeof event, .type = RP_EVENT_REBALANCE};
	struct fake_host *f = fake_host_new(&two);
	assert_int_equal(fake_policy_open(f, &rp_module_1), 0);
	assert_int_equal(fake_configure(f, "{}"), 0);
	the_plan.n = N_BUILT_IN;
	for (unsigned i = 0; i < 2; i++) {
		const struct fake_ctr ctr = {.name = i ? "foreign" : "own", .cpu_request = 500};
		assert_int_equal(fake_allocate(f, fake_ctr(f, &ctr)), 0);
	}
	assert_int_equal(fake_event(f, &event), 0);
	assert_int_equal(n_staged, 2);
	fake_host_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_foreign_pool)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
