/* SPDX-License-Identifier: Apache-2.0 */
/* Input of a calculation pass: pods, applications, zones, the Node's amounts, and measured
 * usage. */
#include "core/nri-rpd/pipeline/node/inputs.h"

#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "core/nri-rpd/cache/feed.h"
#include "core/nri-rpd/cache/annotation_rules.h"
#include "core/lib/conf/fragment.h"
#include "core/nri-rpd/noderes/classes.h"
#include "core/nri-rpd/pipeline/internal.h"
#include "core/nri-rpd/pipeline/node/state.h"
#include "core/lib/util/str.h"
#include "core/nri-rpd/pipeline/node/noderes.h"

#define QOS_LABEL "koordinator.sh/qosClass"
#define PRIO_LABEL "koordinator.sh/priority-class"
#define PLACE_ANNOTATION "scheduling.koordinator.sh/resource-status"
#define RESERVATION_ANNOTATION "node.koordinator.sh/reservation"
#define RAW_ANNOTATION "node.koordinator.sh/raw-allocatable" /* allocatable before amplification */

void inputs_fini(struct inputs *in)
{
	free(in->pods);
	free(in->bound);
	free(in->zones);
	free(in->apps);
	free(in->expected);
}

/* Limits amounts to the valid range, since they come from outside of the daemon. */
static void limit_amounts(int64_t of[RP_NR_AMOUNTS])
{
	for (uint32_t k = 0; k < RP_NR_AMOUNTS; k++) {
		if (of[k] > RP_NR_AMOUNT_MAX)
			of[k] = RP_NR_AMOUNT_MAX;
		else if (of[k] < 0 && of[k] != RP_NOT_SET)
			of[k] = 0;
	}
}

/* ---- pods ------------------------------------------------------------------------------------ */

static const char *label_of(const struct pipeline *p, const struct pod *pod, const char *key)
{
	struct site_name name;
	return kvs_get(&pod->labels, site_name(cache_prefixes(p->env.cache), key, &name));
}

static uint32_t qos_of(const struct pipeline *p, const struct pod *pod)
{
	static const uint32_t by_kubernetes[] = {[RP_QOS_GUARANTEED] = RP_KOORD_LSR,
						 [RP_QOS_BURSTABLE] = RP_KOORD_LS,
						 [RP_QOS_BEST_EFFORT] = RP_KOORD_BE};
	const char *label = label_of(p, pod, QOS_LABEL);
	if (label)
		return class_qos(label);
	return pod->qos <= RP_QOS_BEST_EFFORT ? by_kubernetes[pod->qos] : RP_KOORD_NONE;
}

static void add_usage(struct noderes *n, const struct ctr *ctr, uint64_t now, struct rp_nr_pod *pod)
{
	const struct series *s = measure_ctr(&n->measure, ctr->handle);
	int64_t cpu, memory;
	if (!s || !series_average(s, now, window_ms(n), &cpu, &memory)) {
		/* a sum without this container would be less than the pod uses */
		pod->flags &= ~RP_NR_POD_SAMPLED;
		return;
	}
	pod->usage[RP_NR_CPU] += cpu;
	pod->usage[RP_NR_MEMORY] += memory;
}

struct zones {
	struct rp_ids cpus[NR_ZONES_MAX];
};

static void inputs_bind(struct bound *b, uint32_t zone)
{
	if (zone < RP_NODES_MAX)
		b->w[zone / 64] |= UINT64_C(1) << zone % 64;
}

/* Adds the zones of a container's CPUs, if it is pinned. */
static void add_zones(const struct inputs *in, const struct zones *zones, const struct iset *cpus,
		      struct bound *bound)
{
	for (uint32_t z = 0; cpus && z < in->in.n_zones; z++)
		if (rp_ids_overlap(zones->cpus[z], cpus->ids))
			inputs_bind(bound, in->zones[z].id);
}

/* Adds the zones that a scheduler has chosen for an unpinned pod. */
static void read_place(const struct prefixes *names, const struct pod *pod, struct bound *bound)
{
	struct site_name name;
	const char *text = kvs_get(pod_heard(pod), site_name(names, PLACE_ANNOTATION, &name));
	struct fragment *f = NULL;
	rp_cfg root = NULL;
	if (!text || fragment_parse(text, &f, &root, NULL))
		return;
	rp_cfg list = conf_get(root, "numaNodeResources");
	for (uint32_t i = 0; i < conf_count(list); i++) {
		int64_t id = conf_value(conf_get(conf_item(list, i), "node"), RP_T_INT, -1);
		if (id >= 0 && id < RP_NODES_MAX)
			inputs_bind(bound, (uint32_t)id);
	}
	fragment_free(f);
}

static const struct fed_pod *fed_of(const struct pipeline *p, const struct pod *pod)
{
	return feed_find(cache_feed(p->env.cache), pod->uid);
}

/* Fills the entry of a pod. Returns false if no container of the pod is live. */
static bool fill_pod(struct pipeline *p, const struct pod *pod, const struct zones *zones,
		     struct inputs *in, uint64_t now)
{
	struct rp_nr_pod *ret = &in->pods[in->in.n_pods];
	struct bound *places = &in->bound[in->in.n_pods];
	const struct fed_pod *fed = fed_of(p, pod);
	const struct ctr *ctr;
	bool any = false;
	*places = (struct bound){{0}};
	*ret = (struct rp_nr_pod){.size = sizeof *ret,
				  .flags = RP_NR_POD_ACTIVE | RP_NR_POD_SAMPLED,
				  .name = pod->name,
				  .qos = qos_of(p, pod)};
	ret->prio = class_prio_with_default(
		class_prio(label_of(p, pod, PRIO_LABEL), fed ? fed->priority : 0), ret->qos);
	DL_FOREACH2(pod->ctrs, ctr, pod_next)
	{
		if (!ctr_live(ctr->cur.state))
			continue;
		any = true;
		ret->request[RP_NR_CPU] += ctr->cur.needs.cpu_request;
		ret->request[RP_NR_MEMORY] += ctr->cur.needs.mem_request;
		add_zones(in, zones, ctr->cur.cpus, places);
		add_usage(p->node.noderes, ctr, now, ret);
	}
	ret->zones = (struct rp_ids){places->w, RP_NODES_MAX / 64, 0};
	limit_amounts(ret->request);
	limit_amounts(ret->usage);
	if (any && rp_ids_empty(ret->zones))
		read_place(cache_prefixes(p->env.cache), pod, places);
	return any;
}

/* Adds pods that the cluster has assigned to this node and that the runtime has not created yet. */
static void add_pending(struct pipeline *p, struct inputs *ret)
{
	const struct fed_pod *fed;
	unsigned pending = feed_n_pods(cache_feed(p->env.cache));
	for (const struct pod *pod = cache_pods(p->env.cache); pod; pod = pod->hh.next)
		pending -= pending && fed_of(p, pod);
	for (fed = feed_pods(cache_feed(p->env.cache)); fed && pending; fed = fed->hh.next) {
		if (cache_pod_by_uid(p->env.cache, fed->uid))
			continue;
		pending--;
		if (fed->ended)
			continue;
		struct needs needs = fed_needs(fed);
		ret->pods[ret->in.n_pods++] =
			(struct rp_nr_pod){.size = sizeof *ret->pods,
					   .flags = RP_NR_POD_ACTIVE,
					   .name = fed->name,
					   .prio = class_prio(NULL, fed->priority),
					   .request = {needs.cpu_request, needs.mem_request}};
		limit_amounts(ret->pods[ret->in.n_pods - 1].request);
	}
}

static int fill_pods(struct pipeline *p, const struct zones *zones, uint64_t now,
		     struct inputs *ret)
{
	const struct pod *pod;
	size_t most = cache_n_pods(p->env.cache) + feed_n_pods(cache_feed(p->env.cache)) + 1u;
	ret->pods = calloc(most, sizeof *ret->pods);
	ret->bound = calloc(most, sizeof *ret->bound);
	ret->expected = calloc(most, sizeof *ret->expected);
	if (!ret->pods || !ret->bound || !ret->expected)
		return -ENOMEM;
	for (pod = cache_pods(p->env.cache); pod; pod = pod->hh.next) {
		const struct rp_nr_pod *to = &ret->pods[ret->in.n_pods];
		if (!fill_pod(p, pod, zones, ret, now))
			continue;
		ret->expected[ret->in.n_pods++] = (struct forecast_pod){
			pod, to->prio, {to->request[RP_NR_CPU], to->request[RP_NR_MEMORY]}};
		for (uint32_t k = 0; (to->flags & RP_NR_POD_SAMPLED) && k < RP_NR_AMOUNTS; k++)
			ret->used[k] += to->usage[k];
	}
	ret->n_expected = ret->in.n_pods;
	add_pending(p, ret);
	ret->in.pods = ret->pods;
	return 0;
}

/* ---- applications outside of pods ------------------------------------------------------------ */

static int fill_apps(struct noderes *n, uint64_t now, struct inputs *ret)
{
	ret->apps = calloc(n->apps.n + 1u, sizeof *ret->apps);
	if (!ret->apps)
		return -ENOMEM;
	for (uint32_t i = 0; i < n->apps.n; i++) {
		struct rp_nr_app *to = &ret->apps[ret->in.n_apps++];
		*to = (struct rp_nr_app){.size = sizeof *to, .prio = n->apps.list[i].prio};
		if (!series_average(&n->apps.list[i].series, now, window_ms(n),
				    &to->usage[RP_NR_CPU], &to->usage[RP_NR_MEMORY]))
			continue;
		limit_amounts(to->usage);
		for (uint32_t k = 0; k < RP_NR_AMOUNTS; k++)
			ret->used[k] += to->usage[k];
	}
	ret->in.apps = ret->apps;
	return 0;
}

/* ---- topology and Node ----------------------------------------------------------------------- */

static int fill_zones(struct pipeline *p, struct zones *zones, struct inputs *ret)
{
	uint32_t n = topo_n_units(p->env.topo, RP_LEVEL_NODE);
	ret->zones = calloc(n + 1u, sizeof *ret->zones);
	if (!ret->zones)
		return -ENOMEM;
	for (uint32_t i = 0; i < n && ret->in.n_zones < NR_ZONES_MAX; i++) {
		struct rp_unit_info unit = {.size = sizeof unit};
		struct rp_node_info node = {.size = sizeof node};
		if (topo_unit(p->env.topo, RP_LEVEL_NODE, i, &unit) ||
		    topo_node(p->env.topo, unit.id, &node))
			continue;
		zones->cpus[ret->in.n_zones] = unit.cpus;
		p->node.noderes->zone_ids[ret->in.n_zones] = unit.id;
		ret->zones[ret->in.n_zones++] =
			(struct rp_nr_zone){.size = sizeof *ret->zones,
					    .id = unit.id,
					    .allocatable = {1000 * (int64_t)rp_ids_count(unit.cpus),
							    (int64_t)node.memory}};
	}
	ret->in.zones = ret->zones;
	p->node.noderes->n_zones = ret->in.n_zones;
	return 0;
}

/* Computes capacity and allocatable amounts from the topology and rp.conf; used without a Node from
 * the agent. */
static void measure_node(struct pipeline *p)
{
	struct noderes *n = p->node.noderes;
	struct rp_ids online;
	rp_cfg reserved = conf_get(conf_root(p->conf), "nodeResources.node.reserved");
	const int64_t keeps[RP_NR_AMOUNTS] = {
		conf_value(conf_get(reserved, "cpu"), RP_T_CPU, 0),
		conf_value(conf_get(reserved, "memory"), RP_T_BYTES, 0)};
	n->capacity[RP_NR_CPU] = topo_set(p->env.topo, RP_CPUS_ONLINE, &online)
					 ? 0
					 : 1000 * (int64_t)rp_ids_count(online);
	n->capacity[RP_NR_MEMORY] = (int64_t)topo_memory(p->env.topo);
	for (uint32_t k = 0; k < RP_NR_AMOUNTS; k++)
		n->allocatable[k] = n->capacity[k] > keeps[k] ? n->capacity[k] - keeps[k] : 0;
}

static void amounts_in_cluster(const struct node_amount *list, uint32_t n,
			       int64_t of[RP_NR_AMOUNTS])
{
	for (uint32_t i = 0; i < n; i++) {
		if (str_eq(list[i].name, "cpu"))
			of[RP_NR_CPU] = list[i].amount;
		else if (str_eq(list[i].name, "memory"))
			of[RP_NR_MEMORY] = list[i].amount;
	}
}

static const char *node_annotation(const struct texts *of, const char *key)
{
	struct site_name name;
	return kv_text(of->annotations, of->n_annotations, site_name(of->names, key, &name));
}

/* Reads amounts from an annotation of the Node, below `key` of its map (NULL: the map itself).
 * Amounts that are missing, or an invalid annotation, leave *ret unchanged. */
static void read_amounts(const struct texts *of, const char *annotation, const char *key,
			 int64_t ret[RP_NR_AMOUNTS])
{
	struct fragment *f = NULL;
	rp_cfg root = NULL;
	const char *text = node_annotation(of, annotation);
	if (text && fragment_parse(text, &f, &root, NULL) == 0) {
		rp_cfg map = key ? conf_get(root, key) : root;
		ret[RP_NR_CPU] = conf_value(conf_get(map, "cpu"), RP_T_CPU, ret[RP_NR_CPU]);
		ret[RP_NR_MEMORY] =
			conf_value(conf_get(map, "memory"), RP_T_BYTES, ret[RP_NR_MEMORY]);
	}
	fragment_free(f);
}

/* Replaces the reserved amount of CPU by the number of CPUs that the reservation lists. */
static void read_reserved_cpus(const struct texts *of, int64_t reserved[RP_NR_AMOUNTS])
{
	struct fragment *f = NULL;
	rp_cfg root = NULL;
	struct rp_idset listed;
	const char *text = node_annotation(of, RESERVATION_ANNOTATION);
	if (text && fragment_parse(text, &f, &root, NULL) == 0) {
		const char *cpus = conf_text(conf_get(root, "reservedCPUs"), "");
		if (*cpus && rp_idset_parse(&listed, cpus, RP_CPUS_MAX) == 0)
			reserved[RP_NR_CPU] = 1000 * (int64_t)rp_ids_count(rp_ids_of(&listed));
	}
	fragment_free(f);
}

static void fill_cpu(const struct noderes *n, const struct texts *of, struct inputs *ret)
{
	const char *text = node_annotation(of, CPU_FACTS_ANNOTATION);
	ret->cpu = n->cpu;
	if (!ret->cpu.known && text)
		cpu_facts_parse(text, &ret->cpu);
	ret->in.cpu_known = ret->cpu.known;
	ret->in.cpu = (struct rp_nr_cpu){.size = sizeof ret->in.cpu,
					 .hyper_threads = ret->cpu.hyper_threads,
					 .turbo = ret->cpu.turbo,
					 .model = ret->cpu.model};
}

static void fill_node(struct pipeline *p, struct nr_input *in)
{
	struct noderes *n = p->node.noderes;
	const struct node_object *node = p->env.node;
	struct texts of = node_texts(p);
	measure_node(p);
	if (node) {
		amounts_in_cluster(node->capacity, node->n_capacity, n->capacity);
		amounts_in_cluster(node->allocatable, node->n_allocatable, n->allocatable);
	}
	limit_amounts(n->capacity);
	limit_amounts(n->allocatable);
	in->node = (struct rp_nr_node){.size = sizeof in->node, .n_zones = in->n_zones};
	memcpy(in->node.capacity, n->capacity, sizeof in->node.capacity);
	memcpy(in->node.allocatable, n->allocatable, sizeof in->node.allocatable);
	read_amounts(&of, RESERVATION_ANNOTATION, "resources", in->node.reserved);
	read_reserved_cpus(&of, in->node.reserved);
	limit_amounts(in->node.reserved);
}

static int fill_reclaimable(struct pipeline *p, uint64_t now, const struct inputs *of,
			    struct rp_nr_measured *m)
{
	const struct noderes *n = p->node.noderes;
	struct texts texts = node_texts(p);
	int64_t allocatable[RP_NR_AMOUNTS];
	memcpy(allocatable, n->allocatable, sizeof allocatable);
	read_amounts(&texts, RAW_ANNOTATION, NULL, allocatable);
	return forecast_reclaimable(&n->forecast, &n->limits, of->expected, of->n_expected,
				    allocatable, now, m);
}

static void fill_measured(struct noderes *n, uint64_t now, const struct inputs *of,
			  struct rp_nr_measured *m)
{
	*m = (struct rp_nr_measured){.size = sizeof *m,
				     .age_ms = n->read.at_ms ? (int64_t)(now - n->read.at_ms)
							     : RP_NOT_SET};
	int64_t limit = n->strategy.values[RP_NR_DEGRADE_MINUTES] * 60 * 1000;
	/* average up to the last reading, which may be older than the window */
	m->degraded = !series_average(&n->measure.node, n->read.at_ms, window_ms(n),
				      &m->node[RP_NR_CPU], &m->node[RP_NR_MEMORY]) ||
		      m->age_ms > limit;
	limit_amounts(m->node);
	for (uint32_t k = 0; k < RP_NR_AMOUNTS; k++)
		m->system[k] = m->node[k] > of->used[k] ? m->node[k] - of->used[k] : 0;
}

static void fill_aggregated(struct noderes *n, uint64_t now, struct nr_input *in)
{
	n->n_aggregated = 0;
	for (uint32_t i = 0; i < n->strategy.n_durations; i++)
		n->n_aggregated +=
			aggregate_over(&n->measure.aggregates, now, n->strategy.durations_ms[i],
				       &n->aggregated[n->n_aggregated]);
	in->aggregated = n->aggregated;
	in->n_aggregated = n->n_aggregated;
}

int inputs_fill(struct pipeline *p, uint64_t now, struct inputs *ret)
{
	struct noderes *n = p->node.noderes;
	struct texts of = node_texts(p);
	struct zones zones;
	*ret = (struct inputs){0};
	memcpy(ret->in.strategy, n->strategy.values, sizeof ret->in.strategy);
	ret->in.labels = of.labels;
	ret->in.n_labels = of.n_labels;
	ret->in.annotations = of.annotations;
	ret->in.n_annotations = of.n_annotations;
	int r = fill_zones(p, &zones, ret);
	if (!r)
		r = fill_pods(p, &zones, now, ret);
	if (!r)
		r = fill_apps(n, now, ret);
	if (r)
		return r;
	fill_node(p, &ret->in);
	fill_cpu(n, &of, ret);
	ret->in.devices = n->devices.list;
	ret->in.n_devices = n->devices.n;
	fill_measured(n, now, ret, &n->measured);
	r = fill_reclaimable(p, now, ret, &n->measured);
	ret->in.measured = n->measured;
	fill_aggregated(n, now, &ret->in);
	return r;
}
