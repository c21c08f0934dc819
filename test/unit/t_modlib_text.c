/* SPDX-License-Identifier: Apache-2.0 */
/* Texts that grow and labels; bytes that are written and read. */
#include <nri-rp/lib/text.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <nri-rp/lib/bytes.h>

static void test_labels(void **state)
{
	struct text t = {0};
	struct rp_idset set;
	assert_string_equal(text_of(&t), "");
	rp_idset_clear(&set);
	rp_idset_add_range(&set, 0, 3);
	rp_idset_add(&set, 9);
	text_label(&t, "name", "a\"b\\c\nd");
	text_label_set(&t, "cpus", "cpus_count", rp_ids_of(&set));
	text_label_set(&t, "mems", NULL, rp_ids_none());
	text_label_number(&t, "n", -7);
	assert_string_equal(text_of(&t), "name=\"a\\\"b\\\\c\\nd\",cpus=\"0-3,9\",cpus_count=\"5\","
					 "mems=\"\",n=\"-7\"");
	text_clear(&t);
	text_put(&t, "x ");
	text_put_set(&t, rp_ids_of(&set));
	assert_string_equal(text_of(&t), "x 0-3,9");
	text_fini(&t);
}

static void test_bytes(void **state)
{
	struct bytes b = {0};
	struct rp_idset set, read;
	uint32_t n = 5, got;
	rp_idset_clear(&set);
	rp_idset_add(&set, 70);
	assert_int_equal(bytes_put(&b, &n, sizeof n), 0);
	assert_int_equal(bytes_put(&b, set.w, set.nw * sizeof set.w[0]), 0);
	assert_int_equal(bytes_put(&b, NULL, 0), 0);
	struct bytes_left left = bytes_of(b.data, b.size);
	assert_true(bytes_take(&left, &got, sizeof got));
	assert_int_equal(got, 5);
	assert_false(bytes_take_set(&left, set.nw + 1, &read));
	assert_false(bytes_take_set(&left, UINT32_MAX, &read));
	assert_true(bytes_take_set(&left, set.nw, &read));
	assert_true(rp_ids_equal(rp_ids_of(&set), rp_ids_of(&read)));
	assert_false(bytes_take(&left, &got, 1));
	assert_true(bytes_take(&left, &got, 0));
	assert_true(left.failed);
	free(b.data);
}

/* Checks that both sides note failures, and lose nothing that was written or read before. */
static void test_bytes_in_a_buffer(void **state)
{
	char buffer[12];
	struct bytes b = BYTES_IN(buffer);
	bytes_put_u16(&b, 3);
	bytes_put_u32(&b, 70000);
	bytes_put_text(&b, "five5");
	assert_true(b.size == sizeof buffer && !b.failed);
	bytes_put_text(&b, "");
	assert_true(b.size == sizeof buffer && b.failed);
	struct bytes_left left = bytes_of(buffer, sizeof buffer);
	assert_int_equal(bytes_take_u16(&left), 3);
	assert_int_equal(bytes_take_u32(&left), 70000);
	assert_string_equal(bytes_take_text(&left), "five5");
	assert_true(!bytes_n_left(&left) && !left.failed);
	left = bytes_of(buffer, sizeof buffer - 1);
	assert_ptr_equal(bytes_skip(&left, 6), buffer);
	assert_string_equal(bytes_take_text(&left), ""); /* not terminated */
	assert_true(left.failed && !bytes_skip(&left, 6) && bytes_n_left(&left) == 5);
	bytes_reset(&b);
	assert_true(!b.size && !b.failed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_labels),
		cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_bytes_in_a_buffer),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
