/* SPDX-License-Identifier: Apache-2.0 */
/* The language of expectations, beside what test/scenario/test_sim.py asks of it. */
#include "core/nri-rp-sim/map.h"
#include "t_sim_one.h"

static int set_up(void **state)
{
	s = sim_made("{\"machine\": \"n4c16\"}");
	assert_step(s, "{\"existing\": [{\"pod\": \"web\", \"containers\": ["
		       "{\"name\": \"app\", \"cpu\": 2, \"memory\": \"1Mi\", \"cpus\": \"2-3\", "
		       "\"mems\": 0},"
		       "{\"name\": \"log-it\", \"cpus\": \"4-15\"}]},"
		       "{\"pod\": \"web\", \"namespace\": \"prod\", \"containers\": [{\"name\": "
		       "\"app\", \"cpus\": \"8\"}]}]}");
	return 0;
}

static bool holds(const char *text)
{
	struct err err = ERR_INIT;
	int r = holds_or(text, &err);
	if (r < 0)
		fail_msg("%s", err.text);
	return r;
}

static void names(void **state)
{
	assert_true(holds("cpus(web/log-it) == 4-15"));
	assert_true(holds("cpus(default/web/app) == 2-3"));
	assert_true(holds("cpus(prod/web/app) == 8"));
	assert_true(holds("mems(default/web/app) == 0"));
	assert_true(holds("log-it == 4-15"));
	assert_true(holds("disjoint(default/web/app, log-it)"));
	assert_false(holds("disjoint(prod/web/app, log-it)"));
}

static void truths(void **state)
{
	assert_true(holds("1"));
	assert_false(holds("0"));
	assert_true(holds("0-1"));
	assert_false(holds("0-1 & 2"));
	assert_true(holds("'x'"));
	assert_false(holds("''"));
	assert_true(holds("log-it"));
	assert_false(holds("not log-it"));
	assert_false(holds("1 == 1 == 2"));
	assert_true(holds("not not 1"));
	assert_true(holds("0 or 1 and 1"));
	assert_false(holds("(0 or 1) and 0"));
}

static void reasons(void **state)
{
	struct buf why = BUF_INIT;
	bool ret;
	assert_int_equal(expect_holds(s, "count(cpus(log-it)) == 3", &ret, &why, NULL), 0);
	assert_false(ret);
	assert_string_equal(buf_text(&why),
			    "  cpus(log-it) is 4-15\n  count(cpus(log-it)) is 12\n");
	buf_reset(&why);
	assert_int_equal(expect_holds(s, "cpus(log-it) & 0", &ret, &why, NULL), 0);
	assert_int_equal(expect_holds(s, "state(log-it) == 'gone'", &ret, &why, NULL), 0);
	assert_non_null(strstr(buf_text(&why), "state(log-it) is 'running'"));
	buf_fini(&why);
}

static void unknown_names(void **state)
{
	struct err err = ERR_INIT;
	bool ret;
	assert_int_equal(expect_holds(s, "cpus(gone) == 1", &ret, NULL, &err), -ENOENT);
	assert_int_equal(expect_holds(s, "gone(app)", &ret, NULL, &err), -EINVAL);
}

/* Checks that any text yields an answer or an error. */
static void any_text(void **state)
{
	static const char *const words[] = {
		"cpus", "(",   ")",   "app",  "web/app", "==",	     "!=",   "<=",
		"in",	"not", "and", "or",   "-",	 "+",	     "&",    "|",
		"0-3",	"7",   "'t'", "\"",   "count",	 "disjoint", ",",    "online",
		"<",	"\t",  "?",   "9999", "env",	 "node",     "union"};
	unsigned n_errors = 0, n_words = sizeof words / sizeof *words;
	srand(42);
	for (unsigned i = 0; i < 20000; i++) {
		char text[256] = "";
		bool ret;
		struct err err = ERR_INIT;
		for (int k = rand() % 14; k >= 0; k--) {
			strcat(text, words[(unsigned)rand() % n_words]);
			strcat(text, rand() % 3 ? " " : "");
		}
		int r = expect_holds(s, text, &ret, NULL, &err);
		assert_true(r == 0 || r == -EINVAL || r == -ENOENT);
		assert_true((r == 0) == (err.text[0] == '\0'));
		n_errors += r != 0;
	}
	assert_true(n_errors > 1000 && n_errors < 20000);
}

/* ---- the map --------------------------------------------------------------------------------- */

static void draw(bool colour, const json_t *before, struct out *out)
{
	out_init(out, &(struct term){.width = 100, .colour = colour, .utf8 = true});
	map_draw(s, before, out);
}

static void machine_map(void **state)
{
	struct out out;
	draw(false, NULL, &out);
	const char *text = buf_text(&out.buf);
	/* The daemon is not available, so exclusive CPUs are unknown. */
	assert_non_null(strstr(text, "package 0\n"
				     "  node 0  2 GiB, 4 CPUs: 2 shared, 2 free\n"
				     "     0 ·  1 · │  2 a  3 a\n"
				     "  node 1  2 GiB, 4 CPUs: 4 shared\n"
				     "     4 b  5 b │  6 b  7 b\n"));
	assert_non_null(strstr(text, "package 1\n"
				     "  node 2  2 GiB, 4 CPUs: 4 shared\n"
				     "     8 c  9 b │ 10 b 11 b\n"));
	assert_non_null(
		strstr(text, "  a  web/app                burstable   CPUs 2-3, memory 0\n"));
	assert_non_null(strstr(text, "  c  prod/web/app"));
	out_fini(&out);
	draw(true, NULL, &out);
	assert_non_null(strstr(buf_text(&out.buf), "ma\x1b[0m"));
	out_fini(&out);
	_json_ json_t *before = map_remember(s);
	assert_step(s, "{\"offline\": \"3\"}");
	draw(false, before, &out);
	assert_non_null(strstr(buf_text(&out.buf), "CPUs 2, memory 0  (was CPUs 2-3, memory 0)"));
	assert_step(s, "{\"online\": \"3\"}");
	out_fini(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names),    cmocka_unit_test(truths),
		cmocka_unit_test(reasons),  cmocka_unit_test(unknown_names),
		cmocka_unit_test(any_text), cmocka_unit_test(machine_map),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
