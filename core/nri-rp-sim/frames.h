/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks the frames that a plugin sends, as a runtime written in Go reads them. Go reads whole
 * frames into 4096 bytes while a message begins; a longer frame ends the connection silently.
 * Therefore a message must begin in a frame of its own of at most 4096 bytes, with the rest in one
 * more frame. Also checks sizes, connections, types and stream numbers.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define FRAMES_FIRST_MAX 4096u
#define FRAMES_MESSAGE_MAX (4u << 20)
#define FRAMES_HEAD 8u
#define FRAMES_MESSAGE_HEAD 10u
#define FRAMES_CONNS 2u

struct frames_conn {
	uint8_t head[FRAMES_MESSAGE_HEAD];
	unsigned n_head; /* received bytes of the message's header */
	uint32_t left; /* missing bytes of the message's body */
	unsigned n_frames; /* frames of the message so far */
	uint32_t last_request; /* stream number of the last request */
};

struct frames {
	uint8_t head[FRAMES_HEAD];
	unsigned n_head;
	uint32_t conn, length, left; /* header of the current frame, bytes left of it */
	unsigned n_messages; /* messages begun in the current frame */
	struct frames_conn conns[FRAMES_CONNS];
	void (*bad)(const char *what, void *arg);
	void *arg;
};

void frames_init(struct frames *f, void (*bad)(const char *what, void *arg), void *arg);
void frames_feed(struct frames *f, const uint8_t *data, size_t n);
