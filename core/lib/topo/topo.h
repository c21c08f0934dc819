/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the machine is: CPUs, cores, caches, dies, packages, memory nodes, read once from sysfs and
 * procfs under a root into an immutable snapshot. The getters are those of the modules' service
 * nri-rp.host.topology/1 (<nri-rp/topology.h>), whose types they use; each costs O(1) and hands out
 * views of the snapshot's memory, valid as long as a reference to it is held.
 *
 * Only cpu/online (or, without it, cpu/present) has to be there and every file that says which CPUs
 * and nodes there are has to make sense. All else has a default; what was missing where it should
 * not, or was contradictory, is told by topo_note().
 *
 * Frequencies and EPP are the exception to "read once": they are read when topo_cpu() is first
 * asked for them, a CPU at a time, through the root that the snapshot keeps open; and so is Speed
 * Select (sst.h). So a snapshot is for one thread.
 *
 * Out-structs are filled as util/sized.h says. A CPU's frequencies are not read for a caller
 * whose size ends before them.
 */
#ifndef TOPO_TOPO_H
#define TOPO_TOPO_H

#include <stdbool.h>
#include <stdint.h>

#include <nri-rp/topology.h>

#include "core/lib/util/buf.h"
#include "core/lib/util/err.h"
#include "core/lib/util/fs.h"

struct topo;

/* ---- making ---------------------------------------------------------------------------------- */

/*
 * Reads the machine under root. The caller owns the reference it gets. -ENOENT without a list of
 * CPUs, -EINVAL when a list of CPUs or nodes is not one or has ids beyond RP_CPUS_MAX or
 * RP_NODES_MAX; err names the file.
 */
int topo_read(const struct fs_root *root, struct topo **ret, struct err *err);
/* The same machine as it is now; its generation is one more than that of `old`. */
int topo_reread(const struct topo *old, struct topo **ret, struct err *err);
struct topo *topo_ref(struct topo *t);
/* NULL is fine. Returns NULL. */
struct topo *topo_unref(struct topo *t);

static inline void cleanup_topo(struct topo **t)
{
	*t = topo_unref(*t);
}
#define _topo_ __attribute__((cleanup(cleanup_topo)))

/* The root that the snapshot keeps open, for a child that closes what it does not need. */
int topo_root_fd(const struct topo *t);

/* ---- the service's getters ------------------------------------------------------------------- */

uint64_t topo_generation(const struct topo *t);
/* RP_CPUS_… or RP_NODES_…; -EINVAL for any other number. */
int topo_set(const struct topo *t, uint32_t which, struct rp_ids *ret);
/* -ENOENT for a CPU that is not online. */
int topo_cpu(struct topo *t, uint32_t cpu, struct rp_cpu_info *out);
/*
 * The frequencies that have been asked for so far: a child tells them, so that its parent need not
 * read them as well. Those of the next CPU from *cpu on, which is moved behind it; false: there is
 * none.
 */
struct topo_freq {
	uint32_t cpu, base_khz, min_khz, max_khz, epp;
	bool has_epp; /* the kernel tells it, known or not */
};
bool topo_next_freq(const struct topo *t, uint32_t *cpu, struct topo_freq *ret);
uint32_t topo_n_freqs(const struct topo *t);
/* What is known already stays as it is. -ENOENT for a CPU that is not online. */
int topo_put_freq(struct topo *t, const struct topo_freq *f);
/* 0 for a level that does not exist here. */
uint32_t topo_n_units(const struct topo *t, uint32_t level);
/*
 * Units of RP_LEVEL_CLUSTER are logical clusters: those kernel clusters of a die that are just one
 * core's threads are taken as one, under the cluster id of the first of them. Units of a cache
 * level are caches that hold data. A node is a unit of RP_LEVEL_NODE whether or not it has CPUs.
 * -ENOENT beyond the last one.
 */
int topo_unit(const struct topo *t, uint32_t level, uint32_t index, struct rp_unit_info *out);
/* -ENOENT for a node that is not online. */
int topo_node(const struct topo *t, uint32_t node, struct rp_node_info *out);
uint32_t topo_distance(const struct topo *t, uint32_t from, uint32_t to);
uint32_t topo_n_caches(const struct topo *t);
/* Ordered by level, type and lowest CPU. -ENOENT beyond the last one. */
int topo_cache(const struct topo *t, uint32_t index, struct rp_cache_info *out);
uint64_t topo_memory(const struct topo *t);
/*
 * Online CPUs and nodes near a device: "/sys/devices/…", any path under /sys that leads there, or a
 * device number ("8:0": block, else character; "b8:0"; "c1:3"). A device made of others (md, dm, a
 * vfio group) is where these are. When only CPUs are told the nodes are theirs; when only a node
 * is, the CPUs are the node's, or the closest ones to a memory-only node. Reads files each time.
 * -ENOENT: not known; -EINVAL: neither path nor device number.
 */
int topo_device_near(const struct topo *t, const char *device, struct rp_idset *ret_cpus,
		     struct rp_idset *ret_nodes);

/* ---- for the host alone ---------------------------------------------------------------------- */

/* A set by its number, which has to be one of the RP_CPUS_… or RP_NODES_…. */
static inline struct rp_ids topo_ids(const struct topo *t, uint32_t which)
{
	struct rp_ids v = rp_ids_none();
	(void)topo_set(t, which, &v);
	return v;
}

/* What was odd about the machine's description: sentences without a newline, TOPO_NOTES_MAX at
 * most, the last tells if there were more. */
#define TOPO_NOTES_MAX 32u
uint32_t topo_n_notes(const struct topo *t);
const char *topo_note(const struct topo *t, uint32_t index); /* NULL beyond the last one */

/* Bytes of memory the snapshot holds. */
size_t topo_size(const struct topo *t);

struct topo_change {
	struct rp_idset cpus_on, cpus_off; /* came online, went offline */
	struct rp_idset nodes_on, nodes_off; /* the same for nodes */
	struct rp_idset nodes_resized; /* online in both, other amount or kind of memory */
	/* a CPU online in both has other ids, units or kind; or isolated, nohz_full changed */
	bool cpus_moved;
	bool distances; /* of nodes online in both */
};
/* True when anything that the getters tell is different (but for frequencies and notes). */
bool topo_diff(const struct topo *old, const struct topo *now, struct topo_change *ret);

/* A table for people: sets, packages, dies, nodes, caches, cores, CPUs. 0 or -ENOMEM. */
int topo_describe(struct topo *t, struct buf *out);
const char *topo_memory_type_name(uint32_t type); /* "DRAM", "PMEM", "HBM", "CXL", "none" */

#endif
