/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Configurations and Speed Select, with the real policies and a driver that is made up: what a
 * refused configuration leaves of the platform, who has it after a switch, and that a reload looks
 * at it anew.
 */
#include "test/preload/isst.c"

#include "core/nri-rpd/pipeline/internal.h"
#include "test/unit/t_reload.h"

#define DEVICE ISST_PATH
/* A punit a memory node, SST-CP and SST-TF; the third has room for three high CPUs. */
#define TPMI                                                                                       \
	"api 2\nthreads 2\npunit 0 0 0 3 3 0 1 2\npunit 0 1 4 7 3 0 1 2\npunit 1 0 8 11 3 0 2 3\n" \
	"punit 1 1 12 15 3 0 1 2\n"
#define CLASSES                                                                                    \
	"cpuClasses: [{name: hi, pctPriority: high, pctMinFreq: 2.5GHz, pctMaxFreq: 3.8GHz}, "     \
	"{name: lo, pctPriority: low, minFreq: 800MHz, maxFreq: 2.1GHz}]"
#define BALLOONS                                                                                   \
	"policy: balloons\nballoons: {reservedResources: {cpu: 'cpuset:15'}, idleCPUClass: lo, "   \
	"balloonTypes: [{name: fast, cpuClass: hi, preferNewBalloons: true}], " CLASSES "}\n"
#define TOPOLOGY_AWARE                                                                             \
	"policy: topology-aware\ntopology-aware: {reservedResources: {cpu: 'cpuset:15'}, "         \
	"sharedPoolCPUClass: lo, defaultExclusiveCPUClass: hi, " CLASSES "}\n"
#define ASSOCIATED                                                                                 \
	"policy: balloons\nballoons: {reservedResources: {cpu: 'cpuset:15'}, balloonTypes: "       \
	"[{name: fast, cpuClass: a, preferNewBalloons: true}, {name: slow, cpuClass: b}], "        \
	"cpuClasses: [{name: a, sstClosID: 1}, {name: b, sstClosID: 2}]}\n"

/* ---- the platform ---------------------------------------------------------------------------- */

static const char *file_of(struct world *w, const char *suffix, char ret[8192])
{
	char path[64];
	(void)snprintf(path, sizeof path, DEVICE "%s", suffix);
	if (fs_read(&w->tree.root, path, ret, 8192) < 0)
		ret[0] = '\0';
	return ret;
}

static unsigned count(const char *text, const char *part)
{
	unsigned n = 0;
	for (; (text = strstr(text, part)); text++)
		n++;
	return n;
}

/* Four punits with both features, in order, and the two classes as they are configured. */
static bool is_up(struct world *w, void *arg)
{
	char now[8192];
	(void)file_of(w, ".now", now);
	return count(now, " on 3 ordered 1\n") == 4 && count(now, " 0 min 2500 max 3800 ") == 4 &&
	       count(now, " 3 min 800 max 2100 ") == 4;
}

static bool is_down(struct world *w, void *arg)
{
	char now[8192];
	return count(file_of(w, ".now", now), " on 0 ") == 4 &&
	       count(now, " min 0 max 25500 ") == 16;
}

static bool first_is_off(struct world *w, void *arg)
{
	char now[8192];
	return strstr(file_of(w, ".now", now), "punit 0 0 on 0") != NULL;
}

/* The CPUs in a class now, all of them. */
struct clos {
	unsigned id;
	const char *cpus;
};

static bool in_clos(struct world *w, void *arg)
{
	const struct clos *c = arg;
	char now[8192], *saved = NULL, text[128];
	struct rp_idset set;
	rp_idset_clear(&set);
	(void)file_of(w, ".now", now);
	for (char *line = strtok_r(now, "\n", &saved); line; line = strtok_r(NULL, "\n", &saved)) {
		unsigned cpu, clos;
		if (sscanf(line, "cpu %u %u", &cpu, &clos) == 2 && clos == c->id)
			rp_idset_add(&set, cpu);
	}
	(void)rp_ids_format(rp_ids_of(&set), text, sizeof text);
	return strcmp(text, c->cpus) == 0;
}

static void wait_for(struct world *w, unsigned clos, const char *cpus)
{
	struct clos c = {clos, cpus};
	world_until(w, in_clos, &c);
}

static struct world *start(const char *conf, const char *now)
{
	struct world *w = world_bare();
	tree_put(&w->tree, DEVICE, "%s", TPMI);
	if (now)
		tree_put(&w->tree, DEVICE ".now", "%s", now);
	world_configure(w, conf);
	world_must_start(w);
	assert_int_equal(boxes_sync(w, NULL, 0), 0);
	return w;
}

/* ---- reloads --------------------------------------------------------------------------------- */

static void reload_fickle(struct world *w, const char *more)
{
	char conf[2 * PATH_MAX];
	(void)snprintf(conf, sizeof conf, "policy: fickle\nfickle: {once: %s/once%s}\n",
		       w->tree.dir, more);
	reload_idle(w, conf, "not twice");
}

static void run_fast(struct world *w, const char *name)
{
	box_run(w, &(struct box){.name = name,
				 .res = {.shares = 2048, .quota = 200000, .period = 100000},
				 .extra_key = "balloon.balloons.resource-policy.nri.io",
				 .extra_value = "fast"});
}

/* ---- switches that are refused when the trial has gone well ---------------------------------- */

/* The one that refuses has said that the platform is its own, and would take it back: it stays as
 * it is, and nothing of it is written. */
static void test_former_keeps(void **state)
{
	char before[8192], after[8192];
	struct world *w = start(BALLOONS, NULL);
	run_fast(w, "a");
	world_until(w, is_up, NULL);
	wait_for(w, 0, box_cpus(w, "a"));
	(void)file_of(w, ".log", before);
	reload_fickle(w, "");
	(void)file_of(w, ".log", after);
	/* Work that was left for the worker is done when the next container's CPUs are in their
	 * class. */
	run_fast(w, "b");
	char both[128];
	struct rp_idset cpus, more;
	assert_int_equal(rp_idset_parse(&cpus, box_cpus(w, "a"), RP_CPUS_MAX), 0);
	assert_int_equal(rp_idset_parse(&more, box_cpus(w, "b"), RP_CPUS_MAX), 0);
	rp_idset_or(&cpus, rp_ids_of(&cpus), rp_ids_of(&more));
	(void)rp_ids_format(rp_ids_of(&cpus), both, sizeof both);
	wait_for(w, 0, both);
	assert_true(is_up(w, NULL));
	(void)file_of(w, ".log", after);
	assert_int_equal(strncmp(before, after, strlen(before)), 0);
	assert_null(strstr(after + strlen(before), "tf "));
	assert_null(strstr(after + strlen(before), "cp "));
	assert_null(strstr(after + strlen(before), "clos "));
	world_free(w);
}

/* Checks that settings changed by the refusing policy are corrected. */
static void test_former_sets_right(void **state)
{
	struct world *w = start(BALLOONS, NULL);
	run_fast(w, "a");
	world_until(w, is_up, NULL);
	wait_for(w, 0, box_cpus(w, "a"));
	reload_fickle(w, ", reprogram: true");
	world_until(w, is_up, NULL);
	wait_for(w, 0, box_cpus(w, "a"));
	/* The previous policy restores the settings when it ends. */
	reload_idle(w, "policy: none\n", NULL);
	world_until(w, is_down, NULL);
	wait_for(w, 3, "");
	world_free(w);
}

/* Checks that a policy which did not use the platform does not take over its settings. */
static void test_former_without(void **state)
{
	char now[8192];
	struct world *w = start("policy: none\n", "punit 0 0 on 3 ordered 1\n");
	reload_fickle(w, "");
	world_until(w, first_is_off, NULL);
	assert_string_equal(file_of(w, ".log", now), "tf 0 0 off\ncp 0 0 off");
	world_free(w);
}

/* ---- switches -------------------------------------------------------------------------------- */

/* From one policy with such classes to another, and back: nobody takes anything back on the way. */
static void test_switches(void **state)
{
	char log[8192];
	struct world *w = start(BALLOONS, NULL);
	world_until(w, is_up, NULL);
	wait_for(w, 3, "0-15");
	for (unsigned i = 0; i < 2; i++) {
		reload_idle(w, TOPOLOGY_AWARE, NULL);
		reload_idle(w, BALLOONS, NULL);
	}
	run_fast(w, "a");
	wait_for(w, 0, box_cpus(w, "a"));
	assert_true(is_up(w, NULL));
	assert_null(strstr(file_of(w, ".log", log), "tf 0 0 off"));
	reload_idle(w, "policy: none\n", NULL);
	world_until(w, is_down, NULL);
	reload_idle(w, TOPOLOGY_AWARE, NULL);
	world_until(w, is_up, NULL);
	world_free(w);
}

/* The classes go from the policy to the controller in one reload, and back. */
static void test_controller_takes_over(void **state)
{
	static const char controlled[] =
		"policy: balloons\nballoons: {reservedResources: {cpu: 'cpuset:15'}}\n"
		"controllers: [cpu]\ncpu: {" CLASSES "}\n";
	struct world *w = start(BALLOONS, NULL);
	world_until(w, is_up, NULL);
	for (unsigned i = 0; i < 2; i++) {
		reload_idle(w, controlled, NULL);
		world_until(w, is_up, NULL);
		wait_for(w, 3, "0-15");
		reload_idle(w, BALLOONS "controllers: [cpu]\ncpu: {enable: false}\n", NULL);
		world_until(w, is_up, NULL);
		wait_for(w, 3, "0-15");
	}
	run_fast(w, "a");
	wait_for(w, 0, box_cpus(w, "a"));
	assert_true(is_up(w, NULL));
	world_free(w);
}

/* ---- settings of other programs -------------------------------------------------------------- */

#define PUNIT(p, u) "punit " #p " " #u " on 3 ordered 1\n"
#define CLOS(p, u, i, max) "clos " #p " " #u " " #i " min 0 max " #max " weight 0\n"
#define PROGRAMMED(p, u) PUNIT(p, u) CLOS(p, u, 1, 3800) CLOS(p, u, 2, 2000)

/* Four punits, one of which has room for three. */
static void put_best(struct world *w, unsigned best)
{
	char text[512];
	size_t len = (size_t)snprintf(text, sizeof text, "api 2\nthreads 2\n");
	for (unsigned i = 0; i < 4; i++)
		len += (size_t)snprintf(text + len, sizeof text - len, "punit %u %u %u %u 3 0 %s\n",
					i / 2, i % 2, 4 * i, 4 * i + 3, i == best ? "2 3" : "1 2");
	tree_put(&w->tree, DEVICE, "%s", text);
}

static unsigned punit_of(struct world *w, const char *name)
{
	struct rp_idset set;
	assert_int_equal(rp_idset_parse(&set, box_cpus(w, name), RP_CPUS_MAX), 0);
	assert_int_equal(rp_ids_count(rp_ids_of(&set)), 2);
	assert_int_equal(rp_ids_first(rp_ids_of(&set)) / 4, rp_ids_last(rp_ids_of(&set)) / 4);
	return rp_ids_first(rp_ids_of(&set)) / 4;
}

/* Returns the punit of the second container when another program sets up the platform beside the
 * daemon. */
static unsigned second(unsigned best, bool programmed, bool anew, unsigned *ret_first)
{
	struct world *w = start(ASSOCIATED, NULL);
	put_best(w, best);
	reload_idle(w, ASSOCIATED, NULL);
	run_fast(w, "a");
	wait_for(w, 1, box_cpus(w, "a"));
	if (programmed)
		tree_put(&w->tree, DEVICE ".now", "%s",
			 PROGRAMMED(0, 0) PROGRAMMED(0, 1) PROGRAMMED(1, 0) PROGRAMMED(1, 1));
	if (anew)
		reload_idle(w, ASSOCIATED, NULL);
	run_fast(w, "b");
	unsigned found = punit_of(w, "b");
	*ret_first = punit_of(w, "a");
	world_free(w);
	return found;
}

/*
 * Classes that only associate: as long as nobody has set anything up no class is high. When
 * somebody has, a reload of the same configuration sees it: the class whose CLOS goes higher is
 * high, and gets CPUs where there is most room.
 */
static void test_reload_looks_anew(void **state)
{
	unsigned first, usual = second(0, false, false, &first), best = 0;
	while (best == usual || best == first)
		best++;
	assert_int_equal(second(best, false, true, &first), usual);
	assert_int_equal(second(best, true, false, &first), usual);
	assert_int_equal(second(best, true, true, &first), best);
}

/* Which CPUs are in which CLOS by now is seen as well: those of the class's own are taken first. */
static void test_reload_sees_cpus(void **state)
{
	char now[512], first[128];
	struct rp_idset own;
	size_t len = 0;
	struct world *w = start(ASSOCIATED, NULL);
	run_fast(w, "a");
	(void)snprintf(first, sizeof first, "%s", box_cpus(w, "a"));
	wait_for(w, 1, first);
	/* Two cores away from it. */
	unsigned other = punit_of(w, "a") ? 0 : 2;
	assert_int_equal(rp_idset_parse(&own, first, RP_CPUS_MAX), 0);
	RP_IDS_EACH (cpu, rp_ids_of(&own))
		len += (size_t)snprintf(now + len, sizeof now - len, "cpu %u 1\n", cpu);
	(void)snprintf(now + len, sizeof now - len, "cpu %u 1\ncpu %u 1\n", 4 * other + 2,
		       4 * other + 3);
	tree_put(&w->tree, DEVICE ".now", "%s", now);
	reload_idle(w, "policy: nowhere\n", "nowhere");
	reload_idle(w, ASSOCIATED, NULL);
	run_fast(w, "b");
	(void)snprintf(now, sizeof now, "%u-%u", 4 * other + 2, 4 * other + 3);
	assert_string_equal(box_cpus(w, "b"), now);
	/* CPUs that the daemon put into a CLOS are remembered even if their container stops. */
	struct box_desc d;
	struct reply reply;
	const struct box a = {.name = "a"};
	box_describe(&a, &d);
	request_begin(w->p, REQ_STOP);
	request_stop(w->p, &d.pod, &d.ctr, &reply);
	reply_sent(w->p, &reply, false);
	reload_idle(w, ASSOCIATED, NULL);
	run_fast(w, "c");
	assert_string_equal(box_cpus(w, "c"), first);
	world_free(w);
}

/* ---- on whose time --------------------------------------------------------------------------- */

static bool without_14(struct world *w, void *arg)
{
	return rp_ids_count(topo_ids(pipeline_topo(w->p), RP_CPUS_ONLINE)) == 15;
}

/* The thread that answers the runtime asks the driver for nothing: neither at the start, nor by
 * reloads, switches or another machine. */
static void test_not_on_the_loop(void **state)
{
	isst_on_main = 0;
	struct world *w = start(BALLOONS, NULL);
	world_until(w, is_up, NULL);
	wait_for(w, 3, "0-15");
	run_fast(w, "a");
	wait_for(w, 0, box_cpus(w, "a"));
	reload_idle(w, BALLOONS, NULL);
	reload_idle(w, TOPOLOGY_AWARE, NULL);
	reload_idle(w, ASSOCIATED, NULL);
	reload_idle(w, BALLOONS, NULL);
	assert_int_equal(isst_on_main, 0);
	tree_put(&w->tree, "sys/devices/system/cpu/online", "0-13,15\n");
	hotplug_trigger(w->p->hotplug);
	world_until(w, without_14, NULL);
	run_fast(w, "b");
	world_until(w, is_up, NULL);
	assert_int_equal(isst_on_main, 0);
	world_free(w);
	assert_int_equal(isst_on_main, 0);
}

/* Twice in a row, or back to what it was, before the first is through: the last one counts. */
static void test_machine_changes_again(void **state)
{
	isst_on_main = 0;
	struct world *w = start(BALLOONS, NULL);
	world_until(w, is_up, NULL);
	for (unsigned i = 0; i < 4; i++) {
		tree_put(&w->tree, "sys/devices/system/cpu/online", "%s\n",
			 i & 1 ? "0-15" : "0-13,15");
		hotplug_trigger(w->p->hotplug);
		/* told when it is quiet; then it is being read */
		struct loop_timer *t = loop_timer_new(w->loop, world_check_again, w);
		assert_int_equal(loop_timer_arm(t, HOTPLUG_QUIET_MS + 1), 0);
		assert_int_equal(loop_run(w->loop), 0);
		loop_timer_free(t);
	}
	tree_put(&w->tree, "sys/devices/system/cpu/online", "0-13,15\n");
	hotplug_trigger(w->p->hotplug);
	world_until(w, without_14, NULL);
	run_fast(w, "a");
	wait_for(w, 0, box_cpus(w, "a"));
	assert_int_equal(isst_on_main, 0);
	world_free(w);
	/* The end while it is being read. */
	w = start(BALLOONS, NULL);
	world_until(w, is_up, NULL);
	tree_put(&w->tree, "sys/devices/system/cpu/online", "0-13,15\n");
	hotplug_trigger(w->p->hotplug);
	while (!w->p->reloads.attempts && !without_14(w, NULL)) {
		struct loop_timer *t = loop_timer_new(w->loop, world_check_again, w);
		assert_int_equal(loop_timer_arm(t, 1), 0);
		assert_int_equal(loop_run(w->loop), 0);
		loop_timer_free(t);
	}
	world_free(w);
}

/* Checks that a platform which cannot be read any more when CPUs have gone offline is reported to
 * the policy, which continues without the platform. */
static void test_cannot_be_read_any_more(void **state)
{
	isst_on_main = 0;
	struct world *w = start(BALLOONS, NULL);
	world_until(w, is_up, NULL);
	tree_put(&w->tree, DEVICE ".fail", "platform %d\n", EIO);
	tree_put(&w->tree, "sys/devices/system/cpu/online", "0-13,15\n");
	hotplug_trigger(w->p->hotplug);
	world_until(w, without_14, NULL);
	run_fast(w, "a");
	assert_int_equal(isst_on_main, 0);
	/* The policy uses the platform again when it can be read. */
	tree_del(&w->tree, DEVICE ".fail");
	reload_idle(w, BALLOONS, NULL);
	wait_for(w, 0, box_cpus(w, "a"));
	world_free(w);
}

int main(void)
{
	log_init("test");
	log_set_level((enum log_level)0);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_former_keeps),
		cmocka_unit_test(test_former_sets_right),
		cmocka_unit_test(test_former_without),
		cmocka_unit_test(test_switches),
		cmocka_unit_test(test_controller_takes_over),
		cmocka_unit_test(test_reload_looks_anew),
		cmocka_unit_test(test_reload_sees_cpus),
		cmocka_unit_test(test_not_on_the_loop),
		cmocka_unit_test(test_machine_changes_again),
		cmocka_unit_test(test_cannot_be_read_any_more),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
