/* SPDX-License-Identifier: Apache-2.0 */
/*
 * relief ROOT CONFIG NODES CPUS COMMAND
 *
 * Measures what three moves for one container cost. A machine with NODES NUMA nodes of CPUS CPUs,
 * one of them reserved, is full of containers of one exclusive CPU each. In each cycle two of each
 * node end; then the time is taken of a container of one CPU, and of one of five CPUs, which fits
 * into a node after three moves. Both begin on the same machine with the same containers.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sched.h>
#include <unistd.h>

#include "test/bench/bench.h"

#define CYCLES 200u
#define FREED 2u
#define MOVES 3u

struct machine {
	unsigned n_nodes, n_cpus;
	unsigned *ended, n_ended; /* containers that ended in this cycle */
};

static int by_value(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return x < y ? -1 : x > y;
}

static double median_us(struct samples *s)
{
	qsort(s->ns, s->n, sizeof *s->ns, by_value);
	return s->n ? s->ns[s->n / 2] / 1e3 : 0;
}

/* Ends some containers of each node. */
static int end_some(struct bench *b, struct machine *m, unsigned live)
{
	m->n_ended = 0;
	for (unsigned node = 0; node < m->n_nodes; node++) {
		unsigned n = 0;
		for (unsigned i = 0; i < live && n < FREED; i++) {
			if (!*b->cpus[i] || strtoul(b->cpus[i], NULL, 10) / m->n_cpus != node)
				continue;
			if (bench_delete(b, i))
				return -1;
			m->ended[m->n_ended++] = i;
			n++;
		}
	}
	return 0;
}

/* Creates a container and ends it. The time of the creation is the last sample. */
static int measure_one(struct bench *b, unsigned i, unsigned cpus, struct samples *ret,
		       unsigned moves)
{
	b->samples[CREATE].n = 0;
	b->updates = 0;
	b->whole = cpus;
	int r = bench_create(b, i, NULL);
	if (!r && b->updates != moves) {
		fprintf(stderr, "bench: %u updates instead of %u\n", b->updates, moves);
		r = -1;
	}
	if (!r)
		ret->ns[ret->n++] = b->samples[CREATE].ns[0];
	if (!r)
		r = bench_delete(b, i);
	b->whole = 1;
	return r;
}

static int cycle(struct bench *b, struct machine *m, unsigned live, struct samples *plain,
		 struct samples *moved)
{
	int r = end_some(b, m, live);
	if (!r)
		r = measure_one(b, live, 1, plain, 0);
	if (!r)
		r = measure_one(b, live, FREED + MOVES, moved, MOVES);
	for (unsigned i = 0; !r && i < m->n_ended; i++)
		r = bench_create(b, m->ended[i], NULL);
	return r;
}

static int play(struct bench *b, struct machine *m, const char *command, const char *root,
		const char *config)
{
	static uint32_t times[2][CYCLES];
	struct samples plain = {.ns = times[0]}, moved = {.ns = times[1]};
	unsigned live = m->n_nodes * m->n_cpus - 1;
	b->whole = 1;
	int r = bench_start(b, command, root, config);
	if (!r)
		r = bench_configure(b);
	if (!r)
		r = bench_synchronize(b, 0);
	for (unsigned i = 0; !r && i < live; i++)
		r = bench_create(b, i, NULL);
	for (unsigned c = 0; !r && c < CYCLES; c++)
		r = cycle(b, m, live, &plain, &moved);
	if (r)
		return r;
	double base = median_us(&plain), with = median_us(&moved);
	printf("%u containers: create %.1f us, with %u moves %.1f us, +%.1f us\n", live, base,
	       MOVES, with, with - base);
	return 0;
}

int main(int argc, char **argv)
{
	struct bench b = {.loop = loop_new()};
	struct machine m = {0};
	cpu_set_t one;
	if (argc != 6) {
		fprintf(stderr, "usage: relief ROOT CONFIG NODES CPUS COMMAND\n");
		return 2;
	}
	m.n_nodes = (unsigned)strtoul(argv[3], NULL, 10);
	m.n_cpus = (unsigned)strtoul(argv[4], NULL, 10);
	if (!m.n_nodes || !m.n_cpus || m.n_nodes * m.n_cpus >= LIVE_MAX)
		return 2;
	m.ended = calloc((size_t)m.n_nodes * FREED, sizeof *m.ended);
	b.cpus = calloc(LIVE_MAX, sizeof *b.cpus);
	(void)snprintf(b.dir, sizeof b.dir, "/tmp/nri-rp-bench-XXXXXX");
	if (!b.loop || !m.ended || !b.cpus || !mkdtemp(b.dir))
		return 1;
	(void)snprintf(b.socket, sizeof b.socket, "%s/nri.sock", b.dir);
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	(void)sched_setaffinity(0, sizeof one, &one);
	int r = play(&b, &m, argv[5], argv[1], argv[2]);
	bench_stop(&b);
	return r ? 1 : 0;
}
