/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of a client: one stream each. */
#include "core/lib/grpc/call.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HTTP_OK 200
#define OWN_FIELDS 8u
#define METADATA_MAX 32u

struct grpc_call {
	struct h2_stream *stream;
	struct loop_timer *timer; /* fires at the time limit of the call; NULL: no time limit */
	void (*message)(const uint8_t *payload, size_t n, void *arg);
	grpc_done done;
	void *arg;
	struct grpc_reader reader;
	int32_t status;
	char text[ERR_TEXT_MAX]; /* text of the server's status */
	bool answered; /* headers of the answer have been received */
	bool telling; /* a callback is running: do not free now */
	bool cancelled; /* the call was cancelled: no further callbacks */
};

static struct grpc_call *call_free(struct grpc_call *c)
{
	loop_timer_free(c->timer);
	grpc_reader_fini(&c->reader);
	free(c);
	return NULL;
}

struct grpc_call *grpc_call_cancel(struct grpc_call *c)
{
	if (!c)
		return NULL;
	c->stream = h2_stream_reset(c->stream, H2_CANCEL);
	c->cancelled = true;
	return c->telling ? NULL : call_free(c);
}

/* Reports the end of the call, whose stream is already freed. If this happens during the callback
 * of a message, the call is freed when the callback returns. */
static void call_tell(struct grpc_call *c, const struct grpc_result *result)
{
	bool inside = c->telling;
	c->telling = true;
	c->done(result, c->arg);
	c->cancelled = true;
	if (!inside)
		call_free(c);
}

/* Ends the call because the answer is invalid. The remaining answer is ignored. */
static void give_up(struct grpc_call *c, const struct err *why)
{
	struct grpc_result result = {.error = why->code, .status = c->status, .text = why->text};
	c->stream = h2_stream_reset(c->stream, H2_CANCEL);
	call_tell(c, &result);
}

static void on_timer(void *arg)
{
	struct err err = ERR_INIT;
	(void)err_set(&err, -ETIMEDOUT, "no reply in time");
	give_up(arg, &err);
}

/* ---- data from the server -------------------------------------------------------------------- */

static int check_headers(const struct h2_fields *fields, struct err *err)
{
	const struct h2_field *status = h2_field_find(fields, ":status");
	int32_t http = status ? grpc_small_number(status->value, status->value_len) : 0;
	if (http == HTTP_OK && grpc_is_content_type(h2_field_find(fields, "content-type")))
		return 0;
	return err_set(err, -EBADMSG, "a reply that is not gRPC (HTTP status %" PRId32 ")", http);
}

static void on_headers(struct h2_stream *s, const struct h2_fields *fields, bool last, void *arg)
{
	struct grpc_call *c = arg;
	struct err err = ERR_INIT;
	int r = 0;
	if (!c->answered)
		r = check_headers(fields, &err);
	else if (!last)
		r = err_set(&err, -EBADMSG, "a reply with headers in the middle");
	c->answered = true;
	if (r) {
		give_up(c, &err);
		return;
	}
	if (!last)
		return;
	c->status = grpc_status_of(fields);
	const struct h2_field *text = h2_field_find(fields, "grpc-message");
	if (text)
		grpc_decode_text((const uint8_t *)text->value, text->value_len, c->text,
				 sizeof c->text);
}

static int check_message(const struct grpc_message *m, struct err *err)
{
	return m->compressed ? err_set(err, -EBADMSG,
				       "a compressed reply, although compression was not offered")
			     : 0;
}

/* Passes each message of a stream to the user as it arrives. 1: the user has cancelled the call. */
static int tell_messages(struct grpc_call *c, struct err *err)
{
	struct grpc_message m;
	int r;
	while ((r = grpc_reader_next(&c->reader, &m, err)) > 0) {
		r = check_message(&m, err);
		if (r)
			return r;
		c->telling = true;
		c->message(m.data, m.n, c->arg);
		c->telling = false;
		if (c->cancelled)
			return 1;
		grpc_reader_drop(&c->reader);
	}
	return r;
}

/* Checks a single answer, which stays in the buffer until the status arrives. */
static int check_single(const struct grpc_call *c, struct err *err)
{
	struct grpc_message m;
	const uint8_t *p = buf_bytes(&c->reader.in);
	if (p && buf_len(&c->reader.in) >= GRPC_PREFIX_SIZE && p[0] == 1)
		return check_message(&(struct grpc_message){.compressed = true}, err);
	int r = grpc_reader_next(&c->reader, &m, err);
	if (r > 0 && buf_len(&c->reader.in) > GRPC_PREFIX_SIZE + m.n)
		return err_set(err, -EBADMSG, "a reply of more than one message");
	return r < 0 ? r : 0;
}

static void on_data(struct h2_stream *s, const uint8_t *data, size_t n, void *arg)
{
	struct grpc_call *c = arg;
	struct err err = ERR_INIT;
	/* A server that announces a short message and sends more can add at most one frame. */
	int r = grpc_reader_add(&c->reader, data, n);
	if (r)
		(void)err_set(&err, r, "out of memory for the reply");
	else
		r = c->message ? tell_messages(c, &err) : check_single(c, &err);
	if (r > 0)
		call_free(c);
	else if (r)
		give_up(c, &err);
	else
		h2_stream_consume(s, n);
}

/* ---- end of the call ------------------------------------------------------------------------- */

int grpc_result_error(const struct grpc_result *result)
{
	bool late = result->error == -EREMOTEIO && result->status == GRPC_DEADLINE_EXCEEDED;
	return late ? -ETIMEDOUT : result->error;
}

static int call_judge(const struct grpc_call *c, const struct h2_end *end, struct grpc_message *ret,
		      struct err *err)
{
	if (end->error && c->status == GRPC_STATUS_UNTOLD)
		return err_set(err, end->error, "%s", end->text);
	if (end->code && c->status == GRPC_STATUS_UNTOLD)
		return err_set(err, end->code == H2_PROTOCOL_ERROR ? -EBADMSG : -ECONNRESET,
			       "the call was aborted: %s", end->text);
	if (c->status == GRPC_STATUS_UNTOLD)
		return err_set(err, -EBADMSG, "a reply without a gRPC status");
	if (c->status)
		return err_set(err, -EREMOTEIO, "%s",
			       *c->text ? c->text : "an error without a text");
	if (!c->message && grpc_reader_next(&c->reader, ret, NULL) > 0)
		return 0;
	if (!c->message || grpc_reader_partial(&c->reader))
		return err_set(err, -EBADMSG, "a reply that ends within its message");
	return 0;
}

static void on_closed(struct h2_stream *s, const struct h2_end *end, void *arg)
{
	struct grpc_call *c = arg;
	struct grpc_message m = {0};
	struct err err = ERR_INIT;
	c->stream = NULL;
	int r = call_judge(c, end, &m, &err);
	struct grpc_result result = {.error = r,
				     .status = c->status,
				     .text = err.text,
				     .payload = m.data,
				     .payload_len = m.n};
	call_tell(c, &result);
}

/* ---- sending --------------------------------------------------------------------------------- */

static int open_stream(struct grpc_call *c, const struct grpc_call_config *config)
{
	static const struct h2_events events = {
		.headers = on_headers, .data = on_data, .closed = on_closed};
	struct h2_field list[OWN_FIELDS + METADATA_MAX] = {
		H2_FIELD(":method", "POST"),
		H2_FIELD(":scheme", "http"),
		H2_FIELD(":path", config->path),
		H2_FIELD(":authority", "localhost"),
		H2_FIELD("content-type", GRPC_CONTENT_TYPE),
		H2_FIELD("te", "trailers"),
		H2_FIELD("user-agent", "nri-rp/" NRI_RP_VERSION),
	};
	struct h2_fields fields = {list, OWN_FIELDS - 1};
	char timeout[16];
	(void)snprintf(timeout, sizeof timeout, "%" PRIu32 "m", config->timeout_ms);
	if (config->timeout_ms)
		list[fields.n++] = H2_FIELD("grpc-timeout", timeout);
	if (config->metadata.n > METADATA_MAX)
		return -EINVAL;
	for (size_t i = 0; i < config->metadata.n; i++)
		list[fields.n++] = config->metadata.list[i];
	return h2_open(config->h2, &fields, false, &events, c, &c->stream);
}

static int call_start(struct grpc_call *c, const struct grpc_call_config *config)
{
	if (config->timeout_ms) {
		c->timer = loop_timer_new(config->loop, on_timer, c);
		if (!c->timer || loop_timer_arm(c->timer, config->timeout_ms))
			return -ENOMEM;
	}
	return open_stream(c, config);
}

int grpc_call_packed(const struct grpc_call_config *config, const uint8_t *payload, size_t n,
		     struct grpc_call **ret)
{
	uint8_t prefix[GRPC_PREFIX_SIZE];
	struct grpc_call *c = n > UINT32_MAX ? NULL : calloc(1, sizeof *c);
	if (!c)
		return -ENOMEM;
	c->status = GRPC_STATUS_UNTOLD;
	c->message = config->message;
	c->done = config->done;
	c->arg = config->arg;
	c->reader.message_max = config->message_max ? config->message_max : GRPC_MESSAGE_MAX;
	int r = call_start(c, config);
	grpc_prefix(prefix, (uint32_t)n);
	if (!r)
		r = h2_stream_write(c->stream, prefix, sizeof prefix);
	if (!r)
		r = h2_stream_write(c->stream, payload, n);
	if (!r)
		r = h2_stream_finish(c->stream, NULL);
	if (r) {
		c->stream = h2_stream_reset(c->stream, H2_CANCEL);
		call_free(c);
		return r;
	}
	if (ret)
		*ret = c;
	return 0;
}

int grpc_call(const struct grpc_call_config *config, const ProtobufCMessage *msg,
	      struct grpc_call **ret)
{
	struct buf packed = BUF_INIT;
	int r = grpc_pack(&packed, msg);
	if (!r)
		r = grpc_call_packed(config, buf_bytes(&packed) + GRPC_PREFIX_SIZE,
				     buf_len(&packed) - GRPC_PREFIX_SIZE, ret);
	buf_fini(&packed);
	return r;
}
