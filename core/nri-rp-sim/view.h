/* SPDX-License-Identifier: Apache-2.0 */
/* The topology of a machine as the runtime and the kernel see it, read from its tree of files,
 * made-up or recorded. */
#pragma once

#include <stdint.h>

#include <nri-rp/set.h>

#include "core/lib/util/arena.h"
#include "core/lib/util/err.h"

#define VIEW_NONE UINT32_MAX

enum view_level { VIEW_CORE, VIEW_L3, VIEW_NODE, VIEW_DIE, VIEW_PACKAGE, VIEW_LEVELS };

struct view_cpu {
	uint32_t id;
	/* Unit of each level. Units are numbered over the machine in the order of their first CPUs,
	 * except nodes, which keep their own numbers. */
	uint32_t unit[VIEW_LEVELS];
};

struct view_node {
	uint32_t id;
	int64_t memory; /* memory of the node, in bytes */
};

struct view {
	struct arena *arena;
	struct rp_idset present, online, isolated;
	struct rp_idset nodes, memory; /* memory nodes, and those with memory */
	uint32_t n_cpus; /* number of online CPUs */
	struct view_cpu *cpus;
	uint32_t *index_of; /* index in cpus by id, up to the last online CPU; VIEW_NONE: offline */
	uint32_t n_ids;
	uint32_t n_nodes;
	struct view_node *node;
	uint32_t n_units[VIEW_LEVELS];
	int64_t total_memory;
};

int view_read(const char *root, struct view *ret, struct err *err);
void view_fini(struct view *v);
/* Returns NULL if the CPU is not online. */
const struct view_cpu *view_cpu(const struct view *v, uint32_t id);
/* Collects the units of a level that contain the CPUs. */
void view_units(const struct view *v, enum view_level level, struct rp_ids cpus,
		struct rp_idset *ret);
/* Collects the CPUs of the units. */
void view_cpus(const struct view *v, enum view_level level, struct rp_ids units,
	       struct rp_idset *ret);
