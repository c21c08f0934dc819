/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "core/nri-rp-bridge/cgroup_source_internal.h"
#include "core/nri-rp-bridge/cri_edit.h"
#include "core/lib/util/log.h"
#include "core/lib/util/pb.h"
#include "core/lib/wire/nri_protocol.h"

#define LOG_SOURCE "bypass"
#define SETTLE_MS 300u /* time after a change within which the runtime writes the files itself */

/* ---- wanted resources ------------------------------------------------------------------------ */

void missing_add(struct cri_missing *missing, bool wanted, const char *field)
{
	if (wanted && missing->n < CRI_MISSING_MAX)
		missing->fields[missing->n++] = field;
}

/* Logs the missing fields once for each container. */
void missing_log(struct ctr *ctr, const struct cri_missing *missing)
{
	if (!missing->n || ctr->info.warned)
		return;
	ctr->info.warned = true;
	log_warning("container %s: the plugin requests %s%s, which cgroups cannot set", ctr->id,
		    missing->fields[0], missing->n > 1 ? " and more" : "");
}

Cri__Resources *wanted_before(const struct ctr *ctr, struct arena *a)
{
	return a && ctr->pending.data
		       ? PB_UNPACK(a, cri__resources, ctr->pending.n, ctr->pending.data)
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

struct wanting {
	struct cgroup_source *source;
	bool keep;
	struct write_run *run;
};

static int want_one(struct ctr *ctr, const Nri__ContainerUpdate *u, void *arg, struct err *err)
{
	const struct wanting *w = arg;
	const struct write_how how = {w->keep, u->ignore_failure, w->run};
	return write_wanted(w->source, ctr, u->lnx->resources, &how, err);
}

unsigned want_all(struct cgroup_source *s, Nri__ContainerUpdate *const *list, size_t n, bool keep,
		  struct write_run *run)
{
	struct wanting w = {s, keep, run};
	return plugin_updates(&s->plugin, list, n, NULL, want_one, &w);
}

/* ---- requests and events --------------------------------------------------------------------- */

/* Records that the plugin refuses a pod or container. The pod or container keeps running, and the
 * plugin is queried again later. */
static void cgroup_plugin_refused(struct cgroup_source *s, struct cgroup_info *info,
				  const char *what, const char *id, const char *why)
{
	info->told = TOLD_REFUSED;
	if (!info->refused_before)
		log_warning("%s %s is not managed; the plugin is asked again later: %s", what, id,
			    why);
	info->refused_before = true;
	cgroup_source_status(s);
}

static void cgroup_plugin_taken(struct cgroup_info *info, const char *what, const char *id)
{
	info->told = TOLD_TAKEN;
	if (info->refused_before)
		log_notice("%s %s is now managed", what, id);
	info->refused_before = false;
}

/* Collects those fields of an adjustment that only apply at creation. */
static void note_late(struct ctr *ctr, const Nri__ContainerAdjustment *m)
{
	struct cri_missing missing = {0};
	const Nri__LinuxContainerAdjustment *lnx = m->lnx;
	missing_add(&missing, m->n_env, "environment");
	missing_add(&missing, m->n_mounts, "mounts");
	missing_add(&missing, m->n_annotations, "annotations");
	missing_add(&missing, m->n_cdi_devices || (lnx && lnx->n_devices), "devices");
	missing_add(&missing, m->hooks || m->n_rlimits || m->n_args, "hooks, rlimits or arguments");
	missing_add(&missing,
		    lnx && (lnx->oom_score_adj || lnx->io_priority || lnx->scheduler ||
			    lnx->memory_policy || lnx->rdt || lnx->seccomp_policy ||
			    lnx->n_namespaces || lnx->n_sysctl || lnx->n_net_devices),
		    "settings that only a creation can set");
	missing_log(ctr, &missing);
}

static void hear_create(struct cgroup_source *s, struct ctr *ctr, const struct rpc_result *result)
{
	struct err err = ERR_INIT;
	Nri__CreateContainerResponse *m =
		nri__create_container_response__unpack(NULL, result->payload_len, result->payload);
	if (!m)
		/* nri_runtime is about to drop the connection because of the undecodable answer */
		return;
	cgroup_plugin_taken(&ctr->info, "container", ctr->id);
	(void)want_all(s, m->update, m->n_update, true, NULL);
	int r = 0;
	if (m->adjust && m->adjust->lnx && m->adjust->lnx->resources)
		r = write_wanted(s, ctr, m->adjust->lnx->resources,
				 &(struct write_how){.keep = true, .ignore = true}, &err);
	if (m->adjust)
		note_late(ctr, m->adjust);
	if (r)
		log_warning("container %s: %s", ctr->id, err_text(&err, r));
	nri__create_container_response__free_unpacked(m, NULL);
	cgroup_source_soon(s, SETTLE_MS);
}

static void hear_stop(struct cgroup_source *s, const struct rpc_result *result)
{
	Nri__StopContainerResponse *m =
		nri__stop_container_response__unpack(NULL, result->payload_len, result->payload);
	if (m)
		(void)want_all(s, m->update, m->n_update, true, NULL);
	nri__stop_container_response__free_unpacked(m, NULL);
}

/* Handles the answer to a resize: accepts the amounts, then applies the updates of the answer.
 * result NULL: the plugin does not subscribe to updates. */
static void hear_update(struct cgroup_source *s, struct ctr *ctr, const struct rpc_result *result)
{
	Nri__UpdateContainerResponse *m =
		result ? nri__update_container_response__unpack(NULL, result->payload_len,
								result->payload)
		       : NULL;
	if (result && !m)
		/* nri_runtime is about to drop the connection because of the undecodable answer */
		return;
	cgroup_tell(s, NRI__EVENT__POST_UPDATE_CONTAINER, ctr->pod, ctr);
	if (describe_resized(ctr))
		log_error("out of memory: container %s keeps its resources", ctr->id);
	if (m)
		(void)want_all(s, m->update, m->n_update, true, NULL);
	nri__update_container_response__free_unpacked(m, NULL);
}

/* Handles the plugin's answer. result NULL: the plugin does not subscribe to the event. */
static void cgroup_plugin_hear(struct cgroup_source *s, const struct question *q,
			       const struct rpc_result *result)
{
	bool no = result && result->error;
	switch (q->event) {
	case NRI__EVENT__RUN_POD_SANDBOX:
		if (no)
			cgroup_plugin_refused(s, &q->pod->info, "pod", q->pod->id, result->text);
		else
			cgroup_plugin_taken(&q->pod->info, "pod", q->pod->id);
		break;
	case NRI__EVENT__CREATE_CONTAINER:
		if (no)
			cgroup_plugin_refused(s, &q->ctr->info, "container", q->ctr->id,
					      result->text);
		else if (result)
			hear_create(s, q->ctr, result);
		else
			cgroup_plugin_taken(&q->ctr->info, "container", q->ctr->id);
		break;
	case NRI__EVENT__STOP_CONTAINER:
		if (result && !no)
			hear_stop(s, result);
		break;
	case NRI__EVENT__UPDATE_CONTAINER:
		if (!no)
			hear_update(s, q->ctr, result);
		else if (!q->ctr->info.resize_refused)
			log_warning(
				"container %s is not resized; the plugin is asked again later: %s",
				q->ctr->id, result->text);
		q->ctr->info.resize_refused = no;
		break;
	default:
		if (no)
			log_info("the plugin's reply to %s: %s", nri_event_method(q->event),
				 result->text);
	}
}

/* Sends the events of a start, because the accepted container already runs. */
static void say_started(struct cgroup_source *s, struct ctr *ctr)
{
	static const Nri__Event events[] = {NRI__EVENT__POST_CREATE_CONTAINER,
					    NRI__EVENT__START_CONTAINER,
					    NRI__EVENT__POST_START_CONTAINER};
	for (unsigned i = 0; i < sizeof events / sizeof *events; i++)
		cgroup_tell(s, events[i], ctr->pod, ctr);
}

/* Returns true if the connection failed and will be reopened. A request that could not even be sent
 * is repeated then. */
static bool is_lost(const struct rpc_result *result)
{
	int e = result ? result->error : 0;
	return e == -ETIMEDOUT || e == -EBADMSG || e == -ECONNRESET || e == -ECANCELED;
}

void cgroup_heard(struct notice *n, const struct rpc_result *result, void *source)
{
	struct cgroup_source *s = source;
	const struct question *q = &n->q;
	bool counts = nri_runtime_is_active(s->plugin.nri) && !is_lost(result);
	if (counts)
		cgroup_plugin_hear(s, q, result);
	if (counts && q->event == NRI__EVENT__CREATE_CONTAINER && q->ctr->info.told == TOLD_TAKEN)
		say_started(s, q->ctr);
	if (q->event == NRI__EVENT__POST_CREATE_CONTAINER && !q->ctr->gone)
		q->ctr->state = NRI__CONTAINER_STATE__CONTAINER_RUNNING;
	bool pod = q->event == NRI__EVENT__RUN_POD_SANDBOX;
	notice_end(n);
	if (counts && pod)
		cgroup_source_advance(s);
}

void cgroup_tell(struct cgroup_source *s, Nri__Event event, struct pod *pod, struct ctr *ctr)
{
	struct notice *n = notice_new(&s->plugin, event, pod, ctr);
	if (n)
		question_ask(&n->q);
	else if (event == NRI__EVENT__RUN_POD_SANDBOX)
		pod->info.told = TOLD_REFUSED;
	else if (event == NRI__EVENT__CREATE_CONTAINER)
		ctr->info.told = TOLD_REFUSED;
}

/* ---- resizes --------------------------------------------------------------------------------- */

/* Queues an update of the container. Without memory, the next list of pods causes another
 * attempt. */
static void resize_tell(struct cgroup_source *s, struct ctr *ctr, Cri__Resources *r)
{
	static char none[] = "";
	struct arena *a = arena_new(ARENA_BLOCK, ARENA_MAX);
	r->cpuset_cpus = r->cpuset_mems = none;
	Nri__LinuxResources *resources = a ? cri_resources(a, r) : NULL;
	struct notice *n =
		resources ? notice_new(&s->plugin, NRI__EVENT__UPDATE_CONTAINER, ctr->pod, ctr)
			  : NULL;
	if (!n) {
		arena_free(a);
		return;
	}
	n->arena = a;
	n->q.resources = resources;
	ctr->info.resizing = true;
	question_ask(&n->q);
}

void resize_all(struct cgroup_source *s)
{
	struct ctr *ctr, *next;
	HASH_ITER (by_id, s->plugin.model.ctrs, ctr, next) {
		Cri__Resources r;
		if (ctr->info.told == TOLD_TAKEN && !ctr->info.resizing &&
		    describe_resize(s, ctr, &r))
			resize_tell(s, ctr, &r);
	}
}
