/* SPDX-License-Identifier: Apache-2.0 */
/* Determines the values of a container by its class, its annotation, its request and its limit. */
#include <stdio.h>

#include "modules/lib/private/annotation.h"
#include <nri-rp/lib/calc.h>
#include <nri-rp/lib/section.h>
#include "modules/memory-qos/memory-qos.h"

#define KEY "koordinator.sh/memoryQOS"

struct memqos_values memqos_decide(const struct memqos_rule *rule, int64_t request, int64_t limit,
				   int64_t allocatable)
{
	struct memqos_values v = {calc_percent(request, rule->min_percent),
				  calc_percent(request, rule->low_percent), MEMQOS_NO_LIMIT};
	if (v.low > 0)
		v.low = calc_max(v.low, v.min);
	if (rule->high_percent) {
		int64_t top = limit ? limit : allocatable;
		int64_t high = request + calc_percent(top - request, rule->high_percent);
		v.high = calc_max(high / MEMQOS_PAGE * MEMQOS_PAGE, v.min);
	}
	return v;
}

void memqos_text(int64_t value, char *buf, size_t size)
{
	if (value == MEMQOS_NO_LIMIT)
		(void)snprintf(buf, size, "max");
	else
		(void)snprintf(buf, size, "%lld", (long long)value);
}

static struct memqos_rule rule_of(const struct modhost *h, const struct rp_plan *c, rp_pod pod)
{
	switch (koord_qos(h, pod)) {
	case RP_KOORD_LSE:
	case RP_KOORD_LSR:
		return c->rules[MEMQOS_LSR];
	case RP_KOORD_LS:
	case RP_KOORD_NONE:
		return c->rules[MEMQOS_LS];
	case RP_KOORD_BE:
		return c->rules[MEMQOS_BE];
	default:
		return (struct memqos_rule){0}; /* values of system pods are not changed */
	}
}

static bool take_percent(const struct modhost *h, rp_cfg map, const char *key, int64_t *ret)
{
	rp_cfg node = section_get(h, map, key);
	int64_t v = node ? h->config->value(h->ctx, node, RP_T_INT, -1) : *ret;
	if (v < 0 || v > 100)
		return false;
	*ret = v;
	return true;
}

/* Applies the pod's annotation: its policy, and with `auto` its own percentages. */
static int32_t rule_annotate(const struct modhost *h, rp_pod pod, struct memqos_rule *rule,
			     char why[CTL_TEXT_MAX])
{
	const char *text = h->cache->pod_annotation(h->ctx, pod, KEY);
	struct memqos_rule own = *rule;
	rp_cfg map = NULL;
	if (!text)
		return 0;
	int32_t r = annotation_parse(h, "annotation " KEY, text, &map);
	const char *policy = section_text(h, map, "policy", "auto");
	bool is_none = strcmp(policy, "none") == 0, is_auto = strcmp(policy, "auto") == 0;
	if (r || (!is_none && !is_auto && strcmp(policy, "default") != 0) ||
	    !take_percent(h, map, "minLimitPercent", &own.min_percent) ||
	    !take_percent(h, map, "lowLimitPercent", &own.low_percent) ||
	    !take_percent(h, map, "throttlingPercent", &own.high_percent)) {
		(void)ctl_format(why, CTL_TEXT_MAX,
				 "annotation " KEY
				 ": expected a map with a policy of default, none or auto, and "
				 "percentages");
		return -RP_EINVAL;
	}
	if (is_none)
		*rule = (struct memqos_rule){0};
	if (is_auto)
		*rule = own;
	return 0;
}

int32_t memqos_values_of(const struct modhost *h, const struct rp_plan *c,
			 const struct rp_ctr_info *info, struct memqos_values *ret,
			 char why[CTL_TEXT_MAX])
{
	struct memqos_rule rule = rule_of(h, c, info->pod);
	int64_t request = info->mem_request, limit = info->mem_limit, lent, lent_limit;
	int32_t r = c->annotations ? rule_annotate(h, info->pod, &rule, why) : 0;
	if (h->cache->extended(h->ctx, info->ctr, KOORD_BATCH_MEMORY, &lent, &lent_limit) == 0) {
		request = lent;
		limit = lent_limit;
	}
	*ret = memqos_decide(&rule, request, limit, c->allocatable);
	return r;
}
