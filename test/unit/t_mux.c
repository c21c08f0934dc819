/* SPDX-License-Identifier: Apache-2.0 */
/* The multiplexer: any cut of the input gives the same, and what goes out suits a Go reader. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/lib/wire/be.h"
#include "core/lib/wire/mux.h"
#include "core/lib/wire/ttrpc.h"

#define LIMIT 100u

struct fixture {
	struct buf in[MUX_CONNS];
	struct mux_rx rx;
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);
	mux_rx_init(&f->rx, &f->in[0], &f->in[1], LIMIT);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;
	buf_fini(&f->in[0]);
	buf_fini(&f->in[1]);
	free(f);
	return 0;
}

static int feed_all(struct fixture *f, const uint8_t *data, size_t n, struct err *err)
{
	while (n) {
		ssize_t used = mux_rx_feed(&f->rx, data, n, err);
		if (used < 0)
			return (int)used;
		assert_true(used > 0 && (size_t)used <= n);
		data += used;
		n -= (size_t)used;
	}
	return 0;
}

static void add_frame(struct buf *b, uint32_t conn, const char *text)
{
	assert_int_equal(0, buf_add_be32(b, conn));
	assert_int_equal(0, buf_add_be32(b, (uint32_t)strlen(text)));
	assert_int_equal(0, buf_add_str(b, text));
}

static void assert_text(struct buf *b, const char *text)
{
	assert_string_equal(text, buf_text(b));
}

static struct buf sample(void)
{
	struct buf b = BUF_INIT;
	add_frame(&b, 1, "one ");
	add_frame(&b, 2, "two ");
	add_frame(&b, 3, "nobody's");
	add_frame(&b, 1, "");
	add_frame(&b, 0, "nor this");
	add_frame(&b, 0xffffffff, "nor that");
	add_frame(&b, 2, "zwei");
	add_frame(&b, 1, "eins");
	return b;
}

static void test_rx_two_pieces(void **state)
{
	struct buf b = sample();
	for (size_t cut = 0; cut <= buf_len(&b); cut++) {
		void *f = NULL;
		set_up(&f);
		struct fixture *fx = f;
		assert_int_equal(0, feed_all(fx, buf_bytes(&b), cut, NULL));
		assert_int_equal(0, feed_all(fx, buf_bytes(&b) + cut, buf_len(&b) - cut, NULL));
		assert_text(&fx->in[0], "one eins");
		assert_text(&fx->in[1], "two zwei");
		assert_false(mux_rx_partial(&fx->rx));
		tear_down(&f);
	}
	buf_fini(&b);
}

static void test_rx_small_pieces(void **state)
{
	struct buf b = sample();
	for (size_t piece = 1; piece < 12; piece++) {
		void *f = NULL;
		set_up(&f);
		struct fixture *fx = f;
		for (size_t at = 0; at < buf_len(&b); at += piece) {
			size_t n = buf_len(&b) - at < piece ? buf_len(&b) - at : piece;
			assert_int_equal(0, feed_all(fx, buf_bytes(&b) + at, n, NULL));
		}
		assert_text(&fx->in[0], "one eins");
		assert_text(&fx->in[1], "two zwei");
		tear_down(&f);
	}
	buf_fini(&b);
}

static void test_rx_stops_at_frames(void **state)
{
	struct fixture *f = *state;
	struct buf b = BUF_INIT;
	add_frame(&b, 2, "abc");
	add_frame(&b, 1, "defg");
	assert_int_equal(11, mux_rx_feed(&f->rx, buf_bytes(&b), buf_len(&b), NULL));
	assert_int_equal(2, f->rx.conn);
	assert_int_equal(0, buf_len(&f->in[0]));
	assert_int_equal(3, buf_len(&f->in[1]));
	buf_consume(&b, 11);
	assert_int_equal(12, mux_rx_feed(&f->rx, buf_bytes(&b), buf_len(&b), NULL));
	assert_int_equal(1, f->rx.conn);
	buf_fini(&b);
}

static void test_rx_partial(void **state)
{
	struct fixture *f = *state;
	static const uint8_t frame[] = {0, 0, 0, 1, 0, 0, 0, 2, 'a', 'b'};
	assert_false(mux_rx_partial(&f->rx));
	for (size_t i = 0; i < sizeof frame; i++) {
		assert_int_equal(1, mux_rx_feed(&f->rx, frame + i, 1, NULL));
		assert_int_equal(i + 1 < sizeof frame, mux_rx_partial(&f->rx));
	}
}

static void test_rx_limit(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	uint8_t head[8] = {0, 0, 0, 1, 0, 0, 0, LIMIT};
	assert_int_equal(8, mux_rx_feed(&f->rx, head, 8, &err));
	uint8_t body[LIMIT] = {0};
	assert_int_equal(LIMIT, mux_rx_feed(&f->rx, body, LIMIT, &err));
	head[7]++;
	assert_int_equal(7, mux_rx_feed(&f->rx, head, 7, &err));
	assert_int_equal(-EMSGSIZE, mux_rx_feed(&f->rx, head + 7, 1, &err));
	assert_non_null(strstr(err.text, "101 bytes on connection 1, at most 100"));
	assert_int_equal(-EMSGSIZE, err.code);
}

static void test_rx_limit_of_strangers(void **state)
{
	struct fixture *f = *state;
	static const uint8_t head[8] = {0, 0, 0, 9, 0xff, 0xff, 0xff, 0xff};
	assert_int_equal(-EMSGSIZE, mux_rx_feed(&f->rx, head, 8, NULL));
}

static void test_rx_no_memory(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	f->in[0].failed = -ENOMEM; /* as after a failure to grow */
	static const uint8_t frame[] = {0, 0, 0, 1, 0, 0, 0, 1, 'x'};
	assert_int_equal(-ENOMEM, mux_rx_feed(&f->rx, frame, sizeof frame, &err));
	assert_int_equal(-ENOMEM, err.code);
}

/* ---- a Go peer that reads our frames -------- */

/*
 * A Read of the Go side returns one frame, and fails when the offered buffer is smaller. The
 * buffered reader on top offers its own 4096 bytes, or the caller's buffer if its own is empty and
 * the caller requests at least as much.
 */
struct go_reader {
	const uint8_t *at, *end; /* frames of one connection */
	const uint8_t *have;
	size_t n_have;
	unsigned n_frames;
	bool failed;
};

#define GO_BUFFER 4096u

static bool go_next_frame(struct go_reader *g, size_t offered, const uint8_t **ret, size_t *ret_n)
{
	if (g->end - g->at < 8)
		return false;
	size_t n = get_be32(g->at + 4);
	if (get_be32(g->at) != MUX_CONN_RUNTIME || n == 0 || n > (size_t)(g->end - g->at) - 8 ||
	    n > offered)
		return false;
	*ret = g->at + 8;
	*ret_n = n;
	g->at += 8 + n;
	g->n_frames++;
	return true;
}

static bool go_read(struct go_reader *g, uint8_t *to, size_t n)
{
	while (n) {
		const uint8_t *frame = NULL;
		size_t n_frame = 0;
		if (g->n_have) {
			size_t take = g->n_have < n ? g->n_have : n;
			memcpy(to, g->have, take);
			g->have += take;
			g->n_have -= take;
			to += take;
			n -= take;
			continue;
		}
		if (!go_next_frame(g, n < GO_BUFFER ? GO_BUFFER : n, &frame, &n_frame))
			return false;
		if (n < GO_BUFFER) {
			g->have = frame;
			g->n_have = n_frame;
			continue;
		}
		memcpy(to, frame, n_frame);
		to += n_frame;
		n -= n_frame;
	}
	return true;
}

/* Sends a message of n bytes with a ttrpc header and recognisable content, after other messages. */
static void send_and_read(size_t n_data, size_t first_max, bool suits_go)
{
	size_t n = TTRPC_HEADER_SIZE + n_data;
	struct buf out = BUF_INIT;
	for (unsigned round = 0; round < 2; round++) {
		uint8_t *p = mux_begin(&out, n, first_max);
		assert_non_null(p);
		ttrpc_header_encode(p, &(struct ttrpc_header){(uint32_t)n_data, 7, 2, 0});
		for (size_t i = 0; i < n_data; i++)
			p[TTRPC_HEADER_SIZE + i] = (uint8_t)(i * 31 + i / 251 + round);
		mux_end(&out, MUX_CONN_RUNTIME, n, first_max);
	}
	struct go_reader g = {.at = buf_bytes(&out), .end = buf_bytes(&out) + buf_len(&out)};
	uint8_t *data = malloc(n_data + 1);
	bool ok = true;
	for (unsigned round = 0; round < 2 && ok; round++) {
		uint8_t head[TTRPC_HEADER_SIZE];
		ok = go_read(&g, head, sizeof head) && get_be32(head) == n_data &&
		     go_read(&g, data, n_data);
		for (size_t i = 0; ok && i < n_data; i++)
			ok = data[i] == (uint8_t)(i * 31 + i / 251 + round);
		/* The read returned no bytes of the next message. */
		ok = ok && !g.n_have;
	}
	ok = ok && g.at == g.end && g.n_frames <= 4;
	free(data);
	buf_fini(&out);
	assert_int_equal(suits_go, ok);
}

static void test_tx_suits_go(void **state)
{
	static const size_t edges[] = {0,
				       4096 - 10,
				       4096,
				       8192 - 10,
				       8192,
				       8192 + 4096 - 10,
				       65536,
				       1u << 20,
				       TTRPC_MESSAGE_MAX - 4096,
				       TTRPC_MESSAGE_MAX - 10};
	for (unsigned i = 0; i < sizeof edges / sizeof *edges; i++)
		for (size_t d = 0; d < 21; d++)
			if (edges[i] + d >= 10)
				send_and_read(edges[i] + d - 10, MUX_FIRST_FRAME_MAX, true);
	for (size_t n = 0; n < 10000; n += 97)
		send_and_read(n, MUX_FIRST_FRAME_MAX, true);
	for (size_t n = 10000; n < TTRPC_MESSAGE_MAX; n += n / 3)
		send_and_read(n, MUX_FIRST_FRAME_MAX, true);
	send_and_read(TTRPC_MESSAGE_MAX, MUX_FIRST_FRAME_MAX, true);
}

/* Checks that the model finds the errors that a Go peer finds. */
static void test_model_refuses(void **state)
{
	send_and_read(4086, SIZE_MAX, true);
	send_and_read(4087, SIZE_MAX, false);
	send_and_read(100000, 5000, false);
	send_and_read(100000, 4096, true);
}

static void test_tx_bytes(void **state)
{
	struct buf out = BUF_INIT;
	memcpy(mux_begin(&out, 5, 3), "abcde", 5);
	mux_end(&out, 1, 5, 3);
	memcpy(mux_begin(&out, 3, 3), "xyz", 3);
	mux_end(&out, 2, 3, 3);
	static const uint8_t want[] = {0, 0, 0, 1, 0, 0, 0, 3,	 'a', 'b', 'c',
				       0, 0, 0, 1, 0, 0, 0, 2,	 'd', 'e', 0,
				       0, 0, 2, 0, 0, 0, 3, 'x', 'y', 'z'};
	assert_int_equal(sizeof want, buf_len(&out));
	assert_memory_equal(want, buf_bytes(&out), sizeof want);
	buf_fini(&out);
}

static void test_tx_no_memory(void **state)
{
	struct buf out = BUF_INIT;
	assert_null(mux_begin(&out, SIZE_MAX / 2, 4096));
	buf_fini(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rx_two_pieces),
		cmocka_unit_test(test_rx_small_pieces),
		cmocka_unit_test_setup_teardown(test_rx_stops_at_frames, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_rx_partial, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_rx_limit, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_rx_limit_of_strangers, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_rx_no_memory, set_up, tear_down),
		cmocka_unit_test(test_tx_suits_go),
		cmocka_unit_test(test_model_refuses),
		cmocka_unit_test(test_tx_bytes),
		cmocka_unit_test(test_tx_no_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
