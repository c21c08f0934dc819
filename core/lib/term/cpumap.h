/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The machine as a map for people: packages, nodes, caches, cores, and on every CPU the letter of
 * those who run there.
 *
 *   package 0
 *     node 0  DRAM 16 GiB, 8 CPUs: 2 exclusive, 4 shared, 2 free
 *       0 A   1 A │   2 a   3 a │   4 a   5 a │   6 ·   7 ·
 *
 * Capitals are CPUs of one group alone, small letters are shared ones. A group is a set of CPUs and
 * those who run on it: containers, a pool. Large machines get a line of sets for each node instead.
 */
#ifndef TERM_CPUMAP_H
#define TERM_CPUMAP_H

#include <nri-rp/set.h>

#include "core/lib/term/out.h"

#define CPUMAP_NOBODY UINT32_MAX /* the group of a CPU that is free */

struct cpumap_cpu {
	uint32_t cpu;
	uint32_t package, node, cache, core; /* what tells units of a level apart */
};

struct cpumap_node {
	uint32_t node;
	const char *type; /* "DRAM"; "" when that is not known */
	uint64_t memory; /* bytes */
	const char *where; /* said behind a node without CPUs, ", near package 0", or "" */
};

struct cpumap_group {
	struct rp_idset cpus;
	bool exclusive;
	/* Counted from 0 over the groups of its kind: which letter it has. */
	uint32_t ordinal;
};

/* Filled by the caller, whose arrays they remain. Where a CPU is in several groups the first of
 * them is drawn. */
struct cpumap {
	const struct cpumap_cpu *cpus; /* those on line, in any order */
	const struct cpumap_node *nodes;
	const struct cpumap_group *groups;
	uint32_t n_cpus, n_nodes, n_groups;
};

#define CPUMAP_MARK_MAX 8u
/* The letter or letters of a group, the dot of nobody. */
const char *cpumap_mark(const struct cpumap *m, uint32_t group, char buf[CPUMAP_MARK_MAX]);
enum style cpumap_style(uint32_t group);

/* Packages with their nodes and CPUs. -ENOMEM. */
int cpumap_draw(const struct cpumap *m, struct out *o);

#endif
