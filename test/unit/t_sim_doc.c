/* SPDX-License-Identifier: Apache-2.0 */
#include "core/lib/conf/conf.h"
#include "core/lib/machines/doc.h"
#include "core/lib/util/str.h"
#include "t_sim.h"

static struct doc parsed(const char *text)
{
	struct doc doc;
	struct err err = ERR_INIT;
	if (doc_parse("f.yaml", text, strlen(text), &doc, &err))
		fail_msg("%s", err.text);
	return doc;
}

static void check_dump(const char *yaml, const char *json)
{
	struct doc doc = parsed(yaml);
	char *text = json_dumps(json_array_get(doc.documents, 0), JSON_COMPACT);
	assert_string_equal(text, json);
	free(text);
	doc_fini(&doc);
}

static void scalars(void **state)
{
	check_dump("{a: 1, b: -7, c: true, d: false}", "{\"a\":1,\"b\":-7,\"c\":true,\"d\":false}");
	check_dump("{a: \"1\", b: 'true', c: 0-3}", "{\"a\":\"1\",\"b\":\"true\",\"c\":\"0-3\"}");
	check_dump("{a: 0.12, b: 007, c: +1, d: 1e3}",
		   "{\"a\":\"0.12\",\"b\":\"007\",\"c\":\"+1\",\"d\":\"1e3\"}");
	check_dump("{a: 99999999999999999999}", "{\"a\":\"99999999999999999999\"}");
	check_dump("{a: , b: ~, c: null}", "{\"a\":null,\"b\":null,\"c\":null}");
	check_dump("a: [x, {y: z}, []]", "{\"a\":[\"x\",{\"y\":\"z\"},[]]}");
}

static void documents_and_places(void **state)
{
	char buf[64];
	struct doc doc = parsed("a: 1\n---\nb:\n- one\n- {two: 2}\n");
	assert_int_equal(json_array_size(doc.documents), 2);
	const json_t *list = json_object_get(json_array_get(doc.documents, 1), "b");
	assert_string_equal(doc_where(&doc, json_array_get(list, 1), buf, sizeof buf), "f.yaml:5");
	assert_string_equal(doc_where(&doc, NULL, buf, sizeof buf), "f.yaml");
	doc_fini(&doc);
}

static void wrong_texts(void **state)
{
	static const char *const table[] = {"a: [", "{a: 1, a: 2}", "- 1", "\xff", "a: !!int 3"};
	for (unsigned i = 0; i < sizeof table / sizeof *table; i++) {
		struct doc doc;
		struct err err = ERR_INIT;
		assert_true(doc_parse("f.yaml", table[i], strlen(table[i]), &doc, &err) < 0);
		assert_non_null(strstr(err.text, "f.yaml"));
	}
	struct doc doc;
	struct err err = ERR_INIT;
	assert_int_equal(doc_parse("f.yaml", "", DOC_FILE_MAX + 1, &doc, &err), -E2BIG);
	assert_true(doc_read("/nonexistent/file", &doc, &err) < 0);
}

/* Checks that a document that is written and read again is equal, including its types. */
static void written_again(void **state)
{
	static const char text[] = "policy: static\nlog: {level: info, debug: [a, \"b: "
				   "c\"]}\nstatic:\n  a: 0.5\n  \"x.y\": true\n"
				   "  empty: {}\n  deep: {er: {still: [1, {k: v}]}}\n  text: "
				   "\"two\\nlines: \\\"q\\\" \\u00e9\"\n  no: null\n";
	struct buf out = BUF_INIT;
	struct doc doc = parsed(text);
	assert_int_equal(doc_write_yaml(json_array_get(doc.documents, 0), &out), 0);
	struct doc again = parsed(buf_text(&out));
	assert_true(json_equal(doc.documents, again.documents));
	assert_non_null(strstr(buf_text(&out), "policy: \"static\"\n"));
	assert_non_null(strstr(buf_text(&out), "  a: 0.5\n"));
	doc_fini(&doc);
	doc_fini(&again);
	buf_fini(&out);
}

/* ---- getters --------------------------------------------------------------------------------- */

static void getters(void **state)
{
	struct err err = ERR_INIT;
	_json_ json_t *map = sim_json(
		"{\"t\": \"x\", \"n\": 7, \"b\": true, \"m\": \"2Gi\", \"none\": null, \"l\": [], "
		"\"o\": {}, \"r\": 2.5}");
	const char *text;
	int64_t n;
	bool b;
	const json_t *node;
	char buf[ARG_NUMBER_MAX];
	assert_int_equal(arg_text(ARGS(map, &err), "t", "-", &text), 0);
	assert_string_equal(text, "x");
	assert_int_equal(arg_text(ARGS(map, &err), "none", "-", &text), 0);
	assert_string_equal(text, "-");
	assert_int_equal(arg_text(ARGS(map, &err), "n", "-", &text), -EINVAL);
	assert_int_equal(arg_int(ARGS(map, &err), "n", 0, 0, 10, &n), 0);
	assert_int_equal(n, 7);
	assert_int_equal(arg_int(ARGS(map, &err), "n", 0, 0, 6, &n), -ERANGE);
	assert_int_equal(arg_int(ARGS(map, &err), "t", 0, 0, 6, &n), -EINVAL);
	assert_int_equal(arg_int(ARGS(map, &err), "x", 3, 0, 6, &n), 0);
	assert_int_equal(n, 3);
	assert_int_equal(arg_bool(ARGS(map, &err), "b", false, &b), 0);
	assert_true(b);
	assert_int_equal(arg_bool(ARGS(map, &err), "n", false, &b), -EINVAL);
	assert_int_equal(arg_amount(ARGS(map, &err), "m", ARG_BYTES, 0, &n), 0);
	assert_int_equal(n, INT64_C(2) << 30);
	assert_int_equal(arg_amount(ARGS(map, &err), "r", ARG_MILLI, 0, &n), 0);
	assert_int_equal(n, 2500);
	assert_int_equal(arg_amount(ARGS(map, &err), "t", ARG_MS, 0, &n), -EINVAL);
	assert_int_equal(arg_map(ARGS(map, &err), "o", &node), 0);
	assert_non_null(node);
	assert_int_equal(arg_map(ARGS(map, &err), "l", &node), -EINVAL);
	assert_int_equal(arg_list(ARGS(map, &err), "l", &node), 0);
	assert_int_equal(arg_list(ARGS(map, &err), "none", &node), 0);
	assert_null(node);
	assert_string_equal(arg_scalar(json_object_get(map, "b"), buf), "true");
	assert_null(arg_scalar(json_object_get(map, "l"), buf));
}

static void known_keys(void **state)
{
	struct err err = ERR_INIT;
	_json_ json_t *map = sim_json("{\"containers\": 1, \"nmae\": 2}"), *list = sim_json("[]");
	assert_int_equal(arg_check(ARGS(map, &err), "containers nmae", "pod"), 0);
	assert_int_equal(arg_check(ARGS(map, &err), "containers name", "pod"), -EINVAL);
	assert_string_equal(err.text, "pod: unknown key \"nmae\", did you mean \"name\"?");
	assert_int_equal(arg_check(ARGS(map, &err), "containers", "pod"), -EINVAL);
	assert_int_equal(arg_check(ARGS(list, &err), "containers", "pod"), -EINVAL);
	assert_int_equal(arg_check(ARGS(NULL, &err), "containers", "pod"), -EINVAL);
}

static void text_that_is_not_utf8(void **state)
{
	_json_ json_t *map = json_object();
	doc_put_text(map, "k", "\xff\xfe");
	assert_string_equal(json_string_value(json_object_get(map, "k")), "(not UTF-8)");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(scalars),
		cmocka_unit_test(documents_and_places),
		cmocka_unit_test(wrong_texts),
		cmocka_unit_test(written_again),
		cmocka_unit_test(getters),
		cmocka_unit_test(known_keys),
		cmocka_unit_test(text_that_is_not_utf8),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
