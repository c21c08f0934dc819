/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rpd/agent/allocations.h"
#include "core/nri-rpd/agent/call.h"

#include "core/nri-rpd/cache/hugepages.h"
#include "core/nri-rpd/cache/pod_level.h"
#include "core/nri-rpd/pipeline/observe/observe.h"
#include "core/lib/util/arena.h"
#include "core/lib/util/pb.h"
#include "core/lib/util/str.h"
#include "proto/agent.pb-c.h"
#include "core/nri-rpd/cache/txn.h"

#define ARENA_BLOCK (64u << 10)
#define ARENA_MAX (64u << 20)
/* Attribute of a zone with the CPUs that its policy reserves: a name of the published topology. */

static char *set_text(struct arena *a, struct rp_ids ids)
{
	uint32_t size = rp_ids_format(ids, NULL, 0) + 1;
	char *text = arena_alloc(a, size);
	if (text)
		(void)rp_ids_format(ids, text, size);
	return text;
}

/* ---- allocations of containers --------------------------------------------------------------- */

struct listing {
	struct arena *a;
	struct pipeline *pipeline;
	struct err *err;
	int failed; /* the first error; 0: none */
	/* memory nodes already reported for the current container */
	struct rp_idset told;
	Agent__ContainerAllocation *to;
};

static void on_part(void *ctx, uint32_t node, uint64_t bytes)
{
	struct listing *l = ctx;
	struct rp_ids nodes = topo_ids(pipeline_topo(l->pipeline), RP_NODES_MEMORY);
	if (l->failed)
		return;
	if (!bytes || !rp_ids_has(nodes, node) || rp_ids_has(rp_ids_of(&l->told), node)) {
		l->failed = err_set(l->err, -EBADMSG,
				    "the policy reports %llu bytes of memory of node %u, which has "
				    "no memory or was already reported",
				    (unsigned long long)bytes, node);
		return;
	}
	Agent__NodeMemory *part = PB_NEW(l->a, Agent__NodeMemory, agent__node_memory);
	if (!l->to->parts)
		l->to->parts = arena_array(l->a, rp_ids_count(nodes), sizeof *l->to->parts);
	if (!part || !l->to->parts) {
		l->failed = err_errno(l->err, -ENOMEM, "memory of containers");
		return;
	}
	part->node = node;
	part->bytes = bytes;
	l->to->parts[l->to->n_parts++] = part;
	rp_idset_add(&l->told, node);
}

static int put_parts(struct listing *l, struct ctr *ctr, Agent__ContainerAllocation *to)
{
	const struct rp_memory_sink sink = {.size = sizeof sink, .ctx = l, .part = on_part};
	rp_idset_clear(&l->told);
	l->to = to;
	int r = pipeline_memory(l->pipeline, ctr, &sink, l->err);
	return r ? r : l->failed;
}

static int put_nodes_of(struct arena *a, int64_t bytes, struct rp_ids nodes,
			Agent__ContainerAllocation *to)
{
	if (bytes <= 0 || rp_ids_empty(nodes))
		return 0;
	to->memory = (uint64_t)bytes;
	to->nodes = arena_array(a, rp_ids_count(nodes), sizeof *to->nodes);
	if (!to->nodes)
		return -ENOMEM;
	RP_IDS_EACH (node, nodes)
		to->nodes[to->n_nodes++] = node;
	return 0;
}

static int put_memory(struct arena *a, const struct ctr *ctr, Agent__ContainerAllocation *to)
{
	return put_nodes_of(a, ctr->wanted.mem_request,
			    ctr->cur.mems ? ctr->cur.mems->ids : rp_ids_none(), to);
}

static Agent__HugePages *huge_new(struct arena *a, uint64_t page, uint64_t bytes,
				  struct rp_ids nodes)
{
	Agent__HugePages *m = PB_NEW(a, Agent__HugePages, agent__huge_pages);
	char text[HUGE_SIZE_TEXT];
	if (!m)
		return NULL;
	m->resource = arena_printf(a, "hugepages-%s", hugepages_text(page, text));
	m->bytes = bytes;
	m->nodes = arena_array(a, rp_ids_count(nodes) + 1, sizeof *m->nodes);
	if (!m->resource || !m->nodes)
		return NULL;
	RP_IDS_EACH (node, nodes)
		m->nodes[m->n_nodes++] = node;
	return m;
}

/* Lists the huge pages of a container that is pinned to memory nodes. */
static int put_huge(struct arena *a, const struct ctr *ctr, Agent__ContainerAllocation *to)
{
	struct rp_ids nodes = ctr->cur.mems ? ctr->cur.mems->ids : rp_ids_none();
	if (!ctr->huge || rp_ids_empty(nodes))
		return 0;
	to->huge = arena_array(a, ctr->huge->n, sizeof(Agent__HugePages *));
	for (uint32_t i = 0; to->huge && i < ctr->huge->n; i++) {
		const struct huge_request *h = &ctr->huge->of[i];
		to->huge[i] = huge_new(a, h->page, h->bytes, nodes);
		if (!to->huge[i])
			return -ENOMEM;
		to->n_huge++;
	}
	return to->huge ? 0 : -ENOMEM;
}

/* Returns the exclusive CPUs that the container shares with containers of its pod only, as part of
 * the pod's own resources; NULL: none. */
static const struct iset *shared_in_pod(const struct ctr *ctr)
{
	const struct iset *own = ctr->cur.exclusive;
	uint64_t n = 0;
	if (!(ctr->flags & RP_CTR_POD_RESOURCES) || !ctr_live(ctr->cur.state) || !ctr->cur.group ||
	    !own || own != ctr->cur.cpus)
		return NULL;
	for (const struct ctr *c = ctr->pod->ctrs; c; c = c->pod_next)
		n += ctr_live(c->cur.state) && c->cur.cpus == own;
	return n == own->users ? own : NULL;
}

static int put_ctr(struct listing *l, struct ctr *ctr, Agent__PodAllocation *pod)
{
	const struct iset *own =
		shared_in_pod(ctr) ? NULL : ctr_exclusive(pipeline_cache(l->pipeline), ctr);
	Agent__ContainerAllocation *to =
		PB_NEW(l->a, Agent__ContainerAllocation, agent__container_allocation);
	if (!to)
		return err_errno(l->err, -ENOMEM, "a container");
	to->name = ctr->name;
	if (own)
		to->cpus = set_text(l->a, own->ids);
	pod->containers[pod->n_containers++] = to;
	if ((own && !to->cpus) || put_memory(l->a, ctr, to) || put_huge(l->a, ctr, to))
		return err_errno(l->err, -ENOMEM, "a container");
	return put_parts(l, ctr, to);
}

/* Fills in the exclusive CPUs and the memory of a pod whose containers share some of them, as the
 * kubelet lists such a pod. */
static int put_own(struct listing *l, const struct pod *pod, Agent__PodAllocation *to)
{
	const struct needs *own = pod_level_own(pipeline_cache(l->pipeline), pod);
	struct rp_idset cpus, nodes;
	bool shared = false;
	rp_idset_clear(&cpus);
	rp_idset_clear(&nodes);
	for (const struct ctr *ctr = pod->ctrs; ctr; ctr = ctr->pod_next) {
		if (!ctr_live(ctr->cur.state) || !ctr->cur.exclusive)
			continue;
		shared = shared || shared_in_pod(ctr);
		rp_idset_or(&cpus, rp_ids_of(&cpus), ctr->cur.exclusive->ids);
		if (ctr->cur.mems)
			rp_idset_or(&nodes, rp_ids_of(&nodes), ctr->cur.mems->ids);
	}
	if (!shared || !own)
		return 0;
	int64_t bytes = own->mem_request > 0 ? own->mem_request : own->mem_limit;
	to->own = PB_NEW(l->a, Agent__ContainerAllocation, agent__container_allocation);
	if (!to->own)
		return err_errno(l->err, -ENOMEM, "a pod");
	to->own->cpus = set_text(l->a, rp_ids_of(&cpus));
	if (!to->own->cpus || put_nodes_of(l->a, bytes, rp_ids_of(&nodes), to->own))
		return err_errno(l->err, -ENOMEM, "a pod");
	return 0;
}

static int put_pod(struct listing *l, const struct pod *pod, Agent__AllocationsResponse *out)
{
	Agent__PodAllocation *to = PB_NEW(l->a, Agent__PodAllocation, agent__pod_allocation);
	size_t n = 0;
	int r = 0;
	for (const struct ctr *ctr = pod->ctrs; ctr; ctr = ctr->pod_next)
		n++;
	if (!to)
		return err_errno(l->err, -ENOMEM, "a pod");
	to->namespace_ = pod->ns;
	to->name = pod->name;
	to->containers = arena_array(l->a, n + 1, sizeof(Agent__ContainerAllocation *));
	if (!to->containers)
		return err_errno(l->err, -ENOMEM, "a pod");
	for (struct ctr *ctr = pod->ctrs; !r && ctr; ctr = ctr->pod_next)
		if (ctr_live(ctr->cur.state))
			r = put_ctr(l, ctr, to);
	r = r ? r : put_own(l, pod, to);
	out->pods[out->n_pods++] = to;
	return r;
}

/* Returns true if the pod was requested. Stopped sandboxes are omitted: no container runs there,
 * and another sandbox of that name may exist. */
static bool is_asked_for(const struct pod *pod, const Agent__AllocationsRequest *m)
{
	return !pod->over && !pod->stopped &&
	       (!*m->name || (str_eq(pod->name, m->name) && str_eq(pod->ns, m->namespace_)));
}

static int fill_pods(struct listing *l, const Agent__AllocationsRequest *m,
		     Agent__AllocationsResponse *out)
{
	struct cache *cache = pipeline_cache(l->pipeline);
	out->pods = arena_array(l->a, cache_n_pods(cache) + 1, sizeof(Agent__PodAllocation *));
	int r = out->pods ? 0 : err_errno(l->err, -ENOMEM, "pods");
	for (const struct pod *pod = cache_pods(cache); !r && pod; pod = pod->hh.next)
		if (is_asked_for(pod, m) && !(pod->ctrs && pod->ctrs->device))
			r = put_pod(l, pod, out);
	return r;
}

void agent_serve_allocations(struct pipeline *p, struct rpc_request *req)
{
	_arena_ struct arena *a = arena_new(ARENA_BLOCK, ARENA_MAX);
	Agent__AllocationsResponse out = AGENT__ALLOCATIONS_RESPONSE__INIT;
	const Agent__AllocationsRequest *m = RPC_MESSAGE(a, agent__allocations_request, req);
	struct err err = ERR_INIT;
	struct listing l = {.a = a, .pipeline = p, .err = &err};
	int r = m ? fill_pods(&l, m, &out) : 0;
	if (!m)
		(void)rpc_reply_error(req, TTRPC_INVALID_ARGUMENT, "cannot decode the request");
	else if (r)
		(void)rpc_reply_error(req,
				      r == -ENOMEM ? TTRPC_RESOURCE_EXHAUSTED : TTRPC_UNAVAILABLE,
				      "%s", err.text);
	else
		(void)rpc_reply(req, &out.base);
}

/* ---- allocatable resources ------------------------------------------------------------------- */

static int put_nodes(struct arena *a, const struct topo *t, Agent__AllocatableResponse *out)
{
	struct rp_ids nodes = topo_ids(t, RP_NODES_MEMORY);
	out->memory = arena_array(a, rp_ids_count(nodes) + 1, sizeof *out->memory);
	if (!out->memory)
		return -ENOMEM;
	RP_IDS_EACH (node, nodes) {
		struct rp_node_info info = {.size = sizeof info};
		if (topo_node(t, node, &info))
			continue;
		Agent__NodeMemory *to = PB_NEW(a, Agent__NodeMemory, agent__node_memory);
		if (!to)
			return -ENOMEM;
		to->node = node;
		to->bytes = info.memory;
		out->memory[out->n_memory++] = to;
	}
	return 0;
}

/* Lists the huge pages of each node that no other programs use. */
static int put_node_pages(struct arena *a, struct pipeline *p, Agent__AllocatableResponse *out)
{
	const struct topo *t = pipeline_topo(p);
	struct rp_ids nodes = topo_ids(t, RP_NODES_MEMORY);
	uint64_t page;
	out->huge = arena_array(a, HUGE_SIZES_MAX * rp_ids_count(nodes) + 1, sizeof *out->huge);
	for (uint32_t i = 0; out->huge && i < HUGE_SIZES_MAX && (page = topo_hugepage_size(t, i));
	     i++) {
		RP_IDS_EACH (node, nodes) {
			struct huge_node n;
			struct rp_idset self;
			rp_idset_clear(&self);
			rp_idset_add(&self, node);
			if (hugepages_count(pipeline_cache(p), t, node, page, NULL, &n))
				continue;
			Agent__HugePages *m =
				huge_new(a, page, n.total - n.others, rp_ids_of(&self));
			if (!m)
				return -ENOMEM;
			out->huge[out->n_huge++] = m;
		}
	}
	return out->huge ? 0 : -ENOMEM;
}

void agent_serve_allocatable(struct pipeline *p, struct rpc_request *req)
{
	_arena_ struct arena *a = arena_new(ARENA_BLOCK, ARENA_MAX);
	Agent__AllocatableResponse out = AGENT__ALLOCATABLE_RESPONSE__INIT;
	struct rp_idset cpus;
	struct err err = ERR_INIT;
	if (pipeline_allocatable(p, &cpus, &err)) {
		(void)rpc_reply_error(req, TTRPC_UNAVAILABLE, "%s", err.text);
		return;
	}
	out.cpus = a ? set_text(a, rp_ids_of(&cpus)) : NULL;
	bool full = !out.cpus || put_nodes(a, pipeline_topo(p), &out) || put_node_pages(a, p, &out);
	agent_answer(req, full ? -ENOMEM : 0, "", &out.base);
}
