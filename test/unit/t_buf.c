/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "core/lib/util/buf.h"
#include "core/lib/util/cleanup.h"

#define _buf_ _cleanup_(buf_fini)

static void test_adders(void **state)
{
	_buf_ struct buf b = BUF_INIT;
	assert_int_equal(buf_add_str(&b, "ab"), 0);
	assert_int_equal(buf_add(&b, "\0c", 2), 0);
	assert_int_equal(buf_add_be32(&b, 0x01020304), 0);
	assert_int_equal(buf_printf(&b, "%d!", 42), 0);
	assert_int_equal(buf_add(&b, NULL, 0), 0);
	assert_int_equal(buf_len(&b), 11);
	assert_memory_equal(buf_bytes(&b),
			    "ab\0c\1\2\3\4"
			    "42!",
			    11);
}

static void test_text(void **state)
{
	_buf_ struct buf b = BUF_INIT;
	assert_string_equal(buf_text(&b), "");
	for (int i = 0; i < 1000; i++) {
		buf_add_str(&b, "x");
		assert_int_equal(strlen(buf_text(&b)), i + 1);
		assert_int_equal(buf_len(&b), i + 1);
	}
	buf_consume(&b, 999);
	assert_string_equal(buf_text(&b), "x");
	buf_reset(&b);
	assert_string_equal(buf_text(&b), "");
}

/* A queue that is filled and emptied in uneven steps holds the right bytes and does not grow
 * without end. */
static void test_queue(void **state)
{
	_buf_ struct buf b = BUF_INIT;
	uint8_t in = 0, out = 0;
	uint32_t seed = 1;
	for (int i = 0; i < 20000; i++) {
		seed = seed * 1664525u + 1013904223u;
		size_t n = seed >> 24;
		uint8_t *to = buf_reserve(&b, n + 1);
		assert_non_null(to);
		for (size_t k = 0; k < n; k++)
			to[k] = in++;
		buf_commit(&b, n);
		seed = seed * 1664525u + 1013904223u;
		n = (seed >> 16) % (2 * buf_len(&b) + 1);
		n = n < buf_len(&b) ? n : buf_len(&b);
		for (size_t k = 0; k < n; k++)
			assert_int_equal(buf_bytes(&b)[k], out++);
		buf_consume(&b, n);
	}
	assert_true(b.cap <= 16384);
}

static void test_reserve_does_not_commit(void **state)
{
	_buf_ struct buf b = BUF_INIT;
	uint8_t *to = buf_reserve(&b, 10);
	memcpy(to, "0123456789", 10);
	assert_int_equal(buf_len(&b), 0);
	buf_commit(&b, 4);
	assert_int_equal(buf_len(&b), 4);
	assert_string_equal(buf_text(&b), "0123");
	buf_consume(&b, 4);
	assert_int_equal(b.start, 0); /* an empty buffer starts at the beginning */
}

static void test_shrink(void **state)
{
	_buf_ struct buf b = BUF_INIT;
	assert_non_null(buf_reserve(&b, 100000));
	buf_commit(&b, 1);
	buf_shrink(&b, 4096);
	assert_true(b.cap >= 100000); /* in use */
	buf_consume(&b, 1);
	buf_shrink(&b, b.cap);
	assert_true(b.cap >= 100000); /* allowed */
	buf_shrink(&b, 4096);
	assert_int_equal(b.cap, 0);
	assert_int_equal(buf_add_str(&b, "again"), 0);
	assert_string_equal(buf_text(&b), "again");
}

static void test_failure_sticks(void **state)
{
	_buf_ struct buf b = BUF_INIT;
	buf_add_str(&b, "kept");
	assert_null(buf_reserve(&b, SIZE_MAX));
	assert_null(buf_reserve(&b, SIZE_MAX - 3));
	assert_int_equal(b.failed, -ENOMEM);
	assert_int_equal(buf_add_str(&b, "x"), -ENOMEM);
	assert_int_equal(buf_printf(&b, "x"), -ENOMEM);
	assert_int_equal(buf_add_be32(&b, 1), -ENOMEM);
	assert_string_equal(buf_text(&b), "kept");
	buf_reset(&b);
	assert_int_equal(buf_add_str(&b, "x"), 0);
	assert_string_equal(buf_text(&b), "x");
	assert_int_equal(buf_add(&b, "x", SIZE_MAX / 2), -ENOMEM);
}

static void test_printf_grows(void **state)
{
	_buf_ struct buf b = BUF_INIT;
	size_t want = 0;
	for (int i = 0; i < 600; i += 7) {
		assert_int_equal(buf_printf(&b, "%0*d", i + 1, 5), 0);
		want += (size_t)i + 1;
		assert_int_equal(buf_len(&b), want);
		assert_int_equal(b.data[b.end - 1], '5');
	}
	assert_int_equal(buf_printf(&b, "%s", ""), 0);
	assert_int_equal(buf_len(&b), want);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_adders),	     cmocka_unit_test(test_text),
		cmocka_unit_test(test_queue),	     cmocka_unit_test(test_reserve_does_not_commit),
		cmocka_unit_test(test_shrink),	     cmocka_unit_test(test_failure_sticks),
		cmocka_unit_test(test_printf_grows),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
