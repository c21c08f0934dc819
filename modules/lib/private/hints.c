/* SPDX-License-Identifier: Apache-2.0 */
/* Merging of topology hints. hints_merge() first searches a set that all resources prefer, then
 * the best combination; the numeric policy has a search of its own. */
#include "modules/lib/private/hints.h"

#include <string.h>

const char *const hints_policy_names[N_HINTS_POLICIES] = {
	[HINTS_NONE] = "none",
	[HINTS_BEST_EFFORT] = "best-effort",
	[HINTS_RESTRICTED] = "restricted",
	[HINTS_SINGLE_NUMA_NODE] = "single-numa-node",
	[HINTS_NUMERIC] = "numeric",
};

/* ---- sets of nodes --------------------------------------------------------------------------- */

/* Returns the next larger number with as many bits set; 0: none. */
static uint64_t next_of_size(uint64_t v)
{
	uint64_t low = v & -v, sum = v + low;
	return sum ? sum | ((v ^ sum) / low) >> 2 : 0;
}

/* Moves bit i of `of` to the position of the i-th bit in `nodes`. */
static uint64_t hints_spread(uint64_t of, uint64_t nodes)
{
	uint64_t ret = 0;
	for (; of && nodes; of >>= 1, nodes &= nodes - 1)
		if (of & 1)
			ret |= nodes & -nodes;
	return ret;
}

uint32_t hints_masks(uint64_t nodes, uint32_t least, uint64_t ret[HINTS_MAX])
{
	uint32_t n_nodes = hints_size(nodes), n = 0, first = least ? least : 1;
	uint32_t last =
		n_nodes <= HINTS_ALL_MASKS_NODES || first + 1 > n_nodes ? n_nodes : first + 1;
	for (uint32_t size = first; size <= last && n < HINTS_MAX; size++) {
		uint64_t v = UINT64_MAX >> (64 - size), end = v << (n_nodes - size);
		for (; v && v <= end && n < HINTS_MAX; v = next_of_size(v))
			ret[n++] = hints_spread(v, nodes);
	}
	return n;
}

static bool is_narrower(uint64_t a, uint64_t b)
{
	uint32_t n = hints_size(a), m = hints_size(b);
	return n != m ? n < m : a < b;
}

/* ---- merging --------------------------------------------------------------------------------- */

/* Substitutes for an empty list: no opinion, or no node fits. */
static const struct hint no_opinion = {HINTS_ANY, true}, nothing_fits = {HINTS_ANY, false};

static struct hints hints_told(const struct hints *r)
{
	if (r->list && r->n)
		return (struct hints){r->list, r->n < HINTS_MAX ? r->n : HINTS_MAX, r->align};
	return (struct hints){r->list ? &nothing_fits : &no_opinion, 1, r->align};
}

static bool hints_counts(enum hints_policy policy, const struct hint *h)
{
	return policy != HINTS_SINGLE_NUMA_NODE ||
	       (h->preferred && (h->nodes == HINTS_ANY || hints_size(h->nodes) == 1));
}

/* ---- common preferences ---- */

static bool prefers_any(const struct hints *r)
{
	for (uint32_t k = 0; k < r->n; k++)
		if (r->list[k].preferred && r->list[k].nodes == HINTS_ANY)
			return true;
	return false;
}

static bool hints_prefers(const struct hints *r, uint64_t machine, uint64_t nodes)
{
	for (uint32_t k = 0; k < r->n; k++)
		if (r->list[k].preferred && (r->list[k].nodes & machine) == nodes &&
		    r->list[k].nodes != HINTS_ANY)
			return true;
	return false;
}

struct wishes {
	struct hints list[HINTS_RESOURCES_MAX];
	/* the resource has a hint that prefers any nodes, among other hints */
	bool any[HINTS_RESOURCES_MAX];
	uint32_t n;
	/* index of the first resource that does not prefer any nodes; n: none */
	uint32_t strictest;
};

static bool all_prefer(const struct wishes *w, uint64_t machine, uint64_t nodes)
{
	for (uint32_t i = 0; i < w->n; i++)
		if (!w->any[i] && i != w->strictest && !hints_prefers(&w->list[i], machine, nodes))
			return false;
	return true;
}

/* Returns the smallest set of nodes that each resource prefers, by itself or as any nodes. 0:
 * none. */
static uint64_t common_wish(enum hints_policy policy, uint64_t nodes, const struct hints *resources,
			    uint32_t n)
{
	struct wishes w = {.n = n, .strictest = n};
	for (uint32_t i = n; i--;) {
		w.list[i] = hints_told(&resources[i]);
		w.any[i] = prefers_any(&w.list[i]);
		w.strictest = w.any[i] ? w.strictest : i;
	}
	uint64_t best = w.strictest == n ? nodes : 0;
	for (uint32_t i = 0; i < n; i++) {
		for (uint32_t k = 0; k < w.list[i].n; k++) {
			const struct hint *h = &w.list[i].list[k];
			bool candidate = h->preferred && h->nodes & nodes &&
					 hints_counts(policy, h) &&
					 (w.strictest == n || w.strictest == i);
			if (candidate && h->nodes != HINTS_ANY &&
			    (!best || is_narrower(h->nodes & nodes, best)) &&
			    all_prefer(&w, nodes, h->nodes & nodes))
				best = h->nodes & nodes;
		}
	}
	return best;
}

/* ---- best combination without a common preference ---- */

/*
 * Results of all combinations of hints, each set of nodes once. On machines with few nodes the
 * search is complete. With more nodes these limits bound it: eight lists of HINTS_MAX take less
 * than a millisecond, and combinations beyond the limits are dropped.
 */
#define SUMS_MAX 1024u
#define SLOTS (2 * SUMS_MAX)
#define WORK_MAX (1u << 20) /* steps; a checked set costs one step, a stored one: */
#define PUT_WORK 3u

struct sums {
	uint32_t n;
	uint64_t list[SUMS_MAX];
	uint64_t slots[SLOTS]; /* hash index of `list`; 0: none */
};

/* Adds a set unless it is present. The caller ensures that the array has a free entry. */
static void put_sum(struct sums *s, uint64_t nodes)
{
	uint32_t at = (uint32_t)(nodes * 0x9e3779b97f4a7c15u >> 53) % SLOTS;
	for (; s->slots[at]; at = (at + 1) % SLOTS)
		if (s->slots[at] == nodes)
			return;
	s->slots[at] = s->list[s->n++] = nodes;
}

/* Combines each set with one hint. Sets without common nodes are dropped without a branch, which
 * would be unpredictable. */
static void combine_one(const struct sums *before, uint64_t nodes, struct sums *after,
			uint32_t *work)
{
	uint64_t common[SUMS_MAX];
	uint32_t n = 0;
	for (uint32_t i = 0; i < before->n; i++) {
		common[n] = before->list[i] & nodes;
		n += common[n] != 0;
	}
	for (uint32_t i = 0; i < n && after->n < SUMS_MAX; i++)
		put_sum(after, common[i]);
	*work += before->n + PUT_WORK * n;
}

/* Combines the sets with all hints of a resource. Returns the steps used; stops after `most`. */
static uint32_t hints_combine(enum hints_policy policy, const struct hints *resource,
			      const struct sums *before, struct sums *after, uint32_t most)
{
	struct hints r = hints_told(resource);
	uint32_t work = 0;
	after->n = 0;
	memset(after->slots, 0, sizeof after->slots);
	for (uint32_t k = 0; k < r.n && work < most && after->n < SUMS_MAX; k++)
		if (hints_counts(policy, &r.list[k]))
			combine_one(before, r.list[k].nodes, after, &work);
	return work;
}

/* Returns the number of nodes that the most demanding resource needs. 0: no resource needs any. */
static uint32_t least_size(enum hints_policy policy, const struct hints *resources, uint32_t n)
{
	uint32_t most = 0;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t least = UINT32_MAX;
		for (uint32_t k = 0; k < resources[i].n && resources[i].list; k++) {
			const struct hint *h = &resources[i].list[k];
			if (h->nodes != HINTS_ANY && hints_counts(policy, h) &&
			    hints_size(h->nodes) < least)
				least = hints_size(h->nodes);
		}
		if (least != UINT32_MAX && least > most)
			most = least;
	}
	return most;
}

/* Returns true if `nodes` is better than `best`. `wanted` is the number of nodes that fits best. */
static bool is_better(uint64_t nodes, uint64_t best, uint32_t wanted)
{
	uint32_t n = hints_size(nodes), m = hints_size(best);
	if (m > wanted)
		return is_narrower(nodes, best);
	if (m == wanted)
		return n == wanted && is_narrower(nodes, best);
	if (n > wanted || n < m)
		return false;
	return n > m || is_narrower(nodes, best);
}

/* Machines with node numbers below this use sets of nodes as array indexes. */
#define FEW_NODES 12u
#define FEW_SETS (1u << FEW_NODES)

/* Adds to each set (`sign` 1), or subtracts (-1), the values of its supersets. */
static void with_supersets(uint32_t *of, uint32_t n_bits, uint32_t sign)
{
	for (uint32_t bit = 1; bit < 1u << n_bits; bit <<= 1)
		for (uint32_t first = 0; first < 1u << n_bits; first += 2 * bit)
			for (uint32_t i = first; i < first + bit; i++)
				of[i] += sign * of[i + bit];
}

/*
 * Counts combinations by their common nodes. Pairs with at least the nodes X in common are as many
 * as the sets with X on one side times those on the other side. Subtracting all larger sets leaves
 * the pairs with exactly X.
 */
static void combine_few(enum hints_policy policy, const struct hints *resource, uint32_t n_bits,
			uint32_t *sums)
{
	struct hints r = hints_told(resource);
	uint32_t hints[FEW_SETS], n_sets = 1u << n_bits;
	memset(hints, 0, n_sets * sizeof *hints);
	for (uint32_t k = 0; k < r.n; k++)
		if (hints_counts(policy, &r.list[k]))
			hints[r.list[k].nodes & (n_sets - 1)] = 1;
	with_supersets(hints, n_bits, 1);
	with_supersets(sums, n_bits, 1);
	for (uint32_t i = 0; i < n_sets; i++)
		sums[i] *= hints[i];
	with_supersets(sums, n_bits, UINT32_MAX);
	for (uint32_t i = 0; i < n_sets; i++)
		sums[i] = sums[i] != 0;
}

static uint64_t best_of_few(enum hints_policy policy, uint64_t nodes, const struct hints *resources,
			    uint32_t n)
{
	uint32_t sums[FEW_SETS], n_bits = 64 - (uint32_t)__builtin_clzll(nodes);
	uint32_t wanted = least_size(policy, resources, n);
	uint64_t best = 0;
	memset(sums, 0, (1u << n_bits) * sizeof *sums);
	sums[nodes] = 1;
	for (uint32_t i = 0; i < n; i++)
		combine_few(policy, &resources[i], n_bits, sums);
	for (uint32_t i = 1; i < 1u << n_bits; i++)
		if (sums[i] && (!best || is_better(i, best, wanted)))
			best = i;
	return best;
}

static uint64_t best_of_many(enum hints_policy policy, uint64_t nodes,
			     const struct hints *resources, uint32_t n)
{
	struct sums two[2];
	struct sums *now = &two[0], *next = &two[1];
	uint32_t left = WORK_MAX, wanted = least_size(policy, resources, n);
	uint64_t best = 0;
	now->n = 1;
	now->list[0] = nodes;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t work = hints_combine(policy, &resources[i], now, next, left / (n - i));
		left -= work < left ? work : left;
		struct sums *former = now;
		now = next;
		next = former;
	}
	for (uint32_t i = 0; i < now->n; i++)
		if (!best || is_better(now->list[i], best, wanted))
			best = now->list[i];
	return best;
}

static struct hint hints_do_merge(enum hints_policy policy, uint64_t nodes,
				  const struct hints *resources, uint32_t n)
{
	uint64_t best = nodes ? common_wish(policy, nodes, resources, n) : 0;
	if (best)
		return (struct hint){best, true};
	if (nodes)
		best = nodes < FEW_SETS ? best_of_few(policy, nodes, resources, n)
					: best_of_many(policy, nodes, resources, n);
	return (struct hint){best ? best : nodes, false};
}

/* ---- numeric policy: each resource keeps its own hint ---------------------------------------- */

struct numeric {
	uint64_t nodes;
	struct hints resources[HINTS_RESOURCES_MAX];
	uint32_t n;
	const struct hint *now[HINTS_RESOURCES_MAX], *best[HINTS_RESOURCES_MAX];
	uint64_t masks[HINTS_RESOURCES_MAX]; /* for each resource, the nodes of its hint in `now` */
	uint32_t best_preferred, best_size;
	uint32_t left; /* combinations that may still be checked */
};
#define NUMERIC_TRIES (1u << 17)

static uint64_t nodes_of(const struct numeric *s, const struct hint *h)
{
	return h->nodes == HINTS_ANY ? s->nodes : h->nodes & s->nodes;
}

static bool suits_any(const struct hint *h)
{
	return h->nodes == HINTS_ANY && h->preferred;
}

/* Returns true if the hint is compatible with the hints chosen before: of two sets one contains the
 * other, and aligned sets are equal. */
static bool goes_with(const struct numeric *s, uint32_t i, const struct hint *h, uint64_t mine)
{
	for (uint32_t k = i; k--;) {
		uint64_t other = s->masks[k], both = mine & other;
		if (both != mine && both != other)
			return false;
		if (s->resources[i].align && s->resources[k].align && mine != other &&
		    !suits_any(h) && !suits_any(s->now[k]))
			return false;
	}
	return mine != 0;
}

static void hints_judge(struct numeric *s)
{
	uint32_t preferred = 0, size = 0;
	bool aligned = false, any_align = false;
	for (uint32_t i = 0; i < s->n; i++) {
		uint32_t n = hints_size(s->masks[i]);
		size = n > size ? n : size;
		if (s->resources[i].align) {
			any_align = true;
			aligned = aligned || s->now[i]->preferred;
		} else {
			preferred += s->now[i]->preferred;
		}
	}
	if (any_align && !aligned)
		return;
	if (s->best[0] && (preferred < s->best_preferred ||
			   (preferred == s->best_preferred && size >= s->best_size)))
		return;
	memcpy(s->best, s->now, sizeof s->best);
	s->best_preferred = preferred;
	s->best_size = size;
}

/* Tries one hint of each resource in turn, like an odometer with the digits `at`. */
static void hints_do_choose(struct numeric *s)
{
	uint32_t at[HINTS_RESOURCES_MAX] = {0}, i = 0;
	while (s->left) {
		if (at[i] == s->resources[i].n) {
			at[i] = 0;
			if (!i)
				return;
			i--;
			continue;
		}
		const struct hint *h = &s->resources[i].list[at[i]++];
		s->left--;
		uint64_t mine = nodes_of(s, h);
		if (!goes_with(s, i, h, mine))
			continue;
		s->now[i] = h;
		s->masks[i] = mine;
		if (i + 1 == s->n)
			hints_judge(s);
		else
			i++;
	}
}

static bool merge_numeric(uint64_t nodes, const struct hints *resources, uint32_t n,
			  struct hint *ret)
{
	struct numeric s = {.nodes = nodes, .n = n, .left = NUMERIC_TRIES};
	for (uint32_t i = 0; i < n; i++) {
		if (resources[i].list && !resources[i].n)
			return false;
		s.resources[i] = hints_told(&resources[i]);
	}
	if (n)
		hints_do_choose(&s);
	if (n && !s.best[0])
		return false;
	for (uint32_t i = 0; i < n; i++)
		ret[i] = *s.best[i];
	return true;
}

bool hints_merge(enum hints_policy policy, uint64_t nodes, const struct hints *resources,
		 uint32_t n, struct hint *ret)
{
	struct hint all = no_opinion;
	if (n > HINTS_RESOURCES_MAX)
		return false;
	if (policy == HINTS_NUMERIC)
		return merge_numeric(nodes, resources, n, ret);
	if (policy != HINTS_NONE)
		all = hints_do_merge(policy, nodes, resources, n);
	if (policy == HINTS_SINGLE_NUMA_NODE && all.nodes == nodes)
		all.nodes = HINTS_ANY;
	for (uint32_t i = 0; i < n; i++)
		ret[i] = all;
	return all.preferred || policy == HINTS_BEST_EFFORT;
}
