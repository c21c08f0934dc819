/* SPDX-License-Identifier: Apache-2.0 */
/* The kubelet's answers, packed here by hand, as the daemon gets them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/lib/wire/agent_protocol.h"
#include "core/nri-rp-agent/devices.h"
#include "core/lib/util/buf.h"
#include "proto/podresources.pb-c.h"

#define NODES_MAX 4u
#define ENTRIES_MAX 80u

struct entry {
	const char *resource;
	int64_t nodes[NODES_MAX];
	unsigned n_nodes;
	bool no_topology;
};

static void put_varint(struct buf *b, uint64_t v)
{
	uint8_t byte;
	for (; v >= 0x80; v >>= 7) {
		byte = (uint8_t)(v | 0x80);
		(void)buf_add(b, &byte, 1);
	}
	byte = (uint8_t)v;
	(void)buf_add(b, &byte, 1);
}

/* A container of a pod, both named, as field 1 of an answer. */
static void put_pod(struct buf *b, const char *ns, const char *name, const char *container,
		    const struct entry *entries, unsigned n)
{
	static Podresources__NUMANode nodes[ENTRIES_MAX][NODES_MAX];
	static Podresources__NUMANode *node_list[ENTRIES_MAX][NODES_MAX];
	static Podresources__TopologyInfo where[ENTRIES_MAX];
	static Podresources__ContainerDevices devices[ENTRIES_MAX], *device_list[ENTRIES_MAX];
	Podresources__ContainerResources c = PODRESOURCES__CONTAINER_RESOURCES__INIT, *list = &c;
	Podresources__PodResources pod = PODRESOURCES__POD_RESOURCES__INIT;
	for (unsigned i = 0; i < n; i++) {
		podresources__container_devices__init(&devices[i]);
		podresources__topology_info__init(&where[i]);
		for (unsigned k = 0; k < entries[i].n_nodes; k++) {
			podresources__numanode__init(&nodes[i][k]);
			nodes[i][k].id = entries[i].nodes[k];
			node_list[i][k] = &nodes[i][k];
		}
		where[i].nodes = node_list[i];
		where[i].n_nodes = entries[i].n_nodes;
		devices[i].resource_name = (char *)(uintptr_t)entries[i].resource;
		devices[i].topology = entries[i].no_topology ? NULL : &where[i];
		device_list[i] = &devices[i];
	}
	c.name = (char *)(uintptr_t)container;
	c.devices = device_list;
	c.n_devices = n;
	pod.namespace_ = (char *)(uintptr_t)ns;
	pod.name = (char *)(uintptr_t)name;
	pod.containers = &list;
	pod.n_containers = container ? 1 : 0;
	size_t len = podresources__pod_resources__get_packed_size(&pod);
	put_varint(b, 1 << 3 | 2);
	put_varint(b, len);
	(void)podresources__pod_resources__pack(&pod, buf_reserve(b, len));
	buf_commit(b, len);
}

/* "ns/pod container resource=1,2 …; …" */
static int write_pod(const Agent__PodDevices *pod, void *arg)
{
	struct buf *b = arg;
	(void)buf_printf(b, "%s/%s", pod->namespace_, pod->name);
	for (size_t i = 0; i < pod->n_containers; i++) {
		const Agent__ContainerDevices *c = pod->containers[i];
		(void)buf_printf(b, " %s", c->name);
		for (size_t k = 0; k < c->n_devices; k++) {
			(void)buf_printf(b, " %s=", c->devices[k]->resource);
			for (size_t j = 0; j < c->devices[k]->n_nodes; j++)
				(void)buf_printf(b, "%s%u", j ? "," : "", c->devices[k]->nodes[j]);
		}
	}
	(void)buf_printf(b, ";");
	return 0;
}

static int read_all(struct buf *from, struct buf *to, struct err *err)
{
	*err = (struct err)ERR_INIT;
	buf_reset(to);
	return devices_each_pod(buf_bytes(from), buf_len(from), true, write_pod, to, err);
}

static void check(struct buf *from, const char *expected)
{
	struct buf to = BUF_INIT;
	struct err err;
	assert_int_equal(read_all(from, &to, &err), 0);
	assert_string_equal(buf_text(&to), expected);
	buf_fini(&to);
	buf_fini(from);
}

static void check_refused(struct buf *from, int error, const char *says)
{
	struct buf to = BUF_INIT;
	struct err err;
	assert_int_equal(read_all(from, &to, &err), error);
	assert_int_equal(err.code, error);
	assert_non_null(strstr(err.text, says));
	buf_fini(&to);
	buf_fini(from);
}

static void test_entries_of_a_resource_are_united(void **state)
{
	static const struct entry entries[] = {{"x.com/nic", {1}, 1, false},
					       {"x.com/gpu", {3}, 1, false},
					       {"x.com/nic", {0, 1}, 2, false},
					       {"x.com/gpu", {2}, 1, false}};
	struct buf b = BUF_INIT;
	put_pod(&b, "ns", "pod", "c0", entries, 4);
	check(&b, "ns/pod c0 x.com/gpu=2,3 x.com/nic=0,1;");
}

static void test_devices_that_are_nowhere_are_left_out(void **state)
{
	static const struct entry entries[] = {{"x.com/none", {0}, 0, true},
					       {"x.com/empty", {0}, 0, false},
					       {"x.com/minus", {-1}, 1, false},
					       {"x.com/far", {1024}, 1, false},
					       {"x.com/last", {1023}, 1, false}};
	struct buf b = BUF_INIT;
	put_pod(&b, "ns", "pod", "c0", entries, 5);
	put_pod(&b, "ns", "bare", "c0", entries, 4);
	put_pod(&b, "ns", "empty", NULL, NULL, 0);
	check(&b, "ns/pod c0 x.com/last=1023;ns/bare;ns/empty;");
}

static void test_fields_that_are_not_known_are_skipped(void **state)
{
	static const struct entry entries[] = {{"x.com/nic", {1}, 1, false}};
	/* field 9, bytes; field 1 as a number */
	static const uint8_t odd[] = {9 << 3 | 2, 3, 'a', 'b', 'c', 1 << 3, 5};
	struct buf b = BUF_INIT;
	(void)buf_add(&b, odd, sizeof odd);
	put_pod(&b, "ns", "pod", "c0", entries, 1);
	(void)buf_add(&b, odd, sizeof odd);
	check(&b, "ns/pod c0 x.com/nic=1;");
}

static void test_an_answer_without_pods_has_none(void **state)
{
	struct buf b = BUF_INIT;
	check(&b, "");
}

static void test_what_makes_no_sense_is_refused(void **state)
{
	static const struct entry nameless[] = {{"", {1}, 1, false}};
	static const struct entry good[] = {{"x.com/nic", {1}, 1, false}};
	static const uint8_t cut[] = {1 << 3 | 2, 9, 'a'}, wrong[] = {1 << 3 | 2, 2, 1 << 3 | 2, 9},
			     tag[] = {7};
	char name[AGENT_NAME_MAX + 1];
	struct buf b = BUF_INIT;
	memset(name, 'n', AGENT_NAME_MAX);
	name[AGENT_NAME_MAX] = '\0';
	(void)buf_add(&b, cut, sizeof cut);
	check_refused(&b, -EBADMSG, "cannot be decoded");
	(void)buf_add(&b, wrong, sizeof wrong);
	check_refused(&b, -EBADMSG, "cannot be decoded");
	(void)buf_add(&b, tag, sizeof tag);
	check_refused(&b, -EBADMSG, "cannot be decoded");
	put_pod(&b, "", "pod", "c0", good, 1);
	check_refused(&b, -EBADMSG, "without a name");
	put_pod(&b, "ns", name, "c0", good, 1);
	check_refused(&b, -EBADMSG, "255 bytes");
	put_pod(&b, "ns", "pod", "", good, 1);
	check_refused(&b, -EBADMSG, "container without a name");
	put_pod(&b, "ns", "pod", "c0", nameless, 1);
	check_refused(&b, -EBADMSG, "resource without a name");
	name[AGENT_NAME_MAX - 1] = '\0'; /* the longest that goes */
	put_pod(&b, "ns", name, NULL, NULL, 0);
	struct buf to = BUF_INIT;
	struct err err;
	assert_int_equal(read_all(&b, &to, &err), 0);
	buf_fini(&to);
	buf_fini(&b);
}

static void test_resources_of_a_container_have_a_limit(void **state)
{
	static struct entry entries[AGENT_RESOURCES_MAX + 1];
	static char names[AGENT_RESOURCES_MAX + 1][16];
	struct buf b = BUF_INIT, to = BUF_INIT;
	struct err err;
	for (unsigned i = 0; i <= AGENT_RESOURCES_MAX; i++) {
		(void)snprintf(names[i], sizeof names[i], "x/%02u", AGENT_RESOURCES_MAX - i);
		entries[i] = (struct entry){names[i], {(int64_t)i}, 1, false};
	}
	put_pod(&b, "ns", "pod", "c0", entries, AGENT_RESOURCES_MAX);
	assert_int_equal(read_all(&b, &to, &err), 0);
	assert_non_null(strstr(buf_text(&to), "x/01=63 x/02=62")); /* by name */
	buf_fini(&to);
	buf_fini(&b);
	put_pod(&b, "ns", "pod", "c0", entries, AGENT_RESOURCES_MAX + 1);
	check_refused(&b, -E2BIG, "more than 64");
}

static void test_pods_have_a_limit(void **state)
{
	struct buf b = BUF_INIT, to = BUF_INIT;
	struct err err;
	for (unsigned i = 0; i < AGENT_PODS_MAX; i++)
		put_pod(&b, "ns", "pod", NULL, NULL, 0);
	assert_int_equal(read_all(&b, &to, &err), 0);
	put_pod(&b, "ns", "pod", NULL, NULL, 0);
	buf_fini(&to);
	check_refused(&b, -E2BIG, "8192");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_entries_of_a_resource_are_united),
		cmocka_unit_test(test_devices_that_are_nowhere_are_left_out),
		cmocka_unit_test(test_fields_that_are_not_known_are_skipped),
		cmocka_unit_test(test_an_answer_without_pods_has_none),
		cmocka_unit_test(test_what_makes_no_sense_is_refused),
		cmocka_unit_test(test_resources_of_a_container_have_a_limit),
		cmocka_unit_test(test_pods_have_a_limit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
