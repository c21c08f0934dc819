/* SPDX-License-Identifier: Apache-2.0 */
/* relief_find() beside a search that tries everything, on random machines; and what it promises
 * by the letter. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <nri-rp/lib/relief.h>
#include "test/unit/t_seed.h"

#define RUNS 100000
#define UNITS 5u
#define ITEMS 12u

struct question {
	struct relief_unit units[UNITS];
	struct relief_item items[ITEMS];
	uint32_t n_units, n_items, max_moves;
	int64_t size;
	uint64_t wanted;
};

struct answer {
	uint32_t n_moves;
	int64_t cost;
	bool found;
};

static void make_question(struct seed *seed, struct question *q)
{
	*q = (struct question){.n_units = 2 + draw(seed, UNITS - 1),
			       .n_items = draw(seed, ITEMS + 1),
			       .max_moves = draw(seed, RELIEF_MOVES_MAX + 1),
			       .size = 1 + draw(seed, 8)};
	for (uint32_t i = 0; i < q->n_units; i++)
		q->units[i].free = draw(seed, 5);
	for (uint32_t i = 0; i < q->n_items; i++)
		q->items[i] = (struct relief_item){
			.unit = draw(seed, q->n_units),
			.size = 1 + draw(seed, 4),
			.allowed = draw(seed, 4) ? UINT64_MAX : draw(seed, 32),
			.cost = draw(seed, 6),
		};
	q->wanted = draw(seed, 3) ? UINT64_MAX : draw(seed, 32);
}

static bool is_enough(const struct question *q, const int64_t *free)
{
	bool room = false;
	for (uint32_t i = 0; i < q->n_units; i++) {
		if (free[i] < 0)
			return false;
		room = room || (q->wanted >> i & 1 && free[i] >= q->size);
	}
	return room;
}

/* Tries every set of at most `left` more items from `first` on, each item in every unit. */
static void try_all(const struct question *q, int64_t *free, uint32_t first, uint32_t n,
		    int64_t cost, struct answer *best)
{
	if (is_enough(q, free) &&
	    (!best->found || n < best->n_moves || (n == best->n_moves && cost < best->cost)))
		*best = (struct answer){n, cost, true};
	for (uint32_t i = first; n < q->max_moves && i < q->n_items; i++) {
		const struct relief_item *it = &q->items[i];
		for (uint32_t to = 0; to < q->n_units; to++) {
			if (to == it->unit || !(it->allowed >> to & 1))
				continue;
			free[it->unit] += it->size;
			free[to] -= it->size;
			try_all(q, free, i + 1, n + 1, cost + it->cost, best);
			free[to] += it->size;
			free[it->unit] -= it->size;
		}
	}
}

static int32_t ask(const struct question *q, struct relief_move moves[RELIEF_MOVES_MAX],
		   uint32_t *ret_unit)
{
	return relief_find(q->units, q->n_units, q->items, q->n_items, q->size, q->wanted,
			   q->max_moves, moves, ret_unit);
}

/* Applies the moves and checks that they do what they are for. Returns their cost. */
static int64_t apply(const struct question *q, const struct relief_move *moves, uint32_t n,
		     uint32_t unit)
{
	int64_t free[UNITS], cost = 0;
	uint64_t moved = 0;
	for (uint32_t i = 0; i < q->n_units; i++)
		free[i] = q->units[i].free;
	for (uint32_t i = 0; i < n; i++) {
		const struct relief_item *it = &q->items[moves[i].item];
		assert_false(moved >> moves[i].item & 1);
		assert_true(it->allowed >> moves[i].to & 1 && moves[i].to != it->unit);
		moved |= UINT64_C(1) << moves[i].item;
		free[it->unit] += it->size;
		free[moves[i].to] -= it->size;
		cost += it->cost;
	}
	for (uint32_t i = 0; i < q->n_units; i++)
		assert_true(free[i] >= 0);
	assert_true(q->wanted >> unit & 1 && free[unit] >= q->size);
	return cost;
}

static void test_against_everything(void **state)
{
	struct seed seed = seed_begin();
	for (int run = 0; run < RUNS; run++) {
		struct question q;
		struct relief_move moves[RELIEF_MOVES_MAX], again[RELIEF_MOVES_MAX];
		struct answer best = {0};
		int64_t free[UNITS];
		uint32_t unit = 0, unit_again = 0;
		make_question(&seed, &q);
		for (uint32_t i = 0; i < q.n_units; i++)
			free[i] = q.units[i].free;
		try_all(&q, free, 0, 0, 0, &best);
		int32_t n = ask(&q, moves, &unit);
		assert_int_equal(n, best.found ? (int32_t)best.n_moves : -RP_ENOSPC);
		if (n < 0)
			continue;
		assert_int_equal(apply(&q, moves, (uint32_t)n, unit), best.cost);
		assert_int_equal(ask(&q, again, &unit_again), n);
		assert_int_equal(unit, unit_again);
		for (int32_t i = 0; i < n; i++)
			assert_true(moves[i].item == again[i].item && moves[i].to == again[i].to);
	}
}

/* Checks that many containers that are too small do not hide the one that frees enough capacity. */
static void test_ranks(void **state)
{
	struct relief_unit units[2] = {{0}, {4}};
	struct relief_item items[21];
	struct relief_move moves[RELIEF_MOVES_MAX];
	uint32_t unit = 9;
	for (uint32_t i = 0; i < 20; i++)
		items[i] = (struct relief_item){.size = 1, .allowed = UINT64_MAX};
	items[20] = (struct relief_item){.size = 4, .allowed = UINT64_MAX};
	assert_int_equal(relief_find(units, 2, items, 21, 4, 1, 3, moves, &unit), 1);
	assert_int_equal(moves[0].item, 20);
	assert_int_equal(unit, 0);
	assert_true(relief_rank(2, 6, 3) < relief_rank(3, 6, 3));
	assert_true(relief_rank(3, 6, 3) < relief_rank(1, 6, 3));
	assert_true(relief_rank(1, 7, 3) > relief_rank(2, 7, 3));
}

/* 40 containers in unit 0, which has nothing free; unit 1 has room for 8. */
struct offered {
	int64_t sizes[40];
	uint32_t n; /* number of containers */
	uint64_t refused; /* containers that must stay, as bits */
	uint32_t n_checked, n_asked; /* calls of accept and may_move */
};

static void offer_all(void *ctx, struct relief_question *q)
{
	const struct offered *o = ctx;
	for (uint32_t i = 0; i < o->n; i++)
		relief_offer(q, 0, o->sizes[i], i + 1);
}

static bool is_refused(const struct offered *o, uint64_t key)
{
	return o->refused >> (key - 1) & 1;
}

static bool accept_some(void *ctx, uint64_t key, struct relief_item *ret)
{
	struct offered *o = ctx;
	o->n_checked++;
	ret->cost = 1;
	return !is_refused(o, key);
}

static bool accept_all(void *ctx, uint64_t key, struct relief_item *ret)
{
	ret->cost = (int64_t)(key % 7);
	return true;
}

static bool may_move(void *ctx, uint64_t key)
{
	struct offered *o = ctx;
	o->n_asked++;
	return !is_refused(o, key);
}

static bool accept_movable(void *ctx, uint64_t key, struct relief_item *ret)
{
	return accept_all(ctx, key, ret) && !is_refused(ctx, key);
}

static void test_offers(void **state)
{
	static struct relief_question q;
	struct offered o = {.n = 40};
	for (uint32_t i = 0; i < 40; i++)
		o.sizes[i] = 1 + (i >= 20) + (i == 39);
	q = (struct relief_question){.n_units = 2,
				     .units = {{0}, {8}},
				     .ctx = &o,
				     .offer = offer_all,
				     .accept = accept_some};
	/* Six need at least one container of two: the smallest of these come first. */
	assert_int_equal(relief_ask(&q, 6, 1, 3), 3);
	assert_int_equal(q.n_items, RELIEF_CANDIDATES_MAX);
	assert_int_equal(o.n_checked, RELIEF_CANDIDATES_MAX);
	assert_int_equal(q.keys[0], 21);
	assert_int_equal(q.unit, 0);
	/* Where these must stay, the others are offered again. */
	o.refused = UINT64_C(0x3fff) << 20;
	assert_int_equal(relief_ask(&q, 6, 1, 3), 3);
	for (uint32_t i = 0; i < q.n_moves; i++)
		assert_true(q.keys[q.moves[i].item] > 34);
	o.refused = UINT64_MAX;
	assert_int_equal(relief_ask(&q, 6, 1, 3), -RP_ENOSPC);
	assert_int_equal(q.n_items, 0);
}

/* A refusal after the search leads to the same moves as a refusal before it. */
static void test_late_refusals(void **state)
{
	static struct relief_question late, early;
	struct offered o = {.n = RELIEF_CANDIDATES_MAX};
	for (uint32_t i = 0; i < o.n; i++)
		o.sizes[i] = 1 + i % 4;
	late = (struct relief_question){.n_units = 2,
					.units = {{0}, {8}},
					.ctx = &o,
					.offer = offer_all,
					.accept = accept_all,
					.may_move = may_move};
	early = late;
	early.accept = accept_movable;
	early.may_move = NULL;
	assert_int_equal(relief_ask(&late, 6, 1, 3), 2);
	assert_int_equal(o.n_asked, 2);
	for (o.refused = 0; o.refused < 1u << RELIEF_CANDIDATES_MAX; o.refused += 7) {
		assert_int_equal(relief_ask(&late, 6, 1, 3), relief_ask(&early, 6, 1, 3));
		assert_int_equal(late.n_moves, early.n_moves);
		for (uint32_t k = 0; k < late.n_moves; k++)
			assert_int_equal(late.keys[late.moves[k].item],
					 early.keys[early.moves[k].item]);
	}
}

static void offer_costs(void *ctx, struct relief_question *q)
{
	for (uint32_t i = 0; i < 9; i++)
		relief_offer_cost(q, 0, 2, i == 5 ? 1 : 7, i + 1);
}

/* With costs in the offers, no container is asked about and the cheapest one moves. */
static void test_offered_costs(void **state)
{
	static struct relief_question q;
	q = (struct relief_question){.n_units = 2, .units = {{0}, {8}}, .offer = offer_costs};
	assert_int_equal(relief_ask(&q, 2, 1, 3), 1);
	assert_int_equal(q.keys[q.moves[0].item], 6);
}

/* Records of damaged saved bytes are left out; the others are saved again. */
static void test_saved(void **state)
{
	static struct relief_moved moved;
	const struct modhost h = {0}; /* without a clock: it is 0 ms */
	const struct relief_record saved[] = {{1, 0},	      {0, 0}, {2, -1},
					      {3, INT64_MIN}, {4, 1}, {5, 0}};
	struct relief_record again[RELIEF_MOVED_MAX];
	assert_false(relief_load(&h, saved, sizeof saved - 1, &moved));
	assert_true(relief_load(&h, saved, sizeof saved, &moved));
	assert_int_equal(relief_save(&moved, (uint8_t *)again), 2 * sizeof *again);
	assert_int_equal(again[0].key, 1);
	assert_int_equal(again[1].key, 5);
}

static void test_bounds(void **state)
{
	struct relief_unit units[RELIEF_UNITS_MAX] = {{0}};
	struct relief_item items[RELIEF_ITEMS_MAX + 1];
	struct relief_move moves[RELIEF_MOVES_MAX];
	uint32_t unit = 0;
	/* Everything is full, and a great many could move if it were not. */
	for (uint32_t i = 0; i <= RELIEF_ITEMS_MAX; i++)
		items[i] = (struct relief_item){
			.unit = i % RELIEF_UNITS_MAX, .size = 1, .allowed = UINT64_MAX};
	assert_int_equal(relief_find(units, RELIEF_UNITS_MAX, items, RELIEF_ITEMS_MAX + 1, 4,
				     UINT64_MAX, 9, moves, &unit),
			 -RP_ENOSPC);
	/* The search makes at most three moves, whatever is requested. */
	units[1].free = 8;
	assert_int_equal(relief_find(units, 2, items, RELIEF_ITEMS_MAX, 3, 1, 9, moves, &unit), 3);
	assert_int_equal(relief_find(units, 2, items, RELIEF_ITEMS_MAX, 4, 1, 9, moves, &unit),
			 -RP_ENOSPC);
	assert_int_equal(relief_find(units, 2, items, 0, 4, UINT64_MAX, 0, moves, &unit), 0);
	assert_int_equal(unit, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_against_everything),
		cmocka_unit_test(test_ranks),
		cmocka_unit_test(test_offers),
		cmocka_unit_test(test_late_refusals),
		cmocka_unit_test(test_offered_costs),
		cmocka_unit_test(test_saved),
		cmocka_unit_test(test_bounds),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
