/* SPDX-License-Identifier: Apache-2.0 */
/* memory.so: classes and annotations, files of both cgroup versions, resizes, and every write that can fail. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "modules/lib/ctl_queue.h"
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
		{"{classes: [{name: a}, {name: a}]}", "already"},
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
	/* half of it, in whole pages */
	assert_string_equal(staged(t, c, "memory.high"), "52428800");
	assert_string_equal(staged(t, c, "memory.swap.max"), "max");
	has(fake_trail(ctl_fake(t), c), "memory class bronze");
	/* the runtime that ignored it is helped out */
	assert_string_equal(start(t, c), "1");
	assert_string_equal(own(t, c, "memory.high"), "52428800");
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

static void test_annotations(void **state)
{
	struct ctl_host *t = *state;
	assert_int_equal(ctl_configure(t, CONFIG), 0);
	/* what is set directly wins over the class; a container's own annotation over its pod's */
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
	has(start(t, c), why); /* when the host is told to be lenient */
	assert_int_equal(*ctl_report(t, c), '3');
	assert_string_equal(ctl_changes(t), "");
}

static void test_refusals(void **state)
{
	struct ctl_host *t = *state;
	assert_int_equal(ctl_configure(t, CONFIG), 0);
	refused(t, make(t, "a", "class.memory-qos.nri.io=silver", MIB),
		"there is no memory class \"silver\"");
	refused(t, make(t, "b", "class.memory-qos.nri.io=bronze", 0), "it has none");
	refused(t, make(t, "c", "memory.min.memory-qos.nri.io=1", MIB), "not among");
	refused(t, make(t, "d", "memory.low.memory-qos.nri.io=", MIB), "no value");
	refused(t,
		make(t, "e",
		     "memory.low.memory-qos.nri.io="
		     "1111111111111111111111111111111111111111111111111"
		     "111111111111111111",
		     MIB),
		"no value");
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
	assert_int_equal(ctl_pre_create(t, n), 0); /* nobody asked for it: no limit is no error */
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
	has(ctl_report(t, c), "3 there is no memory class");
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

/* Later and later, then no more; a change from outside begins anew, and who is gone is forgotten. */
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
	has(start(t, c), "3 its cgroup is not found");
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
		TEST(test_annotations),
		TEST(test_refusals),
		TEST(test_qos_default),
		TEST(test_resize_and_reload),
		TEST(test_v1),
		TEST(test_failures),
		TEST(test_tried_again),
		TEST(test_old_host),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
