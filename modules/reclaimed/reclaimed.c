/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reclaimed.so: CPU and memory that pods of reclaimed_cores (policy qos) may request.
 *
 *	CPU    = allocatable - (reserve + max(usage, load of 1 and of 5 minutes), in whole CPUs)
 *	memory = allocatable - (reserveMemory + usage)
 *
 * Values are at least 0. Usage and load of pods of reclaimed_cores themselves are not counted.
 */
#include <stdio.h>
#include <string.h>

#include <nri-rp/lib/calc.h>
#include <nri-rp/lib/ctr.h>
#include "modules/lib/private/koord.h"
#include <nri-rp/lib/section.h>

#define LEVEL_KEY "katalyst.kubewharf.io/qos_level"
#define LEVEL "reclaimed_cores"
#define MESSAGE_MAX 256u

static const char *const names[] = {"resource.katalyst.kubewharf.io/reclaimed_millicpu",
				    "resource.katalyst.kubewharf.io/reclaimed_memory", NULL};
static const char *const no_names[] = {NULL};

static const struct rp_key keys[] = {
	SECTION_KEY("reserve", CPU, "CPU kept free in addition to usage.", .fallback = "4"),
	SECTION_KEY("reserveMemory", BYTES, "Memory that is kept beyond what is used.",
		    .fallback = "1Gi"),
};

static const struct rp_schema schema = SECTION_SCHEMA(keys);

struct rp_plan {
	int64_t reserve; /* reserved CPUs in milli-CPU */
	int64_t reserve_memory; /* reserved memory in bytes */
};

static int32_t plan_read(const struct modhost *h, rp_cfg section, struct rp_plan *p)
{
	p->reserve = section_value(h, section, "reserve", RP_T_CPU, 4000);
	p->reserve_memory =
		section_value(h, section, "reserveMemory", RP_T_BYTES, INT64_C(1) << 30);
	return 0;
}

/* Stores the usage of reclaimed pods' containers: milli-CPU and bytes. -RP_ENOMEM with a
 * message. */
static int32_t used_by_them(const struct modhost *h, int64_t *cpu, int64_t *memory)
{
	struct ctr_list list = {NULL, 0};
	int32_t n = ctr_list(h, &list, RP_ORDER_CREATED);
	*cpu = *memory = 0;
	for (int32_t i = 0; i < n; i++) {
		struct rp_ctr_info info;
		struct rp_usage u;
		if (ctr_info(h, list.ctrs[i], &info))
			continue;
		const char *level = h->cache->pod_annotation(h->ctx, info.pod, LEVEL_KEY);
		if (!level || strcmp(level, LEVEL) != 0 || !modhost_usage(h, list.ctrs[i], &u))
			continue;
		*cpu += u.cpu != RP_NOT_MEASURED ? u.cpu : 0;
		*memory += u.memory != RP_NOT_MEASURED ? u.memory : 0;
	}
	ctr_list_free(&list);
	return n < 0 ? n : 0;
}

static int64_t load_of(const struct modhost *h, int64_t node, int64_t others)
{
	int64_t loads[2] = {0};
	if (h->work)
		(void)koord_load(h, loads);
	int64_t load = calc_max(loads[0], loads[1]);
	return node > 0 ? (int64_t)((double)load * (double)others / (double)node) : load;
}

static void reclaimed_give_cpu(const struct rp_instance *inst, const struct rp_nr_sink *out,
			       const struct rp_nr_node *node, const struct rp_nr_measured *m,
			       int64_t theirs)
{
	char text[MESSAGE_MAX];
	int64_t usage = calc_max(0, m->node[RP_NR_CPU] - theirs);
	int64_t load = load_of(&inst->h, m->node[RP_NR_CPU], usage), reserve = inst->plan->reserve;
	int64_t kept = (reserve + calc_max(usage, load) + 999) / 1000 * 1000;
	int64_t value = calc_max(0, calc_known(node->allocatable[RP_NR_CPU]) - kept);
	(void)snprintf(text, sizeof text,
		       "%lld = allocatable %lld - %lld: reserve %lld and the larger of usage %lld "
		       "and load %lld, in whole CPUs",
		       (long long)value, (long long)node->allocatable[RP_NR_CPU], (long long)kept,
		       (long long)reserve, (long long)usage, (long long)load);
	calc_give(out, names[0], value, NULL, 0, text);
}

static void reclaimed_give_memory(const struct rp_instance *inst, const struct rp_nr_sink *out,
				  const struct rp_nr_node *node, const struct rp_nr_measured *m,
				  int64_t theirs)
{
	char text[MESSAGE_MAX];
	int64_t usage = calc_max(0, m->node[RP_NR_MEMORY] - theirs);
	int64_t reserve = inst->plan->reserve_memory;
	int64_t value = calc_max(0, calc_known(node->allocatable[RP_NR_MEMORY]) - reserve - usage);
	(void)snprintf(text, sizeof text, "%lld = allocatable %lld - reserve %lld - usage %lld",
		       (long long)value, (long long)node->allocatable[RP_NR_MEMORY],
		       (long long)reserve, (long long)usage);
	calc_give(out, names[1], value, NULL, 0, text);
}

static int32_t reclaimed_calculate(struct rp_instance *inst, const struct rp_nr_sink *out)
{
	const struct modhost *h = &inst->h;
	struct rp_nr_node node;
	struct rp_nr_measured m;
	char text[MESSAGE_MAX];
	int64_t cpu, memory;
	int32_t r = calc_node(h, &node, &m);
	if (r)
		return r;
	if (m.degraded || m.node[RP_NR_CPU] == RP_NOT_SET || m.node[RP_NR_MEMORY] == RP_NOT_SET) {
		calc_reset(out, names, calc_why_degraded(&m, text, sizeof text));
		return 0;
	}
	r = used_by_them(h, &cpu, &memory);
	if (r)
		return r;
	reclaimed_give_cpu(inst, out, &node, &m, cpu);
	reclaimed_give_memory(inst, out, &node, &m, memory);
	return 0;
}

static const struct rp_calculator calculator = {
	CALC_LIFE,
	.resources = names,
	.annotations = no_names,
	.calculate = reclaimed_calculate,
};

static const struct calc_ops ops = {
	.plan_size = sizeof(struct rp_plan), .read = plan_read, .schema = &schema};

CALC_MODULE("reclaimed", "1.0", ops, calculator,
	    .summary = "CPU and memory that pods of reclaimed_cores may request: what is not used",
	    .licence = "Apache-2.0");
