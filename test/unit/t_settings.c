/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nri-rp.host.settings/1: what is to be put back when several modules have set a file, when one has
 * ended without doing so, and when the whole process has.
 */
#include "core/nri-rpd/host/service/services.h"
#include "core/lib/util/log.h"
#include "test/unit/t_oom.h"
#include "test/unit/t_topo_tree.h"
#include "core/lib/util/worker.h"
#include "core/nri-rpd/host/service/settings.h"

static const struct rp_host_settings *const s = &host_settings_service;

struct place {
	struct host_env env;
	struct instance one, other, third;
};

static void begin(struct place *p)
{
	*p = (struct place){0};
	p->one.env = p->other.env = p->third.env = &p->env;
}

static void end(struct place *p)
{
	instance_drop_settings(&p->one);
	instance_drop_settings(&p->other);
	instance_drop_settings(&p->third);
	settings_close(&p->env);
	assert_null(p->env.settings);
}

static void rests(struct instance *i, const char *path, const char *value)
{
	char buf[RP_SETTING_MAX] = "untouched";
	int32_t r = s->without(i, path, buf, sizeof buf);
	assert_int_equal(r, value ? (int32_t)strlen(value) : -RP_ENOENT);
	assert_string_equal(buf, value ? value : "untouched");
}

static void test_alone(void **state)
{
	struct place p;
	begin(&p);
	rests(&p.one, "/a", NULL);
	s->drop(&p.one, "/a");
	assert_int_equal(s->keep(&p.one, "/a", "2", "1"), 0);
	/* A second claim by the same instance keeps the value found by the first. */
	assert_int_equal(s->keep(&p.one, "/a", "3", "2"), 0);
	assert_int_equal(s->keep(&p.one, "/b", "", ""), 0);
	rests(&p.one, "/a", "1");
	rests(&p.one, "/b", "");
	rests(&p.other, "/a", NULL);
	s->drop(&p.other, "/a");
	rests(&p.one, "/a", "1");
	s->drop(&p.one, "/a");
	rests(&p.one, "/a", NULL);
	assert_int_equal(s->keep(&p.one, "/a", "2", "7"), 0);
	rests(&p.one, "/a", "7");
	end(&p);
}

/* Checks that the last value of the remaining claims applies, and that the found value is the
 * value that the first claim found. */
static void test_together(void **state)
{
	struct place p;
	begin(&p);
	assert_int_equal(s->keep(&p.one, "/a", "2", "1"), 0);
	assert_int_equal(s->keep(&p.other, "/a", "3", "2"), 0);
	assert_int_equal(s->keep(&p.third, "/a", "4", "3"), 0);
	rests(&p.one, "/a", "4");
	rests(&p.other, "/a", "4");
	rests(&p.third, "/a", "3");
	assert_int_equal(s->keep(&p.one, "/a", "5", "4"), 0);
	rests(&p.third, "/a", "5");
	rests(&p.one, "/a", "4");
	s->drop(&p.third, "/a");
	rests(&p.one, "/a", "3");
	instance_drop_settings(&p.other);
	rests(&p.one, "/a", "1");
	rests(&p.other, "/a", NULL);
	end(&p);
}

/* Checks that the found value is the same for every requester and after every later change. */
static void test_found(void **state)
{
	struct place p;
	char buf[RP_SETTING_MAX] = "untouched";
	begin(&p);
	assert_int_equal(s->found(&p.one, "/a", buf, sizeof buf), -RP_ENOENT);
	assert_string_equal(buf, "untouched");
	assert_int_equal(s->keep(&p.one, "/a", "2", "10"), 0);
	assert_int_equal(s->keep(&p.other, "/a", "3", "2"), 0);
	assert_int_equal(s->found(&p.one, "/a", buf, sizeof buf), 2);
	assert_string_equal(buf, "10");
	assert_int_equal(s->found(&p.third, "/a", buf, sizeof buf), 2);
	assert_string_equal(buf, "10");
	assert_int_equal(s->found(&p.third, "/a", buf, 2), -RP_E2BIG);
	p.env.trial = true;
	assert_int_equal(s->found(&p.one, "/a", buf, sizeof buf), -RP_ENOTSUP);
	p.env.trial = false;
	s->drop(&p.one, "/a");
	s->drop(&p.other, "/a");
	assert_int_equal(s->found(&p.one, "/a", buf, sizeof buf), -RP_ENOENT);
	end(&p);
}

static void test_bounds(void **state)
{
	struct place p;
	char full[RP_SETTING_MAX + 1], small[3];
	begin(&p);
	memset(full, 'x', RP_SETTING_MAX);
	full[RP_SETTING_MAX] = '\0';
	assert_int_equal(s->keep(&p.one, "/a", full, "1"), -RP_E2BIG);
	assert_int_equal(s->keep(&p.one, "/a", "1", full), -RP_E2BIG);
	assert_null(p.env.settings);
	assert_int_equal(s->keep(&p.one, "/a", full + 1, full + 1), 0);
	rests(&p.one, "/a", full + 1);
	assert_int_equal(s->without(&p.one, "/a", small, sizeof small), -RP_E2BIG);
	assert_int_equal(s->keep(&p.one, "/b", "1", "12"), 0);
	assert_int_equal(s->without(&p.one, "/b", small, sizeof small), 2);
	assert_string_equal(small, "12");
	end(&p);
}

/* Checks that a trial changes nothing, and does not wait for a thread of another process. */
static void test_trial(void **state)
{
	struct place p;
	char buf[RP_SETTING_MAX];
	begin(&p);
	assert_int_equal(s->keep(&p.one, "/a", "2", "1"), 0);
	p.env.trial = true;
	assert_int_equal(s->keep(&p.one, "/a", "3", "2"), -RP_ENOTSUP);
	assert_int_equal(s->without(&p.one, "/a", buf, sizeof buf), -RP_ENOTSUP);
	s->drop(&p.one, "/a");
	instance_drop_settings(&p.one);
	p.env.trial = false;
	rests(&p.one, "/a", "1");
	end(&p);
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* Checks that a file that the host cannot record is refused without a trace. */
static int keep_two(void *arg)
{
	struct place *p = arg;
	char buf[RP_SETTING_MAX];
	begin(p);
	int32_t r = s->keep(&p->one, "/sys/a", "2", "1");
	OOM_CHECK(r == 0 || r == -RP_ENOMEM);
	OOM_CHECK(s->without(&p->one, "/sys/a", buf, sizeof buf) == (r ? -RP_ENOENT : 1));
	int32_t r2 = s->keep(&p->other, "/sys/a", "3", "2");
	OOM_CHECK(r2 == 0 || r2 == -RP_ENOMEM);
	/* The found value comes from the first claim that was accepted. */
	if (!r)
		OOM_CHECK(s->without(&p->one, "/sys/a", buf, sizeof buf) == 1 &&
			  *buf == (r2 ? '1' : '3'));
	else if (!r2)
		OOM_CHECK(s->without(&p->other, "/sys/a", buf, sizeof buf) == 1 && *buf == '2');
	if (!r)
		r = r2;
	/* the former word counts where there is no memory for another one */
	r2 = s->keep(&p->one, "/sys/a", "4", "2");
	if (!r && r2)
		OOM_CHECK(s->without(&p->other, "/sys/a", buf, sizeof buf) == 1 && *buf == '2');
	s->drop(&p->one, "/sys/a");
	s->drop(&p->other, "/sys/a");
	OOM_CHECK(!p->env.settings);
	return r ? r : r2;
}

static void test_out_of_memory(void **state)
{
	struct place p;
	oom_each(keep_two, &p);
}

/* ---- over the death of the process ----------------------------------------------------------- */

#define CPU_FILE(name) "/sys/devices/system/cpu/cpu1/cpufreq/" name
#define MAX_FILE CPU_FILE("scaling_max_freq")
#define MIN_FILE CPU_FILE("scaling_min_freq")
#define EPP_FILE CPU_FILE("energy_performance_preference")

struct life {
	struct place place;
	struct tree tree;
	char file[96];
};

static void live(struct life *l, const char *origin)
{
	struct err err = ERR_INIT;
	begin(&l->place);
	l->place.env.loop = loop_new();
	l->place.env.worker = worker_new(l->place.env.loop, "test");
	l->place.env.root = &l->tree.root;
	assert_int_equal(settings_open(&l->place.env, l->file, origin, &err), 0);
}

/* Ends the process: completes all jobs without any notification. */
static void die(struct life *l)
{
	worker_free(l->place.env.worker);
	loop_free(l->place.env.loop);
	settings_close(&l->place.env);
}

static void first_life(struct life *l)
{
	log_init("test");
	log_set_level(LOG_ERROR - 1);
	tree_init(&l->tree);
	(void)snprintf(l->file, sizeof l->file, "%s/settings", l->tree.dir);
	live(l, "boot /");
}

static void set(struct life *l, struct instance *i, const char *path, const char *text)
{
	char found[RP_SETTING_MAX];
	assert_true(fs_read(&l->tree.root, path, found, sizeof found) >= 0);
	assert_int_equal(s->keep(i, path, text, found), 0);
	assert_int_equal(fs_write(&l->tree.root, path, text), 0);
}

static void is(struct life *l, const char *path, const char *wanted)
{
	char text[RP_SETTING_MAX];
	assert_true(fs_read(&l->tree.root, path, text, sizeof text) >= 0);
	assert_string_equal(text, wanted);
}

static void test_adopted(void **state)
{
	struct life l;
	first_life(&l);
	tree_put(&l.tree, MAX_FILE, "3800000\n");
	tree_put(&l.tree, MIN_FILE, "800000\n");
	tree_put(&l.tree, EPP_FILE, "\n");
	set(&l, &l.place.one, MAX_FILE, "2000000");
	set(&l, &l.place.one, MIN_FILE, "1000000");
	set(&l, &l.place.one, EPP_FILE, "128");
	/* A restored value is no longer tracked. */
	assert_int_equal(fs_write(&l.tree.root, EPP_FILE, ""), 0);
	s->drop(&l.place.one, EPP_FILE);
	assert_int_equal(fs_write(&l.tree.root, EPP_FILE, "64"), 0);
	die(&l);
	live(&l, "boot /");
	/* The claim finds the value that the previous process wrote, and gets the original one. */
	set(&l, &l.place.other, MAX_FILE, "2000000");
	rests(&l.place.other, MAX_FILE, "3800000");
	settings_put_back(&l.place.env); /* no instance has claimed the other file yet */
	die(&l);
	is(&l, MIN_FILE, "1000000");
	/* A process more that knows of it by hearsay. */
	live(&l, "boot /");
	rests(&l.place.one, MAX_FILE, NULL);
	settings_release_former(&l.place.env);
	die(&l);
	is(&l, MAX_FILE, "3800000");
	is(&l, MIN_FILE, "800000");
	is(&l, EPP_FILE, "64");
	live(&l, "boot /");
	assert_null(l.place.env.settings);
	die(&l);
	tree_fini(&l.tree);
}

/* Checks that a claim to the current value changes nothing. Later changes by other programs are
 * not undone, neither by this process nor by the next. */
static void test_not_changed(void **state)
{
	struct life l;
	first_life(&l);
	tree_put(&l.tree, MAX_FILE, "3800000\n");
	tree_put(&l.tree, MIN_FILE, "800000\n");
	tree_put(&l.tree, EPP_FILE, "128\n");
	assert_int_equal(s->keep(&l.place.one, MAX_FILE, "3800000", "3800000"), 0);
	assert_int_equal(s->keep(&l.place.one, MIN_FILE, "800000", "800000"), 0);
	/* the next claim of this file changes its value */
	set(&l, &l.place.one, MIN_FILE, "1000000");
	assert_int_equal(s->keep(&l.place.one, EPP_FILE, "128", "128"), 0);
	assert_int_equal(fs_write(&l.tree.root, MAX_FILE, "3000000"), 0);
	assert_int_equal(fs_write(&l.tree.root, EPP_FILE, "64"), 0);
	instance_drop_settings(&l.place.other); /* not his */
	die(&l);
	live(&l, "boot /");
	rests(&l.place.one, MAX_FILE, NULL);
	assert_int_equal(s->keep(&l.place.one, EPP_FILE, "64", "64"), 0);
	rests(&l.place.one, EPP_FILE, "64");
	assert_int_equal(fs_write(&l.tree.root, EPP_FILE, "32"), 0);
	settings_release_former(&l.place.env);
	instance_drop_settings(&l.place.one);
	l.place.env.worker = worker_free(l.place.env.worker);
	assert_null(l.place.env.settings);
	is(&l, MAX_FILE, "3000000");
	is(&l, MIN_FILE, "800000");
	is(&l, EPP_FILE, "32");
	die(&l);
	tree_fini(&l.tree);
}

/* Creates the state after a kill: the file was found with 3800000 and has 2000000 now. */
static void killed_with_a_setting(struct life *l)
{
	first_life(l);
	tree_put(&l->tree, MAX_FILE, "3800000\n");
	set(l, &l->place.one, MAX_FILE, "2000000");
	die(l);
}

/* Checks that the found value is retained when the new claim cannot write its value and is
 * dropped. */
static void test_adopted_and_dropped(void **state)
{
	struct life l;
	killed_with_a_setting(&l);
	live(&l, "boot /");
	assert_int_equal(s->keep(&l.place.one, MAX_FILE, "1000000", "2000000"), 0);
	s->drop(&l.place.one, MAX_FILE);
	assert_int_equal(s->keep(&l.place.one, MAX_FILE, "1000000", "2000000"), 0);
	rests(&l.place.one, MAX_FILE, "3800000");
	s->drop(&l.place.one, MAX_FILE);
	settings_put_back(&l.place.env);
	die(&l);
	is(&l, MAX_FILE, "3800000");
	live(&l, "boot /");
	assert_null(l.place.env.settings);
	die(&l);
	tree_fini(&l.tree);
}

/* Checks that after the adopting instance has restored the value, later changes belong to the
 * administrator. */
static void test_adopted_and_put_back(void **state)
{
	struct life l;
	killed_with_a_setting(&l);
	live(&l, "boot /");
	set(&l, &l.place.one, MAX_FILE, "2000000");
	settings_release_former(&l.place.env);
	assert_int_equal(fs_write(&l.tree.root, MAX_FILE, "3800000"), 0);
	s->drop(&l.place.one, MAX_FILE);
	assert_null(l.place.env.settings);
	assert_int_equal(fs_write(&l.tree.root, MAX_FILE, "3000000"), 0);
	settings_put_back(&l.place.env);
	die(&l);
	live(&l, "boot /");
	assert_null(l.place.env.settings);
	settings_release_former(&l.place.env);
	die(&l);
	is(&l, MAX_FILE, "3000000");
	tree_fini(&l.tree);
}

/* As long as another one wants it to be otherwise, it is not back for good. */
static void test_adopted_and_put_back_by_one(void **state)
{
	struct life l;
	killed_with_a_setting(&l);
	live(&l, "boot /");
	set(&l, &l.place.one, MAX_FILE, "2000000");
	set(&l, &l.place.other, MAX_FILE, "3800000");
	s->drop(&l.place.one, MAX_FILE);
	rests(&l.place.other, MAX_FILE, "3800000");
	s->drop(&l.place.other, MAX_FILE);
	assert_null(l.place.env.settings);
	die(&l);
	tree_fini(&l.tree);
}

/* Checks that after a reboot, the settings of the previous process are obsolete. */
static void test_other_boot(void **state)
{
	struct life l;
	killed_with_a_setting(&l);
	live(&l, "other boot /");
	assert_null(l.place.env.settings);
	settings_release_former(&l.place.env);
	die(&l);
	is(&l, MAX_FILE, "2000000");
	/* The obsolete settings do not return with the old boot id either. */
	live(&l, "boot /");
	assert_null(l.place.env.settings);
	die(&l);
	tree_fini(&l.tree);
}

/* Checks the files of an offline CPU, which are restored when they appear. */
static void test_not_there(void **state)
{
	struct life l;
	first_life(&l);
	tree_put(&l.tree, MAX_FILE, "3800000\n");
	set(&l, &l.place.one, MAX_FILE, "2000000");
	tree_del(&l.tree, MAX_FILE);
	instance_drop_settings(&l.place.one);
	die(&l);
	live(&l, "boot /");
	settings_release_former(&l.place.env);
	l.place.env.worker = worker_free(l.place.env.worker);
	assert_non_null(l.place.env.settings);
	tree_put(&l.tree, MAX_FILE, "2000000\n");
	l.place.env.worker = worker_new(l.place.env.loop, "test");
	settings_put_back(&l.place.env);
	l.place.env.worker = worker_free(l.place.env.worker);
	assert_null(l.place.env.settings);
	is(&l, MAX_FILE, "3800000");
	die(&l);
	tree_fini(&l.tree);
}

/* Checks that a settings file that cannot be written affects only the recovery after a death. */
static void test_no_file(void **state)
{
	struct life l;
	struct err err = ERR_INIT;
	first_life(&l);
	die(&l);
	(void)snprintf(l.file, sizeof l.file, "%s/nowhere/settings", l.tree.dir);
	begin(&l.place);
	assert_int_equal(settings_open(&l.place.env, l.file, "boot /", &err), 0);
	assert_int_equal(s->keep(&l.place.one, MAX_FILE, "2", "1"), 0);
	rests(&l.place.one, MAX_FILE, "1");
	s->drop(&l.place.one, MAX_FILE);
	settings_close(&l.place.env);
	tree_fini(&l.tree);
}

/* Checks that records and restorations that a full file system prevented are written with the
 * next one. */
static void test_file_comes_late(void **state)
{
	struct life l;
	char folder[96];
	first_life(&l);
	die(&l);
	tree_put(&l.tree, MAX_FILE, "3800000\n");
	tree_put(&l.tree, MIN_FILE, "800000\n");
	(void)snprintf(folder, sizeof folder, "%s/late", l.tree.dir);
	(void)snprintf(l.file, sizeof l.file, "%s/late/settings", l.tree.dir);
	live(&l, "boot /");
	set(&l, &l.place.one, MAX_FILE, "2000000");
	assert_true(l.place.env.found_fails);
	assert_int_equal(mkdir(folder, 0700), 0);
	set(&l, &l.place.one, MIN_FILE, "1000000");
	assert_false(l.place.env.found_fails);
	die(&l);
	live(&l, "boot /");
	settings_release_former(&l.place.env);
	die(&l);
	is(&l, MAX_FILE, "3800000");
	is(&l, MIN_FILE, "800000");
	tree_fini(&l.tree);
}

/* Checks that repeated claims and restores use a bounded size of the file. */
static void test_growth(void **state)
{
	struct life l;
	struct stat st;
	first_life(&l);
	assert_int_equal(s->keep(&l.place.other, MIN_FILE, "2", "1"), 0);
	for (unsigned i = 0; i < 40000; i++) {
		assert_int_equal(s->keep(&l.place.one, MAX_FILE, "2", "1"), 0);
		s->drop(&l.place.one, MAX_FILE);
	}
	assert_int_equal(stat(l.file, &st), 0);
	assert_in_range(st.st_size, 1, (2 << 20));
	die(&l);
	live(&l, "boot /");
	assert_int_equal(s->keep(&l.place.one, MAX_FILE, "2", "7"), 0);
	assert_int_equal(s->keep(&l.place.one, MIN_FILE, "2", "7"), 0);
	rests(&l.place.one, MAX_FILE, "7");
	rests(&l.place.one, MIN_FILE, "1");
	die(&l);
	tree_fini(&l.tree);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_alone),
		cmocka_unit_test(test_together),
		cmocka_unit_test(test_found),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_trial),
		cmocka_unit_test(test_out_of_memory),
		cmocka_unit_test(test_adopted),
		cmocka_unit_test(test_not_changed),
		cmocka_unit_test(test_adopted_and_dropped),
		cmocka_unit_test(test_adopted_and_put_back),
		cmocka_unit_test(test_adopted_and_put_back_by_one),
		cmocka_unit_test(test_other_boot),
		cmocka_unit_test(test_not_there),
		cmocka_unit_test(test_no_file),
		cmocka_unit_test(test_file_comes_late),
		cmocka_unit_test(test_growth),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
