/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-bridge/plugin.h"

#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "core/lib/util/clock.h"
#include "core/lib/util/log.h"
#include "core/lib/util/str.h"
#include "core/lib/wire/nri_protocol.h"

#define LOG_SOURCE "bridge"
#define REGISTRATION_MS 5000u
/* the NRI release that the bridge emulates */
#define PLAYED_NRI "0.11"

/* ---- questions ------------------------------------------------------------------------------- */

static void plugin_answered(const struct rpc_result *result, void *arg)
{
	struct question *q = arg;
	q->arena = arena_free(q->arena);
	q->then(q, result);
}

static int plugin_ask_now(struct question *q)
{
	struct arena *a = q->arena;
	uint64_t now = clock_ms(), left = 0;
	if (q->deadline_ms != UINT64_MAX)
		left = q->deadline_ms > now ? q->deadline_ms - now : 1;
	Nri__PodSandbox *pod = a ? pod_message(a, q->pod) : NULL;
	Nri__Container *ctr = a && q->ctr ? ctr_message(a, q->ctr) : NULL;
	if (!pod || (q->ctr && !ctr))
		return -ENOMEM;
	if (ctr && q->plugin->config.creates && q->event == NRI__EVENT__CREATE_CONTAINER) {
		/* A container that exists already may have been started or stopped while the
		 * request waited for its turn. */
		ctr->state = NRI__CONTAINER_STATE__CONTAINER_UNKNOWN;
		ctr->pid = 0;
	}
	return nri_runtime_event(q->plugin->nri,
				 &(struct nri_about){q->event, pod, ctr, q->resources, q->overhead},
				 left, plugin_answered, q);
}

static void plugin_turn(void *arg)
{
	struct question *q = arg;
	q->arena = arena_new(ARENA_BLOCK, ARENA_MAX);
	int r = plugin_ask_now(q);
	if (!r)
		return;
	q->arena = arena_free(q->arena);
	q->then(q, r < 0 ? &(struct rpc_result){.error = r, .text = strerror(-r)} : NULL);
}

void question_ask(struct question *q)
{
	q->turn = (struct nri_turn){.fn = plugin_turn, .arg = q};
	nri_runtime_lock(q->plugin->nri, &q->turn);
}

/* ---- notices --------------------------------------------------------------------------------- */

static void notice_free(struct notice *n)
{
	DL_DELETE(n->q.plugin->notices, n);
	nri__stop_container_response__free_unpacked(n->answer, NULL);
	if (n->q.event == NRI__EVENT__UPDATE_CONTAINER)
		n->q.ctr->info.resizing = false;
	ctr_unref(n->q.ctr);
	pod_unref(n->q.pod);
	arena_free(n->arena);
	free(n);
}

void notices_free(struct plugin *p)
{
	while (p->notices) {
		if (p->nri)
			nri_runtime_forget(p->nri, &p->notices->q.turn);
		notice_free(p->notices);
	}
}

void notice_end(struct notice *n)
{
	struct plugin *p = n->q.plugin;
	if (n->removes && n->q.ctr)
		model_remove_ctr(&p->model, n->q.ctr);
	else if (n->removes)
		model_remove_pod(&p->model, n->q.pod);
	notice_free(n);
	nri_runtime_unlock(p->nri);
}

static void notice_heard(struct question *q, const struct rpc_result *result)
{
	q->plugin->config.heard((struct notice *)q, result, q->plugin);
}

struct notice *notice_new(struct plugin *p, Nri__Event event, struct pod *pod, struct ctr *ctr)
{
	struct notice *n = calloc(1, sizeof *n);
	if (!n) {
		log_error("out of memory: the plugin is not notified of %s",
			  nri_event_method(event));
		return NULL;
	}
	n->q = (struct question){.plugin = p,
				 .event = event,
				 .pod = pod_ref(pod),
				 .ctr = ctr ? ctr_ref(ctr) : NULL,
				 .deadline_ms = UINT64_MAX,
				 .then = notice_heard};
	DL_APPEND(p->notices, n);
	return n;
}

/* ---- updates --------------------------------------------------------------------------------- */

unsigned plugin_updates(struct plugin *p, Nri__ContainerUpdate *const *list, size_t n,
			const char *except,
			int (*fn)(struct ctr *ctr, const Nri__ContainerUpdate *u, void *arg,
				  struct err *err),
			void *arg)
{
	unsigned failed = 0;
	for (size_t i = 0; i < n; i++) {
		const Nri__ContainerUpdate *u = list[i];
		struct err err = ERR_INIT;
		struct ctr *ctr = model_ctr_by_id(&p->model, u->container_id);
		int r = 0;
		if (except && str_eq(u->container_id, except))
			continue;
		if (!ctr || ctr->state == NRI__CONTAINER_STATE__CONTAINER_STOPPED)
			r = u->ignore_failure ? 0 : err_set(&err, -ENOENT, "no such container");
		else if (u->lnx && u->lnx->resources)
			r = fn(ctr, u, arg, &err);
		if (r)
			log_warning("container %.64s cannot be updated: %s", u->container_id,
				    err_text(&err, r));
		failed += r != 0;
	}
	return failed;
}

/* ---- connection ------------------------------------------------------------------------------ */

static void on_update(const Nri__UpdateContainersRequest *m, void *arg)
{
	struct plugin *p = arg;
	if (m->n_evict)
		log_warning("the plugin evicts containers, which nri-rp-bridge does not support");
	p->config.update(m, p);
}

static void on_gone(bool was_active, const char *why, void *arg)
{
	struct plugin *p = arg;
	if (was_active)
		log_notice("%s: no plugin is connected any more, %s", why, p->config.without);
	else
		log_notice("%s: a plugin was let go before it was asked anything", why);
	if (p->config.gone)
		p->config.gone(p);
}

static void on_problem(const char *what, void *arg)
{
	log_warning("the plugin: %s", what);
}

int plugin_open(struct plugin *p, const struct plugin_config *config, struct err *err)
{
	const struct nri_release *release;
	*p = (struct plugin){.config = *config};
	int r = release_find(PLAYED_NRI, &release, err);
	return r ? r
		 : nri_runtime_new(
			   &(struct nri_runtime_config){.loop = config->loop,
							.socket = config->socket,
							.name = config->name,
							.version = NRI_RP_VERSION,
							.registration_timeout_ms = REGISTRATION_MS,
							.request_timeout_ms = QUESTION_MS,
							.synchronize = config->synchronize,
							.update = on_update,
							.came = config->came,
							.gone = on_gone,
							.problem = on_problem,
							.release = release,
							.arg = p},
			   &p->nri, err);
}

void plugin_close(struct plugin *p)
{
	p->nri = nri_runtime_free(p->nri);
	notices_free(p);
	model_clear(&p->model);
}
