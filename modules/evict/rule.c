/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of evict, as functions of their inputs: amounts to release, and order of pods. */
#include <stdlib.h>
#include <string.h>

#include "modules/evict/evict.h"

#define LOWER_BELOW 2 /* percent below the threshold, unless a lower bound is configured */
#define BE_LOWER_MAX 60
#define BE_UPPER_MAX 99
#define SMALL_LIMIT 1000 /* smallest limit in milli-CPU whose usage is meaningful */

const char *const evict_rule_names[EVICT_RULES] = {
	[EVICT_BE_CPU] = "BECPUEvict",
	[EVICT_CPU] = "CPUEvict",
	[EVICT_CPU_ALLOCATABLE] = "CPUAllocatableEvict",
	[EVICT_BE_MEMORY] = "BEMemoryEvict",
	[EVICT_MEMORY] = "MemoryEvict",
	[EVICT_MEMORY_ALLOCATABLE] = "MemoryAllocatableEvict",
};

/* Returns part × 100 ≥ percent × whole, which may exceed 64 bits. */
static bool is_at_least(int64_t part, int64_t percent, int64_t whole)
{
	return (__int128)part * 100 >= (__int128)whole * percent;
}

static int64_t release_of(const struct evict_satisfaction *s, const struct evict_be *be)
{
	if (be->limit <= 0 || be->request <= 0)
		return 0;
	bool used_up =
		be->limit < SMALL_LIMIT || is_at_least(be->used, s->usage_percent, be->limit);
	bool satisfied = (__int128)be->limit * 100 > (__int128)be->request * s->lower_percent;
	return !used_up || satisfied
		       ? 0
		       : calc_max(0, calc_percent(be->request, s->upper_percent) - be->limit);
}

int64_t evict_by_satisfaction(const struct evict_satisfaction *s)
{
	bool valid = s->lower_percent > 0 && s->lower_percent <= BE_LOWER_MAX &&
		     s->upper_percent <= BE_UPPER_MAX && s->lower_percent <= s->upper_percent;
	if (!valid || s->average.count * s->period_s * 3 < s->window_s)
		return 0;
	int64_t average = release_of(s, &s->average);
	return s->current.count ? calc_min(average, release_of(s, &s->current)) : average;
}

static int64_t lower_of(int64_t threshold_percent, int64_t lower_percent)
{
	return lower_percent == RP_NOT_SET ? threshold_percent - LOWER_BELOW : lower_percent;
}

int64_t evict_by_usage(int64_t cap, int64_t used, int64_t threshold_percent, int64_t lower_percent)
{
	if (cap <= 0 || used < 0)
		return 0;
	int64_t percent = (int64_t)((__int128)used * 100 / cap);
	if (percent < threshold_percent)
		return 0;
	return calc_max(0, calc_percent(cap, percent - lower_of(threshold_percent, lower_percent)));
}

int64_t evict_by_allocatable(int64_t allocatable, int64_t request, int64_t threshold_percent,
			     int64_t lower_percent)
{
	if (allocatable == RP_NOT_SET)
		return request;
	if (!request || !is_at_least(request, threshold_percent, allocatable))
		return 0;
	return calc_max(
		0, request - calc_percent(allocatable, lower_of(threshold_percent, lower_percent)));
}

/* ---- order of pods --------------------------------------------------------------------------- */

uint32_t evict_class(int64_t priority)
{
	static const int64_t from[EVICT_LENT] = {[EVICT_BATCH] = 5000, [EVICT_MID] = 7000};
	for (uint32_t c = 0; c < EVICT_LENT; c++)
		if (priority >= from[c] && priority < from[c] + 1000)
			return c;
	return EVICT_LENT;
}

static bool is_by_lent(enum evict_rule rule)
{
	return rule == EVICT_CPU_ALLOCATABLE || rule == EVICT_MEMORY_ALLOCATABLE;
}

static bool may_go(const struct evict_pod *p, const struct evict_need *need)
{
	bool by_be = need->rule == EVICT_BE_CPU || need->rule == EVICT_BE_MEMORY;
	if (!(p->features & 1u << need->rule) ||
	    (need->priority_max != RP_NOT_SET && p->priority > need->priority_max))
		return false;
	if (is_by_lent(need->rule))
		return evict_class(p->priority) == need->lent;
	return by_be ? p->is_be : p->opted_in;
}

/* Returns the amount that the node gains when the pod has been removed. */
static int64_t amount_of(const struct evict_pod *p, const struct evict_need *need)
{
	if (is_by_lent(need->rule))
		return p->request[need->lent][need->amount];
	return need->rule == EVICT_BE_CPU ? p->request[EVICT_BATCH][RP_NR_CPU]
					  : p->used[need->amount];
}

static int rule_by(int64_t a, int64_t b)
{
	return (a > b) - (a < b);
}

/* Orders pods by usage relative to their request, the highest first; pods without a request come
 * before all others. */
static int by_share(const struct evict_pod *a, const struct evict_pod *b)
{
	int64_t of_a = a->request[EVICT_BATCH][RP_NR_CPU],
		of_b = b->request[EVICT_BATCH][RP_NR_CPU];
	if (!of_a || !of_b)
		return rule_by(of_a != 0, of_b != 0);
	__int128 x = (__int128)a->used[RP_NR_CPU] * of_b, y = (__int128)b->used[RP_NR_CPU] * of_a;
	return (y > x) - (y < x);
}

static int compare_be(const struct evict_pod *a, const struct evict_pod *b,
		      const struct evict_need *need)
{
	int d = rule_by(a->priority, b->priority);
	if (!d)
		d = need->amount == RP_NR_CPU
			    ? by_share(a, b)
			    : rule_by(b->used[RP_NR_MEMORY], a->used[RP_NR_MEMORY]);
	return d ? d : strcmp(b->name, a->name);
}

static int compare_others(const struct evict_pod *a, const struct evict_pod *b,
			  const struct evict_need *need)
{
	int d = rule_by(a->order, b->order);
	if (!d)
		d = rule_by(a->priority, b->priority);
	if (!d)
		d = rule_by(a->sub_priority, b->sub_priority);
	if (!d)
		d = rule_by(b->used[need->amount], a->used[need->amount]);
	return d ? d : strcmp(b->name, a->name);
}

static int rule_do_compare(const void *x, const void *y, void *arg)
{
	const struct evict_need *need = arg;
	const struct evict_pod *a = x, *b = y;
	bool can_a = may_go(a, need) && !a->leaves, can_b = may_go(b, need) && !b->leaves;
	if (can_a != can_b)
		return can_a ? -1 : 1;
	return need->rule == EVICT_BE_CPU || need->rule == EVICT_BE_MEMORY
		       ? compare_be(a, b, need)
		       : compare_others(a, b, need);
}

uint32_t evict_choose(struct evict_pod *list, uint32_t n, const struct evict_need *need)
{
	struct evict_need of = *need;
	int64_t left = need->release;
	uint32_t chosen = 0;
	qsort_r(list, n, sizeof *list, rule_do_compare, &of);
	for (uint32_t i = 0; i < n; i++)
		left -= list[i].leaves ? amount_of(&list[i], need) : 0;
	while (left > 0 && chosen < n && may_go(&list[chosen], need) && !list[chosen].leaves)
		left -= amount_of(&list[chosen++], need);
	return chosen;
}
