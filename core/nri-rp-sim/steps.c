/* SPDX-License-Identifier: Apache-2.0 */
#include "core/lib/machines/tree.h"
#include "core/nri-rp-sim/steps.h"

#include <regex.h>
#include <stdlib.h>

#include "core/nri-rp-sim/conn.h"
#include "core/nri-rp-sim/daemon.h"
#include "core/nri-rp-sim/expect.h"
#include "core/nri-rp-sim/files.h"
#include "core/nri-rp-sim/wrong_sync.h"
#include "core/nri-rp-sim/lifecycle.h"
#include "core/nri-rp-sim/steps_daemon.h"
#include "core/nri-rp-sim/model.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/str.h"
#include "core/lib/util/clock.h"

#define QUIET_MS 200
#define LOOK_MS 10
#define WAIT_MAX_MS 600000

typedef int (*step_fn)(struct sim *s, const json_t *args, json_t *result, struct err *err);

/* ---- arguments ------------------------------------------------------------------------------- */

/* Calls fn for the argument, or for each element of a list. */
static int steps_each(const json_t *args, step_fn fn, struct sim *s, json_t *result,
		      struct err *err)
{
	json_t *item;
	size_t i;
	int r = 0;
	if (!json_is_array(args))
		return fn(s, args, result, err);
	json_array_foreach(args, i, item)
	{
		if (!r)
			r = fn(s, item, result, err);
	}
	return r;
}

static int find_ctr(struct sim *s, const json_t *name, struct sim_ctr **ret, struct err *err)
{
	if (!json_is_string(name))
		return err_set(err, -EINVAL, "expected the name of a container");
	*ret = model_find_ctr(s, json_string_value(name));
	return *ret ? 0
		    : err_set(err, -ENOENT, "unknown container \"%s\"", json_string_value(name));
}

static int read_ms(const json_t *arg, int64_t otherwise, int64_t *ret, struct err *err)
{
	_json_ json_t *map = json_object();
	/* a plain number is in milliseconds */
	if (json_is_integer(arg)) {
		*ret = json_integer_value(arg);
		if (*ret < 0 || *ret > WAIT_MAX_MS)
			return err_set(err, -ERANGE, "expected 0 to %d ms", WAIT_MAX_MS);
		return 0;
	}
	if (json_is_string(arg))
		(void)json_object_set(map, "time", (json_t *)(uintptr_t)arg);
	return arg_amount(ARGS(map, err), "time", ARG_MS, otherwise, ret);
}

/* Defines a step, or the check of a step, by one expression. */
#define STEP(name, expression)                                                                     \
	static int name(struct sim *s, const json_t *args, json_t *result, struct err *err)        \
	{                                                                                          \
		return expression;                                                                 \
	}

/* Defines a step whose argument is the name of a container, c. */
#define CTR_STEP(name, expression)                                                                 \
	static int name(struct sim *s, const json_t *args, json_t *result, struct err *err)        \
	{                                                                                          \
		struct sim_ctr *c;                                                                 \
		int r = find_ctr(s, args, &c, err);                                                \
		return r ? r : (expression);                                                       \
	}

/* ---- pods ------------------------------------------------------------------------------------ */

int step_matches(const char *text, const json_t *expected, struct err *err)
{
	const char *pattern = json_string_value(expected);
	regex_t regex;
	if (!expected)
		return 0;
	if (!pattern || regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB))
		return err_set(err, -EINVAL, "error: expected a regular expression");
	int r = regexec(&regex, text, 0, NULL, 0);
	regfree(&regex);
	return r ? err_set(err, -EPROTO, "refused with another error: \"%s\"", text) : 0;
}

static int step_reject(struct sim *s, const json_t *args, json_t *result, struct err *err)
{
	_json_ json_t *spec = json_copy((json_t *)(uintptr_t)args);
	struct err why = ERR_INIT;
	if (!json_is_object(spec))
		return err_set(err, -EINVAL, "reject: expected a pod");
	const json_t *expected = json_object_get(args, "error");
	(void)json_object_del(spec, "error");
	int r = lifecycle_create(s, spec, result, &why);
	const char *name = json_string_value(json_object_get(spec, "pod"));
	struct sim_pod *pod = name ? model_find_pod(s, name) : NULL;
	if (pod)
		(void)lifecycle_delete(s, pod, NULL);
	if (!r)
		return err_set(err, -EPROTO, "%s was accepted", name);
	if (r != -EPERM)
		return err_set(err, r, "%s", why.text);
	doc_put_text(result, "error", why.text);
	return step_matches(why.text, expected, err);
}

STEP(adopt_one, lifecycle_adopt(s, args, err))

static int delete_one(struct sim *s, const json_t *args, json_t *result, struct err *err)
{
	const char *name = json_string_value(args);
	struct sim_pod *pod = name ? model_find_pod(s, name) : NULL;
	if (!pod)
		return err_set(err, -ENOENT, "unknown pod \"%s\"", name ? name : "?");
	return lifecycle_delete(s, pod, err);
}

CTR_STEP(exit_one, (lifecycle_exit(s, c, 0), 0))
CTR_STEP(remove_one, (lifecycle_remove(s, c), 0))
CTR_STEP(replace_one, lifecycle_replace(s, c, err))

static int resize_one(struct sim *s, const json_t *args, json_t *result, struct err *err)
{
	struct sim_ctr *c;
	int r = find_ctr(s, json_object_get(args, "container"), &c, err);
	return r ? r : lifecycle_resize(s, c, args, err);
}

static int resize_pod(struct sim *s, const json_t *args, json_t *result, struct err *err)
{
	const char *name = json_string_value(json_object_get(args, "pod"));
	struct sim_pod *pod = name ? model_find_pod(s, name) : NULL;
	if (!pod)
		return err_set(err, -EINVAL, "unknown pod %s", name ? name : "without a name");
	return lifecycle_resize_pod(s, pod, args, err);
}

/* Resizes a container, or the pod if the step names one, which must be refused. */
static int step_reject_update(struct sim *s, const json_t *args, json_t *result, struct err *err)
{
	_json_ json_t *spec = json_copy((json_t *)(uintptr_t)args);
	struct err why = ERR_INIT;
	(void)json_object_del(spec, "error");
	int r = json_object_get(spec, "pod") ? resize_pod(s, spec, result, &why)
					     : resize_one(s, spec, result, &why);
	if (!r)
		return err_set(err, -EPROTO, "the update was accepted");
	if (r != -EPERM)
		return err_set(err, r, "%s", why.text);
	doc_put_text(result, "error", why.text);
	return step_matches(why.text, json_object_get(args, "error"), err);
}

/* ---- faults of the runtime and the machine --------------------------------------------------- */

CTR_STEP(fail_one, (c->failing = true, 0))

static int step_fail_updates(struct sim *s, const json_t *args, json_t *result, struct err *err)
{
	for (struct sim_ctr *c = s->ctrs; c; c = c->next)
		c->failing = false;
	return steps_each(args, fail_one, s, result, err);
}

/* Sends a single event, even if it does not fit the container's state. */
static int step_tell(struct sim *s, const json_t *args, json_t *result, struct err *err)
{
	static const struct {
		const char *name;
		Nri__Event event;
	} events[] = {{"StartContainer", NRI__EVENT__START_CONTAINER},
		      {"PostStartContainer", NRI__EVENT__POST_START_CONTAINER},
		      {"StopContainer", NRI__EVENT__STOP_CONTAINER},
		      {"RemoveContainer", NRI__EVENT__REMOVE_CONTAINER},
		      {"CreateContainer", NRI__EVENT__CREATE_CONTAINER}};
	struct sim_ctr *c;
	const char *name;
	struct args *in = ARGS(args, err);
	(void)arg_check(in, "event container", "tell");
	int r = arg_text(in, "event", "", &name);
	if (!r)
		r = find_ctr(s, json_object_get(args, "container"), &c, err);
	for (unsigned i = 0; !r && i < sizeof events / sizeof *events; i++) {
		struct conn_answer a;
		if (!str_eq(events[i].name, name))
			continue;
		conn_event(s, events[i].event, c->pod, c, NULL, &a);
		doc_put_int(result, "error", a.error);
		doc_put_text(result, "text", a.text ? a.text : "");
		conn_answer_fini(&a);
		return 0;
	}
	return r ? r : err_set(err, -EINVAL, "tell: unknown event: %s", name);
}

static int change_online(struct sim *s, const json_t *args, bool online, struct err *err)
{
	char buf[ARG_NUMBER_MAX], text[RP_IDSET_TEXT_MAX];
	const char *list = arg_scalar(args, buf);
	struct rp_idset cpus, offline;
	struct machine m;
	if (!s->machine)
		return err_set(err, -ENOTSUP, "the machine is a recorded one");
	if (!list || rp_idset_parse(&cpus, list, RP_CPUS_MAX))
		return err_set(err, -EINVAL, "expected CPUs as in 0-3,8");
	int r = machine_from(s->machine, &m, err);
	if (r)
		return r;
	rp_idset_copy(&offline, rp_ids_of(&m.offline));
	machine_fini(&m);
	if (online)
		rp_idset_andnot(&offline, rp_ids_of(&offline), rp_ids_of(&cpus));
	else
		rp_idset_or(&offline, rp_ids_of(&offline), rp_ids_of(&cpus));
	(void)rp_ids_format(rp_ids_of(&offline), text, sizeof text);
	doc_put_text(s->machine, "offline", text);
	r = machine_from(s->machine, &m, err);
	if (r)
		return r;
	r = machine_write(&m, s->root, err);
	machine_fini(&m);
	return r ? r : sim_look(s, err);
}

STEP(step_lie, lie_set(s, args, err))
STEP(step_offline, change_online(s, args, false, err))
STEP(step_online, change_online(s, args, true, err))
STEP(step_files, files_put(s, args, err))
STEP(step_links, files_link(s, args, err))

static int step_cgroup(struct sim *s, const json_t *args, json_t *result, struct err *err)
{
	struct sim_ctr *c;
	int r = arg_check(ARGS(args, err), "container files", "cgroup");
	if (!r)
		r = find_ctr(s, json_object_get(args, "container"), &c, err);
	return r ? r : files_put_cgroup(s, c, json_object_get(args, "files"), err);
}

/* ---- expectations and results ---------------------------------------------------------------- */

struct hopes {
	const json_t *list;
	const char *failed; /* first expression that does not hold */
	struct err err;
};

static bool all_hold(struct sim *s, void *arg)
{
	struct hopes *h = arg;
	for (size_t i = 0; i < json_array_size(h->list); i++) {
		const char *text = json_string_value(json_array_get(h->list, i));
		bool holds = false;
		h->failed = text ? text : "(not a text)";
		h->err = (struct err)ERR_INIT;
		if (!text || expect_holds(s, text, &holds, NULL, &h->err) || !holds)
			return false;
	}
	h->failed = NULL;
	return true;
}

/* Waits until the expectations hold. Also evaluates them at intervals, because changes of files
 * cause no event. */
static bool come_true(struct sim *s, struct hopes *h)
{
	uint64_t end = clock_ms() + s->options.settle_ms;
	bool hold = all_hold(s, h);
	while (!hold && h->err.code != -EINVAL && !s->interrupted) {
		uint64_t now = clock_ms();
		if (now >= end)
			break;
		uint64_t left = end - now;
		hold = sim_wait(s, all_hold, h, left < LOOK_MS ? left : LOOK_MS) == 0;
	}
	return hold;
}

/* Checks expectations; the plugin's own updates may take a moment. */
static int step_expect(struct sim *s, const json_t *args, json_t *result, struct err *err)
{
	_json_ json_t *list = json_is_array(args) ? json_incref((json_t *)(uintptr_t)args)
						  : json_pack("[O]", args);
	struct hopes h = {.list = list, .err = ERR_INIT};
	struct buf why = BUF_INIT;
	bool holds;
	if (come_true(s, &h))
		return 0;
	if (h.err.code == -EINVAL)
		return err_set(err, -EINVAL, "%s", h.err.text);
	(void)expect_holds(s, h.failed, &holds, &why, &h.err);
	int r = err_set(err, -EPROTO, "does not hold: %s%s%s\n%s", h.failed,
			h.err.text[0] ? ": " : "", h.err.text, buf_text(&why));
	buf_fini(&why);
	return r;
}

static int step_wait(struct sim *s, const json_t *args, json_t *result, struct err *err)
{
	int64_t ms;
	int r = read_ms(args, 0, &ms, err);
	if (!r)
		(void)sim_wait(s, NULL, NULL, (uint64_t)ms);
	return r;
}

struct quiet {
	uint64_t n_seen, since_ms, length_ms;
};

static bool is_quiet(struct sim *s, void *arg)
{
	struct quiet *q = arg;
	if (q->n_seen != s->n_updates) {
		q->n_seen = s->n_updates;
		q->since_ms = clock_ms();
	}
	return clock_ms() - q->since_ms >= q->length_ms;
}

/* Waits until no update has come for a while. */
static int step_settle(struct sim *s, const json_t *args, json_t *result, struct err *err)
{
	int64_t ms;
	int r = read_ms(args, QUIET_MS, &ms, err);
	struct quiet q = {s->n_updates, clock_ms(), (uint64_t)ms};
	while (!r && !is_quiet(s, &q))
		(void)sim_wait(s, is_quiet, &q, q.length_ms + 5);
	return r;
}

static int step_containers(struct sim *s, const json_t *args, json_t *result, struct err *err)
{
	json_t *list = json_array();
	for (const struct sim_ctr *c = s->ctrs; c; c = c->next)
		(void)json_array_append_new(list, model_describe(s, c));
	(void)json_object_set_new(result, "containers", list);
	return 0;
}

CTR_STEP(step_container, (json_object_set_new(result, "container", model_describe(s, c)), 0))

/* Returns the recorded updates and clears them. */
static int step_updates(struct sim *s, const json_t *args, json_t *result, struct err *err)
{
	(void)json_object_set_new(result, "updates", s->updates);
	s->updates = json_array();
	return s->updates ? 0 : err_errno(err, -ENOMEM, "updates");
}

static int step_problems(struct sim *s, const json_t *args, json_t *result, struct err *err)
{
	(void)json_object_set_new(result, "problems", s->problems);
	s->problems = json_array();
	return s->problems ? 0 : err_errno(err, -ENOMEM, "problems");
}

static int step_status(struct sim *s, const json_t *args, json_t *result, struct err *err)
{
	char text[64];
	doc_put_int(result, "pid", daemon_pid(s));
	doc_put_bool(result, "connected", conn_is_active(s));
	doc_put_text(result, "lastExit",
		     daemon_status_text(daemon_last_status(s), text, sizeof text));
	doc_put_int(result, "synchronizations", (int64_t)s->n_synchronizations);
	doc_put_int(result, "updates", (int64_t)s->n_updates);
	doc_put_int(result, "needless", (int64_t)s->n_needless);
	doc_put_int(result, "unsolicited", (int64_t)s->n_unsolicited);
	doc_put_int(result, "problems", (int64_t)s->n_problems);
	doc_put_text(result, "work", s->work);
	doc_put_text(result, "root", s->root);
	doc_put_text(result, "config", s->config);
	doc_put_text(result, "log", s->log);
	doc_put_text(result, "state", s->state);
	doc_put_text(result, "control", s->control);
	doc_put_text(result, "socket", s->socket);
	return 0;
}

static int steps_evaluate(struct sim *s, const json_t *args, json_t *result, struct err *err)
{
	struct buf why = BUF_INIT;
	bool holds;
	const char *text = json_string_value(args);
	int r = text ? expect_holds(s, text, &holds, &why, err)
		     : err_set(err, -EINVAL, "evaluate: expected an expression");
	if (!r) {
		doc_put_bool(result, "holds", holds);
		doc_put_text(result, "why", buf_text(&why));
	}
	buf_fini(&why);
	return r;
}

STEP(step_note, 0)

/* ---- checks before anything runs ------------------------------------------------------------- */

STEP(check_pod, model_check_pod(args, "", err))
STEP(check_refused_pod, model_check_pod(args, "error", err))
STEP(check_update, arg_check(ARGS(args, err), "container cpu memory requests limits", "update"))
STEP(check_refused_update,
     arg_check(ARGS(args, err), "container pod cpu memory requests limits error", "update"))
STEP(check_tell, arg_check(ARGS(args, err), "event container", "tell"))
STEP(check_control, arg_check(ARGS(args, err), "method args has lacks", "control"))
STEP(check_log, json_is_object(args) ? arg_check(ARGS(args, err), "regex within never", "log") : 0)
STEP(check_expression, json_is_string(args) ? expect_check(json_string_value(args), err)
					    : err_set(err, -EINVAL, "expected an expression"))

/* ---- table of steps -------------------------------------------------------------------------- */

static const struct step {
	const char *name;
	step_fn run;
	bool each; /* an argument may be a list: runs for each element */
	/* check of the argument, or of each element of a list, before the scenario begins */
	step_fn check;
} steps[] = {
	{.name = "create", .run = lifecycle_create, .each = true, .check = check_pod},
	{.name = "reject", .run = step_reject, .check = check_refused_pod},
	{.name = "existing", .run = adopt_one, .each = true, .check = check_pod},
	{.name = "delete", .run = delete_one, .each = true},
	{.name = "exit", .run = exit_one, .each = true},
	{.name = "remove", .run = remove_one, .each = true},
	{.name = "replace", .run = replace_one, .each = true},
	{.name = "update", .run = resize_one, .each = true, .check = check_update},
	{.name = "reject-update", .run = step_reject_update, .check = check_refused_update},
	{.name = "update-pod", .run = resize_pod, .each = true},
	{.name = "fail-updates", .run = step_fail_updates},
	{.name = "tell", .run = step_tell, .check = check_tell},
	{.name = "files", .run = step_files},
	{.name = "links", .run = step_links},
	{.name = "cgroup", .run = step_cgroup},
	{.name = "offline", .run = step_offline},
	{.name = "online", .run = step_online},
	{.name = "start", .run = step_start},
	{.name = "stop", .run = step_stop},
	{.name = "kill", .run = step_kill},
	{.name = "restart", .run = step_restart},
	{.name = "signal", .run = step_signal},
	{.name = "exited", .run = step_exited},
	{.name = "connected", .run = step_connected},
	{.name = "runtime-stop", .run = step_runtime_stop},
	{.name = "runtime-start", .run = step_runtime_start},
	{.name = "lie", .run = step_lie},
	{.name = "runtime-restart", .run = step_runtime_restart},
	{.name = "write-config", .run = step_write_config},
	{.name = "reload", .run = step_reload},
	{.name = "config", .run = step_config},
	{.name = "badconfig", .run = step_badconfig},
	{.name = "control", .run = step_control, .check = check_control},
	{.name = "expect", .run = step_expect, .check = check_expression},
	{.name = "evaluate", .run = steps_evaluate},
	{.name = "log", .run = step_log, .check = check_log},
	{.name = "wait", .run = step_wait},
	{.name = "settle", .run = step_settle},
	{.name = "containers", .run = step_containers},
	{.name = "container", .run = step_container},
	{.name = "updates", .run = step_updates},
	{.name = "problems", .run = step_problems},
	{.name = "status", .run = step_status},
	{.name = "note", .run = step_note},
	{.name = "show", .run = step_note},
};
#define N_STEPS (sizeof steps / sizeof steps[0])

static const struct step *find_step(const char *name)
{
	for (unsigned i = 0; i < N_STEPS; i++)
		if (str_eq(steps[i].name, name))
			return &steps[i];
	return NULL;
}

static int step_known(const char *name, struct err *err)
{
	const char *names[N_STEPS];
	if (find_step(name))
		return 0;
	for (unsigned i = 0; i < N_STEPS; i++)
		names[i] = steps[i].name;
	const char *close = str_closest(name, names, N_STEPS);
	return err_set(err, -EINVAL, "unknown step \"%s\"%s%s%s", name,
		       close ? ", did you mean \"" : "", close ? close : "", close ? "\"?" : "");
}

int step_run(struct sim *s, const char *name, const json_t *args, json_t *result, struct err *err)
{
	const struct step *step = find_step(name);
	if (!step)
		return step_known(name, err);
	return step->each ? steps_each(args, step->run, s, result, err)
			  : step->run(s, args, result, err);
}

const char *step_name(const json_t *step)
{
	if (!json_is_object(step) || json_object_size(step) != 1)
		return NULL;
	return json_object_iter_key(json_object_iter((json_t *)(uintptr_t)step));
}

int step_check(const json_t *step, struct err *err)
{
	const char *name = step_name(step);
	if (!name)
		return err_set(err, -EINVAL, "a step is one word with its argument");
	const struct step *known = find_step(name);
	int r = 0;
	if (!known)
		r = step_known(name, err);
	else if (known->check)
		r = steps_each(json_object_get(step, name), known->check, NULL, NULL, err);
	return r ? err_prefix(err, "%s: ", name) : 0;
}
