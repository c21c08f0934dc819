/* SPDX-License-Identifier: Apache-2.0 */
/* Evictions: the list, the requests to the agent one at a time with growing delays, and the service
 * for modules. */
#include "core/nri-rpd/pipeline/node/evict.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "core/nri-rpd/pipeline/internal.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/str.h"
#include "core/lib/util/clock.h"

#define LOG_SOURCE "evict"

struct evictions {
	struct loop_timer *timer; /* fires when the next request is due */
	struct evict_source source; /* connection to the agent; `ask` NULL: no agent is connected */
	struct eviction *list;
	unsigned n; /* entries in the list */
	rp_pod asked; /* pod of the outstanding request; 0: none */
};

/* ---- the list -------------------------------------------------------------------------------- */

static void evict_drop(struct evictions *e, struct eviction *v)
{
	assert(e->n);
	DL_DELETE(e->list, v);
	e->n--;
	free(v->reason);
	free(v->why);
	free(v);
}

/* Removes evictions whose pods were removed: they have reached their aim. */
static void drop_gone(struct pipeline *p)
{
	struct eviction *v, *next;
	DL_FOREACH_SAFE(p->node.evictions->list, v, next)
	{
		if (!cache_pod_of(p->env.cache, v->pod))
			evict_drop(p->node.evictions, v);
	}
}

static struct eviction *evict_find(const struct evictions *e, rp_pod pod)
{
	struct eviction *v;
	DL_FOREACH (e->list, v)
		if (v->pod == pod)
			return v;
	return NULL;
}

/* ---- requests to the agent ------------------------------------------------------------------- */

static void ask_next(void *arg);

static void evict_arm(struct pipeline *p)
{
	const struct evictions *e = p->node.evictions;
	const struct eviction *v;
	uint64_t due = 0, now = clock_ms();
	if (!e->source.ask || e->asked)
		return;
	DL_FOREACH (e->list, v)
		if (v->due_ms && (!due || v->due_ms < due))
			due = v->due_ms;
	if (due)
		(void)loop_timer_arm(e->timer, due > now ? due - now : 0);
}

static uint64_t pause_ms(const struct eviction *v)
{
	uint64_t ms = EVICT_AGAIN_MS;
	for (uint32_t i = 1; i < v->asked && ms < EVICT_AGAIN_MAX_MS; i++)
		ms *= 2;
	return ms < EVICT_AGAIN_MAX_MS ? ms : EVICT_AGAIN_MAX_MS;
}

static void evict_ask(struct pipeline *p, struct eviction *v)
{
	struct evictions *e = p->node.evictions;
	v->asked++;
	v->due_ms = clock_ms() + pause_ms(v);
	if (e->source.ask(e->source.arg, cache_pod_of(p->env.cache, v->pod), v->grace_s) == 0)
		e->asked = v->pod;
}

static void ask_next(void *arg)
{
	struct pipeline *p = arg;
	const struct evictions *e = p->node.evictions;
	struct eviction *v, *first = NULL;
	uint64_t now = clock_ms();
	drop_gone(p);
	DL_FOREACH (e->list, v)
		if (v->due_ms && v->due_ms <= now && (!first || v->due_ms < first->due_ms))
			first = v;
	if (first && e->source.ask && !e->asked)
		evict_ask(p, first);
	evict_arm(p);
}

void pipeline_evict_source(struct pipeline *p, const struct evict_source *source)
{
	struct evictions *e = p->node.evictions;
	struct eviction *v = evict_find(e, e->asked);
	e->source = source ? *source : (struct evict_source){NULL, NULL};
	e->asked = 0;
	if (v)
		v->due_ms = clock_ms();
	loop_timer_disarm(e->timer);
	evict_arm(p);
}

/* ---- answers of the agent -------------------------------------------------------------------- */

static void take_answer(struct eviction *v, enum evict_answer answer)
{
	static const uint32_t states[] = {[EVICT_GRANTED] = RP_EVICTION_GRANTED,
					  [EVICT_REFUSED] = RP_EVICTION_REFUSED,
					  [EVICT_GONE] = RP_EVICTION_FAILED,
					  [EVICT_DENIED] = RP_EVICTION_FAILED};
	if (answer == EVICT_UNANSWERED)
		return;
	v->state = states[answer];
	if (answer == EVICT_GRANTED || answer == EVICT_GONE)
		v->due_ms = 0;
}

void pipeline_evict_told(struct pipeline *p, rp_pod pod, enum evict_answer answer, const char *text)
{
	struct evictions *e = p->node.evictions;
	struct eviction *v = evict_find(e, pod);
	const struct pod *of = cache_pod_of(p->env.cache, pod);
	if (e->asked == pod)
		e->asked = 0;
	if (v && of) {
		uint32_t before = v->state;
		char *why = strdup(text);
		if (why)
			str_one_line(why);
		free(v->why);
		v->why = why;
		take_answer(v, answer);
		if (v->state != before)
			pipeline_event(p, EV_EVICTION, "%s/%s: eviction %s%s%.300s", of->ns,
				       of->name, eviction_state_name(v->state), *text ? ": " : "",
				       why ? why : "");
	}
	evict_arm(p);
}

/* ---- the service for modules ----------------------------------------------------------------- */

static bool available(void *arg)
{
	return ((const struct pipeline *)arg)->node.evictions->source.ask != NULL;
}

static int evict(const struct instance *i, struct pod *pod, int64_t grace_s, const char *reason,
		 void *arg)
{
	struct pipeline *p = arg;
	struct evictions *e = p->node.evictions;
	drop_gone(p);
	if (evict_find(e, pod->handle))
		return 0;
	if (e->n == RP_EVICTIONS_MAX)
		return -E2BIG;
	struct eviction *v = calloc(1, sizeof *v);
	char *copy = strdup(reason);
	if (!v || !copy) {
		free(v);
		free(copy);
		return -ENOMEM;
	}
	str_one_line(copy);
	*v = (struct eviction){.pod = pod->handle,
			       .owner = i,
			       .grace_s = grace_s,
			       .state = RP_EVICTION_ASKED,
			       .reason = copy,
			       .due_ms = clock_ms()};
	DL_APPEND(e->list, v);
	e->n++;
	pipeline_event(p, EV_EVICTION, "%s/%s: %s requests its eviction: %.300s", pod->ns,
		       pod->name, instance_name(i), copy);
	evict_arm(p);
	return 0;
}

static void withdraw(const struct instance *i, rp_pod pod, void *arg)
{
	struct evictions *e = ((struct pipeline *)arg)->node.evictions;
	struct eviction *v = evict_find(e, pod);
	if (v && v->owner == i)
		evict_drop(e, v);
}

static uint32_t state(rp_pod pod, const char **ret_why, void *arg)
{
	struct pipeline *p = arg;
	const struct eviction *v =
		cache_pod_of(p->env.cache, pod) ? evict_find(p->node.evictions, pod) : NULL;
	if (v && v->why)
		*ret_why = v->why;
	return v ? v->state : RP_EVICTION_NONE;
}

static void forget(const struct instance *i, void *arg)
{
	struct evictions *e = ((struct pipeline *)arg)->node.evictions;
	struct eviction *v, *next;
	DL_FOREACH_SAFE(e->list, v, next)
	{
		if (v->owner == i)
			evict_drop(e, v);
	}
}

static const struct evict_ops ops = {
	.available = available,
	.evict = evict,
	.withdraw = withdraw,
	.state = state,
	.forget = forget,
};

/* ---- status, start and end ------------------------------------------------------------------- */

const char *eviction_state_name(uint32_t of)
{
	static const char *const names[] = {
		[RP_EVICTION_NONE] = "none",	   [RP_EVICTION_ASKED] = "asked",
		[RP_EVICTION_REFUSED] = "refused", [RP_EVICTION_GRANTED] = "granted",
		[RP_EVICTION_FAILED] = "failed",
	};
	return names[of];
}

const struct eviction *pipeline_evictions(struct pipeline *p)
{
	drop_gone(p);
	return p->node.evictions->list;
}

int evict_init(struct pipeline *p)
{
	p->node.evictions = calloc(1, sizeof *p->node.evictions);
	if (!p->node.evictions)
		return -ENOMEM;
	p->node.evictions->timer = loop_timer_new(p->env.loop, ask_next, p);
	if (!p->node.evictions->timer)
		return -ENOMEM;
	p->env.evict = &ops;
	return 0;
}

void evict_fini(struct pipeline *p)
{
	struct evictions *e = p->node.evictions;
	if (!e)
		return;
	while (e->list)
		evict_drop(e, e->list);
	loop_timer_free(e->timer);
	free(e);
	p->node.evictions = NULL;
	p->env.evict = NULL;
}
