/* SPDX-License-Identifier: Apache-2.0 */
/* Tests that a dropped transaction of the qos policy leaves the timer of the ramp-up armed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "modules/qos/qos.h"
#include "test/unit/fake_impl.h"

#define RAMP_S 10
#define RETRY_MS 1000

extern const struct rp_module rp_module_1;

static time_t now_s = 1000000;

/* The clock of the policy, which only the test advances. */
__attribute__((visibility("default"))) int clock_gettime(clockid_t id, struct timespec *ret)
{
	*ret = (struct timespec){.tv_sec = now_s};
	return 0;
}

static const struct rp_policy *policy_of(struct fake_host *f)
{
	return fake_module_service(f, RP_POLICY_1);
}

/* The test stores no data of pods. */
static int32_t ignore_pod_private(void *ctx, rp_txn txn, rp_pod pod, const void *data,
				  uint32_t size)
{
	return 0;
}

/* Drops the transaction of a callback that succeeded. */
static void drop(struct fake_host *f, int32_t r)
{
	assert_int_equal(r, 0);
	assert_int_equal(fake_end(f, false), 0);
	assert_int_equal(policy_of(f)->rolled_back(fake_instance(f)), 0);
}

static void test_ramp_timer(void **state)
{
	const struct fake_machine n4c16 = {.packages = 2, .nodes = 2, .cores = 2, .threads = 2};
	const struct rp_event due = {
		.size = sizeof due, .type = RP_EVENT_TIMER, .cookie = RAMP_TIMER};
	struct fake_host *f = fake_host_new(&n4c16);
	assert_int_equal(fake_policy_open(f, &rp_module_1), 0);
	struct rp_host_cache cache = *fake_instance(f)->h.cache;
	cache.set_pod_private = ignore_pod_private;
	fake_instance(f)->h.cache = &cache;
	assert_int_equal(fake_configure(f, "{reservedCPUs: \"0\", enableReclaim: true, "
					   "rampUpSeconds: 10}"),
			 0);
	rp_ctr c = fake_ctr(
		f, &(struct fake_ctr){.name = "a", .qos = RP_QOS_GUARANTEED, .cpu_request = 2000});
	assert_int_equal(fake_allocate(f, c), 0);
	assert_string_equal(fake_cpus(f, c), "1-15");
	assert_int_equal(fake_timer(f, RAMP_TIMER), 1000 * RAMP_S);

	fake_begin(f);
	int32_t r = policy_of(f)->release(fake_instance(f), f->txn, c);
	assert_int_equal(fake_timer(f, RAMP_TIMER), -1);
	drop(f, r);
	assert_int_equal(fake_timer(f, RAMP_TIMER), 1000 * RAMP_S);

	now_s += RAMP_S;
	fake_begin(f);
	drop(f, policy_of(f)->event(fake_instance(f), f->txn, &due));
	assert_int_equal(fake_timer(f, RAMP_TIMER), RETRY_MS);
	assert_string_equal(fake_cpus(f, c), "1-15");

	assert_int_equal(fake_event(f, &due), 0);
	assert_int_equal(rp_ids_count(fake_cpu_ids(f, c)), 2);
	fake_host_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_ramp_timer)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
