/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Map of the machine for people: packages, nodes, caches, cores, and on every CPU the letter of the
 * group that uses it.
 *
 *   package 0
 *     node 0  DRAM 16 GiB, 8 CPUs: 2 exclusive, 4 shared, 2 free
 *       0 A   1 A │   2 a   3 a │   4 a   5 a │   6 ·   7 ·
 *
 * Capitals are CPUs that a single group uses, small letters are shared ones. A group is a set of
 * CPUs and its users: containers, a pool. Large machines get a line of sets for each node instead.
 */
#pragma once

#include <nri-rp/set.h>

#include "core/lib/term/out.h"

#define CPUMAP_NOBODY UINT32_MAX /* group of a free CPU */

struct cpumap_cpu {
	uint32_t cpu;
	uint32_t package, node, cache, core; /* ids that distinguish the units of each level */
};

struct cpumap_node {
	uint32_t node;
	const char *type; /* memory type such as "DRAM"; "": unknown */
	uint64_t memory; /* memory of the node in bytes */
	const char *where; /* text behind a node without CPUs, ", near package 0", or "" */
	uint64_t used; /* bytes of memory; 0: not measured */
};

struct cpumap_group {
	struct rp_idset cpus;
	bool exclusive;
	/* Number among the groups of its kind, from 0, which determines the letter. */
	uint32_t ordinal;
};

/* Filled and owned by the caller. A CPU of several groups is drawn for the first of them. */
struct cpumap {
	const struct cpumap_cpu *cpus; /* online CPUs, in any order */
	const struct cpumap_node *nodes;
	const struct cpumap_group *groups;
	uint32_t n_cpus, n_nodes, n_groups;
	const struct rp_idset *reserved; /* CPUs that are not free without a group; NULL: none */
};

#define CPUMAP_MARK_MAX 8u
/* Returns the letters of a group, or the dot of a free CPU. */
const char *cpumap_mark(const struct cpumap *m, uint32_t group, char buf[CPUMAP_MARK_MAX]);
enum style cpumap_style(uint32_t group);

/* Draws packages with their nodes and CPUs. -ENOMEM. */
int cpumap_draw(const struct cpumap *m, struct out *o);
