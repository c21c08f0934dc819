/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The balloons policy: containers run in balloons, disjoint sets of CPUs that grow and shrink with
 * what their containers ask for.
 *
 * A configuration on the machine as it is makes a `struct rp_plan`; what is placed where under it
 * is a `struct state`. A state is always made anew in the same way, by a reload, a reconnect and a
 * restart alike: an image of the one before says which CPUs each balloon had (sync_image.c), and
 * what is kept with each container says in which balloon it was (stage.c):
 *
 *	state -- image_write --> image -- image_restore --> balloons -- rejoin --> members
 *	                                                               by the containers' records
 *
 * Where there is no image, the containers have come from another policy: CPUs of theirs that could
 * be a balloon's are adopted (sync.c).
 *
 *	config      section → types
 *	plan        types + machine → plan: built-ins, hints, checks
 *	            plan_tree      the machine as a tree
 *	place       which type, which balloon
 *	            place_state    balloons, members, undo
 *	            place_balloon  create, resize, delete
 *	            place_size     which CPUs come and go
 *	            place_devices  devices that containers have
 *	            place_better   who would be placed better
 *	            place_compact  better CPUs for a balloon
 *	            place_relief   other nodes for some, so that another balloon lies in one
 *	stage       into the transaction
 *	            stage_hardware CPU classes, interrupts
 *	sync        everything at once
 *	            sync_image     balloons as bytes, and back
 *	report      zones, metrics, explanations, extended resources
 *	balloons.c  the callbacks
 *
 * This header is the instance, for those who need all of it.
 */
#ifndef BALLOONS_BALLOONS_H
#define BALLOONS_BALLOONS_H

#include "modules/balloons/plan.h"
#include "modules/balloons/sync.h"
#include "modules/lib/irq.h"
#include "modules/lib/life.h"
#include "modules/lib/relief_owned.h"

struct counters {
	uint64_t placed, refused, resized, rebalanced;
	uint64_t rebalanced_before; /* at the last begin: what is rolled back does not count */
};

struct rp_instance {
	LIFE;
	struct state *state;
	struct bytes image; /* of the state, for save() */
	struct bytes before; /* of the one that sync() is to restore */
	struct cpuclass *classes;
	struct irq *irq;
	bool outside_ready; /* they were told the present configuration */
	struct counters counters;
	struct relief relief;
	struct unplaced {
		rp_ctr ctr;
		/* runs unmanaged: it has no CPUs to keep, and follows those that are idle */
		bool roams;
		/* waits for nothing: it is left alone, on the CPUs that it has from an earlier
		 * time */
		bool left;
	} * unplaced; /* containers without a place; perhaps more than there still are */
	uint32_t n_unplaced, cap_unplaced;
	uint32_t rebalance_at; /* where the last rebalancing stopped as it had looked at enough */
	bool in_sync; /* the running operation is one */
};

#endif
