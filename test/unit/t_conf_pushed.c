/* SPDX-License-Identifier: Apache-2.0 */
/* Tests rewrite.c: the configuration pushed by the agent, over the files. */
#include "test/unit/t_conf.h"

#define CLUSTER "agent: {cluster: true}\n"

static void push(const char *file, const char *pushed, const char *lines)
{
	struct conf_source sources[] = {source_of("rp.conf", file), source_of("agent", pushed)};
	sources[1].pushed = true;
	(void)parse_sources(sources, 2, &test_schemas);
	assert_string_equal(problems(), lines);
}

static void test_pushed(void **state)
{
	push("policy: balloons\nballoons: {reservedResources: {cpu: 1}, pinCPU: false}\nlog: "
	     "{level: debug}\nagent: {cluster: true, podResourceAPI: true}\n",
	     HEAD "spec: {reservedResources: {cpu: 2}, agent: {nodeResourceTopology: false}, "
		  "control: {rdt: {enable: false}}}\n",
	     "");
	assert_string_equal(text_at("balloons.reservedResources.cpu"), "2");
	assert_string_equal(text_at("balloons.pinCPU"), "(none)");
	assert_int_equal(core()->log.level, LOG_DEBUG);
	assert_false(core()->agent.pod_resource_api);
	assert_false(core()->agent.pod_resource_api);
	assert_string_equal(text_at("rdt.enable"), "false");
	char place[CONF_PLACE_MAX];
	assert_string_equal(conf_where(conf_section(last.conf, "balloons"), place, sizeof place),
			    "agent:3:1");
	push("policy: none\n" CLUSTER,
	     HEAD "spec: {reservedResources: {cpu: 2}, log: {level: error}}\n", "");
	assert_string_equal(core()->policy, "balloons");
	assert_int_equal(core()->log.level, LOG_ERROR);
	push("policy: none\n" CLUSTER, HEAD "spec: {reservedResources: {cpu: x}}\n",
	     "agent:3:28: balloons.reservedResources.cpu: expected an amount of CPU (2, 750m), "
	     "cpuset:LIST, exclude-cpuset:LIST or "
	     "cgroup:PATH, found \"x\"\n");
}

/* A value of a ConfigMap has a line with its key in front, and is told of as its author wrote
 * it. */
static void push_keyed(const char *pushed, const char *lines)
{
	struct conf_source sources[] = {source_of("rp.conf", "policy: none\n" CLUSTER),
					source_of("map b", pushed)};
	sources[1].pushed = sources[1].keyed = true;
	(void)parse_sources(sources, 2, &test_schemas);
	assert_string_equal(problems(), lines);
}

static void test_places_of_a_value(void **state)
{
	push_keyed(
		"balloons:\n pinCPU: true\n reservedResources:\n   cpu: x\n",
		"map b:3:3: balloons.reservedResources.cpu: expected an amount of CPU (2, 750m), "
		"cpuset:LIST, exclude-cpuset:LIST or cgroup:PATH, found \"x\"\n");
	push_keyed("balloons:\n a: 1\n pinCPU perhaps\n",
		   "map b:2:1: \"pinCPU perhaps\" has no key: write a colon and a blank, \"pinCPU: "
		   "perhaps\"\n");
	push_keyed("balloons:\n pinCPU: true\n  reservedResources: [\n",
		   "map b:2:19: not valid YAML: mapping values are not allowed in this context\n");
	push_keyed("balloons:\n pinCPU: tr\001ue\n",
		   "map b:1:11: character U+0001 is not allowed\n");
}

/* The files have not opened the door. */
static void test_push_not_wanted(void **state)
{
	push("policy: none\n", "policy: balloons\nagent: {cluster: true}\n",
	     "warning: agent:1:1: policy: agent.cluster is not set in the files; the pushed value "
	     "is ignored\n"
	     "warning: agent:2:1: agent: agent.cluster is not set in the files; the pushed value "
	     "is ignored\n");
	assert_string_equal(core()->policy, "none");
	assert_false(core()->agent.cluster);
	push("policy: none\n" CLUSTER, "agent: {cluster: false}\n",
	     "warning: agent:1:9: agent.cluster: only rp.conf can set this; the pushed value is "
	     "ignored\n");
	assert_true(core()->agent.cluster);
}

static void test_push_limits(void **state)
{
	push("policy: balloons\nballoons: {reservedResources: {cpu: 1}}\nagent: {cluster: true, "
	     "accept: [balloons, agent]}\n",
	     HEAD "spec: {reservedResources: {cpu: 2}, log: {level: error}, agent: "
		  "{nodeResourceTopology: false, accept: [log], user: bob}}\n",
	     "warning: agent:3:37: balloons.log: agent.accept does not list it; the pushed value "
	     "is ignored\n"
	     "warning: agent:3:95: balloons.agent.accept: only rp.conf can set this; the pushed "
	     "value is ignored\n"
	     "warning: agent:3:110: balloons.agent.user: only rp.conf can set this; the pushed "
	     "value is ignored\n");
	assert_string_equal(text_at("balloons.reservedResources.cpu"), "2");
	assert_int_equal(core()->log.level, LOG_INFO);
	assert_false(core()->agent.pod_resource_api);
	check_strings(core()->agent.accept, "balloons agent");
	assert_false(core()->agent.accept_all);
	push("policy: none\nagent: {cluster: true, accept: [balloons]}\n",
	     HEAD "spec: {reservedResources: {cpu: 2}, log: {level: error}}\n",
	     "warning: agent:2:1: policy: agent.accept does not list it; the pushed value is "
	     "ignored\n");
	assert_string_equal(core()->policy, "none");
	assert_string_equal(text_at("balloons.reservedResources.cpu"), "2");
	push("policy: none\nagent: {cluster: true, accept: []}\n", "bare: {x: 1}\n",
	     "warning: agent:1:1: bare: agent.accept does not list it; the pushed value is "
	     "ignored\n");
	assert_null(conf_section(last.conf, "bare"));
	push("policy: none\ncontrol: {socket: /s}\n" CLUSTER,
	     "modules: {path: [/tmp]}\ncontrol: {socket: /x}\nstrict: false\nresetOnSwitch: true\n",
	     "warning: agent:1:1: modules: only rp.conf can set this; the pushed value is ignored\n"
	     "warning: agent:2:1: control: only rp.conf can set this; the pushed value is ignored\n"
	     "warning: agent:3:1: strict: only rp.conf can set this; the pushed value is "
	     "ignored\n");
	assert_string_equal(core()->control_socket, "/s");
	assert_true(core()->strict);
	assert_true(core()->reset_on_switch);
	push("agent: {cluster: true, accept: [agent, 5]}\n", "agent: 5\n", "");
	check_strings(core()->agent.accept, "agent 5");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pushed),
		cmocka_unit_test(test_places_of_a_value),
		cmocka_unit_test(test_push_not_wanted),
		cmocka_unit_test(test_push_limits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
