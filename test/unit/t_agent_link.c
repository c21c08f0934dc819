/* SPDX-License-Identifier: Apache-2.0 */
/* Tests how the daemon reads the agent's answers: the agent runs as another user and may send
 * anything. */
#include <string.h>

#include "core/nri-rpd/agent/ask.h"
#include "core/lib/wire/agent_protocol.h"
#include "core/lib/util/arena.h"
#include "proto/agent.pb-c.h"
#include "test/unit/t_oom.h"

#define BLOCK 4096u
#define SIZE 65536u

struct built {
	Agent__PodDevices pod;
	Agent__ContainerDevices container, *containers[AGENT_CONTAINERS_MAX + 1];
	Agent__Devices devices, *list[AGENT_RESOURCES_MAX + 1];
	uint32_t nodes[RP_NODES_MAX + 1];
};

static struct built built;
static uint8_t packed[SIZE];

/* default/web, container app, x.com/nic at nodes 0 and 3; what a test changes in it is packed. */
static void build(void)
{
	agent__pod_devices__init(&built.pod);
	agent__container_devices__init(&built.container);
	agent__devices__init(&built.devices);
	built.pod.namespace_ = (char *)(uintptr_t) "default";
	built.pod.name = (char *)(uintptr_t) "web";
	built.pod.containers = built.containers;
	built.pod.n_containers = 1;
	for (unsigned i = 0; i <= AGENT_CONTAINERS_MAX; i++)
		built.containers[i] = &built.container;
	built.container.name = (char *)(uintptr_t) "app";
	built.container.devices = built.list;
	built.container.n_devices = 1;
	for (unsigned i = 0; i <= AGENT_RESOURCES_MAX; i++)
		built.list[i] = &built.devices;
	built.devices.resource = (char *)(uintptr_t) "x.com/nic";
	built.devices.nodes = built.nodes;
	built.devices.n_nodes = 2;
	built.nodes[0] = 0;
	built.nodes[1] = 3;
}

static size_t pack(void)
{
	size_t n = agent__pod_devices__get_packed_size(&built.pod);
	assert_true(n <= SIZE);
	return agent__pod_devices__pack(&built.pod, packed);
}

static int decode(size_t n, struct pod_devices_desc *ret, struct arena **ret_arena)
{
	*ret_arena = arena_new(BLOCK, 1u << 20);
	assert_non_null(*ret_arena);
	return agent_decode_pod(*ret_arena, packed, n, ret);
}

static void refused(int error)
{
	struct pod_devices_desc pod;
	struct arena *a;
	assert_int_equal(decode(pack(), &pod, &a), error);
	arena_free(a);
	build();
}

static void test_a_pod(void **state)
{
	struct pod_devices_desc pod;
	struct arena *a;
	build();
	assert_int_equal(decode(pack(), &pod, &a), 0);
	assert_string_equal(pod.ns, "default");
	assert_string_equal(pod.name, "web");
	assert_int_equal(pod.n, 1);
	assert_string_equal(pod.list[0].ctr, "app");
	assert_string_equal(pod.list[0].resource, "x.com/nic");
	assert_int_equal(pod.list[0].n_nodes, 2);
	assert_int_equal(pod.list[0].nodes[0], 0);
	assert_int_equal(pod.list[0].nodes[1], 3);
	arena_free(a);
	built.pod.n_containers = 0;
	assert_int_equal(decode(pack(), &pod, &a), 0);
	assert_int_equal(pod.n, 0);
	arena_free(a);
}

static void test_devices_without_nodes_are_none(void **state)
{
	struct pod_devices_desc pod;
	struct arena *a;
	build();
	built.devices.n_nodes = 0;
	assert_int_equal(decode(pack(), &pod, &a), 0);
	assert_int_equal(pod.n, 0);
	arena_free(a);
	built.devices.n_nodes = RP_NODES_MAX + 1; /* more than there can be */
	assert_int_equal(decode(pack(), &pod, &a), 0);
	assert_int_equal(pod.n, 0);
	arena_free(a);
}

static void test_limits(void **state)
{
	char name[AGENT_NAME_MAX + 1];
	memset(name, 'n', AGENT_NAME_MAX);
	name[AGENT_NAME_MAX] = '\0';
	build();
	built.pod.name = name;
	refused(-E2BIG);
	built.pod.namespace_ = name + AGENT_NAME_MAX; /* "" */
	refused(-E2BIG);
	built.container.name = name;
	refused(-E2BIG);
	built.devices.resource = name;
	refused(-E2BIG);
	built.container.n_devices = AGENT_RESOURCES_MAX + 1;
	refused(-E2BIG);
	built.pod.n_containers = AGENT_CONTAINERS_MAX + 1;
	refused(-E2BIG);
	name[AGENT_NAME_MAX - 1] = '\0';
	built.pod.name = name;
	built.container.n_devices = AGENT_RESOURCES_MAX;
	refused(0); /* the most that goes */
}

static void test_what_is_no_message(void **state)
{
	struct pod_devices_desc pod, *list;
	struct arena *a;
	uint32_t n;
	build();
	(void)pack();
	packed[1] = 0x7f; /* a namespace that is longer than all of it */
	assert_int_equal(decode(20, &pod, &a), -EBADMSG);
	assert_int_equal(agent_decode_list(a, packed, 20, &list, &n), -EBADMSG);
	arena_free(a);
}

static void test_a_list(void **state)
{
	Agent__ListResponse out = AGENT__LIST_RESPONSE__INIT;
	Agent__PodDevices *pods[] = {&built.pod, &built.pod};
	struct pod_devices_desc *list;
	struct arena *a = arena_new(BLOCK, 1u << 20);
	uint32_t n;
	build();
	out.pods = pods;
	out.n_pods = 2;
	assert_int_equal(
		agent_decode_list(a, packed, agent__list_response__pack(&out, packed), &list, &n),
		0);
	assert_int_equal(n, 2);
	assert_string_equal(list[1].list[0].resource, "x.com/nic");
	assert_int_equal(agent_decode_list(a, packed, 0, &list, &n), 0);
	assert_int_equal(n, 0);
	arena_free(a);
}

static int work(void *arg)
{
	struct pod_devices_desc pod;
	struct arena *a = arena_new(BLOCK, 1u << 20);
	int r = a ? agent_decode_pod(a, packed, *(size_t *)arg, &pod) : -ENOMEM;
	OOM_CHECK(!r || r == -ENOMEM || r == -EBADMSG); /* protobuf-c does not say which */
	OOM_CHECK(r || pod.n == AGENT_RESOURCES_MAX);
	arena_free(a);
	return r;
}

static void test_memory_may_end_anywhere(void **state)
{
	build();
	built.container.n_devices = AGENT_RESOURCES_MAX; /* more than a block */
	size_t n = pack();
	oom_each(work, &n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_pod),
		cmocka_unit_test(test_devices_without_nodes_are_none),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_what_is_no_message),
		cmocka_unit_test(test_a_list),
		cmocka_unit_test(test_memory_may_end_anywhere),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
