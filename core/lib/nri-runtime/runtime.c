/* SPDX-License-Identifier: Apache-2.0 */
/* Accepts a plugin, handles its registration and synchronization, and grants the lock to users. */
#include "core/lib/nri-runtime/runtime.h"

#include <assert.h>
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <utlist.h>

#include "core/lib/nri-runtime/sync.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/str.h"
#include "core/lib/wire/listener.h"
#include "core/lib/wire/nri_protocol.h"
#include "core/lib/wire/trunk.h"

#define SOCKET_MODE 0600
#define STATE_CHANGE "StateChange"
#define UPDATES_WAITING_MAX 64u /* largest number of requests of one plugin */

/* Unsolicited updates of the plugin. */
struct asked {
	struct nri_runtime *runtime;
	struct rpc_request *request;
	Nri__UpdateContainersRequest *msg;
	struct nri_turn turn;
	struct asked *prev, *next;
};

struct nri_runtime {
	struct nri_runtime_config config;
	struct listener *listener;
	struct loop_timer *registration;
	enum nri_runtime_state state;
	struct trunk *trunk;
	struct rpc *rpc; /* connection for calls to the plugin */
	int next_fd; /* plugin that connected while another was connected; -1: none */
	uint32_t events;
	char name[128];
	bool no_methods; /* the plugin's NRI has no separate methods: use StateChange */
	bool configure_first;
	bool locked, giving, freeing;
	struct nri_turn *turns;
	struct nri_turn sync_turn;
	struct nri_sync *sync; /* running synchronization */
	struct asked *asked; /* updates that are waiting or being carried out */
	unsigned n_asked;
};

/* ---- lock ------------------------------------------------------------------------------------ */

/* Grants the lock to waiting turns in a loop, so that turns which end at once do not nest. */
static void give_turns(struct nri_runtime *r)
{
	if (r->giving)
		return;
	r->giving = true;
	while (!r->locked && r->turns && !r->freeing) {
		struct nri_turn *turn = r->turns;
		DL_DELETE(r->turns, turn);
		r->locked = true;
		turn->fn(turn->arg);
	}
	r->giving = false;
}

void nri_runtime_lock(struct nri_runtime *r, struct nri_turn *turn)
{
	DL_APPEND(r->turns, turn);
	give_turns(r);
}

void nri_runtime_unlock(struct nri_runtime *r)
{
	assert(r->locked);
	r->locked = false;
	give_turns(r);
}

void nri_runtime_forget(struct nri_runtime *r, struct nri_turn *turn)
{
	struct nri_turn *t;
	DL_FOREACH (r->turns, t)
		if (t == turn) {
			DL_DELETE(r->turns, t);
			return;
		}
}

/* ---- end of a plugin ------------------------------------------------------------------------- */

static void take_plugin(struct nri_runtime *r, int fd);

static void asked_free(struct asked *a)
{
	DL_DELETE(a->runtime->asked, a);
	a->runtime->n_asked--;
	nri__update_containers_request__free_unpacked(a->msg, NULL);
	free(a);
}

/* Refuses the waiting updates; one that is being carried out is freed afterwards. */
static void refuse_asked(struct nri_runtime *r)
{
	struct asked *a, *next;
	DL_FOREACH_SAFE(r->asked, a, next)
	{
		(void)rpc_reply_error(a->request, TTRPC_UNAVAILABLE, "the connection was closed");
		a->request = NULL;
		if (!a->turn.fn)
			continue;
		nri_runtime_forget(r, &a->turn);
		asked_free(a);
	}
}

static void runtime_problem(const struct nri_runtime *r, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void runtime_problem(const struct nri_runtime *r, const char *fmt, ...)
{
	char text[ERR_TEXT_MAX];
	va_list ap;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	if (r->config.problem)
		r->config.problem(text, r->config.arg);
}

void nri_runtime_drop(struct nri_runtime *r, const char *why)
{
	if (r->state == NRI_RUNTIME_NOBODY)
		return;
	bool active = r->state == NRI_RUNTIME_ACTIVE;
	r->state = NRI_RUNTIME_NOBODY;
	loop_timer_disarm(r->registration);
	nri_runtime_forget(r, &r->sync_turn);
	refuse_asked(r);
	r->rpc = NULL;
	trunk_free(TAKE(r->trunk)); /* ends the calls */
	if (r->config.gone)
		r->config.gone(active, why, r->config.arg);
	if (r->state == NRI_RUNTIME_NOBODY && r->next_fd >= 0 && !r->freeing)
		take_plugin(r, take_fd(&r->next_fd));
}

static void on_closed(struct trunk *trunk, const struct err *err, void *arg)
{
	nri_runtime_drop(arg, err->text);
}

static void on_late(void *arg)
{
	runtime_problem(arg, "a plugin connected but does not register");
	nri_runtime_drop(arg, "no registration in time");
}

/* Drops the plugin if the failure of a call requires it. */
static void drop_if_broken(struct nri_runtime *r, const char *method,
			   const struct rpc_result *result)
{
	if (result->error == -ETIMEDOUT) {
		runtime_problem(r, "%s was not answered within %u ms", method,
				r->config.request_timeout_ms);
		nri_runtime_drop(r, "it exceeded the request timeout");
	} else if (result->error == -EBADMSG) {
		runtime_problem(r, "%s: undecodable reply", method);
		nri_runtime_drop(r, "it violated the protocol");
	}
}

/* ---- synchronization ------------------------------------------------------------------------- */

/* Asks the user for the existing pods and containers, under the lock. */
static void on_sync_turn(void *arg)
{
	struct nri_runtime *r = arg;
	if (r->state == NRI_RUNTIME_CONFIGURED)
		r->config.synchronize(r->config.arg);
	else
		nri_runtime_unlock(r);
}

struct sync_end {
	struct nri_runtime *runtime;
	nri_synchronized done;
	void *arg;
};

static void on_synced(const Nri__SynchronizeResponse *m, const char *why, void *arg)
{
	struct sync_end end = *(struct sync_end *)arg;
	struct nri_runtime *r = end.runtime;
	free(arg);
	r->sync = nri_sync_free(r->sync);
	bool active = m && r->state == NRI_RUNTIME_CONFIGURED;
	if (active)
		r->state = NRI_RUNTIME_ACTIVE;
	else if (r->state == NRI_RUNTIME_CONFIGURED)
		runtime_problem(r, "Synchronize: %s", why);
	end.done(active ? m : NULL, end.arg);
	if (!m)
		nri_runtime_drop(r, "Synchronize has failed");
	else if (r->state == NRI_RUNTIME_ACTIVE && r->config.came)
		r->config.came(r->name, r->config.arg);
}

void nri_runtime_synchronize(struct nri_runtime *r, const struct nri_existing *all,
			     nri_synchronized done, void *arg)
{
	struct sync_end *end = malloc(sizeof *end);
	assert(r->locked && !r->sync);
	if (!end || r->state != NRI_RUNTIME_CONFIGURED) {
		free(end);
		done(NULL, arg);
		nri_runtime_drop(r, "out of memory");
		return;
	}
	*end = (struct sync_end){r, done, arg};
	r->sync = nri_sync_new(
		&(struct nri_sync_config){.rpc = r->rpc,
					  .all = *all,
					  .whole = !release_has_timeouts(r->config.release),
					  .timeout_ms = r->config.request_timeout_ms,
					  .done = on_synced,
					  .arg = end});
	if (!r->sync || nri_sync_begin(r->sync))
		on_synced(NULL, "the request could not be sent", end);
}

void nri_runtime_not_synchronized(struct nri_runtime *r, const char *why)
{
	nri_runtime_drop(r, why);
	nri_runtime_unlock(r);
}

/* ---- registration and configuration ---------------------------------------------------------- */

static void on_configured(const struct rpc_result *result, void *arg)
{
	struct nri_runtime *r = arg;
	uint32_t known = release_events(r->config.release);
	if (result->error == -ECANCELED || r->state != NRI_RUNTIME_REGISTERED)
		return;
	Nri__ConfigureResponse *m = result->error
					    ? NULL
					    : nri__configure_response__unpack(
						      NULL, result->payload_len, result->payload);
	if (!m) {
		runtime_problem(r, "Configure: %s",
				result->error ? result->text : "undecodable reply");
		nri_runtime_drop(r, "Configure has failed");
		return;
	}
	uint32_t events = (uint32_t)m->events;
	nri__configure_response__free_unpacked(m, NULL);
	if (events & ~known) {
		runtime_problem(r, "Configure: invalid plugin events: 0x%x", events & ~known);
		nri_runtime_drop(r, "it subscribes to unknown events");
		return;
	}
	r->events = events ? events : known;
	r->state = NRI_RUNTIME_CONFIGURED;
	nri_runtime_lock(r, &r->sync_turn);
}

static void runtime_configure(struct nri_runtime *r)
{
	const struct nri_runtime_config *c = &r->config;
	Nri__ConfigureRequest m = NRI__CONFIGURE_REQUEST__INIT;
	m.runtime_name = (char *)(uintptr_t)c->name;
	m.runtime_version = (char *)(uintptr_t)c->version;
	m.nri_version = (char *)(uintptr_t)c->release->version;
	if (release_has_timeouts(c->release)) {
		m.registration_timeout = c->registration_timeout_ms;
		m.request_timeout = c->request_timeout_ms;
	}
	if (rpc_call(r->rpc, NRI_PLUGIN_SERVICE, "Configure", &m.base, c->request_timeout_ms,
		     on_configured, r))
		nri_runtime_drop(r, "Configure could not be sent");
}

static const char *wrong_name(const struct nri_runtime *r, const Nri__RegisterPluginRequest *m)
{
	const char *index = m->plugin_idx;
	if (!*m->plugin_name)
		return "it has no name";
	for (const char *p = m->plugin_name; release_checks_names(r->config.release) && *p; p++)
		if (!isalnum((unsigned char)*p) && !strchr("_.+-", *p))
			return "its name has a character that is not allowed";
	bool two =
		isdigit((unsigned char)index[0]) && isdigit((unsigned char)index[1]) && !index[2];
	return two ? NULL : "its index is not two digits";
}

static void on_register(struct nri_runtime *r, struct rpc_request *request)
{
	Nri__RegisterPluginRequest *m =
		nri__register_plugin_request__unpack(NULL, request->payload_len, request->payload);
	const char *wrong = m ? wrong_name(r, m) : "undecodable";
	if (r->state != NRI_RUNTIME_ACCEPTED)
		wrong = "it is already registered";
	if (!wrong)
		(void)snprintf(r->name, sizeof r->name, "%s-%s", m->plugin_idx, m->plugin_name);
	nri__register_plugin_request__free_unpacked(m, NULL);
	if (wrong) {
		runtime_problem(r, "invalid plugin: %s", wrong);
		(void)rpc_reply_error(request, TTRPC_UNKNOWN, "invalid plugin: %s", wrong);
		nri_runtime_drop(r, wrong);
		return;
	}
	loop_timer_disarm(r->registration);
	r->state = NRI_RUNTIME_REGISTERED;
	if (r->configure_first)
		runtime_configure(r);
	(void)rpc_reply(request, NULL);
	if (!r->configure_first)
		runtime_configure(r);
}

/* ---- requests of the plugin ------------------------------------------------------------------ */

static void on_update_turn(void *arg)
{
	struct asked *a = arg;
	a->turn.fn = NULL; /* no longer waiting */
	a->runtime->config.update(a->msg, a->runtime->config.arg);
}

void nri_runtime_updated(struct nri_runtime *r, bool failed)
{
	struct asked *a = r->asked;
	assert(a && !a->turn.fn);
	if (a->request && failed)
		(void)rpc_reply_error(a->request, TTRPC_UNKNOWN,
				      "NRI update of some containers failed");
	else if (a->request)
		(void)rpc_reply(a->request, NULL);
	asked_free(a);
	nri_runtime_unlock(r);
}

static void on_update_request(struct nri_runtime *r, struct rpc_request *request)
{
	struct asked *a = r->n_asked < UPDATES_WAITING_MAX ? calloc(1, sizeof *a) : NULL;
	if (a)
		a->msg = nri__update_containers_request__unpack(NULL, request->payload_len,
								request->payload);
	if (!a || !a->msg) {
		bool full = !a;
		free(a);
		runtime_problem(r, "UpdateContainers: %s",
				full ? "too many requests are waiting" : "undecodable");
		(void)rpc_reply_error(request,
				      full ? TTRPC_RESOURCE_EXHAUSTED : TTRPC_INVALID_ARGUMENT,
				      full ? "too many updates are waiting" : "undecodable");
		return;
	}
	a->runtime = r;
	a->request = request;
	a->turn = (struct nri_turn){.fn = on_update_turn, .arg = a};
	DL_APPEND(r->asked, a);
	r->n_asked++;
	nri_runtime_lock(r, &a->turn);
}

static void on_request(struct rpc_request *request, void *arg)
{
	struct nri_runtime *r = arg;
	if (!str_eq(request->service, NRI_RUNTIME_SERVICE)) {
		runtime_problem(r, "a call of the service %s", request->service);
		(void)rpc_reply_error(request, TTRPC_UNIMPLEMENTED, "service %s", request->service);
	} else if (str_eq(request->method, "RegisterPlugin")) {
		on_register(r, request);
	} else if (str_eq(request->method, "UpdateContainers")) {
		on_update_request(r, request);
	} else {
		runtime_problem(r, "a call of the method %s", request->method);
		(void)rpc_reply_error(request, TTRPC_UNIMPLEMENTED, "method %s", request->method);
	}
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* Returns true if every release with this event has a separate method for it. */
static bool has_method_always(Nri__Event event)
{
	return event == NRI__EVENT__CREATE_CONTAINER || event == NRI__EVENT__UPDATE_CONTAINER ||
	       event == NRI__EVENT__STOP_CONTAINER || event == NRI__EVENT__UPDATE_POD_SANDBOX;
}

/* A call to a plugin about an event. */
struct question {
	struct nri_runtime *runtime;
	struct nri_about about;
	uint64_t timeout_ms;
	const char *method; /* the event's own, or STATE_CHANGE */
	rpc_done done;
	void *arg;
};

static int runtime_ask(struct question *q);

static void on_answer(const struct rpc_result *result, void *arg)
{
	struct question q = *(struct question *)arg;
	if (!has_method_always(q.about.event) && !str_eq(q.method, STATE_CHANGE) &&
	    result->error == -EREMOTEIO && result->code == TTRPC_UNIMPLEMENTED) {
		runtime_problem(q.runtime, "%s is not implemented", q.method);
		q.runtime->no_methods = true;
		if (runtime_ask(arg) == 0)
			return;
	}
	free(arg);
	q.done(result, q.arg);
	if (result->error != -ECANCELED)
		drop_if_broken(q.runtime, q.method, result);
}

static int runtime_send(const struct question *q, const ProtobufCMessage *m)
{
	return rpc_call(q->runtime->rpc, NRI_PLUGIN_SERVICE, q->method, m, q->timeout_ms, on_answer,
			(void *)(uintptr_t)q);
}

/* Sends an event. Its request has pod, container and resources as fields 1 to 3; unused ones are
 * not set. */
static int runtime_ask(struct question *q)
{
	const struct nri_about *about = &q->about;
	const char *method = nri_event_method(about->event);
	bool own = method && (has_method_always(about->event) || !q->runtime->no_methods);
	q->method = own ? method : STATE_CHANGE;
	if (!own) {
		Nri__StateChangeEvent m = NRI__STATE_CHANGE_EVENT__INIT;
		m.event = about->event;
		m.pod = about->pod;
		m.container = about->ctr;
		return runtime_send(q, &m.base);
	}
	if (about->event == NRI__EVENT__UPDATE_CONTAINER) {
		Nri__UpdateContainerRequest m = NRI__UPDATE_CONTAINER_REQUEST__INIT;
		m.pod = about->pod;
		m.container = about->ctr;
		m.linux_resources = about->resources;
		return runtime_send(q, &m.base);
	}
	if (about->event == NRI__EVENT__UPDATE_POD_SANDBOX) {
		Nri__UpdatePodSandboxRequest m = NRI__UPDATE_POD_SANDBOX_REQUEST__INIT;
		m.pod = about->pod;
		m.overhead_linux_resources = about->overhead;
		m.linux_resources = about->resources;
		return runtime_send(q, &m.base);
	}
	if (about->ctr) {
		/* Pod and container are fields 1 and 2 of all these requests. */
		Nri__CreateContainerRequest m = NRI__CREATE_CONTAINER_REQUEST__INIT;
		m.pod = about->pod;
		m.container = about->ctr;
		return runtime_send(q, &m.base);
	}
	Nri__RunPodSandboxRequest m = NRI__RUN_POD_SANDBOX_REQUEST__INIT;
	m.pod = about->pod;
	return runtime_send(q, &m.base);
}

const char *nri_runtime_plugin(const struct nri_runtime *r)
{
	return r->name;
}

bool nri_runtime_is_active(const struct nri_runtime *r)
{
	return r->state == NRI_RUNTIME_ACTIVE;
}

bool nri_runtime_is_subscribed(const struct nri_runtime *r, Nri__Event event)
{
	return nri_runtime_is_active(r) && r->events >> (event - 1) & 1;
}

void nri_runtime_configure_first(struct nri_runtime *r, bool first)
{
	r->configure_first = first;
}

int nri_runtime_event(struct nri_runtime *r, const struct nri_about *about, uint64_t timeout_ms,
		      rpc_done done, void *arg)
{
	uint64_t limit = r->config.request_timeout_ms;
	assert(r->locked);
	if (!nri_runtime_is_subscribed(r, about->event))
		return 1;
	struct question *q = malloc(sizeof *q);
	if (!q)
		return -ENOMEM;
	*q = (struct question){.runtime = r,
			       .about = *about,
			       .timeout_ms = timeout_ms && timeout_ms < limit ? timeout_ms : limit,
			       .done = done,
			       .arg = arg};
	int error = runtime_ask(q);
	if (error)
		free(q);
	return error;
}

/* ---- socket ---------------------------------------------------------------------------------- */

static void take_plugin(struct nri_runtime *r, int fd)
{
	struct err err = ERR_INIT;
	const struct trunk_config config = {
		.mux = true,
		.first_max = release_one_frame(r->config.release) ? SIZE_MAX : 0,
		.closed = on_closed,
		.arg = r,
	};
	int error = r->config.wrap ? r->config.wrap(fd, &fd, &err, r->config.arg) : 0;
	if (!error)
		error = trunk_new(r->config.loop, fd, &config, &r->trunk, &err);
	if (error) {
		runtime_problem(r, "a plugin is refused: %s", err.text);
		if (r->config.gone)
			r->config.gone(false, err.text, r->config.arg);
		return;
	}
	*r->name = '\0';
	r->no_methods = !release_has_methods(r->config.release);
	r->rpc = trunk_rpc(r->trunk, MUX_CONN_PLUGIN);
	rpc_serve(trunk_rpc(r->trunk, MUX_CONN_RUNTIME), on_request, r);
	r->state = NRI_RUNTIME_ACCEPTED;
	(void)loop_timer_arm(r->registration, r->config.registration_timeout_ms);
}

/* Handles a new connection. While another plugin is connected the new one waits, because the other
 * one may be disconnecting. */
static void on_connection(int fd, void *arg)
{
	struct nri_runtime *r = arg;
	if (fd < 0)
		return;
	if (r->state == NRI_RUNTIME_NOBODY) {
		take_plugin(r, fd);
		return;
	}
	if (r->next_fd >= 0)
		(void)close(r->next_fd);
	r->next_fd = fd;
}

int nri_runtime_new(const struct nri_runtime_config *config, struct nri_runtime **ret,
		    struct err *err)
{
	struct nri_runtime *r = calloc(1, sizeof *r);
	if (!r)
		return err_errno(err, -ENOMEM, "%s", config->socket);
	r->config = *config;
	r->next_fd = -1;
	r->sync_turn = (struct nri_turn){.fn = on_sync_turn, .arg = r};
	r->registration = loop_timer_new(config->loop, on_late, r);
	int error = r->registration
			    ? listener_new(config->loop,
					   &(struct listener_config){.what = "NRI socket",
								     .path = config->socket,
								     .mode = SOCKET_MODE,
								     .accepted = on_connection,
								     .arg = r},
					   &r->listener, err)
			    : err_errno(err, -ENOMEM, "%s", config->socket);
	if (error) {
		nri_runtime_free(r);
		return error;
	}
	*ret = r;
	return 0;
}

struct nri_runtime *nri_runtime_free(struct nri_runtime *r)
{
	if (!r)
		return NULL;
	r->freeing = true;
	listener_free(r->listener);
	nri_runtime_drop(r, "the runtime is stopping");
	while (r->asked)
		asked_free(r->asked);
	if (r->next_fd >= 0)
		(void)close(r->next_fd);
	loop_timer_free(r->registration);
	free(r);
	return NULL;
}
