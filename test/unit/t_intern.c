/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/lib/util/intern.h"

static struct iset *get(struct intern *t, const char *text)
{
	struct rp_idset s;
	assert_int_equal(rp_idset_parse(&s, text, RP_CPUS_MAX), 0);
	return intern_get(t, rp_ids_of(&s));
}

static void test_equal_is_same(void **state)
{
	struct intern *t = intern_new();
	assert_int_equal(intern_count(t), 0);
	struct iset *a = get(t, "0-3,8"), *b = get(t, "8,3,2,1,0"), *c = get(t, "0-3");
	assert_ptr_equal(a, b);
	assert_ptr_not_equal(a, c);
	assert_int_equal(intern_count(t), 2);
	assert_int_equal(a->refs, 2);
	assert_int_equal(a->count, 5);
	assert_string_equal(a->text, "0-3,8");
	assert_int_equal(a->text_len, 5);
	assert_true(rp_ids_has(a->ids, 8));
	assert_ptr_equal(intern_ref(c), c);
	assert_int_equal(c->refs, 2);
	assert_null(intern_unref(t, c));
	assert_null(intern_unref(t, c));
	assert_int_equal(intern_count(t), 1);
	assert_null(intern_unref(t, a));
	assert_int_equal(intern_count(t), 1);
	assert_null(intern_unref(t, b));
	assert_int_equal(intern_count(t), 0);
	assert_null(intern_free(t));
}

static void test_empty_and_null(void **state)
{
	struct intern *t = intern_new();
	uint64_t zeroes[3] = {0, 0, 0};
	struct rp_ids padded = {zeroes, 3, 0};
	struct iset *none = intern_get(t, rp_ids_none());
	assert_non_null(none);
	assert_string_equal(none->text, "");
	assert_int_equal(none->count, 0);
	assert_int_equal(none->ids.nw, 0);
	struct iset *same = intern_get(t, padded);
	assert_ptr_equal(none, same);
	intern_unref(t, none);
	intern_unref(t, same);
	assert_null(intern_ref(NULL));
	assert_null(intern_unref(t, NULL));
	intern_free(t);
	assert_null(intern_free(NULL));
}

/* Checks that the table grows, and that every set is found and removed at any position in its
 * chain. */
static void test_many(void **state)
{
	enum { N = 2000 };
	static struct iset *sets[N];
	struct intern *t = intern_new();
	for (uint32_t i = 0; i < N; i++) {
		struct rp_idset s;
		rp_idset_clear(&s);
		rp_idset_add(&s, i);
		rp_idset_add(&s, 4096 + i * 3 % 4096);
		sets[i] = intern_get(t, rp_ids_of(&s));
	}
	assert_int_equal(intern_count(t), N);
	for (uint32_t i = 0; i < N; i++) {
		assert_true(rp_ids_has(sets[i]->ids, i));
		struct iset *again = intern_get(t, sets[i]->ids);
		assert_ptr_equal(again, sets[i]);
		intern_unref(t, again);
	}
	for (uint32_t i = 0; i < N; i++) {
		uint32_t k = i * 777 % N; /* 777 and 2000 have no common divisor */
		sets[k] = intern_unref(t, sets[k]);
		assert_int_equal(intern_count(t), N - 1 - i);
	}
	intern_free(t);
}

static void test_largest(void **state)
{
	struct intern *t = intern_new();
	struct rp_idset s;
	rp_idset_clear(&s);
	for (uint32_t id = 0; id < RP_CPUS_MAX; id += 2)
		rp_idset_add(&s, id);
	struct iset *set = intern_get(t, rp_ids_of(&s));
	assert_int_equal(set->count, RP_CPUS_MAX / 2);
	assert_int_equal(strlen(set->text), set->text_len);
	struct rp_idset back;
	assert_int_equal(rp_idset_parse(&back, set->text, RP_CPUS_MAX), 0);
	assert_true(rp_ids_equal(rp_ids_of(&back), set->ids));
	intern_unref(t, set);
	intern_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_equal_is_same),
		cmocka_unit_test(test_empty_and_null),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_largest),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
