/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench ROOT CONFIG LIVE[,LIVE…] CYCLES NAMED NAME=COMMAND…
 *
 * Plays LIVE containers and CYCLES life cycles against each command in turn and prints what they
 * cost, the first one being the floor. In a command {socket}, {dir}, {root} and {config} are filled
 * in. With NAMED above 0 each of them has a CPU of its own, and a cycle is a pod that names the
 * CPUs of NAMED of them.
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/lib/util/str.h"
#include "test/bench/bench.h"

#define TARGETS_MAX 8
#define NAMED_MAX 64u
#define ROUNDS 3u
#define IDLE_S 2u

static int by_value(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return x < y ? -1 : x > y;
}

static double percentile(struct samples *s, double q)
{
	if (!s->n)
		return 0;
	qsort(s->ns, s->n, sizeof *s->ns, by_value);
	return s->ns[(unsigned)(q * (s->n - 1))] / 1e3;
}

static void forget_samples(struct bench *b)
{
	for (unsigned k = 0; k < N_KINDS; k++)
		b->samples[k].n = 0;
	b->updates = 0;
}

static unsigned next(unsigned *random, unsigned n)
{
	*random = *random * 1664525u + 1013904223u;
	return (*random >> 8) % n;
}

/* A pod comes that names CPUs of others, and goes again. */
static int conflict(struct bench *b, unsigned live, unsigned *random)
{
	char list[NAMED_MAX * sizeof *b->cpus];
	for (unsigned k = 0, at = 0; k < b->named; k++)
		at += (unsigned)sprintf(list + at, "%s%s", k ? "," : "",
					b->cpus[next(random, live)]);
	return bench_create(b, live, list) ? -1 : bench_delete(b, live);
}

static int churn(struct bench *b, unsigned live, unsigned cycles)
{
	unsigned random = 1;
	int r = 0;
	for (unsigned c = 0; !r && c < cycles; c++) {
		unsigned i = next(&random, live);
		if (b->named)
			r = conflict(b, live, &random);
		else if (!(r = bench_delete(b, i)))
			r = bench_create(b, i, NULL);
	}
	return r;
}

static int measure_restart(struct bench *b, const char *command, const char *root,
			   const char *config, unsigned live, struct result *ret)
{
	bench_stop(b);
	b->updates = 0;
	if (bench_start(b, command, root, config) || bench_configure(b) ||
	    bench_synchronize(b, live))
		return -1;
	ret->sync_ms = (double)b->t0_ns / 1e6;
	ret->restart_updates = b->updates;
	return 0;
}

static int measure(struct bench *b, const char *command, const char *root, const char *config,
		   unsigned live, unsigned cycles, struct result *ret)
{
	memset(b->cpus, 0, LIVE_MAX * sizeof *b->cpus);
	memset(b->mems, 0, LIVE_MAX * sizeof *b->mems);
	if (bench_start(b, command, root, config) || bench_configure(b) || bench_synchronize(b, 0))
		return -1;
	ret->start_ms = (double)(b->registered_ns - b->exec_ns) / 1e6;
	ret->rss_start_kib = bench_rss_kib(b);
	for (unsigned i = 0; i < live; i++)
		if (bench_create(b, i, NULL))
			return -1;
	if (churn(b, live, cycles / 10 + 1))
		return -1;
	forget_samples(b);
	double cpu = bench_cpu_us(b);
	if (churn(b, live, cycles))
		return -1;
	ret->cpu_us = (bench_cpu_us(b) - cpu) / cycles;
	ret->rss_kib = bench_rss_kib(b);
	ret->updates = b->updates;
	for (unsigned k = 0; k < N_KINDS; k++) {
		ret->p50_us[k] = percentile(&b->samples[k], 0.5);
		ret->p99_us[k] = percentile(&b->samples[k], 0.99);
		ret->cycle_us += ret->p50_us[k];
	}
	(void)sleep(1);
	uint64_t woken = bench_wakeups(b);
	(void)sleep(IDLE_S);
	ret->wakeups = (double)(bench_wakeups(b) - woken) / IDLE_S;
	return measure_restart(b, command, root, config, live, ret);
}

static int one_round(const char *command, const char *root, const char *config, unsigned live,
		     unsigned cycles, unsigned named, struct result *ret)
{
	struct bench b = {.loop = loop_new(), .named = named};
	*ret = (struct result){0};
	(void)snprintf(b.dir, sizeof b.dir, "/tmp/nri-rp-bench-XXXXXX");
	if (!b.loop || !mkdtemp(b.dir))
		return -1;
	(void)snprintf(b.socket, sizeof b.socket, "%s/nri.sock", b.dir);
	b.cpus = calloc(LIVE_MAX, sizeof *b.cpus);
	b.mems = calloc(LIVE_MAX, sizeof *b.mems);
	int r = b.cpus && b.mems ? measure(&b, command, root, config, live, cycles, ret) : -1;
	bench_stop(&b);
	loop_io_free(b.listener);
	(void)close(b.listen_fd);
	for (unsigned k = 0; k < N_KINDS; k++)
		free(b.samples[k].ns);
	free(b.cpus);
	free(b.mems);
	loop_free(b.loop);
	return r;
}

/* Keeps the best figures of all rounds, as other load of the machine only adds time. */
static void better(struct result *best, const struct result *r, bool first)
{
	if (first) {
		*best = *r;
		return;
	}
	for (unsigned k = 0; k < N_KINDS; k++) {
		best->p50_us[k] = r->p50_us[k] < best->p50_us[k] ? r->p50_us[k] : best->p50_us[k];
		best->p99_us[k] = r->p99_us[k] < best->p99_us[k] ? r->p99_us[k] : best->p99_us[k];
	}
	best->cycle_us = r->cycle_us < best->cycle_us ? r->cycle_us : best->cycle_us;
	best->cpu_us = r->cpu_us < best->cpu_us ? r->cpu_us : best->cpu_us;
	best->start_ms = r->start_ms < best->start_ms ? r->start_ms : best->start_ms;
	best->sync_ms = r->sync_ms < best->sync_ms ? r->sync_ms : best->sync_ms;
}

static void print_table(unsigned live, char *const *names, const struct result *results, int n)
{
	printf("\n%u containers; best of %u rounds, one shared CPU\n", live, ROUNDS);
	printf("%-12s %9s %9s %9s %9s %9s %9s %9s %9s %9s %8s %7s\n", "target", "pod", "create",
	       "p99", "stop", "cycle", "CPU", "start", "sync", "RSS", "restart", "idle");
	printf("%-12s %9s %9s %9s %9s %9s %9s %9s %9s %9s %8s %7s\n", "", "us", "us", "us", "us",
	       "us", "us/cycle", "ms", "ms", "MiB", "updates", "wake/s");
	for (int t = 0; t < n; t++) {
		const struct result *r = &results[t];
		printf("%-12s %9.1f %9.1f %9.1f %9.1f %9.1f %9.1f %9.2f %9.2f %9.2f %8u %7.1f\n",
		       names[t], r->p50_us[RUN_POD], r->p50_us[CREATE], r->p99_us[CREATE],
		       r->p50_us[STOP], r->cycle_us, r->cpu_us, r->start_ms, r->sync_ms,
		       r->rss_kib / 1024, r->restart_updates, r->wakeups);
	}
	for (int t = 1; t < n; t++) {
		const struct result *f = &results[0], *r = &results[t];
		printf("%-12s pod +%.1f us, create +%.1f us, stop +%.1f us, CPU x%.2f, start "
		       "x%.1f, sync x%.1f, "
		       "%.2f KiB a container\n",
		       names[t], r->p50_us[RUN_POD] - f->p50_us[RUN_POD],
		       r->p50_us[CREATE] - f->p50_us[CREATE], r->p50_us[STOP] - f->p50_us[STOP],
		       r->cpu_us / f->cpu_us, r->start_ms / f->start_ms, r->sync_ms / f->sync_ms,
		       (r->rss_kib - r->rss_start_kib) / live);
	}
}

static int bench_level(const char *root, const char *config, unsigned live, unsigned cycles,
		       unsigned named, char *const *names, char *const *commands, int n)
{
	struct result best[TARGETS_MAX];
	for (unsigned round = 0; round < ROUNDS; round++) {
		for (int t = 0; t < n; t++) {
			struct result r;
			fprintf(stderr, "\r%u containers, round %u of %u: %-20s", live, round + 1,
				ROUNDS, names[t]);
			if (one_round(commands[t], root, config, live, cycles, named, &r))
				return -1;
			better(&best[t], &r, round == 0);
		}
	}
	fprintf(stderr, "\r%60s\r", "");
	print_table(live, names, best, n);
	return 0;
}

int main(int argc, char **argv)
{
	char *names[TARGETS_MAX], *commands[TARGETS_MAX];
	int n = 0;
	cpu_set_t one;
	if (argc < 7 || argc - 6 > TARGETS_MAX) {
		fprintf(stderr,
			"usage: bench ROOT CONFIG LIVE[,LIVE…] CYCLES NAMED NAME=COMMAND…\n");
		return 2;
	}
	for (int i = 6; i < argc; i++, n++) {
		names[n] = argv[i];
		commands[n] = strchr(argv[i], '=');
		if (!commands[n])
			return 2;
		*commands[n]++ = '\0';
	}
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	(void)sched_setaffinity(0, sizeof one, &one);
	char *save = NULL;
	for (char *live = strtok_r(argv[3], ",", &save); live; live = strtok_r(NULL, ",", &save)) {
		unsigned long count = strtoul(live, NULL, 10), cycles = strtoul(argv[4], NULL, 10),
			      named = strtoul(argv[5], NULL, 10);
		if (!count || count >= LIVE_MAX || !cycles || named > NAMED_MAX)
			return 2;
		if (bench_level(argv[1], argv[2], (unsigned)count, (unsigned)cycles,
				(unsigned)named, names, commands, n))
			return 1;
	}
	return 0;
}
