/* SPDX-License-Identifier: Apache-2.0 */
/* Commands, one function each: call the daemon, show the answer, return the exit status. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <nri-rp/module.h>

#include "core/nri-rpctl/cli.h"
#include "core/lib/util/str.h"
#include "core/lib/util/clock.h"
#include "core/lib/util/number.h"

#define EVENTS_WAIT_MS 25000u
#define EVENTS_BEFORE 10u /* number of earlier events that --follow begins with */
#define RECONNECT_MS 1000u

static struct question commands_plain(const struct cli *cli, const char *method)
{
	return (struct question){.method = method, .args = cli->args, .n_args = cli->n_args};
}

/* ---- status and lists ------------------------------------------------------------------------ */

typedef void (*show_fn)(struct out *o, const json_t *doc);

static int show_answer(struct cli *cli, const struct question *req, show_fn show)
{
	struct answer a;
	int r = ask(cli, req, &a);
	if (r >= 0)
		return r;
	show(&cli->out, a.doc);
	r = a.exit;
	answer_fini(&a);
	return r;
}

static int show_with(struct cli *cli, const char *method, show_fn show)
{
	const struct question req = commands_plain(cli, method);
	return show_answer(cli, &req, show);
}

/* Defines a command that only shows the document of a method. */
#define SHOWS(command, method, show)                                                               \
	int cmd_##command(struct cli *cli)                                                         \
	{                                                                                          \
		return show_with(cli, method, show);                                               \
	}

int cmd_status(struct cli *cli)
{
	struct question req = commands_plain(cli, "Status");
	req.flags = cli->options & OPT_MEMORY ? CTL_FLAG_MEMORY : 0;
	return show_answer(cli, &req, show_status);
}

SHOWS(pods, "Pods", show_pods)
SHOWS(claims, "Claims", show_claims)

static void show_narrow(struct out *o, const json_t *doc)
{
	show_containers(o, doc, false);
}

static void show_wide(struct out *o, const json_t *doc)
{
	show_containers(o, doc, true);
}

int cmd_containers(struct cli *cli)
{
	return show_with(cli, "Containers", cli->options & OPT_WIDE ? show_wide : show_narrow);
}

SHOWS(zones, "Zones", show_zones)
SHOWS(node, "Node", show_node)

int cmd_topology(struct cli *cli)
{
	return show_with(cli, "Topology",
			 cli->options & OPT_TABLE ? show_topology_table : show_topology_map);
}

int cmd_explain(struct cli *cli)
{
	struct question req = commands_plain(cli, "Explain");
	req.flags = cli->options & OPT_HISTORY ? CTL_FLAG_HISTORY : 0;
	return show_answer(cli, &req, show_explain);
}

SHOWS(modules, "Modules", show_modules)

static void show_cleared(struct out *o, const json_t *doc)
{
	out_put(o, "Module ");
	out_text(o, js(doc, "cleared"));
	out_put(o, " is no longer quarantined: `nri-rpctl reload` loads it.\n");
}

SHOWS(modules_clear, "ModulesClear", show_cleared)
SHOWS(log_level, "LogLevel", show_log)
SHOWS(log_debug, "LogDebug", show_log)

int cmd_version(struct cli *cli)
{
	struct answer a;
	struct question req = {.method = "Version"};
	struct err err = ERR_INIT;
	int r = call_daemon(cli, &req, &a, &err);
	if (cli->json) {
		out_printf(&cli->out, "{\"nri-rpctl\":\"%s\",\"nri-rpd\":", NRI_RP_VERSION);
		if (r)
			out_put(&cli->out, "null");
		else
			(void)buf_add(&cli->out.buf, buf_bytes(&a.text), buf_len(&a.text));
		out_put(&cli->out, "}\n");
	} else {
		out_printf(&cli->out, "nri-rpctl %s\n", NRI_RP_VERSION);
		if (!r)
			out_printf(&cli->out, "nri-rpd %s (module ABI %s)\n", js(a.doc, "version"),
				   js(a.doc, "module_abi"));
	}
	if (!r)
		answer_fini(&a);
	return CTL_OK;
}

/* ---- configurations -------------------------------------------------------------------------- */

static int show_trial(struct cli *cli, struct question *req, const char *verb)
{
	struct answer a;
	req->timeout_ms = WAIT_TRIAL_MS;
	int r = ask(cli, req, &a);
	if (r >= 0)
		return r;
	show_outcome(&cli->out, a.doc, verb);
	r = a.exit;
	answer_fini(&a);
	return r;
}

int cmd_reload(struct cli *cli)
{
	char seconds[24];
	const char *args[] = {cli->confirm};
	struct question req = {.method = "Reload", .args = args, .n_args = cli->confirm != NULL};
	int64_t ms;
	/* a time with its unit; a plain number is in seconds */
	if (cli->confirm && strpbrk(cli->confirm, "smh") && str_to_ms(cli->confirm, &ms) == 0 &&
	    ms > 0) {
		(void)snprintf(seconds, sizeof seconds, "%lld", (long long)((ms + 999) / 1000));
		args[0] = seconds;
	}
	return show_trial(cli, &req, "Active");
}

int cmd_undo(struct cli *cli)
{
	struct question req = commands_plain(cli, "Undo");
	const bool dry = cli->options & OPT_DRY_RUN;
	req.flags = (cli->options & OPT_YES ? CTL_FLAG_YES : 0) | (dry ? CTL_FLAG_DRY_RUN : 0);
	return show_trial(cli, &req, dry ? "Would restore" : "Restored");
}

static void show_confirmed(struct out *o, const json_t *doc)
{
	out_printf(o, "Generation %lld is confirmed\n", (long long)ji(doc, "confirmed"));
}

SHOWS(confirm, "Confirm", show_confirmed)

/* Returns the absolute path of a file, because the daemon has another working directory. */
static int commands_absolute(const struct cli *cli, const char *path, char ret[PATH_MAX])
{
	if (realpath(path, ret))
		return 0;
	complain(cli, "%s: %s", path, strerror(errno));
	return -1;
}

/* Reads a file into CTL_TEXT_MAX + 2 bytes. Returns 0 or an errno. */
static int read_all(const char *path, char *text)
{
	FILE *f = str_eq(path, "-") ? stdin : fopen(path, "re");
	if (!f)
		return errno;
	size_t n = fread(text, 1, CTL_TEXT_MAX + 1, f);
	int failed = ferror(f) ? errno : 0;
	if (f != stdin)
		(void)fclose(f);
	text[n] = '\0';
	if (failed)
		return failed;
	if (n > CTL_TEXT_MAX)
		return EFBIG;
	return strlen(text) < n ? EILSEQ : 0;
}

char *cli_read_text(const struct cli *cli, const char *path)
{
	char *text = malloc(CTL_TEXT_MAX + 2);
	int failed = text ? read_all(path, text) : ENOMEM;
	if (!failed)
		return text;
	complain(cli, "%s: %s", path, failed == EILSEQ ? "not a text file" : strerror(failed));
	free(text);
	return NULL;
}

/* Makes the daemon try a configuration: a file by its absolute path, or the text of standard
 * input. */
static int try_config(struct cli *cli, const char *method, const char *file, const char *verb)
{
	char path[PATH_MAX];
	const char *args[] = {path};
	struct question req = {.method = method, .args = args, .n_args = file != NULL};
	char *text = NULL;
	if (file && str_eq(file, "-")) {
		args[0] = "standard input";
		text = cli_read_text(cli, file);
		if (!text)
			return CTL_FAILED;
		/* an empty text would make the daemon treat the argument as a path */
		req.text = *text ? text : "\n";
	} else if (file && commands_absolute(cli, file, path)) {
		return CTL_FAILED;
	}
	int r = show_trial(cli, &req, verb);
	free(text);
	return r;
}

int cmd_plan(struct cli *cli)
{
	return try_config(cli, "Plan", cli->args[0], "Would be accepted");
}

int cmd_try(struct cli *cli)
{
	const char *args[] = {str_eq(cli->args[0], "-") ? "standard input" : cli->args[0]};
	char *text = cli_read_text(cli, cli->args[0]);
	struct question req = {.method = "Try",
			       .args = args,
			       .n_args = 1,
			       .text = text,
			       .timeout_ms = WAIT_TRIAL_MS};
	int r = text ? show_answer(cli, &req, show_tried) : CTL_FAILED;
	free(text);
	return r;
}

static void show_moved(struct out *o, const json_t *doc)
{
	char count[UNIT_MAX];
	out_text(o, js(doc, "policy"));
	out_printf(o, " moved %s\n",
		   unit_count((uint64_t)ji(doc, "moved"), "container", "containers", count));
}

SHOWS(rebalance, "Rebalance", show_moved)

/* Returns true if a daemon answers on the socket. */
static bool commands_running(const struct cli *cli)
{
	struct link *l = NULL;
	int r = link_open(cli->socket, &l, NULL);
	link_close(l);
	return r != -ENOENT && r != -ECONNREFUSED;
}

int cmd_config_check(struct cli *cli)
{
	const char *file = cli->n_args ? cli->args[0] : cli->config;
	char path[PATH_MAX];
	if (cli->options & OPT_LOCAL || !commands_running(cli)) {
		bool is_file = file && !str_eq(file, "-");
		if (is_file && commands_absolute(cli, file, path))
			return CTL_FAILED;
		return local_check(cli, is_file ? path : file);
	}
	return try_config(cli, "ConfigCheck", file, "Good");
}

static void show_yaml(struct out *o, const json_t *doc)
{
	out_lines(o, js(doc, "yaml"));
}

int cmd_config_show(struct cli *cli)
{
	struct question req = {.method = "ConfigShow"};
	if (cli->config || cli->options & OPT_LOCAL)
		return local_show(cli, cli->config);
	req.flags = (cli->options & OPT_ORIGIN ? CTL_FLAG_ORIGIN : 0) |
		    (cli->options & OPT_DEFAULTS ? CTL_FLAG_DEFAULTS : 0);
	return show_answer(cli, &req, show_yaml);
}

/* ---- events ---------------------------------------------------------------------------------- */

/* Parses --since: the number of an event, or a time before now such as "10m". */
static int parse_since(const struct cli *cli, uint64_t *ret_after, int64_t *ret_time)
{
	int64_t ms;
	*ret_after = 0;
	*ret_time = 0;
	if (!cli->since || str_to_u64(cli->since, ret_after) == 0)
		return 0;
	if (str_to_ms(cli->since, &ms)) {
		complain(cli, "--since %s: expected an event number, or a time like 10m",
			 cli->since);
		return -1;
	}
	*ret_time = (int64_t)(clock_wall_ns() / 1000000000u) - ms / 1000;
	return 0;
}

/* Shows the last `most` events of an answer. */
static void show_events(struct cli *cli, const struct answer *a, int64_t from, size_t most)
{
	const json_t *events = json_object_get(a->doc, "events"), *e;
	const size_t n = json_array_size(events);
	size_t i;
	json_array_foreach(events, i, e)
	{
		if (n - i > most || (from && time_parse(js(e, "time")) < from))
			continue;
		if (!cli->json) {
			show_event(&cli->out, e);
			continue;
		}
		char *line = json_dumps(e, JSON_COMPACT);
		if (line)
			(void)buf_printf(&cli->out.buf, "%s\n", line);
		free(line);
	}
}

/* Shows new events until the connection breaks. */
static int commands_follow(struct cli *cli, struct link *l, struct question *req, int64_t from,
			   struct err *err)
{
	/* without --since: only the last few earlier events */
	size_t most = cli->since || req->after ? SIZE_MAX : EVENTS_BEFORE;
	for (;; most = SIZE_MAX) {
		struct answer a;
		int r = link_call(l, req, &a, err);
		if (r)
			return r;
		show_events(cli, &a, from, most);
		req->after = (uint64_t)ji(a.doc, "last");
		req->wait_ms = EVENTS_WAIT_MS;
		answer_fini(&a);
		r = out_flush(&cli->out);
		if (r)
			return err_errno(err, r, "writing the output");
	}
}

static int follow_for_ever(struct cli *cli, struct question *req, int64_t from)
{
	for (bool first = true;; first = false) {
		struct err err = ERR_INIT;
		struct link *l = NULL;
		int r = link_open(cli->socket, &l, &err);
		if (r && first)
			return tell_no_link(cli, r, &err);
		if (!r) {
			r = commands_follow(cli, l, req, from, &err);
			link_close(l);
			if (r != -ECONNRESET && r != -EREMOTEIO) {
				complain(cli, "%s", err_text(&err, r));
				return CTL_FAILED;
			}
			fprintf(stderr, "nri-rpctl: lost nri-rpd; reconnecting\n");
		}
		const struct timespec pause = {RECONNECT_MS / 1000, RECONNECT_MS % 1000 * 1000000};
		(void)nanosleep(&pause, NULL);
	}
}

int cmd_events(struct cli *cli)
{
	struct answer a;
	struct question req = {.method = "Events", .timeout_ms = EVENTS_WAIT_MS + WAIT_MS};
	struct err err = ERR_INIT;
	struct link *l = NULL;
	int64_t from;
	if (parse_since(cli, &req.after, &from))
		return CTL_USAGE;
	if (cli->options & OPT_FOLLOW)
		return follow_for_ever(cli, &req, from);
	int r = link_open(cli->socket, &l, &err);
	if (r)
		return tell_no_link(cli, r, &err);
	r = link_call(l, &req, &a, &err);
	link_close(l);
	if (r) {
		complain(cli, "%s", err_text(&err, r));
		return CTL_FAILED;
	}
	show_events(cli, &a, from, SIZE_MAX);
	answer_fini(&a);
	return CTL_OK;
}

/* ---- doctor ---------------------------------------------------------------------------------- */

int cmd_doctor(struct cli *cli)
{
	struct answer a = {.text = BUF_INIT};
	struct question req = {.method = "Doctor"};
	struct err err = ERR_INIT;
	int r = call_daemon(cli, &req, &a, &err);
	json_t *findings = local_findings(cli, r, &err);
	if (findings && !r) {
		(void)json_array_extend(findings, a.doc);
		local_runc_findings(findings, a.doc);
	}
	if (cli->json) {
		char *text = json_dumps(findings, JSON_COMPACT);
		(void)buf_printf(&cli->out.buf, "%s\n", text ? text : "[]");
		free(text);
	} else {
		show_findings(&cli->out, findings);
	}
	json_decref(findings);
	int exit = r ? (r == -ENOENT || r == -ECONNREFUSED ? CTL_NOT_RUNNING : CTL_FAILED) : a.exit;
	answer_fini(&a);
	return exit;
}
