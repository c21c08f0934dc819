/* SPDX-License-Identifier: Apache-2.0 */
/* Averages of measured usage. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/nri-rpd/noderes/aggregate.h"
#include "core/nri-rpd/noderes/series.h"

static void put(struct series *s, uint64_t at_s, uint64_t cpu_s, int64_t memory)
{
	series_put(s, &(struct series_reading){1000 * at_s, cpu_s * UINT64_C(1000000000), memory},
		   60000);
}

static void average_is(const struct series *s, uint64_t now_s, uint64_t window_s, int64_t mcpu,
		       int64_t memory)
{
	int64_t found_mcpu, found_memory;
	assert_true(series_average(s, 1000 * now_s, 1000 * window_s, &found_mcpu, &found_memory));
	assert_int_equal(found_mcpu, mcpu);
	assert_int_equal(found_memory, memory);
}

/* Checks the aggregates of twenty samples, 1 to 20, of which the last ten include the system's
 * usage. */
static void test_aggregates(void **state)
{
	static const int64_t node[RP_NR_STATISTICS] = {10, 10, 18, 19, 19};
	static const int64_t system[RP_NR_STATISTICS] = {15, 15, 19, 19, 19};
	struct aggregates a = {.n = 0};
	struct rp_nr_aggregated found;
	assert_false(aggregate_over(&a, 0, 60000, &found));
	for (int64_t i = 1; i <= 20; i++) {
		struct aggregate_point p = {
			1000 * 15 * (uint64_t)i, {i, 100 * i}, {RP_NOT_SET, RP_NOT_SET}};
		if (i > 10)
			p.system[RP_NR_CPU] = i;
		aggregate_put(&a, &p);
		p.at_ms += AGGREGATE_STEP_MS - 1; /* too early for the next one */
		p.node[RP_NR_CPU] = 1000;
		aggregate_put(&a, &p);
	}
	assert_true(aggregate_over(&a, 300000, 300000, &found));
	assert_int_equal(found.n, 20);
	for (uint32_t s = 0; s < RP_NR_STATISTICS; s++) {
		assert_int_equal(found.node[s][RP_NR_CPU], node[s]);
		assert_int_equal(found.system[s][RP_NR_CPU], system[s]);
		assert_int_equal(found.system[s][RP_NR_MEMORY], RP_NOT_SET);
	}
	assert_int_equal(found.node[RP_NR_P99][RP_NR_MEMORY], 1900);
	/* 285 seconds are less than half of ten minutes; a minute has five samples */
	assert_false(aggregate_over(&a, 300000, 600000, &found));
	assert_true(aggregate_over(&a, 300000, 60000, &found));
	assert_int_equal(found.n, 5);
	assert_int_equal(found.node[RP_NR_AVG][RP_NR_CPU], 18);
	/* Old points are dropped: half an hour holds at most its number of points. */
	for (int64_t i = 21; i <= 200; i++)
		aggregate_put(&a,
			      &(struct aggregate_point){1000 * 15 * (uint64_t)i, {i, i}, {i, i}});
	assert_true(aggregate_over(&a, 3000000, AGGREGATE_MAX_MS, &found));
	assert_int_equal(found.n, 121);
	assert_int_equal(found.node[RP_NR_P50][RP_NR_CPU], 139);
}

static void test_window(void **state)
{
	struct series s = {0};
	int64_t mcpu, memory;
	put(&s, 100, 0, 10);
	assert_false(series_average(&s, 100000, 60000, &mcpu, &memory));
	put(&s, 160, 60, 20);
	put(&s, 220, 180, 60);
	average_is(&s, 220, 300, 1500, 30);
	average_is(&s, 220, 60, 2000, 40);
	/* Two readings are used even if the requested window is shorter than their interval. */
	average_is(&s, 220, 10, 2000, 40);
	assert_false(series_average(&s, 220000 + 60001, 60000, &mcpu, &memory));
}

static void test_counter_that_began_anew(void **state)
{
	struct series s = {0};
	int64_t mcpu, memory;
	put(&s, 1, 1000, 5);
	put(&s, 2, 1001, 5);
	put(&s, 3, 0, 5);
	assert_false(series_average(&s, 3000, 60000, &mcpu, &memory));
	put(&s, 4, 2, 5);
	average_is(&s, 4, 60, 2000, 5);
}

/* Checks that a clock that goes back restarts the series, and that a clock that leaps forward
 * yields an average over the whole gap. */
static void test_clock_that_jumps(void **state)
{
	struct series s = {0};
	int64_t mcpu, memory;
	put(&s, 1000, 10, 5);
	put(&s, 1060, 70, 5);
	put(&s, 100, 71, 7); /* the clock goes back: earlier readings are dropped */
	assert_false(series_average(&s, 100000, 60000, &mcpu, &memory));
	put(&s, 160, 101, 9);
	average_is(&s, 160, 300, 500, 8);
	put(&s, 160, 102, 11); /* no time has passed: it is left out */
	average_is(&s, 160, 300, 500, 8);
	put(&s, 220, 162, 13);
	/* the clock leaps forward: usage is the average of the whole gap */
	put(&s, 1000220, 500162, 15);
	average_is(&s, 1000220, 60, 500, 14);
	/* asked for a time before the last reading */
	average_is(&s, 220, 60, 500, 12);
}

/* Checks that at any rate of readings, the retained ones cover the window, and not much more. */
static void test_ring(void **state)
{
	struct series s = {0};
	const uint64_t window_s = 60;
	for (uint64_t i = 1; i <= 1000; i++)
		put(&s, i, 2 * i, (int64_t)i);
	assert_int_equal(s.n, SERIES_READINGS);
	average_is(&s, 1000, window_s, 2000, 969);
	uint64_t reach_s = (s.list[(s.next + SERIES_READINGS - 1) % SERIES_READINGS].at_ms -
			    s.list[s.next].at_ms) /
			   1000;
	assert_in_range(reach_s, window_s, 2 * window_s);
}

static void test_rates(void **state)
{
	struct series s = {0};
	struct series_rate rates[SERIES_READINGS];
	put(&s, 100, 0, 10);
	assert_int_equal(series_rates(&s, 100000, 60000, rates), 0);
	put(&s, 115, 15, 20);
	put(&s, 130, 60, 60);
	assert_int_equal(series_rates(&s, 140000, 60000, rates), 2);
	assert_int_equal(rates[0].mcpu, 3000);
	assert_int_equal(rates[0].memory, 60);
	assert_int_equal(rates[1].mcpu, 1000);
	assert_int_equal(series_rates(&s, 180000, 60000, rates), 1);
	assert_int_equal(series_rates(&s, 190001, 60000, rates), 0);
}

static void test_files(void **state)
{
	uint64_t cpu;
	int64_t used;
	assert_int_equal(series_parse_stat("cpu  1 2 3 400 500 6 7 800 0 0\n", 100, &cpu), 0);
	assert_int_equal(cpu, UINT64_C(190000000));
	assert_int_equal(series_parse_stat("cpu  1 2 3\n", 100, &cpu), -EINVAL);
	assert_int_equal(series_parse_stat("cpu  -1 2 3 4 5 6 7\n", 100, &cpu), -EINVAL);
	assert_int_equal(
		series_parse_meminfo("MemTotal: 8 kB\nMemAvailable:  3 kB\n", false, &used), 0);
	assert_int_equal(used, 5 * 1024);
	assert_int_equal(series_parse_meminfo("MemTotal: 8 kB\nMemFree: 2 kB\nMemAvailable: 3 kB\n",
					      true, &used),
			 0);
	assert_int_equal(used, 6 * 1024);
	assert_int_equal(series_parse_meminfo("MemTotal: 8 kB\nMemAvailable: 9 kB\n", false, &used),
			 -EINVAL);
	assert_int_equal(series_parse_meminfo("MemTotal: 8 kB\n", false, &used), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_aggregates),
		cmocka_unit_test(test_window),
		cmocka_unit_test(test_counter_that_began_anew),
		cmocka_unit_test(test_clock_that_jumps),
		cmocka_unit_test(test_ring),
		cmocka_unit_test(test_rates),
		cmocka_unit_test(test_files),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
