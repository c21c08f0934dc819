/* SPDX-License-Identifier: Apache-2.0 */
/* Shows the node as the cluster has it, and its batch and mid resources. */
#include "core/nri-rpd/control/internal.h"
#include "core/nri-rpd/host/node.h"
#include "core/nri-rpd/pipeline/observe/observe.h"
#include "core/nri-rpd/pipeline/node/cluster.h"
#include "core/nri-rpd/pipeline/node/noderes.h"
#include "core/lib/util/clock.h"
#include "core/nri-rpd/control/node.h"
#include "core/nri-rpd/host/service/node.h"
#include "core/nri-rpd/pipeline/observe/status.h"

#define UNIT 1000 /* amounts in thousandths */

static const char *const amounts[RP_NR_AMOUNTS] = {"cpu", "memory"};

static void put_amounts(struct json *j, const char *key, const int64_t of[RP_NR_AMOUNTS])
{
	json_kobj(j, key);
	for (uint32_t k = 0; k < RP_NR_AMOUNTS; k++)
		if (of[k] != RP_NOT_SET)
			json_kint(j, amounts[k], of[k]);
	json_end_obj(j);
}

static void put_measured(struct json *j, const struct rp_nr_measured *m)
{
	json_kobj(j, "measured");
	json_kbool(j, "degraded", m->degraded != 0);
	if (m->age_ms != RP_NOT_SET)
		json_kint(j, "age_ms", m->age_ms);
	if (!m->degraded) {
		put_amounts(j, "node", m->node);
		put_amounts(j, "system", m->system);
	}
	if (m->prod_peak[RP_NR_CPU] != RP_NOT_SET) {
		put_amounts(j, "prod_reclaimable", m->prod_reclaimable);
		put_amounts(j, "prod_peak", m->prod_peak);
	}
	json_end_obj(j);
}

static const char *origin_name(enum strategy_origin o)
{
	static const char *const names[] = {
		[STRATEGY_DEFAULT] = "default",
		[STRATEGY_CONFIG] = "strategy",
		[STRATEGY_NODE_CONFIG] = "nodeConfigs",
		[STRATEGY_NODE_ANNOTATION] = "node annotation",
		[STRATEGY_NODE_LABEL] = "node label",
	};
	return names[o];
}

static void put_strategy(struct json *j, const struct strategy *s)
{
	json_karr(j, "strategy");
	for (uint32_t i = 0; i < RP_NR_FIELDS; i++) {
		if (s->values[i] == RP_NOT_SET)
			continue;
		json_obj(j);
		json_kstr(j, "field", strategy_field_name(i));
		json_key(j, "value");
		if (i == RP_NR_DIFF_THRESHOLD)
			json_num(j, (double)s->values[i] / 1e6);
		else
			json_int(j, s->values[i]);
		json_kstr(j, "origin", origin_name(s->origins[i]));
		json_end_obj(j);
	}
	json_obj(j);
	json_kstr(j, "field", STRATEGY_DURATIONS);
	json_karr(j, "value");
	for (uint32_t i = 0; i < s->n_durations; i++)
		json_int(j, s->durations_ms[i] / 1000);
	json_end_arr(j);
	json_kstr(j, "origin", origin_name(s->durations_origin));
	json_end_obj(j);
	json_end_arr(j);
}

static void put_statistics(struct json *j, const char *key, const int64_t (*of)[RP_NR_AMOUNTS])
{
	static const char *const names[RP_NR_STATISTICS] = {[RP_NR_AVG] = "avg",
							    [RP_NR_P50] = "p50",
							    [RP_NR_P90] = "p90",
							    [RP_NR_P95] = "p95",
							    [RP_NR_P99] = "p99"};
	json_kobj(j, key);
	for (uint32_t s = 0; s < RP_NR_STATISTICS; s++)
		put_amounts(j, names[s], of[s]);
	json_end_obj(j);
}

/* Writes the aggregates for the strategy's durations, as far as measured. */
static void put_aggregated(struct json *j, const struct noderes_view *v)
{
	json_karr(j, "aggregated");
	for (uint32_t i = 0; i < v->n_aggregated; i++) {
		const struct rp_nr_aggregated *a = &v->aggregated[i];
		json_obj(j);
		json_kint(j, "duration_s", a->duration_ms / 1000);
		json_kuint(j, "samples", a->n);
		put_statistics(j, "node", a->node);
		if (a->system[RP_NR_AVG][RP_NR_CPU] != RP_NOT_SET)
			put_statistics(j, "system", a->system);
		json_end_obj(j);
	}
	json_end_arr(j);
}

/* Writes past values, the oldest first, a minute apart; null: not measured. */
static void put_past(struct json *j, const struct past_row *row)
{
	json_kuint(j, "since_ms", clock_ms() - row->written_ms);
	json_karr(j, "past");
	for (uint32_t i = 0; i < row->n; i++) {
		int64_t v = past_point(row, i);
		if (v == RP_NOT_SET)
			json_nil(j);
		else
			json_int(j, v / UNIT);
	}
	json_end_arr(j);
}

static void put_zones(struct json *j, const struct nr_value *value)
{
	json_karr(j, "zones");
	for (uint32_t i = 0; i < value->n_zones; i++)
		json_int(j, value->zones[i] / UNIT);
	json_end_arr(j);
}

static void put_resources(struct json *j, const struct noderes_view *v)
{
	json_karr(j, "resources");
	for (unsigned i = 0; i < v->result->n_values; i++) {
		const struct nr_value *value = &v->result->values[i];
		const struct nr_value *written = nr_result_value(v->node, value->name);
		json_obj(j);
		json_kstr(j, "name", value->name);
		if (!value->reset && value->quantity != RP_NOT_SET)
			json_kint(j, "value", value->quantity / UNIT);
		if (written)
			json_kint(j, "written", written->quantity / UNIT);
		if (value->n_zones)
			put_zones(j, value);
		json_kstr(j, "why", value->message ? value->message : "");
		const struct past_row *row = past_find(v->past, value->name);
		if (row)
			put_past(j, row);
		json_end_obj(j);
	}
	json_end_arr(j);
	json_kobj(j, "annotations");
	for (unsigned i = 0; i < v->node->n_annotations; i++)
		json_kstr(j, v->node->annotations[i].key, v->node->annotations[i].value);
	json_end_obj(j);
}

/* Writes the calculators that are in use, in the order of their calls, then the unused ones. */
static void put_calculators(struct json *j, const struct pipeline *p)
{
	struct calculator_view v;
	json_karr(j, "calculators");
	for (unsigned i = 0; pipeline_calculator(p, i, &v); i++) {
		json_obj(j);
		json_kstr(j, "name", v.name);
		json_kbool(j, "running", true);
		json_kstr(j, "error", v.error);
		JSON_MEMBERS(j, v.cost, failures, slow);
		json_end_obj(j);
	}
	for (unsigned i = 0; i < pipeline_n_controllers(p); i++) {
		struct controller_status c;
		pipeline_controller(p, i, &c);
		if (!c.calculator || c.running)
			continue;
		json_obj(j);
		json_kstr(j, "name", c.name);
		json_kbool(j, "running", false);
		json_kstr(j, "error", c.error);
		json_end_obj(j);
	}
	json_end_arr(j);
}

static void put_pairs(struct json *j, const char *key, const struct kv *list, uint32_t n)
{
	json_kobj(j, key);
	for (uint32_t i = 0; i < n; i++)
		json_kstr(j, list[i].key, list[i].value);
	json_end_obj(j);
}

static void put_node_amounts(struct json *j, const char *key, const struct node_amount *list,
			     uint32_t n)
{
	json_kobj(j, key);
	for (uint32_t i = 0; i < n; i++)
		json_kint(j, list[i].name, list[i].amount);
	json_end_obj(j);
}

/* Writes the Node object; null: no agent has sent it. */
static void put_node_object(struct json *j, const struct node_object *node)
{
	if (!node) {
		json_kstr(j, "object", NULL);
		return;
	}
	json_kobj(j, "object");
	JSON_MEMBERS(j, node, name, uid, unschedulable);
	put_pairs(j, "labels", node->labels, node->n_labels);
	put_pairs(j, "annotations", node->annotations, node->n_annotations);
	JSON_LIST(j, "taints", &node->taints[i], node->n_taints, key, value, effect);
	put_node_amounts(j, "capacity", node->capacity, node->n_capacity);
	put_node_amounts(j, "allocatable", node->allocatable, node->n_allocatable);
	json_end_obj(j);
}

/* Writes the changes of the Node object that modules want, and whether the Node has each of
 * them. */
static void put_wishes(struct json *j, const struct pipeline *p)
{
	const struct node_wish *all = pipeline_wishes(p);
	json_karr(j, "wishes");
	for (const struct node_wish *w = all; w; w = w->next) {
		json_obj(j);
		json_kstr(j, "module", instance_name(w->owner));
		json_kstr(j, "kind", wish_kind_name(w->kind));
		json_kstr(j, "key", w->key);
		if (w->kind == WISH_RESOURCE)
			json_kint(j, "amount", w->amount);
		else
			json_kstr(j, "value", w->value);
		if (w->kind == WISH_TAINT)
			json_kstr(j, "effect", w->effect);
		json_kbool(j, "waits", node_wish_waits(all, w));
		json_kbool(j, "there", node_has_wish(pipeline_node(p), w));
		json_end_obj(j);
	}
	json_end_arr(j);
}

enum call_result run_node(struct call *call)
{
	struct json *j = &call->j;
	struct noderes_view v;
	bool any = pipeline_noderes(call->p, &v);
	json_obj(j);
	JSON_MEMBERS(j, &v, enabled, passes, writes, error);
	put_calculators(j, call->p);
	if (any && v.passes) {
		json_kuint(j, "age_ms", v.age_ms);
		put_amounts(j, "capacity", v.capacity);
		put_amounts(j, "allocatable", v.allocatable);
		put_measured(j, v.measured);
		put_aggregated(j, &v);
		put_resources(j, &v);
	}
	put_strategy(j, v.strategy);
	put_node_object(j, pipeline_node(call->p));
	put_wishes(j, call->p);
	json_end_obj(j);
	return CALL_DONE;
}
