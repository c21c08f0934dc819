/* SPDX-License-Identifier: Apache-2.0 */
/* Tests that a pre-start call of resource plugins is refused when memory for its texts is short. */
#include "test/unit/t_oom_arena.h"

#include "core/nri-rpd/pipeline/wait/plugin_question.c"
#include "test/unit/t_oom.h"

static struct pipeline the_pipeline;

static int work(void *arg)
{
	Grants__Grant grant = GRANTS__GRANT__INIT, *list[] = {&grant};
	Grants__Grants has = GRANTS__GRANTS__INIT;
	struct inquiry q = {.ctr = "c", .arena = arena_new(0, ARENA_MAX)};
	grant.resource = (char *)(uintptr_t) "example.com/nic";
	grant.container = (char *)(uintptr_t) "c";
	has.grants = list;
	has.n_grants = 1;
	int r = q.arena ? find_pre_start(&the_pipeline, &q, &has, "c") : -ENOMEM;
	OOM_CHECK(r == 0 || r == -ENOMEM);
	if (!r) {
		OOM_CHECK(q.n_wanted == 1);
		OOM_CHECK(q.wanted->ctr && str_eq(q.wanted->ctr, "c"));
		OOM_CHECK(q.wanted->resource && str_eq(q.wanted->resource, "example.com/nic"));
	}
	arena_free(q.arena);
	return r;
}

static void test_memory_may_end_anywhere(void **state)
{
	struct plugins *plugins = &the_pipeline.wait.plugins;
	plugins->list[plugins->n++] =
		(struct plugin_desc){.resource = "example.com/nic", .pre_start = true};
	oom_each(work, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_memory_may_end_anywhere)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
