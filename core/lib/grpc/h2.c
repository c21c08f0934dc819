/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of an HTTP/2 connection, on a session of nghttp2. */
#include "core/lib/grpc/h2.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <nghttp2/nghttp2.h>
#include <utlist.h>

#include "core/lib/util/cleanup.h"
#include "core/lib/util/getter.h"

/* In bytes. The window is reopened with each piece of data, so only the windows of streams
 * limit. */
#define CONNECTION_WINDOW (16 << 20)
#define FRAME_HEADER_SIZE 9u

struct h2_stream {
	struct h2 *h2;
	int32_t id;
	/* callbacks of the stream; NULL: it was detached and has none */
	const struct h2_events *events;
	void *arg;
	struct buf out; /* data written by the user and not sent yet */
	bool finished; /* no data follows the contents of out */
	bool peer_finished;
	struct nv_list *trailers; /* trailers to send at the end */
	/* Block of headers that is being received: their texts, each with a NUL, and the offsets of
	 * the texts. */
	struct buf text, list;
	bool too_large;
	struct h2_stream *prev, *next;
};

/* Trailers that wait for the data before them to be sent. */
struct nv_list {
	size_t n;
	nghttp2_nv nv[];
};

struct h2 {
	struct h2_config config;
	nghttp2_session *session;
	struct h2_stream *streams;
	unsigned n_streams, depth; /* depth: nesting of callbacks of nghttp2 */
	uint32_t complaint; /* code of the GOAWAY that this side sent */
	struct buf *to; /* output of h2_pull */
	size_t most;
	/* stream whose next frame waits for another h2_pull; NULL: none */
	struct h2_stream *cut_off;
	bool closed;
};

static void h2_touch(struct h2 *h)
{
	if (!h->closed)
		h->config.touched(h->config.arg);
}

/* ---- headers --------------------------------------------------------------------------------- */

const struct h2_field *h2_field_find(const struct h2_fields *fields, const char *name)
{
	size_t n = strlen(name);
	for (size_t i = 0; i < fields->n; i++)
		if (fields->list[i].name_len == n && memcmp(fields->list[i].name, name, n) == 0)
			return &fields->list[i];
	return NULL;
}

static nghttp2_nv nv_of(const struct h2_field *f)
{
	return (nghttp2_nv){(uint8_t *)(uintptr_t)f->name, (uint8_t *)(uintptr_t)f->value,
			    f->name_len, f->value_len,
			    f->never_indexed ? NGHTTP2_NV_FLAG_NO_INDEX : NGHTTP2_NV_FLAG_NONE};
}

/* Copies fields with their texts into one allocation, for free(). NULL: out of memory. */
static struct nv_list *nv_copy(const struct h2_fields *fields)
{
	size_t size = sizeof(struct nv_list) + fields->n * sizeof(nghttp2_nv);
	for (size_t i = 0; i < fields->n; i++)
		size += fields->list[i].name_len + fields->list[i].value_len;
	struct nv_list *l = malloc(size);
	if (!l)
		return NULL;
	l->n = fields->n;
	uint8_t *p = (uint8_t *)&l->nv[l->n];
	for (size_t i = 0; i < l->n; i++) {
		nghttp2_nv *nv = &l->nv[i];
		*nv = nv_of(&fields->list[i]);
		nv->name = memcpy(p, nv->name, nv->namelen);
		p += nv->namelen;
		if (nv->valuelen)
			memcpy(p, nv->value, nv->valuelen);
		nv->value = p;
		p += nv->valuelen;
	}
	return l;
}

struct h2_fields *h2_fields_copy(const struct h2_fields *fields)
{
	size_t size = sizeof *fields + fields->n * sizeof *fields->list;
	for (size_t i = 0; i < fields->n; i++)
		size += fields->list[i].name_len + fields->list[i].value_len + 2;
	struct h2_fields *copy = malloc(size);
	if (!copy)
		return NULL;
	struct h2_field *list = (struct h2_field *)(void *)(copy + 1);
	char *p = (char *)(list + fields->n);
	for (size_t i = 0; i < fields->n; i++) {
		list[i] = fields->list[i];
		list[i].name = memcpy(p, list[i].name, list[i].name_len + 1);
		p += list[i].name_len + 1;
		list[i].value = memcpy(p, list[i].value, list[i].value_len + 1);
		p += list[i].value_len + 1;
	}
	*copy = (struct h2_fields){list, fields->n};
	return copy;
}

/* Stores a header. If it is too large, it is dropped, and the end of the block reports that. */
static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
		     size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags,
		     void *arg)
{
	struct h2_stream *s = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
	const struct h2_field f = {.name_len = name_len,
				   .value_len = value_len,
				   .never_indexed = flags & NGHTTP2_NV_FLAG_NO_INDEX};
	if (!s || s->too_large)
		return 0;
	s->too_large = buf_len(&s->text) + name_len + value_len > H2_HEADERS_MAX ||
		       buf_len(&s->list) >= H2_FIELDS_MAX * sizeof f;
	if (s->too_large)
		return 0;
	/* nghttp2 ends both texts with a NUL. */
	(void)buf_add(&s->text, name, name_len + 1);
	(void)buf_add(&s->text, value, value_len + 1);
	(void)buf_add(&s->list, &f, sizeof f);
	return s->text.failed || s->list.failed ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
}

/* Returns the fields of a complete block; their texts are in s->text. */
static struct h2_fields fields_of(const struct h2_stream *s)
{
	struct h2_field *list = (struct h2_field *)(uintptr_t)buf_bytes(&s->list);
	struct h2_fields fields = {list, buf_len(&s->list) / sizeof *list};
	const char *p = (const char *)buf_bytes(&s->text);
	if (!list || !p)
		return (struct h2_fields){NULL, 0}; /* empty block */
	for (size_t i = 0; i < fields.n; i++) {
		list[i].name = p;
		p += list[i].name_len + 1;
		list[i].value = p;
		p += list[i].value_len + 1;
	}
	return fields;
}

/* ---- streams --------------------------------------------------------------------------------- */

static struct h2_stream *stream_new(struct h2 *h)
{
	struct h2_stream *s = calloc(1, sizeof *s);
	if (!s)
		return NULL;
	s->h2 = h;
	DL_APPEND(h->streams, s);
	h->n_streams++;
	return s;
}

static struct h2_stream *stream_free(struct h2_stream *s)
{
	struct h2 *h = s->h2;
	if (s->id)
		(void)nghttp2_session_set_stream_user_data(h->session, s->id, NULL);
	DL_DELETE(h->streams, s);
	h->n_streams--;
	if (h->cut_off == s)
		h->cut_off = NULL;
	buf_fini(&s->out);
	buf_fini(&s->text);
	buf_fini(&s->list);
	free(s->trailers);
	free(s);
	return NULL;
}

static void stream_end(struct h2_stream *s, const struct h2_end *end)
{
	const struct h2_events *events = TAKE(s->events);
	void *arg = s->arg;
	if (events)
		events->closed(s, end, arg);
	stream_free(s);
}

void h2_stream_listen(struct h2_stream *s, const struct h2_events *events, void *arg)
{
	assert(events->closed);
	s->events = events;
	s->arg = arg;
}

struct h2_stream *h2_stream_reset(struct h2_stream *s, uint32_t code)
{
	if (!s)
		return NULL;
	struct h2 *h = s->h2;
	if (!h->closed)
		(void)nghttp2_submit_rst_stream(h->session, NGHTTP2_FLAG_NONE, s->id, code);
	/* A frame that has been announced has to be sent. */
	if (s == h->cut_off)
		h2_stream_leave(s);
	else
		stream_free(s);
	h2_touch(h);
	return NULL;
}

struct h2_stream *h2_stream_leave(struct h2_stream *s)
{
	if (s)
		s->events = NULL;
	return NULL;
}

void h2_stream_consume(struct h2_stream *s, size_t n)
{
	if (s->h2->closed || !n)
		return;
	(void)nghttp2_session_consume_stream(s->h2->session, s->id, n);
	h2_touch(s->h2);
}

/* ---- data from the peer ---------------------------------------------------------------------- */

static int on_begin(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
	struct h2 *h = arg;
	if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
		return 0;
	struct h2_stream *s = stream_new(h);
	if (!s)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	s->id = frame->hd.stream_id;
	if (nghttp2_session_set_stream_user_data(session, s->id, s)) {
		stream_free(s);
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	}
	return 0;
}

/* Handles a block of headers. Returns false if the stream may have ended. */
static bool on_headers(struct h2_stream *s, const nghttp2_frame *frame, bool last)
{
	struct h2 *h = s->h2;
	bool request = frame->headers.cat == NGHTTP2_HCAT_REQUEST;
	if (s->too_large) {
		struct h2_end end = {-EMSGSIZE, H2_CANCEL, "more headers than are accepted"};
		(void)nghttp2_submit_rst_stream(h->session, NGHTTP2_FLAG_NONE, s->id,
						NGHTTP2_ENHANCE_YOUR_CALM);
		stream_end(s, &end);
		return false;
	}
	struct h2_fields fields = fields_of(s);
	if (request)
		h->config.accept(s, &fields, last, h->config.arg);
	else if (s->events && s->events->headers)
		s->events->headers(s, &fields, last, s->arg);
	return true;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
	int32_t id = frame->hd.stream_id;
	struct h2_stream *s = nghttp2_session_get_stream_user_data(session, id);
	bool last = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;
	if (!s || (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA))
		return 0;
	s->peer_finished = s->peer_finished || last;
	if (frame->hd.type == NGHTTP2_HEADERS) {
		if (!on_headers(s, frame, last))
			return 0;
		/* The callback may have reset the stream. */
		s = nghttp2_session_get_stream_user_data(session, id);
		if (s) {
			buf_reset(&s->text);
			buf_reset(&s->list);
		}
	} else if (last && s->events && s->events->finished) {
		s->events->finished(s, s->arg);
	}
	return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data,
		   size_t n, void *arg)
{
	struct h2_stream *s = nghttp2_session_get_stream_user_data(session, id);
	(void)nghttp2_session_consume_connection(session, n);
	if (s && s->events && s->events->data)
		s->events->data(s, data, n, s->arg);
	else
		(void)nghttp2_session_consume_stream(session, id, n);
	return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t id, uint32_t code, void *arg)
{
	struct h2_stream *s = nghttp2_session_get_stream_user_data(session, id);
	const struct h2 *h = arg;
	struct h2_end end = {0, code, nghttp2_http2_strerror(code)};
	if (h->complaint)
		end = (struct h2_end){-EBADMSG, code, h2_complaint(h)};
	if (s)
		stream_end(s, &end);
	return 0;
}

int h2_feed(struct h2 *h, const uint8_t *data, size_t n, struct err *err)
{
	if (h->closed)
		return err_set(err, -ENOTCONN, "the connection was closed");
	assert(!h->depth);
	h->depth++;
	ssize_t used = nghttp2_session_mem_recv(h->session, data, n);
	h->depth--;
	h2_touch(h);
	if (used == NGHTTP2_ERR_NOMEM || used == NGHTTP2_ERR_CALLBACK_FAILURE)
		return err_set(err, -ENOMEM, "out of memory for received data");
	if (used < 0)
		return err_set(err, -EBADMSG, "received data violates HTTP/2: %s",
			       nghttp2_strerror((int)used));
	return 0;
}

/* ---- sending --------------------------------------------------------------------------------- */

/* Handles the end of a stream's data: end of stream, or trailers. */
static ssize_t end_of_data(struct h2_stream *s, size_t len, uint32_t *flags)
{
	*flags |= NGHTTP2_DATA_FLAG_EOF;
	if (!s->trailers)
		return (ssize_t)len;
	*flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
	if (nghttp2_submit_trailer(s->h2->session, s->id, s->trailers->nv, s->trailers->n))
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	return (ssize_t)len;
}

/* Returns the size of the next frame. Its bytes are not copied to nghttp2: send_data takes them. */
static ssize_t read_out(nghttp2_session *session, int32_t id, uint8_t *to, size_t n,
			uint32_t *flags, nghttp2_data_source *source, void *arg)
{
	struct h2_stream *s = nghttp2_session_get_stream_user_data(session, id);
	if (!s)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	size_t len = buf_len(&s->out) < n ? buf_len(&s->out) : n;
	if (!len && !s->finished)
		return NGHTTP2_ERR_DEFERRED;
	*flags |= NGHTTP2_DATA_FLAG_NO_COPY;
	return s->finished && len == buf_len(&s->out) ? end_of_data(s, len, flags) : (ssize_t)len;
}

static int send_data(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *header,
		     size_t len, nghttp2_data_source *source, void *arg)
{
	struct h2 *h = arg;
	struct h2_stream *s = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
	h->cut_off = buf_len(h->to) < h->most ? NULL : s;
	if (h->cut_off)
		return NGHTTP2_ERR_WOULDBLOCK;
	if (!s || buf_add(h->to, header, FRAME_HEADER_SIZE) ||
	    buf_add(h->to, buf_bytes(&s->out), len))
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	buf_consume(&s->out, len);
	/* Keep the bytes that may wait and the growth by doubling, because a stream with much data
	 * is likely to send more. */
	buf_shrink(&s->out, 2 * H2_STREAM_WINDOW);
	if (len && s->events && s->events->sent)
		s->events->sent(s, len, s->arg);
	return 0;
}

/* Handles a sent frame. After a server's complete answer, a client that still sends data is
 * notified that it is ignored. */
static int on_sent(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
	struct h2 *h = arg;
	const struct h2_stream *s =
		nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
	if (frame->hd.type == NGHTTP2_GOAWAY)
		h->complaint = frame->goaway.error_code;
	bool data = frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA;
	if (h->config.server && s && data && frame->hd.flags & NGHTTP2_FLAG_END_STREAM &&
	    !s->peer_finished)
		(void)nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, s->id,
						NGHTTP2_NO_ERROR);
	return 0;
}

static int h2_resume(struct h2_stream *s)
{
	int r = s->h2->closed ? 0 : nghttp2_session_resume_data(s->h2->session, s->id);
	h2_touch(s->h2);
	return r == NGHTTP2_ERR_NOMEM ? -ENOMEM : 0;
}

int h2_stream_write(struct h2_stream *s, const uint8_t *data, size_t n)
{
	assert(!s->finished);
	if (!n)
		return 0;
	return buf_add(&s->out, data, n) ? -ENOMEM : h2_resume(s);
}

int h2_stream_finish(struct h2_stream *s, const struct h2_fields *trailers)
{
	assert(!s->finished);
	if (trailers) {
		s->trailers = nv_copy(trailers);
		if (!s->trailers)
			return -ENOMEM;
	}
	s->finished = true;
	return h2_resume(s);
}

int h2_stream_respond(struct h2_stream *s, const struct h2_fields *fields, bool last)
{
	const nghttp2_data_provider body = {.read_callback = read_out};
	struct nv_list *l = nv_copy(fields);
	if (!l)
		return -ENOMEM;
	s->finished = last;
	int r = s->h2->closed ? 0
			      : nghttp2_submit_response(s->h2->session, s->id, l->nv, l->n,
							last ? NULL : &body);
	free(l);
	h2_touch(s->h2);
	return r ? -ENOMEM : 0;
}

int h2_open(struct h2 *h, const struct h2_fields *fields, bool last, const struct h2_events *events,
	    void *arg, struct h2_stream **ret)
{
	const nghttp2_data_provider body = {.read_callback = read_out};
	if (!h2_usable(h))
		return -ENOTCONN;
	if (h->n_streams >= H2_STREAMS_MAX)
		return -ENOBUFS;
	struct h2_stream *s = stream_new(h);
	if (!s)
		return -ENOMEM;
	struct nv_list *l = nv_copy(fields);
	s->id = l ? nghttp2_submit_request(h->session, NULL, l->nv, l->n, last ? NULL : &body, s)
		  : NGHTTP2_ERR_NOMEM;
	free(l);
	if (s->id < 0) {
		int r = s->id == NGHTTP2_ERR_NOMEM ? -ENOMEM : -ENOTCONN;
		s->id = 0;
		stream_free(s);
		return r;
	}
	s->finished = last;
	h2_stream_listen(s, events, arg);
	h2_touch(h);
	*ret = s;
	return 0;
}

int h2_pull(struct h2 *h, struct buf *to, size_t most)
{
	const uint8_t *data;
	ssize_t n = 0;
	if (h->closed)
		return 0;
	assert(!h->depth);
	h->depth++;
	h->to = to;
	h->most = most;
	while (buf_len(to) < most && (n = nghttp2_session_mem_send(h->session, &data)) > 0)
		if (buf_add(to, data, (size_t)n))
			n = NGHTTP2_ERR_NOMEM;
	h->depth--;
	if (n == NGHTTP2_ERR_NOMEM || n == NGHTTP2_ERR_CALLBACK_FAILURE)
		return -ENOMEM;
	return n < 0 ? -EPROTO : 0;
}

/* ---- creation and freeing -------------------------------------------------------------------- */

void h2_close(struct h2 *h, int error, const char *text)
{
	struct h2_end end = {error, H2_CANCEL, text};
	h->closed = true;
	while (h->streams)
		stream_end(h->streams, &end);
}

bool h2_usable(const struct h2 *h)
{
	return !h->closed && nghttp2_session_check_request_allowed(h->session);
}

DEFINE_GETTER_OF(h2_is_closed, bool, const struct h2 *h, h->closed)

bool h2_finished(const struct h2 *h)
{
	return h->closed ||
	       (!nghttp2_session_want_read(h->session) && !nghttp2_session_want_write(h->session));
}

const char *h2_complaint(const struct h2 *h)
{
	return h->complaint ? nghttp2_http2_strerror(h->complaint) : NULL;
}

DEFINE_GETTER_OF(h2_n_streams, unsigned, const struct h2 *h, h->n_streams)

static int make_session(struct h2 *h, nghttp2_session_callbacks *c, nghttp2_option *o)
{
	nghttp2_session_callbacks_set_on_begin_headers_callback(c, on_begin);
	nghttp2_session_callbacks_set_on_header_callback(c, on_header);
	nghttp2_session_callbacks_set_on_frame_recv_callback(c, on_frame);
	nghttp2_session_callbacks_set_on_frame_send_callback(c, on_sent);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(c, on_data);
	nghttp2_session_callbacks_set_on_stream_close_callback(c, on_stream_close);
	nghttp2_session_callbacks_set_send_data_callback(c, send_data);
	nghttp2_option_set_no_auto_window_update(o, 1);
	nghttp2_option_set_no_closed_streams(o, 1);
	/* Turn off nghttp2's checks of HTTP messages for servers. Clients of older gRPC libraries,
	 * such as kubelets, use a unix socket's path as the authority, which nghttp2 refuses. Other
	 * errors in a request's headers are reported by the component that answers it. */
	nghttp2_option_set_no_http_messaging(o, h->config.server);
	return h->config.server ? nghttp2_session_server_new2(&h->session, c, h, o)
				: nghttp2_session_client_new2(&h->session, c, h, o);
}

static int h2_greet(struct h2 *h)
{
	unsigned streams_max = h->config.streams_max ? h->config.streams_max : H2_STREAMS_MAX;
	const nghttp2_settings_entry settings[] = {
		{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, H2_STREAM_WINDOW},
		{NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, H2_HEADERS_MAX},
		h->config.server ? (nghttp2_settings_entry){NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS,
							    streams_max}
				 : (nghttp2_settings_entry){NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
	};
	int r = nghttp2_submit_settings(h->session, NGHTTP2_FLAG_NONE, settings,
					sizeof settings / sizeof *settings);
	return r ? r
		 : nghttp2_session_set_local_window_size(h->session, NGHTTP2_FLAG_NONE, 0,
							 CONNECTION_WINDOW);
}

struct h2 *h2_new(const struct h2_config *config)
{
	nghttp2_session_callbacks *callbacks = NULL;
	nghttp2_option *option = NULL;
	struct h2 *h = calloc(1, sizeof *h);
	if (!h)
		return NULL;
	h->config = *config;
	int r = nghttp2_session_callbacks_new(&callbacks);
	if (!r)
		r = nghttp2_option_new(&option);
	if (!r)
		r = make_session(h, callbacks, option);
	if (!r)
		r = h2_greet(h);
	nghttp2_session_callbacks_del(callbacks);
	nghttp2_option_del(option);
	return r ? h2_free(h) : h;
}

struct h2 *h2_free(struct h2 *h)
{
	if (!h)
		return NULL;
	assert(!h->depth);
	h2_close(h, -ECANCELED, "the connection was closed");
	nghttp2_session_del(h->session);
	free(h);
	return NULL;
}
