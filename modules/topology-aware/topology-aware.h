/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The topology-aware policy: containers get CPUs and memory from a *pool*, a part of the machine.
 * Pools form a tree: the machine, sockets, dies, NUMA nodes, L3 caches. Each container is given to
 * the pool that suits it best; there it shares CPUs with others, has some for itself, or both.
 *
 *	config      section → settings
 *	plan        settings + machine → sets of CPUs, allocators
 *	            plan_tree      the pools
 *	place       one container into a pool
 *	            place_request  what a container wants
 *	            place_hints    near which devices
 *	            place_affinity next to whom
 *	            place_score    which pool is best
 *	            place_ledger   who has what in which pool, and the way back
 *	            place_better   better places for those that run
 *	            place_relief   other places for some, so that another fits into one NUMA node
 *	stage       into the transaction, and what is kept with a container
 *	            stage_cold     memory that comes later
 *	            stage_hardware scheduling and CPU classes, interrupts
 *	sync        everything at once
 *	report      zones, metrics, explanations
 *	topology-aware.c  the callbacks
 *
 * All amounts of CPU are milli-CPU. Names of pools depend on the hardware alone, so they outlive
 * configurations and restarts.
 */
#ifndef TOPOLOGY_AWARE_TOPOLOGY_AWARE_H
#define TOPOLOGY_AWARE_TOPOLOGY_AWARE_H

#include "modules/topology-aware/place_ledger.h"
#include "modules/lib/irq.h"
#include "modules/lib/life.h"
#include "modules/lib/relief_owned.h"

struct counters {
	uint64_t placed, refused, resized, rebalanced;
};

struct rp_instance {
	LIFE;
	struct ledger ledger;
	struct counters counters;
	struct relief relief;
	bool resync; /* the running callback cannot be undone from the log */
	bool replaced; /* another plan was in force before */
	bool memory_begun;
	uint32_t n_adopted; /* containers that keep what somebody else had given them */
	rp_ctr rebalance_from; /* where the next rebalancing goes on; 0: at the first container */
	/* Containers whose memory zone has changed in this callback. */
	rp_ctr *moved;
	uint32_t n_moved, cap_moved;
	/* Of walks that place containers one after the other, which walks over others do. */
	struct ctr_list order;
	struct cpuclass *classes;
	struct irq *irqs;
	bool irqs_used;
	char why[MODHOST_TEXT_MAX]; /* of the last failure */
};

#endif
