/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes the messages of a trial's child. The first byte says how the input is cut; the rest is
 * read through the pipe and, by itself, as a report. Every cut has the same result, and each
 * decoded report can be traversed.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/nri-rpd/host/trial_frame.h"
#include "core/nri-rpd/pipeline/reload/reload.h"
#include "core/nri-rpd/pipeline/reload/report.h"
#include "test/fuzz/check.h"

#define PAYLOAD_MAX 4096u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t read_report(const uint8_t *data, size_t size)
{
	struct report r;
	struct err err = ERR_INIT;
	size_t sum = 0;
	int e = report_read(data, size, &r, &err);
	check(e <= 0 && err.code == e && (e == 0) == !*err.text);
	check(e == 0 || (!r.message && !r.arena));
	for (size_t i = 0; r.message && i < r.message->n_moves; i++) {
		const Trial__Move *m = r.message->moves[i];
		sum += strlen(m->ctr) + strlen(m->from_cpus) + strlen(m->to_cpus) +
		       strlen(m->from_mems) + strlen(m->to_mems) + strlen(m->note) + strlen(m->why);
	}
	if (r.message)
		sum += strlen(r.message->warnings) + strlen(r.message->changes);
	check(sum <= size);
	report_fini(&r);
	return sum;
}

static struct frame_in collect(const uint8_t *data, size_t size, size_t piece)
{
	struct frame_in f = {.data_max = PAYLOAD_MAX};
	enum frame_state state = FRAME_PART;
	for (size_t at = 0; at < size && state < FRAME_TOO_LONG;) {
		size_t n = size - at < piece ? size - at : piece;
		uint8_t *room = frame_room(&f, n);
		check(room != NULL);
		memcpy(room, data + at, n);
		state = frame_add(&f, n);
		check(state == f.state);
		at += n;
	}
	return f;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	struct frame_answer a, b;
	struct frame_in whole = collect(data + 1, size - 1, size);
	struct frame_in cut = collect(data + 1, size - 1, data[0] % 61u + 1u);
	check(whole.state == cut.state);
	check(frame_get(&whole, &a) == (whole.state == FRAME_WHOLE));
	if (frame_get(&cut, &b)) {
		check(a.code == b.code && a.text_size == b.text_size && a.size == b.size);
		check(a.text_size < ERR_TEXT_MAX && a.size <= PAYLOAD_MAX);
		check(!memcmp(a.text, b.text, a.text_size) && !memcmp(a.data, b.data, a.size));
		(void)read_report(a.data, a.size);
	}
	buf_fini(&whole.in);
	buf_fini(&cut.in);
	(void)read_report(data + 1, size - 1);
	return 0;
}
