/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rpd/noderes/aggregate.h"

#include <stdlib.h>

/* Returns the i-th point from the last one. */
static const struct aggregate_point *aggregate_back(const struct aggregates *a, uint32_t i)
{
	return &a->list[(a->next + 2 * AGGREGATE_POINTS - 1 - i) % AGGREGATE_POINTS];
}

bool aggregate_due(const struct aggregates *a, uint64_t now_ms)
{
	return !a->n || now_ms >= aggregate_back(a, 0)->at_ms + AGGREGATE_STEP_MS;
}

void aggregate_put(struct aggregates *a, const struct aggregate_point *p)
{
	if (!aggregate_due(a, p->at_ms))
		return;
	a->list[a->next] = *p;
	a->next = (a->next + 1) % AGGREGATE_POINTS;
	a->n += a->n < AGGREGATE_POINTS;
}

static int aggregate_compare(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

/* Computes the statistics, indexed by RP_NR_AVG …; RP_NOT_SET without values. */
static void aggregate_describe(int64_t *list, uint32_t n, uint32_t k,
			       int64_t ret[RP_NR_STATISTICS][RP_NR_AMOUNTS])
{
	static const uint32_t percent[RP_NR_STATISTICS] = {
		[RP_NR_P50] = 50, [RP_NR_P90] = 90, [RP_NR_P95] = 95, [RP_NR_P99] = 99};
	double sum = 0;
	qsort(list, n, sizeof *list, aggregate_compare);
	for (uint32_t i = 0; i < n; i++)
		sum += (double)list[i];
	ret[RP_NR_AVG][k] = n ? (int64_t)(sum / n) : RP_NOT_SET;
	for (uint32_t s = RP_NR_P50; s < RP_NR_STATISTICS; s++) {
		uint32_t at = n * percent[s] / 100;
		ret[s][k] = n ? list[at ? at - 1 : 0] : RP_NOT_SET;
	}
}

bool aggregate_over(const struct aggregates *a, uint64_t now_ms, int64_t duration_ms,
		    struct rp_nr_aggregated *ret)
{
	int64_t node[AGGREGATE_POINTS], system[AGGREGATE_POINTS];
	uint32_t n = 0;
	*ret = (struct rp_nr_aggregated){.size = sizeof *ret, .duration_ms = duration_ms};
	while (n < a->n && now_ms <= aggregate_back(a, n)->at_ms + (uint64_t)duration_ms)
		n++;
	ret->n = n;
	if (n < 2 || 2 * (aggregate_back(a, 0)->at_ms - aggregate_back(a, n - 1)->at_ms) <
			     (uint64_t)duration_ms)
		return false;
	for (uint32_t k = 0; k < RP_NR_AMOUNTS; k++) {
		uint32_t n_system = 0;
		for (uint32_t i = 0; i < n; i++) {
			node[i] = aggregate_back(a, i)->node[k];
			if (aggregate_back(a, i)->system[k] != RP_NOT_SET)
				system[n_system++] = aggregate_back(a, i)->system[k];
		}
		aggregate_describe(node, n, k, ret->node);
		aggregate_describe(system, n_system, k, ret->system);
	}
	return true;
}
