/* SPDX-License-Identifier: Apache-2.0 */
/* The static policy from outside: who gets which CPUs. */
#include "test/unit/t_static.h"

/* ---- who gets what --------------------------------------------------------------------------- */

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

/* ---- options --------------------------------------------------------------------------------- */

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

/* ---- isolated CPUs --------------------------------------------------------------------------- */

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

/* ---- quota and memory ------------------------------------------------------------------------ */

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

/* ---- resizing -------------------------------------------------------------------------------- */

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

/* ---- large machines -------------------------------------------------------------------------- */

/* Every other CPU, so many of them; text has room for all. */
static void every_other(char *text, size_t size, uint32_t first, uint32_t n)
{
	struct rp_idset set;
	rp_idset_clear(&set);
	for (uint32_t i = 0; i < n; i++)
		rp_idset_add(&set, first + 2 * i);
	assert_true(rp_ids_format(rp_ids_of(&set), text, (uint32_t)size) < size);
}

/* What is too long for a line of the data file is left out of it, with a warning; placing goes
 * on. */
static void test_scattered_cpus(void **state)
{
	(void)state;
	static const struct fake_machine huge = {
		.packages = 4, .nodes = 4, .cores = 128, .threads = 2, .siblings = true};
	char *config = malloc(32768), *odd = malloc(32768);
	assert_non_null(config);
	assert_non_null(odd);
	size_t n = (size_t)snprintf(config, 32768,
				    "{cpuManagerPolicyOptions: {strict-cpu-reservation: true}, "
				    "reservedResources: {cpu: \"cpuset:");
	every_other(config + n, 16384, 0, 2048);
	strcat(config, "\"}}");
	struct fake_host *f = start(&huge, config);
	rp_ctr shared = best_effort(f, "shared");
	every_other(odd, 32768, 1, 2048);
	assert_true(strlen(odd) > 4096);
	assert_string_equal(fake_cpus(f, shared), odd);
	assert_null(fake_data(f, shared, "SHARED_CPUS"));
	assert_non_null(strstr(fake_log(f), "SHARED_CPUS is too long"));
	rp_ctr most = guaranteed(f, "most", 1800);
	assert_true(strlen(fake_exclusive(f, most)) > 4096);
	assert_null(fake_data(f, most, "EXCLUSIVE_CPUS"));
	/* what is left fits again */
	assert_int_equal(rp_ids_count(fake_cpu_ids(f, shared)), 248);
	assert_string_equal(fake_data(f, shared, "SHARED_CPUS"), fake_cpus(f, shared));
	assert_int_equal(fake_release(f, most), 0);
	assert_null(fake_data(f, shared, "SHARED_CPUS"));
	assert_int_equal(fake_restart(f), 0);
	assert_int_equal(fake_n_changed(f), 0);
	fake_host_free(f);
	free(config);
	free(odd);
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
		cmocka_unit_test(test_scattered_cpus),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
