/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the real nri-rpctl, in the folder of this program, with the arguments of a scenario. */
#include "core/nri-rp-sim/show.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORDS_MAX 16u

static void show_beside(char *ret, size_t size, const char *program)
{
	ssize_t n = readlink("/proc/self/exe", ret, size - 1);
	ret[n > 0 ? n : 0] = '\0';
	char *slash = strrchr(ret, '/');
	size_t at = slash ? (size_t)(slash - ret) + 1 : 0;
	(void)snprintf(ret + at, size - at, "%s", program);
}

void show_control(struct sim *s, const json_t *args)
{
	static char socket_option[] = "--socket";
	char program[PATH_MAX];
	char *words[WORDS_MAX + 4] = {program, socket_option, s->control};
	unsigned n = 3;
	json_t *word;
	size_t i;
	show_beside(program, sizeof program, "nri-rpctl");
	if (json_is_string(args))
		words[n++] = (char *)(uintptr_t)json_string_value(args);
	json_array_foreach(args, i, word)
	{
		if (json_is_string(word) && n < WORDS_MAX + 3)
			words[n++] = (char *)(uintptr_t)json_string_value(word);
	}
	printf("\n$ nri-rpctl");
	for (i = 3; i < n; i++)
		printf(" %s", words[i]);
	printf("\n");
	(void)fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		(void)execv(program, words);
		(void)fprintf(stderr, "%s: %s\n", program, strerror(errno));
		_exit(127);
	}
	if (pid > 0)
		(void)waitpid(pid, NULL, 0);
	(void)fflush(stdout);
}
