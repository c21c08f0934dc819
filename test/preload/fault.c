/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LD_PRELOAD, for what is no system call: memory that is not there, and a wall clock that jumps.
 * The file $FAULT_PLAN holds a struct plan that the test writes and reads while the program runs.
 * Of the chosen call, `skip` calls pass, the next `fail` ones get nothing, and all later ones pass
 * again. The wall clock is `shift_s` off, as long as it is.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* As the test has them. */
enum call {
	CALL_NONE,
	CALL_MALLOC,
	CALL_CALLOC,
	CALL_REALLOC,
};

struct plan {
	uint32_t call; /* enum call; written last by the test */
	int32_t skip, fail;
	uint32_t failed; /* how many have failed */
	int64_t shift_s;
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
	errno = ENOMEM;
	return 1;
}

#define NEXT(name) (*(void **)&next = next ? *(void **)&next : dlsym(RTLD_NEXT, name))
#define SEEN __attribute__((visibility("default")))

SEEN int clock_gettime(clockid_t id, struct timespec *ret)
{
	static int (*next)(clockid_t, struct timespec *);
	NEXT("clock_gettime");
	int r = next(id, ret);
	if (!r && plan && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
		ret->tv_sec += plan->shift_s;
	return r;
}

SEEN void *malloc(size_t n)
{
	static void *(*next)(size_t);
	NEXT("malloc");
	return fails(CALL_MALLOC) ? NULL : next(n);
}

/* dlsym() may ask for some before it has found the next one. */
SEEN void *calloc(size_t n, size_t size)
{
	static void *(*next)(size_t, size_t);
	static char first[4096];
	static size_t used;
	static int resolving;
	if (!next && resolving) {
		void *at = first + used;
		used += (n * size + 15) & ~(size_t)15;
		return used <= sizeof first ? at : NULL;
	}
	resolving = 1;
	NEXT("calloc");
	return fails(CALL_CALLOC) ? NULL : next(n, size);
}

SEEN void *realloc(void *at, size_t n)
{
	static void *(*next)(void *, size_t);
	NEXT("realloc");
	return fails(CALL_REALLOC) ? NULL : next(at, n);
}
