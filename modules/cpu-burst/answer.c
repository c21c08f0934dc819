/* SPDX-License-Identifier: Apache-2.0 */
/* Offers the rules of cpu-burst as decisions (nri-rp.decision/1), so that tables of inputs and
 * results can test them. */
#include <string.h>

#include "modules/cpu-burst/cpu-burst.h"
#include <nri-rp/lib/section.h>

static double answer_number(const struct modhost *h, const struct rp_question *q, const char *path)
{
	return h->config->number(h->ctx, q->input(q->ctx, path), 0);
}

static void answer_node(const struct modhost *h, const struct rp_question *q,
			const struct rp_answer *a)
{
	rp_cfg pods = q->input(q->ctx, "pods");
	int64_t shared = decide_in(h, q, "cpus", RP_T_CPU, 0);
	bool known = shared > 0;
	int64_t used = decide_in(h, q, "nodeUsed", RP_T_CPU, RP_NOT_SET);
	for (uint32_t i = 0; i < h->config->count(h->ctx, pods); i++) {
		rp_cfg pod = h->config->item(h->ctx, pods, i);
		uint32_t qos = koord_qos_of(section_text(h, pod, "qos", ""));
		bool owns = qos == RP_KOORD_LSE || qos == RP_KOORD_LSR;
		shared -= owns ? section_value(h, pod, "request", RP_T_CPU, 0) : 0;
		if (used != RP_NOT_SET && (owns || qos == RP_KOORD_BE))
			used -= section_value(h, pod, "used", RP_T_CPU, 0);
	}
	a->result(a->ctx, "state",
		  burst_node_names[burst_node_state(
			  shared, known ? used : RP_NOT_SET,
			  decide_in(h, q, "thresholdPercent", RP_T_INT, 50))]);
}

static int32_t answer_quota(const struct modhost *h, const struct rp_question *q,
			    const struct rp_answer *a)
{
	struct burst_config c = {
		.quota_percent = decide_in(h, q, "percent", RP_T_INT, 300),
		.period_s = decide_in(h, q, "periodSeconds", RP_T_INT, BURST_NO_PERIOD)};
	const char *state = decide_in_text(h, q, "state", "unknown");
	enum burst_node node = BURST_UNKNOWN;
	if (!burst_policy(decide_in_text(h, q, "policy", "none"), &c))
		return modhost_fail(h, -RP_EINVAL, "unknown policy");
	while (node < BURST_OVERLOAD && strcmp(burst_node_names[node], state) != 0)
		node++;
	bool allowed = decide_in(h, q, "allow", RP_T_BOOL, 1) != 0;
	enum burst_way way = burst_way(&c, allowed, answer_number(h, q, "throttled") > 0, node);
	decide_out(a, "quota",
		   burst_quota(way, 100 * decide_in(h, q, "limitMilli", RP_T_INT, 0),
			       c.quota_percent, decide_in(h, q, "current", RP_T_INT, 0)));
	return 0;
}

static void answer_savings(const struct modhost *h, const struct rp_question *q,
			   const struct rp_answer *a)
{
	struct burst_savings s;
	burst_savings_begin(&s, decide_in(h, q, "periodSeconds", RP_T_INT, 0),
			    decide_in(h, q, "maxPercent", RP_T_INT, 0),
			    (int64_t)(answer_number(h, q, "initRatio") * 1000 + 0.5));
	bool allow = burst_savings_put(&s, decide_in(h, q, "usagePercent", RP_T_INT, 0),
				       decide_in(h, q, "elapsedSeconds", RP_T_INT, 0));
	a->result(a->ctx, "allow", allow ? "true" : "false");
	decide_out(a, "tokens", s.tokens);
}

static int32_t answer_answer(struct rp_instance *inst, const struct rp_question *q,
			     const struct rp_answer *a)
{
	const struct modhost *h = koord_host(inst);
	if (strcmp(q->kind, "burst-quota") == 0)
		return answer_quota(h, q, a);
	if (strcmp(q->kind, "burst-node-state") == 0)
		answer_node(h, q, a);
	else
		answer_savings(h, q, a);
	return 0;
}

static const char *const kinds[] = {"burst-node-state", "burst-quota", "burst-limiter", NULL};

const struct rp_decision burst_decision = {
	.size = sizeof(struct rp_decision),
	.kinds = kinds,
	.decide = answer_answer,
};
