/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/pipeline/internal.h"
#include "core/util/str.h"

static const char *const kind_names[N_EVENT_KINDS] = {
	[EV_RUNTIME] = "runtime",   [EV_CONFIG] = "config",
	[EV_CREATED] = "created",   [EV_REFUSED] = "refused",
	[EV_MOVED] = "moved",	    [EV_RELEASED] = "released",
	[EV_DEGRADED] = "degraded", [EV_UPDATE_FAILED] = "update-failed",
	[EV_MODULE] = "module",	    [EV_MACHINE] = "machine",
	[EV_PRESSURE] = "pressure",
};

const char *event_kind_name(enum event_kind k)
{
	return k < N_EVENT_KINDS ? kind_names[k] : "?";
}

void pipeline_event(struct pipeline *p, enum event_kind kind, const char *fmt, ...)
{
	char text[2 * EVENT_TEXT_MAX]; /* longer than what is kept: a cut has to see what it cuts */
	va_list ap;
	if (p->env.trial)
		return;
	struct event *e = &p->events[p->last_event % EVENTS_MAX];
	e->seq = ++p->last_event;
	e->wall_ns = clock_wall_ns();
	e->kind = kind;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	size_t len = utf8_cut(text, sizeof e->text - 1);
	memcpy(e->text, text, len);
	e->text[len] = '\0';
	if (p->cfg.changed && kind != EV_CREATED && kind != EV_MOVED && kind != EV_RELEASED)
		p->cfg.changed(p->cfg.arg);
	if (p->on_event)
		p->on_event(p->on_event_arg);
}

const struct event *pipeline_event_after(const struct pipeline *p, uint64_t seq)
{
	if (seq >= p->last_event)
		return NULL;
	uint64_t oldest = p->last_event > EVENTS_MAX ? p->last_event - EVENTS_MAX + 1 : 1;
	uint64_t next = seq + 1 < oldest ? oldest : seq + 1;
	return &p->events[(next - 1) % EVENTS_MAX];
}

uint64_t pipeline_last_event(const struct pipeline *p)
{
	return p->last_event;
}

void pipeline_on_event(struct pipeline *p, void (*fn)(void *arg), void *arg)
{
	p->on_event = fn;
	p->on_event_arg = arg;
}
