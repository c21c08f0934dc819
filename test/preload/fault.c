/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LD_PRELOAD: calls that fail when a test says so. The file $FAULT_PLAN holds a struct plan that
 * the test writes and reads while the daemon runs. Of the chosen call, `skip` calls pass, the next
 * `fail` ones give `error` or do half of what they should, and all later ones pass again. The wall
 * clock is `shift_s` off, as long as it is.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* As the test has them. */
enum call {
	CALL_NONE,
	CALL_WRITE,
	CALL_SHORT_WRITE,
	CALL_OPEN,
	CALL_MALLOC,
	CALL_CALLOC,
	CALL_REALLOC,
	CALL_READ,
	CALL_SHORT_READ,
	CALL_SEND,
	CALL_SHORT_SEND,
	CALL_RECV,
	CALL_SHORT_RECV,
	CALL_FSYNC,
	CALL_RENAME,
	CALL_MMAP,
	CALL_FORK,
	CALL_EPOLL_WAIT,
};

struct plan {
	uint32_t call; /* enum call; written last by the test */
	int32_t error;
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

SEEN ssize_t read(int fd, void *data, size_t n)
{
	static ssize_t (*next)(int, void *, size_t);
	NEXT("read");
	if (fails(CALL_READ))
		return -1;
	return next(fd, data, n > 1 && fails(CALL_SHORT_READ) ? n / 2 : n);
}

SEEN ssize_t send(int fd, const void *data, size_t n, int flags)
{
	static ssize_t (*next)(int, const void *, size_t, int);
	NEXT("send");
	if (fails(CALL_SEND))
		return -1;
	return next(fd, data, n > 1 && fails(CALL_SHORT_SEND) ? n / 2 : n, flags);
}

SEEN ssize_t recv(int fd, void *data, size_t n, int flags)
{
	static ssize_t (*next)(int, void *, size_t, int);
	NEXT("recv");
	if (fails(CALL_RECV))
		return -1;
	return next(fd, data, n > 8 && fails(CALL_SHORT_RECV) ? 8 : n, flags);
}

SEEN int fsync(int fd)
{
	static int (*next)(int);
	NEXT("fsync");
	return fails(CALL_FSYNC) ? -1 : next(fd);
}

SEEN int rename(const char *from, const char *to)
{
	static int (*next)(const char *, const char *);
	NEXT("rename");
	return fails(CALL_RENAME) ? -1 : next(from, to);
}

SEEN int renameat(int dir, const char *from, int to_dir, const char *to)
{
	static int (*next)(int, const char *, int, const char *);
	NEXT("renameat");
	return fails(CALL_RENAME) ? -1 : next(dir, from, to_dir, to);
}

SEEN void *mmap(void *at, size_t n, int protection, int flags, int fd, off_t offset)
{
	static void *(*next)(void *, size_t, int, int, int, off_t);
	NEXT("mmap");
	return fails(CALL_MMAP) ? MAP_FAILED : next(at, n, protection, flags, fd, offset);
}

SEEN pid_t fork(void)
{
	static pid_t (*next)(void);
	NEXT("fork");
	return fails(CALL_FORK) ? -1 : next();
}

SEEN int epoll_wait(int fd, struct epoll_event *list, int n, int timeout_ms)
{
	static int (*next)(int, struct epoll_event *, int, int);
	NEXT("epoll_wait");
	return fails(CALL_EPOLL_WAIT) ? -1 : next(fd, list, n, timeout_ms);
}

SEEN int clock_gettime(clockid_t id, struct timespec *ret)
{
	static int (*next)(clockid_t, struct timespec *);
	NEXT("clock_gettime");
	int r = next(id, ret);
	if (!r && plan && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
		ret->tv_sec += plan->shift_s;
	return r;
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

/* What _FORTIFY_SOURCE makes of the two above. */
SEEN int __open_2(const char *path, int flags);
SEEN int __open_2(const char *path, int flags)
{
	static int (*next)(const char *, int);
	NEXT("__open_2");
	return fails(CALL_OPEN) ? -1 : next(path, flags);
}

SEEN int __openat_2(int dir, const char *path, int flags);
SEEN int __openat_2(int dir, const char *path, int flags)
{
	static int (*next)(int, const char *, int);
	NEXT("__openat_2");
	return fails(CALL_OPEN) ? -1 : next(dir, path, flags);
}

/* openat2() has no function of its own. */
SEEN long syscall(long number, ...)
{
	static long (*next)(long, ...);
	__builtin_va_list more;
	long a[6];
	__builtin_va_start(more, number);
	for (unsigned i = 0; i < 6; i++)
		a[i] = __builtin_va_arg(more, long);
	__builtin_va_end(more);
	NEXT("syscall");
	if (number == SYS_openat2 && fails(CALL_OPEN))
		return -1;
	return next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
