/* SPDX-License-Identifier: Apache-2.0 */
/* core/lib/topo: Speed Select, by a driver that is made up (test/preload/isst.c). */
#include "test/preload/isst.c"

#include "core/lib/topo/sst.h"
#include "test/unit/t_topo_tree.h"

#define DEVICE ISST_PATH

/* 16 CPUs, two threads a core: four punits of TPMI, or two of mailboxes. */
static const char tpmi[] = "api 2\nthreads 2\n"
			   "punit 0 0 0 3 7 1 1 2\n"
			   "punit 0 1 4 7 7 2 1 2\n"
			   "punit 1 0 8 11 7 1 2 1\n"
			   "punit 1 1 12 15 7 2 1 2\n";
static const char mailboxes[] = "api 1\nmmio 1\nthreads 2\n"
				"punit 0 0 0 7 7 5 2 4\n"
				"punit 1 0 8 15 7 5 2 4\n";

static void put_device(const struct tree *tree, const char *text)
{
	tree_put(tree, DEVICE, "%s", text);
}

static struct rp_sst_punit punit_at(struct topo *t, uint32_t index)
{
	struct rp_sst_punit p = {.size = sizeof p};
	assert_int_equal(sst_punit(t, index, &p), 0);
	return p;
}

static void read_log(const struct tree *tree, char *text, size_t size)
{
	assert_true(fs_read(&tree->root, DEVICE ".log", text, size) >= 0);
}

#define AT(package_, punit_, cpu_)                                                                 \
	(&(struct rp_sst_at){.package_id = (package_), .punit_id = (punit_), .cpu = (cpu_)})

/* ---- the picture ----------------------------------------------------------------------------- */

static void test_tpmi(void **state)
{
	const struct tree *tree = *state;
	put_device(tree, tpmi);
	tree_put(tree, DEVICE ".now",
		 "punit 0 1 on 3 ordered 1\nclos 0 1 3 min 800 max 2100 weight 4\ncpu 4 3\ncpu 5 "
		 "3\n");
	struct topo *t = tree_read(tree);
	assert_int_equal(sst_n_punits(t), 4);
	assert_string_equal(sst_why(t), "");
	struct rp_sst_punit p = punit_at(t, 0);
	assert_int_equal(p.package_id, 0);
	assert_int_equal(p.punit_id, 0);
	assert_int_equal(p.supported, RP_SST_CP | RP_SST_TF | RP_SST_BF);
	assert_int_equal(p.enabled, 0);
	assert_int_equal(p.priority, RP_SST_PROPORTIONAL);
	assert_ids(p.cpus, "0-3");
	assert_ids(p.bf_cpus, "0-1");
	p = punit_at(t, 1);
	assert_int_equal(p.enabled, RP_SST_CP | RP_SST_TF);
	assert_int_equal(p.priority, RP_SST_ORDERED);
	assert_int_equal(p.clos[3].min_mhz, 800);
	assert_int_equal(p.clos[3].max_mhz, 2100);
	assert_int_equal(p.clos[3].weight, 4);
	assert_int_equal(p.clos[0].max_mhz, RP_SST_MHZ_MAX);
	assert_ids(p.bf_cpus, "6-7");
	p = punit_at(t, 2);
	assert_int_equal(p.package_id, 1);
	assert_ids(p.cpus, "8-11");
	assert_int_equal(p.n_buckets, 2);
	assert_int_equal(p.hp_cores[0], 1);
	assert_int_equal(p.hp_cores[1], 2);
	assert_int_equal(sst_clos_of(t, 5), 3);
	assert_int_equal(sst_clos_of(t, 6), 0);
	assert_int_equal(sst_clos_of(t, 99), RP_CLOS_UNKNOWN);
	assert_int_equal(sst_punit(t, 4, &p), -ENOENT);
	topo_free(t);
}

static void test_mailboxes(void **state)
{
	const struct tree *tree = *state;
	put_device(tree, mailboxes);
	tree_put(tree, DEVICE ".now",
		 "punit 1 0 on 5 ordered 1\nclos 1 0 2 min 500 max 3000 weight 9\ncpu 10 2\ncpu 11 "
		 "2\n");
	for (unsigned mmio = 0; mmio < 2; mmio++) {
		if (!mmio)
			put_device(tree, "api 1\nmmio 0\nthreads 2\npunit 0 0 0 7 7 5 2 4\n"
					 "punit 1 0 8 15 7 5 2 4\n");
		else
			put_device(tree, mailboxes);
		struct topo *t = tree_read(tree);
		assert_int_equal(sst_n_punits(t), 2);
		struct rp_sst_punit p = punit_at(t, 1);
		assert_int_equal(p.supported, RP_SST_CP | RP_SST_TF | RP_SST_BF);
		assert_int_equal(p.enabled, RP_SST_CP | RP_SST_BF);
		assert_int_equal(p.priority, RP_SST_ORDERED);
		assert_ids(p.cpus, "8-15");
		assert_ids(p.bf_cpus, "8-9,12-13");
		assert_int_equal(p.n_buckets, 2);
		assert_int_equal(p.hp_cores[1], 4);
		assert_int_equal(p.clos[2].min_mhz, 500);
		assert_int_equal(p.clos[2].max_mhz, 3000);
		assert_int_equal(p.clos[2].weight, 9);
		assert_int_equal(sst_clos_of(t, 11), 2);
		assert_int_equal(sst_clos_of(t, 12), 0);
		topo_free(t);
	}
}

/* Checks that the switch of the classes decides whether they are on. The switch of power
 * management may differ or be missing. */
static void test_mailbox_switches(void **state)
{
	const struct tree *tree = *state;
	struct rp_sst_punit now;
	char text[4096];
	put_device(tree, mailboxes);
	tree_put(tree, DEVICE ".now",
		 "punit 0 0 on 1 ordered 0\npm 0 0 0\npunit 1 0 on 0 ordered 1\npm 1 0 1\n");
	struct topo *t = tree_read(tree);
	assert_int_equal(punit_at(t, 0).enabled, RP_SST_CP);
	assert_int_equal(punit_at(t, 0).priority, RP_SST_PROPORTIONAL);
	assert_int_equal(punit_at(t, 1).enabled, 0);
	topo_free(t);
	/* Both are set where both can be. */
	assert_int_equal(sst_set_cp(&tree->root, AT(0, 0, 0), true, RP_SST_ORDERED), 0);
	assert_true(fs_read(&tree->root, DEVICE ".now", text, sizeof text) > 0);
	assert_non_null(strstr(text, "punit 0 0 on 1 ordered 1\npm 0 0 1\n"));
	/* An error of power management is ignored. */
	tree_put(tree, DEVICE ".fail", "pm %d\n", ENXIO);
	assert_int_equal(sst_set_cp(&tree->root, AT(1, 0, 8), true, RP_SST_PROPORTIONAL), 0);
	assert_int_equal(sst_punit_now(&tree->root, AT(1, 0, 8), &now), 0);
	assert_int_equal(now.enabled, RP_SST_CP);
	assert_int_equal(now.priority, RP_SST_PROPORTIONAL);
	assert_int_equal(sst_set_cp(&tree->root, AT(1, 0, 8), false, RP_SST_ORDERED), 0);
	assert_int_equal(sst_punit_now(&tree->root, AT(1, 0, 8), &now), 0);
	assert_int_equal(now.enabled, 0);
	/* An error of core power is returned. */
	tree_put(tree, DEVICE ".fail", "cp %d\n", EPERM);
	assert_int_equal(sst_set_cp(&tree->root, AT(1, 0, 8), true, RP_SST_ORDERED), -EPERM);
}

static void no_platform(const struct tree *tree, const char *part)
{
	struct topo *t = tree_read(tree);
	assert_int_equal(sst_n_punits(t), 0);
	if (!strstr(sst_why(t), part))
		fail_msg("'%s' does not tell '%s'", sst_why(t), part);
	assert_int_equal(sst_clos_of(t, 0), RP_CLOS_UNKNOWN);
	topo_free(t);
}

static void test_none(void **state)
{
	const struct tree *tree = *state;
	no_platform(tree, "missing /dev/isst_interface");
	/* An unknown interface version, then a device without CPUs of this machine. */
	put_device(tree, "api 0\n");
	no_platform(tree, "cannot find the CPUs");
	put_device(tree, tpmi);
	tree_put(tree, DEVICE ".fail", "platform %d\n", ENOTTY);
	no_platform(tree, "not a supported Speed Select device");
	tree_put(tree, DEVICE ".fail", "platform %d\n", EPERM);
	no_platform(tree, "DeviceAllow");
	tree_put(tree, DEVICE ".fail", "platform %d\n", EIO);
	no_platform(tree, strerror(EIO));
	tree_del(tree, DEVICE ".fail");
	put_device(tree, "api 2\npunit 0 0 0 3 7 0 1\n");
	no_platform(tree, "cannot find the CPUs");
}

/* Checks that a bucket of more CPUs than the punit has is limited to them, and that a bucket
 * without cores is skipped. */
static void test_odd_buckets(void **state)
{
	const struct tree *tree = *state;
	put_device(tree, "api 2\npunit 0 0 0 7 3 0 60000 0 3 0 1\npunit 1 0 8 15 0 0 1 2\n");
	struct topo *t = tree_read(tree);
	struct rp_sst_punit p = punit_at(t, 0);
	assert_int_equal(p.n_buckets, 3);
	assert_int_equal(p.hp_cores[0], 1);
	assert_int_equal(p.hp_cores[1], 3);
	assert_int_equal(p.hp_cores[2], 8);
	/* Without TF its steps are not asked for. */
	assert_int_equal(punit_at(t, 1).n_buckets, 0);
	assert_int_equal(sst_clos_of(t, 9), RP_CLOS_UNKNOWN);
	topo_free(t);
}

/* Checks that a snapshot reads the state once. */
static void test_snapshot(void **state)
{
	const struct tree *tree = *state;
	struct err err = ERR_INIT;
	put_device(tree, tpmi);
	struct topo *t = tree_read(tree), *next;
	assert_int_equal(sst_clos_of(t, 0), 0);
	assert_int_equal(sst_associate(&tree->root, AT(0, 0, 0), 2), 0);
	assert_int_equal(sst_clos_of(t, 0), 0);
	assert_int_equal(topo_reread(t, &next, &err), 0);
	assert_int_equal(sst_clos_of(next, 0), 2);
	assert_int_equal(sst_clos_of(next, 1), 2);
	topo_free(t);
	topo_free(next);
}

/* Checks that a caller with a shorter struct gets only the members that it has. */
static void test_short_struct(void **state)
{
	const struct tree *tree = *state;
	put_device(tree, tpmi);
	struct topo *t = tree_read(tree);
	struct rp_sst_punit p = {.size = offsetof(struct rp_sst_punit, enabled), .enabled = 77};
	assert_int_equal(sst_punit(t, 0, &p), 0);
	assert_int_equal(p.supported, 7);
	assert_int_equal(p.enabled, 77);
	topo_free(t);
}

/* ---- the hardware ---------------------------------------------------------------------------- */

static void set_all(const struct tree *tree)
{
	const struct rp_clos value = {.min_mhz = 1500, .max_mhz = 3700, .weight = 1};
	struct rp_sst_punit p;
	uint32_t clos = 9;
	assert_int_equal(sst_set_tf(&tree->root, AT(1, 0, 9), true), 0);
	assert_int_equal(sst_set_cp(&tree->root, AT(1, 0, 9), false, RP_SST_ORDERED), 0);
	assert_int_equal(sst_set_clos(&tree->root, AT(1, 0, 9), 3, &value), 0);
	assert_int_equal(sst_set_cp(&tree->root, AT(1, 0, 9), true, RP_SST_ORDERED), 0);
	assert_int_equal(sst_associate(&tree->root, AT(1, 0, 11), 3), 0);
	assert_int_equal(sst_punit_now(&tree->root, AT(1, 0, 8), &p), 0);
	assert_int_equal(p.enabled, RP_SST_CP | RP_SST_TF);
	assert_int_equal(p.priority, RP_SST_ORDERED);
	assert_int_equal(p.clos[3].min_mhz, 1500);
	assert_int_equal(p.clos[3].max_mhz, 3700);
	assert_int_equal(p.clos[3].weight, 1);
	assert_int_equal(p.clos[2].max_mhz, RP_SST_MHZ_MAX);
	assert_int_equal(sst_clos_now(&tree->root, AT(1, 0, 10), &clos), 0);
	assert_int_equal(clos, 3);
	assert_int_equal(sst_clos_now(&tree->root, AT(1, 0, 8), &clos), 0);
	assert_int_equal(clos, 0);
	assert_int_equal(sst_set_tf(&tree->root, AT(1, 0, 9), false), 0);
	assert_int_equal(sst_punit_now(&tree->root, AT(1, 0, 8), &p), 0);
	assert_int_equal(p.enabled, RP_SST_CP);
}

static void test_set_tpmi(void **state)
{
	const struct tree *tree = *state;
	char log[4096];
	put_device(tree, tpmi);
	set_all(tree);
	read_log(tree, log, sizeof log);
	assert_string_equal(log, "tf 1 0 on\npriority 1 0 ordered\ncp 1 0 off\n"
				 "clos 1 0 3 min 1500 max 3700\ncp 1 0 on\nassoc 10 3\ntf 1 0 off");
}

static void test_set_mailboxes(void **state)
{
	const struct tree *tree = *state;
	put_device(tree, mailboxes);
	set_all(tree);
	tree_del(tree, DEVICE ".now");
	put_device(tree,
		   "api 1\nmmio 0\nthreads 2\npunit 0 0 0 7 7 5 2 4\npunit 1 0 8 15 7 5 2 4\n");
	set_all(tree);
}

static void test_refused(void **state)
{
	const struct tree *tree = *state;
	const struct rp_clos fine = {.max_mhz = 3000}, twisted = {.min_mhz = 2, .max_mhz = 1},
			     fast = {.max_mhz = RP_SST_MHZ_MAX + 1},
			     light = {.weight = RP_SST_WEIGHT_MAX + 1};
	struct rp_sst_punit p;
	uint32_t clos;
	assert_int_equal(sst_associate(&tree->root, AT(0, 0, 0), 0), -ENOTSUP);
	assert_int_equal(sst_punit_now(&tree->root, AT(0, 0, 0), &p), -ENOTSUP);
	put_device(tree, tpmi);
	tree_put(tree, DEVICE ".fail", "assoc %d\nclos %d\ncp %d\ntf %d\n", EIO, EPERM, EIO, EIO);
	assert_int_equal(sst_associate(&tree->root, AT(0, 0, 0), 1), -EIO);
	assert_int_equal(sst_set_clos(&tree->root, AT(0, 0, 0), 0, &fine), -EPERM);
	assert_int_equal(sst_set_cp(&tree->root, AT(0, 0, 0), true, RP_SST_ORDERED), -EIO);
	assert_int_equal(sst_set_tf(&tree->root, AT(0, 0, 0), true), -EIO);
	tree_del(tree, DEVICE ".fail");
	assert_int_equal(sst_associate(&tree->root, AT(0, 0, 0), 4), -EINVAL);
	assert_int_equal(sst_associate(&tree->root, AT(0, 0, 500), 1), -EINVAL);
	assert_int_equal(sst_associate(&tree->root, AT(300, 0, 0), 1), -EINVAL);
	assert_int_equal(sst_clos_now(&tree->root, AT(0, 0, 500), &clos), -EINVAL);
	assert_int_equal(sst_set_clos(&tree->root, AT(0, 0, 0), 4, &fine), -EINVAL);
	assert_int_equal(sst_set_clos(&tree->root, AT(0, 0, 0), 0, &twisted), -EINVAL);
	assert_int_equal(sst_set_clos(&tree->root, AT(0, 0, 0), 0, &fast), -EINVAL);
	assert_int_equal(sst_set_clos(&tree->root, AT(0, 0, 0), 0, &light), -EINVAL);
	assert_int_equal(sst_set_cp(&tree->root, AT(0, 0, 0), true, 2), -EINVAL);
	tree_put(tree, DEVICE ".now", "cpu 0 9\n");
	assert_int_equal(sst_clos_now(&tree->root, AT(0, 0, 0), &clos), -EIO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		tree_test(test_tpmi),
		tree_test(test_mailboxes),
		tree_test(test_mailbox_switches),
		tree_test(test_none),
		tree_test(test_odd_buckets),
		tree_test(test_snapshot),
		tree_test(test_short_struct),
		tree_test(test_set_tpmi),
		tree_test(test_set_mailboxes),
		tree_test(test_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
