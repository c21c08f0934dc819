/* SPDX-License-Identifier: Apache-2.0 */
/* The socket of the agent: access, the one registered agent, and the calls in both directions. */
#include "core/nri-rpd/agent/agent.h"

#include <assert.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <utlist.h>

#include "core/nri-rpd/agent/allocations.h"
#include "core/nri-rpd/agent/ask.h"
#include "core/nri-rpd/agent/claims.h"
#include "core/nri-rpd/agent/config.h"
#include "core/nri-rpd/agent/node.h"
#include "core/nri-rpd/agent/plugins.h"
#include "core/nri-rpd/agent/pods.h"
#include "core/lib/wire/agent_protocol.h"
#include "core/nri-rpd/agent/publisher.h"
#include "core/nri-rpd/agent/state.h"
#include "core/nri-rpd/agent/event_sender.h"
#include "core/nri-rpd/pipeline/reload/reload.h"
#include "core/nri-rpd/pipeline/observe/events.h"
#include "core/nri-rpd/pipeline/node/cluster.h"
#include "core/nri-rpd/pipeline/node/evict.h"
#include "core/nri-rpd/pipeline/node/feed.h"
#include "core/nri-rpd/pipeline/wait/devices.h"
#include "core/nri-rpd/pipeline/wait/plugins.h"
#include "core/lib/util/arena.h"
#include "core/lib/util/buf.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/log.h"
#include "core/lib/util/str.h"
#include "core/lib/wire/listener.h"
#include "core/lib/wire/sock.h"
#include "core/lib/wire/trunk.h"
#include "proto/agent.pb-c.h"
#include "core/lib/util/number.h"

#define LOG_SOURCE "agent"
#define SOCKET_MODE 0600
#define CONNECTIONS_MAX 4u
#define REGISTER_ARENA (64u << 10)
#define PASSWD "/etc/passwd"
#define NO_UID ((uid_t)-1)

struct connection {
	struct agent *agent;
	struct trunk *trunk;
	struct connection *prev, *next;
};

struct agent {
	struct loop *loop;
	struct agent_link link; /* to the registered agent */
	struct listener *listener; /* listens for agents; NULL: the configuration needs no agent */
	char *key; /* settings that the open socket has (agent_key); NULL: none */
	char *user; /* user that may be the agent */
	struct connection *connections;
	unsigned n_connections;
	struct connection *registered;
	bool publishes; /* the registered agent is to publish */
	struct publisher *publisher;
	struct teller *teller;
	struct log_limit turned_away;
};

/* ---- access ---------------------------------------------------------------------------------- */

/* Looks up a user in the file alone, because a look-up by the C library might use the network. */
static uid_t find_user(const char *name)
{
	uint64_t number;
	const struct passwd *pw;
	if (str_to_u64(name, &number) == 0)
		return number < NO_UID ? (uid_t)number : NO_UID;
	_fclose_ FILE *f = fopen(PASSWD, "re");
	while (f && (pw = fgetpwent(f)))
		if (str_eq(pw->pw_name, name))
			return pw->pw_uid;
	return NO_UID;
}

static const struct conf_core *agent_core(const struct agent *a)
{
	return conf_core(pipeline_conf(a->link.pipeline));
}

static int agent_admit(const struct agent *a, int fd, struct err *err)
{
	struct ucred peer;
	int r = wire_peer(fd, &peer);
	if (r)
		return err_errno(err, r, "refused a connection: its user cannot be determined");
	if (peer.uid != 0 && peer.uid != geteuid() && peer.uid != find_user(a->user))
		return err_set(err, -EPERM,
			       "refused process %d of user %u: only root and %s (agent.user) may "
			       "be the agent",
			       peer.pid, peer.uid, a->user);
	if (a->n_connections >= CONNECTIONS_MAX)
		return err_set(err, -EBUSY, "refused a connection: %u are open", a->n_connections);
	return 0;
}

/* ---- connections ----------------------------------------------------------------------------- */

static void connection_free(struct connection *c, const char *why)
{
	assert(c->agent->n_connections);
	struct agent *a = c->agent;
	bool was_agent = a->registered == c;
	DL_DELETE(a->connections, c);
	a->n_connections--;
	if (was_agent) {
		a->registered = NULL;
		a->link.rpc = NULL;
		publisher_set_agent(a->publisher, NULL);
		teller_set_agent(a->teller, NULL);
		pipeline_evict_source(a->link.pipeline, NULL);
		pipeline_claim_source(a->link.pipeline, NULL);
		(void)pipeline_cluster_told(a->link.pipeline, NULL);
		pipeline_feed_lost(a->link.pipeline);
		agent_ask_plugins(&a->link, false);
	}
	/* Detach the agent first: callbacks below may otherwise send it a request. */
	if (was_agent) {
		log_warning("the agent disconnected: %s", why);
		pipeline_event(a->link.pipeline, EV_RUNTIME, "the agent disconnected: %s", why);
		if (pipeline_devices_are_on(a->link.pipeline))
			pipeline_devices_reachable(a->link.pipeline, false,
						   "the agent disconnected");
	}
	trunk_free(c->trunk);
	free(c);
}

static void on_closed(struct trunk *trunk, const struct err *err, void *arg)
{
	connection_free(arg, err->text);
}

static bool has_feature(const Agent__RegisterRequest *m, const char *feature)
{
	for (size_t i = 0; i < m->n_features && i < AGENT_FEATURES_MAX; i++)
		if (str_eq(m->features[i], feature))
			return true;
	return false;
}

static void set_publishing(struct agent *a)
{
	bool wanted = a->registered && a->publishes && agent_core(a)->agent.cluster;
	const struct evict_source evictions = {agent_ask_evict, &a->link};
	const struct claim_source claims = {agent_ask_claim, &a->link};
	publisher_set_agent(a->publisher, wanted ? a->link.rpc : NULL);
	teller_set_agent(a->teller, wanted ? a->link.rpc : NULL);
	pipeline_evict_source(a->link.pipeline, wanted ? &evictions : NULL);
	pipeline_claim_source(a->link.pipeline, wanted ? &claims : NULL);
}

static void accept_agent(struct connection *c, const Agent__RegisterRequest *m)
{
	struct agent *a = c->agent;
	const char *version = m->version;
	a->registered = c;
	a->link.rpc = trunk_rpc(c->trunk, 0);
	log_notice("nri-rp-agent %.40s is connected", version);
	pipeline_event(a->link.pipeline, EV_RUNTIME, "nri-rp-agent %.40s is connected", version);
	a->publishes = has_feature(m, AGENT_FEATURE_CLUSTER);
	set_publishing(a);
	if (has_feature(m, AGENT_FEATURE_PLUGINS))
		agent_ask_plugins(&a->link, true);
	else
		(void)pipeline_plugins_set(a->link.pipeline, NULL, 0);
	if (pipeline_devices_are_on(a->link.pipeline))
		pipeline_devices_reachable(a->link.pipeline,
					   has_feature(m, AGENT_FEATURE_POD_RESOURCES),
					   "the agent does not ask the kubelet");
}

static void serve_register(struct connection *c, struct rpc_request *req)
{
	static char version[] = NRI_RP_VERSION;
	_arena_ struct arena *arena = arena_new(4096, REGISTER_ARENA);
	const Agent__RegisterRequest *m = RPC_MESSAGE(arena, agent__register_request, req);
	const struct conf_core *core = agent_core(c->agent);
	Agent__RegisterResponse out = AGENT__REGISTER_RESPONSE__INIT;
	out.version = version;
	out.pod_source = (char *)(uintptr_t)core->agent.pod_source;
	out.resource_slices = core->agent.pod_resource_api && core->agent.resource_slices;
	out.namespaces = (char **)(uintptr_t)core->agent.namespaces.items;
	out.n_namespaces = core->agent.namespaces.n;
	if (!m)
		(void)rpc_reply_error(req, TTRPC_INVALID_ARGUMENT, "cannot decode the request");
	else if (c->agent->registered)
		(void)rpc_reply_error(req, TTRPC_ALREADY_EXISTS, "another agent is connected");
	else if (!has_feature(m, AGENT_FEATURE_POD_RESOURCES) &&
		 !has_feature(m, AGENT_FEATURE_CLUSTER))
		(void)rpc_reply_error(req, TTRPC_FAILED_PRECONDITION,
				      "this agent has none of the needed abilities");
	else if (rpc_reply(req, &out.base) == 0)
		accept_agent(c, m);
}

/* Methods that a registered agent may call. */
static const struct {
	const char *name;
	void (*serve)(struct pipeline *p, struct rpc_request *req);
} methods[] = {
	{"SetConfig", agent_serve_config},
	{"SetAdjustments", agent_serve_config},
	{"SetState", agent_serve_state},
	{"SetNode", agent_serve_node},
	{"SetPods", agent_serve_pods},
	{"SetPlugins", agent_serve_plugins},
	{"CheckPods", agent_serve_check_pods},
	{"ListAllocations", agent_serve_allocations},
	{"GetAllocatable", agent_serve_allocatable},
	{"PrepareClaim", agent_serve_prepare_claim},
	{"ReleaseClaim", agent_serve_release_claim},
	{"ListClaims", agent_serve_list_claims},
};

static void on_request(struct rpc_request *req, void *arg)
{
	struct connection *c = arg;
	bool ours = str_eq(req->service, AGENT_HOST_SERVICE);
	if (ours && str_eq(req->method, "Register")) {
		serve_register(c, req);
		return;
	}
	if (ours && str_eq(req->method, "Ping")) {
		(void)rpc_reply(req, NULL);
		return;
	}
	for (size_t i = 0;
	     ours && c->agent->registered == c && i < sizeof methods / sizeof *methods; i++)
		if (str_eq(req->method, methods[i].name)) {
			methods[i].serve(c->agent->link.pipeline, req);
			return;
		}
	(void)rpc_reply_error(req, TTRPC_UNIMPLEMENTED, "%s/%s", req->service, req->method);
}

static int connection_new(struct agent *a, int fd, struct err *err)
{
	struct connection *c = calloc(1, sizeof *c);
	if (!c) {
		(void)close(fd);
		return err_errno(err, -ENOMEM, "refused an agent");
	}
	c->agent = a;
	const struct trunk_config config = {.recv_max = AGENT_MESSAGE_MAX,
					    .send_max = AGENT_MESSAGE_MAX,
					    .closed = on_closed,
					    .arg = c};
	int r = trunk_new(a->loop, fd, &config, &c->trunk, err);
	if (r) {
		free(c);
		return r;
	}
	rpc_serve(trunk_rpc(c->trunk, 0), on_request, c);
	DL_APPEND(a->connections, c);
	a->n_connections++;
	return 0;
}

static void on_connection(int fd, void *arg)
{
	struct agent *a = arg;
	struct err err = ERR_INIT;
	if (fd < 0)
		(void)err_errno(&err, fd, "accepting an agent failed, retrying");
	else if (agent_admit(a, fd, &err))
		(void)close(fd);
	else
		(void)connection_new(a, fd, &err);
	if (err.code && log_allowed(&a->turned_away, LOG_SOURCE))
		log_warning("%s", err.text);
}

/* ---- life ------------------------------------------------------------------------------------ */

static void agent_shut(struct agent *a)
{
	if (pipeline_devices_are_on(a->link.pipeline))
		pipeline_devices_off(a->link.pipeline);
	while (a->connections)
		connection_free(a->connections, "it is no longer configured");
	a->listener = listener_free(a->listener);
}

/* Returns the settings with which a socket is opened and an agent registered, as text. NULL: no
 * memory. */
static char *agent_key(const struct conf_core *core)
{
	struct buf b = BUF_INIT;
	(void)buf_printf(&b, "%s\n%s\n%s\n%d%d", core->agent.socket, core->agent.user,
			 core->agent.pod_source, core->agent.pod_resource_api,
			 core->agent.pod_resource_api && core->agent.resource_slices);
	for (unsigned i = 0; i < core->agent.namespaces.n; i++)
		(void)buf_printf(&b, "\n%s", core->agent.namespaces.items[i]);
	char *text = b.failed ? NULL : strdup(buf_text(&b));
	buf_fini(&b);
	return text;
}

static int open_socket(struct agent *a, const struct conf_core *core, struct err *err)
{
	const char *path = core->agent.socket, *user = core->agent.user;
	const struct device_source source = {.ask_pod = agent_ask_pod,
					     .ask_all = agent_ask_all,
					     .pod_ended = agent_tell_ended,
					     .claims = core->agent.resource_slices,
					     .arg = &a->link};
	const struct listener_config config = {.what = "agent socket",
					       .path = path,
					       .mode = SOCKET_MODE,
					       .accepted = on_connection,
					       .arg = a};
	free(a->key);
	free(a->user);
	a->key = agent_key(core);
	a->user = strdup(user);
	if (!a->key || !a->user ||
	    (core->agent.pod_resource_api && pipeline_devices_on(a->link.pipeline, &source)))
		return err_errno(err, -ENOMEM, "agent socket %s", path);
	if (find_user(user) == NO_UID)
		log_notice("user %s (agent.user) does not exist yet: only root can be the agent",
			   user);
	int r = listener_new(a->loop, &config, &a->listener, err);
	if (r && core->agent.pod_resource_api)
		pipeline_devices_reachable(a->link.pipeline, false, err->text);
	if (!r)
		log_info("agent socket: %s", path);
	return r;
}

int agent_configure(struct agent *a, const struct conf_core *core, struct err *err)
{
	bool devices = core->agent.pod_resource_api;
	if (!core->agent.cluster)
		pipeline_node_take(a->link.pipeline, NULL, NULL);
	if (!devices && !core->agent.pods) {
		if (a->listener || pipeline_devices_are_on(a->link.pipeline))
			agent_shut(a);
		return 0;
	}
	_free_ char *key = agent_key(core);
	if (a->listener && key && str_eq(a->key, key) &&
	    devices == pipeline_devices_are_on(a->link.pipeline)) {
		set_publishing(a);
		return 0;
	}
	agent_shut(a);
	return open_socket(a, core, err);
}

int agent_new(struct loop *loop, struct pipeline *pipeline, struct agent **ret, struct err *err)
{
	struct agent *a = calloc(1, sizeof *a);
	if (!a)
		return err_errno(err, -ENOMEM, "agent");
	a->loop = loop;
	a->link.pipeline = pipeline;
	a->turned_away = (struct log_limit)LOG_LIMIT(5, 10000);
	a->publisher = publisher_new(loop, pipeline);
	a->teller = teller_new(loop, pipeline);
	if (!a->publisher || !a->teller) {
		publisher_free(a->publisher);
		teller_free(a->teller);
		free(a);
		return err_errno(err, -ENOMEM, "agent");
	}
	*ret = a;
	return 0;
}

void agent_event(struct agent *a)
{
	teller_changed(a->teller);
}

void agent_status_changed(struct agent *a)
{
	publisher_status_changed(a->publisher);
}

void agent_changed(struct agent *a)
{
	publisher_changed(a->publisher);
}

struct agent *agent_free(struct agent *a)
{
	if (!a)
		return NULL;
	agent_shut(a);
	publisher_free(a->publisher);
	teller_free(a->teller);
	free(a->key);
	free(a->user);
	free(a);
	return NULL;
}
