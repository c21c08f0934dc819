/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-sim/lifecycle.h"

#include <stdlib.h>

#include "core/nri-rp-sim/apply.h"
#include "core/nri-rp-sim/conn.h"
#include "core/nri-rp-sim/files.h"
#include "core/nri-rp-sim/check.h"
#include "core/nri-rp-sim/kubelet.h"
#include "core/nri-rp-sim/model.h"
#include "core/lib/util/str.h"
#include "core/lib/util/clock.h"

/* ---- notifications --------------------------------------------------------------------------- */

/* Sends an event whose answer carries nothing. Runtimes only log errors of these events; a plugin
 * should not return any. */
static void lifecycle_tell(struct sim *s, Nri__Event event, const struct sim_pod *pod,
			   const struct sim_ctr *ctr)
{
	struct conn_answer a;
	conn_event(s, event, pod, ctr, NULL, &a);
	if (a.error == -EREMOTEIO)
		sim_problem(s, "the plugin failed on event %s: %s", ctr ? ctr->name : pod->name,
			    a.text);
	conn_answer_fini(&a);
}

/* ---- end of containers ----------------------------------------------------------------------- */

static void ask_stop(struct sim *s, struct sim_ctr *c)
{
	struct conn_answer a;
	conn_event(s, NRI__EVENT__STOP_CONTAINER, c->pod, c, NULL, &a);
	c->stop_sent = true;
	Nri__StopContainerResponse *m =
		a.error ? NULL
			: nri__stop_container_response__unpack(NULL, a.payload_len, a.payload);
	if (a.error == -EREMOTEIO)
		sim_problem(s, "StopContainer of %s fails: %s", c->name, a.text);
	else if (!a.error && !m)
		sim_problem(s, "StopContainer: undecodable reply");
	struct err err = ERR_INIT;
	if (m && !check_message(s, &m->base, "the reply to StopContainer") &&
	    !check_claims(s, m->update, m->n_update, &err))
		(void)apply_updates(s, m->update, m->n_update, "stop");
	nri__stop_container_response__free_unpacked(m, NULL);
	conn_answer_fini(&a);
}

/* Stops a container. containerd sends StopContainer before it signals the process, CRI-O after the
 * process has ended; each sends it once. */
static void lifecycle_stop(struct sim *s, struct sim_ctr *c, bool by_itself)
{
	if (c->state == CTR_EXITED)
		return;
	if (s->runtime == RUNTIME_CONTAINERD && !by_itself)
		ask_stop(s, c);
	c->state = CTR_EXITED;
	c->finished_ns = (int64_t)clock_wall_ns();
	if (!c->stop_sent)
		ask_stop(s, c);
}

void lifecycle_exit(struct sim *s, struct sim_ctr *c, int exit_code)
{
	c->exit_code = exit_code;
	lifecycle_stop(s, c, true);
}

void lifecycle_remove(struct sim *s, struct sim_ctr *c)
{
	lifecycle_stop(s, c, false);
	files_remove_cgroup(s, c);
	lifecycle_tell(s, NRI__EVENT__REMOVE_CONTAINER, c->pod, c);
	model_free_ctr(s, c);
}

/* Cleans up after a failed creation: containerd sends the events of an end, CRI-O sends none. */
static void give_up(struct sim *s, struct sim_ctr *c)
{
	if (s->runtime == RUNTIME_CONTAINERD) {
		ask_stop(s, c);
		lifecycle_tell(s, NRI__EVENT__REMOVE_CONTAINER, c->pod, c);
	}
	files_remove_cgroup(s, c);
	model_free_ctr(s, c);
}

/* ---- creation of containers ------------------------------------------------------------------ */

static int lifecycle_refused(const struct conn_answer *a, struct err *err)
{
	return err_set(err, -EPERM, "%s",
		       a->text && *a->text ? a->text : "refused without a reason");
}

#define TOLERATE "tolerate-missing-plugins.nri-rp.io"

/* Refuses a container that was created without the plugin, as containerd's default validator does
 * for the plugins in required_plugins. */
static int check_required(const struct sim *s, const struct sim_ctr *c, struct err *err)
{
	const char *tolerates = json_string_value(json_object_get(c->pod->annotations, TOLERATE));
	if (!s->require_plugin || (tolerates && str_eq(tolerates, "true")))
		return 0;
	return err_set(err, -EPERM,
		       "validator plugin \"default-validator\" failed: missing required plugin "
		       "\"nri-rp\"");
}

/* Asks the plugin about a creation. If the plugin disconnects, the container is created without
 * it, unless the runtime requires the plugin. */
static int ask_create(struct sim *s, struct sim_ctr *c, struct err *err)
{
	struct conn_answer a;
	conn_event(s, NRI__EVENT__CREATE_CONTAINER, c->pod, c, NULL, &a);
	c->took_us = a.took_us;
	int r = 0;
	if (a.error == -EREMOTEIO)
		r = lifecycle_refused(&a, err);
	else if (a.error || !conn_is_active(s))
		r = check_required(s, c, err);
	if (!r && !a.error) {
		Nri__CreateContainerResponse *m =
			nri__create_container_response__unpack(NULL, a.payload_len, a.payload);
		if (m)
			r = apply_creation(s, c, m, err);
		else
			sim_problem(s, "CreateContainer: undecodable reply");
		nri__create_container_response__free_unpacked(m, NULL);
	}
	conn_answer_fini(&a);
	return r;
}

static int lifecycle_start(struct sim *s, struct sim_ctr *c, struct err *err)
{
	struct conn_answer a;
	conn_event(s, NRI__EVENT__START_CONTAINER, c->pod, c, NULL, &a);
	int r = a.error == -EREMOTEIO && s->runtime == RUNTIME_CONTAINERD
			? lifecycle_refused(&a, err)
			: 0;
	conn_answer_fini(&a);
	if (r)
		return r;
	c->state = CTR_RUNNING;
	c->started_ns = (int64_t)clock_wall_ns();
	lifecycle_tell(s, NRI__EVENT__POST_START_CONTAINER, c->pod, c);
	return 0;
}

static int lifecycle_begin(struct sim *s, struct sim_ctr *c, struct err *err)
{
	c->state = CTR_CREATING;
	int r = ask_create(s, c, err);
	if (!r)
		r = files_make_cgroup(s, c, err);
	if (!r) {
		c->state = CTR_CREATED;
		c->created_ns = (int64_t)clock_wall_ns();
		lifecycle_tell(s, NRI__EVENT__POST_CREATE_CONTAINER, c->pod, c);
		r = lifecycle_start(s, c, err);
	}
	if (r)
		give_up(s, c);
	return r;
}

static int create_ctr(struct sim *s, struct sim_pod *pod, const json_t *spec, json_t *list,
		      struct err *err)
{
	struct sim_ctr *c;
	int r = model_new_ctr(s, pod, spec, &c, err);
	if (r)
		return r;
	r = lifecycle_begin(s, c, err);
	if (r)
		return r;
	json_t *made = model_describe(s, c);
	doc_put_int(made, "took_us", (int64_t)c->took_us);
	(void)json_array_append_new(list, made);
	if (c->init)
		lifecycle_exit(s, c, 0);
	return 0;
}

/* Creates the containers of a pod. Init containers run first, each until it ends. */
static int create_ctrs(struct sim *s, struct sim_pod *pod, const json_t *spec, json_t *result,
		       struct err *err)
{
	const json_t *containers = json_object_get(spec, "containers");
	json_t *list = json_array(), *c;
	size_t i;
	int r = 0;
	for (int init = 1; init >= 0; init--) {
		json_array_foreach(containers, i, c)
		{
			bool first = json_is_true(json_object_get(c, "init"));
			if (!r && first == (bool)init)
				r = create_ctr(s, pod, c, list, err);
		}
	}
	(void)json_object_set_new(result, "containers", list);
	return r;
}

/* ---- pods ------------------------------------------------------------------------------------ */

static int run_pod(struct sim *s, struct sim_pod *pod, struct err *err)
{
	struct conn_answer a;
	conn_event(s, NRI__EVENT__RUN_POD_SANDBOX, pod, NULL, NULL, &a);
	int r = a.error == -EREMOTEIO ? lifecycle_refused(&a, err) : 0;
	conn_answer_fini(&a);
	if (!r)
		return 0;
	lifecycle_tell(s, NRI__EVENT__STOP_POD_SANDBOX, pod, NULL);
	lifecycle_tell(s, NRI__EVENT__REMOVE_POD_SANDBOX, pod, NULL);
	model_free_pod(s, pod);
	return r;
}

static struct sim_pod *lifecycle_existing(const struct sim *s, const json_t *spec)
{
	const char *name = json_string_value(json_object_get(spec, "pod"));
	const char *ns = json_string_value(json_object_get(spec, "namespace"));
	struct sim_pod *found = NULL;
	for (struct sim_pod *p = s->pods; name && p; p = p->next)
		if (!p->stopped && str_eq(p->name, name) && str_eq(p->ns, ns ? ns : "default"))
			found = p;
	return found;
}

int lifecycle_create(struct sim *s, const json_t *spec, json_t *result, struct err *err)
{
	struct sim_pod *pod = lifecycle_existing(s, spec);
	_json_ json_t *next = NULL;
	bool again;
	int r = arg_bool(ARGS(spec, err), "again", false, &again);
	if (!r && again && pod) { /* another sandbox; the end of the last one is not reported */
		next = json_copy((json_t *)(uintptr_t)spec);
		(void)json_object_set_new(next, "uid", json_string(pod->uid));
		model_free_pod(s, pod);
		pod = NULL;
		spec = next;
	}
	if (!r && !pod) {
		r = model_new_pod(s, spec, &pod, err);
		if (!r)
			r = run_pod(s, pod, err);
	}
	return r ? r : create_ctrs(s, pod, spec, result, err);
}

int lifecycle_adopt(struct sim *s, const json_t *spec, struct err *err)
{
	struct sim_pod *pod;
	json_t *c;
	size_t i;
	int r = model_new_pod(s, spec, &pod, err);
	if (r)
		return r;
	json_array_foreach(json_object_get(spec, "containers"), i, c)
	{
		struct sim_ctr *ctr;
		r = model_new_ctr(s, pod, c, &ctr, err);
		if (!r)
			r = check_sets(s, ctr->res.cpus, ctr->res.mems, err);
		if (!r)
			r = files_make_cgroup(s, ctr, err);
		if (r)
			return r;
		if (ctr->state == CTR_CREATING)
			ctr->state = CTR_RUNNING;
		ctr->created_ns = ctr->started_ns = (int64_t)clock_wall_ns();
	}
	return 0;
}

int lifecycle_delete(struct sim *s, struct sim_pod *pod, struct err *err)
{
	struct conn_answer a;
	for (struct sim_ctr *c = s->ctrs; c; c = c->next)
		if (c->pod == pod)
			lifecycle_stop(s, c, false);
	conn_event(s, NRI__EVENT__STOP_POD_SANDBOX, pod, NULL, NULL, &a);
	int r = a.error == -EREMOTEIO ? lifecycle_refused(&a, err) : 0;
	if (r)
		sim_problem(s, "StopPodSandbox of %s fails: %s", pod->name, a.text);
	conn_answer_fini(&a);
	if (r && s->runtime == RUNTIME_CRIO)
		return r;
	pod->stopped = true;
	for (struct sim_ctr *c = s->ctrs, *next; c; c = next) {
		next = c->next;
		if (c->pod == pod)
			lifecycle_remove(s, c);
	}
	lifecycle_tell(s, NRI__EVENT__REMOVE_POD_SANDBOX, pod, NULL);
	model_free_pod(s, pod);
	return 0;
}

/* ---- resizes --------------------------------------------------------------------------------- */

static int ask_resize(struct sim *s, struct sim_ctr *c, const struct resources *wanted,
		      struct err *err)
{
	struct conn_answer a;
	Nri__UpdateContainerResponse *m = NULL;
	conn_event(s, NRI__EVENT__UPDATE_CONTAINER, c->pod, c, wanted, &a);
	int r = a.error == -EREMOTEIO ? lifecycle_refused(&a, err) : 0;
	if (!r)
		m = nri__update_container_response__unpack(NULL, a.error ? 0 : a.payload_len,
							   a.payload);
	if (!r && !m)
		sim_problem(s, "UpdateContainer: undecodable reply");
	if (m)
		r = apply_resize(s, c, wanted, m, err);
	nri__update_container_response__free_unpacked(m, NULL);
	conn_answer_fini(&a);
	return r;
}

static struct resources resources_of(const struct wants *wants)
{
	static char none[] = "";
	int64_t quota = kubelet_quota(wants);
	return (struct resources){
		.shares = kubelet_shares(wants),
		.quota = quota ? quota : SIM_NOT_SET,
		.period = KUBELET_PERIOD,
		.memory_limit = wants->memory_limit ? wants->memory_limit : SIM_NOT_SET,
		.cpus = none,
		.mems = none,
	};
}

int lifecycle_resize(struct sim *s, struct sim_ctr *c, const json_t *spec, struct err *err)
{
	struct wants wants = c->wants;
	int r = arg_check(ARGS(spec, err), "container cpu memory requests limits", "update");
	if (!r)
		r = kubelet_wants(spec, &wants, err);
	if (r)
		return r;
	const struct resources wanted = resources_of(&wants);
	r = ask_resize(s, c, &wanted, err);
	if (r)
		return r;
	c->wants = wants;
	lifecycle_tell(s, NRI__EVENT__POST_UPDATE_CONTAINER, c->pod, c);
	return 0;
}

static int ask_resize_pod(struct sim *s, struct sim_pod *pod, const struct wants *own,
			  struct err *err)
{
	struct conn_answer a;
	struct resources wanted = resources_of(own);
	conn_event(s, NRI__EVENT__UPDATE_POD_SANDBOX, pod, NULL, &wanted, &a);
	int r = a.error == -EREMOTEIO ? lifecycle_refused(&a, err) : 0;
	conn_answer_fini(&a);
	if (r)
		return r;
	pod->own = *own;
	kubelet_put_own(own, &pod->wants);
	return 0;
}

int lifecycle_resize_pod(struct sim *s, struct sim_pod *pod, const json_t *spec, struct err *err)
{
	struct wants own = pod->own, before = pod->own;
	struct resources wanted;
	int r = arg_check(ARGS(spec, err), "pod cpu memory", "update-pod");
	if (!r)
		r = kubelet_wants(spec, &own, err);
	if (!r)
		r = ask_resize_pod(s, pod, &own, err);
	if (r)
		return r;
	for (struct sim_ctr *c = s->ctrs; c && !r; c = c->next) {
		struct wants wants = {0};
		if (c->pod != pod || c->state == CTR_EXITED)
			continue;
		r = kubelet_wants(c->spec, &wants, err);
		if (r || wants.cpu_limit)
			continue;
		kubelet_hand_down(&own, &wants);
		wanted = resources_of(&wants);
		r = ask_resize(s, c, &wanted, err);
		if (!r)
			c->wants = wants;
	}
	struct err again = ERR_INIT;
	if (r && ask_resize_pod(s, pod, &before, &again))
		sim_problem(s, "the pod's former resources are refused: %s", again.text);
	return r;
}

int lifecycle_replace(struct sim *s, struct sim_ctr *c, struct err *err)
{
	_json_ json_t *spec = json_deep_copy(c->spec);
	static const char *const past[] = {"cpus", "mems", "state"};
	struct sim_pod *pod = c->pod;
	struct sim_ctr *next;
	for (unsigned i = 0; i < sizeof past / sizeof *past; i++)
		(void)json_object_del(spec, past[i]);
	int r = spec ? model_new_ctr(s, pod, spec, &next, err)
		     : err_errno(err, -ENOMEM, "container");
	if (r)
		return r;
	model_free_ctr(s, c);
	return lifecycle_begin(s, next, err);
}
