/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arbitrary bytes for the multiplexer and both roles of ttrpc behind it: whole and in arbitrary
 * pieces they give the same requests, results and answers. The first bytes say how the rest is cut.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/lib/wire/mux.h"
#include "core/lib/wire/rpc.h"

#define N_CUTS 8u
#define N_CALLS 3u
#define KEPT_MAX 4u
/* Small enough for inputs to reach it. */
#define MESSAGE_MAX 3000u

struct side {
	struct rpc *rpc[MUX_CONNS];
	struct buf in[MUX_CONNS], out, log;
	struct mux_rx rx;
	struct rpc_request *kept[KEPT_MAX];
	unsigned n_kept;
	int ended;
};

static void check(int ok)
{
	if (!ok)
		abort();
}

static void on_output(void *arg)
{
}

static void on_failed(int error, void *arg)
{
	struct side *s = arg;
	s->ended = error;
}

static void on_request(struct rpc_request *req, void *arg)
{
	struct side *s = arg;
	(void)buf_printf(&s->log, "%u %s/%s %lld ", req->stream, req->service, req->method,
			 (long long)req->timeout_ns);
	(void)buf_add(&s->log, req->payload, req->payload_len);
	if (req->payload_len % 3 == 0) {
		(void)rpc_reply(req, NULL);
	} else if (req->payload_len % 3 == 1 || s->n_kept == KEPT_MAX) {
		(void)rpc_reply_error(req, TTRPC_UNKNOWN, "%s %.*s", req->method,
				      (int)req->payload_len, (const char *)req->payload);
	} else {
		s->kept[s->n_kept++] = req;
	}
}

static void on_done(const struct rpc_result *r, void *arg)
{
	struct side *s = arg;
	(void)buf_printf(&s->log, "result %d %d %s ", r->error, r->code, r->text);
	(void)buf_add(&s->log, r->payload, r->payload_len);
}

static void side_open(struct side *s)
{
	memset(s, 0, sizeof *s);
	for (uint32_t i = 0; i < MUX_CONNS; i++) {
		s->rpc[i] = rpc_new(&(struct rpc_config){.recv_max = MESSAGE_MAX,
							 .conn = i + 1,
							 .answers_out_max = 1u << 20,
							 .out = &s->out,
							 .output = on_output,
							 .failed = on_failed,
							 .arg = s});
		check(s->rpc[i] != NULL);
		rpc_serve(s->rpc[i], on_request, s);
		for (unsigned k = 0; k < N_CALLS; k++)
			check(rpc_call(s->rpc[i], "service", "Method", NULL, 0, on_done, s) == 0);
	}
	mux_rx_init(&s->rx, &s->in[0], &s->in[1], MESSAGE_MAX + TTRPC_HEADER_SIZE);
}

static void side_feed(struct side *s, const uint8_t *data, size_t n)
{
	while (n && !s->ended) {
		struct err err = ERR_INIT;
		ssize_t used = mux_rx_feed(&s->rx, data, n, &err);
		check(used != 0 && used <= (ssize_t)n && (used > 0 || *err.text));
		if (used < 0) {
			s->ended = (int)used;
			return;
		}
		data += used;
		n -= (size_t)used;
		uint32_t i = s->rx.conn - 1;
		int r = i < MUX_CONNS ? rpc_input(s->rpc[i], &s->in[i], 1, &err) : 0;
		if (r)
			s->ended = r;
	}
}

static void side_close(struct side *s)
{
	for (unsigned i = 0; i < s->n_kept; i += 2) {
		(void)rpc_reply(s->kept[i], NULL);
		s->kept[i] = NULL;
	}
	rpc_refuse_pending(s->rpc[0], TTRPC_UNAVAILABLE, "the end");
	for (unsigned i = 0; i < MUX_CONNS; i++)
		rpc_free(s->rpc[i]);
	for (unsigned i = 0; i < s->n_kept; i++)
		if (s->kept[i])
			(void)rpc_reply(s->kept[i], NULL);
	for (unsigned i = 0; i < MUX_CONNS; i++)
		buf_fini(&s->in[i]);
}

static void same(const struct buf *a, const struct buf *b)
{
	check(buf_len(a) == buf_len(b));
	check(!buf_len(a) || memcmp(buf_bytes(a), buf_bytes(b), buf_len(a)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < N_CUTS)
		return 0;
	const uint8_t *cuts = data;
	data += N_CUTS;
	size -= N_CUTS;
	struct side whole, pieces;
	side_open(&whole);
	side_open(&pieces);
	side_feed(&whole, data, size);
	size_t at = 0;
	for (unsigned i = 0; at < size; i++) {
		size_t n = 1u + cuts[i % N_CUTS];
		if (n > size - at)
			n = size - at;
		side_feed(&pieces, data + at, n);
		at += n;
	}
	check(whole.ended == pieces.ended);
	side_close(&whole);
	side_close(&pieces);
	same(&whole.log, &pieces.log);
	same(&whole.out, &pieces.out);
	buf_fini(&whole.log);
	buf_fini(&whole.out);
	buf_fini(&pieces.log);
	buf_fini(&pieces.out);
	return 0;
}
