/* SPDX-License-Identifier: Apache-2.0 */
/* The static policy from outside: through its callbacks, on a fake host. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "test/unit/fake_host.h"

extern const struct rp_module rp_module_1;

static const struct fake_machine n4c16 = {.packages = 2, .nodes = 2, .cores = 2, .threads = 2};
static const struct fake_machine n4c16_isol01 = {
	.packages = 2, .nodes = 2, .cores = 2, .threads = 2, .isolated = "0-1"};
static const struct fake_machine n4c128 = {.packages = 2, .nodes = 2, .cores = 16, .threads = 2};
static const struct fake_machine server_2s = {
	.packages = 2, .nodes = 2, .cores = 16, .threads = 2, .siblings = true};
static const struct fake_machine laptop = {.cores = 4, .threads = 2, .e_cores = 8};
static const struct fake_machine epyc = {
	.cores = 64, .threads = 2, .siblings = true, .l3_cores = 8};

#define RESERVED_0 "{reservedResources: {cpu: \"cpuset:0\"}}"

static struct fake_host *start(const struct fake_machine *m, const char *config)
{
	struct fake_host *f = fake_host_new(m);
	assert_int_equal(fake_policy_open(f, &rp_module_1), 0);
	if (config && fake_configure(f, config))
		fail_msg("%s: %s", config, fake_error(f));
	return f;
}

static rp_ctr add(struct fake_host *f, const char *name, uint32_t qos, int64_t cpu_request)
{
	return fake_ctr(f,
			&(struct fake_ctr){.name = name, .qos = qos, .cpu_request = cpu_request});
}

static rp_ctr create(struct fake_host *f, const char *name, uint32_t qos, int64_t cpu_request)
{
	rp_ctr c = add(f, name, qos, cpu_request);
	if (fake_allocate(f, c))
		fail_msg("%s: %s", name, fake_error(f));
	return c;
}

static rp_ctr guaranteed(struct fake_host *f, const char *name, int64_t cpus)
{
	return create(f, name, RP_QOS_GUARANTEED, cpus * 1000);
}

static rp_ctr best_effort(struct fake_host *f, const char *name)
{
	return create(f, name, RP_QOS_BEST_EFFORT, 0);
}

static void refused(struct fake_host *f, int64_t cpus, const char *error)
{
	rp_ctr c = add(f, "refused", RP_QOS_GUARANTEED, cpus * 1000);
	assert_int_equal(fake_allocate(f, c), -RP_ENOSPC);
	assert_string_equal(fake_error(f), error);
}

static int32_t resize(struct fake_host *f, rp_ctr c, int64_t mcpu)
{
	fake_request(f, c, mcpu, mcpu);
	return fake_update(f, c);
}

/* ---- who gets what ------------------------------------------------------------------------------------------------- */

static void test_exclusive(void **state)
{
	(void)state;
	struct fake_host *f = start(&n4c16, RESERVED_0);
	rp_ctr be = best_effort(f, "be");
	assert_string_equal(fake_cpus(f, be), "0-15");
	assert_string_equal(fake_data(f, be, "SHARED_CPUS"), "0-15");
	rp_ctr two = guaranteed(f, "two", 2);
	assert_string_equal(fake_cpus(f, two), "2-3");
	assert_string_equal(fake_exclusive(f, two), "2-3");
	assert_string_equal(fake_data(f, two, "EXCLUSIVE_CPUS"), "2-3");
	assert_null(fake_data(f, two, "SHARED_CPUS"));
	assert_string_equal(fake_cpus(f, be), "0-1,4-15");
	assert_string_equal(fake_data(f, be, "SHARED_CPUS"), "0-1,4-15");
	assert_int_equal(fake_int(f, two, RP_F_SHARES), RP_NOT_SET);
	assert_int_equal(fake_int(f, two, RP_F_QUOTA), RP_NOT_SET);
	assert_string_equal(fake_mems(f, two), "");
	rp_ctr three = guaranteed(f, "three", 3);
	assert_string_equal(fake_cpus(f, three), "1,4-5");
	assert_int_equal(fake_release(f, two), 0);
	assert_string_equal(fake_cpus(f, be), "0,2-3,6-15");
	assert_int_equal(fake_release(f, three), 0);
	assert_string_equal(fake_cpus(f, be), "0-15");
	fake_host_free(f);
}

static const struct {
	uint32_t qos;
	int64_t cpu_request;
	int exclusive;
} entitled[] = {
	{RP_QOS_BEST_EFFORT, 0, 0},   {RP_QOS_BURSTABLE, 2000, 0},  {RP_QOS_BURSTABLE, 0, 0},
	{RP_QOS_GUARANTEED, 1500, 0}, {RP_QOS_GUARANTEED, 0, 0},    {RP_QOS_GUARANTEED, 999, 0},
	{RP_QOS_GUARANTEED, 1000, 1}, {RP_QOS_GUARANTEED, 2000, 1},
};

static void test_who_is_entitled(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof entitled / sizeof entitled[0]; i++) {
		struct fake_host *f = start(&n4c16, RESERVED_0);
		rp_ctr c = create(f, "c", entitled[i].qos, entitled[i].cpu_request);
		assert_int_equal(!rp_ids_empty(fake_exclusive_ids(f, c)), entitled[i].exclusive);
		assert_string_not_equal(fake_trail(f, c), "");
		fake_host_free(f);
	}
}

/* Nothing that does not change is staged again. */
static void test_work_follows_change(void **state)
{
	(void)state;
	struct fake_host *f = start(&n4c16, RESERVED_0);
	for (int i = 0; i < 5; i++)
		best_effort(f, "be");
	rp_ctr c = best_effort(f, "last");
	assert_int_equal(fake_n_changed(f), 1);
	rp_ctr g = guaranteed(f, "g", 2);
	assert_int_equal(fake_n_changed(f), 7);
	assert_int_equal(fake_update(f, g), 0);
	assert_int_equal(fake_n_changed(f), 0);
	assert_int_equal(fake_sync(f), 0);
	assert_int_equal(fake_n_changed(f), 0);
	assert_int_equal(fake_release(f, c), 0);
	assert_int_equal(fake_n_changed(f), 0);
	fake_host_free(f);
}

static void test_preserved(void **state)
{
	(void)state;
	struct fake_host *f = start(&n4c16, RESERVED_0);
	rp_ctr c = fake_ctr(f, &(struct fake_ctr){.name = "p",
						  .qos = RP_QOS_GUARANTEED,
						  .cpu_request = 2000,
						  .flags = RP_CTR_PRESERVE_CPU});
	assert_int_equal(fake_allocate(f, c), 0);
	assert_string_equal(fake_cpus(f, c), "");
	rp_ctr g = guaranteed(f, "g", 2);
	assert_string_equal(fake_cpus(f, c), "");
	assert_int_equal(fake_sync(f), 0);
	assert_int_equal(fake_release(f, g), 0);
	assert_string_equal(fake_cpus(f, c), "");
	fake_host_free(f);
}

/* The runtime asks again when our reply was lost: same answer. */
static void test_asked_twice(void **state)
{
	(void)state;
	struct fake_host *f = start(&n4c16, RESERVED_0);
	rp_ctr g = guaranteed(f, "g", 2);
	assert_int_equal(fake_allocate(f, g), 0);
	assert_string_equal(fake_cpus(f, g), "2-3");
	assert_int_equal(fake_n_changed(f), 0);
	assert_int_equal(fake_release(f, g), 0);
	/* never placed */
	assert_int_equal(fake_release(f, add(f, "x", RP_QOS_GUARANTEED, 1000)), 0);
	fake_host_free(f);
}

/* A trial leaves no trace. */
static void test_trial(void **state)
{
	(void)state;
	struct fake_host *f = start(&n4c16, RESERVED_0);
	rp_ctr be = best_effort(f, "be");
	rp_ctr t = add(f, "t", RP_QOS_GUARANTEED, 4000);
	assert_int_equal(fake_try(f, t), 0);
	fake_forget(f, t);
	assert_string_equal(fake_cpus(f, be), "0-15");
	assert_string_equal(fake_cpus(f, guaranteed(f, "g", 4)), "4-7");
	fake_host_free(f);
}

static void test_init_containers_and_exit(void **state)
{
	(void)state;
	struct fake_host *f = start(&n4c16, "{reservedResources: {cpu: \"cpuset:0-7\"}}");
	assert_int_equal(fake_release(f, guaranteed(f, "init0", 8)), 0);
	assert_int_equal(fake_release(f, guaranteed(f, "init1", 2)), 0);
	guaranteed(f, "c0", 4);
	guaranteed(f, "c1", 4);
	refused(f, 1, "not enough cpus available to satisfy request: requested=1, available=0");
	fake_host_free(f);
}

/* ---- options ------------------------------------------------------------------------------------------------------- */

static void test_full_pcpus_only(void **state)
{
	(void)state;
	struct fake_host *f =
		start(&n4c16, "{reservedResources: {cpu: \"cpuset:0-1\"}, "
			      "cpuManagerPolicyOptions: {full-pcpus-only: \"true\"}}");
	refused(f, 3, "SMT Alignment Error: requested 3 cpus not multiple cpus per core = 2");
	refused(f, 1, "SMT Alignment Error: requested 1 cpus not multiple cpus per core = 2");
	assert_string_equal(fake_cpus(f, guaranteed(f, "p2", 2)), "2-3");
	assert_string_equal(fake_cpus(f, guaranteed(f, "p6", 6)), "4-9");
	rp_ctr bu = create(f, "bu", RP_QOS_BURSTABLE, 1000);
	assert_string_equal(fake_cpus(f, bu), "0-1,10-15");
	refused(f, 8,
		"SMT Alignment Error: not enough free physical CPUs: available physical CPUs = 6, "
		"requested CPUs = 8, CPUs per core = 2");
	assert_string_equal(fake_cpus(f, guaranteed(f, "rest", 6)), "10-15");
	assert_string_equal(fake_cpus(f, bu), "0-1");
	fake_host_free(f);
}

static void test_full_pcpus_reserved_sibling(void **state)
{
	(void)state;
	struct fake_host *f = start(&n4c16, "{reservedResources: {cpu: \"cpuset:0,8\"}, "
					    "cpuManagerPolicyOptions: {full-pcpus-only: true}}");
	refused(f, 14,
		"SMT Alignment Error: not enough free physical CPUs: available physical CPUs = 12, "
		"requested CPUs = 14, CPUs per core = 2");
	assert_string_equal(fake_cpus(f, guaranteed(f, "most", 12)), "2-7,10-15");
	refused(f, 2,
		"SMT Alignment Error: not enough free physical CPUs: available physical CPUs = 0, "
		"requested CPUs = 2, CPUs per core = 2");
	fake_host_free(f);
}

/* Fractions of cores left by containers from before the option was turned on are not used. */
static void test_full_pcpus_after_fractions(void **state)
{
	(void)state;
	struct fake_host *f = start(&n4c16, RESERVED_0);
	assert_string_equal(fake_cpus(f, guaranteed(f, "one", 1)), "1");
	assert_string_equal(fake_cpus(f, guaranteed(f, "three", 3)), "2-4");
	assert_int_equal(fake_configure(f, "{reservedResources: {cpu: \"cpuset:0\"}, "
					   "cpuManagerPolicyOptions: {full-pcpus-only: true}}"),
			 0);
	assert_string_equal(fake_cpus(f, guaranteed(f, "two", 2)), "6-7");
	assert_string_equal(fake_cpus(f, guaranteed(f, "eight", 8)), "8-15");
	refused(f, 2,
		"SMT Alignment Error: not enough free physical CPUs: available physical CPUs = 0, "
		"requested CPUs = 2, CPUs per core = 2");
	fake_host_free(f);
}

static void test_strict_reservation(void **state)
{
	(void)state;
	struct fake_host *f =
		start(&n4c16, "{reservedResources: {cpu: \"cpuset:0-1\"}, "
			      "cpuManagerPolicyOptions: {strict-cpu-reservation: \"true\"}}");
	rp_ctr be = best_effort(f, "be");
	assert_string_equal(fake_cpus(f, be), "2-15");
	rp_ctr g = guaranteed(f, "g", 4);
	assert_string_equal(fake_cpus(f, g), "4-7");
	refused(f, 10, "would leave fewer than 1 shared CPUs");
	guaranteed(f, "ok", 9);
	assert_int_equal(rp_ids_count(fake_cpu_ids(f, be)), 1);
	assert_int_equal(resize(f, g, 5000), -RP_ENOSPC);
	assert_string_equal(fake_error(f), "would leave fewer than 1 shared CPUs");
	assert_string_equal(fake_cpus(f, g), "4-7");
	fake_host_free(f);
}

static void test_all_reserved(void **state)
{
	(void)state;
	struct fake_host *f =
		start(&n4c16, "{reservedResources: {cpu: \"16\"}, "
			      "cpuManagerPolicyOptions: {strict-cpu-reservation: true}}");
	assert_non_null(strstr(fake_log(f), "no container can be placed"));
	rp_ctr c = add(f, "be", RP_QOS_BEST_EFFORT, 0);
	assert_int_equal(fake_allocate(f, c), -RP_ENOSPC);
	assert_string_equal(fake_error(f), "shared pool is empty");
	fake_host_free(f);
}

static void test_topology_manager(void **state)
{
	(void)state;
	static const char topology[] = "Resources cannot be allocated with Topology locality";
	struct fake_host *f = start(&n4c16, "{reservedResources: {cpu: \"cpuset:0,4,8,12\"}, "
					    "topologyManagerPolicy: restricted}");
	refused(f, 4, topology);
	assert_int_equal(fake_configure(f, "{reservedResources: {cpu: \"cpuset:0,4,8,12\"}, "
					   "topologyManagerPolicy: restricted, "
					   "cpuManagerPolicyOptions: {align-by-socket: \"true\"}}"),
			 0);
	rp_ctr p1 = guaranteed(f, "p1", 4);
	assert_string_equal(fake_cpus(f, p1), "2-3,6-7");
	assert_non_null(strstr(fake_trail(f, p1), "restricted: preferred NUMA nodes 0-1"));
	assert_string_equal(fake_cpus(f, guaranteed(f, "p2", 4)), "10-11,14-15");
	refused(f, 4, topology);
	assert_int_equal(fake_configure(f, "{reservedResources: {cpu: \"cpuset:0,4,8,12\"}, "
					   "topologyManagerPolicy: best-effort}"),
			 0);
	/* what does not fit the best nodes comes from the others */
	assert_string_equal(fake_cpus(f, guaranteed(f, "p3", 4)), "1,5,9,13");
	fake_host_free(f);
}

static void test_single_numa_node(void **state)
{
	(void)state;
	struct fake_host *f = start(&n4c16, "{reservedResources: {cpu: \"cpuset:0\"}, "
					    "topologyManagerPolicy: single-numa-node}");
	assert_string_equal(fake_cpus(f, guaranteed(f, "a", 4)), "4-7");
	assert_string_equal(fake_cpus(f, guaranteed(f, "b", 3)), "1-3");
	refused(f, 5, "Resources cannot be allocated with Topology locality");
	fake_host_free(f);
}

/* The allocator of the other policies, high priority first. */
static const struct {
	int64_t n;
	const char *cpus;
} common[] = {{1, "8"}, {2, "2-3"}, {3, "1-3"}, {4, "2-5"}, {8, "8-15"}, {12, "2-5,8-15"}};

static void test_common_allocator(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof common / sizeof common[0]; i++) {
		struct fake_host *f = start(&n4c16, "{reservedResources: {cpu: \"cpuset:0\"}, "
						    "cpuAllocator: common}");
		assert_string_equal(fake_cpus(f, guaranteed(f, "c", common[i].n)), common[i].cpus);
		fake_host_free(f);
	}
}

/* ---- isolated CPUs --------------------------------------------------------------------------------------------------- */

static rp_ctr annotated(struct fake_host *f, const char *name, int64_t cpus,
			const char *annotations)
{
	rp_ctr c = fake_ctr(f, &(struct fake_ctr){.name = name,
						  .qos = RP_QOS_GUARANTEED,
						  .cpu_request = cpus * 1000,
						  .annotations = annotations});
	if (fake_allocate(f, c))
		fail_msg("%s: %s", name, fake_error(f));
	return c;
}

#define ISOLATED_KEY "prefer-isolated-cpus.resource-policy.nri.io"
#define RESERVED_2 "reservedResources: {cpu: \"cpuset:2\"}"

static void test_isolated(void **state)
{
	(void)state;
	struct fake_host *f = start(&n4c16_isol01, "{" RESERVED_2 "}");
	rp_ctr be = best_effort(f, "be");
	assert_string_equal(fake_cpus(f, be), "2-15");
	/* two are not taken unasked */
	rp_ctr plain = guaranteed(f, "plain", 2);
	assert_false(rp_ids_has(fake_cpu_ids(f, plain), 0));
	rp_ctr asked = annotated(f, "asked", 2, ISOLATED_KEY "/container.asked=true");
	assert_string_equal(fake_cpus(f, asked), "0-1");
	assert_string_equal(fake_data(f, asked, "ISOLATED_CPUS"), "0-1");
	assert_null(fake_data(f, asked, "EXCLUSIVE_CPUS"));
	assert_non_null(strstr(fake_trail(f, asked), "annotation " ISOLATED_KEY));
	/* nobody else is touched by that */
	assert_int_equal(fake_n_changed(f), 1);
	rp_ctr late = annotated(f, "late", 2, ISOLATED_KEY "=true");
	assert_false(rp_ids_has(fake_cpu_ids(f, late), 0));
	assert_int_equal(fake_release(f, asked), 0);
	assert_int_equal(fake_n_changed(f), 0);
	/* a single one is */
	assert_string_equal(fake_cpus(f, guaranteed(f, "one", 1)), "0");
	assert_string_equal(fake_cpus(f, annotated(f, "no", 1, ISOLATED_KEY "=false")), "1");
	fake_host_free(f);
}

static void test_isolated_bad_annotation(void **state)
{
	(void)state;
	struct fake_host *f = start(&n4c16_isol01, "{" RESERVED_2 "}");
	rp_ctr c = annotated(f, "c", 2, ISOLATED_KEY "=perhaps");
	assert_false(rp_ids_has(fake_cpu_ids(f, c), 0));
	assert_non_null(strstr(fake_log(f), "\"perhaps\" is neither true nor false"));
	fake_host_free(f);
}

static void test_relaxed_isolation(void **state)
{
	(void)state;
	struct fake_host *f = start(&n4c16_isol01, "{" RESERVED_2 ", relaxedIsolation: true}");
	rp_ctr two = guaranteed(f, "two", 2);
	assert_string_equal(fake_cpus(f, two), "0-1");
	assert_non_null(strstr(fake_trail(f, two), "[relaxedIsolation] isolated CPUs 0-1"));
	fake_host_free(f);
	/* more than there are shared ones: isolated CPUs fill up */
	f = start(&n4c16_isol01, "{" RESERVED_2 "}");
	rp_ctr most = guaranteed(f, "most", 14);
	assert_int_equal(rp_ids_count(fake_exclusive_ids(f, most)), 14);
	assert_non_null(fake_data(f, most, "ISOLATED_CPUS"));
	assert_non_null(fake_data(f, most, "EXCLUSIVE_CPUS"));
	fake_host_free(f);
	/* whole isolated cores only */
	f = start(&n4c16_isol01, "{" RESERVED_2 ", relaxedIsolation: true, "
				 "cpuManagerPolicyOptions: {full-pcpus-only: true}}");
	assert_string_equal(fake_cpus(f, guaranteed(f, "core", 2)), "0-1");
	assert_string_equal(fake_cpus(f, guaranteed(f, "rest", 12)), "4-15");
	refused(f, 2,
		"SMT Alignment Error: not enough free physical CPUs: available physical CPUs = 0, "
		"requested CPUs = 2, CPUs per core = 2");
	fake_host_free(f);
}

/* ---- quota and memory -------------------------------------------------------------------------------------------------- */

static void test_quota_and_memory(void **state)
{
	(void)state;
	struct fake_host *f = start(&n4c16, "{reservedResources: {cpu: \"cpuset:0\"}, "
					    "disableCPUQuota: true, pinMemory: true}");
	rp_ctr be = best_effort(f, "be");
	assert_int_equal(fake_int(f, be, RP_F_QUOTA), RP_NOT_SET);
	assert_string_equal(fake_mems(f, be), "");
	rp_ctr g = guaranteed(f, "g", 4);
	assert_int_equal(fake_int(f, g, RP_F_QUOTA), -1);
	assert_string_equal(fake_mems(f, g), "1");
	/* back to the shared CPUs: quota and memory are as if it had always been there */
	assert_int_equal(resize(f, g, 1500), 0);
	assert_int_equal(fake_int(f, g, RP_F_QUOTA), 150000);
	assert_int_equal(fake_int(f, g, RP_F_PERIOD), 100000);
	assert_string_equal(fake_mems(f, g), "0-3");
	assert_string_equal(fake_exclusive(f, g), "");
	assert_int_equal(resize(f, g, 8000), 0);
	assert_string_equal(fake_mems(f, g), "2-3");
	/* turned off by a reload */
	assert_int_equal(fake_configure(f, RESERVED_0), 0);
	assert_string_equal(fake_cpus(f, g), "8-15");
	assert_int_equal(fake_int(f, g, RP_F_QUOTA), 800000);
	assert_string_equal(fake_mems(f, g), "0-3");
	fake_host_free(f);
}

static void test_memory_corner_cases(void **state)
{
	(void)state;
	struct fake_host *f = fake_host_new(&n4c16);
	fake_node_info(f, 1)->memory = 0;
	assert_int_equal(fake_set_offline(f, ""), 0);
	assert_int_equal(fake_policy_open(f, &rp_module_1), 0);
	assert_int_equal(fake_configure(f, "{reservedResources: {cpu: \"cpuset:0\"}, "
					   "disableCPUQuota: true, pinMemory: true}"),
			 0);
	rp_ctr g = guaranteed(f, "g", 4);
	assert_string_equal(fake_cpus(f, g), "4-7");
	assert_string_equal(fake_mems(f, g), "");
	rp_ctr p = fake_ctr(f, &(struct fake_ctr){.name = "p",
						  .qos = RP_QOS_GUARANTEED,
						  .cpu_request = 2000,
						  .flags = RP_CTR_PRESERVE_MEM});
	assert_int_equal(fake_allocate(f, p), 0);
	assert_string_equal(fake_mems(f, p), "");
	/* a limit that is none, and one that is tiny */
	fake_request(f, p, 0, 0);
	assert_int_equal(fake_update(f, p), 0);
	assert_int_equal(fake_int(f, p, RP_F_QUOTA), -1);
	fake_request(f, g, 5, 5);
	assert_int_equal(fake_update(f, g), 0);
	assert_int_equal(fake_int(f, g, RP_F_QUOTA), 1000);
	fake_host_free(f);
}

/* ---- resizing ---------------------------------------------------------------------------------------------------------- */

static void test_resize(void **state)
{
	(void)state;
	struct fake_host *f = start(&n4c16, RESERVED_0);
	rp_ctr be = best_effort(f, "be");
	rp_ctr g = guaranteed(f, "g", 2);
	assert_int_equal(resize(f, g, 3000), 0);
	assert_string_equal(fake_cpus(f, g), "1-3");
	assert_string_equal(fake_cpus(f, be), "0,4-15");
	assert_int_equal(resize(f, g, 5000), 0);
	assert_string_equal(fake_cpus(f, g), "1-5");
	assert_int_equal(resize(f, g, 16000), -RP_ENOSPC);
	assert_string_equal(
		fake_error(f),
		"not enough cpus available to satisfy request: requested=16, available=15");
	assert_string_equal(fake_cpus(f, g), "1-5");
	/* the whole core on the node where it has least */
	assert_int_equal(resize(f, g, 2000), 0);
	assert_string_equal(fake_cpus(f, g), "4-5");
	assert_string_equal(fake_cpus(f, be), "0-3,6-15");
	assert_int_equal(resize(f, g, 2500), 0);
	assert_string_equal(fake_cpus(f, g), "0-15");
	assert_string_equal(fake_cpus(f, be), "0-15");
	assert_int_equal(resize(f, g, 8000), 0);
	assert_string_equal(fake_cpus(f, g), "8-15");
	assert_int_equal(resize(f, be, 0), 0);
	assert_string_equal(fake_cpus(f, be), "0-7");
	fake_host_free(f);
}

static void test_resize_full_pcpus(void **state)
{
	(void)state;
	struct fake_host *f =
		start(&server_2s, "{reservedResources: {cpu: 2}, "
				  "cpuManagerPolicyOptions: {full-pcpus-only: true}}");
	rp_ctr g = guaranteed(f, "g", 2);
	assert_string_equal(fake_cpus(f, g), "1,65");
	assert_int_equal(resize(f, g, 3000), -RP_ENOSPC);
	assert_string_equal(fake_error(f),
			    "SMT Alignment Error: requested 3 cpus not multiple cpus per core = 2");
	assert_int_equal(resize(f, g, 6000), 0);
	assert_string_equal(fake_cpus(f, g), "1-3,65-67");
	assert_int_equal(resize(f, g, 128000), -RP_ENOSPC);
	assert_string_equal(
		fake_error(f),
		"SMT Alignment Error: not enough free physical CPUs: available physical "
		"CPUs = 126, requested CPUs = 128, CPUs per core = 2");
	assert_int_equal(resize(f, g, 4000), 0);
	assert_string_equal(fake_cpus(f, g), "1-2,65-66");
	fake_host_free(f);
}

/* What a shrinking container gives back goes to one that waits. */
static void test_resize_helps_waiting(void **state)
{
	(void)state;
	struct fake_host *f = start(&n4c16, NULL);
	rp_ctr a = add(f, "a", RP_QOS_GUARANTEED, 12000);
	rp_ctr b = add(f, "b", RP_QOS_GUARANTEED, 8000);
	assert_int_equal(fake_configure(f, RESERVED_0), 0);
	assert_string_equal(
		fake_degraded(f, b),
		"not enough cpus available to satisfy request: requested=8, available=3");
	assert_string_equal(fake_cpus(f, b), "0-3");
	assert_int_equal(resize(f, a, 6000), 0);
	assert_null(fake_degraded(f, b));
	assert_int_equal(rp_ids_count(fake_exclusive_ids(f, b)), 8);
	fake_host_free(f);
}

/* ---- configuration ----------------------------------------------------------------------------------------------------- */

#define OPTIONS(text) "{reservedResources: {cpu: 1}, cpuManagerPolicyOptions: {" text "}}"
#define PAIR(a, b)                                                                                 \
	"cpuManagerPolicyOptions: static policy options " a " and " b                              \
	" can not be used at the same time"

static const struct {
	const char *config, *error;
} bad_configs[] = {
	{"{}", "static policy cannot start without reserved CPUs"},
	{"{availableResources: {cpu: \"cpuset:0-15\"}}",
	 "static policy cannot start without reserved CPUs"},
	{"{reservedResources: {cpu: 0}}",
	 "reservedResources.cpu: static policy cannot start without reserved CPUs"},
	{"{reservedResources: {cpu: \"cpuset:16\"}}",
	 "reservedResources.cpu: some reserved CPUs (16) are unavailable"},
	{"{availableResources: {cpu: 1-7}, reservedResources: {cpu: \"cpuset:0,3\"}}",
	 "reservedResources.cpu: some reserved CPUs (0) are unavailable"},
	{"{reservedResources: {cpu: 17}}",
	 "reservedResources.cpu: 17 reserved CPUs are asked for and only 16 are available"},
	{"{availableResources: {cpu: 4}, reservedResources: {cpu: 1}}",
	 "availableResources.cpu: a quantity can not be used here"},
	{"{reservedResources: {cpu: \"exclude-cpuset:3\"}}",
	 "reservedResources.cpu: exclude-cpuset: can not be used here"},
	{OPTIONS("no-such-option: \"true\""), "cpuManagerPolicyOptions.no-such-option: unknown CPU "
					      "Manager Policy option: \"no-such-option\""},
	{OPTIONS("full-pcpus-only: maybe"),
	 "cpuManagerPolicyOptions.full-pcpus-only: bad value for option \"full-pcpus-only\": "
	 "\"maybe\" is neither true nor false"},
	{OPTIONS("full-pcpus-only: {a: 1}"),
	 "cpuManagerPolicyOptions.full-pcpus-only: bad value for option \"full-pcpus-only\": "
	 "\"\" is neither true nor false"},
	{OPTIONS("full-pcpus-only: true, distribute-cpus-across-cores: 1"),
	 PAIR("full-pcpus-only", "distribute-cpus-across-cores")},
	{OPTIONS("distribute-cpus-across-numa: T, distribute-cpus-across-cores: TRUE"),
	 PAIR("distribute-cpus-across-numa", "distribute-cpus-across-cores")},
	{OPTIONS("prefer-align-cpus-by-uncorecache: t, distribute-cpus-across-cores: True"),
	 PAIR("prefer-align-cpus-by-uncorecache", "distribute-cpus-across-cores")},
	{OPTIONS("prefer-align-cpus-by-uncorecache: true, distribute-cpus-across-numa: true"),
	 PAIR("prefer-align-cpus-by-uncorecache", "distribute-cpus-across-numa")},
	{"{reservedResources: {cpu: 1}, topologyManagerPolicy: single-numa-node, "
	 "cpuManagerPolicyOptions: {align-by-socket: true}}",
	 "topologyManagerPolicy: topologyManagerPolicy single-numa-node and option align-by-socket "
	 "can not be used at the same time"},
	{"{reservedResources: {cpu: 1}, topologyManagerScope: pod}",
	 "topologyManagerScope: topologyManagerScope pod is not supported"},
	{"{reservedResources: {cpu: 1}, cpuAllocator: common, "
	 "cpuManagerPolicyOptions: {distribute-cpus-across-numa: true}}",
	 "cpuManagerPolicyOptions: option distribute-cpus-across-numa can not be used with "
	 "cpuAllocator common"},
};

static void test_bad_configs(void **state)
{
	(void)state;
	struct fake_host *f = start(&n4c16, RESERVED_0);
	rp_ctr g = guaranteed(f, "g", 2);
	for (size_t i = 0; i < sizeof bad_configs / sizeof bad_configs[0]; i++) {
		assert_int_equal(fake_configure(f, bad_configs[i].config), -RP_EINVAL);
		assert_string_equal(fake_error(f), bad_configs[i].error);
		assert_string_equal(fake_cpus(f, g), "2-3");
	}
	assert_string_equal(fake_cpus(f, guaranteed(f, "next", 4)), "4-7");
	fake_host_free(f);
}

static const char *const good_configs[] = {
	OPTIONS("full-pcpus-only: true, distribute-cpus-across-numa: true"),
	OPTIONS("full-pcpus-only: true, prefer-align-cpus-by-uncorecache: true, "
		"strict-cpu-reservation: \"false\""),
	OPTIONS("Full-PCPUs-Only: false, distribute-cpus-across-cores: 0, align-by-socket: 1"),
	OPTIONS(""),
	"{ReservedResources: {CPU: 750m}, AvailableResources: {CPU: \"exclude-cpuset:15\"}}",
	"{reservedResources: {cpu: 1}, cpuAllocator: common, rdt: auto, topologyManagerScope: "
	"container, "
	"cpuManagerPolicyOptions: {full-pcpus-only: true, strict-cpu-reservation: true}}",
};

static void test_good_configs(void **state)
{
	(void)state;
	struct fake_host *f = start(&n4c16, RESERVED_0);
	rp_ctr g = guaranteed(f, "g", 3);
	for (size_t i = 0; i < sizeof good_configs / sizeof good_configs[0]; i++) {
		assert_int_equal(fake_prepare_only(f, good_configs[i]), 0);
		if (fake_configure(f, good_configs[i]))
			fail_msg("%s: %s", good_configs[i], fake_error(f));
		assert_string_equal(fake_cpus(f, g), "1-3");
	}
	fake_host_free(f);
}

static void test_machine_dependent_configs(void **state)
{
	(void)state;
	const struct fake_machine no_numa = {.packages = 2, .cores = 2, .no_numa = true};
	const struct fake_machine many_nodes = {.packages = 5, .nodes = 13};
	struct fake_host *f = start(&no_numa, NULL);
	assert_int_equal(fake_configure(f, OPTIONS("align-by-socket: true")), -RP_EINVAL);
	assert_string_equal(fake_error(f),
			    "cpuManagerPolicyOptions: option align-by-socket can not be used on a "
			    "machine with more sockets than NUMA nodes");
	fake_host_free(f);
	f = start(&many_nodes, NULL);
	assert_int_equal(fake_configure(f, "{reservedResources: {cpu: 1}, "
					   "topologyManagerPolicy: restricted}"),
			 -RP_EINVAL);
	assert_string_equal(
		fake_error(f),
		"topologyManagerPolicy: topologyManagerPolicy restricted can not be used "
		"with more than 64 NUMA nodes");
	fake_host_free(f);
	f = start(&laptop, OPTIONS("full-pcpus-only: true"));
	assert_non_null(strstr(fake_log(f), "<4>option full-pcpus-only has no effect here"));
	fake_host_free(f);
}

static void test_reconfigure_refusals(void **state)
{
	(void)state;
	struct fake_host *f = start(&n4c16, RESERVED_0);
	rp_ctr g = guaranteed(f, "g", 2);
	rp_ctr be = best_effort(f, "be");
	assert_int_equal(fake_configure(f, "{reservedResources: {cpu: \"cpuset:0,3\"}}"),
			 -RP_EBUSY);
	assert_string_equal(fake_error(f),
			    "reservedResources.cpu: some reserved CPUs (3) belong to "
			    "containers exclusively");
	assert_int_equal(fake_configure(f, "{availableResources: {cpu: \"cpuset:0-2,4-15\"}, "
					   "reservedResources: {cpu: \"cpuset:0\"}}"),
			 -RP_EBUSY);
	assert_string_equal(
		fake_error(f),
		"availableResources.cpu: some CPUs that belong to containers exclusively "
		"(3) would be unavailable");
	/* a reservation that is there already may stay where it is */
	assert_int_equal(fake_configure(f, "{reservedResources: {cpu: \"cpuset:0,4\"}}"), 0);
	assert_string_equal(fake_cpus(f, be), "0-1,4-15");
	guaranteed(f, "rest", 12);
	assert_string_equal(fake_cpus(f, be), "0,4");
	assert_int_equal(fake_configure(f,
					"{reservedResources: {cpu: \"cpuset:0,4\"}, "
					"cpuManagerPolicyOptions: {strict-cpu-reservation: true}}"),
			 -RP_EBUSY);
	assert_string_equal(fake_error(f), "this would leave fewer than 1 shared CPUs");
	assert_string_equal(fake_cpus(f, g), "2-3");
	fake_host_free(f);
}

/* Other options would reserve other CPUs; the choice made once stays, over a restart too. */
static void test_reserved_count_is_kept(void **state)
{
	(void)state;
	static const char plain[] = "{reservedResources: {cpu: 2}}";
	static const char spread[] = "{reservedResources: {cpu: 2}, cpuManagerPolicyOptions: "
				     "{distribute-cpus-across-cores: true}}";
	struct fake_host *f = start(&server_2s, spread);
	assert_non_null(strstr(fake_zones(f), "reserved cpuset: 0-1\n"));
	assert_int_equal(fake_configure(f, plain), 0);
	assert_non_null(strstr(fake_zones(f), "reserved cpuset: 0-1\n"));
	assert_int_equal(fake_restart(f), 0);
	assert_non_null(strstr(fake_zones(f), "reserved cpuset: 0-1\n"));
	assert_int_equal(fake_configure(f, "{reservedResources: {cpu: 3}}"), 0);
	assert_non_null(strstr(fake_zones(f), "reserved cpuset: 0-1,64\n"));
	fake_host_free(f);
	f = start(&server_2s, plain);
	assert_non_null(strstr(fake_zones(f), "reserved cpuset: 0,64\n"));
	fake_host_free(f);
}

static void test_saved_state(void **state)
{
	(void)state;
	struct fake_host *f = start(&n4c16, NULL);
	const struct rp_state *s = fake_module_service(f, RP_STATE_1);
	const void *data;
	uint32_t size;
	uint64_t copy[8];
	assert_int_equal(s->save(fake_instance(f), &data, &size), 0);
	assert_int_equal(fake_configure(f, "{reservedResources: {cpu: 2}}"), 0);
	assert_int_equal(s->save(fake_instance(f), &data, &size), 0);
	assert_true(size <= sizeof copy);
	memcpy(copy, data, size);
	assert_int_equal(s->load(fake_instance(f), copy, 3), -RP_EINVAL);
	assert_int_equal(s->load(fake_instance(f), copy, size - 1), -RP_EINVAL);
	assert_int_equal(s->load(fake_instance(f), copy, size), 0);
	((uint32_t *)copy)[0] = 99;
	assert_int_equal(s->load(fake_instance(f), copy, size), -RP_EINVAL);
	((uint32_t *)copy)[0] = 1;
	((uint32_t *)copy)[1] = UINT32_MAX;
	assert_int_equal(s->load(fake_instance(f), copy, size), -RP_EINVAL);
	fake_host_free(f);
}

/* ---- restart, hot-plug, other policies --------------------------------------------------------------------------------- */

static void test_restart(void **state)
{
	(void)state;
	struct fake_host *f = start(&n4c16, RESERVED_0);
	rp_ctr a = guaranteed(f, "a", 2), b = guaranteed(f, "b", 4);
	rp_ctr s = create(f, "s", RP_QOS_BURSTABLE, 500);
	assert_int_equal(fake_release(f, a), 0);
	rp_ctr c = guaranteed(f, "c", 1);
	assert_int_equal(fake_restart(f), 0);
	assert_int_equal(fake_n_changed(f), 0);
	assert_string_equal(fake_cpus(f, b), "4-7");
	assert_string_equal(fake_cpus(f, c), "1");
	assert_string_equal(fake_cpus(f, s), "0,2-3,8-15");
	assert_string_equal(fake_trail(f, b), "keeps the exclusive CPUs that it had\n");
	guaranteed(f, "d", 2);
	fake_host_free(f);
}

static void test_existing(void **state)
{
	(void)state;
	struct fake_host *f = start(&n4c16, NULL);
	rp_ctr be = add(f, "be", RP_QOS_BEST_EFFORT, 0);
	rp_ctr g0 = add(f, "g0", RP_QOS_GUARANTEED, 2000);
	rp_ctr g1 = add(f, "g1", RP_QOS_GUARANTEED, 8000);
	rp_ctr bu = add(f, "bu", RP_QOS_BURSTABLE, 2000);
	assert_int_equal(fake_configure(f, RESERVED_0), 0);
	assert_string_equal(fake_cpus(f, g0), "2-3");
	assert_string_equal(fake_cpus(f, g1), "8-15");
	assert_string_equal(fake_cpus(f, be), "0-1,4-7");
	assert_string_equal(fake_cpus(f, bu), "0-1,4-7");
	assert_int_equal(fake_release(f, g0), 0);
	assert_string_equal(fake_cpus(f, be), "0-7");
	fake_host_free(f);
}

/* What another policy decided is kept when it is what we could have decided. */
static void test_taking_over(void **state)
{
	(void)state;
	struct fake_host *f = start(&n4c16, NULL);
	rp_ctr right = add(f, "right", RP_QOS_GUARANTEED, 2000);
	rp_ctr mixed = add(f, "mixed", RP_QOS_GUARANTEED, 1500);
	rp_ctr size = add(f, "size", RP_QOS_GUARANTEED, 3000);
	rp_ctr reserved = add(f, "reserved", RP_QOS_GUARANTEED, 1000);
	rp_ctr wide = add(f, "wide", RP_QOS_GUARANTEED, 1000);
	fake_decide(f, right, "12-13", "12-13", "3");
	fake_decide(f, mixed, "4-6", "4", NULL);
	fake_decide(f, size, "8-9", "8-9", NULL);
	fake_decide(f, reserved, "0", "0", NULL);
	fake_decide(f, wide, "10-11", "10", NULL);
	assert_int_equal(fake_configure(f, RESERVED_0), 0);
	assert_string_equal(fake_cpus(f, right), "12-13");
	assert_string_equal(fake_mems(f, right), "3");
	assert_string_equal(fake_exclusive(f, mixed), "");
	assert_int_equal(rp_ids_count(fake_exclusive_ids(f, size)), 3);
	assert_false(rp_ids_has(fake_cpu_ids(f, reserved), 0));
	assert_int_equal(rp_ids_count(fake_cpu_ids(f, wide)), 1);
	fake_host_free(f);
}

/* Reserved meanwhile: kept, and shown. */
static void test_restart_with_other_reservation(void **state)
{
	(void)state;
	struct fake_host *f = start(&n4c16, RESERVED_0);
	rp_ctr g = guaranteed(f, "g", 2);
	rp_ctr be = best_effort(f, "be");
	assert_int_equal(fake_policy_open(f, &rp_module_1), 0);
	assert_int_equal(fake_configure(f, "{reservedResources: {cpu: \"cpuset:0,2\"}}"), 0);
	assert_string_equal(fake_cpus(f, g), "2-3");
	assert_string_equal(fake_degraded(f, g), "some of its exclusive CPUs are reserved by now");
	assert_string_equal(fake_cpus(f, be), "0-1,4-15");
	/* out of what is available: placed anew */
	assert_int_equal(fake_policy_open(f, &rp_module_1), 0);
	assert_int_equal(fake_configure(f, "{availableResources: {cpu: 4-15}, "
					   "reservedResources: {cpu: \"cpuset:4\"}}"),
			 0);
	assert_string_equal(fake_cpus(f, g), "6-7");
	assert_null(fake_degraded(f, g));
	fake_host_free(f);
}

/* With nothing left to share, what runs is squeezed onto the reserved CPUs until something comes free. */
static void test_nothing_left_to_share(void **state)
{
	(void)state;
	static const char strict[] = "{reservedResources: {cpu: \"cpuset:0-1\"}, "
				     "cpuManagerPolicyOptions: {strict-cpu-reservation: true}}";
	struct fake_host *f = start(&n4c16, "{reservedResources: {cpu: \"cpuset:0-1\"}}");
	rp_ctr g = guaranteed(f, "g", 12), h = guaranteed(f, "h", 2);
	rp_ctr be = best_effort(f, "be");
	assert_int_equal(fake_policy_open(f, &rp_module_1), 0);
	assert_int_equal(fake_configure(f, strict), 0);
	assert_string_equal(fake_cpus(f, be), "0-1");
	assert_string_equal(fake_degraded(f, be), "shared pool is empty");
	rp_ctr c = add(f, "c", RP_QOS_BEST_EFFORT, 0);
	assert_int_equal(fake_allocate(f, c), -RP_ENOSPC);
	assert_int_equal(fake_release(f, h), 0);
	assert_null(fake_degraded(f, be));
	assert_string_equal(fake_cpus(f, be), "2-3");
	assert_int_equal(fake_release(f, g), 0);
	assert_string_equal(fake_cpus(f, be), "2-15");
	fake_host_free(f);
}

static void test_degraded_is_retried(void **state)
{
	(void)state;
	struct fake_host *f = start(&n4c16, NULL);
	rp_ctr big = add(f, "big", RP_QOS_GUARANTEED, 12000);
	rp_ctr late = add(f, "late", RP_QOS_GUARANTEED, 8000);
	rp_ctr later = add(f, "later", RP_QOS_GUARANTEED, 9000);
	rp_ctr be = add(f, "be", RP_QOS_BEST_EFFORT, 0);
	assert_int_equal(fake_configure(f, RESERVED_0), 0);
	assert_non_null(fake_degraded(f, late));
	assert_non_null(strstr(fake_log(f), "requested=8, available=3; it shares CPUs for now"));
	assert_non_null(strstr(fake_trail(f, late), "no exclusive CPUs: not enough cpus"));
	assert_string_equal(fake_cpus(f, late), fake_cpus(f, be));
	assert_int_equal(fake_sync(f), 0);
	assert_int_equal(fake_n_changed(f), 0);
	assert_int_equal(fake_release(f, big), 0);
	assert_null(fake_degraded(f, late));
	assert_string_equal(fake_cpus(f, late), "8-15");
	assert_non_null(fake_degraded(f, later));
	assert_string_equal(fake_cpus(f, be), "0-7");
	assert_string_equal(fake_cpus(f, later), "0-7");
	/* it gives up its wish */
	assert_int_equal(resize(f, later, 500), 0);
	assert_null(fake_degraded(f, later));
	fake_host_free(f);
}

static void test_hotplug(void **state)
{
	(void)state;
	struct fake_host *f = start(&n4c16, RESERVED_0);
	rp_ctr be = best_effort(f, "be");
	rp_ctr g = guaranteed(f, "g", 4), h = guaranteed(f, "h", 2);
	assert_string_equal(fake_cpus(f, g), "4-7");
	assert_int_equal(fake_set_offline(f, "5,15"), 0);
	assert_string_equal(fake_cpus(f, h), "2-3");
	/* what is left of its node is a whole node, and 14 a whole core */
	assert_string_equal(fake_cpus(f, g), "4,6-7,14");
	assert_string_equal(fake_cpus(f, be), "0-1,8-13");
	assert_int_equal(fake_set_offline(f, ""), 0);
	assert_string_equal(fake_cpus(f, g), "4,6-7,14");
	assert_string_equal(fake_cpus(f, be), "0-1,5,8-13,15");
	/* even the reserved one may go */
	assert_int_equal(fake_set_offline(f, "0"), 0);
	assert_string_equal(fake_cpus(f, be), "1,5,8-13,15");
	assert_int_equal(fake_event(f, &(struct rp_event){.size = sizeof(struct rp_event),
							  .type = RP_EVENT_STARTED,
							  .object = g}),
			 0);
	assert_int_equal(fake_n_changed(f), 0);
	fake_host_free(f);
}

static void test_hotplug_reserved_count(void **state)
{
	(void)state;
	struct fake_host *f = start(&n4c16, "{reservedResources: {cpu: 3}}");
	assert_int_equal(fake_set_offline(f, "2-15"), 0);
	rp_ctr be = best_effort(f, "be");
	assert_string_equal(fake_cpus(f, be), "0-1");
	refused(f, 1, "not enough cpus available to satisfy request: requested=1, available=0");
	fake_host_free(f);
}

static void test_before_configuration(void **state)
{
	(void)state;
	struct fake_host *f = start(&n4c16, NULL);
	rp_ctr c = add(f, "c", RP_QOS_BEST_EFFORT, 0);
	assert_int_equal(fake_release(f, c), 0);
	c = add(f, "c", RP_QOS_BEST_EFFORT, 0);
	assert_int_equal(fake_allocate(f, c), -RP_EAGAIN);
	assert_string_equal(fake_error(f), "no configuration is in force");
	assert_int_equal(fake_sync(f), -RP_EAGAIN);
	assert_string_equal(fake_zones(f), "");
	assert_string_equal(fake_metrics(f), "");
	assert_int_equal(fake_set_offline(f, "3"), 0);
	fake_host_free(f);
}

/* ---- reports ----------------------------------------------------------------------------------------------------------- */

static void test_zones(void **state)
{
	(void)state;
	const struct fake_machine m = {
		.packages = 2, .cores = 2, .threads = 2, .isolated = "5", .memory_nodes = 1};
	struct fake_host *f = start(&m, "{availableResources: {cpu: 0-6}, "
					"reservedResources: {cpu: \"cpuset:0\"}}");
	guaranteed(f, "g", 2);
	assert_string_equal(fake_zones(f), "zone NUMA node #0 (numa node)\n"
					   "  cpu 4000/3000/1000\n"
					   "  cpuset: 0-3\n"
					   "  shared cpuset: 0-1\n"
					   "  reserved cpuset: 0\n"
					   "  cost NUMA node #0 10\n"
					   "  cost NUMA node #1 21\n"
					   "zone NUMA node #1 (numa node)\n"
					   "  cpu 4000/3000/3000\n"
					   "  cpuset: 4-7\n"
					   "  shared cpuset: 4,6\n"
					   "  isolated cpuset: 5\n"
					   "  cost NUMA node #0 21\n"
					   "  cost NUMA node #1 10\n");
	fake_host_free(f);
}

static void test_metrics(void **state)
{
	(void)state;
	struct fake_host *f = start(&n4c16_isol01, "{" RESERVED_2 "}");
	guaranteed(f, "g", 4);
	refused(f, 20, "not enough cpus available to satisfy request: requested=20, available=11");
	assert_string_equal(fake_metrics(f), "policy_static_cpus{set=\"shared\"} 10\n"
					     "policy_static_cpus{set=\"reserved\"} 1\n"
					     "policy_static_cpus{set=\"exclusive\"} 4\n"
					     "policy_static_cpus{set=\"isolated_free\"} 2\n"
					     "policy_static_exclusive_placements_total{} 1\n"
					     "policy_static_refusals_total{} 1\n");
	fake_host_free(f);
}

static void test_explanations(void **state)
{
	(void)state;
	struct fake_host *f = start(&n4c16, "{reservedResources: {cpu: \"cpuset:0\"}, "
					    "cpuManagerPolicyOptions: {full-pcpus-only: true}}");
	assert_string_equal(
		fake_trail(f, guaranteed(f, "g", 2)),
		"Guaranteed pod, request of 2 whole CPUs: exclusive CPUs\n"
		"[cpuManagerPolicyOptions] CPUs 2-3 by packing, of the candidates 2-15\n");
	assert_string_equal(fake_trail(f, best_effort(f, "be")),
			    "the pod is not Guaranteed: shared CPUs\n"
			    "all available CPUs but those of exclusive containers\n");
	assert_string_equal(fake_trail(f, create(f, "half", RP_QOS_GUARANTEED, 1500)),
			    "request of 1500m is no whole number of CPUs: shared CPUs\n"
			    "all available CPUs but those of exclusive containers\n");
	assert_string_equal(fake_trail(f, create(f, "none", RP_QOS_GUARANTEED, 0)),
			    "no CPU request: shared CPUs\n"
			    "all available CPUs but those of exclusive containers\n");
	assert_int_equal(fake_configure(f, OPTIONS("strict-cpu-reservation: true")), 0);
	assert_string_equal(fake_trail(f, best_effort(f, "strict")),
			    "the pod is not Guaranteed: shared CPUs\n"
			    "[cpuManagerPolicyOptions] all available CPUs but those of exclusive "
			    "containers and the reserved ones (strict-cpu-reservation)\n");
	fake_host_free(f);
}

static const struct {
	const char *config, *rule;
} rules[] = {
	{"{reservedResources: {cpu: 1}, cpuAllocator: common}", "by the common allocator"},
	{OPTIONS("distribute-cpus-across-numa: 1"), "by distribute-cpus-across-numa"},
	{OPTIONS("distribute-cpus-across-cores: 1"), "by distribute-cpus-across-cores"},
	{OPTIONS("prefer-align-cpus-by-uncorecache: 1"), "by packing into caches"},
};

static void test_rules_are_named(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
		struct fake_host *f = start(&n4c16, rules[i].config);
		assert_non_null(strstr(fake_trail(f, guaranteed(f, "g", 2)), rules[i].rule));
		fake_host_free(f);
	}
}

/* ---- faults ------------------------------------------------------------------------------------------------------------ */

static int32_t fault_allocate(struct fake_host *f)
{
	return fake_allocate(f, add(f, "new", RP_QOS_GUARANTEED, 2000));
}

static int32_t fault_share(struct fake_host *f)
{
	return fake_allocate(f, add(f, "new", RP_QOS_BEST_EFFORT, 0));
}

static int32_t fault_update(struct fake_host *f)
{
	return resize(f, fake_ctr_named(f, "g"), 1500);
}

static int32_t fault_sync(struct fake_host *f)
{
	return fake_sync(f);
}

static int32_t fault_configure(struct fake_host *f)
{
	return fake_configure(f, "{reservedResources: {cpu: \"cpuset:0\"}}");
}

static int32_t (*const faults[])(struct fake_host *) = {fault_allocate, fault_share, fault_update,
							fault_sync, fault_configure};

static struct fake_host *before_fault(void)
{
	struct fake_host *f = start(&n4c16, "{reservedResources: {cpu: \"cpuset:0\"}, "
					    "pinMemory: true, disableCPUQuota: true}");
	guaranteed(f, "g", 4);
	best_effort(f, "be");
	rp_ctr d = add(f, "d", RP_QOS_GUARANTEED, 12000);
	assert_int_equal(fake_sync(f), 0);
	assert_non_null(fake_degraded(f, d));
	return f;
}

/* Whichever host call fails: an error leaves all as it was, and the next one goes as if nothing had been. */
static void test_faults(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
		uint32_t n_failed = 0;
		for (uint32_t n = 1;; n++) {
			struct fake_host *f = before_fault();
			fake_fail_after(f, n, n % 2 ? RP_ENOMEM : RP_ESTALE);
			int32_t r = faults[i](f);
			uint32_t calls = fake_n_calls(f);
			fake_fail_after(f, 0, 0);
			if (r) {
				n_failed++;
				assert_string_equal(fake_cpus(f, fake_ctr_named(f, "g")), "4-7");
				assert_string_equal(fake_cpus(f, fake_ctr_named(f, "be")),
						    "0-3,8-15");
				if (faults[i] != fault_configure)
					assert_string_equal(fake_cpus(f, guaranteed(f, "x", 8)),
							    "8-15");
			}
			fake_host_free(f);
			if (calls < n)
				break;
		}
		assert_true(n_failed > 3);
	}
}

static void test_missing_services(void **state)
{
	(void)state;
	static const char *const needed[] = {RP_HOST_TOPOLOGY_1, RP_HOST_CACHE_1, RP_HOST_CONFIG_1};
	static const char *const optional[] = {RP_HOST_EXPLAIN_1, RP_HOST_TIMER_1, RP_HOST_WORK_1};
	for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++) {
		struct fake_host *f = fake_host_new(&n4c16);
		fake_hide_service(f, needed[i]);
		assert_int_equal(fake_policy_open(f, &rp_module_1), -RP_ENOTSUP);
		assert_non_null(strstr(fake_error(f), needed[i]));
		fake_host_free(f);
	}
	for (size_t i = 0; i < sizeof optional / sizeof optional[0]; i++) {
		struct fake_host *f = fake_host_new(&n4c16);
		fake_hide_service(f, optional[i]);
		assert_int_equal(fake_policy_open(f, &rp_module_1), 0);
		assert_int_equal(fake_configure(f, RESERVED_0), 0);
		assert_string_equal(fake_cpus(f, guaranteed(f, "g", 2)), "2-3");
		fake_host_free(f);
	}
	assert_null(rp_module_1.service(NULL, "nri-rp.unheard-of/1"));
	assert_non_null(rp_module_1.service(NULL, RP_SCHEMA_1));
}

/* ---- churn ------------------------------------------------------------------------------------------------------------- */

#define CHURN_CTRS 48
#define CHURN_STEPS 10000

struct churn {
	const char *name;
	const struct fake_machine *machine;
	const char *config, *other; /* switched between */
	int64_t max; /* CPUs of a request */
};

#define STRICT_FULL                                                                                \
	"{reservedResources: {cpu: 2}, cpuManagerPolicyOptions: "                                  \
	"{full-pcpus-only: true, strict-cpu-reservation: true}}"

static const struct churn churns[] = {
	{"n4c16", &n4c16, RESERVED_0,
	 "{reservedResources: {cpu: \"cpuset:0\"}, topologyManagerPolicy: best-effort}", 6},
	{"isolated", &n4c16_isol01, "{" RESERVED_2 "}", "{" RESERVED_2 ", relaxedIsolation: true}",
	 5},
	{"full cores", &n4c128, STRICT_FULL,
	 "{reservedResources: {cpu: 2}, topologyManagerPolicy: restricted}", 24},
	{"distributed", &server_2s, OPTIONS("distribute-cpus-across-numa: 1"),
	 OPTIONS("distribute-cpus-across-numa: 1, align-by-socket: 1, full-pcpus-only: 1"), 40},
	{"hybrid", &laptop, OPTIONS(""), OPTIONS("distribute-cpus-across-cores: 1"), 5},
	{"caches", &epyc, OPTIONS("prefer-align-cpus-by-uncorecache: 1"),
	 "{reservedResources: {cpu: 1}, cpuAllocator: common, pinMemory: true}", 30},
};

struct churning {
	const struct churn *c;
	struct fake_host *f;
	rp_ctr ctrs[CHURN_CTRS];
	rp_ctr witness; /* best effort, there all the time */
	uint32_t n_placed;
};

static rp_ctr random_ctr(struct churning *x)
{
	int64_t mcpu = 1000 * (1 + random() % x->c->max) + (random() % 4 ? 0 : 500);
	return add(x->f, "c", (uint32_t)(random() % 2 ? RP_QOS_GUARANTEED : random() % 3), mcpu);
}

static void churn_step(struct churning *x)
{
	rp_ctr *slot = &x->ctrs[random() % CHURN_CTRS];
	long what = random() % 100;
	if (what == 0) {
		(void)fake_configure(x->f, random() % 2 ? x->c->config : x->c->other);
	} else if (what == 1) {
		assert_int_equal(fake_restart(x->f), 0);
		assert_int_equal(fake_n_changed(x->f), 0);
	} else if (what < 5 && !*slot) {
		rp_ctr c = random_ctr(x);
		(void)fake_try(x->f, c);
		fake_forget(x->f, c);
	} else if (what < 20 && *slot) {
		(void)resize(x->f, *slot, 1000 * (1 + random() % x->c->max));
	} else if (*slot) {
		assert_int_equal(fake_release(x->f, *slot), 0);
		*slot = 0;
	} else {
		*slot = random_ctr(x);
		if (fake_allocate(x->f, *slot))
			*slot = 0;
		else
			x->n_placed++;
	}
}

/* Whoever shares has the same CPUs, and with what is given away they make up the whole. */
static void churn_check(struct churning *x, struct rp_ids whole)
{
	struct rp_idset given, all;
	struct rp_ids shared = fake_cpu_ids(x->f, x->witness);
	rp_idset_clear(&given);
	for (int i = 0; i < CHURN_CTRS; i++) {
		if (!x->ctrs[i])
			continue;
		struct rp_ids own = fake_exclusive_ids(x->f, x->ctrs[i]);
		if (rp_ids_empty(own))
			assert_true(rp_ids_equal(fake_cpu_ids(x->f, x->ctrs[i]), shared));
		assert_false(rp_ids_overlap(own, rp_ids_of(&given)));
		rp_idset_or(&given, rp_ids_of(&given), own);
	}
	assert_false(rp_ids_overlap(rp_ids_of(&given), shared));
	rp_idset_or(&all, rp_ids_of(&given), shared);
	assert_true(rp_ids_subset(whole, rp_ids_of(&all)));
	assert_false(rp_ids_empty(shared));
}

static uint64_t hash_of(struct churning *x, uint64_t hash)
{
	for (int i = 0; i < CHURN_CTRS; i++)
		for (const char *p = x->ctrs[i] ? fake_cpus(x->f, x->ctrs[i]) : "-"; *p; p++)
			hash = (hash ^ (unsigned char)*p) * UINT64_C(0x100000001b3);
	return hash;
}

static uint64_t run_churn(const struct churn *c, int n_steps)
{
	struct churning x = {.c = c, .f = start(c->machine, c->config)};
	struct rp_idset whole, start_cpus;
	uint64_t hash = UINT64_C(0xcbf29ce484222325);
	srandom(5);
	x.witness = best_effort(x.f, "witness");
	rp_idset_copy(&start_cpus, fake_cpu_ids(x.f, x.witness));
	for (int i = 0; i < n_steps; i++) {
		churn_step(&x);
		/* the reserved CPUs are shared or not, by what is in force */
		rp_idset_copy(&whole, rp_ids_of(&start_cpus));
		if (strstr(c->config, "strict") || strstr(c->other, "strict"))
			rp_idset_clear(&whole);
		churn_check(&x, rp_ids_of(&whole));
		hash = hash_of(&x, hash);
	}
	assert_true(x.n_placed > (uint32_t)n_steps / 20);
	for (int i = 0; i < CHURN_CTRS; i++)
		if (x.ctrs[i])
			assert_int_equal(fake_release(x.f, x.ctrs[i]), 0);
	assert_int_equal(fake_configure(x.f, c->config), 0);
	assert_true(rp_ids_equal(fake_cpu_ids(x.f, x.witness), rp_ids_of(&start_cpus)));
	fake_host_free(x.f);
	return hash;
}

static void test_churn(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof churns / sizeof churns[0]; i++)
		(void)run_churn(&churns[i], CHURN_STEPS);
}

static void test_deterministic(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof churns / sizeof churns[0]; i++)
		assert_true(run_churn(&churns[i], 500) == run_churn(&churns[i], 500));
}

static void test_thousand(void **state)
{
	(void)state;
	struct fake_host *f = start(&n4c128, "{reservedResources: {cpu: 2}}");
	for (int i = 0; i < 1000; i++)
		best_effort(f, "be");
	rp_ctr last = fake_ctr_named(f, "be");
	rp_ctr g = guaranteed(f, "g", 4);
	assert_int_equal(fake_n_changed(f), 1001);
	assert_int_equal(rp_ids_count(fake_cpu_ids(f, last)), 124);
	assert_int_equal(fake_restart(f), 0);
	assert_int_equal(fake_n_changed(f), 0);
	assert_int_equal(fake_release(f, g), 0);
	assert_int_equal(rp_ids_count(fake_cpu_ids(f, last)), 128);
	fake_host_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exclusive),
		cmocka_unit_test(test_who_is_entitled),
		cmocka_unit_test(test_work_follows_change),
		cmocka_unit_test(test_preserved),
		cmocka_unit_test(test_asked_twice),
		cmocka_unit_test(test_trial),
		cmocka_unit_test(test_init_containers_and_exit),
		cmocka_unit_test(test_full_pcpus_only),
		cmocka_unit_test(test_full_pcpus_reserved_sibling),
		cmocka_unit_test(test_full_pcpus_after_fractions),
		cmocka_unit_test(test_strict_reservation),
		cmocka_unit_test(test_all_reserved),
		cmocka_unit_test(test_topology_manager),
		cmocka_unit_test(test_single_numa_node),
		cmocka_unit_test(test_common_allocator),
		cmocka_unit_test(test_isolated),
		cmocka_unit_test(test_isolated_bad_annotation),
		cmocka_unit_test(test_relaxed_isolation),
		cmocka_unit_test(test_quota_and_memory),
		cmocka_unit_test(test_memory_corner_cases),
		cmocka_unit_test(test_resize),
		cmocka_unit_test(test_resize_full_pcpus),
		cmocka_unit_test(test_resize_helps_waiting),
		cmocka_unit_test(test_bad_configs),
		cmocka_unit_test(test_good_configs),
		cmocka_unit_test(test_machine_dependent_configs),
		cmocka_unit_test(test_reconfigure_refusals),
		cmocka_unit_test(test_reserved_count_is_kept),
		cmocka_unit_test(test_saved_state),
		cmocka_unit_test(test_restart),
		cmocka_unit_test(test_existing),
		cmocka_unit_test(test_taking_over),
		cmocka_unit_test(test_restart_with_other_reservation),
		cmocka_unit_test(test_nothing_left_to_share),
		cmocka_unit_test(test_degraded_is_retried),
		cmocka_unit_test(test_hotplug),
		cmocka_unit_test(test_hotplug_reserved_count),
		cmocka_unit_test(test_before_configuration),
		cmocka_unit_test(test_zones),
		cmocka_unit_test(test_metrics),
		cmocka_unit_test(test_explanations),
		cmocka_unit_test(test_rules_are_named),
		cmocka_unit_test(test_faults),
		cmocka_unit_test(test_missing_services),
		cmocka_unit_test(test_churn),
		cmocka_unit_test(test_deterministic),
		cmocka_unit_test(test_thousand),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
