/* SPDX-License-Identifier: Apache-2.0 */
/* cpu.so: which CPU has which class, when it gets and loses it. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "modules/lib/private/ctl_queue.h"
#include "test/unit/ctl_host.h"

extern const struct rp_module rp_module_1;

#define FREQ(cpu, file) "/sys/devices/system/cpu/cpu" #cpu "/cpufreq/scaling_" file
#define CONFIG "{classes: {fast: {minFreq: 3000000}, slow: {maxFreq: 1000000}}}"

static int setup(void **state)
{
	struct ctl_host *t = ctl_host_new();
	for (unsigned cpu = 0; cpu < 16; cpu++) {
		static const struct {
			const char *file, *text;
		} files[] = {
			{"cpuinfo_min_freq", "800000\n"},  {"cpuinfo_max_freq", "3800000\n"},
			{"base_frequency", "2400000\n"},   {"scaling_min_freq", "800000\n"},
			{"scaling_max_freq", "3800000\n"}, {"scaling_governor", "powersave\n"}};
		for (unsigned i = 0; i < sizeof files / sizeof *files; i++) {
			char path[128];
			(void)snprintf(path, sizeof path,
				       "/sys/devices/system/cpu/cpu%u/cpufreq/%s", cpu,
				       files[i].file);
			ctl_put(t, path, files[i].text);
		}
	}
	assert_int_equal(ctl_open(t, &rp_module_1), 0);
	*state = t;
	return 0;
}

static int teardown(void **state)
{
	ctl_host_free(*state);
	return 0;
}

static void has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("\"%s\" is not in \"%s\"", part, text);
}

static rp_ctr make(struct ctl_host *t, const char *name, const char *cpus, const char *exclusive,
		   const char *class)
{
	rp_ctr c = ctl_ctr(t, &(struct fake_ctr){.name = name}, "");
	fake_decide(ctl_fake(t), c, cpus, exclusive, NULL);
	if (class)
		ctl_decide(t, c, RP_F_CPU_CLASS, class);
	return c;
}

static void test_configurations(void **state)
{
	struct ctl_host *t = *state;
	static const struct {
		const char *text, *why;
	} bad[] = {
		{"{classes: {a: {minFreq: 2000000, maxFreq: 1000000}}}", "higher than maxFreq"},
		{"{classes: {\"\": {}}}", "at most 63 bytes"},
		{"{cpuClasses: [{name: a}], classes: {a: {}}}", "two CPU classes are named"},
		{"{classes: {a: {disabledCstates: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, "
		 "15, 16, 17]}}}",
		 "more than 16 idle states"},
	};
	for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
		assert_int_equal(ctl_configure(t, bad[i].text), -RP_EINVAL);
		has(fake_error(ctl_fake(t)), bad[i].why);
	}
	assert_int_equal(ctl_configure(t, "{}"), 0);
	assert_int_equal(ctl_configure(t, "{classes: {a: {disabledCstates: [C6]}}}"), 0);
}

static void test_classes(void **state)
{
	struct ctl_host *t = *state;
	assert_int_equal(ctl_configure(t, CONFIG), 0);
	/* the oldest on shared CPUs, exclusive ones before all */
	rp_ctr shared = make(t, "s", "0-1,4-5", NULL, "slow"),
	       other = make(t, "o", "4-7", NULL, "fast"), own = make(t, "x", "2,3", "2,3", "fast"),
	       none = make(t, "n", "8-9", NULL, NULL);
	assert_int_equal(ctl_pre_create(t, shared), 0);
	has(fake_trail(ctl_fake(t), shared), "CPU class slow, decided by the policy");
	assert_int_equal(ctl_pre_create(t, none), 0);
	const rp_ctr all[] = {shared, other, own, none};
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(ctl_start(t, all[i]), 0);
	(void)ctl_work(t);
	assert_string_equal(ctl_report(t, shared), "1");
	assert_string_equal(ctl_report(t, none), "");
	assert_string_equal(ctl_get(t, FREQ(0, "max_freq")), "1000000");
	assert_string_equal(ctl_get(t, FREQ(4, "max_freq")), "1000000");
	assert_string_equal(ctl_get(t, FREQ(2, "min_freq")), "3000000");
	assert_string_equal(ctl_get(t, FREQ(2, "max_freq")), "3800000");
	assert_string_equal(ctl_get(t, FREQ(6, "min_freq")), "3000000");
	assert_string_equal(ctl_get(t, FREQ(8, "min_freq")), "800000");
	/* a stopped container's class no longer counts; CPUs without a class get their original
	 * values */
	assert_int_equal(ctl_stop(t, shared), 0);
	assert_int_equal(ctl_stop(t, none), 0);
	ctl_sync(t);
	(void)ctl_work(t);
	assert_string_equal(ctl_get(t, FREQ(0, "max_freq")), "3800000");
	assert_string_equal(ctl_get(t, FREQ(4, "min_freq")), "3000000");
	/* other CPUs, no class */
	fake_decide(ctl_fake(t), other, "12", NULL, NULL);
	assert_int_equal(ctl_update(t, other, RP_CHANGED_CPUS), 0);
	(void)ctl_work(t);
	assert_string_equal(ctl_get(t, FREQ(12, "min_freq")), "3000000");
	assert_string_equal(ctl_get(t, FREQ(6, "min_freq")), "800000");
	ctl_decide(t, other, RP_F_CPU_CLASS, "");
	assert_int_equal(ctl_update(t, other, RP_CHANGED_CLASS), 0);
	assert_int_equal(ctl_update(t, other, RP_CHANGED_MEMORY), 0);
	(void)ctl_work(t);
	assert_string_equal(ctl_get(t, FREQ(12, "min_freq")), "800000");
	has(ctl_metrics(t), "containers{} 1\n");
	has(ctl_metrics(t), "write_failures_total{} 0\n");
}

static void test_unknown(void **state)
{
	struct ctl_host *t = *state;
	assert_int_equal(ctl_configure(t, CONFIG), 0);
	rp_ctr c = make(t, "c", "0", NULL, "medium");
	assert_int_equal(ctl_pre_create(t, c), -RP_EINVAL);
	has(fake_error(ctl_fake(t)), "unknown CPU class \"medium\"");
	assert_int_equal(ctl_start(t, c), 0);
	assert_string_equal(ctl_report(t, c), "3 unknown CPU class medium");
	/* a class that goes with a reload */
	ctl_decide(t, c, RP_F_CPU_CLASS, "slow");
	assert_int_equal(ctl_update(t, c, RP_CHANGED_CLASS), 0);
	(void)ctl_work(t);
	assert_string_equal(ctl_get(t, FREQ(0, "max_freq")), "1000000");
	assert_int_equal(ctl_configure(t, "{classes: {fast: {minFreq: 3000000}}}"), 0);
	ctl_sync(t);
	(void)ctl_work(t);
	assert_string_equal(ctl_report(t, c), "3 unknown CPU class slow");
	assert_string_equal(ctl_get(t, FREQ(0, "max_freq")), "3800000");
}

static void test_switched_off(void **state)
{
	struct ctl_host *t = *state;
	assert_int_equal(ctl_configure(t, "{enable: false, classes: {fast: {minFreq: 3000000}}}"),
			 0);
	rp_ctr c = make(t, "c", "0", NULL, "fast");
	assert_int_equal(ctl_pre_create(t, c), 0);
	assert_int_equal(ctl_start(t, c), 0);
	ctl_sync(t);
	assert_int_equal(ctl_stop(t, c), 0);
	assert_int_equal(ctl_work(t), 0);
	struct rp_instance *inst;
	fake_hide_service(ctl_fake(t), RP_HOST_TOPOLOGY_1);
	assert_int_equal(rp_module_1.create(fake_rp_host(ctl_fake(t)), &inst), -RP_ENOTSUP);
	assert_null(rp_module_1.service(NULL, "nri-rp.unknown/1"));
}

/* Checks that busy files are written again by the timer, and the container's report shows the
 * problem meanwhile. */
static void test_busy(void **state)
{
	struct ctl_host *t = *state;
	assert_int_equal(ctl_configure(t, CONFIG), 0);
	rp_ctr c = make(t, "c", "0-1", NULL, "slow"), fine = make(t, "f", "8", NULL, "fast");
	ctl_fail(t, "cpu0/cpufreq/scaling_max_freq", EBUSY);
	assert_int_equal(ctl_start(t, c), 0);
	assert_int_equal(ctl_start(t, fine), 0);
	(void)ctl_work(t);
	assert_string_equal(ctl_get(t, FREQ(1, "max_freq")), "1000000");
	has(ctl_report(t, c), "2 /sys/devices/system/cpu/cpu0/cpufreq/scaling_max_freq: writing");
	has(ctl_report(t, c), "; trying again");
	assert_string_equal(ctl_report(t, fine), "1");
	has(ctl_metrics(t), "failing{} 1\n");
	/* later and later, and not at all in between */
	int64_t last = 0;
	for (unsigned i = 1; i < CTL_TRIES_MAX; i++) {
		int64_t delay = fake_timer(ctl_fake(t), CTL_AGAIN_COOKIE);
		assert_true(delay >= (last < CTL_AGAIN_LAST_MS ? 2 * last : last) ||
			    delay == CTL_AGAIN_LAST_MS);
		last = delay;
		ctl_timer(t, CTL_AGAIN_COOKIE + 1);
		assert_int_equal(ctl_work(t), 0);
		ctl_timer(t, CTL_AGAIN_COOKIE);
		assert_true(ctl_work(t) > 0);
	}
	has(ctl_report(t, c), "; given up");
	assert_true(fake_timer(ctl_fake(t), CTL_AGAIN_COOKIE) < 0);
	/* the next change is another chance */
	ctl_fail(t, NULL, 0);
	assert_int_equal(ctl_stop(t, fine), 0);
	(void)ctl_work(t);
	assert_string_equal(ctl_report(t, c), "1");
	assert_string_equal(ctl_get(t, FREQ(0, "max_freq")), "1000000");
	has(ctl_metrics(t), "failing{} 0\n");
}

static void test_mended(void **state)
{
	struct ctl_host *t = *state;
	assert_int_equal(ctl_configure(t, CONFIG), 0);
	rp_ctr c = make(t, "c", "0", NULL, "slow");
	ctl_fail(t, "cpu0/cpufreq/scaling_max_freq", EIO);
	assert_int_equal(ctl_start(t, c), 0);
	(void)ctl_work(t);
	has(ctl_report(t, c), "3 /sys/");
	ctl_mend(t);
	assert_string_equal(ctl_report(t, c), "1");
	assert_string_equal(ctl_get(t, FREQ(0, "max_freq")), "1000000");
	/* a value that the kernel never accepts is reported once */
	ctl_decide(t, c, RP_F_CPU_CLASS, "fast");
	ctl_fail(t, "cpu0/cpufreq/scaling_min_freq", EINVAL);
	assert_int_equal(ctl_update(t, c, RP_CHANGED_CLASS), 0);
	(void)ctl_work(t);
	has(ctl_report(t, c), "3 /sys/");
	assert_null(strstr(ctl_report(t, c), "again"));
	assert_true(fake_timer(ctl_fake(t), CTL_AGAIN_COOKIE) < 0);
	/* a stopped container gets no reports about the CPU any more */
	assert_int_equal(ctl_stop(t, c), 0);
	(void)ctl_work(t);
}

/* Checks a CPU that goes offline and returns before an event reports either. */
static void test_offline(void **state)
{
	struct ctl_host *t = *state;
	assert_int_equal(ctl_configure(t, CONFIG), 0);
	rp_ctr c = make(t, "c", "0-1", NULL, "slow");
	ctl_put(t, "/sys/devices/system/cpu/cpu1/online", "0\n");
	ctl_remove(t, "/sys/devices/system/cpu/cpu1/cpufreq");
	assert_int_equal(ctl_start(t, c), 0);
	(void)ctl_work(t);
	assert_string_equal(ctl_get(t, FREQ(0, "max_freq")), "1000000");
	has(ctl_report(t, c), "the CPU is offline; trying again");
	ctl_put(t, "/sys/devices/system/cpu/cpu1/online", "1\n");
	ctl_put(t, FREQ(1, "max_freq"), "3800000\n");
	ctl_put(t, FREQ(1, "min_freq"), "800000\n");
	ctl_mend(t);
	assert_string_equal(ctl_report(t, c), "1");
	assert_string_equal(ctl_get(t, FREQ(1, "max_freq")), "1000000");
	assert_int_equal(ctl_stop(t, c), 0);
	(void)ctl_work(t);
}

/* A reload that was to drop it, or to switch it off, is refused: it goes on as if nothing had been,
 * with the retries. */
static void test_stopped_and_started(void **state)
{
	struct ctl_host *t = *state;
	assert_int_equal(ctl_configure(t, CONFIG), 0);
	rp_ctr c = make(t, "c", "0", NULL, "slow");
	assert_int_equal(ctl_start(t, c), 0);
	(void)ctl_work(t);
	ctl_stop_and_start(t, &rp_module_1);
	(void)ctl_work(t);
	assert_string_equal(ctl_get(t, FREQ(0, "max_freq")), "1000000");
	/* Failed writes are tried again by the timer as before, and the container's report says so.
	 * */
	rp_ctr d = make(t, "d", "1", NULL, "slow");
	ctl_fail(t, "cpu1/cpufreq/scaling_max_freq", EBUSY);
	assert_int_equal(ctl_start(t, d), 0);
	(void)ctl_work(t);
	has(ctl_report(t, d), "; trying again");
	assert_true(fake_timer(ctl_fake(t), CTL_AGAIN_COOKIE) > 0);
	ctl_mend(t);
	assert_string_equal(ctl_report(t, d), "1");
	assert_string_equal(ctl_get(t, FREQ(1, "max_freq")), "1000000");
	/* The last stop puts all back. */
	assert_int_equal(ctl_stop(t, c), 0);
	assert_int_equal(ctl_stop(t, d), 0);
	(void)ctl_work(t);
	assert_string_equal(ctl_get(t, FREQ(0, "max_freq")), "3800000");
	assert_string_equal(ctl_get(t, FREQ(1, "max_freq")), "3800000");
}

/* Off and on by reloads: what it has set goes when it is switched off, and comes when it is
 * switched on. */
static void test_off_and_on(void **state)
{
	struct ctl_host *t = *state;
	assert_int_equal(ctl_configure(t, CONFIG), 0);
	rp_ctr c = make(t, "c", "0-1", NULL, "slow"), d = make(t, "d", "2", NULL, "slow");
	assert_int_equal(ctl_start(t, c), 0);
	(void)ctl_work(t);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(ctl_configure(t, "{enable: false}"), 0);
		ctl_sync(t);
		(void)ctl_work(t);
		assert_string_equal(ctl_get(t, FREQ(0, "max_freq")), "3800000");
		assert_string_equal(ctl_get(t, FREQ(1, "max_freq")), "3800000");
		if (!i)
			assert_int_equal(ctl_start(t, d), 0); /* the module is off */
		(void)ctl_work(t);
		assert_string_equal(ctl_get(t, FREQ(2, "max_freq")), "3800000");
		assert_int_equal(ctl_configure(t, CONFIG), 0);
		ctl_sync(t);
		(void)ctl_work(t);
		for (unsigned cpu = 0; cpu < 3; cpu++)
			assert_string_equal(ctl_get(t, cpu ? cpu == 1 ? FREQ(1, "max_freq")
								      : FREQ(2, "max_freq")
							   : FREQ(0, "max_freq")),
					    "1000000");
		assert_string_equal(ctl_report(t, c), "1");
		assert_string_equal(ctl_report(t, d), "1");
	}
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_configurations),	TEST(test_classes),    TEST(test_unknown),
		TEST(test_switched_off),	TEST(test_busy),       TEST(test_mended),
		TEST(test_stopped_and_started), TEST(test_off_and_on), TEST(test_offline),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
