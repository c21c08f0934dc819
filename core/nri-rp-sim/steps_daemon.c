/* SPDX-License-Identifier: Apache-2.0 */
/* Steps about nri-rpd, its configuration, and the runtime's process. */
#include "core/nri-rp-sim/steps_daemon.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "core/nri-rp-sim/conn.h"
#include "core/nri-rp-sim/daemon.h"
#include "core/nri-rp-sim/steps.h"
#include "core/nri-rp-sim/control.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/fs.h"
#include "core/lib/util/str.h"
#include "core/lib/util/clock.h"

#define START_MS 10000
#define EXIT_MS 10000
#define RELOAD_MS 20000
#define LOG_LINES 12u
#define ASK_AGAIN_MS 50u

/* ---- the process ----------------------------------------------------------------------------- */

struct starting {
	uint64_t after;
};

static bool up_or_dead(struct sim *s, void *arg)
{
	const struct starting *w = arg;
	return !daemon_running(s) || (conn_is_active(s) && conn_n_active(s) > w->after);
}

static int not_up(struct sim *s, struct err *err)
{
	char status[64];
	_free_ char *tail = daemon_log_tail(s, LOG_LINES);
	if (!daemon_running(s))
		return err_set(err, -ECHILD, "nri-rpd exited with %s; its last log lines:\n%s",
			       daemon_status_text(daemon_last_status(s), status, sizeof status),
			       tail ? tail : "");
	return err_set(err, -ETIMEDOUT,
		       "nri-rpd has not been synchronized; its last log lines:\n%s",
		       tail ? tail : "");
}

/* Starts nri-rpd. {wait: false}: does not wait for synchronization, nor start the runtime. */
int step_start(struct sim *s, const json_t *args, json_t *result, struct err *err)
{
	bool wait;
	uint64_t start = clock_us();
	struct starting w = {conn_n_active(s)};
	int r = arg_bool(ARGS(args, err), "wait", true, &wait);
	if (!r && wait)
		r = conn_listen(s, err);
	if (!r)
		r = daemon_start(s, err);
	if (r || !wait)
		return r;
	(void)sim_wait(s, up_or_dead, &w, START_MS);
	doc_put_int(result, "took_us", (int64_t)(clock_us() - start));
	return daemon_running(s) && conn_n_active(s) > w.after ? 0 : not_up(s, err);
}

static void put_status(json_t *result, int status)
{
	char text[64];
	doc_put_text(result, "status", daemon_status_text(status, text, sizeof text));
	if (status >= 0 && WIFEXITED(status))
		doc_put_int(result, "exit", WEXITSTATUS(status));
	if (status >= 0 && WIFSIGNALED(status))
		doc_put_int(result, "signal", WTERMSIG(status));
}

static int steps_daemon_end(struct sim *s, int signo, json_t *result, struct err *err)
{
	int status = -1;
	int r = daemon_signal(s, signo, err);
	if (!r)
		r = daemon_wait_exit(s, EXIT_MS, &status, err);
	if (r)
		return r;
	put_status(result, status);
	conn_drop(s, "nri-rpd has exited");
	return 0;
}

int step_stop(struct sim *s, const json_t *args, json_t *result, struct err *err)
{
	int r = steps_daemon_end(s, SIGTERM, result, err);
	int status = daemon_last_status(s);
	if (!r && !(WIFEXITED(status) && WEXITSTATUS(status) == 0)) {
		char text[64];
		_free_ char *tail = daemon_log_tail(s, LOG_LINES);
		sim_problem(s, "when stopped, nri-rpd exits with %s: %.600s",
			    daemon_status_text(status, text, sizeof text), tail ? tail : "");
	}
	return r;
}

int step_kill(struct sim *s, const json_t *args, json_t *result, struct err *err)
{
	return steps_daemon_end(s, SIGKILL, result, err);
}

int step_restart(struct sim *s, const json_t *args, json_t *result, struct err *err)
{
	int r = step_stop(s, args, result, err);
	return r ? r : step_start(s, NULL, result, err);
}

int step_signal(struct sim *s, const json_t *args, json_t *result, struct err *err)
{
	static const struct {
		const char *name;
		int signo;
	} signals[] = {{"HUP", SIGHUP},	  {"TERM", SIGTERM}, {"KILL", SIGKILL}, {"USR1", SIGUSR1},
		       {"USR2", SIGUSR2}, {"STOP", SIGSTOP}, {"CONT", SIGCONT}};
	const char *name = json_string_value(args);
	for (unsigned i = 0; name && i < sizeof signals / sizeof *signals; i++)
		if (str_eq(signals[i].name, name))
			return daemon_signal(s, signals[i].signo, err);
	return err_set(err, -EINVAL, "signal: expected HUP, TERM, KILL, USR1, USR2, STOP or CONT");
}

/* Waits until nri-rpd has exited. Argument: the expected exit status, or "signal N". */
int step_exited(struct sim *s, const json_t *args, json_t *result, struct err *err)
{
	int status;
	char text[64], wanted[64], number[ARG_NUMBER_MAX];
	int r = daemon_wait_exit(s, EXIT_MS, &status, err);
	if (r)
		return r;
	put_status(result, status);
	conn_drop(s, "nri-rpd has exited");
	const char *expected =
		json_is_boolean(args) || json_is_object(args) ? NULL : arg_scalar(args, number);
	if (!expected)
		return 0;
	bool is_signal = str_has_prefix(expected, "signal");
	(void)snprintf(wanted, sizeof wanted, "%s%s", is_signal ? "" : "exit status ", expected);
	(void)daemon_status_text(status, text, sizeof text);
	return str_eq(text, wanted)
		       ? 0
		       : err_set(err, -EPROTO, "nri-rpd exited with %s, not %s", text, wanted);
}

/* ---- the runtime's process ------------------------------------------------------------------- */

int step_runtime_stop(struct sim *s, const json_t *args, json_t *result, struct err *err)
{
	conn_close(s);
	return 0;
}

int step_runtime_start(struct sim *s, const json_t *args, json_t *result, struct err *err)
{
	bool configure_first;
	uint64_t after = conn_n_active(s);
	int r = arg_bool(ARGS(args, err), "configureFirst", false, &configure_first);
	if (!r)
		r = conn_listen(s, err);
	if (r)
		return r;
	conn_configure_first(s, configure_first);
	return daemon_running(s) ? conn_wait_active(s, after, START_MS, err) : 0;
}

int step_runtime_restart(struct sim *s, const json_t *args, json_t *result, struct err *err)
{
	int r = step_runtime_stop(s, args, result, err);
	return r ? r : step_runtime_start(s, args, result, err);
}

/* Waits until nri-rpd is connected and synchronized. */
int step_connected(struct sim *s, const json_t *args, json_t *result, struct err *err)
{
	struct starting w = {0};
	(void)sim_wait(s, up_or_dead, &w, START_MS);
	return daemon_running(s) && conn_is_active(s) ? 0 : not_up(s, err);
}

/* ---- configurations -------------------------------------------------------------------------- */

/* Writes the configuration. A text is written unchanged. A map without `metrics` gets no metrics
 * server, as several simulations may run at a time, or that of the option --map. */
int step_write_config(struct sim *s, const json_t *args, json_t *result, struct err *err)
{
	struct buf text = BUF_INIT;
	_json_ json_t *map = json_is_object(args) ? json_copy((json_t *)(uintptr_t)args) : NULL;
	if (map && !json_object_get(map, "metrics"))
		(void)json_object_set_new(map, "metrics",
					  json_pack("{ss,sb}", "listen",
						    s->options.map ? s->options.map : "", "map",
						    s->options.map != NULL));
	if (!map && !json_is_string(args))
		return err_set(err, -EINVAL, "config: expected a map");
	int r = map ? doc_write_yaml(map, &text) : buf_add_str(&text, json_string_value(args));
	if (!r)
		r = fs_replace(s->config, buf_bytes(&text), buf_len(&text), 0644, false, err);
	else
		(void)err_errno(err, r, "config");
	buf_fini(&text);
	return r;
}

static int reload_by_signal(struct sim *s, json_t *result, bool *ret_refused, struct err *err)
{
	uint64_t from = daemon_log_end(s);
	int r = daemon_signal(s, SIGHUP, err);
	if (!r)
		r = daemon_wait_log(
			s, "configuration (reloaded|refused)|configuration cannot be tried", from,
			RELOAD_MS, err);
	if (r)
		return r;
	_free_ char *log = daemon_read_log(s, from);
	const char *why = log ? strstr(log, "stays active: ") : NULL;
	*ret_refused = log && !strstr(log, "configuration reloaded");
	if (why)
		doc_put_text(result, "error", why + strlen("stays active: "));
	return 0;
}

static int reload_by_control(struct sim *s, json_t *result, bool *ret_refused, struct err *err)
{
	json_t *document;
	int exit_status;
	int r = control_ask(s, "Reload", NULL, RELOAD_MS, &document, &exit_status, err);
	if (r)
		return r;
	const char *why = json_string_value(json_object_get(document, "error"));
	*ret_refused = exit_status != 0;
	if (why)
		doc_put_text(result, "error", why);
	(void)json_object_set_new(result, "document", document);
	return 0;
}

/* Reloads by the control socket, or by SIGHUP if nri-rpd does not listen there or `how` is
 * "signal". */
static int steps_daemon_reload(struct sim *s, const char *how, json_t *result, bool *ret_refused,
			       struct err *err)
{
	struct err why = ERR_INIT;
	if (!daemon_running(s))
		return err_set(err, -ESRCH, "nri-rpd is not running");
	if (str_eq(how, "signal"))
		return reload_by_signal(s, result, ret_refused, err);
	int r = reload_by_control(s, result, ret_refused, &why);
	if ((r == -ENOENT || r == -ECONNREFUSED) && !str_eq(how, "control"))
		return reload_by_signal(s, result, ret_refused, err);
	return r ? err_set(err, r, "%s", why.text) : 0;
}

/* Reloads; whether the configuration was accepted is in the result, not an error. */
int step_reload(struct sim *s, const json_t *args, json_t *result, struct err *err)
{
	bool refused = false;
	const char *how = json_string_value(args);
	int r = steps_daemon_reload(s, how ? how : "", result, &refused, err);
	if (!r)
		doc_put_bool(result, "accepted", !refused);
	return r;
}

int step_config(struct sim *s, const json_t *args, json_t *result, struct err *err)
{
	bool refused = false;
	int r = step_write_config(s, args, result, err);
	if (r || !daemon_running(s))
		return r;
	r = steps_daemon_reload(s, "", result, &refused, err);
	if (r || !refused)
		return r;
	const char *why = json_string_value(json_object_get(result, "error"));
	return err_set(err, -EPERM, "the configuration was refused: %s", why ? why : "");
}

int step_badconfig(struct sim *s, const json_t *args, json_t *result, struct err *err)
{
	bool refused = false;
	_json_ json_t *config = json_copy((json_t *)(uintptr_t)args);
	const json_t *expected = json_object_get(args, "error");
	if (json_is_object(config))
		(void)json_object_del(config, "error");
	int r = step_write_config(s, config, result, err);
	if (!r)
		r = steps_daemon_reload(s, "", result, &refused, err);
	if (r)
		return r;
	if (!refused)
		return err_set(err, -EPROTO, "the configuration was accepted");
	const char *why = json_string_value(json_object_get(result, "error"));
	return step_matches(why ? why : "", expected, err);
}

/* ---- queries --------------------------------------------------------------------------------- */

struct question {
	const char *method;
	const json_t *args, *has, *lacks;
	json_t *document;
	int exit;
	struct err err;
};

static bool answer_fits(struct question *q)
{
	_free_ char *text =
		json_dumps(q->document, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
	json_t *item;
	size_t i;
	if (!text)
		return false;
	json_array_foreach(q->has, i, item)
	{
		if (step_matches(text, item, NULL) == 0)
			continue;
		(void)err_set(&q->err, -EPROTO, "%s: nothing matches %s in %.1500s", q->method,
			      json_string_value(item), text);
		return false;
	}
	json_array_foreach(q->lacks, i, item)
	{
		if (step_matches(text, item, NULL) != 0)
			continue;
		(void)err_set(&q->err, -EPROTO, "%s: unexpected %s in %.1500s", q->method,
			      json_string_value(item), text);
		return false;
	}
	return true;
}

/* Repeats the request until the answer is as expected, or the time limit has passed. */
static int steps_daemon_ask(struct sim *s, struct question *q, struct err *err)
{
	uint64_t end = clock_ms() + s->options.settle_ms;
	for (;;) {
		json_decref(q->document);
		q->document = NULL;
		int r = control_ask(s, q->method, q->args, RELOAD_MS, &q->document, &q->exit, err);
		if (r || answer_fits(q))
			return r;
		if (clock_ms() >= end)
			return err_set(err, q->err.code, "%s", q->err.text);
		(void)sim_wait(s, NULL, NULL, ASK_AGAIN_MS);
	}
}

/* Calls a control method. Argument: {method, args, has, lacks}; `has` and `lacks` are what the
 * answer must and must not match. Returns the document and nri-rpctl's exit status. */
int step_control(struct sim *s, const json_t *args, json_t *result, struct err *err)
{
	struct question q = {.err = ERR_INIT};
	struct args *a = ARGS(args, err);
	(void)arg_check(a, "method args has lacks", "control");
	(void)arg_text(a, "method", "Status", &q.method);
	(void)arg_list(a, "args", &q.args);
	(void)arg_list(a, "has", &q.has);
	int r = arg_list(a, "lacks", &q.lacks);
	if (!r)
		r = steps_daemon_ask(s, &q, err);
	if (r) {
		json_decref(q.document);
		return r;
	}
	doc_put_int(result, "exit", q.exit);
	(void)json_object_set_new(result, "document", q.document);
	return 0;
}

static int not_in_log(struct sim *s, const char *regex, struct err *err)
{
	_json_ json_t *pattern = json_string(regex);
	_free_ char *log = daemon_read_log(s, 0);
	int r = step_matches(log ? log : "", pattern, NULL);
	if (r == -EPROTO)
		return 0;
	return r ? err_set(err, r, "log: expected a regular expression")
		 : err_set(err, -EPROTO, "the log has a line that matches %s", regex);
}

/* Waits for a line of the log. Argument: REGEX, or {regex, within: TIME}; {regex, never: true}
 * requires its absence. */
int step_log(struct sim *s, const json_t *args, json_t *result, struct err *err)
{
	const char *regex = json_string_value(args);
	int64_t within = (int64_t)s->options.settle_ms;
	bool never = false;
	int r = 0;
	if (json_is_object(args)) {
		struct args *a = ARGS(args, err);
		(void)arg_check(a, "regex within never", "log");
		(void)arg_bool(a, "never", false, &never);
		(void)arg_text(a, "regex", NULL, &regex);
		r = arg_amount(a, "within", ARG_MS, within, &within);
	}
	if (!r && !regex)
		r = err_set(err, -EINVAL, "log: expected a regular expression");
	if (r)
		return r;
	return never ? not_in_log(s, regex, err)
		     : daemon_wait_log(s, regex, 0, (uint64_t)within, err);
}
