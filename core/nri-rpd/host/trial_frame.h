/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the child of a trial sends through its pipe: one frame, a header with text and payload
 * behind it. It is as trustworthy as the module that ran there: not at all.
 */
#ifndef HOST_TRIAL_FRAME_H
#define HOST_TRIAL_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/lib/util/buf.h"
#include "core/lib/util/err.h"

enum frame_state {
	FRAME_PART, /* more has to come */
	FRAME_WHOLE,
	/* for good: */
	FRAME_TOO_LONG, /* its payload, or there is no memory for it */
	FRAME_GARBLED,
};

/* Zeroed, with data_max, at first. */
struct frame_in {
	struct buf in;
	size_t data_max; /* bytes of payload */
	enum frame_state state;
};

struct frame_answer {
	int code; /* negative: a refusal */
	const char *text; /* why, text_size bytes; less than ERR_TEXT_MAX */
	size_t text_size;
	const uint8_t *data;
	size_t size;
};

/* In the child. An answer with more than data_max bytes of payload sends its size alone. -errno: it
 * did not get through. */
int frame_send(int fd, int code, const struct err *err, const struct buf *data, size_t data_max);

/* Where to put what comes, at most n bytes; NULL: no memory, which is FRAME_TOO_LONG. frame_add()
 * tells how many have come. */
uint8_t *frame_room(struct frame_in *f, size_t n);
enum frame_state frame_add(struct frame_in *f, size_t n);
/* False unless it is whole. Valid as long as f->in is. */
bool frame_get(const struct frame_in *f, struct frame_answer *ret);

#endif
