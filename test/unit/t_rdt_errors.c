/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rdt.so, each change of it failing in turn, in every way that a kernel has: people are told what
 * and why, the rest is done all the same, and when the time has come it is tried again until all is
 * as it should be.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "test/unit/ctl_host.h"

extern const struct rp_module rp_module_1;

#define R "/sys/fs/resctrl/"
#define CONFIG                                                                                     \
	"{monitoring: containers, partitions: {p: {l3Allocation: 100%, classes: {gold: "           \
	"{l3Allocation: 80%}, bronze: {l3Allocation: 20%}}}}}"
#define SWAPPED                                                                                    \
	"{monitoring: containers, partitions: {p: {l3Allocation: 100%, classes: {gold: "           \
	"{l3Allocation: 20%}, bronze: {l3Allocation: 80%}}}}}"
#define GOLD_ONLY                                                                                  \
	"{monitoring: containers, partitions: {p: {l3Allocation: 100%, classes: {gold: "           \
	"{l3Allocation: 80%}}}}}"

struct world {
	struct ctl_host *t;
	rp_ctr c, d; /* containers with two tasks and with one task */
};

static void configure(struct world *w, const char *config)
{
	assert_int_equal(ctl_configure(w->t, config), 0);
	ctl_sync(w->t);
	(void)ctl_work(w->t);
}

static void start(struct world *w, const char *of_c, const char *of_d)
{
	if (of_c)
		ctl_decide(w->t, w->c, RP_F_RDT_CLASS, of_c);
	if (of_d)
		ctl_decide(w->t, w->d, RP_F_RDT_CLASS, of_d);
	assert_int_equal(ctl_start(w->t, w->c), 0);
	assert_int_equal(ctl_start(w->t, w->d), 0);
	(void)ctl_work(w->t);
}

/* ---- actions --------------------------------------------------------------------------------- */

static void nothing(struct world *w)
{
}

static void first_start(struct world *w)
{
	assert_int_equal(ctl_configure(w->t, CONFIG), 0);
	start(w, "gold", "bronze");
}

static void running(struct world *w)
{
	configure(w, CONFIG);
	start(w, "gold", "bronze");
}

static void without_class(struct world *w)
{
	configure(w, CONFIG);
	start(w, NULL, NULL);
}

static void change_classes(struct world *w)
{
	ctl_decide(w->t, w->c, RP_F_RDT_CLASS, "bronze");
	ctl_decide(w->t, w->d, RP_F_RDT_CLASS, "gold");
	assert_int_equal(ctl_update(w->t, w->c, RP_CHANGED_CLASS), 0);
	assert_int_equal(ctl_update(w->t, w->d, RP_CHANGED_CLASS), 0);
	(void)ctl_work(w->t);
}

static void other_shares(struct world *w)
{
	configure(w, SWAPPED);
}

static void drop_class(struct world *w)
{
	ctl_decide(w->t, w->d, RP_F_RDT_CLASS, "gold");
	configure(w, GOLD_ONLY);
}

static void restart(struct world *w)
{
	assert_int_equal(ctl_restart(w->t, CONFIG), 0);
	ctl_decide(w->t, w->c, RP_F_RDT_CLASS, "bronze");
	ctl_sync(w->t);
	(void)ctl_work(w->t);
}

static const struct scene {
	const char *name;
	void (*before)(struct world *w), (*act)(struct world *w);
	const char *c, *d; /* classes in the end */
	const char *gold; /* schemata of gold; NULL: 80 % */
	bool bronze_goes;
	uint32_t n_changes;
} scenes[] = {
	{"first start", nothing, first_start, "gold", "bronze", NULL, false, 12},
	{"a class for those without", without_class, change_classes, "bronze", "gold", NULL, false,
	 10},
	{"other classes", running, change_classes, "bronze", "gold", NULL, false, 10},
	{"other shares", running, other_shares, "gold", "bronze", "f", false, 14},
	{"a class less", running, drop_class, "gold", "gold", NULL, true, 12},
	{"another class while it was away", running, restart, "bronze", "bronze", NULL, false, 12},
};

/* ---- results --------------------------------------------------------------------------------- */

static bool is_in(struct world *w, const char *class, const char *tids)
{
	char path[160], text[512], line[64];
	(void)snprintf(path, sizeof path, R "nri-rp.%s/tasks", class);
	(void)snprintf(text, sizeof text, "\n%s\n", ctl_get(w->t, path));
	for (const char *at = tids; *at; at += strcspn(at, ","), at += *at == ',') {
		(void)snprintf(line, sizeof line, "\n%.*s\n", (int)strcspn(at, ","), at);
		if (!strstr(text, line))
			return false;
	}
	return true;
}

/* Returns the difference from the expected state; NULL: none. */
static const char *what_is_wrong(struct world *w, const struct scene *s)
{
	const char *gold = ctl_get(w->t, R "nri-rp.gold/schemata");
	if (!is_in(w, s->c, "21,22") || !is_in(w, s->d, "31"))
		return "tasks are elsewhere";
	return strstr(gold, s->gold ? s->gold : "=ffff;") ? NULL : "schemata of gold are others";
}

static void check_end(struct world *w, const struct scene *s, const char *what)
{
	const char *c = ctl_report(w->t, w->c), *d = ctl_report(w->t, w->d);
	const char *wrong = what_is_wrong(w, s);
	if (*c != '1' || *d != '1' || wrong)
		fail_msg("%s, %s: in the end \"%s\", \"%s\", %s", s->name, what, c, d,
			 wrong ? wrong : "");
	ctl_sync(w->t); /* the next sync removes groups whose removal failed */
	(void)ctl_work(w->t);
	if (s->bronze_goes && ctl_there(w->t, R "nri-rp.bronze"))
		fail_msg("%s, %s: group bronze is still there", s->name, what);
	ctl_changes_clear(w->t);
	ctl_sync(w->t);
	(void)ctl_work(w->t);
	assert_null(strstr(ctl_changes(w->t), "write ")); /* all settings are complete */
	assert_null(strstr(ctl_changes(w->t), "rmdir "));
}

static bool tells(const char *report, int32_t code)
{
	/* mkdir reports ENOSPC when no class is left. */
	return strstr(report, strerror(code)) ||
	       (code == ENOSPC && strstr(report, "the hardware has no class left"));
}

static void check_told(struct world *w, const struct scene *s, int32_t code)
{
	const char *of_c = ctl_report(w->t, w->c), *of_d = ctl_report(w->t, w->d),
		   *what = ctl_failed(w->t);
	const char *report = *of_c > '1' ? of_c : of_d;
	if (strncmp(what, "rmdir", 5) == 0) {
		assert_int_equal(*report, '1'); /* the failure affects no container */
		return;
	}
	/* there are not many of these: it is no failure */
	if (strstr(what, "mkdir") && strstr(what, "mon_groups") && code == ENOSPC) {
		if (!strstr(of_c, "not monitored") && !strstr(of_d, "not monitored"))
			fail_msg("%s: %s, but \"%s\", \"%s\"", s->name, what, of_c, of_d);
		return;
	}
	if (*report == '1') { /* a later step has repaired the failure */
		assert_null(what_is_wrong(w, s));
		return;
	}
	if (!tells(report, code) || !strstr(report, "; trying again"))
		fail_msg("%s: %s, but \"%s\", \"%s\"", s->name, what, of_c, of_d);
}

/* Returns false if there are fewer than n changes. */
static bool fail_nth(const void *scene, uint32_t n, int32_t code)
{
	const struct scene *s = scene;
	struct world w = {.t = ctl_host_new()};
	ctl_resctrl(w.t, false);
	assert_int_equal(ctl_open(w.t, &rp_module_1), 0);
	w.c = ctl_ctr(w.t, &(struct fake_ctr){.name = "c"}, "21,22");
	w.d = ctl_ctr(w.t, &(struct fake_ctr){.name = "d"}, "31");
	s->before(&w);
	ctl_fail_nth(w.t, n, code);
	s->act(&w);
	bool failed = ctl_failed(w.t)[0] != '\0';
	char what[512];
	(void)snprintf(what, sizeof what, "%s (%d)", ctl_failed(w.t), code);
	if (failed)
		check_told(&w, s, code);
	ctl_mend(w.t);
	check_end(&w, s, what);
	ctl_host_free(w.t);
	return failed;
}

static void test_each_change(void **state)
{
	for (unsigned i = 0; i < sizeof scenes / sizeof scenes[0]; i++)
		ctl_fail_each(fail_nth, &scenes[i], scenes[i].name, scenes[i].n_changes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_each_change)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
