/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nri-rp.host.topology/1: the machine, as read from sysfs. A snapshot: it changes only between
 * callbacks, and RP_EVENT_TOPOLOGY tells. CPUs, cores, caches, dies, packages and nodes are *units*
 * of a *level*; units of a level are numbered 0 … n-1 in ascending order of their lowest CPU
 * (memory-only nodes after the others, by node id). Offline CPUs are in no unit.
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
#define RP_LEVEL_LLC 10u /* the last level of cache that the machine has, whatever its number */
/* The levels of this major. Levels are indexes into rp_cpu_info.unit, which has members behind it,
 * so a level more would come with a service of its own. */
#define RP_N_LEVELS 11u

/* Sets of CPUs. */
#define RP_CPUS_POSSIBLE 1u
#define RP_CPUS_PRESENT 2u
#define RP_CPUS_ONLINE 3u
#define RP_CPUS_ISOLATED 4u /* isolcpus=, online ones only */
#define RP_CPUS_PERFORMANCE 5u /* core kinds of hybrid machines; all online CPUs elsewhere */
#define RP_CPUS_EFFICIENT 6u
#define RP_CPUS_NOHZ_FULL 7u
/* Sets of nodes. */
#define RP_NODES_ONLINE 20u
#define RP_NODES_MEMORY 21u /* have memory */
#define RP_NODES_NORMAL 22u /* have memory that is not only movable */

#define RP_CORE_PERFORMANCE 0u
#define RP_CORE_EFFICIENT 1u

#define RP_MEM_DRAM 0u
#define RP_MEM_PMEM 1u
#define RP_MEM_HBM 2u
#define RP_MEM_CXL 3u
#define RP_MEM_NONE 4u /* a node with neither memory nor CPUs */

#define RP_EPP_UNKNOWN 0xffffffffu

/*
 * Frequencies and EPP are read when somebody first asks for those of the CPU. Who does not need
 * them sets size to offsetof(struct rp_cpu_info, base_khz), and costs nobody the reading.
 */
struct rp_cpu_info {
	uint32_t size;
	uint32_t cpu;
	uint32_t package_id, die_id, cluster_id, core_id, node_id; /* the kernel's numbers */
	uint32_t kind; /* RP_CORE_PERFORMANCE or RP_CORE_EFFICIENT */
	/* by level: index of the unit it is in; RP_IDSET_NONE when there is none */
	uint32_t unit[RP_N_LEVELS];
	uint64_t base_khz, min_khz, max_khz; /* 0: unknown */
	uint32_t epp; /* 0 performance … 255 power; RP_EPP_UNKNOWN */
	uint32_t capacity; /* relative performance, 1024 at most; 0: unknown */
};

struct rp_unit_info {
	uint32_t size;
	/* the kernel's number (core_id, node number, cache id …); only unique within the parent for
	 * some levels */
	uint32_t id;
	struct rp_ids cpus; /* online CPUs */
};

struct rp_node_info {
	uint32_t size;
	uint32_t id;
	uint32_t type; /* RP_MEM_… */
	uint32_t normal; /* 1: memory that is not only movable */
	uint64_t memory; /* bytes */
	struct rp_ids cpus;
	uint32_t package_id,
		/* of its CPUs; for a memory-only node those of the closest node with CPUs */
		die_id;
};

#define RP_CACHE_DATA 1u
#define RP_CACHE_INSTRUCTION 2u
#define RP_CACHE_UNIFIED 3u

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
	uint64_t (*generation)(void *ctx);
	int32_t (*set)(void *ctx, uint32_t which, struct rp_ids *ret);
	/* -RP_ENOENT for a CPU that is not online. */
	int32_t (*cpu)(void *ctx, uint32_t cpu, struct rp_cpu_info *out);
	uint32_t (*n_units)(void *ctx, uint32_t level);
	int32_t (*unit)(void *ctx, uint32_t level, uint32_t index, struct rp_unit_info *out);
	/* By the node's number. -RP_ENOENT for a node that is not online. */
	int32_t (*node)(void *ctx, uint32_t node, struct rp_node_info *out);
	/* Between two nodes, by number; 10 is local, 0 unknown. */
	uint32_t (*distance)(void *ctx, uint32_t from, uint32_t to);
	uint32_t (*n_caches)(void *ctx);
	int32_t (*cache)(void *ctx, uint32_t index, struct rp_cache_info *out);
	/* CPUs and nodes near a device, given its path under /sys/devices or its device number.
	 * -RP_ENOENT: not known. */
	int32_t (*device)(void *ctx, const char *sysfs_path, struct rp_idset *ret_cpus,
			  struct rp_idset *ret_nodes);
	/* MemTotal of the machine in bytes. */
	uint64_t (*memory)(void *ctx);
	/*
	 * The device behind a path of the host ("/dev/sda": that one; any other file or folder: the
	 * one its file system is on), or of a device number ("b8:0", "c1:3"), as its path under
	 * /sys/devices, for device(). Does not ask the servers of network file systems. Returns the
	 * length of the path. -RP_ENOENT: there is no such thing or it is on no device; -RP_E2BIG:
	 * buf is too small.
	 */
	int32_t (*device_path)(void *ctx, const char *what, char *buf, uint32_t cap);
	/* [since 1.3] 1: the machine is made of files, for tests and simulations, and nobody's work
	 * depends on it; 0: it is the kernel's. */
	int32_t (*simulated)(void *ctx);
};

#ifdef __cplusplus
}
#endif
#endif
