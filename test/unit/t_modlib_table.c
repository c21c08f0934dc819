/* SPDX-License-Identifier: Apache-2.0 */
/* The table of handles against a plain array. */
#include "modules/lib/private/table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define N_KEYS 300u
#define N_STEPS 20000u

static void check(const struct table *t, void *const *model)
{
	uint32_t n = 0;
	for (uint32_t key = 0; key < N_KEYS; key++) {
		assert_ptr_equal(table_get(t, key), model[key]);
		n += model[key] != NULL;
	}
	assert_int_equal(t->n, n);
}

static void test_random(void **state)
{
	struct table t = {0};
	void *model[N_KEYS] = {0};
	char values[N_STEPS];
	uint64_t seed = 1;
	assert_null(table_get(&t, 1));
	table_del(&t, 1);
	for (uint32_t i = 0; i < N_STEPS; i++) {
		seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
		uint32_t key = (uint32_t)(seed >> 33) % N_KEYS;
		if (seed >> 63) {
			assert_int_equal(table_put(&t, key, &values[i]), 0);
			model[key] = &values[i];
		} else {
			table_del(&t, key);
			model[key] = NULL;
		}
		if (i % 100 == 0)
			check(&t, model);
	}
	check(&t, model);
	table_clear(&t);
	for (uint32_t key = 0; key < N_KEYS; key++)
		model[key] = NULL;
	check(&t, model);
	table_fini(&t);
}

/* A walk visits all entries, also if it deletes some of them. */
static void test_walk(void **state)
{
	struct table t = {0};
	uint32_t *value, seen[N_KEYS] = {0}, n = 0;
	for (uint64_t key = 1; key < N_KEYS; key++) {
		value = table_make(&t, key, sizeof *value);
		assert_non_null(value);
		assert_int_equal(*value, 0);
		*value = (uint32_t)key;
		assert_ptr_equal(table_make(&t, key, sizeof *value), value);
	}
	TABLE_EACH (value, &t) {
		uint32_t key = *value;
		seen[key]++;
		if (key % 3 == 0)
			continue;
		table_del(&t, key);
		free(value);
	}
	for (uint32_t key = 1; key < N_KEYS; key++) {
		assert_int_not_equal(seen[key], 0);
		assert_true((table_get(&t, key) != NULL) == (key % 3 == 0));
	}
	TABLE_EACH (value, &t)
		n++;
	assert_int_equal(n, t.n);
	table_free(&t);
	assert_null(t.slots);
}

/* Insertions into reserved capacity do not reallocate the slots. */
static void test_room(void **state)
{
	struct table t = {0};
	char value;
	assert_int_equal(table_reserve(&t, 1000), 0);
	const struct table_slot *slots = t.slots;
	for (uint64_t key = 0; key < 1000; key++)
		assert_int_equal(table_put(&t, key << 20, &value), 0);
	assert_ptr_equal(t.slots, slots);
	table_fini(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_walk),
		cmocka_unit_test(test_room),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
