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
	(void)state;
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
	(void)state;
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
	free(b.data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_labels),
		cmocka_unit_test(test_bytes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
