/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Staging: compares grants of the ledger with the current state of containers and writes the
 * differences into the transaction. Saves grants with containers. Applies CPU classes and interrupt
 * affinities.
 */
#pragma once

#include <stdbool.h>

#include <nri-rp/policy.h>

#include "modules/topology-aware/place.h"

/*
 * Stages CPUs, memory, shares, data and record of one container, as far as they differ from its
 * current state.
 */
int32_t stage_grant(struct rp_instance *inst, rp_txn txn, const struct grant *g);
/*
 * Stages the other containers whose shared CPUs or memory zone changed in this callback; skips
 * container `except`.
 */
int32_t stage_others(struct rp_instance *inst, rp_txn txn, rp_ctr except);
/*
 * Records the containers whose memory zone the last call of the memory allocator changed, for
 * stage_others().
 */
int32_t stage_note_moves(struct rp_instance *inst);

/* ---- saved records --------------------------------------------------------------------------- */

struct record_bytes {
	uint32_t size;
	uint8_t data[RP_PRIVATE_MAX];
};
/* Encodes a grant as a record. */
void record_make(struct rp_instance *inst, const struct grant *g, struct record_bytes *ret);
/* Returns true if the container's saved record equals rec. */
bool record_is_kept(struct rp_instance *inst, rp_ctr ctr, const struct record_bytes *rec);
/*
 * Head of a saved record. The name of the pool, the words of two sets (memory zone, exclusive CPUs)
 * and the topology hints follow.
 */
struct kept {
	GRANT_FACTS;
	uint32_t n_pool; /* length of the name in bytes */
	uint32_t n_zone, n_exclusive; /* lengths of the sets in words */
	uint32_t n_hints;
};
struct record {
	struct kept kept;
	uint32_t pool; /* NO_POOL: the pool no longer exists */
	memalloc_mask zone;
	struct rp_idset exclusive;
	struct hints *hints;
};
/*
 * Reads the saved record of a container. Returns 0, -RP_ENOENT if this version saved none, or
 * -RP_ENOMEM. The caller owns ret->hints.
 */
int32_t record_read(struct rp_instance *inst, rp_ctr ctr, struct record *ret);

/* ---- classes and interrupts (stage_hardware.c) ----------------------------------------------- */

/* Determines the scheduling class and the CPU class of a container. */
int32_t classes_of(struct rp_instance *inst, struct request *r);
/* Stages the scheduling class of a container that is being created. */
int32_t classes_stage_sched(struct rp_instance *inst, rp_txn txn, const struct request *r);
/* Stages the memory policy of a container that is being created. */
int32_t classes_stage_mempolicy(struct rp_instance *inst, rp_txn txn, const struct request *r);
/* Applies the CPU classes of a new active configuration. */
int32_t classes_configure(struct rp_instance *inst);
/* Applies CPU classes to the CPUs of the ledger's grants if the grants changed. */
void classes_apply(struct rp_instance *inst);
/*
 * Narrows the candidates for exclusive CPUs to CPUs that suit the container's CPU class. Returns
 * true if the candidates are CPUs that the class prefers.
 */
bool classes_narrow(struct rp_instance *inst, const struct request *r, struct rp_idset *from);
extern const struct rp_extended ta_extended;
/*
 * Reads the interrupt patterns of a container from its annotation into r->irq. Returns 0, or an
 * error that refuses the container.
 */
int32_t interrupts_read(struct rp_instance *inst, struct request *r);
/* Passes the interrupt patterns of all grants to irq.h if they changed. */
void interrupts_apply(struct rp_instance *inst);
/*
 * Counts users of interrupt patterns, which requests and grants share. Both functions accept NULL;
 * irq_ask_unref() returns NULL.
 */
struct irq_ask *irq_ask_ref(struct irq_ask *a);
struct irq_ask *irq_ask_unref(struct irq_ask *a);

/* ---- cold starts (stage_cold.c) -------------------------------------------------------------- */

/* Reads the duration of a container's cold start from its annotation; 0: no cold start. */
int32_t cold_read(struct rp_instance *inst, rp_ctr ctr, uint64_t *ret_ms);
/* Starts the period of a cold start after the container has started. */
int32_t cold_started(struct rp_instance *inst, rp_txn txn, rp_ctr ctr);
/* Ends the cold starts whose period is over. */
int32_t cold_timer(struct rp_instance *inst, rp_txn txn);
/* Arms the timer for the next end of a cold start. */
void cold_arm(struct rp_instance *inst);
