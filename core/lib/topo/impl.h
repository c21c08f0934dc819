/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations shared by the files of core/lib/topo, for no other folder. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <nri-rp/topology.h>

#include "core/lib/topo/setpool.h"
#include "core/lib/topo/topo.h"
#include "core/lib/util/arena.h"
#include "core/lib/util/err.h"
#include "core/lib/util/fs.h"

#define CPU_DIR "sys/devices/system/cpu"
#define NODE_DIR "sys/devices/system/node"

/* largest memory of a snapshot, and of the data for making one, in bytes */
#define TOPO_MEMORY_MAX (64u << 20)
#define TOPO_FILE_MAX 16384u /* the longest file except lists of CPUs */
#define TOPO_NO_UNIT UINT16_MAX
#define TOPO_NO_INDEX UINT16_MAX
#define TOPO_CACHE_INDEX_MAX 16u /* largest number of cacheN/indexN directories of a CPU */
#define TOPO_CACHE_LEVEL_MAX 8u
#define TOPO_DISTANCE_MAX 65535

_Static_assert(RP_CPUS_MAX + RP_NODES_MAX < TOPO_NO_UNIT, "units are numbered in 16 bits");

struct topo_cpu {
	uint32_t package_id, die_id, cluster_id, core_id;
	uint32_t base_khz, min_khz, max_khz;
	uint32_t epp;
	uint16_t capacity;
	uint16_t node; /* index of the CPU's node in `nodes` */
	uint16_t unit[RP_N_LEVELS];
	uint8_t kind;
	bool has_freq; /* base_khz to epp have been read */
	bool has_epp; /* the kernel has a file for epp, whether its value is known or not */
};

struct topo_unit {
	struct rp_ids cpus;
	uint32_t id;
};

struct topo_level {
	struct topo_unit *units;
	uint32_t n;
};

struct topo_node {
	struct rp_ids cpus;
	uint64_t memory;
	uint32_t id;
	uint32_t package_id, die_id;
	uint8_t type;
	bool has_memory; /* true also if the amount was not readable */
	bool normal;
};

struct topo_cache {
	struct rp_ids cpus;
	uint64_t bytes;
	uint32_t id;
	uint8_t level, type;
};

#define TOPO_N_SETS (RP_NODES_NORMAL + 1u)

struct topo {
	uint64_t generation;
	struct arena *arena;
	struct fs_root root;
	struct rp_ids sets[TOPO_N_SETS];
	struct topo_cpu *cpus; /* online CPUs, ascending */
	uint32_t n_cpus;
	uint16_t *cpu_index; /* by CPU number: its index in cpus or TOPO_NO_INDEX */
	uint32_t n_cpu_index;
	struct topo_level levels[RP_N_LEVELS];
	struct topo_node *nodes; /* online nodes, ascending */
	uint32_t n_nodes;
	uint16_t *distances; /* n_nodes rows of n_nodes; 0: unknown */
	struct topo_cache *caches;
	uint32_t n_caches;
	uint64_t memory;
	const char *notes[TOPO_NOTES_MAX];
	uint32_t n_notes;
	struct sst *sst; /* state of Speed Select; NULL: not read yet */
	bool has_devices; /* the machine lists its devices by number, in /sys/dev */
	bool hides_memory; /* true if memory nodes of devices are left out */
	char device_nodes[TOPO_DEVICE_MAX]; /* setting of topo_set_device_nodes(); "": auto */
};

/* State of one run of topo_read. */
struct reader {
	struct topo *t;
	struct arena *scratch; /* freed at the end of the run */
	struct set_pool pool;
	struct rp_ids online;
	uint32_t *cpu_ids; /* number of each CPU, by index in t->cpus */
	uint16_t *core_head; /* index in t->cpus of each core's first CPU */
	uint32_t n_cores;
	int cpu_fd; /* descriptor of CPU_DIR */
	uint32_t n_more_notes;
	struct err *err;
};

/* Works like topo_read() with a limit of memory, so that tests can exceed it. */
int topo_read_within(const struct fs_root *root, size_t memory_max, uint64_t generation,
		     struct topo **ret, struct err *err);

int reader_cpus(struct reader *r);
int reader_kinds(struct reader *r);
int reader_caches(struct reader *r);
int reader_nodes(struct reader *r);
int reader_units(struct reader *r);

/*
 * Makes the units of a level. Online CPUs with equal keys are one unit; units are numbered by their
 * first CPU and have that CPU's id. keys and ids are by index in t->cpus; CPUs whose key is
 * TOPO_NO_KEY are in no unit.
 */
#define TOPO_NO_KEY UINT64_MAX
int reader_level(struct reader *r, uint32_t level, const uint64_t *keys, const uint32_t *ids);

int reader_no_memory(struct reader *r);
/* Adds a sentence for topo_note(); sentences beyond the limit are counted. */
void reader_note(struct reader *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Copies a set, which lives as long as the snapshot. */
int reader_keep_set(struct reader *r, struct rp_ids v, struct rp_ids *ret);
struct rp_idset *reader_new_set(struct reader *r);

/* Returns the index in t->cpus, or TOPO_NO_INDEX. */
static inline uint16_t topo_cpu_index(const struct topo *t, uint32_t cpu)
{
	return cpu < t->n_cpu_index ? t->cpu_index[cpu] : TOPO_NO_INDEX;
}

/* Returns the index in t->nodes, or TOPO_NO_INDEX. */
uint16_t topo_node_index(const struct topo *t, uint32_t node);

/* Reads base_khz … epp of a CPU once. */
void topo_load_freq(const struct topo *t, uint32_t number, struct topo_cpu *c);

/* Reads the kB behind "NAME:" in the text of a meminfo file, in bytes. -ENOENT, or -EINVAL. */
int topo_parse_meminfo(const char *text, const char *name, uint64_t *ret);
/* Parses a size in the notation of sysfs: "32K", "4M", "512". */
int topo_parse_size(const char *text, uint64_t *ret);
/* Reads a whole number of 32 bits; -EINVAL. */
int topo_read_u32_at(int dirfd, const char *path, uint32_t *ret);
