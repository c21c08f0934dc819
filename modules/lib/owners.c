/* SPDX-License-Identifier: Apache-2.0 */
/* Ownership of CPUs. The state of each changed CPU is copied once per callback, for undo. */
#include <nri-rp/lib/owners.h>

static uint32_t owners_chain(rp_ctr owner)
{
	return (uint32_t)((owner ^ owner >> 32) * UINT64_C(0x9e3779b97f4a7c15) >> 54);
}

uint32_t owners_first_of(const struct owners *o, rp_ctr owner)
{
	uint32_t link = owner ? o->chains[owners_chain(owner)] : 0;
	while (link && o->now[link - 1].owner != owner)
		link = o->next[link - 1];
	return link ? link - 1 : RP_IDSET_NONE;
}

uint32_t owners_next_of(const struct owners *o, uint32_t cpu)
{
	uint32_t link = o->next[cpu];
	return link && o->now[link - 1].owner == o->now[cpu].owner ? link - 1 : RP_IDSET_NONE;
}

bool owners_is_first(const struct owners *o, uint32_t cpu)
{
	uint32_t link = o->prev[cpu];
	return !link || o->now[link - 1].owner != o->now[cpu].owner;
}

/* Adds a CPU to a chain, before all CPUs of the same container. */
static void owners_link(struct owners *o, uint32_t cpu)
{
	uint16_t *chain = &o->chains[owners_chain(o->now[cpu].owner)];
	uint32_t first = owners_first_of(o, o->now[cpu].owner);
	uint16_t *link = chain;
	if (first != RP_IDSET_NONE && o->prev[first])
		link = &o->next[o->prev[first] - 1];
	o->prev[cpu] = link == chain ? 0 : o->prev[first];
	o->next[cpu] = *link;
	if (*link)
		o->prev[*link - 1] = (uint16_t)(cpu + 1);
	*link = (uint16_t)(cpu + 1);
}

static void owners_unlink(struct owners *o, uint32_t cpu)
{
	uint16_t prev = o->prev[cpu], next = o->next[cpu];
	if (prev)
		o->next[prev - 1] = next;
	else
		o->chains[owners_chain(o->now[cpu].owner)] = next;
	if (next)
		o->prev[next - 1] = prev;
}

static void set_cpu(struct owners *o, uint32_t cpu, struct owners_cpu to)
{
	if (cpu >= RP_CPUS_MAX)
		return;
	if (!rp_ids_has(rp_ids_of(&o->touched), cpu)) {
		o->before[cpu] = o->now[cpu];
		rp_idset_add(&o->touched, cpu);
	}
	if (o->now[cpu].owner)
		owners_unlink(o, cpu);
	o->now[cpu] = to;
	if (to.owner)
		owners_link(o, cpu);
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
	uint32_t n = 0;
	rp_idset_clear(ret);
	for (uint32_t cpu = owners_first_of(o, ctr); cpu != RP_IDSET_NONE;
	     cpu = owners_next_of(o, cpu), n++)
		rp_idset_add(ret, cpu);
	return n;
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
