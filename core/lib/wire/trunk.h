/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connected unix stream socket on the loop that speaks ttrpc: plain (the control socket), or as
 * NRI does it, two ttrpc connections behind a multiplexer. Who is the runtime and who the plugin is
 * up to the user: call on one connection, serve the other.
 *
 * Output is written at once; what the socket does not take waits in a buffer. Reading goes on
 * meanwhile, as two peers that send large messages to each other would wait for ever otherwise. So
 * that a peer which asks but does not listen costs no end of memory, the connection ends when too
 * much waits for it.
 */
#ifndef WIRE_TRUNK_H
#define WIRE_TRUNK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/lib/util/err.h"
#include "core/lib/util/loop.h"
#include "core/lib/wire/mux.h"
#include "core/lib/wire/rpc.h"

/* Unsent bytes above which calls are refused, and above which an answer more is the end. */
#define TRUNK_CALLS_OUT_MAX (16u << 20)
#define TRUNK_ANSWERS_OUT_MAX (64u << 20)
/* Buffers that a large message has grown are given back down to this. */
#define TRUNK_KEEP (256u << 10)

struct trunk;

struct trunk_config {
	bool mux;
	/* Data of a message; 0: TTRPC_MESSAGE_MAX, with the multiplexer MUX_RECV_MAX. */
	uint32_t recv_max;
	uint32_t send_max; /* 0: TTRPC_MESSAGE_MAX */
	/* 0: MUX_FIRST_FRAME_MAX; SIZE_MAX: whole messages in one frame, as NRI 0.6 does. */
	size_t first_max;
	/*
	 * The connection has ended, not through trunk_free: err->code is -ECONNRESET when the peer
	 * closed it, -EMSGSIZE when it broke the protocol, -ENOBUFS when it did not take its
	 * answers, else what the system said. Calls have ended before. The one thing left to do is
	 * trunk_free, here or later.
	 */
	void (*closed)(struct trunk *trunk, const struct err *err, void *arg);
	void *arg;
};

/* The fd (connected, non-blocking) belongs to the trunk, also when this fails. */
int trunk_new(struct loop *loop, int fd, const struct trunk_config *config, struct trunk **ret,
	      struct err *err);
/*
 * Answers pending requests with UNAVAILABLE as far as the socket takes it, ends calls with
 * -ECANCELED, closes. Allowed anywhere, also in handlers and callbacks of this trunk. NULL is fine;
 * returns NULL.
 */
struct trunk *trunk_free(struct trunk *trunk);
/*
 * The end of connection MUX_CONN_PLUGIN or MUX_CONN_RUNTIME, or of the only one (0) without
 * multiplexer. Lives as long as the trunk.
 */
struct rpc *trunk_rpc(struct trunk *trunk, uint32_t conn);
bool trunk_connected(const struct trunk *trunk);
size_t trunk_unsent(const struct trunk *trunk); /* bytes */

#endif
