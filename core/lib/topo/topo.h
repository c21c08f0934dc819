/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Topology of the machine: CPUs, cores, caches, dies, packages, memory nodes, read once from sysfs
 * and procfs under a root into an immutable snapshot. The getters are those of the service
 * nri-rp.host.topology/1 (<nri-rp/topology.h>), with its types. Each takes constant time and
 * returns views of the snapshot's memory, valid while a reference to the snapshot exists.
 *
 * Only cpu/online (or, without it, cpu/present) has to exist, and every file with numbers of CPUs
 * and nodes has to be valid. Everything else has a default; missing and contradictory files are
 * reported by topo_note().
 *
 * Frequencies, EPP and Speed Select (sst.h) are not read at once. topo_cpu() reads the frequencies
 * of a CPU at their first use, through the root that the snapshot keeps open. A snapshot is
 * therefore for one thread.
 *
 * Out-structs are filled according to util/sized.h. A CPU's frequencies are not read for a caller
 * whose size ends before them.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <nri-rp/topology.h>

#include "core/lib/util/buf.h"
#include "core/lib/util/err.h"
#include "core/lib/util/fs.h"

struct topo;

/* ---- creation -------------------------------------------------------------------------------- */

/*
 * Reads the machine under root. The caller owns the snapshot. -ENOENT: no list of CPUs;
 * -EINVAL: a list of CPUs or nodes is malformed or has ids beyond RP_CPUS_MAX or RP_NODES_MAX; err
 * names the file.
 */
int topo_read(const struct fs_root *root, struct topo **ret, struct err *err);
/* Reads the same machine again; the generation is one more than old's. */
int topo_reread(const struct topo *old, struct topo **ret, struct err *err);
/*
 * Sets which nodes without CPUs have device memory, which is hidden: "auto", "none" or a list of
 * nodes. Takes effect at the next topo_reread(). Returns true if the setting differs from the
 * previous one.
 */
#define TOPO_DEVICE_MAX 256u /* longest setting, in bytes, with its NUL */
bool topo_set_device_nodes(struct topo *t, const char *setting);
/* Returns true if the machine lists its devices by number, in /sys/dev. Simulated ones may not. */
bool topo_has_devices(const struct topo *t);
/* Returns true if memory nodes of devices are hidden. */
bool topo_hides_memory(const struct topo *t);
/* Accepts NULL; returns NULL. */
struct topo *topo_free(struct topo *t);

static inline void cleanup_topo(struct topo **t)
{
	*t = topo_free(*t);
}
#define _topo_ __attribute__((cleanup(cleanup_topo)))

/* Returns the descriptor of the snapshot's root, for a child that closes all others. */
int topo_root_fd(const struct topo *t);

/* ---- getters of the service ------------------------------------------------------------------ */

uint64_t topo_generation(const struct topo *t);
/* Returns a set, RP_CPUS_… or RP_NODES_…; -EINVAL for any other number. */
int topo_set(const struct topo *t, uint32_t which, struct rp_ids *ret);
/* Returns a CPU; -ENOENT: not online. */
int topo_cpu(struct topo *t, uint32_t cpu, struct rp_cpu_info *out);
/*
 * Frequencies that have been read. A child process sends them to its parent, which then need not
 * read them. The iterator returns the next CPU from *cpu on and moves *cpu behind it; false: there
 * is none.
 */
struct topo_freq {
	uint32_t cpu, base_khz, min_khz, max_khz, epp;
	uint32_t has_epp; /* 1: the kernel has a file for epp, whether its value is known or not */
};
bool topo_next_freq(const struct topo *t, uint32_t *cpu, struct topo_freq *ret);
uint32_t topo_n_freqs(const struct topo *t);
/* Stores frequencies; existing ones are unchanged. -ENOENT: the CPU is not online. */
int topo_put_freq(struct topo *t, const struct topo_freq *f);
/* Returns the number of units of a level; 0: the level does not exist on this machine. */
uint32_t topo_n_units(const struct topo *t, uint32_t level);
/*
 * Returns a unit. Units of RP_LEVEL_CLUSTER are logical clusters: kernel clusters of a die that
 * contain only the threads of one core are combined, under the cluster id of the first of them.
 * Units of a cache level are caches that hold data. Each node is a unit of RP_LEVEL_NODE, with or
 * without CPUs. -ENOENT beyond the last one.
 */
int topo_unit(const struct topo *t, uint32_t level, uint32_t index, struct rp_unit_info *out);
/* Returns a node; -ENOENT: not online. */
int topo_node(const struct topo *t, uint32_t node, struct rp_node_info *out);
/* Reads the used memory of a node in bytes, without file pages, which the kernel drops on demand.
 * -errno: it cannot be read. */
int topo_node_used(const struct topo *t, uint32_t node, uint64_t *ret);
uint32_t topo_distance(const struct topo *t, uint32_t from, uint32_t to);
uint32_t topo_n_caches(const struct topo *t);
/* Returns a cache, ordered by level, type and lowest CPU. -ENOENT beyond the last one. */
int topo_cache(const struct topo *t, uint32_t index, struct rp_cache_info *out);
uint64_t topo_memory(const struct topo *t);
#define TOPO_HUGE_NODES_MAX 64u
/* Reads the bytes of all and of the free huge pages of a size on a node, from sysfs each time.
 * -ENOENT: the kernel has no pages of this size there. */
int topo_hugepages(const struct topo *t, uint32_t node, uint64_t page, uint64_t *ret_total,
		   uint64_t *ret_free);
/* Returns the huge page size with this index among the kernel's sizes in ascending order, in bytes;
 * 0: no more. */
uint64_t topo_hugepage_size(const struct topo *t, uint32_t index);
/*
 * Finds online CPUs and nodes near a device: "/sys/devices/…", any path under /sys that leads
 * there, or a device number ("8:0": block, else character; "b8:0"; "c1:3"). A device made of others
 * (md, dm, a vfio group) is where these are. If sysfs only names CPUs, the nodes are theirs. If it
 * only names a node, the CPUs are the node's, or those closest to a memory-only node. Reads files
 * each time. -ENOENT: unknown; -EINVAL: neither path nor device number.
 */
int topo_device_near(const struct topo *t, const char *device, struct rp_idset *ret_cpus,
		     struct rp_idset *ret_nodes);
/* Stores the nodes, with the closest nodes with CPUs in place of online nodes without CPUs. */
void topo_nodes_near(const struct topo *t, struct rp_ids nodes, struct rp_idset *ret);

/* ---- for the host only ----------------------------------------------------------------------- */

/* Returns a set by its number, which has to be one of RP_CPUS_… or RP_NODES_…. */
static inline struct rp_ids topo_ids(const struct topo *t, uint32_t which)
{
	struct rp_ids v = rp_ids_none();
	(void)topo_set(t, which, &v);
	return v;
}

/* Return notes on oddities of the machine's description: sentences without a newline,
 * TOPO_NOTES_MAX at most. The last one states whether there were more. */
#define TOPO_NOTES_MAX 32u
uint32_t topo_n_notes(const struct topo *t);
const char *topo_note(const struct topo *t, uint32_t index); /* NULL beyond the last one */

/* Returns the bytes of memory of the snapshot. */
size_t topo_size(const struct topo *t);

struct topo_change {
	struct rp_idset cpus_on, cpus_off; /* CPUs that came online, that went offline */
	struct rp_idset nodes_on, nodes_off; /* nodes that came online, that went offline */
	/* online in both snapshots, with another amount or kind of memory */
	struct rp_idset nodes_resized;
	/* A CPU that is online in both snapshots has other ids, units or kind, or isolated or
	 * nohz_full changed. */
	bool cpus_moved;
	bool distances; /* distances between nodes that are online in both snapshots */
};
/* Compares two snapshots. Returns true if any value of the getters differs, except frequencies and
 * notes. */
bool topo_diff(const struct topo *old, const struct topo *now, struct topo_change *ret);

const char *topo_memory_type_name(uint32_t type); /* "DRAM", "PMEM", "HBM", "CXL", "none" */
