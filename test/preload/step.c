/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LD_PRELOAD: a wall clock that is set while the process runs. It is off by as many seconds as the
 * file $CLOCK_OFF begins with, a native int64_t that may change at any time; other clocks are not.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

typedef int clock_function(clockid_t id, struct timespec *ret);

static clock_function *real_clock;
static const volatile int64_t *off_s;

__attribute__((constructor)) static void begin(void)
{
	const char *path = getenv("CLOCK_OFF");
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	void *at = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *off_s, PROT_READ, MAP_SHARED, fd, 0);
	off_s = at == MAP_FAILED ? NULL : at;
	if (fd >= 0)
		(void)close(fd);
	*(void **)&real_clock = dlsym(RTLD_NEXT, "clock_gettime");
}

__attribute__((visibility("default"))) int clock_gettime(clockid_t id, struct timespec *ret)
{
	int r = real_clock(id, ret);
	if (!r && off_s && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
		ret->tv_sec += *off_s;
	return r;
}

__attribute__((visibility("default"))) time_t time(time_t *ret)
{
	struct timespec t;
	(void)clock_gettime(CLOCK_REALTIME, &t);
	if (ret)
		*ret = t.tv_sec;
	return t.tv_sec;
}

__attribute__((visibility("default"))) int gettimeofday(struct timeval *ret, void *zone)
{
	struct timespec t;
	(void)clock_gettime(CLOCK_REALTIME, &t);
	*ret = (struct timeval){t.tv_sec, t.tv_nsec / 1000};
	return 0;
}
