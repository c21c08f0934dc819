/* SPDX-License-Identifier: Apache-2.0 */
/* modules/lib/memalloc.h: placements on described machines, offers, undo, errors, the host's
 * topology. */
#include <setjmp.h>
#include <stdbool.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <nri-rp/lib/memalloc.h>

#define BE MEMALLOC_PRIO_BEST_EFFORT
#define BU MEMALLOC_PRIO_BURSTABLE
#define GU MEMALLOC_PRIO_GUARANTEED
#define PRESERVED MEMALLOC_PRIO_PRESERVED
#define RESERVATION MEMALLOC_PRIO_RESERVATION
#define DRAM MEMALLOC_DRAM
#define PMEM MEMALLOC_PMEM
#define HBM MEMALLOC_HBM

/* ---- machines -------------------------------------------------------------------------------- */

#define N_MAX 8

struct plain_machine {
	uint32_t n;
	struct memalloc_node nodes[N_MAX];
	uint32_t distance[N_MAX * N_MAX];
};

/* DRAM 0-3, PMEM 4-7, four bytes each. */
static const struct plain_machine eight = {
	8,
	{{0, DRAM, 1, 0, 4},
	 {1, DRAM, 1, 0, 4},
	 {2, DRAM, 1, 0, 4},
	 {3, DRAM, 1, 0, 4},
	 {4, PMEM, 0, 0, 4},
	 {5, PMEM, 0, 0, 4},
	 {6, PMEM, 0, 0, 4},
	 {7, PMEM, 0, 0, 4}},
	{10, 21, 11, 21, 17, 28, 28, 28, 21, 10, 21, 11, 28, 28, 17, 28, 11, 21, 10, 21, 28, 17,
	 28, 28, 21, 11, 21, 10, 28, 28, 28, 17, 17, 28, 28, 28, 10, 28, 28, 28, 28, 28, 17, 28,
	 28, 10, 28, 28, 28, 17, 28, 28, 28, 28, 10, 28, 28, 28, 28, 17, 28, 28, 28, 10}};

/* Two packages of two nodes. */
static const struct plain_machine four = {
	4,
	{{0, DRAM, 1, 0, 100}, {1, DRAM, 1, 0, 100}, {2, DRAM, 1, 0, 100}, {3, DRAM, 1, 0, 100}},
	{10, 11, 21, 21, 11, 10, 21, 21, 21, 21, 10, 11, 21, 21, 11, 10}};

/* DRAM 0-1, HBM 2-3 (near), PMEM 4-5 (far). */
static const struct plain_machine six = {6,
					 {{0, DRAM, 1, 0, 200},
					  {1, DRAM, 1, 0, 200},
					  {2, HBM, 1, 0, 100},
					  {3, HBM, 1, 0, 100},
					  {4, PMEM, 1, 0, 400},
					  {5, PMEM, 1, 0, 400}},
					 {10, 21, 15, 30, 60, 70, 21, 10, 30, 15, 70, 60,
					  15, 30, 10, 35, 62, 72, 30, 15, 35, 10, 72, 62,
					  60, 70, 62, 72, 10, 75, 70, 60, 72, 62, 75, 10}};

/* Node numbers with holes; node 7 has CPUs and no memory, node 500's memory is only movable. */
static const struct plain_machine sparse = {
	4,
	{{2, DRAM, 1, 0, 100}, {7, DRAM, 1, 0, 0}, {500, PMEM, 0, 0, 300}, {1023, DRAM, 1, 0, 100}},
	{10, 11, 17, 21, 11, 10, 20, 12, 17, 20, 10, 0, 21, 12, 0, 10}};

static struct memalloc *new_allocator(const struct plain_machine *p)
{
	struct memalloc_machine machine = {p->nodes, p->distance, p->n, 0};
	struct memalloc *m = NULL;
	char why[100] = "";
	assert_int_equal(memalloc_new_machine(&machine, &m, why, sizeof why), 0);
	assert_string_equal(why, "");
	return m;
}

static const char *text(const struct memalloc *m, memalloc_mask nodes)
{
	static char buf[8][64];
	static unsigned next;
	struct rp_idset ids;
	char *b = buf[next++ % 8];
	memalloc_ids(m, nodes, &ids);
	(void)rp_ids_format(rp_ids_of(&ids), b, sizeof buf[0]);
	return b;
}

static memalloc_mask mask(const struct memalloc *m, const char *list)
{
	struct rp_idset ids;
	assert_int_equal(rp_idset_parse(&ids, list, RP_NODES_MAX), 0);
	return memalloc_mask_of(m, rp_ids_of(&ids));
}

static const char *zone_of(const struct memalloc *m, uint64_t id)
{
	memalloc_mask zone = 0;
	return memalloc_zone(m, id, &zone) ? "none" : text(m, zone);
}

/* ---- tables ---------------------------------------------------------------------------------- */

struct step {
	const char *nodes;
	int64_t size;
	uint32_t types, strict, priority;
	const char *zone; /* zone of this request after its allocation; NULL: refused */
	const char *zones; /* zones of all requests so far: "0 1-2 …" */
};

static void check_zones(const struct memalloc *m, const char *expected, uint32_t n, size_t row)
{
	char buf[256] = "";
	for (uint32_t id = 1; id <= n; id++) {
		if (!strcmp(zone_of(m, id), "none"))
			continue;
		if (*buf)
			strcat(buf, " ");
		strcat(buf, zone_of(m, id));
	}
	if (strcmp(buf, expected))
		fail_msg("row %zu: zones are %s, expected %s", row, buf, expected);
}

/* Checks that every step's offer changes nothing and announces the zone of its commit. */
static void check_steps(const struct plain_machine *machine, const struct step *steps, uint32_t n)
{
	struct memalloc *m = new_allocator(machine);
	for (uint32_t i = 0; i < n; i++) {
		const struct step *s = &steps[i];
		struct memalloc_request req = {
			i + 1, s->size, mask(m, s->nodes), s->types, s->strict, s->priority, 0};
		struct memalloc_offer offer;
		memalloc_mask zone = 0;
		int r = memalloc_offer(m, &req, &offer);
		assert_int_equal(memalloc_zone(m, i + 1, &zone), -RP_ENOENT);
		if (!s->zone) {
			assert_int_equal(r, -RP_ENOSPC);
			assert_int_equal(memalloc_allocate(m, &req, &zone), -RP_ENOSPC);
			assert_true(*memalloc_why(m));
		} else {
			if (r)
				fail_msg("row %u: %s", i, memalloc_why(m));
			assert_int_equal(memalloc_commit(m, &offer, &zone), 0);
			assert_int_equal(zone, offer.zone);
			if (strcmp(text(m, zone), s->zone))
				fail_msg("row %u: %s, expected %s", i, text(m, zone), s->zone);
		}
		check_zones(m, s->zones, i + 1, i);
	}
	while (n)
		(void)memalloc_release(m, n--);
	assert_int_equal(memalloc_count(m), 0);
	assert_int_equal(memalloc_usage(m, memalloc_all(m)), 0);
	assert_int_equal(memalloc_available(m, memalloc_all(m)),
			 memalloc_capacity(m, memalloc_all(m)));
	assert_null(memalloc_free(m));
}
#define CHECK_STEPS(machine, ...)                                                                  \
	do {                                                                                       \
		static const struct step steps[] = {__VA_ARGS__};                                  \
		check_steps(&(machine), steps, sizeof steps / sizeof *steps);                      \
	} while (0)

static void test_overflow(void **state)
{
	CHECK_STEPS(eight, {"0,2", 6, DRAM, 0, BU, "0,2", "0,2"},
		    {"0", 3, DRAM, 0, BU, "0", "0-3 0"});
	/* A strict one cannot leave its kind of memory. */
	CHECK_STEPS(eight, {"0-3", 8, DRAM, 1, BU, "0-3", "0-3"},
		    {"0-3", 8, DRAM, 0, BU, "0-3", "0-3 0-3"},
		    {"0", 1, DRAM, 0, BU, "0", "0-3 0-7 0"});
	/* The smallest goes first, which may be the new one. */
	CHECK_STEPS(eight, {"0", 4, DRAM, 0, PRESERVED, "0", "0"},
		    {"0,2", 4, DRAM, 0, BU, "0,2", "0 0,2"},
		    {"0,2", 1, DRAM, 0, BU, "0-3", "0 0,2 0-3"});
	/* All of the same size: the youngest goes. */
	CHECK_STEPS(eight, {"0", 2, 0, 0, BU, "0", "0"}, {"0", 2, 0, 0, BU, "0", "0 0"},
		    {"0", 2, 0, 0, BU, "0,2", "0 0 0,2"});
	/* Lower priority before smaller size; several have to go. */
	CHECK_STEPS(four, {"0", 60, 0, 0, BU, "0", "0"}, {"0", 20, 0, 0, GU, "0", "0 0"},
		    {"0", 30, 0, 0, GU, "0", "0-1 0 0"}, {"0", 70, 0, 0, GU, "0", "0-1 0-1 0 0"},
		    {"0-1", 80, 0, 0, GU, "0-1", "0-3 0-1 0 0 0-1"});
	/* Requests of size 0 are moved first, which frees no memory. */
	CHECK_STEPS(four, {"0", 0, 0, 0, BE, "0", "0"}, {"0", 90, 0, 0, GU, "0", "0 0"},
		    {"0", 20, 0, 0, BU, "0-1", "0-1 0 0-1"});
	/* Reservations stay. */
	CHECK_STEPS(four, {"0", 90, 0, 0, RESERVATION, "0", "0"},
		    {"0", 20, 0, 0, GU, "0-1", "0 0-1"}, {"0-3", 290, 0, 0, BU, "0-3", "0 0-1 0-3"},
		    {"0-1", 1, 0, 0, BE, NULL, "0 0-1 0-3"});
}

static void test_full(void **state)
{
	CHECK_STEPS(four, {"0", 401, 0, 0, BU, NULL, ""}, {"0", 400, 0, 0, BU, "0-3", "0-3"},
		    {"3", 1, 0, 0, BU, NULL, "0-3"}, {"3", 0, 0, 0, BE, "3", "0-3 3"});
	CHECK_STEPS(eight, {"0", 17, DRAM, 1, BU, NULL, ""}, {"0", 16, DRAM, 1, BU, "0-3", "0-3"},
		    {"1", 1, DRAM, 1, BU, NULL, "0-3"},
		    /* the new one is not in the zone that is too full */
		    {"1", 1, DRAM, 0, BU, NULL, "0-3"});
}

static void test_kinds(void **state)
{
	CHECK_STEPS(six, {"0", 1, 0, 0, BU, "0", "0"}, {"0", 1, HBM, 0, BU, "2", "0 2"},
		    {"0", 1, DRAM, 0, BU, "0", "0 2 0"}, {"0", 1, PMEM, 0, BU, "4", "0 2 0 4"},
		    {"0", 1, HBM | DRAM, 0, BU, "0,2", "0 2 0 4 0,2"},
		    {"0", 1, 7, 0, BU, "0,2,4", "0 2 0 4 0,2 0,2,4"},
		    {"0", 1, HBM | PMEM, 1, BU, "2,4", "0 2 0 4 0,2 0,2,4 2,4"});
	/* The nodes of a pool, with the kinds that are wanted of it. */
	CHECK_STEPS(six, {"1,5", 51, DRAM | PMEM, 0, GU, "1,5", "1,5"},
		    {"0", 51, DRAM, 0, GU, "0", "1,5 0"}, {"3", 51, HBM, 0, GU, "3", "1,5 0 3"},
		    {"4", 51, PMEM, 0, GU, "4", "1,5 0 3 4"});
	/* HBM overflows into the other HBM, then all else. */
	CHECK_STEPS(six, {"2", 80, HBM, 0, BU, "2", "2"}, {"2", 70, HBM, 0, BU, "2-3", "2 2-3"},
		    {"2-3", 80, HBM, 0, BU, "2-3", "2 0-3 2-3"});
	/* A machine without a kind: a preference is dropped, a strict request is wrong. */
	CHECK_STEPS(four, {"1", 1, HBM, 0, BU, "1", "1"}, {"1", 1, HBM | DRAM, 0, BU, "1", "1 1"});
}

static void test_normal(void **state)
{
	/* Movable memory alone is not enough: the nearest of the same kind, else DRAM. */
	CHECK_STEPS(eight, {"4", 1, PMEM, 0, BU, "0,4", "0,4"},
		    {"5", 1, PMEM | DRAM, 0, BU, "2,5", "0,4 2,5"},
		    {"4", 1, PMEM, 1, BU, NULL, "0,4 2,5"});
	/* A node without memory leads to its neighbours and is no part of the result; unknown
	 * distances are the farthest. */
	CHECK_STEPS(sparse, {"7", 1, 0, 0, BU, "2", "2"},
		    {"7,500", 1, PMEM, 0, BU, "2,500", "2 2,500"},
		    {"2", 100, DRAM, 0, GU, "2", "2,1023 2,500 2"},
		    {"500", 1, DRAM, 0, GU, "2,1023", "2,1023 2,500 2 2,1023"});
	struct plain_machine movable = six;
	for (uint32_t i = 0; i < 6; i++)
		movable.nodes[i].normal = i == 3;
	static const struct step hbm[] = {{"0", 1, DRAM, 0, BU, "0,2-3", "0,2-3"},
					  {"1", 1, DRAM, 0, BU, "1,3", "0,2-3 1,3"}};
	check_steps(&movable, hbm, 2);
	movable.nodes[3].normal = 0;
	static const struct step none[] = {{"0", 1, DRAM, 0, BU, NULL, ""}};
	check_steps(&movable, none, 1);
	movable.nodes[4].normal = 1;
	static const struct step pmem[] = {{"0", 1, DRAM, 0, BU, "0,4", "0,4"}};
	check_steps(&movable, pmem, 1);
}

/* ---- single calls ---------------------------------------------------------------------------- */

static memalloc_mask allocate(struct memalloc *m, uint64_t id, const char *nodes, int64_t size,
			      uint32_t priority)
{
	struct memalloc_request req = {id, size, mask(m, nodes), 0, 0, priority, 0};
	memalloc_mask zone = 0;
	assert_int_equal(memalloc_allocate(m, &req, &zone), 0);
	return zone;
}

static void test_moves(void **state)
{
	struct memalloc *m = new_allocator(&four);
	const struct memalloc_move *moves;
	assert_int_equal(memalloc_moves(m, &moves), 0);
	allocate(m, 30, "0", 30, BU);
	allocate(m, 10, "0", 20, BU);
	allocate(m, 20, "0", 40, BU);
	assert_int_equal(memalloc_moves(m, &moves), 0);
	allocate(m, 40, "0", 60, GU);
	/* Oldest first. */
	assert_int_equal(memalloc_moves(m, &moves), 2);
	assert_int_equal(moves[0].id, 30);
	assert_int_equal(moves[1].id, 10);
	assert_string_equal(text(m, moves[0].zone), "0-1");
	assert_int_equal(memalloc_usage(m, mask(m, "0")), 100);
	assert_int_equal(memalloc_usage(m, mask(m, "0-1")), 150);
	assert_int_equal(memalloc_unused(m, mask(m, "0-1")), 50);
	assert_int_equal(memalloc_available(m, mask(m, "1")), 50);
	assert_int_equal(memalloc_available(m, mask(m, "0")), 0);
	assert_int_equal(memalloc_available(m, mask(m, "2")), 100);
	assert_int_equal(memalloc_unused(m, mask(m, "1")), 100);
	assert_int_equal(memalloc_release(m, 10), 0);
	assert_int_equal(memalloc_moves(m, &moves), 0);
	memalloc_free(m);
}

static void test_offers(void **state)
{
	struct memalloc *m = new_allocator(&four);
	struct memalloc_request a = {1, 80, mask(m, "0"), 0, 0, BU, 0}, b = a;
	struct memalloc_offer first, second;
	const struct memalloc_move *moves;
	memalloc_mask zone = 77;
	b.id = 2;
	assert_int_equal(memalloc_offer(m, &a, &first), 0);
	assert_int_equal(memalloc_offer(m, &b, &second), 0);
	assert_int_equal(second.zone, mask(m, "0"));
	assert_int_equal(memalloc_commit(m, &first, &zone), 0);
	assert_int_equal(zone, mask(m, "0"));
	zone = 77;
	assert_int_equal(memalloc_commit(m, &second, &zone), -RP_ESTALE);
	assert_int_equal(memalloc_commit(m, &first, &zone), -RP_ESTALE);
	assert_true(*memalloc_why(m));
	assert_int_equal(zone, 77);
	/* An offer that moves other requests does not move them before the commit. */
	assert_int_equal(memalloc_offer(m, &b, &second), 0);
	assert_int_equal(second.zone, mask(m, "0-1"));
	assert_int_equal(memalloc_moves(m, &moves), 0);
	a.id = 3;
	a.priority = GU;
	assert_int_equal(memalloc_offer(m, &a, &first), 0);
	assert_int_equal(first.zone, mask(m, "0"));
	assert_string_equal(zone_of(m, 1), "0");
	assert_int_equal(memalloc_usage(m, mask(m, "0")), 80);
	assert_int_equal(memalloc_commit(m, &first, &zone), 0);
	assert_int_equal(memalloc_moves(m, &moves), 1);
	assert_string_equal(zone_of(m, 1), "0-1");
	assert_string_equal(zone_of(m, 3), "0");
	/* Everything that changes something ends offers. */
	assert_int_equal(memalloc_offer(m, &b, &second), 0);
	assert_int_equal(memalloc_release(m, 3), 0);
	assert_int_equal(memalloc_commit(m, &second, &zone), -RP_ESTALE);
	assert_int_equal(memalloc_offer(m, &b, &second), 0);
	memalloc_reset(m);
	assert_int_equal(memalloc_commit(m, &second, &zone), -RP_ESTALE);
	assert_int_equal(memalloc_count(m), 0);
	/* A call that changes nothing keeps the offer valid. */
	assert_int_equal(memalloc_offer(m, &b, &second), 0);
	assert_int_equal(memalloc_release(m, 99), -RP_ENOENT);
	assert_int_equal(memalloc_commit(m, &second, &zone), 0);
	memalloc_free(m);
}

static void test_errors(void **state)
{
	struct memalloc *m = new_allocator(&four);
	const struct memalloc_request good = {1, 10, mask(m, "0"), 0, 0, BU, 0};
	struct memalloc_request bad = good;
	struct memalloc_offer offer;
	memalloc_mask zone = 77;
	assert_int_equal(memalloc_allocate(m, &good, &zone), 0);
	zone = 77;
	assert_int_equal(memalloc_allocate(m, &good, &zone), -RP_EBUSY);
	assert_int_equal(memalloc_offer(m, &good, &offer), -RP_EBUSY);
	bad.id = 2;
	bad.size = -1;
	assert_int_equal(memalloc_allocate(m, &bad, &zone), -RP_EINVAL);
	bad.size = INT64_MAX;
	assert_int_equal(memalloc_allocate(m, &bad, &zone), -RP_ENOSPC);
	bad.size = 1;
	bad.nodes = 0;
	assert_int_equal(memalloc_allocate(m, &bad, &zone), -RP_EINVAL);
	bad.nodes = 0x11;
	assert_int_equal(memalloc_offer(m, &bad, &offer), -RP_EINVAL);
	bad.nodes = 1;
	bad.types = HBM;
	bad.strict = 1;
	assert_int_equal(memalloc_allocate(m, &bad, &zone), -RP_EINVAL);
	assert_string_equal(memalloc_why(m), "the node has no memory of a requested kind");
	assert_int_equal(memalloc_replace(m, &bad, &zone), -RP_ENOENT);
	bad.id = 1;
	assert_int_equal(memalloc_replace(m, &bad, &zone), -RP_EINVAL);
	assert_int_equal(memalloc_extend(m, 2, 1, 0, &zone), -RP_ENOENT);
	assert_int_equal(memalloc_extend(m, 1, 0x10, 0, &zone), -RP_EINVAL);
	assert_int_equal(memalloc_extend(m, 1, 0, HBM, &zone), -RP_ENOSPC);
	assert_int_equal(memalloc_release(m, 2), -RP_ENOENT);
	assert_int_equal(memalloc_zone(m, 2, &zone), -RP_ENOENT);
	assert_int_equal(zone, 77);
	assert_int_equal(memalloc_count(m), 1);
	bad = (struct memalloc_request){2, 401 - 10, mask(m, "1"), 0, 0, BU, 0};
	assert_int_equal(memalloc_allocate(m, &bad, &zone), -RP_ENOSPC);
	assert_string_equal(memalloc_why(m), "not enough memory: 1 bytes too few on nodes 0-3");
	memalloc_free(m);
	/* HBM is too far away for a strict request. */
	m = new_allocator(&six);
	bad = (struct memalloc_request){1, 1, mask(m, "0"), HBM | PMEM, 1, BU, 0};
	assert_int_equal(memalloc_allocate(m, &bad, &zone), 0);
	assert_null(memalloc_free(m));
	assert_null(memalloc_free(NULL));
}

static void test_extend(void **state)
{
	struct memalloc *m = new_allocator(&four);
	memalloc_mask zone = 0;
	const struct memalloc_move *moves;
	allocate(m, 1, "2", 10, BU);
	/* An extension by nodes that the zone already has changes nothing. */
	assert_int_equal(memalloc_extend(m, 1, 0, 0, &zone), 0);
	assert_int_equal(zone, mask(m, "2"));
	assert_int_equal(memalloc_extend(m, 1, mask(m, "2"), DRAM, &zone), 0);
	assert_int_equal(memalloc_extend(m, 1, mask(m, "2"), 0, &zone), 0);
	assert_int_equal(zone, mask(m, "2"));
	/* A new node, and the nearest ones around it. */
	assert_int_equal(memalloc_extend(m, 1, mask(m, "2-3"), 0, &zone), 0);
	assert_int_equal(zone, mask(m, "0-3"));
	assert_int_equal(memalloc_extend(m, 1, mask(m, "0-3"), DRAM, &zone), 0);
	memalloc_free(m);
	/* DRAM added to PMEM, as at the end of a cold start. Others make room. */
	m = new_allocator(&eight);
	struct memalloc_request cold = {1, 3, mask(m, "4"), PMEM, 0, GU, 0};
	assert_int_equal(memalloc_allocate(m, &cold, &zone), 0);
	assert_int_equal(zone, mask(m, "0,4"));
	cold = (struct memalloc_request){2, 4, mask(m, "0"), 0, 0, BU, 0};
	assert_int_equal(memalloc_allocate(m, &cold, &zone), 0);
	/* the zone has both types */
	assert_int_equal(memalloc_extend(m, 1, 0, DRAM | PMEM, &zone), 0);
	assert_int_equal(zone, mask(m, "0,4"));
	assert_int_equal(memalloc_extend(m, 1, mask(m, "2"), 0, &zone), 0);
	assert_int_equal(zone, mask(m, "0-4"));
	/* Kinds filter the nodes. */
	assert_int_equal(memalloc_extend(m, 1, mask(m, "1,5"), PMEM, &zone), 0);
	assert_int_equal(zone, mask(m, "0-7"));
	memalloc_free(m);
	m = new_allocator(&four);
	allocate(m, 1, "0", 90, BU);
	allocate(m, 2, "0-1", 100, BU);
	allocate(m, 3, "2", 100, RESERVATION);
	allocate(m, 4, "3", 100, RESERVATION);
	/* The requests fit exactly into the zone of all nodes, so none of them moves. */
	assert_int_equal(memalloc_extend(m, 1, mask(m, "1"), 0, &zone), 0);
	assert_int_equal(memalloc_moves(m, &moves), 0);
	assert_int_equal(zone, mask(m, "0-3"));
	memalloc_free(m);
}

static void test_replace(void **state)
{
	struct memalloc *m = new_allocator(&four);
	memalloc_mask zone = 0;
	allocate(m, 1, "0", 50, BU);
	allocate(m, 2, "0", 50, BU);
	struct memalloc_request req = {1, 40, mask(m, "1"), 0, 0, BU, 0};
	assert_int_equal(memalloc_replace(m, &req, &zone), 0);
	assert_int_equal(zone, mask(m, "1"));
	assert_int_equal(memalloc_usage(m, mask(m, "0")), 50);
	/* Back, with the same size as the other: it is still the older one. */
	req = (struct memalloc_request){1, 50, mask(m, "0"), 0, 0, BU, 0};
	assert_int_equal(memalloc_replace(m, &req, &zone), 0);
	allocate(m, 3, "0", 10, GU);
	assert_string_equal(zone_of(m, 1), "0");
	assert_string_equal(zone_of(m, 2), "0-1");
	/* A replacement that does not fit changes nothing. */
	req.size = 341;
	assert_int_equal(memalloc_replace(m, &req, &zone), -RP_ENOSPC);
	assert_string_equal(zone_of(m, 1), "0");
	assert_int_equal(memalloc_usage(m, memalloc_all(m)), 110);
	assert_int_equal(memalloc_count(m), 3);
	memalloc_free(m);
}

static void test_follow(void **state)
{
	struct memalloc *m = new_allocator(&four);
	const struct memalloc_move *moves;
	memalloc_mask zone = 0;
	allocate(m, 1, "0", 60, BE);
	allocate(m, 2, "1", 60, BE);
	/* There is no room on node 1: it gets that besides what it has, and the other one does not
	 * move. */
	struct memalloc_request req = {1, 60, mask(m, "1"), 0, 0, BE, 0};
	assert_int_equal(memalloc_follow(m, &req, &zone), 0);
	assert_string_equal(text(m, zone), "0-1");
	assert_int_equal(memalloc_moves(m, &moves), 0);
	assert_string_equal(zone_of(m, 2), "1");
	/* Shrinking is the same: it stays as long as there is no room. */
	assert_int_equal(memalloc_follow(m, &req, &zone), 0);
	assert_string_equal(text(m, zone), "0-1");
	assert_int_equal(memalloc_release(m, 2), 0);
	assert_int_equal(memalloc_follow(m, &req, &zone), 0);
	assert_string_equal(text(m, zone), "1");
	assert_int_equal(memalloc_usage(m, mask(m, "1")), 60);
	assert_int_equal(memalloc_usage(m, mask(m, "0")), 0);
	/* Others move when that is the only way: nodes 0 and 1 together are full. */
	allocate(m, 3, "0-1", 100, BE);
	allocate(m, 4, "2", 60, GU);
	req = (struct memalloc_request){4, 60, mask(m, "1"), 0, 0, GU, 0};
	assert_int_equal(memalloc_follow(m, &req, &zone), 0);
	assert_string_equal(text(m, zone), "1-2");
	assert_int_equal(memalloc_moves(m, &moves), 0);
	req.nodes = mask(m, "0-3");
	assert_int_equal(memalloc_follow(m, &req, &zone), 0);
	assert_string_equal(text(m, zone), "0-3");
	/* A transaction can undo the change. */
	assert_int_equal(memalloc_begin(m), 0);
	req.nodes = mask(m, "2");
	assert_int_equal(memalloc_follow(m, &req, &zone), 0);
	assert_string_equal(zone_of(m, 4), "2");
	memalloc_drop(m);
	assert_string_equal(zone_of(m, 4), "0-3");
	/* An invalid request changes nothing. */
	req.size++;
	assert_int_equal(memalloc_follow(m, &req, &zone), -RP_EINVAL);
	req.size--;
	req.nodes = 0;
	assert_int_equal(memalloc_follow(m, &req, &zone), -RP_EINVAL);
	req.id = 9;
	assert_int_equal(memalloc_follow(m, &req, &zone), -RP_ENOENT);
	assert_string_equal(zone_of(m, 4), "0-3");
	memalloc_free(m);
}

static void test_undo(void **state)
{
	struct memalloc *m = new_allocator(&four);
	memalloc_mask zone = 0;
	allocate(m, 1, "0", 50, BU);
	allocate(m, 2, "0", 50, BU);
	assert_int_equal(memalloc_begin(m), 0);
	assert_int_equal(memalloc_begin(m), -RP_EBUSY);
	/* A request that is released and allocated again is the youngest one; after a rollback,
	 * its old age is restored. */
	assert_int_equal(memalloc_release(m, 1), 0);
	assert_string_equal(zone_of(m, 1), "none");
	allocate(m, 1, "2", 50, BU);
	allocate(m, 3, "0-1", 150, GU);
	allocate(m, 4, "0", 60, GU);
	assert_string_equal(zone_of(m, 2), "0-3");
	assert_int_equal(memalloc_extend(m, 1, mask(m, "3"), 0, &zone), 0);
	assert_int_equal(memalloc_release(m, 4), 0);
	memalloc_drop(m);
	assert_int_equal(memalloc_count(m), 2);
	assert_string_equal(zone_of(m, 1), "0");
	assert_string_equal(zone_of(m, 2), "0");
	assert_int_equal(memalloc_usage(m, memalloc_all(m)), 100);
	allocate(m, 5, "0", 10, GU);
	assert_string_equal(zone_of(m, 1), "0");
	assert_string_equal(zone_of(m, 2), "0-1");
	/* Kept, it stays; an empty one may be dropped or kept. */
	assert_int_equal(memalloc_begin(m), 0);
	assert_int_equal(memalloc_release(m, 5), 0);
	memalloc_keep(m);
	memalloc_drop(m);
	memalloc_keep(m);
	assert_int_equal(memalloc_count(m), 2);
	/* Offers do not survive an undo that changed something. */
	struct memalloc_request req = {6, 1, mask(m, "0"), 0, 0, BU, 0};
	struct memalloc_offer offer;
	assert_int_equal(memalloc_begin(m), 0);
	assert_int_equal(memalloc_release(m, 2), 0);
	assert_int_equal(memalloc_offer(m, &req, &offer), 0);
	memalloc_drop(m);
	assert_int_equal(memalloc_commit(m, &offer, &zone), -RP_ESTALE);
	/* Freed in the middle of it. */
	assert_int_equal(memalloc_begin(m), 0);
	assert_int_equal(memalloc_release(m, 2), 0);
	allocate(m, 7, "3", 1, BU);
	memalloc_free(m);
}

/* Zones of equally many users: the smaller within the larger first. */
static void test_order_of_zones(void **state)
{
	struct memalloc *m = new_allocator(&four);
	allocate(m, 1, "0", 90, BU);
	allocate(m, 2, "0-1", 100, BU);
	/* {0} is over by 10 and {0,1} by 10: first request 3, the smallest of {0}, goes to {0,1};
	 * then that has to give. */
	allocate(m, 3, "0", 20, BU);
	assert_string_equal(zone_of(m, 1), "0");
	assert_string_equal(zone_of(m, 2), "0-1");
	assert_string_equal(zone_of(m, 3), "0-3");
	memalloc_free(m);
}

/* Checks that many requests can be found and that all sums are right in the end. */
static void test_many(void **state)
{
	struct plain_machine large = four;
	const struct memalloc_move *moves;
	for (uint32_t i = 0; i < 4; i++)
		large.nodes[i].bytes = 1000;
	struct memalloc *m = new_allocator(&large);
	static const char *const nodes[] = {"0", "1", "2", "3"};
	for (uint64_t id = 0; id < 2000; id++)
		allocate(m, id << 32 | 1, nodes[id % 4], 1, BU);
	assert_int_equal(memalloc_count(m), 2000);
	for (uint64_t id = 0; id < 2000; id++)
		assert_string_equal(zone_of(m, id << 32 | 1), nodes[id % 4]);
	/* Half of node 0 is free; the 250 youngest ones have to go to make room for this. */
	allocate(m, 2, "0", 750, GU);
	assert_int_equal(memalloc_moves(m, &moves), 250);
	assert_int_equal(moves[0].id, UINT64_C(1000) << 32 | 1);
	assert_int_equal(memalloc_usage(m, memalloc_all(m)), 2750);
	for (uint64_t id = 0; id < 2000; id += 3)
		assert_int_equal(memalloc_release(m, id << 32 | 1), 0);
	for (uint64_t id = 0; id < 2000; id++)
		assert_int_equal(memalloc_release(m, id << 32 | 1), id % 3 ? 0 : -RP_ENOENT);
	assert_int_equal(memalloc_release(m, 2), 0);
	assert_int_equal(memalloc_usage(m, memalloc_all(m)), 0);
	memalloc_free(m);
}

/* ---- the machine ----------------------------------------------------------------------------- */

static void test_masks(void **state)
{
	struct memalloc *m = new_allocator(&sparse);
	assert_string_equal(text(m, memalloc_all(m)), "2,7,500,1023");
	assert_string_equal(text(m, memalloc_with_memory(m)), "2,500,1023");
	assert_string_equal(text(m, memalloc_of_types(m, DRAM)), "2,1023");
	assert_string_equal(text(m, memalloc_of_types(m, DRAM | PMEM)), "2,500,1023");
	assert_string_equal(text(m, memalloc_of_types(m, HBM)), "");
	assert_int_equal(memalloc_all_types(m), DRAM | PMEM);
	assert_int_equal(memalloc_types(m, mask(m, "7")), DRAM);
	assert_int_equal(memalloc_types(m, mask(m, "7,500")), DRAM | PMEM);
	assert_int_equal(memalloc_types(m, 0), 0);
	assert_int_equal(mask(m, "0-1,3,7-8,1022"), mask(m, "7"));
	assert_int_equal(memalloc_capacity(m, mask(m, "2,7,500")), 400);
	assert_int_equal(memalloc_capacity(m, UINT64_MAX), 500);
	assert_int_equal(memalloc_nearest(m, mask(m, "2"), mask(m, "500,1023")), mask(m, "500"));
	assert_int_equal(memalloc_nearest(m, mask(m, "500"), mask(m, "1023")), mask(m, "1023"));
	assert_int_equal(memalloc_nearest(m, mask(m, "2"), mask(m, "2")), 0);
	memalloc_free(m);
}

static void test_bad_machines(void **state)
{
	static struct memalloc_node nodes[MEMALLOC_NODES_MAX + 1];
	static uint32_t distance[MEMALLOC_NODES_MAX * MEMALLOC_NODES_MAX];
	struct memalloc_machine machine = {nodes, distance, 0, 0};
	struct memalloc *m = NULL;
	char why[60] = "";
	for (uint32_t i = 0; i <= MEMALLOC_NODES_MAX; i++)
		nodes[i] = (struct memalloc_node){i, DRAM, 1, 0, 10};
	assert_int_equal(memalloc_new_machine(&machine, &m, why, sizeof why), -RP_EINVAL);
	assert_string_equal(why, "the machine has no memory node with memory");
	machine.n_nodes = MEMALLOC_NODES_MAX + 1;
	assert_int_equal(memalloc_new_machine(&machine, &m, why, sizeof why), -RP_E2BIG);
	assert_string_equal(why, "65 memory nodes: at most 64 are supported");
	machine.n_nodes = 2;
	nodes[1].id = 0;
	assert_int_equal(memalloc_new_machine(&machine, &m, why, sizeof why), -RP_EINVAL);
	nodes[1].id = RP_NODES_MAX;
	assert_int_equal(memalloc_new_machine(&machine, &m, NULL, 0), -RP_EINVAL);
	nodes[1].id = 1;
	nodes[1].type = 3;
	assert_int_equal(memalloc_new_machine(&machine, &m, why, 0), -RP_EINVAL);
	nodes[1].type = HBM;
	nodes[1].bytes = MEMALLOC_NODE_BYTES_MAX + 1;
	assert_int_equal(memalloc_new_machine(&machine, &m, why, sizeof why), -RP_EINVAL);
	assert_null(m);
	nodes[1].bytes = MEMALLOC_NODE_BYTES_MAX;
	machine.n_nodes = MEMALLOC_NODES_MAX;
	/* The largest machine: all of it can be one zone. */
	assert_int_equal(memalloc_new_machine(&machine, &m, why, sizeof why), 0);
	assert_int_equal(memalloc_all(m), UINT64_MAX);
	struct memalloc_request req = {1, 640 - 10, UINT64_C(1) << 63, DRAM, 0, BU, 0};
	memalloc_mask zone = 0;
	assert_int_equal(memalloc_allocate(m, &req, &zone), 0);
	assert_int_equal(zone, UINT64_MAX & ~UINT64_C(2));
	memalloc_free(m);
}

struct fake {
	uint32_t n_nodes, missing;
	bool no_set, nothing;
	struct rp_idset online, cpus;
};

static int32_t fake_set(void *ctx, uint32_t which, struct rp_ids *ret)
{
	struct fake *f = ctx;
	if (f->no_set || which != RP_NODES_ONLINE)
		return -RP_ENOENT;
	*ret = rp_ids_of(&f->online);
	return 0;
}

/* Nodes 0 and 10 are DRAM with CPUs, 20 has no memory, 30 nothing at all, then one of each other
 * type. */
static int32_t fake_node(void *ctx, uint32_t node, struct rp_node_info *out)
{
	struct fake *f = ctx;
	static const uint32_t types[] = {RP_MEM_DRAM, RP_MEM_DRAM, RP_MEM_NONE, RP_MEM_NONE,
					 RP_MEM_PMEM, RP_MEM_HBM,  RP_MEM_CXL};
	if (node == f->missing)
		return -RP_ENOENT;
	uint32_t i = node / 10 < 7 ? node / 10 : 0;
	*out = (struct rp_node_info){
		.size = sizeof *out, .id = node, .type = types[i], .normal = i != 4};
	out->memory = f->nothing || types[i] == RP_MEM_NONE ? 0 : 100;
	if (i < 3)
		out->cpus = rp_ids_of(&f->cpus);
	return 0;
}

static uint32_t fake_distance(void *ctx, uint32_t from, uint32_t to)
{
	if (from == 0 && to == 40)
		return 17;
	if (from == 40 && to == 0)
		return 20; /* 18 both ways */
	if (from == 0 && to == 60)
		return 19;
	if (from == 60 && to == 0)
		return 0; /* not known: 19 */
	return from == to ? 10 : 30;
}

static const struct rp_host_topology fake_topology = {.size = sizeof fake_topology,
						      .set = fake_set,
						      .node = fake_node,
						      .distance = fake_distance};

static void test_topology(void **state)
{
	struct fake f = {.missing = 9999};
	struct memalloc *m = NULL;
	char why[100] = "";
	rp_idset_clear(&f.online);
	rp_idset_clear(&f.cpus);
	rp_idset_add(&f.cpus, 1);
	for (uint32_t i = 0; i < 7; i++)
		rp_idset_add(&f.online, i * 10);
	assert_int_equal(memalloc_new(&fake_topology, &f, &m, why, sizeof why), 0);
	assert_string_equal(text(m, memalloc_all(m)), "0,10,20,40,50,60");
	assert_string_equal(text(m, memalloc_with_memory(m)), "0,10,40,50,60");
	assert_string_equal(text(m, memalloc_of_types(m, PMEM)), "40,60");
	assert_string_equal(text(m, memalloc_of_types(m, HBM)), "50");
	struct memalloc_request req = {1, 10, mask(m, "0"), PMEM | DRAM, 0, BU, 0};
	memalloc_mask zone = 0;
	assert_int_equal(memalloc_allocate(m, &req, &zone), 0);
	assert_string_equal(text(m, zone), "0,40");
	memalloc_free(m);
	assert_int_equal(memalloc_new_by_size(&fake_topology, &f, &m, why, sizeof why), 0);
	assert_string_equal(text(m, memalloc_of_types(m, PMEM)), "40,50,60");
	memalloc_free(m);
	m = NULL;
	f.missing = 50;
	assert_int_equal(memalloc_new(&fake_topology, &f, &m, why, sizeof why), -RP_ENOENT);
	assert_string_equal(why, "memory node 50: not reported by the host");
	f.missing = 9999;
	for (uint32_t i = 100; i < 160; i++)
		rp_idset_add(&f.online, i);
	assert_int_equal(memalloc_new(&fake_topology, &f, &m, why, sizeof why), -RP_E2BIG);
	assert_string_equal(why, "more than 64 memory nodes are not supported");
	f.no_set = true;
	assert_int_equal(memalloc_new(&fake_topology, &f, &m, why, sizeof why), -RP_ENOENT);
	f.no_set = false;
	f.nothing = true;
	rp_idset_clear(&f.online);
	rp_idset_add(&f.online, 0);
	assert_int_equal(memalloc_new(&fake_topology, &f, &m, why, sizeof why), -RP_EINVAL);
	assert_null(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_overflow),     cmocka_unit_test(test_full),
		cmocka_unit_test(test_kinds),	     cmocka_unit_test(test_normal),
		cmocka_unit_test(test_moves),	     cmocka_unit_test(test_offers),
		cmocka_unit_test(test_errors),	     cmocka_unit_test(test_extend),
		cmocka_unit_test(test_replace),	     cmocka_unit_test(test_undo),
		cmocka_unit_test(test_follow),	     cmocka_unit_test(test_order_of_zones),
		cmocka_unit_test(test_many),	     cmocka_unit_test(test_masks),
		cmocka_unit_test(test_bad_machines), cmocka_unit_test(test_topology),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
