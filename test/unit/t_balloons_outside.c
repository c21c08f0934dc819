/* SPDX-License-Identifier: Apache-2.0 */
/* CPU classes and interrupts, as files of a fake machine. */
#include "test/unit/t_balloons.h"

#include "modules/lib/private/irq.h"

#define CPU "/sys/devices/system/cpu/"

static void put(struct fake_host *f, const char *value, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
static void put(struct fake_host *f, const char *value, const char *fmt, ...)
{
	char path[200];
	va_list ap;
	va_start(ap, fmt);
	(void)vsnprintf(path, sizeof path, fmt, ap);
	va_end(ap);
	fake_file(f, path, value);
}

static struct fake_host *machine(void)
{
	struct fake_host *f = fake_host_new(&n4c16);
	for (unsigned i = 0; i < 16; i++) {
		put(f, "800000\n", CPU "cpu%u/cpufreq/scaling_min_freq", i);
		put(f, "3500000\n", CPU "cpu%u/cpufreq/scaling_max_freq", i);
		put(f, "800000\n", CPU "cpu%u/cpufreq/cpuinfo_min_freq", i);
		put(f, "3500000\n", CPU "cpu%u/cpufreq/cpuinfo_max_freq", i);
		put(f, "2400000\n", CPU "cpu%u/cpufreq/base_frequency", i);
		put(f, "powersave\n", CPU "cpu%u/cpufreq/scaling_governor", i);
		put(f, "balance_performance\n", CPU "cpu%u/cpufreq/energy_performance_preference",
		    i);
		put(f, "POLL\n", CPU "cpu%u/cpuidle/state0/name", i);
		put(f, "0\n", CPU "cpu%u/cpuidle/state0/disable", i);
		put(f, "C6\n", CPU "cpu%u/cpuidle/state1/name", i);
		put(f, "0\n", CPU "cpu%u/cpuidle/state1/disable", i);
	}
	for (unsigned p = 0; p < 2; p++) {
		put(f, "800000\n", CPU "intel_uncore_frequency/package_%02u_die_00/min_freq_khz",
		    p);
		put(f, "2200000\n", CPU "intel_uncore_frequency/package_%02u_die_00/max_freq_khz",
		    p);
		put(f, "800000\n",
		    CPU "intel_uncore_frequency/package_%02u_die_00/initial_min_freq_khz", p);
		put(f, "2200000\n",
		    CPU "intel_uncore_frequency/package_%02u_die_00/initial_max_freq_khz", p);
	}
	assert_int_equal(fake_policy_open(f, &rp_module_1), 0);
	return f;
}

/* Returns the content of a CPU's file; "-" if the file was not written. */
static const char *has(struct fake_host *f, unsigned cpu, const char *file)
{
	char path[200];
	(void)snprintf(path, sizeof path, CPU "cpu%u/%s", cpu, file);
	const char *text = fake_written(f, path);
	return text ? text : "-";
}

/* Checks that stop restores every setting, and that a later stop restores the settings made since.
 * */
static void test_stop(void **state)
{
	static const char config[] =
		"{reservedResources: {cpu: 1}, cpuClasses: [{name: fast, minFreq: 2GHz, "
		"freqGovernor: performance, disabledCstates: [C6], uncoreMinFreq: 1GHz}], "
		"balloonTypes: [{name: a, cpuClass: fast}]}";
	struct fake_host *f = machine();
	const struct rp_policy *p = fake_module_service(f, RP_POLICY_1);
	assert_int_equal(fake_configure(f, config), 0);
	expect(f, create(f, "a", "a", 2000), "2-3");
	for (unsigned i = 0; i < 2; i++) {
		(void)fake_run_work(f);
		assert_string_equal(has(f, 2, "cpufreq/scaling_min_freq"), "2000000");
		p->stop(fake_instance(f));
		assert_string_equal(has(f, 2, "cpufreq/scaling_min_freq"), "2000000");
		assert_int_equal(fake_run_work(f), 1);
		assert_string_equal(has(f, 2, "cpufreq/scaling_min_freq"), "800000");
		assert_string_equal(has(f, 3, "cpufreq/scaling_governor"), "powersave");
		assert_string_equal(has(f, 3, "cpuidle/state1/disable"), "0");
		assert_string_equal(
			fake_written(f,
				     CPU "intel_uncore_frequency/package_00_die_00/min_freq_khz"),
			"800000");
		assert_string_equal(has(f, 8, "cpufreq/scaling_min_freq"), "-");
		assert_int_equal(fake_configure(f, config), 0);
	}
	fake_host_free(f);
}

/* Checks a timer that expires with no write left to be tried again; the tests of cpu.so cover the
 * repeated writes. */
static void test_timer(void **state)
{
	struct fake_host *f = machine();
	assert_int_equal(fake_configure(f, "{cpuClasses: [{name: fast, minFreq: 2GHz}], "
					   "balloonTypes: [{name: a, cpuClass: fast}]}"),
			 0);
	rp_ctr a = create(f, "a", "a", 1000);
	(void)fake_run_work(f);
	assert_string_equal(has(f, 0, "cpufreq/scaling_min_freq"), "2000000");
	assert_true(fake_timer(f, 1) < 0);
	for (uint64_t cookie = 0; cookie < 3; cookie++) {
		assert_int_equal(fake_event(f, &(struct rp_event){.size = sizeof(struct rp_event),
								  .type = RP_EVENT_TIMER,
								  .cookie = cookie}),
				 0);
		assert_int_equal(fake_n_changed(f), 0);
		assert_int_equal(fake_run_work(f), 0);
	}
	expect(f, a, "0");
	fake_host_free(f);
}

/* Checks that the classes of custom resources from before cpuClasses are appended to cpuClasses,
 * sorted by name. */
static void test_old_classes(void **state)
{
	struct fake_host *f = machine();
	assert_int_equal(
		fake_configure(f,
			       "{cpuClasses: [{name: b, maxFreq: 3GHz}], control: {cpu: {classes: "
			       "{c: {maxFreq: 2000000}, b: {maxFreq: 1GHz}, a: {minFreq: 1GHz, "
			       "disabledCstates: [C6]}}}}, idleCPUClass: c, "
			       "balloonTypes: [{name: x, cpuClass: a}, {name: y, cpuClass: b}]}"),
		0);
	assert_non_null(strstr(fake_log(f), "control.cpu.classes is obsolete"));
	assert_non_null(strstr(fake_log(f), "CPU class b is defined twice"));
	assert_null(strstr(fake_log(f), "unknown CPU class"));
	expect(f, create(f, "x", "x", 1000), "0");
	expect(f, create(f, "y", "y", 1000), "1");
	assert_true(fake_run_work(f) > 0);
	assert_string_equal(has(f, 0, "cpufreq/scaling_min_freq"), "1000000");
	assert_string_equal(has(f, 0, "cpuidle/state1/disable"), "1");
	assert_string_equal(has(f, 1, "cpufreq/scaling_max_freq"), "3000000");
	assert_string_equal(has(f, 2, "cpufreq/scaling_max_freq"), "2000000");
	/* A class that is defined twice in the same way causes no warning. */
	fake_log_clear(f);
	assert_int_equal(fake_configure(f, "{cpuClasses: [{name: b, maxFreq: 1GHz, "
					   "disabledCstates: [C6]}], control: {cpu: {classes: {b: "
					   "{maxFreq: 1GHz, disabledCstates: [C6]}}}}}"),
			 0);
	assert_null(strstr(fake_log(f), "defined twice"));
	assert_true(fake_run_work(f) > 0);
	static const struct {
		const char *class, *why;
	} refused[] = {
		{"a: {minFreq: 2GHz, maxFreq: 1GHz}", "higher than maxFreq"},
		{"\"\": {}", "needs a name"},
	};
	for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
		char config[200];
		(void)snprintf(config, sizeof config, "{control: {cpu: {classes: {%s}}}}",
			       refused[i].class);
		assert_true(fake_configure(f, config) < 0);
		assert_non_null(strstr(fake_error(f), refused[i].why));
	}
	fake_host_free(f);
}

/* ---- interrupts ------------------------------------------------------------------------------ */

static void test_lines(void **state)
{
	static const struct {
		const char *line;
		uint32_t n_cpus;
		int32_t r;
		uint32_t number;
		const char *description;
	} lines[] = {
		{" 1:  5  6  a  b", 2, 0, 1, "a b"},  {"1: 5 6", 2, 0, 1, ""},
		{"NMI: 1 2 x", 2, -RP_ENOENT, 0, ""}, {"1: 5", 2, -RP_ENOENT, 0, ""},
		{"1: 5 x y", 2, -RP_ENOENT, 0, ""},   {"", 2, -RP_ENOENT, 0, ""},
		{":", 0, -RP_ENOENT, 0, ""},	      {"1234567: 1", 1, -RP_ENOENT, 0, ""},
		{"99999: 1", 1, -RP_ENOENT, 0, ""},   {"7 1 1", 1, -RP_ENOENT, 0, ""},
	};
	for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
		char description[IRQ_TEXT_MAX] = "";
		uint32_t number = 0;
		int32_t r = irq_parse_line(lines[i].line, strlen(lines[i].line), lines[i].n_cpus,
					   &number, description);
		assert_int_equal(r, lines[i].r);
		assert_int_equal(number, lines[i].number);
		assert_string_equal(r ? "" : description, lines[i].description);
	}
	char word[600], description[IRQ_TEXT_MAX];
	uint32_t number;
	(void)snprintf(word, sizeof word, "3: 1 short %0500d", 7);
	assert_int_equal(irq_parse_line(word, strlen(word), 1, &number, description), 0);
	assert_string_equal(description, "short");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stop),
		cmocka_unit_test(test_timer),
		cmocka_unit_test(test_old_classes),
		cmocka_unit_test(test_lines),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
