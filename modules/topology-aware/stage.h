/* SPDX-License-Identifier: Apache-2.0 */
/* From the ledger into the transaction, and to the hardware beside it. */
#ifndef TOPOLOGY_AWARE_STAGE_H
#define TOPOLOGY_AWARE_STAGE_H

#include <stdbool.h>

#include <nri-rp/policy.h>

#include "modules/topology-aware/place.h"

/* Everything about one container; what it has already is not staged. */
int32_t stage_grant(struct rp_instance *inst, rp_txn txn, const struct grant *g);
/* Those whose shared CPUs or memory have changed in this callback, but for one. */
int32_t stage_others(struct rp_instance *inst, rp_txn txn, rp_ctr except);
/* Notes the zone changes of the memory allocator's last call for stage_others(). */
int32_t stage_note_moves(struct rp_instance *inst);
/* The CPUs a grant has now. */
void stage_cpus(const struct rp_plan *p, const struct grant *g, struct rp_idset *ret);

/* ---- what is kept with a container ----------------------------------------------------------- */

struct record_bytes {
	uint32_t size;
	uint8_t data[RP_PRIVATE_MAX];
};
void record_make(struct rp_instance *inst, const struct grant *g, struct record_bytes *ret);
/* Is this what is kept already? */
bool record_is_kept(struct rp_instance *inst, rp_ctr ctr, const struct record_bytes *rec);
/* Its beginning; then the pool's name, the words of two sets, and the hints. */
struct kept {
	uint32_t version, type, flags, mem_types;
	int64_t portion, shares_mcpu, mem_size;
	struct needs needs;
	uint64_t cold_ms, cold_until;
	uint32_t n_pool, n_zone, n_exclusive, n_hints; /* bytes; words; words; hints */
};
struct record {
	struct kept kept;
	uint32_t pool; /* NO_POOL: there is none of that name any more */
	memalloc_mask zone;
	struct rp_idset exclusive;
	struct hints *hints;
};
/* 0, -RP_ENOENT: nothing that this version wrote, -RP_ENOMEM. hints are the caller's. */
int32_t record_read(struct rp_instance *inst, rp_ctr ctr, struct record *ret);

/* ---- classes and interrupts (stage_hardware.c) ----------------------------------------------- */

/* Scheduling class and CPU class of a container. */
int32_t classes_of(struct rp_instance *inst, struct request *r);
/* The scheduling class of one that is being created. */
int32_t classes_stage_sched(struct rp_instance *inst, rp_txn txn, const struct request *r);
/* Gives a container that is being created its memory policy. */
int32_t classes_stage_mempolicy(struct rp_instance *inst, rp_txn txn, const struct request *r);
/* A new configuration is in force. */
int32_t classes_configure(struct rp_instance *inst);
/* Brings CPUs and interrupts in line with the ledger, if something has changed. */
void classes_apply(struct rp_instance *inst);
/* Narrows the CPUs that exclusive ones are to come from, as their class likes it. True: they would
 * be where it prefers them. */
bool classes_narrow(struct rp_instance *inst, const struct request *r, struct rp_idset *from);
extern const struct rp_extended ta_extended;
int32_t interrupts_read(struct rp_instance *inst, struct request *r);
void interrupts_apply(struct rp_instance *inst);
struct irq_ask *irq_ask_ref(struct irq_ask *a);
struct irq_ask *irq_ask_unref(struct irq_ask *a);

/* ---- cold starts (stage_cold.c) -------------------------------------------------------------- */

int32_t cold_read(struct rp_instance *inst, rp_ctr ctr, uint64_t *ret_ms);
int32_t cold_started(struct rp_instance *inst, rp_txn txn, rp_ctr ctr);
int32_t cold_timer(struct rp_instance *inst, rp_txn txn);
/* Sets the timer to the next end. */
void cold_arm(struct rp_instance *inst);

#endif
