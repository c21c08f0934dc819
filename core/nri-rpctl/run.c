/* SPDX-License-Identifier: Apache-2.0 */
/* Runs another program and reads its output. */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/nri-rpctl/cli.h"

#define READ_CHUNK 4096u

static void run_read(int fd, struct buf *ret)
{
	char chunk[READ_CHUNK];
	for (;;) {
		ssize_t got = read(fd, chunk, sizeof chunk);
		if (got > 0 && buf_len(ret) < RUN_OUTPUT_MAX)
			(void)buf_add(ret, chunk, (size_t)got);
		else if (!got || (got < 0 && errno != EINTR))
			return;
	}
}

int run_program(const char *const *argv, struct buf *ret)
{
	int pipes[2], status = -1;
	pid_t pid;
	posix_spawn_file_actions_t actions;
	if (pipe2(pipes, O_CLOEXEC))
		return -1;
	int r = posix_spawn_file_actions_init(&actions);
	if (!r) {
		(void)posix_spawn_file_actions_adddup2(&actions, pipes[1], STDOUT_FILENO);
		(void)posix_spawn_file_actions_adddup2(&actions, pipes[1], STDERR_FILENO);
		r = posix_spawnp(&pid, argv[0], &actions, NULL, (char *const *)(uintptr_t)argv,
				 environ);
		(void)posix_spawn_file_actions_destroy(&actions);
	}
	(void)close(pipes[1]);
	if (!r)
		run_read(pipes[0], ret);
	(void)close(pipes[0]);
	while (!r && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (r)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : CTL_FAILED;
}
