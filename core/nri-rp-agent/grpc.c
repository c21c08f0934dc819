/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-agent/grpc.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nghttp2/nghttp2.h>
#include <utlist.h>

#include "core/util/log.h"
#include "core/util/loop.h"
#include "core/util/str.h"
#include "core/wire/be.h"

#define LOG_SOURCE "grpc"
/* A stream may be half of this behind before the server waits for us; large lists come in one piece all the same. */
#define STREAM_WINDOW (1u << 20)
#define CONNECTION_WINDOW (4 << 20)
#define STATUS_UNTOLD (-1)
#define STATUS_UNKNOWN 2
#define STATUS_LAST 16
#define HTTP_OK 200
#define CONTENT_TYPE "application/grpc"

struct call {
	struct grpc *grpc;
	int32_t stream; /* 0: ended, nothing more of it counts */
	uint64_t deadline_ms;
	grpc_done done;
	void *arg;
	struct buf request, answer;
	size_t n_headers; /* bytes of what came so far */
	int http_status; /* 0: not told */
	bool is_grpc; /* by its content type */
	int32_t status;
	char text[ERR_TEXT_MAX]; /* what the server says */
	struct err wrong; /* what we say, if its code is not 0 */
	struct call *prev, *next;
};

struct grpc {
	struct grpc_config config;
	nghttp2_session *session;
	struct call *calls, *ended;
	unsigned n_calls;
	bool closed;
};

/* ---- text -------------------------------------------------------------------------------------------------------------- */

static int hex_digit(uint8_t c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

void grpc_decode_text(const uint8_t *data, size_t n, char *ret, size_t size)
{
	size_t len = 0;
	for (size_t i = 0; i < n && len + 1 < size; i++) {
		int high = data[i] == '%' && n - i > 2 ? hex_digit(data[i + 1]) : -1;
		int low = high >= 0 ? hex_digit(data[i + 2]) : -1;
		ret[len] = (char)data[i];
		if (low >= 0) {
			ret[len] = (char)(high << 4 | low);
			i += 2;
		}
		if (!ret[len])
			ret[len] = '?';
		len++;
	}
	ret[len] = '\0';
	/* The end may be within a character. */
	size_t cut = len + 1 == size ? utf8_cut(ret, len - (len > 0)) : len;
	ret[cut] = '\0';
	if (!utf8_valid(ret, cut))
		for (char *p = ret; *p; p++)
			if ((unsigned char)*p >= 0x80)
				*p = '?';
	str_one_line(ret);
}

/* ---- calls ------------------------------------------------------------------------------------------------------------- */

static struct call *call_free(struct call *c)
{
	buf_fini(&c->request);
	buf_fini(&c->answer);
	free(c);
	return NULL;
}

/* Off the list of those under way: what its stream does from now on is of no interest. */
static void detach(struct call *c)
{
	struct grpc *g = c->grpc;
	if (g->session)
		(void)nghttp2_session_set_stream_user_data(g->session, c->stream, NULL);
	c->stream = 0;
	DL_DELETE(g->calls, c);
	g->n_calls--;
}

/* Its callback waits until nghttp2 is done with what it is doing. */
static void end(struct call *c)
{
	struct grpc *g = c->grpc;
	detach(c);
	DL_APPEND(g->ended, c);
}

static void give_up(struct call *c)
{
	(void)nghttp2_submit_rst_stream(c->grpc->session, NGHTTP2_FLAG_NONE, c->stream,
					NGHTTP2_CANCEL);
	end(c);
}

static void judge(struct call *c)
{
	const uint8_t *p = buf_bytes(&c->answer);
	size_t n = buf_len(&c->answer);
	if (c->wrong.code)
		return;
	if (c->status == STATUS_UNTOLD)
		(void)err_set(&c->wrong, -EBADMSG,
			      "an answer without a gRPC status (HTTP status %d)", c->http_status);
	else if (c->status)
		(void)err_set(&c->wrong, -EREMOTEIO, "%s",
			      *c->text ? c->text : "an error without a text");
	else if (!p || n < GRPC_PREFIX_SIZE || n - GRPC_PREFIX_SIZE != get_be32(p + 1))
		(void)err_set(&c->wrong, -EBADMSG, "an answer that ends before its message does");
}

static void tell(struct call *c)
{
	struct grpc_result result = {
		.error = c->wrong.code, .status = c->status, .text = c->wrong.text};
	if (!c->wrong.code) {
		result.payload = buf_bytes(&c->answer) + GRPC_PREFIX_SIZE;
		result.payload_len = buf_len(&c->answer) - GRPC_PREFIX_SIZE;
	}
	c->done(&result, c->arg);
	call_free(c);
}

static void tell_ended(struct grpc *g)
{
	while (g->ended) {
		struct call *c = g->ended;
		DL_DELETE(g->ended, c);
		tell(c);
	}
}

/* ---- what the server sends --------------------------------------------------------------------------------------------- */

static bool is_named(const uint8_t *name, size_t len, const char *what)
{
	return len == strlen(what) && memcmp(name, what, len) == 0;
}

/* A small number of plain digits; -1: it is none. */
static int32_t small_number(const uint8_t *text, size_t n)
{
	int32_t value = 0;
	if (!n || n > 4)
		return -1;
	for (size_t i = 0; i < n; i++) {
		if (text[i] < '0' || text[i] > '9')
			return -1;
		value = value * 10 + (text[i] - '0');
	}
	return value;
}

static void take_status(struct call *c, const uint8_t *value, size_t n)
{
	int32_t status = small_number(value, n);
	c->status = status < 0 || status > STATUS_LAST ? STATUS_UNKNOWN : status;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
		     size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags,
		     void *arg)
{
	struct call *c = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
	(void)flags;
	(void)arg;
	if (!c)
		return 0;
	c->n_headers += name_len + value_len;
	if (c->n_headers > GRPC_HEADERS_MAX) {
		(void)err_set(&c->wrong, -EMSGSIZE, "an answer with more than %u bytes of headers",
			      GRPC_HEADERS_MAX);
		give_up(c);
		return 0;
	}
	if (is_named(name, name_len, ":status"))
		c->http_status = small_number(value, value_len);
	else if (is_named(name, name_len, "content-type"))
		c->is_grpc = value_len >= sizeof CONTENT_TYPE - 1 &&
			     memcmp(value, CONTENT_TYPE, sizeof CONTENT_TYPE - 1) == 0;
	else if (is_named(name, name_len, "grpc-status"))
		take_status(c, value, value_len);
	else if (is_named(name, name_len, "grpc-message"))
		grpc_decode_text(value, value_len, c->text, sizeof c->text);
	return 0;
}

/* The headers are complete: is this an answer of gRPC's at all? */
static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
	struct call *c = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
	(void)arg;
	if (!c || frame->hd.type != NGHTTP2_HEADERS ||
	    frame->headers.cat != NGHTTP2_HCAT_RESPONSE || c->wrong.code)
		return 0;
	if (c->http_status == HTTP_OK && c->is_grpc)
		return 0;
	(void)err_set(&c->wrong, -EBADMSG, "an answer that is none of gRPC (HTTP status %d)",
		      c->http_status);
	give_up(c);
	return 0;
}

static void check_prefix(struct call *c)
{
	const uint8_t *p = buf_bytes(&c->answer);
	uint32_t max = c->grpc->config.message_max;
	if (!p || buf_len(&c->answer) < GRPC_PREFIX_SIZE)
		return;
	uint32_t len = get_be32(p + 1);
	if (p[0])
		(void)err_set(&c->wrong, -EBADMSG,
			      "an answer that is compressed, which nobody asked for");
	else if (len > max)
		(void)err_set(&c->wrong, -EMSGSIZE,
			      "an answer of %" PRIu32 " bytes, at most %" PRIu32 " are accepted",
			      len, max);
	else if (buf_len(&c->answer) - GRPC_PREFIX_SIZE > len)
		(void)err_set(&c->wrong, -EBADMSG, "an answer of more than one message");
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *data,
		   size_t n, void *arg)
{
	struct call *c = nghttp2_session_get_stream_user_data(session, stream);
	(void)flags;
	(void)arg;
	if (!c)
		return 0;
	/* What a liar sends behind a short prefix is no more than a frame. */
	if (buf_add(&c->answer, data, n))
		(void)err_set(&c->wrong, -ENOMEM, "no memory for the answer");
	else
		check_prefix(c);
	if (c->wrong.code)
		give_up(c);
	return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t stream, uint32_t code, void *arg)
{
	struct call *c = nghttp2_session_get_stream_user_data(session, stream);
	(void)arg;
	if (!c)
		return 0;
	if (code && !c->wrong.code && c->status == STATUS_UNTOLD)
		(void)err_set(&c->wrong, code == NGHTTP2_PROTOCOL_ERROR ? -EBADMSG : -ECONNRESET,
			      "the call was broken off: %s", nghttp2_http2_strerror(code));
	judge(c);
	end(c);
	return 0;
}

/* ---- what we send ------------------------------------------------------------------------------------------------------ */

static ssize_t read_request(nghttp2_session *session, int32_t stream, uint8_t *to, size_t n,
			    uint32_t *flags, nghttp2_data_source *source, void *arg)
{
	struct call *c = nghttp2_session_get_stream_user_data(session, stream);
	(void)source;
	(void)arg;
	if (!c)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	size_t len = buf_len(&c->request) < n ? buf_len(&c->request) : n;
	if (len)
		memcpy(to, buf_bytes(&c->request), len);
	buf_consume(&c->request, len);
	if (!buf_len(&c->request))
		*flags |= NGHTTP2_DATA_FLAG_EOF;
	return (ssize_t)len;
}

static int flush(struct grpc *g)
{
	const uint8_t *data;
	ssize_t n;
	while ((n = nghttp2_session_mem_send(g->session, &data)) > 0)
		if (buf_add(g->config.out, data, (size_t)n))
			return -ENOMEM;
	if (n < 0)
		return n == NGHTTP2_ERR_NOMEM ? -ENOMEM : -EPROTO;
	g->config.output(g->config.arg);
	return 0;
}

static int pack(struct buf *to, const ProtobufCMessage *msg)
{
	size_t n = protobuf_c_message_get_packed_size(msg);
	uint8_t *p = buf_reserve(to, GRPC_PREFIX_SIZE + n);
	if (!p || n > UINT32_MAX)
		return -ENOMEM;
	p[0] = 0;
	put_be32(p + 1, (uint32_t)n);
	protobuf_c_message_pack(msg, p + GRPC_PREFIX_SIZE);
	buf_commit(to, GRPC_PREFIX_SIZE + n);
	return 0;
}

static nghttp2_nv header(const char *name, const char *value)
{
	return (nghttp2_nv){(uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, strlen(name),
			    strlen(value), NGHTTP2_NV_FLAG_NONE};
}

static int submit(struct call *c, const char *path, uint32_t timeout_ms)
{
	char timeout[16];
	(void)snprintf(timeout, sizeof timeout, "%" PRIu32 "m", timeout_ms);
	const nghttp2_nv headers[] = {
		header(":method", "POST"),
		header(":scheme", "http"),
		header(":path", path),
		header(":authority", "localhost"),
		header("content-type", CONTENT_TYPE),
		header("te", "trailers"),
		header("grpc-timeout", timeout),
		header("user-agent", "nri-rp-agent/" NRI_RP_VERSION),
	};
	const nghttp2_data_provider body = {.read_callback = read_request};
	int32_t stream = nghttp2_submit_request(c->grpc->session, NULL, headers,
						sizeof headers / sizeof *headers, &body, c);
	if (stream < 0)
		return stream == NGHTTP2_ERR_NOMEM ? -ENOMEM : -ENOTCONN;
	c->stream = stream;
	return 0;
}

int grpc_call(struct grpc *g, const char *path, const ProtobufCMessage *msg, uint32_t timeout_ms,
	      grpc_done done, void *arg)
{
	if (!grpc_usable(g))
		return -ENOTCONN;
	if (g->n_calls >= GRPC_CALLS_MAX)
		return -ENOBUFS;
	struct call *c = calloc(1, sizeof *c);
	if (!c)
		return -ENOMEM;
	c->grpc = g;
	c->status = STATUS_UNTOLD;
	c->deadline_ms = clock_ms() + timeout_ms;
	c->done = done;
	c->arg = arg;
	int r = pack(&c->request, msg);
	if (!r)
		r = submit(c, path, timeout_ms);
	if (r) {
		call_free(c);
		return r;
	}
	DL_APPEND(g->calls, c);
	g->n_calls++;
	r = flush(g);
	if (!r)
		return 0;
	/* Half of it may be on its way: the connection is of no more use. */
	g->closed = true;
	if (c->stream)
		detach(c);
	else
		DL_DELETE(g->ended, c);
	call_free(c);
	return -ENOMEM;
}

/* ---- the connection ---------------------------------------------------------------------------------------------------- */

int grpc_feed(struct grpc *g, const uint8_t *data, size_t n, struct err *err)
{
	if (g->closed)
		return err_set(err, -ENOTCONN, "the connection has ended");
	ssize_t used = nghttp2_session_mem_recv(g->session, data, n);
	int r = used < 0 ? (used == NGHTTP2_ERR_NOMEM ? -ENOMEM : -EBADMSG) : flush(g);
	if (!r && !nghttp2_session_want_read(g->session))
		r = -EBADMSG;
	g->closed = r != 0;
	tell_ended(g);
	if (r == -ENOMEM)
		return err_set(err, r, "no memory for what was received");
	if (r)
		return err_set(err, r, "what was received breaks the rules of HTTP/2%s%s",
			       used < 0 ? ": " : "", used < 0 ? nghttp2_strerror((int)used) : "");
	return 0;
}

void grpc_close(struct grpc *g, int error, const char *text)
{
	g->closed = true;
	while (g->calls) {
		struct call *c = g->calls;
		if (!c->wrong.code)
			(void)err_set(&c->wrong, error, "%s", text);
		end(c);
	}
	tell_ended(g);
}

uint64_t grpc_deadline_ms(const struct grpc *g)
{
	const struct call *c;
	uint64_t first = g->ended ? 1 : 0; /* whose end is still to be told */
	DL_FOREACH (g->calls, c)
		if (!first || c->deadline_ms < first)
			first = c->deadline_ms;
	return first;
}

void grpc_expire(struct grpc *g, uint64_t now_ms)
{
	struct call *c, *next;
	bool any = false;
	DL_FOREACH_SAFE(g->calls, c, next)
	{
		if (c->deadline_ms > now_ms)
			continue;
		(void)err_set(&c->wrong, -ETIMEDOUT, "no answer in time");
		give_up(c);
		any = true;
	}
	if (any && !g->closed && flush(g))
		g->closed = true;
	tell_ended(g);
}

bool grpc_usable(const struct grpc *g)
{
	return !g->closed && nghttp2_session_check_request_allowed(g->session);
}

unsigned grpc_n_calls(const struct grpc *g)
{
	return g->n_calls;
}

static int set_up(struct grpc *g, nghttp2_session_callbacks *callbacks)
{
	const nghttp2_settings_entry settings[] = {
		{NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
		{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW},
		{NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, GRPC_HEADERS_MAX},
	};
	nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
	nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
	if (nghttp2_session_client_new(&g->session, callbacks, g) ||
	    nghttp2_submit_settings(g->session, NGHTTP2_FLAG_NONE, settings,
				    sizeof settings / sizeof *settings) ||
	    nghttp2_session_set_local_window_size(g->session, NGHTTP2_FLAG_NONE, 0,
						  CONNECTION_WINDOW))
		return -ENOMEM;
	return 0;
}

struct grpc *grpc_new(const struct grpc_config *config)
{
	struct grpc *g = calloc(1, sizeof *g);
	nghttp2_session_callbacks *callbacks = NULL;
	if (!g)
		return NULL;
	g->config = *config;
	int r = nghttp2_session_callbacks_new(&callbacks) ? -ENOMEM : set_up(g, callbacks);
	nghttp2_session_callbacks_del(callbacks);
	return r ? grpc_free(g) : g;
}

struct grpc *grpc_free(struct grpc *g)
{
	if (!g)
		return NULL;
	grpc_close(g, -ECANCELED, "the connection was closed");
	nghttp2_session_del(g->session);
	free(g);
	return NULL;
}
