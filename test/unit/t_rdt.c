/* SPDX-License-Identifier: Apache-2.0 */
/* rdt.so over a resctrl of files: groups, tasks, classes, restarts, and every change that can
 * fail. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "modules/lib/private/ctl_queue.h"
#include "test/unit/ctl_host.h"

extern const struct rp_module rp_module_1;

#define R "/sys/fs/resctrl/"
#define GOLD_BRONZE                                                                                \
	"{partitions: {p: {l3Allocation: 100%, classes: {gold: {l3Allocation: 80%}, "              \
	"bronze: {l3Allocation: 20%}}}}}"
#define GOLD_ONLY "{partitions: {p: {l3Allocation: 100%, classes: {gold: {l3Allocation: 80%}}}}}"

static int setup(void **state)
{
	struct ctl_host *t = ctl_host_new();
	ctl_resctrl(t, false);
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

static void has_not(const char *text, const char *part)
{
	if (strstr(text, part))
		fail_msg("\"%s\" is in \"%s\"", part, text);
}

static rp_ctr annotated(struct ctl_host *t, const char *name, const char *class, const char *tids)
{
	char text[160];
	(void)snprintf(text, sizeof text, "rdtclass.resource-policy.nri.io=%s", class ? class : "");
	return ctl_ctr(t, &(struct fake_ctr){.name = name, .annotations = class ? text : NULL},
		       tids);
}

/* ---- groups ---------------------------------------------------------------------------------- */

static void test_groups(void **state)
{
	struct ctl_host *t = *state;
	assert_int_equal(ctl_configure(t, GOLD_BRONZE), 0);
	assert_string_equal(ctl_changes(t), ""); /* the main thread writes no files */
	assert_int_equal(ctl_work(t), 1);
	assert_string_equal(ctl_get(t, R "nri-rp.gold/schemata"),
			    "L3:0=ffff;1=ffff\nMB:0=100;1=100");
	assert_string_equal(ctl_get(t, R "nri-rp.bronze/schemata"), "L3:0=f;1=f\nMB:0=100;1=100");
	/* A value that is already set is not written again. */
	ctl_changes_clear(t);
	assert_int_equal(ctl_configure(t, GOLD_BRONZE), 0);
	(void)ctl_work(t);
	has_not(ctl_changes(t), "write");
	/* other shares: written; a class that is gone: removed */
	assert_int_equal(ctl_configure(t, "{partitions: {p: {l3Allocation: 100%, classes: {gold: "
					  "{l3Allocation: 50%}}}}}"),
			 0);
	(void)ctl_work(t);
	assert_string_equal(ctl_get(t, R "nri-rp.gold/schemata"), "L3:0=3ff;1=3ff\nMB:0=100;1=100");
	assert_false(ctl_there(t, R "nri-rp.bronze"));
}

static void test_foreign_groups(void **state)
{
	struct ctl_host *t = *state;
	ctl_put(t, R "other/tasks", "5\n");
	ctl_put(t, R "other/schemata", "L3:0=1;1=1\n");
	ctl_put(t, R "nri-rp.unknown/tasks", "");
	assert_int_equal(ctl_configure(t, GOLD_ONLY), 0);
	(void)ctl_work(t);
	ctl_sync(t);
	(void)ctl_work(t);
	has_not(ctl_changes(t), "other");
	has_not(ctl_changes(t), "unknown");
	has_not(ctl_changes(t), R "schemata"); /* the root group */
	has(fake_log(ctl_fake(t)), "it was not created by nri-rp");
	/* The option `force` allows changes to groups with the prefix, and to no others. */
	assert_int_equal(ctl_configure(t, "{force: true, partitions: {p: {classes: {gold: {}}}}}"),
			 0);
	(void)ctl_work(t);
	assert_false(ctl_there(t, R "nri-rp.unknown"));
	assert_true(ctl_there(t, R "other"));
}

static void test_record(void **state)
{
	struct ctl_host *t = *state;
	assert_int_equal(ctl_configure(t, GOLD_BRONZE), 0);
	(void)ctl_work(t);
	/* a class disappears while the daemon is away: the record knows its group */
	assert_int_equal(ctl_restart(t, GOLD_ONLY), 0);
	(void)ctl_work(t);
	assert_false(ctl_there(t, R "nri-rp.bronze"));
	assert_true(ctl_there(t, R "nri-rp.gold"));
	/* with foreign tasks in it, it stays, in the record too, until they are gone */
	assert_int_equal(ctl_configure(t, GOLD_BRONZE), 0);
	(void)ctl_work(t);
	ctl_put(t, R "nri-rp.bronze/tasks", "77\n");
	assert_int_equal(ctl_restart(t, GOLD_ONLY), 0);
	(void)ctl_work(t);
	assert_true(ctl_there(t, R "nri-rp.bronze"));
	ctl_put(t, R "nri-rp.bronze/tasks", "");
	assert_int_equal(ctl_restart(t, GOLD_ONLY), 0);
	(void)ctl_work(t);
	assert_false(ctl_there(t, R "nri-rp.bronze"));
}

static void test_bad_record(void **state)
{
	static const char *const records[] = {"", "rdt 2\na\n", "rdt 1\na", "rdt 1\n\n",
					      "rdt 1\n../x\n"};
	struct ctl_host *t = *state;
	const struct rp_state *s = rp_module_1.service(ctl_instance(t), RP_STATE_1);
	for (unsigned i = 0; i < sizeof records / sizeof *records; i++)
		assert_int_equal(s->load(ctl_instance(t), records[i], (uint32_t)strlen(records[i])),
				 -RP_EINVAL);
	assert_int_equal(s->load(ctl_instance(t), "rdt 1\na\nb\n", 10), 0);
	const void *data;
	uint32_t size;
	assert_int_equal(s->save(ctl_instance(t), &data, &size), 0);
	assert_int_equal(size, 10);
	assert_memory_equal(data, "rdt 1\na\nb\n", 10);
}

static void test_stale_with_containers(void **state)
{
	struct ctl_host *t = *state;
	assert_int_equal(ctl_configure(t, GOLD_BRONZE), 0);
	rp_ctr c = annotated(t, "c0", "bronze", "21,22");
	assert_int_equal(ctl_start(t, c), 0);
	(void)ctl_work(t);
	assert_string_equal(ctl_get(t, R "nri-rp.bronze/tasks"), "21\n22");
	assert_int_equal(ctl_configure(t, GOLD_ONLY), 0);
	ctl_sync(t);
	(void)ctl_work(t);
	/* The class of the tasks no longer exists: they move to the root group before their
	 * group is removed. */
	assert_string_equal(ctl_report(t, c),
			    "3 class bronze: unknown RDT class; it is in the root group");
	assert_false(ctl_there(t, R "nri-rp.bronze"));
	has(ctl_get(t, R "tasks"), "21\n22");
}

/* ---- containers ------------------------------------------------------------------------------ */

static void test_classes(void **state)
{
	struct ctl_host *t = *state;
	assert_int_equal(
		ctl_configure(t, "{usePodQoSAsDefaultClass: true, partitions: {p: {classes: {gold: "
				 "{}, Guaranteed: {}, Burstable: {}}}}}"),
		0);
	rp_ctr by_annotation = annotated(t, "a", "gold", "21,22");
	rp_ctr by_qos = ctl_ctr(t, &(struct fake_ctr){.name = "q", .qos = RP_QOS_BURSTABLE}, "31");
	rp_ctr root = ctl_ctr(t, &(struct fake_ctr){.name = "r", .qos = RP_QOS_BEST_EFFORT}, "41");
	rp_ctr podqos = annotated(t, "p", "/PodQos", "51");
	rp_ctr explicit_root = annotated(t, "e", "system/default", "61");
	rp_ctr policy = annotated(t, "d", "gold", "71");
	ctl_decide(t, policy, RP_F_RDT_CLASS, "Burstable");
	const rp_ctr all[] = {by_annotation, by_qos, root, podqos, explicit_root, policy};
	for (unsigned i = 0; i < 6; i++) {
		assert_int_equal(ctl_pre_create(t, all[i]), 0);
		assert_int_equal(ctl_start(t, all[i]), 0);
	}
	(void)ctl_work(t);
	for (unsigned i = 0; i < 6; i++)
		assert_string_equal(ctl_report(t, all[i]), "1");
	assert_string_equal(ctl_get(t, R "nri-rp.gold/tasks"), "21\n22");
	assert_string_equal(ctl_get(t, R "nri-rp.Burstable/tasks"), "31\n71");
	assert_string_equal(ctl_get(t, R "nri-rp.Guaranteed/tasks"), "51");
	has_not(ctl_changes(t), "write /sys/fs/resctrl/tasks");
	has(fake_trail(ctl_fake(t), by_annotation), "RDT class gold, from annotation");
	has(fake_trail(ctl_fake(t), policy), "RDT class Burstable, decided by the policy");
}

static void test_class_change(void **state)
{
	struct ctl_host *t = *state;
	assert_int_equal(ctl_configure(t, GOLD_BRONZE), 0);
	rp_ctr c = annotated(t, "c", NULL, "21,22");
	assert_int_equal(ctl_start(t, c), 0);
	(void)ctl_work(t);
	ctl_decide(t, c, RP_F_RDT_CLASS, "gold");
	assert_int_equal(ctl_update(t, c, RP_CHANGED_CPUS), 0);
	assert_int_equal(ctl_work(t), 0); /* a change of CPUs does not concern the class */
	assert_int_equal(ctl_update(t, c, RP_CHANGED_CLASS), 0);
	assert_string_equal(ctl_report(t, c), "0");
	(void)ctl_work(t);
	assert_string_equal(ctl_report(t, c), "1");
	assert_string_equal(ctl_get(t, R "nri-rp.gold/tasks"), "21\n22");
	/* several changes while the worker is busy: the last one counts */
	ctl_changes_clear(t);
	ctl_decide(t, c, RP_F_RDT_CLASS, "bronze");
	assert_int_equal(ctl_update(t, c, RP_CHANGED_CLASS), 0);
	for (int i = 0; i < 5; i++) {
		ctl_decide(t, c, RP_F_RDT_CLASS, i % 2 ? "bronze" : "gold");
		assert_int_equal(ctl_update(t, c, RP_CHANGED_CLASS), 0);
	}
	(void)ctl_work(t);
	assert_string_equal(ctl_get(t, R "nri-rp.gold/tasks"), "21\n22");
	/* Without a class, the tasks return to the root group. */
	ctl_decide(t, c, RP_F_RDT_CLASS, "");
	assert_int_equal(ctl_update(t, c, RP_CHANGED_CLASS), 0);
	(void)ctl_work(t);
	assert_string_equal(ctl_get(t, R "nri-rp.gold/tasks"), "");
	has(ctl_get(t, R "tasks"), "21\n22");
	/* An unchanged class submits no job. */
	assert_int_equal(ctl_update(t, c, RP_CHANGED_CLASS), 0);
	assert_int_equal(ctl_work(t), 0);
}

static void test_unknown_class(void **state)
{
	struct ctl_host *t = *state;
	assert_int_equal(ctl_configure(t, GOLD_ONLY), 0);
	rp_ctr c = annotated(t, "c", "silver", "21");
	assert_int_equal(ctl_pre_create(t, c), -RP_EINVAL);
	assert_string_equal(fake_error(ctl_fake(t)), "unknown RDT class \"silver\" (from "
						     "annotation rdtclass.resource-policy.nri.io)");
	assert_int_equal(ctl_start(t, c), 0); /* the host was told to be lenient */
	(void)ctl_work(t);
	has(ctl_report(t, c), "3 class silver: unknown RDT class");
}

static void test_forks(void **state)
{
	struct ctl_host *t = *state;
	assert_int_equal(ctl_configure(t, GOLD_ONLY), 0);
	(void)ctl_work(t);
	rp_ctr c = annotated(t, "c", "gold", "21,22");
	char path[256];
	(void)snprintf(path, sizeof path, "%s/cgroup.threads", ctl_cgroup(t, c, ""));
	ctl_fork_at(t, path, 2, "23\n24\n"); /* seen by the second pass */
	assert_int_equal(ctl_start(t, c), 0);
	(void)ctl_work(t);
	assert_string_equal(ctl_get(t, R "nri-rp.gold/tasks"), "21\n22\n23\n24");
	assert_string_equal(ctl_report(t, c), "1");
}

static void test_cgroups(void **state)
{
	struct ctl_host *t = *state;
	char path[256];
	assert_int_equal(ctl_configure(t, GOLD_ONLY), 0);
	/* Threads in cgroups below the container's cgroup belong to it, too. */
	rp_ctr c = annotated(t, "c", "gold", "21");
	(void)snprintf(path, sizeof path, "%s/init.scope/cgroup.threads", ctl_cgroup(t, c, ""));
	ctl_put(t, path, "31\n32\n");
	(void)snprintf(path, sizeof path, "%s/a/b/cgroup.threads", ctl_cgroup(t, c, ""));
	ctl_put(t, path, "41\n");
	(void)snprintf(path, sizeof path, "%s/a/cgroup.threads", ctl_cgroup(t, c, ""));
	ctl_put(t, path, "");
	assert_int_equal(ctl_start(t, c), 0);
	(void)ctl_work(t);
	assert_string_equal(ctl_get(t, R "nri-rp.gold/tasks"), "21\n41\n31\n32");
	/* v1 */
	ctl_cgroup_v1(t);
	rp_ctr d = annotated(t, "d", "gold", "51,666");
	assert_int_equal(ctl_start(t, d), 0);
	(void)ctl_work(t);
	has(ctl_get(t, R "nri-rp.gold/tasks"), "51");
	assert_string_equal(ctl_report(t, d), "1"); /* 666 had ended */
	/* The container has no cgroup. */
	rp_ctr e = annotated(t, "e", "gold", "61");
	ctl_remove(t, "/sys/fs/cgroup");
	assert_int_equal(ctl_start(t, e), 0);
	(void)ctl_work(t);
	has(ctl_report(t, e), "3 its cgroup was not found");
}

static void test_garbled_tasks(void **state)
{
	struct ctl_host *t = *state;
	assert_int_equal(ctl_configure(t, GOLD_ONLY), 0);
	rp_ctr c = annotated(t, "c", "gold", "21,x");
	assert_int_equal(ctl_start(t, c), 0);
	(void)ctl_work(t);
	assert_string_equal(ctl_get(t, R "nri-rp.gold/tasks"), "21");
	rp_ctr d = annotated(t, "d", "gold", "99999999999999999999");
	assert_int_equal(ctl_start(t, d), 0);
	(void)ctl_work(t);
	has(ctl_report(t, d), "3 its tasks cannot be listed");
}

static void test_restart(void **state)
{
	struct ctl_host *t = *state;
	assert_int_equal(ctl_configure(t, GOLD_BRONZE), 0);
	rp_ctr c = annotated(t, "c", "gold", "21,22");
	rp_ctr d = annotated(t, "d", NULL, "31");
	assert_int_equal(ctl_start(t, c), 0);
	/* killed in the middle: one task moved, the other not */
	(void)ctl_work(t);
	ctl_put(t, R "nri-rp.gold/tasks", "21\n");
	ctl_changes_clear(t);
	assert_int_equal(ctl_restart(t, GOLD_BRONZE), 0);
	ctl_sync(t);
	(void)ctl_work(t);
	has(ctl_get(t, R "nri-rp.gold/tasks"), "22");
	has_not(ctl_changes(t), "mkdir /sys/fs/resctrl/nri-rp.gold/");
	has_not(ctl_changes(t), "schemata");
	assert_string_equal(ctl_report(t, c), "1");
	assert_string_equal(ctl_report(t, d), "1");
	/* a Synchronize without a restart: all is known, nothing is written */
	ctl_changes_clear(t);
	ctl_sync(t);
	(void)ctl_work(t);
	has_not(ctl_changes(t), "write");
	/* A container that ended meanwhile is dropped. */
	fake_forget(ctl_fake(t), c);
	ctl_sync(t);
	(void)ctl_work(t);
}

/* ---- discovery ------------------------------------------------------------------------------- */

static void test_discovery(void **state)
{
	struct ctl_host *t = *state;
	ctl_put(t, R "gold/tasks", "");
	ctl_put(t, R "gold/schemata", "L3:0=1;1=1\n");
	ctl_put(t, R "nri-rp.old/tasks", "");
	assert_int_equal(ctl_configure(t, "{usePodQoSAsDefaultClass: true}"), 0);
	rp_ctr c = annotated(t, "c", "gold", "21"), d = annotated(t, "d", "silver", "31"),
	       e = annotated(t, "e", NULL, "41"), f = annotated(t, "f", "../x", "51");
	assert_int_equal(ctl_start(t, c), 0);
	assert_int_equal(ctl_start(t, d), 0);
	assert_int_equal(ctl_start(t, e), 0);
	assert_int_equal(ctl_start(t, f), 0);
	ctl_sync(t);
	(void)ctl_work(t);
	assert_string_equal(ctl_get(t, R "gold/tasks"), "21");
	assert_string_equal(ctl_report(t, c), "1");
	has(ctl_report(t, d), "3 class silver: unknown group; it is in the root group");
	assert_string_equal(ctl_report(t, e), "1"); /* no group of its QoS class: the root group */
	has(ctl_report(t, f), "3 class ../x: unknown RDT class");
	has_not(ctl_changes(t), "mkdir");
	has_not(ctl_changes(t), "rmdir");
	has_not(ctl_changes(t), "schemata");
}

static void test_switched_off(void **state)
{
	struct ctl_host *t = *state;
	ctl_remove(t, "/proc/mounts");
	assert_int_equal(
		ctl_configure(t, "{enable: false, partitions: {p: {classes: {gold: {}}}}}"), 0);
	rp_ctr c = annotated(t, "c", "gold", "21");
	assert_int_equal(ctl_pre_create(t, c), 0);
	assert_int_equal(ctl_start(t, c), 0);
	ctl_sync(t);
	assert_int_equal(ctl_stop(t, c), 0);
	assert_int_equal(ctl_work(t), 0);
	assert_non_null(ctl_metrics(t));
}

/* ---- missing features ------------------------------------------------------------------------ */

static void refused(struct ctl_host *t, int32_t code, const char *why)
{
	assert_int_equal(ctl_configure(t, GOLD_ONLY), code);
	has(fake_error(ctl_fake(t)), why);
}

static void test_machines(void **state)
{
	struct ctl_host *t = *state;
	ctl_put(t, "/proc/mounts", "proc /proc proc rw 0 0\nbroken\n");
	refused(t, -RP_ENOTSUP, "no resctrl file system is mounted");
	ctl_remove(t, "/proc/mounts");
	refused(t, -RP_ENOTSUP, "no resctrl file system is mounted");
	ctl_resctrl(t, false);
	ctl_put(t, R "info/L3/cbm_mask", "0\n");
	refused(t, -RP_ENOTSUP, "has an invalid mask");
	ctl_put(t, R "info/L3/cbm_mask", "x\n");
	refused(t, -RP_EINVAL, "cbm_mask");
	ctl_put(t, R "info/L3/cbm_mask", "fffff\n");
	ctl_put(t, R "info/L3/min_cbm_bits", "21\n");
	refused(t, -RP_ENOTSUP, "has an invalid mask");
	ctl_remove(t, R "info/L3/min_cbm_bits");
	refused(t, -RP_ENOENT, "");
	ctl_put(t, R "info/L3/min_cbm_bits", "1\n");
	ctl_put(t, R "schemata", "L3:zero=fffff\n");
	refused(t, -RP_EINVAL, "has an unknown format");
	ctl_remove(t, R "schemata");
	refused(t, -RP_ENOENT, "schemata");
	ctl_put(t, R "schemata", "MB:0=100\nsome words\n");
	refused(t, -RP_ENOTSUP, "options.l3.optional");
	ctl_remove(t, R "info/MB/num_closids");
	ctl_resctrl(t, false);
	ctl_put(t, R "info/MB/min_bandwidth", "none");
	refused(t, -RP_EINVAL, "min_bandwidth");
}

static void test_options(void **state)
{
	struct ctl_host *t = *state;
	ctl_put(t, "/proc/mounts",
		"resctrl /sys/fs/resctrl resctrl rw,cdp,mba_MBps 0 0\nresctrl /x resctrl rw 0 0\n");
	assert_int_equal(
		ctl_configure(t, "{partitions: {p: {mbAllocation: [2000MBps], classes: {c: {}}}}}"),
		0);
	(void)ctl_work(t);
	assert_string_equal(ctl_get(t, R "nri-rp.c/schemata"),
			    "L3:0=fffff;1=fffff\nMB:0=2000;1=2000");
	ctl_close(t);
	ctl_remove(t, "/sys/fs/resctrl");
	ctl_resctrl(t, true);
	assert_int_equal(ctl_open(t, &rp_module_1), 0);
	assert_int_equal(ctl_configure(t, GOLD_ONLY), 0);
	(void)ctl_work(t);
	assert_string_equal(ctl_get(t, R "nri-rp.gold/schemata"),
			    "L3CODE:0=ffff;1=ffff\nL3DATA:0=ffff;1=ffff\nMB:0=100;1=100");
}

static void test_no_closids(void **state)
{
	struct ctl_host *t = *state;
	ctl_limit_groups(t, 1);
	assert_int_equal(ctl_configure(t, GOLD_BRONZE), 0);
	rp_ctr g = annotated(t, "g", "gold", "21"), b = annotated(t, "b", "bronze", "31");
	assert_int_equal(ctl_start(t, g), 0);
	assert_int_equal(ctl_start(t, b), 0);
	(void)ctl_work(t);
	assert_string_equal(ctl_report(t, g), "1");
	assert_string_equal(
		ctl_report(t, b),
		"3 class bronze: group bronze: it cannot be created: the hardware has no "
		"class left; it is in the root group; trying again");
	has(fake_log(ctl_fake(t)), "the hardware has no class left");
	has(ctl_get(t, R "tasks"), "31");
	/* When another class is removed, its group becomes free for the class that waits. */
	assert_int_equal(ctl_configure(t, "{partitions: {p: {classes: {bronze: {}, silver: {}}}}}"),
			 0);
	ctl_sync(t);
	(void)ctl_work(t);
	assert_string_equal(ctl_report(t, b), "1");
	assert_string_equal(ctl_get(t, R "nri-rp.bronze/tasks"), "31");
}

static void test_refused_schemata(void **state)
{
	struct ctl_host *t = *state;
	ctl_put(t, R "info/last_cmd_status", "mask f overlaps an exclusive group\n");
	ctl_fail(t, "nri-rp.gold/schemata", EINVAL);
	assert_int_equal(ctl_configure(t, GOLD_BRONZE), 0);
	rp_ctr c = annotated(t, "c", "gold", "21");
	assert_int_equal(ctl_start(t, c), 0);
	(void)ctl_work(t);
	assert_string_equal(ctl_report(t, c),
			    "2 class gold: group gold: its shares are refused: Invalid argument: "
			    "mask f overlaps an exclusive group; trying again");
	assert_string_equal(ctl_get(t, R "nri-rp.gold/tasks"), "21");
	has(ctl_metrics(t), "setup_failures_total{} 1\n");
	/* the next round puts it right */
	ctl_fail(t, NULL, 0);
	ctl_sync(t);
	(void)ctl_work(t);
	assert_string_equal(ctl_report(t, c), "1");
}

static void test_failing_moves(void **state)
{
	struct ctl_host *t = *state;
	assert_int_equal(ctl_configure(t, GOLD_ONLY), 0);
	(void)ctl_work(t);
	rp_ctr c = annotated(t, "c", "gold", "21,22,23");
	ctl_fail_nth(t, 2, EACCES);
	assert_int_equal(ctl_start(t, c), 0);
	(void)ctl_work(t);
	assert_string_equal(ctl_report(t, c),
			    "2 1 of 3 tasks cannot be moved: Permission denied; trying again");
	ctl_fail(t, "gold/tasks", EBUSY);
	assert_int_equal(ctl_start(t, c), 0);
	(void)ctl_work(t);
	assert_string_equal(
		ctl_report(t, c),
		"3 3 of 3 tasks cannot be moved: Device or resource busy; trying again");
}

/* Checks the retry by the timer: the group is repaired first, then the container. */
static void test_tried_again(void **state)
{
	struct ctl_host *t = *state;
	struct fake_host *f = ctl_fake(t);
	ctl_fail(t, "nri-rp.gold/schemata", EINVAL);
	assert_int_equal(ctl_configure(t, GOLD_BRONZE), 0);
	rp_ctr c = annotated(t, "c", "gold", "21");
	fake_set_now(f, 1000);
	assert_int_equal(ctl_start(t, c), 0);
	(void)ctl_work(t);
	has(ctl_report(t, c), "; trying again");
	assert_int_equal(fake_timer(f, CTL_AGAIN_COOKIE), CTL_AGAIN_FIRST_MS);
	has(ctl_metrics(t), "failing{} 1\n");
	ctl_fail(t, NULL, 0);
	fake_set_now(f, 1000 + CTL_AGAIN_FIRST_MS);
	ctl_timer(t, CTL_AGAIN_COOKIE);
	(void)ctl_work(t);
	assert_string_equal(ctl_report(t, c), "1");
	assert_int_equal(fake_timer(f, CTL_AGAIN_COOKIE), -1);
	has(ctl_metrics(t), "failing{} 0\n");
	/* a class that is not configured is nothing that time mends */
	ctl_decide(t, c, RP_F_RDT_CLASS, "nowhere");
	assert_int_equal(ctl_update(t, c, RP_CHANGED_CLASS), 0);
	(void)ctl_work(t);
	assert_string_equal(ctl_report(t, c),
			    "3 class nowhere: unknown RDT class; it is in the root group");
	assert_int_equal(fake_timer(f, CTL_AGAIN_COOKIE), -1);
}

/* Checks that a stopped controller that starts again, because its removal was refused, does the
 * pending work and does not repeat the rest. */
static void test_stopped_and_started(void **state)
{
	struct ctl_host *t = *state;
	assert_int_equal(ctl_configure(t, GOLD_BRONZE), 0);
	(void)ctl_work(t);
	rp_ctr c = annotated(t, "c", "gold", "21"), d = annotated(t, "d", "bronze", "31");
	assert_int_equal(ctl_start(t, c), 0);
	assert_int_equal(ctl_start(t, d), 0);
	ctl_stop_and_start(t, &rp_module_1);
	(void)ctl_work(t);
	assert_string_equal(ctl_report(t, c), "1");
	assert_string_equal(ctl_report(t, d), "1");
	assert_string_equal(ctl_get(t, R "nri-rp.gold/tasks"), "21");
	assert_string_equal(ctl_get(t, R "nri-rp.bronze/tasks"), "31");
	/* A job that failed before the stop is still retried. */
	ctl_fail(t, "nri-rp.gold/tasks", EBUSY);
	assert_int_equal(ctl_start(t, c), 0);
	(void)ctl_work(t);
	has(ctl_report(t, c), "; trying again");
	ctl_stop_and_start(t, &rp_module_1);
	(void)ctl_work(t);
	has(ctl_report(t, c), "; trying again");
	assert_true(fake_timer(ctl_fake(t), CTL_AGAIN_COOKIE) > 0);
	ctl_mend(t);
	assert_string_equal(ctl_report(t, c), "1");
}

/* Checks that any failing change causes no crash and no leak, is reported, and is repaired by
 * the next round. */
static void test_each_change_fails(void **state)
{
	for (uint32_t nth = 1; nth < 40; nth++) {
		struct ctl_host *t = ctl_host_new();
		ctl_resctrl(t, false);
		assert_int_equal(ctl_open(t, &rp_module_1), 0);
		ctl_fail_nth(t, nth, EIO);
		assert_int_equal(ctl_configure(t, "{monitoring: containers, partitions: {p: "
						  "{classes: {gold: {}, bronze: {}}}}}"),
				 0);
		rp_ctr c = annotated(t, "c", "gold", "21,22"),
		       d = annotated(t, "d", "bronze", "31");
		assert_int_equal(ctl_start(t, c), 0);
		assert_int_equal(ctl_start(t, d), 0);
		(void)ctl_work(t);
		bool hit = ctl_n_changes(t) >= nth;
		ctl_fail_nth(t, 0, 0);
		assert_int_equal(ctl_configure(t, "{monitoring: containers, partitions: {p: "
						  "{classes: {gold: {}, bronze: {}}}}}"),
				 0);
		ctl_sync(t);
		(void)ctl_work(t);
		assert_string_equal(ctl_report(t, c), "1");
		assert_string_equal(ctl_report(t, d), "1");
		assert_string_equal(ctl_get(t, R "nri-rp.gold/tasks"), "21\n22");
		assert_string_equal(ctl_get(t, R "nri-rp.bronze/tasks"), "31");
		ctl_host_free(t);
		if (!hit) {
			assert_true(nth > 8);
			break;
		}
	}
}

/* ---- monitoring ------------------------------------------------------------------------------ */

#define MONITORED "{monitoring: containers, partitions: {p: {classes: {gold: {}, bronze: {}}}}}"

static void test_monitoring(void **state)
{
	struct ctl_host *t = *state;
	assert_int_equal(ctl_configure(t, MONITORED), 0);
	rp_ctr c = annotated(t, "c", "gold", "21"), d = annotated(t, "d", NULL, "31");
	assert_int_equal(ctl_start(t, c), 0);
	assert_int_equal(ctl_start(t, d), 0);
	(void)ctl_work(t);
	assert_string_equal(ctl_report(t, c), "1");
	struct rp_ctr_info info = {.size = sizeof info};
	const struct rp_host_cache *cache =
		ctl_rp_host(t)->service(ctl_rp_host(t)->ctx, RP_HOST_CACHE_1);
	assert_int_equal(cache->get_ctr(ctl_rp_host(t)->ctx, c, &info), 0);
	char group[256], moved[256], tasks[300], metric[400];
	(void)snprintf(group, sizeof group, R "nri-rp.gold/mon_groups/nri-rp.%s", info.id);
	(void)snprintf(moved, sizeof moved, R "nri-rp.bronze/mon_groups/nri-rp.%s", info.id);
	(void)snprintf(tasks, sizeof tasks, "%s/tasks", group);
	assert_string_equal(ctl_get(t, tasks), "21");
	/* a scrape asks for figures, the next one has them */
	has_not(ctl_metrics(t), "occupancy");
	(void)ctl_work(t);
	(void)snprintf(metric, sizeof metric,
		       "l3_llc_occupancy_bytes{rdt_class=\"gold\",rdt_mon_group=\"%s\",cache_id="
		       "\"0\"} 4096\n",
		       info.id);
	has(ctl_metrics(t), metric);
	has(ctl_metrics(t),
	    "l3_llc_occupancy_bytes{rdt_class=\"bronze\",rdt_mon_group=\"\",cache_id="
	    "\"0\"} 4096\n");
	has_not(ctl_metrics(t), "mbm_bytes"); /* "Unavailable" */
	(void)ctl_work(t);
	/* another class: the group moves along; the end: it goes */
	ctl_decide(t, c, RP_F_RDT_CLASS, "bronze");
	assert_int_equal(ctl_update(t, c, RP_CHANGED_CLASS), 0);
	(void)ctl_work(t);
	assert_false(ctl_there(t, group));
	assert_true(ctl_there(t, moved));
	assert_int_equal(ctl_stop(t, c), 0);
	(void)ctl_work(t);
	assert_false(ctl_there(t, moved));
}

/* Figures of a container are the sums over all caches, and told when they are wanted only. */
static void test_figures(void **state)
{
	struct ctl_host *t = *state;
	char group[256], path[320], expected[128];
	struct rp_ctr_info info = {.size = sizeof info};
	const struct rp_host *host = ctl_rp_host(t);
	const struct rp_host_cache *cache = host->service(host->ctx, RP_HOST_CACHE_1);
	assert_int_equal(ctl_configure(t, MONITORED), 0);
	rp_ctr c = annotated(t, "c", "gold", "21");
	assert_int_equal(ctl_start(t, c), 0);
	(void)ctl_work(t);
	assert_int_equal(cache->get_ctr(host->ctx, c, &info), 0);
	(void)snprintf(group, sizeof group, R "nri-rp.gold/mon_groups/nri-rp.%s/mon_data", info.id);
	for (unsigned i = 0; i < 2; i++) {
		(void)snprintf(path, sizeof path, "%s/mon_L3_0%u/llc_occupancy", group, i);
		ctl_put(t, path, i ? "1000\n" : "24\n");
		(void)snprintf(path, sizeof path, "%s/mon_L3_0%u/mbm_total_bytes", group, i);
		ctl_put(t, path, i ? "Unavailable\n" : "77\n");
	}
	(void)ctl_metrics(t);
	(void)ctl_work(t);
	assert_string_equal(ctl_figures(t), "");
	ctl_measure(t);
	ctl_measure(t); /* ignored while the first measurement runs */
	(void)ctl_work(t);
	(void)snprintf(expected, sizeof expected, "%llu 1 1024\n%llu 2 77\n", (unsigned long long)c,
		       (unsigned long long)c);
	assert_string_equal(ctl_figures(t), expected);
	/* without groups of containers there is nothing to tell */
	assert_int_equal(ctl_configure(t, "{monitoring: classes, partitions: {p: {classes: {gold: "
					  "{}}}}}"),
			 0);
	(void)ctl_work(t);
	ctl_measure(t);
	(void)ctl_work(t);
	assert_string_equal(ctl_figures(t), "");
}

static void test_monitoring_sweep(void **state)
{
	struct ctl_host *t = *state;
	assert_int_equal(ctl_configure(t, MONITORED), 0);
	(void)ctl_work(t);
	ctl_put(t, R "nri-rp.gold/mon_groups/nri-rp.dead/tasks", "");
	ctl_put(t, R "nri-rp.gold/mon_groups/theirs/tasks", "");
	ctl_put(t, R "mon_groups/nri-rp.dead/tasks", "");
	ctl_sync(t);
	(void)ctl_work(t);
	assert_false(ctl_there(t, R "nri-rp.gold/mon_groups/nri-rp.dead"));
	assert_true(ctl_there(t, R "nri-rp.gold/mon_groups/theirs"));
	assert_false(ctl_there(t, R "mon_groups/nri-rp.dead"));
}

static void test_no_rmids(void **state)
{
	struct ctl_host *t = *state;
	assert_int_equal(ctl_configure(t, MONITORED), 0);
	(void)ctl_work(t);
	rp_ctr c = annotated(t, "c", "gold", "21");
	ctl_fail(t, "mon_groups/", ENOSPC);
	assert_int_equal(ctl_start(t, c), 0);
	(void)ctl_work(t);
	assert_string_equal(ctl_report(t, c), "1 not monitored: no monitoring group is left");
	assert_string_equal(ctl_get(t, R "nri-rp.gold/tasks"), "21");
}

/* Checks that other errors are retried like every write, while the tasks are in their class. */
static void test_monitoring_tried_again(void **state)
{
	struct ctl_host *t = *state;
	struct fake_host *f = ctl_fake(t);
	assert_int_equal(ctl_configure(t, MONITORED), 0);
	(void)ctl_work(t);
	rp_ctr c = annotated(t, "c", "gold", "21");
	struct rp_ctr_info info = {.size = sizeof info};
	const struct rp_host_cache *cache =
		ctl_rp_host(t)->service(ctl_rp_host(t)->ctx, RP_HOST_CACHE_1);
	assert_int_equal(cache->get_ctr(ctl_rp_host(t)->ctx, c, &info), 0);
	char tasks[256];
	(void)snprintf(tasks, sizeof tasks, R "nri-rp.gold/mon_groups/nri-rp.%s/tasks", info.id);
	fake_set_now(f, 1000);
	ctl_fail(t, "mon_groups/", EBUSY);
	assert_int_equal(ctl_start(t, c), 0);
	(void)ctl_work(t);
	assert_string_equal(ctl_report(t, c), "2 not monitored: its monitoring group cannot be "
					      "created: Device or resource busy; trying again");
	assert_string_equal(ctl_get(t, R "nri-rp.gold/tasks"), "21");
	assert_int_equal(fake_timer(f, CTL_AGAIN_COOKIE), CTL_AGAIN_FIRST_MS);
	/* the group is there then, but does not take the task */
	ctl_fail(t, tasks, EINVAL);
	fake_set_now(f, 1000 + CTL_AGAIN_FIRST_MS);
	ctl_timer(t, CTL_AGAIN_COOKIE);
	(void)ctl_work(t);
	assert_string_equal(ctl_report(t, c),
			    "2 1 tasks are not monitored: Invalid argument; trying again");
	ctl_fail(t, NULL, 0);
	fake_set_now(f, 1000 + 3 * CTL_AGAIN_FIRST_MS);
	ctl_timer(t, CTL_AGAIN_COOKIE);
	(void)ctl_work(t);
	assert_string_equal(ctl_report(t, c), "1");
	assert_string_equal(ctl_get(t, tasks), "21");
	assert_int_equal(fake_timer(f, CTL_AGAIN_COOKIE), -1);
}

/* ---- many ------------------------------------------------------------------------------------ */

static void test_many(void **state)
{
	struct ctl_host *t = *state;
	enum { N = 300 };
	rp_ctr list[N];
	assert_int_equal(ctl_configure(t, GOLD_ONLY), 0);
	(void)ctl_work(t);
	for (unsigned i = 0; i < N; i++) {
		char name[16], tid[16];
		(void)snprintf(name, sizeof name, "c%u", i);
		(void)snprintf(tid, sizeof tid, "%u", 1000 + i);
		list[i] = annotated(t, name, "gold", tid);
	}
	ctl_sync(t);
	/* a job is running, and the last job is for the groups */
	has(ctl_metrics(t), "queue_length{} 300\n");
	uint32_t jobs = ctl_work(t);
	assert_in_range(jobs, N / 16, N / 8);
	for (unsigned i = 0; i < N; i++)
		assert_string_equal(ctl_report(t, list[i]), "1");
	/* Jobs of containers that stop are dropped. */
	for (unsigned i = 0; i < N; i++)
		assert_int_equal(ctl_start(t, list[i]), 0);
	for (unsigned i = 0; i < N; i++)
		assert_int_equal(ctl_stop(t, list[i]), 0);
	assert_int_equal(ctl_work(t), 1);
}

static void test_old_host(void **state)
{
	struct fake_host *f = fake_host_new(&(struct fake_machine){.cores = 1});
	struct rp_instance *inst;
	assert_int_equal(rp_module_1.create(fake_rp_host(f), &inst), -RP_ENOTSUP);
	has(fake_error(f), "cannot make directories");
	fake_hide_service(f, RP_HOST_WORK_1);
	assert_int_equal(rp_module_1.create(fake_rp_host(f), &inst), -RP_ENOTSUP);
	fake_host_free(f);
	assert_null(rp_module_1.service(NULL, "nri-rp.unknown/1"));
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_groups),
		TEST(test_foreign_groups),
		TEST(test_record),
		TEST(test_bad_record),
		TEST(test_stale_with_containers),
		TEST(test_classes),
		TEST(test_class_change),
		TEST(test_unknown_class),
		TEST(test_forks),
		TEST(test_cgroups),
		TEST(test_garbled_tasks),
		TEST(test_restart),
		TEST(test_discovery),
		TEST(test_switched_off),
		TEST(test_machines),
		TEST(test_options),
		TEST(test_no_closids),
		TEST(test_refused_schemata),
		TEST(test_failing_moves),
		TEST(test_tried_again),
		TEST(test_stopped_and_started),
		cmocka_unit_test(test_each_change_fails),
		TEST(test_monitoring),
		TEST(test_figures),
		TEST(test_monitoring_sweep),
		TEST(test_no_rmids),
		TEST(test_monitoring_tried_again),
		TEST(test_many),
		TEST(test_old_host),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
