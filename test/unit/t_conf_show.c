/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the output for people and tools: show.c, help.c, diff.c. */
#include "core/nri-rpctl/jsonschema.h"
#include "test/unit/t_conf.h"

/* ---- show ------------------------------------------------------------------------------------ */

static void shows(const char *text, unsigned flags, const char *wanted)
{
	(void)good(text);
	assert_string_equal(shown(flags), wanted);
}

static void test_show(void **state)
{
	shows("", 0, "");
	shows("bare: {b: 1, a: [1, x, [y]]}\nlog: {level: debug}\npolicy: none\n", 0,
	      "policy: none\nlog:\n  level: debug\nbare:\n  b: 1\n  a: [1, x, [y]]\n");
	shows("types:\n  items: [{name: a, max: 1}, {name: b}]\n  options: {}\n  list: [{a: [{b: "
	      "c}, {}], d: {}}, [[{e: f}], g]]\n",
	      0,
	      "types:\n"
	      "  items:\n"
	      "  - name: a\n"
	      "    max: 1\n"
	      "  - name: b\n"
	      "  options: {}\n"
	      "  list:\n"
	      "  - a:\n"
	      "    - b: c\n"
	      "    - {}\n"
	      "    d: {}\n"
	      "  -\n"
	      "    -\n"
	      "      - e: f\n"
	      "    - g\n");
}

static void test_show_nulls(void **state)
{
	shows("types: {bool: , options: {a: }, any: {x: ~}, list: [~, {y: ~}]}\ncontrollers: {rdt: "
	      "}\nlog:\nbare:\n",
	      0,
	      "controllers:\n  rdt: null\n"
	      "types:\n  options:\n    a: null\n  any:\n    x: null\n  list:\n  - null\n  - y: "
	      "null\n");
	shows("types: {items: [{name: a, max: }], deep: ~}\n", 0,
	      "types:\n  items:\n  - name: a\n");
}

static void test_show_scalars(void **state)
{
	shows("bare: {a: \"true\", b: true, c: 'x y', d: x y, e: \"\", f: -1, g: -x, h: .5, i: "
	      "10.0.0.1:80, j: \"a\\n\\t\\\"\\\\\\e\\u2028\\u00e4\"}\n",
	      0,
	      "bare:\n"
	      "  a: \"true\"\n"
	      "  b: true\n"
	      "  c: \"x y\"\n"
	      "  d: \"x y\"\n"
	      "  e: \"\"\n"
	      "  f: -1\n"
	      "  g: \"-x\"\n"
	      "  h: .5\n"
	      "  i: 10.0.0.1:80\n"
	      "  j: \"a\\n\\t\\\"\\\\\\x1b\\u2028\xc3\xa4\"\n");
	shows("bare: {\"a b\": 1, \"<<\": 2, \"#\": 3, \"x:\": 4, \"a,b\": 5}\n", 0,
	      "bare:\n  \"a b\": 1\n  \"<<\": 2\n  \"#\": 3\n  \"x:\": 4\n  \"a,b\": 5\n");
}

static void test_show_origin(void **state)
{
	struct conf_source sources[] = {
		source_of("rp.conf", "log:\n  level: debug\n"),
		source_of("rp\n.conf.d/x.conf", "log:\n  debug: [a]\nbare:\n  l: [{}, {a: 1}]\n")};
	(void)parse_sources(sources, 2, &test_schemas);
	assert_string_equal(shown(CONF_SHOW_ORIGIN), "log:  # rp.conf:1\n"
						     "  level: debug  # rp.conf:2\n"
						     "  debug: [a]  # rp?.conf.d/x.conf:2\n"
						     "bare:  # rp?.conf.d/x.conf:3\n"
						     "  l:  # rp?.conf.d/x.conf:4\n"
						     "  - {}  # rp?.conf.d/x.conf:4\n"
						     "  - a: 1  # rp?.conf.d/x.conf:4\n");
}

static void test_show_defaults(void **state)
{
	good("policy: types\ntypes: {items: [{name: a}], count: 5}\n");
	const char *text = shown(CONF_SHOW_DEFAULTS);
	assert_non_null(strstr(text, "policy: types\ncontrollers: []  # default\n"));
	assert_non_null(strstr(text, "\nmodules:  # default\n  path: [/usr/lib/nri-rp/modules, "
				     "/usr/local/lib/nri-rp/modules]  # default\n"));
	assert_non_null(strstr(text, "\ntypes:\n"
				     "  items:\n"
				     "  - name: a\n"
				     "    max: 0  # default\n"
				     "  count: 5\n"
				     "  bool: true  # default\n"
				     "  int: -3  # default\n"
				     "  number: 0.5  # default\n"
				     "  enum: red  # default\n"
				     "  cpu: 750m  # default\n"
				     "  bytes: 1Gi  # default\n"
				     "  duration: 30s  # default\n"
				     "  cpulist: 0-3  # default\n"
				     "  # cpus: all  # default\n"
				     "  freq: turbo  # default\n"
				     "  # any: as bool  # default\n"
				     "  list: [a, b]  # default\n"));
	good("policy: types\ncontrollers: [types, rdt, bare]\n");
	text = shown(CONF_SHOW_DEFAULTS);
	assert_non_null(strstr(text, "\ntypes:\n  bool: true  # default\n"));
	assert_non_null(strstr(text, "\nrdt:\n  enable: false  # default\n"));
	assert_null(strstr(text, "\nbare"));
}

/* ---- differences ----------------------------------------------------------------------------- */

static int note_change(const struct conf_change *c, void *arg)
{
	char before[CONF_PLACE_MAX], after[CONF_PLACE_MAX];
	(void)buf_printf(arg, "%s: %s -> %s%s\n", c->path,
			 node_found(c->before, before, sizeof before),
			 node_found(c->after, after, sizeof after), c->restart ? ", restart" : "");
	return 0;
}

static void differ(const char *before, const char *after, const char *wanted)
{
	struct conf *old = good(before);
	last.conf = NULL;
	struct conf *new = good(after);
	struct buf out = BUF_INIT;
	assert_int_equal(conf_diff(old, new, note_change, &out), 0);
	assert_string_equal(buf_text(&out), wanted);
	buf_fini(&out);
	conf_free(old);
}

/* Checks that each shown configuration loads to the same result. */
static void test_show_loads_again(void **state)
{
	static const char *const texts[] = {
		"",
		"policy: types\ncontrollers: {rdt: , cpu: required}\n",
		"bare:\n  a: \"x\\n\\u0085y\\ufeff\\U0001F600\"\n  \"b c\": [~, \"~\", \"\", "
		"{\"d\": ~}, [], {}, [[{e: [f]}]]]\n  g: |\n    x\n    y\n",
		"types: {bool: yes, int: -1, number: 1e-3, string: \"# no\", name: \"- no\", enum: "
		"red, cpu: \"2\", list: [\"a, b\", 'c]']}",
		"log: {debug: [\"*\"], klog: {v: \"5\"}}\nmetrics: {listen: "
		"\"[::1]:8891\"}\ncontrol: {socket: /a b, rdt: {enable: false}}",
		"types: {any: {\"\\u00a0\": \"\\u009b\", \"true\": \"no\", \"1\": 1, \"?\": "
		"\"*x\", \"-\": \"&\", \"%\": \"---\", \"!\": \"...\"}}",
	};
	for (size_t i = 0; i < COUNT(texts); i++)
		for (unsigned flags = 0; flags < 4; flags++) {
			good(texts[i]);
			_free_ char *text = strdup(shown(flags));
			assert_non_null(text);
			differ(texts[i], text, "");
			differ(text, texts[i], "");
			if (flags & CONF_SHOW_DEFAULTS)
				continue;
			good(text);
			assert_int_equal(strcmp(shown(0), text) == 0,
					 !(flags & CONF_SHOW_ORIGIN) || !texts[i][0]);
		}
}

static void test_diff_scalars(void **state)
{
	differ("types: {bool: true, cpu: 750m, cpulist: \"0,1,2\"}",
	       "types: {bool: yes, cpu: 0.75, cpulist: 0-2}", "");
	differ("types: {number: 1.50, duration: 90s, freq: 2.4GHz, bytes: 1Ki, amount: 1}",
	       "types: {number: 1.5, duration: 1m30s, freq: 2400MHz, bytes: 1024, amount: 1000m}",
	       "");
	differ("types: {string: a, enum: red, cpu: 1, number: 1}",
	       "types: {string: b, enum: blue, cpu: 2, number: 2}",
	       "types.number: \"1\" -> \"2\"\n"
	       "types.string: \"a\" -> \"b\"\n"
	       "types.enum: \"red\" -> \"blue\"\n"
	       "types.cpu: \"1\" -> \"2\"\n");
	differ("types: {amount: 1, cpus: 0-1}", "types: {amount: \"cpuset:0\", cpus: 0-2}",
	       "types.amount: \"1\" -> \"cpuset:0\"\ntypes.cpus: \"0-1\" -> \"0-2\"\n");
	differ("bare: {x: 1.0}", "bare: {x: 1}", "bare.x: \"1.0\" -> \"1\"\n");
	differ("types: {any: {a: b}}", "types: {any: [a]}", "types.any: a map -> a list\n");
}

static void test_diff_defaults(void **state)
{
	differ("", "types: {bool: true, int: -3, enum: red, list: [a, b], string: x}",
	       "types.string: nothing -> \"x\"\n");
	differ("types: {bool: false, list: [b, a], ints: []}", "",
	       "types.bool: \"false\" -> nothing\ntypes.list: a list -> nothing\ntypes.ints: a "
	       "list -> nothing\n");
	differ("types: {cpus: 0-3}", "types: {}", "types.cpus: \"0-3\" -> nothing\n");
	differ("types: {options: {}, bool: ~}", "types: {bool: ~}", "");
	differ("types: {options: {}, bool: ~}", "types: {int: ~, bool: ~, options: ~}", "");
	differ("log: {debug: []}\nruntime: {index: 90}\ncontrollers: []\n", "", "");
	differ("", "types: {list: [{a: b}]}", "types.list: nothing -> a list\n");
}

static void test_diff_trees(void **state)
{
	differ("types: {items: [{name: a, max: 1}, {name: b}]}",
	       "types: {items: [{name: a, max: 2}, {name: c}]}",
	       "types.items[0].max: \"1\" -> \"2\"\ntypes.items[1].name: \"b\" -> \"c\"\n");
	differ("types: {items: [{name: a}]}", "types: {items: [{name: a}, {name: b}]}",
	       "types.items[b]: nothing -> a map\n");
	differ("types: {options: {a: true, b: auto}}", "types: {options: {b: false, c: auto}}",
	       "types.options.a: \"true\" -> nothing\ntypes.options.b: \"auto\" -> "
	       "\"false\"\ntypes.options.c: nothing -> \"auto\"\n");
	differ("types: {parts: {p: {}}}", "types: {parts: {q: {}}}",
	       "types.parts.p: a map -> nothing\ntypes.parts.q: nothing -> a map\n");
	differ("bare: {a: {b: 1}, l: [1, ~]}", "bare: {a: {b: 2, c: ~}, l: [1, 2]}\n",
	       "bare.a.b: \"1\" -> \"2\"\nbare.a.c: nothing -> nothing\nbare.l[1]: nothing -> "
	       "\"2\"\n");
	differ("bare: {x: 1}\nrdt: {enable: false}\n", "balloons: {reservedResources: {cpu: 1}}\n",
	       "bare: a map -> nothing\nballoons.reservedResources.cpu: nothing -> \"1\"\n");
	differ("bare: {x: ~}\n", "bare: {}\n", "bare.x: nothing -> nothing\n");
	differ("bare:\n", "", "");
	differ("policy: none\nbare: {x: [~, a]}\n", "policy: none\nbare: {x: [~, a]}\n", "");
}

static void test_diff_restart(void **state)
{
	differ("runtime: {index: 10}\ncache: {dir: /x}\n",
	       "runtime: {index: 11, name: other}\nlog: {level: debug}\n",
	       "runtime.name: nothing -> \"other\"\n"
	       "runtime.index: \"10\" -> \"11\"\n"
	       "cache.dir: \"/x\" -> nothing, restart\n"
	       "log.level: nothing -> \"debug\"\n");
	differ("types: {count: 1}", "types: {count: 2}", "types.count: \"1\" -> \"2\", restart\n");
}

static int stop(const struct conf_change *c, void *arg)
{
	const char *const *path = arg;
	return str_eq(c->path, *path) ? 42 : 0;
}

static void test_diff_stops(void **state)
{
	struct conf *old = good(
		"policy: none\nbare: {a: 1, l: [1, 2]}\ntypes: {int: 1, options: {a: auto}}\n");
	last.conf = NULL;
	struct conf *new = good("log: {level: debug}\nbare: {a: 2, l: [1, 3]}\ntypes: {int: 2, "
				"options: {b: auto}}\nfold: {free: 1}\n");
	static const char *paths[] = {"log.level", "bare.a",	      "bare.l[1]",
				      "types.int", "types.options.a", "types.options.b",
				      "fold.free"};
	for (size_t i = 0; i < COUNT(paths); i++)
		assert_int_equal(conf_diff(old, new, stop, &paths[i]), 42);
	const char *none = "policy";
	assert_int_equal(conf_diff(old, new, stop, &none), 0);
	conf_free(old);
}

/* ---- help ------------------------------------------------------------------------------------ */

static void test_help(void **state)
{
	struct buf out = BUF_INIT;
	assert_int_equal(conf_schema_help(&balloons_schema, CONF_TEXT, &out), 0);
	assert_non_null(strstr(buf_text(&out), "reservedResources.cpu\n"
					       "    Value: an amount of CPU (2, 750m), "
					       "cpuset:LIST, exclude-cpuset:LIST or cgroup:PATH.\n"
					       "    Required.\n"
					       "pinCPU\n"
					       "    Value: true or false.\n"
					       "    Default: true.\n"));
	buf_reset(&out);
	assert_int_equal(conf_schema_help(conf_core_schema(), CONF_TEXT, &out), 0);
	assert_non_null(strstr(buf_text(&out), "    A change takes effect after a restart.\n"
					       "    Directory of the state.\n"));
	buf_reset(&out);
	assert_int_equal(conf_schema_help(&broken_schema, CONF_TEXT, &out), -EINVAL);
	static const struct rp_key rows[] = {
		{.path = ".hidden", .type = RP_T_BOOL},
	};
	const struct rp_schema dot = SCHEMA(rows);
	assert_int_equal(conf_schema_help(&dot, CONF_MDOC, &out), -EINVAL);
	static const struct rp_key odd[] = {
		{.path = "a\\b", .type = RP_T_STRING, .fallback = "", .doc = ".x is a \\ b"},
		{.path = "c", .type = RP_T_STRING, .doc = "'tis."},
	};
	const struct rp_schema strange = SCHEMA(odd);
	assert_int_equal(conf_schema_help(&strange, CONF_MDOC, &out), 0);
	assert_string_equal(buf_text(&out),
			    ".It Ic a\\eb\nValue: a text.\nDefault: \"\".\n\\&.x is a \\e b\n"
			    ".It Ic c\nValue: a text.\n\\&'tis.\n");
	buf_fini(&out);
}

/* ---- JSON schema ----------------------------------------------------------------------------- */

static void has(const char *text, const char *fragment)
{
	if (!strstr(text, fragment))
		fail_msg("no %s", fragment);
}

/* Brackets match, outside of strings. */
static void check_nesting(const char *text)
{
	char open[64];
	unsigned depth = 0;
	bool in_string = false;
	for (const char *at = text; *at; at++) {
		if (in_string && *at == '\\')
			at++;
		else if (*at == '"')
			in_string = !in_string;
		else if (!in_string && strchr("[{", *at))
			open[depth++] = *at == '[' ? ']' : '}';
		else if (!in_string && strchr("]}", *at))
			assert_true(depth && open[--depth] == *at);
		assert_true(depth < COUNT(open));
	}
	assert_int_equal(depth, 0);
	assert_false(in_string);
}

static void test_json_schema(void **state)
{
	const struct conf_named_schema modules[] = {
		{"types", &types_schema}, {"balloons", &balloons_schema}, {"fold", &fold_schema}};
	static const char *const fragments[] = {
		"{\"$schema\":\"https://json-schema.org/draft/2020-12/"
		"schema\",\"title\":\"rp.conf\",\"type\":\"object\",\"properties\":{\"policy\":{",
		"\"types\":{\"type\":[\"object\",\"null\"],\"properties\":{\"bool\":{\"type\":["
		"\"boolean\",\"string\",\"integer\",\"null\"],\"pattern\":",
		"\"description\":\"A truth.\",\"default\":true},",
		"\"int\":{\"type\":[\"integer\",\"null\"],\"default\":-3},",
		"\"count\":{\"type\":[\"integer\",\"null\"],\"minimum\":0},",
		"\"debt\":{\"type\":[\"integer\",\"null\"],\"maximum\":-1},",
		"\"percent\":{\"type\":[\"integer\",\"null\"],\"minimum\":0,\"maximum\":100},",
		"\"number\":{\"type\":[\"number\",\"null\"],\"default\":0.5},",
		"\"name\":{\"type\":[\"string\",\"number\",\"boolean\",\"null\"],\"minLength\":1},",
		"\"level\":{\"enum\":[\"\",\"core\",\"numa\",null]},",
		"\"cpu\":{\"type\":[\"string\",\"number\",\"null\"],\"default\":\"750m\"},",
		"\"duration\":{\"type\":[\"string\",\"number\",\"null\"],\"default\":\"30s\"},",
		"\"any\":{},",
		"\"map\":{\"type\":[\"object\",\"null\"],\"minProperties\":1,\"description\":"
		"\"Free.\"},",
		"\"list\":{\"type\":[\"array\",\"null\"],\"minItems\":1},",
		"\"ints\":{\"type\":[\"array\",\"null\"],\"items\":{\"type\":[\"integer\",\"null\"]"
		",\"minimum\":1,"
		"\"maximum\":9}},",
		"\"grid\":{\"type\":[\"array\",\"null\"],\"items\":{\"type\":[\"array\",\"null\"],"
		"\"items\":{\"type\":["
		"\"number\",\"null\"]}}},",
		"\"default\":0}},\"additionalProperties\":false,\"required\":[\"name\"]}},",
		"\"options\":{\"type\":[\"object\",\"null\"],\"properties\":{\"size\":{\"type\":["
		"\"integer\",\"null\"]}},"
		"\"additionalProperties\":{\"enum\":[\"true\",true,\"false\",false,\"auto\",null]}}"
		",",
		"\"additionalProperties\":false},\"fold\":{",
		"\"additionalProperties\":true},\"apiVersion\":{\"type\":\"string\"},",
		"\"additionalProperties\":{\"type\":[\"object\",\"null\"]}}",
		"\"index\":{\"type\":[\"integer\",\"null\"],\"minimum\":0,\"maximum\":99,",
	};
	struct buf out = BUF_INIT;
	assert_int_equal(conf_json_schema(modules, COUNT(modules), &out), 0);
	check_nesting(buf_text(&out));
	for (size_t i = 0; i < COUNT(fragments); i++)
		has(buf_text(&out), fragments[i]);
	buf_reset(&out);
	const struct conf_named_schema broken = {"broken", &broken_schema};
	assert_int_equal(conf_json_schema(&broken, 1, &out), -EINVAL);
	buf_fini(&out);
}

/* Checks that a long kind of a module makes no broken definition. */
static void test_crds_long_kind(void **state)
{
	char kind[1001];
	memset(kind, 'k', sizeof kind - 1);
	kind[sizeof kind - 1] = '\0';
	struct rp_schema schema = balloons_schema;
	schema.cr_kind = kind;
	const struct conf_named_schema module = {"balloons", &schema};
	struct buf out = BUF_INIT;
	assert_int_equal(conf_crds(&module, 1, &out), 0);
	check_nesting(buf_text(&out));
	has(buf_text(&out), kind);
	buf_fini(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_show),	      cmocka_unit_test(test_show_nulls),
		cmocka_unit_test(test_show_scalars),  cmocka_unit_test(test_show_origin),
		cmocka_unit_test(test_show_defaults), cmocka_unit_test(test_show_loads_again),
		cmocka_unit_test(test_diff_scalars),  cmocka_unit_test(test_diff_defaults),
		cmocka_unit_test(test_diff_trees),    cmocka_unit_test(test_diff_restart),
		cmocka_unit_test(test_diff_stops),    cmocka_unit_test(test_help),
		cmocka_unit_test(test_json_schema),   cmocka_unit_test(test_crds_long_kind),
	};
	return cmocka_run_group_tests(tests, NULL, forget_last);
}
