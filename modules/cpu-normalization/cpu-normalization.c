/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPU normalization: one CPU of a fast model is counted as more than one nominal CPU. The ratio of
 * this node's model, by hyper-threads and turbo, is published as an annotation of the Node, which
 * other calculators and schedulers read.
 */
#include <stdio.h>
#include <string.h>

#include <nri-rp/lib/calc.h>
#include <nri-rp/lib/section.h>

#define KEY "node.koordinator.sh/cpu-normalization-ratio"
#define ENABLED_KEY "node.koordinator.sh/cpu-normalization-enabled"
#define RATIO_MIN 1.0
#define RATIO_MAX 5.0
#define SAME_UP_TO (CALC_MILLION / 100)

static const struct rp_key keys[] = {
	SECTION_BOOL("enable", "false",
		     "Normalize nodes; the label " ENABLED_KEY " of a node overrides it."),
	SECTION_KEY(
		"defaultRatio", NUMBER,
		"Ratio of CPU models that are not listed, or whose entry lacks the needed ratio."),
	SECTION_MAP("ratioModel", "Ratios by CPU model."),
	SECTION_MAP("ratioModel.*", "A model, as named in /proc/cpuinfo."),
	SECTION_KEY("ratioModel.*.baseRatio", NUMBER,
		    "Ratio without hyper-threads and turbo, 1 to 5."),
	SECTION_KEY("ratioModel.*.hyperThreadEnabledRatio", NUMBER,
		    "Ratio with hyper-threads only, 1 to 5."),
	SECTION_KEY("ratioModel.*.turboEnabledRatio", NUMBER, "Ratio with turbo only, 1 to 5."),
	SECTION_KEY("ratioModel.*.hyperThreadTurboEnabledRatio", NUMBER,
		    "Ratio with both, 1 to 5."),
};

static const struct rp_schema schema = SECTION_SCHEMA(keys);

struct rp_plan {
	rp_cfg section;
};

static int32_t plan_read(const struct modhost *h, rp_cfg section, struct rp_plan *p)
{
	p->section = section;
	return 0;
}

static int32_t is_enabled(const struct rp_instance *inst, bool *ret)
{
	const struct modhost *h = &inst->h;
	const char *label = h->noderes->label(h->ctx, ENABLED_KEY);
	*ret = section_bool(h, inst->plan->section, "enable", false);
	if (!label)
		return 0;
	*ret = strcmp(label, "true") == 0;
	if (!*ret && strcmp(label, "false") != 0)
		return modhost_fail(h, -RP_EINVAL,
				    "label " ENABLED_KEY ": \"%.64s\" is neither true nor false",
				    label);
	return 0;
}

/* Returns the ratio of a CPU model; NULL: no ratio is configured for this machine. */
static rp_cfg ratio_at(const struct rp_instance *inst, const struct rp_nr_cpu *cpu)
{
	static const char *const names[2][2] = {
		{"baseRatio", "turboEnabledRatio"},
		{"hyperThreadEnabledRatio", "hyperThreadTurboEnabledRatio"},
	};
	const struct modhost *h = &inst->h;
	rp_cfg models = section_get(h, inst->plan->section, "ratioModel");
	for (uint32_t i = 0; i < h->config->count(h->ctx, models); i++) {
		if (strcmp(h->config->key(h->ctx, models, i), cpu->model) != 0)
			continue;
		rp_cfg model = h->config->item(h->ctx, models, i);
		rp_cfg at = section_get(h, model, names[cpu->hyper_threads != 0][cpu->turbo != 0]);
		if (at)
			return at;
	}
	return section_get(h, inst->plan->section, "defaultRatio");
}

static int32_t calculate(struct rp_instance *inst, const struct rp_nr_sink *out)
{
	const struct modhost *h = &inst->h;
	struct rp_nr_cpu cpu = {.size = sizeof cpu};
	char text[32];
	bool enabled;
	int32_t r = is_enabled(inst, &enabled);
	if (r)
		return r;
	if (!enabled) {
		out->annotation(out->ctx, KEY, "1.00");
		return 0;
	}
	if (h->noderes->cpu(h->ctx, &cpu))
		return modhost_fail(h, -RP_ENOENT, "the CPU model is unknown");
	rp_cfg at = ratio_at(inst, &cpu);
	if (!at)
		return modhost_fail(h, -RP_ENOENT,
				    "no ratio for CPU model \"%.64s\" with hyper-threads %s and "
				    "turbo %s",
				    cpu.model, cpu.hyper_threads ? "on" : "off",
				    cpu.turbo ? "on" : "off");
	double ratio = h->config->number(h->ctx, at, 0);
	if (ratio < RATIO_MIN || ratio > RATIO_MAX)
		return modhost_refuse(h, at, "a ratio must be from 1 to 5");
	(void)snprintf(text, sizeof text, "%.2f", ratio);
	out->annotation(out->ctx, KEY, text);
	return 0;
}

static int32_t meta_changed(struct rp_instance *inst, const char *key, const char *old_text,
			    const char *new_text)
{
	if (!old_text || !new_text)
		return old_text != new_text;
	int64_t old_ratio = calc_millionths(old_text), new_ratio = calc_millionths(new_text);
	if (old_ratio < 0 || new_ratio < 0)
		return old_ratio < 0;
	int64_t by = new_ratio > old_ratio ? new_ratio - old_ratio : old_ratio - new_ratio;
	return by > SAME_UP_TO;
}

static const char *const no_names[] = {NULL};
static const char *const annotations[] = {KEY, NULL};

static const struct rp_calculator calculator = {
	CALC_LIFE,
	.resources = no_names,
	.annotations = annotations,
	.calculate = calculate,
	.meta_changed = meta_changed,
};

static const struct calc_ops ops = {
	.plan_size = sizeof(struct rp_plan), .read = plan_read, .schema = &schema};

CALC_MODULE("cpu-normalization", "1.0", ops, calculator,
	    .summary = "normalization ratio of this node's CPU model", .licence = "Apache-2.0");
