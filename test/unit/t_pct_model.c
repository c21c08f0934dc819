/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pct.h beside a naive model: bits of a word for sets and whole sentences of the
 * specification for rules, over random platforms, classes, CPUs in use and sizes.
 *
 * Room of a punit: the most CPUs that can be high there (the largest step of SST-TF, without steps
 * the CPUs of SST-BF) but for those that are. A high class: each punit with room for n and n free
 * CPUs, by room, free CPUs, package and number; if there is none each package whose punits together
 * can take n. Others avoid all punits with high CPUs. Before both: free CPUs that are in the
 * class's CLOS already, if there are n.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "modules/lib/private/cpuclass.h"
#include "modules/lib/private/pct.h"
#include "test/unit/fake_host.h"

#define N_CPUS 48u /* three packages of 16 CPUs, in punits of 4, 8 or 16 */
#define N_MACHINES 400
#define N_QUESTIONS 60

static uint64_t seed;

static uint32_t rnd(uint32_t n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)((seed >> 16) % n);
}

static uint64_t rnd_set(void)
{
	uint64_t set = 0;
	uint32_t of_8 = rnd(9);
	for (uint32_t i = 0; i < N_CPUS; i++)
		set |= (uint64_t)(rnd(8) < of_8) << i;
	return set;
}

static uint32_t size(uint64_t set)
{
	return (uint32_t)__builtin_popcountll(set);
}

struct model_punit {
	uint32_t package, most, least;
	uint64_t cpus;
	bool turbo; /* SST-TF is on */
};

struct model {
	struct model_punit punits[12];
	uint32_t n;
	uint64_t allowed;
	bool managed;
	uint64_t clos[RP_CLOS_COUNT]; /* CPUs that are in it, as far as may be known */
};

/* ---- the specification ----------------------------------------------------------------------- */

static bool eligible(const struct model *m, const struct model_punit *p)
{
	return m->managed || p->turbo;
}

static uint32_t room(const struct model_punit *p, uint64_t high)
{
	uint32_t used = size(p->cpus & high);
	return used < p->most ? p->most - used : 0;
}

struct candidate {
	uint64_t cpus;
	uint32_t room, free, order;
};

static bool better(const struct candidate *a, const struct candidate *b)
{
	if (a->room != b->room)
		return a->room > b->room;
	if (a->free != b->free)
		return a->free > b->free;
	return a->order < b->order;
}

/* Returns the CPUs of the best candidate that has at least n CPUs in `from`; 0: none. */
static uint64_t first_of(struct candidate *c, uint32_t n_candidates, uint64_t from, uint32_t n)
{
	uint64_t found = 0;
	const struct candidate *best = NULL;
	for (uint32_t i = 0; i < n_candidates; i++)
		if (size(from & c[i].cpus) >= n && (!best || better(&c[i], best))) {
			best = &c[i];
			found = from & c[i].cpus;
		}
	return found;
}

static uint64_t model_high(const struct model *m, uint64_t free, uint64_t high, uint64_t from,
			   uint32_t n)
{
	struct candidate c[12];
	uint32_t found = 0;
	for (uint32_t i = 0; i < m->n; i++) {
		const struct model_punit *p = &m->punits[i];
		uint64_t own = p->cpus & m->allowed;
		if (eligible(m, p) && room(p, high) >= n && size(free & own) >= n)
			c[found++] = (struct candidate){own, room(p, high), size(free & own), i};
	}
	if (found)
		return first_of(c, found, from, n);
	for (uint32_t package = 0; package < 3; package++) {
		struct candidate all = {.order = package};
		uint32_t fit = 0;
		for (uint32_t i = 0; i < m->n; i++) {
			const struct model_punit *p = &m->punits[i];
			uint64_t own = p->cpus & m->allowed;
			if (p->package != package || !eligible(m, p))
				continue;
			all.cpus |= own;
			all.room += room(p, high);
			all.free += size(free & own);
			fit += room(p, high) < size(free & own) ? room(p, high) : size(free & own);
		}
		if (fit >= n)
			c[found++] = all;
	}
	return first_of(c, found, from, n);
}

/* clos < 0: the class has none. */
static uint64_t model_choice(const struct model *m, int clos, bool is_high, bool any_high,
			     uint64_t free, uint64_t high, uint64_t from, uint32_t n)
{
	uint64_t avoid = 0, narrowed;
	if (clos >= 0 && size(free & m->clos[clos]) >= n && size(from & free & m->clos[clos]) >= n)
		from &= free & m->clos[clos];
	if (is_high) {
		narrowed = model_high(m, free, high, from, n);
		return narrowed ? narrowed : from;
	}
	for (uint32_t i = 0; any_high && i < m->n; i++)
		if (m->punits[i].cpus & high)
			avoid |= m->punits[i].cpus & m->allowed;
	return size(from & ~avoid) >= n ? from & ~avoid : from;
}

static int64_t model_capacity(const struct model *m, bool is_high, uint64_t held)
{
	int64_t n = 0;
	if (!is_high)
		return size(m->allowed & ~held);
	for (uint32_t i = 0; i < m->n; i++) {
		const struct model_punit *p = &m->punits[i];
		uint32_t left = size(p->cpus & m->allowed & ~held);
		if (eligible(m, p))
			n += left < p->least ? left : p->least;
	}
	return n;
}

/* ---- random platforms ------------------------------------------------------------------------ */

static char texts[64][160];
static uint32_t n_texts;

static struct rp_idset set_of(uint64_t bits)
{
	struct rp_idset set;
	rp_idset_clear(&set);
	for (uint32_t i = 0; i < N_CPUS; i++)
		if (bits >> i & 1)
			rp_idset_add(&set, i);
	return set;
}

static uint64_t bits_of(struct rp_ids ids)
{
	uint64_t bits = 0;
	RP_IDS_EACH (cpu, ids)
		bits |= UINT64_C(1) << cpu;
	return bits;
}

static const char *text_of(uint64_t bits)
{
	struct rp_idset set = set_of(bits);
	char *text = texts[n_texts++];
	(void)rp_ids_format(rp_ids_of(&set), text, sizeof texts[0]);
	return text;
}

static void make_punit(struct model *m, struct fake_punit *to, uint32_t package, uint32_t id,
		       uint32_t first, uint32_t width)
{
	struct model_punit *p = &m->punits[m->n];
	*p = (struct model_punit){.package = package,
				  .cpus = ((UINT64_C(1) << width) - 1) << first,
				  .turbo = rnd(3) != 0};
	*to = (struct fake_punit){.package = package,
				  .punit = id,
				  .cpus = text_of(p->cpus),
				  .supported = RP_SST_CP | RP_SST_TF | RP_SST_BF,
				  .enabled = RP_SST_CP | (p->turbo ? RP_SST_TF : 0u),
				  .priority = RP_SST_ORDERED};
	uint64_t bf = p->cpus & rnd_set();
	to->bf = text_of(bf);
	p->most = size(bf);
	/* steps go up */
	for (uint32_t i = 0, at = 0, n = rnd(4); i < n && at < width; i++) {
		at += 1 + rnd(width - at);
		to->buckets[i] = at;
		p->most = at;
		p->least = p->least ? p->least : at;
	}
	m->n++;
}

static struct fake_host *make_machine(struct model *m)
{
	struct fake_punit punits[12];
	static const uint32_t widths[] = {4, 8, 16};
	memset(m, 0, sizeof *m);
	n_texts = 0;
	for (uint32_t package = 0; package < 3; package++) {
		uint32_t width = widths[rnd(3)];
		for (uint32_t id = 0; id < 16 / width; id++)
			make_punit(m, &punits[m->n], package, id, 16 * package + id * width, width);
	}
	struct fake_host *f = fake_host_new(
		&(struct fake_machine){.packages = 3, .nodes = 1, .cores = 16, .threads = 1});
	fake_speedselect(f, punits, m->n);
	return f;
}

/* ---- side by side ---------------------------------------------------------------------------- */

struct pair {
	struct model m;
	struct modhost h;
	struct cpuclass_defs defs;
	struct cpuclass *c;
};

static void ask(struct pair *p, uint32_t class, int clos, bool is_high, bool any_high)
{
	uint64_t free = rnd_set() & p->m.allowed, high = rnd_set() & ~free, from = free;
	struct rp_idset free_set = set_of(free), high_set = set_of(high), left = set_of(from);
	struct pct_hints hints;
	uint32_t n = 1 + rnd(rnd(4) ? 6 : 20);
	const struct pct *pct = cpuclass_pct(p->c);
	if (size(from) < n)
		return;
	pct_hint(pct, class, n, rp_ids_of(&free_set), rp_ids_of(&high_set), &hints);
	(void)pct_prefer(pct, &hints, n, &left);
	(void)pct_avoid(&hints, n, &left);
	uint64_t expected = model_choice(&p->m, clos, is_high, any_high, free, high, from, n);
	if (bits_of(rp_ids_of(&left)) != expected)
		fail_msg("%u of %" PRIx64 " beside %" PRIx64 " for class %u: %" PRIx64
			 ", by the model %" PRIx64,
			 n, from, high, class, bits_of(rp_ids_of(&left)), expected);
	uint64_t held = rnd_set();
	struct rp_idset held_set = set_of(held);
	assert_int_equal(pct_is_high(pct, class), is_high);
	assert_int_equal(pct_capacity(pct, class, rp_ids_of(&held_set)),
			 model_capacity(&p->m, is_high, held));
}

static void begin(struct pair *p, struct fake_host *f, const char *classes)
{
	struct rp_idset allowed;
	p->m.allowed = rnd_set() | UINT64_C(1);
	allowed = set_of(p->m.allowed);
	assert_int_equal(modhost_init(&p->h, fake_rp_host(f), MODHOST_POLICY), 0);
	p->c = cpuclass_new(&p->h);
	assert_int_equal(cpuclass_read(&p->h, fake_cfg(f, classes), &p->defs), 0);
	assert_int_equal(cpuclass_configure(p->c, &p->defs, rp_ids_of(&allowed)), 0);
}

/* Classes high, low and one that has nothing to do with it; CPUs change between them all the
 * time. */
static void managed(void)
{
	struct pair p;
	struct fake_host *f = make_machine(&p.m);
	p.m.managed = true;
	begin(&p, f,
	      "{cpuClasses: [{name: h, pctPriority: high}, {name: l, pctPriority: low}, "
	      "{name: x}]}");
	/* CPUs without a class are in the low class */
	p.m.clos[3] = p.m.allowed;
	for (unsigned i = 0; i < N_QUESTIONS; i++) {
		uint64_t some = rnd_set() & p.m.allowed;
		struct rp_idset set = set_of(some);
		uint32_t class = rnd(3), clos = class ? 3 : 0;
		cpuclass_use(p.c, class, rp_ids_of(&set));
		p.m.clos[3 - clos] &= ~some;
		p.m.clos[clos] |= some;
		ask(&p, 0, 0, true, true);
		ask(&p, 1, 3, false, true);
		ask(&p, 2, -1, false, true);
		ask(&p, CPUCLASS_NONE, -1, false, true);
	}
	cpuclass_free(p.c);
	fake_host_free(f);
}

/* Checks two classes with a CLOS that another program has or has not programmed. The class with
 * the higher frequency is high, at a tie the lower number. */
static void associated(void)
{
	struct pair p;
	struct fake_host *f = make_machine(&p.m);
	uint32_t max[2] = {1000 + 100 * rnd(3), 1000 + 100 * rnd(3)};
	bool programmed = rnd(3) != 0;
	uint64_t in_1 = rnd_set(), in_2 = rnd_set() & ~in_1;
	if (programmed) {
		fake_sst_program(f, 1, 0, max[0]);
		fake_sst_program(f, 2, 0, max[1]);
	}
	fake_sst_put(f, text_of(in_1), 1);
	fake_sst_put(f, text_of(in_2), 2);
	begin(&p, f, "{cpuClasses: [{name: a, sstClosID: 1}, {name: b, sstClosID: 2}, {name: x}]}");
	p.m.clos[1] = in_1 & p.m.allowed;
	p.m.clos[2] = in_2 & p.m.allowed;
	bool a_high = programmed && max[0] >= max[1], b_high = programmed && !a_high;
	for (unsigned i = 0; i < N_QUESTIONS; i++) {
		uint64_t some = rnd_set() & p.m.allowed;
		struct rp_idset set = set_of(some);
		uint32_t class = rnd(3);
		cpuclass_use(p.c, class, rp_ids_of(&set));
		/* CPUs of a class without priority keep their CLOS */
		if (class < 2) {
			p.m.clos[2 - class] &= ~some;
			p.m.clos[1 + class] |= some;
		}
		ask(&p, 0, 1, a_high, programmed);
		ask(&p, 1, 2, b_high, programmed);
		ask(&p, 2, -1, false, programmed);
	}
	cpuclass_free(p.c);
	fake_host_free(f);
}

static void test_managed(void **state)
{
	for (unsigned i = 1; i <= N_MACHINES; i++) {
		seed = i * UINT64_C(0x9e3779b97f4a7c15);
		managed();
	}
}

static void test_associated(void **state)
{
	for (unsigned i = 1; i <= N_MACHINES; i++) {
		seed = i * UINT64_C(0xd1342543de82ef95);
		associated();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_managed),
		cmocka_unit_test(test_associated),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
