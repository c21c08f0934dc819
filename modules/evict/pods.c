/* SPDX-License-Identifier: Apache-2.0 */
/* Collects requests, usage, priority and annotations of all pods. */
#include <stdlib.h>
#include <string.h>

#include "modules/evict/evict.h"
#include "modules/lib/private/annotation.h"
#include "modules/lib/private/ctl_table.h"

#define SPEC "node.koordinator.sh/extended-resource-spec"
#define OPT_IN "koordinator.sh/eviction-enabled"
#define ORDER "koordinator.sh/eviction-priority"
#define SUB_PRIORITY "koordinator.sh/priority"
#define POLICY "koordinator.sh/eviction-policy"
#define CLASS "koordinator.sh/priority-class"
#define AMOUNT_MAX (INT64_C(1) << 50) /* largest amount; sums of such amounts fit 64 bits */
#define LIST_MAX 512u /* limit of the list of rules, bytes */
#define ALL_FEATURES ((1u << EVICT_RULES) - 1)

const char *const evict_lent_names[EVICT_LENT][RP_NR_AMOUNTS] = {
	[EVICT_BATCH] = {KOORD_BATCH_CPU, KOORD_BATCH_MEMORY},
	[EVICT_MID] = {"kubernetes.io/mid-cpu", "kubernetes.io/mid-memory"},
};

struct survey {
	const struct rp_instance *inst;
	struct evict_pod *list;
	uint32_t n, cap;
};

/* ---- pod ------------------------------------------------------------------------------------- */

/* Returns the pod's priority, or the upper end of its class if the cluster has not reported it. */
static int64_t priority_of(const struct modhost *h, const struct rp_pod_info *info, bool is_be)
{
	static const struct {
		const char *name;
		int64_t priority;
	} classes[] = {{"koord-prod", 9999},
		       {"koord-mid", 7999},
		       {"koord-batch", 5999},
		       {"koord-free", 3999}};
	const char *label = h->cache->pod_label(h->ctx, info->pod, CLASS);
	if (info->flags & RP_POD_FED)
		return info->priority;
	for (uint32_t i = 0; label && i < sizeof classes / sizeof *classes; i++)
		if (strcmp(label, classes[i].name) == 0)
			return classes[i].priority;
	return is_be ? 5999 : 9999;
}

/* Returns the rules that may choose the pod: all, unless its annotation lists some. A malformed
 * list allows none. */
static uint32_t features_of(const struct modhost *h, rp_pod pod)
{
	const char *text = h->cache->pod_annotation(h->ctx, pod, POLICY);
	char map[LIST_MAX];
	uint32_t features = 0;
	rp_cfg root, list = NULL;
	if (!text)
		return ALL_FEATURES;
	if (ctl_format(map, sizeof map, "{rules: %s}", text) ||
	    annotation_parse(h, POLICY, map, &root) ||
	    annotation_texts(h, POLICY, root, "rules", &list))
		return 0;
	for (uint32_t i = 0; i < h->config->count(h->ctx, list); i++) {
		const char *name = h->config->text(h->ctx, h->config->item(h->ctx, list, i), "");
		for (uint32_t rule = 0; rule < EVICT_RULES; rule++)
			if (strcmp(name, evict_rule_names[rule]) == 0)
				features |= 1u << rule;
	}
	return features;
}

static uint32_t eviction_of(const struct modhost *h, rp_pod pod)
{
	return h->evict ? h->evict->state(h->ctx, pod, NULL, 0) : RP_EVICTION_NONE;
}

static int64_t pods_amount(const struct modhost *h, rp_cfg map, const char *resource)
{
	int64_t v = h->config->value(h->ctx, annotation_named(h, map, resource), RP_T_BYTES, 0);
	return v > 0 && v <= AMOUNT_MAX ? v : 0;
}

/* Adds the requests of the pod's annotation, if the cluster has not reported the pod. */
static void add_spec(const struct modhost *h, struct evict_pod *p)
{
	const char *text = h->cache->pod_annotation(h->ctx, p->pod, SPEC);
	rp_cfg root, ctrs = NULL, requests;
	if (!text || annotation_parse(h, SPEC, text, &root) ||
	    annotation_member(h, SPEC, root, "containers", RP_NODE_MAP, &ctrs))
		return;
	for (uint32_t i = 0; ctrs && i < h->config->count(h->ctx, ctrs); i++) {
		if (annotation_member(h, SPEC, h->config->item(h->ctx, ctrs, i), "requests",
				      RP_NODE_MAP, &requests))
			continue;
		for (uint32_t c = 0; c < EVICT_LENT; c++)
			for (uint32_t k = 0; k < RP_NR_AMOUNTS; k++)
				p->request[c][k] +=
					pods_amount(h, requests, evict_lent_names[c][k]);
	}
}

static void pods_describe(const struct modhost *h, const struct rp_pod_info *info,
			  struct evict_pod *p)
{
	const char *opted = h->cache->pod_label(h->ctx, info->pod, OPT_IN);
	bool is_be = koord_is_lent(h, info->pod);
	uint32_t eviction = eviction_of(h, info->pod);
	*p = (struct evict_pod){
		.pod = info->pod,
		.name = info->name,
		.priority = priority_of(h, info, is_be),
		.order = koord_number(h->cache->pod_annotation(h->ctx, info->pod, ORDER), 0),
		.sub_priority =
			koord_number(h->cache->pod_label(h->ctx, info->pod, SUB_PRIORITY), 0),
		.is_be = is_be,
		.opted_in = opted && strcmp(opted, "true") == 0,
		.leaves = (info->flags & RP_POD_STOPPED) || eviction == RP_EVICTION_ASKED ||
			  eviction == RP_EVICTION_GRANTED,
		.features = features_of(h, info->pod)};
	if (eviction == RP_EVICTION_REFUSED || eviction == RP_EVICTION_FAILED)
		p->features = 0; /* evict other pods instead */
	if (!(info->flags & RP_POD_FED))
		add_spec(h, p);
}

/* ---- containers of pods ---------------------------------------------------------------------- */

/* Returns the entry of a pod. Containers are visited by creation, so containers of one pod may be
 * visited apart. */
static struct evict_pod *pod_of(struct survey *s, rp_pod pod)
{
	const struct modhost *h = &s->inst->h;
	struct rp_pod_info info = {.size = sizeof info};
	for (uint32_t i = s->n; i-- > 0;)
		if (s->list[i].pod == pod)
			return &s->list[i];
	if (s->n == s->cap || h->cache->get_pod(h->ctx, pod, &info))
		return NULL;
	pods_describe(h, &info, &s->list[s->n]);
	return &s->list[s->n++];
}

static void look_at(void *arg, rp_ctr ctr)
{
	struct survey *s = arg;
	const struct modhost *h = &s->inst->h;
	struct rp_ctr_info info = {.size = sizeof info};
	struct rp_usage used;
	int64_t request, limit;
	if (h->cache->get_ctr(h->ctx, ctr, &info) || info.state == RP_STATE_CREATING)
		return;
	struct evict_pod *p = pod_of(s, info.pod);
	if (!p)
		return;
	if (koord_usage(h, ctr, &used)) {
		p->used[RP_NR_CPU] += used.cpu == RP_NOT_MEASURED ? 0 : used.cpu;
		p->used[RP_NR_MEMORY] += used.memory == RP_NOT_MEASURED ? 0 : used.memory;
	}
	for (uint32_t c = 0; c < EVICT_LENT; c++)
		for (uint32_t k = 0; k < RP_NR_AMOUNTS; k++)
			if (!h->cache->extended(h->ctx, ctr, evict_lent_names[c][k], &request,
						&limit))
				p->request[c][k] += request;
}

struct evict_pod *evict_survey(const struct rp_instance *inst, uint32_t *ret_n)
{
	const struct modhost *h = &inst->h;
	struct survey s = {.inst = inst};
	s.cap = h->cache->list_pods(h->ctx, NULL, 0);
	s.list = calloc(s.cap + 1u, sizeof *s.list);
	if (s.list && !ctl_each_container(h, look_at, &s)) {
		*ret_n = s.n;
		return s.list;
	}
	free(s.list);
	return NULL;
}
