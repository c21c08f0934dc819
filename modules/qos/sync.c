/* SPDX-License-Identifier: Apache-2.0 */
/* Synchronization: keeps valid placements, then places the other containers, main containers first.
 * Also retries of lost containers, and the end of ramp-ups. */
#include <time.h>

#include "modules/qos/qos.h"

int64_t sync_now_ms(void)
{
	struct timespec now;
	(void)clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

#define RAMP_RETRY_MS 1000u

/* ---- lost containers ------------------------------------------------------------------------- */

/* Tries to place lost containers. A placed container removes its pod's grant from the table, so
 * entries move. */
int32_t sync_retry(struct rp_instance *inst, rp_txn txn)
{
	bool lost = false;
	if (!inst->waiting)
		return 0;
	for (uint32_t i = 0; i < inst->table.n; i++) {
		char why[MODHOST_TEXT_MAX]; /* a refusal is no error */
		rp_ctr ctr = inst->table.list[i]->ctr;
		if (!(inst->table.list[i]->is.flags & ASK_LOST))
			continue;
		inst->h.why = why;
		int32_t r = place_again(inst, txn, inst->table.list[i]);
		inst->h.why = NULL;
		if (r == -RP_ENOMEM)
			return r;
		lost = lost || r;
		while (inst->table.list[i]->ctr != ctr)
			i--;
	}
	inst->waiting = lost;
	return 0;
}

/* ---- ramp-up --------------------------------------------------------------------------------- */

void sync_arm(struct rp_instance *inst)
{
	const struct modhost *h = &inst->h;
	int64_t next = inst->pools.next_ramp_ms, now;
	if (!h->timer || next == inst->armed_ms)
		return;
	/* if a request to end a ramp-up was refused, the next attempt follows after a delay */
	uint64_t overdue_ms = next == inst->fired_ms ? RAMP_RETRY_MS : 1;
	inst->armed_ms = next;
	now = sync_now_ms();
	(void)h->timer->arm(h->ctx, RAMP_TIMER,
			    !next	  ? 0
			    : next <= now ? overdue_ms
					  : (uint64_t)(next - now));
}

/* Ends due ramp-ups. None is longer than configured, even if the clock was changed. */
static bool end_ramps(struct rp_instance *inst)
{
	int64_t now = sync_now_ms(), latest = now + inst->plan->ramp_up_ms;
	bool ended = false;
	for (uint32_t i = 0; i < inst->table.n; i++) {
		struct entry *e = inst->table.list[i];
		if (!e->is.ramp_end_ms || (e->is.ramp_end_ms > now && e->is.ramp_end_ms <= latest))
			continue;
		e->is.ramp_end_ms = e->is.ramp_end_ms <= now || latest <= now ? 0 : latest;
		table_changed(inst, e);
		ended = ended || !e->is.ramp_end_ms;
	}
	return ended;
}

int32_t sync_ramp(struct rp_instance *inst, rp_txn txn)
{
	inst->fired_ms = inst->armed_ms;
	inst->armed_ms = 0;
	if (end_ramps(inst))
		inst->past.sized = true;
	return stage_all(inst, txn);
}

/* ---- full synchronization -------------------------------------------------------------------- */

/* Returns true if the placement is still valid. Dedicated CPUs that are offline or reserved now
 * make it invalid. */
static bool is_right(const struct rp_instance *inst, const struct entry *e)
{
	struct rp_idset cpus;
	if ((e->is.nodes | e->is.mem_nodes) & ~inst->plan->node_mask)
		return false;
	if (e->is.level != LEVEL_DEDICATED || e->is.role != ROLE_MAIN)
		return true;
	uint32_t n = owners_owned(&inst->owners, e->pod, &cpus);
	return n && rp_ids_subset(rp_ids_of(&cpus), rp_ids_of(&inst->plan->pool));
}

static void forget_wrong(struct rp_instance *inst)
{
	for (uint32_t i = 0; i < inst->table.n; i++) {
		struct entry *e = inst->table.list[i];
		struct rp_idset had;
		if ((e->is.flags & ASK_LOST) || e->is.role >= ROLE_INIT || is_right(inst, e))
			continue;
		if (e->is.level == LEVEL_DEDICATED)
			(void)owners_release(&inst->owners, e->pod, &had);
		e->is.flags |= ASK_LOST;
		e->is.nodes = e->is.mem_nodes = 0;
		table_changed(inst, e);
		inst->waiting = true;
	}
}

/* Extends exclusive pods to new CPUs of their nodes. */
static void grow_exclusive(struct rp_instance *inst)
{
	for (uint32_t i = 0; i < inst->table.n; i++) {
		const struct entry *e = inst->table.list[i];
		struct rp_idset cpus;
		if (!entry_counts(e) || !(e->is.flags & ASK_EXCLUSIVE))
			continue;
		plan_cpus_of(inst->plan, e->is.nodes, &cpus);
		owners_give(&inst->owners, rp_ids_of(&cpus), e->pod);
	}
}

/* Passes over the containers without a record. */
enum pass {
	PASS_ADOPT, /* containers that keep their nodes or dedicated CPUs */
	PASS_PLACE, /* all others */
	N_PASSES
};

static int32_t sync_place_one(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
			      const struct life_walk *w)
{
	char why[MODHOST_TEXT_MAX]; /* a refusal is no error */
	bool adopt = w->pass == PASS_ADOPT;
	struct entry *e = table_find(inst, info->ctr);
	if (e)
		return place_missed(inst, txn, info, e);
	if (adopt && !place_may_adopt(inst, info))
		return 0;
	struct counters counters = inst->counters;
	inst->h.why = why;
	int32_t r = place_new(inst, txn, info, adopt ? PLACE_ADOPTED : PLACE_EXISTING);
	inst->h.why = NULL;
	if (!r || r == -RP_ENOMEM)
		return r;
	if (!adopt)
		return place_lost(inst, info);
	inst->counters = counters; /* the next pass counts a refusal */
	return 0;
}

int32_t sync_all(struct rp_instance *inst, rp_txn txn)
{
	int32_t r = table_load(inst);
	if (r)
		return r;
	forget_wrong(inst);
	grow_exclusive(inst);
	for (uint32_t i = 0; i < inst->table.n; i++) {
		table_changed(inst, inst->table.list[i]);
		inst->waiting = inst->waiting || (inst->table.list[i]->is.flags & ASK_LOST);
	}
	(void)end_ramps(inst);
	if (inst->synced && inst->changed && inst->table.n)
		inst->past.sized = true;
	r = admit_check(inst, txn);
	if (!r)
		r = pools_make(inst);
	if (!r)
		r = life_walk(inst, txn,
			      (struct life_walk){.each = sync_place_one,
						 .order = RP_ORDER_SYNC,
						 .n_passes = N_PASSES,
						 .pass = inst->synced ? PASS_PLACE : PASS_ADOPT});
	if (!r)
		r = sync_retry(inst, txn);
	inst->staged = 0;
	inst->armed_ms = -1;
	advise_arm(inst);
	if (r)
		return r;
	return life_may_refuse(inst) ? stage_checked(inst, txn) : stage_all(inst, txn);
}
