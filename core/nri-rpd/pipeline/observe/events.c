/* SPDX-License-Identifier: Apache-2.0 */
/* The list of events and their log, a record log in the state directory. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/nri-rpd/pipeline/internal.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/log.h"
#include "core/lib/util/str.h"
#include "proto/store.pb-c.h"
#include "core/lib/util/clock.h"

#define LOG_SOURCE "events"

static const char *const kind_names[N_EVENT_KINDS] = {
	[EV_RUNTIME] = "runtime",   [EV_CONFIG] = "config",
	[EV_CREATED] = "created",   [EV_REFUSED] = "refused",
	[EV_MOVED] = "moved",	    [EV_RELEASED] = "released",
	[EV_DEGRADED] = "degraded", [EV_UPDATE_FAILED] = "update-failed",
	[EV_MODULE] = "module",	    [EV_MACHINE] = "machine",
	[EV_PRESSURE] = "pressure", [EV_RESIZED] = "resized",
	[EV_EVICTION] = "eviction", [EV_LATE] = "placed-late",
};

const char *event_kind_name(enum event_kind k)
{
	return k < N_EVENT_KINDS ? kind_names[k] : "?";
}

/* ---- the list -------------------------------------------------------------------------------- */

static void set_text(struct event *e, const char *text)
{
	size_t len = utf8_cut(text, sizeof e->text - 1);
	memcpy(e->text, text, len);
	e->text[len] = '\0';
}

static void event_fini(struct event *e)
{
	free(e->subject);
	free(e->uid);
	free(e->detail);
}

/* Returns true if the event goes to the cluster. Frequent events do not. */
static bool is_news(enum event_kind kind)
{
	return kind != EV_CREATED && kind != EV_MOVED && kind != EV_RELEASED;
}

/* Returns the place of a new event and drops its previous occupant. */
static struct event *next_event(struct pipeline *p, uint64_t seq)
{
	struct event *e = &p->observe.events[(seq - 1) % EVENTS_MAX];
	event_fini(e);
	*e = (struct event){.seq = seq};
	p->observe.last_event = seq;
	return e;
}

static void events_put(struct pipeline *p, enum event_kind kind, const struct ctr *ctr,
		       const char *detail, const char *text)
{
	if (!pipeline_records(p))
		return;
	struct event *e = next_event(p, p->observe.last_event + 1);
	e->wall_ns = clock_wall_ns();
	e->kind = kind;
	e->subject = ctr ? strdup(ctr->full_name) : NULL;
	e->uid = ctr && is_news(kind) ? strdup(ctr->pod->uid) : NULL;
	e->detail = detail && *detail ? strdup(detail) : NULL;
	set_text(e, text);
	if (p->observe.event_log_ready)
		persist_later(p);
	if (p->cfg.changed && is_news(kind))
		p->cfg.changed(p->cfg.arg);
	if (p->observe.on_event)
		p->observe.on_event(p->observe.on_event_arg);
}

__attribute__((format(printf, 5, 0))) static void events_add(struct pipeline *p,
							     enum event_kind kind,
							     const struct ctr *ctr,
							     const char *detail, const char *fmt,
							     va_list ap)
{
	/* larger than the stored text, so that the text is cut between characters */
	char text[2 * EVENT_TEXT_MAX];
	(void)vsnprintf(text, sizeof text, fmt, ap);
	events_put(p, kind, ctr, detail, text);
}

void pipeline_event_text(struct pipeline *p, enum event_kind kind, const struct ctr *ctr,
			 const char *text)
{
	events_put(p, kind, ctr, NULL, text);
}

void pipeline_event(struct pipeline *p, enum event_kind kind, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	events_add(p, kind, NULL, NULL, fmt, ap);
	va_end(ap);
}

void pipeline_event_of(struct pipeline *p, enum event_kind kind, const struct ctr *ctr,
		       const char *detail, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	events_add(p, kind, ctr, detail, fmt, ap);
	va_end(ap);
}

void events_degraded(struct pipeline *p)
{
	for (const struct stage *s = decide_touched(p); s; s = s->link) {
		/* after the commit s->next holds the previous decision */
		const struct blob *now = s->ctr->cur.degraded, *was = s->next.degraded;
		if (now && !blob_equal(now, was))
			pipeline_event_of(p, EV_DEGRADED, s->ctr, NULL, "%s: %s", s->ctr->full_name,
					  now->data);
	}
}

const struct event *pipeline_event_after(const struct pipeline *p, uint64_t seq)
{
	if (seq >= p->observe.last_event)
		return NULL;
	uint64_t oldest =
		p->observe.last_event > EVENTS_MAX ? p->observe.last_event - EVENTS_MAX + 1 : 1;
	uint64_t next = seq + 1 < oldest ? oldest : seq + 1;
	/* skip numbers of events that a previous process did not save */
	while (next < p->observe.last_event &&
	       p->observe.events[(next - 1) % EVENTS_MAX].seq != next)
		next++;
	return &p->observe.events[(next - 1) % EVENTS_MAX];
}

DEFINE_GETTER(pipeline_last_event, uint64_t, p->observe.last_event)

void pipeline_on_event(struct pipeline *p, void (*fn)(void *arg), void *arg)
{
	p->observe.on_event = fn;
	p->observe.on_event_arg = arg;
}

/* ---- the log --------------------------------------------------------------------------------- */

#define EVENT_LOG_MAX (4u << 20) /* largest size of the event log, in bytes */

static const struct reclog_head log_head = {
	.kind = "events", .format = 1, .origin = "any", .version = NRI_RP_VERSION};

static bool find_kind(const char *name, enum event_kind *ret)
{
	for (unsigned k = 0; k < N_EVENT_KINDS; k++)
		if (str_eq(kind_names[k], name)) {
			*ret = (enum event_kind)k;
			return true;
		}
	return false;
}

static void take_over(struct pipeline *p, const RpStore__Event *m)
{
	enum event_kind kind;
	if (m->seq <= p->observe.last_event || m->seq > INT64_MAX || !find_kind(m->kind, &kind))
		return;
	struct event *e = next_event(p, m->seq);
	e->wall_ns = m->wall_ns;
	e->kind = kind;
	e->subject = m->subject ? strdup(m->subject) : NULL;
	e->detail = m->detail ? strdup(m->detail) : NULL;
	set_text(e, m->text);
}

static int read_record(void *arg, const void *record, size_t len)
{
	RpStore__Event *m = rp_store__event__unpack(NULL, len, record);
	if (m)
		take_over(arg, m);
	rp_store__event__free_unpacked(m, NULL);
	return 0;
}

static int put_event(struct reclog *log, const struct event *e)
{
	RpStore__Event m = RP_STORE__EVENT__INIT;
	m.seq = e->seq;
	m.wall_ns = e->wall_ns;
	m.kind = (char *)(uintptr_t)kind_names[e->kind];
	m.text = (char *)(uintptr_t)e->text;
	m.subject = e->subject;
	m.detail = e->detail;
	_free_ uint8_t *bytes = malloc(rp_store__event__get_packed_size(&m));
	return bytes ? reclog_put(log, bytes, rp_store__event__pack(&m, bytes)) : -ENOMEM;
}

void events_open(struct pipeline *p)
{
	struct err err = ERR_INIT;
	struct fs_root real;
	char path[CACHE_PATH_MAX + sizeof "/events"], *data = NULL;
	size_t len = 0;
	(void)snprintf(path, sizeof path, "%s/events", p->state_dir);
	if (fs_root_open(&real, "/", &err))
		return;
	int r = fs_read_all(&real, path, EVENT_LOG_MAX, &data, &len);
	fs_root_close(&real);
	if (!r)
		r = reclog_parse(data, len, &log_head, read_record, p, &err);
	free(data);
	if (r && r != -ENOENT)
		log_info("%s: not all earlier events can be read: %s", path, err_text(&err, r));
	p->observe.event_log_ready =
		reclog_init(&p->observe.event_log, path, &log_head, EVENT_LOG_MAX) == 0;
}

void events_open_late(struct pipeline *p)
{
	char path[CACHE_PATH_MAX + sizeof "/events"];
	(void)snprintf(path, sizeof path, "%s/events", p->state_dir);
	if (!p->observe.event_log_ready)
		p->observe.event_log_ready =
			reclog_init(&p->observe.event_log, path, &log_head, EVENT_LOG_MAX) == 0;
}

void events_log(struct pipeline *p)
{
	struct err err = ERR_INIT;
	struct reclog *log = &p->observe.event_log;
	if (!p->observe.event_log_ready || p->env.trial ||
	    p->observe.logged_event == p->observe.last_event)
		return;
	bool anew = !reclog_is_open(log) || reclog_is_long(log);
	int r = anew ? reclog_begin_anew(log, &err) : 0;
	const struct event *e = pipeline_event_after(p, anew ? 0 : p->observe.logged_event);
	for (; !r && e; e = pipeline_event_after(p, e->seq))
		r = put_event(log, e);
	if (!r)
		r = reclog_commit(log, &err);
	p->observe.logged_event = p->observe.last_event;
	if (!r)
		return;
	static struct log_limit limit = LOG_LIMIT(1, 3600000);
	reclog_drop(log);
	reclog_close(log);
	if (log_allowed(&limit, LOG_SOURCE))
		log_info("%s: events are not saved for the next start: %s", log->path,
			 err_text(&err, r));
}

void events_close(struct pipeline *p)
{
	if (p->observe.event_log_ready)
		reclog_fini(&p->observe.event_log);
	for (unsigned i = 0; i < EVENTS_MAX; i++)
		event_fini(&p->observe.events[i]);
}
