/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/lib/util/err.h"
#include "core/lib/util/log.h"
#include "core/lib/util/loop.h"
#include "core/lib/util/str.h"
#include "core/lib/util/clock.h"

#define LOG_SOURCE "test"

/* ---- err ------------------------------------------------------------------------------------- */

static void test_err_set(void **state)
{
	struct err e = ERR_INIT;
	assert_int_equal(err_set(&e, -EINVAL, "bad %s", "thing"), -EINVAL);
	assert_int_equal(e.code, -EINVAL);
	assert_string_equal(e.text, "bad thing");
	assert_int_equal(err_errno(&e, -ENOENT, "cannot open %s", "x"), -ENOENT);
	assert_string_equal(e.text, "cannot open x: No such file or directory");
	assert_int_equal(err_prefix(&e, "rp.conf:%d: ", 7), -ENOENT);
	assert_string_equal(e.text, "rp.conf:7: cannot open x: No such file or directory");
}

static void test_err_null(void **state)
{
	assert_int_equal(err_set(NULL, -EINVAL, "x"), -EINVAL);
	assert_int_equal(err_errno(NULL, -EIO, "x"), -EIO);
	assert_int_equal(err_prefix(NULL, "x"), 0);
	assert_string_equal(err_text(NULL, -ENOENT), "No such file or directory");
}

static void test_err_text(void **state)
{
	struct err e = ERR_INIT;
	assert_string_equal(err_text(&e, 0), "no error");
	assert_string_equal(err_text(&e, -EIO), "Input/output error");
	assert_string_equal(err_text(&e, EIO), "Input/output error");
	assert_string_equal(err_text(&e, -100000), "unknown error");
	err_set(&e, -EIO, "%s", "a sentence");
	assert_string_equal(err_text(&e, -EIO), "a sentence");
}

/* Checks that a long text is cut between characters, at any offset. */
static void test_err_cuts(void **state)
{
	char text[2 * ERR_TEXT_MAX + 1];
	for (size_t i = 0; i < ERR_TEXT_MAX; i++)
		memcpy(text + 2 * i, "\xc3\xa4", 2);
	text[sizeof text - 1] = '\0';
	for (int offset = 0; offset < 4; offset++) {
		struct err e = ERR_INIT;
		err_set(&e, -EIO, "%*s%s", offset, "", text);
		assert_true(strlen(e.text) > ERR_TEXT_MAX - 5);
		assert_true(utf8_valid(e.text, strlen(e.text)));
		err_prefix(&e, "front: ");
		assert_true(str_has_prefix(e.text, "front: "));
		assert_true(strlen(e.text) < ERR_TEXT_MAX);
		assert_true(utf8_valid(e.text, strlen(e.text)));
		err_errno(&e, -EIO, "%s", text);
		assert_true(utf8_valid(e.text, strlen(e.text)));
		err_prefix(&e, "%s", text);
		assert_true(utf8_valid(e.text, strlen(e.text)));
		assert_int_equal(e.code, -EIO);
	}
}

/* ---- log ------------------------------------------------------------------------------------- */

struct capture {
	int pipe[2];
	int stderr_fd;
	char text[16384];
};

static void capture_begin(struct capture *c)
{
	assert_int_equal(pipe2(c->pipe, O_NONBLOCK), 0);
	c->stderr_fd = dup(STDERR_FILENO);
	assert_true(dup2(c->pipe[1], STDERR_FILENO) >= 0);
}

static const char *capture_take(struct capture *c)
{
	ssize_t n = read(c->pipe[0], c->text, sizeof c->text - 1);
	c->text[n > 0 ? n : 0] = '\0';
	return c->text;
}

static const char *capture_end(struct capture *c)
{
	capture_take(c);
	(void)dup2(c->stderr_fd, STDERR_FILENO);
	(void)close(c->stderr_fd);
	(void)close(c->pipe[0]);
	(void)close(c->pipe[1]);
	return c->text;
}

static void as_journal(struct capture *c)
{
	struct stat st;
	char id[64];
	assert_int_equal(fstat(c->pipe[1], &st), 0);
	(void)snprintf(id, sizeof id, "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
	assert_int_equal(setenv("JOURNAL_STREAM", id, 1), 0);
	log_init("prog");
	unsetenv("JOURNAL_STREAM");
}

static void test_levels(void **state)
{
	enum log_level level = LOG_ERROR;
	assert_int_equal(log_level_from_name("debug", &level), 0);
	assert_int_equal(level, LOG_DEBUG);
	assert_int_equal(log_level_from_name("Debug", &level), -EINVAL);
	assert_int_equal(log_level_from_name("", &level), -EINVAL);
	for (int i = LOG_ERROR; i <= LOG_DEBUG; i++) {
		assert_int_equal(log_level_from_name(log_level_name((enum log_level)i), &level), 0);
		assert_int_equal(level, i);
	}
	assert_string_equal(log_level_name((enum log_level)99), "unknown");
	assert_string_equal(log_level_name((enum log_level)0), "unknown");
	log_set_level(LOG_WARNING);
	assert_int_equal(log_get_level(), LOG_WARNING);
	assert_true(log_wants("x", LOG_WARNING));
	assert_false(log_wants("x", LOG_NOTICE));
	log_set_level(LOG_INFO);
}

static void test_source_in_brackets(void **state)
{
	struct capture c;
	capture_begin(&c);
	as_journal(&c);
	log_set_source(true);
	log_write("cache", LOG_INFO, "a");
	log_write("topology-aware", LOG_INFO, "b");
	log_write("a-policy-from-elsewhere", LOG_INFO, "c");
	log_set_source(false);
	log_write("cache", LOG_INFO, "d");
	assert_string_equal(capture_end(&c), "<6>[cache         ] a\n<6>[topology-aware] b\n"
					     "<6>[a-policy-from-elsewhere] c\n<6>cache: d\n");
	log_init("prog");
}

static void test_debug_sources(void **state)
{
	const char *const some[] = {"cache", "policy"}, *const all[] = {"*"};
	const char *many[LOG_SOURCES_MAX + 1];
	assert_false(log_wants("cache", LOG_DEBUG));
	assert_int_equal(log_set_debug(some, 2), 0);
	assert_true(log_wants("cache", LOG_DEBUG));
	assert_true(log_wants("policy", LOG_DEBUG));
	assert_false(log_wants("wire", LOG_DEBUG));
	assert_int_equal(log_set_debug(all, 1), 0);
	assert_true(log_wants("wire", LOG_DEBUG));
	for (size_t i = 0; i <= LOG_SOURCES_MAX; i++)
		many[i] = "s";
	assert_int_equal(log_set_debug(many, LOG_SOURCES_MAX + 1), -E2BIG);
	assert_true(log_wants("wire", LOG_DEBUG)); /* the set before stays */
	assert_int_equal(log_set_debug(many, LOG_SOURCES_MAX), 0);
	assert_true(log_wants("s", LOG_DEBUG));
	assert_int_equal(log_set_debug(NULL, 0), 0);
	assert_false(log_wants("s", LOG_DEBUG));
}

/* Returns the clock of the lines: time() may lag behind it by a tick, and so by a second. */
static time_t seconds_now(void)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec;
}

static void test_plain_lines(void **state)
{
	struct capture c;
	unsetenv("JOURNAL_STREAM");
	log_init("prog");
	capture_begin(&c);
	time_t before = seconds_now();
	log_warning("disk %d%% full\n", 93);
	log_debug("not wanted");
	log_write(LOG_SOURCE, LOG_DEBUG, "not wanted either");
	time_t after = seconds_now();
	capture_end(&c);
	struct tm tm = {0};
	char *rest = strptime(c.text, "%Y-%m-%dT%H:%M:%S", &tm);
	assert_non_null(rest);
	time_t written = timegm(&tm);
	assert_true(written >= before && written <= after);
	int ms, end = 0;
	assert_int_equal(sscanf(rest, ".%3dZ%n", &ms, &end), 1);
	assert_string_equal(rest + end, " prog warning: test: disk 93% full\n");
}

static void test_journal_lines(void **state)
{
	struct capture c;
	capture_begin(&c);
	as_journal(&c);
	log_error("one");
	log_info("two");
	log_notice("%s", "");
	assert_string_equal(capture_take(&c), "<3>test: one\n<6>test: two\n<5>test: \n");
	/* The stream belongs to another process and is not the journal. */
	setenv("JOURNAL_STREAM", "1:1", 1);
	log_init("prog");
	log_error("three");
	assert_true(capture_take(&c)[0] != '<');
	setenv("JOURNAL_STREAM", "nonsense", 1);
	log_init("prog");
	log_error("four");
	assert_true(capture_end(&c)[0] != '<');
	unsetenv("JOURNAL_STREAM");
}

static struct log_held *again(struct log_held *held)
{
	(void)log_held_free(held);
	return log_held_new();
}

/* Checks that a child holds lines of level warning and below until it is clear whether its
 * parent will log them. */
static void test_held(void **state)
{
	struct capture c;
	struct log_held *held = log_held_new();
	char text[600], whole[700];
	assert_non_null(held);
	capture_begin(&c);
	as_journal(&c);
	log_set_level(LOG_INFO);
	log_hold(held, false);
	log_warning("one %d", 1);
	log_notice("two");
	log_info("three");
	log_debug("four");
	assert_string_equal(capture_take(&c), "");
	/* Errors are written at once, as the child may die before its held lines are written. */
	log_error("five");
	assert_string_equal(capture_take(&c), "<3>test: five\n");
	log_hold(NULL, false);
	log_tell_held(held);
	assert_string_equal(capture_take(&c), "<4>test: one 1\n<5>test: two\n<6>test: three\n");
	held = again(held);
	log_tell_held(held);
	log_warning("six");
	assert_string_equal(capture_take(&c), "<4>test: six\n");
	/* For who wants to see all: at once, and marked as what it is; and again when it counts. */
	log_set_level(LOG_DEBUG);
	log_hold(held, false);
	log_warning("seven");
	assert_string_equal(capture_take(&c), "<7>test: seven\n");
	log_hold(NULL, false);
	log_tell_held(held);
	assert_string_equal(capture_take(&c), "<4>test: seven\n");
	/* Lines beyond the capacity are written at once, and long lines are cut. */
	log_set_level(LOG_WARNING);
	held = again(held);
	log_hold(held, false);
	memset(text, 'x', sizeof text - 1);
	text[sizeof text - 1] = '\0';
	for (unsigned i = 0; i < LOG_HELD_LINES; i++)
		log_warning("%s", i ? "y" : text);
	log_notice("not wanted");
	assert_string_equal(capture_take(&c), "");
	log_warning("too many");
	assert_string_equal(capture_take(&c), "<4>test: too many\n");
	log_hold(NULL, false);
	log_tell_held(held);
	text[LOG_HELD_MAX - 1] = '\0';
	(void)snprintf(whole, sizeof whole, "<4>test: %s\n<4>test: y\n", text);
	assert_int_equal(strncmp(capture_end(&c), whole, strlen(whole)), 0);
	log_set_level(LOG_INFO);
	(void)log_held_free(held);
}

/* Checks that held lines that were overwritten by stray writes still end, have valid levels, and
 * stay within the buffer. */
static void test_held_scribbled(void **state)
{
	struct capture c;
	struct log_held *held = log_held_new();
	assert_non_null(held);
	capture_begin(&c);
	as_journal(&c);
	log_hold(held, false);
	log_warning("one");
	log_hold(NULL, false);
	memset(held, 0xff, sizeof(uint32_t)); /* how many there are */
	log_tell_held(held);
	unsigned n = 0;
	for (const char *p = capture_take(&c); (p = strchr(p, '\n')); p++)
		n++;
	assert_int_equal(n, LOG_HELD_LINES);
	memset(held, 0xff, LOG_HELD_LINES * LOG_HELD_MAX);
	log_tell_held(held);
	assert_int_equal(strncmp(capture_end(&c), "<4>????", 7), 0);
	(void)log_held_free(held);
}

static void test_escapes(void **state)
{
	struct capture c;
	capture_begin(&c);
	as_journal(&c);
	log_error("a\nb\tc\033[31m\x7f\r\n");
	assert_string_equal(capture_take(&c), "<3>test: a\\nb\\tc\\x1b[31m\\x7f\n");
	log_error("\xc3\xa4\xe2\x82\xac \xff\xc3( \xc2\x9b"
		  "31m");
	assert_string_equal(capture_end(&c), "<3>test: \xc3\xa4\xe2\x82\xac \\xff\\xc3( \\xc2\\x9b"
					     "31m\n");
}

static void test_long_lines(void **state)
{
	struct capture c;
	char text[20000];
	capture_begin(&c);
	as_journal(&c);
	memset(text, 'x', sizeof text);
	text[sizeof text - 1] = '\0';
	log_error("%s", text);
	capture_take(&c);
	size_t len = strlen(c.text);
	assert_true(len > 4000 && len < 4200);
	assert_true(str_has_suffix(c.text, "xxx...\n"));
	/* Escapes make a line of bearable length too long: no piece of one is left. */
	memset(text, '\1', 3000);
	text[3000] = '\0';
	log_error("%s", text);
	capture_end(&c);
	assert_true(strlen(c.text) < 4200);
	assert_true(str_has_suffix(c.text, "\\x01...\n"));
}

static void test_errno_survives(void **state)
{
	struct capture c;
	capture_begin(&c);
	int copy = dup(STDERR_FILENO);
	(void)close(STDERR_FILENO);
	errno = EDOM;
	log_error("into the void");
	int after = errno;
	(void)dup2(copy, STDERR_FILENO);
	(void)close(copy);
	capture_end(&c);
	assert_int_equal(after, EDOM);
}

static void test_limit(void **state)
{
	struct log_limit limit = LOG_LIMIT(3, 60000);
	struct capture c;
	capture_begin(&c);
	as_journal(&c);
	for (int i = 0; i < 10; i++)
		assert_int_equal(log_allowed(&limit, LOG_SOURCE), i < 3);
	assert_string_equal(capture_take(&c), "");
	limit.since_ms -= 60000; /* a minute later */
	assert_true(log_allowed(&limit, LOG_SOURCE));
	assert_string_equal(capture_take(&c), "<5>test: suppressed 7 messages like the next one\n");
	limit.since_ms -= 60000;
	assert_true(log_allowed(&limit, LOG_SOURCE));
	assert_string_equal(capture_end(&c), "");
}

static void test_clocks(void **state)
{
	uint64_t ns = clock_ns(), us = clock_us(), ms = clock_ms(), again = clock_ns();
	assert_true(us >= ns / 1000 && ms >= ns / 1000000);
	assert_true(us <= again / 1000 && ms <= again / 1000000);
	uint64_t wall_s = clock_wall_ns() / 1000000000u;
	uint64_t now = (uint64_t)time(NULL);
	assert_true(wall_s + 1 >= now && wall_s <= now + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_err_set),	       cmocka_unit_test(test_err_null),
		cmocka_unit_test(test_err_text),       cmocka_unit_test(test_err_cuts),
		cmocka_unit_test(test_levels),	       cmocka_unit_test(test_source_in_brackets),
		cmocka_unit_test(test_debug_sources),  cmocka_unit_test(test_plain_lines),
		cmocka_unit_test(test_journal_lines),  cmocka_unit_test(test_held),
		cmocka_unit_test(test_held_scribbled), cmocka_unit_test(test_escapes),
		cmocka_unit_test(test_long_lines),     cmocka_unit_test(test_errno_survives),
		cmocka_unit_test(test_limit),	       cmocka_unit_test(test_clocks),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
