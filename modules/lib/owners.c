/* SPDX-License-Identifier: Apache-2.0 */
/* Ownership of CPUs. The state of each changed CPU is copied once per callback, for undo. */
#include <nri-rp/lib/owners.h>

static void set_cpu(struct owners *o, uint32_t cpu, struct owners_cpu to)
{
	if (cpu >= RP_CPUS_MAX)
		return;
	if (!rp_ids_has(rp_ids_of(&o->touched), cpu)) {
		o->before[cpu] = o->now[cpu];
		rp_idset_add(&o->touched, cpu);
	}
	o->now[cpu] = to;
	if (to.n)
		rp_idset_add(&o->taken, cpu);
	else
		rp_idset_del(&o->taken, cpu);
}

void owners_begin(struct owners *o)
{
	rp_idset_clear(&o->touched);
}

void owners_undo(struct owners *o)
{
	struct rp_idset touched;
	rp_idset_copy(&touched, rp_ids_of(&o->touched));
	RP_IDS_EACH (cpu, rp_ids_of(&touched))
		set_cpu(o, cpu, o->before[cpu]);
	rp_idset_clear(&o->touched);
}

void owners_give(struct owners *o, struct rp_ids cpus, rp_ctr ctr)
{
	RP_IDS_EACH (cpu, cpus)
		set_cpu(o, cpu, (struct owners_cpu){ctr, ctr ? 1 : 0});
}

void owners_join(struct owners *o, struct rp_ids cpus)
{
	RP_IDS_EACH (cpu, cpus)
		if (cpu < RP_CPUS_MAX)
			set_cpu(o, cpu,
				(struct owners_cpu){0, o->now[cpu].owner ? 1 : o->now[cpu].n + 1});
}

void owners_leave(struct owners *o, struct rp_ids cpus)
{
	RP_IDS_EACH (cpu, cpus)
		if (cpu < RP_CPUS_MAX && o->now[cpu].n && !o->now[cpu].owner)
			set_cpu(o, cpu, (struct owners_cpu){0, o->now[cpu].n - 1});
}

void owners_clear(struct owners *o)
{
	struct rp_idset taken;
	rp_idset_copy(&taken, rp_ids_of(&o->taken));
	owners_give(o, rp_ids_of(&taken), 0);
}

uint32_t owners_owned(const struct owners *o, rp_ctr ctr, struct rp_idset *ret)
{
	rp_idset_clear(ret);
	RP_IDS_EACH (cpu, rp_ids_of(&o->taken))
		if (o->now[cpu].owner == ctr)
			rp_idset_add(ret, cpu);
	return rp_ids_count(rp_ids_of(ret));
}

void owners_take(struct owners *o, rp_ctr ctr, struct rp_ids cpus)
{
	RP_IDS_EACH (cpu, cpus)
		if (cpu < RP_CPUS_MAX && o->now[cpu].owner == ctr)
			set_cpu(o, cpu, (struct owners_cpu){0, 0});
}

uint32_t owners_release(struct owners *o, rp_ctr ctr, struct rp_idset *ret)
{
	uint32_t n = owners_owned(o, ctr, ret);
	owners_give(o, rp_ids_of(ret), 0);
	return n;
}

void owners_given(const struct owners *o, struct rp_idset *ret)
{
	rp_idset_clear(ret);
	RP_IDS_EACH (cpu, rp_ids_of(&o->taken))
		if (o->now[cpu].owner)
			rp_idset_add(ret, cpu);
}
