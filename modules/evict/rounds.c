/* SPDX-License-Identifier: Apache-2.0 */
/* A round: applies the six rules to a reading, and requests or withdraws evictions. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "modules/lib/private/table.h"

#include "modules/evict/evict.h"

#define WINDOW_READINGS 600u /* a reading per second of BE pods for the longest window */
#define REASON_MAX 200u

/* A pod chosen by a rule. */
struct chosen {
	rp_pod pod;
	uint32_t rule;
	uint64_t round; /* last round in which the rule still needed a release */
};

struct be_reading {
	uint64_t at_ms;
	int64_t limit, used, request;
};

struct evict_rounds {
	struct be_reading be[WINDOW_READINGS]; /* ring buffer of readings of BE pods */
	uint32_t n_be, next_be;
	uint64_t cooled_ms[RP_NR_AMOUNTS]; /* monotonic time of the next possible eviction */
	struct table chosen; /* struct chosen, by pod */
	uint64_t round;
	uint64_t n_asked[EVICT_RULES], n_told[EVICT_RULES];
};

/* State of one round. */
struct deciding {
	struct rp_instance *inst;
	struct evict_rounds *r;
	struct evict_pod *pods;
	uint32_t n;
	uint64_t now;
	bool cluster; /* a node agent is connected */
};

struct evict_rounds *evict_rounds_new(void)
{
	return calloc(1, sizeof(struct evict_rounds));
}

void evict_rounds_free(struct evict_rounds *r)
{
	if (r)
		table_free(&r->chosen);
	free(r);
}

void evict_rounds_reset(struct evict_rounds *r)
{
	r->n_be = r->next_be = 0;
}

/* ---- choice ---------------------------------------------------------------------------------- */

static struct chosen *rounds_choose(struct evict_rounds *r, rp_pod pod, uint32_t rule)
{
	if (table_get(&r->chosen, pod))
		return NULL; /* the pod was already chosen and logged */
	struct chosen *c = table_make(&r->chosen, pod, sizeof *c);
	if (c)
		*c = (struct chosen){pod, rule, r->round};
	return c;
}

static void rounds_ask(const struct deciding *d, const struct evict_pod *pod, uint32_t rule,
		       const char *reason)
{
	const struct modhost *h = &d->inst->h;
	struct chosen *c = rounds_choose(d->r, pod->pod, rule);
	if (!c)
		return;
	if (d->cluster && !h->evict->evict(h->ctx, pod->pod, -1, reason)) {
		d->r->n_asked[rule]++;
		modhost_log(h, RP_LOG_NOTICE, pod->pod,
			    "%s: requested its eviction from the cluster: %s", pod->name, reason);
		return;
	}
	d->r->n_told[rule]++;
	modhost_log(h, RP_LOG_WARNING, pod->pod,
		    "%s: should be evicted, but no cluster is connected: %s", pod->name, reason);
}

/* Keeps the pods chosen by a rule that still needs a release. */
static void still_wanted(struct evict_rounds *r, uint32_t rule)
{
	struct chosen *c;
	TABLE_EACH (c, &r->chosen)
		if (c->rule == rule)
			c->round = r->round;
}

__attribute__((format(printf, 3, 4))) static void rounds_release(struct deciding *d,
								 const struct evict_need *need,
								 const char *fmt, ...)
{
	char reason[REASON_MAX];
	va_list ap;
	if (need->release <= 0)
		return;
	still_wanted(d->r, need->rule);
	if (d->now < d->r->cooled_ms[need->amount])
		return;
	va_start(ap, fmt);
	(void)vsnprintf(reason, sizeof reason, fmt, ap);
	va_end(ap);
	uint32_t n = evict_choose(d->pods, d->n, need);
	for (uint32_t i = 0; i < n; i++) {
		rounds_ask(d, &d->pods[i], need->rule, reason);
		d->pods[i].leaves = true;
	}
	if (n)
		d->r->cooled_ms[need->amount] = d->now + d->inst->plan->cool_ms[need->amount];
}

/* Withdraws requests that are not granted and that no rule needs any more. */
static void withdraw_others(struct deciding *d)
{
	const struct modhost *h = &d->inst->h;
	struct chosen *c;
	struct rp_pod_info info = {.size = sizeof info};
	TABLE_EACH (c, &d->r->chosen) {
		bool gone = h->cache->get_pod(h->ctx, c->pod, &info) != 0;
		info.size = sizeof info;
		if (!gone && c->round == d->r->round)
			continue;
		if (!gone && h->evict)
			h->evict->withdraw(h->ctx, c->pod);
		table_del(&d->r->chosen, c->pod);
		free(c);
	}
}

/* ---- rules ----------------------------------------------------------------------------------- */

static int64_t rounds_lent(const struct modhost *h, uint32_t class, uint32_t amount)
{
	int64_t v;
	return h->node->allocatable(h->ctx, evict_lent_names[class][amount], &v) ? RP_NOT_SET : v;
}

static bool knows_node(const struct modhost *h)
{
	return h->node && h->node->name(h->ctx);
}

static void put_be(struct deciding *d, const struct evict_reading *read)
{
	const struct rp_plan *plan = d->inst->plan;
	struct be_reading be = {.at_ms = d->now, .limit = read->be_limit};
	if (plan->by_allocatable) {
		int64_t of = knows_node(&d->inst->h)
				     ? rounds_lent(&d->inst->h, EVICT_BATCH, RP_NR_CPU)
				     : RP_NOT_SET;
		be.limit = of == RP_NOT_SET || of <= 0 ? 1 : of;
	}
	for (uint32_t i = 0; i < d->n; i++)
		if (d->pods[i].is_be) {
			be.used += d->pods[i].used[RP_NR_CPU];
			be.request += d->pods[i].request[EVICT_BATCH][RP_NR_CPU];
		}
	d->r->be[d->r->next_be] = be;
	d->r->next_be = (d->r->next_be + 1) % WINDOW_READINGS;
	d->r->n_be += d->r->n_be < WINDOW_READINGS;
}

static void average_be(const struct deciding *d, uint64_t window_ms, struct evict_be *ret)
{
	const struct evict_rounds *r = d->r;
	*ret = (struct evict_be){0};
	for (uint32_t i = 0; i < r->n_be; i++) {
		const struct be_reading *one =
			&r->be[(r->next_be + 2 * WINDOW_READINGS - 1 - i) % WINDOW_READINGS];
		if (i && d->now - one->at_ms >= window_ms)
			break;
		ret->count++;
		ret->limit += one->limit;
		ret->used += one->used;
		ret->request += one->request;
	}
	if (ret->count) {
		ret->limit /= ret->count;
		ret->used /= ret->count;
		ret->request /= ret->count;
	}
}

static void by_satisfaction(struct deciding *d, const struct evict_reading *read)
{
	const struct rp_plan *plan = d->inst->plan;
	if (plan->be_lower == RP_NOT_SET || plan->be_upper == RP_NOT_SET ||
	    read->be_limit == RP_NOT_SET)
		return;
	put_be(d, read);
	struct evict_satisfaction s = {
		.lower_percent = plan->be_lower,
		.upper_percent = plan->be_upper,
		.usage_percent = plan->be_usage,
		.window_s = plan->be_window_s,
		.period_s = calc_max(1, (int64_t)plan->interval_ms / 1000),
	};
	average_be(d, 1000 * (uint64_t)plan->be_window_s, &s.average);
	average_be(d, 1, &s.current);
	const struct evict_need need = {.rule = EVICT_BE_CPU,
					.amount = RP_NR_CPU,
					.release = evict_by_satisfaction(&s),
					.priority_max = RP_NOT_SET};
	rounds_release(d, &need,
		       "BE pods have %" PRId64 " of the %" PRId64
		       " requested milli-CPU and use them up",
		       s.average.limit, s.average.request);
}

static void by_usage(struct deciding *d, uint32_t amount, int64_t cap, int64_t used)
{
	const struct rp_plan *plan = d->inst->plan;
	const struct evict_percents *p = &plan->by_usage[amount];
	bool memory = amount == RP_NR_MEMORY;
	if (p->threshold == RP_NOT_SET || used == RP_NOT_SET || cap <= 0)
		return;
	struct evict_need need = {.rule = memory ? EVICT_MEMORY : EVICT_CPU,
				  .amount = amount,
				  .release = evict_by_usage(cap, used, p->threshold, p->lower),
				  .priority_max = plan->priority_max};
	int64_t percent = (int64_t)((__int128)used * 100 / cap);
	if (plan->priority_max != RP_NOT_SET)
		rounds_release(d, &need,
			       "%" PRId64 " percent of the node's %s are used, threshold %" PRId64,
			       percent, calc_amount_names[amount], p->threshold);
	need.rule = EVICT_BE_MEMORY;
	need.priority_max = RP_NOT_SET;
	if (memory)
		rounds_release(d, &need,
			       "%" PRId64
			       " percent of the node's memory are used, threshold %" PRId64,
			       percent, p->threshold);
}

static void by_allocatable(struct deciding *d, uint32_t amount)
{
	const struct rp_plan *plan = d->inst->plan;
	const struct evict_percents *p = &plan->by_lent[amount];
	static const char *const classes[] = {"batch", "mid"};
	if (p->threshold == RP_NOT_SET || plan->lent_priority_max == RP_NOT_SET ||
	    !knows_node(&d->inst->h))
		return;
	for (uint32_t c = 0; c < EVICT_LENT; c++) {
		int64_t request = 0, allocatable = rounds_lent(&d->inst->h, c, amount);
		for (uint32_t i = 0; i < d->n; i++)
			if (evict_class(d->pods[i].priority) == c &&
			    d->pods[i].priority <= plan->lent_priority_max)
				request += d->pods[i].request[c][amount];
		const struct evict_need need = {
			.rule = amount == RP_NR_CPU ? EVICT_CPU_ALLOCATABLE
						    : EVICT_MEMORY_ALLOCATABLE,
			.amount = amount,
			.lent = c,
			.release =
				evict_by_allocatable(allocatable, request, p->threshold, p->lower),
			.priority_max = plan->lent_priority_max};
		rounds_release(d, &need,
			       "%s pods request %" PRId64
			       " of %s, and the node overcommits %" PRId64,
			       classes[c], request, calc_amount_names[amount],
			       allocatable == RP_NOT_SET ? 0 : allocatable);
	}
}

void evict_decide(struct rp_instance *inst, const struct evict_reading *read)
{
	const struct modhost *h = &inst->h;
	struct deciding d = {.inst = inst, .r = inst->rounds, .now = h->timer->now_ms(h->ctx)};
	d.pods = evict_survey(inst, &d.n);
	d.cluster = h->evict && h->evict->available(h->ctx);
	if (!d.pods)
		return;
	d.r->round++;
	int64_t used = koord_used(&inst->timer.rate, d.now, read->busy_us);
	by_satisfaction(&d, read);
	by_usage(&d, RP_NR_CPU, koord_capacity(h), used);
	by_usage(&d, RP_NR_MEMORY, read->mem_total, read->mem_used);
	by_allocatable(&d, RP_NR_CPU);
	by_allocatable(&d, RP_NR_MEMORY);
	withdraw_others(&d);
	free(d.pods);
}

int32_t evict_collect(struct rp_instance *inst, const struct rp_metric_sink *sink)
{
	const struct evict_rounds *r = inst->rounds;
	char labels[64];
	for (uint32_t rule = 0; rule < EVICT_RULES; rule++) {
		(void)snprintf(labels, sizeof labels, "reason=\"%s\"", evict_rule_names[rule]);
		sink->counter(sink->ctx, "asked_total",
			      "Pods whose eviction was requested from the cluster.", labels,
			      (double)r->n_asked[rule]);
		sink->counter(sink->ctx, "told_total",
			      "Pods not evicted because no cluster is connected.", labels,
			      (double)r->n_told[rule]);
	}
	return 0;
}
