/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <stdalign.h>
#include <string.h>

#include "core/lib/util/arena.h"

static void test_zeroed_aligned_apart(void **state)
{
	_arena_ struct arena *a = arena_new(256, 0);
	unsigned char *p[200];
	assert_non_null(a);
	for (size_t i = 0; i < 200; i++) {
		size_t size = i % 40;
		p[i] = arena_alloc(a, size);
		assert_non_null(p[i]);
		assert_int_equal((uintptr_t)p[i] % alignof(max_align_t), 0);
		for (size_t k = 0; k < size; k++)
			assert_int_equal(p[i][k], 0);
		memset(p[i], (int)i, size);
	}
	for (size_t i = 0; i < 200; i++)
		for (size_t k = 0; k < i % 40; k++)
			assert_int_equal(p[i][k], (unsigned char)i);
	assert_true(p[0] != p[40]); /* empty allocations also differ */
}

static void test_zeroed_after_reset(void **state)
{
	_arena_ struct arena *a = arena_new(128, 0);
	void *first = arena_alloc(a, 64);
	memset(first, 0xff, 64);
	arena_reset(a);
	assert_int_equal(arena_used(a), 0);
	unsigned char *again = arena_alloc(a, 64);
	assert_ptr_equal(again, first);
	for (size_t i = 0; i < 64; i++)
		assert_int_equal(again[i], 0);
}

static void test_reset_keeps_one_block(void **state)
{
	_arena_ struct arena *a = arena_new(1024, 0);
	assert_int_equal(arena_held(a), 1024);
	for (int i = 0; i < 100; i++)
		assert_non_null(arena_alloc(a, 100));
	assert_non_null(arena_alloc(a, 100000));
	assert_true(arena_held(a) > 110000);
	assert_true(arena_used(a) <= arena_held(a));
	arena_reset(a);
	assert_int_equal(arena_held(a), 1024);
	assert_non_null(arena_alloc(a, 1024));
	assert_int_equal(arena_held(a), 1024);
	arena_reset(a);
	arena_reset(a);
	assert_int_equal(arena_held(a), 1024);
}

static void test_large_leaves_front_in_use(void **state)
{
	_arena_ struct arena *a = arena_new(1024, 0);
	char *small = arena_alloc(a, 16);
	assert_non_null(arena_alloc(a, 5000));
	assert_ptr_equal(arena_alloc(a, 16), small + 16);
	size_t held = arena_held(a);
	for (int i = 0; i < 60; i++)
		assert_non_null(arena_alloc(a, 16));
	assert_int_equal(arena_held(a), held);
}

/* Text is not aligned, what comes after it is. */
static void test_text_between(void **state)
{
	_arena_ struct arena *a = arena_new(1024, 0);
	for (unsigned i = 1; i < 40; i++) {
		char text[40];
		memset(text, 'a' + (int)(i % 26), i);
		char *copy = arena_strndup(a, text, i);
		uint64_t *number = arena_alloc(a, sizeof *number);
		assert_non_null(copy);
		assert_non_null(number);
		assert_int_equal((uintptr_t)number % _Alignof(max_align_t), 0);
		*number = UINT64_MAX;
		assert_int_equal(strlen(copy), i);
		assert_memory_equal(copy, text, i);
	}
}

static void test_limit(void **state)
{
	_arena_ struct arena *a = arena_new(256, 1000);
	assert_null(arena_alloc(a, 1001));
	size_t n = 0;
	while (arena_alloc(a, 16))
		n++;
	assert_int_equal(n, 992 / 16);
	assert_true(arena_held(a) <= 1000);
	/* text fits into the bytes that are left */
	for (n = 0; arena_strdup(a, ""); n++)
		assert_true(n < 8);
	assert_null(arena_strdup(a, "x"));
	assert_null(arena_strndup(a, "x", 1));
	assert_null(arena_memdup(a, "x", 1));
	assert_null(arena_printf(a, "x"));
	assert_null(arena_array(a, 1, 1));
	arena_reset(a);
	assert_non_null(arena_alloc(a, 16));
	/* A block is no larger than what may be held. */
	_arena_ struct arena *b = arena_new(65536, 128);
	assert_int_equal(arena_held(b), 128);
	assert_non_null(arena_alloc(b, 128));
	assert_null(arena_alloc(b, 1));
}

static void test_absurd_sizes(void **state)
{
	_arena_ struct arena *a = arena_new(256, 4096);
	assert_null(arena_alloc(a, SIZE_MAX));
	assert_null(arena_alloc(a, SIZE_MAX - 8));
	assert_null(arena_alloc(a, SIZE_MAX / 4));
	assert_null(arena_array(a, SIZE_MAX / 2, 3));
	assert_null(arena_array(a, 1000, 1000));
	assert_null(arena_new(SIZE_MAX, 0));
	assert_non_null(arena_array(a, 10, 10));
}

struct thing {
	int a;
	const char *b;
};

static void test_copies(void **state)
{
	_arena_ struct arena *a = arena_new(64, 0);
	assert_string_equal(arena_strdup(a, "text"), "text");
	assert_string_equal(arena_strdup(a, ""), "");
	assert_string_equal(arena_strndup(a, "text", 2), "te");
	assert_string_equal(arena_strndup(a, "text", 20), "text");
	const char unterminated[] = {'a', 'b'};
	assert_string_equal(arena_strndup(a, unterminated, 2), "ab");
	assert_memory_equal(arena_memdup(a, "a\0b", 3), "a\0b", 3);
	assert_non_null(arena_memdup(a, NULL, 0));
	assert_string_equal(arena_printf(a, "%s-%03d", "node", 7), "node-007");
	char *lengthy = arena_printf(a, "%0500d", 1);
	assert_int_equal(strlen(lengthy), 500);
	struct thing *t = arena_zero(a, struct thing);
	assert_int_equal(t->a, 0);
	assert_null(t->b);
	assert_null(arena_free(NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_zeroed_aligned_apart),
		cmocka_unit_test(test_zeroed_after_reset),
		cmocka_unit_test(test_reset_keeps_one_block),
		cmocka_unit_test(test_large_leaves_front_in_use),
		cmocka_unit_test(test_text_between),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_absurd_sizes),
		cmocka_unit_test(test_copies),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
