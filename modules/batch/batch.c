/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch.so: batch resources, which are resources that high-priority pods do not use, overcommitted
 * to pods that can be stopped at any time.
 *
 *	value = capacity - margin - system - high-priority usage            by usage
 *	      = capacity - margin - reserved - high-priority requests       by request (memory only)
 *	      = capacity - margin - system - max of usage and request       by the larger of both
 *
 * The value is at least 0 and at most the strategy's percentage of capacity. Zones have the same
 * formula with their shares of the amounts, rounded up to a milli-CPU and to a thousandth of a
 * byte.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nri-rp/lib/calc.h>
#include <nri-rp/lib/section.h>

#define CPU_NAME "kubernetes.io/batch-cpu"
#define MEMORY_NAME "kubernetes.io/batch-memory"
#define NORMALIZATION_KEY "node.koordinator.sh/cpu-normalization-ratio"
#define THIRD_PARTY_KEY "node.koordinator.sh/thirdPartyAllocations"
#define ORIGIN_KEY "node.koordinator.sh/originExtendedAllocatable"
#define ZONES_MAX 64u
#define MESSAGE_MAX 256u
#define ORIGIN_MAX 256u
#define THOUSANDTHS 1000

static const char *const names[] = {CPU_NAME, MEMORY_NAME, NULL};
static const char *const no_names[] = {NULL};

/* Units of amounts in zones: milli-CPU, and thousandths of a byte. */
static const int64_t fineness[RP_NR_AMOUNTS] = {1, THOUSANDTHS};

/* Amounts of the node or of a zone, for CPU or memory. */
struct sums {
	int64_t capacity, reserved, system;
	int64_t request, used, max; /* sums over the pods of high priority */
};

struct calculation {
	const struct modhost *h;
	struct rp_nr_node node;
	struct rp_nr_measured measured;
	struct sums whole[RP_NR_AMOUNTS];
	struct sums zone[ZONES_MAX][RP_NR_AMOUNTS];
	uint32_t ids[ZONES_MAX], n_zones;
};

/* ---- sums ------------------------------------------------------------------------------------ */

static int64_t batch_share(int64_t value, uint32_t n)
{
	return value / n + (value % n > 0);
}

static bool is_lent(uint32_t prio)
{
	return prio == RP_PRIO_BATCH || prio == RP_PRIO_FREE;
}

static void batch_add(struct sums *s, int64_t request, int64_t used)
{
	s->request += request;
	s->used += used;
	s->max += calc_max(request, used);
}

/* Adds the request and usage of a pod for one amount. A sample without a listed pod has no
 * request. */
static void add_pod_amount(struct calculation *c, const struct rp_nr_pod *pod, uint32_t k)
{
	bool active = pod->flags & RP_NR_POD_ACTIVE, sampled = pod->flags & RP_NR_POD_SAMPLED;
	int64_t request = active ? calc_known(pod->request[k]) : 0;
	int64_t usage = sampled ? calc_known(pod->usage[k]) : request;
	bool by_request = pod->qos == RP_KOORD_LSE && k == RP_NR_CPU && active;
	uint32_t bound = 0;
	batch_add(&c->whole[k], request, usage);
	if (by_request)
		c->whole[k].used += request - usage;
	for (uint32_t z = 0; active && z < c->n_zones; z++)
		bound += rp_ids_has(pod->zones, c->ids[z]) != 0;
	for (uint32_t z = 0; z < c->n_zones; z++) {
		if (bound && !rp_ids_has(pod->zones, c->ids[z]))
			continue;
		uint32_t n = bound ? bound : c->n_zones;
		int64_t r = batch_share(request * fineness[k], n),
			u = batch_share(usage * fineness[k], n);
		batch_add(&c->zone[z][k], r, u);
		if (by_request)
			c->zone[z][k].used += r - u;
	}
}

static void add_pods(struct calculation *c)
{
	struct rp_nr_pod pod = {.size = sizeof pod};
	for (uint32_t i = 0; !c->h->noderes->pod(c->h->ctx, i, &pod); i++) {
		bool active = pod.flags & RP_NR_POD_ACTIVE;
		bool counts = active || (pod.flags & RP_NR_POD_SAMPLED);
		if (counts && !is_lent(active ? pod.prio : pod.reported))
			for (uint32_t k = 0; k < RP_NR_AMOUNTS; k++)
				add_pod_amount(c, &pod, k);
		pod.size = sizeof pod;
	}
}

static void add_node(struct calculation *c)
{
	struct calc_amounts reserved = calc_node_reserved(&c->node);
	struct calc_amounts apps = calc_apps(c->h, true);
	for (uint32_t k = 0; k < RP_NR_AMOUNTS; k++) {
		struct sums *s = &c->whole[k];
		s->capacity = calc_known(c->node.capacity[k]);
		s->reserved = reserved.of[k];
		s->system = calc_max(calc_known(c->measured.system[k]) + apps.of[k], s->reserved);
	}
	struct rp_nr_zone zone = {.size = sizeof zone};
	while (c->n_zones < ZONES_MAX && !c->h->noderes->zone(c->h->ctx, c->n_zones, &zone)) {
		for (uint32_t k = 0; k < RP_NR_AMOUNTS; k++)
			c->zone[c->n_zones][k].capacity =
				calc_known(zone.allocatable[k]) * fineness[k];
		c->ids[c->n_zones++] = zone.id;
		zone.size = sizeof zone;
	}
	for (uint32_t z = 0; z < c->n_zones; z++)
		for (uint32_t k = 0; k < RP_NR_AMOUNTS; k++) {
			struct sums *s = &c->zone[z][k];
			s->reserved = batch_share(c->whole[k].reserved * fineness[k], c->n_zones);
			s->system = batch_share(c->whole[k].system * fineness[k], c->n_zones);
		}
}

/* ---- values ---------------------------------------------------------------------------------- */

static int64_t batch_field(const struct calculation *c, uint32_t k, uint32_t of_cpu,
			   uint32_t of_memory)
{
	return c->h->noderes->strategy(c->h->ctx, k == RP_NR_CPU ? of_cpu : of_memory);
}

static int64_t policy_of(const struct calculation *c, uint32_t k)
{
	int64_t policy = batch_field(c, k, RP_NR_CPU_POLICY, RP_NR_MEMORY_POLICY);
	return k == RP_NR_CPU && policy == RP_NR_BY_REQUEST ? RP_NR_BY_USAGE : policy;
}

/* Returns the value of the node or a zone. message: a buffer of MESSAGE_MAX bytes, or NULL. */
static int64_t value_of(const struct calculation *c, const struct sums *s, uint32_t k,
			char *message)
{
	int64_t percent =
		batch_field(c, k, RP_NR_CPU_RECLAIM_PERCENT, RP_NR_MEMORY_RECLAIM_PERCENT);
	int64_t cap_percent =
		batch_field(c, k, RP_NR_BATCH_CPU_PERCENT, RP_NR_BATCH_MEMORY_PERCENT);
	int64_t policy = policy_of(c, k), margin = calc_percent(s->capacity, 100 - percent);
	int64_t base = policy == RP_NR_BY_REQUEST ? s->reserved : s->system;
	int64_t pods = policy == RP_NR_BY_REQUEST ? s->request
		       : policy == RP_NR_BY_MAX	  ? s->max
						  : s->used;
	int64_t value = calc_max(0, s->capacity - margin - base - pods);
	bool capped = cap_percent != RP_NOT_SET && value > calc_percent(s->capacity, cap_percent);
	if (capped)
		value = calc_percent(s->capacity, cap_percent);
	static const char *const by[] = {"usage", "requests", "usage or requests"};
	if (message)
		(void)snprintf(
			message, MESSAGE_MAX,
			"%lld = capacity %lld - margin %lld - %s %lld - high-priority %s "
			"%lld%s",
			(long long)value, (long long)s->capacity, (long long)margin,
			policy == RP_NR_BY_REQUEST ? "reserved" : "system", (long long)base,
			by[policy], (long long)pods,
			capped	? ", at most the percentage of capacity that may be overcommitted"
			: value ? ""
				: ", at least 0");
	return value;
}

static int32_t batch_calculate(struct rp_instance *inst, const struct rp_nr_sink *out)
{
	const struct modhost *h = &inst->h;
	struct calculation *c = calloc(1, sizeof *c);
	char text[MESSAGE_MAX];
	if (!c)
		return modhost_no_memory(h);
	c->h = h;
	int32_t r = calc_node(h, &c->node, &c->measured);
	if (r) {
		free(c);
		return r;
	}
	if (c->measured.degraded) {
		calc_reset(out, names, calc_why_degraded(&c->measured, text, sizeof text));
		free(c);
		return 0;
	}
	add_node(c);
	add_pods(c);
	for (uint32_t k = 0; k < RP_NR_AMOUNTS; k++) {
		int64_t zones[ZONES_MAX], value = value_of(c, &c->whole[k], k, text);
		for (uint32_t z = 0; z < c->n_zones; z++)
			zones[z] =
				value_of(c, &c->zone[z][k], k, NULL) * (THOUSANDTHS / fineness[k]);
		calc_give(out, names[k], value, zones, c->n_zones, text);
	}
	free(c);
	return 0;
}

/* ---- changes of the Node --------------------------------------------------------------------- */

/* Multiplies by the ratio of this pass, if it is valid: a CPU of a fast model is counted as more
 * than one. */
static int64_t batch_normalized(const struct rp_nr_edit *node, int64_t quantity)
{
	const char *text = node->result_annotation(node->ctx, NORMALIZATION_KEY);
	int64_t ratio = text ? calc_millionths(text) : 0;
	return ratio > CALC_MILLION ? (int64_t)((__int128)quantity * ratio / CALC_MILLION)
				    : quantity;
}

/* Returns the amount of a resource that other components have allocated, in thousandths. */
static int64_t lent_by_others(const struct modhost *h, rp_cfg root, const char *name)
{
	rp_cfg list = section_get(h, root, "allocations");
	int64_t sum = 0;
	for (uint32_t i = 0; i < h->config->count(h->ctx, list); i++) {
		rp_cfg one = h->config->item(h->ctx, list, i);
		rp_cfg prio = section_get(h, one, "priority");
		rp_cfg resources = section_get(h, one, "resources");
		if (strcmp(h->config->text(h->ctx, prio, ""), "koord-batch") == 0)
			sum += h->config->value(h->ctx, section_get(h, resources, name), RP_T_CPU,
						0);
	}
	return sum;
}

/* Records the original amounts in an annotation and subtracts the allocations of other
 * components. */
static void subtract_others(struct rp_instance *inst, const struct rp_nr_edit *node)
{
	const struct modhost *h = &inst->h;
	const char *text = node->annotation(node->ctx, THIRD_PARTY_KEY);
	char origin[ORIGIN_MAX];
	int64_t has[RP_NR_AMOUNTS] = {0, 0};
	int32_t bad;
	if (!text || !RP_HAS(h->config, parse))
		return;
	rp_cfg root = h->config->parse(h->ctx, "annotation " THIRD_PARTY_KEY, text, &bad);
	if (bad)
		return;
	for (uint32_t k = 0; k < RP_NR_AMOUNTS; k++) {
		if (node->get(node->ctx, names[k], &has[k]))
			continue;
		int64_t left = has[k] - lent_by_others(h, root, names[k]);
		node->set(node->ctx, names[k], calc_max(0, left));
	}
	(void)snprintf(origin, sizeof origin,
		       "{\"resources\":{\"" CPU_NAME "\":\"%lld\",\"" MEMORY_NAME "\":\"%lld\"}}",
		       (long long)(has[RP_NR_CPU] / THOUSANDTHS),
		       (long long)(has[RP_NR_MEMORY] / THOUSANDTHS));
	node->set_annotation(node->ctx, ORIGIN_KEY, origin);
}

static int32_t batch_apply(struct rp_instance *inst, const struct rp_nr_edit *node)
{
	int64_t quantity;
	if (!node->result(node->ctx, CPU_NAME, &quantity))
		node->set(node->ctx, CPU_NAME, batch_normalized(node, quantity));
	for (uint32_t z = 0;
	     RP_HAS(node, set_zone) && !node->get_zone(node->ctx, CPU_NAME, z, &quantity); z++)
		(void)node->set_zone(node->ctx, CPU_NAME, z, batch_normalized(node, quantity));
	subtract_others(inst, node);
	return 0;
}

static const struct rp_calculator calculator = {
	CALC_LIFE,
	.resources = names,
	.annotations = no_names,
	.calculate = batch_calculate,
	.apply = batch_apply,
};

static const struct calc_ops ops = {.plan = NULL};

CALC_MODULE(
	"batch", "1.0", ops, calculator,
	.summary = "CPU and memory that high-priority pods do not use, overcommitted to batch pods",
	.licence = "Apache-2.0");
