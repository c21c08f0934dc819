/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-sim/conn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/nri-rp-sim/apply.h"
#include "core/nri-rp-sim/wrong_sync.h"
#include "core/nri-rp-sim/messages.h"
#include "core/nri-rp-sim/frame_check.h"
#include "core/nri-rp-sim/check.h"
#include "core/lib/wire/nri_protocol.h"
#include "core/lib/nri-runtime/runtime.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/clock.h"

struct conn {
	struct sim *s;
	struct nri_runtime *runtime;
	struct tap *tap;
	uint64_t n_active;
	char name[16], version[32];
	struct arena *sync_arena; /* messages of the Synchronize in progress */
	struct nri_existing all;
};

/* ---- synchronization ------------------------------------------------------------------------- */

static int conn_collect(struct conn *c)
{
	const struct sim *s = c->s;
	struct arena *a = c->sync_arena = arena_new(256 << 10, 0);
	struct nri_existing *all = &c->all;
	size_t n_pods = 0, n_ctrs = 0;
	for (const struct sim_pod *p = s->pods; p; p = p->next)
		n_pods++;
	for (const struct sim_ctr *t = s->ctrs; t; t = t->next)
		n_ctrs++;
	n_ctrs += lie_more(s);
	*all = (struct nri_existing){.pods = a ? arena_array(a, n_pods + 1, sizeof(void *)) : NULL,
				     .ctrs = a ? arena_array(a, n_ctrs + 1, sizeof(void *)) : NULL,
				     .part = s->sync_parts};
	if (!all->pods || !all->ctrs)
		return -ENOMEM;
	for (const struct sim_pod *p = s->pods; p; p = p->next) {
		if (p->stopped && s->runtime == RUNTIME_CRIO)
			continue;
		all->pods[all->n_pods] = message_pod(s, a, p);
		if (!all->pods[all->n_pods++])
			return -ENOMEM;
	}
	for (const struct sim_ctr *t = s->ctrs; t; t = t->next) {
		if (t->state != CTR_CREATED && t->state != CTR_RUNNING)
			continue;
		all->ctrs[all->n_ctrs] = message_ctr(s, a, t);
		if (!all->ctrs[all->n_ctrs++])
			return -ENOMEM;
	}
	return s->lie ? lie_tell(s, a, all) : 0;
}

/* Applies the plugin's answer to Synchronize. Returns false if the runtime drops the plugin. */
static bool carry_out_synchronisation(struct conn *c, const Nri__SynchronizeResponse *m)
{
	struct sim *s = c->s;
	struct err err = ERR_INIT;
	int r = check_message(s, &m->base, "the reply to Synchronize");
	if (!r)
		r = check_claims(s, m->update, m->n_update, &err);
	unsigned failed = r ? 1 : apply_updates(s, m->update, m->n_update, "synchronize");
	return !failed || s->runtime != RUNTIME_CRIO;
}

static void conn_synchronized(const Nri__SynchronizeResponse *m, void *arg)
{
	struct conn *c = arg;
	if (m && !carry_out_synchronisation(c, m)) {
		nri_runtime_drop(c->runtime, "updates of the synchronisation have failed");
	} else if (m) {
		json_t *details = json_object();
		doc_put_text(details, "plugin", nri_runtime_plugin(c->runtime));
		doc_put_int(details, "pods", (int64_t)c->all.n_pods);
		doc_put_int(details, "containers", (int64_t)c->all.n_ctrs);
		doc_put_int(details, "updates", (int64_t)m->n_update);
		c->s->n_synchronizations++;
		sim_event(c->s, "synchronized", details);
	}
	c->sync_arena = arena_free(c->sync_arena);
	nri_runtime_unlock(c->runtime);
}

static void synchronize(void *arg)
{
	struct conn *c = arg;
	if (conn_collect(c) == 0) {
		nri_runtime_synchronize(c->runtime, &c->all, conn_synchronized, c);
		return;
	}
	c->sync_arena = arena_free(c->sync_arena);
	nri_runtime_not_synchronized(c->runtime, "out of memory");
}

/* ---- activity of the plugin ------------------------------------------------------------------ */

static void came(const char *plugin, void *arg)
{
	struct conn *c = arg;
	c->n_active++;
	sim_wake(c->s);
}

static void gone(bool was_active, const char *why, void *arg)
{
	struct conn *c = arg;
	json_t *details = json_object();
	c->tap = tap_free(c->tap);
	doc_put_text(details, "why", why);
	doc_put_bool(details, "active", was_active);
	sim_event(c->s, "disconnected", details);
	sim_wake(c->s);
}

static void problem(const char *what, void *arg)
{
	const struct conn *c = arg;
	sim_problem(c->s, "%s", what);
}

static void bad_frame(const char *what, void *arg)
{
	const struct conn *c = arg;
	sim_problem(c->s, "frames: %s", what);
}

static int wrap(int fd, int *ret_fd, struct err *err, void *arg)
{
	struct conn *c = arg;
	int r = tap_new(c->s->loop, fd, bad_frame, c, &c->tap, ret_fd, err);
	if (!r)
		tap_cut(c->tap, lie_cut(c->s));
	return r;
}

static void update(const Nri__UpdateContainersRequest *m, void *arg)
{
	struct conn *c = arg;
	struct sim *s = c->s;
	struct err err = ERR_INIT;
	json_t *details = json_object();
	int r = check_message(s, &m->base, "UpdateContainers");
	if (!r)
		r = check_claims(s, m->update, m->n_update, &err);
	uint64_t first = s->n_updates + 1;
	unsigned failed = r ? 0 : apply_updates(s, m->update, m->n_update, "unsolicited");
	if (m->n_evict)
		sim_problem(s, "evictions, which no release of NRI supports");
	s->n_unsolicited++;
	doc_put_int(details, "first", (int64_t)first);
	doc_put_int(details, "updates", (int64_t)m->n_update);
	doc_put_int(details, "failed", failed);
	sim_event(s, "updated", details);
	nri_runtime_updated(c->runtime, r || failed);
	sim_wake(s);
}

/* ---- the socket ------------------------------------------------------------------------------ */

int conn_listen(struct sim *s, struct err *err)
{
	if (s->conn)
		return 0;
	struct conn *c = calloc(1, sizeof *c);
	if (!c)
		return err_errno(err, -ENOMEM, "runtime");
	bool crio = s->runtime == RUNTIME_CRIO;
	c->s = s;
	(void)snprintf(c->name, sizeof c->name, "%s", crio ? "cri-o" : "containerd");
	(void)snprintf(c->version, sizeof c->version, "%s",
		       crio ? s->release->crio : s->release->containerd);
	const struct nri_runtime_config config = {
		.loop = s->loop,
		.socket = s->socket,
		.name = c->name,
		.version = c->version,
		.release = s->release,
		.registration_timeout_ms = (uint32_t)s->registration_timeout_ms,
		.request_timeout_ms = (uint32_t)s->request_timeout_ms,
		.synchronize = synchronize,
		.update = update,
		.came = came,
		.gone = gone,
		.problem = problem,
		.wrap = wrap,
		.arg = c,
	};
	int r = nri_runtime_new(&config, &c->runtime, err);
	if (r) {
		free(c);
		return r;
	}
	s->conn = c;
	return 0;
}

void conn_close(struct sim *s)
{
	struct conn *c = s->conn;
	if (!c)
		return;
	c->runtime = nri_runtime_free(c->runtime);
	s->n_active_before += c->n_active;
	free(c);
	s->conn = NULL;
}

/* ---- state of the connection ----------------------------------------------------------------- */

bool conn_is_active(const struct sim *s)
{
	return s->conn && nri_runtime_is_active(s->conn->runtime);
}

uint64_t conn_n_active(const struct sim *s)
{
	return s->n_active_before + (s->conn ? s->conn->n_active : 0);
}

void conn_drop(struct sim *s, const char *why)
{
	if (s->conn)
		nri_runtime_drop(s->conn->runtime, why);
}

void conn_configure_first(struct sim *s, bool first)
{
	if (s->conn)
		nri_runtime_configure_first(s->conn->runtime, first);
}

static bool is_active(struct sim *s, void *arg)
{
	return conn_is_active(s) && conn_n_active(s) > *(const uint64_t *)arg;
}

int conn_wait_active(struct sim *s, uint64_t after, uint64_t timeout_ms, struct err *err)
{
	int r = sim_wait(s, is_active, &after, timeout_ms);
	if (!r)
		return 0;
	return err_set(err, r, "nri-rpd has not been synchronized within %llu ms",
		       (unsigned long long)timeout_ms);
}

/* ---- events ---------------------------------------------------------------------------------- */

struct question {
	struct nri_turn turn;
	struct conn_answer *answer;
	bool mine, done; /* the lock is held; the answer has come */
};

static void take_turn(void *arg)
{
	struct question *q = arg;
	q->mine = true;
	sim_wake(q->answer->s);
}

static bool is_mine(struct sim *s, void *arg)
{
	return ((const struct question *)arg)->mine;
}

static void conn_answered(const struct rpc_result *result, void *arg)
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
	return ((const struct question *)arg)->done;
}

/* Sends the event. Call with the lock held. */
static void conn_ask(struct sim *s, Nri__Event event, const struct sim_pod *pod,
		     const struct sim_ctr *ctr, const struct resources *resources,
		     struct question *q)
{
	_arena_ struct arena *a = arena_new(16 << 10, 0);
	Nri__PodSandbox *pod_message = a ? message_pod(s, a, pod) : NULL;
	Nri__Container *ctr_message = a && ctr ? message_ctr(s, a, ctr) : NULL;
	Nri__LinuxResources *res = a && resources ? message_resources(a, resources, true) : NULL;
	int r = -ENOMEM;
	if (pod_message && (!ctr || ctr_message) && (!resources || res))
		r = nri_runtime_event(
			s->conn->runtime,
			&(struct nri_about){event, pod_message, ctr_message, res, NULL}, 0,
			conn_answered, q);
	q->answer->error = r > 0 ? -ENOTCONN : r;
	if (r < 0)
		sim_problem(s, "%s could not be sent: %s", nri_event_method(event), strerror(-r));
	if (!r && sim_wait(s, is_done, q, UINT64_MAX))
		conn_drop(s, "interrupted"); /* also ends the call */
}

void conn_event(struct sim *s, Nri__Event event, const struct sim_pod *pod,
		const struct sim_ctr *ctr, const struct resources *resources,
		struct conn_answer *ret)
{
	struct question q = {.turn = {.fn = take_turn, .arg = &q}, .answer = ret};
	uint64_t start = clock_us();
	*ret = (struct conn_answer){.s = s};
	if (!s->conn || !nri_runtime_is_subscribed(s->conn->runtime, event))
		return;
	nri_runtime_lock(s->conn->runtime, &q.turn);
	if (sim_wait(s, is_mine, &q, UINT64_MAX)) {
		nri_runtime_forget(s->conn->runtime, &q.turn);
		ret->error = -ENOTCONN;
		return;
	}
	conn_ask(s, event, pod, ctr, resources, &q);
	nri_runtime_unlock(s->conn->runtime);
	ret->took_us = clock_us() - start;
}

void conn_answer_fini(struct conn_answer *answer)
{
	free(answer->text);
	free(answer->payload);
	*answer = (struct conn_answer){0};
}
