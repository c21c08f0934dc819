/* SPDX-License-Identifier: Apache-2.0 */
/* Vectors of calculators: inputs, the module's calculation, expected results. */
#include <stdlib.h>
#include <string.h>

#include "core/lib/conf/fragment.h"
#include "core/nri-rp-modcheck/vectors.h"
#include "core/nri-rp-modcheck/vectors_input.h"
#include "core/lib/util/cleanup.h"
#include "core/nri-rpd/noderes/pass.h"

#define UNIT 1000 /* quantities are in thousandths */
#define NORMALIZATION_KEY "node.koordinator.sh/cpu-normalization-ratio"
#define AMPLIFICATION_KEY "node.koordinator.sh/resource-amplification-ratio"
#define THIRD_PARTY_KEY "node.koordinator.sh/thirdPartyAllocations"
#define ORIGIN_KEY "node.koordinator.sh/originExtendedAllocatable"
#define FLOW_MAX 16384u

/* Calls one module with one input. */
static int vectors_calc_calculate(struct vector *v, const char *module, const struct nr_input *in,
				  struct nr_result *ret, struct err *failed, struct err *err)
{
	struct instance *i;
	struct err all[NR_CALCULATORS_MAX];
	int r = vector_module(v, module, &i, err);
	if (r)
		return r;
	v->env->noderes = in;
	r = nr_calculate(&i, 1, &(struct nr_asking){0}, ret, all);
	v->env->noderes = NULL;
	*failed = all[0];
	return r;
}

/* ---- batch and mid --------------------------------------------------------------------------- */

static int64_t vectors_calc_units(const struct nr_value *v)
{
	return !v || v->reset || v->quantity == RP_NOT_SET ? RP_NOT_SET : v->quantity / UNIT;
}

static void compare_zones(struct vector *v, const struct nr_value *cpu,
			  const struct nr_value *memory)
{
	rp_cfg zones = conf_get(v->out, "zones");
	for (uint32_t z = 0; z < conf_count(zones); z++) {
		rp_cfg pair = conf_item(zones, z);
		bool has = cpu && memory && z < cpu->n_zones && z < memory->n_zones;
		vector_compare(v, "zone cpu", vector_int(conf_item(pair, 0), RP_NOT_SET),
			       has ? cpu->zones[z] / UNIT : RP_NOT_SET);
		vector_compare(v, "zone memory", vector_int(conf_item(pair, 1), RP_NOT_SET),
			       has ? memory->zones[z] / UNIT : RP_NOT_SET);
	}
}

/* Compares the unallocated amount, an intermediate value that the calculator "mid" reports only in
 * the message of its result. */
static void compare_unallocated(struct vector *v, uint32_t k, const struct nr_value *value)
{
	rp_cfg pair = conf_get(v->out, "unallocated");
	const char *at = value && value->message ? strstr(value->message, "of unallocated ") : NULL;
	if (pair)
		vector_compare(v, "unallocated", vector_int(conf_item(pair, k), RP_NOT_SET),
			       at ? strtoll(at + strlen("of unallocated "), NULL, 10) : RP_NOT_SET);
}

static int run_lent(struct vector *v, const char *module, const char *const names[2],
		    const char *const keys[2], struct err *err)
{
	struct vector_input in;
	struct nr_result result = {0};
	struct err failed;
	int r = vector_input_fill(v, &in, err);
	if (!r)
		r = vectors_calc_calculate(v, module, &in.in, &result, &failed, err);
	vector_input_fini(&in);
	const struct nr_value *values[2] = {nr_result_value(&result, names[0]),
					    nr_result_value(&result, names[1])};
	bool reset = conf_value(conf_get(v->out, "reset"), RP_T_BOOL, 0);
	for (uint32_t k = 0; !r && k < 2; k++) {
		if (reset && !(values[k] && values[k]->reset))
			(void)buf_printf(v->why, "%s: expected a reset\n", names[k]);
		vector_compare(v, names[k], vector_int(conf_get(v->out, keys[k]), RP_NOT_SET),
			       vectors_calc_units(values[k]));
		compare_unallocated(v, k, values[k]);
	}
	if (!r && failed.text[0])
		(void)buf_printf(v->why, "failed: %s\n", failed.text);
	compare_zones(v, values[0], values[1]);
	nr_result_fini(&result);
	return r;
}

static int run_batch(struct vector *v, struct err *err)
{
	static const char *const names[2] = {"kubernetes.io/batch-cpu",
					     "kubernetes.io/batch-memory"};
	static const char *const keys[2] = {"batchCPU", "batchMemory"};
	return run_lent(v, "batch", names, keys, err);
}

static int run_mid(struct vector *v, struct err *err)
{
	static const char *const names[2] = {"kubernetes.io/mid-cpu", "kubernetes.io/mid-memory"};
	static const char *const keys[2] = {"midCPU", "midMemory"};
	return run_lent(v, "mid", names, keys, err);
}

/* ---- shares of zones ------------------------------------------------------------------------- */

#define ROOM_CPU                                                                                   \
	INT64_C(1000000000) /* free CPU of a zone; the difference afterwards is the pod's share */
#define ROOM_MEMORY (INT64_C(1) << 50)

static int run_numa_split(struct vector *v, struct err *err)
{
	static const char *const keys[RP_NR_AMOUNTS] = {"cpu", "mem"};
	static const char *const names[RP_NR_AMOUNTS] = {"kubernetes.io/batch-cpu",
							 "kubernetes.io/batch-memory"};
	static const int64_t room[RP_NR_AMOUNTS] = {ROOM_CPU, ROOM_MEMORY};
	struct vector_input in;
	struct nr_result result = {0};
	struct err failed;
	struct rp_nr_zone zones[NR_ZONES_MAX];
	struct rp_idset bound;
	uint32_t n = (uint32_t)vector_int(vector_in(v, "zones"), 0);
	rp_cfg nodes = vector_in(v, "numaNodes");
	struct rp_nr_pod pod = {.size = sizeof pod,
				.flags = RP_NR_POD_ACTIVE,
				.request = {vector_cpu(vector_in(v, "cpu"), 0),
					    vector_bytes(vector_in(v, "mem"), 0)}};
	if (n > NR_ZONES_MAX)
		return err_set(err, -E2BIG, "more than %u zones", NR_ZONES_MAX);
	int r = vector_input_fill(v, &in, err);
	rp_idset_clear(&bound);
	for (uint32_t i = 0; i < conf_count(nodes); i++)
		rp_idset_add(&bound, (uint32_t)vector_int(conf_item(nodes, i), 0));
	pod.zones = rp_ids_of(&bound);
	for (uint32_t z = 0; z < n; z++)
		zones[z] = (struct rp_nr_zone){
			.size = sizeof *zones, .id = z, .allocatable = {ROOM_CPU, ROOM_MEMORY}};
	in.in.pods = &pod;
	in.in.n_pods = 1;
	in.in.zones = zones;
	in.in.n_zones = n;
	in.in.measured.degraded = 0;
	in.in.strategy[RP_NR_CPU_RECLAIM_PERCENT] = in.in.strategy[RP_NR_MEMORY_RECLAIM_PERCENT] =
		100;
	if (!r)
		r = vectors_calc_calculate(v, "batch", &in.in, &result, &failed, err);
	vector_input_fini(&in);
	for (uint32_t k = 0; !r && k < RP_NR_AMOUNTS; k++) {
		const struct nr_value *value = nr_result_value(&result, names[k]);
		rp_cfg expected = conf_get(v->out, keys[k]);
		for (uint32_t z = 0; z < conf_count(expected); z++)
			vector_compare(v, keys[k], vector_int(conf_item(expected, z), RP_NOT_SET),
				       value && z < value->n_zones
					       ? room[k] - value->zones[z] / UNIT
					       : RP_NOT_SET);
	}
	nr_result_fini(&result);
	return r;
}

/* ---- results on the Node --------------------------------------------------------------------- */

static int put_value(struct nr_result *to, const char *name, int64_t quantity, bool reset)
{
	return nr_result_set(to, &(struct rp_nr_item){.size = sizeof(struct rp_nr_item),
						      .flags = reset ? RP_NR_ITEM_RESET : 0,
						      .name = name,
						      .quantity = quantity});
}

static int fill_result(const struct vector *v, struct nr_result *result)
{
	rp_cfg values = vector_in(v, "calculated"), resets = vector_in(v, "resets");
	rp_cfg ratio = vector_in(v, "normalizationRatio");
	int r = 0;
	for (uint32_t i = 0; !r && i < conf_count(values); i++)
		r = put_value(result, conf_key(values, i),
			      vector_cpu(conf_item(values, i), RP_NOT_SET), false);
	for (uint32_t i = 0; !r && i < conf_count(resets); i++)
		r = put_value(result, conf_text(conf_item(resets, i), ""), RP_NOT_SET, true);
	if (!r && ratio)
		r = nr_result_annotate(result, NORMALIZATION_KEY, conf_text(ratio, ""));
	return r;
}

static void compare_node(struct vector *v, const struct nr_result *node)
{
	rp_cfg expected = conf_get(v->out, "node");
	for (uint32_t i = 0; i < conf_count(expected); i++)
		vector_compare(v, conf_key(expected, i), vector_int(conf_item(expected, i), 0),
			       vectors_calc_units(nr_result_value(node, conf_key(expected, i))));
	for (unsigned i = 0; i < node->n_values; i++)
		if (!conf_get(expected, node->values[i].name))
			(void)buf_printf(v->why, "%s: not expected on the Node\n",
					 node->values[i].name);
}

/* Compares the annotation with the amounts before the allocations of third parties were subtracted;
 * expected as a map, or within `resources`. */
static void compare_origin(struct vector *v, const struct nr_result *node)
{
	rp_cfg expected = conf_get(v->out, "origin"), found = NULL;
	const char *text = nr_result_annotation(node, ORIGIN_KEY);
	struct fragment *f = NULL;
	if (!expected)
		return;
	if (text)
		(void)fragment_parse(text, &f, &found, NULL);
	if (conf_get(expected, "resources"))
		expected = conf_get(expected, "resources");
	found = conf_get(found, "resources");
	for (uint32_t i = 0; i < conf_count(expected); i++) {
		const char *name = conf_key(expected, i);
		vector_compare(v, name, vector_cpu(conf_item(expected, i), RP_NOT_SET),
			       vector_cpu(conf_get(found, name), RP_NOT_SET));
	}
	fragment_free(f);
}

static int run_prepare(struct vector *v, struct err *err)
{
	struct nr_result result = {0}, node = {0};
	struct err failed[NR_CALCULATORS_MAX];
	char flow[FLOW_MAX];
	_cleanup_(buf_fini) struct buf text = BUF_INIT;
	rp_cfg others = vector_in(v, "thirdParty");
	int r = fill_result(v, &result);
	if (!r && others) {
		(void)buf_printf(&text, "{\"allocations\": %s}",
				 conf_flow(others, flow, sizeof flow));
		r = nr_result_annotate(&node, THIRD_PARTY_KEY, buf_text(&text));
	}
	if (!r)
		r = nr_apply(v->list, v->n_list, &result, &node, NULL, failed);
	if (!r) {
		compare_node(v, &node);
		compare_origin(v, &node);
	}
	nr_result_fini(&result);
	nr_result_fini(&node);
	return r ? err_errno(err, r, "result") : 0;
}

/* ---- annotations ----------------------------------------------------------------------------- */

static void compare_annotation(struct vector *v, const struct nr_result *result, const char *key,
			       const struct err *failed)
{
	bool bad = conf_value(conf_get(v->out, "error"), RP_T_BOOL, 0);
	rp_cfg expected = conf_get(v->out, "annotation");
	if (bad != (failed->text[0] != '\0'))
		(void)buf_printf(v->why, "expected %s, found: %s\n", bad ? "an error" : "no error",
				 failed->text[0] ? failed->text : "none");
	if (!bad)
		vector_compare_text(v, key,
				    expected && conf_kind(expected) == RP_NODE_SCALAR
					    ? conf_text(expected, NULL)
					    : NULL,
				    nr_result_annotation(result, key));
}

/* Runs a module configured with `section`; an error of the configuration is treated as one of the
 * calculation. */
static int run_annotation(struct vector *v, const char *module, const char *key, rp_cfg section,
			  struct err *err)
{
	struct vector_input in;
	struct instance *i;
	struct nr_result result = {0};
	struct err failed = ERR_INIT;
	int r = vector_module(v, module, &i, err);
	if (!r)
		r = vector_input_fill(v, &in, err);
	if (r)
		return r;
	if (!vector_configure(i, section, &failed))
		r = vectors_calc_calculate(v, module, &in.in, &result, &failed, err);
	compare_annotation(v, &result, key, &failed);
	vector_input_fini(&in);
	nr_result_fini(&result);
	(void)vector_configure(i, NULL, NULL);
	return r;
}

static int run_normalization(struct vector *v, struct err *err)
{
	return run_annotation(v, "cpu-normalization", NORMALIZATION_KEY, vector_in(v, "strategy"),
			      err);
}

static int run_normalization_meta(struct vector *v, struct err *err)
{
	struct instance *i;
	rp_cfg before = vector_in(v, "old"), after = vector_in(v, "new");
	int r = vector_module(v, "cpu-normalization", &i, err);
	if (!r)
		vector_compare_bool(v, "sync",
				    instance_meta_changed(i, NORMALIZATION_KEY,
							  before ? conf_text(before, NULL) : NULL,
							  after ? conf_text(after, NULL) : NULL));
	return r;
}

static int run_amplification(struct vector *v, struct err *err)
{
	char flow[FLOW_MAX];
	_cleanup_(buf_fini) struct buf text = BUF_INIT;
	rp_cfg ratios = vector_in(v, "ratios"), section = NULL;
	struct fragment *f;
	(void)buf_printf(&text, "{enable: %s, resourceAmplificationRatio: %s}",
			 conf_value(vector_in(v, "enable"), RP_T_BOOL, 0) ? "true" : "false",
			 ratios ? conf_flow(ratios, flow, sizeof flow) : "{}");
	int r = fragment_parse(buf_text(&text), &f, &section, err);
	if (r)
		return r;
	r = run_annotation(v, "resource-amplification", AMPLIFICATION_KEY, section, err);
	fragment_free(f);
	return r;
}

/* ---- devices --------------------------------------------------------------------------------- */

static void fill_device(rp_cfg map, struct nr_device *ret)
{
	*ret = (struct nr_device){
		.device = {.size = sizeof ret->device,
			   .healthy = conf_value(conf_get(map, "healthy"), RP_T_BOOL, 1) != 0,
			   .type = conf_text(conf_get(map, "type"), "gpu"),
			   .vendor = conf_text(conf_get(map, "vendor"), ""),
			   .model = "",
			   .driver = ""}};
	for (uint32_t i = 0; i < conf_count(map) && ret->n_amounts < NR_DEVICE_AMOUNTS_MAX; i++) {
		const char *key = conf_key(map, i);
		if (!strchr(key, '/'))
			continue;
		ret->amounts[ret->n_amounts].resource = key;
		ret->amounts[ret->n_amounts++].thousandths =
			vector_bytes(conf_item(map, i), 0) * UNIT;
	}
}

/* Compares the resources of both sides: none may be missing or unexpected. */
static void compare_devices(struct vector *v, const struct nr_result *result)
{
	for (uint32_t i = 0; i < conf_count(v->out); i++)
		vector_compare(v, conf_key(v->out, i), vector_int(conf_item(v->out, i), RP_NOT_SET),
			       vectors_calc_units(nr_result_value(result, conf_key(v->out, i))));
	for (unsigned i = 0; i < result->n_values; i++)
		if (!conf_get(v->out, result->values[i].name))
			vector_compare(v, result->values[i].name, RP_NOT_SET,
				       vectors_calc_units(&result->values[i]));
}

static int run_device_sum(struct vector *v, struct err *err)
{
	static const char *const modules[] = {"gpu", "rdma"};
	rp_cfg list = vector_in(v, "devices");
	uint32_t n = conf_count(list);
	_free_ struct nr_device *devices = calloc(n + 1u, sizeof *devices);
	struct nr_result result = {0};
	int r = devices ? 0 : err_errno(err, -ENOMEM, "devices");
	for (uint32_t i = 0; !r && i < n; i++)
		fill_device(conf_item(list, i), &devices[i]);
	const struct nr_input in = {.devices = devices, .n_devices = n};
	for (unsigned i = 0; !r && i < sizeof modules / sizeof *modules; i++) {
		struct err failed;
		r = vectors_calc_calculate(v, modules[i], &in, &result, &failed, err);
		if (!r && failed.text[0])
			(void)buf_printf(v->why, "failed: %s\n", failed.text);
	}
	if (!r)
		compare_devices(v, &result);
	nr_result_fini(&result);
	return r;
}

const struct vector_kind vector_kinds_calculators[] = {
	{"batch", run_batch},
	{"mid", run_mid},
	{"numa-split", run_numa_split},
	{"prepare", run_prepare},
	{"cpu-normalization", run_normalization},
	{"cpu-normalization-meta", run_normalization_meta},
	{"amplification", run_amplification},
	{"device-sum", run_device_sum},
	{NULL, NULL},
};
