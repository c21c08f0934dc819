/* SPDX-License-Identifier: Apache-2.0 */
/*
 * relief ROOT CONFIG NODES CPUS SHARED COMMAND
 *
 * Measures what three moves for one container cost. A machine with NODES NUMA nodes of CPUS CPUs,
 * four of them reserved, has SHARED containers on shared CPUs, and all other CPUs belong to
 * containers of one exclusive CPU each. In each cycle two of each node end; then the time is taken
 * of a container of one CPU, and of one of five CPUs, which fits into a node after three moves.
 * Both begin on the same machine with the same containers.
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
#define RESERVED 4u

struct machine {
	unsigned n_nodes, n_cpus;
	unsigned first, live; /* the first container with an exclusive CPU; all containers */
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
static int end_some(struct bench *b, struct machine *m)
{
	m->n_ended = 0;
	for (unsigned node = 0; node < m->n_nodes; node++) {
		unsigned n = 0;
		for (unsigned i = m->first; i < m->live && n < FREED; i++) {
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

/* Returns how many containers have an exclusive CPU other than in `before`. */
static unsigned count_moved(const struct bench *b, const struct machine *m, char (*before)[64])
{
	unsigned n = 0;
	for (unsigned i = m->first; i < m->live; i++)
		n += *b->cpus[i] && strcmp(b->cpus[i], before[i]) != 0;
	return n;
}

/* Creates a container, stores the time, and ends the container. */
static int measure_one(struct bench *b, const struct machine *m, unsigned cpus, unsigned moves,
		       struct samples *ret)
{
	static char before[LIVE_MAX][64];
	memcpy(before, b->cpus, m->live * sizeof *before);
	b->samples[CREATE].n = 0;
	b->whole = cpus;
	int r = bench_create(b, m->live, NULL);
	if (!r && count_moved(b, m, before) != moves) {
		fprintf(stderr, "bench: %u moves instead of %u\n", count_moved(b, m, before),
			moves);
		r = -1;
	}
	if (!r)
		ret->ns[ret->n++] = b->samples[CREATE].ns[0];
	if (!r)
		r = bench_delete(b, m->live);
	b->whole = 1;
	return r;
}

static int cycle(struct bench *b, struct machine *m, struct samples *plain, struct samples *moved)
{
	int r = end_some(b, m);
	if (!r)
		r = measure_one(b, m, 1, 0, plain);
	if (!r)
		r = measure_one(b, m, FREED + MOVES, MOVES, moved);
	for (unsigned i = 0; !r && i < m->n_ended; i++)
		r = bench_create(b, m->ended[i], NULL);
	return r;
}

static int play(struct bench *b, struct machine *m, const char *command, const char *root,
		const char *config)
{
	static uint32_t times[2][CYCLES];
	struct samples plain = {.ns = times[0]}, moved = {.ns = times[1]};
	m->live = m->first + m->n_nodes * m->n_cpus - RESERVED;
	int r = bench_start(b, command, root, config);
	if (!r)
		r = bench_configure(b);
	if (!r)
		r = bench_synchronize(b, 0);
	for (unsigned i = 0; !r && i < m->live; i++) {
		b->whole = i >= m->first;
		r = bench_create(b, i, NULL);
	}
	for (unsigned c = 0; !r && c < CYCLES; c++)
		r = cycle(b, m, &plain, &moved);
	if (r)
		return r;
	double base = median_us(&plain), with = median_us(&moved);
	printf("%4u shared, %4u exclusive: create %.1f us, with %u moves %.1f us, +%.1f us\n",
	       m->first, m->live - m->first, base, MOVES, with, with - base);
	return 0;
}

int main(int argc, char **argv)
{
	struct bench b = {.loop = loop_new()};
	struct machine m = {0};
	cpu_set_t one;
	if (argc != 7) {
		fprintf(stderr, "usage: relief ROOT CONFIG NODES CPUS SHARED COMMAND\n");
		return 2;
	}
	m.n_nodes = (unsigned)strtoul(argv[3], NULL, 10);
	m.n_cpus = (unsigned)strtoul(argv[4], NULL, 10);
	m.first = (unsigned)strtoul(argv[5], NULL, 10);
	if (!m.n_nodes || !m.n_cpus || m.first + m.n_nodes * m.n_cpus >= LIVE_MAX)
		return 2;
	m.ended = calloc((size_t)m.n_nodes * FREED, sizeof *m.ended);
	b.cpus = calloc(LIVE_MAX, sizeof *b.cpus);
	b.mems = calloc(LIVE_MAX, sizeof *b.mems);
	(void)snprintf(b.dir, sizeof b.dir, "/tmp/nri-rp-bench-XXXXXX");
	if (!b.loop || !m.ended || !b.cpus || !b.mems || !mkdtemp(b.dir))
		return 1;
	(void)snprintf(b.socket, sizeof b.socket, "%s/nri.sock", b.dir);
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	(void)sched_setaffinity(0, sizeof one, &one);
	int r = play(&b, &m, argv[6], argv[1], argv[2]);
	bench_stop(&b);
	return r ? 1 : 0;
}
