/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares modules/lib/memalloc.h with a naive model: a list of requests, sums computed each time,
 * undo by a copy of everything. The topologies, requests and transactions are random.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <nri-rp/lib/memalloc.h>

#define N_STEPS 100000
#define N_STEPS_A_MACHINE 1000
#define N_NODES 9
#define N_REQUESTS 48
#define N_ZONES 512

static uint64_t seed;

static uint32_t rnd(uint32_t n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)((seed >> 16) % n);
}

struct request {
	struct memalloc_request is;
	uint64_t age;
	memalloc_mask zone;
};

struct state {
	struct request req[N_REQUESTS];
	uint32_t n;
	uint64_t next_age;
};

struct model {
	struct memalloc_node nodes[N_NODES];
	uint32_t distance[N_NODES * N_NODES], n_nodes;
	uint32_t room; /* how large nodes are, beside requests */
	struct state now, begun; /* begun: at memalloc_begin() */
	bool in_txn;
	memalloc_mask zones[N_ZONES]; /* zones in use at any time during the running operation */
	uint32_t n_zones;
};

static struct model model;

/* ---- sums ------------------------------------------------------------------------------------ */

static bool has(memalloc_mask mask, uint32_t i)
{
	return mask >> i & 1;
}

static bool within(memalloc_mask a, memalloc_mask b)
{
	return (a & b) == a;
}

static uint32_t bits(memalloc_mask mask)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < 64; i++)
		n += has(mask, i);
	return n;
}

static uint32_t types_of(const struct model *m, memalloc_mask nodes)
{
	uint32_t types = 0;
	for (uint32_t i = 0; i < m->n_nodes; i++)
		if (has(nodes, i))
			types |= m->nodes[i].type;
	return types;
}

/* Nodes that have memory of some types; normal memory only, if asked. */
static memalloc_mask nodes_of(const struct model *m, uint32_t types, bool normal)
{
	memalloc_mask nodes = 0;
	for (uint32_t i = 0; i < m->n_nodes; i++)
		if (m->nodes[i].bytes && m->nodes[i].type & types &&
		    (!normal || m->nodes[i].normal))
			nodes |= UINT64_C(1) << i;
	return nodes;
}

static uint32_t all_types(const struct model *m)
{
	return types_of(m, nodes_of(m, 7, false));
}

static int64_t capacity(const struct model *m, memalloc_mask nodes)
{
	int64_t n = 0;
	for (uint32_t i = 0; i < m->n_nodes; i++)
		if (has(nodes, i))
			n += (int64_t)m->nodes[i].bytes;
	return n;
}

static int64_t usage(const struct model *m, memalloc_mask nodes)
{
	int64_t n = 0;
	for (uint32_t i = 0; i < m->now.n; i++)
		if (within(m->now.req[i].zone, nodes))
			n += m->now.req[i].is.size;
	return n;
}

static uint32_t users(const struct model *m, memalloc_mask zone)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < m->now.n; i++)
		n += m->now.req[i].zone == zone;
	return n;
}

static struct request *find(struct model *m, uint64_t id)
{
	for (uint32_t i = 0; i < m->now.n; i++)
		if (m->now.req[i].is.id == id)
			return &m->now.req[i];
	return NULL;
}

static void add_zone(struct model *m, memalloc_mask zone)
{
	for (uint32_t i = 0; i < m->n_zones; i++)
		if (m->zones[i] == zone)
			return;
	assert_true(m->n_zones < N_ZONES);
	m->zones[m->n_zones++] = zone;
}

/* ---- placing --------------------------------------------------------------------------------- */

static memalloc_mask expand(const struct model *m, memalloc_mask zone, uint32_t types,
			    uint32_t *ret_types)
{
	memalloc_mask all = 0;
	*ret_types = 0;
	for (uint32_t t = 1; t <= 4; t *= 2) {
		uint32_t best = UINT32_MAX;
		memalloc_mask found = 0;
		if (!(types & t))
			continue;
		memalloc_mask wanted = nodes_of(m, t, false) & ~zone;
		for (uint32_t i = 0; i < m->n_nodes; i++) {
			uint32_t nearest = UINT32_MAX;
			if (!has(zone, i))
				continue;
			for (uint32_t k = 0; k < m->n_nodes; k++)
				if (has(wanted, k) && m->distance[i * m->n_nodes + k] < nearest)
					nearest = m->distance[i * m->n_nodes + k];
			for (uint32_t k = 0; k < m->n_nodes; k++)
				if (has(wanted, k) && m->distance[i * m->n_nodes + k] == nearest &&
				    nearest <= best)
					found |= UINT64_C(1) << k;
			if (nearest < best)
				best = nearest;
		}
		if (found)
			*ret_types |= t;
		all |= found;
	}
	return all;
}

static int initial_zone(const struct model *m, struct memalloc_request *is, memalloc_mask *ret)
{
	uint32_t ignored, normal = types_of(m, nodes_of(m, 7, true));
	is->types &= all_types(m);
	if (!is->types)
		is->types = types_of(m, is->nodes);
	memalloc_mask zone =
		is->nodes | expand(m, is->nodes, is->types & ~types_of(m, is->nodes), &ignored);
	if (is->strict) {
		zone &= nodes_of(m, is->types, false);
		if (types_of(m, zone) != is->types)
			return -RP_ENOSPC;
	} else if (zone & nodes_of(m, is->types, false)) {
		zone &= nodes_of(m, is->types, false);
	}
	if (!(zone & nodes_of(m, 7, true))) {
		uint32_t types = is->types & normal;
		if (!types && is->strict)
			return -RP_ENOSPC;
		for (uint32_t t = 1; !types && t <= 4; t *= 2)
			types = normal & t;
		while (!(zone & nodes_of(m, 7, true))) {
			memalloc_mask more = expand(m, zone, types, &ignored);
			if (!more)
				return -RP_ENOSPC;
			zone |= more;
		}
		is->types |= types;
	}
	*ret = zone;
	return 0;
}

static bool goes_before(const struct request *a, const struct request *b)
{
	if (a->is.priority != b->is.priority)
		return a->is.priority < b->is.priority;
	return a->is.size != b->is.size ? a->is.size < b->is.size : a->age > b->age;
}

static int64_t shrink(struct model *m, memalloc_mask zone, int64_t bytes, uint32_t priority,
		      uint32_t extra)
{
	uint32_t types;
	memalloc_mask more = expand(m, zone, types_of(m, zone) | extra, &types);
	int64_t moved = 0;
	bool stays[N_REQUESTS] = {false};
	if (!more)
		return 0;
	add_zone(m, zone | more);
	while (moved < bytes) {
		uint32_t next = UINT32_MAX;
		for (uint32_t i = 0; i < m->now.n; i++)
			if (m->now.req[i].zone == zone && !stays[i] &&
			    m->now.req[i].is.priority <= priority &&
			    (next == UINT32_MAX || goes_before(&m->now.req[i], &m->now.req[next])))
				next = i;
		if (next == UINT32_MAX)
			break;
		struct request *r = &m->now.req[next];
		stays[next] = true;
		if (r->is.strict && r->is.types != (types_of(m, zone) | types))
			continue;
		r->zone = zone | more;
		moved += r->is.size;
	}
	return moved;
}

/* Zones that hold too much, in the order of handling. */
static uint32_t excess(const struct model *m, memalloc_mask nodes, memalloc_mask *ret,
		       int64_t *ret_bytes)
{
	memalloc_mask over[N_ZONES];
	uint32_t n = 0, n_sorted = 0;
	for (uint32_t i = 0; i < m->n_zones; i++)
		if (m->zones[i] & nodes && usage(m, m->zones[i]) > capacity(m, m->zones[i]))
			over[n++] = m->zones[i];
	while (n_sorted < n) {
		uint32_t best = UINT32_MAX;
		for (uint32_t i = 0; i < n; i++) {
			bool after = !over[i];
			for (uint32_t k = 0; k < n; k++)
				after |= k != i && over[k] && within(over[k], over[i]) &&
					 users(m, over[k]) == users(m, over[i]);
			if (after)
				continue;
			if (best == UINT32_MAX || users(m, over[i]) > users(m, over[best]) ||
			    (users(m, over[i]) == users(m, over[best]) &&
			     (bits(over[i]) > bits(over[best]) ||
			      (bits(over[i]) == bits(over[best]) && over[i] > over[best]))))
				best = i;
		}
		ret[n_sorted] = over[best];
		ret_bytes[n_sorted++] = usage(m, over[best]) - capacity(m, over[best]);
		over[best] = 0;
	}
	return n;
}

static int resolve(struct model *m, memalloc_mask nodes)
{
	static const uint32_t priorities[] = {MEMALLOC_PRIO_BURSTABLE, MEMALLOC_PRIO_GUARANTEED,
					      MEMALLOC_PRIO_PRESERVED};
	memalloc_mask over[N_ZONES];
	int64_t bytes[N_ZONES], moved;
	uint32_t n = excess(m, nodes, over, bytes);
	if (!n)
		return 0;
	do {
		moved = 0;
		for (uint32_t p = 0; p < 3; p++) {
			uint32_t extra = 0;
			for (uint32_t t = 0; t <= 4; t = t ? t * 2 : 1) {
				if (t && !(t & all_types(m)))
					continue;
				extra |= t;
				for (uint32_t i = 0; i < n; i++)
					moved += shrink(m, over[i], bytes[i], priorities[p], extra);
				n = excess(m, nodes, over, bytes);
				if (!n)
					return 0;
			}
		}
	} while (moved);
	return -RP_ENOSPC;
}

static void start(struct model *m)
{
	m->n_zones = 0;
	for (uint32_t i = 0; i < m->now.n; i++)
		add_zone(m, m->now.req[i].zone);
}

static int check(const struct model *m, const struct memalloc_request *is)
{
	if (is->size < 0 || !is->nodes || is->nodes >> m->n_nodes)
		return -RP_EINVAL;
	return is->strict && is->types & ~all_types(m) ? -RP_EINVAL : 0;
}

/* Places request i, which counts for nothing so far. */
static int place(struct model *m, uint32_t i)
{
	memalloc_mask zone;
	m->now.req[i].zone = UINT64_MAX; /* in no zone */
	int r = initial_zone(m, &m->now.req[i].is, &zone);
	if (r)
		return r;
	m->now.req[i].zone = zone;
	add_zone(m, zone);
	return resolve(m, zone);
}

static int model_allocate(struct model *m, const struct memalloc_request *is)
{
	struct state before = m->now;
	start(m);
	if (find(m, is->id))
		return -RP_EBUSY;
	int r = check(m, is);
	if (r)
		return r;
	m->now.req[m->now.n] = (struct request){*is, m->now.next_age++, 0};
	r = place(m, m->now.n++);
	if (r)
		m->now = before;
	return r;
}

static int model_replace(struct model *m, const struct memalloc_request *is)
{
	struct state before = m->now;
	struct request *req = find(m, is->id);
	if (!req)
		return -RP_ENOENT;
	int r = check(m, is);
	if (r)
		return r;
	start(m);
	req->is = *is;
	r = place(m, (uint32_t)(req - m->now.req));
	if (r)
		m->now = before;
	return r;
}

static int model_extend(struct model *m, uint64_t id, memalloc_mask nodes, uint32_t types)
{
	struct state before = m->now;
	struct request *req = find(m, id);
	uint32_t new_types;
	if (!req)
		return -RP_ENOENT;
	if (nodes >> m->n_nodes)
		return -RP_EINVAL;
	if ((!nodes && !types) || (nodes == req->is.nodes && types == req->is.types) ||
	    (within(nodes, req->zone) && within(types, types_of(m, req->zone))))
		return 0;
	start(m);
	if (types)
		nodes &= nodes_of(m, types, false);
	else
		types = types_of(m, nodes);
	memalloc_mask more = expand(m, req->zone | nodes, types, &new_types);
	if (!more)
		return -RP_ENOSPC;
	req->zone |= nodes | more;
	req->is.types |= new_types;
	add_zone(m, req->zone);
	int r = resolve(m, req->zone);
	if (r)
		m->now = before;
	return r;
}

static int model_release(struct model *m, uint64_t id)
{
	struct request *req = find(m, id);
	if (!req)
		return -RP_ENOENT;
	*req = m->now.req[--m->now.n];
	return 0;
}

/* ---- random machines and requests ------------------------------------------------------------ */

static struct memalloc *new_machine(struct model *m)
{
	static const uint32_t distances[] = {11, 12, 17, 21, 21, 28};
	struct memalloc *a = NULL;
	memset(m, 0, sizeof *m);
	m->n_nodes = 1 + rnd(N_NODES);
	m->room = 100 << rnd(4);
	for (uint32_t i = 0, id = 0; i < m->n_nodes; i++, id += 1 + (rnd(3) ? 0 : rnd(100)))
		m->nodes[i] = (struct memalloc_node){id, 1u << (rnd(2) ? 0 : rnd(3)), rnd(4) != 0,
						     0, rnd(8) ? rnd(m->room) : 0};
	m->nodes[rnd(m->n_nodes)].bytes = 20;
	for (uint32_t i = 0; i < m->n_nodes; i++) {
		m->distance[i * m->n_nodes + i] = 10;
		for (uint32_t k = 0; k < i; k++)
			m->distance[i * m->n_nodes + k] = m->distance[k * m->n_nodes + i] =
				distances[rnd(6)];
	}
	struct memalloc_machine machine = {m->nodes, m->distance, m->n_nodes, 0};
	assert_int_equal(memalloc_new_machine(&machine, &a, NULL, 0), 0);
	return a;
}

static memalloc_mask random_nodes(const struct model *m)
{
	memalloc_mask nodes = 0;
	uint32_t n = 1 + (rnd(2) ? 0 : rnd(m->n_nodes));
	while (n--)
		nodes |= UINT64_C(1) << rnd(m->n_nodes);
	return rnd(200) ? nodes : rnd(2) ? 0 : UINT64_C(1) << m->n_nodes;
}

/* Returns the id of a request, or an unused one; at times the wrong kind. */
static uint64_t random_id(struct model *m, bool used)
{
	uint64_t id = rnd(N_REQUESTS - 1);
	if (rnd(10) == 0)
		return id;
	if (used)
		return m->now.n ? m->now.req[rnd(m->now.n)].is.id : id;
	for (uint32_t i = 0; i < N_REQUESTS && find(m, id); i++)
		id = (id + 1) % (N_REQUESTS - 1);
	return id;
}

static struct memalloc_request random_request(struct model *m, bool used)
{
	static const uint32_t priorities[] = {MEMALLOC_PRIO_BEST_EFFORT, MEMALLOC_PRIO_BURSTABLE,
					      MEMALLOC_PRIO_BURSTABLE,	 MEMALLOC_PRIO_GUARANTEED,
					      MEMALLOC_PRIO_GUARANTEED,	 MEMALLOC_PRIO_PRESERVED,
					      MEMALLOC_PRIO_RESERVATION};
	uint32_t priority = priorities[rnd(7)];
	struct memalloc_request r = {.id = random_id(m, used),
				     .nodes = random_nodes(m),
				     .types = rnd(3) ? 0 : rnd(8),
				     .strict = !rnd(12),
				     .priority = priority};
	r.size = priority ? rnd(rnd(4) ? 20 : 60) : 0;
	if (!rnd(300))
		r.size = -5;
	return r;
}

/* ---- walk ------------------------------------------------------------------------------------ */

static void check_same(struct memalloc *a, struct model *m, const char *what)
{
	memalloc_mask memory = nodes_of(m, 7, false), nodes = 0;
	assert_int_equal(memalloc_count(a), m->now.n);
	for (uint32_t i = 0; i < m->now.n; i++) {
		memalloc_mask zone = 0;
		assert_int_equal(memalloc_zone(a, m->now.req[i].is.id, &zone), 0);
		if (zone != (m->now.req[i].zone & memory))
			fail_msg("after %s: request %llu is in %llx, the model says %llx", what,
				 (unsigned long long)m->now.req[i].is.id, (unsigned long long)zone,
				 (unsigned long long)m->now.req[i].zone);
		if (capacity(m, m->now.req[i].zone) < usage(m, m->now.req[i].zone))
			fail_msg("after %s: zone %llx holds too much", what,
				 (unsigned long long)m->now.req[i].zone);
	}
	for (uint32_t i = 0; i < m->n_nodes; i++)
		nodes |= (memalloc_mask)rnd(2) << i;
	assert_int_equal(memalloc_usage(a, nodes), usage(m, nodes | ~memory));
	assert_int_equal(memalloc_unused(a, nodes), capacity(m, nodes) - usage(m, nodes | ~memory));
	int64_t available = capacity(m, nodes) - usage(m, nodes | ~memory);
	for (uint32_t i = 0; i < m->now.n; i++) {
		memalloc_mask zone = m->now.req[i].zone;
		if (within(nodes & memory, zone) && capacity(m, zone) - usage(m, zone) < available)
			available = capacity(m, zone) - usage(m, zone);
	}
	assert_int_equal(memalloc_available(a, nodes), available < 0 ? 0 : available);
	/* The usage of all nodes equals the sum of all requests. */
	int64_t sum = 0;
	for (uint32_t i = 0; i < m->now.n; i++)
		sum += m->now.req[i].is.size;
	assert_int_equal(memalloc_usage(a, memalloc_all(a)), sum);
}

/* Checks that the reported moves are exactly those of other requests, oldest first. */
static void check_moves(const struct memalloc *a, struct model *m, const struct state *before,
			uint64_t but)
{
	const struct memalloc_move *moves;
	uint32_t n = memalloc_moves(a, &moves), expected = 0;
	uint64_t age = 0;
	for (uint32_t i = 0; i < before->n; i++) {
		const struct request *now = find(m, before->req[i].is.id);
		expected += before->req[i].is.id != but && now && now->zone != before->req[i].zone;
	}
	assert_int_equal(n, expected);
	for (uint32_t i = 0; i < n; i++) {
		const struct request *req = find(m, moves[i].id);
		assert_non_null(req);
		assert_int_not_equal(req->is.id, but);
		assert_int_equal(moves[i].zone, req->zone & nodes_of(m, 7, false));
		assert_true(!i || req->age > age);
		age = req->age;
	}
}

static void check_result(const struct memalloc *a, struct model *m, int r, int expected,
			 uint64_t id, memalloc_mask zone)
{
	/* A request larger than the machine is refused at once, in every state. */
	assert_int_equal(r, expected);
	if (r) {
		assert_true(*memalloc_why(a));
		assert_int_equal(zone, 42);
	} else {
		assert_int_equal(zone, find(m, id)->zone & nodes_of(m, 7, false));
	}
}

static void step_allocate(struct memalloc *a, struct model *m, bool by_offer)
{
	struct memalloc_request is = random_request(m, false);
	struct state before = m->now;
	struct memalloc_offer offer;
	memalloc_mask zone = 42;
	int r, expected = model_allocate(m, &is);
	if (by_offer) {
		r = memalloc_offer(a, &is, &offer);
		assert_int_equal(r, expected);
		struct state after = m->now;
		m->now = before;
		check_same(a, m, "offer");
		m->now = after;
		if (!r) {
			assert_int_equal(memalloc_commit(a, &offer, &zone), 0);
			assert_int_equal(zone, offer.zone);
			assert_int_equal(memalloc_commit(a, &offer, &zone), -RP_ESTALE);
		}
		return;
	}
	r = memalloc_allocate(a, &is, &zone);
	check_result(a, m, r, expected, is.id, zone);
	if (!r)
		check_moves(a, m, &before, is.id);
}

static void step_replace(struct memalloc *a, struct model *m)
{
	struct memalloc_request is = random_request(m, true);
	struct state before = m->now;
	memalloc_mask zone = 42;
	int expected = model_replace(m, &is), r = memalloc_replace(a, &is, &zone);
	check_result(a, m, r, expected, is.id, zone);
	if (!r)
		check_moves(a, m, &before, is.id);
}

static void step_extend(struct memalloc *a, struct model *m)
{
	uint64_t id = random_id(m, true);
	memalloc_mask nodes = rnd(3) ? random_nodes(m) : 0, zone = 42;
	uint32_t types = rnd(2) ? 0 : rnd(8);
	struct state before = m->now;
	int expected = model_extend(m, id, nodes, types),
	    r = memalloc_extend(a, id, nodes, types, &zone);
	check_result(a, m, r, expected, id, zone);
	if (!r && memcmp(&before, &m->now, sizeof before))
		check_moves(a, m, &before, id);
}

static void step_txn(struct memalloc *a, struct model *m)
{
	if (!m->in_txn) {
		assert_int_equal(memalloc_begin(a), 0);
		m->begun = m->now;
	} else if (rnd(2)) {
		memalloc_keep(a);
	} else {
		memalloc_drop(a);
		/* Ages go on; only their order matters. */
		m->begun.next_age = m->now.next_age;
		m->now = m->begun;
	}
	m->in_txn = !m->in_txn;
}

static void step(struct memalloc *a, struct model *m)
{
	uint32_t what = rnd(100);
	if (what < 32) {
		step_allocate(a, m, false);
		check_same(a, m, "allocate");
	} else if (what < 47) {
		step_allocate(a, m, true);
		check_same(a, m, "commit");
	} else if (what < 72) {
		uint64_t id = random_id(m, true);
		assert_int_equal(memalloc_release(a, id), model_release(m, id));
		check_same(a, m, "release");
	} else if (what < 81) {
		step_extend(a, m);
		check_same(a, m, "extend");
	} else if (what < 90) {
		step_replace(a, m);
		check_same(a, m, "replace");
	} else if (what < 99 || m->in_txn) {
		step_txn(a, m);
		check_same(a, m, "transaction");
	} else if (rnd(10) == 0) {
		memalloc_reset(a);
		m->now.n = 0;
		check_same(a, m, "reset");
	}
}

static void test_random(void **state)
{
	struct memalloc *a = NULL;
	seed = 20240229;
	for (uint32_t i = 0; i < N_STEPS; i++) {
		if (i % N_STEPS_A_MACHINE == 0) {
			a = memalloc_free(a);
			a = new_machine(&model);
		}
		step(a, &model);
	}
	/* Everything released is the beginning. */
	memalloc_keep(a);
	while (model.now.n) {
		uint64_t id = model.now.req[0].is.id;
		assert_int_equal(memalloc_release(a, id), 0);
		assert_int_equal(model_release(&model, id), 0);
	}
	check_same(a, &model, "the end");
	memalloc_free(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_random)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
