/* SPDX-License-Identifier: Apache-2.0 */
/* Messages that are built in an arena, item by item. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "core/lib/util/arena.h"
#include "core/lib/util/pb.h"
#include "proto/agent.pb-c.h"

static void test_lists_grow(void **state)
{
	_arena_ struct arena *a = arena_new(256, 0);
	Agent__PublishedRequest m = AGENT__PUBLISHED_REQUEST__INIT;
	char name[24];
	for (int64_t i = 0; i < 100; i++) {
		Agent__Amount *amount = PB_ADD(a, &m, extended, agent__amount);
		assert_non_null(amount);
		(void)snprintf(name, sizeof name, "n%lld", (long long)i);
		amount->name = pb_build_text(a, name);
		amount->amount = i;
		assert_non_null(pb_build_item(a, pb_build_text(a, NULL), &m.owned, &m.n_owned));
		assert_int_equal(m.n_extended, i + 1);
	}
	for (int64_t i = 0; i < 100; i++) {
		(void)snprintf(name, sizeof name, "n%lld", (long long)i);
		assert_string_equal(m.extended[i]->name, name);
		assert_int_equal(m.extended[i]->amount, i);
		assert_string_equal(m.owned[i], "");
	}
	assert_false(arena_failed(a));
}

/* What does not fit is left out, and the arena remembers it. */
static void test_full_arena(void **state)
{
	_arena_ struct arena *a = arena_new(256, 4096);
	Agent__PublishedRequest m = AGENT__PUBLISHED_REQUEST__INIT;
	size_t n = 0;
	while (n < 4096 && PB_ADD(a, &m, extended, agent__amount))
		n++;
	assert_true(n > 8 && n < 4096);
	assert_true(arena_failed(a));
	assert_int_equal(m.n_extended, n);
	for (size_t i = 0; i < n; i++)
		assert_ptr_equal(m.extended[i]->base.descriptor, &agent__amount__descriptor);
	assert_null(pb_build_item(a, NULL, &m.owned, &m.n_owned));
	assert_int_equal(m.n_owned, 0);
}

/* A list of any length can be continued. */
static void test_adopted(void **state)
{
	_arena_ struct arena *a = arena_new(256, 0);
	for (size_t n = 0; n < 20; n++) {
		Agent__PublishedRequest m = AGENT__PUBLISHED_REQUEST__INIT;
		char text[] = "x", *exact[20];
		for (m.n_owned = 0; m.n_owned < n; m.n_owned++)
			exact[m.n_owned] = text;
		m.owned = exact;
		assert_true(PB_ADOPT(a, &m, owned));
		for (size_t i = 0; i < 20; i++)
			assert_non_null(
				pb_build_item(a, pb_build_text(a, "y"), &m.owned, &m.n_owned));
		assert_int_equal(m.n_owned, n + 20);
		for (size_t i = 0; i < m.n_owned; i++)
			assert_string_equal(m.owned[i], i < n ? "x" : "y");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lists_grow),
		cmocka_unit_test(test_full_arena),
		cmocka_unit_test(test_adopted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
