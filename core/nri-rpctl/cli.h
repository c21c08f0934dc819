/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nri-rpctl: types and functions that its files share.
 *
 *   main.c            options, table of commands, help
 *   commands.c        one function for each command: call the daemon, show the answer
 *   call.c            connection to the daemon's control socket
 *   show_status.c     output of status
 *   show_lists.c      output of pods, containers and explain
 *   show_node.c       output of node
 *   show_machine.c    output of zones, topology --table and Speed Select
 *   show_map.c        output of topology: head, map, legend
 *   show_misc.c       output of lists, events, reloads, trials, modules, log level, doctor
 *   local.c           checks and shows configurations without a daemon; config schema
 *   local_doctor.c    findings of doctor that need no daemon
 *   jsonschema.c      key tables as a JSON schema and as custom resource definitions
 *   run.c             runs another program and reads its output
 *   cluster.c         nodes of a cluster, from what their agents have published
 *   support.c         writes an archive of what a report of a fault needs
 *   import.c          converts configurations of other resource managers to rp.conf
 *   import_managers.c configurations of the kubelet, CMK and Weka
 *   import_slo.c      configurations of koordinator
 *   import_write.c    writes imported values as YAML
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "core/lib/wire/control_protocol.h"
#include "core/lib/term/out.h"
#include "core/lib/util/err.h"

#define WAIT_MS 10000u /* time limit for an answer */
/* time limit for an answer that needs a trial, possibly after another trial */
#define WAIT_TRIAL_MS 60000u

/* Options of commands, as bits. */
#define OPT_MEMORY 0x01u
#define OPT_FOLLOW 0x02u
#define OPT_SINCE 0x04u
#define OPT_ORIGIN 0x08u
#define OPT_DEFAULTS 0x10u
#define OPT_TABLE 0x20u
#define OPT_LOCAL 0x40u
#define OPT_WIDE 0x80u
#define OPT_HISTORY 0x100u
#define OPT_CONFIRM 0x200u
#define OPT_YES 0x400u
#define OPT_DRY_RUN 0x800u

struct cli {
	const char *socket;
	bool json;
	const char *host_root; /* root for checks without a daemon; NULL: "/" */
	unsigned options; /* the OPT_… bits of the options on the command line */
	const char *since, *confirm;
	const char *config; /* argument of --config, for commands that need no daemon */
	const char *const *module_dirs;
	unsigned n_module_dirs;
	const char *const *args;
	unsigned n_args;
	struct out out;
};

/* ---- call.c ---- */

struct question {
	const char *method;
	const char *const *args;
	unsigned n_args;
	const char *text; /* text argument; NULL: none */
	uint64_t after;
	uint32_t wait_ms, flags;
	unsigned timeout_ms; /* time limit of a request to the daemon; 0: WAIT_MS */
};

struct answer {
	struct buf text; /* text of `doc` */
	json_t *doc;
	int exit;
};

/* Connection to the daemon. */
struct link;
/* Connects to the daemon. -ENOENT, -ECONNREFUSED: no daemon is running. */
int link_open(const char *socket, struct link **ret, struct err *err);
struct link *link_close(struct link *l);
int link_call(struct link *l, const struct question *req, struct answer *ret, struct err *err);
void answer_fini(struct answer *a);
/* Connects, calls and disconnects. */
int call_daemon(const struct cli *cli, const struct question *req, struct answer *ret,
		struct err *err);
/* Connects, calls and disconnects; prints errors. Returns the exit status of a failure, or -1 if
 * *ret has to be shown. */
int ask(struct cli *cli, const struct question *req, struct answer *ret);
/* Prints why the connection failed, and returns the exit status for this failure. */
int tell_no_link(const struct cli *cli, int r, const struct err *err);

/* Prints an error: on stderr, or with --json as {"error": TEXT} on stdout. */
void complain(const struct cli *cli, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* ---- run.c ---- */

/* largest size of a program's output, in bytes; the rest is dropped */
#define RUN_OUTPUT_MAX (32u << 20)

/* Runs a program, which is found by PATH, and appends stdout and stderr to *ret. Returns its exit
 * status, or -1 if it does not exist. */
int run_program(const char *const *argv, struct buf *ret);

/* ---- json ---- */

static inline const char *js(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));
	return s ? s : "";
}

static inline int64_t ji(const json_t *o, const char *key)
{
	return json_integer_value(json_object_get(o, key));
}

static inline bool jb(const json_t *o, const char *key)
{
	return json_is_true(json_object_get(o, key));
}

/* ---- commands; they return exit statuses ----------------------------------------------------- */

int cmd_status(struct cli *cli);
int cmd_claims(struct cli *cli);
int cmd_pods(struct cli *cli);
int cmd_containers(struct cli *cli);
int cmd_zones(struct cli *cli);
int cmd_node(struct cli *cli);
int cmd_topology(struct cli *cli);
int cmd_explain(struct cli *cli);
int cmd_confirm(struct cli *cli);
int cmd_undo(struct cli *cli);
int cmd_import(struct cli *cli);
/* Checks the text of an rp.conf without a daemon and calls fn for each problem. */
void local_problems(const struct cli *cli, const char *text,
		    void (*fn)(const char *problem, void *arg), void *arg);
/* Reads a file, or standard input for "-", of at most CTL_TEXT_MAX bytes; the text is malloc'd.
 * NULL: the error has been printed. */
char *cli_read_text(const struct cli *cli, const char *path);
int cmd_events(struct cli *cli);
int cmd_reload(struct cli *cli);
int cmd_plan(struct cli *cli);
int cmd_try(struct cli *cli);
int cmd_rebalance(struct cli *cli);
int cmd_config_check(struct cli *cli);
int cmd_config_show(struct cli *cli);
int cmd_config_schema(struct cli *cli);
int cmd_config_crds(struct cli *cli);
int cmd_modules(struct cli *cli);
int cmd_modules_clear(struct cli *cli);
int cmd_log_level(struct cli *cli);
int cmd_log_debug(struct cli *cli);
int cmd_doctor(struct cli *cli);
int cmd_support(struct cli *cli);
int cmd_cluster(struct cli *cli);
int cmd_version(struct cli *cli);

/* ---- output of documents as text ------------------------------------------------------------- */

/* Appends the texts or integers of a list, separated by commas. */
void show_join(struct buf *ret, const json_t *list);
/* Adds a cell with the elements of a list. */
void show_list(struct table *t, enum style style, const json_t *list);
void show_status(struct out *o, const json_t *doc);
void show_claims(struct out *o, const json_t *doc);
void show_pods(struct out *o, const json_t *doc);
void show_containers(struct out *o, const json_t *doc, bool wide);
void show_explain(struct out *o, const json_t *doc);
void show_zones(struct out *o, const json_t *doc);
void show_node(struct out *o, const json_t *doc);
void show_topology_table(struct out *o, const json_t *doc);
void show_speedselect(struct out *o, const json_t *doc);
void show_topology_map(struct out *o, const json_t *doc);
void show_event(struct out *o, const json_t *event);
void show_outcome(struct out *o, const json_t *doc, const char *verb);
void show_tried(struct out *o, const json_t *doc);
/* Prints a problem, wrapped, with a newline. Below a problem "FILE:LINE:COLUMN: TEXT" of a file
 * that can be read follows that line with a caret. column, indent: as for out_wrap(). */
void show_problem(struct out *o, const char *text, unsigned column, unsigned indent);
void show_modules(struct out *o, const json_t *doc);
void show_log(struct out *o, const json_t *doc);
void show_findings(struct out *o, const json_t *doc);

/* ---- commands without a daemon (local.c, local_doctor.c) ------------------------------------- */

int local_check(struct cli *cli, const char *path);
int local_show(struct cli *cli, const char *path);
/* Returns a list of findings in the format of Doctor. NULL: out of memory. */
json_t *local_findings(const struct cli *cli, int link_error, const struct err *err);
/* Adds findings about the installed runc, according to the findings of the daemon. */
void local_runc_findings(json_t *list, const json_t *findings);
