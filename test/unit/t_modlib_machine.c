/* SPDX-License-Identifier: Apache-2.0 */
/* modules/lib: topology levels and CPU ownership. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include <nri-rp/lib/machine.h>
#include <nri-rp/lib/owners.h>
#include "test/unit/fake_host.h"

static const struct fake_machine n4c16 = {.packages = 2, .nodes = 2, .cores = 2, .threads = 2};
static const struct fake_machine server_2s = {
	.packages = 2, .nodes = 2, .cores = 16, .threads = 2, .siblings = true};
static const struct fake_machine laptop = {.cores = 4, .threads = 2, .e_cores = 8};
static const struct fake_machine no_numa = {
	.packages = 2, .nodes = 2, .cores = 2, .threads = 2, .no_numa = true};
static const struct fake_machine dies = {.packages = 2, .dies = 2, .cores = 2};

struct bench {
	struct fake_host *f;
	struct modhost h;
	struct machine *m;
};

static void open_bench(struct bench *b, const struct fake_machine *m)
{
	b->f = fake_host_new(m);
	assert_int_equal(modhost_init(&b->h, fake_rp_host(b->f), MODHOST_POLICY), 0);
	assert_int_equal(machine_new(&b->h, &b->m), 0);
}

static void close_bench(struct bench *b)
{
	assert_null(machine_free(b->m));
	fake_host_free(b->f);
}

static void parse(struct rp_idset *ret, const char *list)
{
	assert_int_equal(rp_idset_parse(ret, list, RP_CPUS_MAX), 0);
}

static void assert_set(struct rp_ids ids, const char *list, const char *what)
{
	char text[4096];
	(void)rp_ids_format(ids, text, sizeof text);
	if (strcmp(text, list) != 0)
		fail_msg("%s: expected %s, found %s", what, list, text);
}

/* ---- growing --------------------------------------------------------------------------------- */

static const struct {
	const struct fake_machine *machine;
	const char *own, *free;
	uint32_t more;
	const char *grown;
} growths[] = {
	{&n4c16, "2", "1,3,4-15", 1, "2-3"}, /* sibling */
	{&n4c16, "2-3", "1,4-15", 1, "1-3"}, /* node */
	{&n4c16, "2-3", "5,6-15", 1, "2-3,6"}, /* package, whole core first */
	{&n4c16, "2-3", "5,9,10-11", 2, "2-3,5,10"}, /* then another package */
	{&server_2s, "1,65", "2-15,66-79", 4, "1-3,65-67"}, /* core by core */
	{&n4c16, "2-3", "4-7", 0, "2-3"},
};

static void test_growing(void **state)
{
	for (size_t i = 0; i < sizeof growths / sizeof growths[0]; i++) {
		struct bench b;
		struct rp_idset own, free, set;
		open_bench(&b, growths[i].machine);
		parse(&own, growths[i].own);
		parse(&free, growths[i].free);
		assert_int_equal(
			machine_grow(b.m, rp_ids_of(&own), rp_ids_of(&free), growths[i].more, &set),
			0);
		assert_set(rp_ids_of(&set), growths[i].grown, growths[i].own);
		assert_int_equal(machine_grow(b.m, rp_ids_of(&own), rp_ids_of(&free), 100, &set),
				 -RP_ENOSPC);
		close_bench(&b);
	}
}

/* ---- the machine ----------------------------------------------------------------------------- */

static void test_machine(void **state)
{
	struct bench b;
	struct rp_idset set, from;
	open_bench(&b, &laptop);
	assert_int_equal(b.m->n_cpus, 16);
	assert_int_equal(b.m->threads, 1);
	assert_true(b.m->hybrid);
	assert_int_equal(b.m->level[MACHINE_CORE].n_units, 12);
	assert_null(machine_unit_of(b.m, MACHINE_CORE, 16));
	parse(&from, "1,2-3,9");
	machine_whole_cores(b.m, rp_ids_of(&from), &set);
	assert_set(rp_ids_of(&set), "2-3,9", "whole cores");
	machine_surround(b.m, MACHINE_CORE, rp_ids_of(&from), &set);
	assert_set(rp_ids_of(&set), "0-3,9", "siblings");
	close_bench(&b);
	open_bench(&b, &no_numa);
	assert_int_equal(b.m->level[MACHINE_NODE].n_units, 1);
	assert_false(b.m->hybrid);
	close_bench(&b);
}

/* Checks a host with less information: no cores, no caches, no nodes. */
static void test_machine_without_levels(void **state)
{
	struct bench b;
	b.f = fake_host_new(&n4c16);
	assert_int_equal(modhost_init(&b.h, fake_rp_host(b.f), MODHOST_POLICY), 0);
	for (uint32_t cpu = 0; cpu < 16; cpu++)
		for (uint32_t level = 0; level < RP_N_LEVELS; level++)
			fake_cpu_info(b.f, cpu)->unit[level] = RP_IDSET_NONE;
	assert_int_equal(machine_new(&b.h, &b.m), 0);
	assert_int_equal(b.m->level[MACHINE_CORE].n_units, 16);
	assert_int_equal(b.m->level[MACHINE_CACHE].n_units, 0);
	assert_int_equal(b.m->level[MACHINE_NODE].n_units, 1);
	assert_int_equal(b.m->level[MACHINE_PACKAGE].n_units, 1);
	assert_int_equal(b.m->level[MACHINE_DIE].n_units, 1);
	assert_int_equal(b.m->level[MACHINE_THREAD].n_units, 16);
	close_bench(&b);
}

static void test_machine_without_cpus(void **state)
{
	const struct fake_machine none = {.cores = 2, .offline = "0-1"};
	struct modhost h;
	struct machine *m = NULL;
	struct fake_host *f = fake_host_new(&none);
	assert_int_equal(modhost_init(&h, fake_rp_host(f), MODHOST_POLICY), 0);
	assert_int_equal(machine_new(&h, &m), -RP_EINVAL);
	assert_string_equal(fake_error(f), "the machine has no online CPUs");
	fake_host_free(f);
}

static void test_machine_dies(void **state)
{
	struct bench b;
	struct rp_idset set, from;
	open_bench(&b, &dies);
	assert_int_equal(b.m->level[MACHINE_DIE].n_units, 4);
	assert_int_equal(machine_unit_of(b.m, MACHINE_DIE, 7)->id, 6);
	parse(&from, "3,6");
	machine_surround(b.m, MACHINE_DIE, rp_ids_of(&from), &set);
	assert_set(rp_ids_of(&set), "2-3,6-7", "dies");
	machine_surround(b.m, MACHINE_PACKAGE, rp_ids_of(&from), &set);
	assert_set(rp_ids_of(&set), "0-7", "packages");
	close_bench(&b);
}

/* ---- CPU ownership --------------------------------------------------------------------------- */

static void test_owners(void **state)
{
	struct owners *l = calloc(1, sizeof *l);
	struct rp_idset set;
	assert_non_null(l);
	owners_begin(l);
	parse(&set, "1-3");
	owners_give(l, rp_ids_of(&set), 7);
	assert_int_equal(owners_owned(l, 7, &set), 3);
	assert_int_equal(owners_owned(l, 8, &set), 0);
	owners_begin(l);
	parse(&set, "2-4");
	owners_give(l, rp_ids_of(&set), 8);
	owners_give(l, rp_ids_of(&set), 9);
	assert_int_equal(owners_release(l, 7, &set), 1);
	assert_set(rp_ids_of(&set), "1", "released");
	assert_set(rp_ids_of(&l->taken), "2-4", "taken");
	owners_undo(l);
	assert_int_equal(owners_owned(l, 7, &set), 3);
	assert_set(rp_ids_of(&set), "1-3", "undone");
	assert_set(rp_ids_of(&l->taken), "1-3", "taken");
	owners_clear(l);
	assert_set(rp_ids_of(&l->taken), "", "cleared");
	owners_undo(l);
	assert_set(rp_ids_of(&l->taken), "1-3", "undone");
	free(l);
}

/* CPUs that several use are free when the last one leaves. */
static void test_joined(void **state)
{
	struct owners *o = calloc(1, sizeof *o);
	struct rp_idset one, two, set;
	assert_non_null(o);
	parse(&one, "1-3");
	parse(&two, "3-4");
	owners_join(o, rp_ids_of(&one));
	owners_join(o, rp_ids_of(&two));
	owners_begin(o);
	owners_leave(o, rp_ids_of(&one));
	assert_set(rp_ids_of(&o->taken), "3-4", "left");
	owners_leave(o, rp_ids_of(&two));
	owners_leave(o, rp_ids_of(&two));
	assert_set(rp_ids_of(&o->taken), "", "all left");
	owners_give(o, rp_ids_of(&two), 7);
	owners_leave(o, rp_ids_of(&two));
	assert_int_equal(owners_owned(o, 7, &set), 2);
	owners_join(o, rp_ids_of(&one));
	assert_int_equal(owners_owned(o, 7, &set), 1);
	owners_undo(o);
	owners_leave(o, rp_ids_of(&two));
	assert_set(rp_ids_of(&o->taken), "1-3", "undone");
	free(o);
}

/* ---- packing: a plain reading of the rule beside the library's ------------------------------- */

struct model {
	const struct machine *m;
	bool free[64], got[64];
	uint32_t missing;
};

static void model_take(struct model *k, uint32_t cpu)
{
	if (k->missing && k->free[cpu]) {
		k->free[cpu] = false;
		k->got[cpu] = true;
		k->missing--;
	}
}

static bool same_core(const struct machine *m, uint32_t a, uint32_t b)
{
	return machine_unit_of(m, MACHINE_CORE, a) == machine_unit_of(m, MACHINE_CORE, b);
}

/* Threads of the CPU's core that are free, of how many; is the CPU the lowest of them? */
static uint32_t free_of_core(const struct model *k, uint32_t cpu, uint32_t *ret_all,
			     bool *ret_first)
{
	uint32_t n = 0;
	*ret_all = 0;
	*ret_first = true;
	for (uint32_t other = 0; other < k->m->cpu_end; other++) {
		if (!rp_ids_has(rp_ids_of(&k->m->online), other) || !same_core(k->m, cpu, other))
			continue;
		*ret_first = *ret_first && other >= cpu;
		(*ret_all)++;
		n += k->free[other];
	}
	return n;
}

static void model_take_core(struct model *k, uint32_t cpu)
{
	for (uint32_t other = 0; other < k->m->cpu_end; other++)
		if (rp_ids_has(rp_ids_of(&k->m->online), other) && same_core(k->m, cpu, other))
			model_take(k, other);
}

/* Returns the lowest CPU of the first fully free core with several threads; UINT32_MAX: none.
 * The core of CPU 0 is preferred if `rather_0`, and avoided otherwise. */
static uint32_t whole_core(const struct model *k, bool rather_0)
{
	uint32_t found = UINT32_MAX, n;
	bool first;
	RP_IDS_EACH (cpu, rp_ids_of(&k->m->online)) {
		uint32_t has = free_of_core(k, cpu, &n, &first);
		if (!first || n < 2 || has != n)
			continue;
		if ((cpu == 0) == rather_0)
			return cpu;
		if (found == UINT32_MAX)
			found = cpu;
	}
	return found;
}

static void model_pack(struct model *k)
{
	uint32_t n, cpu;
	bool first;
	RP_IDS_EACH (broken, rp_ids_of(&k->m->online)) {
		uint32_t has = free_of_core(k, broken, &n, &first);
		if (first && has && has < n)
			model_take_core(k, broken);
	}
	while (k->missing >= 2 && (cpu = whole_core(k, false)) != UINT32_MAX)
		model_take_core(k, cpu);
	/* The rest of the last whole core is used before another core is broken. */
	RP_IDS_EACH (broken, rp_ids_of(&k->m->online)) {
		uint32_t has = free_of_core(k, broken, &n, &first);
		if (first && has && has < n)
			model_take_core(k, broken);
	}
	if (k->missing && (cpu = whole_core(k, true)) != UINT32_MAX) {
		if (cpu == 0)
			RP_IDS_EACH (second, rp_ids_of(&k->m->online))
				if (second && same_core(k->m, 0, second)) {
					cpu = second;
					break;
				}
		model_take(k, cpu);
	}
	for (cpu = 1; cpu < k->m->cpu_end; cpu++)
		model_take(k, cpu);
	model_take(k, 0);
}

static void test_packing(void **state)
{
	static const struct fake_machine small = {
		.packages = 2, .nodes = 1, .cores = 8, .threads = 2, .siblings = true};
	static const struct fake_machine smt4 = {.cores = 6, .threads = 4};
	static const struct fake_machine plain = {.cores = 12};
	static const struct fake_machine *const machines[] = {&n4c16, &small, &laptop, &smt4,
							      &plain};
	unsigned seed = (unsigned)time(NULL);
	print_message("seed %u\n", seed);
	srand(seed);
	for (size_t i = 0; i < sizeof machines / sizeof *machines; i++) {
		struct bench b;
		open_bench(&b, machines[i]);
		for (unsigned round = 0; round < 2000; round++) {
			struct model k = {.m = b.m};
			struct rp_idset free, found, expected;
			rp_idset_clear(&free);
			rp_idset_clear(&expected);
			RP_IDS_EACH (cpu, rp_ids_of(&b.m->online)) {
				k.free[cpu] = rand() % 3 > 0;
				if (k.free[cpu])
					rp_idset_add(&free, cpu);
			}
			uint32_t n = rp_ids_count(rp_ids_of(&free));
			k.missing = n ? 1 + (uint32_t)rand() % n : 0;
			machine_pack(b.m, rp_ids_of(&free), k.missing, &found);
			model_pack(&k);
			for (uint32_t cpu = 0; cpu < 64; cpu++)
				if (k.got[cpu])
					rp_idset_add(&expected, cpu);
			char text[256], what[256];
			(void)rp_ids_format(rp_ids_of(&free), what, sizeof what);
			(void)rp_ids_format(rp_ids_of(&expected), text, sizeof text);
			assert_set(rp_ids_of(&found), text, what);
		}
		close_bench(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_growing),
		cmocka_unit_test(test_machine),
		cmocka_unit_test(test_machine_without_levels),
		cmocka_unit_test(test_machine_without_cpus),
		cmocka_unit_test(test_machine_dies),
		cmocka_unit_test(test_owners),
		cmocka_unit_test(test_joined),
		cmocka_unit_test(test_packing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
