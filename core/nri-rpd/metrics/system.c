/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of CPUs and memory nodes, and of their allocation to containers. */
#include <stdio.h>
#include <stdlib.h>

#include "core/nri-rpd/pipeline/pipeline.h"
#include "core/nri-rpd/metrics/system.h"

/* Amount of one container on a set. Containers with equal sets are counted together, so that a
 * scrape costs sets times members, not containers times members. */
struct share {
	const struct iset *set;
	double amount; /* per container: milli-CPU, bytes */
};

struct load {
	double *amount; /* by id */
	unsigned *n;
	uint32_t n_ids;
};

static int compare_shares(const void *x, const void *y)
{
	const struct share *a = x, *b = y;
	return a->set < b->set ? -1 : a->set > b->set;
}

/* Distributes the requests of a set's containers evenly over the members of the set. */
static void system_spread(struct load *load, const struct share *shares, size_t n)
{
	for (size_t i = 0; i < n;) {
		const struct iset *set = shares[i].set;
		double total = 0;
		unsigned n_same = 0;
		for (; i < n && shares[i].set == set; i++, n_same++)
			total += shares[i].amount;
		RP_IDS_EACH (id, set->ids) {
			if (id >= load->n_ids)
				break;
			load->amount[id] += total / set->count;
			load->n[id] += n_same;
		}
	}
}

static const struct iset *cpus_of(const struct ctr *ctr)
{
	return ctr->cur.cpus ? ctr->cur.cpus : ctr->acked.cpus;
}

static const struct iset *mems_of(const struct ctr *ctr)
{
	return ctr->cur.mems ? ctr->cur.mems : ctr->acked.mems;
}

static int load_init(struct load *load, uint32_t n_ids)
{
	load->n_ids = n_ids;
	load->amount = calloc(n_ids + 1, sizeof *load->amount);
	load->n = calloc(n_ids + 1, sizeof *load->n);
	return load->amount && load->n ? 0 : -ENOMEM;
}

static void load_fini(struct load *load)
{
	free(load->amount);
	free(load->n);
}

static int system_measure(struct pipeline *p, struct load *load, bool memory)
{
	struct cache *cache = pipeline_cache(p);
	struct share *shares = calloc(cache_n_ctrs(cache) + 1, sizeof *shares);
	size_t n = 0;
	if (!shares)
		return -ENOMEM;
	for (const struct ctr *ctr = cache_ctrs(cache); ctr; ctr = ctr->next) {
		const struct needs *w = &ctr->wanted;
		const struct iset *set = memory ? mems_of(ctr) : cpus_of(ctr);
		if (!ctr_live(ctr->cur.state) || !set || !set->count)
			continue;
		shares[n].set = set;
		shares[n++].amount = memory ? (double)(w->mem_limit ? w->mem_limit : w->mem_request)
					    : (double)w->cpu_request;
	}
	qsort(shares, n, sizeof *shares, compare_shares);
	system_spread(load, shares, n);
	free(shares);
	return 0;
}

static void add_by_id(struct expo *e, struct family *f, const char *label, uint32_t id, double v)
{
	char labels[48];
	(void)snprintf(labels, sizeof labels, "%s=\"%u\"", label, id);
	expo_add(e, f, "", labels, v);
}

static void collect_cpus(struct expo *e, struct pipeline *p)
{
	const struct rp_ids online = topo_ids(pipeline_topo(p), RP_CPUS_ONLINE);
	struct load load = {0};
	if (load_init(&load, rp_ids_last(online) + 1) || system_measure(p, &load, false))
		e->failed = -ENOMEM;
	struct family *amount =
		expo_family(e, "nri_policy_cpu_allocation_cores", EXPO_GAUGE,
			    "CPU requests of the containers that may run on the CPU, each "
			    "spread evenly over its CPUs.");
	struct family *n = expo_family(e, "nri_policy_cpu_containers", EXPO_GAUGE,
				       "Containers that may run on the CPU.");
	RP_IDS_EACH (cpu, online) {
		if (e->failed)
			break;
		add_by_id(e, amount, "cpu_id", cpu, load.amount[cpu] / 1000);
		add_by_id(e, n, "cpu_id", cpu, load.n[cpu]);
	}
	load_fini(&load);
}

static void collect_nodes(struct expo *e, struct pipeline *p)
{
	struct topo *topo = pipeline_topo(p);
	const struct rp_ids online = topo_ids(topo, RP_NODES_ONLINE);
	struct load load = {0};
	if (load_init(&load, rp_ids_last(online) + 1) || system_measure(p, &load, true))
		e->failed = -ENOMEM;
	struct family *capacity = expo_family(e, "nri_policy_mem_node_capacity_bytes", EXPO_GAUGE,
					      "Memory of the node.");
	struct family *usage =
		expo_family(e, "nri_policy_mem_node_usage_bytes", EXPO_GAUGE,
			    "Memory limits (without one: requests) of the containers "
			    "on the node, each spread evenly over its nodes.");
	struct family *n = expo_family(e, "nri_policy_mem_node_containers", EXPO_GAUGE,
				       "Containers that may use the node's memory.");
	RP_IDS_EACH (id, online) {
		struct rp_node_info info = {.size = sizeof info};
		char labels[64];
		if (e->failed || topo_node(topo, id, &info))
			break;
		(void)snprintf(labels, sizeof labels, "node_id=\"%u\",node_type=\"%s\"", id,
			       topo_memory_type_name(info.type));
		expo_add(e, capacity, "", labels, (double)info.memory);
		add_by_id(e, usage, "node_id", id, load.amount[id]);
		add_by_id(e, n, "node_id", id, load.n[id]);
	}
	load_fini(&load);
}

void collect_system(struct expo *e, struct pipeline *p)
{
	collect_nodes(e, p);
	collect_cpus(e, p);
}
