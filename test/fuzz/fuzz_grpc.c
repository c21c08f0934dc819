/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes the other end of a gRPC connection. The first byte says which end that is and how the rest
 * is cut: frames of HTTP/2 after the settings. Each call that begins ends once, with a result
 * within the limits, whole and cut.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/lib/grpc/call.h"
#include "core/lib/grpc/served.h"
#include "test/fuzz/check.h"

#define MESSAGE_MAX 4096u
#define MAGIC "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

static const uint8_t settings[] = {0, 0, 0, 4, 0, 0, 0, 0, 0};

struct play {
	struct loop *loop;
	struct h2 *h2;
	unsigned n_begun, n_over, n_messages;
	size_t n_bytes;
};

static void on_touched(void *arg)
{
}

static void on_served_message(struct grpc_served *c, const struct grpc_message *m, void *arg)
{
	struct play *p = arg;
	check(m->n <= MESSAGE_MAX);
	p->n_messages++;
	p->n_bytes += m->n;
	if (m->n % 2)
		(void)grpc_served_send(c, m->data, m->n);
}

static void on_served_finished(struct grpc_served *c, void *arg)
{
	struct play *p = arg;
	p->n_over++;
	grpc_served_end(c, GRPC_OK, "fine", NULL);
}

static void on_served_gone(struct grpc_served *c, void *arg)
{
	struct play *p = arg;
	p->n_over++;
}

static void on_accept(struct h2_stream *s, const struct h2_fields *fields, bool last, void *arg)
{
	struct play *p = arg;
	struct grpc_served *c;
	size_t n = 0;
	for (size_t i = 0; i < fields->n; i++) {
		n += fields->list[i].name_len + fields->list[i].value_len;
		check(!fields->list[i].name[fields->list[i].name_len] &&
		      !fields->list[i].value[fields->list[i].value_len]);
	}
	check(n <= H2_HEADERS_MAX);
	if (grpc_serve(s, fields, last,
		       &(struct grpc_served_config){.loop = p->loop,
						    .message_max = MESSAGE_MAX,
						    .message = on_served_message,
						    .finished = on_served_finished,
						    .gone = on_served_gone,
						    .arg = p},
		       &c) == 0)
		p->n_begun++;
}

static void on_message(const uint8_t *payload, size_t n, void *arg)
{
	struct play *p = arg;
	check(n <= MESSAGE_MAX);
	p->n_messages++;
	p->n_bytes += n;
}

static void on_done(const struct grpc_result *r, void *arg)
{
	struct play *p = arg;
	check(r->error <= 0 && (!r->error || *r->text) && r->payload_len <= MESSAGE_MAX);
	p->n_over++;
}

/* Starts a call for a single answer and a call for a stream of answers. */
static void make_calls(struct play *p)
{
	for (unsigned i = 0; i < 2; i++) {
		check(!grpc_call_packed(&(struct grpc_call_config){.h2 = p->h2,
								   .loop = p->loop,
								   .path = "/t/Call",
								   .message_max = MESSAGE_MAX,
								   .message = i ? on_message : NULL,
								   .done = on_done,
								   .arg = p},
					(const uint8_t *)"abc", 3, NULL));
		p->n_begun++;
	}
}

static void say(struct play *p)
{
	struct buf unheard = BUF_INIT;
	(void)h2_pull(p->h2, &unheard, SIZE_MAX);
	buf_fini(&unheard);
}

static void feed(struct play *p, const uint8_t *data, size_t n, size_t piece)
{
	for (size_t at = 0; at < n;) {
		struct err err = ERR_INIT;
		size_t len = n - at < piece ? n - at : piece;
		if (h2_feed(p->h2, data + at, len, &err)) {
			check(*err.text != '\0');
			return;
		}
		at += len;
		say(p);
	}
}

static void play(const uint8_t *data, size_t n, bool server, size_t piece)
{
	struct play p = {.loop = loop_new()};
	p.h2 = h2_new(&(struct h2_config){
		.server = server, .accept = on_accept, .touched = on_touched, .arg = &p});
	check(p.loop && p.h2);
	if (server)
		feed(&p, (const uint8_t *)MAGIC, sizeof MAGIC - 1, SIZE_MAX);
	else
		make_calls(&p);
	feed(&p, settings, sizeof settings, SIZE_MAX);
	feed(&p, data, n, piece);
	h2_close(p.h2, -ECONNRESET, "closed");
	h2_free(p.h2);
	loop_free(p.loop);
	check(p.n_over == p.n_begun);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	bool server = data[0] & 1;
	play(data + 1, size - 1, server, SIZE_MAX);
	play(data + 1, size - 1, server, data[0] / 2u % 31u + 1u);
	return 0;
}
