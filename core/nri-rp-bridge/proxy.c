/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-bridge/proxy.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "core/lib/grpc/served.h"
#include "core/lib/grpc/server.h"
#include "core/lib/util/buf.h"
#include "core/lib/util/log.h"
#include "core/lib/util/str.h"
#include "core/lib/util/clock.h"

#define LOG_SOURCE "trace"
#define SOCKET_MODE 0660
#define IMAGE_SERVICE ".ImageService/"
#define BUFFERED_MAX (64u << 20) /* limit for requests and answers stored here, over all calls */
#define REQUEST_MS 10000u /* time limit for a whole request to arrive */
#define SWEEP_MS 1000u
#define TOO_MUCH "nri-rp-bridge: unfinished calls use too much memory"
#define NO_MESSAGE "the request is not one message"
#define TOO_SLOW "the request was incomplete at its deadline"
#define NOT_KEPT "nri-rp-bridge could not store the runtime's reply"
#define AWAY "the runtime is not reachable: "
#define BEHIND "the caller does not read its container events"

struct proxy {
	struct proxy_config config;
	struct grpc_server *server;
	struct call *calls;
	size_t n_buffered; /* bytes of all calls, as counted by intercepted_count */
	struct loop_timer *sweep; /* timer for time limits, armed while calls exist */
};

/* A direction of a call, for the log. */
struct traced {
	uint64_t n_bytes;
	struct buf head; /* first bytes, if messages are logged */
};

/* A call that passes through. A stream is NULL when no more data is sent to that side or expected
 * from it. */
struct call {
	struct proxy *proxy;
	struct h2_stream *down; /* the kubelet's stream */
	struct h2_stream *up; /* the bridge's stream to the runtime */
	bool requested; /* the request is complete */
	bool responded; /* the runtime's headers have been passed on */
	bool answered; /* the answer is complete */
	enum trace_level level;
	char *path;
	uint64_t begun_us;
	int32_t status;
	struct traced request, response;
	/* state of the interception; NULL: the call passes unchanged */
	struct intercepted *intercepted;
	struct call *prev, *next;
};

/* State of an intercepted call. */
struct intercepted {
	/* call at the interceptor; NULL: not begun, or already ended */
	struct intercept_call *intercept;
	struct h2_fields *headers;
	uint64_t deadline_ms; /* time at which the caller stops waiting; UINT64_MAX: never */
	struct grpc_reader request, answer;
	bool held; /* keep the answer until the interceptor releases it */
	struct h2_fields *response, *trailers;
	/* for a call for events, which has no stream to the runtime */
	struct events_listener listener;
	size_t behind; /* bytes of events that the caller has not read yet */
	size_t counted; /* bytes included in the proxy's sum */
	bool truncated; /* a part of the answer could not be stored */
};

/* ---- logging --------------------------------------------------------------------------------- */

static void note_bytes(const struct call *c, struct traced *t, const uint8_t *data, size_t n)
{
	t->n_bytes += n;
	if (c->level != TRACE_FULL || buf_len(&t->head) >= TRACE_BYTES_MAX)
		return;
	size_t room = TRACE_BYTES_MAX - buf_len(&t->head);
	(void)buf_add(&t->head, data, n < room ? n : room);
}

static void log_messages(const struct call *c)
{
	const struct {
		const char *arrow;
		const struct traced *traced;
	} sides[] = {{"<-", &c->request}, {"->", &c->response}};
	for (unsigned i = 0; i < 2; i++) {
		const struct buf *head = &sides[i].traced->head;
		if (buf_len(head) >= GRPC_PREFIX_SIZE)
			trace_log_message(c->path, sides[i].arrow,
					  buf_bytes(head) + GRPC_PREFIX_SIZE,
					  buf_len(head) - GRPC_PREFIX_SIZE);
	}
}

static void log_call(const struct call *c)
{
	char status[32];
	if (c->level == TRACE_OFF)
		return;
	if (c->status == GRPC_STATUS_UNTOLD)
		(void)snprintf(status, sizeof status, "aborted");
	else
		(void)snprintf(status, sizeof status, "status %" PRId32, c->status);
	double ms = (double)(clock_us() - c->begun_us) / 1000;
	if (c->level == TRACE_NAME)
		log_info("%s: %s, %.3f ms", trace_method(c->path), status, ms);
	else
		log_info("%s: %s, %.3f ms, %" PRIu64 " bytes of request, %" PRIu64 " of reply",
			 trace_method(c->path), status, ms, c->request.n_bytes,
			 c->response.n_bytes);
	if (c->level == TRACE_FULL)
		log_messages(c);
}

/* ---- end of a call --------------------------------------------------------------------------- */

static void intercepted_end(struct call *c, enum intercept_outcome outcome)
{
	struct intercepted *p = c->intercepted;
	struct grpc_message m = {0};
	if (!p || !p->intercept)
		return;
	if (outcome == OUTCOME_DONE &&
	    (p->truncated || grpc_reader_next(&p->answer, &m, NULL) <= 0))
		outcome = OUTCOME_BROKEN;
	p->intercept = intercept_end(p->intercept, outcome, m.data, m.n);
}

static void intercepted_free(struct intercepted *p)
{
	if (!p)
		return;
	grpc_reader_fini(&p->request);
	grpc_reader_fini(&p->answer);
	free(p->headers);
	free(p->response);
	free(p->trailers);
	free(p);
}

static void call_free_if_over(struct call *c)
{
	if (c->down || c->up)
		return;
	if (c->intercepted)
		events_leave(c->proxy->config.events, &c->intercepted->listener);
	intercepted_end(c, OUTCOME_BROKEN);
	log_call(c);
	DL_DELETE(c->proxy->calls, c);
	c->proxy->n_buffered -= c->intercepted ? c->intercepted->counted : 0;
	intercepted_free(c->intercepted);
	buf_fini(&c->request.head);
	buf_fini(&c->response.head);
	free(c->path);
	free(c);
}

/* Resets both streams, after lack of memory or a protocol error. */
static void call_break(struct call *c, uint32_t code)
{
	c->down = h2_stream_reset(c->down, code);
	c->up = h2_stream_reset(c->up, code);
	call_free_if_over(c);
}

/* Ends the call for the kubelet with a status, regardless of the data that the runtime has sent. */
static void tell_end(struct call *c, int32_t status, const char *text)
{
	char number[12], encoded[GRPC_TEXT_MAX];
	struct h2_stream *down = c->down;
	c->down = NULL;
	c->status = status;
	if (!c->responded) {
		grpc_refuse(down, (enum grpc_status)status, text);
		return;
	}
	(void)snprintf(number, sizeof number, "%" PRId32, status);
	grpc_encode_text(text, encoded, sizeof encoded);
	struct h2_field list[] = {H2_FIELD("grpc-status", number),
				  H2_FIELD("grpc-message", encoded)};
	if (h2_stream_finish(down, &(struct h2_fields){list, 2}))
		h2_stream_reset(down, H2_INTERNAL_ERROR);
	else
		h2_stream_leave(down);
}

/* Ends a call with an error on both sides. */
static void call_fail(struct call *c, enum grpc_status status, const char *text)
{
	if (c->down)
		tell_end(c, (int32_t)status, text);
	c->up = h2_stream_reset(c->up, H2_CANCEL);
	call_free_if_over(c);
}

/* ---- memory limits --------------------------------------------------------------------------- */

static size_t intercepted_bytes(const struct intercepted *p)
{
	return buf_len(&p->request.in) + buf_len(&p->answer.in) + p->behind;
}

/* Updates the count of bytes stored for a call. Returns false if all calls together exceed the
 * limit. */
static bool intercepted_count(struct call *c)
{
	struct proxy *proxy = c->proxy;
	size_t n = intercepted_bytes(c->intercepted);
	proxy->n_buffered += n - c->intercepted->counted;
	c->intercepted->counted = n;
	return proxy->n_buffered <= BUFFERED_MAX;
}

/* Updates the count of bytes. Above the limit, ends the call with the most bytes of those
 * that are not at the interceptor, or else this call. Returns false if this call was ended. */
static bool intercepted_bound(struct call *c)
{
	struct call *i, *most = NULL;
	if (intercepted_count(c))
		return true;
	DL_FOREACH (c->proxy->calls, i) {
		if (i->intercepted && !i->intercepted->intercept &&
		    (!most || i->intercepted->counted > most->intercepted->counted))
			most = i;
	}
	most = most ? most : c;
	bool gone = most == c;
	log_warning("%s is aborted: all calls together hold more than %u MiB",
		    trace_method(most->path), BUFFERED_MAX >> 20);
	call_fail(most, GRPC_RESOURCE_EXHAUSTED, TOO_MUCH);
	return !gone;
}

static void on_sweep(void *arg)
{
	struct proxy *p = arg;
	struct call *c, *next;
	uint64_t now = clock_us();
	DL_FOREACH_SAFE(p->calls, c, next)
	{
		if (c->intercepted && !c->requested &&
		    now - c->begun_us > REQUEST_MS * UINT64_C(1000))
			call_fail(c, GRPC_DEADLINE_EXCEEDED, TOO_SLOW);
	}
	if (p->calls)
		(void)loop_timer_arm(p->sweep, SWEEP_MS);
}

/* ---- from the runtime to the kubelet --------------------------------------------------------- */

/* Converts a gRPC status to an outcome. After some errors the runtime may still have carried out
 * the call. */
static enum intercept_outcome outcome_of(int32_t status)
{
	if (status == GRPC_OK)
		return OUTCOME_DONE;
	bool unknown = status == GRPC_STATUS_UNTOLD || status == GRPC_UNAVAILABLE ||
		       status == GRPC_DEADLINE_EXCEEDED || status == GRPC_CANCELLED;
	return unknown ? OUTCOME_BROKEN : OUTCOME_REFUSED;
}

static void note_end(struct call *c, const struct h2_fields *trailers)
{
	c->answered = true;
	if (trailers)
		c->status = grpc_status_of(trailers);
	intercepted_end(c, outcome_of(c->status));
}

/* Sends the deferred answer to the kubelet. */
static void let_go(struct call *c)
{
	struct intercepted *p = c->intercepted;
	size_t n = buf_len(&p->answer.in);
	p->held = false;
	if (!c->down)
		return;
	if (p->truncated) {
		call_fail(c, GRPC_RESOURCE_EXHAUSTED, NOT_KEPT);
		return;
	}
	c->responded = true;
	int r = h2_stream_respond(c->down, p->response ? p->response : p->trailers, !p->response);
	if (!r && p->response && n)
		r = h2_stream_write(c->down, buf_bytes(&p->answer.in), n);
	if (!r && p->response)
		r = h2_stream_finish(c->down, p->trailers);
	if (r)
		call_break(c, H2_INTERNAL_ERROR);
}

static void held_end(struct call *c)
{
	note_end(c, c->intercepted->trailers);
	if (!c->intercepted->intercept)
		let_go(c);
}

static void held_headers(struct call *c, const struct h2_fields *fields, bool last)
{
	struct intercepted *p = c->intercepted;
	struct h2_fields **to = last ? &p->trailers : &p->response;
	if (!*to)
		*to = h2_fields_copy(fields);
	else
		last = false; /* a second block of headers before the trailers is ignored */
	if (!*to)
		call_break(c, H2_INTERNAL_ERROR);
	else if (last)
		held_end(c);
}

static void on_up_headers(struct h2_stream *s, const struct h2_fields *fields, bool last, void *arg)
{
	struct call *c = arg;
	if (c->intercepted && c->intercepted->held) {
		held_headers(c, fields, last);
		return;
	}
	if (last)
		note_end(c, fields);
	if (!c->down)
		return;
	/* gRPC has no headers between the messages of an answer */
	int r = -EBADMSG;
	if (!c->responded)
		r = h2_stream_respond(c->down, fields, last);
	else if (last)
		r = h2_stream_finish(c->down, fields);
	c->responded = true;
	if (r)
		call_break(c, H2_INTERNAL_ERROR);
}

/* Stores an answer for the interceptor. If it is too long or memory is short, the answer is treated
 * as unknown and cannot be deferred. Returns false if the call was ended. */
static bool intercepted_answer(struct call *c, const uint8_t *data, size_t n)
{
	struct intercepted *p = c->intercepted;
	if (p->truncated)
		return true;
	int r = grpc_reader_next(&p->answer, &(struct grpc_message){0}, NULL);
	if (r == 0)
		r = grpc_reader_add(&p->answer, data, n);
	if (r < 0) {
		p->truncated = true;
		buf_fini(&p->answer.in);
	}
	return intercepted_bound(c);
}

static void on_up_data(struct h2_stream *s, const uint8_t *data, size_t n, void *arg)
{
	struct call *c = arg;
	note_bytes(c, &c->response, data, n);
	if (c->intercepted && !intercepted_answer(c, data, n))
		return;
	if (!c->down || (c->intercepted && c->intercepted->held))
		h2_stream_consume(s, n);
	else if (h2_stream_write(c->down, data, n))
		call_break(c, H2_INTERNAL_ERROR);
}

static void on_up_finished(struct h2_stream *s, void *arg)
{
	struct call *c = arg;
	if (c->intercepted && c->intercepted->held) {
		held_end(c);
		return;
	}
	note_end(c, NULL);
	if (c->down && h2_stream_finish(c->down, NULL))
		call_break(c, H2_INTERNAL_ERROR);
}

static void on_up_sent(struct h2_stream *s, size_t n, void *arg)
{
	const struct call *c = arg;
	if (c->down && !c->intercepted) /* an intercepted answer was consumed when it was read */
		h2_stream_consume(c->down, n);
}

static void on_up_closed(struct h2_stream *s, const struct h2_end *end, void *arg)
{
	struct call *c = arg;
	c->up = NULL;
	if (!c->answered)
		intercepted_end(c, OUTCOME_BROKEN);
	if (c->down && !c->answered) {
		if (end->error)
			tell_end(c, GRPC_UNAVAILABLE, end->text);
		else
			c->down = h2_stream_reset(c->down, end->code);
	}
	/* A complete answer is sent without further action. `down` stays until then, so that the
	 * logged duration includes it. */
	call_free_if_over(c);
}

/* ---- streams to the runtime ------------------------------------------------------------------ */

static struct upstream *upstream_of(const struct proxy *p, const char *path)
{
	return strstr(path, IMAGE_SERVICE) ? p->config.image : p->config.runtime;
}

static int open_up(struct call *c, const struct h2_fields *fields, bool last, struct err *err)
{
	static const struct h2_events events = {.headers = on_up_headers,
						.data = on_up_data,
						.finished = on_up_finished,
						.sent = on_up_sent,
						.closed = on_up_closed};
	struct h2 *h2;
	int r = upstream_connection(upstream_of(c->proxy, c->path), &h2, err);
	if (r)
		return r;
	r = h2_open(h2, fields, last, &events, c, &c->up);
	return r ? err_errno(err, r, "a call to the runtime") : 0;
}

/* ---- intercepted calls ----------------------------------------------------------------------- */

static void proxy_refuse(struct call *c, enum grpc_status status, const char *text)
{
	struct h2_stream *down = c->down;
	c->down = NULL;
	c->status = (int32_t)status;
	if (down)
		grpc_refuse(down, status, text);
	call_free_if_over(c);
}

static void on_intercept_refuses(enum grpc_status status, const char *text, void *arg)
{
	struct call *c = arg;
	c->intercepted->intercept = NULL;
	proxy_refuse(c, status, text);
}

static void on_intercept_releases(void *arg)
{
	struct call *c = arg;
	c->intercepted->intercept = NULL;
	let_go(c);
}

static void on_intercept_forwards(const uint8_t *payload, size_t n, bool held, void *arg)
{
	struct call *c = arg;
	c->intercepted->held = held;
	uint8_t prefix[GRPC_PREFIX_SIZE];
	struct err err = ERR_INIT;
	grpc_prefix(prefix, (uint32_t)n);
	if (open_up(c, c->intercepted->headers, false, &err)) {
		(void)err_prefix(&err, AWAY);
		proxy_refuse(c, GRPC_UNAVAILABLE, err.text);
		return;
	}
	if (h2_stream_write(c->up, prefix, sizeof prefix) || h2_stream_write(c->up, payload, n) ||
	    h2_stream_finish(c->up, NULL))
		call_break(c, H2_INTERNAL_ERROR);
}

/* ---- calls for events ------------------------------------------------------------------------ */

static int write_event(struct call *c, const uint8_t *payload, size_t n)
{
	struct h2_field list[] = {H2_FIELD(":status", "200"),
				  H2_FIELD("content-type", GRPC_CONTENT_TYPE)};
	uint8_t prefix[GRPC_PREFIX_SIZE];
	grpc_prefix(prefix, (uint32_t)n);
	note_bytes(c, &c->response, prefix, sizeof prefix);
	note_bytes(c, &c->response, payload, n);
	int r = 0;
	if (!c->responded)
		r = h2_stream_respond(c->down, &(struct h2_fields){list, 2}, false);
	c->responded = true;
	if (!r)
		r = h2_stream_write(c->down, prefix, sizeof prefix);
	return r ? r : h2_stream_write(c->down, payload, n);
}

static void on_event(const uint8_t *payload, size_t n, void *arg)
{
	struct call *c = arg;
	struct intercepted *p = c->intercepted;
	p->behind += GRPC_PREFIX_SIZE + n;
	if (!intercepted_count(c) || p->behind > EVENTS_BEHIND_MAX) {
		tell_end(c, GRPC_RESOURCE_EXHAUSTED, BEHIND);
		call_free_if_over(c);
	} else if (write_event(c, payload, n)) {
		call_break(c, H2_INTERNAL_ERROR);
	}
}

static void on_events_ended(const struct grpc_result *result, void *arg)
{
	struct call *c = arg;
	if (!result->error)
		tell_end(c, GRPC_OK, "");
	else
		tell_end(c, result->error == -EREMOTEIO ? result->status : GRPC_UNAVAILABLE,
			 result->text);
	call_free_if_over(c);
}

static void events_begin(struct call *c)
{
	struct err err = ERR_INIT;
	struct events_listener *l = &c->intercepted->listener;
	*l = (struct events_listener){.event = on_event, .ended = on_events_ended, .arg = c};
	if (!events_listen(c->proxy->config.events, l, &err))
		return;
	(void)err_prefix(&err, AWAY);
	tell_end(c, GRPC_UNAVAILABLE, err.text);
	call_free_if_over(c);
}

/* ---- request of an intercepted call ---------------------------------------------------------- */

static void intercepted_ask(struct call *c)
{
	static const struct intercept_events events = {.forward = on_intercept_forwards,
						       .refuse = on_intercept_refuses,
						       .release = on_intercept_releases};
	struct intercepted *p = c->intercepted;
	struct grpc_message m;
	uint64_t now = clock_ms(), left = UINT64_MAX;
	if (grpc_reader_next(&p->request, &m, NULL) <= 0) {
		proxy_refuse(c, GRPC_INTERNAL, NO_MESSAGE);
		return;
	}
	if (m.compressed) {
		proxy_refuse(c, GRPC_UNIMPLEMENTED,
			     "nri-rp-bridge does not support compressed requests");
		return;
	}
	if (str_eq(c->path, EVENTS_PATH)) {
		/* A request with content, from a later CRI version, is left to the runtime. */
		if (m.n)
			on_intercept_forwards(m.data, m.n, false, c);
		else
			events_begin(c);
		return;
	}
	if (p->deadline_ms != UINT64_MAX)
		left = p->deadline_ms > now ? p->deadline_ms - now : 1;
	intercept_begin(c->proxy->config.intercept, c->path, m.data, m.n, left, &events, c,
			&p->intercept);
}

static void intercepted_data(struct call *c, const uint8_t *data, size_t n)
{
	struct err err = ERR_INIT;
	struct intercepted *p = c->intercepted;
	bool whole = grpc_reader_next(&p->request, &(struct grpc_message){0}, NULL) > 0;
	if (whole && n) {
		proxy_refuse(c, GRPC_INTERNAL, NO_MESSAGE);
		return;
	}
	int r = grpc_reader_add(&p->request, data, n);
	if (r)
		(void)err_set(&err, r, "out of memory for the request");
	else
		r = grpc_reader_next(&p->request, &(struct grpc_message){0}, &err);
	if (r < 0)
		proxy_refuse(c, GRPC_RESOURCE_EXHAUSTED, err.text);
	else if (intercepted_bound(c))
		h2_stream_consume(c->down, n);
}

/* Copies headers without the one named: without grpc-accept-encoding the runtime does not compress
 * the answer, which the bridge has to read. */
static struct h2_fields *copy_without(const struct h2_fields *fields, const char *name)
{
	struct h2_fields *copy = h2_fields_copy(fields);
	struct h2_field *list = copy ? (struct h2_field *)(uintptr_t)copy->list : NULL;
	size_t n = 0;
	for (size_t i = 0; list && i < copy->n; i++)
		if (strcmp(list[i].name, name) != 0)
			list[n++] = list[i];
	if (copy)
		copy->n = n;
	return copy;
}

/* Returns 0 or -errno. */
static int intercepted_new(struct call *c, const struct h2_fields *fields)
{
	uint64_t timeout_ms = UINT64_MAX;
	struct intercepted *p = calloc(1, sizeof *p);
	if (!p)
		return -ENOMEM;
	p->request.message_max = p->answer.message_max = GRPC_MESSAGE_MAX;
	p->headers = copy_without(fields, "grpc-accept-encoding");
	(void)grpc_timeout_ms(h2_field_find(fields, "grpc-timeout"), &timeout_ms);
	p->deadline_ms = timeout_ms == UINT64_MAX ? UINT64_MAX : clock_ms() + timeout_ms;
	if (!p->headers) {
		free(p);
		return -ENOMEM;
	}
	c->intercepted = p;
	return 0;
}

/* ---- from the kubelet to the runtime --------------------------------------------------------- */

static void on_down_data(struct h2_stream *s, const uint8_t *data, size_t n, void *arg)
{
	struct call *c = arg;
	note_bytes(c, &c->request, data, n);
	if (c->intercepted)
		intercepted_data(c, data, n);
	else if (!c->up)
		h2_stream_consume(s, n);
	else if (h2_stream_write(c->up, data, n))
		call_break(c, H2_INTERNAL_ERROR);
}

static void ask_end(struct call *c, const struct h2_fields *trailers)
{
	c->requested = true;
	if (c->intercepted) {
		intercepted_ask(c);
		return;
	}
	if (c->up && h2_stream_finish(c->up, trailers))
		call_break(c, H2_INTERNAL_ERROR);
}

static void on_down_headers(struct h2_stream *s, const struct h2_fields *fields, bool last,
			    void *arg)
{
	if (last)
		ask_end(arg, fields);
}

static void on_down_finished(struct h2_stream *s, void *arg)
{
	ask_end(arg, NULL);
}

static void on_down_sent(struct h2_stream *s, size_t n, void *arg)
{
	struct call *c = arg;
	if (c->up)
		h2_stream_consume(c->up, n);
	else if (c->intercepted) {
		c->intercepted->behind -= n < c->intercepted->behind ? n : c->intercepted->behind;
		(void)intercepted_count(c);
	}
}

static void on_down_closed(struct h2_stream *s, const struct h2_end *end, void *arg)
{
	struct call *c = arg;
	c->down = NULL;
	if (c->up && !c->answered)
		c->up = h2_stream_reset(c->up, end->error ? H2_CANCEL : end->code);
	else
		c->up = h2_stream_leave(c->up);
	call_free_if_over(c);
}

/* ---- start of a call ------------------------------------------------------------------------- */

static struct call *call_new(struct proxy *p, struct h2_stream *down, const char *path)
{
	struct call *c = calloc(1, sizeof *c);
	if (!c)
		return NULL;
	c->proxy = p;
	c->down = down;
	c->status = GRPC_STATUS_UNTOLD;
	c->begun_us = clock_us();
	c->level = trace_level_of(p->config.trace, path);
	c->path = strdup(path);
	if (!c->path) {
		free(c);
		return NULL;
	}
	DL_APPEND(p->calls, c);
	if (!loop_timer_armed(p->sweep))
		(void)loop_timer_arm(p->sweep, SWEEP_MS);
	return c;
}

static void on_accept(struct h2_stream *s, const struct h2_fields *fields, bool last, void *arg)
{
	static const struct h2_events events = {.headers = on_down_headers,
						.data = on_down_data,
						.finished = on_down_finished,
						.sent = on_down_sent,
						.closed = on_down_closed};
	const struct h2_field *path = h2_field_find(fields, ":path");
	struct err err = ERR_INIT;
	struct proxy *p = arg;
	struct call *c = call_new(p, s, path ? path->value : "");
	if (!c) {
		h2_stream_reset(s, H2_INTERNAL_ERROR);
		return;
	}

	h2_stream_listen(s, &events, c);
	c->requested = last;
	bool intercepted = !last && (intercept_wants(c->path) || str_eq(c->path, EVENTS_PATH));
	int r = intercepted ? intercepted_new(c, fields) : open_up(c, fields, last, &err);
	if (!r)
		return;
	(void)err_prefix(&err, AWAY);
	tell_end(c, GRPC_UNAVAILABLE, err.text);
	call_free_if_over(c);
}

int proxy_new(const struct proxy_config *config, struct proxy **ret, struct err *err)
{
	struct proxy *p = calloc(1, sizeof *p);
	if (!p)
		return err_errno(err, -ENOMEM, "%s", config->listen);
	p->config = *config;
	p->sweep = loop_timer_new(config->loop, on_sweep, p);
	if (!p->sweep) {
		free(p);
		return err_errno(err, -ENOMEM, "%s", config->listen);
	}
	int r = grpc_server_new(&(struct grpc_server_config){.loop = config->loop,
							     .path = config->listen,
							     .mode = SOCKET_MODE,
							     .inherited = config->inherited,
							     .accept = on_accept,
							     .arg = p},
				&p->server, err);
	if (r) {
		loop_timer_free(p->sweep);
		free(p);
		return r;
	}
	*ret = p;
	return 0;
}

struct proxy *proxy_free(struct proxy *p)
{
	if (!p)
		return NULL;
	grpc_server_free(p->server);
	loop_timer_free(p->sweep);
	free(p);
	return NULL;
}
