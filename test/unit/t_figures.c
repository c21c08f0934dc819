/* SPDX-License-Identifier: Apache-2.0 */
/* Cgroup files that are valid, damaged and missing, and rates of the readings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/nri-rpd/host/cgroup.h"
#include "core/nri-rpd/metrics/figures.h"
#include "test/unit/coverage_exit.h"
#include "test/unit/t_topo_tree.h"

#define UNTOUCHED UINT64_C(0xabcdef)

static const char most[] = "18446744073709551615", over[] = "18446744073709551616";

static uint64_t number(const char *text)
{
	uint64_t v = UNTOUCHED;
	bool said = figures_number(text, &v);
	assert_int_equal(said, v != UNTOUCHED);
	return v;
}

static void test_number(void **state)
{
	assert_int_equal(number("0"), 0);
	assert_int_equal(number("4096\n"), 4096);
	assert_true(number(most) == UINT64_MAX);
	static const char *const bad[] = {"",	   "\n",  "-1", "max", "1 ",
					  "1\n\n", "0x1", " 1", over,  "99999999999999999999999"};
	for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(number(bad[i]), UNTOUCHED);
}

static uint64_t key(const char *text, const char *name)
{
	uint64_t v = UNTOUCHED;
	uint32_t said = figures_keys(text, &name, 1, &v);
	assert_int_equal(said, v != UNTOUCHED);
	return v;
}

static void test_key(void **state)
{
	static const char stat[] = "usage_usec 5\nnr_periods 17\nnr_throttled 3\nlast 9";
	assert_int_equal(key(stat, "usage_usec"), 5);
	assert_int_equal(key(stat, "nr_throttled"), 3);
	assert_int_equal(key(stat, "last"), 9);
	assert_int_equal(key(stat, "nr"), UNTOUCHED);
	assert_int_equal(key(stat, "periods"), UNTOUCHED);
	assert_int_equal(key("", "a"), UNTOUCHED);
	assert_int_equal(key("a\n", "a"), UNTOUCHED);
	assert_int_equal(key("a x\na 1\n", "a"), UNTOUCHED); /* the first one counts */
	assert_int_equal(key("a 1x\n", "a"), UNTOUCHED);
	assert_int_equal(key("a 18446744073709551616\n", "a"), UNTOUCHED);
}

static uint64_t wait_of(const char *text)
{
	uint64_t v = UNTOUCHED;
	bool said = figures_wait(text, &v);
	assert_int_equal(said, v != UNTOUCHED);
	return v;
}

static void test_wait(void **state)
{
	assert_int_equal(wait_of("some avg10=1.53 avg60=0.00 avg300=0.00 total=4711\n"
				 "full avg10=0.00 avg60=0.00 avg300=0.00 total=2\n"),
			 4711);
	assert_int_equal(wait_of("full total=2\nsome total=3"), 3);
	static const char *const bad[] = {"",
					  "some",
					  "some\n",
					  "some total\n",
					  "some total=\n",
					  "some total=x\n",
					  "full total=1",
					  "some subtotal=1\nfull total=2\n",
					  "some total=1x",
					  "some total=18446744073709551616"};
	for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(wait_of(bad[i]), UNTOUCHED);
}

static void test_io(void **state)
{
	uint64_t r = UNTOUCHED, w = UNTOUCHED;
	assert_true(figures_io("8:0 rbytes=10 wbytes=1 rios=3 wios=1 dbytes=0 dios=0\n"
			       "8:16 wbytes=20 rbytes=30\n253:0 \n",
			       &r, &w));
	assert_int_equal(r, 40);
	assert_int_equal(w, 21);
	assert_true(figures_io("", &r, &w));
	assert_int_equal(r + w, 0);
	assert_true(figures_io("8:0 rbytes=18446744073709551615\n8:1 rbytes=2 wbytes=x", &r, &w));
	assert_true(r == UINT64_MAX);
	assert_int_equal(w, 0);
	static const char *const bad[] = {
		"8", "8:0", "x:0 rbytes=1", "8:x rbytes=1", "8.0 r=1", "8:0 rbytes=1\nrubbish"};
	r = UNTOUCHED;
	for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_false(figures_io(bad[i], &r, &w));
	assert_int_equal(r, UNTOUCHED);
}

static void test_io_v1(void **state)
{
	uint64_t r, w;
	assert_true(figures_io_v1("8:0 Read 7\n8:0 Write 4\n8:0 Sync 11\n8:16 Read 1\nTotal 12\n",
				  &r, &w));
	assert_int_equal(r, 8);
	assert_int_equal(w, 4);
	assert_true(figures_io_v1("Total 0", &r, &w));
	assert_int_equal(r + w, 0);
	assert_true(figures_io_v1("8:0 Read x\n8:0 Write 3x\n8:0 Readable 3\n", &r, &w));
	assert_int_equal(r + w, 0);
}

/* ---- whole cgroups ---- */

#define PATH "/kubepods/podX/abc"

static struct figures read_figures(struct tree *t, int expected)
{
	static char buf[FIGURES_FILE_MAX];
	struct fs_root root;
	struct figures f;
	struct err err = ERR_INIT;
	assert_int_equal(fs_root_open(&root, t->dir, &err), 0);
	struct figures_place p;
	const struct figures_cgroup of = {PATH, 0};
	int r = figures_place_open(&root, cgroup_unified(&root), &of, &p);
	if (!r)
		r = figures_read(&p, FIGURES_SLOW, buf, &f);
	assert_int_equal(r, expected);
	figures_place_close(&p);
	fs_root_close(&root);
	return f;
}

static void test_v2(void **state)
{
	struct tree t;
	tree_init(&t);
	tree_put(&t, "sys/fs/cgroup/cgroup.controllers", "cpu memory io\n");
	(void)read_figures(&t, -ENOENT);
	tree_put(&t, "sys/fs/cgroup" PATH "/cpu.stat",
		 "usage_usec 1000\nnr_periods 10\nnr_throttled 4\nthrottled_usec 7\n");
	tree_put(&t, "sys/fs/cgroup" PATH "/memory.current", "8192\n");
	tree_put(&t, "sys/fs/cgroup" PATH "/memory.stat",
		 "anon 4096\nfile 1\ninactive_anon 5000\nactive_anon 6000\ninactive_file 10\n"
		 "active_file 20\nunevictable 700\npgmajfault 2\n");
	tree_put(&t, "sys/fs/cgroup" PATH "/memory.events", "low 0\noom_kill 1\n");
	tree_put(&t, "sys/fs/cgroup" PATH "/cpu.pressure", "some avg10=0.00 total=11\n");
	tree_put(&t, "sys/fs/cgroup" PATH "/memory.pressure", "nonsense\n");
	tree_put(&t, "sys/fs/cgroup" PATH "/io.stat", "8:0 rbytes=5 wbytes=6\n");
	struct figures f = read_figures(&t, 0);
	assert_int_equal(f.n_files, 7);
	assert_int_equal(f.value[FIG_CPU], 1000000);
	assert_int_equal(f.value[FIG_PERIODS], 10);
	assert_int_equal(f.value[FIG_THROTTLED_PERIODS], 4);
	assert_int_equal(f.value[FIG_THROTTLED], 7000);
	assert_int_equal(f.value[FIG_MEMORY], 8192);
	assert_int_equal(f.value[FIG_MEMORY_ANON], 4096);
	assert_int_equal(f.value[FIG_MEMORY_KEPT], 5000 + 6000 + 700);
	assert_int_equal(f.value[FIG_MEMORY_FILES], 10 + 20);
	assert_int_equal(f.value[FIG_MEMORY_FAULTS], 2);
	assert_int_equal(f.value[FIG_OOM_KILLS], 1);
	assert_int_equal(f.value[FIG_CPU_WAIT], 11);
	assert_int_equal(f.value[FIG_IO_READ], 5);
	assert_int_equal(f.value[FIG_IO_WRITTEN], 6);
	assert_int_equal(f.has & 1u << FIG_MEMORY_WAIT, 0);
	assert_int_equal(f.has & 1u << FIG_IO_WAIT, 0);
	tree_fini(&t);
}

static void test_v1(void **state)
{
	struct tree t;
	tree_init(&t);
	tree_put(&t, "sys/fs/cgroup/cpuacct" PATH "/cpuacct.usage", "123456\n");
	tree_put(&t, "sys/fs/cgroup/cpu" PATH "/cpu.stat",
		 "nr_periods 3\nnr_throttled 1\nthrottled_time 99\n");
	tree_put(&t, "sys/fs/cgroup/memory" PATH "/memory.usage_in_bytes", "777\n");
	tree_put(&t, "sys/fs/cgroup/memory" PATH "/memory.stat",
		 "rss 1\ntotal_rss 2\ntotal_pgmajfault 3\ntotal_inactive_anon 4\ntotal_active_anon "
		 "5\n"
		 "total_unevictable x\ntotal_inactive_file 6\ntotal_active_file 7\n");
	struct figures f = read_figures(&t, 0);
	assert_int_equal(f.value[FIG_CPU], 123456);
	assert_int_equal(f.value[FIG_THROTTLED_PERIODS], 1);
	assert_int_equal(f.value[FIG_THROTTLED], 99);
	assert_int_equal(f.value[FIG_MEMORY], 777);
	assert_int_equal(f.value[FIG_MEMORY_ANON], 2);
	assert_int_equal(f.value[FIG_MEMORY_FILES], 13);
	assert_int_equal(f.has & 1u << FIG_MEMORY_KEPT, 0); /* a part of it is less */
	assert_int_equal(f.has & (1u << FIG_IO_READ | 1u << FIG_OOM_KILLS), 0);
	tree_put(&t, "sys/fs/cgroup/blkio" PATH "/blkio.throttle.io_service_bytes",
		 "8:0 Read 5\n8:0 Write 6\nTotal 11\n");
	f = read_figures(&t, 0);
	assert_int_equal(f.value[FIG_IO_READ], 5);
	assert_int_equal(f.value[FIG_IO_WRITTEN], 6);
	tree_fini(&t);
}

/* ---- rates ---- */

static void test_rates(void **state)
{
	struct usage u = {0};
	double v;
	int64_t share;
	assert_false(usage_known(NULL, FIG_CPU));
	assert_false(usage_known(&u, FIG_CPU));
	usage_put(&u, FIG_CPU, 1000, 5000);
	assert_true(usage_known(&u, FIG_CPU));
	assert_false(usage_rate(&u, FIG_CPU, &v));
	usage_put(&u, FIG_CPU, 4000, 6500);
	assert_true(usage_rate(&u, FIG_CPU, &v));
	assert_true(v == 2000);
	usage_put(&u, FIG_CPU, 10, 7000); /* the counter restarted */
	assert_false(usage_rate(&u, FIG_CPU, &v));
	usage_put(&u, FIG_CPU, 20, 8000);
	assert_true(usage_rate(&u, FIG_CPU, &v) && v == 10);
	usage_put(&u, FIG_CPU, 30, 8000); /* no time has passed */
	assert_false(usage_rate(&u, FIG_CPU, &v));
	assert_false(usage_permille(&u, FIG_THROTTLED_PERIODS, FIG_PERIODS, &share));
	for (uint64_t i = 0; i < 2; i++) {
		usage_put(&u, FIG_PERIODS, 100 * i, 1000 + i);
		usage_put(&u, FIG_THROTTLED_PERIODS, 25 * i, 1000 + i);
	}
	assert_true(usage_permille(&u, FIG_THROTTLED_PERIODS, FIG_PERIODS, &share));
	assert_int_equal(share, 250);
	assert_true(usage_permille(&u, FIG_PERIODS, FIG_THROTTLED_PERIODS, &share));
	assert_int_equal(share, 1000);
	usage_put(&u, FIG_PERIODS, 100, 1002);
	assert_true(usage_permille(&u, FIG_THROTTLED_PERIODS, FIG_PERIODS, &share));
	assert_int_equal(share, 0);
	/* memory may shrink */
	usage_put(&u, FIG_MEMORY, 100, 1);
	usage_put(&u, FIG_MEMORY, 50, 2);
	assert_int_equal(u.before[FIG_MEMORY].value, 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_number), cmocka_unit_test(test_key),
		cmocka_unit_test(test_wait),   cmocka_unit_test(test_io),
		cmocka_unit_test(test_io_v1),  cmocka_unit_test(test_v2),
		cmocka_unit_test(test_v1),     cmocka_unit_test(test_rates),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
