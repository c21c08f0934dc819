/* SPDX-License-Identifier: Apache-2.0 */
/* Vectors of the host's own calculations: strategies, whether to write to the Node, predictions. */
#include <math.h>
#include <stdlib.h>

#include "core/nri-rp-modcheck/vectors.h"
#include "core/nri-rp-modcheck/vectors_input.h"
#include "core/nri-rpd/noderes/predict.h"
#include "core/nri-rpd/noderes/strategy.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/str.h"
#include "core/nri-rpd/noderes/pass.h"

#define MILLION 1e6

/* ---- strategies ------------------------------------------------------------------------------ */

/* Returns a map as pairs of texts; free it. */
static struct kv *pairs_of(rp_cfg map, unsigned *ret_n)
{
	struct kv *list = calloc(conf_count(map) + 1u, sizeof *list);
	*ret_n = list ? conf_count(map) : 0;
	for (unsigned i = 0; i < *ret_n; i++)
		list[i] = (struct kv){conf_key(map, i), conf_text(conf_item(map, i), "")};
	return list;
}

static int merge_node_config(struct strategy *s, rp_cfg list, const struct kv *labels, unsigned n,
			     struct err *err)
{
	for (uint32_t i = 0; i < conf_count(list); i++) {
		rp_cfg one = conf_item(list, i);
		if (conf_value(conf_get(one, "badSelector"), RP_T_BOOL, 0) ||
		    !strategy_selects(conf_get(one, "matchLabels"), labels, n))
			continue;
		return strategy_merge(s, conf_get(one, "strategy"), STRATEGY_NODE_CONFIG, err);
	}
	return 0;
}

static void compare_field(struct vector *v, const struct strategy *s, uint32_t field, rp_cfg out)
{
	struct strategy expected = {0};
	struct err err = ERR_INIT;
	const char *name = strategy_field_name(field);
	if (!conf_get(out, name))
		return;
	if (strategy_merge(&expected, out, STRATEGY_CONFIG, &err))
		(void)buf_printf(v->why, "%s\n", err.text);
	else
		vector_compare(v, name, expected.values[field], s->values[field]);
}

static int run_strategy_merge(struct vector *v, struct err *err)
{
	struct strategy s;
	unsigned n_labels, n_annotations;
	_free_ struct kv *labels = pairs_of(vector_in(v, "labels"), &n_labels);
	_free_ struct kv *annotations = pairs_of(vector_in(v, "annotations"), &n_annotations);
	if (!labels || !annotations)
		return err_errno(err, -ENOMEM, "labels");
	strategy_defaults(&s);
	int r = strategy_merge(&s, vector_in(v, "cluster"), STRATEGY_CONFIG, err);
	if (!r)
		r = merge_node_config(&s, vector_in(v, "nodeConfigs"), labels, n_labels, err);
	if (r)
		return r;
	strategy_of_node(&s, NULL, labels, n_labels, annotations, n_annotations);
	for (uint32_t i = 0; i < RP_NR_FIELDS; i++)
		compare_field(v, &s, i, v->out);
	return 0;
}

static bool is_valid_node_config(rp_cfg one)
{
	struct strategy s;
	rp_cfg fields = conf_get(one, "strategy");
	strategy_defaults(&s);
	return !conf_value(conf_get(one, "badSelector"), RP_T_BOOL, 0) &&
	       conf_count(conf_get(one, "matchLabels")) && conf_count(fields) &&
	       !strategy_merge(&s, fields, STRATEGY_NODE_CONFIG, NULL);
}

static int run_strategy_validate(struct vector *v, struct err *err)
{
	struct strategy s;
	rp_cfg list = vector_in(v, "nodeConfigs"), cluster = vector_in(v, "strategy");
	strategy_defaults(&s);
	bool valid = !strategy_merge(&s, cluster ? cluster : vector_in(v, "cluster"),
				     STRATEGY_CONFIG, NULL);
	for (uint32_t i = 0; i < conf_count(list); i++)
		valid = valid && is_valid_node_config(conf_item(list, i));
	vector_compare_bool(v, "valid", valid);
	return 0;
}

/* ---- decision to write to the Node ----------------------------------------------------------- */

static int64_t thousandths_of(rp_cfg map, const char *name)
{
	return vector_cpu(conf_get(map, name), RP_NOT_SET);
}

static int run_needsync(struct vector *v, struct err *err)
{
	rp_cfg watch = vector_in(v, "watch"), before = vector_in(v, "old");
	rp_cfg after = vector_in(v, "new");
	int64_t last = vector_int(vector_in(v, "lastSyncSeconds"), RP_NOT_SET);
	int64_t threshold = (int64_t)llround(conf_number(vector_in(v, "threshold"), 0.1) * MILLION);
	bool sync = nr_is_due(last, vector_int(vector_in(v, "updateTimeThresholdSeconds"), 300));
	for (uint32_t i = 0; i < conf_count(watch); i++) {
		const char *name = conf_text(conf_item(watch, i), "");
		sync = sync || nr_differs(thousandths_of(before, name), thousandths_of(after, name),
					  threshold);
	}
	vector_compare_bool(v, "sync", sync);
	return 0;
}

/* ---- predictions ----------------------------------------------------------------------------- */

static void compare_number(struct vector *v, const char *what, double at, double expected,
			   double found)
{
	if (fabs(expected - found) > 1e-6 * (1 + fabs(expected)))
		(void)buf_printf(v->why, "%s of %g: expected %g, found %g\n", what, at, expected,
				 found);
}

static double number_at(rp_cfg list, uint32_t i, double fallback)
{
	rp_cfg node = conf_item(list, i);
	return node ? conf_number(node, fallback) : fallback;
}

static int read_buckets(const struct vector *v, struct buckets *ret, struct err *err)
{
	rp_cfg b = vector_in(v, "buckets");
	bool linear = str_eq(conf_text(conf_get(b, "type"), ""), "linear");
	int r = buckets_init(ret, conf_number(conf_get(b, "max"), 0),
			     conf_number(conf_get(b, linear ? "size" : "first"), 0),
			     linear ? 1 : conf_number(conf_get(b, "ratio"), 0));
	return r ? err_errno(err, r, "buckets") : 0;
}

static int run_histogram(struct vector *v, struct err *err)
{
	struct buckets b;
	struct histogram h;
	int r = read_buckets(v, &b, err);
	if (r)
		return r;
	if (histogram_init(&h, &b, conf_number(vector_in(v, "halfLifeSeconds"), 0)))
		return err_errno(err, -ENOMEM, "histogram");
	rp_cfg samples = vector_in(v, "samples"), p = conf_get(v->out, "percentiles");
	rp_cfg starts = conf_get(v->out, "starts"), find = conf_get(v->out, "find");
	rp_cfg n = conf_get(v->out, "numBuckets");
	for (uint32_t i = 0; i < conf_count(samples); i++) {
		rp_cfg s = conf_item(samples, i);
		histogram_add(&h, number_at(s, 0, 0), number_at(s, 1, 1), number_at(s, 2, 0));
	}
	for (uint32_t i = 0; i < conf_count(p); i++) {
		double at = number_at(conf_item(p, i), 0, 0);
		compare_number(v, "percentile", at, number_at(conf_item(p, i), 1, -1),
			       histogram_percentile(&h, at));
	}
	for (uint32_t i = 0; i < conf_count(starts); i++) {
		uint32_t at = (uint32_t)number_at(conf_item(starts, i), 0, 0);
		compare_number(v, "start", at, number_at(conf_item(starts, i), 1, -1),
			       bucket_start(&b, at));
	}
	for (uint32_t i = 0; i < conf_count(find); i++) {
		double at = number_at(conf_item(find, i), 0, 0);
		compare_number(v, "bucket", at, number_at(conf_item(find, i), 1, -1),
			       bucket_of(&b, at));
	}
	if (n)
		vector_compare(v, "numBuckets", vector_int(n, -1), b.n);
	histogram_fini(&h);
	return 0;
}

static void read_predicted(rp_cfg pod, struct predicted_pod *ret)
{
	rp_cfg cpu = conf_get(pod, "p95cpu"), memory = conf_get(pod, "p98mem");
	*ret = (struct predicted_pod){
		.request = {vector_cpu(conf_get(pod, "cpu"), 0),
			    vector_bytes(conf_get(pod, "mem"), 0)},
		.peak = {vector_int(cpu, 0), vector_int(memory, 0)},
		.has_peak = cpu || memory,
		.leaves = conf_value(conf_get(pod, "deleted"), RP_T_BOOL, 0) != 0,
		.age_s = vector_int(conf_get(pod, "ageSeconds"), 0),
	};
}

static void compare_pair(struct vector *v, const char *key, const int64_t found[RP_NR_AMOUNTS])
{
	rp_cfg pair = conf_get(v->out, key);
	for (uint32_t k = 0; pair && k < RP_NR_AMOUNTS; k++)
		vector_compare(v, key, vector_int(conf_item(pair, k), RP_NOT_SET), found[k]);
}

static int run_prod_reclaimable(struct vector *v, struct err *err)
{
	static const char *const classes[] = {"system", "prod", "none"};
	rp_cfg pods = vector_in(v, "pods"), models = vector_in(v, "models");
	rp_cfg allocatable = vector_in(v, "allocatable");
	uint32_t n = conf_count(pods);
	_free_ struct predicted_pod *list = calloc(n + 1u, sizeof *list);
	struct reclaimable found;
	if (!list)
		return err_errno(err, -ENOMEM, "pods");
	struct reclaim_input in = {
		.pods = list,
		.allocatable = {vector_cpu(conf_get(allocatable, "cpu"), 0),
				vector_bytes(conf_get(allocatable, "memory"), 0)},
		.margin_percent = vector_int(vector_in(v, "safetyMarginPercent"), 10),
		.cold_start_s = vector_int(vector_in(v, "coldStartSeconds"), 86400),
	};
	for (uint32_t i = 0; i < n; i++) {
		uint32_t class = vector_class(conf_item(pods, i));
		if (class == RP_PRIO_PROD || class == RP_PRIO_NONE)
			read_predicted(conf_item(pods, i), &list[in.n_pods++]);
	}
	for (unsigned c = 0; c < sizeof classes / sizeof *classes; c++)
		for (uint32_t k = 0; k < RP_NR_AMOUNTS; k++)
			in.classes[k] += vector_int(conf_item(conf_get(models, classes[c]), k), 0);
	reclaim(&in, &found);
	compare_pair(v, "pod", found.by_pod);
	compare_pair(v, "priority", found.by_class);
	compare_pair(v, "prodReclaimable", found.both);
	return 0;
}

const struct vector_kind vector_kinds_host[] = {
	{"strategy-merge", run_strategy_merge},
	{"strategy-validate", run_strategy_validate},
	{"needsync", run_needsync},
	{"histogram", run_histogram},
	{"prod-reclaimable", run_prod_reclaimable},
	{NULL, NULL},
};
