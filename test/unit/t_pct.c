/* SPDX-License-Identifier: Apache-2.0 */
/* Priority core turbo: what classes make of Speed Select, room for high CPUs, capacity,
 * priorities. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "modules/lib/private/cpuclass.h"
#include "modules/lib/private/ctl_queue.h"
#include "modules/lib/private/pct.h"
#include "test/unit/fake_host.h"

#define ALL (RP_SST_CP | RP_SST_TF | RP_SST_BF)

/* Two packages of two punits of four CPUs; two threads a core. */
static const struct fake_punit four[] = {
	{.package = 0, .punit = 0, .cpus = "0-3", .supported = ALL, .buckets = {1, 2}, .bf = "0-1"},
	{.package = 0, .punit = 1, .cpus = "4-7", .supported = ALL, .buckets = {1, 2}},
	{.package = 1, .punit = 0, .cpus = "8-11", .supported = ALL, .buckets = {2, 3}},
	{.package = 1, .punit = 1, .cpus = "12-15", .supported = ALL, .bf = "12"},
};

struct rig {
	struct fake_host *f;
	struct modhost h;
	struct cpuclass_defs defs;
	struct cpuclass *c;
};

static const struct rp_ids none;

static void rig_init(struct rig *r, const struct fake_punit *punits, uint32_t n)
{
	memset(r, 0, sizeof *r);
	r->f = fake_host_new(
		&(struct fake_machine){.packages = 2, .nodes = 2, .cores = 2, .threads = 2});
	if (n)
		fake_speedselect(r->f, punits, n);
	assert_int_equal(modhost_init(&r->h, fake_rp_host(r->f), MODHOST_POLICY), 0);
	r->c = cpuclass_new(&r->h);
	cpuclass_retry(r->c, 7, NULL, NULL);
}

static void rig_fini(struct rig *r)
{
	cpuclass_free(r->c);
	fake_host_free(r->f);
}

static int32_t configure(struct rig *r, const char *classes, const char *allowed)
{
	struct rp_idset set;
	char text[1024];
	(void)snprintf(text, sizeof text, "{cpuClasses: %s}", classes);
	int32_t e = cpuclass_read(&r->h, fake_cfg(r->f, text), &r->defs);
	if (e)
		return e;
	assert_int_equal(rp_idset_parse(&set, allowed, RP_CPUS_MAX), 0);
	return cpuclass_configure(r->c, &r->defs, rp_ids_of(&set));
}

static void use(struct rig *r, const char *class, const char *cpus)
{
	struct rp_idset set;
	assert_int_equal(rp_idset_parse(&set, cpus, RP_CPUS_MAX), 0);
	cpuclass_use(r->c, class ? cpuclass_find(&r->defs, class) : CPUCLASS_NONE, rp_ids_of(&set));
}

static void commit(struct rig *r)
{
	cpuclass_commit(r->c);
	(void)fake_run_work(r->f);
}

static struct rp_idset set_of(const char *cpus)
{
	struct rp_idset set;
	assert_int_equal(rp_idset_parse(&set, cpus, RP_CPUS_MAX), 0);
	return set;
}

/* Checks that a search for n more CPUs of the class in `from` tries the CPUs `to` first. */
static void narrows(struct rig *r, const char *class, uint32_t n, const char *from,
		    const char *high, const char *to, int line)
{
	struct rp_idset left = set_of(from), in_use = set_of(high), all = set_of(from);
	struct pct_hints hints;
	char text[128];
	const struct pct *p = cpuclass_pct(r->c);
	pct_hint(p, class ? cpuclass_find(&r->defs, class) : CPUCLASS_NONE, n, rp_ids_of(&all),
		 rp_ids_of(&in_use), &hints);
	(void)pct_prefer(p, &hints, n, &left);
	(void)pct_avoid(&hints, n, &left);
	(void)rp_ids_format(rp_ids_of(&left), text, sizeof text);
	_assert_string_equal(text, to, __FILE__, line);
}
#define assert_narrows(r, class, n, from, high, to)                                                \
	narrows((r), (class), (n), (from), (high), (to), __LINE__)

#define HIGH_LOW                                                                                   \
	"[{name: hi, pctPriority: high, pctMinFreq: 2.5GHz, pctMaxFreq: 3.8GHz, "                  \
	"publishExtendedResource: true}, {name: lo, pctPriority: low, minFreq: 850MHz, maxFreq: "  \
	"2.1GHz}, {name: no}]"

/* ---- the platform ---------------------------------------------------------------------------- */

static void test_sequence(void **state)
{
	struct rig r;
	rig_init(&r, four, 2);
	fake_sst_put(r.f, "1", 2);
	assert_int_equal(configure(&r, HIGH_LOW, "0-7"), 0);
	assert_string_equal(fake_sst_log(r.f), "");
	use(&r, NULL, "0-7");
	use(&r, "hi", "4");
	cpuclass_commit(r.c);
	assert_string_equal(fake_sst_log(r.f), ""); /* the worker has not run yet */
	(void)fake_run_work(r.f);
	/* Each punit is reset, its TF enabled, its priority set; classes by number; CP last. Then
	 * the CPUs. */
	assert_string_equal(
		fake_sst_log(r.f),
		"0/0 clos 0 0-25500; 0/0 clos 1 0-25500; 0/0 clos 2 0-25500; 0/0 clos 3 0-25500; "
		"cpu 1 0; 0/0 tf 1; 0/0 cp 0 ordered; "
		"0/1 clos 0 0-25500; 0/1 clos 1 0-25500; 0/1 clos 2 0-25500; 0/1 clos 3 0-25500; "
		"0/1 tf 1; 0/1 cp 0 ordered; "
		"0/0 clos 0 2500-3800; 0/1 clos 0 2500-3800; 0/0 clos 3 800-2100; "
		"0/1 clos 3 800-2100; 0/0 cp 1 ordered; 0/1 cp 1 ordered; "
		"cpu 0 3; cpu 1 3; cpu 2 3; cpu 3 3; cpu 6 3; cpu 7 3; ");
	/* An idle thread does not pull its sibling down. */
	assert_string_equal(fake_sst_in(r.f, 0), "4-5");
	assert_int_equal(fake_sst_manages(r.f), 1);
	/* Settings that the hardware already has are not written, even after a restart. */
	fake_sst_log_clear(r.f);
	assert_int_equal(configure(&r, HIGH_LOW, "0-7"), 0);
	use(&r, NULL, "0-7");
	use(&r, "hi", "4");
	commit(&r);
	assert_string_equal(fake_sst_log(r.f), "");
	/* Unchanged CPUs are not written. */
	use(&r, "lo", "4");
	use(&r, "hi", "2-3");
	commit(&r);
	assert_string_equal(fake_sst_log(r.f), "cpu 2 0; cpu 3 0; cpu 4 3; cpu 5 3; ");
	rig_fini(&r);
}

static void test_stop(void **state)
{
	struct rig r;
	rig_init(&r, four, 1);
	cpuclass_stop(r.c); /* without any settings, the stop does nothing */
	assert_int_equal(configure(&r, HIGH_LOW, "0-7"), 0);
	use(&r, "hi", "0-1");
	use(&r, "lo", "2-7");
	commit(&r);
	fake_sst_log_clear(r.f);
	cpuclass_stop(r.c);
	(void)fake_run_work(r.f);
	assert_string_equal(fake_sst_log(r.f), "0/0 clos 0 0-25500; 0/0 clos 1 0-25500; 0/0 clos 2 "
					       "0-25500; 0/0 clos 3 0-25500; cpu 2 0; cpu 3 0; "
					       "0/0 tf 0; 0/0 cp 0 ordered; ");
	assert_int_equal(fake_sst_manages(r.f), 0);
	/* Once is enough. */
	fake_sst_log_clear(r.f);
	cpuclass_stop(r.c);
	(void)fake_run_work(r.f);
	assert_string_equal(fake_sst_log(r.f), "");
	rig_fini(&r);
}

/* Checks that a configuration without classes undoes the settings, and that one with other
 * classes does not. */
static void test_reconfigured(void **state)
{
	struct rig r;
	rig_init(&r, four, 1);
	assert_int_equal(configure(&r, "[{name: hi, pctPriority: high}]", "0-7"), 0);
	commit(&r);
	assert_string_equal(fake_sst_in(r.f, 0), "0-3"); /* no low class: all are in CLOS 0 */
	fake_sst_log_clear(r.f);
	assert_int_equal(configure(&r, "[{name: x}]", "0-7"), 0);
	assert_null(cpuclass_pct(r.c));
	commit(&r);
	assert_non_null(strstr(fake_sst_log(r.f), "0/0 tf 0; 0/0 cp 0"));
	assert_int_equal(fake_sst_manages(r.f), 0);
	fake_sst_log_clear(r.f);
	cpuclass_stop(r.c);
	commit(&r);
	assert_string_equal(fake_sst_log(r.f), "");
	rig_fini(&r);
}

/* Checks that an undo that is pending survives a configuration that arrives before the worker
 * starts, and the end of the daemon. */
static void test_pending(void **state)
{
	struct rig r;
	for (int stop = 0; stop < 2; stop++) {
		rig_init(&r, four, 1);
		assert_int_equal(configure(&r, HIGH_LOW, "0-7"), 0);
		commit(&r);
		fake_sst_log_clear(r.f);
		assert_int_equal(configure(&r, "[{name: x}]", "0-7"), 0);
		assert_int_equal(configure(&r, "[{name: y}]", "0-7"), 0);
		if (stop)
			cpuclass_stop(r.c);
		else
			cpuclass_commit(r.c);
		(void)fake_run_work(r.f);
		assert_non_null(strstr(fake_sst_log(r.f), "0/0 tf 0; 0/0 cp 0"));
		rig_fini(&r);
	}
	/* An undo is cancelled if the new configuration needs the settings again. */
	rig_init(&r, four, 1);
	assert_int_equal(configure(&r, HIGH_LOW, "0-7"), 0);
	commit(&r);
	fake_sst_log_clear(r.f);
	assert_int_equal(configure(&r, "[{name: x}]", "0-7"), 0);
	assert_int_equal(configure(&r, HIGH_LOW, "0-7"), 0);
	commit(&r);
	assert_string_equal(fake_sst_log(r.f), "");
	rig_fini(&r);
}

/* Checks that settings are not undone if another program has taken over Speed Select. */
static void test_taken_over(void **state)
{
	struct rig r;
	rig_init(&r, four, 1);
	assert_int_equal(configure(&r, HIGH_LOW, "0-7"), 0);
	commit(&r);
	assert_int_equal(r.h.speedselect->manage(r.h.ctx, 0), 0);
	fake_sst_log_clear(r.f);
	cpuclass_stop(r.c);
	(void)fake_run_work(r.f);
	assert_string_equal(fake_sst_log(r.f), "");
	rig_fini(&r);
}

/* Checks that removing the classes does not undo the settings of another program that has taken
 * over. */
static void test_taken_over_then_reconfigured(void **state)
{
	struct rig r;
	rig_init(&r, four, 1);
	assert_int_equal(configure(&r, HIGH_LOW, "0-7"), 0);
	commit(&r);
	assert_int_equal(r.h.speedselect->manage(r.h.ctx, 0), 0);
	fake_sst_log_clear(r.f);
	assert_int_equal(configure(&r, "[{name: x}]", "0-7"), 0);
	commit(&r);
	assert_string_equal(fake_sst_log(r.f), "");
	assert_int_equal(fake_sst_manages(r.f), 0);
	rig_fini(&r);
}

/* ---- attempts -------------------------------------------------------------------------------- */

static unsigned count(const char *text, const char *part)
{
	unsigned n = 0;
	for (; (text = strstr(text, part)); text++)
		n++;
	return n;
}

static void tick(struct rig *r)
{
	cpuclass_timer(r->c, 7);
	(void)fake_run_work(r->f);
}

/* Checks that failing settings are retried at growing intervals, and not with each container. */
static void test_backed_off(void **state)
{
	struct rig r;
	rig_init(&r, four, 1);
	fake_sst_fail(r.f, "tf", 5);
	assert_int_equal(configure(&r, HIGH_LOW, "0-7"), 0);
	commit(&r);
	/* An attempt begins with the reset of four classes. */
	assert_int_equal(count(fake_sst_log(r.f), "clos"), 4);
	int64_t last = fake_timer(r.f, 7);
	assert_int_equal(last, CTL_AGAIN_FIRST_MS);
	for (unsigned i = 0; i < 5; i++) {
		use(&r, i & 1 ? "lo" : "hi", "0-1");
		commit(&r);
		/* the CPUs are put where they belong all the same */
		assert_string_equal(fake_sst_in(r.f, i & 1 ? 3 : 0), i & 1 ? "0-3" : "0-1");
	}
	assert_int_equal(count(fake_sst_log(r.f), "clos"), 4);
	assert_true(cpuclass_platform_fails(r.c));
	for (unsigned i = 2; i < CTL_TRIES_MAX; i++) {
		tick(&r);
		assert_int_equal(count(fake_sst_log(r.f), "clos"), 4 * i);
		int64_t next = fake_timer(r.f, 7);
		assert_true(next == (2 * last < CTL_AGAIN_LAST_MS ? 2 * last : CTL_AGAIN_LAST_MS));
		last = next;
	}
	tick(&r);
	assert_int_equal(count(fake_sst_log(r.f), "clos"), 4 * CTL_TRIES_MAX);
	assert_true(fake_timer(r.f, 7) <= 0);
	assert_non_null(strstr(cpuclass_why(r.c), "; given up"));
	/* Given up until the next configuration. */
	use(&r, "hi", "2-3");
	commit(&r);
	assert_int_equal(count(fake_sst_log(r.f), "clos"), 4 * CTL_TRIES_MAX);
	fake_sst_fail(r.f, NULL, 0);
	assert_int_equal(configure(&r, HIGH_LOW, "0-7"), 0);
	use(&r, "hi", "2-3");
	commit(&r);
	assert_false(cpuclass_platform_fails(r.c));
	assert_non_null(strstr(fake_sst_log(r.f), "cp 1 ordered"));
	rig_fini(&r);
}

/* Checks that the next change is the next attempt if there is no timer. */
static void test_without_clock(void **state)
{
	struct rig r;
	rig_init(&r, four, 1);
	cpuclass_retry(r.c, 0, NULL, NULL);
	fake_sst_fail(r.f, "tf", 5);
	assert_int_equal(configure(&r, HIGH_LOW, "0-7"), 0);
	commit(&r);
	assert_true(cpuclass_platform_fails(r.c));
	fake_sst_fail(r.f, NULL, 0);
	use(&r, "hi", "0-1");
	commit(&r);
	assert_false(cpuclass_platform_fails(r.c));
	rig_fini(&r);
}

static void set_up_and_drop(struct rig *r, const char *fails, int32_t code)
{
	rig_init(r, four, 1);
	assert_int_equal(configure(r, HIGH_LOW, "0-7"), 0);
	commit(r);
	fake_sst_fail(r->f, fails, code);
	fake_sst_log_clear(r->f);
	fake_log_clear(r->f);
	assert_int_equal(configure(r, "[{name: x}]", "0-7"), 0);
	commit(r);
}

/* Checks that a later attempt completes the undo, whichever step has failed. The module manages
 * Speed Select until then. */
static void test_undo_tried_again(void **state)
{
	static const char *const steps[] = {"clos", "tf", "cp"};
	struct rig r;
	for (unsigned i = 0; i < 3; i++) {
		set_up_and_drop(&r, steps[i], 5);
		assert_int_equal(fake_timer(r.f, 7), CTL_AGAIN_FIRST_MS);
		assert_int_equal(fake_sst_manages(r.f), 1);
		assert_non_null(strstr(fake_log(r.f), "Speed Select, package 0, punit 0"));
		/* not with each change */
		fake_sst_log_clear(r.f);
		use(&r, "x", "0-1");
		commit(&r);
		assert_string_equal(fake_sst_log(r.f), "");
		tick(&r);
		fake_sst_fail(r.f, NULL, 0);
		fake_sst_log_clear(r.f);
		tick(&r);
		assert_int_equal(count(fake_sst_log(r.f), "clos"), 4);
		assert_int_equal(count(fake_sst_log(r.f), " 0-25500; "), 4);
		assert_non_null(strstr(fake_sst_log(r.f), "; 0/0 tf 0; 0/0 cp 0 ordered; "));
		assert_int_equal(fake_sst_manages(r.f), 0);
		assert_string_equal(fake_sst_in(r.f, 0), "0-3");
		assert_true(fake_timer(r.f, 7) <= 0);
		/* Done is done. */
		fake_sst_log_clear(r.f);
		tick(&r);
		cpuclass_stop(r.c);
		(void)fake_run_work(r.f);
		assert_string_equal(fake_sst_log(r.f), "");
		rig_fini(&r);
	}
}

/* Checks that CPUs of other classes are assigned again after each attempt, which moves all CPUs
 * to CLOS 0. */
static void test_undo_beside_others(void **state)
{
	struct rig r;
	rig_init(&r, four, 1);
	assert_int_equal(configure(&r, HIGH_LOW, "0-7"), 0);
	commit(&r);
	fake_sst_fail(r.f, "cp", 5);
	assert_int_equal(configure(&r, "[{name: a, sstClosID: 1}]", "0-7"), 0);
	use(&r, "a", "2-3");
	commit(&r);
	assert_string_equal(fake_sst_in(r.f, 1), "2-3");
	fake_sst_fail(r.f, NULL, 0);
	tick(&r);
	assert_non_null(strstr(fake_sst_log(r.f), "0/0 cp 0 ordered"));
	assert_string_equal(fake_sst_in(r.f, 1), "2-3");
	assert_string_equal(fake_sst_in(r.f, 0), "0-1");
	rig_fini(&r);
}

#define STAYS                                                                                      \
	"Speed Select keeps its configuration; to reset it: intel-speed-select turbo-freq disable"

/* Checks that an undo with a permanent error is left to the operator, at once or after the last
 * retry. A failure at the stop of the daemon is left too. */
static void test_undo_given_up(void **state)
{
	struct rig r;
	set_up_and_drop(&r, "tf", 1);
	assert_non_null(strstr(fake_log(r.f), STAYS));
	assert_int_equal(fake_timer(r.f, 7), -1);
	assert_int_equal(fake_sst_manages(r.f), 0);
	rig_fini(&r);
	set_up_and_drop(&r, "tf", 5);
	for (unsigned i = 1; i < CTL_TRIES_MAX; i++) {
		assert_null(strstr(fake_log(r.f), STAYS));
		assert_true(fake_timer(r.f, 7) > 0);
		tick(&r);
	}
	assert_non_null(strstr(fake_log(r.f), STAYS));
	assert_true(fake_timer(r.f, 7) <= 0);
	assert_int_equal(fake_sst_manages(r.f), 0);
	rig_fini(&r);
	/* The stop is the last attempt. */
	set_up_and_drop(&r, "tf", 5);
	fake_log_clear(r.f);
	cpuclass_stop(r.c);
	(void)fake_run_work(r.f);
	assert_non_null(strstr(fake_log(r.f), STAYS));
	assert_int_equal(fake_sst_manages(r.f), 0);
	rig_fini(&r);
	set_up_and_drop(&r, "tf", 5);
	fake_sst_fail(r.f, NULL, 0);
	fake_sst_log_clear(r.f);
	fake_log_clear(r.f);
	cpuclass_stop(r.c);
	(void)fake_run_work(r.f);
	assert_non_null(strstr(fake_sst_log(r.f), "0/0 tf 0; 0/0 cp 0"));
	assert_null(strstr(fake_log(r.f), STAYS));
	rig_fini(&r);
}

/* Classes that return before the next attempt find the settings that they need, and the undo is
 * dropped. Settings that another program has taken over are not undone either. */
static void test_undo_overtaken(void **state)
{
	struct rig r;
	set_up_and_drop(&r, "tf", 5);
	fake_sst_fail(r.f, NULL, 0);
	fake_sst_log_clear(r.f);
	assert_int_equal(configure(&r, HIGH_LOW, "0-7"), 0);
	use(&r, "lo", "0-7");
	commit(&r);
	assert_non_null(strstr(fake_sst_log(r.f), "0/0 cp 1 ordered"));
	fake_sst_log_clear(r.f);
	tick(&r);
	assert_string_equal(fake_sst_log(r.f), "");
	assert_int_equal(fake_sst_manages(r.f), 1);
	rig_fini(&r);
	set_up_and_drop(&r, "tf", 5);
	assert_int_equal(r.h.speedselect->manage(r.h.ctx, 0), 0);
	fake_sst_fail(r.f, NULL, 0);
	fake_sst_log_clear(r.f);
	tick(&r);
	assert_string_equal(fake_sst_log(r.f), "");
	rig_fini(&r);
}

/* Checks that the result of an obsolete undo is ignored if the classes change again while the
 * worker runs it. */
static void test_undo_overtaken_at_work(void **state)
{
	struct rig r;
	rig_init(&r, four, 1);
	assert_int_equal(configure(&r, HIGH_LOW, "0-7"), 0);
	commit(&r);
	fake_sst_fail(r.f, "tf", 5);
	assert_int_equal(configure(&r, "[{name: x}]", "0-7"), 0);
	cpuclass_commit(r.c);
	assert_int_equal(configure(&r, HIGH_LOW, "0-7"), 0);
	(void)fake_run_work(r.f); /* the undo fails, which has no effect any more */
	assert_null(strstr(fake_log(r.f), STAYS));
	fake_sst_fail(r.f, NULL, 0);
	use(&r, "lo", "0-7");
	commit(&r);
	assert_false(cpuclass_platform_fails(r.c));
	assert_string_equal(fake_sst_in(r.f, 3), "0-3");
	assert_int_equal(fake_sst_manages(r.f), 1);
	fake_sst_log_clear(r.f);
	tick(&r);
	assert_string_equal(fake_sst_log(r.f), "");
	rig_fini(&r);
}

static void test_frequencies(void **state)
{
	struct rig r;
	rig_init(&r, four, 1);
	fake_file(r.f, "/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq", "4200000\n");
	fake_file(r.f, "/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_min_freq", "850000\n");
	fake_file(r.f, "/sys/devices/system/cpu/cpu0/cpufreq/base_frequency", "2300000\n");
	assert_int_equal(
		configure(&r,
			  "[{name: hi, pctPriority: high, maxFreq: 3GHz, pctMinFreq: base, "
			  "pctMaxFreq: turbo}, {name: lo, pctPriority: low, minFreq: 30GHz}]",
			  "0-3"),
		0);
	commit(&r);
	assert_non_null(strstr(fake_sst_log(r.f), "0/0 clos 0 2300-4200; "));
	assert_non_null(strstr(fake_sst_log(r.f), "0/0 clos 3 25500-25500; "));
	rig_fini(&r);
}

static void test_refused(void **state)
{
	struct rig r;
	rig_init(&r, four, 1);
	fake_sst_fail(r.f, "tf", 5);
	assert_int_equal(configure(&r, HIGH_LOW, "0-7"), 0);
	use(&r, "lo", "0-7");
	fake_log_clear(r.f);
	commit(&r);
	assert_non_null(strstr(fake_log(r.f), "package 0, punit 0: enabling SST-TF"));
	assert_true(cpuclass_platform_fails(r.c));
	assert_non_null(strstr(cpuclass_why(r.c), "trying again"));
	assert_null(strstr(fake_sst_log(r.f), "cp 1"));
	assert_int_equal(fake_timer(r.f, 7), CTL_AGAIN_FIRST_MS);
	/* The retry timer expires and the setup succeeds. The CPUs are assigned again. */
	fake_sst_fail(r.f, NULL, 0);
	cpuclass_timer(r.c, 7);
	(void)fake_run_work(r.f);
	assert_false(cpuclass_platform_fails(r.c));
	assert_string_equal(cpuclass_why(r.c), "");
	assert_non_null(strstr(fake_sst_log(r.f), "cp 1 ordered"));
	assert_string_equal(fake_sst_in(r.f, 3), "0-3");
	/* A CPU. */
	fake_sst_fail(r.f, "assoc", 5);
	use(&r, "hi", "0-1");
	fake_log_clear(r.f);
	commit(&r);
	assert_non_null(strstr(fake_log(r.f), "CPU 0: assigning it to CLOS 0"));
	assert_int_equal(cpuclass_n_failing(r.c), 2);
	assert_true(fake_timer(r.f, 7) > 0);
	fake_sst_fail(r.f, NULL, 0);
	cpuclass_timer(r.c, 7);
	(void)fake_run_work(r.f);
	assert_int_equal(cpuclass_n_failing(r.c), 0);
	assert_string_equal(fake_sst_in(r.f, 0), "0-1");
	rig_fini(&r);
}

/* Settings that the firmware has locked are not tried again. */
static void test_locked(void **state)
{
	struct rig r;
	rig_init(&r, four, 1);
	fake_sst_fail(r.f, "clos", 1);
	assert_int_equal(configure(&r, HIGH_LOW, "0-7"), 0);
	commit(&r);
	assert_true(cpuclass_platform_fails(r.c));
	assert_int_equal(fake_timer(r.f, 7), -1);
	cpuclass_commit(r.c);
	assert_int_equal(fake_run_work(r.f), 0);
	rig_fini(&r);
}

/* ---- associated only ------------------------------------------------------------------------- */

#define CLOSES                                                                                     \
	"[{name: a, sstClosID: 1}, {name: b, sstClosID: 2, publishExtendedResource: true}, "       \
	"{name: c}]"

static void test_associated(void **state)
{
	struct rig r;
	struct fake_punit on[2] = {four[0], four[1]};
	rig_init(&r, on, 2);
	fake_log_clear(r.f);
	assert_int_equal(configure(&r, CLOSES, "0-7"), 0);
	assert_non_null(strstr(fake_log(r.f), "intel-speed-select core-power enable"));
	use(&r, "c", "0-7");
	commit(&r);
	assert_string_equal(fake_sst_log(r.f), "");
	use(&r, "a", "2-3");
	commit(&r);
	assert_string_equal(fake_sst_log(r.f), "cpu 2 1; cpu 3 1; ");
	/* The CPUs keep their CLOS when they move to a class without a CLOS, and at the stop. */
	use(&r, "c", "2-3");
	commit(&r);
	cpuclass_stop(r.c);
	(void)fake_run_work(r.f);
	assert_string_equal(fake_sst_log(r.f), "cpu 2 1; cpu 3 1; ");
	assert_int_equal(fake_sst_manages(r.f), 0);
	rig_fini(&r);
}

static void test_highest(void **state)
{
	struct rig r;
	struct fake_punit on[2] = {four[0], four[1]};
	on[0].enabled = RP_SST_CP | RP_SST_TF;
	on[1].enabled = RP_SST_CP;
	rig_init(&r, on, 2);
	fake_log_clear(r.f);
	assert_int_equal(configure(&r, CLOSES, "0-7"), 0);
	assert_non_null(strstr(fake_log(r.f), "punit 1: SST-TF is off"));
	assert_null(strstr(fake_log(r.f), "punit 0"));
	/* No CLOS has been programmed with frequencies. */
	assert_false(pct_has_high(cpuclass_pct(r.c)));
	fake_sst_program(r.f, 2, 0, 3000);
	assert_int_equal(configure(&r, CLOSES, "0-7"), 0);
	assert_true(pct_is_high(cpuclass_pct(r.c), 0)); /* CLOS 1: no limit */
	assert_false(pct_is_high(cpuclass_pct(r.c), 1));
	fake_sst_program(r.f, 1, 0, 2000);
	assert_int_equal(configure(&r, CLOSES, "0-7"), 0);
	assert_false(pct_is_high(cpuclass_pct(r.c), 0));
	assert_true(pct_is_high(cpuclass_pct(r.c), 1));
	assert_false(pct_is_high(cpuclass_pct(r.c), 2));
	assert_false(pct_is_high(cpuclass_pct(r.c), CPUCLASS_NONE));
	fake_sst_program(r.f, 1, 0, 3000);
	assert_int_equal(configure(&r, CLOSES, "0-7"), 0);
	assert_true(pct_is_high(cpuclass_pct(r.c), 0)); /* a tie */
	/* High-priority CPUs need a punit with SST-TF. */
	assert_int_equal(pct_capacity(cpuclass_pct(r.c), 0, none), 1);
	rig_fini(&r);
}

/* ---- hints, capacity ------------------------------------------------------------------------- */

static void test_hints(void **state)
{
	struct rig r;
	rig_init(&r, four, 4);
	assert_int_equal(configure(&r, HIGH_LOW, "0-15"), 0);
	use(&r, "lo", "0-15");
	/* Room: 2, 2, 3, and 1 by the CPU of BF. */
	assert_narrows(&r, "hi", 1, "0-15", "", "8-11");
	assert_narrows(&r, "hi", 2, "0-15", "", "8-11");
	assert_narrows(&r, "hi", 2, "0-15", "8-9", "0-3");
	assert_narrows(&r, "hi", 2, "1,4-9,12-15", "8-9", "4-7"); /* two free ones are needed */
	assert_narrows(&r, "hi", 1, "0-2,4-15", "8-9", "4-7"); /* as much room, more free CPUs */
	assert_narrows(&r, "hi", 1, "0-7", "", "0-3"); /* both the same: the lower one */
	/* No punit: a package, that has 4 together; never across. */
	assert_narrows(&r, "hi", 4, "0-15", "", "0-7");
	assert_narrows(&r, "hi", 4, "0-15", "0", "8-15");
	assert_narrows(&r, "hi", 5, "0-15", "", "0-15");
	assert_narrows(&r, "hi", 4, "0-15", "0,8", "0-15");
	/* Others keep away from punits with high CPUs, where they can. */
	assert_narrows(&r, "lo", 2, "0-15", "", "0-15");
	assert_narrows(&r, "lo", 2, "0-15", "8", "0-7,12-15");
	assert_narrows(&r, "no", 2, "0-15", "0,4", "8-15");
	assert_narrows(&r, NULL, 2, "0-15", "0,4", "8-15");
	assert_narrows(&r, "no", 9, "0-15", "0,4", "0-15");
	assert_narrows(&r, "hi", 0, "0-15", "", "0-15");
	rig_fini(&r);
}

/* CPUs that are in the CLOS already. */
static void test_own_clos(void **state)
{
	struct rig r;
	struct fake_punit on[2] = {four[0], four[1]};
	rig_init(&r, on, 2);
	fake_sst_put(r.f, "2-3,7", 2);
	assert_int_equal(configure(&r, CLOSES, "0-7"), 0);
	assert_narrows(&r, "b", 2, "0-7", "", "2-3,7");
	assert_narrows(&r, "b", 3, "0-2,4-7", "", "0-2,4-7");
	assert_narrows(&r, "a", 1, "0-7", "", "0-7");
	use(&r, "a", "0");
	assert_narrows(&r, "a", 1, "0-7", "", "0");
	use(&r, "c", "0");
	assert_narrows(&r, "a", 1, "0-7", "", "0"); /* CPU 0 keeps its CLOS */
	assert_narrows(&r, "c", 1, "0-7", "", "0-7");
	rig_fini(&r);
}

static void test_capacity(void **state)
{
	struct rig r;
	rig_init(&r, four, 4);
	assert_int_equal(configure(&r, HIGH_LOW, "2-14"), 0);
	struct rp_idset held = set_of("2,8-10");
	const struct pct *p = cpuclass_pct(r.c);
	/* 1 + 1 + 2, and 0 as a punit without TF guarantees nothing. */
	assert_int_equal(pct_capacity(p, 0, none), 4);
	assert_int_equal(pct_capacity(p, 0, rp_ids_of(&held)), 3);
	assert_int_equal(pct_capacity(p, 1, none), 13);
	assert_int_equal(pct_capacity(p, 1, rp_ids_of(&held)), 9);
	rig_fini(&r);
}

/* ---- without Speed Select -------------------------------------------------------------------- */

static void test_without(void **state)
{
	struct rig r;
	struct pct_hints hints;
	struct rp_idset from = set_of("0-3");
	rig_init(&r, NULL, 0);
	fake_log_clear(r.f);
	assert_int_equal(configure(&r, HIGH_LOW, "0-15"), 0);
	assert_non_null(strstr(fake_log(r.f), "no effect without Speed Select: this one has none"));
	assert_null(cpuclass_pct(r.c));
	use(&r, "hi", "0-3");
	commit(&r);
	assert_string_equal(fake_sst_log(r.f), "");
	pct_hint(NULL, 0, 1, none, none, &hints);
	assert_false(pct_prefer(NULL, &hints, 1, &from));
	assert_false(pct_avoid(&hints, 1, &from));
	assert_false(pct_is_high(NULL, 0));
	assert_false(pct_has_high(NULL));
	/* An older host has no Speed Select service; the punit below supports SST-BF alone. */
	fake_hide_service(r.f, RP_HOST_SPEEDSELECT_1);
	assert_int_equal(modhost_init(&r.h, fake_rp_host(r.f), MODHOST_POLICY), 0);
	assert_non_null(strstr(pct_missing(&r.h), "the host"));
	pct_priorities(&r.h, false, NULL);
	rig_fini(&r);
	static const struct fake_punit old = {.cpus = "0-3", .supported = RP_SST_BF};
	rig_init(&r, &old, 1);
	assert_non_null(strstr(pct_missing(&r.h), "SST-CP"));
	rig_fini(&r);
}

static void test_checks(void **state)
{
	static const char *const bad[] = {
		"[{name: x, pctPriority: low, pctMinFreq: 3GHz, pctMaxFreq: 2GHz}]",
		/* minFreq and maxFreq are the defaults of pctMinFreq and pctMaxFreq */
		"[{name: x, pctPriority: low, pctMinFreq: 3GHz, maxFreq: 2GHz}]",
		"[{name: x, pctPriority: low, minFreq: 3GHz, pctMaxFreq: 2GHz}]",
	};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct rig r;
		rig_init(&r, four, 4);
		assert_int_equal(configure(&r, bad[i], "0-7"), -RP_EINVAL);
		assert_non_null(strstr(fake_error(r.f), "pctMinFreq is higher"));
		rig_fini(&r);
	}
}

/* ---- priorities ------------------------------------------------------------------------------ */

static void prios(const struct fake_punit *punits, uint32_t n, bool managed, const char *high,
		  const char *normal, const char *low, const char *in_1, const char *in_2, int line)
{
	static const enum cpualloc_prio order[] = {CPUALLOC_HIGH, CPUALLOC_NORMAL, CPUALLOC_LOW};
	const char *const expected[] = {high, normal, low};
	struct rig r;
	struct cpualloc *a;
	char text[64];
	rig_init(&r, punits, n);
	fake_sst_put(r.f, in_1, 1);
	fake_sst_put(r.f, in_2, 2);
	assert_int_equal(cpualloc_new(r.h.topology, r.h.ctx, &a), 0);
	pct_priorities(&r.h, managed, a);
	for (int i = 0; i < 3; i++) {
		(void)rp_ids_format(cpualloc_prio_cpus(a, order[i]), text, sizeof text);
		_assert_string_equal(text, expected[i], __FILE__, line);
	}
	cpualloc_free(a);
	rig_fini(&r);
}
#define assert_prios(...) prios(__VA_ARGS__, __LINE__)

static void test_priorities(void **state)
{
	struct fake_punit on[4];
	memcpy(on, four, sizeof on);
	/* Supported is not in use. */
	assert_prios(on, 4, false, "", "0-15", "", "4-5", "6-7");
	/* TF: the first two classes are high. */
	on[0].enabled = on[1].enabled = RP_SST_TF | RP_SST_CP;
	assert_prios(on, 4, false, "0-5", "8-15", "6-7", "4-5", "6-7");
	assert_prios(on, 4, true, "", "0-15", "", "4-5", "6-7");
	/* CP in order: the first one in use is high, the last one low, one alone normal. */
	on[0].enabled = on[1].enabled = RP_SST_CP;
	on[0].priority = on[1].priority = RP_SST_ORDERED;
	assert_prios(on, 4, false, "4-5", "0-3,8-15", "6-7", "4-5", "6-7");
	assert_prios(on, 4, false, "4", "0-3,5-6,8-15", "7", "5-6", "7");
	/* By weight. */
	on[1].priority = RP_SST_PROPORTIONAL;
	on[1].weights[1] = 9;
	on[1].weights[2] = 3;
	assert_prios(on, 4, false, "6-7", "0-3,8-15", "4-5", "4-5", "6-7");
	on[1].weights[2] = 9;
	assert_prios(on, 4, false, "", "0-15", "", "4-5", "6-7");
	/* BF, where no classes are in use in the package. */
	on[0].enabled = RP_SST_BF;
	on[3].enabled = RP_SST_BF;
	assert_prios(on, 4, false, "12", "0-11,13-15", "", "", "");
	on[1].enabled = 0;
	assert_prios(on, 4, false, "0-1,12", "2-11,13-15", "", "", "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sequence),
		cmocka_unit_test(test_stop),
		cmocka_unit_test(test_reconfigured),
		cmocka_unit_test(test_taken_over),
		cmocka_unit_test(test_pending),
		cmocka_unit_test(test_taken_over_then_reconfigured),
		cmocka_unit_test(test_backed_off),
		cmocka_unit_test(test_without_clock),
		cmocka_unit_test(test_undo_tried_again),
		cmocka_unit_test(test_undo_beside_others),
		cmocka_unit_test(test_undo_given_up),
		cmocka_unit_test(test_undo_overtaken),
		cmocka_unit_test(test_undo_overtaken_at_work),
		cmocka_unit_test(test_frequencies),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_locked),
		cmocka_unit_test(test_associated),
		cmocka_unit_test(test_highest),
		cmocka_unit_test(test_hints),
		cmocka_unit_test(test_own_clos),
		cmocka_unit_test(test_capacity),
		cmocka_unit_test(test_without),
		cmocka_unit_test(test_checks),
		cmocka_unit_test(test_priorities),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
