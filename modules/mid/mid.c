/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mid.so: mid resources, which are resources that prod pods are predicted not to need, and a part
 * of the resources that no pod requests.
 *
 *	unused      = capacity - usage of the node
 *	unallocated = capacity - max(reserved, system) - requests of prod pods
 *	value       = min(reclaimable, unused) + unallocated × midUnallocatedPercent
 *
 * The value is at least 0 and at most midCPU/MemoryThresholdPercent of capacity. With
 * midReclaimMode static it is a percentage of capacity, independent of measurements.
 */
#include <stdio.h>

#include <nri-rp/lib/calc.h>

#define MESSAGE_MAX 256u

static const char *const names[] = {"kubernetes.io/mid-cpu", "kubernetes.io/mid-memory", NULL};
static const char *const no_names[] = {NULL};

static int64_t mid_field(const struct modhost *h, uint32_t k, uint32_t of_cpu, uint32_t of_memory)
{
	return h->noderes->strategy(h->ctx, k == RP_NR_CPU ? of_cpu : of_memory);
}

static bool is_prod(const struct rp_nr_pod *pod)
{
	return pod->prio == RP_PRIO_PROD || pod->prio == RP_PRIO_NONE;
}

static struct calc_amounts prod_requests(const struct modhost *h)
{
	struct calc_amounts sum = {{0}};
	struct rp_nr_pod pod = {.size = sizeof pod};
	for (uint32_t i = 0; !h->noderes->pod(h->ctx, i, &pod); i++) {
		bool counts = (pod.flags & RP_NR_POD_ACTIVE) && is_prod(&pod);
		for (uint32_t k = 0; counts && k < RP_NR_AMOUNTS; k++)
			sum.of[k] += calc_known(pod.request[k]);
		pod.size = sizeof pod;
	}
	return sum;
}

static int64_t mid_ceiling(const struct modhost *h, int64_t capacity, uint32_t k)
{
	return calc_percent(capacity,
			    mid_field(h, k, RP_NR_MID_CPU_PERCENT, RP_NR_MID_MEMORY_PERCENT));
}

static void give_static(const struct modhost *h, const struct rp_nr_node *node,
			const struct rp_nr_sink *out)
{
	char text[MESSAGE_MAX];
	for (uint32_t k = 0; k < RP_NR_AMOUNTS; k++) {
		int64_t cap = calc_known(node->capacity[k]);
		int64_t percent = mid_field(h, k, RP_NR_MID_STATIC_CPU_PERCENT,
					    RP_NR_MID_STATIC_MEMORY_PERCENT);
		int64_t value = calc_min(calc_percent(cap, percent), mid_ceiling(h, cap, k));
		(void)snprintf(text, sizeof text, "%lld = %lld%% of capacity %lld, at most %lld",
			       (long long)value, (long long)percent, (long long)cap,
			       (long long)mid_ceiling(h, cap, k));
		calc_give(out, names[k], value, NULL, 0, text);
	}
}

static void give_measured(const struct modhost *h, const struct rp_nr_node *node,
			  const struct rp_nr_measured *m, const struct rp_nr_sink *out)
{
	struct calc_amounts reserved = calc_node_reserved(node), apps = calc_apps(h, false);
	struct calc_amounts requests = prod_requests(h);
	int64_t percent = h->noderes->strategy(h->ctx, RP_NR_MID_UNALLOCATED_PERCENT);
	char text[MESSAGE_MAX];
	for (uint32_t k = 0; k < RP_NR_AMOUNTS; k++) {
		int64_t cap = calc_known(node->capacity[k]);
		int64_t unused = m->node[k] == RP_NOT_SET ? 0 : cap - m->node[k];
		int64_t system = calc_max(reserved.of[k], calc_known(m->system[k]) + apps.of[k]);
		int64_t unallocated = calc_max(0, cap - system - requests.of[k]);
		int64_t reclaimable =
			calc_max(0, calc_min(calc_known(m->prod_reclaimable[k]), unused));
		int64_t value = calc_min(reclaimable + calc_percent(unallocated, percent),
					 mid_ceiling(h, cap, k));
		(void)snprintf(text, sizeof text,
			       "%lld = reclaimable and unused %lld + %lld%% of unallocated %lld, "
			       "at most %lld",
			       (long long)value, (long long)reclaimable, (long long)percent,
			       (long long)unallocated, (long long)mid_ceiling(h, cap, k));
		calc_give(out, names[k], value, NULL, 0, text);
	}
}

static int32_t mid_calculate(struct rp_instance *inst, const struct rp_nr_sink *out)
{
	const struct modhost *h = &inst->h;
	struct rp_nr_node node;
	struct rp_nr_measured m;
	char text[CALC_WHY_MAX];
	int32_t r = calc_node(h, &node, &m);
	if (r)
		return r;
	if (h->noderes->strategy(h->ctx, RP_NR_MID_MODE) == 1)
		give_static(h, &node, out);
	else if (m.degraded)
		calc_reset(out, names, calc_why_degraded(&m, text, sizeof text));
	else
		give_measured(h, &node, &m, out);
	return 0;
}

static const struct rp_calculator calculator = {
	CALC_LIFE,
	.flags = RP_CALCULATOR_FORECAST,
	.resources = names,
	.annotations = no_names,
	.calculate = mid_calculate,
};

static const struct calc_ops ops = {.plan = NULL};

CALC_MODULE("mid", "1.0", ops, calculator,
	    .summary = "CPU and memory that prod pods are predicted not to need, overcommitted to "
		       "mid pods",
	    .licence = "Apache-2.0");
