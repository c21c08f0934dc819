/* SPDX-License-Identifier: Apache-2.0 */
/* The breadcrumb. Deaths are real: a child enters a call and ends there. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/nri-rpd/host/breadcrumb.h"
#include "core/nri-rpd/host/crash_marks.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/crash.h"
#include "test/unit/coverage_exit.h"

static char dir[64], path[96], bad[112];
static const char mod_a[RP_NAME_MAX] = "alpha", mod_b[RP_NAME_MAX] = "beta";

static int setup(void **state)
{
	strcpy(dir, "/tmp/t_crumb-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	(void)snprintf(path, sizeof path, "%s/breadcrumb", dir);
	(void)snprintf(bad, sizeof bad, "%s.bad", path);
	return 0;
}

static int teardown(void **state)
{
	(void)unlink(path);
	(void)unlink(bad);
	return rmdir(dir);
}

static struct crumb *open_at(const char *boot, uint64_t minutes)
{
	struct crumb_now now = {.wall_ns = minutes * 60000000000u, .boot_ms = minutes * 60000};
	struct crumb *c = NULL;
	struct err err = ERR_INIT;
	(void)snprintf(now.boot_id, sizeof now.boot_id, "%s", boot);
	int r = crumb_open_at(path, &now, &c, &err);
	if (r < 0)
		fail_msg("%s", err.text);
	return c;
}

/* A process that opens the crumb, enters a call and ends. */
static void end_at(const char *boot, uint64_t minutes, const char module[RP_NAME_MAX],
		   enum crumb_lane lane, enum crumb_cause cause)
{
	pid_t pid = fork();
	if (pid == 0) {
		struct crumb *c = open_at(boot, minutes);
		crumb_enter(c, lane, module, CRUMB_ALLOCATE, "c1");
		crumb_live(c)->cause = cause;
		_exit(3);
	}
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 3);
}

static void die_at(const char *boot, uint64_t minutes, const char module[RP_NAME_MAX],
		   enum crumb_lane lane)
{
	end_at(boot, minutes, module, lane, CRUMB_DIED);
}

static void test_clean(void **state)
{
	struct crumb *c = NULL;
	struct err err = ERR_INIT;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(crumb_open(path, &c, &err), 0);
		assert_null(crumb_message(c));
		assert_null(crumb_last(c));
		assert_null(crumb_history(c, 0));
		assert_null(crumb_running(crumb_live(c)));
		crumb_enter(c, CRUMB_LOOP, mod_a, CRUMB_SYNC, NULL);
		c = crumb_close(c); /* a proper end in the middle of a call, as SIGTERM may be */
	}
	assert_null(crumb_close(NULL));
}

static void test_slots(void **state)
{
	struct crumb *c = open_at("b", 1);
	struct crumb_live *live = crumb_live(c);
	crumb_enter(c, CRUMB_WORKER, mod_b, CRUMB_WORK, NULL);
	assert_ptr_equal(crumb_running(live), &live->lane[CRUMB_WORKER]);
	crumb_enter(c, CRUMB_LOOP, mod_a, CRUMB_ALLOCATE, "c1");
	const struct crumb_slot *s = crumb_running(live);
	assert_ptr_equal(s, &live->lane[CRUMB_LOOP]);
	assert_string_equal(s->module, "alpha");
	assert_string_equal(s->object, "c1");
	assert_int_equal(crumb_slot_call(s), CRUMB_ALLOCATE);
	uint64_t first = s->state;
	crumb_leave(c, CRUMB_LOOP);
	assert_int_equal(crumb_slot_call(s), CRUMB_NONE);
	char longer[200];
	memset(longer, 'x', sizeof longer - 1);
	longer[199] = '\0';
	crumb_enter(c, CRUMB_LOOP, mod_a, CRUMB_ALLOCATE, longer);
	assert_int_equal(strlen(s->object), CRUMB_OBJECT_MAX - 1);
	assert_int_not_equal(s->state, first); /* another call, though the same */
	crumb_leave(c, CRUMB_LOOP);
	crumb_leave(c, CRUMB_WORKER);
	assert_null(crumb_running(live));
	(void)crumb_close(c);
	/* Without a crumb, nothing happens. */
	crumb_enter(NULL, CRUMB_LOOP, mod_a, CRUMB_SYNC, NULL);
	crumb_leave(NULL, CRUMB_LOOP);
	crumb_seen(NULL, "alpha", &(struct build_id){0});
	assert_null(crumb_live(NULL));
	assert_null(crumb_running(NULL));
	assert_null(crumb_message(NULL));
	assert_null(crumb_last(NULL));
	assert_null(crumb_history(NULL, 0));
	assert_false(crumb_quarantined(NULL, "alpha"));
	assert_int_equal(crumb_deaths(NULL, "alpha"), 0);
	assert_int_equal(crumb_clear(NULL, "alpha"), -ENOENT);
	assert_int_equal(crumb_child(NULL, NULL), 0);
}

static void test_call_names(void **state)
{
	for (unsigned i = 0; i < CRUMB_N_CALLS; i++)
		assert_non_null(crumb_call_name(i));
	assert_string_equal(crumb_call_name(CRUMB_ALLOCATE), "allocate");
	assert_string_equal(crumb_call_name(CRUMB_CALCULATE), "calculate");
	assert_string_equal(crumb_call_name(CRUMB_N_CALLS), "?");
}

static void test_death(void **state)
{
	die_at("b", 1, mod_a, CRUMB_LOOP);
	struct crumb *c = open_at("b", 2);
	const struct crumb_death *d = crumb_last(c);
	assert_non_null(d);
	assert_string_equal(d->module, "alpha");
	assert_string_equal(d->object, "c1");
	assert_string_equal(d->boot_id, "b");
	assert_int_equal(d->call, CRUMB_ALLOCATE);
	assert_int_equal(d->cause, CRUMB_DIED);
	assert_int_equal(d->counted, 1);
	assert_int_equal(d->boot_ms, 120000);
	assert_int_equal(d->wall_ns, 120000000000u);
	assert_ptr_equal(crumb_history(c, 0), d);
	assert_null(crumb_history(c, 1));
	assert_int_equal(crumb_deaths(c, "alpha"), 1);
	assert_int_equal(crumb_deaths(c, "beta"), 0);
	assert_non_null(strstr(crumb_message(c), "died inside module \"alpha\", in allocate of "
						 "\"c1\"; 1 of 3 crashes within ten minutes"));
	(void)crumb_close(c);
	c = open_at("b", 3); /* told once */
	assert_null(crumb_last(c));
	assert_null(crumb_message(c));
	assert_non_null(crumb_history(c, 0));
	(void)crumb_close(c);
}

enum end { END_RAISE, END_FAULT, END_OVERFLOW, END_EXIT, END_ABORT, END_KILLED_BY_OTHER };

static int overflow(unsigned depth)
{
	volatile char frame[4096];
	frame[depth % sizeof frame] = 1;
	return depth ? overflow(depth - 1) + frame[depth % sizeof frame] : 0;
}

static void end_by(enum end how, int signo)
{
	switch (how) {
	case END_RAISE:
		(void)raise(signo);
		break;
	case END_FAULT:
		*(volatile int *)mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) =
			1;
		break;
	case END_OVERFLOW:
		(void)overflow(UINT32_MAX);
		break;
	case END_EXIT:
		exit(0);
	case END_ABORT:
		abort();
	case END_KILLED_BY_OTHER:
		(void)kill(getppid(), SIGUSR1);
		for (;;)
			(void)pause();
	}
}

/* Opens the crumb in a child process, with default handlers of signals in place of cmocka's. */
static struct crumb *open_in_child(uint64_t minutes)
{
	static const int crashes[] = CRASH_SIGNALS;
	for (unsigned i = 0; i < sizeof crashes / sizeof *crashes; i++)
		(void)signal(crashes[i], SIG_DFL);
	struct crumb *c = open_at("b", minutes);
	ends_note(c);
	return c;
}

static void on_usr1(int signo)
{
}

/* A child ends inside a call in every way there is; what was written down tells which of them were
 * its own doing. */
static void test_ends(void **state)
{
	static const struct {
		enum end how;
		int signo; /* signal as seen by the parent; 0: the child exits */
		enum crumb_cause cause;
	} ends[] = {
		{END_RAISE, SIGSEGV, CRUMB_DIED},
		{END_RAISE, SIGBUS, CRUMB_DIED},
		{END_RAISE, SIGFPE, CRUMB_DIED},
		{END_RAISE, SIGILL, CRUMB_DIED},
		{END_ABORT, SIGABRT, CRUMB_DIED},
		{END_RAISE, SIGKILL, CRUMB_KILLED},
		{END_RAISE, SIGTERM, CRUMB_KILLED},
		{END_EXIT, 0, CRUMB_DIED},
		{END_FAULT, SIGSEGV, CRUMB_DIED},
		{END_OVERFLOW, SIGSEGV, CRUMB_DIED},
		{END_KILLED_BY_OTHER, SIGSEGV, CRUMB_KILLED},
	};
	sigset_t usr1, old;
	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	(void)signal(SIGUSR1, on_usr1);
	sigprocmask(SIG_BLOCK, &usr1, &old);
	for (unsigned i = 0; i < sizeof ends / sizeof ends[0]; i++) {
		int status, got;
#ifdef SANITIZED
		if (ends[i].how == END_FAULT || ends[i].how == END_OVERFLOW)
			continue; /* reported, and ended in its own way */
#endif
		pid_t pid = fork();
		if (pid == 0) {
			struct crumb *c = open_in_child(100 * (i + 1));
			crumb_enter(c, CRUMB_LOOP, mod_a, CRUMB_RELEASE, NULL);
			end_by(ends[i].how, ends[i].signo);
			_exit(99);
		}
		if (ends[i].how == END_KILLED_BY_OTHER) {
			assert_int_equal(sigwait(&usr1, &got), 0);
			assert_int_equal(kill(pid, ends[i].signo), 0);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		if (ends[i].signo)
			assert_true(WIFSIGNALED(status) && WTERMSIG(status) == ends[i].signo);
		else
			assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
		struct crumb *c = open_at("b", 100 * (i + 1) + 1);
		assert_int_equal(crumb_last(c)->call, CRUMB_RELEASE);
		assert_int_equal(crumb_last(c)->pid, pid);
		assert_int_equal(crumb_last(c)->cause, ends[i].cause);
		assert_int_equal(crumb_last(c)->counted, ends[i].cause == CRUMB_DIED);
		assert_string_equal(crumb_last(c)->object, "");
		(void)crumb_close(c);
	}
	sigprocmask(SIG_SETMASK, &old, NULL);
	(void)signal(SIGUSR1, SIG_DFL);
}

/* Checks that no module is blamed for a crash between two calls, or after the crumb was released.
 * */
static void test_ends_outside(void **state)
{
	for (int let_go = 0; let_go < 2; let_go++) {
		int status;
		pid_t pid = fork();
		if (pid == 0) {
			struct crumb *c = open_in_child(1);
			if (let_go) {
				crumb_enter(c, CRUMB_LOOP, mod_a, CRUMB_RELEASE, NULL);
				ends_note(NULL);
			}
			(void)raise(SIGSEGV);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
		struct crumb *c = open_at("b", 2);
		if (let_go)
			assert_int_equal(crumb_last(c)->cause, CRUMB_KILLED);
		else
			assert_null(crumb_last(c));
		(void)crumb_close(c);
	}
}

/* Checks that a module is not blamed for SIGKILL from outside, however often, unless each life ends
 * at the same place. */
static void test_kills(void **state)
{
	struct crumb *c;
	for (unsigned i = 0; i < 3 * CRUMB_KILLS; i++) {
		if (i % (CRUMB_KILLS - 1) == 0) {
			c = open_at("b", 1); /* a life that ends well */
			(void)crumb_close(c);
		}
		end_at("b", 1, mod_a, CRUMB_LOOP, CRUMB_KILLED);
	}
	for (unsigned i = 0; i < 3 * CRUMB_KILLS; i++)
		end_at("b", 1, i % 3 ? mod_a : mod_b, CRUMB_LOOP, CRUMB_KILLED);
	c = open_at("b", 1);
	assert_int_equal(crumb_deaths(c, "alpha"), 0);
	assert_int_equal(crumb_last(c)->counted, 0);
	assert_non_null(
		strstr(crumb_message(c),
		       "was killed inside module \"alpha\", in allocate of "
		       "\"c1\"; by another process or for lack of memory, so it is not counted"));
	(void)crumb_close(c);
	for (unsigned i = 0; i < CRUMB_KILLS; i++)
		end_at("b", 1, mod_a, CRUMB_LOOP, CRUMB_KILLED);
	c = open_at("b", 1);
	assert_true(crumb_quarantined(c, "alpha"));
	assert_int_equal(crumb_deaths(c, "alpha"), CRUMB_KILLS);
	(void)crumb_close(c);
}

/* Checks a crumb without a file; a child reports by the shared page. */
static void test_private(void **state)
{
	struct crumb_live *live =
		mmap(NULL, sizeof *live, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct crumb *c = crumb_private();
	assert_non_null(c);
	assert_null(crumb_message(c));
	pid_t pid = fork();
	if (pid == 0) {
		if (crumb_child(c, live))
			_exit(1);
		crumb_enter(c, CRUMB_LOOP, mod_a, CRUMB_SYNC, NULL);
		_exit(0);
	}
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(crumb_slot_call(crumb_running(live)), CRUMB_SYNC);
	assert_null(crumb_running(crumb_live(c)));
	assert_null(crumb_close(c));
	(void)munmap(live, sizeof *live);
}

static void test_causes(void **state)
{
	assert_string_equal(crumb_cause_name(CRUMB_KILLED), "killed");
	assert_string_equal(crumb_cause_name(CRUMB_N_CAUSES), "?");
	assert_string_equal(crumb_cause_text(CRUMB_DIED), "died");
	assert_string_equal(crumb_cause_text(CRUMB_N_CAUSES), "ended");
}

static void test_quarantine(void **state)
{
	struct build_id build = {2, {1, 2}}, other = {2, {1, 3}};
	struct crumb *c = open_at("b", 0);
	crumb_seen(c, "alpha", &build);
	(void)crumb_close(c);
	for (unsigned i = 0; i < CRUMB_DEATHS; i++) {
		c = open_at("b", 10 + i);
		assert_false(crumb_quarantined(c, "alpha"));
		(void)crumb_close(c);
		die_at("b", 10 + i, mod_a, CRUMB_LOOP);
	}
	c = open_at("b", 13);
	assert_true(crumb_quarantined(c, "alpha"));
	assert_false(crumb_quarantined(c, "beta"));
	assert_non_null(strstr(crumb_message(c),
			       "the module is quarantined (3 crashes within ten minutes)"));
	assert_true(build_id_equal(&crumb_last(c)->build_id, &build));
	crumb_seen(c, "alpha", &build); /* same build: no change */
	assert_true(crumb_quarantined(c, "alpha"));
	(void)crumb_close(c);
	/* The quarantine remains over time and boots … */
	c = open_at("other boot", 5);
	assert_true(crumb_quarantined(c, "alpha"));
	assert_int_equal(crumb_deaths(c, "alpha"), 0);
	/* … until a user clears it. */
	assert_int_equal(crumb_clear(c, "beta"), -ENOENT);
	assert_int_equal(crumb_clear(c, "alpha"), 0);
	assert_false(crumb_quarantined(c, "alpha"));
	assert_int_equal(crumb_clear(c, "alpha"), -ENOENT);
	assert_int_equal(crumb_clear(c, NULL), -ENOENT);
	(void)crumb_close(c);
	/* After that, one more death counts as the first. */
	die_at("b", 14, mod_a, CRUMB_LOOP);
	c = open_at("b", 14);
	assert_int_equal(crumb_deaths(c, "alpha"), 1);
	assert_false(crumb_quarantined(c, "alpha"));
	(void)crumb_close(c);
	/* Another build starts with no deaths. */
	die_at("b", 14, mod_a, CRUMB_LOOP);
	die_at("b", 14, mod_a, CRUMB_LOOP);
	c = open_at("b", 15);
	assert_true(crumb_quarantined(c, "alpha"));
	crumb_seen(c, "alpha", &other);
	assert_false(crumb_quarantined(c, "alpha"));
	assert_int_equal(crumb_deaths(c, "alpha"), 0);
	assert_non_null(crumb_history(c, 5)); /* the history remains */
	assert_null(crumb_history(c, 6));
	(void)crumb_close(c);
}

static void test_slow_deaths(void **state)
{
	for (unsigned i = 0; i < 6; i++)
		die_at("b", 10 + i * 6, mod_a, CRUMB_LOOP); /* two in any ten minutes */
	struct crumb *c = open_at("b", 46);
	assert_false(crumb_quarantined(c, "alpha"));
	assert_int_equal(crumb_deaths(c, "alpha"), 2);
	assert_int_equal(crumb_clear(c, NULL), 0);
	assert_int_equal(crumb_deaths(c, "alpha"), 0);
	(void)crumb_close(c);
}

/* The power went: no module's fault. */
static void test_other_boot(void **state)
{
	for (unsigned i = 0; i < 5; i++) {
		char boot[8];
		(void)snprintf(boot, sizeof boot, "b%u", i);
		die_at(boot, 1, mod_a, CRUMB_LOOP);
	}
	struct crumb *c = open_at("b9", 1);
	assert_int_equal(crumb_last(c)->counted, 0);
	assert_string_equal(crumb_last(c)->boot_id, "b4");
	assert_non_null(strstr(crumb_message(c), "is not counted"));
	assert_false(crumb_quarantined(c, "alpha"));
	(void)crumb_close(c);
}

static void test_blame(void **state)
{
	die_at("b", 1, mod_b, CRUMB_WORKER);
	struct crumb *c = open_at("b", 1);
	assert_string_equal(crumb_last(c)->module, "beta");
	(void)crumb_close(c);
	pid_t pid = fork();
	if (pid == 0) {
		c = open_at("b", 1);
		crumb_enter(c, CRUMB_WORKER, mod_b, CRUMB_WORK, NULL);
		crumb_enter(c, CRUMB_LOOP, mod_a, CRUMB_ZONES, NULL);
		crumb_live(c)->cause = CRUMB_HUNG;
		_exit(0);
	}
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	c = open_at("b", 1);
	assert_string_equal(crumb_last(c)->module, "alpha");
	assert_int_equal(crumb_last(c)->cause, CRUMB_HUNG);
	assert_non_null(strstr(crumb_message(c), "hung inside module \"alpha\", in zones"));
	(void)crumb_close(c);
}

static void test_history_bounded(void **state)
{
	for (unsigned i = 0; i < CRUMB_HISTORY_MAX + 3; i++)
		die_at("b", 20 * (i + 1), i % 2 ? mod_a : mod_b, CRUMB_LOOP);
	struct crumb *c = open_at("b", 20 * (CRUMB_HISTORY_MAX + 4));
	for (unsigned i = 0; i < CRUMB_HISTORY_MAX; i++)
		assert_int_equal(crumb_history(c, i)->boot_ms,
				 (uint64_t)(CRUMB_HISTORY_MAX + 4 - i) * 20 * 60000);
	assert_null(crumb_history(c, CRUMB_HISTORY_MAX));
	(void)crumb_close(c);
}

/* More modules than rows: the ones nothing is held against make room. */
static void test_many_modules(void **state)
{
	struct build_id build = {1, {7}};
	for (unsigned i = 0; i < CRUMB_DEATHS; i++)
		die_at("b", 1, mod_a, CRUMB_LOOP);
	struct crumb *c = open_at("b", 1);
	assert_true(crumb_quarantined(c, "alpha"));
	for (unsigned i = 0; i < 3 * CRUMB_MODULES_MAX; i++) {
		char name[RP_NAME_MAX];
		(void)snprintf(name, sizeof name, "m%u", i);
		crumb_seen(c, name, &build);
	}
	assert_true(crumb_quarantined(c, "alpha"));
	(void)crumb_close(c);
}

static void test_lock(void **state)
{
	struct crumb *c = open_at("b", 1), *second = NULL;
	struct err err = ERR_INIT;
	assert_int_equal(crumb_open(path, &second, &err), -EBUSY);
	assert_non_null(strstr(err.text, "in use by another process"));
	assert_null(second);
	(void)crumb_close(c);
}

/* A child that let go neither clears the crumb nor dies for its parent, and may look records up. */
static void test_child(void **state)
{
	for (unsigned i = 0; i < CRUMB_DEATHS; i++)
		die_at("b", 1, mod_a, CRUMB_LOOP);
	struct crumb *c = open_at("b", 1);
	struct crumb_live *page =
		mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(page, MAP_FAILED);
	for (int with_page = 0; with_page < 2; with_page++) {
		pid_t pid = fork();
		if (pid == 0) {
			int r = crumb_child(c, with_page ? page : NULL);
			bool quarantined = crumb_quarantined(c, "alpha");
			(void)crumb_clear(c, NULL);
			crumb_enter(c, CRUMB_LOOP, mod_b, CRUMB_PREPARE, "x");
			if (with_page)
				_exit(r == 0 && quarantined ? 0 : 1);
			c = crumb_close(c);
			_exit(r == 0 && quarantined && !c ? 0 : 1);
		}
		int status;
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
	assert_string_equal(crumb_running(page)->module, "beta");
	assert_null(crumb_running(crumb_live(c)));
	assert_true(crumb_quarantined(c, "alpha"));
	(void)crumb_close(c);
	c = open_at("b", 2);
	assert_null(crumb_last(c));
	(void)crumb_close(c);
	assert_int_equal(munmap(page, sizeof *page), 0);
}

/* ---- files that are not as they should be ---------------------------------------------------- */

static void flip(off_t at, uint8_t mask)
{
	_close_ int fd = open(path, O_RDWR | O_CLOEXEC);
	uint8_t b;
	assert_int_equal(pread(fd, &b, 1, at), 1);
	b ^= mask;
	assert_int_equal(pwrite(fd, &b, 1, at), 1);
}

static void expect_set_aside(const char *why)
{
	struct crumb *c = open_at("b", 2);
	if (!crumb_message(c) || !strstr(crumb_message(c), why))
		fail_msg("\"%s\", expected \"%s\"", crumb_message(c) ? crumb_message(c) : "", why);
	assert_null(crumb_history(c, 0));
	(void)crumb_close(c);
	assert_int_equal(access(bad, F_OK), 0);
	assert_int_equal(unlink(bad), 0);
	c = open_at("b", 2);
	assert_null(crumb_message(c));
	(void)crumb_close(c);
}

static void test_foreign(void **state)
{
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	(void)fputs("not yours", f);
	assert_int_equal(fclose(f), 0);
	expect_set_aside("wrong size");
	die_at("b", 1, mod_a, CRUMB_LOOP);
	assert_int_equal(truncate(path, 100), 0);
	expect_set_aside("wrong size");
	flip(0, 1);
	expect_set_aside("not a breadcrumb file");
	flip(8, 2);
	expect_set_aside("another version");
	struct stat st;
	assert_int_equal(stat(path, &st), 0);
	flip(st.st_size - 1, 1);
	expect_set_aside("records are damaged");
	/* Empty is new. */
	assert_int_equal(truncate(path, 0), 0);
	struct crumb *c = open_at("b", 2);
	assert_null(crumb_message(c));
	(void)crumb_close(c);
}

/* Writes junk into the records and corrects the checksum. */
static void forge(size_t from_end, size_t size)
{
	struct stat st;
	char junk[256];
	memset(junk, 'x', sizeof junk);
	_close_ int fd = open(path, O_RDWR | O_CLOEXEC);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(pwrite(fd, junk, size, st.st_size - (off_t)from_end), size);
	/* The records are what is behind the checksum; where that is, follows from the sum itself
	 * being right before the change. */
	_free_ uint8_t *all = malloc((size_t)st.st_size);
	assert_int_equal(pread(fd, all, (size_t)st.st_size, 0), st.st_size);
	size_t sum_at = 8 + 8 + 40 + 8 + sizeof(struct crumb_live);
	uint64_t sum = note_hash(NOTE_HASH_INIT, all + sum_at + 8, (size_t)st.st_size - sum_at - 8);
	assert_int_equal(pwrite(fd, &sum, sizeof sum, (off_t)sum_at), sizeof sum);
}

static void test_forged(void **state)
{
	size_t history = CRUMB_HISTORY_MAX * sizeof(struct crumb_death);
	(void)crumb_close(open_at("b", 1));
	forge(sizeof(struct crumb_death), RP_NAME_MAX);
	expect_set_aside("history is malformed");
	forge(history + 72, RP_NAME_MAX); /* the last row of the modules */
	expect_set_aside("list of modules is malformed");
}

/* Checks that bytes written by a dying module over the live part are shown as text or not at all.
 * */
static void test_scribbled(void **state)
{
	pid_t pid = fork();
	if (pid == 0) {
		struct crumb *c = open_at("b", 1);
		crumb_enter(c, CRUMB_LOOP, mod_a, CRUMB_SYNC, "c\n\033[1m");
		memset(crumb_live(c)->lane[CRUMB_LOOP].module, 0xee, RP_NAME_MAX);
		crumb_live(c)->lane[CRUMB_LOOP].state |= 0xff;
		_exit(0);
	}
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	struct crumb *c = open_at("b", 1);
	assert_string_equal(crumb_last(c)->module, "???????????????????????????????");
	assert_string_equal(crumb_last(c)->object, "c??[1m");
	assert_non_null(strstr(crumb_message(c), "in ? of"));
	(void)crumb_close(c);
	pid = fork();
	if (pid == 0) {
		c = open_at("b", 1);
		crumb_enter(c, CRUMB_LOOP, mod_a, CRUMB_SYNC, NULL);
		crumb_live(c)->lane[CRUMB_LOOP].module[0] = '\0';
		_exit(0);
	}
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	c = open_at("b", 1);
	assert_null(crumb_last(c));
	(void)crumb_close(c);
}

static void test_unusable(void **state)
{
	struct crumb *c = NULL;
	struct err err = ERR_INIT;
	assert_int_equal(crumb_open("/tmp/no/such/dir/breadcrumb", &c, &err), -ENOENT);
	assert_int_equal(crumb_open(dir, &c, &err), -EISDIR);
	assert_int_equal(symlink("elsewhere", path), 0);
	assert_int_equal(crumb_open(path, &c, &err), -ELOOP);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(crumb_open(path, &c, &err), -EINVAL);
	assert_non_null(strstr(err.text, "not a regular file"));
	assert_int_equal(unlink(path), 0);
	/* The file cannot be quarantined: a directory has the target's name. */
	(void)crumb_close(open_at("b", 1));
	flip(0, 1);
	assert_int_equal(mkdir(bad, 0700), 0);
	assert_true(crumb_open(path, &c, &err) < 0);
	assert_non_null(strstr(err.text, "cannot rename damaged breadcrumb file"));
	assert_int_equal(rmdir(bad), 0);
	assert_null(c);
}

/* ---- ends that nothing in the process could mark ---- */

/* A process that ends without a mark in a call that began at a time of this boot. */
static void killed_at(uint64_t minutes, const char module[RP_NAME_MAX], uint64_t since_ms)
{
	pid_t pid = fork();
	if (pid == 0) {
		struct crumb *c = open_at("b", minutes);
		crumb_enter(c, CRUMB_LOOP, module, CRUMB_ALLOCATE, "c1");
		crumb_live(c)->lane[CRUMB_LOOP].entered_ms = minutes * 60000 - since_ms;
		_exit(3);
	}
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* Killed seconds after a call began, three times in a row: it hung. */
static void test_stuck(void **state)
{
	for (unsigned i = 0; i < CRUMB_DEATHS; i++)
		killed_at(1, mod_a, CRUMB_STUCK_MS);
	struct crumb *c = open_at("b", 1);
	assert_int_equal(crumb_deaths(c, "alpha"), CRUMB_DEATHS);
	assert_true(crumb_quarantined(c, "alpha"));
	crumb_close(c);
}

/* An operator's kills hit calls that have just begun, now and then one of a daemon that was started
 * again late. */
static void test_kills_are_not_stuck(void **state)
{
	for (unsigned i = 0; i < 12; i++)
		killed_at(1, i % 2 ? mod_a : mod_b, i % 3 ? 100 : CRUMB_STUCK_MS);
	struct crumb *c = open_at("b", 1);
	assert_int_equal(crumb_deaths(c, "alpha"), 0);
	assert_int_equal(crumb_deaths(c, "beta"), 0);
	crumb_close(c);
}

/* A process that crashes between calls, `late_ms` after the last one; with two modules in use. */
static void crash_between(uint64_t late_ms, bool own_doing, uintptr_t instruction)
{
	pid_t pid = fork();
	if (pid == 0) {
		struct crumb *c = open_at("b", 1);
		crumb_use(c, "alpha", true);
		crumb_use(c, "alpha", true);
		crumb_use(c, "beta", true);
		crumb_use(c, "gamma", true);
		crumb_use(c, "gamma", false);
		crumb_image(c, "beta", 4096, 8192);
		crumb_enter(c, CRUMB_LOOP, mod_a, CRUMB_ALLOCATE, "c1");
		crumb_leave(c, CRUMB_LOOP);
		if (own_doing)
			crumb_blame(c, instruction);
		crumb_live(c)->lane[CRUMB_LOOP].entered_ms = crumb_live(c)->died_ms - late_ms;
		_exit(3);
	}
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void assert_deaths(unsigned alpha, unsigned beta)
{
	struct crumb *c = open_at("b", 1);
	assert_int_equal(crumb_deaths(c, "alpha"), alpha);
	assert_int_equal(crumb_deaths(c, "beta"), beta);
	assert_int_equal(crumb_deaths(c, "gamma"), 0);
	assert_int_equal(crumb_quarantined(c, "alpha"), alpha >= CRUMB_DEATHS);
	crumb_close(c);
}

static void test_suspects(void **state)
{
	crash_between(100, false, 0); /* killed from outside */
	assert_deaths(0, 0);
	crash_between(CRUMB_SUSPECT_MS + 1, true, 0);
	assert_deaths(0, 0);
	crash_between(100, true, 0);
	assert_deaths(1, 1);
	crash_between(100, true, 8192); /* past beta's code */
	assert_deaths(2, 2);
	crash_between(100, true, 5000); /* in it */
	assert_deaths(2, 3);
	crash_between(100, true, 0);
	assert_deaths(3, 4);
}

static void test_robbed(void **state)
{
	for (int way = 0; way < 2; way++) {
		pid_t pid = fork();
		if (pid == 0) {
			struct crumb *c = open_at("b", 1);
			crumb_enter(c, CRUMB_LOOP, mod_a, CRUMB_ALLOCATE, "c1");
			if (crumb_robbed(c))
				_exit(1);
			for (int fd = 3; fd < 64; fd++)
				(void)(way ? dup2(STDERR_FILENO, fd) : close(fd));
			_exit(crumb_robbed(c) ? 3 : 2);
		}
		int status;
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(WEXITSTATUS(status), 3);
	}
	struct crumb *c = open_at("b", 1);
	assert_int_equal(crumb_deaths(c, "alpha"), 2);
	assert_int_equal(crumb_last(c)->cause, CRUMB_ROBBED);
	crumb_close(c);
}

/* A loop that cannot go on is no proper end. */
static void test_failed(void **state)
{
	pid_t pid = fork();
	if (pid == 0) {
		struct crumb *c = open_at("b", 1);
		crumb_use(c, "alpha", true);
		crumb_enter(c, CRUMB_LOOP, mod_a, CRUMB_ALLOCATE, "c1");
		crumb_leave(c, CRUMB_LOOP);
		crumb_failed(c);
		crumb_close(c);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_deaths(1, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_clean),	    TEST(test_slots),	     TEST(test_call_names),
		TEST(test_death),	    TEST(test_ends),	     TEST(test_quarantine),
		TEST(test_slow_deaths),	    TEST(test_other_boot),   TEST(test_blame),
		TEST(test_history_bounded), TEST(test_many_modules), TEST(test_lock),
		TEST(test_child),	    TEST(test_foreign),	     TEST(test_forged),
		TEST(test_scribbled),	    TEST(test_unusable),     TEST(test_ends_outside),
		TEST(test_kills),	    TEST(test_stuck),	     TEST(test_kills_are_not_stuck),
		TEST(test_suspects),	    TEST(test_robbed),	     TEST(test_failed),
		TEST(test_causes),	    TEST(test_private),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
