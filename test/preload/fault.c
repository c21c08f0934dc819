/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LD_PRELOAD: calls that fail when a test says so. The file $FAULT_PLAN holds a struct plan that
 * the test writes and reads while the daemon runs. Of the chosen call, `skip` calls pass, the next
 * `fail` ones give `error`, and all later ones pass again.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum call { CALL_NONE, CALL_WRITE, CALL_SHORT_WRITE, CALL_OPEN, CALL_MALLOC };

struct plan {
	uint32_t call; /* enum call; written last by the test */
	int32_t error;
	int32_t skip, fail;
	uint32_t failed; /* how many have failed */
};

static struct plan *plan;

__attribute__((constructor)) static void find_plan(void)
{
	const char *path = getenv("FAULT_PLAN");
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	if (fd < 0)
		return;
	void *at = mmap(NULL, sizeof *plan, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	(void)close(fd);
	if (at != MAP_FAILED)
		plan = at;
}

static int fails(enum call call)
{
	if (!plan || __atomic_load_n(&plan->call, __ATOMIC_ACQUIRE) != call)
		return 0;
	if (__atomic_fetch_sub(&plan->skip, 1, __ATOMIC_RELAXED) > 0)
		return 0;
	if (__atomic_fetch_sub(&plan->fail, 1, __ATOMIC_RELAXED) <= 0)
		return 0;
	(void)__atomic_add_fetch(&plan->failed, 1, __ATOMIC_RELAXED);
	errno = plan->error;
	return 1;
}

#define NEXT(name) (*(void **)&next = next ? *(void **)&next : dlsym(RTLD_NEXT, name))
#define SEEN __attribute__((visibility("default")))

/* The log goes on: what fails is to be read there. */
SEEN ssize_t write(int fd, const void *data, size_t n)
{
	static ssize_t (*next)(int, const void *, size_t);
	NEXT("write");
	if (fd != STDERR_FILENO && fails(CALL_WRITE))
		return -1;
	if (fd != STDERR_FILENO && n > 1 && fails(CALL_SHORT_WRITE))
		return next(fd, data, n / 2);
	return next(fd, data, n);
}

SEEN int open(const char *path, int flags, ...)
{
	static int (*next)(const char *, int, unsigned);
	__builtin_va_list more;
	__builtin_va_start(more, flags);
	unsigned mode = flags & (O_CREAT | O_TMPFILE) ? __builtin_va_arg(more, unsigned) : 0;
	__builtin_va_end(more);
	NEXT("open");
	return fails(CALL_OPEN) ? -1 : next(path, flags, mode);
}

SEEN int openat(int dir, const char *path, int flags, ...)
{
	static int (*next)(int, const char *, int, unsigned);
	__builtin_va_list more;
	__builtin_va_start(more, flags);
	unsigned mode = flags & (O_CREAT | O_TMPFILE) ? __builtin_va_arg(more, unsigned) : 0;
	__builtin_va_end(more);
	NEXT("openat");
	return fails(CALL_OPEN) ? -1 : next(dir, path, flags, mode);
}

SEEN void *malloc(size_t n)
{
	static void *(*next)(size_t);
	NEXT("malloc");
	return fails(CALL_MALLOC) ? NULL : next(n);
}
