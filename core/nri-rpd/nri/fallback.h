/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses the socket for the connection to the runtime: the first one, runtime.socket, or
 * runtime.fallback, for as long as the first does not accept this plugin.
 *
 *               not there at the start, or lost for fallbackAfter
 *            ┌─────────────────────────────────────────────────────┐
 *            │                                                     ▼
 *      first socket                                            fallback ───┐ tries the first: 50 ms
 *            ▲                                                     │  ▲    │ doubling to 30 s
 *            └─────────────────────────────────────────────────────┘  └────┘
 *               the first one accepts the connection, no work is pending
 *
 * Only one connection is in use at a time: the connection to the fallback ends before the first
 * message is sent over the other.
 */
#pragma once

#include "core/lib/util/backoff.h"
#include "core/lib/util/err.h"
#include "core/lib/util/loop.h"

struct nri;

struct fallback {
	char *socket; /* path of the second socket; "": there is none */
	uint64_t after_ms;
	struct loop_timer *look; /* tries the first socket while the fallback is connected */
	struct backoff backoff; /* delays between these tries */
	/* idle connection to the first socket, opened by a try and used by the next dial; -1:
	 * none */
	int way_back;
	/* The present or latest connection uses the fallback. */
	bool in_use;
	bool seen; /* a connection to the first socket has been synchronized */
	/* time at which the synchronized connection to the first socket was lost */
	uint64_t gone_ms;
	/* the first socket accepted the last connection, but the runtime did not register the
	 * plugin */
	bool turned_away;
};

int fallback_init(struct nri *nri);
/* Closes an idle connection to the first socket, because its path is about to change. */
void fallback_forget(struct nri *nri);
void fallback_fini(struct nri *nri);
/* Connects to the socket whose turn it is. Returns the descriptor; -errno: no socket accepted. */
int fallback_dial(struct nri *nri, struct err *err);
/* Records that a connection has ended, or an attempt to connect has failed. `connected`: there was
 * a connection; `synchronized`: it had been synchronized. */
void fallback_lost(struct nri *nri, bool connected, bool synchronized);
/* Sets the fallback socket ("": none) and the delay before it is used. ret_renew: the runtime has
 * to be connected again. */
int fallback_set(struct nri *nri, const char *socket, uint64_t after_ms, bool *ret_renew);
