/* SPDX-License-Identifier: Apache-2.0 */
/* The watchdog, in children that it may end. No test depends on how long something takes, only on
 * what is waited for. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/nri-rpd/host/breadcrumb.h"
#include "core/nri-rpd/host/watchdog.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/loop.h"
#include "test/unit/coverage_exit.h"
#include "core/lib/util/clock.h"

#define LIMIT_MS 60u
#define FAR_MS (5 * LIMIT_MS)

static char dir[64], path[96];
static const char mod[RP_NAME_MAX] = "slow";
static char said[2048]; /* by the last child, on stderr */

static int setup(void **state)
{
	strcpy(dir, "/tmp/t_watchdog-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	(void)snprintf(path, sizeof path, "%s/breadcrumb", dir);
	return 0;
}

static int teardown(void **state)
{
	(void)unlink(path);
	return rmdir(dir);
}

static void pass_ms(uint64_t ms)
{
	for (uint64_t end = clock_ms() + ms; clock_ms() < end;) {
		struct timespec ts = {0, 1000000};
		(void)nanosleep(&ts, NULL);
	}
}

/* Runs fn in a child with a crumb and a watchdog; returns its wait status. */
static int in_child(void (*fn)(struct crumb *c, struct watchdog *w))
{
	int fds[2], status;
	assert_int_equal(pipe(fds), 0);
	pid_t pid = fork();
	if (pid == 0) {
		struct crumb *c = NULL;
		struct watchdog *w = NULL;
		(void)dup2(fds[1], STDERR_FILENO);
		if (crumb_open(path, &c, NULL) < 0 || watchdog_new(c, LIMIT_MS, &w, NULL) < 0)
			_exit(99);
		fn(c, w);
		(void)watchdog_free(w);
		(void)crumb_close(c);
		exit(0);
	}
	(void)close(fds[1]);
	size_t n = 0;
	for (ssize_t r = 1; r > 0 && n<sizeof said - 1; n += r> 0 ? (size_t)r : 0)
		r = read(fds[0], said + n, sizeof said - 1 - n);
	said[n] = '\0';
	(void)close(fds[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

/* Checks the required text alone, as a busy machine may cause reports of slow requests. */
static void has_said(const char *text)
{
	if (!strstr(said, text))
		fail_msg("\"%s\", expected \"%s\"", said, text);
}

static void hang(struct crumb *c, struct watchdog *w)
{
	watchdog_begin(w);
	crumb_enter(c, CRUMB_LOOP, mod, CRUMB_ALLOCATE, "c1");
	for (;;)
		pass_ms(1000);
}

static void test_hang(void **state)
{
	(void)unsetenv("JOURNAL_STREAM");
	int status = in_child(hang);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), WATCHDOG_EXIT);
	has_said("nri-rp: module \"slow\" hangs in allocate of \"c1\": no reply within 60 ms; "
		 "exiting before the runtime disconnects the daemon\n");
	struct crumb *c = NULL;
	assert_int_equal(crumb_open(path, &c, NULL), 0);
	assert_int_equal(crumb_last(c)->cause, CRUMB_HUNG);
	assert_int_equal(crumb_last(c)->call, CRUMB_ALLOCATE);
	assert_string_equal(crumb_last(c)->object, "c1");
	(void)crumb_close(c);
}

static void hang_late(struct crumb *c, struct watchdog *w)
{
	watchdog_begin(w);
	for (int i = 0; i < 5; i++) {
		crumb_enter(c, CRUMB_LOOP, mod, CRUMB_SERVICE, NULL);
		crumb_leave(c, CRUMB_LOOP);
	}
	watchdog_end(w);
	watchdog_begin(w);
	pass_ms(FAR_MS); /* the host is slow itself, and only then comes the call */
	crumb_enter(c, CRUMB_LOOP, mod, CRUMB_RELEASE, NULL);
	for (;;)
		pass_ms(1000);
}

static void test_hang_late(void **state)
{
	(void)setenv("JOURNAL_STREAM", "8:1", 1);
	int status = in_child(hang_late);
	(void)unsetenv("JOURNAL_STREAM");
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), WATCHDOG_EXIT);
	has_said("<3>a request takes more than 60 ms, outside of any module\n");
	has_said("<3>module \"slow\" hangs in release: no reply within 60 ms; exiting before the "
		 "runtime disconnects the daemon\n");
}

/* Makes a long request of many short calls, which is no hang. A slow host is reported once for
 * each request. */
static void busy(struct crumb *c, struct watchdog *w)
{
	watchdog_begin(w);
	for (uint64_t end = clock_ms() + FAR_MS; clock_ms() < end;) {
		crumb_enter(c, CRUMB_LOOP, mod, CRUMB_ALLOCATE, NULL);
		crumb_leave(c, CRUMB_LOOP);
	}
	watchdog_end(w);
	for (int i = 0; i < 2; i++) {
		watchdog_begin(w);
		pass_ms(FAR_MS);
		watchdog_end(w);
	}
}

static unsigned count(const char *text)
{
	unsigned n = 0;
	for (const char *p = said; (p = strstr(p, text)); p++)
		n++;
	return n;
}

static void test_busy(void **state)
{
	assert_int_equal(in_child(busy), 0);
	assert_null(strstr(said, "hangs"));
	unsigned n = count("outside of any module");
	assert_true(n == 2 ||
		    /* The first request is reported too, if the watchdog checked it between two
		     * calls. */
		    n == 3);
}

/* Requests in time, for much longer than the limit; a call outside of any request; the worker's
 * calls. */
static void in_time(struct crumb *c, struct watchdog *w)
{
	for (uint64_t end = clock_ms() + FAR_MS; clock_ms() < end;) {
		watchdog_begin(w);
		crumb_enter(c, CRUMB_LOOP, mod, CRUMB_ALLOCATE, NULL);
		crumb_leave(c, CRUMB_LOOP);
		watchdog_end(w);
	}
	crumb_enter(c, CRUMB_LOOP, mod, CRUMB_LOAD, NULL);
	pass_ms(FAR_MS);
	crumb_leave(c, CRUMB_LOOP);
}

/* Makes a call that takes longer than the limit, and less than the time allowed for the request.
 * The next request has the limit again. */
static void allowed(struct crumb *c, struct watchdog *w)
{
	for (int i = 0; i < 2; i++) {
		watchdog_begin(w);
		if (!i)
			watchdog_allow(w, 4 * FAR_MS);
		crumb_enter(c, CRUMB_LOOP, mod, i ? CRUMB_RELEASE : CRUMB_ALLOCATE, NULL);
		pass_ms(FAR_MS);
		crumb_leave(c, CRUMB_LOOP);
		watchdog_end(w);
	}
}

static void test_allowed(void **state)
{
	int status = in_child(allowed);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), WATCHDOG_EXIT);
	has_said("hangs in release");
}

static void test_in_time(void **state)
{
	assert_int_equal(in_child(in_time), 0);
	assert_null(strstr(said, "hangs"));
}

static void no_crumb(struct crumb *c, struct watchdog *w)
{
	struct watchdog *own = NULL;
	if (watchdog_new(NULL, LIMIT_MS, &own, NULL) < 0)
		_exit(98);
	watchdog_begin(own);
	pass_ms(FAR_MS);
	watchdog_end(own);
	(void)watchdog_free(own);
}

static void foreign_signal(struct crumb *c, struct watchdog *w)
{
	crumb_enter(c, CRUMB_LOOP, mod, CRUMB_ALLOCATE, NULL);
	(void)kill(getpid(), SIGRTMIN + 4);
	crumb_leave(c, CRUMB_LOOP);
}

static void forked(struct crumb *c, struct watchdog *w)
{
	watchdog_begin(w);
	pid_t pid = fork();
	if (pid == 0) {
		watchdog_child(w);
		crumb_enter(c, CRUMB_LOOP, mod, CRUMB_ALLOCATE, NULL);
		watchdog_begin(w);
		pass_ms(FAR_MS);
		watchdog_end(w);
		crumb_leave(c, CRUMB_LOOP);
		_exit(watchdog_free(w) ? 1 : 0);
	}
	watchdog_end(w);
	int status = -1;
	if (waitpid(pid, &status, 0) != pid || status != 0)
		_exit(97);
}

static void test_others(void **state)
{
	assert_int_equal(in_child(no_crumb), 0);
	assert_int_equal(count("outside of any module"), 1);
	assert_int_equal(in_child(foreign_signal), 0);
	assert_int_equal(in_child(forked), 0);
	assert_null(strstr(said, "hangs"));
	watchdog_begin(NULL);
	watchdog_end(NULL);
	watchdog_child(NULL);
	assert_null(watchdog_free(NULL));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_hang),    TEST(test_hang_late), TEST(test_busy),
		TEST(test_allowed), TEST(test_in_time),	  TEST(test_others),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
