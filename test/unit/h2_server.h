/* SPDX-License-Identifier: Apache-2.0 */
/* An HTTP/2 server for tests of calls: it sends the answers that the test sets. Include it in
 * the test's only source file. */
#ifndef TEST_H2_SERVER_H
#define TEST_H2_SERVER_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <nghttp2/nghttp2.h>

#include "core/lib/util/buf.h"

#define SERVER_STREAMS_MAX 8u

/* How a call is answered. NULL: that header does not come. */
struct h2_answer {
	const char *http_status, *type; /* NULL: "200", "application/grpc" */
	const uint8_t *data;
	size_t n_data;
	const char *status, *message; /* trailers */
	size_t padding; /* bytes of a header more */
	bool no_status; /* no trailers */
	bool only_trailers; /* a single block of headers, which carries the status */
};

struct h2_server {
	nghttp2_session *session;
	struct buf out;
	int32_t streams[SERVER_STREAMS_MAX]; /* calls that are complete */
	unsigned n_streams;
	unsigned n_resets;
	char path[128], timeout[16], type[64], te[16];
	struct buf body;
	const struct h2_answer *answer; /* being sent */
	size_t at;
};

static ssize_t h2_read(nghttp2_session *session, int32_t stream, uint8_t *to, size_t n,
		       uint32_t *flags, nghttp2_data_source *source, void *arg)
{
	struct h2_server *s = arg;
	const struct h2_answer *a = s->answer;
	size_t len = a->n_data - s->at < n ? a->n_data - s->at : n;
	if (len)
		memcpy(to, a->data + s->at, len);
	s->at += len;
	if (s->at < a->n_data)
		return (ssize_t)len;
	*flags |= NGHTTP2_DATA_FLAG_EOF;
	if (a->no_status)
		return (ssize_t)len;
	*flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
	const nghttp2_nv nv[] = {{(uint8_t *)(uintptr_t) "grpc-status",
				  (uint8_t *)(uintptr_t)a->status, 11, strlen(a->status), 0},
				 {(uint8_t *)(uintptr_t) "grpc-message",
				  (uint8_t *)(uintptr_t)(a->message ? a->message : ""), 12,
				  a->message ? strlen(a->message) : 0, 0}};
	(void)nghttp2_submit_trailer(session, stream, nv, a->message ? 2 : 1);
	return (ssize_t)len;
}

static int h2_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
		     size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags,
		     void *arg)
{
	struct h2_server *s = arg;
	const struct {
		const char *name;
		char *to;
		size_t size;
	} wanted[] = {{":path", s->path, sizeof s->path},
		      {"grpc-timeout", s->timeout, sizeof s->timeout},
		      {"content-type", s->type, sizeof s->type},
		      {"te", s->te, sizeof s->te}};
	for (unsigned i = 0; i < 4; i++)
		if (strlen(wanted[i].name) == name_len && !memcmp(name, wanted[i].name, name_len))
			(void)snprintf(wanted[i].to, wanted[i].size, "%.*s", (int)value_len,
				       (const char *)value);
	return 0;
}

static int h2_data(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *data,
		   size_t n, void *arg)
{
	struct h2_server *s = arg;
	(void)buf_add(&s->body, data, n);
	return 0;
}

static int h2_frame(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
	struct h2_server *s = arg;
	if (frame->hd.type == NGHTTP2_RST_STREAM)
		s->n_resets++;
	if ((frame->hd.type == NGHTTP2_DATA || frame->hd.type == NGHTTP2_HEADERS) &&
	    frame->hd.flags & NGHTTP2_FLAG_END_STREAM && s->n_streams < SERVER_STREAMS_MAX)
		s->streams[s->n_streams++] = frame->hd.stream_id;
	return 0;
}

/* Returns 0, or an error of nghttp2. */
static int h2_start(struct h2_server *s)
{
	nghttp2_session_callbacks *c;
	*s = (struct h2_server){.out = BUF_INIT, .body = BUF_INIT};
	int r = nghttp2_session_callbacks_new(&c);
	if (r)
		return r;
	nghttp2_session_callbacks_set_on_header_callback(c, h2_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(c, h2_data);
	nghttp2_session_callbacks_set_on_frame_recv_callback(c, h2_frame);
	r = nghttp2_session_server_new(&s->session, c, s);
	nghttp2_session_callbacks_del(c);
	return r ? r : nghttp2_submit_settings(s->session, 0, NULL, 0);
}

static void h2_stop(struct h2_server *s)
{
	nghttp2_session_del(s->session);
	buf_fini(&s->out);
	buf_fini(&s->body);
}

static int h2_flush(struct h2_server *s)
{
	const uint8_t *data;
	ssize_t n;
	while ((n = nghttp2_session_mem_send(s->session, &data)) > 0)
		if (buf_add(&s->out, data, (size_t)n))
			return -1;
	return (int)n;
}

/* Reads the bytes that the client sent. */
static int h2_feed_server(struct h2_server *s, struct buf *from)
{
	ssize_t n = nghttp2_session_mem_recv(s->session, buf_bytes(from), buf_len(from));
	if (n < 0)
		return (int)n;
	buf_consume(from, (size_t)n);
	return h2_flush(s);
}

/* Sends one answer. The previous answer must have been sent completely. */
static int h2_answer(struct h2_server *s, int32_t stream, const struct h2_answer *a)
{
	static char padding[65536];
	const char *status = a->http_status ? a->http_status : "200";
	const char *type = a->type ? a->type : "application/grpc";
	nghttp2_nv nv[5];
	size_t n = 0;
	memset(padding, 'x', sizeof padding);
	nv[n++] = (nghttp2_nv){(uint8_t *)(uintptr_t) ":status", (uint8_t *)(uintptr_t)status, 7,
			       strlen(status), 0};
	nv[n++] = (nghttp2_nv){(uint8_t *)(uintptr_t) "content-type", (uint8_t *)(uintptr_t)type,
			       12, strlen(type), 0};
	if (a->padding)
		nv[n++] = (nghttp2_nv){(uint8_t *)(uintptr_t) "x-padding", (uint8_t *)padding, 9,
				       a->padding, 0};
	if (a->only_trailers) {
		nv[n++] = (nghttp2_nv){(uint8_t *)(uintptr_t) "grpc-status",
				       (uint8_t *)(uintptr_t)a->status, 11, strlen(a->status), 0};
		if (a->message)
			nv[n++] = (nghttp2_nv){(uint8_t *)(uintptr_t) "grpc-message",
					       (uint8_t *)(uintptr_t)a->message, 12,
					       strlen(a->message), 0};
	}
	const nghttp2_data_provider body = {.read_callback = h2_read};
	s->answer = a;
	s->at = 0;
	int r = nghttp2_submit_response(s->session, stream, nv, n, a->only_trailers ? NULL : &body);
	return r ? r : h2_flush(s);
}

#endif
