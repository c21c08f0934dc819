/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-agent/link.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/lib/wire/agent_protocol.h"
#include "core/nri-rp-agent/plugins.h"
#include "core/lib/util/arena.h"
#include "core/lib/util/backoff.h"
#include "core/lib/util/log.h"
#include "core/lib/util/str.h"
#include "core/lib/wire/sock.h"
#include "core/lib/wire/trunk.h"

#define LOG_SOURCE "link"
#define BACKOFF_FIRST_MS 50u
#define BACKOFF_LAST_MS 2000u
#define REGISTER_TIMEOUT_MS 5000u
#define REQUEST_ARENA (64u << 10)
#define PUBLISHED_ARENA (64u << 20)

struct link {
	struct loop *loop;
	/* source of the kubelet's devices; NULL: requests about devices fail */
	struct podres *podres;
	const char *peer;
	char *socket;
	struct trunk *trunk;
	struct loop_timer *reconnect;
	struct backoff backoff;
	/* callbacks for other requests of the daemon; NULL: none */
	const struct link_client *client;
	struct plugins *plugins; /* resource plugins for the daemon's requests; NULL: none */
	bool registered;
	char last_error[ERR_TEXT_MAX]; /* last logged error, which is not logged again */
};

/* ---- answers --------------------------------------------------------------------------------- */

static enum ttrpc_code code_of(int error)
{
	switch (error) {
	case -ETIMEDOUT:
		return TTRPC_DEADLINE_EXCEEDED;
	case -EREMOTEIO:
		return TTRPC_NOT_FOUND;
	case -EMSGSIZE:
	case -E2BIG:
	case -ENOMEM:
	case -ENOBUFS:
		return TTRPC_RESOURCE_EXHAUSTED;
	case -EBADMSG:
		return TTRPC_DATA_LOSS;
	case -EINVAL:
		return TTRPC_INVALID_ARGUMENT;
	default:
		return TTRPC_UNAVAILABLE;
	}
}

static void link_answer(struct rpc_request *req, int error, const char *text,
			const ProtobufCMessage *msg)
{
	if (error)
		(void)rpc_reply_error(req, code_of(error), "%s", text);
	else
		(void)rpc_reply(req, msg);
}

static void on_pod(const struct podres_pod *result, void *arg)
{
	link_answer(arg, result->error, result->text, result->error ? NULL : &result->pod->base);
}

static void on_list(const struct podres_list *result, void *arg)
{
	link_answer(arg, result->error, result->text, &result->list.base);
}

/* ---- requests of the daemon ------------------------------------------------------------------ */

static void serve_pod(struct link *l, struct rpc_request *req, bool forget)
{
	_arena_ struct arena *a = arena_new(4096, REQUEST_ARENA);
	const Agent__PodRequest *m = RPC_MESSAGE(a, agent__pod_request, req);
	if (!m) {
		(void)rpc_reply_error(req, TTRPC_INVALID_ARGUMENT, "cannot decode the request");
		return;
	}
	if (!forget) {
		podres_get(l->podres, m->namespace_, m->name, on_pod, req);
		return;
	}
	podres_forget(l->podres, m->namespace_, m->name);
	(void)rpc_reply(req, NULL);
}

static void serve_published(struct link *l, struct rpc_request *req)
{
	_arena_ struct arena *a = arena_new(4096, PUBLISHED_ARENA);
	const Agent__PublishedRequest *m = RPC_MESSAGE(a, agent__published_request, req);
	int r = m ? l->client->publish(m, l->client->arg) : -EINVAL;
	if (r)
		(void)rpc_reply_error(req, code_of(r), m ? "it is too large" : "cannot decode it");
	else
		(void)rpc_reply(req, NULL);
}

static void serve_evict(struct link *l, struct rpc_request *req)
{
	_arena_ struct arena *a = arena_new(4096, REQUEST_ARENA);
	const Agent__EvictRequest *m = RPC_MESSAGE(a, agent__evict_request, req);
	if (m)
		l->client->evict(m, req, l->client->arg);
	else
		(void)rpc_reply_error(req, TTRPC_INVALID_ARGUMENT, "cannot decode the request");
}

static void serve_tell(struct link *l, struct rpc_request *req)
{
	_arena_ struct arena *a = arena_new(4096, REQUEST_ARENA);
	const Agent__TellRequest *m = RPC_MESSAGE(a, agent__tell_request, req);
	if (!m) {
		(void)rpc_reply_error(req, TTRPC_INVALID_ARGUMENT, "cannot decode the request");
		return;
	}
	l->client->tell(m, l->client->arg);
	(void)rpc_reply(req, NULL);
}

static void serve_check_claim(struct link *l, struct rpc_request *req)
{
	_arena_ struct arena *a = arena_new(4096, REQUEST_ARENA);
	const Agent__Claim *m = RPC_MESSAGE(a, agent__claim, req);
	if (m)
		l->client->check_claim(m, req, l->client->arg);
	else
		(void)rpc_reply_error(req, TTRPC_INVALID_ARGUMENT, "cannot decode the request");
}

static void on_request(struct rpc_request *req, void *arg)
{
	struct link *l = arg;
	if (!str_eq(req->service, AGENT_SERVICE))
		(void)rpc_reply_error(req, TTRPC_UNIMPLEMENTED, "service %s", req->service);
	else if (l->podres && str_eq(req->method, "GetPod"))
		serve_pod(l, req, false);
	else if (l->podres && str_eq(req->method, "ListPods"))
		podres_list(l->podres, on_list, req);
	else if (l->podres && str_eq(req->method, "ForgetPod"))
		serve_pod(l, req, true);
	else if (l->plugins && plugins_serve(l->plugins, req))
		return;
	else if (l->client && l->client->publish && str_eq(req->method, "Published"))
		serve_published(l, req);
	else if (l->client && l->client->evict && str_eq(req->method, "Evict"))
		serve_evict(l, req);
	else if (l->client && l->client->check_claim && str_eq(req->method, "CheckClaim"))
		serve_check_claim(l, req);
	else if (l->client && l->client->tell && str_eq(req->method, "Tell"))
		serve_tell(l, req);
	else
		(void)rpc_reply_error(req, TTRPC_UNIMPLEMENTED, "method %s", req->method);
}

/* ---- connecting ------------------------------------------------------------------------------ */

static void link_lost(struct link *l, const char *why)
{
	l->registered = false;
	l->trunk = trunk_free(l->trunk);
	if (l->client && l->client->lost)
		l->client->lost(l->client->arg);
	if (!str_eq(l->last_error, why))
		log_notice("cannot connect to %s: %s; retrying", l->peer, why);
	(void)snprintf(l->last_error, sizeof l->last_error, "%s", why);
	(void)loop_timer_arm(l->reconnect,
			     backoff_next_ms(&l->backoff, BACKOFF_FIRST_MS, BACKOFF_LAST_MS));
}

static void on_closed(struct trunk *trunk, const struct err *err, void *arg)
{
	link_lost(arg, err->text);
}

static void link_registered(const struct rpc_result *result, void *arg)
{
	struct link *l = arg;
	_arena_ struct arena *a = arena_new(4096, REQUEST_ARENA);
	const Agent__RegisterResponse *m = RPC_ANSWER(a, agent__register_response, result);
	if (m) {
		log_info("connected to %s at %s", l->peer, l->socket);
		l->last_error[0] = '\0';
		backoff_reset(&l->backoff);
		l->registered = true;
		if (l->plugins)
			plugins_daemon_connected(l->plugins);
		if (l->client)
			l->client->connected(m, l->client->arg);
	} else if (!result->error) {
		link_lost(l, "its answer cannot be decoded");
	} else if (result->error != -ECONNRESET && result->error != -ECANCELED) {
		link_lost(l, result->text); /* in the other cases on_closed() reports the end */
	}
}

static int link_start(struct link *l, struct err *err)
{
	const struct trunk_config config = {.recv_max = AGENT_MESSAGE_MAX,
					    .send_max = AGENT_MESSAGE_MAX,
					    .closed = on_closed,
					    .arg = l};
	static char pods[] = AGENT_FEATURE_POD_RESOURCES, cluster[] = AGENT_FEATURE_CLUSTER;
	static char plugins[] = AGENT_FEATURE_PLUGINS, version[] = NRI_RP_VERSION;
	char *features[3] = {pods};
	Agent__RegisterRequest msg = AGENT__REGISTER_REQUEST__INIT;
	int r = wire_check_folder(l->socket, err);
	if (r)
		return r;
	int fd = wire_connect_unix(l->socket, err);
	if (fd < 0)
		return fd;
	r = trunk_new(l->loop, fd, &config, &l->trunk, err);
	if (r)
		return r;
	rpc_serve(trunk_rpc(l->trunk, 0), on_request, l);
	msg.version = version;
	msg.features = features;
	msg.n_features = 1;
	if (l->client && l->client->publish)
		features[msg.n_features++] = cluster;
	if (l->plugins)
		features[msg.n_features++] = plugins;
	r = rpc_call(trunk_rpc(l->trunk, 0), AGENT_HOST_SERVICE, "Register", &msg.base,
		     REGISTER_TIMEOUT_MS, link_registered, l);
	return r ? err_errno(err, r, "registering") : 0;
}

static void try_connect(void *arg)
{
	struct link *l = arg;
	struct err err = ERR_INIT;
	int r = link_start(l, &err);
	if (r)
		link_lost(l, err_text(&err, r));
}

int link_new(struct loop *loop, const char *peer, const char *socket, struct podres *podres,
	     struct link **ret, struct err *err)
{
	struct link *l = calloc(1, sizeof *l);
	if (!l)
		return err_errno(err, -ENOMEM, "connection to %s", peer);
	l->loop = loop;
	l->peer = peer;
	l->podres = podres;
	l->socket = strdup(socket);
	l->reconnect = loop_timer_new(loop, try_connect, l);
	if (!l->socket || !l->reconnect) {
		link_free(l);
		return err_errno(err, -ENOMEM, "connection to %s", peer);
	}
	*ret = l;
	return 0;
}

void link_set_client(struct link *l, const struct link_client *client)
{
	l->client = client;
}

void link_set_plugins(struct link *l, struct plugins *plugins)
{
	l->plugins = plugins;
}

void link_connect(struct link *l)
{
	try_connect(l);
}

int link_call(struct link *l, const char *method, const ProtobufCMessage *msg, uint64_t timeout_ms,
	      rpc_done done, void *arg)
{
	return l->registered ? rpc_call(trunk_rpc(l->trunk, 0), AGENT_HOST_SERVICE, method, msg,
					timeout_ms, done, arg)
			     : -ENOTCONN;
}

struct link *link_free(struct link *l)
{
	if (!l)
		return NULL;
	l->registered = false;
	trunk_free(l->trunk);
	loop_timer_free(l->reconnect);
	free(l->socket);
	free(l);
	return NULL;
}
