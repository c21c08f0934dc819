/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPU classes of two modules on one CPU, under a kernel before 5.3: a lowest frequency above the
 * highest is refused. The module that takes over says what it wants first, the other one puts back
 * what it had set after that.
 */
#include "test/unit/t_cpuclass.h"
#include "core/nri-rpd/host/service/settings.h"

#define DIR "/sys/devices/system/cpu/cpu0/cpufreq/"

static struct {
	long min, max;
	int refuses; /* every write, with -errno */
} machine;

static int32_t read_file(void *ctx, const char *path, char *buf, uint32_t cap)
{
	long n = strcmp(path, DIR "scaling_min_freq") == 0   ? machine.min
		 : strcmp(path, DIR "scaling_max_freq") == 0 ? machine.max
							     : 0;
	return n ? snprintf(buf, cap, "%ld\n", n) : -ENOENT;
}

static int32_t write_file(void *ctx, const char *path, const char *text)
{
	bool is_max = strcmp(path, DIR "scaling_max_freq") == 0;
	long n = strtol(text, NULL, 10);
	assert_true(n > 0);
	if (machine.refuses)
		return machine.refuses;
	if (is_max ? n < machine.min : n > machine.max)
		return -EINVAL;
	*(is_max ? &machine.max : &machine.min) = n;
	return 0;
}

struct place {
	struct host_env env;
	struct instance instances[2];
	struct cpuclass *classes[2];
};

static int setup(void **state)
{
	struct place *p = calloc(1, sizeof *p);
	assert_non_null(p);
	memset(&machine, 0, sizeof machine);
	memset(&around, 0, sizeof around);
	machine.min = 800000;
	machine.max = 3800000;
	rp_idset_add(&around.online, 0);
	for (unsigned i = 0; i < 2; i++) {
		p->instances[i].env = &p->env;
		p->classes[i] = classes_of(&p->instances[i]);
	}
	*state = p;
	return 0;
}

static int teardown(void **state)
{
	struct place *p = *state;
	for (unsigned i = 0; i < 2; i++)
		cpuclass_free(p->classes[i]);
	settings_close(&p->env);
	free(p);
	return 0;
}

/* CPU 0 is in a class of a module's that says this. */
static void want(struct place *p, unsigned module, int64_t min_khz, int64_t max_khz)
{
	struct cpuclass_defs defs = {.n = 1};
	defs.list[0] = (struct cpuclass_def){
		.name = "c", .governor = "", .min_khz = min_khz, .max_khz = max_khz};
	struct rp_ids cpu = rp_ids_of(&around.online);
	assert_int_equal(cpuclass_configure(p->classes[module], &defs, cpu), 0);
	cpuclass_use(p->classes[module], 0, cpu);
	cpuclass_commit(p->classes[module]);
}

static void has(long min, long max)
{
	assert_int_equal(machine.min, min);
	assert_int_equal(machine.max, max);
}

/* The second module takes over, which finds the range of the first one. */
static void take_over(struct place *p, int64_t min_khz, int64_t max_khz)
{
	want(p, 1, min_khz, max_khz);
	cpuclass_stop(p->classes[0]);
	work_off();
}

static void wait_a_bit(struct place *p)
{
	assert_true(around.armed_ms > 0);
	around.armed_ms = 0;
	cpuclass_timer(p->classes[1], COOKIE);
	work_off();
}

static void test_lowest_above_former_highest(void **state)
{
	struct place *p = *state;
	want(p, 0, 0, 2000000);
	work_off();
	has(800000, 2000000);
	take_over(p, 2400000, 0);
	/* The first module does not restore the refused values. */
	has(800000, 3800000);
	assert_int_equal(cpuclass_n_failing(p->classes[1]), 1);
	wait_a_bit(p);
	has(2400000, 3800000);
	assert_int_equal(cpuclass_n_failing(p->classes[1]), 0);
	assert_int_equal(around.armed_ms, 0);
	cpuclass_stop(p->classes[1]);
	work_off();
	has(800000, 3800000);
	assert_null(p->env.settings);
}

static void test_highest_below_former_lowest(void **state)
{
	struct place *p = *state;
	want(p, 0, 3000000, 0);
	work_off();
	has(3000000, 3800000);
	take_over(p, 0, 2000000);
	has(800000, 3800000);
	wait_a_bit(p);
	has(800000, 2000000);
	cpuclass_stop(p->classes[1]);
	work_off();
	has(800000, 3800000);
	assert_null(p->env.settings);
}

/* Checks classes that set both limits: neither module waits for the other. */
static void test_whole_ranges(void **state)
{
	struct place *p = *state;
	want(p, 0, 1000000, 1500000);
	work_off();
	take_over(p, 2400000, 3000000);
	has(2400000, 3000000);
	assert_int_equal(around.armed_ms, 0);
	want(p, 0, 1000000, 1500000);
	cpuclass_stop(p->classes[1]);
	work_off();
	has(1000000, 1500000);
	assert_int_equal(around.armed_ms, 0);
}

/* A value that the kernel has refused is nothing to go back to, whoever leaves. */
static void test_refused(void **state)
{
	struct place *p = *state;
	want(p, 0, 0, 3000000);
	work_off();
	want(p, 1, 0, 2000000);
	work_off();
	machine.refuses = -EIO;
	want(p, 0, 0, 1500000);
	work_off();
	machine.refuses = 0;
	has(800000, 2000000);
	cpuclass_stop(p->classes[1]);
	work_off();
	assert_true(machine.max != 1500000);
	cpuclass_stop(p->classes[0]);
	work_off();
	has(800000, 3800000);
	assert_null(p->env.settings);
}

/* Refused for good, without anybody in the way: it is not tried again by the clock. */
static void test_no_use(void **state)
{
	struct place *p = *state;
	machine.refuses = -EINVAL;
	want(p, 1, 2400000, 0);
	work_off();
	assert_int_equal(cpuclass_n_failing(p->classes[1]), 1);
	assert_int_equal(around.armed_ms, 0);
	assert_null(p->env.settings);
}

#define T(f) cmocka_unit_test_setup_teardown(test_##f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(lowest_above_former_highest),
		T(highest_below_former_lowest),
		T(whole_ranges),
		T(refused),
		T(no_use),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
