/* SPDX-License-Identifier: Apache-2.0 */
/* Learned usage of pods, persisted across restarts. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/nri-rpd/noderes/models.h"

#define HOUR 3600
#define DAY (24 * HOUR)
#define MIB (INT64_C(1) << 20)

static void train(struct models *m, const char *name, int64_t mcpu, int64_t memory, int64_t at_s)
{
	const int64_t sample[RP_NR_AMOUNTS] = {mcpu, memory};
	assert_int_equal(models_train(m, name, sample, at_s), 0);
}

static void peak_is(const struct models *m, const char *name, int64_t least, int64_t most)
{
	int64_t peak[RP_NR_AMOUNTS];
	const struct model *one = models_find(m, name);
	assert_non_null(one);
	model_peak(one, peak);
	assert_in_range(peak[RP_NR_CPU], least, most);
}

static struct buf written(const struct models *m)
{
	struct buf text = {0};
	assert_int_equal(models_write(m, &text), 0);
	return text;
}

/* Checks a day at half a CPU with an hour at two: the hour is the 95th percentile, unless it was
 * long ago. */
static void test_decay(void **state)
{
	struct models m = {0};
	for (int64_t t = 0; t < DAY; t += 60)
		train(&m, "u1", t < DAY - 2 * HOUR ? 500 : 2000, 100 * MIB, t);
	peak_is(&m, "u1", 2000, 2150);
	for (int64_t t = DAY; t < 4 * DAY; t += 60)
		train(&m, "u1", 500, 100 * MIB, t);
	peak_is(&m, "u1", 500, 540);
	models_fini(&m);
}

static void test_unseen_are_forgotten(void **state)
{
	struct models m = {0};
	train(&m, "old", 100, MIB, 1000);
	train(&m, "new", 100, MIB, 5000);
	models_forget(&m, 5000 - 1800);
	assert_null(models_find(&m, "old"));
	assert_non_null(models_find(&m, "new"));
	models_fini(&m);
}

static void test_restart(void **state)
{
	struct models m = {0}, again = {0};
	for (int64_t t = 0; t < DAY; t += 60)
		train(&m, "a.b-c_1", 100 + t / 100, t * 10000, t);
	train(&m, "__node__", 7000, 900 * MIB, DAY);
	struct buf text = written(&m);
	assert_int_equal(models_read(&again, buf_text(&text), DAY + 60, NULL), 0);
	for (const struct model *one = m.list; one; one = one->hh.next) {
		const struct model *same = models_find(&again, one->name);
		int64_t before[RP_NR_AMOUNTS], after[RP_NR_AMOUNTS];
		assert_non_null(same);
		model_peak(one, before);
		model_peak(same, after);
		assert_memory_equal(before, after, sizeof before);
		assert_int_equal(one->born_s, same->born_s);
		assert_int_equal(same->seen_s, DAY + 60);
	}
	buf_fini(&text);
	models_fini(&m);
	models_fini(&again);
}

/* Checks that new usage counts even if the clock was years ahead when the file was written. */
static void test_clock_that_was_ahead(void **state)
{
	struct models m = {0}, again = {0};
	const int64_t ahead = INT64_C(3650) * DAY;
	for (int64_t t = 0; t < DAY; t += 60)
		train(&m, "u1", 4000, MIB, ahead + t);
	struct buf text = written(&m);
	assert_int_equal(models_read(&again, buf_text(&text), 1000, NULL), 0);
	for (int64_t t = 1000; t < 4 * DAY; t += 60)
		train(&again, "u1", 500, MIB, t);
	peak_is(&again, "u1", 500, 540);
	/* A clock that leaps ahead during a run leaves valid numbers. */
	train(&again, "u1", 500, MIB, INT64_MAX / 4);
	peak_is(&again, "u1", 500, 540);
	buf_fini(&text);
	models_fini(&m);
	models_fini(&again);
}

static void test_bad_files(void **state)
{
	static const struct {
		const char *text, *error;
		unsigned n; /* models that are there all the same */
	} cases[] = {
		{"", "line 1", 0},
		{"nri-rp predictions 2\n", "line 1", 0},
		{"nri-rp predictions 1\nmodel a 1\ncpu 0 1\n", "line 4", 0},
		{"nri-rp predictions 1\nmodel a 1\ncpu 0 -1\nmemory 0 0\n", "line 3", 0},
		{"nri-rp predictions 1\nmodel a 1\ncpu 0 1 158:3\nmemory 0 0\n", "line 3", 0},
		{"nri-rp predictions 1\nmodel a 1\ncpu 0 1 -1:3\nmemory 0 0\n", "line 3", 0},
		{"nri-rp predictions 1\nmodel a 1\ncpu 0 1 1.5:3\nmemory 0 0\n", "line 3", 0},
		{"nri-rp predictions 1\nmodel a 1\ncpu 0 1 1:10001\nmemory 0 0\n", "line 3", 0},
		{"nri-rp predictions 1\nmodel a 1\ncpu 0 1e999 1:1\nmemory 0 0\n", "line 3", 0},
		{"nri-rp predictions 1\nmodel a 1\ncpu 0 nan 1:1\nmemory 0 0\n", "line 3", 0},
		{"nri-rp predictions 1\nmodel a 1\ncpu 0 0\nmemory 0 0\nmodel a 1\n", "line 6", 1},
		{"nri-rp predictions 1\nmodel ä 1\ncpu 0 0\nmemory 0 0\n", "line 3", 0},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct models m = {0};
		struct err err = ERR_INIT;
		assert_int_equal(models_read(&m, cases[i].text, 1000, &err), -EINVAL);
		assert_non_null(strstr(err.text, cases[i].error));
		assert_int_equal(HASH_COUNT(m.list), cases[i].n);
		models_fini(&m);
	}
}

/* Names come from the runtime: what is not one, and too many of them, are not learned. */
static void test_bounds(void **state)
{
	struct models m = {0};
	const int64_t sample[RP_NR_AMOUNTS] = {1, 1};
	char name[MODEL_NAME_MAX + 1];
	assert_int_equal(models_train(&m, "", sample, 1), -E2BIG);
	assert_int_equal(models_train(&m, "a b", sample, 1), -EINVAL);
	assert_int_equal(models_train(&m, "a\nmodel", sample, 1), -EINVAL);
	memset(name, 'a', MODEL_NAME_MAX);
	name[MODEL_NAME_MAX] = '\0';
	assert_int_equal(models_train(&m, name, sample, 1), -E2BIG);
	for (unsigned i = 0; i < MODELS_MAX; i++) {
		(void)snprintf(name, sizeof name, "u%u", i);
		assert_int_equal(models_train(&m, name, sample, 1), 0);
	}
	assert_int_equal(models_train(&m, "one-more", sample, 1), -E2BIG);
	models_fini(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_decay),	  cmocka_unit_test(test_unseen_are_forgotten),
		cmocka_unit_test(test_restart),	  cmocka_unit_test(test_clock_that_was_ahead),
		cmocka_unit_test(test_bad_files), cmocka_unit_test(test_bounds),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
