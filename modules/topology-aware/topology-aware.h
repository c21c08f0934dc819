/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The topology-aware policy: containers get CPUs and memory from a *pool*, a part of the node.
 * Pools form a tree: node, sockets, dies, NUMA nodes, L3 caches. Each container is placed in the
 * pool that suits it best. There it gets shared CPUs, exclusive CPUs, or both.
 *
 *	config      settings of a configuration section
 *	plan        CPU sets and allocators for settings and topology
 *	            plan_tree      tree of pools
 *	place       placement of one container
 *	            place_request  request of a container
 *	            place_hints    topology hints of devices and mounts
 *	            place_affinity affinities between containers
 *	            place_score    choice of the best pool
 *	            place_pod      pods as one request
 *	            place_claim    pools and CPUs for claims
 *	            place_ledger   grants by pool, with undo log
 *	            place_better   rebalancing of running containers
 *	            place_relief   moves that let a container fit into one NUMA node
 *	stage       staging into the transaction, saved records
 *	            stage_cold     cold starts
 *	            stage_hardware scheduling and CPU classes, interrupts
 *	sync        placement of all containers
 *	report      zones, metrics, explanations
 *	topology-aware.c  callbacks
 *
 * All amounts of CPU are milli-CPU. Names of pools depend only on the hardware, so they remain
 * valid across configurations and restarts.
 */
#pragma once

#include "modules/topology-aware/place_ledger.h"
#include "modules/lib/private/irq.h"
#include <nri-rp/lib/life.h>
#include <nri-rp/lib/relief_owned.h>

struct counters {
	uint64_t placed, refused, resized, rebalanced;
};

struct rp_instance {
	LIFE;
	struct ledger ledger;
	struct counters counters;
	struct relief relief;
	bool resync; /* the log cannot undo the running callback */
	bool replaced; /* a previous plan was active */
	/* containers that keep exclusive CPUs assigned before this policy started */
	uint32_t n_adopted;
	/* container at which the next rebalancing continues; 0: the first one */
	rp_ctr rebalance_from;
	/* Containers whose memory zone changed in this callback. */
	rp_ctr *moved;
	uint32_t n_moved, cap_moved;
	/*
	 * Container list for loops that place containers; placement itself uses the list in LIFE.
	 */
	struct ctr_list order;
	struct cpuclass *classes;
	struct irq *irqs;
	char why[MODHOST_TEXT_MAX]; /* message of the last failure */
};
