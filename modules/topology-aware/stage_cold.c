/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cold starts: a container starts on slow memory and gets DRAM after a while. One timer of the host
 * serves all cold starts. Their end is saved by the host's clock, which continues when the daemon
 * restarts.
 */
#include "modules/lib/private/annotation.h"
#include "modules/topology-aware/stage.h"
#include "modules/topology-aware/topology-aware.h"

#define KEY "cold-start" TA_DOMAIN
#define COOKIE 1u
#define DURATION_MAX_MS (INT64_C(3600) * 1000)

int32_t cold_read(struct rp_instance *inst, rp_ctr ctr, uint64_t *ret_ms)
{
	const struct modhost *h = &inst->h;
	const char *text = h->cache->annotation(h->ctx, ctr, KEY, NULL);
	*ret_ms = 0;
	if (!text || !inst->plan->cold_start || !h->timer)
		return 0;
	rp_cfg map, at;
	int32_t r = annotation_parse(h, "annotation " KEY, text, &map);
	if (!r)
		r = annotation_member(h, "annotation " KEY, map, "duration", RP_NODE_SCALAR, &at);
	if (r)
		return r;
	int64_t ms = h->config->value(h->ctx, at, RP_T_DURATION, -1);
	if (ms < 0 || ms > DURATION_MAX_MS)
		return modhost_fail(h, -RP_EINVAL,
				    "annotation " KEY ": the duration must be between 0 and 1h, "
				    "not \"%.64s\"",
				    h->config->text(h->ctx, at, ""));
	*ret_ms = (uint64_t)ms;
	return 0;
}

void cold_arm(struct rp_instance *inst)
{
	const struct modhost *h = &inst->h;
	const struct rp_plan *p = inst->plan;
	uint64_t next = UINT64_MAX;
	if (!h->timer)
		return;
	for (uint32_t i = 0; inst->ledger.n_cold && i < p->n_pools; i++)
		for (const struct grant *g = p->pools[i].grants; g; g = g->pool_next)
			if (g->flags & GRANT_COLD && g->cold_until && g->cold_until < next)
				next = g->cold_until;
	if (next == UINT64_MAX) {
		(void)h->timer->arm(h->ctx, COOKIE, 0);
		return;
	}
	uint64_t now = h->timer->now_ms(h->ctx);
	if (h->timer->arm(h->ctx, COOKIE, next > now ? next - now : 1))
		modhost_log(h, RP_LOG_ERROR, 0, "no timer is available: cold starts do not end");
}

/*
 * Removes a grant and returns a copy, which the caller changes and adds to the ledger. NULL: out of
 * memory.
 */
static struct grant *stage_cold_replace(struct rp_instance *inst, struct grant *g)
{
	struct grant *next = ledger_reserve(inst, 2) ? NULL : grant_copy(g);
	if (next)
		ledger_remove(inst, g);
	return next;
}

int32_t cold_started(struct rp_instance *inst, rp_txn txn, rp_ctr ctr)
{
	const struct modhost *h = &inst->h;
	struct grant *g = ledger_find(inst, ctr);
	if (!g || !(g->flags & GRANT_COLD) || g->cold_until)
		return 0;
	g = stage_cold_replace(inst, g);
	if (!g)
		return modhost_no_memory(h);
	g->cold_until = h->timer->now_ms(h->ctx) + g->cold_ms;
	ledger_add(inst, g);
	cold_arm(inst);
	return stage_grant(inst, txn, g);
}

/*
 * Ends a cold start: adds DRAM to the container's memory zone. If no DRAM is available, the zone is
 * unchanged and no retry follows.
 */
static int32_t stage_cold_end(struct rp_instance *inst, rp_txn txn, struct grant *g)
{
	const struct modhost *h = &inst->h;
	const struct rp_plan *p = inst->plan;
	memalloc_mask zone = 0;
	(void)memalloc_zone(p->mem, g->ctr, &zone);
	uint32_t types = memalloc_types(p->mem, zone) | MEMALLOC_DRAM;
	if (memalloc_extend(p->mem, g->ctr, 0, types, &zone))
		modhost_log(h, RP_LOG_WARNING, g->ctr, "cold start: %s", memalloc_why(p->mem));
	int32_t r = stage_note_moves(inst);
	g = r ? NULL : stage_cold_replace(inst, g);
	if (!g)
		return r ? r : modhost_no_memory(h);
	g->flags &= ~GRANT_COLD;
	g->mem_types = types;
	ledger_add(inst, g);
	modhost_note(h, g->ctr, "the cold start has ended: it gets DRAM");
	return stage_grant(inst, txn, g);
}

int32_t cold_timer(struct rp_instance *inst, rp_txn txn)
{
	const struct modhost *h = &inst->h;
	uint64_t now = h->timer->now_ms(h->ctx);
	int32_t n = ctr_list(&inst->h, &inst->list, RP_ORDER_CREATED), r = n < 0 ? n : 0;
	for (int32_t i = 0; !r && i < n; i++) {
		struct grant *g = ledger_find(inst, inst->list.ctrs[i]);
		if (g && g->flags & GRANT_COLD && g->cold_until && g->cold_until <= now)
			r = stage_cold_end(inst, txn, g);
	}
	if (!r)
		r = stage_others(inst, txn, 0);
	cold_arm(inst);
	return r;
}
