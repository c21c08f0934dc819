/* SPDX-License-Identifier: Apache-2.0 */
/* blkio.so: classes and patterns, files of both cgroup versions, disks that come, and every write
 * that can fail. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "test/unit/ctl_host.h"

extern const struct rp_module rp_module_1;

#define CLASSES                                                                                    \
	"{classes: {slow: [{weight: 50}, {devices: [\"/dev/sd*\"], throttleReadBps: 2M, "          \
	"throttleWriteIOPS: \"100\"}, {devices: [/dev/sdb], throttleReadBps: 1M, weight: 200}], "  \
	"fast: [{weight: 1000}], none: []}}"

static void put_disk(struct ctl_host *t, const char *name, const char *dev, const char *scheduler)
{
	char path[128];
	(void)snprintf(path, sizeof path, "/sys/block/%s/dev", name);
	ctl_put(t, path, dev);
	(void)snprintf(path, sizeof path, "/sys/block/%s/queue/scheduler", name);
	ctl_put(t, path, scheduler);
}

static int setup(void **state)
{
	struct ctl_host *t = ctl_host_new();
	ctl_put(t, "/sys/fs/cgroup/cgroup.controllers", "cpu io memory\n");
	put_disk(t, "sda", "8:0\n", "[none] bfq\n");
	put_disk(t, "sdb", "8:16\n", "none [bfq]\n");
	put_disk(t, "nvme0n1", "259:0\n", "[none]\n");
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

static const char *own(struct ctl_host *t, rp_ctr c, const char *file)
{
	char path[256];
	(void)snprintf(path, sizeof path, "%s/%s", ctl_cgroup(t, c, "blkio"), file);
	return ctl_get(t, path);
}

static void put_own(struct ctl_host *t, rp_ctr c, const char *file, const char *text)
{
	char path[256];
	(void)snprintf(path, sizeof path, "%s/%s", ctl_cgroup(t, c, "blkio"), file);
	ctl_put(t, path, text);
}

static rp_ctr make(struct ctl_host *t, const char *name, const char *class)
{
	char text[160];
	(void)snprintf(text, sizeof text, "blockioclass.resource-policy.nri.io=%s",
		       class ? class : "");
	rp_ctr c = ctl_ctr(t, &(struct fake_ctr){.name = name, .annotations = class ? text : NULL},
			   "");
	put_own(t, c, "io.max", "");
	put_own(t, c, "io.weight", "default 100\n");
	put_own(t, c, "io.bfq.weight", "default 100\n");
	return c;
}

static const char *start(struct ctl_host *t, rp_ctr c)
{
	ctl_changes_clear(t);
	assert_int_equal(ctl_start(t, c), 0);
	(void)ctl_work(t);
	return ctl_report(t, c);
}

/* ---- configuration --------------------------------------------------------------------------- */

static void test_configurations(void **state)
{
	struct ctl_host *t = *state;
	static const struct {
		const char *text, *why;
	} bad[] = {
		{"{classes: {a: [{weight: 9}]}}", "a weight from 10 to 1000"},
		{"{classes: {a: [{weight: 1001}]}}", "a weight from 10 to 1000"},
		{"{classes: {a: [{throttleReadBps: 1M}]}}", "list devices"},
		{"{classes: {a: [{devices: [sda], weight: 10}]}}", "expected the path of a device"},
		{"{classes: {\"\": [{weight: 10}]}}", "1 to 127 bytes"},
	};
	for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
		assert_int_equal(ctl_configure(t, bad[i].text), -RP_EINVAL);
		has(fake_error(ctl_fake(t)), bad[i].why);
	}
	assert_int_equal(ctl_configure(t, "{Classes: {a: [{Devices: [/dev/sda], ThrottleReadBps: "
					  "60M, Weight: \"10\"}]}}"),
			 0);
	assert_int_equal(ctl_configure(t, "{}"), 0);
}

static void test_forwarding(void **state)
{
	struct ctl_host *t = *state;
	const struct rp_controller *c;
	assert_int_equal(ctl_configure(t, "{usePodQoSAsDefaultClass: true}"), 0);
	c = rp_module_1.service(ctl_instance(t), RP_CONTROLLER_1);
	assert_int_equal(c->takes, 0);
	rp_ctr a = make(t, "a", "theirs"), q = make(t, "q", NULL);
	assert_int_equal(ctl_pre_create(t, a), 0);
	assert_int_equal(ctl_pre_create(t, q), 0);
	assert_string_equal(fake_text(ctl_fake(t), a, RP_F_BLOCKIO_CLASS), "theirs");
	assert_string_equal(fake_text(ctl_fake(t), q, RP_F_BLOCKIO_CLASS), "Guaranteed");
	assert_string_equal(start(t, a), "");
	assert_string_equal(ctl_changes(t), "");
	/* the module decides the class when it has classes in its configuration */
	assert_int_equal(ctl_configure(t, CLASSES), 0);
	assert_int_equal(c->takes, RP_TAKES_BLOCKIO_CLASS);
	assert_int_equal(ctl_configure(t, "{enable: false}"), 0);
	assert_int_equal(ctl_pre_create(t, q), 0);
	ctl_sync(t);
	assert_int_equal(ctl_work(t), 0);
}

/* ---- v2 -------------------------------------------------------------------------------------- */

static void test_v2(void **state)
{
	struct ctl_host *t = *state;
	assert_int_equal(ctl_configure(t, CLASSES), 0);
	rp_ctr c = make(t, "c", "slow");
	assert_int_equal(ctl_pre_create(t, c), 0);
	has(fake_trail(ctl_fake(t), c), "block I/O class slow, from an annotation");
	put_own(t, c, "io.max", "259:0 rbps=1 wbps=max riops=max wiops=max\n");
	put_own(t, c, "io.bfq.weight", "default 100\n259:0 300\n");
	(void)start(t, c);
	has(ctl_changes(t), "io.max 259:0 rbps=max wbps=max riops=max wiops=max\n");
	has(ctl_changes(t), "io.max 8:0 rbps=2000000 wbps=max riops=max wiops=100\n");
	has(ctl_changes(t), "io.max 8:16 rbps=1000000 wbps=max riops=max wiops=100\n");
	has(ctl_changes(t), "io.bfq.weight default 50\n");
	has(ctl_changes(t), "io.bfq.weight 259:0 default\n");
	has(ctl_changes(t), "io.bfq.weight 8:16 200\n");
	/* 1 + (50-10)*9999/990, 1 + (200-10)*9999/990 */
	has(ctl_changes(t), "io.weight default 405\n");
	has(ctl_changes(t), "io.weight 8:16 1920\n");
	/* the fake file keeps one line only, so that the value read differs from the value written
	 * */
	has(ctl_report(t, c), "2 io.max: the kernel did not apply the values for sd");
	assert_null(strstr(ctl_metrics(t), "writes_total{} 0"));
}

static void test_v2_unchanged(void **state)
{
	struct ctl_host *t = *state;
	assert_int_equal(ctl_configure(t, CLASSES), 0);
	rp_ctr c = make(t, "c", "slow");
	put_own(t, c, "io.max",
		"8:16 rbps=1000000 wbps=max riops=max wiops=100\n8:0 rbps=2000000 wbps=max "
		"riops=max wiops=100\n");
	put_own(t, c, "io.weight", "default 405\n8:16 1920\n");
	put_own(t, c, "io.bfq.weight", "default 50\n8:16 200\n");
	assert_string_equal(start(t, c), "1");
	assert_string_equal(ctl_changes(t), "");
	/* the daemon was away: nothing is written either */
	assert_int_equal(ctl_restart(t, CLASSES), 0);
	ctl_sync(t);
	(void)ctl_work(t);
	assert_string_equal(ctl_changes(t), "");
	assert_string_equal(ctl_report(t, c), "1");
	/* another Synchronize does not even read files */
	ctl_sync(t);
	assert_int_equal(ctl_work(t), 0);
}

static void test_class_change(void **state)
{
	struct ctl_host *t = *state;
	assert_int_equal(ctl_configure(t, CLASSES), 0);
	rp_ctr c = make(t, "c", NULL);
	assert_string_equal(start(t, c), "1");
	assert_string_equal(ctl_changes(t), "");
	ctl_decide(t, c, RP_F_BLOCKIO_CLASS, "fast");
	assert_int_equal(ctl_update(t, c, RP_CHANGED_CPUS), 0);
	assert_int_equal(ctl_work(t), 0);
	assert_int_equal(ctl_update(t, c, RP_CHANGED_CLASS), 0);
	(void)ctl_work(t);
	assert_string_equal(ctl_report(t, c), "1");
	assert_string_equal(own(t, c, "io.bfq.weight"), "default 1000");
	assert_string_equal(own(t, c, "io.weight"), "default 10000");
	/* no class: as the kernel starts */
	ctl_decide(t, c, RP_F_BLOCKIO_CLASS, "");
	assert_int_equal(ctl_update(t, c, RP_CHANGED_CLASS), 0);
	(void)ctl_work(t);
	assert_string_equal(own(t, c, "io.bfq.weight"), "default 100");
	assert_string_equal(own(t, c, "io.weight"), "default 100");
	/* another meaning of the class */
	ctl_decide(t, c, RP_F_BLOCKIO_CLASS, "fast");
	assert_int_equal(ctl_configure(t, "{classes: {fast: [{weight: 10}]}}"), 0);
	ctl_sync(t);
	(void)ctl_work(t);
	assert_string_equal(own(t, c, "io.weight"), "default 1");
	assert_int_equal(ctl_stop(t, c), 0);
	has(ctl_metrics(t), "containers{} 0\n");
}

/* A reload that was to drop it is refused: what had waited when it was stopped is done now. */
static void test_stopped_and_started(void **state)
{
	struct ctl_host *t = *state;
	assert_int_equal(ctl_configure(t, CLASSES), 0);
	rp_ctr c = make(t, "c", "fast"), d = make(t, "d", "fast");
	assert_int_equal(ctl_start(t, c), 0);
	assert_int_equal(ctl_start(t, d), 0);
	ctl_stop_and_start(t, &rp_module_1);
	(void)ctl_work(t);
	assert_string_equal(ctl_report(t, c), "1");
	assert_string_equal(ctl_report(t, d), "1");
	has(own(t, c, "io.weight"), "1000");
	has(own(t, d, "io.weight"), "1000");
	/* Once more with nothing waiting: nothing is written that is there. */
	ctl_changes_clear(t);
	ctl_stop_and_start(t, &rp_module_1);
	(void)ctl_work(t);
	assert_string_equal(ctl_report(t, d), "1");
}

static void test_unknown_class(void **state)
{
	struct ctl_host *t = *state;
	assert_int_equal(ctl_configure(t, CLASSES), 0);
	rp_ctr c = make(t, "c", "medium");
	assert_int_equal(ctl_pre_create(t, c), -RP_EINVAL);
	has(fake_error(ctl_fake(t)), "unknown block I/O class \"medium\"");
	assert_string_equal(start(t, c), "3 unknown block I/O class medium");
}

static void test_qos_default(void **state)
{
	struct ctl_host *t = *state;
	assert_int_equal(ctl_configure(t, "{usePodQoSAsDefaultClass: true, classes: {Burstable: "
					  "[{weight: 100}], BestEffort: [{weight: 10}]}}"),
			 0);
	rp_ctr c = ctl_ctr(t, &(struct fake_ctr){.name = "c", .qos = RP_QOS_BEST_EFFORT}, "");
	rp_ctr g = ctl_ctr(t, &(struct fake_ctr){.name = "g", .qos = RP_QOS_GUARANTEED}, "");
	put_own(t, c, "io.weight", "default 100\n");
	assert_string_equal(start(t, c), "1");
	assert_string_equal(own(t, c, "io.weight"), "default 1");
	assert_string_equal(start(t, g), "1");
}

/* ---- patterns -------------------------------------------------------------------------------- */

static void test_links(void **state)
{
	struct ctl_host *t = *state;
	ctl_put(t, "/dev/sda", "");
	ctl_link(t, "/dev/disk/by-id/ata-one", "../../sda");
	ctl_link(t, "/dev/disk/by-id/ata-two", "/dev/disk/by-id/./ata-one");
	ctl_link(t, "/dev/disk/by-id/ata-loop", "ata-loop");
	ctl_link(t, "/dev/disk/by-id/ata-nowhere", "../../sdz");
	ctl_put(t, "/dev/disk/by-id/ata-file", "");
	ctl_put(t, "/dev/cciss/c0d0", "");
	put_disk(t, "cciss!c0d0", "104:0\n", "[bfq]\n");
	assert_int_equal(
		ctl_configure(t, "{classes: {links: [{devices: [\"/dev/disk/by-*/ata-*\"], "
				 "throttleReadBps: 5}], raid: [{devices: [\"/dev/cciss/c*\"], "
				 "throttleReadBps: 6}], odd: [{devices: [\"/dev/disk/by-id/x*\", "
				 "/dev/disk, /dev/sda, /dev/], throttleReadBps: 7}]}}"),
		0);
	rp_ctr c = make(t, "c", "links"), r = make(t, "r", "raid"), o = make(t, "o", "odd");
	(void)start(t, c);
	has(ctl_changes(t), "io.max 8:0 rbps=5 wbps=max riops=max wiops=max\n");
	assert_null(strstr(ctl_changes(t), "8:16"));
	(void)start(t, r);
	has(ctl_changes(t), "io.max 104:0 rbps=6 ");
	(void)start(t, o);
	has(ctl_changes(t), "io.max 8:0 rbps=7 ");
}

static void test_hot_plug(void **state)
{
	struct ctl_host *t = *state;
	assert_int_equal(ctl_configure(t, "{classes: {c: [{devices: [\"/dev/sd*\"], "
					  "throttleReadBps: 5}]}}"),
			 0);
	rp_ctr a = make(t, "a", "c"), b = make(t, "b", "c");
	(void)start(t, a);
	put_disk(t, "sdc", "8:32\n", "[none]\n");
	/* the next container finds it, and the others hear of it */
	(void)start(t, b);
	char path[256];
	(void)snprintf(path, sizeof path, "%s/io.max 8:32 rbps=5", ctl_cgroup(t, a, ""));
	has(ctl_changes(t), path);
	(void)snprintf(path, sizeof path, "%s/io.max 8:32 rbps=5", ctl_cgroup(t, b, ""));
	has(ctl_changes(t), path);
	/* an unplugged disk's settings are forgotten */
	ctl_remove(t, "/sys/block/sdc");
	(void)start(t, b);
	has(ctl_changes(t), "io.max 8:32 rbps=max");
}

static void test_notes(void **state)
{
	struct ctl_host *t = *state;
	assert_int_equal(ctl_configure(t, "{classes: {w: [{devices: [/dev/sda], weight: 300}], m: "
					  "[{devices: [\"/dev/vd*\"], weight: 300}]}}"),
			 0);
	rp_ctr w = make(t, "w", "w"), m = make(t, "m", "m");
	assert_string_equal(start(t, w), "1 the I/O scheduler of sda does not support weights");
	assert_string_equal(own(t, w, "io.bfq.weight"), "default 100");
	assert_string_equal(start(t, m), "1 /dev/vd* matches no disk");
	ctl_put(t, "/sys/block/odd/dev", "x:y\n");
	ctl_put(t, "/sys/block/without/size", "1\n");
	assert_string_equal(start(t, m), "1 /dev/vd* matches no disk");
	ctl_remove(t, "/sys/block");
	has(start(t, m), "1 /sys/block: No such file");
}

/* ---- v1 -------------------------------------------------------------------------------------- */

static void make_v1(struct ctl_host *t)
{
	ctl_remove(t, "/sys/fs/cgroup/cgroup.controllers");
	ctl_cgroup_v1(t);
}

static rp_ctr ctr_v1(struct ctl_host *t, const char *name, const char *class, bool bfq)
{
	static const char *const throttles[] = {"read_bps", "write_bps", "read_iops", "write_iops"};
	char file[64];
	rp_ctr c = make(t, name, class);
	for (unsigned i = 0; i < 4; i++) {
		(void)snprintf(file, sizeof file, "blkio.throttle.%s_device", throttles[i]);
		put_own(t, c, file, "");
	}
	put_own(t, c, bfq ? "blkio.bfq.weight" : "blkio.weight", bfq ? "100\n" : "500\n");
	put_own(t, c, bfq ? "blkio.bfq.weight_device" : "blkio.weight_device", "");
	return c;
}

static void test_v1(void **state)
{
	struct ctl_host *t = *state;
	make_v1(t);
	assert_int_equal(ctl_configure(t, CLASSES), 0);
	rp_ctr c = ctr_v1(t, "c", "slow", true);
	put_own(t, c, "blkio.throttle.write_bps_device", "8:0 77\n259:0 88\n");
	put_own(t, c, "blkio.bfq.weight_device", "259:0 99\n");
	assert_string_equal(start(t, c), "1");
	has(ctl_changes(t), "blkio.throttle.read_bps_device 8:0 2000000\n");
	has(ctl_changes(t), "blkio.throttle.read_bps_device 8:16 1000000\n");
	has(ctl_changes(t), "blkio.throttle.write_bps_device 8:0 0\n");
	has(ctl_changes(t), "blkio.throttle.write_bps_device 259:0 0\n");
	has(ctl_changes(t), "blkio.throttle.write_iops_device 8:16 100\n");
	has(ctl_changes(t), "blkio.bfq.weight 50\n");
	has(ctl_changes(t), "blkio.bfq.weight_device 8:16 200\n");
	has(ctl_changes(t), "blkio.bfq.weight_device 259:0 0\n");
	/* the older scheduler's files, and its default */
	rp_ctr d = ctr_v1(t, "d", "fast", false);
	assert_string_equal(start(t, d), "1");
	assert_string_equal(own(t, d, "blkio.weight"), "1000");
	ctl_decide(t, d, RP_F_BLOCKIO_CLASS, "none");
	assert_int_equal(ctl_update(t, d, RP_CHANGED_CLASS), 0);
	(void)ctl_work(t);
	assert_string_equal(own(t, d, "blkio.weight"), "500");
}

/* ---- failures -------------------------------------------------------------------------------- */

static void test_missing_files(void **state)
{
	struct ctl_host *t = *state;
	assert_int_equal(ctl_configure(t, CLASSES), 0);
	rp_ctr bare = ctl_ctr(t,
			      &(struct fake_ctr){.name = "bare",
						 .annotations = "blockioclass.resource-policy.nri."
								"io=slow"},
			      "");
	has(start(t, bare), "3 io.max: No such file");
	rp_ctr fast = ctl_ctr(t,
			      &(struct fake_ctr){.name = "fast",
						 .annotations = "blockioclass.resource-policy.nri."
								"io=fast"},
			      "");
	has(start(t, fast), "3 the kernel does not support weights of block I/O");
	ctl_remove(t, ctl_cgroup(t, fast, ""));
	has(start(t, fast), "3 its cgroup was not found");
}

static void test_each_write_fails(void **state)
{
	for (uint32_t nth = 1; nth < 20; nth++) {
		struct ctl_host *t;
		assert_int_equal(setup((void **)&t), 0);
		assert_int_equal(ctl_configure(t, "{classes: {slow: [{weight: 50}, {devices: "
						  "[/dev/sdb], throttleReadBps: 5, weight: 20}]}}"),
				 0);
		rp_ctr c = make(t, "c", "slow");
		ctl_fail_nth(t, nth, EINVAL);
		(void)start(t, c);
		bool hit = ctl_n_changes(t) >= nth;
		if (hit) {
			has(ctl_report(t, c), "2 io.");
			has(ctl_report(t, c), "Invalid argument");
		} else {
			assert_string_equal(ctl_report(t, c), "1");
		}
		ctl_host_free(t);
		if (!hit) {
			assert_int_equal(nth, 6);
			break;
		}
	}
}

static void test_old_host(void **state)
{
	struct rp_instance *inst;
	struct ctl_host *t = *state;
	assert_int_equal(rp_module_1.create(fake_rp_host(ctl_fake(t)), &inst), -RP_ENOTSUP);
	assert_null(rp_module_1.service(NULL, "nri-rp.unknown/1"));
	assert_non_null(rp_module_1.service(NULL, RP_SCHEMA_1));
	assert_non_null(rp_module_1.service(NULL, RP_CONTROLLER_1));
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_configurations),
		TEST(test_forwarding),
		TEST(test_v2),
		TEST(test_v2_unchanged),
		TEST(test_class_change),
		TEST(test_stopped_and_started),
		TEST(test_unknown_class),
		TEST(test_qos_default),
		TEST(test_links),
		TEST(test_hot_plug),
		TEST(test_notes),
		TEST(test_v1),
		TEST(test_missing_files),
		cmocka_unit_test(test_each_write_fails),
		TEST(test_old_host),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
