/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blkio.so, each write of it failing in turn, in every way that a kernel has: people are told what
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

#define CLASSES                                                                                    \
	"{classes: {rich: [{weight: 900}, {devices: [/dev/sda, /dev/sdb], throttleReadBps: 9M, "   \
	"throttleWriteBps: 8M, throttleReadIOPS: 700, throttleWriteIOPS: 600, weight: 800}], "     \
	"poor: [{weight: 20}, {devices: [/dev/sdb, /dev/sdc], throttleReadBps: 1M, "               \
	"throttleWriteIOPS: 50, weight: 30}], none: []}}"

/* From a class to another; what has to be there in the end, and how many writes that takes. */
static const struct scene {
	const char *name;
	bool v1, bfq;
	const char *from, *to;
	uint32_t n_writes;
	struct {
		const char *file, *line;
	} want[6];
} scenes[] = {
	{"v2, first class",
	 false,
	 true,
	 "none",
	 "rich",
	 8,
	 {{"io.max", "8:0 rbps=9000000 wbps=8000000 riops=700 wiops=600\n"},
	  {"io.max", "8:16 rbps=9000000 wbps=8000000 riops=700 wiops=600\n"},
	  {"io.weight", "default 8990\n"},
	  {"io.bfq.weight", "default 900\n"},
	  {"io.bfq.weight", "8:16 800\n"}}},
	{"v2, another class",
	 false,
	 true,
	 "rich",
	 "poor",
	 11,
	 {{"io.max", "8:16 rbps=1000000 wbps=max riops=max wiops=50\n"},
	  {"io.max", "8:32 rbps=1000000 wbps=max riops=max wiops=50\n"},
	  {"io.weight", "default 102\n"},
	  {"io.bfq.weight", "default 20\n"},
	  {"io.bfq.weight", "8:32 30\n"}}},
	{"v2, no class any more",
	 false,
	 true,
	 "rich",
	 "none",
	 8,
	 {{"io.weight", "default 100\n"}, {"io.bfq.weight", "default 100\n"}}},
	{"v1, first class",
	 true,
	 true,
	 "none",
	 "rich",
	 11,
	 {{"blkio.throttle.read_bps_device", "8:0 9000000\n"},
	  {"blkio.throttle.write_bps_device", "8:16 8000000\n"},
	  {"blkio.throttle.read_iops_device", "8:16 700\n"},
	  {"blkio.throttle.write_iops_device", "8:0 600\n"},
	  {"blkio.bfq.weight", "900\n"},
	  {"blkio.bfq.weight_device", "8:16 800\n"}}},
	{"v1, another class",
	 true,
	 false,
	 "rich",
	 "poor",
	 14,
	 {{"blkio.throttle.read_bps_device", "8:32 1000000\n"},
	  {"blkio.throttle.write_iops_device", "8:16 50\n"},
	  {"blkio.weight", "20\n"},
	  {"blkio.weight_device", "8:32 30\n"}}},
	{"v1, no class any more", true, false, "rich", "none", 11, {{"blkio.weight", "500\n"}}},
};

static const char *path_of(struct ctl_host *t, rp_ctr c, const char *file)
{
	static char path[320];
	(void)snprintf(path, sizeof path, "%s/%s", ctl_cgroup(t, c, "blkio"), file);
	return path;
}

static void put_disk(struct ctl_host *t, const char *name, const char *dev)
{
	char path[128];
	(void)snprintf(path, sizeof path, "/sys/block/%s/dev", name);
	ctl_put(t, path, dev);
	(void)snprintf(path, sizeof path, "/sys/block/%s/queue/scheduler", name);
	ctl_put(t, path, "none [bfq]\n");
}

static struct ctl_host *machine(const struct scene *s)
{
	struct ctl_host *t = ctl_host_new();
	if (s->v1)
		ctl_cgroup_v1(t);
	else
		ctl_put(t, "/sys/fs/cgroup/cgroup.controllers", "cpu io memory\n");
	ctl_keyed(t);
	put_disk(t, "sda", "8:0\n");
	put_disk(t, "sdb", "8:16\n");
	put_disk(t, "sdc", "8:32\n");
	assert_int_equal(ctl_open(t, &rp_module_1), 0);
	assert_int_equal(ctl_configure(t, CLASSES), 0);
	return t;
}

static void change_class(struct ctl_host *t, rp_ctr c, const char *class)
{
	ctl_decide(t, c, RP_F_BLOCKIO_CLASS, class);
	assert_int_equal(ctl_update(t, c, RP_CHANGED_CLASS), 0);
	(void)ctl_work(t);
}

static rp_ctr container(struct ctl_host *t, const struct scene *s)
{
	static const char *const v2[] = {
		"io.max", "", "io.weight", "default 100\n", "io.bfq.weight", "default 100\n"};
	static const char *const v1[] = {
		"blkio.throttle.read_bps_device",  "", "blkio.throttle.write_bps_device",  "",
		"blkio.throttle.read_iops_device", "", "blkio.throttle.write_iops_device", ""};
	rp_ctr c = ctl_ctr(t, &(struct fake_ctr){.name = "c"}, "");
	for (unsigned i = 0; i < (s->v1 ? 8 : 6); i += 2)
		ctl_put(t, path_of(t, c, s->v1 ? v1[i] : v2[i]), s->v1 ? v1[i + 1] : v2[i + 1]);
	if (s->v1) {
		ctl_put(t, path_of(t, c, s->bfq ? "blkio.bfq.weight" : "blkio.weight"),
			s->bfq ? "100\n" : "500\n");
		ctl_put(t,
			path_of(t, c, s->bfq ? "blkio.bfq.weight_device" : "blkio.weight_device"),
			"");
	}
	assert_int_equal(ctl_start(t, c), 0);
	change_class(t, c, s->from);
	assert_string_equal(ctl_report(t, c), "1");
	return c;
}

static void check_end(struct ctl_host *t, rp_ctr c, const struct scene *s)
{
	if (strcmp(ctl_report(t, c), "1") != 0)
		fail_msg("%s: in the end \"%s\"", s->name, ctl_report(t, c));
	for (unsigned i = 0; i < sizeof s->want / sizeof s->want[0] && s->want[i].file; i++) {
		char is[1024];
		(void)snprintf(is, sizeof is, "%s\n", ctl_get(t, path_of(t, c, s->want[i].file)));
		if (!strstr(is, s->want[i].line))
			fail_msg("%s: \"%s\" is not in \"%s\"", s->name, s->want[i].line, is);
	}
	ctl_changes_clear(t);
	assert_int_equal(ctl_start(t, c), 0);
	(void)ctl_work(t);
	assert_string_equal(ctl_changes(t), ""); /* no write is left */
}

static void check_told(struct ctl_host *t, rp_ctr c, const struct scene *s, int32_t code)
{
	char reason[256];
	const char *report = ctl_report(t, c), *file = strrchr(ctl_failed(t), '/');
	assert_non_null(file);
	(void)snprintf(reason, sizeof reason, "%s: \"", file + 1);
	if ((*report != '2' && *report != '3') || !strstr(report, reason) ||
	    !strstr(report, strerror(code)) || !strstr(report, "; trying again"))
		fail_msg("%s: %s, but \"%s\"", s->name, ctl_failed(t), report);
	/* all writes without an error are done */
	assert_int_equal(*report, s->n_writes > 1 ? '2' : '3');
}

/* False: there are less than n writes. */
static bool fail_nth(const void *scene, uint32_t n, int32_t code)
{
	const struct scene *s = scene;
	struct ctl_host *t = machine(s);
	rp_ctr c = container(t, s);
	ctl_fail_nth(t, n, code);
	change_class(t, c, s->to);
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

/* Checks writes that all fail for a while: the report is not partial, and they are tried again with
 * growing delays. */
static void test_all_fail(void **state)
{
	for (unsigned i = 0; i < sizeof scenes / sizeof scenes[0]; i++) {
		struct ctl_host *t = machine(&scenes[i]);
		rp_ctr c = container(t, &scenes[i]);
		ctl_fail(t, "io.", EIO);
		change_class(t, c, scenes[i].to);
		assert_int_equal(*ctl_report(t, c), '3');
		ctl_mend(t);
		check_end(t, c, &scenes[i]);
		ctl_host_free(t);
	}
}

/* Checks a kill before any restoring write: the next process knows the containers with settings to
 * be removed and does not change other containers. */
static void test_restart(void **state)
{
	for (unsigned i = 0; i < sizeof scenes / sizeof scenes[0]; i++) {
		const struct scene *s = &scenes[i];
		struct ctl_host *t = machine(s);
		const char *file = s->v1 ? "blkio.throttle.read_bps_device" : "io.max";
		rp_ctr c = container(t, s), other = ctl_ctr(t, &(struct fake_ctr){.name = "o"}, "");
		const char *others =
			s->v1 ? "8:0 77\n" : "8:0 rbps=77 wbps=max riops=max wiops=max\n";
		ctl_put(t, path_of(t, other, file), others);
		ctl_decide(t, c, RP_F_BLOCKIO_CLASS, strcmp(s->to, "none") == 0 ? "" : s->to);
		assert_int_equal(ctl_restart(t, CLASSES), 0);
		ctl_sync(t);
		(void)ctl_work(t);
		check_end(t, c, s);
		assert_int_equal(
			strncmp(ctl_get(t, path_of(t, other, file)), others, strlen(others) - 1),
			0);
		/* the process after that has no writes to do */
		assert_int_equal(ctl_restart(t, CLASSES), 0);
		ctl_changes_clear(t);
		ctl_sync(t);
		(void)ctl_work(t);
		assert_string_equal(ctl_changes(t), "");
		ctl_host_free(t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_write),
		cmocka_unit_test(test_all_fail),
		cmocka_unit_test(test_restart),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
