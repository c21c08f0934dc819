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

/* ---- commands.c ---- */

const struct command *command_find(const char *method);
/* What is in the bytes, out of the arena; NULL and a sentence when it is no request or breaks a
 * limit. */
Control__Request *command_decode(struct arena *arena, const uint8_t *data, size_t len,
				 const struct command *command, struct err *err);
void command_serve(struct client *client, struct rpc_request *rpc);
/* Runs the command and answers, unless a job has taken the question. */
void command_run(struct ctl *ctl, const struct command *command, const Control__Request *req,
		 const struct asker *asker);
int command_check_args(const Control__Request *req, const struct command *command, struct err *err);
/* Drops what was written: the document is {"error": TEXT}. */
enum call_result call_fail(struct call *call, int exit, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void document_error(struct buf *out, const char *text);

/* ---- server.c ---- */

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

/* ---- the commands ---- */

enum call_result run_status(struct call *call);
enum call_result run_pods(struct call *call);
enum call_result run_containers(struct call *call);
enum call_result run_explain(struct call *call);
enum call_result run_zones(struct call *call);
enum call_result run_topology(struct call *call);
enum call_result run_events(struct call *call);
enum call_result run_reload(struct call *call);
enum call_result run_rebalance(struct call *call);
enum call_result run_node(struct call *call);
enum call_result run_confirm(struct call *call);
enum call_result run_undo(struct call *call);
enum call_result run_plan(struct call *call);
enum call_result run_try(struct call *call);
enum call_result run_config_check(struct call *call);
enum call_result run_config_show(struct call *call);
enum call_result run_modules(struct call *call);
enum call_result run_modules_clear(struct call *call);
enum call_result run_log_level(struct call *call);
enum call_result run_log_debug(struct call *call);
enum call_result run_doctor(struct call *call);
enum call_result run_version(struct call *call);

/* ---- events.c ---- */

void put_event(struct json *j, const struct event *e, uint32_t flags);
int events_init(struct ctl *ctl);
void events_fini(struct ctl *ctl);

/* ---- parts of documents (speedselect.c) ---- */

void put_extended(struct json *j, struct pipeline *p);
void put_speedselect(struct json *j, struct topo *topo, const struct fs_root *root);

/* ---- parts of documents (document.c) ---- */

/* "2026-01-31T12:00:00.123Z", or null for 0. */
void put_time(struct json *j, const char *key, uint64_t wall_ns);
void put_set(struct json *j, const char *key, const struct iset *set); /* null when NULL */
void put_ids(struct json *j, const char *key, struct rp_ids ids);
void put_amount(struct json *j, const char *key, int64_t v); /* null for RP_NOT_SET */
void put_text(struct json *j, const char *key, const char *s); /* null for NULL and "" */
/* What may be told of a text under these flags: itself, or that an annotation is at fault, not
 * which and why. */
const char *told(const char *text, uint32_t flags);
void put_lines(struct json *j, const char *key, const char *lines); /* a list; empty for NULL */
const char *qos_name(uint32_t qos);
const char *state_name(uint32_t state);
/* The text of `path` matches: a glob if it has wildcards, else a part of the name; NULL and ""
 * match all. */
bool matches(const char *pattern, const char *name);

#endif
