/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-agent/readiness.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "core/nri-rp-agent/writer.h"
#include "core/lib/util/clock.h"
#include "core/lib/util/log.h"
#include "core/lib/util/str.h"

#define LOG_SOURCE "readiness"
#define INTERVAL_MS 1000u
#define REASON_MAX 64u
#define TEXT_MAX 128u
#define RETIRE_POLL_MS 20u
#define RETIRE_MAX_MS 5000u

/* State that is reported; NULL members: none yet. */
struct report {
	const char *status; /* "True", "False" or "Unknown" */
	const char *reason; /* constant text */
};

struct readiness {
	struct link *link;
	struct writer *conditions, *taints;
	struct loop_timer *grace; /* armed while an absence is not reported yet, or at the end */
	struct loop_timer *ask;
	struct report now;
	char unready[REASON_MAX]; /* condition of the daemon; "": it places containers */
	char placing[TEXT_MAX]; /* message of the condition while the daemon places containers */
	uint64_t count_due_ms; /* time at which the message alone may be written again */
	bool connected; /* the daemon has reported over the present connection */
	bool known; /* the two settings below are known */
	bool condition, taint;
	const json_t *seen; /* the condition in node; NULL: none */
	json_t *node; /* the Node as last seen; NULL: none */
	bool newer; /* `node` is newer than the one that the taints were written for */
	void (*retired)(void *arg);
	void *retired_arg;
	uint64_t retire_until_ms;
};

/* Returns the item of a list that has this text under the key; NULL: none. */
static json_t *item_of(const json_t *list, const char *key, const char *text)
{
	json_t *item;
	size_t i;
	json_array_foreach(list, i, item)
	{
		const char *has = json_string_value(json_object_get(item, key));
		if (has && str_eq(has, text))
			return item;
	}
	return NULL;
}

/* ---- the condition --------------------------------------------------------------------------- */

static const char *readiness_text(const struct readiness *r)
{
	if (str_eq(r->now.status, "True"))
		return r->placing;
	if (str_eq(r->now.status, "Unknown"))
		return "nri-rp-agent has stopped and does not watch nri-rpd any more";
	return r->connected
		       ? "nri-rpd does not place containers: run nri-rpctl doctor on the "
			 "node"
		       : "nri-rpd is not connected to nri-rp-agent: containers start unplaced, "
			 "or not at all where the runtime requires it";
}

static const char *seen_member(const struct readiness *r, const char *key)
{
	const char *text = json_string_value(json_object_get(r->seen, key));
	return text ? text : "";
}

/* Returns the condition to write, owned. The time of the transition is that of the status. */
static json_t *readiness_compose(const struct readiness *r)
{
	char at[KUBE_TIME_MAX];
	const char *since = seen_member(r, "lastTransitionTime");
	kube_time(time(NULL), at);
	if (!*since || !str_eq(seen_member(r, "status"), r->now.status))
		since = at;
	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "type", READINESS_CONDITION, "status",
			 r->now.status, "reason", r->now.reason, "message", readiness_text(r),
			 "lastHeartbeatTime", at, "lastTransitionTime", since);
}

/* Writes a patch of the Node. Consumes it; NULL: no memory. */
static void readiness_put(struct writer *w, const char *what, json_t *patch)
{
	if (writer_put(w, patch))
		log_error("the Node's %s cannot be written: no memory", what);
}

/* Returns true if the Node gets a condition. While the settings are unknown, only an existing
 * condition is changed. */
static bool readiness_wants_condition(const struct readiness *r)
{
	return r->known ? r->condition : r->seen != NULL;
}

static bool readiness_status_differs(const struct readiness *r)
{
	return !str_eq(seen_member(r, "status"), r->now.status) ||
	       !str_eq(seen_member(r, "reason"), r->now.reason);
}

static bool readiness_condition_differs(const struct readiness *r)
{
	if (!readiness_wants_condition(r))
		return r->seen != NULL;
	return readiness_status_differs(r) ||
	       (!str_eq(seen_member(r, "message"), readiness_text(r)) &&
		clock_ms() >= r->count_due_ms);
}

static const json_t *readiness_taints(const struct readiness *r)
{
	return json_object_get(json_object_get(r->node, "spec"), "taints");
}

static bool readiness_taint_differs(const struct readiness *r)
{
	bool tainted = item_of(readiness_taints(r), "key", READINESS_TAINT) != NULL;
	return str_eq(r->now.status, "True") ? tainted : !tainted && r->taint;
}

/* Writes or removes the condition. The server merges it into the list by its type. */
static void readiness_write_condition(const struct readiness *r)
{
	json_t *condition =
		readiness_wants_condition(r)
			? readiness_compose(r)
			: json_pack("{s:s, s:s}", "$patch", "delete", "type", READINESS_CONDITION);
	readiness_put(r->conditions, "conditions",
		      json_pack("{s:{s:[o]}}", "status", "conditions", condition));
}

/*
 * Sets or removes the taint. The server replaces the list of taints as a whole, so the patch has
 * all of them and the version of the Node that they were read from: the server refuses it if the
 * Node has changed since. The changed Node arrives by the watch and is compared again.
 */
static void readiness_write_taint(struct readiness *r)
{
	json_t *version = kube_meta(r->node, "resourceVersion");
	const json_t *others = readiness_taints(r);
	const json_t *ours = item_of(others, "key", READINESS_TAINT);
	json_t *list = json_array(), *taint;
	size_t i;
	json_array_foreach(others, i, taint)
	{
		if (taint != ours)
			(void)json_array_append(list, taint);
	}
	if (!ours)
		(void)json_array_append_new(list, json_pack("{s:s, s:s}", "key", READINESS_TAINT,
							    "effect", "NoSchedule"));
	r->newer = false;
	readiness_put(r->taints, "taints",
		      json_pack("{s:{s:O*}, s:{s:o}}", "metadata", "resourceVersion", version,
				"spec", "taints", list));
}

/* Writes the condition, the taint or both if they differ from the Node's. Writes the taint first,
 * because writing the condition creates another version of the Node. */
static void readiness_write(struct readiness *r)
{
	if (!r->now.status || !r->node)
		return;
	/* Replaces a patch that waits, because it is for an older version. */
	if (readiness_taint_differs(r) && !writer_writing(r->taints))
		readiness_write_taint(r);
	if (readiness_condition_differs(r) && writer_idle(r->conditions)) {
		if (!readiness_status_differs(r))
			r->count_due_ms = clock_ms() + READINESS_COUNT_MS;
		readiness_write_condition(r);
	}
}

/* Writes the taint again if a newer Node was seen since; else readiness_seen() does it. */
static void readiness_wrote_taint(const struct kube_answer *answer, void *arg)
{
	struct readiness *r = arg;
	if (answer->error == -EEXIST && r->newer && readiness_taint_differs(r))
		readiness_write_taint(r);
}

/* Returns true if the Node shows the readiness that was reported last. */
static bool readiness_shown(const struct readiness *r)
{
	return !r->now.status || !r->node ||
	       !(readiness_taint_differs(r) || readiness_condition_differs(r));
}

/* ---- the state ------------------------------------------------------------------------------- */

static void readiness_report(struct readiness *r, const char *status, const char *reason)
{
	if (r->retired)
		return;
	if (!r->now.status || !str_eq(r->now.status, status))
		log_notice("node condition " READINESS_CONDITION ": %s (%s)", status, reason);
	r->now = (struct report){status, reason};
	readiness_write(r);
}

static void readiness_expired(void *arg)
{
	struct readiness *r = arg;
	readiness_report(r, "False", r->connected ? "NotPlacing" : "DaemonAway");
}

/* Reports readiness at once, and missing readiness after READINESS_GRACE_MS. */
static void readiness_judge(struct readiness *r)
{
	if (r->connected && !*r->unready) {
		loop_timer_disarm(r->grace);
		readiness_report(r, "True", "Placing");
	} else if (!loop_timer_armed(r->grace)) {
		(void)loop_timer_arm(r->grace, READINESS_GRACE_MS);
	}
}

static void readiness_answered(const struct rpc_result *result, void *arg)
{
	struct readiness *r = arg;
	bool hangs = result->error == -ETIMEDOUT;
	if (result->error == -ECANCELED || result->error == -ECONNRESET || r->retired)
		return; /* readiness_lost() follows, or the agent stops */
	if (hangs && r->connected)
		readiness_report(r, "False", "DaemonHangs");
	else if (r->connected)
		readiness_judge(r);
	(void)loop_timer_arm(r->ask, READINESS_ASK_MS);
}

static void readiness_ask(void *arg)
{
	struct readiness *r = arg;
	Agent__PodRequest nothing = AGENT__POD_REQUEST__INIT;
	if (r->connected)
		(void)link_call(r->link, "Ping", &nothing.base, READINESS_ASK_MS,
				readiness_answered, r);
}

void readiness_take(struct readiness *r, const Agent__PublishedRequest *m)
{
	bool first = !r->connected;
	r->connected = r->known = true;
	r->condition = m->node_condition;
	r->taint = m->taint_when_away;
	(void)snprintf(r->unready, sizeof r->unready, "%s", m->unready);
	(void)snprintf(r->placing, sizeof r->placing, READINESS_PLACING);
	if (m->degraded || m->refused)
		(void)snprintf(r->placing, sizeof r->placing, READINESS_PLACING READINESS_COUNTS,
			       m->degraded, m->refused);
	readiness_judge(r);
	if (r->now.status)
		readiness_report(r, r->now.status, r->now.reason);
	if (first && (r->condition || r->taint))
		(void)loop_timer_arm(r->ask, READINESS_ASK_MS);
}

void readiness_lost(struct readiness *r)
{
	r->connected = false;
	if (r->retired)
		return; /* `ask` awaits the end */
	loop_timer_disarm(r->ask);
	readiness_judge(r);
}

void readiness_seen(struct readiness *r, json_t *node)
{
	const json_t *status = json_object_get(node, "status");
	json_decref(r->node);
	r->node = json_incref(node);
	r->newer = true;
	r->seen = item_of(json_object_get(status, "conditions"), "type", READINESS_CONDITION);
	readiness_write(r);
}

/* ---- life ------------------------------------------------------------------------------------ */

static void readiness_await_end(void *arg)
{
	struct readiness *r = arg;
	if (readiness_shown(r) || clock_ms() >= r->retire_until_ms)
		r->retired(r->retired_arg);
	else
		(void)loop_timer_arm(r->ask, RETIRE_POLL_MS);
}

static void readiness_tick(void *arg)
{
	struct readiness *r = arg;
	if (r->retired)
		readiness_await_end(r);
	else
		readiness_ask(r);
}

void readiness_retire(struct readiness *r, void (*done)(void *arg), void *arg)
{
	loop_timer_disarm(r->grace);
	if (r->known)
		readiness_report(r, "Unknown", "AgentStopped");
	r->retired = done;
	r->retired_arg = arg;
	r->retire_until_ms = clock_ms() + RETIRE_MAX_MS;
	readiness_await_end(r);
}

static struct writer *readiness_writer(struct kube *k, const char *what, const char *type,
				       char *path,
				       void (*written)(const struct kube_answer *answer, void *arg),
				       struct readiness *r)
{
	const struct writer_config config = {.what = what,
					     .method = "PATCH",
					     .path = path,
					     .content_type = type,
					     .interval_ms = INTERVAL_MS,
					     .versioned = written != NULL,
					     .written = written,
					     .arg = r};
	return writer_new(k, &config);
}

struct readiness *readiness_new(struct kube *k, struct link *l, const char *node)
{
	struct readiness *r = calloc(1, sizeof *r);
	if (!r)
		return NULL;
	r->link = l;
	r->conditions =
		readiness_writer(k, "the condition " READINESS_CONDITION, KUBE_STRATEGIC_PATCH,
				 str_printf("/api/v1/nodes/%s/status", node), NULL, r);
	r->taints =
		readiness_writer(k, "the taint " READINESS_TAINT, KUBE_MERGE_PATCH,
				 str_printf("/api/v1/nodes/%s", node), readiness_wrote_taint, r);
	r->grace = loop_timer_new(kube_loop(k), readiness_expired, r);
	r->ask = loop_timer_new(kube_loop(k), readiness_tick, r);
	if (!r->conditions || !r->taints || !r->grace || !r->ask)
		return readiness_free(r);
	readiness_judge(r);
	return r;
}

struct readiness *readiness_free(struct readiness *r)
{
	if (!r)
		return NULL;
	writer_free(r->conditions);
	writer_free(r->taints);
	loop_timer_free(r->grace);
	loop_timer_free(r->ask);
	json_decref(r->node);
	free(r);
	return NULL;
}
