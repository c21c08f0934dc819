/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control socket's server side: plain ttrpc on a unix socket, one method a command (proto/control.proto). Every answer carries a
 * JSON document, which is the interface; nri-rpctl makes text of it.
 *
 *   server.c    the socket: who may connect, how many, how much they may ask
 *   commands.c  methods to functions; deferred answers
 *   show_*.c    documents: status, containers, zones, topology, modules …
 *   change.c    what has an effect or takes its time: reload, plan, events, log, modules clear
 *   doctor.c    the usual faults
 *
 * The socket has mode 0600, and a peer that is neither root nor the daemon's own user is turned away. Loop thread only; a command takes
 * no longer than its document is long, what takes longer (reload, plan, events) is answered later.
 */
#ifndef CTL_CTL_H
#define CTL_CTL_H

#include "core/pipeline/pipeline.h"
#include "core/util/err.h"
#include "core/util/loop.h"

#define CTL_SERVICE "nri-rp.v1.Control"
#define CTL_DEFAULT_SOCKET "/run/nri-rp/control.sock"
#define CTL_CLIENTS_MAX 32u
#define CTL_REQUEST_MAX (64u << 10) /* bytes of a request; configurations are named, not sent */
#define CTL_ARGS_MAX 16u
#define CTL_ARG_MAX 4096u /* bytes of one argument */
#define CTL_ANSWER_MAX (48u << 20) /* bytes of a document */
#define CTL_EVENTS_WAIT_MAX_MS 300000u

/* Exit statuses of nri-rpctl, as answers carry them. */
enum ctl_exit {
	CTL_OK = 0,
	CTL_FAILED = 1,
	CTL_USAGE = 2,
	CTL_NOT_RUNNING = 3,
	CTL_DEGRADED = 4,
	CTL_CONFIG = 78,
};

struct ctl;

/* Listens at `socket`; its folder is made when it is missing. "": no control socket until ctl_set_socket. Takes pipeline_on_event for itself.
 * The pipeline has to outlive it. -EADDRINUSE: another daemon is there. */
int ctl_new(struct loop *loop, struct pipeline *pipeline, const char *socket, struct ctl **ret,
	    struct err *err);
/* Another place; those who are connected stay. The old socket is kept when this fails. The same path: nothing happens. */
int ctl_set_socket(struct ctl *ctl, const char *socket, struct err *err);
/* Ends all connections and removes the socket. NULL is fine; returns NULL. */
struct ctl *ctl_free(struct ctl *ctl);

#endif
