/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Artificial machines for programs that need one without its hardware, described by a YAML file
 * (nri-rp-sim(1)) or by a shipped one. A machine is written as a tree with the files below sys/ and
 * proc/ from which programs read the hardware.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <nri-rp/set.h>

#include "core/lib/machines/doc.h"
#include "core/lib/util/arena.h"
#include "core/lib/util/err.h"

#define MACHINE_KINDS_MAX 4u
#define MACHINE_NODES_MAX 256u

enum machine_memory { MEMORY_DRAM, MEMORY_HBM, MEMORY_CXL, MEMORY_PMEM, MEMORY_DEVICE };

struct machine_frequency {
	int64_t base, min, max; /* frequencies in kHz; 0: not reported */
};

/* A kind of cores; most machines have one. */
struct machine_kind {
	const char *name;
	bool efficient;
	uint32_t cores; /* cores per node */
	uint32_t threads; /* threads per core */
	uint32_t l2_cores; /* cores that share one L2 cache */
	int64_t l1d, l1i, l2; /* sizes of the caches in bytes; 0: no such cache */
	struct machine_frequency frequency;
};

struct machine_cpu {
	const struct machine_kind *kind;
	uint32_t package, die, node;
	uint32_t core; /* number within the machine */
	uint32_t core_id; /* number within the package, as in the kernel */
	uint32_t thread;
	uint32_t l2, l3; /* numbers of the caches; UINT32_MAX: none */
};

/* Huge pages of one size on each node with CPUs. */
struct machine_huge {
	uint64_t page; /* size of a page in bytes */
	int64_t n; /* number of pages */
};
#define MACHINE_HUGE_MAX 4u

struct machine_node {
	int64_t memory; /* memory of the node in bytes */
	enum machine_memory type;
	uint32_t package, die; /* UINT32_MAX for memory without CPUs */
	bool movable; /* the kernel does not use its memory */
};

struct machine {
	struct arena *arena;
	const char *name, *about;
	bool numa;
	uint32_t n_kinds, n_cpus, n_nodes, n_packages, n_cores;
	struct machine_kind kinds[MACHINE_KINDS_MAX];
	struct machine_cpu *cpus;
	struct machine_node *nodes;
	uint16_t *distances; /* distances between nodes: n_nodes × n_nodes */
	int64_t l3;
	struct machine_huge huge[MACHINE_HUGE_MAX];
	uint32_t n_huge;
	struct rp_idset isolated, offline;
};

/* Makes a machine of a description; -EINVAL with err: invalid. A base is looked up among the
 * shipped descriptions. */
int machine_from(const json_t *description, struct machine *ret, struct err *err);
void machine_fini(struct machine *m);
