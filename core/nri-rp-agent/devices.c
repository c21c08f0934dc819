/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-agent/devices.h"

#include <string.h>

#include <nri-rp/set.h>

#include "core/lib/wire/agent_protocol.h"
#include "core/lib/util/fields.h"
#include "core/lib/util/pb.h"
#include "proto/podresources.pb-c.h"

#define ARENA_BLOCK (16u << 10)
#define FIELD_POD 1u /* number of the field in both answers */

struct group {
	Agent__Devices devices;
	struct rp_idset nodes;
};

/* Resources of one container. */
struct groups {
	struct group *list;
	uint32_t n;
};

static bool good_name(const char *name)
{
	size_t len = strnlen(name, AGENT_NAME_MAX);
	return len && len < AGENT_NAME_MAX;
}

/* Finds or inserts a group, sorted by the name of the resource. */
static struct group *group_of(struct groups *g, const char *resource)
{
	uint32_t at = 0;
	while (at < g->n && strcmp(g->list[at].devices.resource, resource) < 0)
		at++;
	if (at < g->n && strcmp(g->list[at].devices.resource, resource) == 0)
		return &g->list[at];
	if (g->n == AGENT_RESOURCES_MAX)
		return NULL;
	memmove(&g->list[at + 1], &g->list[at], (g->n - at) * sizeof *g->list);
	agent__devices__init(&g->list[at].devices);
	g->list[at].devices.resource = (char *)(uintptr_t)resource;
	rp_idset_clear(&g->list[at].nodes);
	g->n++;
	return &g->list[at];
}

static bool is_node(int64_t id)
{
	return id >= 0 && id < RP_NODES_MAX;
}

/*
 * Adds an entry of a resource. A resource has an entry for each set of nodes of its devices; the
 * union of these sets is used. A plugin that does not know a device's place gives no node, or the
 * kernel's -1.
 */
static int add_entry(struct groups *g, const Podresources__ContainerDevices *d, struct err *err)
{
	const Podresources__TopologyInfo *where = d->topology;
	struct group *group = NULL;
	for (size_t i = 0; where && i < where->n_nodes; i++) {
		int64_t id = where->nodes[i]->id;
		if (!is_node(id))
			continue;
		if (!good_name(d->resource_name))
			return err_set(
				err, -EBADMSG,
				"a resource without a name, or with a name longer than %u bytes",
				AGENT_NAME_MAX - 1);
		group = group ? group : group_of(g, d->resource_name);
		if (!group)
			return err_set(err, -E2BIG,
				       "a container with devices of more than %u resources",
				       AGENT_RESOURCES_MAX);
		rp_idset_add(&group->nodes, (uint32_t)id);
	}
	return 0;
}

static void list_nodes(struct arena *a, struct group *g)
{
	struct rp_ids nodes = rp_ids_of(&g->nodes);
	g->devices.nodes = arena_array(a, rp_ids_count(nodes), sizeof *g->devices.nodes);
	if (!g->devices.nodes)
		return;
	RP_IDS_EACH (node, nodes)
		g->devices.nodes[g->devices.n_nodes++] = node;
}

/* ---- devices of claims ----------------------------------------------------------------------- */

/* Adds the devices of a claim. Kubelets older than Kubernetes 1.31 do not name them. */
static int add_claim(struct arena *a, const Podresources__DynamicResource *claim,
		     Agent__ContainerDevices *to, struct err *err)
{
	for (size_t i = 0; i < claim->n_claim_resources; i++) {
		const Podresources__ClaimResource *from = claim->claim_resources[i];
		if (!good_name(claim->claim_name) || !good_name(from->driver_name) ||
		    !good_name(from->pool_name) || !good_name(from->device_name))
			continue;
		if (to->n_claims == AGENT_CLAIM_DEVICES_MAX)
			return err_set(err, -E2BIG,
				       "a container with more than %u devices of claims",
				       AGENT_CLAIM_DEVICES_MAX);
		Agent__ClaimDevice *d = PB_ADD(a, to, claims, agent__claim_device);
		if (!d)
			break;
		d->claim = claim->claim_name;
		d->driver = from->driver_name;
		d->pool = from->pool_name;
		d->device = from->device_name;
	}
	return 0;
}

/* ---- containers and pods --------------------------------------------------------------------- */

/* Reads a container. *ret NULL: no device of a claim, and no other device with a known place. */
static int read_container(struct arena *a, const Podresources__ContainerResources *c, bool claims,
			  Agent__ContainerDevices **ret, struct err *err)
{
	size_t most = c->n_devices < AGENT_RESOURCES_MAX ? c->n_devices : AGENT_RESOURCES_MAX;
	struct groups g = {arena_array(a, most + 1, sizeof *g.list), 0};
	int r = 0;
	*ret = NULL;
	for (size_t i = 0; g.list && !r && i < c->n_devices; i++)
		r = add_entry(&g, c->devices[i], err);
	if (r || (!g.n && !(claims && c->n_dynamic_resources)))
		return r;
	if (!good_name(c->name))
		return err_set(err, -EBADMSG,
			       "a container without a name, or with a name longer than %u bytes",
			       AGENT_NAME_MAX - 1);
	Agent__ContainerDevices *out = pb_build(a, &agent__container_devices__descriptor);
	if (!out)
		return 0;
	out->name = c->name;
	for (uint32_t i = 0; g.list && i < g.n; i++) {
		list_nodes(a, &g.list[i]);
		(void)pb_build_item(a, &g.list[i].devices, &out->devices, &out->n_devices);
	}
	for (size_t i = 0; claims && !r && i < c->n_dynamic_resources; i++)
		r = add_claim(a, c->dynamic_resources[i], out, err);
	*ret = out->n_devices || out->n_claims ? out : NULL;
	return r;
}

static int read_containers(struct arena *a, const Podresources__PodResources *pod, bool claims,
			   Agent__PodDevices *ret, struct err *err)
{
	if (!good_name(pod->name) || !good_name(pod->namespace_))
		return err_set(
			err, -EBADMSG,
			"a pod without a name or namespace, or with one longer than %u bytes",
			AGENT_NAME_MAX - 1);
	if (pod->n_containers > AGENT_CONTAINERS_MAX)
		return err_set(err, -E2BIG, "pod %s/%s has %zu containers, at most %u are read",
			       pod->namespace_, pod->name, pod->n_containers, AGENT_CONTAINERS_MAX);
	agent__pod_devices__init(ret);
	ret->namespace_ = pod->namespace_;
	ret->name = pod->name;
	int r = 0;
	for (size_t i = 0; !r && i < pod->n_containers; i++) {
		Agent__ContainerDevices *c;
		r = read_container(a, pod->containers[i], claims, &c, err);
		if (c)
			(void)pb_build_item(a, c, &ret->containers, &ret->n_containers);
	}
	return r;
}

static int read_pod(struct arena *a, struct span bytes, bool claims, Agent__PodDevices *ret,
		    struct err *err)
{
	const Podresources__PodResources *pod =
		PB_UNPACK(a, podresources__pod_resources, span_len(&bytes), bytes.p);
	if (!pod)
		return err_set(err, -EBADMSG, "a pod that cannot be decoded (%zu bytes)",
			       span_len(&bytes));
	int r = read_containers(a, pod, claims, ret, err);
	return !r && arena_failed(a) ? err_set(err, -ENOMEM, "out of memory for a pod of %zu bytes",
					       span_len(&bytes))
				     : r;
}

int devices_each_pod(const uint8_t *data, size_t n, bool claims,
		     int (*fn)(const Agent__PodDevices *pod, void *arg), void *arg, struct err *err)
{
	_arena_ struct arena *a = arena_new(ARENA_BLOCK, DEVICES_POD_ARENA);
	struct span s = span_of(data, n);
	struct field f = {0};
	uint32_t n_pods = 0;
	int r = a ? 0 : err_set(err, -ENOMEM, "out of memory"), more = 0;
	while (!r && (more = field_next(&s, &f)) > 0) {
		Agent__PodDevices pod;
		if (f.number != FIELD_POD || f.wire != WIRE_LEN)
			continue;
		if (n_pods++ == AGENT_PODS_MAX)
			return err_set(err, -E2BIG, "more than %u pods", AGENT_PODS_MAX);
		r = read_pod(a, f.bytes, claims, &pod, err);
		if (!r)
			r = fn(&pod, arg);
		arena_reset(a);
	}
	return r || more >= 0 ? r : err_set(err, more, "a reply that cannot be decoded");
}
