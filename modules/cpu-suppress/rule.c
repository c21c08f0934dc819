/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of cpu-suppress, as functions of their inputs: ceiling, quota and choice of CPUs. */
#include <stdlib.h>

#include "modules/cpu-suppress/cpu-suppress.h"
#include <nri-rp/lib/calc.h>

#define GROWTH_PARTS 10 /* growth per round: a tenth of all CPUs */
#define NOISE_PARTS 100 /* changes of a quota by less than a hundredth of all CPUs are ignored */

int64_t suppress_ceiling(const struct suppress_usage *u, int64_t threshold_percent,
			 int64_t min_percent)
{
	int64_t system = calc_max(calc_max(u->node - u->pods - u->apps, 0), u->reserved);
	int64_t ceiling =
		calc_percent(u->capacity, threshold_percent) - u->pods_kept - u->apps_kept - system;
	return min_percent == RP_NOT_SET
		       ? ceiling
		       : calc_max(ceiling, calc_percent(u->capacity, min_percent));
}

int64_t suppress_quota(int64_t ceiling, int64_t capacity, int64_t current)
{
	int64_t all = capacity * (SUPPRESS_PERIOD_US / 1000);
	int64_t quota = calc_max(SUPPRESS_MIN_QUOTA_US, ceiling * (SUPPRESS_PERIOD_US / 1000));
	if (current < 0)
		return quota;
	int64_t growth = quota - current, size = growth < 0 ? -growth : growth;
	if (size < all / NOISE_PARTS && quota != SUPPRESS_MIN_QUOTA_US)
		return current;
	return growth > all / GROWTH_PARTS ? current + all / GROWTH_PARTS : quota;
}

/* ---- choice of CPUs -------------------------------------------------------------------------- */

/* A CPU that may be chosen. They are sorted by bucket (node and socket), then core. */
struct candidate {
	struct suppress_cpu at;
	uint32_t bucket_size, bucket_first; /* CPUs of the bucket, and the lowest of them */
	bool taken;
};

static bool same_bucket(const struct suppress_cpu *a, const struct suppress_cpu *b)
{
	return a->node == b->node && a->socket == b->socket;
}

static int by_number(uint32_t a, uint32_t b)
{
	return (a > b) - (a < b);
}

static int rule_compare(const void *x, const void *y)
{
	const struct candidate *a = x, *b = y;
	if (!same_bucket(&a->at, &b->at))
		return a->bucket_size != b->bucket_size
			       ? by_number(b->bucket_size, a->bucket_size)
			       : by_number(a->bucket_first, b->bucket_first);
	return a->at.core != b->at.core ? by_number(a->at.core, b->at.core)
					: by_number(a->at.cpu, b->at.cpu);
}

static int compare_places(const void *x, const void *y)
{
	const struct suppress_cpu *a = &((const struct candidate *)x)->at;
	const struct suppress_cpu *b = &((const struct candidate *)y)->at;
	if (a->node != b->node)
		return by_number(a->node, b->node);
	return a->socket != b->socket ? by_number(a->socket, b->socket) : by_number(a->cpu, b->cpu);
}

static void rule_sort(struct candidate *list, uint32_t n)
{
	qsort(list, n, sizeof *list, compare_places);
	for (uint32_t first = 0, end; first < n; first = end) {
		for (end = first; end < n && same_bucket(&list[end].at, &list[first].at); end++)
			list[end].bucket_first = list[first].at.cpu;
		for (uint32_t i = first; i < end; i++)
			list[i].bucket_size = end - first;
	}
	qsort(list, n, sizeof *list, rule_compare);
}

static uint32_t bucket_end(const struct candidate *list, uint32_t n, uint32_t first)
{
	uint32_t end = first;
	while (end < n && same_bucket(&list[end].at, &list[first].at))
		end++;
	return end;
}

/* Takes `size` free CPUs from the bucket list[first..end): both threads of a core (2) or one CPU
 * (1). Returns false if the bucket has none. */
static bool rule_take(struct candidate *list, uint32_t first, uint32_t end, uint32_t size,
		      struct rp_idset *ret)
{
	for (uint32_t i = first; i + size <= end; i++) {
		bool pair =
			size == 1 || (!list[i + 1].taken && list[i].at.core == list[i + 1].at.core);
		if (list[i].taken || !pair)
			continue;
		for (uint32_t k = i; k < i + size; k++) {
			list[k].taken = true;
			rp_idset_add(ret, list[k].at.cpu);
		}
		return true;
	}
	return false;
}

/* Chooses k CPUs of a list with at least as many: whole cores from the buckets in turn, then single
 * CPUs. */
static void rule_pick(struct candidate *list, uint32_t n, uint32_t k, struct rp_idset *ret)
{
	uint32_t at = 0, in_vain = 0; /* in_vain: CPUs of buckets checked without success */
	rule_sort(list, n);
	for (uint32_t size = 2; size; size--) {
		in_vain = 0;
		while (k >= size && in_vain < n) {
			uint32_t end = bucket_end(list, n, at);
			bool found = rule_take(list, at, end, size, ret);
			in_vain = found ? 0 : in_vain + end - at;
			k -= found ? size : 0;
			at = end == n ? 0 : end;
		}
	}
}

static uint32_t rule_candidates(const struct suppress_cpu *list, uint32_t n,
				const struct suppress_sets *sets, bool lsr, struct candidate *ret)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < n; i++)
		if (!rp_ids_has(rp_ids_of(&sets->excluded), list[i].cpu) &&
		    (rp_ids_has(rp_ids_of(&sets->lsr), list[i].cpu) != 0) == lsr)
			ret[count++] = (struct candidate){.at = list[i]};
	return count;
}

bool suppress_cpus(const struct suppress_cpu *list, uint32_t n, const struct suppress_sets *sets,
		   int64_t ceiling, struct rp_idset *ret)
{
	struct candidate *all = calloc(2 * (size_t)n + 1, sizeof *all);
	uint32_t most = rp_ids_count(rp_ids_of(&sets->old)) + (n + GROWTH_PARTS - 1) / GROWTH_PARTS;
	int64_t wanted = calc_max(SUPPRESS_MIN_CPUS, (ceiling + 999) / 1000);
	rp_idset_clear(ret);
	if (!all)
		return false;
	struct candidate *shared = all + n;
	uint32_t k = (uint32_t)calc_min(wanted, calc_max(most, SUPPRESS_MIN_CPUS));
	uint32_t n_lsr = rule_candidates(list, n, sets, true, all);
	uint32_t n_ls = rule_candidates(list, n, sets, false, shared);
	uint32_t k_lsr = n_lsr + n_ls ? (uint32_t)((uint64_t)k * n_lsr / (n_lsr + n_ls)) : 0;
	if (k_lsr <= n_lsr)
		rule_pick(all, n_lsr, k_lsr, ret);
	if (k - k_lsr <= n_ls)
		rule_pick(shared, n_ls, k - k_lsr, ret);
	free(all);
	return rp_ids_count(rp_ids_of(ret)) != 0;
}
