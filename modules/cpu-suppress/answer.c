/* SPDX-License-Identifier: Apache-2.0 */
/* Offers the rules of cpu-suppress as decisions (nri-rp.decision/1), so that tables of inputs and
 * results can test them. */
#include <stdio.h>
#include <string.h>

#include "modules/cpu-suppress/cpu-suppress.h"
#include <nri-rp/lib/section.h>

#define GIVEN_CPUS_MAX 1024u

/* Adds up the usage of a list, and of its members that are not BE. */
static void answer_sum(const struct modhost *h, rp_cfg list, int64_t *ret_all, int64_t *ret_kept)
{
	for (uint32_t i = 0; i < h->config->count(h->ctx, list); i++) {
		rp_cfg one = h->config->item(h->ctx, list, i);
		int64_t used = section_value(h, one, "used", RP_T_CPU, 0);
		*ret_all += used;
		if (koord_qos_of(section_text(h, one, "qos", "")) != RP_KOORD_BE)
			*ret_kept += used;
	}
}

static void answer_ceiling(const struct modhost *h, const struct rp_question *q,
			   const struct rp_answer *a)
{
	struct suppress_usage u = {.capacity = decide_in(h, q, "capacity", RP_T_CPU, 0),
				   .node = decide_in(h, q, "nodeUsed", RP_T_CPU, 0),
				   .reserved = decide_in(h, q, "reserved", RP_T_CPU, 0)};
	answer_sum(h, q->input(q->ctx, "pods"), &u.pods, &u.pods_kept);
	answer_sum(h, q->input(q->ctx, "hostApps"), &u.apps, &u.apps_kept);
	decide_out(a, "milli",
		   suppress_ceiling(&u, decide_in(h, q, "thresholdPercent", RP_T_INT, 65),
				    decide_in(h, q, "minPercent", RP_T_INT, RP_NOT_SET)));
}

static uint32_t number_at(const struct modhost *h, rp_cfg row, uint32_t i)
{
	return (uint32_t)h->config->value(h->ctx, h->config->item(h->ctx, row, i), RP_T_INT, 0);
}

static void tell_cpus(const struct rp_answer *a, const struct rp_idset *cpus)
{
	char text[8 * GIVEN_CPUS_MAX];
	size_t used = 0;
	RP_IDS_EACH (cpu, rp_ids_of(cpus))
		used += (size_t)snprintf(text + used, sizeof text - used, "%s%u", used ? "," : "",
					 cpu);
	a->result(a->ctx, "cpuset", text);
}

static int32_t answer_cpus(const struct modhost *h, const struct rp_question *q,
			   const struct rp_answer *a)
{
	struct suppress_cpu list[GIVEN_CPUS_MAX];
	struct suppress_sets sets;
	struct rp_idset reserved, system, picked;
	rp_cfg rows = q->input(q->ctx, "cpus");
	uint32_t n = h->config->count(h->ctx, rows);
	if (n > GIVEN_CPUS_MAX)
		return modhost_fail(h, -RP_E2BIG, "more than %u CPUs", GIVEN_CPUS_MAX);
	for (uint32_t i = 0; i < n; i++) {
		rp_cfg row = h->config->item(h->ctx, rows, i);
		list[i] = (struct suppress_cpu){number_at(h, row, 0), number_at(h, row, 1),
						number_at(h, row, 2), number_at(h, row, 3)};
		if (list[i].cpu >= GIVEN_CPUS_MAX)
			return modhost_fail(h, -RP_EINVAL, "CPU %u is too large", list[i].cpu);
	}
	decide_in_cpus(h, q, "lsr", &sets.lsr);
	decide_in_cpus(h, q, "lse", &sets.excluded);
	decide_in_cpus(h, q, "reserved", &reserved);
	decide_in_cpus(h, q, "system", &system);
	decide_in_cpus(h, q, "old", &sets.old);
	rp_idset_or(&sets.excluded, rp_ids_of(&sets.excluded), rp_ids_of(&reserved));
	rp_idset_or(&sets.excluded, rp_ids_of(&sets.excluded), rp_ids_of(&system));
	if (suppress_cpus(list, n, &sets, decide_in(h, q, "target", RP_T_CPU, 0), &picked))
		tell_cpus(a, &picked);
	return 0;
}

static int32_t answer_do_answer(struct rp_instance *inst, const struct rp_question *q,
				const struct rp_answer *a)
{
	const struct modhost *h = koord_host(inst);
	if (strcmp(q->kind, "cpu-suppress-cpuset") == 0)
		return answer_cpus(h, q, a);
	if (strcmp(q->kind, "cpu-suppress") == 0)
		answer_ceiling(h, q, a);
	else
		decide_out(a, "quota",
			   suppress_quota(decide_in(h, q, "target", RP_T_CPU, 0),
					  decide_in(h, q, "capacity", RP_T_CPU, 0),
					  decide_in(h, q, "current", RP_T_INT, -1)));
	return 0;
}

static const char *const kinds[] = {"cpu-suppress", "cpu-suppress-cpuset", "cpu-suppress-quota",
				    NULL};

const struct rp_decision suppress_decision = {
	.size = sizeof(struct rp_decision),
	.kinds = kinds,
	.decide = answer_do_answer,
};
