/* SPDX-License-Identifier: Apache-2.0 */
/* memory.so: classes and annotations, files of both cgroup versions, resizes, and every write that
 * can fail. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "modules/lib/private/ctl_queue.h"
#include "modules/memory/memory.h"
#include "test/unit/ctl_host.h"

extern const struct rp_module rp_module_1;

#define MIB (INT64_C(1) << 20)
#define CONFIG                                                                                     \
	"{unifiedAnnotations: [memory.swap.max, memory.high, memory.low], classes: [{name: "       \
	"bronze, swaplimitratio: 0.5}, {name: gold, swapLimitRatio: 0}]}"

static int setup(void **state)
{
	struct ctl_host *t = ctl_host_new();
	ctl_put(t, "/sys/fs/cgroup/cgroup.controllers", "cpu io memory\n");
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

static void put_own(struct ctl_host *t, rp_ctr c, const char *file, const char *text)
{
	char path[256];
	(void)snprintf(path, sizeof path, "%s/%s", ctl_cgroup(t, c, "memory"), file);
	ctl_put(t, path, text);
}

static const char *own(struct ctl_host *t, rp_ctr c, const char *file)
{
	char path[256];
	(void)snprintf(path, sizeof path, "%s/%s", ctl_cgroup(t, c, "memory"), file);
	return ctl_get(t, path);
}

static rp_ctr make(struct ctl_host *t, const char *name, const char *annotations, int64_t limit)
{
	rp_ctr c = ctl_ctr(
		t, &(struct fake_ctr){.name = name, .annotations = annotations, .mem_limit = limit},
		"");
	put_own(t, c, "memory.high", "max\n");
	put_own(t, c, "memory.low", "0\n");
	put_own(t, c, "memory.swap.max", "0\n");
	return c;
}

static const char *start(struct ctl_host *t, rp_ctr c)
{
	ctl_changes_clear(t);
	assert_int_equal(ctl_start(t, c), 0);
	(void)ctl_work(t);
	return ctl_report(t, c);
}

static const char *staged(struct ctl_host *t, rp_ctr c, const char *file)
{
	const char *text = fake_pair(ctl_fake(t), c, RP_F_UNIFIED, file);
	return text ? text : "-";
}

static void test_configurations(void **state)
{
	struct ctl_host *t = *state;
	static const struct {
		const char *text, *why;
	} bad[] = {
		{"{classes: [{name: a, swapLimitRatio: 1}]}", "less than 1"},
		{"{classes: [{name: a, swapLimitRatio: -0.1}]}", "less than 1"},
		{"{classes: [{swapLimitRatio: 0.1}]}", "1 to 127 bytes"},
		{"{classes: [{name: a}, {name: a}]}", "defined twice"},
		{"{unifiedAnnotations: [cpu.max]}", "file of the memory controller"},
		{"{unifiedAnnotations: [memory.x/../cpu.max]}", "file of the memory controller"},
	};
	for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
		assert_int_equal(ctl_configure(t, bad[i].text), -RP_EINVAL);
		has(fake_error(ctl_fake(t)), bad[i].why);
	}
	assert_int_equal(ctl_configure(t, "{}"), 0);
	assert_int_equal(ctl_configure(t, CONFIG), 0);
}

static void test_classes(void **state)
{
	struct ctl_host *t = *state;
	assert_int_equal(ctl_configure(t, CONFIG), 0);
	rp_ctr c = make(t, "c", "class.memory-qos.nri.io=bronze", 100 * MIB + 8000);
	assert_int_equal(ctl_pre_create(t, c), 0);
	/* half of it; the kernel rounds to whole pages */
	assert_string_equal(staged(t, c, "memory.high"), "52432800");
	assert_string_equal(staged(t, c, "memory.swap.max"), "max");
	has(fake_trail(ctl_fake(t), c), "memory class bronze");
	/* the runtime that ignored it is helped out */
	assert_string_equal(start(t, c), "1");
	assert_string_equal(own(t, c, "memory.high"), "52432800");
	assert_string_equal(own(t, c, "memory.swap.max"), "max");
	assert_string_equal(start(t, c), "1");
	assert_string_equal(ctl_changes(t), "");
	/* no ratio, no class: nothing */
	rp_ctr g = make(t, "g", "class.memory-qos.nri.io=gold", MIB), n = make(t, "n", NULL, MIB);
	assert_int_equal(ctl_pre_create(t, g), 0);
	assert_int_equal(ctl_pre_create(t, n), 0);
	assert_string_equal(staged(t, g, "memory.high"), "-");
	assert_string_equal(start(t, n), "1");
	assert_string_equal(ctl_changes(t), "");
	has(ctl_metrics(t), "writes_total{} 2\n");
}

/* Checks that a stopped controller that starts again, because its removal was refused, does the
 * pending work and does not repeat the rest. */
static void test_stopped_and_started(void **state)
{
	struct ctl_host *t = *state;
	assert_int_equal(ctl_configure(t, CONFIG), 0);
	rp_ctr c = make(t, "c", "class.memory-qos.nri.io=bronze", 100 * MIB),
	       d = make(t, "d", "class.memory-qos.nri.io=bronze", 200 * MIB);
	assert_int_equal(ctl_start(t, c), 0);
	assert_int_equal(ctl_start(t, d), 0);
	ctl_stop_and_start(t, &rp_module_1);
	(void)ctl_work(t);
	assert_string_equal(ctl_report(t, c), "1");
	assert_string_equal(ctl_report(t, d), "1");
	assert_string_equal(own(t, c, "memory.high"), "52428800");
	assert_string_equal(own(t, d, "memory.high"), "104857600");
	ctl_changes_clear(t);
	ctl_stop_and_start(t, &rp_module_1);
	(void)ctl_work(t);
	assert_string_equal(ctl_changes(t), "");
}

static void test_annotations(void **state)
{
	struct ctl_host *t = *state;
	assert_int_equal(ctl_configure(t, CONFIG), 0);
	/* A value set directly wins over the class, and a container's annotation wins over its
	 * pod's. */
	rp_ctr c = make(
		t, "c",
		"class.memory-qos.nri.io=bronze;memory.high.memory-qos.nri.io=1Mi;"
		"memory.high.memory-qos.nri.io/c=4096;memory.low.memory-qos.nri.io/pod=77;"
		"memory.swap.max.memory-qos.nri.io/container.c=8192;memory.low.memory-qos.nri.io=5",
		MIB);
	assert_int_equal(ctl_pre_create(t, c), 0);
	assert_string_equal(staged(t, c, "memory.high"), "4096");
	assert_string_equal(staged(t, c, "memory.swap.max"), "8192");
	assert_string_equal(staged(t, c, "memory.low"), "77");
	/* the kernel counts whole pages */
	put_own(t, c, "memory.low", "0\n");
	assert_string_equal(start(t, c), "1");
}

static void refused(struct ctl_host *t, rp_ctr c, const char *why)
{
	assert_int_equal(ctl_pre_create(t, c), -RP_EINVAL);
	has(fake_error(ctl_fake(t)), why);
	has(start(t, c), why); /* a lenient host starts the container and reports the problem */
	assert_int_equal(*ctl_report(t, c), '3');
	assert_string_equal(ctl_changes(t), "");
}

static void test_refusals(void **state)
{
	struct ctl_host *t = *state;
	assert_int_equal(ctl_configure(t, CONFIG), 0);
	refused(t, make(t, "a", "class.memory-qos.nri.io=silver", MIB),
		"unknown memory class \"silver\"");
	refused(t, make(t, "b", "class.memory-qos.nri.io=bronze", 0),
		"but the container has no limit");
	refused(t, make(t, "c", "memory.min.memory-qos.nri.io=1", MIB), "not among");
	refused(t, make(t, "d", "memory.low.memory-qos.nri.io=", MIB), "an invalid value");
	refused(t,
		make(t, "e",
		     "memory.low.memory-qos.nri.io="
		     "1111111111111111111111111111111111111111111111111"
		     "111111111111111111",
		     MIB),
		"an invalid value");
	/* an empty class is none */
	assert_int_equal(ctl_pre_create(t, make(t, "f", "class.memory-qos.nri.io=", MIB)), 0);
}

static void test_qos_default(void **state)
{
	struct ctl_host *t = *state;
	assert_int_equal(ctl_configure(t, "{usePodQoSAsDefaultClass: true, classes: [{name: "
					  "Burstable, swapLimitRatio: 0.25}]}"),
			 0);
	rp_ctr b = ctl_ctr(
		t, &(struct fake_ctr){.name = "b", .qos = RP_QOS_BURSTABLE, .mem_limit = 4 * MIB},
		"");
	rp_ctr n = ctl_ctr(t, &(struct fake_ctr){.name = "n", .qos = RP_QOS_BURSTABLE}, "");
	assert_int_equal(ctl_pre_create(t, b), 0);
	/* a default class: a container without a limit is no error */
	assert_int_equal(ctl_pre_create(t, n), 0);
	assert_string_equal(staged(t, b, "memory.high"), "3145728");
	assert_string_equal(staged(t, n, "memory.high"), "-");
}

static void test_resize_and_reload(void **state)
{
	struct ctl_host *t = *state;
	assert_int_equal(ctl_configure(t, CONFIG), 0);
	rp_ctr c = make(t, "c", "class.memory-qos.nri.io=bronze", 4 * MIB);
	assert_string_equal(start(t, c), "1");
	assert_string_equal(own(t, c, "memory.high"), "2097152");
	/* the policy gives it another limit */
	ctl_decide_int(t, c, RP_F_MEMORY_LIMIT, 8 * MIB);
	assert_int_equal(ctl_update(t, c, RP_CHANGED_CPUS), 0);
	assert_int_equal(ctl_work(t), 0);
	assert_int_equal(ctl_update(t, c, RP_CHANGED_MEMORY), 0);
	(void)ctl_work(t);
	assert_string_equal(own(t, c, "memory.high"), "4194304");
	/* another meaning of the class, then none at all */
	assert_int_equal(ctl_configure(t, "{classes: [{name: bronze, swapLimitRatio: 0.75}]}"), 0);
	ctl_sync(t);
	(void)ctl_work(t);
	assert_string_equal(own(t, c, "memory.high"), "2097152");
	ctl_sync(t);
	assert_int_equal(ctl_work(t), 0);
	assert_int_equal(ctl_configure(t, "{classes: []}"), 0);
	ctl_sync(t);
	(void)ctl_work(t);
	has(ctl_report(t, c), "3 unknown memory class");
	assert_int_equal(ctl_configure(t, "{enable: false}"), 0);
	ctl_sync(t);
	assert_int_equal(ctl_pre_create(t, c), 0);
	assert_int_equal(ctl_work(t), 0);
	assert_int_equal(ctl_stop(t, c), 0);
	has(ctl_metrics(t), "containers{} 0\n");
}

static void test_v1(void **state)
{
	struct ctl_host *t = *state;
	ctl_remove(t, "/sys/fs/cgroup/cgroup.controllers");
	ctl_cgroup_v1(t);
	assert_int_equal(ctl_configure(t, CONFIG), 0);
	rp_ctr c = make(t, "c", "class.memory-qos.nri.io=bronze", 4 * MIB);
	put_own(t, c, "memory.soft_limit_in_bytes", "9223372036854771712\n");
	put_own(t, c, "memory.memsw.limit_in_bytes", "4194304\n");
	assert_int_equal(ctl_pre_create(t, c), 0);
	assert_string_equal(staged(t, c, "memory.high"), "-"); /* the runtime would refuse it */
	(void)start(t, c);
	assert_string_equal(own(t, c, "memory.soft_limit_in_bytes"), "2097152");
	has(ctl_changes(t), "memory.memsw.limit_in_bytes -1");
	put_own(t, c, "memory.memsw.limit_in_bytes", "9223372036854771712\n");
	assert_string_equal(start(t, c), "1");
	assert_string_equal(ctl_changes(t), "");
}

#define NO_TIER "9223372036854771712\n"

static void adjust(struct ctl_host *t, rp_ctr c, int64_t limit)
{
	fake_adjust_toptier(ctl_fake(t), c, limit);
	assert_int_equal(ctl_update(t, c, RP_CHANGED_MEMORY), 0);
	(void)ctl_work(t);
}

static void test_toptier(void **state)
{
	struct ctl_host *t = *state;
	assert_int_equal(ctl_configure(t, CONFIG), 0);
	rp_ctr a = make(t, "a", "class.memory-qos.nri.io=bronze", 4 * MIB),
	       b = make(t, "b", NULL, 0),
	       c = make(t, "c", "class.memory-qos.nri.io=bronze", 4 * MIB);
	put_own(t, a, MEMORY_TOPTIER_FILE, NO_TIER);
	put_own(t, b, MEMORY_TOPTIER_FILE, NO_TIER);
	assert_int_equal(ctl_pre_create(t, a), 0);
	assert_string_equal(staged(t, a, MEMORY_TOPTIER_FILE), "-"); /* no runtime knows it */
	adjust(t, a, MIB + 5);
	adjust(t, b, 2 * MIB);
	assert_string_equal(ctl_report(t, a), "1");
	assert_string_equal(own(t, a, MEMORY_TOPTIER_FILE), "1048581");
	assert_string_equal(own(t, a, "memory.high"), "2097152");
	assert_string_equal(own(t, b, MEMORY_TOPTIER_FILE), "2097152");
	/* a kernel without it: said, and not tried again */
	adjust(t, c, MIB);
	assert_string_equal(ctl_report(t, c), "2 this kernel has no " MEMORY_TOPTIER_FILE);
	assert_int_equal(fake_timer(ctl_fake(t), CTL_AGAIN_COOKIE), -1);
	adjust(t, c, RP_NOT_SET);
	assert_string_equal(ctl_report(t, c), "1");
	/* The limit of one container ends, the one of the other during the restart. The class
	 * stays, and so do values that were never set. */
	adjust(t, a, RP_NOT_SET);
	assert_string_equal(own(t, a, MEMORY_TOPTIER_FILE), "-1");
	put_own(t, b, "memory.high", "8192\n");
	fake_adjust_toptier(ctl_fake(t), b, RP_NOT_SET);
	assert_int_equal(ctl_restart(t, CONFIG), 0);
	ctl_sync(t);
	(void)ctl_work(t);
	assert_string_equal(own(t, b, MEMORY_TOPTIER_FILE), "-1");
	assert_string_equal(own(t, b, "memory.high"), "8192");
	assert_string_equal(own(t, a, "memory.high"), "2097152");
	/* taken back once */
	put_own(t, b, MEMORY_TOPTIER_FILE, "4096\n");
	assert_int_equal(ctl_restart(t, CONFIG), 0);
	ctl_sync(t);
	(void)ctl_work(t);
	assert_string_equal(own(t, b, MEMORY_TOPTIER_FILE), "4096");
}

/* Retries are made at growing intervals and end. A change from outside restarts them; a removed
 * container is dropped. */
static void test_tried_again(void **state)
{
	struct ctl_host *t = *state;
	struct fake_host *f = ctl_fake(t);
	uint64_t now = 500, delay = CTL_AGAIN_FIRST_MS;
	assert_int_equal(ctl_configure(t, CONFIG), 0);
	rp_ctr c = make(t, "c", "class.memory-qos.nri.io=bronze", 4 * MIB);
	ctl_fail(t, "memory.high", EBUSY);
	fake_set_now(f, now);
	has(start(t, c), "; trying again");
	for (unsigned i = 1; i < CTL_TRIES_MAX; i++) {
		assert_int_equal(fake_timer(f, CTL_AGAIN_COOKIE), delay);
		ctl_timer(t, CTL_AGAIN_COOKIE); /* too early: nothing is done */
		assert_int_equal(ctl_work(t), 0);
		fake_set_now(f, now += delay);
		ctl_timer(t, CTL_AGAIN_COOKIE);
		has(ctl_report(t, c), "; trying again"); /* not pending: it still fails as it did */
		assert_int_not_equal(ctl_work(t), 0);
		delay = delay * 2 < CTL_AGAIN_LAST_MS ? delay * 2 : CTL_AGAIN_LAST_MS;
	}
	assert_string_equal(ctl_report(t, c), "2 memory.high: Device or resource busy; given up");
	assert_int_equal(fake_timer(f, CTL_AGAIN_COOKIE), -1);
	has(start(t, c), "; trying again");
	assert_int_equal(fake_timer(f, CTL_AGAIN_COOKIE), CTL_AGAIN_FIRST_MS);
	assert_int_equal(ctl_stop(t, c), 0);
	ctl_timer(t, CTL_AGAIN_COOKIE);
	ctl_timer(t, 7);
	assert_int_equal(ctl_work(t), 0);
	assert_int_equal(fake_timer(f, CTL_AGAIN_COOKIE), -1);
}

/* ---- pages ----------------------------------------------------------------------------------- */

#define MIGRATE "{pageMigration: {enable: true, rate: 1Mi}}"
#define HEAP UINT64_C(0x1000000)

static void maps(struct ctl_host *t, unsigned pid, const char *text)
{
	char path[64];
	(void)snprintf(path, sizeof path, "/proc/%u/maps", pid);
	ctl_put(t, path, text);
}

/* Creates a container with a process of `pages` pages on node 0, which has been assigned node 1. */
static rp_ctr to_node_1(struct ctl_host *t, unsigned pages)
{
	char text[512];
	rp_ctr c = ctl_ctr(t, &(struct fake_ctr){.name = "c"}, "");
	put_own(t, c, "cgroup.procs", "70\n");
	put_own(t, c, "cpuset.mems", "1\n");
	(void)snprintf(text, sizeof text,
		       "00400000-00401000 r-xp 00000000 08:01 7  /bin/x\n"
		       "%08llx-%08llx rw-p 00000000 00:00 0  [heap]\n"
		       "7f0000000000-7f0000002000 ---p 00000000 00:00 0\n"
		       "7ffd0000-7ffd1000 r-xp 00000000 00:00 0  [vdso]\n",
		       (unsigned long long)HEAP, (unsigned long long)(HEAP + pages * 4096ULL));
	maps(t, 70, text);
	ctl_pages(t, 70, HEAP, pages, 0);
	fake_decide(ctl_fake(t), c, "", "", "1");
	return c;
}

/* Lets time pass until it is over; returns how much of it, in ms. */
static uint64_t pass(struct ctl_host *t, rp_ctr c)
{
	uint64_t now = 0;
	for (unsigned i = 0; i < 1000 && *ctl_report(t, c) == '0'; i++) {
		int64_t delay = fake_timer(ctl_fake(t), MEMORY_MOVE_COOKIE);
		assert_true(delay > 0);
		fake_set_now(ctl_fake(t), now += (uint64_t)delay);
		ctl_timer(t, MEMORY_MOVE_COOKIE);
		(void)ctl_work(t);
	}
	return now;
}

static void changed(struct ctl_host *t, rp_ctr c)
{
	fake_set_now(ctl_fake(t), 0);
	assert_int_equal(ctl_update(t, c, RP_CHANGED_MEMS), 0);
}

static void test_pages_move(void **state)
{
	struct ctl_host *t = *state;
	assert_int_equal(ctl_configure(t, MIGRATE), 0);
	rp_ctr c = to_node_1(t, 1024);
	changed(t, c);
	assert_string_equal(ctl_report(t, c), "0 its pages are about to be moved");
	/* 4 MiB at 1 MiB a second, and three seconds for the runtime before */
	uint64_t took = pass(t, c);
	assert_string_equal(
		ctl_report(t, c),
		"1 pages to memory nodes 1: 4 MiB moved, 0 MiB shared with others stay");
	assert_int_equal(ctl_pages_on(t, 70, 1), 1024);
	assert_true(took >= 3000 + 3 * 1000 && took < 3000 + 4 * 1000 + 1000);
	has(ctl_metrics(t), "moved_bytes_total{} 4.19");
	has(ctl_metrics(t), "migrations{} 0\n");
	/* where they are already there is nothing to do */
	changed(t, c);
	(void)pass(t, c);
	assert_string_equal(
		ctl_report(t, c),
		"1 pages to memory nodes 1: 0 MiB moved, 0 MiB shared with others stay");
}

static void test_pages_progress(void **state)
{
	struct ctl_host *t = *state;
	assert_int_equal(ctl_configure(t, MIGRATE), 0);
	rp_ctr c = to_node_1(t, 2048);
	changed(t, c);
	fake_set_now(ctl_fake(t), 1); /* too early */
	ctl_timer(t, MEMORY_MOVE_COOKIE);
	assert_int_equal(ctl_work(t), 0);
	for (uint64_t i = 0; i < 5; i++) {
		fake_set_now(ctl_fake(t), 10000 * (i + 1));
		ctl_timer(t, MEMORY_MOVE_COOKIE);
		ctl_timer(t, MEMORY_MOVE_COOKIE); /* a second timer during a step is ignored */
		assert_int_equal(ctl_work(t), 1);
		assert_int_equal(ctl_pages_on(t, 70, 1),
				 64 * (i + 1)); /* a quarter of a second's */
	}
	assert_string_equal(ctl_report(t, c), "0 pages to memory nodes 1: 1 MiB moved so far");
	has(ctl_metrics(t), "migrations{} 1\n");
	/* other nodes meanwhile: from the beginning, the other way */
	fake_decide(ctl_fake(t), c, "", "", "0");
	put_own(t, c, "cpuset.mems", "0\n");
	changed(t, c);
	(void)pass(t, c);
	assert_int_equal(ctl_pages_on(t, 70, 0), 2048);
	/* The container ends while its pages are being moved. */
	fake_decide(ctl_fake(t), c, "", "", "1");
	put_own(t, c, "cpuset.mems", "1\n");
	changed(t, c);
	fake_set_now(ctl_fake(t), 90000);
	ctl_timer(t, MEMORY_MOVE_COOKIE);
	assert_int_equal(ctl_stop(t, c), 0);
	(void)ctl_work(t);
	has(ctl_metrics(t), "migrations{} 0\n");
	ctl_timer(t, MEMORY_MOVE_COOKIE);
	assert_int_equal(ctl_work(t), 0);
}

/* Checks that huge pages move as a whole, wherever a step or a mapping begins, and that each
 * page is counted once. */
static void test_pages_huge(void **state)
{
	struct ctl_host *t = *state;
	const uint64_t begin = HEAP + 300 * UINT64_C(4096);
	char text[128];
	assert_int_equal(ctl_configure(t, MIGRATE), 0);
	rp_ctr c = to_node_1(t, 0);
	(void)snprintf(text, sizeof text, "%08llx-%08llx rw-p 00000000 00:00 0  [heap]\n",
		       (unsigned long long)begin, (unsigned long long)(begin + 3072 * 4096ULL));
	maps(t, 70, text);
	ctl_pages(t, 70, begin, 3072, 0);
	ctl_pages_huge(t);
	changed(t, c);
	(void)pass(t, c);
	assert_string_equal(
		ctl_report(t, c),
		"1 pages to memory nodes 1: 12 MiB moved, 0 MiB shared with others stay");
	assert_int_equal(ctl_pages_on(t, 70, 1), 3072);
	has(ctl_metrics(t), "moved_bytes_total{} 1.25829e+07\n");
}

/* Checks that the kernel's error for a page is reported, and the other pages are moved. */
static void test_pages_stay(void **state)
{
	struct ctl_host *t = *state;
	assert_int_equal(ctl_configure(t, MIGRATE), 0);
	rp_ctr c = to_node_1(t, 512);
	ctl_pages_fail(t, 70, HEAP + 4096, EBUSY);
	changed(t, c);
	(void)pass(t, c);
	assert_string_equal(ctl_report(t, c), "2 pages to memory nodes 1: 1 MiB moved, 1 pages "
					      "could not be moved: Device or resource busy");
	assert_int_equal(ctl_pages_on(t, 70, 0), 1);
	has(ctl_metrics(t), "left_bytes_total{} 4096\n");
	/* Shared pages are not reported as an error. */
	ctl_pages_fail(t, 70, HEAP + 4096, EACCES);
	changed(t, c);
	(void)pass(t, c);
	has(ctl_report(t, c), "1 pages to memory nodes 1: 0 MiB moved, 0 MiB shared");
	/* a process that may not be touched, one that has gone, one that is willing */
	put_own(t, c, "cgroup.procs", "72\n71\n70\n");
	maps(t, 71, "01000000-01100000 rw-p 00000000 00:00 0\n");
	maps(t, 72, "01000000-01100000 rw-p 00000000 00:00 0\n");
	ctl_pages(t, 72, HEAP, 256, 0);
	ctl_pages_fail(t, 71, 0, EPERM);
	changed(t, c);
	(void)pass(t, c);
	has(ctl_report(t, c),
	    "2 pages to memory nodes 1: 1 MiB moved, 0 pages could not be moved: "
	    "Operation not permitted (the shipped service needs page-migration.conf");
	assert_int_equal(ctl_pages_on(t, 72, 1), 256);
	ctl_pages_fail(t, 71, 0, ESRCH);
	changed(t, c);
	(void)pass(t, c);
	has(ctl_report(t, c), "1 pages to memory nodes 1: 0 MiB moved");
	/* not on this machine at all */
	ctl_pages_fail(t, 70, 0, ENOTSUP);
	changed(t, c);
	(void)pass(t, c);
	has(ctl_report(t, c), "3 pages to memory nodes 1: 0 MiB moved, 0 pages could not be moved: "
			      "Operation not supported");
}

/* Checks that pages wait, because the kernel accepts only nodes that the runtime has set. */
static void test_pages_too_early(void **state)
{
	struct ctl_host *t = *state;
	assert_int_equal(ctl_configure(t, MIGRATE), 0);
	rp_ctr c = to_node_1(t, 16);
	put_own(t, c, "cpuset.mems", "0\n");
	changed(t, c);
	assert_true(pass(t, c) >= 20 * 3000);
	assert_string_equal(
		ctl_report(t, c),
		"3 pages to memory nodes 1: the runtime has not assigned these nodes to it");
	assert_int_equal(ctl_pages_on(t, 70, 1), 0);
	/* Two containers: a wait for the first does not delay the second. */
	rp_ctr d = ctl_ctr(t, &(struct fake_ctr){.name = "d"}, "");
	put_own(t, d, "cgroup.procs", "90\n");
	put_own(t, d, "cpuset.mems", "1\n");
	maps(t, 90, "01000000-01001000 rw-p 00000000 00:00 0\n");
	ctl_pages(t, 90, HEAP, 1, 0);
	fake_decide(ctl_fake(t), d, "", "", "1");
	changed(t, c);
	changed(t, d);
	(void)pass(t, d);
	has(ctl_report(t, d), "1 pages to memory nodes 1");
	assert_int_equal(*ctl_report(t, c), '0');
}

/* Checks that the page moves start again if the nodes of a container change and change back
 * during a step. */
static void test_pages_anew(void **state)
{
	struct ctl_host *t = *state;
	assert_int_equal(ctl_configure(t, MIGRATE), 0);
	rp_ctr c = to_node_1(t, 1024);
	rp_ctr d = ctl_ctr(t, &(struct fake_ctr){.name = "d"}, "");
	put_own(t, d, "cgroup.procs", "90\n");
	put_own(t, d, "cpuset.mems", "1\n");
	maps(t, 90, "01000000-01001000 rw-p 00000000 00:00 0\n");
	ctl_pages(t, 90, HEAP, 1, 0);
	fake_decide(ctl_fake(t), d, "", "", "1");
	changed(t, c);
	changed(t, d);
	fake_set_now(ctl_fake(t), 3000);
	ctl_timer(t, MEMORY_MOVE_COOKIE);
	changed(t, c);
	assert_int_equal(ctl_work(t), 1);
	assert_string_equal(ctl_report(t, c), "0 its pages are about to be moved");
	assert_int_equal(ctl_pages_on(t, 70, 1), 64);
	for (uint32_t i = 0; i < 64; i++) /* back again, all of them */
		ctl_pages_put(t, 70, HEAP + i * 4096ULL, 0);
	(void)pass(t, c);
	assert_int_equal(ctl_pages_on(t, 70, 1), 1024);
	assert_int_equal(ctl_pages_on(t, 90, 1), 1);
	has(ctl_report(t, d), "1 pages to memory nodes 1");
}

/* Terabytes of addresses with a page here and there: the worker is left to others most of the time,
 * and it comes to an end. */
static void test_pages_sparse(void **state)
{
	struct ctl_host *t = *state;
	assert_int_equal(ctl_configure(t, MIGRATE), 0);
	rp_ctr c = to_node_1(t, 1);
	/* 256 GiB, 32 GiB, and one that is as any other */
	maps(t, 70,
	     "100000000000-104000000000 rw-p 00000000 00:00 0\n"
	     "200000000000-200800000000 rw-p 00000000 00:00 0\n"
	     "300000000000-300000010000 rw-p 00000000 00:00 0\n");
	ctl_pages(t, 70, UINT64_C(0x100000000000), 2, 0);
	ctl_pages(t, 70, UINT64_C(0x1007fffff000), 2, 0);
	ctl_pages(t, 70, UINT64_C(0x103fffffe000), 2, 0); /* too far behind */
	ctl_pages(t, 70, UINT64_C(0x2007fffff000), 1, 0);
	ctl_pages(t, 70, UINT64_C(0x300000000000), 16, 0);
	changed(t, c);
	uint64_t took = pass(t, c);
	assert_string_equal(
		ctl_report(t, c),
		"2 pages to memory nodes 1: 0 MiB moved, skipped 1 mappings with very few pages");
	assert_int_equal(ctl_pages_on(t, 70, 1), 21);
	/* 128 GiB are 512 steps */
	assert_true(took > 400 * 640 && took < 520 * 700);
}

static void test_pages_switched_off(void **state)
{
	struct ctl_host *t = *state;
	assert_int_equal(ctl_configure(t, "{}"), 0);
	rp_ctr c = to_node_1(t, 16);
	changed(t, c);
	assert_int_equal(fake_timer(ctl_fake(t), MEMORY_MOVE_COOKIE), -1);
	assert_int_equal(ctl_configure(t, MIGRATE), 0);
	changed(t, c);
	assert_int_equal(ctl_configure(t, "{}"), 0); /* with one on its way */
	fake_set_now(ctl_fake(t), 10000);
	ctl_timer(t, MEMORY_MOVE_COOKIE);
	assert_int_equal(ctl_work(t), 0);
	has(ctl_metrics(t), "migrations{} 0\n");
	assert_int_equal(ctl_configure(t, "{pageMigration: {enable: true, rate: 1000}}"),
			 -RP_EINVAL);
	has(fake_error(ctl_fake(t)), "at least 1Mi");
}

static void test_map_lines(void **state)
{
	static const char *const bad[] = {
		"",
		"\n",
		"1000",
		"1000-",
		"1000-2000",
		"1000-2000 ",
		"1000-2000 rw",
		"1000 2000 rw-p ",
		"2000-1000 rw-p ",
		"1000-1000 rw-p ",
		"1001-2000 rw-p ",
		"1000-2001 rw-p ",
		"0x1000-2000 rw-p ",
		"1000-2000 ---p 0 0 0",
		"x-y rw-p ",
		"1000-fffffffffffffffffffff000 rw-p ",
		"7ffc1000-7ffc3000 r--p 00000000 00:00 0 [vvar]\n",
	};
	uint64_t start = 7, end = 7;
	for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_false(memory_map_line(bad[i], &start, &end));
	assert_int_equal(start + end, 14);
	assert_true(memory_map_line("7f10-x", &start, &end) == false);
	assert_true(memory_map_line("1000-3000 rw-p 00000000 00:00 0 [heap]\nnext", &start, &end));
	assert_int_equal(start, 0x1000);
	assert_int_equal(end, 0x3000);
	assert_true(memory_map_line("ffffffffff600000-ffffffffff601000 rw-s 0 0 0", &start, &end));
}

static void test_failures(void **state)
{
	struct ctl_host *t = *state;
	assert_int_equal(ctl_configure(t, CONFIG), 0);
	rp_ctr c = make(t, "c", "class.memory-qos.nri.io=bronze", 4 * MIB);
	ctl_fail_nth(t, 1, EBUSY);
	assert_string_equal(start(t, c), "2 memory.high: Device or resource busy; trying again");
	ctl_fail(t, "memory.", EACCES);
	assert_string_equal(start(t, c), "2 memory.high: Permission denied; trying again");
	ctl_fail(t, NULL, 0);
	rp_ctr bad = make(t, "bad", "memory.low.memory-qos.nri.io=5000", 0);
	(void)start(t, bad);
	assert_string_equal(ctl_report(t, bad), "1");
	char path[256];
	(void)snprintf(path, sizeof path, "%s/memory.swap.max", ctl_cgroup(t, c, ""));
	ctl_remove(t, path);
	has(start(t, c), "2 memory.swap.max: No such file");
	ctl_remove(t, ctl_cgroup(t, c, ""));
	has(start(t, c), "3 its cgroup was not found");
}

static void test_old_host(void **state)
{
	struct rp_instance *inst;
	struct ctl_host *t = *state;
	assert_int_equal(rp_module_1.create(fake_rp_host(ctl_fake(t)), &inst), -RP_ENOTSUP);
	assert_null(rp_module_1.service(NULL, "nri-rp.unknown/1"));
	assert_non_null(rp_module_1.service(NULL, RP_SCHEMA_1));
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_configurations),
		TEST(test_classes),
		TEST(test_stopped_and_started),
		TEST(test_annotations),
		TEST(test_refusals),
		TEST(test_qos_default),
		TEST(test_resize_and_reload),
		TEST(test_v1),
		TEST(test_failures),
		TEST(test_toptier),
		TEST(test_tried_again),
		TEST(test_pages_move),
		TEST(test_pages_progress),
		TEST(test_pages_huge),
		TEST(test_pages_stay),
		TEST(test_pages_too_early),
		TEST(test_pages_anew),
		TEST(test_pages_sparse),
		TEST(test_pages_switched_off),
		TEST(test_map_lines),
		TEST(test_old_host),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
