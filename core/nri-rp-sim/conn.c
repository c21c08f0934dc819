/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-sim/conn.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/nri-rp-sim/apply.h"
#include "core/nri-rp-sim/conn_internal.h"
#include "core/nri-rp-sim/tap.h"
#include "core/util/cleanup.h"
#include "core/util/pb.h"
#include "core/util/str.h"
#include "core/wire/sock.h"

/* ---- life of a connection ----------------------------------------------------------------------------------------- */

static void refuse_waiting(struct conn *c)
{
	for (struct waiting *w = c->waiting, *next; w; w = next) {
		next = w->next;
		(void)rpc_reply_error(w->req, TTRPC_UNAVAILABLE, "the connection has ended");
		nri__update_containers_request__free_unpacked(w->msg, NULL);
		free(w);
	}
	c->waiting = c->last_waiting = NULL;
}

static void listen_again(void *arg)
{
	struct conn *c = arg;
	if (c->state == CONN_NOBODY)
		(void)loop_io_set(c->io, LOOP_READ);
}

void conn_drop(struct sim *s, const char *why)
{
	struct conn *c = s->conn;
	if (!c || c->state == CONN_NOBODY)
		return;
	refuse_waiting(c);
	sync_abandon(c);
	loop_timer_disarm(c->registration);
	c->trunk = trunk_free(c->trunk);
	c->tap = tap_free(c->tap);
	c->rpc = NULL;
	bool active = c->state == CONN_ACTIVE;
	c->state = CONN_NOBODY;
	json_t *details = json_object();
	put_text(details, "why", why);
	put_bool(details, "active", active);
	sim_event(s, "disconnected", details);
	listen_again(c);
	sim_wake(s);
}

static void closed(struct trunk *trunk, const struct err *err, void *arg)
{
	struct conn *c = arg;
	(void)trunk;
	conn_drop(c->s, err->text);
}

static void late(void *arg)
{
	struct conn *c = arg;
	sim_problem(c->s, "a plugin has connected and does not register");
	conn_drop(c->s, "no registration in time");
}

static void bad_frame(const char *what, void *arg)
{
	struct conn *c = arg;
	sim_problem(c->s, "frames: %s", what);
}

/* ---- configuration ------------------------------------------------------------------------------------------------ */

static void configured(const struct rpc_result *result, void *arg)
{
	struct conn *c = arg;
	ProtobufCAllocator *heap = NULL;
	if (result->error == -ECANCELED || c->state == CONN_NOBODY)
		return;
	Nri__ConfigureResponse *m = result->error
					    ? NULL
					    : nri__configure_response__unpack(
						      heap, result->payload_len, result->payload);
	if (!m) {
		sim_problem(c->s, "Configure: %s",
			    result->error ? result->text : "undecodable answer");
		conn_drop(c->s, "Configure has failed");
		return;
	}
	uint32_t events = (uint32_t)m->events, known = release_events(c->s->release);
	nri__configure_response__free_unpacked(m, heap);
	if (events & ~known) {
		sim_problem(c->s, "Configure: invalid plugin events: 0x%x", events & ~known);
		conn_drop(c->s, "it subscribes to events that there are not");
		return;
	}
	c->events = events ? events : known;
	c->state = CONN_CONFIGURED;
	sync_begin(c);
}

static void configure(struct conn *c)
{
	const struct sim *s = c->s;
	const struct nri_release *r = s->release;
	Nri__ConfigureRequest m = NRI__CONFIGURE_REQUEST__INIT;
	bool crio = s->runtime == RUNTIME_CRIO;
	char name[16], version[32], nri_version[32];
	(void)snprintf(name, sizeof name, "%s", crio ? "cri-o" : "containerd");
	(void)snprintf(version, sizeof version, "%s", crio ? r->crio : r->containerd);
	(void)snprintf(nri_version, sizeof nri_version, "%s", r->version);
	m.runtime_name = name;
	m.runtime_version = version;
	m.nri_version = nri_version;
	if (release_has_timeouts(r)) {
		m.registration_timeout = (int64_t)s->registration_timeout_ms;
		m.request_timeout = (int64_t)s->request_timeout_ms;
	}
	if (rpc_call(c->rpc, CONN_PLUGIN_SERVICE, "Configure", &m.base, s->request_timeout_ms,
		     configured, c))
		conn_drop(c->s, "Configure could not be sent");
}

/* ---- registration ------------------------------------------------------------------------------------------------- */

static const char *wrong_name(const struct sim *s, const Nri__RegisterPluginRequest *m)
{
	const char *name = m->plugin_name, *index = m->plugin_idx;
	if (!*name)
		return "it has no name";
	for (const char *p = name; s->release->minor >= 12 && *p; p++)
		if (!isalnum((unsigned char)*p) && !strchr("_.+-", *p))
			return "its name has a character that is not allowed";
	bool two =
		isdigit((unsigned char)index[0]) && isdigit((unsigned char)index[1]) && !index[2];
	return two ? NULL : "its index is not two digits";
}

static void registered(struct conn *c, struct rpc_request *req)
{
	struct sim *s = c->s;
	Nri__RegisterPluginRequest *m =
		nri__register_plugin_request__unpack(NULL, req->payload_len, req->payload);
	const char *wrong = m ? wrong_name(s, m) : "undecodable";
	if (c->state != CONN_ACCEPTED)
		wrong = "it is registered already";
	if (wrong) {
		sim_problem(s, "invalid plugin: %s", wrong);
		(void)rpc_reply_error(req, TTRPC_UNKNOWN, "invalid plugin: %s", wrong);
		nri__register_plugin_request__free_unpacked(m, NULL);
		conn_drop(s, wrong);
		return;
	}
	(void)snprintf(c->name, sizeof c->name, "%s-%s", m->plugin_idx, m->plugin_name);
	nri__register_plugin_request__free_unpacked(m, NULL);
	loop_timer_disarm(c->registration);
	c->state = CONN_REGISTERED;
	if (c->faults.configure_first)
		configure(c);
	(void)rpc_reply(req, NULL);
	if (!c->faults.configure_first)
		configure(c);
}

/* ---- what the plugin asks ----------------------------------------------------------------------------------------- */

static void carry_out(struct conn *c, struct waiting *w)
{
	struct sim *s = c->s;
	struct err err = ERR_INIT;
	const Nri__UpdateContainersRequest *m = w->msg;
	json_t *details = json_object();
	int r = check_message(s, &m->base, "UpdateContainers");
	if (!r)
		r = check_claims(s, m->update, m->n_update, &err);
	uint64_t first = s->n_updates + 1;
	unsigned failed = r ? 0 : apply_updates(s, m->update, m->n_update, "unsolicited");
	if (m->n_evict)
		sim_problem(s, "evictions, which no release carries out");
	if (r || failed)
		(void)rpc_reply_error(w->req, TTRPC_UNKNOWN,
				      "NRI update of some containers failed");
	else
		(void)rpc_reply(w->req, NULL);
	s->n_unsolicited++;
	put_int(details, "first", (int64_t)first);
	put_int(details, "updates", (int64_t)m->n_update);
	put_int(details, "failed", failed);
	sim_event(s, "updated", details);
	nri__update_containers_request__free_unpacked(w->msg, NULL);
	free(w);
}

void conn_carry_out_waiting(struct conn *c)
{
	while (c->waiting && !c->s->busy && c->state == CONN_ACTIVE) {
		struct waiting *w = c->waiting;
		c->waiting = w->next;
		if (!c->waiting)
			c->last_waiting = NULL;
		carry_out(c, w);
	}
	sim_wake(c->s);
}

/* Waits for the lock, in order of arrival. */
static void asked_for_updates(struct conn *c, struct rpc_request *req)
{
	struct waiting *w = calloc(1, sizeof *w);
	if (w)
		w->msg = nri__update_containers_request__unpack(NULL, req->payload_len,
								req->payload);
	if (!w || !w->msg) {
		free(w);
		sim_problem(c->s, "UpdateContainers: undecodable");
		(void)rpc_reply_error(req, TTRPC_INVALID_ARGUMENT, "undecodable");
		return;
	}
	w->req = req;
	if (c->last_waiting)
		c->last_waiting->next = w;
	else
		c->waiting = w;
	c->last_waiting = w;
	conn_carry_out_waiting(c);
}

static void handle(struct rpc_request *req, void *arg)
{
	struct conn *c = arg;
	if (!str_eq(req->service, CONN_RUNTIME_SERVICE)) {
		sim_problem(c->s, "a call of the service %s", req->service);
		(void)rpc_reply_error(req, TTRPC_UNIMPLEMENTED, "service %s", req->service);
	} else if (str_eq(req->method, "RegisterPlugin")) {
		registered(c, req);
	} else if (str_eq(req->method, "UpdateContainers")) {
		asked_for_updates(c, req);
	} else {
		sim_problem(c->s, "a call of the method %s", req->method);
		(void)rpc_reply_error(req, TTRPC_UNIMPLEMENTED, "method %s", req->method);
	}
}

/* ---- the socket --------------------------------------------------------------------------------------------------- */

static int take_plugin(struct conn *c, int fd, struct err *err)
{
	struct sim *s = c->s;
	const struct trunk_config config = {
		.mux = true,
		.first_max = release_one_frame(s->release) ? SIZE_MAX : 0,
		.closed = closed,
		.arg = c,
	};
	int inner;
	int r = tap_new(s->loop, fd, bad_frame, c, &c->tap, &inner, err);
	if (!r)
		r = trunk_new(s->loop, inner, &config, &c->trunk, err);
	if (!r)
		r = loop_timer_arm(c->registration, s->registration_timeout_ms);
	if (r) {
		c->tap = tap_free(c->tap);
		return r;
	}
	c->rpc = trunk_rpc(c->trunk, MUX_CONN_PLUGIN);
	c->no_methods = !release_has_methods(s->release);
	rpc_serve(trunk_rpc(c->trunk, MUX_CONN_RUNTIME), handle, c);
	c->state = CONN_ACCEPTED;
	return loop_io_set(c->io, 0);
}

static void on_connect(unsigned events, void *arg)
{
	struct conn *c = arg;
	struct err err = ERR_INIT;
	(void)events;
	if (c->state != CONN_NOBODY)
		return;
	int fd = wire_accept(c->fd);
	if (fd >= 0 && take_plugin(c, fd, &err))
		sim_problem(c->s, "%s", err.text);
}

int conn_listen(struct sim *s, struct err *err)
{
	if (s->conn)
		return 0;
	struct conn *c = calloc(1, sizeof *c);
	if (!c)
		return err_errno(err, -ENOMEM, "runtime");
	c->s = s;
	c->fd = wire_listen_unix(s->socket, 0600, err);
	int r = c->fd < 0 ? c->fd : 0;
	if (!r) {
		c->io = loop_io_new(s->loop, c->fd, LOOP_READ, on_connect, c);
		c->registration = loop_timer_new(s->loop, late, c);
		c->sync_timer = loop_timer_new(s->loop, sync_late, c);
		r = c->io && c->registration && c->sync_timer ? 0
							      : err_errno(err, -ENOMEM, "runtime");
	}
	s->conn = c;
	if (r)
		conn_close(s);
	return r;
}

void conn_close(struct sim *s)
{
	struct conn *c = s->conn;
	if (!c)
		return;
	conn_drop(s, "the runtime stops");
	s->n_active_before += c->n_active;
	loop_io_free(c->io);
	loop_timer_free(c->registration);
	loop_timer_free(c->sync_timer);
	if (c->fd >= 0) {
		(void)close(c->fd);
		(void)unlink(s->socket);
	}
	free(c);
	s->conn = NULL;
}

/* ---- questions ---------------------------------------------------------------------------------------------------- */

enum conn_state conn_state(const struct sim *s)
{
	return s->conn ? s->conn->state : CONN_NOBODY;
}

uint64_t conn_n_active(const struct sim *s)
{
	return s->n_active_before + (s->conn ? s->conn->n_active : 0);
}

bool conn_subscribed(const struct sim *s, Nri__Event event)
{
	return conn_state(s) == CONN_ACTIVE && s->conn->events >> (event - 1) & 1;
}

void conn_set_faults(struct sim *s, const struct conn_faults *faults)
{
	if (s->conn)
		s->conn->faults = *faults;
}

static bool is_active(struct sim *s, void *arg)
{
	return conn_state(s) == CONN_ACTIVE && conn_n_active(s) > *(const uint64_t *)arg;
}

int conn_wait_active(struct sim *s, uint64_t after, uint64_t timeout_ms, struct err *err)
{
	int r = sim_wait(s, is_active, &after, timeout_ms);
	if (!r)
		return 0;
	return err_set(err, r, "nri-rpd has not been synchronized within %llu ms",
		       (unsigned long long)timeout_ms);
}

/* ---- asking ------------------------------------------------------------------------------------------------------- */

struct question {
	struct conn_answer *answer;
	bool done;
};

static void answered(const struct rpc_result *result, void *arg)
{
	struct question *q = arg;
	struct conn_answer *a = q->answer;
	q->done = true;
	sim_wake(a->s);
	a->error = result->error;
	a->code = result->code;
	a->text = strdup(result->text);
	a->payload = malloc(result->payload_len + 1);
	if (a->payload && result->payload_len) {
		memcpy(a->payload, result->payload, result->payload_len);
		a->payload_len = result->payload_len;
	}
}

static bool is_done(struct sim *s, void *arg)
{
	(void)s;
	return ((const struct question *)arg)->done;
}

void conn_ask(struct sim *s, const char *method, const ProtobufCMessage *msg,
	      struct conn_answer *ret)
{
	struct question q = {.answer = ret};
	uint64_t start = clock_us();
	*ret = (struct conn_answer){.s = s, .error = -ENOTCONN};
	if (conn_state(s) != CONN_ACTIVE)
		return;
	s->busy = true;
	int r = rpc_call(s->conn->rpc, CONN_PLUGIN_SERVICE, method, msg, s->request_timeout_ms,
			 answered, &q);
	if (r) {
		ret->error = r;
		sim_problem(s, "%s could not be sent: %s", method, strerror(-r));
	} else if (sim_wait(s, is_done, &q, UINT64_MAX)) {
		conn_drop(s, "interrupted"); /* which ends the call */
	}
	s->busy = false;
	ret->took_us = clock_us() - start;
	if (ret->error == -ETIMEDOUT) {
		sim_problem(s, "%s was not answered within %llu ms", method,
			    (unsigned long long)s->request_timeout_ms);
		conn_drop(s, "it was late");
	} else if (ret->error == -EBADMSG) {
		sim_problem(s, "%s: undecodable answer", method);
		conn_drop(s, "it broke the protocol");
	} else if (ret->error == -ECONNRESET) {
		conn_drop(s, "it closed the connection");
	}
	if (s->conn)
		conn_carry_out_waiting(s->conn);
}

void conn_answer_fini(struct conn_answer *answer)
{
	free(answer->text);
	free(answer->payload);
	*answer = (struct conn_answer){0};
}

/* ---- events ------------------------------------------------------------------------------------------------------- */

struct event_kind {
	Nri__Event event;
	const char *method;
	bool always; /* a method of its own in every release that has the event */
};

static const struct event_kind kinds[] = {
	{NRI__EVENT__RUN_POD_SANDBOX, "RunPodSandbox", false},
	{NRI__EVENT__STOP_POD_SANDBOX, "StopPodSandbox", false},
	{NRI__EVENT__REMOVE_POD_SANDBOX, "RemovePodSandbox", false},
	{NRI__EVENT__CREATE_CONTAINER, "CreateContainer", true},
	{NRI__EVENT__POST_CREATE_CONTAINER, "PostCreateContainer", false},
	{NRI__EVENT__START_CONTAINER, "StartContainer", false},
	{NRI__EVENT__POST_START_CONTAINER, "PostStartContainer", false},
	{NRI__EVENT__UPDATE_CONTAINER, "UpdateContainer", true},
	{NRI__EVENT__POST_UPDATE_CONTAINER, "PostUpdateContainer", false},
	{NRI__EVENT__STOP_CONTAINER, "StopContainer", true},
	{NRI__EVENT__REMOVE_CONTAINER, "RemoveContainer", false},
};

static const struct event_kind *kind_of(Nri__Event event)
{
	for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (kinds[i].event == event)
			return &kinds[i];
	return NULL;
}

/* The requests of events have pod, container and resources as fields 1 to 3; those that a request lacks are not set. */
static void ask_by_method(struct sim *s, const struct event_kind *k, Nri__PodSandbox *pod,
			  Nri__Container *ctr, Nri__LinuxResources *res, struct conn_answer *ret)
{
	if (k->event == NRI__EVENT__UPDATE_CONTAINER) {
		Nri__UpdateContainerRequest m = NRI__UPDATE_CONTAINER_REQUEST__INIT;
		m.pod = pod;
		m.container = ctr;
		m.linux_resources = res;
		conn_ask(s, k->method, &m.base, ret);
	} else if (ctr) {
		/* Fields 1 and 2 of all of them. */
		Nri__CreateContainerRequest m = NRI__CREATE_CONTAINER_REQUEST__INIT;
		m.pod = pod;
		m.container = ctr;
		conn_ask(s, k->method, &m.base, ret);
	} else {
		Nri__RunPodSandboxRequest m = NRI__RUN_POD_SANDBOX_REQUEST__INIT;
		m.pod = pod;
		conn_ask(s, k->method, &m.base, ret);
	}
}

static void ask_by_state_change(struct sim *s, const struct event_kind *k, Nri__PodSandbox *pod,
				Nri__Container *ctr, struct conn_answer *ret)
{
	Nri__StateChangeEvent m = NRI__STATE_CHANGE_EVENT__INIT;
	m.event = k->event;
	m.pod = pod;
	m.container = ctr;
	conn_ask(s, "StateChange", &m.base, ret);
}

void conn_event(struct sim *s, Nri__Event event, const struct sim_pod *pod,
		const struct sim_ctr *ctr, const struct resources *resources,
		struct conn_answer *ret)
{
	const struct event_kind *k = kind_of(event);
	_arena_ struct arena *a = arena_new(16 << 10, 0);
	*ret = (struct conn_answer){.s = s};
	if (!k || !conn_subscribed(s, event))
		return;
	Nri__PodSandbox *pod_message = a ? message_pod(s, a, pod) : NULL;
	Nri__Container *ctr_message = a && ctr ? message_ctr(s, a, ctr) : NULL;
	Nri__LinuxResources *res = a && resources ? message_resources(a, resources, true) : NULL;
	if (!pod_message || (ctr && !ctr_message) || (resources && !res)) {
		ret->error = -ENOMEM;
		return;
	}
	if (!k->always && s->conn->no_methods) {
		ask_by_state_change(s, k, pod_message, ctr_message, ret);
		return;
	}
	ask_by_method(s, k, pod_message, ctr_message, res, ret);
	if (k->always || ret->error != -EREMOTEIO || ret->code != TTRPC_UNIMPLEMENTED)
		return;
	sim_problem(s, "%s is not implemented", k->method);
	if (s->conn)
		s->conn->no_methods = true;
	conn_answer_fini(ret);
	ask_by_state_change(s, k, pod_message, ctr_message, ret);
}
