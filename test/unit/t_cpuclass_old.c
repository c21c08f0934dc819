/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPU classes of two modules on one CPU, under a kernel before 5.3: a lowest frequency above the
 * highest is refused. The module that takes over says what it wants first, the other one puts back
 * what it had set after that.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/host/services.h"
#include "modules/lib/cpuclass.h"

#define JOBS_MAX 8u
#define COOKIE 7u
#define DIR "/sys/devices/system/cpu/cpu0/cpufreq/"

static struct {
	long min, max;
	int refuses; /* every write, with -errno */
	struct {
		int32_t (*run)(void *arg);
		void (*done)(void *arg, int32_t result);
		void *arg;
	} jobs[JOBS_MAX];
	unsigned n_jobs;
	uint64_t armed_ms; /* the timer; 0: not */
	struct rp_idset online;
} machine;

static int32_t read_file(void *ctx, const char *path, char *buf, uint32_t cap)
{
	(void)ctx;
	long n = strcmp(path, DIR "scaling_min_freq") == 0   ? machine.min
		 : strcmp(path, DIR "scaling_max_freq") == 0 ? machine.max
							     : 0;
	return n ? snprintf(buf, cap, "%ld\n", n) : -ENOENT;
}

static int32_t write_file(void *ctx, const char *path, const char *text)
{
	(void)ctx;
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

static int32_t submit(void *ctx, int32_t (*run)(void *arg), void (*done)(void *arg, int32_t result),
		      void *arg)
{
	(void)ctx;
	assert_true(machine.n_jobs < JOBS_MAX);
	machine.jobs[machine.n_jobs].run = run;
	machine.jobs[machine.n_jobs].done = done;
	machine.jobs[machine.n_jobs++].arg = arg;
	return 0;
}

static void work_off(void)
{
	for (unsigned i = 0; i < machine.n_jobs; i++)
		machine.jobs[i].done(machine.jobs[i].arg, machine.jobs[i].run(machine.jobs[i].arg));
	machine.n_jobs = 0;
}

static int32_t arm(void *ctx, uint64_t cookie, uint64_t delay_ms)
{
	(void)ctx;
	assert_int_equal(cookie, COOKIE);
	machine.armed_ms = delay_ms;
	return 0;
}

static int32_t get_set(void *ctx, uint32_t which, struct rp_ids *ret)
{
	(void)ctx;
	(void)which;
	*ret = rp_ids_of(&machine.online);
	return 0;
}

static int32_t get_cpu(void *ctx, uint32_t cpu, struct rp_cpu_info *ret)
{
	(void)ctx;
	(void)ret;
	assert_int_equal(cpu, 0);
	return 0;
}

static void keep_log(void *ctx, uint32_t level, uint64_t object, const char *text)
{
	(void)ctx;
	(void)level;
	(void)object;
	(void)text;
}

static const struct rp_host_work work = {
	.size = sizeof work, .submit = submit, .read_file = read_file, .write_file = write_file};
static const struct rp_host_timer timer = {.size = sizeof timer, .arm = arm};
static const struct rp_host_topology topology = {
	.size = sizeof topology, .set = get_set, .cpu = get_cpu};
static const struct rp_host logs = {.size = sizeof logs, .log = keep_log};

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
	machine.min = 800000;
	machine.max = 3800000;
	rp_idset_add(&machine.online, 0);
	for (unsigned i = 0; i < 2; i++) {
		p->instances[i].env = &p->env;
		const struct modhost h = {.host = &logs,
					  .ctx = &p->instances[i],
					  .topology = &topology,
					  .timer = &timer,
					  .work = &work,
					  .settings = &host_settings_service};
		p->classes[i] = cpuclass_new(&h);
		assert_non_null(p->classes[i]);
		cpuclass_retry(p->classes[i], COOKIE, NULL, NULL);
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
	struct rp_ids cpu = rp_ids_of(&machine.online);
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
	assert_true(machine.armed_ms > 0);
	machine.armed_ms = 0;
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
	/* What was refused is not what the first one goes back to. */
	has(800000, 3800000);
	assert_int_equal(cpuclass_n_failing(p->classes[1]), 1);
	wait_a_bit(p);
	has(2400000, 3800000);
	assert_int_equal(cpuclass_n_failing(p->classes[1]), 0);
	assert_int_equal(machine.armed_ms, 0);
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

/* Both ends are said: nobody has to wait for anybody. */
static void test_whole_ranges(void **state)
{
	struct place *p = *state;
	want(p, 0, 1000000, 1500000);
	work_off();
	take_over(p, 2400000, 3000000);
	has(2400000, 3000000);
	assert_int_equal(machine.armed_ms, 0);
	want(p, 0, 1000000, 1500000);
	cpuclass_stop(p->classes[1]);
	work_off();
	has(1000000, 1500000);
	assert_int_equal(machine.armed_ms, 0);
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
	assert_int_equal(machine.armed_ms, 0);
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
