/* SPDX-License-Identifier: Apache-2.0 */
/* Offers the rules of evict as decisions (nri-rp.decision/1), so that tables of inputs and results
 * can test them. */
#include <string.h>

#include "modules/evict/evict.h"
#include <nri-rp/lib/section.h>

/* Returns the limit of overcommitted capacity. Zero would disable the rule, so it is replaced by
 * one unit. */
static int64_t lent_limit(const struct modhost *h, const struct rp_question *q)
{
	int64_t allocatable = decide_in(h, q, "allocatable", RP_T_INT, 0);
	return allocatable > 0 ? allocatable : 1;
}

static struct evict_be be_of(const struct modhost *h, const struct rp_question *q, const char *name)
{
	rp_cfg map = q->input(q->ctx, name);
	struct evict_be be = {.count = section_int(h, map, "count", 0),
			      .limit = section_int(h, map, "limit", 0),
			      .used = section_int(h, map, "used", 0),
			      .request = section_int(h, map, "request", 0)};
	if (map &&
	    strcmp(decide_in_text(h, q, "strategy.cpuEvictPolicy", ""), "evictByAllocatable") == 0)
		be.limit = lent_limit(h, q);
	return be;
}

static void answer_satisfaction(const struct modhost *h, const struct rp_question *q,
				const struct rp_answer *a)
{
	const struct evict_satisfaction s = {
		.lower_percent =
			decide_in(h, q, "strategy.cpuEvictBESatisfactionLowerPercent", RP_T_INT, 0),
		.upper_percent =
			decide_in(h, q, "strategy.cpuEvictBESatisfactionUpperPercent", RP_T_INT, 0),
		.usage_percent =
			decide_in(h, q, "strategy.cpuEvictBEUsageThresholdPercent", RP_T_INT, 90),
		.window_s = decide_in(h, q, "window", RP_T_INT, 1),
		.period_s = decide_in(h, q, "interval", RP_T_INT, 1),
		.average = be_of(h, q, "avg"),
		.current = be_of(h, q, "current")};
	decide_out(a, "releaseMilli", evict_by_satisfaction(&s));
}

static void answer_usage(const struct modhost *h, const struct rp_question *q,
			 const struct rp_answer *a)
{
	uint32_t type =
		strcmp(decide_in_text(h, q, "resource", ""), "cpu") == 0 ? RP_T_CPU : RP_T_BYTES;
	decide_out(a, "release",
		   evict_by_usage(decide_in(h, q, "capacity", type, 0),
				  decide_in(h, q, "used", type, 0),
				  decide_in(h, q, "threshold", RP_T_INT, 100),
				  decide_in(h, q, "lower", RP_T_INT, RP_NOT_SET)));
}

static void answer_allocatable(const struct modhost *h, const struct rp_question *q,
			       const struct rp_answer *a)
{
	static const char *const given[EVICT_LENT] = {"allocatable.batch", "allocatable.mid"};
	static const char *const told[EVICT_LENT] = {"release.batch", "release.mid"};
	int64_t requests[EVICT_LENT] = {0};
	int64_t most = decide_in(h, q, "priorityThreshold", RP_T_INT, RP_NOT_SET);
	rp_cfg pods = q->input(q->ctx, "pods");
	for (uint32_t i = 0; i < h->config->count(h->ctx, pods); i++) {
		rp_cfg pod = h->config->item(h->ctx, pods, i);
		int64_t priority = section_int(h, pod, "priority", 0);
		uint32_t c = evict_class(priority);
		if (c < EVICT_LENT && priority <= most)
			requests[c] += section_int(h, pod, "request", 0);
	}
	for (uint32_t c = 0; c < EVICT_LENT; c++) {
		int64_t release = evict_by_allocatable(
			decide_in(h, q, given[c], RP_T_INT, RP_NOT_SET), requests[c],
			decide_in(h, q, "threshold", RP_T_INT, 100),
			decide_in(h, q, "lower", RP_T_INT, RP_NOT_SET));
		if (release)
			decide_out(a, told[c], release);
	}
}

static int32_t answer_answer_one(struct rp_instance *inst, const struct rp_question *q,
				 const struct rp_answer *a)
{
	const struct modhost *h = &inst->h;
	if (strcmp(q->kind, "cpu-evict-satisfaction") == 0)
		answer_satisfaction(h, q, a);
	else if (strcmp(q->kind, "evict-by-usage") == 0)
		answer_usage(h, q, a);
	else
		answer_allocatable(h, q, a);
	return 0;
}

static const char *const kinds[] = {"cpu-evict-satisfaction", "evict-by-usage",
				    "evict-by-allocatable", NULL};

const struct rp_decision evict_decision = {
	.size = sizeof(struct rp_decision),
	.kinds = kinds,
	.decide = answer_answer_one,
};
