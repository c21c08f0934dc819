/* SPDX-License-Identifier: Apache-2.0 */
/* From balloons into the transaction, and to the hardware beside it. */
#ifndef BALLOONS_STAGE_H
#define BALLOONS_STAGE_H

#include <stdbool.h>

#include <nri-rp/policy.h>

#include "modules/balloons/place_state.h"

/* Pins `m` (NULL: nobody in particular) and the members of all balloons whose sets have changed. */
int32_t pin_changed(struct rp_instance *inst, rp_txn txn, struct member *m);
/* All CPUs, or all memory nodes, for a container that is confined to some. Nothing else can take a
 * set away again; who never had one is left alone. */
#define PIN_CPUS 0x1u
#define PIN_MEMORY 0x2u
int32_t pin_loosen(struct rp_instance *inst, rp_txn txn, rp_ctr ctr, uint32_t what);
/* What it may have owned with others of a balloon is not its any more. */
int32_t pin_own_nothing(struct rp_instance *inst, rp_txn txn, rp_ctr ctr);
int32_t pin_scheduling(struct rp_instance *inst, rp_txn txn, rp_ctr ctr, const struct type *t);
/* Kept with a container: where it was, and how often it was moved there. */
struct record {
	uint32_t instance, moves;
	bool owns; /* its devices count for the balloon */
	bool roams; /* runs unmanaged: the type is "" */
	bool loose; /* its CPUs are not those of its balloon, as none are pinned */
	const char *type, *devices;
};
int32_t pin_record(struct rp_instance *inst, rp_txn txn, const struct member *m);
/* Of one that runs unmanaged. Needs neither a plan nor a state. */
int32_t pin_record_roaming(struct rp_instance *inst, rp_txn txn, rp_ctr ctr);
bool pin_read_record(struct rp_instance *inst, rp_ctr ctr, struct record *ret);
/* CPUs its members may use. */
void pin_pinnable(const struct balloon *b, struct rp_idset *ret);

/* ---- beside the transaction (stage_hardware.c) ----------------------------------------------- */

/* Hands CPU classes and interrupts to the worker as they follow from the state. */
void outside_follow(struct rp_instance *inst);

#endif
