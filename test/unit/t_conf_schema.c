/* SPDX-License-Identifier: Apache-2.0 */
/* Tables, types and checks: value.c, schema.c, check.c. */
#include "test/unit/t_conf.h"

/* ---- types ----------------------------------------------------------------------------------- */

static rp_cfg load_value(const char *key, const char *yaml)
{
	char text[1024];
	(void)snprintf(text, sizeof text, "types:\n  %s: %s\n", key, yaml);
	good(text);
	return conf_get(conf_section(last.conf, "types"), key);
}

static void takes(const char *key, const char *yaml, uint32_t type, int64_t value)
{
	assert_int_equal(conf_value(load_value(key, yaml), type, -999), value);
}

static void refuses(const char *key, const char *yaml, const char *expected_and_found)
{
	char text[1024], lines[1024];
	(void)snprintf(text, sizeof text, "types:\n  %s: %s\n", key, yaml);
	(void)snprintf(lines, sizeof lines, "rp.conf:2:3: types.%s: expected %s\n", key,
		       expected_and_found);
	bad(text, lines);
}

static void test_bool(void **state)
{
	takes("bool", "true", RP_T_BOOL, 1);
	takes("bool", "True", RP_T_BOOL, 1);
	takes("bool", "yes", RP_T_BOOL, 1);
	takes("bool", "on", RP_T_BOOL, 1);
	takes("bool", "false", RP_T_BOOL, 0);
	takes("bool", "off", RP_T_BOOL, 0);
	takes("bool", "0", RP_T_BOOL, 0);
	refuses("bool", "maybe", "true or false, found \"maybe\"");
	refuses("bool", "\"true\"", "true or false, found \"true\" in quotes");
	refuses("bool", "'no'", "true or false, found \"no\" in quotes");
	refuses("bool", "[true]", "true or false, found a list");
	refuses("bool", "{a: b}", "true or false, found a map");
	refuses("bool", "\"\"", "true or false, found \"\"");
	refuses("bool", "2", "true or false, found \"2\"");
}

static void test_int(void **state)
{
	takes("int", "0", RP_T_INT, 0);
	takes("int", "-7", RP_T_INT, -7);
	takes("int", "+7", RP_T_INT, 7);
	takes("int", "9223372036854775807", RP_T_INT, INT64_MAX);
	takes("int", "-9223372036854775808", RP_T_INT, INT64_MIN);
	takes("percent", "100", RP_T_INT, 100);
	takes("debt", "-1", RP_T_INT, -1);
	refuses("int", "many", "an integer, found \"many\"");
	refuses("int", "1.5", "an integer, found \"1.5\"");
	refuses("int", "0x10", "an integer, found \"0x10\"");
	refuses("int", "\"7\"", "an integer, found \"7\" in quotes");
	refuses("int", "9223372036854775808",
		"an integer, found \"9223372036854775808\", which is out of range");
	refuses("int", "99999999999999999999999999",
		"an integer, found \"99999999999999999999999999\", which is out of range");
	refuses("count", "many", "an integer of at least 0, found \"many\"");
	refuses("count", "-1", "an integer of at least 0, found \"-1\"");
	refuses("debt", "0", "an integer of at most -1, found \"0\"");
	refuses("percent", "101", "an integer from 0 to 100, found \"101\"");
	refuses("percent", "[1]", "an integer from 0 to 100, found a list");
}

static void test_number(void **state)
{
	assert_true(conf_number(load_value("number", "0.25"), 0) == 0.25);
	assert_true(conf_number(load_value("number", "-1e3"), 0) == -1000);
	assert_true(conf_number(load_value("number", "7"), 0) == 7);
	refuses("number", "half", "a number, found \"half\"");
	refuses("number", ".inf", "a number, found \".inf\"");
	refuses("number", ".nan", "a number, found \".nan\"");
	refuses("number", "1e999", "a number, found \"1e999\", which is out of range");
	refuses("number", "\"1\"", "a number, found \"1\" in quotes");
}

static void test_text(void **state)
{
	assert_string_equal(conf_text(load_value("string", "true"), ""), "true");
	assert_string_equal(conf_text(load_value("string", "007"), ""), "007");
	assert_string_equal(conf_text(load_value("string", "\"\""), "x"), "");
	assert_string_equal(conf_text(load_value("name", "\"null\""), ""), "null");
	assert_string_equal(conf_text(load_value("enum", "green"), ""), "green");
	assert_string_equal(conf_text(load_value("enum", "\"blue\""), ""), "blue");
	assert_string_equal(conf_text(load_value("level", "\"\""), "x"), "");
	assert_string_equal(conf_text(load_value("level", "numa"), "x"), "numa");
	refuses("string", "[a]", "a text, found a list");
	refuses("name", "\"\"", "a text that is not empty, found \"\"");
	refuses("enum", "Red", "red, green or blue, found \"Red\"");
	refuses("enum", "re", "red, green or blue, found \"re\"");
	refuses("enum", "red|green", "red, green or blue, found \"red|green\"");
	refuses("enum", "\"\"", "red, green or blue, found \"\"");
	refuses("level", "l3", "\"\", core or numa, found \"l3\"");
	refuses("enum", "\"a\\n\\t\\\"\\\\\\e\"",
		"red, green or blue, found \"a\\n\\t\\\"\\\\\\x1b\"");
	refuses("enum", "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffg",
		"red, green or blue, found "
		"\"aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffff…\"");
}

static void test_quantities(void **state)
{
	takes("cpu", "2", RP_T_CPU, 2000);
	takes("cpu", "\"2\"", RP_T_CPU, 2000);
	takes("cpu", "750m", RP_T_CPU, 750);
	takes("cpu", "1.5", RP_T_CPU, 1500);
	takes("cpu", "0", RP_T_CPU, 0);
	refuses("cpu", "-1", "an amount of CPU (2, 750m), found \"-1\"");
	refuses("cpu", "two", "an amount of CPU (2, 750m), found \"two\"");
	refuses("cpu", "\"\"", "an amount of CPU (2, 750m), found \"\"");
	refuses("cpu", "99999999999999999999",
		"an amount of CPU (2, 750m), found \"99999999999999999999\", which is out of "
		"range");
	takes("bytes", "512Mi", RP_T_BYTES, 512 << 20);
	takes("bytes", "1G", RP_T_BYTES, 1000000000);
	takes("bytes", "1e3", RP_T_BYTES, 1000);
	refuses("bytes", "-1Mi", "an amount of memory (512Mi, 1G), found \"-1Mi\"");
	refuses("bytes", "1MB", "an amount of memory (512Mi, 1G), found \"1MB\"");
	refuses("bytes", "16Ei",
		"an amount of memory (512Mi, 1G), found \"16Ei\", which is out of range");
	takes("duration", "30s", RP_T_DURATION, 30000);
	takes("duration", "1m30s", RP_T_DURATION, 90000);
	takes("duration", "250ms", RP_T_DURATION, 250);
	refuses("duration", "30", "a duration (250ms, 1m30s), found \"30\"");
	refuses("duration", "-1s", "a duration (250ms, 1m30s), found \"-1s\"");
	takes("freq", "2.4GHz", RP_T_FREQ, 2400000);
	takes("freq", "800MHz", RP_T_FREQ, 800000);
	takes("freq", "1200000", RP_T_FREQ, 1200000);
	takes("freq", "min", RP_T_FREQ, RP_FREQ_MIN);
	takes("freq", "base", RP_T_FREQ, RP_FREQ_BASE);
	takes("freq", "turbo", RP_T_FREQ, RP_FREQ_TURBO);
	takes("freq", "' Base\t'", RP_T_FREQ, RP_FREQ_BASE);
	takes("freq", "''", RP_T_FREQ, 0);
	refuses("freq", "min max",
		"a frequency (2.4GHz, 800MHz), min, base or turbo, found \"min max\"");
	refuses("freq", "max", "a frequency (2.4GHz, 800MHz), min, base or turbo, found \"max\"");
}

#define AMOUNT "an amount of CPU (2, 750m), cpuset:LIST, exclude-cpuset:LIST or cgroup:PATH, found "

static void test_amounts(void **state)
{
	takes("amount", "750m", RP_T_AMOUNT, 750);
	takes("amount", "\"2\"", RP_T_AMOUNT, 2000);
	static const char *const sets[] = {
		"cpuset:0-3,8", "exclude-cpuset:0", "cgroup:kubepods/x", "/sys/fs/cgroup/x",
		"0-3",		"\"0,2\""};
	for (size_t i = 0; i < COUNT(sets); i++)
		takes("amount", sets[i], RP_T_AMOUNT, -999);
	refuses("amount", "\"cpuset:\"", AMOUNT "\"cpuset:\"");
	refuses("amount", "cpuset:3-1", AMOUNT "\"cpuset:3-1\"");
	refuses("amount", "cpuset:8192", AMOUNT "\"cpuset:8192\"");
	refuses("amount", "exclude-cpuset:x", AMOUNT "\"exclude-cpuset:x\"");
	refuses("amount", "\"cgroup:\"", AMOUNT "\"cgroup:\"");
	refuses("amount", "cpus:1", AMOUNT "\"cpus:1\"");
	refuses("amount", "-2", AMOUNT "\"-2\"");
	refuses("amount", "0-x", AMOUNT "\"0-x\"");
	refuses("amount", "\"\"", AMOUNT "\"\"");
	refuses("amount", "{cpu: 2}", AMOUNT "a map");
}

static void test_cpulists(void **state)
{
	assert_string_equal(conf_text(load_value("cpulist", "0-3,8"), ""), "0-3,8");
	assert_string_equal(conf_text(load_value("cpulist", "5"), ""), "5");
	assert_string_equal(conf_text(load_value("cpulist", "\"\""), "x"), "");
	assert_string_equal(conf_text(load_value("cpulist", "8191"), ""), "8191");
	refuses("cpulist", "8192", "a list of CPUs (0-3,8), found \"8192\"");
	refuses("cpulist", "0,,1", "a list of CPUs (0-3,8), found \"0,,1\"");
	refuses("cpulist", "all", "a list of CPUs (0-3,8), found \"all\"");
	refuses("cpus", "\"\"", "a list of CPUs (0-3,8), found \"\"");
}

static void test_values_of_any(void **state)
{
	good("bare: {b: \"true\", n: 1.5, s: x}");
	rp_cfg bare = conf_section(last.conf, "bare");
	assert_int_equal(conf_value(conf_get(bare, "b"), RP_T_BOOL, 0), 1);
	assert_int_equal(conf_value(conf_get(bare, "s"), RP_T_BOOL, 7), 7);
	assert_int_equal(conf_value(conf_get(bare, "n"), RP_T_CPU, 0), 1500);
	assert_int_equal(conf_value(conf_get(bare, "n"), RP_T_STRING, 7), 7);
	assert_true(conf_number(conf_get(bare, "n"), 0) == 1.5);
}

/* ---- structure ------------------------------------------------------------------------------- */

static void test_collections(void **state)
{
	good("types:\n  any: {what: [ever, {x: 1}]}\n  map: {free: 1, too: [2]}\n  list: [1, {a: "
	     "b}]\n  ints: []\n  options: {}\n");
	refuses("map", "{}", "a map that is not empty, found an empty value");
	refuses("map", "5", "a map that is not empty, found \"5\"");
	refuses("list", "[]", "a list that is not empty, found an empty value");
	refuses("list", "{a: b}", "a list that is not empty, found a map");
	refuses("ints", "5", "a list, found \"5\"");
	refuses("items", "{name: x}", "a list, found a map");
	refuses("options", "[a]", "a map, found a list");
	bad("types: {ints: [1, 10, x, [2], ~, 9]}",
	    "rp.conf:1:19: types.ints[1]: expected an integer from 1 to 9, found \"10\"\n"
	    "rp.conf:1:23: types.ints[2]: expected an integer from 1 to 9, found \"x\"\n"
	    "rp.conf:1:26: types.ints[3]: expected an integer from 1 to 9, found a list\n"
	    "rp.conf:1:31: types.ints[4]: expected an integer from 1 to 9, found nothing\n");
	bad("types: {grid: [[1, 2], [3, x]], deep: {under: {key: true}}}",
	    "rp.conf:1:28: types.grid[1][1]: expected a number, found \"x\"\n");
	bad("types:\n  items:\n  - {name: a, max: many}\n  - max: 1\n  - b\n  - name: \"\"\n  - "
	    "{name: c, mx: 1}\n  -\n",
	    "rp.conf:3:15: types.items[0].max: expected an integer of at least 0, found \"many\"\n"
	    "rp.conf:4:5: types.items[1].name: missing required key\n"
	    "rp.conf:5:5: types.items[2]: expected a map, found \"b\"\n"
	    "rp.conf:6:5: types.items[3].name: expected a text that is not empty, found \"\"\n"
	    "rp.conf:7:15: types.items[4].mx: unknown key, did you mean max?\n"
	    "rp.conf:8:4: types.items[5]: expected a map, found nothing\n");
}

static void test_wildcards(void **state)
{
	good("types:\n  options: {a: true, b: \"auto\", size: 5}\n  parts: {p: {classes: {c: "
	     "{share: 50%}}}, q: {}}\n");
	bad("types:\n  options: {a: on, size: x}\n  parts: {p: {classes: {c: {shre: 1}}, other: "
	    "1}, q: 5}\n",
	    "rp.conf:2:13: types.options.a: expected true, false or auto, found \"on\"\n"
	    "rp.conf:2:20: types.options.size: expected an integer, found \"x\"\n"
	    "rp.conf:3:29: types.parts.p.classes.c.shre: unknown key, did you mean share?\n"
	    "rp.conf:3:40: types.parts.p.other: unknown key; the keys here are classes\n"
	    "rp.conf:3:51: types.parts.q: expected a map, found \"5\"\n");
}

static void test_null_is_not_set(void **state)
{
	good("types: {bool: , int: ~, map: null, list: , ints: , deep: {under: }}");
	bad("types: {items: [{name: }], deep: {under: {key: ~}}}",
	    "rp.conf:1:17: types.items[0].name: missing required key\n"
	    "rp.conf:1:35: types.deep.under.key: missing required key\n");
}

static void test_unknown_keys(void **state)
{
	bad("types: {strnig: x}\nlog: {lvl: info}\npolcy: none\n",
	    "rp.conf:1:9: types.strnig: unknown key, did you mean string?\n"
	    "rp.conf:2:7: log.lvl: unknown key, did you mean level?\n"
	    "rp.conf:3:1: polcy: unknown key, did you mean policy?\n");
	bad("types: {zzzzzzzzz: }\n", "rp.conf:1:9: types.zzzzzzzzz: unknown key\n");
	warned("strict: false\ntypes: {strnig: x, zzzzzzzzz: [1]}\nA_B: {}\n",
	       "warning: rp.conf:2:9: types.strnig: unknown key, did you mean string?\n"
	       "warning: rp.conf:2:20: types.zzzzzzzzz: unknown key\n"
	       "warning: rp.conf:3:1: A_B: unknown section\n");
}

static void test_sections(void **state)
{
	warned("strict: false\nmem: {x: 1}\nlogs: {level: info}\nbare: {any: thing}\ncontrolers: "
	       "{rdt: required}\n",
	       "warning: rp.conf:2:1: mem: module mem is not installed, not checked\nwarning: "
	       "rp.conf:3:1: logs: module logs is not installed, not checked; did you mean "
	       "log?\nwarning: rp.conf:5:1: controlers: module controlers is not installed, not "
	       "checked; did you mean control?\n");
	bad("policy: memo\nmem: {x: 1}\nlogs: {level: info}\n",
	    "rp.conf:2:1: mem: module mem is not installed; did you mean memo?\n"
	    "rp.conf:3:1: logs: module logs is not installed; did you mean log?\n");
	/* other code reports used modules that are not installed */
	warned("policy: mem\ncontrollers: [far]\nmem: {x: 1}\nfar: {x: 1}\n",
	       "warning: rp.conf:3:1: mem: module mem is not installed, not checked\n"
	       "warning: rp.conf:4:1: far: module far is not installed, not checked\n");
	warned("controllers: {far: required}\nfar: {x: 1}\n",
	       "warning: rp.conf:2:1: far: module far is not installed, not checked\n");
	bad("Bare: {}\nbare: 5\ntypes: []\n../x: {}\nzzzzzzzzzzz: "
	    "5\nballoons-and-many-other-things-too: {}\n",
	    "rp.conf:1:1: Bare: unknown section\n"
	    "rp.conf:2:1: bare: expected a map, found \"5\"\n"
	    "rp.conf:3:1: types: expected a map, found a list\n"
	    "rp.conf:4:1: ../x: unknown section\n"
	    "rp.conf:5:1: zzzzzzzzzzz: unknown key\n"
	    "rp.conf:6:1: balloons-and-many-other-things-too: unknown section\n");
	good("other: {}\nmem: {enable: false, x: 1}\nlogs:\n");
	good("bare:\ntypes: ~\n");
	assert_null(conf_section(last.conf, "bare"));
	assert_null(conf_section(last.conf, "nothing"));
}

static void test_no_modules(void **state)
{
	struct conf_source source = source_of("rp.conf", "policy: x\nx: {any: thing}\ny: {}\n");
	assert_non_null(parse_sources(&source, 1, NULL));
	assert_string_equal(problems(), "");
	source = source_of("rp.conf", "polcy: x\nx: [1]\n");
	(void)parse_sources(&source, 1, NULL);
	assert_string_equal(problems(), "rp.conf:1:1: polcy: unknown key, did you mean policy?\n"
					"rp.conf:2:1: x: unknown key\n");
	struct conf_schemas empty = {NULL, NULL, NULL, NULL, NULL};
	source = source_of(
		"rp.conf",
		"policy: x\nx: {any: thing}\n---\nkind: K\napiVersion: config.nri/v1\nspec: {}\n");
	(void)parse_sources(&source, 1, &empty);
	assert_string_equal(
		problems(),
		"rp.conf:4:1: kind: no installed module has custom resources of kind \"K\"\n");
}

static void test_modules_in_use(void **state)
{
	bad("policy: balloons\n",
	    "rp.conf:1:1: balloons.reservedResources: missing required key\n");
	bad("policy: none\ncontrollers: [rdt, balloons]\nballoons:\n",
	    "rp.conf:2:20: balloons.reservedResources: missing required key\n");
	good("policy: none\ncontrollers: {balloons: disabled, rdt: }\n");
	bad("policy: balloons\nballoons: {reservedResources: {}}\n",
	    "rp.conf:2:12: balloons.reservedResources.cpu: missing required key\n");
	good("policy: balloons\ncontrollers: [balloons]\nballoons: {reservedResources: {cpu: "
	     "1}}\n");
	warned("rdt: {enable: true}\n",
	       "warning: rp.conf:1:7: rdt.enable: has no effect: rdt is not in controllers\n");
	good("rdt: {enable: true}\ncontrollers: [rdt]\n");
	good("rdt: {enable: false}\n");
	good("policy: rdt\nrdt: {enable: true}\n");
}

static void test_broken_table(void **state)
{
	bad("broken: {x: 1}\n", "module broken: key table: \"x\" has the unknown type 99\n");
	bad("policy: broken\n", "module broken: key table: \"x\" has the unknown type 99\n");
	good("policy: none\n");
}

static void test_folding(void **state)
{
	good("fold:\n  ReservedResources: {CPU: 2}\n  POOLS: [{MaxPods: 1}, {maxpods: 2}]\n  "
	     "names: {Abc: x, abc: y}\n"
	     "  free: {A: 1, a: 2}\n");
	rp_cfg fold = conf_section(last.conf, "fold");
	assert_string_equal(conf_text(conf_get(fold, "reservedResources.cpu"), ""), "2");
	assert_string_equal(conf_key(fold, 1), "pools");
	assert_int_equal(
		conf_value(conf_get(conf_item(conf_get(fold, "pools"), 1), "maxPods"), RP_T_INT, 0),
		2);
	assert_string_equal(conf_text(conf_get(fold, "names.Abc"), ""), "x");
	assert_string_equal(conf_text(conf_get(fold, "free.A"), ""), "1");
	bad("fold: {pools: [], Pools: [{maxPods: 1, MAXPODS: 2}], RESERVEDRESOURCES: {}, "
	    "ReservedResources: {}}",
	    "rp.conf:1:19: fold.Pools: set twice, first as pools at rp.conf:1:8\n"
	    "rp.conf:1:77: fold.ReservedResources: set twice, first as RESERVEDRESOURCES at "
	    "rp.conf:1:54\n");
	bad("fold: {pools: [{maxPods: 1, MAXPODS: 2}]}",
	    "rp.conf:1:29: fold.pools[0].MAXPODS: set twice, first as maxPods at rp.conf:1:17\n");
	bad("fold: {pools: 5, Reserved: {}}",
	    "rp.conf:1:8: fold.pools: expected a list, found \"5\"\n"
	    "rp.conf:1:18: fold.Reserved: unknown key; the keys here are reservedResources, "
	    "pools, names, free\n");
	/* Spellings of one key in two files meet. */
	good("fold: {ReservedResources: {Cpu: 2}}\n---\nfold: {reservedresources: {cpu: 3}}\n");
	fold = conf_section(last.conf, "fold");
	assert_int_equal(conf_count(fold), 1);
	assert_string_equal(conf_text(conf_get(fold, "reservedResources.cpu"), ""), "3");
	bad("types: {Bool: true}", "rp.conf:1:9: types.Bool: unknown key, did you mean bool?\n");
}

/* ---- tables ---------------------------------------------------------------------------------- */

static void check_table(const struct rp_key *rows, uint32_t n_rows, const char *wanted)
{
	struct rp_schema schema = {
		.size = sizeof schema, .keys = rows, .n_keys = n_rows, .key_size = sizeof *rows};
	struct err err = ERR_INIT;
	int rc = conf_schema_check(&schema, &err);
	assert_string_equal(err.text, wanted);
	assert_int_equal(rc, wanted[0] ? -EINVAL : 0);
}

static void check_row(struct rp_key row, const char *wanted)
{
	check_table(&row, 1, wanted);
}

static void check_rows(struct rp_key a, struct rp_key b, const char *wanted)
{
	struct rp_key rows[] = {a, b};
	check_table(rows, 2, wanted);
}

#define KEY(path_, type_, ...)                                                                     \
	(struct rp_key)                                                                            \
	{                                                                                          \
		.path = (path_), .type = (type_), __VA_ARGS__                                      \
	}

static void test_tables(void **state)
{
	check_row(KEY("a", RP_T_BOOL), "");
	check_row(KEY(NULL, RP_T_BOOL), "key table: a row without a path");
	check_row(KEY("", RP_T_BOOL), "key table: a row without a path");
	check_row(KEY("a", 0), "key table: \"a\" has the unknown type 0");
	check_row(KEY("a", RP_T_FREQ + 1), "key table: \"a\" has the unknown type 15");
	check_row(KEY("a", RP_T_ENUM), "key table: \"a\" has no choices");
	check_row(KEY("a", RP_T_INT, .min = 2, .max = 1), "key table: the range of \"a\" is empty");
	static const char *const no_paths[] = {".a",   "a.",   "a..b", "a[",
					       "a[x]", "a[]b", "a.[]", "a[]["};
	for (size_t i = 0; i < COUNT(no_paths); i++) {
		char wanted[100];
		(void)snprintf(wanted, sizeof wanted, "key table: \"%s\" is not a path",
			       no_paths[i]);
		check_row(KEY(no_paths[i], RP_T_BOOL), wanted);
	}
	check_row(KEY("[]", RP_T_BOOL), "key table: the parent of \"[]\" is not a list");
	check_row(KEY("a.b.c.d.e.f.g.h.i.j", RP_T_BOOL), "");
	check_row(KEY("a.b.c.d.e.f.g.h.i.j.k", RP_T_BOOL),
		  "key table: \"a.b.c.d.e.f.g.h.i.j.k\" has more than 10 segments");
	check_rows(KEY("a", RP_T_BOOL), KEY("a", RP_T_INT), "key table: \"a\" is listed twice");
	check_rows(KEY("a.b", RP_T_BOOL), KEY("a", RP_T_MAP),
		   "key table: \"a\" is listed after its children");
	check_rows(KEY("a", RP_T_BOOL), KEY("a.b", RP_T_BOOL),
		   "key table: the parent of \"a.b\" is not a map");
	check_rows(KEY("a", RP_T_MAP), KEY("a[]", RP_T_BOOL),
		   "key table: the parent of \"a[]\" is not a list");
	check_rows(KEY("a", RP_T_ANY), KEY("a.*", RP_T_BOOL),
		   "key table: the parent of \"a.*\" is not a map");
	check_rows(KEY("a.b", RP_T_BOOL), KEY("a[]", RP_T_BOOL),
		   "key table: the parent of \"a[]\" is not a list");
	check_rows(KEY("a[]", RP_T_BOOL), KEY("a.b", RP_T_BOOL),
		   "key table: the parent of \"a.b\" is not a map");
	check_rows(KEY("a.*", RP_T_BOOL), KEY("a.b", RP_T_BOOL), "");
	check_row(KEY("a", RP_T_STRING, .fallback = "\xff"),
		  "key table: \"a\" has texts that are not UTF-8");
	check_row(KEY("a\xff", RP_T_STRING), "key table: \"?\" has texts that are not UTF-8");
	check_table(NULL, 0, "");
	check_table(NULL, 1, "key table: not filled in");
	check_table(types_rows, CONF_SCHEMA_KEYS_MAX + 1, "key table: more than 4096 rows");
	assert_int_equal(conf_schema_check(conf_core_schema(), NULL), 0);
}

/* Tables of hosts and modules of other ages. */
static void test_table_ages(void **state)
{
	struct {
		struct rp_key key;
		uint64_t future;
	} longer[] = {{KEY("a", RP_T_BOOL), 7}, {KEY("b", RP_T_INT), 8}};
	struct err err = ERR_INIT;
	struct rp_schema schema = {.size = sizeof schema,
				   .keys = &longer[0].key,
				   .n_keys = 2,
				   .key_size = sizeof longer[0]};
	assert_int_equal(conf_schema_check(&schema, &err), 0);
	assert_string_equal(schema_row(&schema, 1).path, "b");
	struct {
		const char *path;
		uint32_t type;
		uint32_t flags;
	} shorter[] = {{"a", RP_T_BOOL, 0}, {"b", RP_T_INT, 0}};
	schema.keys = (const struct rp_key *)(const void *)shorter;
	schema.key_size = sizeof shorter[0];
	assert_int_equal(conf_schema_check(&schema, &err), 0);
	assert_string_equal(schema_row(&schema, 1).path, "b");
	assert_null(schema_row(&schema, 1).doc);
	schema.key_size = 8;
	assert_int_equal(conf_schema_check(&schema, &err), -EINVAL);
	assert_string_equal(err.text, "key table: rows of 8 bytes are too short");
	schema = (struct rp_schema){
		.size = offsetof(struct rp_schema, key_size), .keys = types_rows, .n_keys = 3};
	assert_int_equal(conf_schema_check(&schema, &err), 0);
	schema.size = offsetof(struct rp_schema, n_keys);
	assert_int_equal(conf_schema_check(&schema, &err), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bool),
		cmocka_unit_test(test_int),
		cmocka_unit_test(test_number),
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_quantities),
		cmocka_unit_test(test_amounts),
		cmocka_unit_test(test_cpulists),
		cmocka_unit_test(test_values_of_any),
		cmocka_unit_test(test_collections),
		cmocka_unit_test(test_wildcards),
		cmocka_unit_test(test_null_is_not_set),
		cmocka_unit_test(test_unknown_keys),
		cmocka_unit_test(test_sections),
		cmocka_unit_test(test_no_modules),
		cmocka_unit_test(test_modules_in_use),
		cmocka_unit_test(test_broken_table),
		cmocka_unit_test(test_folding),
		cmocka_unit_test(test_tables),
		cmocka_unit_test(test_table_ages),
	};
	return cmocka_run_group_tests(tests, NULL, forget_last);
}
