/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A complete calculator to be copied. Rename it and change the result of calculate() to get your
 * own calculator. It overcommits a part of the unused memory, for caches that can be dropped:
 *
 *	calculators: [batch, template-calculator]
 *	template-calculator:
 *	  percent: 50		# percent of the unused memory; default
 *
 * Before you start:
 *
 *  - The host calls every function on one thread, one at a time, and waits. A call has one
 *    second; a call that hangs ends the daemon, which then restarts without the module.
 *  - Store nothing. Request the inputs in each pass; equal inputs must give equal results, which
 *    nri-rp-modcheck checks.
 *  - Amounts of nodes and pods are milli-CPU and bytes, or RP_NOT_SET. calc_known() converts that
 *    to 0.
 *  - A resource that is not reported in a pass, or is reset, is removed from the Node. So do not
 *    report 0 for an unknown amount. After an error the last result remains for a while.
 */
#include <stdio.h>

/* Optional helpers that are linked into the module; modules/lib/README lists them. */
#include <nri-rp/lib/calc.h>
#include <nri-rp/lib/section.h>

#define TEXT_MAX 160u

/* Names that belong to this module: the host adds them to the Node and removes them. */
static const char *const names[] = {"example.com/spare-memory", NULL};
static const char *const annotations[] = {NULL};

/* ---- configuration keys ---------------------------------------------------------------------- */

/* The host checks rp.conf against this table first; help and manual are generated from it. */
static const struct rp_key keys[] = {
	SECTION_NUMBER("percent", 1, 100, "50", "Percent of unused memory that is overcommitted."),
};

static const struct rp_schema schema = SECTION_SCHEMA(keys);

/* A checked section. The name of the struct is required, the members are yours. */
struct rp_plan {
	int64_t percent;
};

/* Checks a section. Must not change the active plan: the new one may be dropped. */
static int32_t plan_read(const struct modhost *h, rp_cfg section, struct rp_plan *p)
{
	p->percent = section_int(h, section, "percent", 50);
	return 0;
}

/* ---- calculation ----------------------------------------------------------------------------- */

/* Returns the requested memory of pods without measurements, which they may use at any time. */
static int64_t template_calculator_promised(const struct modhost *h)
{
	struct rp_nr_pod pod = {.size = sizeof pod};
	int64_t sum = 0;
	for (uint32_t i = 0; !h->noderes->pod(h->ctx, i, &pod); i++) {
		if ((pod.flags & RP_NR_POD_ACTIVE) && !(pod.flags & RP_NR_POD_SAMPLED))
			sum += calc_known(pod.request[RP_NR_MEMORY]);
		pod.size = sizeof pod; /* the host may have reduced it to the size that it knows */
	}
	return sum;
}

static int32_t calculate(struct rp_instance *inst, const struct rp_nr_sink *out)
{
	const struct modhost *h = &inst->h;
	struct rp_nr_node node;
	struct rp_nr_measured m;
	char text[TEXT_MAX];
	int32_t r = calc_node(h, &node, &m);
	if (r)
		return r;
	if (m.degraded) {
		calc_reset(out, names, calc_why_degraded(&m, text, sizeof text));
		return 0;
	}
	int64_t has = calc_known(node.allocatable[RP_NR_MEMORY]);
	int64_t used = calc_known(m.node[RP_NR_MEMORY]), asked = template_calculator_promised(h);
	int64_t spare = calc_max(0, has - used - asked);
	int64_t lent = calc_percent(spare, inst->plan->percent);
	/* shown by `nri-rpctl node` */
	(void)snprintf(text, sizeof text,
		       "%lld = %lld%% of allocatable %lld - used %lld - requested %lld",
		       (long long)lent, (long long)inst->plan->percent, (long long)has,
		       (long long)used, (long long)asked);
	calc_give(out, names[0], lent, NULL, 0, text);
	return 0;
}

/* ---- module definition ----------------------------------------------------------------------- */

static const struct rp_calculator calculator = {
	CALC_LIFE,
	.resources = names,
	.annotations = annotations,
	.calculate = calculate,
};

static const struct calc_ops ops = {
	.plan_size = sizeof(struct rp_plan), .read = plan_read, .schema = &schema};

/* The one exported symbol, and the ELF note that the host reads before it loads the file. */
CALC_MODULE("template-calculator", "1.0", ops, calculator,
	    .summary = "a percentage of unused memory", .licence = "Apache-2.0");
