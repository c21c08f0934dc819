/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPU classes where CPUs 0 and 1 share one policy of cpufreq: what is written through one is read
 * through the other. And results about a CPU that has gone offline meanwhile.
 */
#include "test/unit/t_cpuclass.h"
#include "core/nri-rpd/host/service/settings.h"

#define VALUE 32u

enum { FAST, SLOW, N_CLASSES };

static const char *const names[] = {"scaling_min_freq", "scaling_max_freq", "scaling_governor",
				    "energy_performance_preference"};
enum { MIN, MAX, GOVERNOR, EPP, N_FILES };

static struct {
	char files[N_FILES][VALUE];
	bool lists; /* related_cpus and affected_cpus */
	unsigned n_writes;
} machine;

/* Returns the value of a file, shared by both CPUs; NULL: not a file of the frequency policy. */
static char *file_of(const char *path)
{
	unsigned cpu;
	char name[64];
	if (sscanf(path, "/sys/devices/system/cpu/cpu%u/cpufreq/%63s", &cpu, name) != 2 || cpu > 1)
		return NULL;
	for (unsigned i = 0; i < N_FILES; i++)
		if (strcmp(name, names[i]) == 0)
			return machine.files[i];
	return NULL;
}

static bool is_online(uint32_t cpu)
{
	return rp_ids_has(rp_ids_of(&around.online), cpu);
}

static int32_t read_file(void *ctx, const char *path, char *buf, uint32_t cap)
{
	const char *file = file_of(path), *slash = strrchr(path, '/');
	if (file)
		return snprintf(buf, cap, "%s\n", file);
	if (machine.lists && strcmp(slash, "/related_cpus") == 0)
		return snprintf(buf, cap, "0 1 \n");
	if (machine.lists && strcmp(slash, "/affected_cpus") == 0)
		return snprintf(buf, cap, "%s%s\n", is_online(0) ? "0 " : "",
				is_online(1) ? "1 " : "");
	if (strcmp(slash, "/online") == 0)
		return snprintf(buf, cap, "%d\n", is_online((uint32_t)(slash[-1] - '0')));
	return -ENOENT;
}

static int32_t write_file(void *ctx, const char *path, const char *text)
{
	char *file = file_of(path);
	assert_non_null(file);
	machine.n_writes++;
	(void)snprintf(file, VALUE, "%s", text);
	return 0;
}

struct place {
	struct host_env env;
	struct instance instance;
	struct cpuclass *classes;
};

static void has(const char *min, const char *max, const char *governor, const char *epp)
{
	assert_string_equal(machine.files[MIN], min);
	assert_string_equal(machine.files[MAX], max);
	assert_string_equal(machine.files[GOVERNOR], governor);
	assert_string_equal(machine.files[EPP], epp);
}

static void is_as_found(void)
{
	has("800000", "3800000", "powersave", "128");
}

static void configure(struct place *p)
{
	struct cpuclass_defs defs = {.n = N_CLASSES};
	defs.list[FAST] = (struct cpuclass_def){
		.name = "fast", .governor = "", .min_khz = 2400000, .max_khz = 3000000, .epp = 10};
	defs.list[SLOW] = (struct cpuclass_def){.name = "slow",
						.governor = "conservative",
						.min_khz = 1000000,
						.max_khz = 1500000,
						.epp = 200};
	assert_int_equal(cpuclass_configure(p->classes, &defs, rp_ids_of(&around.online)), 0);
}

static int setup(void **state)
{
	struct place *p = calloc(1, sizeof *p);
	assert_non_null(p);
	memset(&machine, 0, sizeof machine);
	memset(&around, 0, sizeof around);
	static const char *const found[] = {"800000", "3800000", "powersave", "128"};
	for (unsigned i = 0; i < N_FILES; i++)
		(void)snprintf(machine.files[i], VALUE, "%s", found[i]);
	machine.lists = true;
	rp_idset_add(&around.online, 0);
	rp_idset_add(&around.online, 1);
	p->instance.env = &p->env;
	p->classes = classes_of(&p->instance);
	configure(p);
	*state = p;
	return 0;
}

static int teardown(void **state)
{
	struct place *p = *state;
	cpuclass_free(p->classes);
	settings_close(&p->env);
	free(p);
	return 0;
}

static void use(struct place *p, uint32_t cpu, uint32_t class)
{
	struct rp_idset one;
	rp_idset_clear(&one);
	rp_idset_add(&one, cpu);
	cpuclass_use(p->classes, class, rp_ids_of(&one));
}

static void commit(struct place *p)
{
	cpuclass_commit(p->classes);
	work_off();
}

/* Checks that the saved values are those from before the first of the two CPUs was written. */
static void test_one_class(void **state)
{
	struct place *p = *state;
	use(p, 0, SLOW);
	use(p, 1, SLOW);
	commit(p);
	has("1000000", "1500000", "conservative", "200");
	assert_int_equal(machine.n_writes, N_FILES);
	assert_int_equal(around.n_warnings, 0);
	/* As long as one of them is in the class they both are. */
	use(p, 0, CPUCLASS_NONE);
	commit(p);
	has("1000000", "1500000", "conservative", "200");
	use(p, 1, CPUCLASS_NONE);
	commit(p);
	is_as_found();
	assert_null(p->env.settings);
}

/* The last one to be given a class does not remember what was set through the other. */
static void test_stopped(void **state)
{
	struct place *p = *state;
	use(p, 1, SLOW);
	commit(p);
	use(p, 0, FAST);
	commit(p);
	cpuclass_stop(p->classes);
	work_off();
	is_as_found();
	assert_null(p->env.settings);
}

/* Checks that the higher class applies in either order, with one warning and no repeated writes. */
static void test_two_classes(void **state)
{
	struct place *p = *state;
	for (uint32_t fast = 0; fast < 2; fast++) {
		configure(p);
		around.n_warnings = 0;
		use(p, fast, FAST);
		use(p, !fast, SLOW);
		commit(p);
		has("2400000", "3000000", "conservative", "10");
		assert_int_equal(around.n_warnings, 1);
		assert_non_null(strstr(around.warning, "CPUs 0 1: in different classes"));
		unsigned n = machine.n_writes;
		for (unsigned i = 0; i < 3; i++) {
			use(p, 0, CPUCLASS_NONE);
			use(p, 1, CPUCLASS_NONE);
			use(p, fast, FAST);
			use(p, !fast, SLOW);
			commit(p);
		}
		assert_int_equal(machine.n_writes, n);
		assert_int_equal(around.n_warnings, 1);
		assert_int_equal(cpuclass_n_failing(p->classes), 0);
	}
	use(p, 1, CPUCLASS_NONE);
	commit(p);
	has("1000000", "1500000", "conservative", "200");
	use(p, 0, CPUCLASS_NONE);
	commit(p);
	is_as_found();
}

/* Checks that the class of an offline CPU does not count. */
static void test_offline(void **state)
{
	struct place *p = *state;
	use(p, 0, SLOW);
	use(p, 1, FAST);
	commit(p);
	rp_idset_del(&around.online, 1);
	configure(p);
	use(p, 0, SLOW);
	commit(p);
	has("1000000", "1500000", "conservative", "200");
	use(p, 0, CPUCLASS_NONE);
	commit(p);
	is_as_found();
	assert_null(p->env.settings);
}

/* Checks a CPU that is removed while its frequencies are being written: no write is tried again. */
static void test_gone_meanwhile(void **state)
{
	struct place *p = *state;
	use(p, 1, SLOW);
	cpuclass_commit(p->classes);
	rp_idset_del(&around.online, 1);
	configure(p);
	work_off();
	assert_int_equal(cpuclass_n_failing(p->classes), 0);
	assert_int_equal(around.armed_ms, 0);
	is_as_found();
	rp_idset_add(&around.online, 1);
	configure(p);
	use(p, 1, SLOW);
	commit(p);
	has("1000000", "1500000", "conservative", "200");
	assert_int_equal(cpuclass_n_failing(p->classes), 0);
}

#define T(f) cmocka_unit_test_setup_teardown(test_##f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(one_class), T(stopped), T(two_classes), T(offline), T(gone_meanwhile),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
