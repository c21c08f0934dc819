/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside the CPU allocator. Sets of the machine (a core, a package …) are kept as their non-zero
 * words alone, so that looking at one costs what it has and not what the machine has. The sets of a
 * running allocation are plain words, n_words of them.
 */
#ifndef NRI_RP_LIB_CPUALLOC_IMPL_H
#define NRI_RP_LIB_CPUALLOC_IMPL_H

#include <stdbool.h>
#include <stdlib.h>

#include "modules/lib/cpualloc.h"

#define N_PRIOS 4u /* CPUALLOC_NONE included */
#define N_BLOCKS 32u
#define NO_UNIT UINT32_MAX

struct part {
	uint64_t bits;
	uint32_t word;
};

struct span {
	struct part *parts;
	uint32_t n_parts;
	uint32_t size; /* CPUs */
};

struct unit {
	struct span cpus;
	uint32_t package, die, node; /* indices, ascending by the kernel's numbers */
	uint32_t kind; /* of its lowest CPU */
	uint32_t tie; /* place among its like when all else is equal */
};

/* Something that waits in a heap for its turn: the smallest key, then the smallest tie, comes
 * first. */
struct rank {
	uint64_t key;
	uint32_t tie, index;
};

struct cpualloc {
	uint32_t n_words, n_cpus, n_cores, n_packages, n_dies, n_clusters, n_groups, max_threads;
	bool hybrid;
	uint64_t *online, *leaders; /* leaders: the lowest CPU of each core */
	uint64_t *prio[N_PRIOS];
	uint64_t *bound; /* efficient cores that may be low at most */
	uint32_t *core_of; /* by CPU */
	struct span *cores;
	struct unit *packages, *clusters, *groups; /* by their numbers: package, die, … */
	/* What follows from the priorities, by preference: packages, best first; how many CPUs of a
	 * package count; cores by how good they are, 0 best; and for each of these ranks the
	 * threads of its smallest core. */
	uint32_t *package_order[N_PRIOS], *package_size[N_PRIOS];
	uint32_t *core_rank[N_PRIOS], *rank_threads[N_PRIOS];
	uint32_t n_ranks[N_PRIOS];
	/* Scratch. */
	uint64_t *left, *got, *sub_left, *sub_got;
	struct rank *ranks, *ranks2;
	uint32_t *free_cpus; /* of each group */
	uint32_t *die_idle, *die_used, *package_idle, *package_used;
	void *blocks[N_BLOCKS];
	uint32_t n_blocks;
};

static inline uint32_t count_bits(uint64_t w)
{
	return (uint32_t)__builtin_popcountll(w);
}

static inline uint32_t span_count(const struct span *s, const uint64_t *set)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < s->n_parts; i++)
		n += count_bits(s->parts[i].bits & set[s->parts[i].word]);
	return n;
}

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

/* Is all of the span that is in mask also in set? */
static inline bool span_within(const struct span *s, const uint64_t *mask, const uint64_t *set)
{
	for (uint32_t i = 0; i < s->n_parts; i++) {
		uint32_t w = s->parts[i].word;
		if (s->parts[i].bits & mask[w] & ~set[w])
			return false;
	}
	return true;
}

/* How a set with so many CPUs of each priority compares, as a number: smaller is better. n: CPUs
 * wanted, 0 when more of the preferred ones are just better. */
uint64_t cpualloc_prio_key(enum cpualloc_prio prefer, uint32_t n, const uint32_t have[3],
			   bool plain);

/* Brings up to date what follows from the priorities. */
void cpualloc_rank(struct cpualloc *a);

#endif
