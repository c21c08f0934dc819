/* SPDX-License-Identifier: Apache-2.0 */
/* Tests that a saved record with the number of a pool that does not exist affects no pool. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <nri-rp/lib/life.h>
#include "modules/lib/private/members.h"
#include "test/unit/fake_host.h"

#define N_POOLS 2u
#define FOREIGN 65u /* a shift by 65 bits selects pool 1 */

struct rp_plan {
	uint32_t n; /* pools of the plan */
	struct pools_pool pools[FOREIGN + 1];
	unsigned n_staged;
};

struct rp_instance {
	LIFE;
};

static struct rp_plan the_plan;
static uint32_t chosen;

static struct pools_pool *members_pools(struct rp_instance *inst, uint32_t *ret_n)
{
	*ret_n = inst->plan->n;
	return inst->plan->pools;
}

static struct members_choice members_choose(struct rp_instance *inst,
					    const struct rp_ctr_info *info)
{
	return (struct members_choice){.pool = chosen, .why = "by the test"};
}

static bool members_fit(struct rp_instance *inst)
{
	return true;
}

static int32_t members_count_staged(struct rp_instance *inst, rp_txn txn,
				    const struct rp_ctr_info *info, uint32_t pool,
				    const char *degraded)
{
	assert_in_range(pool, 0, inst->plan->n - 1);
	inst->plan->n_staged++;
	return 0;
}

static const struct members members = {.pools = members_pools,
				       .choose = members_choose,
				       .fits = members_fit,
				       .stage = members_count_staged};

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

static int32_t place(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info)
{
	return members_join(inst, &members, txn, info) == 1 ? 0 : -RP_ENOSPC;
}

/* Stages all containers, each by itself and by the mask of all pools. */
static int32_t rebalance(struct rp_instance *inst, rp_txn txn, uint64_t cookie)
{
	for (rp_ctr ctr = 1; ctr <= 2; ctr++) {
		const struct rp_ctr_info info = {.ctr = ctr};
		assert_int_equal(members_stage_one(inst, &members, txn, &info), 0);
	}
	return members_stage(inst, &members, txn, UINT64_MAX, 0);
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
	the_plan.n = FOREIGN + 1;
	for (chosen = 1; chosen <= FOREIGN; chosen += FOREIGN - 1) {
		const struct fake_ctr ctr = {.name = chosen == 1 ? "own" : "foreign",
					     .cpu_request = 500};
		assert_int_equal(fake_allocate(f, fake_ctr(f, &ctr)), 0);
	}
	the_plan.n = N_POOLS; /* the record of "foreign" names a pool of another plan now */
	assert_int_equal(fake_event(f, &event), 0);
	assert_int_equal(the_plan.n_staged, 2);
	fake_host_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_foreign_pool)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
