/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connected unix stream socket on the loop that speaks ttrpc: plain (the control socket), or, as
 * in NRI, two ttrpc connections behind a multiplexer. The user decides whether it is the runtime or
 * the plugin: it calls on one connection and serves the other.
 *
 * Output is written at once; bytes that the socket does not accept wait in a buffer. Reading
 * continues meanwhile, because two peers that send large messages to each other would otherwise
 * wait forever. The connection ends when too much output waits, so that a peer which sends requests
 * and reads no answers does not use unlimited memory.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/lib/util/err.h"
#include "core/lib/util/loop.h"
#include "core/lib/wire/mux.h"
#include "core/lib/wire/rpc.h"

/* Unsent bytes above which calls are refused, and above which another answer ends the
 * connection. */
#define TRUNK_CALLS_OUT_MAX (16u << 20)
#define TRUNK_ANSWERS_OUT_MAX (64u << 20)
/* Size to which buffers are shrunk after a large message. */
#define TRUNK_KEEP (256u << 10)

struct trunk;

struct trunk_config {
	bool mux;
	/* Data of a message; 0: TTRPC_MESSAGE_MAX, with the multiplexer MUX_RECV_MAX. */
	uint32_t recv_max;
	uint32_t send_max; /* largest message to send, in bytes; 0: TTRPC_MESSAGE_MAX */
	/* 0: MUX_FIRST_FRAME_MAX; SIZE_MAX: whole messages in one frame, as in NRI 0.6. */
	size_t first_max;
	/*
	 * Called when the connection has ended, except by trunk_free. err->code is -ECONNRESET if
	 * the peer closed it, -EMSGSIZE if it violated the protocol, -ENOBUFS if it did not read
	 * its answers, else an error of the system. Calls have ended before. The user can only call
	 * trunk_free, now or later.
	 */
	void (*closed)(struct trunk *trunk, const struct err *err, void *arg);
	void *arg;
};

/* Creates a trunk and takes ownership of the descriptor (connected, non-blocking), also on
 * failure. */
int trunk_new(struct loop *loop, int fd, const struct trunk_config *config, struct trunk **ret,
	      struct err *err);
/*
 * Frees the trunk: answers pending requests with UNAVAILABLE as far as the socket accepts data,
 * ends calls with -ECANCELED, closes. Allowed anywhere, including handlers and callbacks of this
 * trunk. accepts NULL; returns NULL.
 */
struct trunk *trunk_free(struct trunk *trunk);
/*
 * Returns the end for connection MUX_CONN_PLUGIN or MUX_CONN_RUNTIME, or for the only one (0)
 * without multiplexer. It lives as long as the trunk.
 */
struct rpc *trunk_rpc(struct trunk *trunk, uint32_t conn);
bool trunk_connected(const struct trunk *trunk);
/* Returns the number of bytes that are not sent yet. */
size_t trunk_unsent(const struct trunk *trunk);
