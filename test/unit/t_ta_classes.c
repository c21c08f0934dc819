/* SPDX-License-Identifier: Apache-2.0 */
/* The topology-aware policy's CPU classes and interrupts: as annotated, and as
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

/* ---- CPU classes ----------------------------------------------------------------------------- */

#define CLASSES                                                                                    \
	"cpuClasses: [{name: fast, maxFreq: 3GHz}, {name: slow, maxFreq: 1GHz}, {name: own, "      \
	"maxFreq: 2GHz}]"
#define WITH_CLASSES                                                                               \
	"{reservedResources: {cpu: \"cpuset:0\"}, " CLASSES                                        \
	", sharedPoolCPUClass: slow, reservedPoolCPUClass: own, defaultExclusiveCPUClass: fast}"

/* Checks that a container runs on with its remaining wishes when the class in its annotation is
 * removed. */
static void test_a_class_goes(void **state)
{
	struct fake_host *f = start_files(WITH_CLASSES);
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
	assert_non_null(strstr(fake_log(f), "one of its annotations is invalid"));
	assert_true(rp_ids_subset(rp_ids_of(&was), fake_cpu_ids(f, c)));
	assert_int_equal(fake_release(f, c), 0);
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

/* Checks that the mode of a container's mask decides which takes precedence, the mask or the
 * claim of another container. */
static void test_claim_and_mask(void **state)
{
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

static void test_too_many_interrupts(void **state)
{
	char many[2048] = IRQ "{claim: [";
	struct fake_host *f = with_interrupts();
	for (unsigned i = 0; i < 300; i++)
		(void)sprintf(many + strlen(many), "%u, ", i);
	strcat(many, "]}");
	assert_refused(f,
		       &(struct fake_ctr){
			       .name = "x", GUARANTEED, .cpu_request = 1000, .annotations = many},
		       "invalid IRQ affinity: more than");
	fake_host_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_class_goes),
		cmocka_unit_test(test_claim_and_mask),
		cmocka_unit_test(test_too_many_interrupts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
