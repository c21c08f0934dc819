/* SPDX-License-Identifier: Apache-2.0 */
/* nri-rpctl's text: what terminals get, columns, units. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/lib/term/table.c"
#include "core/lib/term/out.c"
#include "core/lib/term/units.c"

#include <fcntl.h>
#include <pty.h>

static struct out o;

static void begin(unsigned width, bool colour, bool utf8)
{
	const struct term term = {width, colour, utf8};
	out_init(&o, &term);
}

static void assert_out(const char *text)
{
	assert_string_equal(buf_text(&o.buf), text);
	out_fini(&o);
}

/* ---- text ------------------------------------------------------------------------------------ */

static void test_hostile_text(void **state)
{
	begin(0, false, true);
	out_text(&o, "a\033[31mb\nc\td\x7f\xc2\x9b"
		     "1m\xe2\x80\xaexyz\xff\xe2\x81\xa6ü→");
	assert_out("a?[31mb?c?d??1m?xyz??ü→");
	begin(0, false, true);
	out_lines(&o, "a\n\tb\033c\r");
	assert_out("a\n\tb?c?");
}

static void test_ascii(void **state)
{
	begin(0, false, false);
	out_text(&o, "1 → 2… ü ≥ 3 │ ✓");
	assert_out("1 -> 2... ? >= 3 | +");
}

static void test_styles(void **state)
{
	begin(0, true, true);
	out_styled(&o, RED, "a");
	out_styled(&o, PLAIN, "b");
	out_heading(&o, "c");
	assert_out("\033[31ma\033[0mb\033[1mc\033[0m\n");
	begin(0, false, true);
	out_styled(&o, RED, "a");
	out_style(&o, BOLD);
	assert_out("a");
}

static void test_widths(void **state)
{
	assert_int_equal(text_width(""), 0);
	assert_int_equal(text_width("aü→"), 3);
	assert_int_equal(text_cut("aü→b", 2), 3);
	assert_int_equal(text_cut("aü→b", 3), 6);
	assert_int_equal(text_cut("ab", 9), 2);
	assert_int_equal(text_cut("ab", 0), 0);
}

static void test_wrap(void **state)
{
	begin(20, false, true);
	out_field(&o, "Name", "aaaa bbbb cccc");
	assert_out("Name          aaaa\n              bbbb\n              cccc\n");
	begin(20, false, true);
	out_put(&o, "  ");
	out_wrap(&o, "0-3,8-11,16-19,24-27,32", 2, 4);
	assert_out("  0-3,8-11,16-19,\n    24-27,32");
	/* A word that is too long stays whole. */
	begin(10, false, true);
	out_wrap(&o, "a-very-long-word b", 0, 2);
	assert_out("a-very-long-word\n  b");
	begin(0, false, true);
	out_wrap(&o, "a b  c", 0, 2);
	assert_out("a b  c");
	char longest[600];
	memset(longest, 'x', sizeof longest - 1);
	longest[sizeof longest - 1] = '\0';
	begin(0, false, true);
	out_wrap(&o, longest, 0, 0);
	assert_out(longest);
}

static void test_wide_name(void **state)
{
	begin(0, false, true);
	out_field(&o, "A name that is long", "x");
	out_field(&o, "B", NULL);
	assert_out("A name that is long x\nB             ");
}

static void test_printf(void **state)
{
	begin(0, false, false);
	out_printf(&o, "%d → %s", 1, "x");
	assert_out("1 -> x");
}

/* ---- tables ---------------------------------------------------------------------------------- */

static const struct column columns[] = {
	{.title = "Name", .flex = true},
	{.title = "N", .right = true},
	{.title = "Text", .flex = true, .drop = 2},
	{.title = "Extra", .drop = 9},
};

static void fill(unsigned width, bool colour, bool utf8)
{
	begin(width, colour, utf8);
	struct table *t = table_new(&o.term, columns, 4);
	table_add(t, PLAIN, "one");
	table_add(t, PLAIN, "1");
	table_add(t, PLAIN, "something of some length");
	table_add(t, RED, "xx");
	table_add(t, PLAIN, "two-is-longer\n");
	table_add(t, PLAIN, "1000");
	table_add(t, PLAIN, NULL);
	table_add(t, PLAIN, "");
	assert_int_equal(table_rows(t), 2);
	assert_null(table_end(t, &o));
}

static void test_table(void **state)
{
	fill(0, false, true);
	assert_out("Name               N  Text                      Extra\n"
		   "one                1  something of some length  xx\n"
		   "two-is-longer?  1000  -                         -\n");
	fill(0, true, true);
	assert_non_null(strstr(buf_text(&o.buf), "\033[31mxx\033[0m\n"));
	assert_non_null(strstr(buf_text(&o.buf), "\033[1mName\033[0m          "));
	out_fini(&o);
}

static void test_narrow_table(void **state)
{
	/* The extra column goes first, then text is cut, then columns go. */
	fill(50, false, true);
	assert_out("Name               N  Text\n"
		   "one                1  something of some length\n"
		   "two-is-longer?  1000  -\n");
	fill(40, false, true);
	assert_out("Name               N  Text\n"
		   "one                1  something of some…\n"
		   "two-is-longer?  1000  -\n");
	fill(30, false, false);
	assert_out("Name               N\n"
		   "one                1\n"
		   "two-is-longer?  1000\n");
	fill(19, false, false);
	assert_out("Name              N\n"
		   "one               1\n"
		   "two-is-longe~  1000\n");
	/* The table cannot become narrower. */
	fill(5, false, true);
	assert_out("Name             N\n"
		   "one              1\n"
		   "two-is-long…  1000\n");
}

static void test_empty_table(void **state)
{
	begin(0, false, true);
	struct table *t = table_new(&o.term, columns, 4);
	assert_int_equal(table_rows(t), 0);
	(void)table_end(t, &o);
	assert_out("");
	begin(0, false, true);
	assert_null(table_new(&o.term, columns, COLUMNS_MAX + 1));
	table_add(NULL, PLAIN, "x");
	assert_int_equal(table_rows(NULL), 0);
	(void)table_end(NULL, &o);
	assert_int_equal(o.buf.failed, -ENOMEM);
	out_fini(&o);
}

static void test_large_table(void **state)
{
	begin(0, false, true);
	struct table *t = table_new(&o.term, columns, 4);
	for (unsigned i = 0; i < 4 * 300; i++)
		table_add(t, PLAIN, "x");
	assert_int_equal(table_rows(t), 300);
	(void)table_end(t, &o);
	out_fini(&o);
}

/* ---- units ----------------------------------------------------------------------------------- */

static void test_units(void **state)
{
	char b[UNIT_MAX];
	assert_string_equal(unit_bytes(0, b), "0 B");
	assert_string_equal(unit_bytes(1023, b), "1023 B");
	assert_string_equal(unit_bytes(1024, b), "1 KiB");
	assert_string_equal(unit_bytes(1536, b), "1.5 KiB");
	assert_string_equal(unit_bytes(UINT64_C(300) << 20, b), "300 MiB");
	assert_string_equal(unit_bytes((UINT64_C(300) << 20) + (1 << 19), b), "300 MiB");
	assert_string_equal(unit_bytes(UINT64_MAX, b), "15.9 EiB");
	assert_string_equal(unit_cpu(2000, b), "2");
	assert_string_equal(unit_cpu(0, b), "0");
	assert_string_equal(unit_cpu(250, b), "250m");
	assert_string_equal(unit_cpu(1500, b), "1.5");
	assert_string_equal(unit_cpu(1250, b), "1250m");
	assert_string_equal(unit_us(999, b), "999 µs");
	assert_string_equal(unit_us(1234, b), "1.2 ms");
	assert_string_equal(unit_us(12345, b), "12 ms");
	assert_string_equal(unit_us(1234567, b), "1.2 s");
	assert_string_equal(unit_age(-5, b), "0s");
	assert_string_equal(unit_age(59, b), "59s");
	assert_string_equal(unit_age(61, b), "1m 1s");
	assert_string_equal(unit_age(7260, b), "2h 1m");
	assert_string_equal(unit_age(90000, b), "1d 1h");
	assert_string_equal(unit_count(1, "pod", "pods", b), "1 pod");
	assert_string_equal(unit_count(0, "pod", "pods", b), "0 pods");
}

static void test_times(void **state)
{
	char b[UNIT_MAX];
	(void)setenv("TZ", "UTC", 1);
	tzset();
	assert_int_equal(time_parse("2026-01-01T00:00:00.123Z"), 1767225600);
	assert_int_equal(time_parse(""), 0);
	assert_int_equal(time_parse("yesterday"), 0);
	assert_string_equal(unit_time("2026-01-31T12:34:56.789Z", b), "Jan 31 12:34:56");
	assert_string_equal(unit_time("2026-12-01T02:03:04Z", b), "Dec  1 02:03:04");
	assert_string_equal(unit_time("x", b), "");
}

/* ---- the terminal ---------------------------------------------------------------------------- */

static void test_terminal(void **state)
{
	struct term t;
	int master, slave, null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	const struct winsize size = {.ws_row = 25, .ws_col = 120};
	(void)unsetenv("COLUMNS");
	(void)unsetenv("NO_COLOR");
	(void)setenv("TERM", "xterm", 1);
	(void)setenv("LC_ALL", "C.UTF-8", 1);
	term_init(&t, null);
	assert_int_equal(t.width, 0);
	assert_false(t.colour);
	assert_int_equal(openpty(&master, &slave, NULL, NULL, &size), 0);
	term_init(&t, slave);
	assert_int_equal(t.width, 120);
	assert_true(t.colour);
	assert_true(t.utf8);
	(void)setenv("NO_COLOR", "1", 1);
	(void)setenv("COLUMNS", "200", 1);
	(void)setenv("LC_ALL", "C", 1);
	term_init(&t, slave);
	assert_int_equal(t.width, 200);
	assert_false(t.colour);
	assert_false(t.utf8);
	(void)setenv("NO_COLOR", "", 1);
	(void)setenv("COLUMNS", "7", 1);
	term_init(&t, slave);
	assert_int_equal(t.width, 120);
	assert_true(t.colour);
	(void)setenv("TERM", "dumb", 1);
	term_init(&t, slave);
	assert_false(t.colour);
	(void)unsetenv("TERM");
	term_init(&t, slave);
	assert_false(t.colour);
	const struct winsize tiny = {.ws_row = 5, .ws_col = 10}, none = {.ws_row = 0};
	assert_int_equal(ioctl(slave, TIOCSWINSZ, &tiny), 0);
	term_init(&t, slave);
	assert_int_equal(t.width, WIDTH_MIN);
	assert_int_equal(ioctl(slave, TIOCSWINSZ, &none), 0);
	term_init(&t, slave);
	assert_int_equal(t.width, WIDTH_DEFAULT);
	(void)close(master);
	(void)close(slave);
	(void)close(null);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hostile_text), cmocka_unit_test(test_ascii),
		cmocka_unit_test(test_styles),	     cmocka_unit_test(test_widths),
		cmocka_unit_test(test_wrap),	     cmocka_unit_test(test_wide_name),
		cmocka_unit_test(test_printf),	     cmocka_unit_test(test_table),
		cmocka_unit_test(test_narrow_table), cmocka_unit_test(test_empty_table),
		cmocka_unit_test(test_large_table),  cmocka_unit_test(test_units),
		cmocka_unit_test(test_times),	     cmocka_unit_test(test_terminal),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
