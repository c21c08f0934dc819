/* SPDX-License-Identifier: Apache-2.0 */
/* core/lib/conf/yaml.c: from bytes to trees, with places and limits. */
#include "core/lib/conf/documents.h"
#include "core/lib/conf/fragment.h"
#include "test/unit/t_conf.h"

static rp_cfg at(const char *path)
{
	return conf_get(conf_root(last.conf), path);
}

static void check_place(const char *path, const char *wanted)
{
	char place[CONF_PLACE_MAX];
	assert_non_null(at(path));
	assert_string_equal(conf_place(at(path), place, sizeof place), wanted);
}

static void test_kinds(void **state)
{
	good("bare:\n  s: word\n  q: \"null\"\n  e: \"\"\n  n: null\n  t: ~\n  v:\n  l: [1, two, "
	     "[3]]\n  m: {a: b}\n");
	assert_int_equal(conf_kind(at("bare.s")), RP_NODE_SCALAR);
	assert_int_equal(conf_kind(at("bare.q")), RP_NODE_SCALAR);
	assert_string_equal(conf_text(at("bare.q"), "x"), "null");
	assert_string_equal(conf_text(at("bare.e"), "x"), "");
	assert_int_equal(conf_kind(at("bare.n")), RP_NODE_NULL);
	assert_int_equal(conf_kind(at("bare.t")), RP_NODE_NULL);
	assert_int_equal(conf_kind(at("bare.v")), RP_NODE_NULL);
	assert_int_equal(conf_kind(at("bare.l")), RP_NODE_LIST);
	assert_int_equal(conf_kind(at("bare.m")), RP_NODE_MAP);
	assert_int_equal(conf_count(at("bare.l")), 3);
	assert_string_equal(conf_text(conf_item(at("bare.l"), 1), ""), "two");
	assert_string_equal(conf_text(conf_item(conf_item(at("bare.l"), 2), 0), ""), "3");
	good("bare: {a: Null, b: NULL, c: nULL}");
	assert_int_equal(conf_kind(at("bare.a")), RP_NODE_NULL);
	assert_int_equal(conf_kind(at("bare.b")), RP_NODE_NULL);
	assert_int_equal(conf_kind(at("bare.c")), RP_NODE_SCALAR);
}

static void test_getters_on_nothing(void **state)
{
	good("bare: {s: word, l: [a], m: {k: v}}");
	assert_int_equal(conf_kind(NULL), RP_NODE_NULL);
	assert_null(conf_get(NULL, "a"));
	assert_null(at("bare.x"));
	assert_null(at("bare.s.x"));
	assert_null(at("bare.l.0"));
	assert_int_equal(conf_count(NULL), 0);
	assert_int_equal(conf_count(at("bare.s")), 0);
	assert_null(conf_item(at("bare.l"), 1));
	assert_null(conf_item(at("bare.s"), 0));
	assert_string_equal(conf_key(at("bare.m"), 0), "k");
	assert_string_equal(conf_key(at("bare.m"), 1), "");
	assert_string_equal(conf_key(at("bare.l"), 0), "");
	assert_string_equal(conf_key(NULL, 0), "");
	assert_string_equal(conf_text(NULL, "fallback"), "fallback");
	assert_string_equal(conf_text(at("bare.m"), "fallback"), "fallback");
	assert_int_equal(conf_value(NULL, RP_T_INT, 7), 7);
	assert_int_equal(conf_value(at("bare.m"), RP_T_INT, 7), 7);
	assert_int_equal(conf_value(at("bare.s"), RP_T_INT, 7), 7);
	assert_true(conf_number(NULL, 0.5) > 0.4);
	assert_true(conf_number(at("bare.s"), 0.5) > 0.4);
	char place[CONF_PLACE_MAX] = "x";
	assert_string_equal(conf_where(NULL, place, sizeof place), "");
	assert_string_equal(conf_path(NULL, place, sizeof place), "");
	assert_string_equal(conf_place(NULL, place, sizeof place), "");
}

static void test_keys_with_dots(void **state)
{
	good("bare: {a.b: 1, a: {b: 2, c.d: 3}, x.y/z: {k: 4}}");
	assert_string_equal(conf_text(at("bare.a.b"), ""), "1");
	assert_string_equal(conf_text(at("bare.a.c.d"), ""), "3");
	assert_string_equal(conf_text(conf_get(at("bare"), "x.y/z"), ""), "");
	assert_null(conf_get(at("bare"), "x.y/z.k"));
	char path[400];
	memset(path, 'p', sizeof path);
	memcpy(path + sizeof path - 3, ".q", 3);
	assert_null(conf_get(at("bare"), path));
}

static void test_places(void **state)
{
	good("# comment\n"
	     "policy: none\n"
	     "bare:\n"
	     "  key: value\n"
	     "  list:\n"
	     "  - a\n"
	     "  -   {x: 1, \"y\": 2}\n"
	     "  - - b\n"
	     "    -   c\n"
	     "  \xc3\xa4\xc3\xb6: {k: 1}   # characters count, not bytes\n");
	check_place("policy", "rp.conf:2:1: policy");
	check_place("bare", "rp.conf:3:1: bare");
	check_place("bare.key", "rp.conf:4:3: bare.key");
	check_place("bare.list", "rp.conf:5:3: bare.list");
	check_place("bare.\xc3\xa4\xc3\xb6.k", "rp.conf:10:8: bare.\xc3\xa4\xc3\xb6.k");
	char place[CONF_PLACE_MAX];
	rp_cfg list = at("bare.list");
	assert_string_equal(conf_place(conf_item(list, 0), place, sizeof place),
			    "rp.conf:6:5: bare.list[0]");
	assert_string_equal(conf_place(conf_item(list, 1), place, sizeof place),
			    "rp.conf:7:7: bare.list[1]");
	assert_string_equal(conf_place(conf_get(conf_item(list, 1), "y"), place, sizeof place),
			    "rp.conf:7:14: bare.list[1].y");
	assert_string_equal(conf_place(conf_item(conf_item(list, 2), 1), place, sizeof place),
			    "rp.conf:9:9: bare.list[2][1]");
	assert_string_equal(conf_where(conf_item(list, 1), place, sizeof place), "rp.conf:7:7");
	assert_string_equal(conf_path(conf_item(list, 1), place, sizeof place), "bare.list[1]");
	assert_string_equal(conf_place(conf_item(list, 1), place, 12), "rp.conf:7:7");
	assert_string_equal(conf_place(conf_item(list, 1), place, 4), "rp.");
	assert_string_equal(conf_where(conf_item(list, 1), place, 1), "");
	assert_ptr_equal(conf_where(conf_item(list, 1), NULL, 0), NULL);
	assert_string_equal(conf_path(at("bare.\xc3\xa4\xc3\xb6"), place, 7), "bare.");
}

static void test_line_breaks(void **state)
{
	good("policy: none\r\nbare:\r\n  a: 1\r\n");
	check_place("bare.a", "rp.conf:3:3: bare.a");
	good("policy: none\rbare:\r  a: 1\r");
	check_place("bare.a", "rp.conf:3:3: bare.a");
	bad("policy: none\r\nbare:\r\n  a: \a\r\n",
	    "rp.conf:3:6: character U+0007 is not allowed\n");
	bad("a: 1\rb: \a", "rp.conf:2:4: character U+0007 is not allowed\n");
	bad("a: 1\xc2\x85"
	    "b: \xff",
	    "rp.conf:2:4: byte 0xff is not valid UTF-8\n");
	bad("a: 1 \xe2\x80\xa8"
	    "b: \xff",
	    "rp.conf:2:4: byte 0xff is not valid UTF-8\n");
}

static void bad_bytes(const char *text, size_t len, const char *lines)
{
	struct conf_source source = {.name = "rp.conf", .text = text, .len = len};
	(void)parse_sources(&source, 1, &test_schemas);
	assert_string_equal(problems(), lines);
	assert_int_equal(last.rc, -EINVAL);
}

static void test_bytes(void **state)
{
	bad_bytes("a: b\0c", 6, "rp.conf:1:5: a NUL byte; this is not a text file\n");
	bad("\xef\xbb\xbfpolicy: none\n",
	    "rp.conf:1:1: starts with a byte order mark; save it as UTF-8 without one\n");
	bad_bytes("\xff\xfep\0", 4, "rp.conf:1:1: is UTF-16; save it as UTF-8\n");
	bad_bytes("\xfe\xff\0p", 4, "rp.conf:1:1: is UTF-16; save it as UTF-8\n");
	bad("a: 1\nb: \xc3(\n", "rp.conf:2:4: byte 0xc3 is not valid UTF-8\n");
	bad("a: \xe2\x82", "rp.conf:1:4: byte 0xe2 is not valid UTF-8\n");
	bad("a: \xf0\x9f\x98", "rp.conf:1:4: byte 0xf0 is not valid UTF-8\n");
	bad("a: \x80", "rp.conf:1:4: byte 0x80 is not valid UTF-8\n");
	bad("a: \xed\xa0\x80", "rp.conf:1:4: byte 0xed is not valid UTF-8\n");
	bad("a: \x1b[31m", "rp.conf:1:4: character U+001B is not allowed\n");
	bad("a: \x7f", "rp.conf:1:4: character U+007F is not allowed\n");
	bad("a: \xc2\x80", "rp.conf:1:4: character U+0080 is not allowed\n");
	bad("a: \xef\xbf\xbe", "rp.conf:1:4: character U+FFFE is not allowed\n");
	bad("a: \xef\xbb\xbf", "rp.conf:1:4: character U+FEFF is not allowed\n");
	good("bare: {a: \xf0\x9f\x98\x80 \xe2\x82\xac \xc2\xa0}\n");
	assert_string_equal(conf_text(at("bare.a"), ""), "\xf0\x9f\x98\x80 \xe2\x82\xac \xc2\xa0");
	bad("bare: {a: \"x\\0y\"}", "rp.conf:1:11: a NUL character in a value\n");
	bad("bare: {\"x\\0y\": 1}", "rp.conf:1:8: a control character in a key\n");
	bad("bare: {\"x\\ey\": 1}", "rp.conf:1:8: a control character in a key\n");
	bad("bare: {\"x\\x7f\": 1}", "rp.conf:1:8: a control character in a key\n");
	bad("bare: {\"x\\u009b\": 1}", "rp.conf:1:8: a control character in a key\n");
	good("bare: {\"\\u00a0\": \"\\u009b\"}");
}

static void test_tabs(void **state)
{
	bad("bare:\n\ta: 1\n", "rp.conf:2:1: a tab in the indentation; use spaces\n");
	bad("bare:\n  \ta: 1\n", "rp.conf:2:3: a tab in the indentation; use spaces\n");
	good("bare:\t{a: 1}\t# fine\n");
	good("bare:\n  a: |\n    x\n    \ty\n");
	assert_string_equal(conf_text(at("bare.a"), ""), "x\n\ty\n");
}

static void test_syntax(void **state)
{
	bad("a: [1, 2\nb: 3\n", "rp.conf:2:2: not valid YAML: did not find expected ',' or ']', "
				"while parsing a flow sequence "
				"that begins at line 1\n");
	bad("a: b: c\n",
	    "rp.conf:1:5: not valid YAML: mapping values are not allowed in this context\n");
	bad("a: \"b\n", "rp.conf:2:1: not valid YAML: found unexpected end of stream, while "
			"scanning a quoted scalar that begins "
			"at line 1\n");
	bad("a: %b\n", "rp.conf:1:4: not valid YAML: found character that cannot start any token, "
		       "while scanning for the next "
		       "token that begins at line 1\n");
	bad("a: \"\\ud800\"\n", "rp.conf:1:7: not valid YAML: found invalid Unicode character "
				"escape code, while parsing a quoted "
				"scalar that begins at line 1\n");
	bad("]", "rp.conf:1:1: not valid YAML: did not find expected node content, while parsing a "
		 "block node that begins at "
		 "line 1\n");
}

static void test_not_a_map(void **state)
{
	bad("- a\n- b\n", "rp.conf:1:1: expected keys with values, found a list\n");
	bad("\n  hello\n", "rp.conf:2:3: expected keys with values, found \"hello\"\n");
	good("");
	good("# nothing\n");
	good("---\n---\nnull\n---\n~\n");
}

static void test_keys(void **state)
{
	bad("bare: {[a]: 1}", "rp.conf:1:8: a key must be a word, found a list\n");
	bad("bare: {{a: b}: 1}", "rp.conf:1:8: a key must be a word, found a map\n");
	bad("bare: {\"\": 1}", "rp.conf:1:8: an empty key\n");
	bad("bare: {a: &x 1, *x : 2}", "rp.conf:1:17: a key must be a word, found an alias\n");
	bad("bare:\n  a: &x {k: 1}\n  b:\n    <<: *x\n",
	    "rp.conf:4:5: merge keys (<<) are not supported; repeat the keys\n");
	good("bare: {\"<<\": 1, ? b : 2, true: 3, 5: 6}");
	assert_string_equal(conf_text(at("bare.<<"), ""), "1");
	assert_string_equal(conf_text(at("bare.5"), ""), "6");
	char text[600] = "bare:\n  ? ", expected[100];
	memset(text + strlen(text), 'k', CONF_KEY_MAX + 1);
	(void)snprintf(expected, sizeof expected, "rp.conf:2:5: a key longer than %u bytes\n",
		       CONF_KEY_MAX);
	bad(text, expected);
	text[strlen(text) - 1] = '\0';
	good(text);
}

static void test_duplicates(void **state)
{
	bad("bare:\n  a: 1\n  b: 2\n  a: {x: [1]}\nbare: 5\n",
	    "rp.conf:4:3: bare.a: set twice, first at rp.conf:2:3\n"
	    "rp.conf:5:1: bare: set twice, first at rp.conf:1:1\n");
	bad("bare: {l: [{n: 1, n: 2}]}",
	    "rp.conf:1:19: bare.l[0].n: set twice, first at rp.conf:1:13\n");
	/* The parser continues, and finds other problems in the same run. */
	bad("policy: none\npolicy: none\nlog: {level: loud}\n",
	    "rp.conf:2:1: policy: set twice, first at rp.conf:1:1\n"
	    "rp.conf:3:7: log.level: expected error, warning, notice, info or debug, found "
	    "\"loud\"\n");
	good("bare: {a: 1}\n---\nbare: {a: 2}\n");
	assert_string_equal(conf_text(at("bare.a"), ""), "2");
}

static void test_tags(void **state)
{
	good("bare: !!map {a: !!str 5, b: ! 6, c: !!seq [1], d: !!str }");
	assert_string_equal(conf_text(at("bare.a"), ""), "5");
	assert_int_equal(conf_kind(at("bare.d")), RP_NODE_SCALAR);
	bad("types: {int: !!str 5}",
	    "rp.conf:1:9: types.int: expected an integer, found \"5\" in quotes\n");
	bad("bare: {a: !!int 5}",
	    "rp.conf:1:11: tags are not supported, found tag:yaml.org,2002:int\n");
	bad("bare: {a: !mine {}}", "rp.conf:1:11: tags are not supported, found !mine\n");
	bad("bare: {a: !!set {}}",
	    "rp.conf:1:11: tags are not supported, found tag:yaml.org,2002:set\n");
	bad("bare: {a: !!map [1]}",
	    "rp.conf:1:11: tags are not supported, found tag:yaml.org,2002:map\n");
}

static void test_aliases(void **state)
{
	good("bare:\n  a: &one {k: [1, \"2\", ~], m: {x: y}}\n  b: *one\n  l:\n  - *one\n  - &two "
	     "word\n  - *two\n");
	assert_string_equal(conf_text(at("bare.b.m.x"), ""), "y");
	assert_int_equal(conf_count(at("bare.b.k")), 3);
	assert_int_equal(conf_kind(conf_item(at("bare.b.k"), 2)), RP_NODE_NULL);
	assert_string_equal(conf_text(conf_item(at("bare.l"), 2), ""), "word");
	/* The copy stands where the alias is, what is in it where it was written. */
	check_place("bare.b", "rp.conf:3:3: bare.b");
	check_place("bare.b.m.x", "rp.conf:2:32: bare.b.m.x");
	assert_ptr_not_equal(at("bare.a.m"), at("bare.b.m"));
	good("bare: {l: [&x 1, *x, &x 2, *x]}\n");
	assert_string_equal(conf_text(conf_item(at("bare.l"), 1), ""), "1");
	assert_string_equal(conf_text(conf_item(at("bare.l"), 3), ""), "2");
	bad("bare: {a: *nobody}", "rp.conf:1:11: this alias has no anchor &nobody before it\n");
	bad("bare: {a: &x 1}\n---\nbare: {b: *x}\n",
	    "rp.conf:3:11: this alias has no anchor &x before it\n");
	bad("bare: &x {a: {b: [*x]}}", "rp.conf:1:19: alias *x is within its own anchor\n");
}

static char *repeat(const char *begin, const char *part, unsigned n, const char *end)
{
	struct buf b = BUF_INIT;
	(void)buf_add_str(&b, begin);
	for (unsigned i = 0; i < n; i++)
		(void)buf_add_str(&b, part);
	(void)buf_add_str(&b, end);
	char *text = strdup(buf_text(&b));
	buf_fini(&b);
	assert_non_null(text);
	return text;
}

static void test_alias_bomb(void **state)
{
	bad("bare:\n"
	    "  a: &a [x, x, x, x, x, x, x, x, x, x]\n"
	    "  b: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a, *a]\n"
	    "  c: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b, *b]\n"
	    "  d: &d [*c, *c, *c, *c, *c, *c, *c, *c, *c, *c]\n"
	    "  e: &e [*d, *d, *d, *d, *d, *d, *d, *d, *d, *d]\n",
	    "rp.conf:6:10: more than 20000 values in the configuration\n");
}

static void test_alias_depth(void **state)
{
	/* 17 levels, and the same within 17 levels. */
	_free_ char *open = repeat("bare: {a: &x ", "[", 16, "");
	_free_ char *closed = repeat(open, "]", 16, ", b: ");
	_free_ char *again = repeat(closed, "[", 15, "*x");
	_free_ char *text = repeat(again, "]", 15, "}\n");
	(void)parse(text);
	assert_int_equal(last.rc, -EINVAL);
	assert_non_null(strstr(problems(), ": nested deeper than 32 levels\n"));
	_free_ char *fine_open = repeat(closed, "[", 14, "*x");
	_free_ char *fine = repeat(fine_open, "]", 14, "}\n");
	good(fine);
}

static void test_depth(void **state)
{
	_free_ char *open = repeat("bare: ", "[", CONF_DEPTH_MAX, "");
	_free_ char *text = repeat(open, "]", CONF_DEPTH_MAX, "\n");
	(void)parse(text);
	assert_string_equal(problems(), "rp.conf:1:38: nested deeper than 32 levels\n");
	assert_int_equal(last.rc, -EINVAL);
	_free_ char *less_open = repeat("bare: {a: ", "[", CONF_DEPTH_MAX - 2, "");
	_free_ char *less = repeat(less_open, "]", CONF_DEPTH_MAX - 2, "}\n");
	good(less);
	_free_ char *maps = repeat("bare: ", "{a: ", 100000, "");
	(void)parse(maps);
	assert_int_equal(last.rc, -EINVAL);
	assert_non_null(strstr(problems(), "nested deeper than 32 levels\n"));
}

static void test_sizes(void **state)
{
	_free_ char *fits = repeat("bare: {l: [", "a,", CONF_NODES_MAX - 3, "]}\n");
	good(fits);
	_free_ char *nodes = repeat("bare: {l: [", "a,", CONF_NODES_MAX - 2, "]}\n");
	(void)parse(nodes);
	assert_int_equal(last.rc, -EINVAL);
	assert_non_null(strstr(problems(), ": more than 20000 values in the configuration\n"));
	_free_ char *large = repeat("#", "##########", CONF_FILE_MAX / 10 + 1, "\n");
	bad(large, "rp.conf: larger than 1048576 bytes\n");
	large[CONF_FILE_MAX - 1] = '\n';
	large[CONF_FILE_MAX] = '\0';
	good(large);
	struct conf_source many[5];
	for (unsigned i = 0; i < COUNT(many); i++)
		many[i] = source_of(i < 4 ? "rp.conf" : "last.conf", large);
	(void)parse_sources(many, 4, NULL);
	assert_int_equal(last.rc, 0);
	(void)parse_sources(many, 5, NULL);
	assert_string_equal(
		problems(),
		"last.conf: more than 4194304 bytes of configuration including this file\n");
}

static void test_members(void **state)
{
	struct buf b = BUF_INIT;
	(void)buf_add_str(&b, "bare:\n");
	for (unsigned i = 0; i < CONF_MEMBERS_MAX; i++)
		(void)buf_printf(&b, "  k%u: %u\n", i, i);
	good(buf_text(&b));
	assert_int_equal(conf_count(at("bare")), CONF_MEMBERS_MAX);
	assert_int_equal(conf_value(at("bare.k4095"), RP_T_INT, -1), 4095);
	(void)buf_add_str(&b, "  k4096: 1\n");
	bad(buf_text(&b), "rp.conf:4098:3: bare.k4096: more than 4096 keys in a map\n");
	buf_fini(&b);
}

static void test_anchors(void **state)
{
	struct buf b = BUF_INIT;
	(void)buf_add_str(&b, "bare:\n");
	for (unsigned i = 0; i <= CONF_ANCHORS_MAX; i++)
		(void)buf_printf(&b, "  k%u: &a%u x\n", i, i);
	bad(buf_text(&b), "rp.conf:258:9: more than 256 anchors in a document\n");
	buf_fini(&b);
}

/* Checks that a broken source does not hide the problems of the next source. */
static void test_all_sources(void **state)
{
	struct conf_source sources[] = {source_of("rp.conf", "a: [\n"),
					source_of("rp.conf.d/1.conf", "- b\n")};
	(void)parse_sources(sources, 2, &test_schemas);
	assert_int_equal(last.rc, -EINVAL);
	assert_int_equal(last.errs.n_errors, 2);
	assert_int_equal(last.errs.items[0].source, 0);
	assert_int_equal(last.errs.items[1].source, 1);
	assert_string_equal(last.errs.items[1].text,
			    "rp.conf.d/1.conf:1:1: expected keys with values, found a list");
}

/* ---- conf/documents.c ------------------------------------------------------------------- */

static int documents(const char *text, struct documents *ret, struct err *err)
{
	return documents_parse("d.yaml", text, strlen(text), ret, err);
}

static void test_documents(void **state)
{
	struct err err = ERR_INIT;
	struct documents d;
	assert_int_equal(documents("# none\n---\na: 1\n---\n---\nb: \"1\"\nc:\n- 2\n", &d, &err),
			 0);
	assert_int_equal(d.n_roots, 2);
	rp_cfg a = conf_get(d.roots[0], "a"), b = conf_get(d.roots[1], "b");
	assert_false(conf_quoted(a));
	assert_true(conf_quoted(b));
	assert_int_equal(conf_line(a), 3);
	assert_int_equal(conf_line(conf_item(conf_get(d.roots[1], "c"), 0)), 8);
	char place[CONF_PLACE_MAX];
	assert_string_equal(conf_where(b, place, sizeof place), "d.yaml:6:1");
	assert_false(conf_quoted(NULL));
	assert_int_equal(conf_line(NULL), 0);
	documents_fini(&d);
	documents_fini(&d);
	assert_int_equal(documents("", &d, &err), 0);
	assert_int_equal(d.n_roots, 0);
	documents_fini(&d);
}

static void test_documents_refused(void **state)
{
	static const struct {
		const char *text, *wanted;
	} table[] = {
		{"- a\n", "d.yaml:1:1: expected keys with values, found a list"},
		{"a: 1\n---\na: 2\na: 3\n", "d.yaml:4:1: a: set twice, first at d.yaml:3:1"},
		{"a: [\n\n---\nb: 1", "d.yaml:3:1: not valid YAML"},
	};
	for (size_t i = 0; i < COUNT(table); i++) {
		struct err err = ERR_INIT;
		struct documents d;
		assert_int_equal(documents(table[i].text, &d, &err), -EINVAL);
		assert_true(str_has_prefix(err.text, table[i].wanted));
	}
}

/* ---- conf/fragment.c -------------------------------------------------------------------- */

static void test_fragments(void **state)
{
	struct fragment *f = NULL;
	struct err err = ERR_INIT;
	rp_cfg root;
	assert_int_equal(fragment_parse("{\"a\": [1, {b: c}]}", &f, &root, &err), 0);
	assert_int_equal(conf_count(conf_get(root, "a")), 2);
	assert_string_equal(conf_text(conf_get(conf_item(conf_get(root, "a"), 1), "b"), ""), "c");
	assert_null(fragment_free(f));
	assert_int_equal(fragment_parse("  # nothing\n", &f, &root, &err), 0);
	assert_null(root);
	(void)fragment_free(f);
	assert_null(fragment_free(NULL));
}

static void test_fragments_refused(void **state)
{
	static const struct {
		const char *text, *wanted;
	} table[] = {
		{"[1, 2]", "line 1, column 1: expected keys with values, found a list"},
		{"a: 1\nb: {\n", "line 3, column 1: not valid YAML"},
		{"a: 1\na: 2\n", "line 2, column 1: a: set twice"},
		{"a: 1\n---\nb: 1\n", "more than one document"},
	};
	char *large = malloc(FRAGMENT_TEXT_MAX + 2);
	struct fragment *f = NULL;
	rp_cfg root;
	for (size_t i = 0; i < COUNT(table); i++) {
		struct err err = ERR_INIT;
		assert_int_equal(fragment_parse(table[i].text, &f, &root, &err), -EINVAL);
		assert_true(str_has_prefix(err.text, table[i].wanted));
	}
	assert_non_null(large);
	memset(large, ' ', FRAGMENT_TEXT_MAX + 1);
	large[FRAGMENT_TEXT_MAX + 1] = '\0';
	struct err err = ERR_INIT;
	assert_int_equal(fragment_parse(large, &f, &root, &err), -E2BIG);
	large[FRAGMENT_TEXT_MAX] = '\0';
	assert_int_equal(fragment_parse(large, &f, &root, &err), 0);
	(void)fragment_free(f);
	free(large);
}

/* Checks a file that exists and cannot be read: address 0 is not mapped. */
static void test_unreadable(void **state)
{
	forget();
	conf_errors_init(&last.errs);
	assert_int_equal(conf_load("/proc/self/mem", &test_schemas, &last.conf, &last.errs), -EIO);
	assert_int_equal(last.errs.n_errors, 1);
	assert_true(str_has_prefix(last.errs.items[0].text, "/proc/self/mem: cannot be read: "));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_getters_on_nothing),
		cmocka_unit_test(test_keys_with_dots),
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_line_breaks),
		cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_tabs),
		cmocka_unit_test(test_syntax),
		cmocka_unit_test(test_not_a_map),
		cmocka_unit_test(test_keys),
		cmocka_unit_test(test_duplicates),
		cmocka_unit_test(test_tags),
		cmocka_unit_test(test_aliases),
		cmocka_unit_test(test_alias_bomb),
		cmocka_unit_test(test_alias_depth),
		cmocka_unit_test(test_depth),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_members),
		cmocka_unit_test(test_anchors),
		cmocka_unit_test(test_all_sources),
		cmocka_unit_test(test_fragments),
		cmocka_unit_test(test_fragments_refused),
		cmocka_unit_test(test_unreadable),
		cmocka_unit_test(test_documents),
		cmocka_unit_test(test_documents_refused),
	};
	return cmocka_run_group_tests(tests, NULL, forget_last);
}
