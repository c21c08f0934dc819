/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events, for clients that query them and clients that wait for them. An event may arise within a
 * request of the runtime, so it only sets a timer here.
 */
#include <utlist.h>

#include "core/nri-rpd/control/internal.h"
#include "core/nri-rpd/pipeline/observe/events.h"
#include "core/nri-rpd/control/commands.h"
#include "core/nri-rpd/control/document.h"
#include "core/nri-rpd/control/events.h"
#include "core/nri-rpd/control/server.h"

#define WAKE_MS 10u /* time within which a burst of events is collected into one answer */

void put_event(struct json *j, const struct event *e, uint32_t flags)
{
	json_obj(j);
	json_kuint(j, "seq", e->seq);
	put_time(j, "time", e->wall_ns);
	json_kstr(j, "kind", event_kind_name(e->kind));
	json_kstr(j, "text", told(e->text, flags));
	put_text(j, "container", e->subject);
	if (e->detail)
		put_lines(j, "why", told(e->detail, flags));
	json_end_obj(j);
}

static uint64_t put_events(struct json *j, const struct pipeline *p, uint64_t after, uint32_t flags)
{
	const struct event *e = pipeline_event_after(p, after);
	uint64_t missed = e ? e->seq - after - 1 : 0;
	json_karr(j, "events");
	for (; e; e = pipeline_event_after(p, e->seq))
		put_event(j, e, flags);
	json_end_arr(j);
	return missed;
}

static void put_document(struct buf *out, const struct pipeline *p, uint64_t after, uint32_t flags)
{
	struct json j;
	json_init(&j, out);
	json_obj(&j);
	uint64_t missed = put_events(&j, p, after, flags);
	json_kuint(&j, "missed", missed);
	json_kuint(&j, "last", pipeline_last_event(p));
	json_end_obj(&j);
}

static void events_answer(struct job *job)
{
	struct buf out = BUF_INIT;
	put_document(&out, job->ctl->pipeline, job->after, job->flags);
	job_end(job, &out, CTL_OK);
	buf_fini(&out);
}

static void events_wake(void *arg)
{
	struct ctl *ctl = arg;
	struct job *job, *next;
	DL_FOREACH_SAFE(ctl->waits, job, next)
	if (pipeline_event_after(ctl->pipeline, job->after))
		events_answer(job);
}

static void on_event(void *arg)
{
	struct ctl *ctl = arg;
	if (ctl->waits && !loop_timer_armed(ctl->wake))
		(void)loop_timer_arm(ctl->wake, WAKE_MS);
}

static void patience_ends(void *arg)
{
	events_answer(arg);
}

enum call_result run_events(struct call *call)
{
	uint64_t after = call->req->after, wait_ms = call->req->wait_ms;
	/* Events are numbered from 1 again after the log of events is lost. A client that remembers
	 * a higher number has not received this event yet. */
	if (after > pipeline_last_event(call->p))
		after = 0;
	if (!wait_ms || pipeline_event_after(call->p, after)) {
		put_document(&call->out, call->p, after, call->req->flags);
		return CALL_DONE;
	}
	struct loop_timer *timer = NULL;
	struct job *job = job_new(call, &call->ctl->waits);
	if (job)
		timer = loop_timer_new(call->ctl->loop, patience_ends, job);
	if (!timer) {
		if (job)
			job_drop(job, &call->ctl->waits);
		return call_fail(call, CTL_FAILED, "too many clients are already waiting");
	}
	job->timer = timer;
	job->after = after;
	job->flags = call->req->flags;
	if (wait_ms > CTL_EVENTS_WAIT_MAX_MS)
		wait_ms = CTL_EVENTS_WAIT_MAX_MS;
	(void)loop_timer_arm(timer, wait_ms);
	return CALL_LATER;
}

int events_init(struct ctl *ctl)
{
	ctl->wake = loop_timer_new(ctl->loop, events_wake, ctl);
	if (!ctl->wake)
		return -ENOMEM;
	pipeline_on_event(ctl->pipeline, on_event, ctl);
	return 0;
}

void events_fini(struct ctl *ctl)
{
	pipeline_on_event(ctl->pipeline, NULL, NULL);
	ctl->wake = loop_timer_free(ctl->wake);
}
