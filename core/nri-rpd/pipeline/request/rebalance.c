/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Occasions at which the policy may move containers: a timer, an operator's command, pressure of a
 * container. Each occasion has a limit (rebalanceMoves). A decision that exceeds the limit is
 * dropped as a whole, so that a policy's effect on a loaded node is bounded.
 */
#include <stdio.h>

#include "core/nri-rpd/cache/usage.h"
#include "core/nri-rpd/pipeline/internal.h"
#include "core/lib/util/log.h"
#include "core/nri-rpd/pipeline/controllers/life.h"
#include "core/nri-rpd/pipeline/request/rebalance.h"

#define LOG_SOURCE "rebalance"

struct occasion {
	struct rp_event ev;
	uint32_t budget; /* number of containers that may still be moved; 0: any number */
	unsigned n_moves;
};

/*
 * Returns true if the decision moves the container. Not counted: a container of a shared pool whose
 * CPUs change while its private data stays equal, and a container that ran degraded and gets its
 * place now.
 */
static bool has_moved(const struct stage *s)
{
	const struct decision *a = &s->ctr->cur, *b = &s->next;
	if ((a->cpus == b->cpus && a->mems == b->mems) || (a->degraded && !b->degraded))
		return false;
	return !a->private_data || !blob_equal(a->private_data, b->private_data);
}

unsigned rebalance_count(const struct pipeline *p)
{
	unsigned n = 0;
	for (const struct stage *s = decide_touched(p); s; s = s->link)
		n += has_moved(s);
	return n;
}

static int rebalance_deliver(struct pipeline *p, void *arg, struct err *err)
{
	struct occasion *o = arg;
	int r = instance_event(p->policy, &o->ev, err);
	if (r)
		return r;
	o->n_moves = rebalance_count(p);
	if (!o->budget || o->n_moves <= o->budget)
		return 0;
	return err_set(err, -E2BIG, "it would move %u containers, at most %u are allowed",
		       o->n_moves, o->budget);
}

static bool rebalance_listens(const struct pipeline *p)
{
	return p->policy && instance_handles_events(p->policy);
}

static uint32_t budget_of(const struct pipeline *p)
{
	return conf_core(p->conf)->rebalance_moves;
}

int pipeline_rebalance(struct pipeline *p, uint32_t budget, unsigned *ret_moves, struct err *err)
{
	struct occasion o = {
		.ev = {.size = sizeof o.ev, .type = RP_EVENT_REBALANCE, .cookie = budget},
		.budget = budget};
	if (!rebalance_listens(p))
		return err_set(err, -ENOTSUP, "policy %s does not rebalance",
			       p->policy ? instance_name(p->policy) : "none");
	if (!p->runtime.synchronized)
		return err_set(err, -EAGAIN, "the runtime has not sent its list of containers yet");
	int r = WATCHED(p, decide_event(p, rebalance_deliver, &o, err));
	if (!r)
		p->stats.rebalances++;
	if (!r && ret_moves)
		*ret_moves = o.n_moves;
	return r;
}

void rebalance_timer(void *arg)
{
	struct pipeline *p = arg;
	struct err err = ERR_INIT;
	int r = pipeline_rebalance(p, budget_of(p), NULL, &err);
	if (r && r != -EAGAIN)
		log_warning("policy %s: %s", instance_name(p->policy), err_text(&err, r));
	pipeline_arm_rebalance(p);
}

void pipeline_arm_rebalance(struct pipeline *p)
{
	uint64_t interval_ms = conf_core(p->conf)->rebalance_ms;
	if (!interval_ms || !rebalance_listens(p))
		loop_timer_disarm(p->requests.rebalance_timer);
	else
		(void)loop_timer_arm(p->requests.rebalance_timer, interval_ms);
}

/* ---- pressure -------------------------------------------------------------------------------- */

static const struct {
	uint32_t bit;
	const char *text;
} lacks[] = {
	{RP_PRESSURE_THROTTLED, "CPU time above its limit"},
	{RP_PRESSURE_CPU, "CPUs"},
	{RP_PRESSURE_MEMORY, "memory"},
	{RP_PRESSURE_IO, "disk bandwidth"},
};

static void rebalance_describe(uint32_t pressure, char *buf, size_t size)
{
	size_t len = 0;
	buf[0] = '\0';
	for (unsigned i = 0; i < sizeof lacks / sizeof *lacks; i++) {
		if (!(pressure & lacks[i].bit))
			continue;
		int n = snprintf(buf + len, size - len, "%s%s", len ? ", " : "", lacks[i].text);
		len += n > 0 && (size_t)n < size - len ? (size_t)n : 0;
	}
}

void pipeline_pressure(struct pipeline *p, struct ctr *ctr, uint32_t pressure)
{
	struct err err = ERR_INIT;
	char text[160];
	struct occasion o = {
		.ev = {.size = sizeof o.ev,
		       .type = RP_EVENT_PRESSURE,
		       .object = ctr->handle,
		       .cookie = pressure},
		.budget = budget_of(p),
	};
	ctr->usage->pressure = pressure;
	rebalance_describe(pressure, text, sizeof text);
	pipeline_event_of(p, EV_PRESSURE, ctr, NULL,
			  pressure ? "%s: lacks %s" : "%s: no longer short of resources",
			  ctr->full_name, text);
	if (!rebalance_listens(p) || !p->runtime.synchronized)
		return;
	int r = WATCHED(p, decide_event(p, rebalance_deliver, &o, &err));
	if (r)
		log_warning("%s: policy %s: %s", ctr->full_name, instance_name(p->policy),
			    err_text(&err, r));
}

/* ---- measurements ---------------------------------------------------------------------------- */

void pipeline_measure(struct pipeline *p)
{
	watchdog_begin(p->watchdog);
	for (unsigned i = 0; i < p->controllers.n; i++)
		if (controller_runs(p->controllers.list[i]))
			instance_measure(p->controllers.list[i]->instance);
	watchdog_end(p->watchdog);
}

struct usage_stats *pipeline_usage_stats(struct pipeline *p)
{
	return &p->requests.usage;
}
