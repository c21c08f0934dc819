/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LD_PRELOAD: a kernel that takes its time. Each write to a file below $SLOW_BELOW takes $SLOW_MS,
 * and waits for $SLOW_GATE to be there, if that is set. $SLOW_LOG gets a line "begin TID PATH"
 * before each and "end TID PATH" after it.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define GATE_MS 5

static void pass_ms(long ms)
{
	struct timespec left = {ms / 1000, ms % 1000 * 1000000};
	while (nanosleep(&left, &left) && errno == EINTR)
		;
}

static bool path_of(int fd, char *path, size_t size)
{
	char link[64];
	const char *below = getenv("SLOW_BELOW");
	(void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	ssize_t n = readlink(link, path, size - 1);
	if (n < 0 || !below)
		return false;
	path[n] = '\0';
	return strncmp(path, below, strlen(below)) == 0;
}

static void tell(const char *what, const char *path)
{
	const char *log = getenv("SLOW_LOG");
	int fd = log ? open(log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : -1;
	if (fd < 0)
		return;
	(void)dprintf(fd, "%s %ld %s\n", what, (long)syscall(SYS_gettid), path);
	(void)close(fd);
}

__attribute__((visibility("default"))) ssize_t write(int fd, const void *data, size_t n)
{
	static ssize_t (*next)(int, const void *, size_t);
	char path[4096];
	int error = errno;
	const char *gate = getenv("SLOW_GATE"), *ms = getenv("SLOW_MS");
	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "write");
	bool slow = path_of(fd, path, sizeof path);
	if (slow) {
		tell("begin", path);
		pass_ms(ms ? strtol(ms, NULL, 10) : 0);
		while (gate && access(gate, F_OK))
			pass_ms(GATE_MS);
	}
	errno = error;
	ssize_t r = next(fd, data, n);
	error = errno;
	if (slow)
		tell("end", path);
	errno = error;
	return r;
}
