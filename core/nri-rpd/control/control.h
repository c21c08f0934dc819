/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control socket's server side: plain ttrpc on a unix socket, one method a command
 * (proto/control.proto). Every answer carries a JSON document, which is the interface; nri-rpctl
 * makes text of it.
 *
 *   server.c    the socket: who may connect, how many, how much they may ask; documents in pieces
 *   commands.c  methods to functions, limits of requests
 *   status.c    status, with its reasons
 *   lists.c     pods, containers, explain
 *   machine.c   zones, topology
 *   config.c    reload, plan, config: answered when the work is done
 *   events.c    what happened, and waiting for it
 *   modules.c   installed modules, log levels, version
 *   doctor.c    the usual faults
 *
 * The socket has mode 0600, and a peer that is neither root nor the daemon's own user is turned
 * away. Loop thread only; a command takes no longer than its document is long, what takes longer
 * (reload, plan, events) is answered later.
 */
#ifndef CTL_CTL_H
#define CTL_CTL_H

#include "core/lib/wire/control_protocol.h"
#include "core/nri-rpd/pipeline/pipeline.h"
#include "core/lib/util/buf.h"
#include "core/lib/util/err.h"
#include "core/lib/util/loop.h"

#define CTL_CLIENTS_MAX 32u /* connected at a time */
#define CTL_JOBS_MAX 64u /* requests that wait for their answers, all clients together */
#define CTL_PLANS_MAX 2u /* of them trials of configurations: each is a process */

struct ctl;

/* ---- asked by another part of this process --------------------------------------------------- */

/* As a request over the socket: a method's name, its argument (NULL: none), a text, flags; events
 * also after what and for how long. */
struct ctl_question {
	const char *method, *argument, *text;
	uint32_t flags, wait_ms;
	uint64_t after;
};

/* The document of an answer, valid during the call, and the exit status that nri-rpctl would end
 * with. */
typedef void (*ctl_answer_fn)(void *arg, const struct buf *document, int exit);

#endif
