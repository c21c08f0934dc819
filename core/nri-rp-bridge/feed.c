/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-bridge/feed.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/lib/wire/agent_protocol.h"
#include "core/lib/util/arena.h"
#include "core/lib/util/log.h"
#include "core/lib/util/str.h"
#include "core/lib/wire/listener.h"
#include "core/lib/wire/rpc.h"
#include "core/lib/wire/trunk.h"

#define LOG_SOURCE "pods"
#define SOCKET_MODE 0600
#define ARENA_BLOCK (64u << 10)
#define ARENA_MAX (64u << 20) /* limit for one message and its unpacked form */

struct feed {
	struct loop *loop;
	struct podlist *pods;
	struct listener *listener;
	struct trunk *trunk; /* connection of the agent; NULL: none */
	bool registered, telling, told_all;
	void (*told)(bool connected, void *arg);
};

static void feed_lost(struct feed *f, const char *why)
{
	bool had = f->told_all;
	f->trunk = trunk_free(f->trunk);
	f->registered = f->telling = f->told_all = false;
	if (!had)
		return;
	log_notice("nri-rp-agent disconnected: %s", why);
	f->told(false, f->pods);
}

static void on_closed(struct trunk *trunk, const struct err *err, void *arg)
{
	feed_lost(arg, err->text);
}

bool feed_is_telling(const struct feed *f)
{
	return f->telling;
}

static void serve_register(struct feed *f, struct rpc_request *req)
{
	static char version[] = NRI_RP_VERSION;
	Agent__RegisterResponse out = AGENT__REGISTER_RESPONSE__INIT;
	out.version = version;
	f->registered = rpc_reply(req, &out.base) == 0;
}

static bool makes_sense(const Agent__FedPod *pod)
{
	return *pod->uid && strlen(pod->uid) < AGENT_NAME_MAX &&
	       pod->n_containers <= AGENT_CONTAINERS_MAX;
}

static void feed_take(struct feed *f, const Agent__SetPodsRequest *m)
{
	if (m->begin)
		podlist_begin(f->pods);
	f->telling = (f->telling || m->begin) && !m->complete;
	for (size_t i = 0; i < m->n_pods; i++)
		if (makes_sense(m->pods[i]))
			podlist_take(f->pods, m->pods[i]);
	for (size_t i = 0; i < m->n_gone; i++)
		podlist_forget(f->pods, m->gone[i]);
	if (!m->complete)
		return;
	bool first = !f->told_all;
	f->told_all = true;
	if (first)
		f->told(true, f->pods);
	podlist_end(f->pods);
}

static void serve_pods(struct feed *f, struct rpc_request *req)
{
	_arena_ struct arena *a = arena_new(ARENA_BLOCK, ARENA_MAX);
	const Agent__SetPodsRequest *m = RPC_MESSAGE(a, agent__set_pods_request, req);
	if (!m) {
		(void)rpc_reply_error(req, TTRPC_INVALID_ARGUMENT, "not a list of pods");
		return;
	}
	(void)rpc_reply(req, NULL);
	feed_take(f, m);
}

static void on_request(struct rpc_request *req, void *arg)
{
	struct feed *f = arg;
	bool ours = str_eq(req->service, AGENT_HOST_SERVICE);
	if (ours && str_eq(req->method, "Register"))
		serve_register(f, req);
	else if (ours && f->registered && str_eq(req->method, "SetPods"))
		serve_pods(f, req);
	else
		(void)rpc_reply_error(req, TTRPC_UNIMPLEMENTED, "%s/%s", req->service, req->method);
}

/* Accepts a connection. It replaces an older one, which may be about to end. */
static void on_connection(int fd, void *arg)
{
	struct feed *f = arg;
	struct err err = ERR_INIT;
	const struct trunk_config config = {.recv_max = AGENT_MESSAGE_MAX,
					    .send_max = AGENT_MESSAGE_MAX,
					    .closed = on_closed,
					    .arg = f};
	if (fd < 0)
		return;
	if (f->trunk)
		feed_lost(f, "another agent has connected");
	if (trunk_new(f->loop, fd, &config, &f->trunk, &err))
		log_warning("nri-rp-agent: %s", err.text);
	else
		rpc_serve(trunk_rpc(f->trunk, 0), on_request, f);
}

int feed_new(const struct podlist_config *config, struct podlist *p,
	     void (*told)(bool connected, void *arg), struct feed **ret, struct err *err)
{
	struct feed *f = calloc(1, sizeof *f);
	if (!f)
		return err_errno(err, -ENOMEM, "agent socket");
	f->loop = config->loop;
	f->pods = p;
	f->told = told;
	int r = listener_new(config->loop,
			     &(struct listener_config){.what = "agent socket",
						       .path = config->agent_socket,
						       .mode = SOCKET_MODE,
						       .accepted = on_connection,
						       .arg = f},
			     &f->listener, err);
	if (r) {
		feed_free(f);
		return r;
	}
	*ret = f;
	return 0;
}

struct feed *feed_free(struct feed *f)
{
	if (!f)
		return NULL;
	listener_free(f->listener);
	trunk_free(f->trunk);
	free(f);
	return NULL;
}
