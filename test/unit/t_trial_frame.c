/* SPDX-License-Identifier: Apache-2.0 */
/* The frames that the child of a trial sends, byte by byte, and the reading of its report. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/nri-rpd/host/trial_frame.h"
#include "core/nri-rpd/pipeline/reload/report.h"

#define DATA_MAX 64u

/* Writes a frame into a pipe with frame_send() and returns its size. */
static size_t sent(int code, const char *why, const char *data, size_t data_max, uint8_t *ret,
		   size_t size)
{
	int fds[2];
	struct buf b = BUF_INIT;
	struct err err = ERR_INIT;
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(buf_add_str(&b, data), 0);
	if (code < 0)
		(void)err_set(&err, code, "%s", why);
	assert_int_equal(frame_send(fds[1], code, &err, &b, data_max), 0);
	ssize_t n = read(fds[0], ret, size);
	assert_true(n > 0 && (size_t)n < size);
	(void)close(fds[0]);
	(void)close(fds[1]);
	buf_fini(&b);
	return (size_t)n;
}

static enum frame_state add(struct frame_in *f, const uint8_t *data, size_t n)
{
	uint8_t *room = frame_room(f, n);
	assert_non_null(room);
	memcpy(room, data, n);
	return frame_add(f, n);
}

static void byte_by_byte(void **state)
{
	uint8_t bytes[256];
	struct frame_answer a;
	struct frame_in f = {.data_max = DATA_MAX};
	size_t n = sent(-28, "no room", "payload", DATA_MAX, bytes, sizeof bytes);
	for (size_t i = 0; i + 1 < n; i++) {
		assert_int_equal(add(&f, bytes + i, 1), FRAME_PART);
		assert_false(frame_get(&f, &a));
	}
	assert_int_equal(add(&f, bytes + n - 1, 1), FRAME_WHOLE);
	assert_true(frame_get(&f, &a));
	assert_int_equal(a.code, -28);
	assert_int_equal(a.text_size, 7);
	assert_memory_equal(a.text, "no room", 7);
	assert_int_equal(a.size, 7);
	assert_memory_equal(a.data, "payload", 7);
	/* a module that continues to write */
	assert_int_equal(add(&f, bytes, 1), FRAME_GARBLED);
	assert_false(frame_get(&f, &a));
	buf_fini(&f.in);
}

static void no_frame(void **state)
{
	uint8_t bytes[256];
	struct frame_in f = {.data_max = DATA_MAX};
	size_t n = sent(0, "", "payload", DATA_MAX, bytes, sizeof bytes);
	bytes[0] ^= 1;
	assert_int_equal(add(&f, bytes, n), FRAME_GARBLED);
	bytes[0] ^= 1;
	/* for good */
	assert_int_equal(add(&f, bytes, n), FRAME_GARBLED);
	buf_fini(&f.in);
	/* the sentence's size, behind magic and code */
	f = (struct frame_in){.data_max = DATA_MAX};
	const uint32_t size = ERR_TEXT_MAX;
	memcpy(bytes + 8, &size, sizeof size);
	assert_int_equal(add(&f, bytes, n), FRAME_GARBLED);
	buf_fini(&f.in);
}

/* Checks that the child does not send a frame that is too long, and that the parent does not
 * wait for one. */
static void too_long(void **state)
{
	uint8_t bytes[256];
	struct frame_in f = {.data_max = 6};
	size_t n = sent(0, "", "payload", 6, bytes, sizeof bytes);
	assert_int_equal(add(&f, bytes, n), FRAME_TOO_LONG);
	buf_fini(&f.in);
	f = (struct frame_in){.data_max = SIZE_MAX};
	const uint64_t size = UINT64_MAX - 8;
	memcpy(bytes + 16, &size, sizeof size);
	assert_int_equal(add(&f, bytes, n), FRAME_PART);
	assert_int_equal(add(&f, bytes, n), FRAME_PART);
	buf_fini(&f.in);
}

static void reports(void **state)
{
	static char none[] = "", name[] = "default/web/app", from[] = "0-3", to[] = "4",
		    why[] = "a";
	Trial__Move move = TRIAL__MOVE__INIT, *moves[] = {&move};
	Trial__Report report = TRIAL__REPORT__INIT;
	struct buf b = BUF_INIT;
	struct report r;
	struct err err = ERR_INIT;
	move.ctr = name;
	move.from_cpus = from;
	move.to_cpus = to;
	move.why = why;
	move.from_mems = move.to_mems = move.note = none;
	report.moves = moves;
	report.n_moves = 1;
	report.restart_needed = 1;
	assert_int_equal(report_write(&report, &b), 0);
	assert_int_equal(report_read(buf_bytes(&b), buf_len(&b), &r, &err), 0);
	assert_int_equal(r.message->n_moves, 1);
	assert_string_equal(r.message->moves[0]->ctr, name);
	assert_string_equal(r.message->moves[0]->from_cpus, from);
	assert_string_equal(r.message->moves[0]->to_cpus, to);
	assert_string_equal(r.message->moves[0]->note, "");
	assert_string_equal(r.message->moves[0]->why, why);
	assert_true(r.message->restart_needed);
	assert_string_equal(r.message->warnings, "");
	report_fini(&r);
	/* an empty report */
	assert_int_equal(report_read(buf_bytes(&b), 0, &r, &err), 0);
	assert_int_equal(r.message->n_moves, 0);
	report_fini(&r);
	assert_int_equal(report_read(buf_bytes(&b), buf_len(&b) - 1, &r, &err), -EBADMSG);
	assert_string_equal(err.text, "the report of a trial is invalid");
	assert_null(r.message);
	report_fini(&r);
	buf_fini(&b);
}

/* Checks a report that is small enough to be sent but has too many moves to be processed. */
static void too_many_moves(void **state)
{
	const size_t n = (size_t)2 << 20; /* each takes more than 64 bytes in memory */
	uint8_t *data = malloc(2 * n);
	struct report r;
	struct err err = ERR_INIT;
	assert_non_null(data);
	for (size_t i = 0; i < n; i++) {
		data[2 * i] = 4 << 3 | 2; /* the field of the moves, whose length is to come */
		data[2 * i + 1] = 0;
	}
	assert_int_equal(report_read(data, 2 * n, &r, &err), -E2BIG);
	assert_non_null(strstr(err.text, "takes more than 128 MiB"));
	assert_null(r.message);
	report_fini(&r);
	assert_int_equal(report_read(data, 2000, &r, &err), 0);
	assert_int_equal(r.message->n_moves, 1000);
	report_fini(&r);
	free(data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(byte_by_byte),	  cmocka_unit_test(no_frame),
		cmocka_unit_test(too_long),	  cmocka_unit_test(reports),
		cmocka_unit_test(too_many_moves),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
