/* SPDX-License-Identifier: Apache-2.0 */
/* Staging of the balloons' CPUs and memory in the transaction, and of the hardware settings. */
#pragma once

#include <stdbool.h>

#include <nri-rp/policy.h>

#include "modules/balloons/place_state.h"

/* Stages the CPUs and memory of `m` (NULL: no specific member) and of all members of balloons
 * whose CPUs changed. */
int32_t pin_changed(struct rp_instance *inst, rp_txn txn, struct member *m);
/* Stages all online CPUs or all memory nodes for a container that is confined to some of them,
 * because a staged set cannot be removed. Unconfined containers are unchanged. `what`: PIN_CPUS,
 * PIN_MEMORY or both. */
#define PIN_CPUS 0x1u
#define PIN_MEMORY 0x2u
int32_t pin_loosen(struct rp_instance *inst, rp_txn txn, rp_ctr ctr, uint32_t what);
/* Leaves a container that the policy does not manage on the CPUs that it has; without any, on all
 * CPUs. */
int32_t pin_leave(struct rp_instance *inst, rp_txn txn, rp_ctr ctr);
/* Keeps the memory nodes of the members that have rejoined a balloon, if the memory nodes and
 * types of the balloon are the same as before. Without this, memory that was moved to free
 * capacity would be moved again. */
void pin_keep_memory(struct rp_instance *inst);
/* Removes the exclusive CPUs and the balloon group of a container. */
int32_t pin_own_nothing(struct rp_instance *inst, rp_txn txn, rp_ctr ctr);
/* Stages the scheduling class of a container, from its annotation or its type. */
int32_t pin_scheduling(struct rp_instance *inst, rp_txn txn, rp_ctr ctr, const struct type *t);
/* Record saved with a container: its balloon and its number of moves. */
struct record {
	uint32_t instance, moves;
	bool owns; /* the container's devices are counted among the balloon's devices */
	bool roams; /* the container runs unmanaged; type is "" */
	bool loose; /* CPUs differ from the balloon's CPUs, because pinCPU is off */
	const char *type, *devices;
};
/* Saves the record of a member with its container. */
int32_t pin_record(struct rp_instance *inst, rp_txn txn, const struct member *m);
/* Saves the record of an unmanaged container. Needs no plan and no state. */
int32_t pin_record_roaming(struct rp_instance *inst, rp_txn txn, rp_ctr ctr);
/* Reads the record of a container. Returns false if there is none or it is invalid. */
bool pin_read_record(struct rp_instance *inst, rp_ctr ctr, struct record *ret);
/* Sets *ret to the CPUs that members of the balloon may use. */
void pin_pinnable(const struct balloon *b, struct rp_idset *ret);

/* ---- hardware settings (stage_hardware.c) ---------------------------------------------------- */

/* Submits CPU classes and interrupt affinities to the worker if the state changed them. */
void outside_follow(struct rp_instance *inst);
