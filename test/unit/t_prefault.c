/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <malloc.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/lib/util/prefault.h"

#define SIZE ((size_t)4 << 20)
#define PIECE 1000u
#define PIECES 3000u

static size_t page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

static long faults(void)
{
	struct rusage u;
	assert_int_equal(getrusage(RUSAGE_SELF, &u), 0);
	return u.ru_minflt;
}

static size_t n_resident(void *data, size_t len)
{
	unsigned char present[SIZE / 4096];
	size_t n = 0, pages = len / page_size();
	assert_true(pages <= sizeof present);
	assert_int_equal(mincore(data, len, present), 0);
	for (size_t i = 0; i < pages; i++)
		n += present[i] & 1u;
	return n;
}

static uint8_t *map_some(void)
{
	void *p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(p, MAP_FAILED);
	return p;
}

static void skip_unless_possible(void)
{
	uint8_t *p = map_some();
	int r = madvise(p, page_size(), MADV_POPULATE_WRITE);
	assert_int_equal(munmap(p, SIZE), 0);
	if (r)
		skip();
}

static void test_pages_are_present(void **state)
{
	skip_unless_possible();
	uint8_t *p = map_some();
	assert_int_equal(n_resident(p, SIZE), 0);
	prefault(p, SIZE / 2);
	assert_int_equal(n_resident(p, SIZE), SIZE / 2 / page_size());
	assert_int_equal(munmap(p, SIZE), 0);
}

static void test_only_whole_pages_inside(void **state)
{
	skip_unless_possible();
	uint8_t *p = map_some();
	prefault(p + 1, SIZE / 2);
	assert_int_equal(n_resident(p, page_size()), 0);
	assert_int_equal(n_resident(p, SIZE), SIZE / 2 / page_size() - 1);
	assert_int_equal(munmap(p, SIZE), 0);
}

static void test_little_is_left_alone(void **state)
{
	uint8_t *p = map_some();
	prefault(p, PREFAULT_MIN - 1);
	assert_int_equal(n_resident(p, SIZE), 0);
	assert_int_equal(munmap(p, SIZE), 0);
}

static void test_content_stays(void **state)
{
	uint8_t *p = map_some();
	for (size_t i = 0; i < SIZE; i += 2 * page_size())
		p[i + 5] = (uint8_t)(i / page_size() + 1);
	prefault(p, SIZE);
	for (size_t i = 0; i < SIZE; i += 2 * page_size())
		assert_int_equal(p[i + 5], (uint8_t)(i / page_size() + 1));
	assert_int_equal(munmap(p, SIZE), 0);
}

/* Pages that are not writable are skipped silently. The caller sees the error when it writes. */
static void test_refused_quietly(void **state)
{
	uint8_t *p = map_some();
	assert_int_equal(mprotect(p, SIZE, PROT_NONE), 0);
	prefault(p, SIZE);
	assert_int_equal(munmap(p, SIZE), 0);
}

static long faults_of_small_ones(void **pieces)
{
	long before = faults();
	for (size_t i = 0; i < PIECES; i++) {
		pieces[i] = malloc(PIECE);
		assert_non_null(pieces[i]);
		memset(pieces[i], 1, PIECE);
	}
	return faults() - before;
}

static void free_all(void **pieces)
{
	for (size_t i = 0; i < PIECES; i++)
		free(pieces[i]);
}

static void test_heap_is_widened_once(void **state)
{
	static void *pieces[PIECES];
#ifdef SANITIZED
	skip(); /* another allocator */
#endif
	skip_unless_possible();
	long pages = (long)(PIECE * PIECES / page_size());
	(void)malloc_trim(0);
	assert_in_range(faults_of_small_ones(pieces), pages / 2, pages * 2);
	free_all(pieces);
	(void)malloc_trim(0);
	heap_widen(2 * (size_t)PIECE * PIECES);
	assert_in_range(faults_of_small_ones(pieces), 0, pages / 20);
	free_all(pieces);
	heap_settle();
}

static void test_heap_gives_back_after_settling(void **state)
{
#ifdef SANITIZED
	skip();
#endif
	heap_widen(SIZE);
	heap_settle();
	uint8_t *end = sbrk(0);
	void *volatile last = malloc((size_t)100 << 10);
	free(last); /* at the heap's end, of which too much is free now */
	assert_true((uint8_t *)sbrk(0) < end);
}

static void test_heap_of_absurd_size(void **state)
{
	uint8_t *before = sbrk(0);
	heap_widen(SIZE_MAX);
	assert_true((size_t)((uint8_t *)sbrk(0) - before) < (size_t)64 << 20);
	heap_settle();
	heap_widen(0);
	heap_widen(PREFAULT_MIN - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pages_are_present),
		cmocka_unit_test(test_only_whole_pages_inside),
		cmocka_unit_test(test_little_is_left_alone),
		cmocka_unit_test(test_content_stays),
		cmocka_unit_test(test_refused_quietly),
		cmocka_unit_test(test_heap_is_widened_once),
		cmocka_unit_test(test_heap_gives_back_after_settling),
		cmocka_unit_test(test_heap_of_absurd_size),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
