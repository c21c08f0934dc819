/* SPDX-License-Identifier: Apache-2.0 */
/* Containers that a controller has given something: until it is taken back, and over restarts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "modules/lib/private/ctl_table.h"
#include "test/unit/fake_host.h"

static struct rp_ctr_info info(rp_ctr ctr, const char *id)
{
	return (struct rp_ctr_info){.size = sizeof(struct rp_ctr_info), .ctr = ctr, .id = id};
}

static uint32_t n_saved(struct ctl_table *t)
{
	const void *data;
	uint32_t size;
	ctl_table_save(t, &data, &size);
	return size / (uint32_t)sizeof(uint64_t) - 1;
}

/* Another daemon's table, from what this one would save. */
static struct ctl_table next_of(struct ctl_table *t)
{
	struct ctl_table next = {0};
	const void *data;
	uint32_t size;
	ctl_table_save(t, &data, &size);
	assert_int_equal(ctl_table_load(&next, data, size), 0);
	return next;
}

static void test_given_and_taken(void **state)
{
	struct ctl_table t = {0};
	struct rp_ctr_info a = info(1, "a");
	assert_null(ctl_table_know(&t, &a));
	assert_int_equal(n_saved(&t), 0);
	struct ctl_entry *e = ctl_table_give(&t, &a, "gold");
	assert_string_equal(e->class, "gold");
	assert_true(e->given);
	assert_ptr_equal(ctl_table_know(&t, &a), e);
	assert_int_equal(n_saved(&t), 1);
	/* a removed class remains recorded until the removal is applied */
	uint32_t first = ctl_table_give(&t, &a, NULL)->serial;
	assert_string_equal(e->class, "");
	assert_true(e->given);
	uint32_t second = ctl_table_give(&t, &a, "silver")->serial;
	ctl_table_taken(&t, 1, first); /* too late */
	assert_true(e->given);
	assert_int_equal(n_saved(&t), 1);
	ctl_table_taken(&t, 1, second);
	assert_false(e->given);
	assert_int_equal(n_saved(&t), 0);
	ctl_table_taken(&t, 2, 1); /* no such container */
	ctl_table_del(&t, 2);
	/* a container that never had a class needs no removal */
	struct rp_ctr_info b = info(2, "b");
	assert_false(ctl_table_give(&t, &b, NULL)->given);
	assert_int_equal(n_saved(&t), 0);
	ctl_table_fini(&t);
}

static void test_long_class(void **state)
{
	struct ctl_table t = {0};
	char class[2 * CTL_CLASS_MAX];
	struct rp_ctr_info a = info(1, "a");
	memset(class, 'x', sizeof class - 1);
	class[sizeof class - 1] = '\0';
	assert_int_equal(strlen(ctl_table_give(&t, &a, class)->class), CTL_CLASS_MAX - 1);
	assert_string_equal(ctl_table_give(&t, &a, "y")->class, "y");
	ctl_table_fini(&t);
}

static void test_record(void **state)
{
	struct ctl_table t = {0};
	struct rp_ctr_info a = info(1, "a"), b = info(2, "b"), c = info(3, "c");
	assert_non_null(ctl_table_give(&t, &a, "gold"));
	assert_non_null(ctl_table_give(&t, &b, "gold"));
	assert_non_null(ctl_table_give(&t, &b, "gold")); /* once is enough */
	assert_non_null(ctl_table_give(&t, &c, "gold"));
	ctl_table_del(&t, 3);
	assert_int_equal(n_saved(&t), 2);
	struct ctl_table next = next_of(&t);
	struct rp_ctr_info same = info(77, "a"), other = info(78, "c");
	assert_null(ctl_table_find(&next, 77));
	const struct ctl_entry *e = ctl_table_know(&next, &same); /* by its id */
	assert_non_null(e);
	assert_true(e->given && e->stale && !e->class[0]);
	assert_null(ctl_table_know(&next, &other));
	/* b has not come again */
	assert_int_equal(n_saved(&next), 2);
	ctl_table_prune(&next);
	assert_int_equal(n_saved(&next), 1);
	struct ctl_table last = next_of(&next);
	assert_non_null(ctl_table_know(&last, &same));
	assert_null(ctl_table_know(&last, &b));
	ctl_table_fini(&t);
	ctl_table_fini(&next);
	ctl_table_fini(&last);
}

static void test_foreign_bytes(void **state)
{
	struct ctl_table t = {0};
	const void *data;
	uint32_t size;
	ctl_table_save(&t, &data, &size);
	assert_int_equal(size, sizeof(uint64_t));
	uint64_t big[2] = {0, 0};
	memcpy(big, data, size);
	assert_int_equal(ctl_table_load(&t, big, 0), -RP_EINVAL);
	assert_int_equal(ctl_table_load(&t, big, 7), -RP_EINVAL);
	assert_int_equal(ctl_table_load(&t, big, 12), -RP_EINVAL);
	assert_int_equal(ctl_table_load(&t, big, sizeof big), 0);
	big[0]++;
	assert_int_equal(ctl_table_load(&t, big, sizeof big), -RP_EINVAL);
	uint64_t *much = calloc(CTL_RECORD_MAX + 2, sizeof *much);
	assert_non_null(much);
	memcpy(much, data, sizeof *much);
	assert_int_equal(ctl_table_load(&t, much, (uint32_t)((CTL_RECORD_MAX + 2) * sizeof *much)),
			 -RP_EINVAL);
	assert_int_equal(ctl_table_load(&t, much, (uint32_t)((CTL_RECORD_MAX + 1) * sizeof *much)),
			 0);
	free(much);
	ctl_table_fini(&t);
}

/* Checks that containers beyond the module's state limit are not recorded, and that removed ones
 * free capacity. */
static void test_many(void **state)
{
	struct ctl_table t = {0};
	char id[32];
	const uint32_t n = CTL_RECORD_MAX + 10;
	for (uint32_t i = 1; i <= n; i++) {
		(void)snprintf(id, sizeof id, "c%u", i);
		struct rp_ctr_info in = info(i, id);
		assert_non_null(ctl_table_give(&t, &in, "gold"));
	}
	assert_int_equal(t.entries.n, n);
	assert_int_equal(n_saved(&t), CTL_RECORD_MAX);
	const void *data;
	uint32_t size;
	ctl_table_save(&t, &data, &size);
	assert_true(size <= RP_STATE_MAX);
	for (uint32_t i = 1; i <= n; i++)
		ctl_table_del(&t, i);
	assert_int_equal(t.entries.n, 0);
	assert_int_equal(n_saved(&t), 0);
	ctl_table_fini(&t);
}

/* Checks that entries of containers which the host no longer tracks are removed. */
static void test_sweep(void **state)
{
	struct fake_host *f = fake_host_new(&(struct fake_machine){.cores = 2});
	struct modhost h;
	struct ctl_table t = {0};
	assert_int_equal(modhost_init(&h, fake_rp_host(f), MODHOST_CACHE), 0);
	static const char *const names[] = {"a", "b", "c"};
	rp_ctr list[3];
	for (unsigned i = 0; i < 3; i++) {
		struct rp_ctr_info in = {.size = sizeof in};
		list[i] = fake_ctr(f,
				   &(struct fake_ctr){.name = names[i], .state = RP_STATE_RUNNING});
		assert_int_equal(h.cache->get_ctr(h.ctx, list[i], &in), 0);
		assert_non_null(ctl_table_give(&t, &in, "gold"));
	}
	fake_forget(f, list[1]);
	ctl_table_mark_stale(&t);
	ctl_table_sweep(&t, &h);
	assert_int_equal(t.entries.n, 2);
	assert_int_equal(n_saved(&t), 2);
	assert_null(ctl_table_find(&t, list[1]));
	assert_true(ctl_table_find(&t, list[0])->stale && ctl_table_find(&t, list[2])->stale);
	ctl_table_fini(&t);
	fake_host_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_given_and_taken),
		cmocka_unit_test(test_long_class),
		cmocka_unit_test(test_record),
		cmocka_unit_test(test_foreign_bytes),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_sweep),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
