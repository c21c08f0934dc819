/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The balloons policy: containers run in balloons, disjoint sets of CPUs that grow and shrink
 * with the CPU requests of their containers.
 *
 * The configuration applied to the topology of this node is a `struct rp_plan`. The placement
 * under that plan is a `struct state`. Reload, reconnect and restart all rebuild the state in
 * the same way. An image of the previous state lists the CPUs of each balloon (sync_image.c),
 * and the record saved with each container names its balloon (stage.c):
 *
 *	state -- image_write --> image -- image_restore --> balloons -- rejoin --> members
 *	                                                               by the containers' records
 *
 * Without an image, another policy placed the containers. Their CPU sets become balloons where
 * they qualify (sync.c).
 *
 *	config      section → types
 *	plan        types + topology → plan: built-in types, hints, checks
 *	            plan_tree      the topology as a tree
 *	place       type and balloon of a container
 *	            place_state    balloons, members, undo
 *	            place_balloon  create, resize, delete
 *	            place_size     choice of CPUs to add or remove
 *	            place_devices  devices of containers
 *	            place_claims   claims of balloons, and the devices they are claimed from
 *	            place_better   rebalancing of containers
 *	            place_compact  better CPUs for a balloon
 *	            place_relief   moves of balloons so that another balloon fits into one node
 *	stage       balloons → transaction
 *	            stage_hardware CPU classes, interrupts
 *	sync        placement of all containers
 *	            sync_image     balloons ↔ bytes
 *	report      zones, metrics, explanations, extended resources
 *	balloons.c  the callbacks
 *
 * This header defines the policy instance, for the files that need all of it.
 */
#pragma once

#include "modules/balloons/plan.h"
#include "modules/balloons/sync.h"
#include "modules/lib/private/irq.h"
#include <nri-rp/lib/life.h>
#include <nri-rp/lib/relief_owned.h>

struct counters {
	uint64_t placed, refused, resized, rebalanced;
	uint64_t rebalanced_before; /* value of rebalanced when the operation began, for rollback */
};

struct rp_instance {
	LIFE;
	struct state *state;
	struct bytes image; /* serialized state, for save() */
	struct bytes before; /* serialized previous state, for sync() to restore */
	struct cpuclass *classes;
	struct irq *irq;
	/* CPU classes and interrupts are set as the active configuration requires */
	bool outside_ready;
	struct counters counters;
	struct relief relief;
	struct unplaced {
		rp_ctr ctr;
		/* runs unmanaged: no CPUs to keep, uses the idle CPUs */
		bool roams;
		/* excluded from the policy: keeps its CPUs from an earlier policy and does not
		 * wait */
		bool left;
	} * unplaced; /* containers without a balloon; may include removed ones */
	uint32_t n_unplaced, cap_unplaced;
	uint32_t rebalance_at; /* index at which the last rebalancing used up its work budget */
	bool in_sync; /* the running operation is a sync */
	const struct type *claimed; /* type of the claim that is being allocated; or NULL */
};
