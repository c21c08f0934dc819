/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs of calculators, as a vector describes them. */
#include "core/nri-rp-modcheck/vectors_input.h"

#include <stdlib.h>

#include "core/nri-rp-modcheck/vectors.h"
#include "core/nri-rpd/noderes/classes.h"
#include "core/nri-rpd/noderes/strategy.h"
#include "core/lib/util/str.h"

static void amounts_of(rp_cfg map, const char *memory_key, int64_t ret[RP_NR_AMOUNTS])
{
	ret[RP_NR_CPU] = vector_cpu(conf_get(map, "cpu"), RP_NOT_SET);
	ret[RP_NR_MEMORY] = vector_bytes(conf_get(map, memory_key), RP_NOT_SET);
}

static int fill_strategy(const struct vector *v, struct nr_input *in, struct err *err)
{
	struct strategy s;
	strategy_defaults(&s);
	rp_cfg own = conf_get(v->in, "strategy");
	bool none = own && conf_kind(own) == RP_NODE_NULL;
	int r = none ? 0
		     : strategy_merge(&s, conf_get(v->defaults, "strategy"), STRATEGY_CONFIG, err);
	for (uint32_t i = 0; i < RP_NR_FIELDS; i++) {
		rp_cfg field = conf_get(own, strategy_field_name(i));
		if (field && conf_kind(field) == RP_NODE_NULL)
			strategy_default(&s, i);
	}
	if (!r)
		r = strategy_merge(&s, own, STRATEGY_CONFIG, err);
	memcpy(in->strategy, s.values, sizeof in->strategy);
	return r;
}

static void fill_node(const struct vector *v, struct nr_input *in)
{
	struct rp_nr_node *n = &in->node;
	rp_cfg reservation = vector_sub(v, "node", "reservation");
	struct rp_idset listed;
	n->size = sizeof *n;
	amounts_of(vector_sub(v, "node", "capacity"), "memory", n->capacity);
	amounts_of(vector_sub(v, "node", "allocatable"), "memory", n->allocatable);
	amounts_of(conf_get(reservation, "resources"), "memory", n->reserved);
	const char *cpus = conf_text(conf_get(reservation, "reservedCPUs"), "");
	if (*cpus && !rp_idset_parse(&listed, cpus, RP_CPUS_MAX))
		n->reserved[RP_NR_CPU] = 1000 * (int64_t)rp_ids_count(rp_ids_of(&listed));
}

static int fill_zones(const struct vector *v, struct vector_input *ret)
{
	rp_cfg list = vector_sub(v, "node", "zones");
	uint32_t n = conf_count(list);
	ret->zones = calloc(n + 1u, sizeof *ret->zones);
	if (!ret->zones)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		ret->zones[i] = (struct rp_nr_zone){.size = sizeof *ret->zones, .id = i};
		amounts_of(conf_item(list, i), "memory", ret->zones[i].allocatable);
	}
	ret->in.zones = ret->zones;
	ret->in.n_zones = ret->in.node.n_zones = n;
	return 0;
}

static rp_cfg find_named(rp_cfg list, const char *name)
{
	for (uint32_t i = 0; i < conf_count(list); i++)
		if (str_eq(conf_text(conf_get(conf_item(list, i), "name"), ""), name))
			return conf_item(list, i);
	return NULL;
}

static const char *text_or_null(rp_cfg map, const char *key)
{
	rp_cfg node = conf_get(map, key);
	return node ? conf_text(node, NULL) : NULL;
}

uint32_t vector_class(rp_cfg pod)
{
	return class_prio_with_default(class_prio(text_or_null(pod, "priorityClass"),
						  vector_int(conf_get(pod, "priority"), 0)),
				       class_qos(text_or_null(pod, "qos")));
}

static void fill_pod(struct rp_nr_pod *p, rp_cfg pod, rp_cfg sample, struct rp_idset *bound)
{
	rp_cfg nodes = conf_get(pod, "numaNodes");
	*p = (struct rp_nr_pod){.size = sizeof *p,
				.flags = RP_NR_POD_ACTIVE | (sample ? RP_NR_POD_SAMPLED : 0),
				.name = conf_text(conf_get(pod, "name"), ""),
				.qos = class_qos(text_or_null(pod, "qos")),
				.prio = vector_class(pod)};
	amounts_of(pod, "mem", p->request);
	amounts_of(sample, "mem", p->usage);
	rp_idset_clear(bound);
	for (uint32_t i = 0; i < conf_count(nodes); i++)
		rp_idset_add(bound, (uint32_t)vector_int(conf_item(nodes, i), 0));
	p->zones = rp_ids_of(bound);
}

static void fill_dangling(struct rp_nr_pod *p, rp_cfg sample)
{
	*p = (struct rp_nr_pod){.size = sizeof *p,
				.flags = RP_NR_POD_SAMPLED,
				.name = conf_text(conf_get(sample, "name"), ""),
				.reported = class_prio(text_or_null(sample, "priorityClass"), 0)};
	amounts_of(NULL, "mem", p->request);
	amounts_of(sample, "mem", p->usage);
}

static bool is_active(rp_cfg pod)
{
	const char *phase = conf_text(conf_get(pod, "phase"), "");
	return str_eq(phase, "Running") || str_eq(phase, "Pending");
}

static int fill_pods(const struct vector *v, struct vector_input *ret)
{
	rp_cfg pods = vector_in(v, "pods"), samples = vector_sub(v, "metrics", "pods");
	uint32_t n_pods = conf_count(pods), n_samples = conf_count(samples), n = 0;
	ret->pods = calloc(n_pods + n_samples + 1u, sizeof *ret->pods);
	ret->bound = calloc(n_pods + 1u, sizeof *ret->bound);
	if (!ret->pods || !ret->bound)
		return -ENOMEM;
	for (uint32_t i = 0; i < n_pods; i++) {
		rp_cfg pod = conf_item(pods, i);
		const char *name = conf_text(conf_get(pod, "name"), "");
		if (is_active(pod))
			fill_pod(&ret->pods[n++], pod, find_named(samples, name), &ret->bound[i]);
	}
	for (uint32_t i = 0; i < n_samples; i++) {
		rp_cfg sample = conf_item(samples, i);
		rp_cfg pod = find_named(pods, conf_text(conf_get(sample, "name"), ""));
		if (!pod || !is_active(pod))
			fill_dangling(&ret->pods[n++], sample);
	}
	ret->in.pods = ret->pods;
	ret->in.n_pods = n;
	return 0;
}

static int fill_apps(const struct vector *v, struct vector_input *ret)
{
	rp_cfg list = vector_sub(v, "metrics", "hostApps");
	uint32_t n = conf_count(list);
	ret->apps = calloc(n + 1u, sizeof *ret->apps);
	if (!ret->apps)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		rp_cfg app = conf_item(list, i);
		ret->apps[i] =
			(struct rp_nr_app){.size = sizeof *ret->apps, .prio = vector_class(app)};
		amounts_of(app, "mem", ret->apps[i].usage);
	}
	ret->in.apps = ret->apps;
	ret->in.n_apps = n;
	return 0;
}

static void fill_measured(const struct vector *v, struct nr_input *in)
{
	struct rp_nr_measured *m = &in->measured;
	int64_t age = vector_int(vector_sub(v, "metrics", "ageSeconds"), RP_NOT_SET);
	int64_t limit = in->strategy[RP_NR_DEGRADE_MINUTES] * 60;
	m->size = sizeof *m;
	m->age_ms = age == RP_NOT_SET ? RP_NOT_SET : age * 1000;
	m->degraded = age == RP_NOT_SET || age > limit;
	amounts_of(vector_sub(v, "metrics", "nodeUsage"), "mem", m->node);
	amounts_of(vector_sub(v, "metrics", "systemUsage"), "mem", m->system);
	amounts_of(vector_sub(v, "metrics", "prodReclaimable"), "mem", m->prod_reclaimable);
}

static void fill_cpu(const struct vector *v, struct nr_input *in)
{
	rp_cfg cpu = vector_in(v, "cpu");
	in->cpu_known = cpu && conf_kind(cpu) == RP_NODE_MAP;
	in->cpu = (struct rp_nr_cpu){.size = sizeof in->cpu,
				     .hyper_threads =
					     conf_value(conf_get(cpu, "ht"), RP_T_BOOL, 0) != 0,
				     .turbo = conf_value(conf_get(cpu, "turbo"), RP_T_BOOL, 0) != 0,
				     .model = conf_text(conf_get(cpu, "model"), "")};
}

static unsigned fill_pair(rp_cfg node, const char *key, struct kv *ret)
{
	*ret = (struct kv){key, conf_text(node, "")};
	return node != NULL;
}

int vector_input_fill(const struct vector *v, struct vector_input *ret, struct err *err)
{
	*ret = (struct vector_input){0};
	int r = fill_strategy(v, &ret->in, err);
	if (r)
		return r;
	fill_node(v, &ret->in);
	fill_measured(v, &ret->in);
	fill_cpu(v, &ret->in);
	ret->in.labels = ret->labels;
	ret->in.annotations = ret->annotations;
	ret->in.n_labels =
		fill_pair(vector_in(v, "enabledLabel"),
			  "node.koordinator.sh/cpu-normalization-enabled", &ret->labels[0]);
	ret->in.n_annotations =
		fill_pair(vector_in(v, "normalization"),
			  "node.koordinator.sh/cpu-normalization-ratio", &ret->annotations[0]);
	r = fill_zones(v, ret);
	if (!r)
		r = fill_pods(v, ret);
	if (!r)
		r = fill_apps(v, ret);
	return r ? err_errno(err, r, "input") : 0;
}

void vector_input_fini(struct vector_input *in)
{
	free(in->pods);
	free(in->apps);
	free(in->zones);
	free(in->bound);
}
