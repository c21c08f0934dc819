/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this folder share. */
#ifndef CTL_INTERNAL_H
#define CTL_INTERNAL_H

#include <sys/stat.h>

#include "core/nri-rpd/control/control.h"
#include "core/nri-rpd/pipeline/observe/events.h"
#include "core/lib/util/json.h"
#include "core/lib/util/log.h"
#include "core/lib/wire/rpc.h"
#include "core/lib/wire/trunk.h"
#include "proto/control.pb-c.h"

#define CTL_DEBUG_MAX 512u /* bytes of a list of log sources */

struct client {
	struct ctl *ctl;
	struct trunk *trunk;
	struct buf rest; /* of the last document that was too long for one answer */
	uint64_t rest_id;
	struct client *prev, *next;
};

/* Where an answer goes: over the socket, or to another part of the process. All NULL: nobody wants
 * it any more. */
struct asker {
	struct client *client; /* NULL: gone, or no client */
	struct rpc_request *rpc;
	ctl_answer_fn fn;
	void *arg;
};

/* A request that is answered later. */
struct job {
	struct ctl *ctl; /* NULL: gone, the outcome interests nobody any more */
	struct asker asker;
	bool plan, pod;
	uint64_t after; /* events: wanted are those behind it … */
	uint32_t flags; /* … told under these */
	struct loop_timer *timer; /* events: the end of patience */
	struct job *prev, *next;
};

struct ctl {
	struct loop *loop;
	struct pipeline *pipeline;
	char *path; /* "": does not listen */
	struct listener *listener;
	struct client *clients;
	unsigned n_clients;
	struct job *jobs; /* those under way elsewhere */
	struct job *waits; /* for events */
	unsigned n_jobs, n_plans;
	uint64_t last_rest;
	struct loop_timer *wake; /* those who wait for events are looked at */
	struct log_limit turned_away;
	char log_debug[CTL_DEBUG_MAX]; /* set by hand, for `log level` … */
	uint64_t log_generation; /* … and in force while the configuration is this one */
};

/* A command under way. */
struct call {
	struct ctl *ctl;
	struct pipeline *p;
	struct asker asker;
	const Control__Request *req;
	struct buf out;
	struct json j; /* writes to out */
	int exit;
};

/* CALL_DONE: out and exit are the answer. CALL_LATER: a job has taken the request. */
enum call_result { CALL_DONE, CALL_LATER };
typedef enum call_result (*command_fn)(struct call *call);

struct command {
	const char *method;
	unsigned min_args, max_args;
	command_fn run;
};

#endif
