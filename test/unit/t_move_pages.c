/* SPDX-License-Identifier: Apache-2.0 */
/* Pages of a real process through nri-rp.host.work/1: this one's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/nri-rpd/host/service/services.h"

#include "coverage_exit.h"

#define PAGES 5000u /* several portions */
#define GONE 4097u /* in the last but one */

extern const struct rp_host_work host_work_service;

static struct fs_root root = {.real = true};
static struct host_env env = {.root = &root};
static struct instance instance = {.env = &env};
static void *pages[PAGES];
static int32_t nodes[PAGES], status[PAGES];
static size_t page;
static char *memory;

static int64_t move(uint64_t n, const int32_t *to)
{
	memset(status, 0x55, sizeof status);
	return host_work_service.move_pages(&instance, (int32_t)getpid(), n, pages, to, status);
}

static int setup(void **state)
{
	page = (size_t)sysconf(_SC_PAGESIZE);
	memory = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		      0);
	assert_true(memory != MAP_FAILED);
	(void)madvise(memory, PAGES * page, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < PAGES; i++) {
		pages[i] = memory + i * page;
		memory[i * page] = 1;
	}
	return 0;
}

static int teardown(void **state)
{
	return munmap(memory, PAGES * page);
}

/* Kernels without NUMA and sandboxes say so, and nothing else happens. */
static bool has_numa(int64_t r)
{
	if (r != -ENOSYS && r != -EPERM)
		return true;
	skip();
	return false;
}

static void test_where(void **state)
{
	int64_t r = move(PAGES, NULL);
	if (!has_numa(r))
		return;
	assert_int_equal(r, 0);
	for (size_t i = 0; i < PAGES; i++)
		assert_in_range(status[i], 0, 1023);
	assert_int_equal(move(0, NULL), 0);
}

static void test_to_where_they_are(void **state)
{
	int64_t r = move(PAGES, NULL);
	if (!has_numa(r))
		return;
	memcpy(nodes, status, sizeof nodes);
	assert_int_equal(move(PAGES, nodes), 0);
	assert_memory_equal(status, nodes, sizeof nodes);
}

static void test_a_page_that_is_gone(void **state)
{
	assert_int_equal(madvise(pages[GONE], page, MADV_DONTNEED), 0);
	int64_t r = move(PAGES, NULL);
	if (!has_numa(r))
		return;
	assert_int_equal(r, 0);
	for (size_t i = 0; i < PAGES; i++)
		assert_int_equal(status[i] < 0, i == GONE);
}

static void test_a_node_that_is_not_there(void **state)
{
	int64_t r = move(PAGES, NULL);
	if (!has_numa(r))
		return;
	memcpy(nodes, status, sizeof nodes);
	nodes[GONE] = 1023;
	assert_int_equal(move(PAGES, nodes), -ENODEV);
}

static void test_another_root(void **state)
{
	root.real = false;
	int64_t r = move(PAGES, NULL);
	root.real = true;
	assert_int_equal(r, -RP_ENOTSUP);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_where),
		TEST(test_to_where_they_are),
		TEST(test_a_page_that_is_gone),
		TEST(test_a_node_that_is_not_there),
		TEST(test_another_root),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
