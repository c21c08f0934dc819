/* SPDX-License-Identifier: Apache-2.0 */
/* Extended resources: how many CPUs of a class there can be. */
#include "modules/balloons/balloons.h"

#define DOMAIN "cpuclass.balloons.nri.io/"

/* CPUs of balloons that are in another class. */
static void add_held(const struct balloon *b, uint32_t class, struct rp_idset *ret)
{
	for (uint32_t i = 0; i < b->n_parts; i++)
		add_held(b->parts[i], class, ret);
	if (!b->n_parts && b->type->cpu_class != class)
		rp_idset_or(ret, rp_ids_of(ret), rp_ids_of(&b->cpus));
}

static int32_t report_extended(struct rp_instance *inst, const struct rp_extended_sink *sink)
{
	const struct pct *pct = cpuclass_pct(inst->classes);
	sink->own(sink->ctx, DOMAIN "*");
	if (!inst->plan || !inst->state || !pct || cpuclass_platform_fails(inst->classes))
		return 0;
	for (uint32_t i = 0; i < inst->plan->classes.n; i++) {
		const struct cpuclass_def *d = &inst->plan->classes.list[i];
		char name[sizeof DOMAIN + CPUCLASS_NAME_MAX];
		struct rp_idset held;
		if (!d->publish)
			continue;
		rp_idset_clear(&held);
		for (uint32_t k = 0; k < inst->state->n; k++)
			add_held(inst->state->list[k], i, &held);
		(void)snprintf(name, sizeof name, DOMAIN "%s", d->name);
		sink->resource(sink->ctx, name, pct_capacity(pct, i, rp_ids_of(&held)));
	}
	return 0;
}

const struct rp_extended balloons_extended = {
	.size = sizeof(struct rp_extended),
	.extended = report_extended,
};
