/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.so, each write of it failing in turn, in every way that a kernel has: people are told what
 * and why, the rest is done all the same, and when the time has come it is tried again until all is
 * as it should be.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "test/unit/ctl_host.h"

extern const struct rp_module rp_module_1;

#define MIB (INT64_C(1) << 20)
#define HALF                                                                                       \
	"{unifiedAnnotations: [memory.low, memory.min], classes: [{name: bronze, swapLimitRatio: " \
	"0.5}]}"
#define QUARTER                                                                                    \
	"{unifiedAnnotations: [memory.low, memory.min], classes: [{name: bronze, swapLimitRatio: " \
	"0.75}]}"
#define NO_CLASS "{unifiedAnnotations: [memory.low, memory.min], usePodQoSAsDefaultClass: true}"
#define GUARANTEED                                                                                 \
	"{unifiedAnnotations: [memory.low, memory.min], usePodQoSAsDefaultClass: true, classes: "  \
	"[{name: Guaranteed, swapLimitRatio: 0.5}]}"
#define BRONZE                                                                                     \
	"class.memory-qos.nri.io=bronze;memory.low.memory-qos.nri.io=8192;"                        \
	"memory.min.memory-qos.nri.io=4096"

/* A start, or a reload with one that is there. */
static const struct scene {
	const char *name;
	bool v1;
	const char *annotations, *before, *config; /* before NULL: it starts only now */
	uint32_t n_values, n_writes;
	struct {
		const char *file, *text;
	} want[4];
} scenes[] = {
	{"v2, start",
	 false,
	 BRONZE,
	 NULL,
	 HALF,
	 4,
	 4,
	 {{"memory.high", "2097152"},
	  {"memory.swap.max", "max"},
	  {"memory.low", "8192"},
	  {"memory.min", "4096"}}},
	{"v2, another limit", false, BRONZE, HALF, QUARTER, 4, 1, {{"memory.high", "1048576"}}},
	{"v2, no class any more",
	 false,
	 NULL,
	 GUARANTEED,
	 NO_CLASS,
	 1,
	 1,
	 {{"memory.high", "max"}}},
	{"v1, start",
	 true,
	 "class.memory-qos.nri.io=bronze",
	 NULL,
	 HALF,
	 2,
	 2,
	 {{"memory.soft_limit_in_bytes", "2097152"}, {"memory.memsw.limit_in_bytes", "-1"}}},
	{"v1, no class any more",
	 true,
	 NULL,
	 GUARANTEED,
	 NO_CLASS,
	 1,
	 1,
	 {{"memory.soft_limit_in_bytes", "-1"}}},
};

static const char *path_of(struct ctl_host *t, rp_ctr c, const char *file)
{
	static char path[320];
	(void)snprintf(path, sizeof path, "%s/%s", ctl_cgroup(t, c, "memory"), file);
	return path;
}

static struct ctl_host *machine(const struct scene *s)
{
	struct ctl_host *t = ctl_host_new();
	if (s->v1)
		ctl_cgroup_v1(t);
	else
		ctl_put(t, "/sys/fs/cgroup/cgroup.controllers", "cpu io memory\n");
	assert_int_equal(ctl_open(t, &rp_module_1), 0);
	assert_int_equal(ctl_configure(t, s->before ? s->before : s->config), 0);
	return t;
}

static rp_ctr container(struct ctl_host *t, const struct scene *s)
{
	static const char *const v2[] = {"memory.high", "max\n", "memory.swap.max", "0\n",
					 "memory.low",	"0\n",	 "memory.min",	    "0\n"};
	static const char *const v1[] = {"memory.soft_limit_in_bytes", "9223372036854771712\n",
					 "memory.memsw.limit_in_bytes", "4194304\n"};
	rp_ctr c =
		ctl_ctr(t,
			&(struct fake_ctr){
				.name = "c", .annotations = s->annotations, .mem_limit = 4 * MIB},
			"");
	for (unsigned i = 0; i < (s->v1 ? 4 : 8); i += 2)
		ctl_put(t, path_of(t, c, s->v1 ? v1[i] : v2[i]), s->v1 ? v1[i + 1] : v2[i + 1]);
	return c;
}

static void act(struct ctl_host *t, rp_ctr c, const struct scene *s)
{
	if (s->before) {
		assert_int_equal(ctl_configure(t, s->config), 0);
		ctl_sync(t);
	} else {
		assert_int_equal(ctl_start(t, c), 0);
	}
	(void)ctl_work(t);
}

static void check_end(struct ctl_host *t, rp_ctr c, const struct scene *s)
{
	if (strcmp(ctl_report(t, c), "1") != 0)
		fail_msg("%s: in the end \"%s\"", s->name, ctl_report(t, c));
	for (unsigned i = 0; i < sizeof s->want / sizeof s->want[0] && s->want[i].file; i++)
		assert_string_equal(ctl_get(t, path_of(t, c, s->want[i].file)), s->want[i].text);
}

static void check_told(struct ctl_host *t, rp_ctr c, const struct scene *s, int32_t code)
{
	char reason[256];
	const char *report = ctl_report(t, c), *file = strrchr(ctl_failed(t), '/');
	assert_non_null(file);
	(void)snprintf(reason, sizeof reason, " %s: %s; trying again", file + 1, strerror(code));
	if (*report != (s->n_values > 1 ? '2' : '3') || strcmp(report + 1, reason) != 0)
		fail_msg("%s: %s, but \"%s\"", s->name, ctl_failed(t), report);
	/* All other files have been written. */
	for (unsigned i = 0; i < sizeof s->want / sizeof s->want[0] && s->want[i].file; i++)
		if (strcmp(s->want[i].file, file + 1) != 0)
			assert_string_equal(ctl_get(t, path_of(t, c, s->want[i].file)),
					    s->want[i].text);
}

/* Returns false if there are fewer than n writes. */
static bool fail_nth(const void *scene, uint32_t n, int32_t code)
{
	const struct scene *s = scene;
	struct ctl_host *t = machine(s);
	rp_ctr c = container(t, s);
	if (s->before) {
		assert_int_equal(ctl_start(t, c), 0);
		(void)ctl_work(t);
	}
	ctl_fail_nth(t, n, code);
	act(t, c, s);
	bool failed = ctl_failed(t)[0] != '\0';
	if (failed)
		check_told(t, c, s, code);
	ctl_mend(t);
	check_end(t, c, s);
	ctl_host_free(t);
	return failed;
}

static void test_each_write(void **state)
{
	for (unsigned i = 0; i < sizeof scenes / sizeof scenes[0]; i++)
		ctl_fail_each(fail_nth, &scenes[i], scenes[i].name, scenes[i].n_writes);
}

/* Checks a restart with another configuration, and with one without the classes. */
static void test_restart(void **state)
{
	for (unsigned i = 0; i < sizeof scenes / sizeof scenes[0]; i++) {
		const struct scene *s = &scenes[i];
		struct ctl_host *t = machine(s);
		rp_ctr c = container(t, s);
		assert_int_equal(ctl_start(t, c), 0);
		(void)ctl_work(t);
		assert_int_equal(ctl_restart(t, s->config), 0);
		ctl_sync(t);
		(void)ctl_work(t);
		check_end(t, c, s);
		ctl_host_free(t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_write),
		cmocka_unit_test(test_restart),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
