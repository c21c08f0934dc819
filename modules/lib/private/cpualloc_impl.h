/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Internals of the CPU allocator. CPU sets of units (a core, a package …) are stored as their
 * non-zero words, so that a check costs the size of the unit and not of the machine. The sets of a
 * running allocation are plain arrays of n_words words.
 */
#pragma once

#include <stdbool.h>
#include <stdlib.h>

#include <nri-rp/lib/cpualloc.h>

#define N_PRIOS 4u /* including CPUALLOC_NONE */
#define N_BLOCKS 32u
#define NO_UNIT UINT32_MAX

struct part {
	uint64_t bits;
	uint32_t word;
};

struct span {
	struct part *parts;
	uint32_t n_parts;
	uint32_t size; /* number of CPUs */
};

struct unit {
	struct span cpus;
	uint32_t package, die, node; /* indices, ascending by the kernel's numbers */
	uint32_t kind; /* RP_CORE_… of its lowest CPU */
	uint32_t tie; /* position among equals */
};

/* An element of a heap. The smallest key comes first, then the smallest tie. */
struct rank {
	uint64_t key;
	uint32_t tie, index;
};

struct cpualloc {
	uint32_t n_words, n_cpus, n_cores, n_packages, n_dies, n_clusters, n_groups, max_threads;
	bool hybrid;
	uint64_t *online, *leaders; /* lowest CPU of each core */
	uint64_t *prio[N_PRIOS];
	uint64_t *bound; /* efficient cores, which must not exceed low priority */
	uint32_t *core_of; /* core of each CPU, by CPU id */
	struct span *cores;
	struct unit *packages, *clusters, *groups; /* groups are cache groups */
	/* Tables derived from the priorities, indexed by preference: packages with the best first;
	 * number of countable CPUs of each package; rank of each core, 0 is best; and for each rank
	 * the number of threads of its smallest core. */
	uint32_t *package_order[N_PRIOS], *package_size[N_PRIOS];
	uint32_t *core_rank[N_PRIOS], *rank_threads[N_PRIOS];
	uint32_t n_ranks[N_PRIOS];
	/* Scratch. */
	uint64_t *left, *got, *sub_left, *sub_got;
	struct rank *ranks, *ranks2;
	uint32_t *free_cpus; /* number of free CPUs by unit */
	uint32_t *die_idle, *die_used, *package_idle, *package_used;
	void *blocks[N_BLOCKS];
	uint32_t n_blocks;
};

static inline uint32_t count_bits(uint64_t w)
{
	return (uint32_t)__builtin_popcountll(w);
}

/* Returns how many CPUs of the span are in set. */
static inline uint32_t span_count(const struct span *s, const uint64_t *set)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < s->n_parts; i++)
		n += count_bits(s->parts[i].bits & set[s->parts[i].word]);
	return n;
}

/* Returns how many CPUs of the span are in both sets. */
static inline uint32_t span_count_and(const struct span *s, const uint64_t *set,
				      const uint64_t *mask)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < s->n_parts; i++) {
		uint32_t w = s->parts[i].word;
		n += count_bits(s->parts[i].bits & set[w] & mask[w]);
	}
	return n;
}

/* Returns true if all CPUs of the span that are in mask are also in set. */
static inline bool span_within(const struct span *s, const uint64_t *mask, const uint64_t *set)
{
	for (uint32_t i = 0; i < s->n_parts; i++) {
		uint32_t w = s->parts[i].word;
		if (s->parts[i].bits & mask[w] & ~set[w])
			return false;
	}
	return true;
}

/* Updates the tables derived from the priorities. */
void cpualloc_rank(struct cpualloc *a);
