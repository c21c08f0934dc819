/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations shared by the files of this folder. */
#pragma once

#include <sys/stat.h>

#include "core/nri-rpd/control/control.h"
#include "core/nri-rpd/pipeline/observe/events.h"
#include "core/lib/util/json.h"
#include "core/lib/util/log.h"
#include "core/lib/wire/rpc.h"
#include "core/lib/wire/trunk.h"
#include "proto/control.pb-c.h"

#define CTL_DEBUG_MAX 512u /* largest size of a list of log sources, in bytes */

#define CTL_RESTS_MAX 4u /* largest number of long documents that a client reads at the same time */

/* The part of a document that has not been sent. */
struct rest {
	struct buf data;
	uint64_t id; /* id of the document; ids grow; 0: unused */
};

struct client {
	struct ctl *ctl;
	struct trunk *trunk;
	struct rest
		rests[CTL_RESTS_MAX]; /* remainders of documents that were too long for one reply */
	struct client *prev, *next;
};

/* Receiver of an answer: a client of the socket, or another part of the process. All NULL: the
 * answer is not needed any more. */
struct asker {
	/* client of the socket; NULL: it has disconnected, or the receiver is no client */
	struct client *client;
	struct rpc_request *rpc;
	ctl_answer_fn fn;
	void *arg;
};

/* A request that is answered later. */
struct job {
	struct ctl *ctl; /* server that gets the outcome; NULL: it was freed */
	struct asker asker;
	bool plan, pod;
	uint64_t after; /* a request for events: number after which events are reported */
	uint32_t flags; /* a request for events: flags of the report */
	struct loop_timer *timer; /* a request for events: fires at the end of the wait */
	struct job *prev, *next;
};

struct ctl {
	struct loop *loop;
	struct pipeline *pipeline;
	char *path; /* path of the socket; "": the server does not listen */
	struct listener *listener;
	struct client *clients;
	unsigned n_clients;
	struct job *jobs; /* jobs that wait for other parts of the daemon */
	struct job *waits; /* jobs that wait for events */
	unsigned n_jobs, n_plans;
	uint64_t last_rest;
	struct loop_timer *wake; /* answers jobs that wait for events */
	struct log_limit turned_away;
	char log_debug[CTL_DEBUG_MAX]; /* sources of debug messages set by `log level` */
	uint64_t log_generation; /* generation of the configuration for which log_debug was set */
};

/* A running command. */
struct call {
	struct ctl *ctl;
	struct pipeline *p;
	struct asker asker;
	const Control__Request *req;
	struct buf out;
	struct json j; /* writer of the document to `out` */
	int exit;
};

/* CALL_DONE: out and exit are the answer. CALL_LATER: a job has taken over the request. */
enum call_result { CALL_DONE, CALL_LATER };
typedef enum call_result (*command_fn)(struct call *call);

struct command {
	const char *method;
	unsigned min_args, max_args;
	command_fn run;
};
