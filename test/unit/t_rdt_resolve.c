/* SPDX-License-Identifier: Apache-2.0 */
/* rdt.so: shares as written, and what masks they become. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "modules/rdt/rdt.h"
#include "test/unit/fake_host.h"

struct fixture {
	struct fake_host *fake;
	struct modhost h;
	struct rdt_config config;
	struct rdt_machine machine;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);
	assert_non_null(f);
	f->fake = fake_host_new(&(struct fake_machine){.cores = 2});
	assert_int_equal(modhost_init(&f->h, fake_rp_host(f->fake), MODHOST_CONFIG), 0);
	f->machine = (struct rdt_machine){
		.cache[RDT_L3] = {.present = true,
				  .mask = 0xfffff,
				  .width = 20,
				  .min_bits = 1,
				  .n_ids = 2,
				  .ids = {0, 1}},
		.mb = {.present = true, .min = 10, .n_ids = 2, .ids = {0, 1}},
		.num_closids = 16,
	};
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	rdt_config_fini(&f->config);
	fake_host_free(f->fake);
	free(f);
	return 0;
}

static int32_t resolve(struct fixture *f, const char *text)
{
	rdt_config_fini(&f->config);
	int32_t r = rdt_config_read(&f->h, fake_cfg(f->fake, text), &f->config);
	return r ? r : rdt_resolve(&f->h, &f->config, &f->machine);
}

static void refused(struct fixture *f, const char *text, int32_t code, const char *why)
{
	assert_int_equal(resolve(f, text), code);
	if (!strstr(fake_error(f->fake), why))
		fail_msg("\"%s\" is not in \"%s\"", why, fake_error(f->fake));
}

static const char *schemata(struct fixture *f, const char *class)
{
	const struct rdt_class *k = rdt_config_class(&f->config, class);
	return k ? k->schemata : "no such class";
}

/* ---- shares ---------------------------------------------------------------------------------- */

static void test_share(void **state)
{
	static const struct {
		const char *text;
		bool range;
		int32_t result;
		struct rdt_share share;
	} cases[] = {
		{"50%", false, 0, {RDT_PERCENT, 0, 50, false, 0}},
		{"0%", false, 0, {RDT_PERCENT, 0, 0, false, 0}},
		{"100%", false, 0, {RDT_PERCENT, 0, 100, false, 0}},
		{"20-60%", true, 0, {RDT_PERCENT, 20, 60, true, 0}},
		{"20-60%", false, -RP_EINVAL, {0}},
		{"60-20%", true, -RP_EINVAL, {0}},
		{"101%", false, -RP_EINVAL, {0}},
		{"20-101%", true, -RP_EINVAL, {0}},
		{"-5%", true, -RP_EINVAL, {0}},
		{"5 %", true, -RP_EINVAL, {0}},
		{"%", true, -RP_EINVAL, {0}},
		{"0xff0", false, 0, {RDT_MASK, 0, 0, false, 0xff0}},
		{"0XF", false, 0, {RDT_MASK, 0, 0, false, 0xf}},
		{"0xffffffffffffffff", false, 0, {RDT_MASK, 0, 0, false, UINT64_MAX}},
		{"0x1ffffffffffffffff", false, -RP_EINVAL, {0}},
		{"0x5", false, -RP_EINVAL, {0}},
		{"0x0", false, -RP_EINVAL, {0}},
		{"0x", false, -RP_EINVAL, {0}},
		{"0xfg", false, -RP_EINVAL, {0}},
		{"4-11", false, 0, {RDT_MASK, 0, 0, false, 0xff0}},
		{"2,3", false, 0, {RDT_MASK, 0, 0, false, 0xc}},
		{"63", false, 0, {RDT_MASK, 0, 0, false, UINT64_C(1) << 63}},
		{"2,4", false, -RP_EINVAL, {0}},
		{"64", false, -RP_EINVAL, {0}},
		{"", false, -RP_EINVAL, {0}},
		{"half", false, -RP_EINVAL, {0}},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct rdt_share s = {0};
		if (rdt_share_parse(cases[i].text, cases[i].range, &s) != cases[i].result)
			fail_msg("\"%s\"", cases[i].text);
		assert_int_equal(s.form, cases[i].share.form);
		assert_int_equal(s.low, cases[i].share.low);
		assert_int_equal(s.high, cases[i].share.high);
		assert_int_equal(s.range, cases[i].share.range);
		assert_true(s.mask == cases[i].share.mask);
	}
}

/* ---- partitions ------------------------------------------------------------------------------ */

static void test_partitions(void **state)
{
	struct fixture *f = *state;
	/* smallest first, the largest gets what remains, places by name */
	assert_int_equal(resolve(f, "{partitions: {a: {l3Allocation: 60%, classes: {x: {}}}, "
				    "b: {l3Allocation: 40%, classes: {y: {}}}}}"),
			 0);
	assert_string_equal(schemata(f, "x"), "L3:0=fff;1=fff\nMB:0=100;1=100\n");
	assert_string_equal(schemata(f, "y"), "L3:0=ff000;1=ff000\nMB:0=100;1=100\n");
	/* order in the file does not count */
	assert_int_equal(resolve(f, "{partitions: {b: {l3Allocation: 40%, classes: {y: {}}}, "
				    "a: {l3Allocation: 60%, classes: {x: {}}}}}"),
			 0);
	assert_string_equal(schemata(f, "x"), "L3:0=fff;1=fff\nMB:0=100;1=100\n");
	/* less than all: 50 % of 20 ways */
	assert_int_equal(resolve(f, "{partitions: {a: {l3Allocation: 25%, classes: {x: {}}}, "
				    "b: {l3Allocation: 25%, classes: {y: {}}}}}"),
			 0);
	assert_string_equal(schemata(f, "x"), "L3:0=1f;1=1f\nMB:0=100;1=100\n");
	assert_string_equal(schemata(f, "y"), "L3:0=3e0;1=3e0\nMB:0=100;1=100\n");
	/* a share below one way gets the least there is */
	assert_int_equal(resolve(f, "{partitions: {a: {l3Allocation: 1%, classes: {x: {}}}, "
				    "b: {l3Allocation: 99%, classes: {y: {}}}}}"),
			 0);
	assert_string_equal(schemata(f, "x"), "L3:0=1;1=1\nMB:0=100;1=100\n");
	assert_string_equal(schemata(f, "y"), "L3:0=ffffe;1=ffffe\nMB:0=100;1=100\n");
}

static void test_cache_ids(void **state)
{
	struct fixture *f = *state;
	assert_int_equal(
		resolve(f, "{partitions: {a: {l3Allocation: {all: {unified: 50%}, \"1\": {unified: "
			   "100%}}, classes: {x: {l3Allocation: {\"0\": 50%}}}}}}"),
		0);
	assert_string_equal(schemata(f, "x"), "L3:0=1f;1=fffff\nMB:0=100;1=100\n");
	/* ids that the machine does not have are passed over; without all the rest is whole */
	assert_int_equal(resolve(f, "{partitions: {a: {l3Allocation: {\"1-3,7\": {unified: 50%}}, "
				    "classes: {x: {}}}}}"),
			 0);
	assert_string_equal(schemata(f, "x"), "L3:0=fffff;1=3ff\nMB:0=100;1=100\n");
	refused(f, "{partitions: {a: {l3Allocation: {\"0-1\": 50%, \"1\": 20%}}}}", -RP_EINVAL,
		"is already set above");
	refused(f, "{partitions: {a: {l3Allocation: {\"128\": 50%}}}}", -RP_EINVAL,
		"is not a list of cache ids");
	refused(f, "{partitions: {a: {l3Allocation: {everything: 50%}}}}", -RP_EINVAL,
		"is not a list of cache ids");
}

static void test_absolute(void **state)
{
	struct fixture *f = *state;
	assert_int_equal(
		resolve(f, "{partitions: {a: {l3Allocation: \"0xff\", classes: {x: {l3Allocation: "
			   "\"0xf\"}, z: {l3Allocation: \"4-7\"}}}, "
			   "b: {l3Allocation: 8-19, classes: {y: {l3Allocation: 50-100%}}}}}"),
		0);
	assert_string_equal(schemata(f, "x"), "L3:0=f;1=f\nMB:0=100;1=100\n");
	assert_string_equal(schemata(f, "z"), "L3:0=f0;1=f0\nMB:0=100;1=100\n");
	/* 12 ways: (50-1)*12/100 = 5 … (100-1)*12/100 = 11, above way 8 */
	assert_string_equal(schemata(f, "y"), "L3:0=fe000;1=fe000\nMB:0=100;1=100\n");
	refused(f, "{partitions: {a: {l3Allocation: \"0xff\"}, b: {l3Allocation: \"0x180\"}}}",
		-RP_EINVAL, "overlaps");
	refused(f, "{partitions: {a: {l3Allocation: \"0xff\"}, b: {l3Allocation: 20%}}}",
		-RP_EINVAL, "some partitions have masks");
	refused(f, "{partitions: {a: {l3Allocation: \"0x1fffff\"}}}", -RP_EINVAL, "not within");
	refused(f,
		"{partitions: {a: {l3Allocation: \"0xff\", classes: {x: {l3Allocation: "
		"\"0x1ff\"}}}}}",
		-RP_EINVAL, "does not fit");
	f->machine.cache[RDT_L3].min_bits = 2;
	refused(f, "{partitions: {a: {l3Allocation: \"0x1\"}}}", -RP_EINVAL, "fewer ways");
	refused(f,
		"{partitions: {a: {l3Allocation: \"0xf\", classes: {x: {l3Allocation: \"0x1\"}}}}}",
		-RP_EINVAL, "fewer ways");
}

static void test_sums(void **state)
{
	struct fixture *f = *state;
	refused(f, "{partitions: {a: {l3Allocation: 60%}, b: {l3Allocation: 50%}}}", -RP_EINVAL,
		"sum up to 110%");
	refused(f, "{partitions: {a: {l3Allocation: 0%}, b: {l3Allocation: 0%}}}", -RP_EINVAL,
		"too small");
	refused(f, "{partitions: {a: {l3Allocation: 1%}}}", -RP_EINVAL, "too small");
	refused(f,
		"{partitions: {a: {l3Allocation: 5%}, b: {l3Allocation: 5%}, c: {l3Allocation: "
		"5%}, d: {l3Allocation: 0%}, e: {l3Allocation: 0%}}}",
		-RP_EINVAL, "too small");
	refused(f, "{partitions: {a: {l3Allocation: 50%}, b: {}}}", -RP_EINVAL,
		"this one has none");
	refused(f, "{partitions: {a: {l3Allocation: 20-30%}}}", -RP_EINVAL, "expected a share");
}

/* ---- classes --------------------------------------------------------------------------------- */

static void test_classes(void **state)
{
	struct fixture *f = *state;
	assert_int_equal(resolve(f,
				 "{partitions: {fullCache: {l3Allocation: 100%, classes: {"
				 "BestEffort: {l3Allocation: 33%}, Burstable: {l3Allocation: 66%}, "
				 "Guaranteed: {l3Allocation: 100%}, least: {l3Allocation: 0%}, "
				 "top: {l3Allocation: 100-100%}, \"\": {l3Allocation: 50%}}}}}"),
			 0);
	assert_string_equal(schemata(f, "BestEffort"), "L3:0=7f;1=7f\nMB:0=100;1=100\n");
	assert_string_equal(schemata(f, "Burstable"), "L3:0=3fff;1=3fff\nMB:0=100;1=100\n");
	assert_string_equal(schemata(f, "Guaranteed"), "L3:0=fffff;1=fffff\nMB:0=100;1=100\n");
	assert_string_equal(schemata(f, "least"), "L3:0=1;1=1\nMB:0=100;1=100\n");
	assert_string_equal(schemata(f, "top"), "L3:0=80000;1=80000\nMB:0=100;1=100\n");
	assert_string_equal(schemata(f, "system/default"), "L3:0=3ff;1=3ff\nMB:0=100;1=100\n");
	/* fewer ways than the least: down first, then up */
	f->machine.cache[RDT_L3].min_bits = 3;
	assert_int_equal(resolve(f, "{partitions: {p: {l3Allocation: 100%, classes: {"
				    "top: {l3Allocation: 100-100%}, low: {l3Allocation: 1%}}}}}"),
			 0);
	assert_string_equal(schemata(f, "top"), "L3:0=e0000;1=e0000\nMB:0=100;1=100\n");
	assert_string_equal(schemata(f, "low"), "L3:0=7;1=7\nMB:0=100;1=100\n");
}

static void test_class_errors(void **state)
{
	struct fixture *f = *state;
	refused(f, "{partitions: {a: {classes: {x: {}}}, b: {classes: {x: {}}}}}", -RP_EINVAL,
		"already");
	refused(f, "{partitions: {a: {classes: {x: {l3Allocation: 10%}}}}}", -RP_EINVAL,
		"its partition a has none");
	refused(f, "{partitions: {a: {classes: {x/y: {}}}}}", -RP_EINVAL, "name of a group");
	refused(f, "{partitions: {a: {classes: {\"..\": {}}}}}", -RP_EINVAL, "name of a group");
	refused(f, "{partitions: {a: {classes: {\".\": {}}}}}", -RP_EINVAL, "name of a group");
	refused(f,
		"{partitions: {a: {classes: "
		"{xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
		"xxx"
		"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx: {}}}}}",
		-RP_EINVAL, "longer than");
	refused(f, "{partitions: {a: {l3Allocation: {all: {code: 10%}}}}}", -RP_EINVAL,
		"missing unified");
	refused(f, "{partitions: {a: {l3Allocation: {all: {unified: 10%, code: 10%}}}}}",
		-RP_EINVAL, "belong together");
	refused(f, "{partitions: {a: {l3Allocation: {all: {unified: 10%, cdoe: 10%}}}}}",
		-RP_EINVAL, "unknown key");
	refused(f, "{partitions: {a: {l3Allocation: [10%]}}}", -RP_EINVAL, "expected a share");
}

static void test_cdp(void **state)
{
	struct fixture *f = *state;
	static const char text[] =
		"{partitions: {a: {l3Allocation: {all: {unified: 50%, code: 40%, data: 60%}}, "
		"classes: {x: {}, y: {l3Allocation: {all: {unified: 50%, code: 25%, data: "
		"75%}}}}}, b: {l3Allocation: 30%, classes: {z: {}}}}}";
	assert_int_equal(resolve(f, text), 0);
	/* 80 % of 20 ways are 16: b 30*16/80 = 6, a the rest */
	assert_string_equal(schemata(f, "x"), "L3:0=3ff;1=3ff\nMB:0=100;1=100\n");
	f->machine.cache[RDT_L3].cdp = true;
	assert_int_equal(resolve(f, text), 0);
	assert_string_equal(schemata(f, "x"),
			    "L3CODE:0=ff;1=ff\nL3DATA:0=fff;1=fff\nMB:0=100;1=100\n");
	assert_string_equal(schemata(f, "y"),
			    "L3CODE:0=3;1=3\nL3DATA:0=1ff;1=1ff\nMB:0=100;1=100\n");
	assert_string_equal(schemata(f, "z"),
			    "L3CODE:0=3f00;1=3f00\nL3DATA:0=3f000;1=3f000\nMB:0=100;1=100\n");
}

static void test_bandwidth(void **state)
{
	struct fixture *f = *state;
	static const char text[] =
		"{partitions: {a: {mbAllocation: [50%, 2000MBps], classes: {x: {mbAllocation: "
		"{all: [50%, 3000MBps], \"1\": [4%, 100MBps]}}, y: {}}}, b: {classes: {z: {}}}}}";
	assert_int_equal(resolve(f, text), 0);
	assert_string_equal(schemata(f, "x"), "L3:0=fffff;1=fffff\nMB:0=25;1=10\n");
	assert_string_equal(schemata(f, "y"), "L3:0=fffff;1=fffff\nMB:0=50;1=50\n");
	assert_string_equal(schemata(f, "z"), "L3:0=fffff;1=fffff\nMB:0=100;1=100\n");
	f->machine.mb.mbps = true;
	assert_int_equal(resolve(f, text), 0);
	assert_string_equal(schemata(f, "x"), "L3:0=fffff;1=fffff\nMB:0=2000;1=100\n");
	assert_string_equal(schemata(f, "z"), "L3:0=fffff;1=fffff\nMB:0=4294967295;1=4294967295\n");
	refused(f, "{partitions: {a: {mbAllocation: 50%, classes: {x: {}}}}}", -RP_EINVAL, "MBps");
	f->machine.mb.mbps = false;
	refused(f, "{partitions: {a: {mbAllocation: 50MBps, classes: {x: {}}}}}", -RP_EINVAL,
		"percent");
	refused(f, "{partitions: {a: {mbAllocation: []}}}", -RP_EINVAL, "empty");
	refused(f, "{partitions: {a: {mbAllocation: [127%]}}}", -RP_EINVAL, "expected a share");
	refused(f, "{partitions: {a: {mbAllocation: [50 MBps]}}}", -RP_EINVAL, "expected a share");
}

static void test_levels(void **state)
{
	struct fixture *f = *state;
	refused(f, "{partitions: {a: {l2Allocation: 50%}}}", -RP_ENOTSUP, "options.l2.optional");
	assert_int_equal(resolve(f, "{options: {l2: {optional: true}}, partitions: {a: "
				    "{l2Allocation: 50%, classes: {x: {l2Allocation: 10%}}}}}"),
			 0);
	assert_string_equal(schemata(f, "x"), "L3:0=fffff;1=fffff\nMB:0=100;1=100\n");
	f->machine.cache[RDT_L2] = (struct rdt_cache){.present = true,
						      .mask = 0xff,
						      .width = 8,
						      .min_bits = 1,
						      .n_ids = 3,
						      .ids = {12, 0, 4}};
	f->machine.mb.present = false;
	assert_int_equal(resolve(f, "{partitions: {a: {l2Allocation: 50%, classes: {x: {}}}}}"), 0);
	assert_string_equal(schemata(f, "x"), "L2:0=f;4=f;12=f\nL3:0=fffff;1=fffff\n");
	refused(f, "{partitions: {a: {mbAllocation: 50%}}}", -RP_ENOTSUP, "options.mb.optional");
	f->machine.cache[RDT_L3].present = false;
	refused(f, "{partitions: {a: {l3Allocation: 50%}}}", -RP_ENOTSUP, "options.l3.optional");
}

static void test_closids(void **state)
{
	struct fixture *f = *state;
	f->machine.num_closids = 3;
	assert_int_equal(resolve(f, "{partitions: {a: {classes: {x: {}, y: {}, z: {}}}}}"), 0);
	assert_non_null(strstr(fake_log(f->fake), "3 classes are configured"));
}

static void test_equal(void **state)
{
	static const char want[] = "L3:0=ff;1=f\nMB:0=50;1=100\n";
	assert_true(rdt_schemata_equal(want, want));
	assert_true(rdt_schemata_equal("    MB:0= 50;1=100\n    L3:0=000ff;1=0000f\n", want));
	assert_true(rdt_schemata_equal("L2:0=1\nL3:1=f;0=ff;2=1\nMB:0=50;1=100", want));
	assert_false(rdt_schemata_equal("L3:0=ff;1=ff\nMB:0=50;1=100\n", want));
	assert_false(rdt_schemata_equal("L3:0=ff\nMB:0=50;1=100\n", want));
	assert_false(rdt_schemata_equal("L3:0=ff;1=f\n", want));
	assert_false(rdt_schemata_equal("", want));
	assert_false(rdt_schemata_equal("L3:0=zz;1=f\nMB:0=50;1=100\n", want));
	assert_false(rdt_schemata_equal("L3:x\nMB:0=50;1=100\n", want));
	assert_true(rdt_schemata_equal("", ""));
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_share),	 TEST(test_partitions), TEST(test_cache_ids),
		TEST(test_absolute),	 TEST(test_sums),	TEST(test_classes),
		TEST(test_class_errors), TEST(test_cdp),	TEST(test_bandwidth),
		TEST(test_levels),	 TEST(test_closids),	TEST(test_equal),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
