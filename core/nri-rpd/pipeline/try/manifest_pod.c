/* SPDX-License-Identifier: Apache-2.0 */
/* Pod of a manifest: resources, QoS class, shares, quota and OOM scores as the kubelet calculates
 * them. */
#include "core/nri-rpd/pipeline/try/manifest.h"
#include "core/nri-rpd/cache/derive.h"

#include <stdio.h>
#include <string.h>

#include "core/lib/util/str.h"
#include "core/nri-rpd/cache/hugepages.h"
#include "core/nri-rpd/pipeline/try/manifest_pod.h"

#define POD_ID "nri-rpctl-try"
#define CPU_LIMIT_MAX (INT64_C(1000) * RP_CPUS_MAX) /* largest limit in mCPU; no node has more */
#define AMOUNT_MAX                                                                                 \
	(INT64_C(1) << 53) /* largest amount: no node has more, and sums do not overflow */
#define PERIOD_US 100000
#define QUOTA_MIN_US 1000
#define OOM_GUARANTEED (-997)
#define OOM_BEST_EFFORT 1000
#define OOM_BURSTABLE_MIN 3
#define OOM_BURSTABLE_MAX 999

struct reading {
	struct arena *a;
	uint64_t memory;
	struct manifest_pod *ret;
	struct needs *wants; /* by container; the pod's limit for containers without one */
	struct fed_ctr *own; /* containers as in the manifest */
	rp_cfg *nodes; /* YAML node of each container in the manifest */
	struct needs of_pod; /* pod-level resources */
	bool has_own; /* the pod has pod-level resources */
	struct err *err;
};

/* ---- texts and maps -------------------------------------------------------------------------- */

static int no_memory(struct reading *rd)
{
	return err_set(rd->err, -E2BIG, "the manifest is too large");
}

static int copy_text(struct reading *rd, rp_cfg node, const char *fallback, const char **ret)
{
	*ret = arena_strdup(rd->a, conf_text(node, fallback));
	return *ret ? 0 : no_memory(rd);
}

static int copy_map(struct reading *rd, rp_cfg map, const struct kv **ret, uint32_t *ret_n)
{
	uint32_t n = conf_kind(map) == RP_NODE_MAP ? conf_count(map) : 0;
	struct kv *pairs = arena_array(rd->a, n + 1, sizeof *pairs);
	if (!pairs)
		return no_memory(rd);
	for (uint32_t i = 0; i < n; i++) {
		pairs[i].key = arena_strdup(rd->a, conf_key(map, i));
		int r = copy_text(rd, conf_item(map, i), "", &pairs[i].value);
		if (r || !pairs[i].key)
			return r ? r : no_memory(rd);
	}
	*ret = pairs;
	*ret_n = n;
	return 0;
}

/* ---- requests and limits --------------------------------------------------------------------- */

/* Object whose resources are read, and its name for messages: "container app", "the pod". */
struct holder {
	rp_cfg node;
	const char *what, *name;
};

static int read_amount(struct reading *rd, const struct holder *h, const char *path, uint32_t type,
		       int64_t *ret)
{
	rp_cfg node = conf_get(h->node, path);
	*ret = conf_value(node, type, node ? -1 : 0);
	if (*ret > AMOUNT_MAX)
		*ret = AMOUNT_MAX;
	if (*ret >= 0)
		return 0;
	return err_set(rd->err, -EINVAL, "%s%s: %s: \"%s\" is not an amount", h->what, h->name,
		       path, conf_text(node, ""));
}

static int check_limit(struct reading *rd, const struct holder *h, const char *resource,
		       int64_t request, int64_t limit)
{
	if (!limit || request <= limit)
		return 0;
	char path[64];
	(void)snprintf(path, sizeof path, "resources.requests.%s", resource);
	const char *asked = conf_text(conf_get(h->node, path), "?");
	(void)snprintf(path, sizeof path, "resources.limits.%s", resource);
	return err_set(rd->err, -EINVAL,
		       "%s%s: it requests %s of %s, which is above its limit of %s: the API server "
		       "refuses such a pod",
		       h->what, h->name, asked, resource, conf_text(conf_get(h->node, path), "?"));
}

/* Reads requests and limits. A limit without a request becomes the request, as in the API
 * server. */
static int read_wants(struct reading *rd, const struct holder *h, struct needs *ret)
{
	int r = read_amount(rd, h, "resources.requests.cpu", RP_T_CPU, &ret->cpu_request);
	if (!r)
		r = read_amount(rd, h, "resources.limits.cpu", RP_T_CPU, &ret->cpu_limit);
	if (!r)
		r = read_amount(rd, h, "resources.requests.memory", RP_T_BYTES, &ret->mem_request);
	if (!r)
		r = read_amount(rd, h, "resources.limits.memory", RP_T_BYTES, &ret->mem_limit);
	if (!r)
		r = check_limit(rd, h, "cpu", ret->cpu_request, ret->cpu_limit);
	if (!r)
		r = check_limit(rd, h, "memory", ret->mem_request, ret->mem_limit);
	if (!ret->cpu_request)
		ret->cpu_request = ret->cpu_limit;
	if (!ret->mem_request)
		ret->mem_request = ret->mem_limit;
	return r;
}

/* Applies pod-level resources: they bound the sums of the containers, and are the limits of
 * containers without one. */
static int apply_own(struct reading *rd)
{
	struct needs sum = {0}, *own = &rd->of_pod;
	for (uint32_t i = 0; i < rd->ret->n; i++) {
		struct needs *w = &rd->wants[i];
		if (rd->ret->ctrs[i].ends)
			continue;
		sum.cpu_request += w->cpu_request;
		sum.mem_request += w->mem_request;
	}
	if ((own->cpu_request && sum.cpu_request > own->cpu_request) ||
	    (own->mem_request && sum.mem_request > own->mem_request))
		return err_set(rd->err, -EINVAL,
			       "its containers request more %s than the pod's own resources: the "
			       "API server refuses such a pod",
			       own->cpu_request && sum.cpu_request > own->cpu_request ? "CPU"
										      : "memory");
	for (uint32_t i = 0; i < rd->ret->n; i++) {
		struct needs *w = &rd->wants[i];
		if (!w->cpu_limit)
			w->cpu_limit = own->cpu_limit;
		if (!w->cpu_request)
			w->cpu_request = own->cpu_limit;
		if (!w->mem_limit)
			w->mem_limit = own->mem_limit;
	}
	return 0;
}

/* ---- calculations of the kubelet ------------------------------------------------------------- */

static bool is_guaranteed(const struct needs *w)
{
	return w->cpu_limit && w->cpu_request == w->cpu_limit && w->mem_limit &&
	       w->mem_request == w->mem_limit;
}

static uint32_t qos_of(const struct reading *rd)
{
	bool any = false, all = true;
	if (rd->has_own)
		return is_guaranteed(&rd->of_pod) ? RP_QOS_GUARANTEED : RP_QOS_BURSTABLE;
	for (uint32_t i = 0; i < rd->ret->n; i++) {
		const struct needs *w = &rd->wants[i];
		any = any || w->cpu_request || w->mem_request;
		all = all && is_guaranteed(w);
	}
	return !any ? RP_QOS_BEST_EFFORT : all ? RP_QOS_GUARANTEED : RP_QOS_BURSTABLE;
}

/* Returns an equal share of the memory that the pod requests beyond its containers. */
static int64_t unclaimed_memory(const struct reading *rd)
{
	int64_t sum = 0;
	uint32_t n = 0;
	for (uint32_t i = 0; i < rd->ret->n; i++) {
		if (rd->ret->ctrs[i].ends)
			continue;
		sum += rd->wants[i].mem_request;
		n++;
	}
	return rd->of_pod.mem_request > sum && n ? (rd->of_pod.mem_request - sum) / n : 0;
}

static int64_t oom_score_of(const struct reading *rd, const struct needs *w, bool critical)
{
	uint32_t qos = qos_of(rd);
	if (qos == RP_QOS_GUARANTEED || critical)
		return OOM_GUARANTEED;
	if (qos == RP_QOS_BEST_EFFORT || !rd->memory)
		return OOM_BEST_EFFORT;
	__int128 request = w->mem_request + unclaimed_memory(rd);
	int64_t adj = 1000 - (int64_t)(1000 * request / (int64_t)rd->memory);
	if (adj < OOM_BURSTABLE_MIN)
		return OOM_BURSTABLE_MIN;
	return adj > OOM_BURSTABLE_MAX ? OOM_BURSTABLE_MAX : adj;
}

static void fill_resources(const struct needs *w, struct res_desc *ret)
{
	int64_t limit = w->cpu_limit < CPU_LIMIT_MAX ? w->cpu_limit : CPU_LIMIT_MAX;
	int64_t quota = limit * (PERIOD_US / 1000);
	*ret = (struct res_desc){.shares = derive_mcpu_to_shares(w->cpu_request),
				 .quota = RP_NOT_SET,
				 .period = RP_NOT_SET,
				 .mem_limit = w->mem_limit ? w->mem_limit : RP_NOT_SET};
	if (!quota)
		return;
	ret->quota = quota < QUOTA_MIN_US ? QUOTA_MIN_US : quota;
	ret->period = PERIOD_US;
}

/* Reads limits of huge pages. */
static int fill_huge(struct reading *rd, const struct holder *of, struct huge *ret)
{
	rp_cfg limits = conf_get(of->node, "resources.limits");
	uint32_t n = conf_kind(limits) == RP_NODE_MAP ? conf_count(limits) : 0;
	for (uint32_t i = 0; i < n && ret->n < HUGE_SIZES_MAX; i++) {
		const char *key = conf_key(limits, i);
		int64_t bytes = conf_value(conf_item(limits, i), RP_T_BYTES, -1);
		if (!str_has_prefix(key, HUGE_RESOURCE))
			continue;
		uint64_t page = hugepages_size(key + strlen(HUGE_RESOURCE));
		if (!page || bytes < 0 || (uint64_t)bytes % page)
			return err_set(rd->err, -EINVAL,
				       "%s%s: %s: expected a multiple of the page size", of->what,
				       of->name, key);
		ret->of[ret->n++] = (struct huge_request){.page = page, .bytes = (uint64_t)bytes};
	}
	return 0;
}

/* ---- containers and the pod ------------------------------------------------------------------ */

static int check_name(struct reading *rd, const char *name)
{
	if (!*name)
		return err_set(rd->err, -EINVAL, "a container without a name");
	for (uint32_t i = 0; i < rd->ret->n; i++)
		if (str_eq(rd->ret->ctrs[i].desc.name, name))
			return err_set(rd->err, -EINVAL, "two containers are named %s", name);
	return 0;
}

static int add_ctr(struct reading *rd, const char *pod_id, rp_cfg node, bool init)
{
	uint32_t i = rd->ret->n;
	struct manifest_ctr *c = &rd->ret->ctrs[i];
	const struct holder holder = {node, "container ", conf_text(conf_get(node, "name"), "")};
	int r = check_name(rd, holder.name);
	if (r)
		return r;
	*c = (struct manifest_ctr){
		.desc = {.pod_id = pod_id, .state = RP_STATE_CREATING, .cgroups_path = ""},
		.ends = init && !str_eq(conf_text(conf_get(node, "restartPolicy"), ""), "Always")};
	c->desc.id = arena_printf(rd->a, "%s-%u", pod_id, i);
	c->desc.name = arena_strdup(rd->a, holder.name);
	if (!c->desc.id || !c->desc.name)
		return no_memory(rd);
	rd->ret->n++;
	rd->nodes[i] = node;
	r = read_wants(rd, &holder, &rd->wants[i]);
	rd->own[i] = (struct fed_ctr){.name = c->desc.name,
				      .kind = c->ends ? FED_INIT
					      : init  ? FED_SIDECAR
						      : FED_APP,
				      .needs = rd->wants[i]};
	return r;
}

static int read_ctrs(struct reading *rd, const char *pod_id, rp_cfg spec)
{
	rp_cfg init = conf_get(spec, "initContainers"), ctrs = conf_get(spec, "containers");
	uint32_t n_init = conf_count(init), n = conf_count(ctrs);
	int r = 0;
	if (!n)
		return err_set(rd->err, -EINVAL, "it has no spec.containers");
	if (n > MANIFEST_CTRS_MAX || n_init > MANIFEST_CTRS_MAX)
		return err_set(rd->err, -E2BIG, "more than %u containers", MANIFEST_CTRS_MAX);
	rd->ret->ctrs = arena_array(rd->a, n_init + n, sizeof *rd->ret->ctrs);
	rd->wants = arena_array(rd->a, n_init + n, sizeof *rd->wants);
	rd->own = arena_array(rd->a, n_init + n, sizeof *rd->own);
	rd->nodes = arena_array(rd->a, n_init + n, sizeof *rd->nodes);
	if (!rd->ret->ctrs || !rd->wants || !rd->own || !rd->nodes)
		return no_memory(rd);
	for (uint32_t i = 0; !r && i < n_init; i++)
		r = add_ctr(rd, pod_id, conf_item(init, i), true);
	for (uint32_t i = 0; !r && i < n; i++)
		r = add_ctr(rd, pod_id, conf_item(ctrs, i), false);
	return r;
}

/* Reads pod-level requests and limits. */
static int read_own(struct reading *rd, rp_cfg spec)
{
	const struct holder holder = {spec, "the pod", ""};
	if (conf_kind(conf_get(spec, "resources")) != RP_NODE_MAP)
		return 0;
	int r = read_wants(rd, &holder, &rd->of_pod);
	rd->has_own = rd->of_pod.cpu_request || rd->of_pod.mem_request;
	return r || !rd->has_own ? r : apply_own(rd);
}

static int read_names(struct reading *rd, const struct manifest_source *source, const char *id)
{
	static const char *const parents[] = {
		[RP_QOS_GUARANTEED] = "",
		[RP_QOS_BURSTABLE] = "burstable/",
		[RP_QOS_BEST_EFFORT] = "besteffort/",
	};
	rp_cfg meta = conf_get(source->pod, "metadata");
	struct pod_desc *pod = &rd->ret->pod;
	*pod = (struct pod_desc){
		.id = id,
		.uid = id,
		.runtime_handler = "",
		.cgroup_parent = arena_printf(rd->a, "/kubepods/%spod%s", parents[qos_of(rd)], id),
		.name = arena_strdup(rd->a, source->name),
		.ns = arena_strdup(rd->a, source->ns),
	};
	if (!pod->cgroup_parent || !pod->name || !pod->ns)
		return no_memory(rd);
	int r = copy_map(rd, conf_get(meta, "labels"), &pod->labels, &pod->n_labels);
	return r ? r
		 : copy_map(rd, conf_get(meta, "annotations"), &pod->annotations,
			    &pod->n_annotations);
}

/* Fills the pod as the cluster would report it, and the values that the kubelet sends with its
 * sandbox. */
static int fill_pod(struct reading *rd)
{
	struct pod_desc *pod = &rd->ret->pod;
	struct fed_pod *fed = arena_alloc(rd->a, sizeof *fed);
	struct res_desc *sums = arena_alloc(rd->a, sizeof *sums);
	if (!fed || !sums)
		return no_memory(rd);
	*fed = (struct fed_pod){.uid = pod->uid,
				.ns = pod->ns,
				.name = pod->name,
				.owner = "",
				.has_own = rd->has_own,
				.own = rd->of_pod,
				.ctrs = rd->own,
				.n_ctrs = rd->ret->n};
	const struct needs needs = fed_sandbox_needs(fed);
	fill_resources(&needs, sums);
	pod->sums = sums;
	rd->ret->fed = fed;
	return 0;
}

/* Returns the place for the huge pages of a size; NULL: too many sizes. */
static uint64_t *huge_of_size(struct huge *h, uint64_t page)
{
	uint32_t i = 0;
	while (i < h->n && h->of[i].page != page)
		i++;
	if (i == HUGE_SIZES_MAX)
		return NULL;
	if (i == h->n)
		h->of[h->n++] = (struct huge_request){.page = page};
	return &h->of[i].bytes;
}

/* Adds the pod's own huge pages that no container requests itself to its first container, as the
 * pod feed does. */
static int fill_own_huge(struct reading *rd, rp_cfg spec)
{
	struct huge own = {.n = 0};
	int r = fill_huge(rd, &(struct holder){spec, "the pod", ""}, &own);
	uint32_t first = 0;
	while (first < rd->ret->n && rd->own[first].kind != FED_APP)
		first++;
	for (uint32_t i = 0; !r && i < own.n; i++) {
		uint64_t sum = 0,
			 *to = huge_of_size(&rd->ret->ctrs[first].desc.huge, own.of[i].page);
		for (uint32_t k = 0; k < rd->ret->n; k++) {
			const struct huge *h = &rd->ret->ctrs[k].desc.huge;
			for (uint32_t at = 0; !rd->ret->ctrs[k].ends && at < h->n; at++)
				sum += h->of[at].page == own.of[i].page ? h->of[at].bytes : 0;
		}
		if (to && own.of[i].bytes > sum)
			*to += own.of[i].bytes - sum;
	}
	return r;
}

int manifest_read_pod(const struct manifest_source *source, uint32_t number,
		      struct manifest_pod *ret, struct err *err)
{
	struct reading rd = {.a = source->arena, .memory = source->memory, .ret = ret, .err = err};
	rp_cfg spec = conf_get(source->pod, "spec");
	const char *class = conf_text(conf_get(spec, "priorityClassName"), "");
	bool critical = str_has_prefix(class, "system-") && strstr(class, "-critical");
	const char *id = number ? arena_printf(rd.a, POD_ID "-%u", number) : POD_ID;
	int r = id ? read_ctrs(&rd, id, spec) : no_memory(&rd);
	if (!r)
		r = read_own(&rd, spec);
	if (!r)
		r = read_names(&rd, source, id);
	if (!r)
		r = fill_pod(&rd);
	for (uint32_t i = 0; !r && i < ret->n; i++) {
		struct ctr_desc *d = &ret->ctrs[i].desc;
		fill_resources(&rd.wants[i], &d->res);
		r = fill_huge(&rd, &(struct holder){rd.nodes[i], "container ", d->name}, &d->huge);
		d->oom_score_adj = oom_score_of(&rd, &rd.wants[i], critical);
	}
	return r ? r : fill_own_huge(&rd, spec);
}
