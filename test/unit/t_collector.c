/* SPDX-License-Identifier: Apache-2.0 */
/* The collector over a made-up cgroup tree: rounds, figures, who lacks what, and what the policy
 * does about it within its budget. */
#include "core/nri-rpd/pipeline/reload/reload.h"
#include "core/nri-rpd/pipeline/observe/observe.h"
#include "core/nri-rpd/pipeline/pipeline.h"
#include "core/nri-rpd/pipeline/request/request.h"
#include "test/unit/t_world.h"

#include "core/nri-rpd/cache/usage.h"
#include "core/nri-rpd/metrics/collect.h"
#include "core/nri-rpd/metrics/collector.h"
#include "core/nri-rpd/metrics/metrics.h"
#include "core/lib/util/clock.h"
#include "core/nri-rpd/metrics/server.h"
#include "core/nri-rpd/pipeline/observe/status.h"
#include "core/nri-rpd/pipeline/request/rebalance.h"
#include "core/nri-rpd/pipeline/request/updates.h"

#define NEVER "metrics: {collectInterval: 24h"
#define GROUP "sys/fs/cgroup/kubepods/podx/"

static struct collector *collector;

static struct usage_stats *stats(struct world *w)
{
	return pipeline_usage_stats(w->p);
}

static void start(struct world *w, const char *conf)
{
	world_configure(w, conf);
	world_must_start(w);
	pipeline_runtime(w->p)->synchronized = true;
	tree_put(&w->tree, "sys/fs/cgroup/cgroup.controllers", "cpu memory io\n");
	collector = collector_new(w->loop, w->p, &w->err);
	assert_non_null(collector);
	collector_configure(collector, conf_core(pipeline_conf(w->p)));
}

static void finish(void)
{
	collector = collector_free(collector);
}

static void run(struct world *w, const char *name, const char *cpus, const char *key,
		const char *script)
{
	char path[64], alloc[32];
	(void)snprintf(path, sizeof path, "/kubepods/podx/%s", name);
	(void)snprintf(alloc, sizeof alloc, "cpus %s", cpus);
	box_run(w, &(struct box){.name = name,
				 .alloc = alloc,
				 .cgroups_path = path,
				 .extra_key = key,
				 .extra_value = script});
}

static void put_cpu(struct world *w, const char *name, unsigned us, unsigned periods,
		    unsigned throttled)
{
	char path[128];
	(void)snprintf(path, sizeof path, GROUP "%s/cpu.stat", name);
	tree_put(&w->tree, path, "usage_usec %u\nnr_periods %u\nnr_throttled %u\n", us, periods,
		 throttled);
}

static bool has_rounds(struct world *w, void *n)
{
	return stats(w)->rounds >= *(uint64_t *)n;
}

/* Runs one round, at least a millisecond after the previous one. */
static void one_round(struct world *w)
{
	uint64_t n = stats(w)->rounds + 1, now = clock_ms();
	while (clock_ms() == now)
		;
	assert_true(collector_round(collector));
	world_until(w, has_rounds, &n);
}

static char *render(struct world *w)
{
	struct buf out = BUF_INIT;
	assert_int_equal(metrics_render(w->p, &out), 0);
	char *text = strdup(buf_text(&out));
	buf_fini(&out);
	assert_non_null(text);
	return text;
}

static void shows(struct world *w, const char *part, bool wanted)
{
	char *text = render(w);
	if ((strstr(text, part) != NULL) != wanted)
		fail_msg("%s %s in: %s", part, wanted ? "is not" : "is", text);
	free(text);
}

/* ---- rounds ---------------------------------------------------------------------------------- */

static void test_off(void **state)
{
	struct world *w = *state;
	start(w, PUPPET);
	run(w, "a", "1", NULL, NULL);
	put_cpu(w, "a", 1, 0, 0);
	assert_false(stats(w)->on);
	assert_int_equal(stats(w)->rounds + stats(w)->files, 0);
	assert_null(box_ctr(w, "a")->usage);
	shows(w, "nri_rp_container_", false);
	shows(w, "nri_rp_collect_", false);
	finish();
}

static void test_figures(void **state)
{
	struct world *w = *state;
	start(w, PUPPET NEVER "}\n");
	assert_true(stats(w)->on);
	assert_false(collector_round(collector)); /* there is no container */
	run(w, "a", "1", NULL, NULL);
	run(w, "b", "2", NULL, NULL);
	put_cpu(w, "a", 2000000, 100, 10);
	tree_put(&w->tree, GROUP "a/memory.current", "4096\n");
	one_round(w);
	assert_int_equal(stats(w)->n_ctrs, 2);
	assert_int_equal(stats(w)->files, 2);
	assert_int_equal(stats(w)->missing, 1);
	assert_null(box_ctr(w, "b")->usage);
	shows(w,
	      "nri_rp_container_cpu_usage_seconds_total{namespace=\"default\",pod=\"a\",container="
	      "\"c\"} 2\n",
	      true);
	shows(w, "nri_rp_container_memory_bytes{namespace=\"default\",pod=\"a\"", true);
	shows(w, "nri_rp_container_io_read_bytes_total{", false);
	shows(w, "nri_rp_collect_containers 2\n", true);
	shows(w, "nri_rp_collect_rounds_total 1\n", true);
	shows(w, "nri_rp_collect_missing_total 1\n", true);
	put_cpu(w, "b", 5000000, 0, 0);
	one_round(w);
	assert_int_equal(stats(w)->missing, 1);
	shows(w, "pod=\"b\",container=\"c\"} 5\n", true);
	finish();
}

/* The files that are read follow the number of containers, and nothing else. */
static void test_cost(void **state)
{
	struct world *w = *state;
	start(w, PUPPET NEVER "}\n");
	for (unsigned i = 0; i < 8; i++) {
		const char name[] = {(char)('a' + i), '\0'};
		run(w, name, "1", NULL, NULL);
		put_cpu(w, name, 1, 0, 0);
		uint64_t before = stats(w)->files;
		one_round(w);
		assert_int_equal(stats(w)->files - before, i + 1);
		assert_int_equal(stats(w)->n_ctrs, i + 1);
	}
	finish();
}

static void test_one_at_a_time(void **state)
{
	struct world *w = *state;
	uint64_t n = 1;
	start(w, PUPPET NEVER "}\n");
	run(w, "a", "1", NULL, NULL);
	put_cpu(w, "a", 1, 0, 0);
	assert_true(collector_round(collector));
	assert_false(collector_round(collector));
	assert_int_equal(stats(w)->skipped, 1);
	world_until(w, has_rounds, &n);
	/* a container that ends meanwhile, and the collector's own end */
	assert_true(collector_round(collector));
	finish();
	assert_int_equal(stats(w)->rounds, 1);
}

static void test_switched_off(void **state)
{
	struct world *w = *state;
	struct conf_core core = {0};
	start(w, PUPPET NEVER "}\n");
	run(w, "a", "1", NULL, NULL);
	put_cpu(w, "a", 1, 0, 0);
	one_round(w);
	assert_non_null(box_ctr(w, "a")->usage);
	collector_configure(collector, &core);
	assert_null(box_ctr(w, "a")->usage);
	assert_false(stats(w)->on);
	shows(w, "nri_rp_c", true); /* nri_rp_containers, say */
	shows(w, "nri_rp_container_", false);
	finish();
}

static void test_by_the_clock(void **state)
{
	struct world *w = *state;
	uint64_t n = 2;
	start(w, PUPPET "metrics: {collectInterval: 1s}\n");
	run(w, "a", "1", NULL, NULL);
	put_cpu(w, "a", 1, 0, 0);
	world_until(w, has_rounds, &n);
	finish();
}

/* ---- pressure on containers ------------------------------------------------------------------ */

static void feed(struct usage *u, enum figure part, uint64_t v, enum figure whole, uint64_t total)
{
	uint64_t at = u->now[part].at_ms + 1000;
	usage_put(u, part, v, at);
	if (whole != part)
		usage_put(u, whole, total, at);
}

static void test_judge(void **state)
{
	const uint32_t limits[4] = {20, 0, 10, 50};
	struct usage u = {0};
	uint64_t n = 0, part = 0;
	assert_int_equal(collector_judge(&u, limits), 0); /* no figures yet */
	/* a quarter of all periods: the first reading says nothing, the third that does tells */
	for (unsigned i = 0; i < 4; i++) {
		feed(&u, FIG_THROTTLED_PERIODS, part += 25, FIG_PERIODS, n += 100);
		u.pressure = collector_judge(&u, limits);
		assert_int_equal(u.pressure, i < 3 ? 0 : RP_PRESSURE_THROTTLED);
	}
	/* between half of the limit and the limit nothing changes; one good reading among bad ones
	 * neither */
	for (unsigned i = 0; i < 5; i++) {
		feed(&u, FIG_THROTTLED_PERIODS, part += i == 2 ? 0 : 15, FIG_PERIODS, n += 100);
		u.pressure = collector_judge(&u, limits);
		assert_int_equal(u.pressure, RP_PRESSURE_THROTTLED);
	}
	for (unsigned i = 0; i < 3; i++) {
		feed(&u, FIG_THROTTLED_PERIODS, part += 5, FIG_PERIODS, n += 100);
		u.pressure = collector_judge(&u, limits);
	}
	assert_int_equal(u.pressure, 0);
	/* waiting, in us of a second; a limit of 0 is none */
	for (uint64_t i = 1; i <= 4; i++) {
		feed(&u, FIG_CPU_WAIT, i * 900000, FIG_CPU_WAIT, 0);
		feed(&u, FIG_MEMORY_WAIT, i * 100000, FIG_MEMORY_WAIT, 0);
		feed(&u, FIG_IO_WAIT, i * 2000000, FIG_IO_WAIT, 0);
		u.pressure = collector_judge(&u, limits);
	}
	assert_int_equal(u.pressure, RP_PRESSURE_MEMORY | RP_PRESSURE_IO);
	/* a removed limit clears its pressure */
	const uint32_t none[4] = {0};
	assert_int_equal(collector_judge(&u, none), 0);
}

/* Throttled for long enough: the policy is told, sees the figures, and gives it more CPUs. */
static void test_pressure_reaches_policy(void **state)
{
	struct world *w = *state;
	start(w, PUPPET NEVER ", pressure: {throttled: 20}}\n");
	run(w, "a", "1", "t/pressure", "usage; cpus 1-2");
	for (unsigned i = 0; i < 4; i++) {
		assert_string_equal(box_cpus(w, "a"), "1");
		put_cpu(w, "a", 1000 * i, 100 * i, 50 * i);
		one_round(w);
	}
	assert_string_equal(box_cpus(w, "a"), "1-2");
	assert_int_equal(updates_waiting(w->p), 1);
	assert_true(world_told(w, "default/a/c: lacks CPU time above its limit"));
	assert_non_null(strstr(box_ctr(w, "a")->trail.text, "lacks 1, cpu "));
	assert_non_null(
		strstr(box_ctr(w, "a")->trail.text, ", throttled 500, memory -1, waits -1 -1 -1"));
	shows(w, "lacks=\"throttled\"} 1\n", true);
	for (unsigned i = 4; i < 7; i++) {
		put_cpu(w, "a", 1000 * i, 100 * i, 150);
		one_round(w);
	}
	assert_true(world_told(w, "default/a/c: no longer short of resources"));
	shows(w, "lacks=", false);
	finish();
}

/* ---- rebalancing ----------------------------------------------------------------------------- */

#define TWO_MOVES "{rebalance: 'on a; cpus 11; on b; cpus 12', timer: 'fail 22 no timer'}"

static void named_with(struct world *w, const char *name, const char *alloc)
{
	struct box_desc d;
	struct box b = {.name = name, .alloc = alloc};
	box_describe(&b, &d);
	d.ctr.name = name;
	struct reply reply;
	request_begin(w->p, REQ_CREATE);
	assert_int_equal(request_create(w->p, &d.pod, &d.ctr, &reply, &w->err), 0);
	reply_sent(w->p, &reply, false);
}

static void named(struct world *w, const char *name)
{
	named_with(w, name, "cpus 1");
}

static const char *cpus_of(struct world *w, const char *id)
{
	return cache_ctr(pipeline_cache(w->p), id)->cur.cpus->text;
}

static void test_budget(void **state)
{
	struct world *w = *state;
	unsigned n = 77;
	world_configure(w, PUPPET "puppet: " TWO_MOVES "\n");
	world_must_start(w);
	w->err = (struct err)ERR_INIT;
	assert_int_equal(pipeline_rebalance(w->p, 0, &n, &w->err), -EAGAIN);
	pipeline_runtime(w->p)->synchronized = true;
	named(w, "a");
	named(w, "b");
	/* more than it may: nothing has happened */
	w->err = (struct err)ERR_INIT;
	assert_int_equal(pipeline_rebalance(w->p, 1, &n, &w->err), -E2BIG);
	assert_string_equal(w->err.text, "it would move 2 containers, at most 1 are allowed");
	assert_string_equal(cpus_of(w, "c-a"), "1");
	assert_int_equal(n, 77);
	assert_int_equal(pipeline_stats(w->p)->rebalances, 0);
	assert_int_equal(pipeline_rebalance(w->p, 2, &n, &w->err), 0);
	assert_int_equal(n, 2);
	assert_string_equal(cpus_of(w, "c-a"), "11");
	assert_string_equal(cpus_of(w, "c-b"), "12");
	/* all containers are placed well */
	assert_int_equal(pipeline_rebalance(w->p, 1, &n, &w->err), 0);
	assert_int_equal(n, 0);
	assert_int_equal(pipeline_stats(w->p)->rebalances, 2);
}

/* Checks that containers whose shared CPUs merely change do not count as moved. */
static void test_sharers_do_not_count(void **state)
{
	struct world *w = *state;
	unsigned n = 77;
	world_configure(w, PUPPET "puppet: {rebalance: 'on a; cpus 11; private there; on b; cpus "
				  "1-2; on c; cpus 1-2; private here'}\n");
	world_must_start(w);
	pipeline_runtime(w->p)->synchronized = true;
	named_with(w, "a", "cpus 1; private here");
	named_with(w, "b", "cpus 1; private here");
	named_with(w, "c", "cpus 1; private here");
	w->err = (struct err)ERR_INIT;
	assert_int_equal(pipeline_rebalance(w->p, 1, &n, &w->err), 0);
	assert_int_equal(n, 1);
	assert_string_equal(cpus_of(w, "c-a"), "11");
	assert_string_equal(cpus_of(w, "c-b"), "1-2");
	assert_string_equal(cpus_of(w, "c-c"), "1-2");
}

static void test_no_policy_for_it(void **state)
{
	struct world *w = *state;
	world_configure(w, "policy: none\n");
	world_must_start(w);
	pipeline_runtime(w->p)->synchronized = true;
	w->err = (struct err)ERR_INIT;
	assert_int_equal(pipeline_rebalance(w->p, 0, NULL, &w->err), -ENOTSUP);
	assert_string_equal(w->err.text, "policy none does not rebalance");
}

static bool rebalanced(struct world *w, void *arg)
{
	return pipeline_stats(w->p)->rebalances >= 2;
}

static void test_interval(void **state)
{
	struct world *w = *state;
	world_configure(w, PUPPET "rebalanceInterval: 20ms\nrebalanceMoves: 2\npuppet: " TWO_MOVES
				  "\n");
	world_must_start(w);
	named(w, "a");
	named(w, "b");
	pipeline_runtime(w->p)->synchronized = true;
	world_until(w, rebalanced, NULL);
	assert_string_equal(cpus_of(w, "c-a"), "11");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		bare_test(test_off),
		bare_test(test_figures),
		bare_test(test_cost),
		bare_test(test_one_at_a_time),
		bare_test(test_switched_off),
		bare_test(test_by_the_clock),
		cmocka_unit_test(test_judge),
		bare_test(test_pressure_reaches_policy),
		bare_test(test_budget),
		bare_test(test_sharers_do_not_count),
		bare_test(test_no_policy_for_it),
		bare_test(test_interval),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
