/* SPDX-License-Identifier: Apache-2.0 */
/* The control socket: its lifetime, and answers to requests at once or by a job. */
#pragma once

#include "core/nri-rpd/control/control.h"
#include "core/nri-rpd/control/internal.h"

/*
 * Listens at `socket` and creates its folder if missing. "": no control socket until
 * ctl_set_socket. Sets pipeline_on_event. The pipeline has to outlive the server. -EADDRINUSE:
 * another daemon listens there.
 */
int ctl_new(struct loop *loop, struct pipeline *pipeline, const char *socket, struct ctl **ret,
	    struct err *err);

/*
 * Moves the socket; connected clients stay. An error leaves the old socket in use. An equal path
 * has no effect.
 */
int ctl_set_socket(struct ctl *ctl, const char *socket, struct err *err);

/* Cancels the answers to all requests that were made with this arg. */
void ctl_forget(struct ctl *ctl, const void *arg);

/* Ends all connections and removes the socket. accepts NULL; returns NULL. */
struct ctl *ctl_free(struct ctl *ctl);

/* Ends the request with the document in `out`. The buffer may be moved out, and is empty then. */
void server_answer(const struct asker *asker, struct buf *out, int exit);

/* Sends the next piece of a document. */
void server_more(struct client *client, struct rpc_request *rpc, uint64_t id);

/* Creates a job; NULL: too many jobs, or no memory. */
struct job *job_new(struct call *call, struct job **list);

/* Ends the job with a document (see server_answer); out NULL: the answer is "unavailable". */
void job_end(struct job *job, struct buf *out, int exit);

/* Frees the job; its request still has to be answered. */
void job_drop(struct job *job, struct job **list);
