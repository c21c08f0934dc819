/* SPDX-License-Identifier: Apache-2.0 */
/* Who has which CPU. */
#include "modules/cpuset/cpuset.h"

void pool_add(struct rp_instance *inst, enum cpuset_class class, rp_ctr ctr, struct rp_ids cpus)
{
	if (class == CLASS_SHARED)
		inst->n_shared++;
	else if (class == CLASS_INTEGER)
		owners_give(&inst->owners, cpus, ctr);
	else
		owners_join(&inst->owners, cpus);
}

void pool_del(struct rp_instance *inst, enum cpuset_class class, rp_ctr ctr, struct rp_ids cpus)
{
	struct rp_idset had;
	if (class == CLASS_SHARED)
		inst->n_shared -= inst->n_shared != 0;
	else if (class == CLASS_INTEGER)
		(void)owners_release(&inst->owners, ctr, &had);
	else
		owners_leave(&inst->owners, cpus);
}

void pool_of(const struct rp_instance *inst, enum cpuset_class class, struct rp_idset *ret)
{
	rp_idset_clear(ret);
	RP_IDS_EACH (cpu, rp_ids_of(&inst->owners.taken))
		if ((inst->owners.now[cpu].owner != 0) == (class == CLASS_INTEGER))
			rp_idset_add(ret, cpu);
}

void pool_shared(const struct rp_instance *inst, struct rp_idset *ret)
{
	rp_idset_andnot(ret, rp_ids_of(&inst->plan->allowed), rp_ids_of(&inst->owners.taken));
}

void pool_free(const struct rp_instance *inst, const struct looked *c, struct rp_idset *ret)
{
	pool_shared(inst, ret);
	rp_idset_andnot(ret, rp_ids_of(ret), rp_ids_of(&inst->plan->reserved));
	if (c->forbids)
		rp_idset_andnot(ret, rp_ids_of(ret), rp_ids_of(&c->forbidden));
}
