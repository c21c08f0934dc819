/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-agent/listmsg.h"

#include <stdlib.h>
#include <string.h>

#include <nri-rp/set.h>

#include "core/lib/wire/agent_protocol.h"
#include "core/lib/util/pb.h"
#include "core/lib/util/str.h"

/* ---- data of the daemon ---------------------------------------------------------------------- */

static int put_cpus(struct arena *a, const char *text, int64_t **ret, size_t *ret_n,
		    struct err *err)
{
	struct rp_idset set;
	size_t n = 0;
	if (rp_idset_parse(&set, text, RP_CPUS_MAX))
		return err_set(err, -EBADMSG, "nri-rpd sent an invalid list of CPUs");
	int64_t *list = arena_array(a, rp_ids_count(rp_ids_of(&set)) + 1, sizeof *list);
	if (!list)
		return 0;
	RP_IDS_EACH (cpu, rp_ids_of(&set))
		list[n++] = cpu;
	*ret = list;
	*ret_n = n;
	return 0;
}

static char memory_type[] = "memory";

/* Memory blocks of a container, a pod or the node. */
struct blocks {
	Podresources__Memory **memory;
	size_t n_memory;
};

/* Adds a block of memory on these nodes. */
static void add_memory(struct arena *a, char *type, uint64_t bytes, const uint32_t *nodes, size_t n,
		       struct blocks *to)
{
	Podresources__Memory *m = PB_ADD(a, to, memory, podresources__memory);
	if (!m || !PB_PART(a, m->topology, podresources__topology_info))
		return;
	m->memory_type = type;
	m->size = bytes;
	for (size_t i = 0; i < n; i++) {
		Podresources__NUMANode *node =
			PB_ADD(a, m->topology, nodes, podresources__numanode);
		if (node)
			node->id = nodes[i];
	}
}

static void add_blocks(struct arena *a, Agent__NodeMemory *const *parts, size_t n_parts,
		       Agent__HugePages *const *huge, size_t n_huge, struct blocks *to)
{
	for (size_t i = 0; i < n_parts; i++)
		add_memory(a, memory_type, parts[i]->bytes, &parts[i]->node, 1, to);
	for (size_t i = 0; i < n_huge; i++)
		add_memory(a, huge[i]->resource, huge[i]->bytes, huge[i]->nodes, huge[i]->n_nodes,
			   to);
}

static struct blocks memory_of(struct arena *a, const Agent__ContainerAllocation *from)
{
	struct blocks to = {0};
	if (!from->n_parts && from->memory)
		add_memory(a, memory_type, from->memory, from->nodes, from->n_nodes, &to);
	add_blocks(a, from->parts, from->n_parts, from->huge, from->n_huge, &to);
	return to;
}

/* Stores the CPUs and the memory of an allocation in a container or a pod. */
#define PUT_ALLOCATION(a, from, to, err)                                                           \
	__extension__({                                                                            \
		const struct blocks blocks_ = memory_of(a, from);                                  \
		(to)->memory = blocks_.memory;                                                     \
		(to)->n_memory = blocks_.n_memory;                                                 \
		put_cpus(a, (from)->cpus, &(to)->cpu_ids, &(to)->n_cpu_ids, err);                  \
	})

/* ---- data of the kubelet --------------------------------------------------------------------- */

/* Checks that devices can be decoded: they are passed on unchanged to clients that may not check
 * them. */
static int check_devices(const ProtobufCBinaryData *list, size_t n, struct err *err)
{
	_arena_ struct arena *a = arena_new(4096, AGENT_MESSAGE_MAX);
	for (size_t i = 0; i < n; i++) {
		if (!a)
			return err_errno(err, -ENOMEM, "devices");
		if (!PB_UNPACK(a, podresources__container_devices, list[i].len, list[i].data))
			return err_set(err, -EBADMSG,
				       "the kubelet lists devices that cannot be "
				       "decoded");
		arena_reset(a);
	}
	return 0;
}

/* Accepts a pod of the kubelet without its CPUs and memory, because the daemon assigns these on
 * this node. */
static int take_over(Podresources__ServedPod *pod, struct err *err)
{
	int r = 0;
	pod->n_cpu_ids = pod->n_memory = 0;
	if (pod->n_containers > AGENT_CONTAINERS_MAX)
		return err_set(
			err, -E2BIG,
			"the kubelet lists a pod with %zu containers, at most %u are accepted",
			pod->n_containers, AGENT_CONTAINERS_MAX);
	for (size_t i = 0; !r && i < pod->n_containers; i++) {
		Podresources__ServedContainer *c = pod->containers[i];
		c->n_cpu_ids = c->n_memory = 0;
		r = check_devices(c->devices, c->n_devices, err);
	}
	return r;
}

static bool is_meant(const char *ns, const char *name, const Podresources__ServedPod *pod)
{
	return !name || (str_eq(pod->name, name) && str_eq(pod->namespace_, ns));
}

static int read_kubelet(struct arena *a, const struct listmsg_bytes *bytes, const char *ns,
			const char *name, Podresources__ServedList *ret, struct err *err)
{
	if (!bytes)
		return 0;
	Podresources__ServedList *m =
		PB_UNPACK(a, podresources__served_list, bytes->n, bytes->data);
	if (!m)
		return err_set(err, -EBADMSG, "the kubelet's list cannot be decoded");
	if (m->n_pod_resources > AGENT_PODS_MAX)
		return err_set(err, -E2BIG, "the kubelet lists %zu pods, at most %u are accepted",
			       m->n_pod_resources, AGENT_PODS_MAX);
	ret->pod_resources = m->pod_resources;
	for (size_t i = 0; i < m->n_pod_resources; i++) {
		Podresources__ServedPod *pod = m->pod_resources[i];
		int r = is_meant(ns, name, pod) ? take_over(pod, err) : 0;
		if (r)
			return r;
		if (is_meant(ns, name, pod))
			ret->pod_resources[ret->n_pod_resources++] = pod;
	}
	return 0;
}

/* ---- joined result --------------------------------------------------------------------------- */

static int cmp_pods(const void *a, const void *b)
{
	const Podresources__ServedPod *x = *(Podresources__ServedPod *const *)a,
				      *y = *(Podresources__ServedPod *const *)b;
	int r = strcmp(x->namespace_, y->namespace_);
	return r ? r : strcmp(x->name, y->name);
}

static Podresources__ServedContainer *container_of(struct arena *a, Podresources__ServedPod *pod,
						   size_t n_known, char *name)
{
	for (size_t i = 0; i < n_known; i++)
		if (str_eq(pod->containers[i]->name, name))
			return pod->containers[i];
	Podresources__ServedContainer *c =
		PB_ADD(a, pod, containers, podresources__served_container);
	if (c)
		c->name = name;
	return c;
}

static int put_containers(struct arena *a, const Agent__PodAllocation *from,
			  Podresources__ServedPod *pod, struct err *err)
{
	size_t n_known = pod->n_containers;
	if (!PB_ADOPT(a, pod, containers))
		return 0;
	int r = from->own ? PUT_ALLOCATION(a, from->own, pod, err) : 0;
	for (size_t i = 0; !r && i < from->n_containers; i++) {
		const Agent__ContainerAllocation *x = from->containers[i];
		Podresources__ServedContainer *c = container_of(a, pod, n_known, x->name);
		r = c ? PUT_ALLOCATION(a, x, c, err) : 0;
	}
	return r;
}

/* Adds the daemon's pods to the answer. The kubelet's pods come first, sorted by name, then pods
 * that the kubelet does not list. */
static int put_pods(struct arena *a, const Agent__AllocationsResponse *from,
		    Podresources__ServedList *to, struct err *err)
{
	size_t n_known = to->n_pod_resources;
	int r = 0;
	if (PB_ADOPT(a, to, pod_resources) && n_known)
		qsort(to->pod_resources, n_known, sizeof(void *), cmp_pods);
	for (size_t i = 0; !r && i < from->n_pods && !arena_failed(a); i++) {
		Podresources__ServedPod *fresh = pb_build(a, &podresources__served_pod__descriptor);
		if (!fresh)
			break;
		fresh->name = from->pods[i]->name;
		fresh->namespace_ = from->pods[i]->namespace_;
		Podresources__ServedPod **known =
			n_known ? bsearch(&fresh, to->pod_resources, n_known, sizeof(void *),
					  cmp_pods)
				: NULL;
		if (!known)
			(void)pb_build_item(a, fresh, &to->pod_resources, &to->n_pod_resources);
		r = put_containers(a, from->pods[i], known ? *known : fresh, err);
	}
	return !r && arena_failed(a) ? err_errno(err, -ENOMEM, "pods") : r;
}

int listmsg_pods(struct arena *a, const struct listmsg_bytes *daemon,
		 const struct listmsg_bytes *kubelet, const char *ns, const char *name,
		 Podresources__ServedList *ret, struct err *err)
{
	const Agent__AllocationsResponse *m =
		PB_UNPACK(a, agent__allocations_response, daemon->n, daemon->data);
	podresources__served_list__init(ret);
	if (!m)
		return err_set(err, -EBADMSG, "nri-rpd's list cannot be decoded");
	int r = read_kubelet(a, kubelet, ns, name, ret, err);
	return r ? r : put_pods(a, m, ret, err);
}

int listmsg_allocatable(struct arena *a, const struct listmsg_bytes *daemon,
			const struct listmsg_bytes *kubelet, Podresources__ServedAllocatable *ret,
			struct err *err)
{
	const Agent__AllocatableResponse *m =
		PB_UNPACK(a, agent__allocatable_response, daemon->n, daemon->data);
	const Podresources__ServedAllocatable *k =
		kubelet ? PB_UNPACK(a, podresources__served_allocatable, kubelet->n, kubelet->data)
			: NULL;
	podresources__served_allocatable__init(ret);
	if (!m || (kubelet && !k))
		return err_set(err, -EBADMSG, "the allocatable resources of %s cannot be decoded",
			       m ? "the kubelet" : "nri-rpd");
	int r = k ? check_devices(k->devices, k->n_devices, err) : 0;
	if (!r)
		r = put_cpus(a, m->cpus, &ret->cpu_ids, &ret->n_cpu_ids, err);
	if (r)
		return r;
	ret->devices = k ? k->devices : NULL;
	ret->n_devices = k ? k->n_devices : 0;
	struct blocks to = {0};
	add_blocks(a, m->memory, m->n_memory, m->huge, m->n_huge, &to);
	ret->memory = to.memory;
	ret->n_memory = to.n_memory;
	return arena_failed(a) ? err_errno(err, -ENOMEM, "memory") : 0;
}
