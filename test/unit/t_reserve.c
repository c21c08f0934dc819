/* SPDX-License-Identifier: Apache-2.0 */
/* Reserved CPUs over time: the CPUs that stay, the replacements for CPUs that disappear, and the
 * state that is saved across restarts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <nri-rp/lib/reserve.h>

static struct rp_idset set(const char *text)
{
	struct rp_idset s;
	assert_int_equal(rp_idset_parse(&s, text, RP_CPUS_MAX), 0);
	return s;
}

static void is(const struct rp_idset *s, const char *text)
{
	char buf[RP_IDSET_TEXT_MAX];
	(void)rp_ids_format(rp_ids_of(s), buf, sizeof buf);
	assert_string_equal(buf, text);
}

/* ---- quantities ------------------------------------------------------------------------------ */

struct quantity {
	const char *what;
	const char *had, *busy, *from, *online;
	uint32_t n;
	bool hotplug;
	const char *kept, *others; /* NULL: all CPUs are chosen again */
	uint32_t n_missing;
};

static void check(const struct quantity *q)
{
	struct reserve_past past = {
		.cpus = set(q->had), .busy = set(q->busy), .hotplug = q->hotplug};
	struct rp_idset from = set(q->from), online = set(q->online), kept, others;
	uint32_t n =
		reserve_quantity(&past, rp_ids_of(&from), rp_ids_of(&online), q->n, &kept, &others);
	char buf[2][RP_IDSET_TEXT_MAX];
	(void)rp_ids_format(rp_ids_of(&kept), buf[0], sizeof buf[0]);
	(void)rp_ids_format(rp_ids_of(&others), buf[1], sizeof buf[1]);
	if (n != q->n_missing || strcmp(buf[0], q->kept ? q->kept : "") != 0 ||
	    strcmp(buf[1], q->kept ? q->others : q->from) != 0)
		fail_msg("%s: %s stay, %u others from %s", q->what, buf[0], n, buf[1]);
}

static void test_quantities(void **state)
{
	static const struct quantity all[] = {
		{"the first time", "", "", "0-15", "0-15", 2, false, NULL, NULL, 2},
		{"all are there", "0-1", "", "0-15", "0-15", 2, false, "0-1", "2-15", 0},
		{"other ones than would be chosen", "5,9", "", "0-15", "0-15", 2, false, "5,9",
		 "0-4,6-8,10-15", 0},
		/* the configuration asks for another number */
		{"more are wanted", "0-1", "", "0-15", "0-15", 3, false, NULL, NULL, 3},
		{"fewer are wanted", "0-1", "", "0-15", "0-15", 1, false, NULL, NULL, 1},
		/* a reserved CPU is no longer in the allowed set */
		{"one is not available", "0-1", "", "1-15", "0-15", 2, false, NULL, NULL, 2},
		/* a reserved CPU went offline while the daemon was stopped */
		{"one is off line at a start", "0-1", "", "0,2-15", "0,2-15", 2, false, "0", "2-15",
		 1},
		{"one is off line, one not allowed", "0-1", "", "2-15", "0,2-15", 2, false, NULL,
		 NULL, 2},
		/* the machine changes */
		{"one goes", "0-1", "", "0,2-15", "0,2-15", 2, true, "0", "2-15", 1},
		{"both go", "0-1", "", "2-15", "2-15", 2, true, "", "2-15", 2},
		{"it came back", "0,2", "", "0-15", "0-15", 2, true, "0,2", "1,3-15", 0},
		{"there were too few", "0-1", "", "0-3", "0-3", 4, true, "0-1", "2-3", 2},
		{"there are too few now", "0-3", "", "0-1", "0-1", 4, true, "0-1", "", 0},
		{"too few for what was never there", "", "", "0-1", "0-1", 4, true, "", "0-1", 2},
		/* CPUs without an owner are preferred */
		{"others own some", "0-1", "2-9", "0,2-15", "0,2-15", 2, true, "0", "10-15", 1},
		{"others own all", "0-1", "2-15", "0,2-15", "0,2-15", 2, true, "0", "2-15", 1},
		{"too few are idle", "0-3", "6-15", "3-15", "3-15", 4, true, "3", "4-15", 3},
		{"just enough are idle", "0-3", "7-15", "3-15", "3-15", 4, true, "3", "4-6", 3},
		{"none is needed", "0-1", "2-15", "0-15", "0-15", 2, true, "0-1", "", 0},
	};
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		check(&all[i]);
}

/* ---- lists ----------------------------------------------------------------------------------- */

static unsigned n_warnings;

static void count_warnings(void *ctx, uint32_t level, uint64_t object, const char *text)
{
	assert_non_null(strstr(text, "are offline; they are reserved again when they are online"));
	n_warnings += level == RP_LOG_WARNING;
}

static void missing(const char *listed, bool hotplug, const char *gone, const char *online,
		    const char *wrong, const char *awaited)
{
	struct reserve_past past = {.listed = set(listed), .hotplug = hotplug};
	struct rp_idset m = set(gone), on = set(online), w, a;
	const struct rp_host host = {.log = count_warnings};
	const struct modhost h = {.host = &host};
	n_warnings = 0;
	reserve_list(&h, &past, rp_ids_of(&m), rp_ids_none(), rp_ids_of(&on), &w, &a);
	assert_int_equal(n_warnings, *awaited && !*wrong);
	is(&w, wrong);
	is(&a, awaited);
}

static void test_lists(void **state)
{
	missing("", false, "", "0-15", "", "");
	/* CPUs that were never reserved */
	missing("", false, "1", "0,2-15", "1", "");
	missing("0", false, "1,99", "0,2-15", "1,99", "");
	/* CPUs that were reserved and are offline */
	missing("0-1", false, "1", "0,2-15", "", "1");
	missing("0-1", false, "1,99", "0,2-15", "99", "1");
	/* CPUs that are online but not in the allowed set */
	missing("0-3", false, "1-2", "0-1,3-15", "1", "2");
	/* a change of the topology is not an error of the configuration */
	missing("", true, "1", "0,2-15", "", "1");
	missing("0-1", true, "0-1", "2-15", "", "0-1");
}

/* ---- saved ----------------------------------------------------------------------------------- */

static void round_trip(const char *cpus, const char *listed)
{
	uint8_t *bytes = malloc(RESERVE_SAVED_MAX);
	struct reserve_past past = {.cpus = set(cpus), .listed = set(listed), .busy = set("7")};
	struct reserve_past back = {.busy = set("3"), .cpus = set("9"), .listed = set("9")};
	assert_non_null(bytes);
	uint32_t size = reserve_save(&past, bytes);
	assert_in_range(size, 1, RESERVE_SAVED_MAX);
	/* copy into a block of the exact size, so that the sanitizer detects a read past the end */
	uint8_t *exact = malloc(size);
	assert_non_null(exact);
	memcpy(exact, bytes, size);
	assert_true(reserve_load(exact, size, &back));
	is(&back.cpus, cpus);
	is(&back.listed, listed);
	is(&back.busy, "3");
	free(exact);
	free(bytes);
}

static void test_saved(void **state)
{
	round_trip("", "");
	round_trip("0-1", "");
	round_trip("", "0-1,63-64");
	round_trip("5,9,130", "0,4095");
	char last[16];
	(void)snprintf(last, sizeof last, "0,%u", RP_CPUS_MAX - 1);
	round_trip(last, last);
}

static void test_saved_by_others(void **state)
{
	uint8_t bytes[RESERVE_SAVED_MAX];
	struct reserve_past past = {.cpus = set("0-1"), .listed = set("0-200")};
	struct reserve_past back = {.cpus = set("9"), .listed = set("8")};
	uint32_t size = reserve_save(&past, bytes);
	/* cut off anywhere, and longer than it says */
	for (uint32_t n = 0; n < size; n++) {
		uint8_t *exact = malloc(n + 1);
		assert_non_null(exact);
		memcpy(exact, bytes, n);
		assert_false(reserve_load(exact, n, &back));
		free(exact);
	}
	assert_false(reserve_load(bytes, size + 8, &back));
	/* another version; more words than there can be, and so many that their bytes wrap
	 * around */
	static const uint32_t wrong[][3] = {{1, 1, 0},
					    {3, 1, 4},
					    {2, RP_IDSET_WORDS + 1, 0},
					    {2, 0, RP_IDSET_WORDS + 1},
					    {2, 0x20000000u, 0},
					    {2, UINT32_MAX, 1}};
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		memcpy(bytes, wrong[i], sizeof wrong[i]);
		assert_false(reserve_load(bytes, size, &back));
		assert_false(reserve_load(bytes, sizeof wrong[i], &back));
	}
	is(&back.cpus, "9");
	is(&back.listed, "8");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_quantities),
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_saved),
		cmocka_unit_test(test_saved_by_others),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
