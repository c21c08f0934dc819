/* SPDX-License-Identifier: Apache-2.0 */
/* include/nri-rp/set.h beside a model that is an array of flags. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <nri-rp/set.h>

#define N_SETS 4
#define N_STEPS 100000

struct model {
	bool has[RP_CPUS_MAX];
};

static struct rp_idset sets[N_SETS];
static struct model models[N_SETS];
static uint64_t seed;

static uint32_t rnd(uint32_t n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)((seed >> 16) % n);
}

/* Returns a random id: small ids are as likely as large ones, and word borders more likely than
 * others. */
static uint32_t rnd_id(void)
{
	static const uint32_t scales[] = {8, 70, 130, 1024, RP_CPUS_MAX};
	uint32_t id = rnd(scales[rnd(5)]);
	if (rnd(4) == 0)
		id = (id | 63) + rnd(2);
	return id < RP_CPUS_MAX ? id : RP_CPUS_MAX - 1;
}

static void check_same(const struct rp_idset *s, const struct model *m)
{
	struct rp_ids v = rp_ids_of(s);
	uint32_t count = 0, first = RP_IDSET_NONE, last = RP_IDSET_NONE;
	for (uint32_t id = 0; id < RP_CPUS_MAX; id++) {
		if (rp_ids_has(v, id) != m->has[id])
			fail_msg("id %u: %d", id, rp_ids_has(v, id));
		if (!m->has[id])
			continue;
		count++;
		last = id;
		if (first == RP_IDSET_NONE)
			first = id;
	}
	assert_int_equal(rp_ids_count(v), count);
	assert_int_equal(rp_ids_first(v), first);
	assert_int_equal(rp_ids_last(v), last);
	assert_int_equal(rp_ids_empty(v), count == 0);
	assert_true(s->nw == 0 || s->w[s->nw - 1] != 0);
	uint32_t n_visited = 0, before = 0;
	RP_IDS_EACH (id, v) {
		assert_true(m->has[id]);
		assert_true(n_visited == 0 || id > before);
		before = id;
		n_visited++;
	}
	assert_int_equal(n_visited, count);
}

static void check_questions(uint32_t a, uint32_t b)
{
	struct rp_ids x = rp_ids_of(&sets[a]), y = rp_ids_of(&sets[b]);
	bool equal = true, subset = true, overlap = false;
	uint32_t both = 0;
	for (uint32_t id = 0; id < RP_CPUS_MAX; id++) {
		bool p = models[a].has[id], q = models[b].has[id];
		equal &= p == q;
		subset &= !p || q;
		overlap |= p && q;
		both += p && q;
	}
	assert_int_equal(rp_ids_equal(x, y), equal);
	assert_int_equal(rp_ids_subset(x, y), subset);
	assert_int_equal(rp_ids_overlap(x, y), overlap);
	assert_int_equal(rp_ids_count_and(x, y), both);
}

static void check_text(uint32_t a)
{
	static char text[RP_IDSET_TEXT_MAX];
	struct rp_idset back;
	uint32_t len = rp_ids_format(rp_ids_of(&sets[a]), text, sizeof text);
	assert_true(len < sizeof text);
	assert_int_equal(strlen(text), len);
	assert_int_equal(rp_idset_parse(&back, text, RP_CPUS_MAX), 0);
	assert_true(rp_ids_equal(rp_ids_of(&back), rp_ids_of(&sets[a])));
}

static void do_binary(uint32_t op, uint32_t dst, uint32_t a, uint32_t b)
{
	struct rp_ids x = rp_ids_of(&sets[a]), y = rp_ids_of(&sets[b]);
	struct model m;
	for (uint32_t id = 0; id < RP_CPUS_MAX; id++) {
		bool p = models[a].has[id], q = models[b].has[id];
		m.has[id] = op == 0 ? p || q : op == 1 ? p && q : p && !q;
	}
	if (op == 0)
		rp_idset_or(&sets[dst], x, y);
	else if (op == 1)
		rp_idset_and(&sets[dst], x, y);
	else
		rp_idset_andnot(&sets[dst], x, y);
	models[dst] = m;
}

static void do_range(uint32_t dst)
{
	uint32_t first = rnd_id(), last = first + rnd(200);
	rp_idset_add_range(&sets[dst], first, last);
	for (uint32_t id = first; id <= last && id < RP_CPUS_MAX; id++)
		models[dst].has[id] = true;
}

static void step(void)
{
	uint32_t op = rnd(100), dst = rnd(N_SETS), a = rnd(N_SETS), b = rnd(N_SETS), id = rnd_id();
	if (op < 40) {
		rp_idset_add(&sets[dst], id);
		models[dst].has[id] = true;
	} else if (op < 80) {
		uint32_t member = rp_ids_next(rp_ids_of(&sets[dst]), id);
		if (member != RP_IDSET_NONE)
			id = member;
		rp_idset_del(&sets[dst], id);
		models[dst].has[id] = false;
	} else if (op < 90) {
		do_range(dst);
	} else if (op < 98) {
		do_binary(rnd(3), dst, a, b);
	} else if (op < 99) {
		rp_idset_copy(&sets[dst], rp_ids_of(&sets[a]));
		models[dst] = models[a];
	} else {
		rp_idset_clear(&sets[dst]);
		models[dst] = (struct model){{false}};
	}
	uint32_t cheap = rnd_id();
	assert_int_equal(rp_ids_has(rp_ids_of(&sets[dst]), cheap), models[dst].has[cheap]);
	if (op >= 98 || rnd(100) == 0) {
		check_same(&sets[dst], &models[dst]);
		check_questions(dst, a);
		check_questions(a, b);
		check_text(dst);
	}
}

static void test_model(void **state)
{
	seed = 20240229;
	for (int i = 0; i < N_SETS; i++)
		rp_idset_clear(&sets[i]);
	for (int i = 0; i < N_STEPS; i++)
		step();
}

static void check_parsed(const char *from, const char *text)
{
	char buf[256];
	struct rp_idset s;
	assert_int_equal(rp_idset_parse(&s, from, RP_CPUS_MAX), 0);
	assert_int_equal(rp_ids_format(rp_ids_of(&s), buf, sizeof buf), strlen(text));
	assert_string_equal(buf, text);
}

static void test_parse_accepts(void **state)
{
	check_parsed("", "");
	check_parsed("\n", "");
	check_parsed("  \t", "");
	check_parsed(" \n", "");
	check_parsed("0", "0");
	check_parsed("0-0", "0");
	check_parsed("8191", "8191");
	check_parsed("0-3,8\n", "0-3,8");
	check_parsed(" 7 , 3-4 , 0 \n", "0,3-4,7");
	check_parsed("1-2,2-3,3", "1-3");
	check_parsed("00-003", "0-3");
	check_parsed("63-64", "63-64");
	check_parsed("0-8191", "0-8191");
}

static void test_parse_refuses(void **state)
{
	static const char *const bad[] = {"x",	  ",",	   "1,",
					  "1,,2", "-1",	   "1-",
					  "3-1",  "8192",  "0-8192",
					  "1 2",  "1--2",  "0x1",
					  "1;2",  "1\n\n", "1\n2",
					  "\n1",  "\n\n",  "1- 2",
					  "1 -2", "+1",	   "1.0",
					  "all",  "1-2-3", "1,\n",
					  "1/2",  "1-2/1", "99999999999999999999"};
	struct rp_idset s;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		if (rp_idset_parse(&s, bad[i], RP_CPUS_MAX) != -1)
			fail_msg("\"%s\" was taken", bad[i]);
	assert_int_equal(rp_idset_parse(&s, "1023", RP_NODES_MAX), 0);
	assert_int_equal(rp_idset_parse(&s, "1024", RP_NODES_MAX), -1);
	assert_int_equal(rp_idset_parse(&s, "8192", UINT32_MAX), -1);
	assert_int_equal(rp_idset_parse(&s, "0", 0), -1);
}

static void test_format_cuts(void **state)
{
	struct rp_idset s;
	char buf[16];
	assert_int_equal(rp_idset_parse(&s, "1-2,100,5000-6000,7000", RP_CPUS_MAX), 0);
	for (uint32_t size = 0; size <= sizeof buf; size++) {
		memset(buf, '#', sizeof buf);
		assert_int_equal(rp_ids_format(rp_ids_of(&s), buf, size), 22);
		for (uint32_t i = size; i < sizeof buf; i++)
			assert_int_equal(buf[i], '#');
		if (size)
			assert_true(strlen(buf) < size);
	}
	assert_string_equal(buf, "1-2,100"); /* whole items only */
}

static void test_longest_text(void **state)
{
	static char text[RP_IDSET_TEXT_MAX];
	struct rp_idset s;
	for (uint32_t pattern = 1; pattern < 64; pattern++) {
		rp_idset_clear(&s);
		for (uint32_t id = 0; id < RP_CPUS_MAX; id++)
			if (pattern >> (id % 6) & 1)
				rp_idset_add(&s, id);
		assert_true(rp_ids_format(rp_ids_of(&s), text, sizeof text) < sizeof text);
	}
}

static void test_borders(void **state)
{
	struct rp_idset s;
	/* The compiler must not know them: it would warn of what the checks rule out. */
	volatile uint32_t beyond = RP_CPUS_MAX, huge = UINT32_MAX;
	rp_idset_clear(&s);
	rp_idset_add(&s, beyond);
	rp_idset_add(&s, huge);
	assert_int_equal(s.nw, 0);
	rp_idset_del(&s, beyond);
	rp_idset_add_range(&s, beyond - 2, huge);
	assert_int_equal(rp_ids_count(rp_ids_of(&s)), 2);
	assert_int_equal(rp_ids_next(rp_ids_of(&s), beyond - 1), RP_IDSET_NONE);
	rp_idset_add_range(&s, 5, 4);
	assert_int_equal(rp_ids_count(rp_ids_of(&s)), 2);
	assert_false(rp_ids_has(rp_ids_of(&s), huge));
	struct rp_ids none = rp_ids_none();
	assert_true(rp_ids_empty(none));
	assert_true(rp_ids_subset(none, rp_ids_of(&s)));
	assert_true(rp_ids_equal(none, none));
	assert_false(rp_ids_overlap(none, rp_ids_of(&s)));
	assert_int_equal(rp_ids_first(none), RP_IDSET_NONE);
	assert_int_equal(rp_ids_last(none), RP_IDSET_NONE);
}

/* Views may have zero words at their end, and more words than a set can hold. */
static void test_foreign_views(void **state)
{
	static uint64_t many[RP_IDSET_WORDS + 2];
	uint64_t words[3] = {5, 0, 0}, one[1] = {5};
	struct rp_ids padded = {words, 3, 0}, tight = {one, 1, 0};
	struct rp_ids large = {many, RP_IDSET_WORDS + 2, 0};
	struct rp_idset s;
	assert_true(rp_ids_equal(padded, tight));
	rp_idset_copy(&s, padded);
	assert_int_equal(s.nw, 1);
	for (size_t i = 0; i < RP_IDSET_WORDS + 2; i++)
		many[i] = UINT64_MAX;
	rp_idset_copy(&s, large);
	assert_int_equal(s.nw, RP_IDSET_WORDS);
	rp_idset_or(&s, large, tight);
	assert_int_equal(s.nw, RP_IDSET_WORDS);
	rp_idset_and(&s, large, large);
	assert_int_equal(s.nw, RP_IDSET_WORDS);
	rp_idset_andnot(&s, large, tight);
	assert_int_equal(rp_ids_count(rp_ids_of(&s)), RP_CPUS_MAX - 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_model),	      cmocka_unit_test(test_parse_accepts),
		cmocka_unit_test(test_parse_refuses), cmocka_unit_test(test_format_cuts),
		cmocka_unit_test(test_longest_text),  cmocka_unit_test(test_borders),
		cmocka_unit_test(test_foreign_views),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
