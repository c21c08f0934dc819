/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The allocators of modules/lib when memory ends: every call is made with the first, the second …
 * allocation failing, must say so, and must have changed nothing. Sanitizers bring their own
 * malloc, so nothing fails under them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <nri-rp/lib/memalloc.h>
#include "test/unit/t_cpualloc.h"

#ifndef SANITIZED
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t size);
void *calloc(size_t n, size_t size);
void *reallocarray(void *p, size_t n, size_t size);

static uint32_t fail_at; /* 0: never */

static bool fails(void)
{
	return fail_at && !--fail_at;
}

void *calloc(size_t n, size_t size)
{
	return fails() ? NULL : __libc_calloc(n, size);
}

void *reallocarray(void *p, size_t n, size_t size)
{
	return fails() ? NULL : __libc_realloc(p, n * size);
}

/* ---- cpualloc -------------------------------------------------------------------------------- */

static void test_cpualloc(void **state)
{
	static const struct shape shapes[] = {{.packages = 2,
					       .dies = 2,
					       .nodes = 1,
					       .cores = 4,
					       .threads = 2,
					       .l3_cores = 2,
					       .split_l1 = true},
					      {.packages = 2,
					       .dies = 1,
					       .nodes = 1,
					       .cores = 2,
					       .threads = 2,
					       .e_cores = 6,
					       .l2_cores = 2}};
	for (uint32_t i = 0; i < 2; i++) {
		struct machine mc = machine_new(&shapes[i]);
		struct cpualloc *a = NULL;
		uint32_t n = 0;
		int r;
		do {
			fail_at = ++n;
			r = cpualloc_new_machine(&mc.m, &a);
			assert_true(!r || (r == -RP_ENOMEM && !a));
		} while (r);
		fail_at = 0;
		assert_true(n > 10);
		cpualloc_free(a);
		machine_free(&mc);
	}
}

/* ---- memalloc -------------------------------------------------------------------------------- */

static struct memalloc *new_memalloc(void)
{
	static const struct memalloc_node nodes[] = {{0, MEMALLOC_DRAM, 1, 0, 100},
						     {1, MEMALLOC_DRAM, 1, 0, 100},
						     {2, MEMALLOC_DRAM, 1, 0, 100},
						     {3, MEMALLOC_DRAM, 1, 0, 100}};
	static const uint32_t distance[] = {10, 11, 21, 21, 11, 10, 21, 21,
					    21, 21, 10, 11, 21, 21, 11, 10};
	struct memalloc_machine machine = {nodes, distance, 4, 0};
	struct memalloc *m = NULL;
	uint32_t n = 0;
	char why[32] = "";
	while (memalloc_new_machine(&machine, &m, why, sizeof why)) {
		assert_null(m);
		fail_at = ++n;
	}
	fail_at = 0;
	return m;
}

static void test_new(void **state)
{
	fail_at = 1;
	memalloc_free(new_memalloc());
}

/* Makes the call of this number. Each call moves requests to new zones. */
static int call(struct memalloc *m, uint32_t which)
{
	struct memalloc_request req = {
		.id = 1000, .size = 60, .nodes = 1, .priority = MEMALLOC_PRIO_GUARANTEED};
	struct memalloc_offer offer;
	memalloc_mask zone = 0;
	switch (which) {
	case 0:
		return memalloc_allocate(m, &req, &zone);
	case 1:
		return memalloc_offer(m, &req, &offer);
	case 2:
		req.id = 1;
		return memalloc_replace(m, &req, &zone);
	case 3:
		return memalloc_extend(m, 40, 2, 0, &zone);
	case 4:
		req = (struct memalloc_request){.id = 1, .size = 2, .nodes = 2};
		return memalloc_follow(m, &req, &zone);
	default:
		return memalloc_release(m, 1);
	}
}

static void fill(struct memalloc *m)
{
	memalloc_mask zone = 0;
	for (uint64_t id = 1; id <= 40; id++) {
		struct memalloc_request req = {
			.id = id, .size = 2, .nodes = 1, .priority = MEMALLOC_PRIO_BURSTABLE};
		assert_int_equal(memalloc_allocate(m, &req, &zone), 0);
	}
}

static void check_filled(const struct memalloc *m)
{
	assert_int_equal(memalloc_count(m), 40);
	assert_int_equal(memalloc_usage(m, 1), 80);
	for (uint64_t id = 1; id <= 40; id++) {
		memalloc_mask zone = 0;
		assert_int_equal(memalloc_zone(m, id, &zone), 0);
		assert_int_equal(zone, 1);
	}
}

static void test_calls(void **state)
{
	for (uint32_t which = 0; which < 6; which++) {
		for (uint32_t in_txn = 0; in_txn < 2; in_txn++) {
			uint32_t n = 0;
			int r = -RP_ENOMEM;
			while (r) {
				/* A fresh allocator each time, as it keeps its memory for the
				 * next attempt. */
				struct memalloc *m = new_memalloc();
				fill(m);
				if (in_txn)
					assert_int_equal(memalloc_begin(m), 0);
				fail_at = ++n;
				r = call(m, which);
				fail_at = 0;
				assert_true(!r || r == -RP_ENOMEM);
				if (r) {
					assert_string_equal(memalloc_why(m), "out of memory");
					check_filled(m);
					assert_int_equal(call(m, which), 0);
				}
				if (in_txn) {
					memalloc_drop(m);
					check_filled(m);
				}
				memalloc_free(m);
			}
			assert_true(n > 1 || which == 5);
		}
	}
}

/* Checks a table of requests that cannot grow. */
static void test_table(void **state)
{
	struct memalloc *m = new_memalloc();
	uint32_t refused = 0;
	for (uint64_t id = 1; id <= 300; id++) {
		struct memalloc_request req = {
			.id = id, .nodes = 1, .priority = MEMALLOC_PRIO_BURSTABLE};
		memalloc_mask zone = 0;
		for (uint32_t n = 1;; n++) {
			fail_at = n;
			int r = memalloc_allocate(m, &req, &zone);
			fail_at = 0;
			if (!r)
				break;
			refused++;
		}
	}
	assert_true(refused > 300);
	assert_int_equal(memalloc_count(m), 300);
	for (uint64_t id = 1; id <= 300; id++)
		assert_int_equal(memalloc_release(m, id), 0);
	memalloc_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_cpualloc),
					   cmocka_unit_test(test_new), cmocka_unit_test(test_calls),
					   cmocka_unit_test(test_table)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
static void test_needs_malloc_of_its_own(void **state)
{
	skip();
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_needs_malloc_of_its_own)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
