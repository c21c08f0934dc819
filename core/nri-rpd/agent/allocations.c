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

static char *set_text(struct arena *a, struct rp_ids ids)
{
	char text[RP_IDSET_TEXT_MAX];
	(void)rp_ids_format(ids, text, sizeof text);
	return pb_build_text(a, text);
}

static void put_node_list(struct arena *a, struct rp_ids nodes, uint32_t **ret, size_t *ret_n)
{
	*ret = arena_array(a, rp_ids_count(nodes) + 1, sizeof **ret);
	if (!*ret)
		return;
	RP_IDS_EACH (node, nodes)
		(*ret)[(*ret_n)++] = node;
}

/* ---- allocations of containers --------------------------------------------------------------- */

struct listing {
	struct arena *arena;
	struct pipeline *pipeline;
	struct err *err;
	/* memory nodes already reported for the current container */
	struct rp_idset told;
	Agent__ContainerAllocation *to;
};

static void on_part(void *ctx, uint32_t node, uint64_t bytes)
{
	struct listing *l = ctx;
	struct rp_ids nodes = topo_ids(pipeline_topo(l->pipeline), RP_NODES_MEMORY);
	if (l->err->code)
		return;
	if (!bytes || !rp_ids_has(nodes, node) || rp_ids_has(rp_ids_of(&l->told), node)) {
		(void)err_set(l->err, -EBADMSG,
			      "the policy reports %llu bytes of memory of node %u, which has "
			      "no memory or was already reported",
			      (unsigned long long)bytes, node);
		return;
	}
	Agent__NodeMemory *part = PB_ADD(l->arena, l->to, parts, agent__node_memory);
	if (!part)
		return;
	part->node = node;
	part->bytes = bytes;
	rp_idset_add(&l->told, node);
}

static int put_parts(struct listing *l, struct ctr *ctr, Agent__ContainerAllocation *to)
{
	const struct rp_memory_sink sink = {.size = sizeof sink, .ctx = l, .part = on_part};
	rp_idset_clear(&l->told);
	l->to = to;
	int r = pipeline_memory(l->pipeline, ctr, &sink, l->err);
	return r ? r : l->err->code;
}

static void put_memory(struct listing *l, int64_t bytes, struct rp_ids nodes,
		       Agent__ContainerAllocation *to)
{
	if (bytes <= 0 || rp_ids_empty(nodes))
		return;
	to->memory = (uint64_t)bytes;
	put_node_list(l->arena, nodes, &to->nodes, &to->n_nodes);
}

static void fill_huge(struct arena *a, Agent__HugePages *m, uint64_t page, uint64_t bytes,
		      struct rp_ids nodes)
{
	char text[HUGE_SIZE_TEXT];
	if (!m)
		return;
	m->resource = arena_printf(a, "hugepages-%s", hugepages_text(page, text));
	m->bytes = bytes;
	put_node_list(a, nodes, &m->nodes, &m->n_nodes);
}

/* Lists the huge pages of a container that is pinned to memory nodes. */
static void put_huge(struct listing *l, const struct ctr *ctr, struct rp_ids nodes,
		     Agent__ContainerAllocation *to)
{
	for (uint32_t i = 0; ctr->huge && !rp_ids_empty(nodes) && i < ctr->huge->n; i++)
		fill_huge(l->arena, PB_ADD(l->arena, to, huge, agent__huge_pages),
			  ctr->huge->of[i].page, ctr->huge->of[i].bytes, nodes);
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
	struct rp_ids nodes = ctr->cur.mems ? ctr->cur.mems->ids : rp_ids_none();
	Agent__ContainerAllocation *to =
		PB_ADD(l->arena, pod, containers, agent__container_allocation);
	if (!to)
		return 0;
	to->name = ctr->name;
	if (own)
		to->cpus = set_text(l->arena, own->ids);
	put_memory(l, ctr->wanted.mem_request, nodes, to);
	put_huge(l, ctr, nodes, to);
	return put_parts(l, ctr, to);
}

/* Fills in the exclusive CPUs and the memory of a pod whose containers share some of them, as the
 * kubelet lists such a pod. */
static void put_own(struct listing *l, const struct pod *pod, Agent__PodAllocation *to)
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
	if (!shared || !own || !PB_PART(l->arena, to->own, agent__container_allocation))
		return;
	to->own->cpus = set_text(l->arena, rp_ids_of(&cpus));
	put_memory(l, own->mem_request > 0 ? own->mem_request : own->mem_limit, rp_ids_of(&nodes),
		   to->own);
}

static int put_pod(struct listing *l, const struct pod *pod, Agent__AllocationsResponse *out)
{
	Agent__PodAllocation *to = PB_ADD(l->arena, out, pods, agent__pod_allocation);
	int r = 0;
	if (!to)
		return 0;
	to->namespace_ = pod->ns;
	to->name = pod->name;
	for (struct ctr *ctr = pod->ctrs; !r && ctr; ctr = ctr->pod_next)
		if (ctr_live(ctr->cur.state))
			r = put_ctr(l, ctr, to);
	put_own(l, pod, to);
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
	int r = 0;
	for (const struct pod *pod = cache_pods(pipeline_cache(l->pipeline)); !r && pod;
	     pod = pod->hh.next)
		if (is_asked_for(pod, m) && !(pod->ctrs && pod->ctrs->device))
			r = put_pod(l, pod, out);
	return !r && arena_failed(l->arena) ? err_errno(l->err, -ENOMEM, "pods") : r;
}

void agent_serve_allocations(struct pipeline *p, struct rpc_request *req)
{
	_arena_ struct arena *a = arena_new(ARENA_BLOCK, ARENA_MAX);
	Agent__AllocationsResponse out = AGENT__ALLOCATIONS_RESPONSE__INIT;
	const Agent__AllocationsRequest *m = RPC_MESSAGE(a, agent__allocations_request, req);
	struct err err = ERR_INIT;
	struct listing l = {.arena = a, .pipeline = p, .err = &err};
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

static void put_nodes(struct arena *a, const struct topo *t, Agent__AllocatableResponse *out)
{
	struct rp_ids nodes = topo_ids(t, RP_NODES_MEMORY);
	RP_IDS_EACH (node, nodes) {
		struct rp_node_info info = {.size = sizeof info};
		Agent__NodeMemory *to = topo_node(t, node, &info)
						? NULL
						: PB_ADD(a, out, memory, agent__node_memory);
		if (!to)
			continue;
		to->node = node;
		to->bytes = info.memory;
	}
}

/* Lists the huge pages of each node that no other programs use. */
static void put_node_pages(struct arena *a, struct pipeline *p, Agent__AllocatableResponse *out)
{
	const struct topo *t = pipeline_topo(p);
	struct rp_ids nodes = topo_ids(t, RP_NODES_MEMORY);
	uint64_t page;
	for (uint32_t i = 0; i < HUGE_SIZES_MAX && (page = topo_hugepage_size(t, i)); i++) {
		RP_IDS_EACH (node, nodes) {
			struct huge_node n;
			struct rp_idset self;
			rp_idset_clear(&self);
			rp_idset_add(&self, node);
			if (!hugepages_count(pipeline_cache(p), t, node, page, NULL, &n))
				fill_huge(a, PB_ADD(a, out, huge, agent__huge_pages), page,
					  n.total - n.others, rp_ids_of(&self));
		}
	}
}

void agent_serve_allocatable(struct pipeline *p, struct rpc_request *req)
{
	_arena_ struct arena *a = arena_new(ARENA_BLOCK, ARENA_MAX);
	Agent__AllocatableResponse out = AGENT__ALLOCATABLE_RESPONSE__INIT;
	struct rp_idset cpus;
	struct err err = ERR_INIT;
	if (!a) {
		agent_answer(req, -ENOMEM, "", NULL);
		return;
	}
	if (pipeline_allocatable(p, &cpus, &err)) {
		(void)rpc_reply_error(req, TTRPC_UNAVAILABLE, "%s", err.text);
		return;
	}
	out.cpus = set_text(a, rp_ids_of(&cpus));
	put_nodes(a, pipeline_topo(p), &out);
	put_node_pages(a, p, &out);
	agent_answer(req, arena_failed(a) ? -ENOMEM : 0, "", &out.base);
}
