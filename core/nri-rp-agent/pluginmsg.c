/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-agent/pluginmsg.h"

#include <stdlib.h>
#include <string.h>

#include <nri-rp/set.h>

#include "core/lib/wire/agent_protocol.h"
#include "core/lib/util/pb.h"
#include "core/lib/util/str.h"
#include "core/lib/util/number.h"

#define CDI_PREFIX "cdi.k8s.io/" /* prefix of annotations whose values are names of CDI devices */
#define PODS_MAX AGENT_PODS_MAX /* limit of pods in an answer */

int pluginmsg_pack(struct arena *a, const ProtobufCMessage *m, struct packed *ret)
{
	size_t n = protobuf_c_message_get_packed_size(m);
	uint8_t *data = arena_alloc(a, n + 1);
	if (arena_failed(a))
		return -ENOMEM;
	*ret = (struct packed){data, protobuf_c_message_pack(m, data)};
	return 0;
}

int pluginmsg_pack_grants(struct arena *a, const struct grant_list *list, struct packed *ret)
{
	Grants__Grants m = GRANTS__GRANTS__INIT;
	m.grants = (Grants__Grant **)(uintptr_t)list->list;
	m.n_grants = list->n;
	return pluginmsg_pack(a, &m.base, ret);
}

/* ---- requests -------------------------------------------------------------------------------- */

static void copy_hint(struct arena *a, const Agent__Hint *from, Resourceplugin__TopologyHint *ret)
{
	resourceplugin__topology_hint__init(ret);
	ret->preferred = from->preferred;
	ret->nodes = arena_array(a, from->n_nodes + 1, sizeof *ret->nodes);
	for (size_t i = 0; ret->nodes && i < from->n_nodes; i++)
		ret->nodes[ret->n_nodes++] = from->nodes[i];
}

/* Fields that both kinds of requests have. */
struct asked {
	Resourceplugin__TextEntry **labels, **annotations;
	size_t n_labels, n_annotations;
	Resourceplugin__TopologyHint hint;
	Resourceplugin__AmountEntry amount, *amounts[1];
};

static void fill_asked(struct arena *a, const Agent__PluginRequest *pod, const Agent__Wanted *w,
		       struct asked *ret)
{
	resourceplugin__amount_entry__init(&ret->amount);
	ret->amount.key = w->resource;
	ret->amount.value = w->amount;
	ret->amounts[0] = &ret->amount;
	PB_COPY_LIST(a, pod, ret, labels, resourceplugin__text_entry);
	PB_COPY_LIST(a, pod, ret, annotations, resourceplugin__text_entry);
	if (w->hint)
		copy_hint(a, w->hint, &ret->hint);
}

static int pod_request(struct arena *a, const Agent__PluginRequest *pod, const Agent__Wanted *w,
		       struct asked *x, struct packed *ret)
{
	Resourceplugin__PodResourceRequest m = RESOURCEPLUGIN__POD_RESOURCE_REQUEST__INIT;
	m.pod_uid = pod->uid;
	m.pod_namespace = pod->namespace_;
	m.pod_name = pod->name;
	m.resource_name = w->resource;
	m.hint = w->hint ? &x->hint : NULL;
	m.resource_requests = x->amounts;
	m.n_resource_requests = 1;
	m.labels = x->labels;
	m.n_labels = x->n_labels;
	m.annotations = x->annotations;
	m.n_annotations = x->n_annotations;
	return pluginmsg_pack(a, &m.base, ret);
}

int pluginmsg_request(struct arena *a, const Agent__PluginRequest *pod, const Agent__Wanted *w,
		      struct packed *ret)
{
	Resourceplugin__ResourceRequest m = RESOURCEPLUGIN__RESOURCE_REQUEST__INIT;
	struct asked x;
	fill_asked(a, pod, w, &x);
	if (!*w->container)
		return pod_request(a, pod, w, &x, ret);
	m.pod_uid = pod->uid;
	m.pod_namespace = pod->namespace_;
	m.pod_name = pod->name;
	m.container_name = w->container;
	/* both enums have the same numbers */
	m.container_type = (Resourceplugin__ContainerType)w->kind;
	m.container_index = w->index;
	m.resource_name = w->resource;
	m.hint = w->hint ? &x.hint : NULL;
	m.resource_requests = x.amounts;
	m.n_resource_requests = 1;
	m.labels = x.labels;
	m.n_labels = x.n_labels;
	m.annotations = x.annotations;
	m.n_annotations = x.n_annotations;
	m.native_qos_class = pod->qos;
	return pluginmsg_pack(a, &m.base, ret);
}

/* ---- hints ----------------------------------------------------------------------------------- */

/* Checks that an answer is about the requested pod, container and resource. A plugin may leave
 * these fields empty. */
static int check_about(const char *uid, const char *container, const char *resource,
		       const Agent__PluginRequest *pod, const Agent__Wanted *w, struct err *err)
{
	if (*uid && !str_eq(uid, pod->uid))
		return err_set(err, -EINVAL, "a reply about another pod (%.64s)", uid);
	if (*container && !str_eq(container, w->container))
		return err_set(err, -EINVAL, "a reply about another container (%.64s)", container);
	if (*resource && !str_eq(resource, w->resource))
		return err_set(err, -EINVAL, "a reply about another resource (%.64s)", resource);
	return 0;
}

static int take_hint(struct arena *a, const Resourceplugin__TopologyHint *from, Agent__Hints *to,
		     struct err *err)
{
	if (from->n_nodes > RP_NODES_MAX)
		return err_set(err, -E2BIG, "a hint of %zu nodes", from->n_nodes);
	Agent__Hint *hint = PB_ADD(a, to, hints, agent__hint);
	uint32_t *nodes = arena_array(a, from->n_nodes + 1, sizeof *nodes);
	if (!hint || !nodes)
		return err_errno(err, -ENOMEM, "hints");
	hint->preferred = from->preferred;
	hint->nodes = nodes;
	for (size_t i = 0; i < from->n_nodes; i++) {
		if (from->nodes[i] >= RP_NODES_MAX)
			return err_set(err, -EINVAL, "a hint with NUMA node %llu",
				       (unsigned long long)from->nodes[i]);
		nodes[hint->n_nodes++] = (uint32_t)from->nodes[i];
	}
	return 0;
}

static int take_hints(struct arena *a, Resourceplugin__HintsEntry *const *entries, size_t n,
		      const char *resource, Agent__Hints *ret, struct err *err)
{
	const Resourceplugin__ListOfTopologyHints *list = NULL;
	agent__hints__init(ret);
	for (size_t i = 0; i < n; i++)
		if (str_eq(entries[i]->key, resource))
			list = entries[i]->value;
	if (!list || !list->n_hints)
		return 0; /* no preference; if no placement fits, the plugin returns an error */
	if (list->n_hints > AGENT_HINTS_MAX)
		return err_set(err, -E2BIG, "%zu hints, at most %u are accepted", list->n_hints,
			       AGENT_HINTS_MAX);
	ret->told = true;
	int r = 0;
	for (size_t i = 0; !r && i < list->n_hints; i++)
		r = take_hint(a, list->hints[i], ret, err);
	return r;
}

static int pluginmsg_undecodable(const struct packed *answer, struct err *err)
{
	return err_set(err, -EBADMSG, "a reply that cannot be decoded (%zu bytes)", answer->n);
}

int pluginmsg_hints(struct arena *a, const struct packed *answer, const Agent__PluginRequest *pod,
		    const Agent__Wanted *w, Agent__Hints *ret, struct err *err)
{
	int r;
	if (!*w->container) {
		const Resourceplugin__PodResourceHintsResponse *m = PB_UNPACK(
			a, resourceplugin__pod_resource_hints_response, answer->n, answer->data);
		r = m ? check_about(m->pod_uid, "", m->resource_name, pod, w, err)
		      : pluginmsg_undecodable(answer, err);
		return r ? r
			 : take_hints(a, m->resource_hints, m->n_resource_hints, w->resource, ret,
				      err);
	}
	const Resourceplugin__ResourceHintsResponse *m =
		PB_UNPACK(a, resourceplugin__resource_hints_response, answer->n, answer->data);
	r = m ? check_about(m->pod_uid, m->container_name, m->resource_name, pod, w, err)
	      : pluginmsg_undecodable(answer, err);
	return r ? r : take_hints(a, m->resource_hints, m->n_resource_hints, w->resource, ret, err);
}

/* ---- allocations ----------------------------------------------------------------------------- */

static int memory_limit(const char *text, Grants__Grant *g, struct err *err)
{
	int64_t limit;
	if (!*text)
		return 0;
	if (str_to_i64(text, &limit) || limit <= 0)
		return err_set(err, -EINVAL, "MemoryLimitInBytes with \"%.64s\"", text);
	g->memory_limit = limit;
	return 0;
}

static int take_property(const Resourceplugin__ResourceAllocationInfo *info, Grants__Grant *g,
			 struct err *err)
{
	const char *property = info->oci_property_name;
	if (str_eq(property, "CpusetCpus"))
		g->cpus = info->allocation_result;
	else if (str_eq(property, "CpusetMems"))
		g->mems = info->allocation_result;
	else if (str_eq(property, "MemoryLimitInBytes"))
		return memory_limit(info->allocation_result, g, err);
	else if (*property)
		return err_set(err, -EINVAL,
			       "oci_property_name \"%.64s\": expected CpusetCpus, CpusetMems, "
			       "MemoryLimitInBytes or nothing",
			       property);
	return 0;
}

/* Splits an annotation's value at commas into names. */
static int take_cdi(struct arena *a, const char *value, Grants__Grant *g)
{
	char *text = arena_strdup(a, value), *save = NULL;
	if (!text)
		return -ENOMEM;
	for (char *name = strtok_r(text, ",", &save); name; name = strtok_r(NULL, ",", &save)) {
		if (g->n_cdi == GRANT_ITEMS_MAX)
			return -E2BIG;
		g->cdi[g->n_cdi++] = name;
	}
	return 0;
}

static int cmp_entries(const void *a, const void *b)
{
	const Resourceplugin__TextEntry *x = *(Resourceplugin__TextEntry *const *)a;
	const Resourceplugin__TextEntry *y = *(Resourceplugin__TextEntry *const *)b;
	int r = strcmp(x->key, y->key);
	return r ? r : strcmp(x->value, y->value);
}

/* Sorts the entries, because Go returns maps in random order. */
static void sort_entries(Resourceplugin__TextEntry **list, size_t n)
{
	if (n)
		qsort(list, n, sizeof *list, cmp_entries);
}

static int take_pairs(struct arena *a, const Resourceplugin__ResourceAllocationInfo *info,
		      Grants__Grant *g)
{
	size_t n = 0;
	sort_entries(info->envs, info->n_envs);
	sort_entries(info->annotations, info->n_annotations);
	g->cdi = arena_array(a, GRANT_ITEMS_MAX, sizeof *g->cdi);
	pb_copy_list(a, &grants__pair__descriptor, info->envs, info->n_envs, &g->env, &g->n_env);
	PB_COPY_LIST(a, info, g, annotations, grants__pair);
	int r = arena_failed(a) ? -ENOMEM : 0;
	for (size_t i = 0; !r && i < info->n_annotations; i++) {
		const Resourceplugin__TextEntry *e = info->annotations[i];
		if (str_has_prefix(e->key, CDI_PREFIX))
			r = take_cdi(a, e->value, g);
		else
			g->annotations[n++] = g->annotations[i];
	}
	g->n_annotations = n;
	return r;
}

static int take_mounts(struct arena *a, const Resourceplugin__ResourceAllocationInfo *info,
		       Grants__Grant *g)
{
	PB_COPY_LIST(a, info, g, mounts, grants__mount);
	PB_COPY_LIST(a, info, g, devices, grants__device);
	return arena_failed(a) ? -ENOMEM : 0;
}

static int take_grant(struct arena *a, const Resourceplugin__AllocationEntry *e,
		      const char *container, const char *resource, struct grant_list *to,
		      struct err *err)
{
	static const Resourceplugin__ResourceAllocationInfo nothing =
		RESOURCEPLUGIN__RESOURCE_ALLOCATION_INFO__INIT;
	const Resourceplugin__ResourceAllocationInfo *info = e->value ? e->value : &nothing;
	Grants__Grant *g = arena_zero(a, Grants__Grant);
	if (to->n == GRANTS_MAX)
		return err_set(err, -E2BIG, "more than %u allocations in one pod", GRANTS_MAX);
	if (!g)
		return err_errno(err, -ENOMEM, "an allocation");
	grants__grant__init(g);
	g->container = (char *)(uintptr_t)container;
	g->resource = (char *)(uintptr_t)resource;
	g->part = str_eq(e->key, resource) ? g->part : e->key;
	int r = take_property(info, g, err);
	if (r)
		return r;
	r = take_pairs(a, info, g);
	if (!r)
		r = take_mounts(a, info, g);
	if (r)
		return err_errno(err, r, "the allocation of %.64s", e->key);
	to->list[to->n++] = g;
	return grant_check(g, err);
}

static int take_allocation(struct arena *a, const Resourceplugin__ResourceAllocation *m,
			   const char *container, const char *resource, struct grant_list *to,
			   struct err *err)
{
	int r = 0;
	for (size_t i = 0; !r && m && i < m->n_resource_allocation; i++)
		r = take_grant(a, m->resource_allocation[i], container, resource, to, err);
	return r;
}

/* Adds an empty grant if the answer has none: the plugin has allocated, and must not be requested
 * again. */
static int note_empty(struct arena *a, uint32_t before, const Agent__Wanted *w,
		      struct grant_list *to, struct err *err)
{
	Resourceplugin__AllocationEntry e = RESOURCEPLUGIN__ALLOCATION_ENTRY__INIT;
	e.key = w->resource;
	return to->n > before ? 0 : take_grant(a, &e, w->container, w->resource, to, err);
}

int pluginmsg_grants(struct arena *a, const struct packed *answer, const Agent__PluginRequest *pod,
		     const Agent__Wanted *w, struct grant_list *to, struct err *err)
{
	const Resourceplugin__ResourceAllocation *result = NULL;
	uint32_t before = to->n;
	int r;
	if (!*w->container) {
		const Resourceplugin__PodResourceAllocationResponse *m =
			PB_UNPACK(a, resourceplugin__pod_resource_allocation_response, answer->n,
				  answer->data);
		r = m ? check_about(m->pod_uid, "", m->resource_name, pod, w, err)
		      : pluginmsg_undecodable(answer, err);
		result = m ? m->allocation_result : NULL;
	} else {
		const Resourceplugin__ResourceAllocationResponse *m = PB_UNPACK(
			a, resourceplugin__resource_allocation_response, answer->n, answer->data);
		r = m ? check_about(m->pod_uid, m->container_name, m->resource_name, pod, w, err)
		      : pluginmsg_undecodable(answer, err);
		result = m ? m->allocation_result : NULL;
	}
	if (!r)
		r = take_allocation(a, result, w->container, w->resource, to, err);
	return r ? r : note_empty(a, before, w, to, err);
}

/* ---- all allocations of a plugin ------------------------------------------------------------- */

static int take_pod(struct arena *a, const Resourceplugin__PodEntry *e, const char *resource,
		    Agent__PluginPod *ret, struct err *err)
{
	const Resourceplugin__ContainerResources *c = e->value;
	struct grant_list *list = arena_zero(a, struct grant_list);
	struct packed grants = {NULL, 0};
	int r = list ? 0 : err_errno(err, -ENOMEM, "allocations");
	for (size_t i = 0; !r && c && i < c->n_container_resources; i++) {
		const Resourceplugin__ContainerEntry *one = c->container_resources[i];
		r = take_allocation(a, one->value, one->key, resource, list, err);
	}
	if (!r && pluginmsg_pack_grants(a, list, &grants))
		r = err_errno(err, -ENOMEM, "allocations");
	if (r)
		return r;
	ret->uid = e->key;
	ret->grants.data = (uint8_t *)(uintptr_t)grants.data;
	ret->grants.len = grants.n;
	return 0;
}

int pluginmsg_pods(struct arena *a, const struct packed *answer, const char *resource,
		   Agent__CheckPodsRequest *ret, struct err *err)
{
	const Resourceplugin__GetResourcesAllocationResponse *m = PB_UNPACK(
		a, resourceplugin__get_resources_allocation_response, answer->n, answer->data);
	if (!m)
		return pluginmsg_undecodable(answer, err);
	if (m->n_pod_resources > PODS_MAX)
		return err_set(err, -E2BIG, "allocations of %zu pods, at most %u are accepted",
			       m->n_pod_resources, PODS_MAX);
	ret->resource = (char *)(uintptr_t)resource;
	for (size_t i = 0; i < m->n_pod_resources; i++) {
		if (!grant_name(m->pod_resources[i]->key))
			return err_set(err, -EINVAL, "an allocation of a pod without a valid UID");
		Agent__PluginPod *pod = PB_ADD(a, ret, pods, agent__plugin_pod);
		int r = pod ? take_pod(a, m->pod_resources[i], resource, pod, err)
			    : err_errno(err, -ENOMEM, "allocations");
		if (r)
			return r;
	}
	return 0;
}
