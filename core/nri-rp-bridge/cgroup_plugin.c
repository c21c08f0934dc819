/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "core/nri-rp-bridge/cgroup_source_internal.h"
#include "core/nri-rp-bridge/cri_edit.h"
#include "core/lib/util/log.h"
#include "core/lib/util/pb.h"
#include "core/lib/util/str.h"
#include "core/lib/wire/nri_protocol.h"

#define LOG_SOURCE "bypass"
#define SETTLE_MS 300u /* time after a change within which the runtime writes the files itself */

/* ---- wanted resources ------------------------------------------------------------------------ */

void word_miss(struct cri_missing *missing, bool wanted, const char *field)
{
	if (wanted && missing->n < CRI_MISSING_MAX)
		missing->fields[missing->n++] = field;
}

/* Logs the missing fields once for each container. */
void word_say_missing(struct ctr *ctr, const struct cri_missing *missing)
{
	if (!missing->n || ctr->seat.warned)
		return;
	ctr->seat.warned = true;
	log_warning("container %s: the plugin wants %s%s, which cannot be done by cgroups", ctr->id,
		    missing->fields[0], missing->n > 1 ? " and more" : "");
}

Cri__Resources *wanted_before(const struct ctr *ctr, struct arena *a)
{
	ProtobufCAllocator alloc = pb_arena(a);
	return a && ctr->pending.data
		       ? cri__resources__unpack(&alloc, ctr->pending.n, ctr->pending.data)
		       : NULL;
}

int want_as_told(struct ctr *ctr, const Nri__Container *m)
{
	static char none[] = "";
	_arena_ struct arena *a = arena_new(ARENA_BLOCK, ARENA_MAX);
	const Nri__LinuxCPU *cpu = m->lnx && m->lnx->resources ? m->lnx->resources->cpu : NULL;
	Cri__Resources *to = wanted_before(ctr, a);
	if (!to)
		return ctr->pending.data ? -ENOMEM : 0;
	if (*to->cpuset_cpus)
		to->cpuset_cpus = cpu ? cpu->cpus : none;
	if (*to->cpuset_mems)
		to->cpuset_mems = cpu ? cpu->mems : none;
	return packed_set(&ctr->pending, &to->base);
}

static int want_one(struct bypass *b, const Nri__ContainerUpdate *u, bool keep,
		    struct write_run *run, struct err *err)
{
	struct ctr *ctr = model_ctr_by_id(&b->model, u->container_id);
	const struct write_how how = {keep, u->ignore_failure, run};
	if (!ctr || ctr->state == NRI__CONTAINER_STATE__CONTAINER_STOPPED)
		return u->ignore_failure ? 0 : err_set(err, -ENOENT, "there is none");
	if (!u->lnx || !u->lnx->resources)
		return 0;
	return write_wanted(b, ctr, u->lnx->resources, &how, err);
}

unsigned want_all(struct bypass *b, Nri__ContainerUpdate *const *list, size_t n, bool keep,
		  struct write_run *run)
{
	unsigned failed = 0;
	for (size_t i = 0; i < n; i++) {
		struct err err = ERR_INIT;
		int r = want_one(b, list[i], keep, run, &err);
		if (r)
			log_warning("container %.64s cannot be updated: %s", list[i]->container_id,
				    err_text(&err, r));
		failed += r != 0;
	}
	return failed;
}

/* ---- requests and events --------------------------------------------------------------------- */

struct word {
	struct question q;
	struct bypass *bypass;
	struct arena *arena; /* memory of q.resources; NULL: none */
	struct word *prev, *next;
};

static void word_free(struct word *w)
{
	DL_DELETE(w->bypass->words, w);
	if (w->q.event == NRI__EVENT__UPDATE_CONTAINER)
		w->q.ctr->seat.resizing = false;
	ctr_unref(w->q.ctr);
	pod_unref(w->q.pod);
	arena_free(w->arena);
	free(w);
}

void words_free(struct bypass *b)
{
	while (b->words) {
		question_forget(&b->words->q);
		word_free(b->words);
	}
}

/* Records that the plugin refuses a pod or container. It keeps running, and the plugin is asked
 * again later. */
static void cgroup_plugin_refused(struct bypass *b, struct seat *seat, const char *what,
				  const char *id, const char *why)
{
	seat->told = TOLD_REFUSED;
	if (!seat->refused_before)
		log_warning("%s %s is not managed, and asked about again later: %s", what, id, why);
	seat->refused_before = true;
	bypass_status(b);
}

static void cgroup_plugin_taken(struct seat *seat, const char *what, const char *id)
{
	seat->told = TOLD_TAKEN;
	if (seat->refused_before)
		log_notice("%s %s is managed now", what, id);
	seat->refused_before = false;
}

/* Collects those fields of an adjustment that only apply at creation. */
static void note_late(struct ctr *ctr, const Nri__ContainerAdjustment *m)
{
	struct cri_missing missing = {0};
	const Nri__LinuxContainerAdjustment *lnx = m->lnx;
	word_miss(&missing, m->n_env, "environment");
	word_miss(&missing, m->n_mounts, "mounts");
	word_miss(&missing, m->n_annotations, "annotations");
	word_miss(&missing, m->n_cdi_devices || (lnx && lnx->n_devices), "devices");
	word_miss(&missing, m->hooks || m->n_rlimits || m->n_args, "hooks, rlimits or arguments");
	word_miss(&missing,
		  lnx && (lnx->oom_score_adj || lnx->io_priority || lnx->scheduler ||
			  lnx->memory_policy || lnx->rdt || lnx->seccomp_policy ||
			  lnx->n_namespaces || lnx->n_sysctl || lnx->n_net_devices),
		  "what only a creation can set");
	word_say_missing(ctr, &missing);
}

static void hear_create(struct bypass *b, struct ctr *ctr, const struct rpc_result *result)
{
	struct err err = ERR_INIT;
	Nri__CreateContainerResponse *m =
		nri__create_container_response__unpack(NULL, result->payload_len, result->payload);
	if (!m)
		/* nri_runtime is about to drop the connection because of the undecodable answer */
		return;
	cgroup_plugin_taken(&ctr->seat, "container", ctr->id);
	(void)want_all(b, m->update, m->n_update, true, NULL);
	int r = 0;
	if (m->adjust && m->adjust->lnx && m->adjust->lnx->resources)
		r = write_wanted(b, ctr, m->adjust->lnx->resources,
				 &(struct write_how){.keep = true, .ignore = true}, &err);
	if (m->adjust)
		note_late(ctr, m->adjust);
	if (r)
		log_warning("container %s: %s", ctr->id, err_text(&err, r));
	nri__create_container_response__free_unpacked(m, NULL);
	bypass_soon(b, SETTLE_MS);
}

static void hear_stop(struct bypass *b, const struct rpc_result *result)
{
	Nri__StopContainerResponse *m =
		nri__stop_container_response__unpack(NULL, result->payload_len, result->payload);
	if (m)
		(void)want_all(b, m->update, m->n_update, true, NULL);
	nri__stop_container_response__free_unpacked(m, NULL);
}

/* Handles the answer to a resize: accepts the amounts, then applies the updates of the answer.
 * result NULL: the plugin does not subscribe to updates. */
static void hear_update(struct bypass *b, struct ctr *ctr, const struct rpc_result *result)
{
	Nri__UpdateContainerResponse *m =
		result ? nri__update_container_response__unpack(NULL, result->payload_len,
								result->payload)
		       : NULL;
	if (result && !m)
		/* nri_runtime is about to drop the connection because of the undecodable answer */
		return;
	word_say(b, NRI__EVENT__POST_UPDATE_CONTAINER, ctr->pod, ctr);
	if (describe_resized(ctr))
		log_error("out of memory: container %s keeps its amounts", ctr->id);
	if (m)
		(void)want_all(b, m->update, m->n_update, true, NULL);
	nri__update_container_response__free_unpacked(m, NULL);
}

/* Handles the plugin's answer. result NULL: the plugin does not subscribe to the event. */
static void cgroup_plugin_hear(struct word *w, const struct rpc_result *result)
{
	struct bypass *b = w->bypass;
	bool no = result && result->error;
	switch (w->q.event) {
	case NRI__EVENT__RUN_POD_SANDBOX:
		if (no)
			cgroup_plugin_refused(b, &w->q.pod->seat, "pod", w->q.pod->id,
					      result->text);
		else
			cgroup_plugin_taken(&w->q.pod->seat, "pod", w->q.pod->id);
		break;
	case NRI__EVENT__CREATE_CONTAINER:
		if (no)
			cgroup_plugin_refused(b, &w->q.ctr->seat, "container", w->q.ctr->id,
					      result->text);
		else if (result)
			hear_create(b, w->q.ctr, result);
		else
			cgroup_plugin_taken(&w->q.ctr->seat, "container", w->q.ctr->id);
		break;
	case NRI__EVENT__STOP_CONTAINER:
		if (result && !no)
			hear_stop(b, result);
		break;
	case NRI__EVENT__UPDATE_CONTAINER:
		if (!no)
			hear_update(b, w->q.ctr, result);
		else if (!w->q.ctr->seat.resize_refused)
			log_warning("container %s is not resized, and asked about again later: %s",
				    w->q.ctr->id, result->text);
		w->q.ctr->seat.resize_refused = no;
		break;
	default:
		if (no)
			log_info("the plugin's answer to %s: %s", nri_event_method(w->q.event),
				 result->text);
	}
}

/* Sends the events of a start, because the accepted container already runs. */
static void say_started(struct bypass *b, struct ctr *ctr)
{
	static const Nri__Event events[] = {NRI__EVENT__POST_CREATE_CONTAINER,
					    NRI__EVENT__START_CONTAINER,
					    NRI__EVENT__POST_START_CONTAINER};
	for (unsigned i = 0; i < sizeof events / sizeof *events; i++)
		word_say(b, events[i], ctr->pod, ctr);
}

/* Returns true if the connection failed and will be reopened. A request that could not even be sent
 * is repeated then. */
static bool is_lost(const struct rpc_result *result)
{
	int e = result ? result->error : 0;
	return e == -ETIMEDOUT || e == -EBADMSG || e == -ECONNRESET || e == -ECANCELED;
}

static void on_answer(struct question *q, const struct rpc_result *result)
{
	struct word *w = (struct word *)q;
	struct bypass *b = w->bypass;
	bool counts = nri_runtime_is_active(b->nri) && !is_lost(result);
	if (counts)
		cgroup_plugin_hear(w, result);
	if (counts && q->event == NRI__EVENT__CREATE_CONTAINER && q->ctr->seat.told == TOLD_TAKEN)
		say_started(b, q->ctr);
	if (q->event == NRI__EVENT__POST_CREATE_CONTAINER && !q->ctr->gone)
		q->ctr->state = NRI__CONTAINER_STATE__CONTAINER_RUNNING;
	bool pod = q->event == NRI__EVENT__RUN_POD_SANDBOX;
	word_free(w);
	nri_runtime_unlock(b->nri);
	if (counts && pod)
		bypass_advance(b);
}

/* Queues a request or event. Takes ownership of the arena, which may be NULL. */
static void cgroup_plugin_say(struct bypass *b, Nri__Event event, struct pod *pod, struct ctr *ctr,
			      Nri__LinuxResources *resources, struct arena *arena)
{
	struct word *w = calloc(1, sizeof *w);
	if (!w) {
		arena_free(arena);
		log_error("out of memory: the plugin does not hear of %s", nri_event_method(event));
		if (event == NRI__EVENT__RUN_POD_SANDBOX)
			pod->seat.told = TOLD_REFUSED;
		else if (event == NRI__EVENT__CREATE_CONTAINER)
			ctr->seat.told = TOLD_REFUSED;
		return;
	}
	w->arena = arena;
	w->bypass = b;
	w->q = (struct question){.nri = b->nri,
				 .event = event,
				 .pod = pod_ref(pod),
				 .ctr = ctr ? ctr_ref(ctr) : NULL,
				 .resources = resources,
				 .deadline_ms = UINT64_MAX,
				 .then = on_answer};
	DL_APPEND(b->words, w);
	if (event == NRI__EVENT__UPDATE_CONTAINER)
		ctr->seat.resizing = true;
	question_ask(&w->q);
}

void word_say(struct bypass *b, Nri__Event event, struct pod *pod, struct ctr *ctr)
{
	cgroup_plugin_say(b, event, pod, ctr, NULL, NULL);
}

/* ---- resizes --------------------------------------------------------------------------------- */

void resize_all(struct bypass *b)
{
	static char none[] = "";
	struct ctr *ctr, *next;
	HASH_ITER (by_id, b->model.ctrs, ctr, next) {
		Cri__Resources r;
		if (ctr->seat.told != TOLD_TAKEN || ctr->seat.resizing ||
		    !describe_resize(b, ctr, &r))
			continue;
		struct arena *a = arena_new(ARENA_BLOCK, ARENA_MAX);
		r.cpuset_cpus = r.cpuset_mems = none;
		Nri__LinuxResources *resources = a ? cri_resources(a, &r) : NULL;
		if (!resources) {
			arena_free(a);
			continue;
		}
		cgroup_plugin_say(b, NRI__EVENT__UPDATE_CONTAINER, ctr->pod, ctr, resources, a);
	}
}
