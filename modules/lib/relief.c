/* SPDX-License-Identifier: Apache-2.0 */
/* Search for the moves that free one unit, common configuration, and records of moved
 * containers. */
#include <nri-rp/lib/relief.h>

#include <string.h>

#include <nri-rp/lib/ctr.h>
#include <nri-rp/lib/text.h>

/* ---- the search ------------------------------------------------------------------------------ */

/*
 * A unit is short if it is overfull, or if it is the wanted one and has less free than the size.
 * Each step moves one item out of a short unit. This finds every shortest list: as long as a unit
 * is short, one of the missing moves must leave it.
 */
struct search {
	const struct relief_item *items;
	uint32_t n_units;
	int64_t size;
	int64_t free[RELIEF_UNITS_MAX];
	uint32_t n_candidates[RELIEF_UNITS_MAX];
	/* candidates of each unit, sorted by relief_rank() */
	uint32_t candidates[RELIEF_UNITS_MAX][RELIEF_CANDIDATES_MAX];
	int64_t part[RELIEF_UNITS_MAX]; /* size from which relief_rank() prefers small items */
	int64_t largest[RELIEF_UNITS_MAX]; /* size of the largest candidate of each unit */
	int64_t cheapest; /* lowest cost of a candidate */
	uint32_t unit; /* the wanted unit that is searched */
	uint32_t max_moves;
	uint32_t work;
	/* The list being built. */
	struct relief_move moves[RELIEF_MOVES_MAX];
	uint32_t n_moves;
	int64_t cost;
	/* The best list so far. */
	struct relief_move best[RELIEF_MOVES_MAX];
	uint32_t n_best, best_unit;
	int64_t best_cost;
	bool found;
};

static int64_t search_lacks(const struct search *s, uint32_t unit)
{
	return (unit == s->unit ? s->size : 0) - s->free[unit];
}

/* Returns the wanted unit if it is short, else the lowest short unit; n_units: none. Stores the
 * number of short units: as many moves are missing at least. */
static uint32_t search_short_unit(const struct search *s, uint32_t *ret_n)
{
	uint32_t first = s->n_units;
	*ret_n = 0;
	for (uint32_t i = s->n_units; i-- > 0;) {
		if (search_lacks(s, i) <= 0)
			continue;
		first = first == s->unit ? first : i;
		++*ret_n;
	}
	return first;
}

static bool search_is_moved(const struct search *s, uint32_t item)
{
	for (uint32_t i = 0; i < s->n_moves; i++)
		if (s->moves[i].item == item)
			return true;
	return false;
}

/* Returns true if a cheaper or earlier candidate of the same size can move instead. Such candidates
 * precede the candidate at `at`. */
static bool search_is_dominated(const struct search *s, uint32_t unit, uint32_t at)
{
	const struct relief_item *it = &s->items[s->candidates[unit][at]];
	while (at-- > 0) {
		uint32_t other = s->candidates[unit][at];
		if (s->items[other].size != it->size)
			return false;
		if (s->items[other].allowed == it->allowed && !search_is_moved(s, other))
			return true;
	}
	return false;
}

static void search_keep(struct search *s)
{
	memcpy(s->best, s->moves, sizeof s->best);
	s->n_best = s->n_moves;
	s->best_unit = s->unit;
	s->best_cost = s->cost;
	s->found = true;
}

static void search_step(struct search *s, uint32_t left, uint32_t unit_before, uint32_t after);

/* Tries all other units for an item of a short unit. */
static void search_move(struct search *s, uint32_t left, uint32_t unit, uint32_t at)
{
	uint32_t item = s->candidates[unit][at];
	const struct relief_item *it = &s->items[item];
	for (uint32_t to = 0; to < s->n_units && s->work < RELIEF_WORK_MAX; to++) {
		int64_t rest = s->free[to] - it->size - (to == s->unit ? s->size : 0);
		if (to == unit || !(it->allowed >> to & 1) || (left == 1 && rest < 0))
			continue;
		s->work++;
		s->moves[s->n_moves++] = (struct relief_move){item, to};
		s->cost += it->cost;
		s->free[unit] += it->size;
		s->free[to] -= it->size;
		search_step(s, left - 1, unit, at);
		s->free[to] += it->size;
		s->free[unit] -= it->size;
		s->cost -= it->cost;
		s->n_moves--;
	}
}

/* Extends the list by one move. Consecutive moves of items of one unit are in ascending order, so
 * that each set of items is tried once. All `left` moves are needed, as no shorter list exists; a
 * list that cannot become cheaper than the best one is given up. */
static void search_step(struct search *s, uint32_t left, uint32_t unit_before, uint32_t after)
{
	uint32_t n_short, unit;
	if (s->found && s->cost + left * s->cheapest >= s->best_cost)
		return;
	unit = search_short_unit(s, &n_short);
	if (n_short > left)
		return;
	if (unit == s->n_units) {
		search_keep(s);
		return;
	}
	int64_t lacks = search_lacks(s, unit);
	for (uint32_t i = unit == unit_before ? after + 1 : 0; left && i < s->n_candidates[unit];
	     i++) {
		uint32_t item = s->candidates[unit][i];
		int64_t rest = lacks - s->items[item].size;
		if (search_is_moved(s, item) || rest > (left - 1) * s->largest[unit] ||
		    search_is_dominated(s, unit, i))
			continue;
		search_move(s, left, unit, i);
	}
}

static int64_t rank_of(int64_t size, int64_t part)
{
	return size >= part ? size : INT64_MAX - size;
}

/* Returns the size that the largest of the containers that leave a unit has at least. */
static int64_t rank_part(int64_t lacks, uint32_t moves)
{
	return moves ? (lacks + moves - 1) / moves : lacks;
}

int64_t relief_rank(int64_t size, int64_t lacks, uint32_t moves)
{
	return rank_of(size, rank_part(lacks, moves));
}

/* Returns relief_rank() of an item. The amount that lacks is the wanted size minus what is free in
 * the unit of the item. */
static int64_t search_rank(const struct search *s, uint32_t item)
{
	return rank_of(s->items[item].size, s->part[s->items[item].unit]);
}

/* Adds an item to the candidates of its unit, if it is one of the best. */
static void search_add_candidate(struct search *s, uint32_t item)
{
	uint32_t unit = s->items[item].unit, n = s->n_candidates[unit], at = n;
	uint32_t *list = s->candidates[unit];
	int64_t rank = search_rank(s, item);
	while (at && (search_rank(s, list[at - 1]) > rank ||
		      (search_rank(s, list[at - 1]) == rank &&
		       s->items[list[at - 1]].cost > s->items[item].cost)))
		at--;
	if (at == RELIEF_CANDIDATES_MAX)
		return;
	if (n == RELIEF_CANDIDATES_MAX)
		n--;
	memmove(&list[at + 1], &list[at], (n - at) * sizeof *list);
	list[at] = item;
	s->n_candidates[unit] = n + 1;
	if (s->items[item].size > s->largest[unit])
		s->largest[unit] = s->items[item].size;
	if (s->items[item].cost < s->cheapest)
		s->cheapest = s->items[item].cost;
}

int32_t relief_find(const struct relief_unit *units, uint32_t n_units,
		    const struct relief_item *items, uint32_t n_items, int64_t size,
		    uint64_t wanted, uint32_t max_moves, struct relief_move ret[RELIEF_MOVES_MAX],
		    uint32_t *ret_unit)
{
	struct search s = {.items = items, .size = size, .cheapest = INT64_MAX / RELIEF_MOVES_MAX};
	s.n_units = n_units < RELIEF_UNITS_MAX ? n_units : RELIEF_UNITS_MAX;
	s.max_moves = max_moves < RELIEF_MOVES_MAX ? max_moves : RELIEF_MOVES_MAX;
	for (uint32_t i = 0; i < s.n_units; i++) {
		s.free[i] = units[i].free;
		s.part[i] = rank_part(size - s.free[i], s.max_moves);
	}
	for (uint32_t i = 0; i < n_items && i < RELIEF_ITEMS_MAX; i++)
		if (items[i].unit < s.n_units && items[i].allowed & ~(UINT64_C(1) << items[i].unit))
			search_add_candidate(&s, i);
	for (uint32_t n = 0; n <= s.max_moves && !s.found; n++)
		for (s.unit = 0; s.unit < s.n_units; s.unit++)
			if (wanted >> s.unit & 1)
				search_step(&s, n, s.n_units, 0);
	if (!s.found)
		return -RP_ENOSPC;
	memcpy(ret, s.best, sizeof s.best);
	*ret_unit = s.best_unit;
	return (int32_t)s.n_best;
}

/* ---- candidates ------------------------------------------------------------------------------ */

static bool candidate_precedes(const struct relief_candidate *a, const struct relief_candidate *b)
{
	return a->rank < b->rank || (a->rank == b->rank && a->key < b->key);
}

void relief_offer(struct relief_question *q, uint32_t unit, int64_t size, uint64_t key)
{
	relief_offer_cost(q, unit, size, 0, key);
}

void relief_offer_cost(struct relief_question *q, uint32_t unit, int64_t size, int64_t cost,
		       uint64_t key)
{
	struct relief_candidates *c = &q->candidates[unit];
	if (c->all)
		return;
	const struct relief_candidate new = {rank_of(size, c->part), size, key, cost};
	uint32_t at = c->n;
	if (c->last.key && !candidate_precedes(&c->last, &new))
		return;
	if (at < RELIEF_CANDIDATES_MAX)
		c->n++;
	else if (!candidate_precedes(&new, &c->list[--at]))
		return;
	for (; at && candidate_precedes(&new, &c->list[at - 1]); at--)
		c->list[at] = c->list[at - 1];
	c->list[at] = new;
}

/* Adds the candidates that may move to the items. */
static void candidates_check(struct relief_question *q, uint32_t unit)
{
	struct relief_candidates *c = &q->candidates[unit];
	c->all = c->n < RELIEF_CANDIDATES_MAX;
	for (uint32_t i = 0; i < c->n && c->n_items < RELIEF_CANDIDATES_MAX; i++) {
		struct relief_item *item = &q->items[q->n_items];
		c->last = c->list[i];
		*item = (struct relief_item){.unit = unit,
					     .size = c->last.size,
					     .allowed = UINT64_MAX,
					     .cost = c->last.cost};
		if ((q->accept && !q->accept(q->ctx, c->last.key, item)) ||
		    (q->checks && q->may_move && !q->may_move(q->ctx, c->last.key)))
			continue;
		q->keys[q->n_items++] = c->last.key;
		c->n_items++;
	}
	c->all = c->all || c->n_items == RELIEF_CANDIDATES_MAX;
	c->n = 0;
}

/* Makes the best candidates of all units the items. */
static void candidates_fill(struct relief_question *q, int64_t size, uint32_t max_moves)
{
	q->n_items = 0;
	for (uint32_t i = 0; i < q->n_units; i++)
		q->candidates[i] = (struct relief_candidates){
			.part = rank_part(size - q->units[i].free, max_moves)};
	for (bool more = true; more;) {
		more = false;
		q->offer(q->ctx, q);
		for (uint32_t i = 0; i < q->n_units; i++) {
			candidates_check(q, i);
			more = more || !q->candidates[i].all;
		}
	}
}

/* Returns true if the containers of the found moves may be moved; without moves, all candidates. */
static bool candidates_may_move(const struct relief_question *q, int32_t n_moves)
{
	uint32_t n = n_moves < 0 ? q->n_items : (uint32_t)n_moves;
	for (uint32_t i = 0; i < n; i++)
		if (!q->may_move(q->ctx, q->keys[n_moves < 0 ? i : q->moves[i].item]))
			return false;
	return true;
}

int32_t relief_ask(struct relief_question *q, int64_t size, uint64_t wanted, uint32_t max_moves)
{
	int32_t n;
	q->checks = !q->may_move;
	do {
		candidates_fill(q, size, max_moves);
		n = relief_find(q->units, q->n_units, q->items, q->n_items, size, wanted, max_moves,
				q->moves, &q->unit);
		q->checks = !q->checks && !candidates_may_move(q, n);
	} while (q->checks);
	q->n_moves = n > 0 ? (uint32_t)n : 0;
	return n;
}

/* ---- configuration --------------------------------------------------------------------------- */

void relief_read(const struct modhost *h, rp_cfg section, bool parity, struct relief_settings *ret)
{
	static const char *const choices[] = {"never", "annotated", "all", NULL};
	rp_cfg cooldown = section_get(h, section, "relief.cooldown");
	int which =
		section_word(choices, section_text(h, section, "relief.exclusive", "annotated"));
	*ret = (struct relief_settings){
		.moves = (uint32_t)section_int(h, section, "relief.moves",
					       parity ? 0 : RELIEF_MOVES_MAX),
		.at = strcmp(section_text(h, section, "relief.at", ""), "admission") == 0
			      ? RELIEF_ADMISSION
			      : RELIEF_REBALANCE,
		.exclusive = which < 0 ? RELIEF_ANNOTATED : (enum relief_exclusive)which,
		.cooldown_ms = h->config->value(h->ctx, cooldown, RP_T_DURATION, 600000),
	};
}

/* ---- movable containers ---------------------------------------------------------------------- */

/* Returns a hash of the runtime's id; never 0. */
static uint64_t relief_key(const struct rp_ctr_info *info)
{
	uint64_t key = text_hash(info->id);
	return key ? key : 1;
}

static int64_t relief_now_ms(const struct modhost *h)
{
	return h->timer ? (int64_t)h->timer->now_ms(h->ctx) : 0;
}

static void relief_record(struct relief_moved *m, struct relief_record record)
{
	m->list[m->next] = record;
	m->next = (m->next + 1) % RELIEF_MOVED_MAX;
}

void relief_note_move(const struct modhost *h, struct relief_moved *m, rp_ctr ctr)
{
	struct rp_ctr_info info = {.size = sizeof info};
	uint64_t key = ctr_info(h, ctr, &info) ? 1 : relief_key(&info);
	relief_record(m, (struct relief_record){key, relief_now_ms(h)});
}

void relief_forget_moves(struct relief_moved *m, uint32_t n)
{
	for (; n; n--) {
		m->next = (m->next + RELIEF_MOVED_MAX - 1) % RELIEF_MOVED_MAX;
		m->list[m->next].key = 0;
	}
}

static bool relief_is_cooling(const struct modhost *h, const struct relief_settings *s,
			      const struct relief_moved *m, const struct rp_ctr_info *info)
{
	int64_t now = relief_now_ms(h);
	uint64_t key = 0;
	/* the latest move first: the others were earlier */
	for (uint32_t i = 1; i <= RELIEF_MOVED_MAX; i++) {
		uint32_t at = (m->next + RELIEF_MOVED_MAX - i) % RELIEF_MOVED_MAX;
		if (!m->list[at].key || now - m->list[at].at_ms >= s->cooldown_ms)
			return false;
		key = key ? key : relief_key(info);
		if (m->list[at].key == key)
			return true;
	}
	return false;
}

uint32_t relief_save(const struct relief_moved *m, uint8_t ret[RELIEF_SAVED_MAX])
{
	/* the oldest first; the last one is unused until all have been used once */
	bool all = m->list[RELIEF_MOVED_MAX - 1].key != 0;
	uint32_t size = 0, first = all ? m->next : 0, n = all ? RELIEF_MOVED_MAX : m->next;
	for (uint32_t i = 0; i < n; i++) {
		const struct relief_record *r = &m->list[(first + i) % RELIEF_MOVED_MAX];
		if (!r->key)
			continue;
		memcpy(ret + size, r, sizeof *r);
		size += (uint32_t)sizeof *r;
	}
	return size;
}

bool relief_load(const struct modhost *h, const void *data, uint32_t size, struct relief_moved *ret)
{
	struct relief_record record;
	int64_t now = relief_now_ms(h);
	if (size > RELIEF_SAVED_MAX || size % sizeof record)
		return false;
	for (uint32_t i = 0; i < size; i += (uint32_t)sizeof record) {
		memcpy(&record, (const uint8_t *)data + i, sizeof record);
		if (!record.key || record.at_ms < 0 || record.at_ms > now)
			continue; /* damaged, or recorded before the last boot */
		ret->list[ret->next] = record;
		ret->next = (ret->next + 1) % RELIEF_MOVED_MAX;
	}
	return true;
}

bool relief_must_stay(const struct modhost *h, rp_ctr ctr)
{
	return ctr_annotated_bool(h, ctr, RELIEF_MOVABLE, NULL) == 0;
}

bool relief_may_be_moved(const struct modhost *h, const struct relief_settings *s,
			 const struct rp_ctr_info *info, bool exclusive)
{
	int annotated = ctr_annotated_bool(h, info->ctr, RELIEF_MOVABLE, NULL);
	if (info->flags & (RP_CTR_PRESERVE_CPU | RP_CTR_PRESERVE_MEM | RP_CTR_CLAIM) ||
	    annotated == 0)
		return false;
	return !exclusive || s->exclusive == RELIEF_ALL ||
	       (s->exclusive == RELIEF_ANNOTATED && annotated == 1);
}

bool relief_may_move(const struct modhost *h, const struct relief_settings *s,
		     const struct relief_moved *m, const struct rp_ctr_info *info, bool exclusive)
{
	bool runs = info->state != RP_STATE_CREATING && info->state != RP_STATE_EXITED;
	return runs && !relief_is_cooling(h, s, m, info) &&
	       relief_may_be_moved(h, s, info, exclusive);
}

/* ---- explanations ---------------------------------------------------------------------------- */

void relief_note_moved(const struct modhost *h, rp_ctr moved, uint32_t from, uint32_t to,
		       const struct rp_ctr_info *other)
{
	char text[MODHOST_TEXT_MAX];
	(void)snprintf(text, sizeof text, "moved from node %u to node %u to make room for %s/%s/%s",
		       from, to, other->pod_namespace, other->pod_name, other->name);
	modhost_one_line(text);
	modhost_note_line(h, moved, text);
	h->host->log(h->ctx, RP_LOG_INFO, moved, text);
}

void relief_note_placed(const struct modhost *h, rp_ctr ctr, uint32_t node, uint32_t n_moves)
{
	modhost_note(h, ctr, "placed in node %u after %u move%s", node, n_moves,
		     n_moves == 1 ? "" : "s");
}
