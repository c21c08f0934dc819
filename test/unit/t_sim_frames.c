/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/nri-rp-sim/frames.h"
#include "core/lib/util/buf.h"
#include "core/lib/wire/be.h"
#include "core/lib/wire/mux.h"

#define REQUEST 1
#define RESPONSE 2

struct judge {
	char first[200];
	unsigned n;
};

static void note(const char *what, void *arg)
{
	struct judge *j = arg;
	if (!j->n++)
		(void)snprintf(j->first, sizeof j->first, "%s", what);
}

/* Feeds in pieces of `piece` bytes; 0: all at once. */
static struct judge judge(struct buf *bytes, size_t piece)
{
	struct judge j = {.first = ""};
	struct frames f;
	frames_init(&f, note, &j);
	size_t n = buf_len(bytes);
	for (size_t at = 0; at < n;) {
		size_t part = piece && piece < n - at ? piece : n - at;
		frames_feed(&f, buf_bytes(bytes) + at, part);
		at += part;
	}
	return j;
}

/* Checks that the verdict is the same for every division of the bytes. */
static void expect(struct buf *bytes, const char *what)
{
	static const size_t pieces[] = {0, 1, 2, 7, 8, 9, 10, 11, 4096, 4097};
	for (unsigned i = 0; i < sizeof pieces / sizeof *pieces; i++) {
		struct judge j = judge(bytes, pieces[i]);
		if (!what && j.n)
			fail_msg("pieces of %zu: %s", pieces[i], j.first);
		if (what && !strstr(j.first, what))
			fail_msg("pieces of %zu: expected %s, got \"%s\"", pieces[i], what,
				 j.first);
	}
	buf_fini(bytes);
}

static void add_frame_head(struct buf *b, uint32_t conn, uint32_t n)
{
	buf_add_be32(b, conn);
	buf_add_be32(b, n);
}

static void add_message_head(struct buf *b, uint32_t n, uint32_t stream, uint8_t type,
			     uint8_t flags)
{
	const uint8_t rest[2] = {type, flags};
	buf_add_be32(b, n);
	buf_add_be32(b, stream);
	buf_add(b, rest, 2);
}

static void add_bytes(struct buf *b, size_t n)
{
	memset(buf_reserve(b, n), 'x', n);
	buf_commit(b, n);
}

/* Adds a frame that holds a complete message. */
static void add_message(struct buf *b, uint32_t conn, uint32_t n, uint32_t stream, uint8_t type)
{
	add_frame_head(b, conn, n + FRAMES_MESSAGE_HEAD);
	add_message_head(b, n, stream, type, 0);
	add_bytes(b, n);
}

/* ---- valid frames ---------------------------------------------------------------------------- */

static void small_messages(void **state)
{
	struct buf b = BUF_INIT;
	add_message(&b, 2, 85, 1, REQUEST);
	add_message(&b, 1, 0, 1, RESPONSE);
	add_message(&b, 1, 1, 3, RESPONSE);
	add_message(&b, 2, FRAMES_FIRST_MAX - FRAMES_MESSAGE_HEAD, 3, REQUEST);
	add_message(&b, 2, 0, 9, REQUEST);
	expect(&b, NULL);
}

static void large_messages(void **state)
{
	struct buf b = BUF_INIT;
	/* 4096 bytes, then all the rest */
	add_frame_head(&b, 1, 4096);
	add_message_head(&b, 100000, 5, RESPONSE, 0);
	add_bytes(&b, 4096 - FRAMES_MESSAGE_HEAD);
	add_message(&b, 2, 3, 1, REQUEST); /* a frame of the other connection in between */
	add_frame_head(&b, 1, 100000 - 4096 + FRAMES_MESSAGE_HEAD);
	add_bytes(&b, 100000 - 4096 + FRAMES_MESSAGE_HEAD);
	/* the header alone, then all the rest */
	add_frame_head(&b, 1, FRAMES_MESSAGE_HEAD);
	add_message_head(&b, 50000, 7, RESPONSE, 0);
	add_frame_head(&b, 1, 50000);
	add_bytes(&b, 50000);
	expect(&b, NULL);
}

/* Checks that the checker accepts the output of core/lib/wire. */
static void own_multiplexer(void **state)
{
	static const size_t sizes[] = {10, 11, 4095, 4096, 4097, 8192, 1 << 20, (4 << 20) + 10};
	for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		struct buf b = BUF_INIT;
		uint8_t *at = mux_begin(&b, sizes[i], MUX_FIRST_FRAME_MAX);
		assert_non_null(at);
		memset(at, 'x', sizes[i]);
		put_be32(at, (uint32_t)sizes[i] - FRAMES_MESSAGE_HEAD);
		put_be32(at + 4, 1);
		at[8] = REQUEST;
		at[9] = 0;
		mux_end(&b, MUX_CONN_RUNTIME, sizes[i], MUX_FIRST_FRAME_MAX);
		struct judge j = judge(&b, 0);
		assert_string_equal(j.first, "");
		buf_fini(&b);
	}
}

/* ---- invalid frames -------------------------------------------------------------------------- */

static void wrong_frames(void **state)
{
	struct buf b = BUF_INIT;
	add_frame_head(&b, 1, 0);
	expect(&b, "an empty frame");
	add_frame_head(&b, 3, 4);
	add_bytes(&b, 4);
	expect(&b, "a frame for connection 3");
	add_frame_head(&b, 1, FRAMES_MESSAGE_MAX + FRAMES_MESSAGE_HEAD + 1);
	expect(&b, "a frame of 4194315 bytes");
	add_message(&b, 1, FRAMES_FIRST_MAX - FRAMES_MESSAGE_HEAD + 1, 1, RESPONSE);
	expect(&b, "begins with a frame of 4097 bytes");
}

static void two_messages_in_a_frame(void **state)
{
	struct buf b = BUF_INIT;
	add_frame_head(&b, 2, 2 * FRAMES_MESSAGE_HEAD);
	add_message_head(&b, 0, 1, REQUEST, 0);
	add_message_head(&b, 0, 3, REQUEST, 0);
	expect(&b, "two messages in one frame");
}

static void too_many_frames(void **state)
{
	struct buf b = BUF_INIT;
	add_frame_head(&b, 1, FRAMES_MESSAGE_HEAD);
	add_message_head(&b, 20, 1, RESPONSE, 0);
	add_frame_head(&b, 1, 10);
	add_bytes(&b, 10);
	add_frame_head(&b, 1, 10);
	add_bytes(&b, 10);
	expect(&b, "more than two frames");
}

static void wrong_messages(void **state)
{
	struct buf b = BUF_INIT;
	add_frame_head(&b, 2, FRAMES_MESSAGE_HEAD);
	add_message_head(&b, FRAMES_MESSAGE_MAX + 1, 1, REQUEST, 0);
	expect(&b, "a message of 4194305 bytes");
	add_frame_head(&b, 2, FRAMES_MESSAGE_HEAD);
	add_message_head(&b, 0, 1, REQUEST, 4);
	expect(&b, "flags 0x4");
	add_message(&b, 1, 0, 1, REQUEST);
	expect(&b, "type 1 instead of a reply");
	add_message(&b, 2, 0, 1, RESPONSE);
	expect(&b, "type 2 instead of a request");
}

static void stream_numbers(void **state)
{
	struct buf b = BUF_INIT;
	add_message(&b, 2, 0, 2, REQUEST);
	expect(&b, "stream number 2 after 0");
	add_message(&b, 2, 0, 5, REQUEST);
	add_message(&b, 2, 0, 5, REQUEST);
	expect(&b, "stream number 5 after 5");
	add_message(&b, 2, 0, 5, REQUEST);
	add_message(&b, 2, 0, 3, REQUEST);
	expect(&b, "stream number 3 after 5");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(small_messages),	   cmocka_unit_test(large_messages),
		cmocka_unit_test(own_multiplexer),	   cmocka_unit_test(wrong_frames),
		cmocka_unit_test(two_messages_in_a_frame), cmocka_unit_test(too_many_frames),
		cmocka_unit_test(wrong_messages),	   cmocka_unit_test(stream_numbers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
