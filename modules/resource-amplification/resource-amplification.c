/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resource amplification: multiplies the CPU and memory that schedulers see on the node. Publishes
 * the ratios as an annotation of the Node. The CPU ratio is the configured ratio times the Node's
 * CPU normalization ratio, which each pass reads again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nri-rp/lib/calc.h>
#include <nri-rp/lib/section.h>

#define KEY "node.koordinator.sh/resource-amplification-ratio"
#define NORMALIZATION_KEY "node.koordinator.sh/cpu-normalization-ratio"
#define RATIOS_MAX 32u
#define NAME_MAX_LEN 128u
#define CPU "cpu"

static const struct rp_key keys[] = {
	SECTION_BOOL("enable", "false",
		     "Use the ratios below. Normalized CPUs are amplified in any case."),
	SECTION_MAP("resourceAmplificationRatio", "Ratios by resource, at least 1."),
	SECTION_KEY("resourceAmplificationRatio.*", NUMBER, "A ratio."),
};

static const struct rp_schema schema = SECTION_SCHEMA(keys);

struct ratio {
	char name[NAME_MAX_LEN];
	double value;
};

struct rp_plan {
	struct ratio ratios[RATIOS_MAX + 1]; /* ratios sorted by resource name */
	uint32_t n;
};

static int by_name(const void *a, const void *b)
{
	const struct ratio *x = a, *y = b;
	return strcmp(x->name, y->name);
}

static void resource_amplification_put(struct rp_plan *p, const char *name, double value)
{
	struct ratio *r = &p->ratios[p->n++];
	(void)snprintf(r->name, sizeof r->name, "%s", name);
	r->value = value;
	qsort(p->ratios, p->n, sizeof *p->ratios, by_name);
}

static int32_t read_ratios(const struct modhost *h, rp_cfg map, struct rp_plan *p)
{
	uint32_t n = h->config->count(h->ctx, map);
	if (n > RATIOS_MAX)
		return modhost_fail_at(h, map, -RP_E2BIG, "more than %u ratios", RATIOS_MAX);
	for (uint32_t i = 0; i < n; i++) {
		const char *name = h->config->key(h->ctx, map, i);
		if (strlen(name) >= NAME_MAX_LEN || strpbrk(name, "\"\\"))
			return modhost_refuse(h, h->config->item(h->ctx, map, i),
					      "\"%.64s\" is not a resource's name", name);
		double ratio = h->config->number(h->ctx, h->config->item(h->ctx, map, i), 0);
		if (ratio < 1)
			return modhost_refuse(h, h->config->item(h->ctx, map, i),
					      "a ratio may not be below 1");
		resource_amplification_put(p, name, ratio);
	}
	return 0;
}

static int32_t plan_read(const struct modhost *h, rp_cfg section, struct rp_plan *p)
{
	return section_bool(h, section, "enable", false)
		       ? read_ratios(h, section_get(h, section, "resourceAmplificationRatio"), p)
		       : 0;
}

/* Multiplies the ratio of CPU, which is 1 when none is configured. */
static void amplify_cpu(struct rp_plan *p, double by)
{
	for (uint32_t i = 0; i < p->n; i++)
		if (strcmp(p->ratios[i].name, CPU) == 0) {
			p->ratios[i].value *= by;
			return;
		}
	resource_amplification_put(p, CPU, by);
}

static int32_t calculate(struct rp_instance *inst, const struct rp_nr_sink *out)
{
	const struct modhost *h = &inst->h;
	const char *text = h->noderes->annotation(h->ctx, NORMALIZATION_KEY);
	int64_t normal = text ? calc_millionths(text) : CALC_MILLION;
	struct rp_plan p = *inst->plan;
	char json[RATIOS_MAX * (NAME_MAX_LEN + 32)];
	size_t len = 0;
	if (normal <= 0)
		return modhost_fail(h, -RP_EINVAL,
				    "annotation " NORMALIZATION_KEY ": \"%.64s\" is not a ratio",
				    text);
	amplify_cpu(&p, (double)normal / CALC_MILLION);
	for (uint32_t i = 0; i < p.n; i++) {
		if (strcmp(p.ratios[i].name, CPU) == 0 && p.ratios[i].value <= 1)
			continue;
		len += (size_t)snprintf(json + len, sizeof json - len, "%s\"%s\":%.2f",
					len ? "," : "{", p.ratios[i].name, p.ratios[i].value);
	}
	if (!len)
		return 0;
	(void)snprintf(json + len, sizeof json - len, "}");
	out->annotation(out->ctx, KEY, json);
	return 0;
}

/* Removes the annotation from the Node if no resource is amplified. */
static int32_t apply(struct rp_instance *inst, const struct rp_nr_edit *node)
{
	if (!node->result_annotation(node->ctx, KEY))
		node->set_annotation(node->ctx, KEY, NULL);
	return 0;
}

static const char *const no_names[] = {NULL};
static const char *const annotations[] = {KEY, NULL};

static const struct rp_calculator calculator = {
	CALC_LIFE,	.resources = no_names, .annotations = annotations, .calculate = calculate,
	.apply = apply,
};

static const struct calc_ops ops = {
	.plan_size = sizeof(struct rp_plan), .read = plan_read, .schema = &schema};

CALC_MODULE("resource-amplification", "1.0", ops, calculator,
	    .summary = "CPU and memory that schedulers see, multiplied by a ratio",
	    .licence = "Apache-2.0");
