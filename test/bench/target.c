/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/lib/util/str.h"
#include "core/lib/wire/mux.h"
#include "core/lib/wire/sock.h"
#include "test/bench/bench.h"
#include "core/lib/util/clock.h"

#define WORDS_MAX 64u
#define START_MS 20000u

static void runtime_call(struct rpc_request *req, void *arg)
{
	struct bench *b = arg;
	if (str_eq(req->method, "RegisterPlugin")) {
		b->registered_ns = clock_ns();
		(void)rpc_reply(req, NULL);
		loop_stop(b->loop);
		return;
	}
	Nri__UpdateContainersRequest *m =
		nri__update_containers_request__unpack(NULL, req->payload_len, req->payload);
	b->updates += m ? (unsigned)m->n_update : 0;
	if (m)
		nri__update_containers_request__free_unpacked(m, NULL);
	(void)rpc_reply(req, NULL);
}

static void lost(struct trunk *trunk, const struct err *err, void *arg)
{
	struct bench *b = arg;
	fprintf(stderr, "bench: the target has gone: %s\n", err->text);
	b->failed = true;
	loop_stop(b->loop);
}

static void accepted(unsigned events, void *arg)
{
	struct bench *b = arg;
	struct err err = ERR_INIT;
	const struct trunk_config config = {.mux = true, .closed = lost, .arg = b};
	int fd = wire_accept(b->listen_fd);
	if (fd < 0 || b->trunk || trunk_new(b->loop, fd, &config, &b->trunk, &err))
		return;
	rpc_serve(trunk_rpc(b->trunk, MUX_CONN_RUNTIME), runtime_call, b);
	b->plugin = trunk_rpc(b->trunk, MUX_CONN_PLUGIN);
}

/* Returns a word of the command with its placeholders replaced. */
static char *fill(const struct bench *b, const char *word, const char *root, const char *config)
{
	const struct {
		const char *name, *value;
	} values[] = {
		{"{socket}", b->socket}, {"{dir}", b->dir}, {"{root}", root}, {"{config}", config}};
	for (unsigned i = 0; i < sizeof values / sizeof *values; i++) {
		const char *at = strstr(word, values[i].name);
		if (at)
			return str_printf("%.*s%s%s", (int)(at - word), word, values[i].value,
					  at + strlen(values[i].name));
	}
	return strdup(word);
}

static pid_t spawn(const struct bench *b, const char *command, const char *root, const char *config)
{
	char *words[WORDS_MAX + 1] = {NULL}, *copy = strdup(command), *save = NULL;
	unsigned n = 0;
	for (char *w = strtok_r(copy, " ", &save); w && n < WORDS_MAX;
	     w = strtok_r(NULL, " ", &save))
		words[n++] = fill(b, w, root, config);
	pid_t pid = fork();
	if (pid == 0) {
		char *log = str_printf("%s/target.log", b->dir);
		int fd = log ? open(log, O_WRONLY | O_CREAT | O_APPEND, 0644) : -1;
		(void)dup2(fd, STDERR_FILENO);
		(void)execv(words[0], words);
		_exit(127);
	}
	for (unsigned i = 0; i < n; i++)
		free(words[i]);
	free(copy);
	return pid;
}

static void too_late(void *arg)
{
	struct bench *b = arg;
	fprintf(stderr, "bench: no registration within %u ms; see %s/target.log\n", START_MS,
		b->dir);
	b->failed = true;
	loop_stop(b->loop);
}

int bench_start(struct bench *b, const char *command, const char *root, const char *config)
{
	struct err err = ERR_INIT;
	b->registered_ns = 0;
	b->failed = false;
	if (!b->listener) {
		b->listen_fd = wire_listen_unix(b->socket, 0600, &err);
		b->listener = b->listen_fd < 0
				      ? NULL
				      : loop_io_new(b->loop, b->listen_fd, LOOP_READ, accepted, b);
	}
	struct loop_timer *timer = loop_timer_new(b->loop, too_late, b);
	if (!b->listener || !timer) {
		fprintf(stderr, "bench: %s\n", err.text);
		return -1;
	}
	b->exec_ns = clock_ns();
	b->pid = spawn(b, command, root, config);
	(void)loop_timer_arm(timer, START_MS);
	while (!b->registered_ns && !b->failed)
		(void)loop_run(b->loop);
	loop_timer_free(timer);
	return b->failed ? -1 : 0;
}

void bench_stop(struct bench *b)
{
	b->trunk = trunk_free(b->trunk);
	b->plugin = NULL;
	if (b->pid > 0) {
		(void)kill(b->pid, SIGTERM);
		(void)waitpid(b->pid, NULL, 0);
	}
	b->pid = 0;
}

double bench_cpu_us(const struct bench *b)
{
	struct timespec t = {0};
	clockid_t clock;
	if (clock_getcpuclockid(b->pid, &clock) == 0)
		(void)clock_gettime(clock, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* The number behind a name in /proc/PID/status. */
static uint64_t status_of(const struct bench *b, const char *name)
{
	char path[64], line[256];
	uint64_t value = 0;
	(void)snprintf(path, sizeof path, "/proc/%d/status", (int)b->pid);
	FILE *f = fopen(path, "r");
	while (f && fgets(line, sizeof line, f))
		if (str_has_prefix(line, name))
			value = strtoull(line + strlen(name), NULL, 10);
	if (f)
		(void)fclose(f);
	return value;
}

double bench_rss_kib(const struct bench *b)
{
	return (double)status_of(b, "VmRSS:");
}

uint64_t bench_wakeups(const struct bench *b)
{
	return status_of(b, "voluntary_ctxt_switches:");
}
