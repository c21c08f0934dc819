/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nri-rp.host.topology/1: the machine, as read from sysfs. It is a snapshot that changes only
 * between callbacks; RP_EVENT_TOPOLOGY reports a change. All functions may be called in every
 * callback, on the main thread.
 *
 * CPUs, cores, caches, dies, packages and nodes are *units* of a *level*. The units of a level are
 * numbered 0 … n-1 in ascending order of their lowest CPU. Nodes without CPUs follow the others, by
 * node id. Offline CPUs belong to no unit.
 */
#ifndef NRI_RP_TOPOLOGY_H
#define NRI_RP_TOPOLOGY_H

#include <nri-rp/module.h>
#include <nri-rp/set.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RP_HOST_TOPOLOGY_1 "nri-rp.host.topology/1"

#define RP_LEVEL_SYSTEM 1u
#define RP_LEVEL_PACKAGE 2u
#define RP_LEVEL_DIE 3u
#define RP_LEVEL_NODE 4u
#define RP_LEVEL_L3 5u
#define RP_LEVEL_L2 6u
#define RP_LEVEL_CORE 7u
#define RP_LEVEL_THREAD 8u
#define RP_LEVEL_CLUSTER 9u
#define RP_LEVEL_LLC 10u /* the last level of cache of this machine, whatever its number */
/* The number of levels of this major. It cannot grow: rp_cpu_info.unit is indexed by level and has
 * members behind it. A further level would need a service of its own. */
#define RP_N_LEVELS 11u

/* Sets of CPUs, for set(). */
#define RP_CPUS_POSSIBLE 1u
#define RP_CPUS_PRESENT 2u
#define RP_CPUS_ONLINE 3u
#define RP_CPUS_ISOLATED 4u /* online CPUs isolated by isolcpus= */
#define RP_CPUS_PERFORMANCE 5u /* by kind of core on hybrid machines; all online CPUs on others */
#define RP_CPUS_EFFICIENT 6u
#define RP_CPUS_NOHZ_FULL 7u
/* Sets of nodes, for set(). */
#define RP_NODES_ONLINE 20u
#define RP_NODES_MEMORY 21u /* nodes with memory */
#define RP_NODES_NORMAL 22u /* nodes with memory that is not only movable */

#define RP_CORE_PERFORMANCE 0u
#define RP_CORE_EFFICIENT 1u

#define RP_MEM_DRAM 0u
#define RP_MEM_PMEM 1u
#define RP_MEM_HBM 2u
#define RP_MEM_CXL 3u
#define RP_MEM_NONE 4u /* a node with neither memory nor CPUs */

#define RP_EPP_UNKNOWN 0xffffffffu

/*
 * A CPU. Frequencies and EPP are read at the first request for this CPU. A caller that does not
 * need them sets size to offsetof(struct rp_cpu_info, base_khz) and avoids the reading.
 */
struct rp_cpu_info {
	uint32_t size;
	uint32_t cpu;
	uint32_t package_id, die_id, cluster_id, core_id, node_id; /* the kernel's numbers */
	uint32_t kind; /* RP_CORE_PERFORMANCE or RP_CORE_EFFICIENT */
	/* index of the CPU's unit, by level; RP_IDSET_NONE: none */
	uint32_t unit[RP_N_LEVELS];
	uint64_t base_khz, min_khz, max_khz; /* frequencies of the CPU; 0: unknown */
	uint32_t epp; /* 0 performance … 255 power; RP_EPP_UNKNOWN */
	uint32_t capacity; /* relative performance, at most 1024; 0: unknown */
};

/* A unit of a level. */
struct rp_unit_info {
	uint32_t size;
	/* The kernel's number (core_id, node number, cache id …). For some levels unique only
	 * within the parent unit. */
	uint32_t id;
	struct rp_ids cpus; /* online CPUs */
};

/* A NUMA node. */
struct rp_node_info {
	uint32_t size;
	uint32_t id;
	uint32_t type; /* RP_MEM_… */
	uint32_t normal; /* 1: the node has memory outside ZONE_MOVABLE */
	uint64_t memory; /* bytes */
	struct rp_ids cpus;
	/* package and die of its CPUs; of the closest node with CPUs if it has none
	 * itself */
	uint32_t package_id, die_id;
};

#define RP_CACHE_DATA 1u
#define RP_CACHE_INSTRUCTION 2u
#define RP_CACHE_UNIFIED 3u

/* A cache. */
struct rp_cache_info {
	uint32_t size;
	uint32_t id;
	uint32_t level;
	uint32_t type;
	uint64_t bytes;
	struct rp_ids cpus;
};

struct rp_host_topology {
	uint32_t size;
	uint32_t pad;
	/* Returns the number of the snapshot, which grows with each change of the machine. */
	uint64_t (*generation)(void *ctx);
	/* Stores a set RP_CPUS_… or RP_NODES_… in *ret, valid until the callback returns.
	 * -RP_EINVAL: unknown set. */
	int32_t (*set)(void *ctx, uint32_t which, struct rp_ids *ret);
	/* Fills *out for a CPU. -RP_ENOENT: the CPU is not online. */
	int32_t (*cpu)(void *ctx, uint32_t cpu, struct rp_cpu_info *out);
	/* Returns the number of units of a level RP_LEVEL_…. */
	uint32_t (*n_units)(void *ctx, uint32_t level);
	/* Fills *out with a unit. -RP_ENOENT: there is no such unit. */
	int32_t (*unit)(void *ctx, uint32_t level, uint32_t index, struct rp_unit_info *out);
	/* Fills *out for a node, by its number. -RP_ENOENT: the node is not online. */
	int32_t (*node)(void *ctx, uint32_t node, struct rp_node_info *out);
	/* Returns the distance between two nodes, by number. 10: local; 0: unknown. */
	uint32_t (*distance)(void *ctx, uint32_t from, uint32_t to);
	/* Return the number of caches, and fill *out with one of them. -RP_ENOENT: there is no such
	 * cache. */
	uint32_t (*n_caches)(void *ctx);
	int32_t (*cache)(void *ctx, uint32_t index, struct rp_cache_info *out);
	/* Stores the CPUs and nodes near a device, which is given by its path under /sys/devices or
	 * its device number. -RP_ENOENT: not known. */
	int32_t (*device)(void *ctx, const char *sysfs_path, struct rp_idset *ret_cpus,
			  struct rp_idset *ret_nodes);
	/* Returns the machine's MemTotal in bytes. */
	uint64_t (*memory)(void *ctx);
	/*
	 * Writes the path under /sys/devices of the device behind `what`, for device(). `what` is a
	 * path of the host or a device number ("b8:0", "c1:3"). A device file such as "/dev/sda"
	 * stands for its device, any other file or folder for the device of its file system.
	 * Network file systems are not accessed. Returns the length of the path. -RP_ENOENT: `what`
	 * does not exist or is on no device; -RP_E2BIG: buf is too small.
	 */
	int32_t (*device_path)(void *ctx, const char *what, char *buf, uint32_t cap);
	/* Returns 1 if the machine is made of files, for tests and simulations, and 0 if it is
	 * the kernel's. On a simulated machine a module may change anything without harm. [since
	 * 1.3] */
	int32_t (*simulated)(void *ctx);
};

#ifdef __cplusplus
}
#endif
#endif
