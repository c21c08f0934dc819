/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The advisor: sizes unbound pools by usage instead of by request.
 *
 *	wanted = reserve + max(usage, load of 1 and of 5 minutes), at least LEAST CPUs
 *
 * Usage is measured for a pool's containers. Of the machine's load a pool counts its part of the
 * usage of all containers, or its part of all requests as long as nothing is used. Once per period
 * a pool grows by at most GROW or shrinks by at most SHRINK CPUs, and minReclaimedCPUs are left. A
 * pool starts with the requests of its pods. Nothing of this is saved: the size of a pool after a
 * restart is the number of CPUs that its containers have.
 */
#include <string.h>

#include "modules/lib/private/koord.h"
#include "modules/qos/qos.h"

#define LEAST 4u
#define GROW 10u
#define SHRINK 2u

static bool is_of(const struct record *rec, const char *pool)
{
	return rec->level == LEVEL_SHARED && rec->role < ROLE_INIT &&
	       !(rec->flags & (ASK_BOUND | ASK_LOST)) && !strcmp(rec->pool, pool);
}

static struct advice *advise_find(const struct rp_instance *inst, const char *pool)
{
	for (uint32_t i = 0; i < inst->n_advice; i++)
		if (!strcmp(inst->advice[i].pool, pool))
			return (struct advice *)&inst->advice[i];
	return NULL;
}

static struct advice *advise_add(struct rp_instance *inst, const char *pool, uint32_t size)
{
	struct advice *a = &inst->advice[inst->n_advice++];
	*a = (struct advice){.size = size, .wanted = size};
	(void)snprintf(a->pool, sizeof a->pool, "%s", pool);
	return a;
}

uint32_t advise_size(const struct rp_instance *inst, const struct pool *p, uint32_t asked)
{
	const struct advice *a = inst->plan->advise && !p->node ? advise_find(inst, p->name) : NULL;
	return a && asked ? a->size : asked;
}

void advise_learn(struct rp_instance *inst)
{
	inst->n_advice = 0;
	for (uint32_t i = 0; inst->plan && inst->plan->advise && i < inst->table.n; i++) {
		const struct entry *e = inst->table.list[i];
		struct rp_ctr_info info;
		if (!entry_counts(e) || !is_of(&e->is, e->is.pool) || e->is.ramp_end_ms ||
		    inst->n_advice == POOLS_MAX || advise_find(inst, e->is.pool) ||
		    ctr_info(&inst->h, e->ctr, &info))
			continue;
		uint32_t n = rp_ids_count(info.cpus);
		if (n)
			(void)advise_add(inst, e->is.pool, n);
	}
}

/* ---- usage ----------------------------------------------------------------------------------- */

/* Returns the usage of a pool's containers in milli-CPU, with pool NULL of all containers.
 * RP_NOT_SET: nothing was measured. */
static int64_t used(const struct rp_instance *inst, const char *pool)
{
	int64_t sum = RP_NOT_SET;
	for (uint32_t i = 0; i < inst->table.n; i++) {
		const struct entry *e = inst->table.list[i];
		struct rp_usage u;
		if (!e->ctr || (pool && !is_of(&e->is, pool)) ||
		    !modhost_usage(&inst->h, e->ctr, &u) || u.cpu == RP_NOT_MEASURED)
			continue;
		sum = (sum == RP_NOT_SET ? 0 : sum) + u.cpu;
	}
	return sum;
}

struct measured {
	int64_t used, asked; /* usage of all containers, requests of all pools; milli-CPU */
	int64_t load; /* load of the machine in milli-CPU */
};

static struct measured advise_measure(const struct rp_instance *inst)
{
	const struct pools *pools = &inst->pools;
	struct measured m = {.used = used(inst, NULL)};
	int64_t loads[2] = {0};
	for (uint32_t i = 0; i < pools->n; i++)
		m.asked += pools->list[i].request;
	if (inst->h.work)
		(void)koord_load(&inst->h, loads);
	m.load = loads[0] > loads[1] ? loads[0] : loads[1];
	return m;
}

static int64_t load_of(const struct measured *m, const struct pool *p, int64_t use)
{
	if (m->used > 0)
		return (int64_t)((double)m->load * (double)use / (double)m->used);
	return m->asked > 0 ? (int64_t)((double)m->load * (double)p->request / (double)m->asked)
			    : 0;
}

/* ---- sizes of pools -------------------------------------------------------------------------- */

static uint32_t advise_step(uint32_t now, uint32_t wanted)
{
	if (wanted > now)
		return wanted - now > GROW ? now + GROW : wanted;
	return now - wanted > SHRINK ? now - SHRINK : wanted;
}

static void advise_advise(struct rp_instance *inst, const struct measured *m, const struct pool *p)
{
	uint32_t now = rp_ids_count(rp_ids_of(&p->cpus));
	if (!now)
		return;
	struct advice *a = advise_add(inst, p->name, now);
	a->used = used(inst, p->name);
	if (a->used == RP_NOT_SET)
		return; /* the size is unchanged */
	a->load = load_of(m, p, a->used);
	int64_t most = a->used > a->load ? a->used : a->load;
	a->wanted = ask_whole(inst->plan->advise_reserve + most);
	a->wanted = a->wanted > LEAST ? a->wanted : LEAST;
	a->size = advise_step(now, a->wanted);
}

/* Leaves minReclaimedCPUs by reducing the largest pools. */
static void leave_some(struct rp_instance *inst)
{
	uint32_t n = rp_ids_count(rp_ids_of(&inst->pools.common)), sum = 0;
	uint32_t most = n > inst->plan->min_reclaimed ? n - inst->plan->min_reclaimed : 1;
	for (uint32_t i = 0; i < inst->n_advice; i++)
		sum += inst->advice[i].size;
	for (; sum > most; sum--) {
		struct advice *largest = &inst->advice[0];
		for (uint32_t i = 1; i < inst->n_advice; i++)
			if (inst->advice[i].size > largest->size)
				largest = &inst->advice[i];
		if (largest->size <= 1)
			return;
		largest->size--;
	}
}

static void advise_tell(struct rp_instance *inst)
{
	for (uint32_t i = 0; i < inst->pools.n; i++) {
		const struct pool *p = &inst->pools.list[i];
		const struct advice *a = p->node ? NULL : advise_find(inst, p->name);
		uint32_t now = rp_ids_count(rp_ids_of(&p->cpus));
		if (a && a->size != now)
			modhost_log(
				&inst->h, RP_LOG_INFO, 0,
				"pool %s: %u CPUs, %u before: usage %lldm, load %lldm, wanted %u",
				p->name, a->size, now, (long long)a->used, (long long)a->load,
				a->wanted);
	}
}

void advise_arm(struct rp_instance *inst)
{
	const struct modhost *h = &inst->h;
	if (h->timer)
		(void)h->timer->arm(h->ctx, ADVISE_TIMER,
				    inst->plan->advise ? inst->plan->advise_period_ms : 0);
}

int32_t advise_now(struct rp_instance *inst, rp_txn txn)
{
	if (!inst->plan->advise)
		return 0;
	const struct measured m = advise_measure(inst);
	inst->n_advice = 0;
	for (uint32_t i = 0; i < inst->pools.n; i++)
		if (!inst->pools.list[i].node)
			advise_advise(inst, &m, &inst->pools.list[i]);
	leave_some(inst);
	advise_tell(inst);
	inst->n_blind = inst->n_advice && m.used == RP_NOT_SET ? inst->n_blind + 1 : 0;
	if (inst->n_blind == 2) /* the first reading has no rates */
		modhost_log(&inst->h, RP_LOG_WARNING, 0,
			    "advisor: no usage of containers is known, so pools are unchanged: set "
			    "metrics.collectInterval");
	advise_arm(inst);
	return stage_all(inst, txn);
}
