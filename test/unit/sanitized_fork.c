/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In builds with the address sanitizer, a process forks only while its other threads wait. The
 * sanitizer's allocator of GCC 12 does not take its locks around a fork: the child of a fork at
 * which another thread held one would wait for the lock forever.
 */
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WAIT_US 200u
#define WAITS_MAX 5000u /* a second; a thread that works longer is not waited for */

/* Returns true if the thread waits for an event, or has ended. */
static bool thread_waits(int tasks, const char *tid)
{
	static const long waits[] = {SYS_futex, SYS_poll, SYS_ppoll, SYS_epoll_wait,
				     SYS_epoll_pwait};
	char path[32], text[32];
	(void)snprintf(path, sizeof path, "%.16s/syscall", tid);
	int fd = openat(tasks, path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
	if (fd >= 0)
		(void)close(fd);
	if (n <= 0)
		return true;
	text[n] = '\0';
	for (unsigned i = 0; i < sizeof waits / sizeof *waits; i++)
		if (isdigit((unsigned char)*text) && atol(text) == waits[i])
			return true;
	return false;
}

static bool others_wait(DIR *tasks)
{
	char own[16];
	bool wait = true;
	(void)snprintf(own, sizeof own, "%d", (int)gettid());
	rewinddir(tasks);
	for (const struct dirent *e = readdir(tasks); wait && e; e = readdir(tasks))
		wait = !isdigit((unsigned char)e->d_name[0]) || strcmp(e->d_name, own) == 0 ||
		       thread_waits(dirfd(tasks), e->d_name);
	return wait;
}

static void wait_for_others(void)
{
	DIR *tasks = opendir("/proc/self/task");
	for (unsigned i = 0; tasks && i < WAITS_MAX && !others_wait(tasks); i++)
		(void)usleep(WAIT_US);
	if (tasks)
		(void)closedir(tasks);
}

__attribute__((constructor)) static void wait_at_forks(void)
{
	(void)pthread_atfork(wait_for_others, NULL, NULL);
}
