/* SPDX-License-Identifier: Apache-2.0 */
/* Frequencies as they are told by a trial and taken by the daemon: they are not read again, and
 * what makes no sense is not taken. */
#include "core/nri-rpd/pipeline/internal.h"
#include "test/unit/t_topo_tree.h"
#include "core/nri-rpd/pipeline/node/frequencies.h"

static void put_freq(const struct tree *tree, unsigned base)
{
	for (unsigned cpu = 0; cpu < 16; cpu++) {
		tree_put_cpu(tree, cpu, "cpufreq/base_frequency", "%u", base + cpu / 2);
		tree_put_cpu(tree, cpu, "cpufreq/energy_performance_preference", "%u", cpu);
	}
}

/* Returns the report packed and unpacked again, as from a child that has requested the
 * frequencies of two cores. */
static Trial__Report *told(struct topo *t)
{
	Trial__Report report = TRIAL__REPORT__INIT;
	(void)cpu_of(t, 3);
	(void)cpu_of(t, 8);
	frequencies_told(t, &report);
	assert_int_equal(report.frequencies.len, 3 * sizeof(struct topo_freq));
	size_t size = trial__report__get_packed_size(&report);
	uint8_t *bytes = malloc(size);
	assert_non_null(bytes);
	assert_int_equal(trial__report__pack(&report, bytes), size);
	Trial__Report *there = trial__report__unpack(NULL, size, bytes);
	assert_non_null(there);
	free(bytes);
	free(report.frequencies.data);
	return there;
}

static void test_told_and_taken(void **state)
{
	const struct tree *tree = *state;
	put_freq(tree, 2000000);
	struct topo *t = tree_read(tree), *other = tree_read(tree);
	Trial__Report *m = told(t);
	frequencies_took(other, m);
	put_freq(tree, 1000000);
	assert_int_equal(topo_n_freqs(other), 3);
	assert_int_equal(cpu_of(other, 2).base_khz, 2000001);
	assert_int_equal(cpu_of(other, 3).base_khz, 2000001);
	assert_int_equal(cpu_of(other, 3).epp, 3);
	assert_int_equal(cpu_of(other, 8).base_khz, 2000004);
	/* The second thread keeps its own preference when only the first thread of its core is
	 * known. */
	assert_int_equal(cpu_of(other, 9).base_khz, 2000004);
	assert_int_equal(cpu_of(other, 9).epp, 9);
	assert_int_equal(cpu_of(other, 4).base_khz, 1000002);
	trial__report__free_unpacked(m, NULL);
	topo_free(t);
	topo_free(other);
}

static void test_another_machine(void **state)
{
	const struct tree *tree = *state;
	struct err err = ERR_INIT;
	put_freq(tree, 2000000);
	struct topo *t = tree_read(tree), *later;
	assert_int_equal(topo_reread(t, &later, &err), 0);
	Trial__Report *m = told(t);
	frequencies_took(later, m);
	assert_int_equal(topo_n_freqs(later), 0);
	trial__report__free_unpacked(m, NULL);
	topo_free(t);
	topo_free(later);
}

static void test_what_makes_no_sense(void **state)
{
	const struct tree *tree = *state;
	put_freq(tree, 2000000);
	for (unsigned odd = 0; odd < 2; odd++) {
		struct topo *t = tree_read(tree), *other = tree_read(tree);
		Trial__Report *m = told(t);
		struct topo_freq *second = (struct topo_freq *)m->frequencies.data + 1;
		if (odd)
			second->cpu = 16; /* offline CPU */
		else
			second->epp = 256;
		frequencies_took(other, m);
		assert_int_equal(topo_n_freqs(other), 1);
		assert_int_equal(cpu_of(other, 8).base_khz, 2000004);
		trial__report__free_unpacked(m, NULL);
		topo_free(t);
		topo_free(other);
	}
}

static void test_half_a_reading(void **state)
{
	const struct tree *tree = *state;
	put_freq(tree, 2000000);
	struct topo *t = tree_read(tree), *other = tree_read(tree);
	Trial__Report *m = told(t);
	m->frequencies.len--;
	frequencies_took(other, m);
	assert_int_equal(topo_n_freqs(other), 0);
	trial__report__free_unpacked(m, NULL);
	topo_free(t);
	topo_free(other);
}

static void test_nothing(void **state)
{
	const struct tree *tree = *state;
	const Trial__Report none = TRIAL__REPORT__INIT;
	struct topo *t = tree_read(tree);
	frequencies_took(t, &none);
	assert_int_equal(topo_n_freqs(t), 0);
	topo_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		tree_test(test_told_and_taken),
		tree_test(test_another_machine),
		tree_test(test_what_makes_no_sense),
		tree_test(test_half_a_reading),
		tree_test(test_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
