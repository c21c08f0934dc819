/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that ends: a piece of work is done with its first, its second … allocation failing, until
 * it has all it asks for. What it holds at the end is counted, so that an error path that loses
 * memory is found. To be included in the test's one source file. Sanitizers bring a malloc of their
 * own: there the work is done once, with all the memory it wants.
 */
#ifndef TEST_OOM_H
#define TEST_OOM_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define OOM_RUNS_MAX 20000u

static struct {
	bool armed;
	bool for_good; /* all allocations after the first failure fail too */
	unsigned at; /* the one that fails, from 1; 0: none */
	unsigned n; /* allocations so far */
	long held; /* allocated and not freed */
	bool failed;
} oom;

/* For use in the work: a failure is reported with memory at hand. */
#define OOM_CHECK(condition)                                                                       \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			oom.armed = false;                                                         \
			fail_msg("allocation %u: not so: %s", oom.at, #condition);                 \
		}                                                                                  \
	} while (0)

#ifndef SANITIZED
/* Libraries take these, too. */
#define OOM_FOR_ALL __attribute__((visibility("default")))

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t size);
extern void __libc_free(void *p);
OOM_FOR_ALL void *malloc(size_t size);
OOM_FOR_ALL void *calloc(size_t n, size_t size);
OOM_FOR_ALL void *realloc(void *p, size_t size);
OOM_FOR_ALL void *reallocarray(void *p, size_t n, size_t size);
OOM_FOR_ALL void free(void *p);

static bool oom_fails(void)
{
	if (!oom.armed || !oom.at)
		return false;
	oom.n++;
	if (oom.n != oom.at && !(oom.for_good && oom.n > oom.at))
		return false;
	oom.failed = true;
	errno = ENOMEM;
	return true;
}

static void *oom_given(void *p)
{
	if (oom.armed && p)
		oom.held++;
	return p;
}

void *malloc(size_t size)
{
	return oom_fails() ? NULL : oom_given(__libc_malloc(size));
}

void *calloc(size_t n, size_t size)
{
	return oom_fails() ? NULL : oom_given(__libc_calloc(n, size));
}

void *realloc(void *p, size_t size)
{
	if (oom_fails())
		return NULL;
	return p ? __libc_realloc(p, size) : oom_given(__libc_malloc(size));
}

void *reallocarray(void *p, size_t n, size_t size)
{
	size_t total;
	if (__builtin_mul_overflow(n, size, &total)) {
		errno = ENOMEM;
		return NULL;
	}
	return realloc(p, total);
}

void free(void *p)
{
	if (oom.armed && p)
		oom.held--;
	__libc_free(p);
}
#endif

static void oom_run(int (*work)(void *arg), void *arg, unsigned at, bool for_good, int *ret)
{
	oom.at = at;
	oom.for_good = for_good;
	oom.n = 0;
	oom.held = 0;
	oom.failed = false;
	oom.armed = true;
	*ret = work(arg);
	oom.armed = false;
}

/*
 * work() gives 0 when it has come to its end, and -errno when it was refused on the way; it gives
 * back all it took, either way, and checks for itself that the refusal is a clean one. It has to
 * ask for some.
 */
static void oom_each(int (*work)(void *arg), void *arg)
{
	int r;
	/* the first run makes the allocations that are never freed */
	oom_run(work, arg, 0, false, &r);
	assert_int_equal(r, 0);
#ifndef SANITIZED
	unsigned at = 0;
	do {
		at++;
		oom_run(work, arg, at, true, &r);
		if (oom.held)
			fail_msg("%ld allocations are lost when all from number %u on fail",
				 oom.held, at);
		if (oom.failed && !r)
			fail_msg("allocation %u and all after it fail, and nobody says so", at);
		oom_run(work, arg, at, false, &r);
		if (oom.held)
			fail_msg("%ld allocations are lost when number %u fails", oom.held, at);
	} while (oom.failed && at < OOM_RUNS_MAX);
	assert_false(oom.failed);
	assert_int_equal(r, 0);
	assert_true(at > 1);
#endif
}

#endif
