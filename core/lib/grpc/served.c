/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that this process answers: one stream each. */
#include "core/lib/grpc/served.h"
#include "core/lib/util/clock.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIELDS_MAX 34u /* largest number of header fields: two of gRPC, the others the user's */

struct grpc_served {
	struct grpc_served_config config;
	struct h2_stream *stream;
	struct loop_timer *timer; /* fires at the time limit of the caller; NULL: no time limit */
	uint64_t deadline_ms;
	struct grpc_reader reader;
	bool responded;
	bool busy; /* a callback is running: do not free now */
	bool ended;
};

static struct grpc_served *served_free(struct grpc_served *c)
{
	loop_timer_free(c->timer);
	grpc_reader_fini(&c->reader);
	free(c);
	return NULL;
}

/* Ends the use of c, which is freed unless a callback is running. */
static void let_go(struct grpc_served *c)
{
	c->stream = NULL;
	c->ended = true;
	if (!c->busy)
		served_free(c);
}

static void served_enter(struct grpc_served *c)
{
	assert(!c->busy);
	c->busy = true;
}

/* Ends a callback. Returns false if c was freed during it. */
static bool served_leave(struct grpc_served *c)
{
	c->busy = false;
	if (!c->ended)
		return true;
	served_free(c);
	return false;
}

static void tell_gone(struct grpc_served *c)
{
	bool inside = c->busy;
	c->busy = true;
	c->config.gone(c, c->config.arg);
	c->busy = inside;
	let_go(c);
}

/* ---- sending --------------------------------------------------------------------------------- */

static void add_status(struct h2_fields *fields, struct h2_field *list, char number[8],
		       enum grpc_status status, const char *encoded)
{
	(void)snprintf(number, 8, "%d", status);
	list[fields->n++] = H2_FIELD("grpc-status", number);
	if (*encoded)
		list[fields->n++] = H2_FIELD("grpc-message", encoded);
}

static void add_all(struct h2_fields *fields, struct h2_field *list, const struct h2_fields *more)
{
	for (size_t i = 0; more && i < more->n && fields->n < FIELDS_MAX; i++)
		list[fields->n++] = more->list[i];
}

void grpc_refuse(struct h2_stream *s, enum grpc_status status, const char *text)
{
	char number[8], encoded[GRPC_TEXT_MAX];
	struct h2_field list[FIELDS_MAX] = {H2_FIELD(":status", "200"),
					    H2_FIELD("content-type", GRPC_CONTENT_TYPE)};
	struct h2_fields fields = {list, 2};
	grpc_encode_text(text, encoded, sizeof encoded);
	add_status(&fields, list, number, status, encoded);
	if (h2_stream_respond(s, &fields, true))
		h2_stream_reset(s, H2_INTERNAL_ERROR);
	else
		h2_stream_leave(s);
}

/* Sends the headers of the response before the first message. Without this call they are sent with
 * the first message. 0 or -ENOMEM. */
static int grpc_served_metadata(struct grpc_served *c, const struct h2_fields *metadata)
{
	struct h2_field list[FIELDS_MAX] = {H2_FIELD(":status", "200"),
					    H2_FIELD("content-type", GRPC_CONTENT_TYPE)};
	struct h2_fields fields = {list, 2};
	assert(!c->responded && !c->ended);
	add_all(&fields, list, metadata);
	c->responded = true;
	return h2_stream_respond(c->stream, &fields, false);
}

int grpc_served_send(struct grpc_served *c, const uint8_t *payload, size_t n)
{
	uint8_t prefix[GRPC_PREFIX_SIZE];
	assert(!c->ended && n <= UINT32_MAX);
	int r = c->responded ? 0 : grpc_served_metadata(c, NULL);
	grpc_prefix(prefix, (uint32_t)n);
	if (!r)
		r = h2_stream_write(c->stream, prefix, sizeof prefix);
	return r ? r : h2_stream_write(c->stream, payload, n);
}

void grpc_served_end(struct grpc_served *c, enum grpc_status status, const char *text,
		     const struct h2_fields *trailers)
{
	char number[8], encoded[GRPC_TEXT_MAX];
	struct h2_field list[FIELDS_MAX];
	struct h2_fields fields = {list, 0};
	assert(!c->ended);
	grpc_encode_text(text ? text : "", encoded, sizeof encoded);
	add_status(&fields, list, number, status, encoded);
	add_all(&fields, list, trailers);
	int r = c->responded ? 0 : grpc_served_metadata(c, NULL);
	if (!r)
		r = h2_stream_finish(c->stream, &fields);
	if (r)
		h2_stream_reset(c->stream, H2_INTERNAL_ERROR);
	else
		h2_stream_leave(c->stream);
	let_go(c);
}

/* ---- data from the caller -------------------------------------------------------------------- */

/* Ends the call on this side's initiative and notifies the user. */
static void abort_call(struct grpc_served *c, enum grpc_status status, const char *text)
{
	bool inside = c->busy;
	c->busy = true;
	grpc_served_end(c, status, text, NULL);
	c->config.gone(c, c->config.arg);
	c->busy = inside;
	if (!inside)
		served_free(c);
}

static void on_timer(void *arg)
{
	abort_call(arg, GRPC_DEADLINE_EXCEEDED, "no reply in time");
}

/* Passes received messages to the user. Returns false if c was freed during that. */
static bool tell_messages(struct grpc_served *c)
{
	struct grpc_message m;
	struct err err = ERR_INIT;
	int r;
	while ((r = grpc_reader_next(&c->reader, &m, &err)) > 0) {
		served_enter(c);
		c->config.message(c, &m, c->config.arg);
		if (!served_leave(c))
			return false;
		grpc_reader_drop(&c->reader);
	}
	if (!r)
		return true;
	abort_call(c, r == -EMSGSIZE ? GRPC_RESOURCE_EXHAUSTED : GRPC_INTERNAL, err.text);
	return false;
}

static void on_data(struct h2_stream *s, const uint8_t *data, size_t n, void *arg)
{
	struct grpc_served *c = arg;
	if (grpc_reader_add(&c->reader, data, n)) {
		abort_call(c, GRPC_RESOURCE_EXHAUSTED, "out of memory for the request");
		return;
	}
	if (tell_messages(c))
		h2_stream_consume(s, n);
}

static void on_finished(struct h2_stream *s, void *arg)
{
	struct grpc_served *c = arg;
	if (grpc_reader_partial(&c->reader)) {
		abort_call(c, GRPC_INTERNAL, "a request that ends within its message");
		return;
	}
	served_enter(c);
	c->config.finished(c, c->config.arg);
	(void)served_leave(c);
}

/* Handles a caller's trailers. gRPC does not define any, so they only end its messages. */
static void on_headers(struct h2_stream *s, const struct h2_fields *fields, bool last, void *arg)
{
	if (last)
		on_finished(s, arg);
}

static void on_sent(struct h2_stream *s, size_t n, void *arg)
{
	struct grpc_served *c = arg;
	if (c->config.sent)
		c->config.sent(c, n, c->config.arg);
}

static void on_closed(struct h2_stream *s, const struct h2_end *end, void *arg)
{
	tell_gone(arg);
}

/* ---- beginning ------------------------------------------------------------------------------- */

static int set_timer(struct grpc_served *c, uint64_t timeout_ms)
{
	if (timeout_ms == UINT64_MAX)
		return 0;
	c->deadline_ms = clock_ms() + timeout_ms;
	c->timer = loop_timer_new(c->config.loop, on_timer, c);
	return c->timer ? loop_timer_arm(c->timer, timeout_ms) : -ENOMEM;
}

int grpc_serve(struct h2_stream *s, const struct h2_fields *fields, bool last,
	       const struct grpc_served_config *config, struct grpc_served **ret)
{
	static const struct h2_events events = {.headers = on_headers,
						.data = on_data,
						.finished = on_finished,
						.sent = on_sent,
						.closed = on_closed};
	uint64_t timeout_ms = UINT64_MAX;
	if (!grpc_is_content_type(h2_field_find(fields, "content-type")) || last ||
	    grpc_timeout_ms(h2_field_find(fields, "grpc-timeout"), &timeout_ms)) {
		grpc_refuse(s, GRPC_INTERNAL, "a request that is not gRPC");
		return -EINVAL;
	}
	struct grpc_served *c = calloc(1, sizeof *c);
	if (!c) {
		h2_stream_reset(s, H2_INTERNAL_ERROR);
		return -ENOMEM;
	}
	c->config = *config;
	c->stream = s;
	c->reader.message_max = config->message_max ? config->message_max : GRPC_MESSAGE_MAX;
	if (set_timer(c, timeout_ms)) {
		h2_stream_reset(s, H2_INTERNAL_ERROR);
		served_free(c);
		return -ENOMEM;
	}
	h2_stream_listen(s, &events, c);
	*ret = c;
	return 0;
}
