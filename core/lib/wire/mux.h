/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NRI's multiplexer: frames of {connection id, length, payload} carry two byte streams over one
 * socket. Bytes in, bytes out; the trunk handles the socket.
 *
 * Receiving: frames may be cut anywhere and messages may span frames, so payloads are appended to
 * one input buffer a connection. Sending: a Go reader reads one frame at a time into a buffer of
 * 4096 bytes, and drops the connection if a frame does not fit. Each message therefore starts a
 * frame, which has at most 4096 bytes of it, and a second frame has the rest.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/lib/util/buf.h"
#include "core/lib/util/err.h"

#define MUX_HEADER_SIZE 8u
#define MUX_CONN_PLUGIN 1u /* the runtime calls, the plugin serves */
#define MUX_CONN_RUNTIME 2u /* the plugin calls, the runtime serves */
#define MUX_CONNS 2u
#define MUX_FIRST_FRAME_MAX 4096u
/* Bytes of a received frame: old runtimes send a message of any size in one frame. */
#define MUX_RECV_MAX (64u << 20)

struct mux_rx {
	struct buf *in[MUX_CONNS]; /* in[i] belongs to connection i + 1 */
	uint32_t frame_max;
	uint32_t conn, left; /* connection and missing bytes of the current frame */
	unsigned n_head;
	uint8_t head[MUX_HEADER_SIZE];
};

/* Initializes the receiver. The caller owns the buffers and consumes messages from their fronts. */
void mux_rx_init(struct mux_rx *rx, struct buf *plugin, struct buf *runtime, uint32_t frame_max);
/*
 * Consumes bytes up to the end of a frame and returns their number (more than 0); the payload is
 * appended to connection rx->conn. A caller that handles a connection's messages after each call
 * therefore sees the messages of both connections in the order of arrival. Frames of other
 * connections are dropped. -EMSGSIZE: a frame over the limit; -ENOMEM. After an error the stream is
 * lost.
 */
ssize_t mux_rx_feed(struct mux_rx *rx, const uint8_t *data, size_t n, struct err *err);
/* Returns true if a frame is incomplete. */
static inline bool mux_rx_partial(const struct mux_rx *rx)
{
	return rx->n_head || rx->left;
}

/*
 * Writes one message of n bytes in at most two frames. The caller writes the message to the address
 * that mux_begin returns (NULL: out of memory); mux_end then adds the headers of the frames. n must
 * not be 0. first_max is equal in both calls: MUX_FIRST_FRAME_MAX, except to imitate old runtimes.
 */
uint8_t *mux_begin(struct buf *out, size_t n, size_t first_max);
void mux_end(struct buf *out, uint32_t conn, size_t n, size_t first_max);
