/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-agent/listmsg.h"

#include <stdlib.h>
#include <string.h>

#include <nri-rp/set.h>

#include "core/lib/wire/agent_protocol.h"
#include "core/lib/util/pb.h"
#include "core/lib/util/str.h"

#define MEMORY_TYPE "memory"

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
		return err_errno(err, -ENOMEM, "CPUs");
	RP_IDS_EACH (cpu, rp_ids_of(&set))
		list[n++] = cpu;
	*ret = list;
	*ret_n = n;
	return 0;
}

/* Creates a block of memory on these nodes. */
static Podresources__Memory *memory_new(struct arena *a, char *type, uint64_t bytes,
					const uint32_t *nodes, size_t n)
{
	Podresources__Memory *m = arena_zero(a, Podresources__Memory);
	Podresources__TopologyInfo *where = arena_zero(a, Podresources__TopologyInfo);
	Podresources__NUMANode *list = arena_array(a, n + 1, sizeof *list);
	if (!m || !where || !list)
		return NULL;
	podresources__memory__init(m);
	podresources__topology_info__init(where);
	m->memory_type = type;
	m->size = bytes;
	m->topology = where;
	where->nodes = arena_array(a, n + 1, sizeof(Podresources__NUMANode *));
	if (!where->nodes)
		return NULL;
	for (; where->n_nodes < n; where->n_nodes++) {
		podresources__numanode__init(&list[where->n_nodes]);
		list[where->n_nodes].id = nodes[where->n_nodes];
		where->nodes[where->n_nodes] = &list[where->n_nodes];
	}
	return m;
}

/* Memory blocks of a container or a pod. */
struct blocks {
	Podresources__Memory **list;
	size_t n;
};

static int add_memory(struct arena *a, char *type, uint64_t bytes, const uint32_t *nodes, size_t n,
		      struct blocks *to)
{
	Podresources__Memory *m = memory_new(a, type, bytes, nodes, n);
	if (!m)
		return -ENOMEM;
	to->list[to->n++] = m;
	return 0;
}

static int put_memory(struct arena *a, const Agent__ContainerAllocation *from, struct blocks *to,
		      struct err *err)
{
	static char memory[] = MEMORY_TYPE;
	*to = (struct blocks){arena_array(a, from->n_parts + from->n_huge + 1, sizeof *to->list),
			      0};
	int r = to->list ? 0 : -ENOMEM;
	for (size_t i = 0; !r && i < from->n_parts; i++)
		r = add_memory(a, memory, from->parts[i]->bytes, &from->parts[i]->node, 1, to);
	if (!r && !from->n_parts && from->memory)
		r = add_memory(a, memory, from->memory, from->nodes, from->n_nodes, to);
	for (size_t i = 0; !r && i < from->n_huge; i++)
		r = add_memory(a, from->huge[i]->resource, from->huge[i]->bytes,
			       from->huge[i]->nodes, from->huge[i]->n_nodes, to);
	return r ? err_errno(err, r, "memory") : 0;
}

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

static Podresources__ServedPod *pod_new(struct arena *a, const Agent__PodAllocation *from)
{
	Podresources__ServedPod *pod = arena_zero(a, Podresources__ServedPod);
	if (!pod)
		return NULL;
	podresources__served_pod__init(pod);
	pod->name = from->name;
	pod->namespace_ = from->namespace_;
	return pod;
}

static Podresources__ServedContainer *container_of(struct arena *a, Podresources__ServedPod *pod,
						   size_t n_known, char *name)
{
	for (size_t i = 0; i < n_known; i++)
		if (str_eq(pod->containers[i]->name, name))
			return pod->containers[i];
	Podresources__ServedContainer *c = arena_zero(a, Podresources__ServedContainer);
	if (!c)
		return NULL;
	podresources__served_container__init(c);
	c->name = name;
	pod->containers[pod->n_containers++] = c;
	return c;
}

static int put_containers(struct arena *a, const Agent__PodAllocation *from,
			  Podresources__ServedPod *pod, struct err *err)
{
	size_t n_known = pod->n_containers;
	Podresources__ServedContainer **room =
		arena_array(a, n_known + from->n_containers + 1, sizeof *room);
	if (!room)
		return err_errno(err, -ENOMEM, "containers");
	if (n_known)
		memcpy(room, pod->containers, n_known * sizeof *room);
	pod->containers = room;
	struct blocks blocks = {0};
	int r = 0;
	if (from->own) {
		r = put_cpus(a, from->own->cpus, &pod->cpu_ids, &pod->n_cpu_ids, err);
		r = r ? r : put_memory(a, from->own, &blocks, err);
		pod->memory = blocks.list;
		pod->n_memory = blocks.n;
	}
	for (size_t i = 0; !r && i < from->n_containers; i++) {
		const Agent__ContainerAllocation *x = from->containers[i];
		Podresources__ServedContainer *c = container_of(a, pod, n_known, x->name);
		r = c ? put_cpus(a, x->cpus, &c->cpu_ids, &c->n_cpu_ids, err)
		      : err_errno(err, -ENOMEM, "containers");
		r = r ? r : put_memory(a, x, &blocks, err);
		if (r)
			break;
		c->memory = blocks.list;
		c->n_memory = blocks.n;
	}
	return r;
}

/* Adds the daemon's pods to the answer. The kubelet's pods come first, sorted by name, then pods
 * that the kubelet does not list. */
static int put_pods(struct arena *a, const Agent__AllocationsResponse *from,
		    Podresources__ServedList *to, struct err *err)
{
	size_t n_known = to->n_pod_resources;
	Podresources__ServedPod **room = arena_array(a, n_known + from->n_pods + 1, sizeof *room);
	int r = room ? 0 : err_errno(err, -ENOMEM, "pods");
	if (room && n_known) {
		memcpy(room, to->pod_resources, n_known * sizeof *room);
		qsort(room, n_known, sizeof *room, cmp_pods);
	}
	to->pod_resources = room;
	for (size_t i = 0; !r && i < from->n_pods; i++) {
		Podresources__ServedPod *fresh = pod_new(a, from->pods[i]);
		if (!fresh)
			return err_errno(err, -ENOMEM, "pods");
		Podresources__ServedPod **known =
			n_known ? bsearch(&fresh, room, n_known, sizeof *room, cmp_pods) : NULL;
		if (!known)
			room[to->n_pod_resources++] = fresh;
		r = put_containers(a, from->pods[i], known ? *known : fresh, err);
	}
	return r;
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
	static char memory[] = MEMORY_TYPE;
	size_t n = m->n_memory + m->n_huge;
	ret->memory = arena_array(a, n + 1, sizeof *ret->memory);
	for (size_t i = 0; ret->memory && i < n; i++) {
		const Agent__HugePages *h = i < m->n_memory ? NULL : m->huge[i - m->n_memory];
		ret->memory[i] =
			h ? memory_new(a, h->resource, h->bytes, h->nodes, h->n_nodes)
			  : memory_new(a, memory, m->memory[i]->bytes, &m->memory[i]->node, 1);
		if (!ret->memory[i])
			return err_errno(err, -ENOMEM, "memory");
		ret->n_memory++;
	}
	return ret->memory ? 0 : err_errno(err, -ENOMEM, "memory");
}
