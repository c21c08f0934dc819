/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-runtime/runtime.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <utlist.h>

#include "core/nri-runtime/sync.h"
#include "core/util/cleanup.h"
#include "core/util/log.h"
#include "core/util/str.h"
#include "core/wire/listener.h"
#include "core/wire/trunk.h"

#define LOG_SOURCE "nri"
#define RUNTIME_SERVICE "nri.pkg.api.v1alpha1.Runtime"
#define SOCKET_MODE 0600
#define UPDATES_WAITING_MAX 64u /* requests of one plugin */
#define EVENTS_KNOWN 0x3fffu /* bit (event - 1) */

/* Updates that the plugin asks for by itself. */
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
	struct rpc *rpc; /* the end that asks */
	int next_fd; /* a plugin that came while another was there; -1: none */
	uint32_t events;
	char name[128];
	bool locked, freeing;
	struct nri_turn *turns;
	struct nri_turn sync_turn;
	struct nri_sync *sync; /* under way */
	struct asked *asked; /* that wait for their turn, or are being carried out */
	unsigned n_asked;
};

/* ---- the lock ---------------------------------------------------------------------------------------------------------- */

static void give_turns(struct nri_runtime *r)
{
	while (!r->locked && r->turns) {
		struct nri_turn *turn = r->turns;
		DL_DELETE(r->turns, turn);
		r->locked = true;
		turn->fn(turn->arg);
	}
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
	if (!r->freeing)
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

/* ---- the end of a plugin ----------------------------------------------------------------------------------------------- */

static void take_plugin(struct nri_runtime *r, int fd);

static void asked_free(struct asked *a)
{
	DL_DELETE(a->runtime->asked, a);
	a->runtime->n_asked--;
	nri__update_containers_request__free_unpacked(a->msg, NULL);
	free(a);
}

/* Those that wait; the one that is being carried out is freed when that is done. */
static void refuse_asked(struct nri_runtime *r)
{
	struct asked *a, *next;
	DL_FOREACH_SAFE(r->asked, a, next)
	{
		(void)rpc_reply_error(a->request, TTRPC_UNAVAILABLE, "the connection has ended");
		a->request = NULL;
		if (!a->turn.fn)
			continue;
		nri_runtime_forget(r, &a->turn);
		asked_free(a);
	}
}

static void drop(struct nri_runtime *r, const char *why)
{
	if (r->state == NRI_RUNTIME_NOBODY)
		return;
	bool active = r->state == NRI_RUNTIME_ACTIVE;
	r->state = NRI_RUNTIME_NOBODY;
	log_notice("the plugin %s has gone: %s", *r->name ? r->name : "(not registered)", why);
	loop_timer_disarm(r->registration);
	nri_runtime_forget(r, &r->sync_turn);
	refuse_asked(r);
	r->rpc = NULL;
	trunk_free(TAKE(r->trunk)); /* ends the questions */
	if (active && r->config.changed)
		r->config.changed(false, why, r->config.arg);
	if (r->state == NRI_RUNTIME_NOBODY && r->next_fd >= 0 && !r->freeing)
		take_plugin(r, take_fd(&r->next_fd));
}

static void on_closed(struct trunk *trunk, const struct err *err, void *arg)
{
	(void)trunk;
	drop(arg, err->text);
}

static void on_late(void *arg)
{
	drop(arg, "it did not register in time");
}

/* What a failed question means for whoever was asked. */
static void drop_if_broken(struct nri_runtime *r, const struct rpc_result *result)
{
	if (result->error == -ETIMEDOUT)
		drop(r, "it did not answer in time");
	else if (result->error == -EBADMSG)
		drop(r, "its answer makes no sense");
}

/* ---- synchronisation --------------------------------------------------------------------------------------------------- */

/* The turn has come: the user is to say what there is. */
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
	end.done(active ? m : NULL, end.arg);
	if (!m)
		drop(r, why);
	else if (active && r->config.changed)
		r->config.changed(true, r->name, r->config.arg);
}

void nri_runtime_synchronize(struct nri_runtime *r, Nri__PodSandbox **pods, size_t n_pods,
			     Nri__Container **ctrs, size_t n_ctrs, nri_synchronized done, void *arg)
{
	struct sync_end *end = malloc(sizeof *end);
	assert(r->locked && !r->sync);
	if (!end || r->state != NRI_RUNTIME_CONFIGURED) {
		free(end);
		done(NULL, arg);
		drop(r, "out of memory");
		return;
	}
	*end = (struct sync_end){r, done, arg};
	r->sync = nri_sync_new(&(struct nri_sync_config){.rpc = r->rpc,
							 .pods = pods,
							 .n_pods = n_pods,
							 .ctrs = ctrs,
							 .n_ctrs = n_ctrs,
							 .timeout_ms = r->config.request_timeout_ms,
							 .done = on_synced,
							 .arg = end});
	if (!r->sync || nri_sync_begin(r->sync))
		on_synced(NULL, "Synchronize could not be sent", end);
}

void nri_runtime_not_synchronized(struct nri_runtime *r, const char *why)
{
	drop(r, why);
	nri_runtime_unlock(r);
}

/* ---- registration and configuration ------------------------------------------------------------------------------------ */

static void on_configured(const struct rpc_result *result, void *arg)
{
	struct nri_runtime *r = arg;
	if (result->error == -ECANCELED || r->state != NRI_RUNTIME_REGISTERED)
		return;
	Nri__ConfigureResponse *m = result->error
					    ? NULL
					    : nri__configure_response__unpack(
						      NULL, result->payload_len, result->payload);
	if (!m) {
		drop(r, result->error ? result->text : "its answer to Configure makes no sense");
		return;
	}
	uint32_t events = (uint32_t)m->events;
	nri__configure_response__free_unpacked(m, NULL);
	if (events & ~EVENTS_KNOWN) {
		drop(r, "it subscribes to events that there are not");
		return;
	}
	r->events = events ? events : EVENTS_KNOWN;
	r->state = NRI_RUNTIME_CONFIGURED;
	nri_runtime_lock(r, &r->sync_turn);
}

static void configure(struct nri_runtime *r)
{
	Nri__ConfigureRequest m = NRI__CONFIGURE_REQUEST__INIT;
	m.runtime_name = (char *)(uintptr_t)r->config.name;
	m.runtime_version = (char *)(uintptr_t)r->config.version;
	m.registration_timeout = r->config.registration_timeout_ms;
	m.request_timeout = r->config.request_timeout_ms;
	if (rpc_call(r->rpc, NRI_PLUGIN_SERVICE, "Configure", &m.base, r->config.request_timeout_ms,
		     on_configured, r))
		drop(r, "Configure could not be sent");
}

static const char *wrong_name(const Nri__RegisterPluginRequest *m)
{
	const char *index = m->plugin_idx;
	if (!*m->plugin_name)
		return "it has no name";
	for (const char *p = m->plugin_name; *p; p++)
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
	const char *wrong = m ? wrong_name(m) : "undecodable";
	if (r->state != NRI_RUNTIME_ACCEPTED)
		wrong = "it is registered already";
	if (!wrong)
		(void)snprintf(r->name, sizeof r->name, "%s-%s", m->plugin_idx, m->plugin_name);
	nri__register_plugin_request__free_unpacked(m, NULL);
	if (wrong) {
		(void)rpc_reply_error(request, TTRPC_UNKNOWN, "invalid plugin: %s", wrong);
		drop(r, wrong);
		return;
	}
	loop_timer_disarm(r->registration);
	r->state = NRI_RUNTIME_REGISTERED;
	(void)rpc_reply(request, NULL);
	configure(r);
}

/* ---- what the plugin asks for ------------------------------------------------------------------------------------------ */

static void on_update_turn(void *arg)
{
	struct asked *a = arg;
	a->turn.fn = NULL; /* it waits no more */
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
		(void)rpc_reply_error(request,
				      full ? TTRPC_RESOURCE_EXHAUSTED : TTRPC_INVALID_ARGUMENT,
				      full ? "too many updates wait" : "undecodable");
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
	if (!str_eq(request->service, RUNTIME_SERVICE))
		(void)rpc_reply_error(request, TTRPC_UNIMPLEMENTED, "service %s", request->service);
	else if (str_eq(request->method, "RegisterPlugin"))
		on_register(r, request);
	else if (str_eq(request->method, "UpdateContainers"))
		on_update_request(r, request);
	else
		(void)rpc_reply_error(request, TTRPC_UNIMPLEMENTED, "method %s", request->method);
}

/* ---- questions --------------------------------------------------------------------------------------------------------- */

struct question {
	struct nri_runtime *runtime;
	rpc_done done;
	void *arg;
};

static void on_answer(const struct rpc_result *result, void *arg)
{
	struct question q = *(struct question *)arg;
	free(arg);
	q.done(result, q.arg);
	if (result->error != -ECANCELED)
		drop_if_broken(q.runtime, result);
}

static int ask(struct nri_runtime *r, const char *method, const ProtobufCMessage *m,
	       uint64_t timeout_ms, rpc_done done, void *arg)
{
	struct question *q = malloc(sizeof *q);
	if (!q)
		return -ENOMEM;
	*q = (struct question){r, done, arg};
	int error = rpc_call(r->rpc, NRI_PLUGIN_SERVICE, method, m, timeout_ms, on_answer, q);
	if (error)
		free(q);
	return error;
}

bool nri_runtime_is_active(const struct nri_runtime *r)
{
	return r->state == NRI_RUNTIME_ACTIVE;
}

int nri_runtime_event(struct nri_runtime *r, Nri__Event event, Nri__PodSandbox *pod,
		      Nri__Container *ctr, Nri__LinuxResources *resources, uint64_t timeout_ms,
		      rpc_done done, void *arg)
{
	uint64_t limit = r->config.request_timeout_ms;
	assert(r->locked);
	if (r->state != NRI_RUNTIME_ACTIVE || !(r->events >> (event - 1) & 1))
		return 1;
	if (timeout_ms && timeout_ms < limit)
		limit = timeout_ms;
	if (event == NRI__EVENT__CREATE_CONTAINER || event == NRI__EVENT__STOP_CONTAINER) {
		/* Both requests have the same fields. */
		Nri__CreateContainerRequest m = NRI__CREATE_CONTAINER_REQUEST__INIT;
		m.pod = pod;
		m.container = ctr;
		return ask(r,
			   event == NRI__EVENT__STOP_CONTAINER ? "StopContainer"
							       : "CreateContainer",
			   &m.base, limit, done, arg);
	}
	if (event == NRI__EVENT__UPDATE_CONTAINER) {
		Nri__UpdateContainerRequest m = NRI__UPDATE_CONTAINER_REQUEST__INIT;
		m.pod = pod;
		m.container = ctr;
		m.linux_resources = resources;
		return ask(r, "UpdateContainer", &m.base, limit, done, arg);
	}
	Nri__StateChangeEvent m = NRI__STATE_CHANGE_EVENT__INIT;
	m.event = event;
	m.pod = pod;
	m.container = ctr;
	return ask(r, "StateChange", &m.base, limit, done, arg);
}

/* ---- the socket -------------------------------------------------------------------------------------------------------- */

static void take_plugin(struct nri_runtime *r, int fd)
{
	struct err err = ERR_INIT;
	const struct trunk_config config = {.mux = true, .closed = on_closed, .arg = r};
	if (trunk_new(r->config.loop, fd, &config, &r->trunk, &err)) {
		log_warning("a plugin cannot be taken: %s", err.text);
		return;
	}
	*r->name = '\0';
	r->rpc = trunk_rpc(r->trunk, MUX_CONN_PLUGIN);
	rpc_serve(trunk_rpc(r->trunk, MUX_CONN_RUNTIME), on_request, r);
	r->state = NRI_RUNTIME_ACCEPTED;
	(void)loop_timer_arm(r->registration, r->config.registration_timeout_ms);
}

/* One that comes while another is there waits: that one may just be going. */
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
	drop(r, "the runtime stops");
	while (r->asked)
		asked_free(r->asked);
	if (r->next_fd >= 0)
		(void)close(r->next_fd);
	loop_timer_free(r->registration);
	free(r);
	return NULL;
}
