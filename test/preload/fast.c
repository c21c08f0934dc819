/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LD_PRELOAD: time that passes $FAST_BY times as fast, for a day of a node in a minute. Clocks run
 * faster from when the process began or, so that processes one after the other have one time, from
 * $FAST_SINCE, in ns of the monotonic clock. Waits of the event loop are shorter; time that a
 * thread has used is what it is.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>

#define NS_PER_S INT64_C(1000000000)
#define CLOCKS 12

typedef int clock_function(clockid_t id, struct timespec *ret);

static clock_function *real_clock;
static int64_t begin_ns[CLOCKS];
static int64_t speed = 1;

static bool is_fast(clockid_t id)
{
	return id >= 0 && id < CLOCKS && id != CLOCK_PROCESS_CPUTIME_ID &&
	       id != CLOCK_THREAD_CPUTIME_ID;
}

static int64_t read_ns(clockid_t id)
{
	struct timespec t;
	return real_clock(id, &t) ? 0 : t.tv_sec * NS_PER_S + t.tv_nsec;
}

__attribute__((constructor)) static void begin(void)
{
	const char *by = getenv("FAST_BY"), *since = getenv("FAST_SINCE");
	*(void **)&real_clock = dlsym(RTLD_NEXT, "clock_gettime");
	speed = by ? strtol(by, NULL, 10) : 1;
	int64_t ago = since ? read_ns(CLOCK_MONOTONIC) - strtoll(since, NULL, 10) : 0;
	for (clockid_t id = 0; id < CLOCKS; id++)
		begin_ns[id] = is_fast(id) ? read_ns(id) - ago : 0;
}

__attribute__((visibility("default"))) int clock_gettime(clockid_t id, struct timespec *ret)
{
	int r = real_clock(id, ret);
	if (r || !is_fast(id))
		return r;
	int64_t ns = begin_ns[id] + (ret->tv_sec * NS_PER_S + ret->tv_nsec - begin_ns[id]) * speed;
	*ret = (struct timespec){ns / NS_PER_S, ns % NS_PER_S};
	return 0;
}

__attribute__((visibility("default"))) int epoll_wait(int fd, struct epoll_event *list, int n,
						      int timeout_ms)
{
	int64_t ns = (int64_t)timeout_ms * 1000000 / speed;
	const struct timespec t = {ns / NS_PER_S, ns % NS_PER_S};
	return epoll_pwait2(fd, list, n, timeout_ms < 0 ? NULL : &t, NULL);
}
