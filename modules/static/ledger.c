/* SPDX-License-Identifier: Apache-2.0 */
#include "modules/static/ledger.h"

static void set_owner(struct ledger *l, uint32_t cpu, rp_ctr ctr)
{
	if (cpu >= RP_CPUS_MAX)
		return;
	rp_ctr was = l->owner[cpu];
	l->owner[cpu] = ctr;
	if (!rp_ids_has(rp_ids_of(&l->touched), cpu)) {
		l->before[cpu] = was;
		rp_idset_add(&l->touched, cpu);
	}
	if (ctr)
		rp_idset_add(&l->taken, cpu);
	else
		rp_idset_del(&l->taken, cpu);
}

void ledger_begin(struct ledger *l)
{
	rp_idset_clear(&l->touched);
}

void ledger_undo(struct ledger *l)
{
	struct rp_idset touched;
	rp_idset_copy(&touched, rp_ids_of(&l->touched));
	RP_IDS_EACH (cpu, rp_ids_of(&touched))
		set_owner(l, cpu, l->before[cpu]);
	rp_idset_clear(&l->touched);
}

void ledger_give(struct ledger *l, struct rp_ids cpus, rp_ctr ctr)
{
	RP_IDS_EACH (cpu, cpus)
		set_owner(l, cpu, ctr);
}

void ledger_clear(struct ledger *l)
{
	struct rp_idset taken;
	rp_idset_copy(&taken, rp_ids_of(&l->taken));
	ledger_give(l, rp_ids_of(&taken), 0);
}

uint32_t ledger_owned(const struct ledger *l, rp_ctr ctr, struct rp_idset *ret)
{
	rp_idset_clear(ret);
	RP_IDS_EACH (cpu, rp_ids_of(&l->taken))
		if (l->owner[cpu] == ctr)
			rp_idset_add(ret, cpu);
	return rp_ids_count(rp_ids_of(ret));
}

uint32_t ledger_release(struct ledger *l, rp_ctr ctr, struct rp_idset *ret)
{
	uint32_t n = ledger_owned(l, ctr, ret);
	ledger_give(l, rp_ids_of(ret), 0);
	return n;
}
