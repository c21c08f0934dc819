/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a plugin sends, looked at frame by frame the way a runtime written in Go reads it. There a
 * read takes one frame whole, into 4096 bytes while a message begins, and a frame that does not fit
 * ends the connection, silently. So: a message begins in a frame of its own with at most 4096
 * bytes, its rest comes in one more. Also checked: sizes, connections, types, stream numbers.
 */
#ifndef SIM_FRAMES_H
#define SIM_FRAMES_H

#include <stddef.h>
#include <stdint.h>

#define FRAMES_FIRST_MAX 4096u
#define FRAMES_MESSAGE_MAX (4u << 20)
#define FRAMES_HEAD 8u
#define FRAMES_MESSAGE_HEAD 10u
#define FRAMES_CONNS 2u

struct frames_conn {
	uint8_t head[FRAMES_MESSAGE_HEAD];
	unsigned n_head; /* bytes of the message's header so far */
	uint32_t left; /* bytes of the message behind its header that are still to come */
	unsigned n_frames; /* it has come in */
	uint32_t last_request; /* stream */
};

struct frames {
	uint8_t head[FRAMES_HEAD];
	unsigned n_head;
	uint32_t conn, length, left; /* of the frame under way */
	unsigned n_messages; /* that have begun in it */
	struct frames_conn conns[FRAMES_CONNS];
	void (*bad)(const char *what, void *arg);
	void *arg;
};

void frames_init(struct frames *f, void (*bad)(const char *what, void *arg), void *arg);
void frames_feed(struct frames *f, const uint8_t *data, size_t n);

#endif
