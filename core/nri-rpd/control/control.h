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

/*
 * Listens at `socket`; its folder is made when it is missing. "": no control socket until
 * ctl_set_socket. Takes pipeline_on_event for itself. The pipeline has to outlive it. -EADDRINUSE:
 * another daemon is there.
 */
int ctl_new(struct loop *loop, struct pipeline *pipeline, const char *socket, struct ctl **ret,
	    struct err *err);
/*
 * Another place; those who are connected stay. The old socket is kept when this fails. The same
 * path: nothing happens.
 */
int ctl_set_socket(struct ctl *ctl, const char *socket, struct err *err);

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
/* Calls fn exactly once, here or later, with errors too ({"error": TEXT}), but not after
 * ctl_forget() or ctl_free(). */
void ctl_ask(struct ctl *ctl, const struct ctl_question *question, ctl_answer_fn fn, void *arg);
/* The answers to what was asked with this arg are not wanted any more. */
void ctl_forget(struct ctl *ctl, const void *arg);

/* Ends all connections and removes the socket. NULL is fine; returns NULL. */
struct ctl *ctl_free(struct ctl *ctl);

#endif
