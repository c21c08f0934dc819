/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which of two sockets the runtime is reached by: the first one, runtime.socket, or
 * runtime.fallback, for as long as the first does not take us in.
 *
 *               not there at the start, or away for fallbackAfter
 *            ┌─────────────────────────────────────────────────────┐
 *            │                                                     ▼
 *      first socket                                            fallback ───┐ looks for the first one: 50 ms
 *            ▲                                                     │  ▲    │ doubling to 30 s
 *            └─────────────────────────────────────────────────────┘  └────┘
 *               the first one takes the connection, nothing is under way
 *
 * There is one connection at a time: that to the fallback ends before the other is spoken over.
 */
#ifndef RUNTIME_FALLBACK_H
#define RUNTIME_FALLBACK_H

#include "core/lib/util/backoff.h"
#include "core/lib/util/err.h"
#include "core/lib/util/loop.h"

struct nri;

struct fallback {
	char *socket; /* "": there is none */
	uint64_t after_ms;
	struct loop_timer *look; /* for the first socket, while the fallback is connected */
	struct backoff backoff; /* of that */
	int way_back; /* a connection to the first socket that nobody has spoken over; -1 */
	/* the connection that there is, or the last one until another is tried, is the
	 * fallback's */
	bool in_use;
	bool seen; /* the first socket has synchronised us once … */
	uint64_t gone_ms; /* … and was lost then */
	bool turned_away; /* the first socket has last taken the connection, but not us */
};

int fallback_init(struct nri *nri);
/* Closes an idle connection to the first socket: its path is about to change. */
void fallback_forget(struct nri *nri);
void fallback_fini(struct nri *nri);
/* A connection to the one of the two sockets whose turn it is; -errno: to neither. */
int fallback_dial(struct nri *nri, struct err *err);
/* A connection has ended, or an attempt to connect. `connected`: there was one; `synchronized`: it
 * had come so far. */
void fallback_lost(struct nri *nri, bool connected, bool synchronized);
/* Another socket ("": none) or another time; ret_renew: the connection must be made anew. */
int fallback_set(struct nri *nri, const char *socket, uint64_t after_ms, bool *ret_renew);

#endif
