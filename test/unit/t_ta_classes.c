/* SPDX-License-Identifier: Apache-2.0 */
/* The topology-aware policy's CPU classes, scheduling classes and interrupts: as annotated, and as
 * files of a fake machine have it. */
#include "test/unit/t_ta.h"

#define CPU "/sys/devices/system/cpu/"
#define DOMAIN ".resource-policy.nri.io"
#define PLAIN "{reservedResources: {cpu: \"cpuset:0\"}}"
#define GUARANTEED .qos = RP_QOS_GUARANTEED, .mem_request = 1 << 20, .mem_limit = 1 << 20
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct fake_host *start_files(const char *config)
{
	struct fake_host *f = fake_host_new(&small);
	char path[128];
	static const char *const files[][2] = {
		{"scaling_min_freq", "800000\n"},    {"scaling_max_freq", "3500000\n"},
		{"cpuinfo_min_freq", "800000\n"},    {"cpuinfo_max_freq", "3500000\n"},
		{"scaling_governor", "powersave\n"}, {"base_frequency", "2400000\n"},
	};
	for (unsigned cpu = 0; cpu < 16; cpu++)
		for (size_t i = 0; i < COUNT(files); i++) {
			(void)snprintf(path, sizeof path, CPU "cpu%u/cpufreq/%s", cpu, files[i][0]);
			fake_file(f, path, files[i][1]);
		}
	(void)start_on(f, config);
	(void)fake_run_work(f);
	return f;
}

static rp_ctr add_files(struct fake_host *f, const struct fake_ctr *desc)
{
	rp_ctr c = add(f, desc);
	(void)fake_run_work(f);
	return c;
}

/* What was written of a CPU's highest frequency; "-": nothing. */
static const char *max_of(struct fake_host *f, uint32_t cpu)
{
	char path[128];
	(void)snprintf(path, sizeof path, CPU "cpu%u/cpufreq/scaling_max_freq", cpu);
	const char *text = fake_written(f, path);
	return text ? text : "-";
}

static void assert_max(struct fake_host *f, struct rp_ids cpus, const char *khz)
{
	assert_false(rp_ids_empty(cpus));
	RP_IDS_EACH (cpu, cpus)
		if (strcmp(max_of(f, cpu), khz) != 0)
			fail_msg("CPU %u has %s, not %s", cpu, max_of(f, cpu), khz);
}

/* ---- CPU classes ----------------------------------------------------------------------------- */

#define CLASSES                                                                                    \
	"cpuClasses: [{name: fast, maxFreq: 3GHz}, {name: slow, maxFreq: 1GHz}, {name: own, "      \
	"maxFreq: 2GHz}]"
#define WITH_CLASSES                                                                               \
	"{reservedResources: {cpu: \"cpuset:0\"}, " CLASSES                                        \
	", sharedPoolCPUClass: slow, reservedPoolCPUClass: own, defaultExclusiveCPUClass: fast}"

static void test_classes(void **state)
{
	struct fake_host *f = start_files(WITH_CLASSES);
	struct rp_idset was;
	(void)state;
	assert_string_equal(max_of(f, 0), "2000000");
	assert_string_equal(max_of(f, 1), "1000000");
	assert_string_equal(max_of(f, 15), "1000000");
	rp_ctr c = add_files(
		f, &(struct fake_ctr){.name = "default", GUARANTEED, .cpu_request = 2000});
	assert_max(f, fake_exclusive_ids(f, c), "3000000");
	rp_ctr own = add_files(f, &(struct fake_ctr){.name = "own",
						     GUARANTEED,
						     .cpu_request = 1000,
						     .annotations = "cpu-class" DOMAIN "=own"});
	assert_max(f, fake_exclusive_ids(f, own), "2000000");
	rp_ctr shared = add_files(f, &(struct fake_ctr){.name = "shared",
							.qos = RP_QOS_BURSTABLE,
							.cpu_request = 500,
							.annotations = "cpu-class" DOMAIN "=own"});
	assert_max(f, fake_cpu_ids(f, shared), "1000000");
	rp_idset_copy(&was, fake_exclusive_ids(f, c));
	assert_int_equal(fake_release(f, c), 0);
	(void)fake_run_work(f);
	assert_max(f, rp_ids_of(&was), "1000000");
	/* without them CPUs are as they were before */
	assert_int_equal(fake_configure(f, PLAIN), 0);
	(void)fake_run_work(f);
	assert_string_equal(max_of(f, 0), "3500000");
	assert_max(f, fake_cpu_ids(f, own), "3500000");
	fake_host_free(f);
}

static void test_refused_classes(void **state)
{
	static const struct {
		struct fake_ctr ctr;
		const char *why;
	} rows[] = {
		{{.name = "x",
		  .qos = RP_QOS_BURSTABLE,
		  .cpu_request = 1000,
		  .annotations = "cpu-class" DOMAIN "/container.x=fast"},
		 "CPU class \"fast\" is invalid for non-Guaranteed QoS class"},
		{{.name = "x",
		  GUARANTEED,
		  .cpu_request = 500,
		  .annotations = "cpu-class" DOMAIN "/container.x=fast"},
		 "CPU class \"fast\" is invalid without exclusive CPUs"},
		{{.name = "x",
		  GUARANTEED,
		  .cpu_request = 1000,
		  .annotations = "cpu-class" DOMAIN "=none-such"},
		 "there is no CPU class \"none-such\""},
	};
	struct fake_host *f = start_files(WITH_CLASSES);
	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++)
		assert_refused(f, &rows[i].ctr, rows[i].why);
	/* what is said of the whole pod is not meant for this container */
	rp_ctr c = add_files(f, &(struct fake_ctr){.name = "x",
						   GUARANTEED,
						   .cpu_request = 500,
						   .annotations = "cpu-class" DOMAIN "=fast"});
	assert_max(f, fake_cpu_ids(f, c), "1000000");
	fake_host_free(f);
	/* where there are none at all */
	f = start_files(PLAIN);
	assert_refused(f, &rows[2].ctr, rows[2].why);
	fake_host_free(f);
}

static void test_refused_configurations(void **state)
{
	static const struct {
		const char *config, *why;
	} rows[] = {
		{"{reservedResources: {cpu: 1}, " CLASSES "}", "sharedPoolCPUClass"},
		{"{reservedResources: {cpu: 1}, " CLASSES ", sharedPoolCPUClass: x}",
		 "there is no CPU class \"x\""},
		{"{reservedResources: {cpu: 1}, " CLASSES
		 ", sharedPoolCPUClass: slow, reservedPoolCPUClass: y}",
		 "there is no CPU class \"y\""},
		{"{reservedResources: {cpu: 1}, " CLASSES
		 ", sharedPoolCPUClass: slow, defaultExclusiveCPUClass: z}",
		 "there is no CPU class \"z\""},
		{"{reservedResources: {cpu: 1}, cpuClasses: [{name: a, minFreq: 3GHz, maxFreq: "
		 "1GHz}], sharedPoolCPUClass: a}",
		 ""},
		{"{reservedResources: {cpu: 1}, schedulingClasses: [{name: a}], "
		 "podQoSSchedulingClasses: {good: a}}",
		 "unknown QoS class \"good\""},
		{"{reservedResources: {cpu: 1}, namespaceSchedulingClasses: {a: b}}",
		 "there is no scheduling class \"b\""},
	};
	struct fake_host *f = start_files(WITH_CLASSES);
	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		if (!fake_prepare_only(f, rows[i].config))
			fail_msg("%s is taken", rows[i].config);
		if (!*fake_error(f) || !strstr(fake_error(f), rows[i].why))
			fail_msg("\"%s\" is not in \"%s\"", rows[i].why, fake_error(f));
	}
	assert_int_equal(fake_run_work(f), 0);
	fake_host_free(f);
}

/* A class that goes while a container is annotated with it: the container runs on, by what is left
 * of its wishes. */
static void test_a_class_goes(void **state)
{
	struct fake_host *f = start_files(WITH_CLASSES);
	(void)state;
	rp_ctr c = add_files(f, &(struct fake_ctr){.name = "x",
						   GUARANTEED,
						   .cpu_request = 2000,
						   .annotations = "cpu-class" DOMAIN "=own"});
	struct rp_idset was;
	rp_idset_copy(&was, fake_cpu_ids(f, c));
	assert_int_equal(fake_configure(f, "{reservedResources: {cpu: \"cpuset:0\"}, cpuClasses: "
					   "[{name: slow, maxFreq: 1GHz}], sharedPoolCPUClass: "
					   "slow}"),
			 0);
	(void)fake_run_work(f);
	assert_non_null(strstr(fake_log(f), "one of its annotations is not valid"));
	assert_true(rp_ids_subset(rp_ids_of(&was), fake_cpu_ids(f, c)));
	assert_int_equal(fake_release(f, c), 0);
	fake_host_free(f);
}

/* ---- scheduling classes ---------------------------------------------------------------------- */

#define SCHEDULING                                                                                 \
	"{reservedResources: {cpu: \"cpuset:0\"}, schedulingClasses: [{name: dl, policy: "         \
	"deadline, runtime: 10, deadline: 20, period: 30, flags: [reclaim, dl-overrun]}, "         \
	"{name: io, ioClass: be, ioPriority: 7}, {name: nothing}, {name: idle, policy: idle}], "   \
	"namespaceSchedulingClasses: {web: io, batch: idle}, podQoSSchedulingClasses: "            \
	"{besteffort: idle, burstable: io, guaranteed: nothing}}"

static void test_scheduling(void **state)
{
	static const struct {
		struct fake_ctr ctr;
		int64_t policy, io_priority, runtime;
	} rows[] = {
		{{.name = "a", .qos = RP_QOS_BEST_EFFORT}, 5, RP_NOT_SET, RP_NOT_SET},
		{{.name = "b", .qos = RP_QOS_BURSTABLE, .cpu_request = 100},
		 RP_NOT_SET,
		 7,
		 RP_NOT_SET},
		{{.name = "c", GUARANTEED, .cpu_request = 100}, RP_NOT_SET, RP_NOT_SET, RP_NOT_SET},
		{{.name = "d", .pod_namespace = "batch", GUARANTEED, .cpu_request = 100},
		 5,
		 RP_NOT_SET,
		 RP_NOT_SET},
		{{.name = "e", .pod_namespace = "web", .qos = RP_QOS_BEST_EFFORT},
		 RP_NOT_SET,
		 7,
		 RP_NOT_SET},
		{{.name = "f",
		  .pod_namespace = "web",
		  .qos = RP_QOS_BEST_EFFORT,
		  .annotations = "scheduling-class" DOMAIN "/container.f=dl"},
		 6,
		 RP_NOT_SET,
		 10000},
		{{.name = "g",
		  .qos = RP_QOS_BEST_EFFORT,
		  .annotations = "scheduling-class" DOMAIN "=none-such"},
		 RP_NOT_SET,
		 RP_NOT_SET,
		 RP_NOT_SET},
	};
	struct fake_host *f = start_files(SCHEDULING);
	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		rp_ctr c = add_files(f, &rows[i].ctr);
		int64_t policy = fake_int(f, c, RP_F_SCHED_POLICY);
		int64_t runtime = fake_int(f, c, RP_F_SCHED_RUNTIME);
		if (policy != rows[i].policy || runtime != rows[i].runtime ||
		    fake_int(f, c, RP_F_IO_PRIORITY) != rows[i].io_priority)
			fail_msg("%s: policy %lld, runtime %lld", rows[i].ctr.name,
				 (long long)policy, (long long)runtime);
	}
	assert_int_equal(fake_int(f, fake_ctr_named(f, "f"), RP_F_SCHED_DEADLINE), 20000);
	assert_int_equal(fake_int(f, fake_ctr_named(f, "f"), RP_F_SCHED_PERIOD), 30000);
	assert_int_equal(fake_int(f, fake_ctr_named(f, "f"), RP_F_SCHED_FLAGS), 6);
	assert_non_null(strstr(fake_log(f), "there is no scheduling class \"none-such\""));
	fake_host_free(f);
}

/* ---- interrupts ------------------------------------------------------------------------------ */

static const char table[] = "      CPU0 CPU1\n"
			    " 24:    0    7  PCI-MSI 1-edge  nvme0q0\n"
			    " 25:    0    7  PCI-MSI 2-edge  eth0-rx\n"
			    " 26:    0    7  PCI-MSI 3-edge  eth0-tx\n";

static struct fake_host *with_interrupts(void)
{
	struct fake_host *f = start_files(PLAIN);
	char path[64];
	fake_file(f, "/proc/interrupts", table);
	for (unsigned i = 24; i < 27; i++) {
		(void)snprintf(path, sizeof path, "/proc/irq/%u/smp_affinity_list", i);
		fake_file(f, path, "0-15\n");
	}
	return f;
}

static const char *affinity(struct fake_host *f, unsigned number)
{
	char path[64];
	(void)snprintf(path, sizeof path, "/proc/irq/%u/smp_affinity_list", number);
	const char *text = fake_written(f, path);
	return text ? text : "-";
}

#define IRQ "irq-affinity" DOMAIN "="

static void test_interrupts(void **state)
{
	struct fake_host *f = with_interrupts();
	(void)state;
	rp_ctr c = add_files(f, &(struct fake_ctr){.name = "net",
						   GUARANTEED,
						   .cpu_request = 2000,
						   .annotations = IRQ "{claim: [\"*eth0*\"], mask: "
								      "[\"*nvme*\"]}"});
	(void)fake_run_work(f);
	assert_string_equal(affinity(f, 25), fake_exclusive(f, c));
	assert_string_equal(affinity(f, 26), fake_exclusive(f, c));
	struct rp_idset left;
	assert_int_equal(rp_idset_parse(&left, affinity(f, 24), RP_CPUS_MAX), 0);
	assert_false(rp_ids_overlap(rp_ids_of(&left), fake_exclusive_ids(f, c)));
	assert_int_equal(fake_release(f, c), 0);
	(void)fake_run_work(f);
	for (unsigned i = 24; i < 27; i++)
		assert_string_equal(affinity(f, i), "0-15");
	fake_host_free(f);
}

/* One container's claim against another's mask: whose comes first is in the mask's mode. */
static void test_claim_and_mask(void **state)
{
	(void)state;
	for (int claim_first = 0; claim_first < 2; claim_first++) {
		struct fake_host *f = with_interrupts();
		rp_ctr owner =
			add_files(f, &(struct fake_ctr){.name = "owner",
							GUARANTEED,
							.cpu_request = 2000,
							.annotations = IRQ "{claim: [\"25\"]}"});
		rp_ctr quiet = add_files(
			f,
			&(struct fake_ctr){.name = "quiet",
					   GUARANTEED,
					   .cpu_request = 2000,
					   .annotations = claim_first ? IRQ "{mode: claim-first, "
									    "mask: [\"*\"]}"
								      : IRQ "{mode: mask-first, "
									    "mask: [\"*\"]}"});
		(void)fake_run_work(f);
		struct rp_idset on;
		assert_string_equal(affinity(f, 25), fake_exclusive(f, owner));
		assert_int_equal(rp_idset_parse(&on, affinity(f, 26), RP_CPUS_MAX), 0);
		assert_false(rp_ids_overlap(rp_ids_of(&on), fake_exclusive_ids(f, quiet)));
		fake_host_free(f);
	}
}

static void test_refused_interrupts(void **state)
{
	char many[2048] = IRQ "{claim: [";
	for (unsigned i = 0; i < 300; i++)
		(void)sprintf(many + strlen(many), "%u, ", i);
	strcat(many, "]}");
	const struct {
		struct fake_ctr ctr;
		const char *why;
	} rows[] = {
		{{.name = "x", GUARANTEED, .cpu_request = 1000, .annotations = IRQ "{mode: x}"},
		 "invalid IRQ affinity mode \"x\""},
		{{.name = "x", GUARANTEED, .cpu_request = 1000, .annotations = IRQ "{claim: ["},
		 "invalid IRQ affinity"},
		{{.name = "x",
		  GUARANTEED,
		  .cpu_request = 1000,
		  .annotations = IRQ "{mask: [\"[\"]}"},
		 "\"[\" is no valid pattern"},
		{{.name = "x", GUARANTEED, .cpu_request = 1000, .annotations = many},
		 "invalid IRQ affinity: more than"},
		{{.name = "x",
		  .qos = RP_QOS_BURSTABLE,
		  .cpu_request = 1000,
		  .annotations = "irq-affinity" DOMAIN "/container.x={claim: [a]}"},
		 "the pod is not Guaranteed"},
		{{.name = "x",
		  GUARANTEED,
		  .cpu_request = 500,
		  .annotations = "irq-affinity" DOMAIN "/container.x={claim: [a]}"},
		 "invalid without exclusive CPUs"},
	};
	struct fake_host *f = with_interrupts();
	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++)
		assert_refused(f, &rows[i].ctr, rows[i].why);
	(void)fake_run_work(f);
	for (unsigned i = 24; i < 27; i++)
		assert_string_equal(affinity(f, i), "-");
	/* of the whole pod it is no error where it does not fit */
	(void)add_files(f, &(struct fake_ctr){.name = "x",
					      .qos = RP_QOS_BURSTABLE,
					      .cpu_request = 500,
					      .annotations = IRQ "{claim: [\"*\"]}"});
	assert_string_equal(affinity(f, 25), "-");
	fake_host_free(f);
}

/* Many containers with rules of their own. */
static void test_many_owners(void **state)
{
	struct fake_host *f = with_interrupts();
	struct rp_idset on;
	rp_ctr last = 0;
	(void)state;
	for (unsigned i = 0; i < 12; i++) {
		char name[16];
		(void)snprintf(name, sizeof name, "c%u", i);
		last = add_files(f, &(struct fake_ctr){.name = name,
						       GUARANTEED,
						       .cpu_request = 1000,
						       .annotations = IRQ "{claim: [\"25\"]}"});
	}
	(void)fake_run_work(f);
	assert_int_equal(rp_idset_parse(&on, affinity(f, 25), RP_CPUS_MAX), 0);
	assert_int_equal(rp_ids_count(rp_ids_of(&on)), 12);
	assert_true(rp_ids_subset(fake_exclusive_ids(f, last), rp_ids_of(&on)));
	assert_int_equal(fake_release(f, last), 0);
	(void)fake_run_work(f);
	assert_int_equal(rp_idset_parse(&on, affinity(f, 25), RP_CPUS_MAX), 0);
	assert_int_equal(rp_ids_count(rp_ids_of(&on)), 11);
	fake_host_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_classes),
		cmocka_unit_test(test_refused_classes),
		cmocka_unit_test(test_refused_configurations),
		cmocka_unit_test(test_a_class_goes),
		cmocka_unit_test(test_scheduling),
		cmocka_unit_test(test_interrupts),
		cmocka_unit_test(test_claim_and_mask),
		cmocka_unit_test(test_refused_interrupts),
		cmocka_unit_test(test_many_owners),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
