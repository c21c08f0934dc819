/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The frame that the child of a trial sends through its pipe: a header with text and payload behind
 * it. The parent trusts it no more than the module that ran in the child.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/lib/util/buf.h"
#include "core/lib/util/err.h"

enum frame_state {
	FRAME_PART, /* the frame is incomplete */
	FRAME_WHOLE,
	/* Final states: */
	FRAME_TOO_LONG, /* payload too long, or no memory for it */
	FRAME_GARBLED,
};

/* Frame being received. Initialize to zero, then set data_max. */
struct frame_in {
	struct buf in;
	size_t data_max; /* largest payload, in bytes */
	enum frame_state state;
};

struct frame_answer {
	int code; /* result of the function; negative: a refusal */
	const char *text; /* reason of a refusal, text_size bytes, less than ERR_TEXT_MAX */
	size_t text_size;
	const uint8_t *data;
	size_t size;
};

/* Sends the answer, in the child. If the payload is longer than data_max bytes, only its size is
 * sent. -errno: sending failed. */
int frame_send(int fd, int code, const struct err *err, const struct buf *data, size_t data_max);

/* Returns room for at most n received bytes; NULL: no memory, which is FRAME_TOO_LONG. frame_add()
 * then reports the number of received bytes. */
uint8_t *frame_room(struct frame_in *f, size_t n);
enum frame_state frame_add(struct frame_in *f, size_t n);
/* Returns the answer of a complete frame, false otherwise. Valid as long as f->in. */
bool frame_get(const struct frame_in *f, struct frame_answer *ret);
