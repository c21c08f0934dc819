/* SPDX-License-Identifier: Apache-2.0 */
/* Selects events for the cluster, limits their rate, and sends them to the agent. */
#include "core/nri-rpd/agent/event_sender.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/lib/wire/agent_protocol.h"
#include "core/nri-rpd/pipeline/observe/events.h"
#include "core/lib/util/log.h"
#include "core/lib/util/str.h"
#include "proto/agent.pb-c.h"
#include "core/lib/util/clock.h"

#define LOG_SOURCE "agent"
/* number of remembered pairs of event kind and pod; the oldest is replaced first */
#define RECENT_MAX 128u
#define TELL_TIMEOUT_MS 10000u
#define KEY_MAX 600u
#define NS_PER_S UINT64_C(1000000000)

/* Remembered events of one kind about one pod, or about the node. */
struct recent {
	char key[KEY_MAX];
	/* time before which no further event of this kind and pod is sent; 0: the entry is free */
	uint64_t next_ms;
	uint32_t left_out;
};

struct teller {
	struct pipeline *pipeline;
	struct rpc *rpc; /* connection to the agent; NULL: no agent is connected */
	struct loop_timer *timer;
	uint64_t seq; /* number of the last event that was processed */
	uint64_t counted_ms;
	uint32_t allowance;
	struct recent recent[RECENT_MAX];
};

/* ---- selection and rate of events ------------------------------------------------------------ */

struct kind {
	/* reason of the Kubernetes event; NULL: the event is not sent to the cluster */
	const char *reason;
	bool warning;
};

static struct kind kind_of(const struct event *e)
{
	static const struct kind kinds[N_EVENT_KINDS] = {
		[EV_REFUSED] = {"PlacementRefused", true},
		[EV_DEGRADED] = {"PlacementDegraded", true},
		[EV_UPDATE_FAILED] = {"UpdateFailed", true},
		[EV_CONFIG] = {"Configuration", false},
		[EV_MODULE] = {"ModuleFailed", true},
		[EV_LATE] = {"PlacedLate", true},
		[EV_EVICTION] = {"Eviction", false},
	};
	static const char *const bad_news[] = {"refused", "safe mode", "undone", "not confirmed"};
	struct kind k = kinds[e->kind];
	for (unsigned i = 0; e->kind == EV_CONFIG && i < sizeof bad_news / sizeof *bad_news; i++)
		if (str_has_prefix(e->text, bad_news[i]))
			k = (struct kind){"ConfigurationRefused", true};
	return k;
}

static struct recent *recent_of(struct teller *t, const char *key)
{
	struct recent *oldest = &t->recent[0];
	for (unsigned i = 0; i < RECENT_MAX; i++) {
		if (t->recent[i].next_ms && str_eq(t->recent[i].key, key))
			return &t->recent[i];
		if (t->recent[i].next_ms < oldest->next_ms)
			oldest = &t->recent[i];
	}
	*oldest = (struct recent){.next_ms = 1};
	(void)snprintf(oldest->key, sizeof oldest->key, "%s", key);
	return oldest;
}

static void event_sender_refill(struct teller *t, uint64_t now)
{
	uint64_t more = (now - t->counted_ms) / TELLER_REFILL_MS;
	t->counted_ms += more * TELLER_REFILL_MS;
	t->allowance =
		more > TELLER_BURST - t->allowance ? TELLER_BURST : t->allowance + (uint32_t)more;
}

/* Returns the count to send with the event: 1 plus the number of events that were left out before;
 * 0: do not send the event now. */
static uint32_t may_tell(struct teller *t, const char *reason, const char *pod, uint64_t now)
{
	char key[KEY_MAX];
	(void)snprintf(key, sizeof key, "%s %s", reason, pod);
	struct recent *r = recent_of(t, key);
	if (now < r->next_ms || !t->allowance) {
		r->left_out++;
		return 0;
	}
	uint32_t count = r->left_out + 1;
	r->left_out = 0;
	r->next_ms = now + TELLER_AGAIN_MS;
	t->allowance--;
	return count;
}

/* ---- a message ------------------------------------------------------------------------------- */

struct telling {
	Agent__ClusterEvent events[AGENT_EVENTS_MAX], *list[AGENT_EVENTS_MAX];
	char subjects[AGENT_EVENTS_MAX][2 * AGENT_NAME_MAX]; /* namespace NUL pod */
	char reasons[AGENT_EVENTS_MAX][32];
	size_t n;
};

/* Writes "namespace/pod" of "namespace/pod/name"; "": the event is not about a pod. */
static void pod_of(const struct event *e, char *ret, size_t size)
{
	const char *end = e->subject ? strrchr(e->subject, '/') : NULL;
	(void)snprintf(ret, size, "%.*s", end ? (int)(end - e->subject) : 0, end ? e->subject : "");
}

static void event_sender_put(struct telling *to, const struct event *e, const struct kind *k,
			     const char *pod, uint32_t count)
{
	Agent__ClusterEvent *m = &to->events[to->n];
	char *ns = to->subjects[to->n], *slash;
	agent__cluster_event__init(m);
	(void)snprintf(ns, sizeof to->subjects[0], "%s", pod);
	(void)snprintf(to->reasons[to->n], sizeof to->reasons[0], "%s", k->reason);
	slash = strchr(ns, '/');
	if (slash) {
		*slash = '\0';
		m->namespace_ = ns;
		m->pod = slash + 1;
		m->uid = e->uid ? e->uid : m->uid;
	}
	m->reason = to->reasons[to->n];
	m->text = (char *)(uintptr_t)e->text;
	m->warning = k->warning;
	m->time_s = (int64_t)(e->wall_ns / NS_PER_S);
	m->count = count;
	to->list[to->n++] = m;
}

static void event_sender_collect(struct teller *t, struct telling *to)
{
	uint64_t now = clock_ms();
	event_sender_refill(t, now);
	while (to->n < AGENT_EVENTS_MAX) {
		char pod[2 * AGENT_NAME_MAX];
		const struct event *e = pipeline_event_after(t->pipeline, t->seq);
		if (!e)
			return;
		t->seq = e->seq;
		struct kind k = kind_of(e);
		pod_of(e, pod, sizeof pod);
		uint32_t count = k.reason ? may_tell(t, k.reason, pod, now) : 0;
		if (count)
			event_sender_put(to, e, &k, pod, count);
	}
}

static void event_sender_tell(void *arg)
{
	struct teller *t = arg;
	struct telling *to = t->rpc ? calloc(1, sizeof *to) : NULL;
	Agent__TellRequest m = AGENT__TELL_REQUEST__INIT;
	if (!to)
		return;
	event_sender_collect(t, to);
	m.events = to->list;
	m.n_events = to->n;
	if (to->n && rpc_call(t->rpc, AGENT_SERVICE, "Tell", &m.base, TELL_TIMEOUT_MS, NULL, NULL))
		log_info("%zu events are not reported to the cluster", to->n);
	free(to);
	teller_changed(t);
}

void teller_changed(struct teller *t)
{
	if (t->rpc && !loop_timer_armed(t->timer) && pipeline_event_after(t->pipeline, t->seq))
		(void)loop_timer_arm(t->timer, TELLER_QUIET_MS);
}

void teller_set_agent(struct teller *t, struct rpc *rpc)
{
	t->rpc = rpc;
	loop_timer_disarm(t->timer);
	teller_changed(t);
}

/* ---- life ------------------------------------------------------------------------------------ */

struct teller *teller_new(struct loop *loop, struct pipeline *p)
{
	struct teller *t = calloc(1, sizeof *t);
	if (!t)
		return NULL;
	t->pipeline = p;
	t->seq = pipeline_last_event(p);
	t->counted_ms = clock_ms();
	t->allowance = TELLER_BURST;
	t->timer = loop_timer_new(loop, event_sender_tell, t);
	return t->timer ? t : teller_free(t);
}

struct teller *teller_free(struct teller *t)
{
	if (t)
		loop_timer_free(t->timer);
	free(t);
	return NULL;
}
