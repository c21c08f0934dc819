/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Serves the daemon's requests to plugins. Hints are requested from all plugins at once.
 * Allocations are requested one after the other, in the pod's order, and end at the first failure.
 * The daemon gets an answer within its time limit even if a plugin does not answer.
 */
#include <stdlib.h>
#include <string.h>

#include "core/lib/wire/agent_protocol.h"
#include "core/nri-rp-agent/link.h"
#include "core/nri-rp-agent/pluginmsg.h"
#include "core/nri-rp-agent/plugins.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/log.h"
#include "core/lib/util/str.h"
#include "core/lib/util/clock.h"
#include "core/nri-rp-agent/pluginask.h"

#define LOG_SOURCE "plugins"
#define ARENA_BLOCK (16u << 10)
#define CHECK_MS 5000u
/* time within which a plugin may still carry out an allocation that has failed for the agent */
#define UNSURE_MS 60000u

enum ask_kind { ASK_HINTS, ASK_ALLOCATE, ASK_PRE_START };

/* A request of the daemon. */
struct ask {
	struct plugins *all;
	struct rpc_request *req;
	struct arena *arena;
	const Agent__PluginRequest *m;
	enum ask_kind kind;
	uint64_t until_ms;
	uint32_t at; /* index of the next wanted resource */
	uint32_t pending; /* calls under way, plus one while calls are started */
	Agent__Hints *hints;
	struct grant_list grants;
	struct err err; /* why the request as a whole has failed */
};

/* A call to a plugin for a request. */
struct call {
	struct ask *ask;
	struct known_plugin *known;
	const Agent__Wanted *wanted;
	const char *method;
};

/* ---- answers to the daemon ------------------------------------------------------------------- */

static enum ttrpc_code code_of(int error)
{
	return error == -ETIMEDOUT ? TTRPC_DEADLINE_EXCEEDED
	       : error == -ENOMEM  ? TTRPC_RESOURCE_EXHAUSTED
				   : TTRPC_UNKNOWN;
}

static void answer_hints(struct ask *a)
{
	Agent__PluginHintsResponse out = AGENT__PLUGIN_HINTS_RESPONSE__INIT;
	out.of = arena_array(a->arena, a->m->n_wanted + 1, sizeof *out.of);
	for (; out.of && out.n_of < a->m->n_wanted; out.n_of++)
		out.of[out.n_of] = &a->hints[out.n_of];
	if (out.of)
		(void)rpc_reply(a->req, &out.base);
	else
		(void)rpc_reply_error(a->req, TTRPC_RESOURCE_EXHAUSTED, "out of memory");
}

static void answer_grants(struct ask *a)
{
	Agent__PluginAllocateResponse out = AGENT__PLUGIN_ALLOCATE_RESPONSE__INIT;
	struct packed packed;
	if (pluginmsg_pack_grants(a->arena, &a->grants, &packed)) {
		(void)rpc_reply_error(a->req, TTRPC_RESOURCE_EXHAUSTED, "out of memory");
		return;
	}
	out.grants.data = (uint8_t *)(uintptr_t)packed.data;
	out.grants.len = packed.n;
	(void)rpc_reply(a->req, &out.base);
}

static void pluginask_finish(struct ask *a)
{
	if (a->err.code)
		(void)rpc_reply_error(a->req, code_of(a->err.code), "%s", a->err.text);
	else if (a->kind == ASK_HINTS)
		answer_hints(a);
	else if (a->kind == ASK_ALLOCATE)
		answer_grants(a);
	else
		(void)rpc_reply(a->req, NULL);
	arena_free(a->arena);
	free(a);
}

/* ---- calls ----------------------------------------------------------------------------------- */

static void go_on(struct ask *a);

static uint32_t index_of(const struct ask *a, const Agent__Wanted *w)
{
	uint32_t i = 0;
	while (a->m->wanted[i] != w)
		i++;
	return i;
}

static int read_answer(struct call *c, const struct grpc_result *result, struct err *err)
{
	struct ask *a = c->ask;
	const struct packed answer = {result->payload, result->payload_len};
	int r = grpc_result_error(result);
	if (r)
		return err_set(err, r, "%s", r == -ETIMEDOUT ? "no reply in time" : result->text);
	if (a->kind == ASK_HINTS)
		return pluginmsg_hints(a->arena, &answer, a->m, c->wanted,
				       &a->hints[index_of(a, c->wanted)], err);
	return a->kind == ASK_PRE_START
		       ? 0
		       : pluginmsg_grants(a->arena, &answer, a->m, c->wanted, &a->grants, err);
}

/* Records a failure. Missing hints are an error of their resource alone; other failures end the
 * request. */
static void note_failure(struct ask *a, uint32_t i, const struct err *err)
{
	if (a->kind != ASK_HINTS) {
		a->err = *err;
		return;
	}
	agent__hints__init(&a->hints[i]);
	a->hints[i].told = true;
	a->hints[i].error = arena_strdup(a->arena, err->text);
	if (!a->hints[i].error)
		(void)err_errno(&a->err, -ENOMEM, "hints");
}

static void on_answer(const struct grpc_result *result, void *arg)
{
	struct call *c = arg;
	struct ask *a = c->ask;
	struct err err = ERR_INIT;
	c->known->allocated = c->known->allocated || a->kind == ASK_ALLOCATE;
	if (read_answer(c, result, &err)) {
		plugin_failed(c->known->plugin, c->method, &err);
		log_info("%s", err.text);
		note_failure(a, index_of(a, c->wanted), &err);
		/* The plugin may have allocated nevertheless, which the next sweep detects. */
		if (a->kind == ASK_ALLOCATE) {
			c->known->sweep = true;
			c->known->unsure_until_ms = clock_ms() + UNSURE_MS;
		}
	}
	free(c);
	a->pending--;
	go_on(a);
}

static const char *method_of(const struct ask *a, const Agent__Wanted *w)
{
	switch (a->kind) {
	case ASK_HINTS:
		return *w->container ? "GetTopologyHints" : "GetPodTopologyHints";
	case ASK_ALLOCATE:
		return *w->container ? "Allocate" : "AllocateForPod";
	default:
		return "PreStartContainer";
	}
}

static int request_of(struct ask *a, const Agent__Wanted *w, struct packed *ret)
{
	if (a->kind != ASK_PRE_START)
		return pluginmsg_request(a->arena, a->m, w, ret);
	Resourceplugin__PreStartContainerRequest m =
		RESOURCEPLUGIN__PRE_START_CONTAINER_REQUEST__INIT;
	m.pod_uid = a->m->uid;
	m.pod_namespace = a->m->namespace_;
	m.pod_name = a->m->name;
	m.container_name = w->container;
	return pluginmsg_pack(a->arena, &m.base, ret);
}

static uint32_t time_left(const struct ask *a, struct err *err)
{
	uint64_t now = clock_ms();
	uint32_t most = a->kind == ASK_PRE_START ? PLUGIN_PRE_START_MS : PLUGIN_CALL_MS;
	if (now >= a->until_ms) {
		(void)err_set(err, -ETIMEDOUT, "no time is left to ask resource plugins");
		return 0;
	}
	return a->until_ms - now < most ? (uint32_t)(a->until_ms - now) : most;
}

static int pluginask_call(struct ask *a, const Agent__Wanted *w, struct err *err)
{
	struct known_plugin *k = plugins_find(a->all, w->resource);
	struct packed packed;
	uint32_t left = time_left(a, err);
	if (!left)
		return -ETIMEDOUT;
	if (!k)
		return err_set(err, -ENOENT, "the plugin of resource %s is gone", w->resource);
	struct call *c = malloc(sizeof *c);
	int r = c ? request_of(a, w, &packed) : -ENOMEM;
	if (r)
		(void)err_errno(err, r, "request to resource plugin %s", w->resource);
	else {
		*c = (struct call){a, k, w, method_of(a, w)};
		r = plugin_call(k->plugin, c->method, packed.data, packed.n, left, on_answer, c,
				err);
	}
	if (r)
		free(c);
	return r;
}

/* Starts the next call to a plugin, or all calls at once for hints. */
static void go_on(struct ask *a)
{
	bool at_once = a->kind == ASK_HINTS;
	if (a->pending)
		return;
	a->pending = 1;
	while (a->at < a->m->n_wanted && !a->err.code && (at_once || a->pending == 1)) {
		struct err err = ERR_INIT;
		uint32_t i = a->at++;
		if (pluginask_call(a, a->m->wanted[i], &err))
			note_failure(a, i, &err);
		else
			a->pending++;
	}
	if (!--a->pending)
		pluginask_finish(a);
}

/* ---- requests -------------------------------------------------------------------------------- */

static const char *pluginask_objection(const Agent__PluginRequest *m)
{
	if (!m)
		return "cannot decode the request";
	if (!m->n_wanted || m->n_wanted > AGENT_WANTED_MAX || !m->timeout_ms)
		return "the request is empty, too large, or out of time";
	return NULL;
}

static void serve_ask(struct plugins *p, struct rpc_request *req, enum ask_kind kind)
{
	struct ask *a = calloc(1, sizeof *a);
	struct arena *arena = a ? arena_new(ARENA_BLOCK, AGENT_PLUGINS_ARENA) : NULL;
	if (!arena) {
		free(a);
		(void)rpc_reply_error(req, TTRPC_RESOURCE_EXHAUSTED, "out of memory");
		return;
	}
	a->all = p;
	a->req = req;
	a->arena = arena;
	a->kind = kind;
	a->m = RPC_MESSAGE(arena, agent__plugin_request, req);
	const char *why = pluginask_objection(a->m);
	if (!why)
		a->hints = arena_array(arena, a->m->n_wanted, sizeof *a->hints);
	if (!why && !a->hints)
		why = "out of memory";
	if (why) {
		(void)rpc_reply_error(req, TTRPC_INVALID_ARGUMENT, "%s", why);
		arena_free(arena);
		free(a);
		return;
	}
	a->until_ms = clock_ms() + a->m->timeout_ms;
	go_on(a);
}

/* ---- removal --------------------------------------------------------------------------------- */

struct removal {
	struct known_plugin *known;
	char *uid;
};

static void on_removed(const struct grpc_result *result, void *arg)
{
	struct removal *r = arg;
	struct err err = ERR_INIT;
	if (result->error) {
		(void)err_set(&err, result->error, "pod %.64s: %s", r->uid, result->text);
		plugin_failed(r->known->plugin, "RemovePod", &err);
		log_warning("%s; asking again", err.text);
		r->known->sweep = true;
	}
	free(r->uid);
	free(r);
}

static void remove_pod(struct known_plugin *k, const char *uid)
{
	_arena_ struct arena *arena = arena_new(ARENA_BLOCK, ARENA_BLOCK * 4);
	Resourceplugin__RemovePodRequest m = RESOURCEPLUGIN__REMOVE_POD_REQUEST__INIT;
	struct removal *removal = malloc(sizeof *removal);
	struct packed packed;
	struct err err = ERR_INIT;
	m.pod_uid = (char *)(uintptr_t)uid;
	if (removal)
		*removal = (struct removal){k, strdup(uid)};
	if (arena && removal && removal->uid && !pluginmsg_pack(arena, &m.base, &packed) &&
	    !plugin_call(k->plugin, "RemovePod", packed.data, packed.n, PLUGIN_CALL_MS, on_removed,
			 removal, &err))
		return;
	k->sweep = true; /* detected by a sweep when the plugin is connected again */
	if (removal)
		free(removal->uid);
	free(removal);
}

static void serve_remove(struct plugins *p, struct rpc_request *req)
{
	_arena_ struct arena *arena = arena_new(ARENA_BLOCK, ARENA_BLOCK * 4);
	const Agent__PluginRemoveRequest *m = RPC_MESSAGE(arena, agent__plugin_remove_request, req);
	if (!m || !grant_name(m->uid)) {
		(void)rpc_reply_error(req, TTRPC_INVALID_ARGUMENT, "cannot decode the request");
		return;
	}
	for (struct known_plugin *k = plugins_first(p); k; k = k->next)
		remove_pod(k, m->uid);
	(void)rpc_reply(req, NULL);
}

bool ask_serve(struct plugins *p, struct rpc_request *req)
{
	if (str_eq(req->method, "PluginHints"))
		serve_ask(p, req, ASK_HINTS);
	else if (str_eq(req->method, "PluginAllocate"))
		serve_ask(p, req, ASK_ALLOCATE);
	else if (str_eq(req->method, "PluginPreStart"))
		serve_ask(p, req, ASK_PRE_START);
	else if (str_eq(req->method, "PluginRemove"))
		serve_remove(p, req);
	else
		return false;
	return true;
}

/* ---- comparison of allocations with existing pods -------------------------------------------- */

/* A pending comparison. By name, because the plugin may have been removed or replaced when the
 * daemon answers. */
struct check {
	struct plugins *all;
	char *resource;
};

static void check_free(struct check *c)
{
	free(c->resource);
	free(c);
}

static void on_checked(const struct rpc_result *result, void *arg)
{
	struct check *c = arg;
	struct known_plugin *k = plugins_find(c->all, c->resource);
	_arena_ struct arena *arena = arena_new(ARENA_BLOCK, AGENT_PLUGINS_ARENA);
	const Agent__CheckPodsResponse *m = RPC_ANSWER(arena, agent__check_pods_response, result);
	if (k) {
		k->sweeping = false;
		k->sweep = k->sweep || !m;
	}
	if (result->error && result->error != -ECANCELED)
		log_debug("pods of %s: %s", c->resource, result->text);
	for (size_t i = 0; k && m && i < m->n_gone; i++) {
		log_info("resource plugin %s: pod %.64s was removed", c->resource, m->gone[i]);
		remove_pod(k, m->gone[i]);
	}
	check_free(c);
}

static int tell_daemon(struct known_plugin *k, struct arena *arena, const struct packed *answer,
		       struct err *err)
{
	Agent__CheckPodsRequest m = AGENT__CHECK_PODS_REQUEST__INIT;
	Agent__Plugin about;
	int r = pluginmsg_pods(arena, answer, k->resource, &m, err);
	if (r)
		return r;
	struct check *c = malloc(sizeof *c);
	if (c)
		*c = (struct check){k->all, strdup(k->resource)};
	if (!c || !c->resource) {
		free(c);
		return err_errno(err, -ENOMEM, "pods");
	}
	plugin_describe(k->plugin, &about);
	m.reconcile = about.reconciles && !k->allocated;
	/* Without a daemon the comparison waits until one connects. */
	if (link_call(plugins_link(k->all), "CheckPods", &m.base, CHECK_MS, on_checked, c)) {
		check_free(c);
		k->sweeping = false;
		k->sweep = true;
	}
	return 0;
}

static void on_allocations(const struct grpc_result *result, void *arg)
{
	struct known_plugin *k = arg;
	const struct packed answer = {result->payload, result->payload_len};
	_arena_ struct arena *arena = arena_new(ARENA_BLOCK, AGENT_PLUGINS_ARENA);
	struct err err = ERR_INIT;
	int r = result->error ? err_set(&err, result->error, "%s", result->text)
		: arena	      ? tell_daemon(k, arena, &answer, &err)
			      : err_errno(&err, -ENOMEM, "pods");
	if (!r)
		return;
	k->sweeping = false;
	k->sweep = true;
	if (r == -ECANCELED)
		return;
	plugin_failed(k->plugin, "GetResourcesAllocation", &err);
	log_debug("%s", err.text);
	/* A plugin without this method cannot report allocations: give up. */
	if (r == -EREMOTEIO && result->status == GRPC_UNIMPLEMENTED) {
		k->sweep = false;
		k->unsure_until_ms = 0;
	}
}

void ask_sweep(struct known_plugin *k)
{
	struct err err = ERR_INIT;
	/* Changes from here on require another sweep. */
	k->sweep = k->allocated = false;
	k->sweeping = !plugin_call(k->plugin, "GetResourcesAllocation", NULL, 0, PLUGIN_CALL_MS,
				   on_allocations, k, &err);
	k->sweep = k->sweep || !k->sweeping;
}
