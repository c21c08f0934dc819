/* SPDX-License-Identifier: Apache-2.0 */
/* Handles each intercepted call: parses and edits the request, and applies the outcome to the
 * model. */
#include <errno.h>
#include <string.h>

#include "core/nri-rp-bridge/intercept_internal.h"
#include "core/lib/util/log.h"
#include "core/lib/util/str.h"

#define LOG_SOURCE "bridge"

/* ---- pods ------------------------------------------------------------------------------------ */

/* Returns the id of the pod or container for the plugin: the runtime's id if it exists already,
 * otherwise a new id of the bridge. NULL: no random numbers. */
static const char *id_of_new(struct intercept_call *c)
{
	if (c->late_id)
		return c->late_id;
	return model_new_id(c->new_id) ? NULL : c->new_id;
}

static int read_run_pod(struct intercept_call *c)
{
	const char *id = id_of_new(c);
	Cri__RunPodSandboxRequest *m =
		call_unpack(c, &cri__run_pod_sandbox_request__descriptor, c->payload);
	if (!m || !m->config || !m->config->metadata)
		return 1; /* the runtime reports the error */
	c->request = &m->base;
	if (c->intercept->config.pod_event_after && !c->late_id) {
		c->held = true;
		return 1;
	}
	Nri__PodSandbox *pod = id ? cri_pod(c->arena, id, m->config, m->runtime_handler) : NULL;
	if (!pod)
		return -ENOMEM;
	c->q.pod = model_add_pod(&c->intercept->plugin.model, pod, c->late_id);
	return c->q.pod ? 0 : -ENOMEM;
}

static int edit_run_pod(struct intercept_call *c, struct cri_missing *missing, struct err *err)
{
	Cri__PodConfig *config = ((Cri__RunPodSandboxRequest *)c->request)->config;
	const char *parent = config->lnx ? config->lnx->cgroup_parent : "";
	/* A plugin that is queried after the creation already has the runtime's id. */
	int r = c->held ? 0 : cri_annotate_pod(c->arena, config, CRI_ID_ANNOTATION, c->q.pod->id);
	if (!r)
		r = cri_annotate_pod(c->arena, config, CRI_PARENT_ANNOTATION, parent);
	return r ? err_errno(err, r, "a pod") : 0;
}

static void tell_pod_stopped(struct intercept *p, struct pod *pod)
{
	if (pod->stopped)
		return;
	pod->stopped = true;
	tell_event(p, NRI__EVENT__STOP_POD_SANDBOX, pod, NULL, false);
}

/* Notifies the plugin of the stop too, because the call that stops the pod may have been broken
 * off. */
static void tell_pod_removed(struct intercept *p, struct pod *pod)
{
	tell_pod_stopped(p, pod);
	tell_event(p, NRI__EVENT__REMOVE_POD_SANDBOX, pod, NULL, true);
}

static void after_run_pod(struct intercept_call *c, enum intercept_outcome outcome,
			  struct span payload)
{
	struct intercept *p = c->intercept;
	const Cri__Id *m =
		outcome == OUTCOME_DONE ? call_unpack(c, &cri__id__descriptor, payload) : NULL;
	if (m && *m->id && model_name_pod(&p->plugin.model, c->q.pod, m->id) == 0)
		return;
	tell_pod_removed(p, c->q.pod);
}

static int find_pod(struct intercept_call *c)
{
	const Cri__Id *m = call_unpack(c, &cri__id__descriptor, c->payload);
	struct pod *pod = m ? model_pod(&c->intercept->plugin.model, m->id) : NULL;
	if (!pod || pod->leaving)
		return 1;
	c->q.pod = pod_ref(pod);
	return 0;
}

static int read_update_pod(struct intercept_call *c)
{
	int r = find_pod(c);
	const Cri__UpdatePodRequest *m =
		call_unpack(c, &cri__update_pod_request__descriptor, c->payload);
	if (r || !m)
		return 1;
	c->q.overhead = m->overhead ? cri_resources(c->arena, m->overhead) : NULL;
	c->q.resources = m->resources ? cri_resources(c->arena, m->resources) : NULL;
	bool none = (m->overhead && !c->q.overhead) || (m->resources && !c->q.resources);
	return none ? -ENOMEM : 0;
}

static void after_update_pod(struct intercept_call *c, enum intercept_outcome outcome,
			     struct span payload)
{
	if (outcome != OUTCOME_DONE)
		return;
	pod_set_resources(c->q.pod, c->q.overhead, c->q.resources);
	tell_event(c->intercept, NRI__EVENT__POST_UPDATE_POD_SANDBOX, c->q.pod, NULL, false);
}

static int read_pod(struct intercept_call *c)
{
	c->told = find_pod(c) == 0;
	return 1;
}

static void tell_each(struct intercept_call *c, void (*tell)(struct intercept *p, struct ctr *ctr))
{
	struct ctr *ctr, *next;
	HASH_ITER (by_id, c->intercept->plugin.model.ctrs, ctr, next) {
		if (ctr->pod == c->q.pod && ctr->cri_id)
			tell(c->intercept, ctr);
	}
}

static void after_stop_pod(struct intercept_call *c, enum intercept_outcome outcome,
			   struct span payload)
{
	if (outcome != OUTCOME_DONE)
		return;
	tell_each(c, tell_stopped);
	tell_pod_stopped(c->intercept, c->q.pod);
}

static void after_remove_pod(struct intercept_call *c, enum intercept_outcome outcome,
			     struct span payload)
{
	if (outcome != OUTCOME_DONE)
		return;
	tell_each(c, tell_removed);
	tell_pod_removed(c->intercept, c->q.pod);
}

/* ---- containers ------------------------------------------------------------------------------ */

/* Adds a pod that the runtime has created although its caller had given up, and notifies the
 * plugin. Returns 1 if the request does not describe the pod. */
static int learn_pod(struct intercept_call *c, const Cri__CreateContainerRequest *m)
{
	struct intercept *p = c->intercept;
	if (!*m->pod_sandbox_id || !m->sandbox_config || !m->sandbox_config->metadata)
		return 1;
	Nri__PodSandbox *pod = cri_pod(c->arena, m->pod_sandbox_id, m->sandbox_config, "");
	c->q.pod = pod ? model_add_pod(&p->plugin.model, pod, m->pod_sandbox_id) : NULL;
	if (!c->q.pod)
		return -ENOMEM;
	c->learned = true;
	tell_event(p, NRI__EVENT__RUN_POD_SANDBOX, c->q.pod, NULL, false);
	return 0;
}

static int read_create(struct intercept_call *c)
{
	const char *id = id_of_new(c);
	struct model *model = &c->intercept->plugin.model;
	Cri__CreateContainerRequest *m =
		call_unpack(c, &cri__create_container_request__descriptor, c->payload);
	if (!m || !m->config || !m->config->metadata)
		return 1;
	struct pod *pod = model_pod(model, m->pod_sandbox_id);
	c->q.pod = pod ? pod_ref(pod) : NULL;
	int r = pod ? 0 : learn_pod(c, m);
	if (r)
		return r;
	Nri__Container *ctr = id ? cri_container(c->arena, id, c->q.pod->id, m->config) : NULL;
	if (!ctr)
		return -ENOMEM;
	c->request = &m->base;
	c->q.ctr = model_add_ctr(model, c->q.pod, ctr, c->late_id);
	return c->q.ctr ? 0 : -ENOMEM;
}

static int hear_create(struct intercept_call *c, const struct rpc_result *result)
{
	c->created = call_unpack(c, &nri__create_container_response__descriptor,
				 span_of(result->payload, result->payload_len));
	if (!c->created)
		return -EBADMSG;
	c->updates = c->created->update;
	c->n_updates = c->created->n_update;
	if (c->created->n_evict)
		log_warning("the plugin evicts containers, which nri-rp-bridge does not support");
	return 0;
}

static int edit_create(struct intercept_call *c, struct cri_missing *missing, struct err *err)
{
	Cri__ContainerConfig *config = ((Cri__CreateContainerRequest *)c->request)->config;
	int r = c->created && c->created->adjust
			? cri_adjust(c->arena, config, c->created->adjust, missing)
			: 0;
	if (!r)
		r = cri_annotate_container(c->arena, config, CRI_ID_ANNOTATION, c->q.ctr->id);
	return r ? err_errno(err, r, "a container") : 0;
}

static void after_create(struct intercept_call *c, enum intercept_outcome outcome,
			 struct span payload)
{
	struct intercept *p = c->intercept;
	const Cri__Id *m =
		outcome == OUTCOME_DONE ? call_unpack(c, &cri__id__descriptor, payload) : NULL;
	if (!m || !*m->id || model_name_ctr(&p->plugin.model, c->q.ctr, m->id)) {
		tell_removed(p, c->q.ctr);
		if (c->learned)
			tell_pod_removed(p, c->q.pod);
		return;
	}
	c->q.ctr->state = NRI__CONTAINER_STATE__CONTAINER_CREATED;
	c->q.ctr->polled = p->n_polls;
	const Nri__ContainerAdjustment *adjust = c->created ? c->created->adjust : NULL;
	if (adjust && adjust->lnx && adjust->lnx->resources)
		resources_in_force(c->q.ctr, adjust->lnx->resources);
	carry_pending(p, c->q.ctr);
	gather_place(p, c->q.ctr);
	tell_event(p, NRI__EVENT__POST_CREATE_CONTAINER, c->q.pod, c->q.ctr, false);
}

static int find_ctr(struct intercept_call *c)
{
	const Cri__Id *m = call_unpack(c, &cri__id__descriptor, c->payload);
	struct ctr *ctr = m ? model_ctr(&c->intercept->plugin.model, m->id) : NULL;
	if (!ctr || ctr->leaving)
		return 1;
	c->q.ctr = ctr_ref(ctr);
	c->q.pod = pod_ref(ctr->pod);
	return 0;
}

/* Finds the container of a start. If its state is not "created", the runtime reports the error
 * itself. */
static int read_start(struct intercept_call *c)
{
	int r = find_ctr(c);
	return r || c->q.ctr->state == NRI__CONTAINER_STATE__CONTAINER_CREATED ? r : 1;
}

static void after_start(struct intercept_call *c, enum intercept_outcome outcome,
			struct span payload)
{
	if (outcome == OUTCOME_DONE) {
		gather_place(c->intercept, c->q.ctr);
		tell_running(c->intercept, c->q.ctr);
	} else if (outcome == OUTCOME_REFUSED) {
		tell_stopped(c->intercept, c->q.ctr);
	} else {
		ends_look_soon(c->intercept);
	}
	ends_look_later(c->intercept);
}

static int read_update(struct intercept_call *c)
{
	int r = find_ctr(c);
	Cri__UpdateRequest *m = call_unpack(c, &cri__update_request__descriptor, c->payload);
	if (r || !m || !m->lnx || c->q.ctr->state == NRI__CONTAINER_STATE__CONTAINER_STOPPED)
		return 1;
	c->request = &m->base;
	c->q.resources = cri_resources(c->arena, m->lnx);
	return c->q.resources ? 0 : -ENOMEM;
}

static int hear_update(struct intercept_call *c, const struct rpc_result *result)
{
	c->updated = call_unpack(c, &nri__update_container_response__descriptor,
				 span_of(result->payload, result->payload_len));
	if (!c->updated)
		return -EBADMSG;
	c->updates = c->updated->update;
	c->n_updates = c->updated->n_update;
	return 0;
}

static int edit_update(struct intercept_call *c, struct cri_missing *missing, struct err *err)
{
	Cri__UpdateRequest *m = (Cri__UpdateRequest *)c->request;
	int r = 0;
	for (size_t i = 0; !r && i < c->n_updates; i++) {
		const Nri__ContainerUpdate *u = c->updates[i];
		if (str_eq(u->container_id, c->q.ctr->id) && u->lnx && u->lnx->resources)
			r = cri_set_resources(c->arena, m->lnx, u->lnx->resources, missing);
	}
	return r ? err_errno(err, r, "an update") : 0;
}

static void after_update(struct intercept_call *c, enum intercept_outcome outcome,
			 struct span payload)
{
	if (outcome != OUTCOME_DONE)
		return;
	/* The request in the call has the edited resources, which the runtime has applied. */
	resources_in_force(c->q.ctr,
			   cri_resources(c->arena, ((Cri__UpdateRequest *)c->request)->lnx));
	tell_event(c->intercept, NRI__EVENT__POST_UPDATE_CONTAINER, c->q.pod, c->q.ctr, false);
}

static int read_ctr(struct intercept_call *c)
{
	c->told = find_ctr(c) == 0;
	return 1;
}

static void after_stop(struct intercept_call *c, enum intercept_outcome outcome,
		       struct span payload)
{
	if (outcome == OUTCOME_DONE)
		tell_stopped(c->intercept, c->q.ctr);
}

static void after_remove(struct intercept_call *c, enum intercept_outcome outcome,
			 struct span payload)
{
	if (outcome == OUTCOME_DONE)
		tell_removed(c->intercept, c->q.ctr);
}

/* ---- the calls ------------------------------------------------------------------------------- */

static const struct method methods[] = {
	{"RunPodSandbox", read_run_pod, NRI__EVENT__RUN_POD_SANDBOX, NULL, edit_run_pod, true,
	 after_run_pod},
	{"UpdatePodSandboxResources", read_update_pod, NRI__EVENT__UPDATE_POD_SANDBOX, NULL, NULL,
	 false, after_update_pod},
	{"StopPodSandbox", read_pod, NRI__EVENT__UNKNOWN, NULL, NULL, false, after_stop_pod},
	{"RemovePodSandbox", read_pod, NRI__EVENT__UNKNOWN, NULL, NULL, false, after_remove_pod},
	{"CreateContainer", read_create, NRI__EVENT__CREATE_CONTAINER, hear_create, edit_create,
	 true, after_create},
	{"StartContainer", read_start, NRI__EVENT__START_CONTAINER, NULL, NULL, false, after_start},
	{"UpdateContainerResources", read_update, NRI__EVENT__UPDATE_CONTAINER, hear_update,
	 edit_update, false, after_update},
	{"StopContainer", read_ctr, NRI__EVENT__UNKNOWN, NULL, NULL, false, after_stop},
	{"RemoveContainer", read_ctr, NRI__EVENT__UNKNOWN, NULL, NULL, false, after_remove},
};

const struct method *method_of(const char *path, size_t *ret_service)
{
	static const char *const services[] = {SERVICE_V1, SERVICE_V1ALPHA2};
	for (unsigned i = 0; i < sizeof services / sizeof *services; i++) {
		if (!str_has_prefix(path, services[i]))
			continue;
		*ret_service = strlen(services[i]);
		for (unsigned k = 0; k < sizeof methods / sizeof *methods; k++)
			if (str_eq(path + *ret_service, methods[k].name))
				return &methods[k];
	}
	return NULL;
}
