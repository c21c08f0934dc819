/* SPDX-License-Identifier: Apache-2.0 */
/* Encodes and decodes ttrpc messages, and matches answers to calls by their streams. */
#include "core/lib/wire/rpc.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <utlist.h>

#include "core/lib/util/log.h"
#include "core/lib/util/getter.h"
#include "core/lib/util/pack.h"
#include "core/lib/util/prefault.h"
#include "core/lib/util/str.h"
#include "core/lib/wire/mux.h"
#include "core/lib/util/clock.h"

#define LOG_SOURCE "wire"
/* Unused handles retained for the next request or call, so that the usual single one needs no
 * allocation. */
#define SPARE_MAX 8u
/* Sizes of the buffer for packing payloads: enough for usual answers, and the limit of what is
 * retained after a large one. */
#define ROOM_MIN 4096u
#define ROOM_KEEP (256u << 10)

struct call {
	uint32_t stream;
	uint64_t deadline_ms; /* time at which the call fails with -ETIMEDOUT; 0: never */
	rpc_done done;
	void *arg;
	struct call *prev, *next;
};

struct rpc {
	struct rpc_config config;
	bool closed;
	bool failed; /* the peer cannot be answered, so its requests are ignored */

	rpc_handler handler;
	void *handler_arg;
	uint32_t last_stream; /* stream of the peer's last request */
	struct ttrpc_request request; /* passed to the handler */
	struct rpc_request *current; /* handle of the request, until it is answered */
	struct rpc_request *pending, *spare_requests;
	unsigned n_pending, n_spare_requests;

	/* id of the stream for the next call; no more calls are possible above 32 bits */
	uint64_t next_stream;
	struct call *calls, *spare_calls;
	unsigned n_calls, n_spare_calls;

	uint8_t *room; /* buffer for a packed payload */
	size_t room_size;
};

struct rpc *rpc_new(const struct rpc_config *config)
{
	struct rpc *rpc = calloc(1, sizeof *rpc);
	if (!rpc)
		return NULL;
	rpc->config = *config;
	if (!rpc->config.recv_max)
		rpc->config.recv_max = TTRPC_MESSAGE_MAX;
	if (!rpc->config.send_max)
		rpc->config.send_max = TTRPC_MESSAGE_MAX;
	if (!rpc->config.first_max)
		rpc->config.first_max = MUX_FIRST_FRAME_MAX;
	if (!rpc->config.calls_out_max)
		rpc->config.calls_out_max = SIZE_MAX;
	if (!rpc->config.answers_out_max)
		rpc->config.answers_out_max = SIZE_MAX;
	rpc->next_stream = config->first_stream ? config->first_stream : 1;
	return rpc;
}

struct rpc *rpc_free(struct rpc *rpc)
{
	if (!rpc)
		return NULL;
	rpc_close(rpc, -ECANCELED);
	struct rpc_request *req, *next_req;
	LL_FOREACH_SAFE(rpc->spare_requests, req, next_req)
	free(req);
	struct call *call, *next_call;
	LL_FOREACH_SAFE(rpc->spare_calls, call, next_call)
	free(call);
	free(rpc->room);
	free(rpc);
	return NULL;
}

void rpc_serve(struct rpc *rpc, rpc_handler handler, void *arg)
{
	rpc->handler = handler;
	rpc->handler_arg = arg;
}

DEFINE_GETTER_OF(rpc_n_pending, unsigned, const struct rpc *rpc, rpc->n_pending)
DEFINE_GETTER_OF(rpc_n_calls, unsigned, const struct rpc *rpc, rpc->n_calls)

/* ---- sending ---- */

static bool make_room(struct rpc *rpc, size_t size)
{
	free(rpc->room);
	rpc->room = malloc(size);
	rpc->room_size = rpc->room ? size : 0;
	return rpc->room;
}

/* Packs a payload in one pass if possible; otherwise the encoder of the envelope packs it in
 * two. */
static void pack_payload(struct rpc *rpc, struct ttrpc_out *out)
{
	int r = rpc->room || make_room(rpc, ROOM_MIN) ? -ENOBUFS : -ENOMEM;
	while (r == -ENOBUFS) {
		r = pack_backwards(out->payload, rpc->room, rpc->room_size, &out->payload_len);
		if (r == -ENOBUFS && !make_room(rpc, rpc->room_size * 2))
			r = -ENOMEM;
	}
	out->packed = r ? NULL : rpc->room + rpc->room_size - out->payload_len;
}

static void leave_room(struct rpc *rpc)
{
	if (rpc->room_size > ROOM_KEEP)
		(void)make_room(rpc, ROOM_MIN);
}

static int send_message(struct rpc *rpc, enum ttrpc_type type, uint32_t stream,
			const struct ttrpc_out *out, size_t size)
{
	const struct rpc_config *c = &rpc->config;
	size_t total = TTRPC_HEADER_SIZE + size;
	uint8_t *p = c->conn ? mux_begin(c->out, total, c->first_max) : buf_reserve(c->out, total);
	if (!p)
		return -ENOMEM;
	ttrpc_header_encode(p, &(struct ttrpc_header){(uint32_t)size, stream, (uint8_t)type, 0});
	if (type == TTRPC_REQUEST)
		ttrpc_request_encode(out, p + TTRPC_HEADER_SIZE);
	else
		ttrpc_response_encode(out, p + TTRPC_HEADER_SIZE);
	if (c->conn)
		mux_end(c->out, c->conn, total, c->first_max);
	else
		buf_commit(c->out, total);
	c->output(c->arg);
	return 0;
}

static int rpc_fail(struct rpc *rpc, int error)
{
	rpc->failed = true;
	rpc->config.failed(error, rpc->config.arg);
	return error;
}

/*
 * Sends a response. Without an answer the peer would wait until its time-out, so the connection
 * ends if none can be sent.
 */
static int send_response(struct rpc *rpc, uint32_t stream, struct ttrpc_out *out)
{
	if (out->payload)
		pack_payload(rpc, out);
	size_t size = ttrpc_response_size(out);
	int r = 0;
	char text[128];
	if (size > rpc->config.send_max) {
		(void)snprintf(text, sizeof text, "the reply has %zu bytes, at most %u can be sent",
			       size, rpc->config.send_max);
		*out = (struct ttrpc_out){.code = TTRPC_RESOURCE_EXHAUSTED, .text = text};
		size = ttrpc_response_size(out);
		r = -EMSGSIZE;
	}
	if (buf_len(rpc->config.out) > rpc->config.answers_out_max)
		return rpc_fail(rpc, -ENOBUFS);
	if (send_message(rpc, TTRPC_RESPONSE, stream, out, size))
		return rpc_fail(rpc, -ENOMEM);
	leave_room(rpc);
	return r;
}

static void send_error(struct rpc *rpc, uint32_t stream, enum ttrpc_code code, const char *text)
{
	(void)send_response(rpc, stream, &(struct ttrpc_out){.code = code, .text = text});
}

/* ---- serving ---- */

static struct rpc_request *request_new(struct rpc *rpc)
{
	struct rpc_request *req = rpc->spare_requests;
	if (!req)
		return malloc(sizeof *req);
	LL_DELETE(rpc->spare_requests, req);
	rpc->n_spare_requests--;
	return req;
}

/* Ends the handle; returns the connection for the answer, or NULL. */
static struct rpc *request_end(struct rpc_request *req)
{
	struct rpc *rpc = req->rpc;
	if (!rpc) {
		free(req);
		return NULL;
	}
	assert(rpc->n_pending);
	DL_DELETE(rpc->pending, req);
	rpc->n_pending--;
	if (rpc->current == req)
		rpc->current = NULL;
	if (rpc->n_spare_requests < SPARE_MAX) {
		LL_PREPEND(rpc->spare_requests, req);
		rpc->n_spare_requests++;
	} else {
		free(req);
	}
	return rpc;
}

int rpc_reply(struct rpc_request *req, const ProtobufCMessage *msg)
{
	uint32_t stream = req->stream;
	struct rpc *rpc = request_end(req);
	if (!rpc)
		return -ENOTCONN;
	return send_response(rpc, stream, &(struct ttrpc_out){.code = TTRPC_OK, .payload = msg});
}

int rpc_reply_error(struct rpc_request *req, enum ttrpc_code code, const char *fmt, ...)
{
	/* Room for one more character than is sent, so that utf8_cut sees the one at the cut. */
	char text[TTRPC_TEXT_MAX + 5];
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	if (n < 0)
		text[0] = '\0';
	text[utf8_cut(text, TTRPC_TEXT_MAX)] = '\0';
	/* A Go peer refuses a whole message if its text is invalid. */
	utf8_mend(text);
	uint32_t stream = req->stream;
	struct rpc *rpc = request_end(req);
	if (!rpc)
		return -ENOTCONN;
	/* Code 0 would be treated as success. */
	return send_response(
		rpc, stream,
		&(struct ttrpc_out){.code = code ? code : TTRPC_UNKNOWN, .text = text});
}

static void rpc_do_serve(struct rpc *rpc, uint32_t stream, const uint8_t *data, size_t n,
			 uint64_t now_ns)
{
	if (stream % 2 == 0 || stream <= rpc->last_stream) {
		send_error(rpc, stream, TTRPC_INVALID_ARGUMENT,
			   "stream numbers must be odd and increasing");
		return;
	}
	rpc->last_stream = stream;
	struct ttrpc_request *r = &rpc->request;
	struct err err = ERR_INIT;
	if (ttrpc_request_decode(data, n, r, &err)) {
		send_error(rpc, stream, TTRPC_INVALID_ARGUMENT, err.text);
		return;
	}
	if (!rpc->handler) {
		send_error(rpc, stream, TTRPC_UNIMPLEMENTED, "this connection serves no requests");
		return;
	}
	struct rpc_request *req = rpc->n_pending < RPC_PENDING_MAX ? request_new(rpc) : NULL;
	if (!req) {
		send_error(rpc, stream, TTRPC_RESOURCE_EXHAUSTED,
			   "too many requests are in progress");
		return;
	}
	*req = (struct rpc_request){.service = r->service,
				    .method = r->method,
				    .payload = r->payload,
				    .payload_len = r->payload_len,
				    .timeout_ns = r->timeout_ns,
				    .received_ns = now_ns,
				    .stream = stream,
				    .rpc = rpc};
	DL_APPEND(rpc->pending, req);
	rpc->n_pending++;
	rpc->current = req;
	rpc->handler(req, rpc->handler_arg);
	if (rpc->current) {
		req->service = req->method = NULL;
		req->payload = NULL;
		req->payload_len = 0;
		rpc->current = NULL;
	}
}

void rpc_refuse_pending(struct rpc *rpc, enum ttrpc_code code, const char *text)
{
	struct rpc_request *req, *next;
	DL_FOREACH_SAFE(rpc->pending, req, next)
	{
		assert(rpc->n_pending && req->rpc == rpc);
		DL_DELETE(rpc->pending, req);
		rpc->n_pending--;
		req->rpc = NULL;
		send_error(rpc, req->stream, code, text);
	}
	rpc->current = NULL;
}

/* ---- calling ---- */

static struct call *call_new(struct rpc *rpc)
{
	struct call *call = rpc->spare_calls;
	if (!call)
		return malloc(sizeof *call);
	LL_DELETE(rpc->spare_calls, call);
	rpc->n_spare_calls--;
	return call;
}

static void call_release(struct rpc *rpc, struct call *call)
{
	if (rpc->n_spare_calls < SPARE_MAX) {
		LL_PREPEND(rpc->spare_calls, call);
		rpc->n_spare_calls++;
	} else {
		free(call);
	}
}

int rpc_call(struct rpc *rpc, const char *service, const char *method, const ProtobufCMessage *msg,
	     uint64_t timeout_ms, rpc_done done, void *arg)
{
	if (rpc->closed)
		return -ENOTCONN;
	if (rpc->next_stream > UINT32_MAX)
		return -EOVERFLOW;
	if (buf_len(rpc->config.out) > rpc->config.calls_out_max)
		return -ENOBUFS;
	if (timeout_ms > INT64_MAX / 1000000)
		timeout_ms = INT64_MAX / 1000000;
	struct ttrpc_out out = {.service = service,
				.method = method,
				.timeout_ns = (int64_t)timeout_ms * 1000000,
				.payload = msg};
	size_t size = ttrpc_request_size(&out);
	if (size > rpc->config.send_max)
		return -EMSGSIZE;
	struct call *call = call_new(rpc);
	if (!call)
		return -ENOMEM;
	*call = (struct call){.stream = (uint32_t)rpc->next_stream,
			      .deadline_ms = timeout_ms ? clock_ms() + timeout_ms : 0,
			      .done = done,
			      .arg = arg};
	DL_APPEND(rpc->calls, call);
	rpc->n_calls++;
	if (send_message(rpc, TTRPC_REQUEST, call->stream, &out, size)) {
		DL_DELETE(rpc->calls, call);
		rpc->n_calls--;
		call_release(rpc, call);
		return -ENOMEM;
	}
	rpc->next_stream += 2;
	return 0;
}

static void call_end(struct rpc *rpc, struct call *call, const struct rpc_result *result)
{
	assert(rpc->n_calls);
	rpc_done done = call->done;
	void *arg = call->arg;
	DL_DELETE(rpc->calls, call);
	rpc->n_calls--;
	call_release(rpc, call);
	if (done)
		done(result, arg);
}

static void call_fail(struct rpc *rpc, struct call *call, int error, int32_t code, const char *text)
{
	call_end(rpc, call, &(struct rpc_result){.error = error, .code = code, .text = text});
}

static void rpc_complete(struct rpc *rpc, uint32_t stream, const uint8_t *data, size_t n)
{
	struct call *call;
	DL_FOREACH (rpc->calls, call)
		if (call->stream == stream)
			break;
	if (!call) {
		log_debug("a reply for stream %u, which has no open request", stream);
		return;
	}
	struct ttrpc_response res;
	struct err err = ERR_INIT;
	if (ttrpc_response_decode(data, n, &res, &err)) {
		call_fail(rpc, call, -EBADMSG, TTRPC_INTERNAL, err.text);
		return;
	}
	if (res.code != TTRPC_OK) {
		char text[ERR_TEXT_MAX];
		(void)snprintf(text, sizeof text, "%.*s",
			       (int)(res.text_len < sizeof text ? res.text_len : sizeof text - 1),
			       res.text ? (const char *)res.text : "");
		call_fail(rpc, call, -EREMOTEIO, res.code, text);
		return;
	}
	call_end(rpc, call,
		 &(struct rpc_result){
			 .text = "", .payload = res.payload, .payload_len = res.payload_len});
}

uint64_t rpc_deadline_ms(const struct rpc *rpc)
{
	uint64_t first = 0;
	const struct call *call;
	DL_FOREACH (rpc->calls, call)
		if (call->deadline_ms && (!first || call->deadline_ms < first))
			first = call->deadline_ms;
	return first;
}

static struct call *first_expired(const struct rpc *rpc, uint64_t now_ms)
{
	struct call *call;
	DL_FOREACH (rpc->calls, call)
		if (call->deadline_ms && call->deadline_ms <= now_ms)
			return call;
	return NULL;
}

void rpc_expire(struct rpc *rpc, uint64_t now_ms)
{
	struct call *call;
	while ((call = first_expired(rpc, now_ms)))
		call_fail(rpc, call, -ETIMEDOUT, TTRPC_DEADLINE_EXCEEDED, "no reply in time");
}

/* ---- the connection ---- */

static bool is_pending(const struct rpc *rpc, uint32_t stream)
{
	const struct rpc_request *req;
	DL_FOREACH (rpc->pending, req)
		if (req->stream == stream)
			return true;
	return false;
}

static void take_message(struct rpc *rpc, const struct ttrpc_header *h, const uint8_t *data,
			 uint64_t now_ns)
{
	switch (h->type) {
	case TTRPC_REQUEST:
		rpc_do_serve(rpc, h->stream, data, h->length, now_ns);
		break;
	case TTRPC_RESPONSE:
		rpc_complete(rpc, h->stream, data, h->length);
		break;
	case TTRPC_DATA:
		if (!is_pending(rpc, h->stream))
			send_error(rpc, h->stream, TTRPC_INVALID_ARGUMENT,
				   "data for a closed stream");
		break;
	default:
		log_debug("ignoring a ttrpc message of unknown type %u", h->type);
	}
}

int rpc_input(struct rpc *rpc, struct buf *in, uint64_t now_ns, struct err *err)
{
	while (!rpc->closed && !rpc->failed && buf_len(in) >= TTRPC_HEADER_SIZE) {
		struct ttrpc_header h;
		ttrpc_header_decode(buf_bytes(in), &h);
		if (h.length > rpc->config.recv_max)
			return err_set(
				err, -EMSGSIZE,
				"the peer sends a message of %u bytes, at most %u are accepted",
				h.length, rpc->config.recv_max);
		size_t has = buf_len(in) - TTRPC_HEADER_SIZE;
		if (has < h.length) {
			/* Reserving all bytes at once is cheaper than growing. If that fails,
			 * appending will report it. */
			size_t had = in->cap;
			uint8_t *rest = buf_reserve(in, h.length - has);
			if (rest && in->cap != had)
				prefault(rest, h.length - has);
			return 0;
		}
		take_message(rpc, &h, buf_bytes(in) + TTRPC_HEADER_SIZE, now_ns);
		buf_consume(in, TTRPC_HEADER_SIZE + (size_t)h.length);
	}
	return 0;
}

void rpc_shut(struct rpc *rpc)
{
	rpc->closed = true;
	rpc->current = NULL;
	struct rpc_request *req, *next;
	DL_FOREACH_SAFE(rpc->pending, req, next)
	{
		DL_DELETE(rpc->pending, req);
		req->rpc = NULL;
	}
	rpc->n_pending = 0;
}

void rpc_close(struct rpc *rpc, int error)
{
	rpc_shut(rpc);
	bool ours = error == -ECANCELED;
	while (rpc->calls)
		call_fail(rpc, rpc->calls, error, ours ? TTRPC_CANCELLED : TTRPC_UNAVAILABLE,
			  ours ? "the connection was closed" : "the connection was lost");
}
