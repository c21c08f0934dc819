/* SPDX-License-Identifier: Apache-2.0 */
/* What configurations of the balloons policy are taken, and what they mean. */
#include "test/unit/t_balloons.h"

#include "modules/lib/match.h"

#define T(body) "{balloonTypes: [{name: a, " body "}]}"
#define M(body) T("matchExpressions: [{" body "}]")

static const struct {
	const char *config, *error;
} refused[] = {
	{M("key: name, operator: Like, values: [x]"), "unknown operator \"Like\""},
	{M("key: name, operator: Equals, values: [x, y]"), "takes 1 values, found 2"},
	{M("key: name, operator: Exists, values: [x]"), "takes 0 values, found 1"},
	{M("key: nam, operator: Exists"), "unknown word"},
	{M("key: id/x, operator: Exists"), "nothing after its last word"},
	{M("key: pod, operator: Exists"), "nothing after \"pod\""},
	{M("key: pod/, operator: Exists"), "nothing after \"pod\""},
	{M("key: labels, operator: Exists"), "nothing after its last word"},
	{M("key: \"labels/\", operator: Exists"), "nothing after its last word"},
	{M("key: \":pod/name:x\", operator: Exists"), "unknown word"},
	{"{preserve: {matchExpressions: [{key: x, operator: Exists}]}}", "preserve"},
	{"{controllableInterrupts: [\"[\"]}", "no valid pattern"},
	{"{balloonTypes: [{minCPUs: 1}]}", "needs a name"},
	{"{balloonTypes: [{name: a}, {name: a}]}", "two balloon types"},
	{T("minCPUs: 3, maxCPUs: 2"), "minCPUs 3 is more than maxCPUs 2"},
	{T("minCPUs: -1"), "minCPUs is negative"},
	{T("minCPUs: 1, maxCPUs: -1"), "forbids any"},
	{T("minBalloons: 3, maxBalloons: 2"), "minBalloons 3 is more than maxBalloons 2"},
	{T("memoryTypes: [SRAM]"), "unknown memory type \"SRAM\""},
	{T("groupBy: \"${\""), "bad groupBy"},
	{T("loads: [x]"), "no load class \"x\""},
	{T("schedulingClass: x"), "no scheduling class \"x\""},
	{T("componentCreation: all"), "without components"},
	{T("components: [{balloonType: x}]"), "no balloon type \"x\""},
	{T("components: [{balloonType: a}]"), "component of itself"},
	{"{balloonTypes: [{name: a, components: [{balloonType: b}]}, {name: b, components: "
	 "[{balloonType: a}]}]}",
	 "component of itself"},
	{"{balloonTypes: [{name: b}, {name: a, components: [{balloonType: b}], cpuClass: x}]}",
	 "cpuClass belongs to"},
	{"{balloonTypes: [{name: b}, {name: a, components: [{balloonType: b}], "
	 "preferIsolCpus: false}]}",
	 "preferIsolCpus belongs to"},
	{"{balloonTypes: [{name: b}, {name: a, components: [{balloonType: b}], "
	 "preferCloseToDevices: [/x]}]}",
	 "preferCloseToDevices belongs to"},
	{"{availableResources: {cpu: 4}}", "quantity"},
	{"{availableResources: {cpu: \"cpuset:x\"}}", "list of CPUs"},
	{"{availableResources: {cpu: \"cpuset:100\"}}", "none of the available CPUs"},
	{"{availableResources: {cpu: \"cpuset:1-3\"}, reservedResources: {cpu: \"cpuset:0-1\"}}",
	 "reserved CPUs 0 are not"},
	{"{reservedResources: {cpu: 2}, balloonTypes: [{name: reserved, minCPUs: 1}]}",
	 "minCPUs of balloon type reserved is 1"},
	{"{reservedResources: {cpu: 2}, balloonTypes: [{name: reserved, maxCPUs: 1}]}",
	 "maxCPUs of balloon type reserved is 1"},
	{T("minBalloons: 9, minCPUs: 2"), "not enough free CPUs"},
	{"{loadClasses: [{name: \"\", level: core}]}", "needs a name"},
	{"{loadClasses: [{name: x, level: core}, {name: x, level: core}]}", "two load classes"},
	{"{schedulingClasses: [{name: x}, {name: x}]}", "two scheduling classes"},
	{"{schedulingClasses: [{name: x, flags: [fast]}]}", "unknown flag \"fast\""},
	{"{cpuClasses: [{name: \"\"}]}", "needs a name"},
	{"{cpuClasses: [{name: x}, {name: x}]}", "two CPU classes"},
	{"{cpuClasses: [{name: x, minFreq: 2GHz, maxFreq: 1GHz}]}", "higher than maxFreq"},
	{"{cpuClasses: [{name: x, pctPriority: high, sstClosID: 1}]}", "exclude each other"},
	{"{cpuClasses: [{name: x, pctMinFreq: 1GHz}]}", "need a pctPriority"},
	{"{cpuClasses: [{name: x, publishExtendedResource: true}]}", "publishExtendedResource"},
	{"{cpuClasses: [{name: x, pctPriority: low}, {name: y, sstClosID: 1}]}", "mix"},
	{"{cpuClasses: [{name: x, pctPriority: low}, {name: y, pctPriority: low}]}",
	 "same pctPriority"},
	{"{cpuClasses: [{name: x, uncoreMinFreq: 1GHz}]}", "uncore"},
	{T("irqClaim: [x]"), "interrupts"},
};

static void test_refused(void **state)
{
	(void)state;
	struct fake_host *f = start(&n4c16, "{balloonTypes: [{name: a}]}");
	rp_ctr c = create(f, "c", "a", 1000);
	for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
		if (fake_configure(f, refused[i].config) >= 0)
			fail_msg("%s: not refused", refused[i].config);
		if (!strstr(fake_error(f), refused[i].error))
			fail_msg("%s: \"%s\" is not about \"%s\"", refused[i].config, fake_error(f),
				 refused[i].error);
	}
	/* Nothing has changed. */
	expect(f, c, "0");
	fake_host_free(f);
}

static void test_accepted(void **state)
{
	(void)state;
	static const char *const configs[] = {
		"{}",
		T("minCPUs: -1, maxCPUs: -1"),
		T("maxCPUs: -1"),
		T("memoryTypes: [dram, HBM]"),
		T("groupBy: \"$$x${name}-$pod/labels/a/b\""),
		M("key: \":,;name,pod/uid\", operator: NotExists"),
		M("key: whatever, operator: AlwaysTrue"),
		"{reservedResources: {cpu: \"exclude-cpuset:1-15\"}}",
		"{cpuClasses: [{name: x, pctPriority: high}]}",
	};
	struct fake_host *f = start(&n4c16, NULL);
	for (size_t i = 0; i < sizeof configs / sizeof configs[0]; i++)
		if (fake_configure(f, configs[i]))
			fail_msg("%s: %s", configs[i], fake_error(f));
	assert_non_null(strstr(fake_log(f), "Speed Select"));
	(void)fake_run_work(f);
	fake_host_free(f);
}

static void test_denied_interrupt(void **state)
{
	(void)state;
	struct fake_host *f = start(&n4c16, NULL);
	fake_file(f, "/proc/interrupts",
		  "   CPU0 CPU1\n  8:  0 0  IO-APIC 8-edge rtc0\n 40: 1 2 PCI-MSI 1-edge eth0-rx\n"
		  "NMI: 0 0 Non-maskable interrupts\n");
	assert_true(fake_configure(f, "{controllableInterrupts: [\"*rtc*\"], balloonTypes: [{name: "
				      "a, irqClaim: [\"*eth*\"]}]}") < 0);
	assert_non_null(strstr(fake_error(f), "denied interrupt 40 (PCI-MSI 1-edge eth0-rx)"));
	assert_int_equal(fake_configure(f, "{controllableInterrupts: [\"*rtc*\"], balloonTypes: "
					   "[{name: a, irqClaim: [\"*rtc*\", 40]}]}"),
			 0);
	(void)fake_run_work(f);
	fake_host_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_accepted),
		cmocka_unit_test(test_denied_interrupt),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
