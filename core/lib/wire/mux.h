/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NRI's multiplexer: frames of {connection id, length, payload} carry two byte streams over one
 * socket. Bytes in, bytes out; the socket is the trunk's business.
 *
 * Receiving: frames may be cut anywhere and messages may span frames, so payloads are appended to
 * one input buffer a connection. Sending: a Go reader takes one frame a read into a buffer of 4096
 * bytes and drops the connection when a frame does not fit. So each message starts a frame, at most
 * 4096 bytes of it are in that one, and all the rest is in a second.
 */
#ifndef WIRE_MUX_H
#define WIRE_MUX_H

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
/* Old runtimes send a message of any size in one frame. */
#define MUX_RECV_MAX (64u << 20)

struct mux_rx {
	struct buf *in[MUX_CONNS]; /* of connection i + 1 */
	uint32_t frame_max;
	uint32_t conn, left; /* of the frame under way */
	unsigned n_head;
	uint8_t head[MUX_HEADER_SIZE];
};

/* The buffers are the caller's, who takes messages off their fronts. */
void mux_rx_init(struct mux_rx *rx, struct buf *plugin, struct buf *runtime, uint32_t frame_max);
/*
 * Takes bytes up to the end of a frame and says how many (more than 0); rx->conn has got them. So
 * whoever deals with a connection's messages after each call sees the messages of both in the order
 * they came. Frames of other connections are dropped. -EMSGSIZE: a frame over the limit; -ENOMEM.
 * After an error the stream cannot be followed any longer.
 */
ssize_t mux_rx_feed(struct mux_rx *rx, const uint8_t *data, size_t n, struct err *err);
/* Is a frame half received? */
static inline bool mux_rx_partial(const struct mux_rx *rx)
{
	return rx->n_head || rx->left;
}

/*
 * One message of n bytes in at most two frames: write it to where mux_begin says (NULL: out of
 * memory), then mux_end makes frames of it. n must not be 0; first_max (MUX_FIRST_FRAME_MAX, but
 * for imitations of old runtimes) is the same in both.
 */
uint8_t *mux_begin(struct buf *out, size_t n, size_t first_max);
void mux_end(struct buf *out, uint32_t conn, size_t n, size_t first_max);

#endif
