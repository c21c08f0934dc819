/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks the shipped policy modules when memory ends: each allocation of a typical run fails once,
 * alone or with all later ones in the same callback. The module reports the failure, CPUs are never
 * exclusive to two containers, and afterwards the module works as if memory had always been
 * available. Only the module's own allocations fail.
 */
#include "test/unit/fake_host.h"
#include "test/unit/t_oom_module.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define RUNS_MAX 20000u

/* ---- the module, with memory back at the end of each callback -------------------------------- */

static const struct rp_module *real_module;
static const struct rp_policy *real;

static int32_t end(int32_t r)
{
	mem.failing = false;
	return r;
}

static int32_t w_prepare(struct rp_instance *inst, rp_cfg cfg, struct rp_plan **ret)
{
	return end(real->prepare(inst, cfg, ret));
}

static void w_commit(struct rp_instance *inst, struct rp_plan *plan)
{
	real->commit(inst, plan);
	(void)end(0);
}

static void w_abort(struct rp_instance *inst, struct rp_plan *plan)
{
	real->abort(inst, plan);
	(void)end(0);
}

static int32_t w_sync(struct rp_instance *inst, rp_txn txn)
{
	return end(real->sync(inst, txn));
}

static int32_t w_allocate(struct rp_instance *inst, rp_txn txn, rp_ctr ctr)
{
	return end(real->allocate(inst, txn, ctr));
}

static int32_t w_update(struct rp_instance *inst, rp_txn txn, rp_ctr ctr)
{
	return end(real->update(inst, txn, ctr));
}

static int32_t w_release(struct rp_instance *inst, rp_txn txn, rp_ctr ctr)
{
	return end(real->release(inst, txn, ctr));
}

static int32_t w_event(struct rp_instance *inst, rp_txn txn, const struct rp_event *ev)
{
	return RP_HAS(real, event) && real->event ? end(real->event(inst, txn, ev)) : 0;
}

static int32_t w_rolled_back(struct rp_instance *inst)
{
	return RP_HAS(real, rolled_back) && real->rolled_back ? end(real->rolled_back(inst))
							      : RP_RESYNC;
}

static const struct rp_policy wrapped_policy = {
	.size = sizeof wrapped_policy,
	.prepare = w_prepare,
	.commit = w_commit,
	.abort = w_abort,
	.sync = w_sync,
	.allocate = w_allocate,
	.update = w_update,
	.release = w_release,
	.event = w_event,
	.rolled_back = w_rolled_back,
};

static int32_t w_create(const struct rp_host *host, struct rp_instance **ret)
{
	return end(real_module->create(host, ret));
}

static void w_destroy(struct rp_instance *inst)
{
	real_module->destroy(inst);
}

static const void *w_service(struct rp_instance *inst, const char *id)
{
	const void *service = real_module->service(inst, id);
	if (!service || strcmp(id, RP_POLICY_1) != 0)
		return service;
	real = service;
	return &wrapped_policy;
}

static struct rp_module wrapped_module;

static void load(const char *name)
{
	real_module = mem_load(name);
	wrapped_module = *real_module;
	wrapped_module.create = w_create;
	wrapped_module.destroy = w_destroy;
	wrapped_module.service = w_service;
}

/* ---- a day's work ---------------------------------------------------------------------------- */

struct subject {
	const char *name;
	const char *config, *other; /* configurations: active first; active later */
	const char *annotations[4];
	bool speedselect;
};

static const struct fake_machine machine = {.packages = 2, .nodes = 2, .cores = 4, .threads = 2};

/* Checks that a call that fails for lack of memory gives a reason. Other failures are expected. */
static int32_t said(struct fake_host *f, const char *what, int32_t r)
{
	if (r < 0 && !*fake_error(f))
		fail_msg("%s fails at allocation %u without a word", what, mem.at);
	if (r < 0 && mem.failed && strstr(fake_error(f), "invariant"))
		fail_msg("%s at allocation %u: %s", what, mem.at, fake_error(f));
	return r;
}

static void configure(struct fake_host *f, const char *text)
{
	if (said(f, "configuring", fake_configure(f, text)) &&
	    said(f, "configuring again", fake_configure(f, text)))
		fail_msg("allocation %u: not configured: %s", mem.at, fake_error(f));
}

static void create(struct fake_host *f, const struct subject *s, unsigned i)
{
	static const int64_t requests[] = {500, 2000, 0, 3000, 1500, 1000, 250, 4000};
	char name[16];
	(void)snprintf(name, sizeof name, "c%u", i);
	int64_t request = requests[i % COUNT(requests)];
	rp_ctr c = fake_ctr(f, &(struct fake_ctr){.name = name,
						  .qos = request == 0 ? RP_QOS_BEST_EFFORT
							 : i % 3      ? RP_QOS_GUARANTEED
								      : RP_QOS_BURSTABLE,
						  .cpu_request = request,
						  .mem_request = request << 10,
						  .mem_limit = i % 3 ? request << 10 : 0,
						  .labels = "app=db",
						  .pod_resources = "x.com/nic:1",
						  .annotations = s->annotations[i % 4]});
	(void)said(f, "allocating", fake_allocate(f, c));
}

static void release(struct fake_host *f, const char *name)
{
	rp_ctr c = fake_ctr_named(f, name);
	if (c && said(f, "releasing", fake_release(f, c)) &&
	    said(f, "releasing again", fake_release(f, c)))
		fail_msg("allocation %u: %s is not released: %s", mem.at, name, fake_error(f));
}

static void resize(struct fake_host *f, const char *name, int64_t mcpu)
{
	rp_ctr c = fake_ctr_named(f, name);
	if (!c)
		return;
	fake_request(f, c, mcpu, mcpu);
	(void)said(f, "resizing", fake_update(f, c));
}

static void work(struct fake_host *f, const struct subject *s)
{
	configure(f, s->config);
	for (unsigned i = 0; i < 6; i++)
		create(f, s, i);
	resize(f, "c1", 3000);
	release(f, "c3");
	(void)said(f, "synchronizing", fake_sync(f));
	configure(f, s->other);
	for (unsigned i = 6; i < 10; i++)
		create(f, s, i);
	(void)fake_run_work(f);
	release(f, "c0");
	resize(f, "c1", 1000);
	(void)said(f, "an event", fake_set_offline(f, "31"));
	(void)said(f, "an event", fake_set_offline(f, ""));
	const struct rp_event rebalance = {.size = sizeof rebalance, .type = RP_EVENT_REBALANCE};
	(void)said(f, "rebalancing", fake_event(f, &rebalance));
}

/* Checks that every container has CPUs, and that the policy is as at its start once all are
 * released. */
static void check_and_empty(struct fake_host *f, const struct subject *s, const char *fresh)
{
	char name[16];
	if (fake_sync(f))
		fail_msg("allocation %u: with memory back: %s", mem.at, fake_error(f));
	for (unsigned i = 0; i < 10; i++) {
		(void)snprintf(name, sizeof name, "c%u", i);
		rp_ctr c = fake_ctr_named(f, name);
		if (c && !*fake_cpus(f, c))
			fail_msg("allocation %u: %s has no CPUs", mem.at, name);
		release(f, name);
	}
	(void)fake_run_work(f);
	configure(f, s->other);
	char *zones = sorted_lines(fake_zones(f));
	if (strcmp(zones, fresh) != 0)
		fail_msg("allocation %u: something is left:\n%s\nnot\n%s", mem.at, zones, fresh);
	free(zones);
}

/* Creates a host with one punit in each package. */
static struct fake_host *new_host(const struct subject *s)
{
	static const struct fake_punit punits[] = {
		{.package = 0,
		 .cpus = "0-15",
		 .supported = RP_SST_CP | RP_SST_TF,
		 .buckets = {2, 4}},
		{.package = 1, .cpus = "16-31", .supported = RP_SST_CP | RP_SST_TF, .buckets = {2}},
	};
	struct fake_host *f = fake_host_new(&machine);
	if (s->speedselect)
		fake_speedselect(f, punits, COUNT(punits));
	return f;
}

static char *fresh_zones(const struct subject *s)
{
	struct fake_host *f = new_host(s);
	assert_int_equal(fake_policy_open(f, &wrapped_module), 0);
	assert_int_equal(fake_configure(f, s->other), 0);
	(void)fake_run_work(f);
	char *zones = sorted_lines(fake_zones(f));
	fake_host_free(f);
	return zones;
}

/* Returns false if there were fewer allocations. */
static bool run(const struct subject *s, unsigned at, bool rest, const char *fresh)
{
	struct fake_host *f = new_host(s);
	mem.rest = rest;
	mem_arm(at, 1);
	if (fake_policy_open(f, &wrapped_module) && fake_policy_open(f, &wrapped_module))
		fail_msg("allocation %u: no instance", at);
	work(f, s);
	mem.armed = false;
	check_and_empty(f, s, fresh);
	fake_host_free(f);
	return mem.failed;
}

static void run_all(const struct subject *s)
{
#ifdef SANITIZED
	(void)run;
	(void)fresh_zones;
	(void)new_host;
	(void)load;
	skip();
#else
	load(s->name);
	char *fresh = fresh_zones(s);
	assert_false(run(s, 0, false, fresh));
	for (int rest = 0; rest < 2; rest++) {
		unsigned at = 1;
		while (at < RUNS_MAX && run(s, at, rest, fresh))
			at++;
		assert_in_range(at, 20, RUNS_MAX - 1);
	}
	free(fresh);
#endif
}

static void test_static(void **state)
{
	static const struct subject s = {
		.name = "static",
		.config = "{reservedResources: {cpu: \"cpuset:0\"}}",
		.other = "{reservedResources: {cpu: \"cpuset:0\"}, cpuManagerPolicyOptions: "
			 "{distribute-cpus-across-numa: \"true\"}}"};
	run_all(&s);
}

static void test_topology_aware(void **state)
{
	static const struct subject s = {
		.name = "topology-aware",
		.config = "{reservedResources: {cpu: \"cpuset:0\"}}",
		.other = "{reservedResources: {cpu: \"cpuset:0-1\"}, colocatePods: true, "
			 "cpuClasses: "
			 "[{name: slow, maxFreq: 1GHz}], sharedPoolCPUClass: slow}",
		.annotations = {
			NULL,
			"test.topologyhints.resource-policy.nri.io={x: {CPUs: 8-15}}",
			"irq-affinity.resource-policy.nri.io={claim: [\"*eth*\"]}",
			"resource-policy.nri.io/affinity={c3: [c1]}",
		}};
	run_all(&s);
}

static void test_balloons(void **state)
{
	static const struct subject s = {
		.name = "balloons",
		.config =
			"{reservedResources: {cpu: \"cpuset:0\"}, balloonTypes: [{name: a, "
			"maxCPUs: 6, groupBy: \"${label/app}\", "
			"preferCloseToDevices: [\"podresourceapi:x.com/*\"]}, {name: b, "
			"minBalloons: 1}, {name: part, minCPUs: 1}, {name: whole, minBalloons: 1, "
			"components: [{balloonType: part}, {balloonType: part}]}]}",
		.other = "{reservedResources: {cpu: \"cpuset:0-1\"}, balloonTypes: [{name: a, "
			 "maxCPUs: 8}, {name: c, maxBalloons: "
			 "3}, {name: d, components: [{balloonType: c}, {balloonType: c}]}], "
			 "cpuClasses: [{name: slow, maxFreq: 1GHz}], idleCPUClass: slow}",
		.annotations = {
			"balloon.balloons.resource-policy.nri.io=a",
			"balloon.balloons.resource-policy.nri.io=b",
			NULL,
			"balloon.balloons.resource-policy.nri.io=c",
		}};
	run_all(&s);
}

#define CLASSES "cpuClasses: [{name: hi, pctPriority: high}, {name: lo, pctPriority: low}]"

static void test_topology_aware_pct(void **state)
{
	static const struct subject s = {
		.name = "topology-aware",
		.speedselect = true,
		.config = "{reservedResources: {cpu: \"cpuset:0\"}, sharedPoolCPUClass: lo, "
			  "defaultExclusiveCPUClass: hi, " CLASSES "}",
		.other = "{reservedResources: {cpu: \"cpuset:0-1\"}}"};
	run_all(&s);
}

static void test_balloons_pct(void **state)
{
	static const struct subject s = {
		.name = "balloons",
		.speedselect = true,
		.config =
			"{reservedResources: {cpu: \"cpuset:0\"}, idleCPUClass: lo, balloonTypes: "
			"[{name: a, minCPUs: 1, maxCPUs: 6, cpuClass: hi, groupBy: "
			"\"${label/app}\"}, {name: b, minBalloons: 1, minCPUs: 2, maxCPUs: 4, "
			"cpuClass: lo}], " CLASSES "}",
		.other = "{reservedResources: {cpu: \"cpuset:0-1\"}, balloonTypes: [{name: a, "
			 "minCPUs: 1, maxCPUs: 8, cpuClass: x}], cpuClasses: [{name: x, sstClosID: "
			 "1}]}",
		.annotations = {
			"balloon.balloons.resource-policy.nri.io=a",
			"balloon.balloons.resource-policy.nri.io=b",
		}};
	run_all(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_static),	     cmocka_unit_test(test_topology_aware),
		cmocka_unit_test(test_balloons),     cmocka_unit_test(test_topology_aware_pct),
		cmocka_unit_test(test_balloons_pct),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
