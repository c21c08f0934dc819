/* SPDX-License-Identifier: Apache-2.0 */
/* Sums over pods and applications, items, and the callbacks of calculators. */
#include <nri-rp/lib/calc.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THOUSANDTHS 1000

const char *const calc_amount_names[RP_NR_AMOUNTS] = {"cpu", "memory"};

int64_t calc_percent(int64_t value, int64_t percent)
{
	/* A strategy may configure any percentage, so the result is limited to what can be summed
	 * up in int64_t. */
	const __int128 most = 4 * RP_NR_AMOUNT_MAX;
	__int128 part = (__int128)value * percent / 100;
	return (int64_t)(part > most ? most : part < -most ? -most : part);
}

struct calc_amounts calc_node_reserved(const struct rp_nr_node *node)
{
	struct calc_amounts sum;
	for (uint32_t k = 0; k < RP_NR_AMOUNTS; k++) {
		int64_t cap = calc_known(node->capacity[k]);
		int64_t alloc = node->allocatable[k] == RP_NOT_SET ? cap : node->allocatable[k];
		sum.of[k] = calc_max(calc_max(0, cap - alloc), calc_known(node->reserved[k]));
	}
	return sum;
}

struct calc_amounts calc_apps(const struct modhost *h, bool mid_too)
{
	struct calc_amounts sum = {{0}};
	struct rp_nr_app app = {.size = sizeof app};
	for (uint32_t i = 0; !h->noderes->app(h->ctx, i, &app); i++) {
		bool counts = app.prio == RP_PRIO_PROD || (mid_too && app.prio == RP_PRIO_MID);
		for (uint32_t k = 0; counts && k < RP_NR_AMOUNTS; k++)
			sum.of[k] += calc_known(app.usage[k]);
		app.size = sizeof app;
	}
	return sum;
}

void calc_give(const struct rp_nr_sink *out, const char *name, int64_t units, const int64_t *zones,
	       uint32_t n_zones, const char *message)
{
	const struct rp_nr_item item = {.size = sizeof item,
					.name = name,
					.quantity = units * THOUSANDTHS,
					.zones = zones,
					.n_zones = n_zones,
					.message = message};
	out->item(out->ctx, &item);
}

void calc_reset(const struct rp_nr_sink *out, const char *const *names, const char *message)
{
	for (; *names; names++) {
		const struct rp_nr_item item = {.size = sizeof item,
						.flags = RP_NR_ITEM_RESET,
						.name = *names,
						.quantity = RP_NOT_SET,
						.message = message};
		out->item(out->ctx, &item);
	}
}

const char *calc_why_degraded(const struct rp_nr_measured *m, char *text, size_t size)
{
	if (m->age_ms == RP_NOT_SET)
		(void)snprintf(text, size, "no measurement yet");
	else
		(void)snprintf(text, size,
			       "the last reading is %lld s old: too old, or the first one (usage "
			       "needs two readings)",
			       (long long)(m->age_ms / 1000));
	return text;
}

int64_t calc_millionths(const char *text)
{
	char *end;
	if (!*text || text[strspn(text, "0123456789.")])
		return -1;
	double v = strtod(text, &end);
	return *end || v < 0 || v > 1000 ? -1 : (int64_t)(v * CALC_MILLION + 0.5);
}

/* ---- the module ------------------------------------------------------------------------------ */

int32_t calc_create(const struct rp_host *host, const struct calc_ops *ops,
		    struct rp_instance **ret)
{
	int32_t r = modhost_instance(host, sizeof(struct rp_instance), MODHOST_CALCULATOR, ret);
	if (!r)
		(*ret)->ops = ops;
	return r;
}

/* The plan of a calculator without a configuration. NULL would be a refusal for the host. */
static char no_plan;

void calc_abort(struct rp_instance *inst, struct rp_plan *plan)
{
	if (plan == (struct rp_plan *)(void *)&no_plan)
		return;
	if (inst->ops->plan_free)
		inst->ops->plan_free(plan);
	else
		free(plan);
}

void calc_destroy(struct rp_instance *inst)
{
	calc_abort(inst, inst->plan);
	free(inst);
}

int32_t calc_prepare(struct rp_instance *inst, rp_cfg cfg, struct rp_plan **ret)
{
	const struct calc_ops *ops = inst->ops;
	struct rp_plan *plan = ops->read ? calloc(1, ops->plan_size) : (void *)&no_plan;
	if (!plan)
		return modhost_no_memory(&inst->h);
	int32_t r = ops->read	? ops->read(&inst->h, cfg, plan)
		    : ops->plan ? ops->plan(&inst->h, cfg, &plan)
				: 0;
	if (!r)
		*ret = plan;
	else if (ops->read)
		free(plan);
	return r;
}

void calc_commit(struct rp_instance *inst, struct rp_plan *plan)
{
	calc_abort(inst, inst->plan);
	inst->plan = plan;
}
