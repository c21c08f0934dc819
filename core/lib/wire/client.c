/* SPDX-License-Identifier: Apache-2.0 */
#include "core/lib/wire/client.h"

#include <poll.h>
#include <sys/socket.h>

#include "core/lib/util/clock.h"

#define CHUNK_SIZE (16u << 10)
#define FOREVER UINT64_MAX

void ttrpc_client_init(struct ttrpc_client *c, int fd)
{
	*c = (struct ttrpc_client){.fd = fd, .next_stream = 1, .in = BUF_INIT, .out = BUF_INIT};
}

void ttrpc_client_fini(struct ttrpc_client *c)
{
	buf_fini(&c->in);
	buf_fini(&c->out);
}

static int wait_for(int fd, short events, uint64_t deadline_ms, struct err *err)
{
	for (;;) {
		int timeout = -1;
		if (deadline_ms != FOREVER) {
			uint64_t now = clock_ms();
			uint64_t left = now < deadline_ms ? deadline_ms - now : 0;
			timeout = left < INT32_MAX ? (int)left : INT32_MAX;
		}
		struct pollfd p = {.fd = fd, .events = events};
		int n = poll(&p, 1, timeout);
		if (n > 0)
			return 0;
		if (n == 0)
			return err_set(err, -ETIMEDOUT, "no reply in time");
		if (errno != EINTR)
			return err_errno(err, -errno, "waiting for the connection failed");
	}
}

static int send_all(struct ttrpc_client *c, uint64_t deadline_ms, struct err *err)
{
	while (buf_len(&c->out)) {
		ssize_t n = send(c->fd, buf_bytes(&c->out), buf_len(&c->out),
				 MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n >= 0) {
			buf_consume(&c->out, (size_t)n);
			continue;
		}
		if (errno == EINTR)
			continue;
		if (errno != EAGAIN)
			return err_errno(err, errno == EPIPE ? -ECONNRESET : -errno,
					 "writing to the connection failed");
		int r = wait_for(c->fd, POLLOUT, deadline_ms, err);
		if (r)
			return r;
	}
	return 0;
}

static int receive_some(struct ttrpc_client *c, uint64_t deadline_ms, struct err *err)
{
	for (;;) {
		uint8_t *to = buf_reserve(&c->in, CHUNK_SIZE);
		if (!to)
			return err_set(err, -ENOMEM, "out of memory for the reply");
		ssize_t n = recv(c->fd, to, CHUNK_SIZE, MSG_DONTWAIT);
		if (n > 0) {
			buf_commit(&c->in, (size_t)n);
			return 0;
		}
		if (n == 0)
			return err_set(err, -ECONNRESET, "the peer closed the connection");
		if (errno == EINTR)
			continue;
		if (errno != EAGAIN)
			return err_errno(err, -errno, "reading from the connection failed");
		int r = wait_for(c->fd, POLLIN, deadline_ms, err);
		if (r)
			return r;
	}
}

/* Receives data until a whole message is at the front of c->in. */
static int receive_message(struct ttrpc_client *c, uint64_t deadline_ms, struct ttrpc_header *ret,
			   struct err *err)
{
	for (;;) {
		if (buf_len(&c->in) >= TTRPC_HEADER_SIZE) {
			ttrpc_header_decode(buf_bytes(&c->in), ret);
			if (ret->length > TTRPC_MESSAGE_MAX)
				return err_set(err, -EBADMSG,
					       "a reply of %u bytes, at most %u are accepted",
					       ret->length, TTRPC_MESSAGE_MAX);
			if (buf_len(&c->in) - TTRPC_HEADER_SIZE >= ret->length)
				return 0;
		}
		int r = receive_some(c, deadline_ms, err);
		if (r)
			return r;
	}
}

static int take_answer(struct ttrpc_client *c, uint32_t length, const uint8_t **ret_payload,
		       size_t *ret_len, struct err *err)
{
	struct ttrpc_response res;
	int r = ttrpc_response_decode(buf_bytes(&c->in) + TTRPC_HEADER_SIZE, length, &res, err);
	if (r)
		return r;
	c->code = res.code;
	if (res.code != TTRPC_OK)
		return err_set(err, -EREMOTEIO, "%.*s",
			       (int)(res.text_len < ERR_TEXT_MAX ? res.text_len : ERR_TEXT_MAX),
			       res.text ? (const char *)res.text : "");
	*ret_payload = res.payload;
	*ret_len = res.payload_len;
	return 0;
}

static int put_request(struct ttrpc_client *c, struct ttrpc_out *out, struct err *err)
{
	size_t size = ttrpc_request_size(out);
	if (size > TTRPC_MESSAGE_MAX)
		return err_set(err, -EMSGSIZE, "the request has %zu bytes, at most %u can be sent",
			       size, TTRPC_MESSAGE_MAX);
	uint8_t *p = buf_reserve(&c->out, TTRPC_HEADER_SIZE + size);
	if (!p)
		return err_set(err, -ENOMEM, "out of memory for the request");
	ttrpc_header_encode(
		p, &(struct ttrpc_header){(uint32_t)size, c->next_stream, TTRPC_REQUEST, 0});
	ttrpc_request_encode(out, p + TTRPC_HEADER_SIZE);
	buf_commit(&c->out, TTRPC_HEADER_SIZE + size);
	return 0;
}

int ttrpc_client_call(struct ttrpc_client *c, const char *service, const char *method,
		      const ProtobufCMessage *msg, unsigned timeout_ms, const uint8_t **ret_payload,
		      size_t *ret_len, struct err *err)
{
	buf_consume(&c->in, c->answer_len);
	c->answer_len = 0;
	c->code = TTRPC_OK;
	uint64_t deadline_ms = timeout_ms ? clock_ms() + timeout_ms : FOREVER;
	struct ttrpc_out out = {.service = service,
				.method = method,
				.timeout_ns = (int64_t)timeout_ms * 1000000,
				.payload = msg};
	int r = put_request(c, &out, err);
	if (r)
		return r;
	uint32_t stream = c->next_stream;
	c->next_stream += 2;
	r = send_all(c, deadline_ms, err);
	while (!r) {
		struct ttrpc_header h;
		r = receive_message(c, deadline_ms, &h, err);
		if (r)
			break;
		if (h.type == TTRPC_RESPONSE && h.stream == stream) {
			c->answer_len = TTRPC_HEADER_SIZE + (size_t)h.length;
			return take_answer(c, h.length, ret_payload, ret_len, err);
		}
		/* A client skips requests and data, which are not meant for it. */
		buf_consume(&c->in, TTRPC_HEADER_SIZE + (size_t)h.length);
	}
	return r;
}
