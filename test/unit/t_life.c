/* SPDX-License-Identifier: Apache-2.0 */
/* Events that the policy library forwards: posted events and a change of runtime. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <nri-rp/lib/life.h>
#include "test/unit/fake_host.h"

struct rp_plan {
	int unused;
};

struct rp_instance {
	LIFE;
};

static struct {
	unsigned begun, posted, runtime, done;
	uint64_t cookie;
	char data[16];
	int32_t result, look_result;
} seen;

static int32_t life_plan(struct rp_instance *inst, rp_cfg section, struct rp_plan **ret)
{
	*ret = calloc(1, sizeof **ret);
	return *ret ? 0 : modhost_no_memory(&inst->h);
}

static int32_t life_look(struct rp_instance *inst, struct rp_plan **ret)
{
	return seen.look_result ? seen.look_result : life_plan(inst, NULL, ret);
}

static struct rp_plan *life_plan_free(struct rp_plan *p)
{
	free(p);
	return NULL;
}

static void life_begin(struct rp_instance *inst)
{
	seen.begun++;
}

static int32_t life_sync(struct rp_instance *inst, rp_txn txn)
{
	return 0;
}

static int32_t life_place(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info)
{
	return 0;
}

static int32_t life_posted(struct rp_instance *inst, rp_txn txn, const struct rp_event *ev)
{
	seen.posted++;
	seen.cookie = ev->cookie;
	memcpy(seen.data, ev->data, ev->data_size);
	return seen.result;
}

static int32_t life_runtime(struct rp_instance *inst, rp_txn txn)
{
	seen.runtime++;
	return 0;
}

static int32_t life_rolled_back(struct rp_instance *inst)
{
	return 0;
}

static void life_done(struct rp_instance *inst)
{
	seen.done++;
}

static const struct life_ops ops = {
	.plan = life_plan,
	.look = life_look,
	.plan_free = life_plan_free,
	.begin = life_begin,
	.sync = life_sync,
	.place = life_place,
	.release = life_place,
	.posted = life_posted,
	.runtime = life_runtime,
	.rolled_back = life_rolled_back,
	.done = life_done,
};

static const struct rp_policy *policy_of(const struct life_ops *o)
{
	return life_service(o, RP_POLICY_1);
}

static void test_events(void **state)
{
	struct rp_instance *inst = NULL;
	struct rp_plan *plan = NULL;
	struct fake_host *f = fake_host_new(&(struct fake_machine){.packages = 1, .cores = 2});
	struct rp_event ev = {.size = sizeof ev,
			      .type = RP_EVENT_POSTED,
			      .cookie = 7,
			      .data = "late",
			      .data_size = 5};
	const struct rp_policy *p = policy_of(&ops);
	assert_non_null(f);
	assert_int_equal(life_create(fake_rp_host(f), sizeof(struct rp_instance), &ops, &inst), 0);
	assert_int_equal(p->event(inst, 1, &ev), 0); /* no plan yet: nothing was posted for one */
	assert_int_equal(seen.posted, 0);
	assert_int_equal(p->prepare(inst, NULL, &plan), 0);
	p->commit(inst, plan);
	memset(&seen, 0, sizeof seen);
	assert_int_equal(p->event(inst, 1, &ev), 0);
	assert_int_equal(seen.begun, 1);
	assert_int_equal(seen.posted, 1);
	assert_int_equal(seen.cookie, 7);
	assert_string_equal(seen.data, "late");
	assert_int_equal(seen.done, 1);
	seen.result = -RP_ENOSPC; /* the transaction is dropped then */
	assert_int_equal(p->event(inst, 1, &ev), -RP_ENOSPC);
	assert_int_equal(seen.done, 1);
	ev = (struct rp_event){.size = sizeof ev, .type = RP_EVENT_RUNTIME};
	assert_int_equal(p->event(inst, 1, &ev), 0);
	assert_int_equal(seen.runtime, 1);
	assert_int_equal(seen.done, 2);
	ev.type = RP_EVENT_STARTED; /* the policy has no handler of starts */
	assert_int_equal(p->event(inst, 1, &ev), RP_IGNORED);
	/* A change of the machine without a plan begins, so that the undo affects nothing else. */
	seen.begun = 0;
	seen.look_result = -RP_ENOMEM;
	ev.type = RP_EVENT_TOPOLOGY;
	assert_int_equal(p->event(inst, 2, &ev), -RP_ENOMEM);
	assert_int_equal(seen.begun, 1);
	life_destroy(inst);
	fake_host_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_events)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
