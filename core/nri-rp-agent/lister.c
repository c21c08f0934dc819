/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-agent/lister.h"

#include <stdlib.h>

#include "core/lib/wire/agent_protocol.h"
#include "core/nri-rp-agent/kubelet.h"
#include "core/nri-rp-agent/listmsg.h"
#include "core/nri-rp-agent/unary.h"
#include "core/lib/util/log.h"
#include "core/lib/util/pb.h"
#include "core/lib/util/str.h"

#define LOG_SOURCE "lister"
#define SERVICE "/v1.PodResourcesLister/"
#define REQUEST_MAX 4096u
#define SOCKET_MODE 0660
#define KUBELET_MS 1000u
#define ARENA_BLOCK (64u << 10)
#define ARENA_MAX (128u << 20)
#define ANSWER_MAX KUBELET_MESSAGE_MAX

struct lister {
	struct lister_config config;
	struct grpc_server *server;
	struct unary_service service;
	struct kubelet *kubelet; /* source of devices; NULL: devices are not listed */
	unsigned n_calls;
};

enum method { METHOD_LIST, METHOD_GET, METHOD_ALLOCATABLE };
static const struct {
	const char *name, *daemon, *kubelet;
} methods[] = {
	[METHOD_LIST] = {SERVICE "List", "ListAllocations", SERVICE "List"},
	/* The kubelet has Get only since a later version than List, and it may be disabled. */
	[METHOD_GET] = {SERVICE "Get", "ListAllocations", SERVICE "List"},
	[METHOD_ALLOCATABLE] = {SERVICE "GetAllocatableResources", "GetAllocatable",
				SERVICE "GetAllocatableResources"},
};

/* Client's call during the requests to the daemon and the kubelet. */
struct call {
	struct lister *lister;
	struct unary *unary;
	enum method method;
	struct arena *arena;
	const char *ns, *name; /* names in a Get request */
	struct listmsg_bytes daemon, kubelet;
	unsigned waiting; /* pending answers, plus one while the calls are started */
	struct err err;
};

/* ---- answers --------------------------------------------------------------------------------- */

static enum grpc_status status_of(int error)
{
	return error == -ENOMEM || error == -E2BIG ? GRPC_RESOURCE_EXHAUSTED
	       : error == -ETIMEDOUT		   ? GRPC_DEADLINE_EXCEEDED
						   : GRPC_UNAVAILABLE;
}

static void lister_send(const struct call *c, const ProtobufCMessage *m)
{
	size_t n = protobuf_c_message_get_packed_size(m);
	if (n <= ANSWER_MAX)
		unary_answer(c->unary, m);
	else
		unary_fail(c->unary, GRPC_RESOURCE_EXHAUSTED,
			   "the reply has more than 16 MiB: request single pods");
}

static int answer_pods(struct call *c)
{
	const struct listmsg_bytes *kubelet = c->lister->kubelet ? &c->kubelet : NULL;
	Podresources__ServedList list;
	Podresources__ServedOne one = PODRESOURCES__SERVED_ONE__INIT;
	int r = listmsg_pods(c->arena, &c->daemon, kubelet, c->ns, c->name, &list, &c->err);
	if (r)
		return r;
	if (c->method == METHOD_LIST) {
		lister_send(c, &list.base);
	} else if (list.n_pod_resources) {
		one.pod_resources = list.pod_resources[0];
		lister_send(c, &one.base);
	} else {
		char *text =
			arena_printf(c->arena, "pod %s in namespace %s not found", c->name, c->ns);
		unary_fail(c->unary, GRPC_NOT_FOUND, text ? text : "not found");
	}
	return 0;
}

static int answer_allocatable(struct call *c)
{
	const struct listmsg_bytes *kubelet = c->lister->kubelet ? &c->kubelet : NULL;
	Podresources__ServedAllocatable m;
	int r = listmsg_allocatable(c->arena, &c->daemon, kubelet, &m, &c->err);
	if (!r)
		lister_send(c, &m.base);
	return r;
}

static void go_on(struct call *c)
{
	if (--c->waiting)
		return;
	int r = c->err.code			  ? c->err.code
		: c->method == METHOD_ALLOCATABLE ? answer_allocatable(c)
						  : answer_pods(c);
	if (r) {
		utf8_mend(c->err.text); /* the text may quote another program */
		log_debug("%s: %s", methods[c->method].name, c->err.text);
		unary_fail(c->unary, status_of(r), c->err.text);
	}
	c->lister->n_calls--;
	arena_free(c->arena);
	free(c);
}

static int lister_keep(struct call *c, const uint8_t *data, size_t n, struct listmsg_bytes *to)
{
	*to = (struct listmsg_bytes){arena_memdup(c->arena, data, n), n};
	return to->data ? 0 : err_errno(&c->err, -ENOMEM, "pod resources");
}

static void on_daemon(const struct rpc_result *result, void *arg)
{
	struct call *c = arg;
	if (result->error)
		(void)err_set(&c->err, result->error, "request to nri-rpd: %s", result->text);
	else
		(void)lister_keep(c, result->payload, result->payload_len, &c->daemon);
	go_on(c);
}

static void on_kubelet(const struct grpc_result *result, void *arg)
{
	struct call *c = arg;
	if (result->error)
		(void)err_set(&c->err, grpc_result_error(result),
			      "reading devices from the kubelet: %s", result->text);
	else
		(void)lister_keep(c, result->payload, result->payload_len, &c->kubelet);
	go_on(c);
}

/* ---- calls ----------------------------------------------------------------------------------- */

static void ask_daemon(struct call *c)
{
	Agent__AllocationsRequest m = AGENT__ALLOCATIONS_REQUEST__INIT;
	if (c->name) {
		m.namespace_ = (char *)(uintptr_t)c->ns;
		m.name = (char *)(uintptr_t)c->name;
	}
	int r = link_call(c->lister->config.link, methods[c->method].daemon, &m.base,
			  AGENT_ALLOCATIONS_MS, on_daemon, c);
	if (!r)
		c->waiting++;
	else if (r == -ENOTCONN)
		(void)err_set(&c->err, r, "nri-rpd is not connected");
	else
		(void)err_errno(&c->err, r, "request to nri-rpd");
}

static void ask_kubelet(struct call *c)
{
	/* the requests of both methods are empty */
	Podresources__ListRequest m = PODRESOURCES__LIST_REQUEST__INIT;
	if (c->lister->kubelet && !c->err.code &&
	    !kubelet_call(c->lister->kubelet, methods[c->method].kubelet, &m.base, KUBELET_MS,
			  on_kubelet, c, &c->err))
		c->waiting++;
}

/* Reads the names in a Get request; the other methods have no parameters. */
static int read_request(struct call *c, const uint8_t *payload, size_t n)
{
	if (c->method != METHOD_GET)
		return 0;
	const Podresources__GetRequest *m =
		PB_UNPACK(c->arena, podresources__get_request, n, payload);
	if (!m || !*m->pod_name || !*m->pod_namespace)
		return -EINVAL;
	c->ns = m->pod_namespace;
	c->name = m->pod_name;
	return 0;
}

static bool find_method(const char *path, enum method *ret)
{
	for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
		if (!str_eq(path, methods[i].name))
			continue;
		*ret = (enum method)i;
		return true;
	}
	return false;
}

static void lister_serve(struct unary *u, const char *path, const uint8_t *payload, size_t n,
			 void *arg)
{
	struct lister *l = arg;
	enum method method;
	if (!find_method(path, &method)) {
		unary_fail(u, GRPC_UNIMPLEMENTED,
			   "this v1.PodResourcesLister does not implement the method");
		return;
	}
	if (l->n_calls >= LISTER_CALLS_MAX) {
		unary_fail(u, GRPC_RESOURCE_EXHAUSTED, "too many simultaneous calls");
		return;
	}
	struct call *c = calloc(1, sizeof *c);
	struct arena *a = arena_new(ARENA_BLOCK, ARENA_MAX);
	if (!c || !a) {
		free(c);
		arena_free(a);
		unary_fail(u, GRPC_RESOURCE_EXHAUSTED, "out of memory");
		return;
	}
	*c = (struct call){.lister = l, .unary = u, .method = method, .arena = a, .waiting = 1};
	if (read_request(c, payload, n)) {
		arena_free(a);
		free(c);
		unary_fail(u, GRPC_INVALID_ARGUMENT, "expected pod_name and pod_namespace");
		return;
	}
	l->n_calls++;
	ask_daemon(c);
	ask_kubelet(c);
	go_on(c);
}

/* ---- life ------------------------------------------------------------------------------------ */

static int lister_start(struct lister *l, struct err *err)
{
	int r = l->config.kubelet_socket
			? kubelet_new(l->config.loop, l->config.kubelet_socket, &l->kubelet, err)
			: 0;
	if (!r)
		r = unary_listen(&l->service, l->config.socket, SOCKET_MODE, &l->server, err);
	if (!r)
		log_info("serving pod resources at %s%s", l->config.socket,
			 l->kubelet ? ", with the kubelet's devices" : "");
	return r;
}

int lister_new(const struct lister_config *config, struct lister **ret, struct err *err)
{
	struct lister *l = calloc(1, sizeof *l);
	if (!l)
		return err_errno(err, -ENOMEM, "pod resources");
	l->config = *config;
	l->service = (struct unary_service){
		.loop = config->loop, .message_max = REQUEST_MAX, .handle = lister_serve, .arg = l};
	int r = lister_start(l, err);
	if (r)
		l = lister_free(l);
	*ret = l;
	return r;
}

struct lister *lister_free(struct lister *l)
{
	if (!l)
		return NULL;
	kubelet_free(l->kubelet); /* also ends the calls that wait for the kubelet */
	grpc_server_free(l->server);
	free(l);
	return NULL;
}
