/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONTROL_SERVER_H
#define CONTROL_SERVER_H

#include "core/nri-rpd/control/control.h"
#include "core/nri-rpd/control/internal.h"

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

/* The answers to what was asked with this arg are not wanted any more. */
void ctl_forget(struct ctl *ctl, const void *arg);

/* Ends all connections and removes the socket. NULL is fine; returns NULL. */
struct ctl *ctl_free(struct ctl *ctl);

/* Ends the request with a document, which may be taken (out is empty afterwards). */
void server_answer(const struct asker *asker, struct buf *out, int exit);

/* The next piece. */
void server_more(struct client *client, struct rpc_request *rpc, uint64_t rest);

/* NULL: there are too many, or no memory. */
struct job *job_new(struct call *call, struct job **list);

/* Ends it with a document (see server_answer), or, with out NULL, as unavailable. */
void job_end(struct job *job, struct buf *out, int exit);

/* Forgets it; its request is still to be answered. */
void job_drop(struct job *job, struct job **list);

#endif
