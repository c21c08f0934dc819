/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists the pods and containers of the runtime for Synchronize: ListPodSandbox, ListContainers,
 * PodSandboxStatus of each pod not created through the bridge (for its cgroup parent), and
 * ContainerStatus of each existing container (for its resources). The result replaces the model.
 * Data for which older runtimes have no field is read from the JSON of a verbose status.
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/nri-rp-bridge/cri_info.h"
#include "core/nri-rp-bridge/intercept_internal.h"
#include "core/lib/util/log.h"
#include "core/lib/util/pb.h"
#include "core/lib/util/str.h"

#define LOG_SOURCE "bridge"
#define PLACE_MS 1000u /* the runtime's time limit for a status that a call may wait for */
#define STATE_READY 0

struct gather {
	struct intercept *intercept; /* interceptor that gets the result; NULL: already freed */
	struct arena *arena;
	Cri__PodList *pods;
	Cri__ContainerList *ctrs;
	size_t next_pod, next_ctr; /* indexes of the pod and container whose status is requested */
	const char **parents; /* cgroup parents by pod; NULL: unknown */
	Nri__PodSandbox **nri_pods;
	Nri__Container **nri_ctrs;
	size_t n_pods, n_ctrs;
	struct cri_about *about; /* descriptions of the containers, by index */
};

struct gather *gather_free(struct gather *g)
{
	if (!g)
		return NULL;
	arena_free(g->arena);
	free(g);
	return NULL;
}

static void give_up(struct gather *g, const char *why)
{
	struct intercept *p = g->intercept;
	log_warning("the runtime's containers cannot be listed: %s", why);
	p->gather = gather_free(g);
	nri_runtime_not_synchronized(p->plugin.nri, "no containers to synchronise with");
}

static void *gather_unpack(struct gather *g, const ProtobufCMessageDescriptor *type,
			   const struct grpc_result *result)
{
	ProtobufCAllocator alloc = pb_arena(g->arena);
	return protobuf_c_message_unpack(type, &alloc, result->payload_len, result->payload);
}

static bool gather_counts(const Cri__ListedContainer *ctr)
{
	return ctr->state < STATE_EXITED;
}

/* ---- result: the model, and Synchronize ------------------------------------------------------ */

static void on_carried(unsigned failed, void *arg)
{
	struct gather *g = arg;
	struct intercept *p = g->intercept;
	p->gather = gather_free(g);
	(void)malloc_trim(0); /* returns the memory of lists with thousands of entries */
	nri_runtime_unlock(p->plugin.nri);
}

static void on_synchronized(const Nri__SynchronizeResponse *m, void *arg)
{
	struct gather *g = arg;
	if (m)
		log_info("synchronised: %zu pods, %zu containers, %zu updates", g->n_pods,
			 g->n_ctrs, m->n_update);
	carry_updates(g->intercept, m ? m->update : NULL, m ? m->n_update : 0, NULL, on_carried, g);
}

static int add_pods(struct gather *g)
{
	for (size_t i = 0; i < g->pods->n_items; i++) {
		const Cri__ListedPod *listed = g->pods->items[i];
		if (listed->state != STATE_READY)
			continue;
		const char *parent = g->parents[i] ? g->parents[i] : "";
		Nri__PodSandbox *msg = cri_listed_pod(g->arena, listed, parent);
		struct pod *pod =
			msg ? model_add_pod(&g->intercept->plugin.model, msg, listed->id) : NULL;
		if (!pod)
			return -ENOMEM;
		pod_unref(pod);
		g->nri_pods[g->n_pods++] = msg;
	}
	return 0;
}

static int add_ctrs(struct gather *g)
{
	const struct intercept *p = g->intercept;
	struct model *model = &g->intercept->plugin.model;
	for (size_t i = 0; i < g->ctrs->n_containers; i++) {
		const Cri__ListedContainer *listed = g->ctrs->containers[i];
		struct pod *pod = model_pod(model, listed->pod_sandbox_id);
		if (!pod || !gather_counts(listed))
			continue;
		Nri__Container *msg =
			cri_listed_container(g->arena, pod->id, listed, g->about[i].resources);
		if (msg && g->about[i].cgroups_path)
			msg->lnx->cgroups_path = (char *)(uintptr_t)g->about[i].cgroups_path;
		if (msg)
			msg->pid = g->about[i].pid;
		struct ctr *ctr = msg ? model_add_ctr(model, pod, msg, listed->id) : NULL;
		if (!ctr)
			return -ENOMEM;
		ctr->polled = p->n_polls;
		ctr_unref(ctr);
		g->nri_ctrs[g->n_ctrs++] = msg;
	}
	return 0;
}

static void gather_finish(struct gather *g)
{
	struct intercept *p = g->intercept;
	model_clear(&p->plugin.model);
	p->generation++;
	g->nri_pods = arena_array(g->arena, g->pods->n_items + 1, sizeof *g->nri_pods);
	g->nri_ctrs = arena_array(g->arena, g->ctrs->n_containers + 1, sizeof *g->nri_ctrs);
	if (!g->nri_pods || !g->nri_ctrs || add_pods(g) || add_ctrs(g))
		give_up(g, "out of memory");
	else
		nri_runtime_synchronize(
			p->plugin.nri,
			&(struct nri_existing){g->nri_pods, g->n_pods, g->nri_ctrs, g->n_ctrs, 0},
			on_synchronized, g);
}

/* ---- requests to the runtime ----------------------------------------------------------------- */

/* Returns the JSON of a verbose status; "" if there is none. `info` is a map. */
#define INFO_OF(m)                                                                                 \
	__extension__({                                                                            \
		const char *info_ = "";                                                            \
		for (size_t i_ = 0; i_ < (m)->n_info; i_++)                                        \
			if (str_eq((m)->info[i_]->key, "info"))                                    \
				info_ = (m)->info[i_]->value;                                      \
		info_;                                                                             \
	})

static void ask_next_ctr(struct gather *g);

/* Reads a container's status. Newer runtimes have a field for resources, which takes precedence
 * over the JSON. */
static int read_status(struct arena *a, const struct grpc_result *result, struct cri_about *ret)
{
	const Cri__ContainerStatusResponse *m =
		result->error ? NULL : RPC_MESSAGE(a, cri__container_status_response, result);
	int r = m ? cri_info_container(a, INFO_OF(m), ret) : -EBADMSG;
	if (!r && m->status && m->status->resources && m->status->resources->lnx)
		ret->resources = m->status->resources->lnx;
	return r;
}

static void on_ctr(const struct grpc_result *result, void *arg)
{
	struct gather *g = arg;
	/* A container may have been removed in the meantime, so errors are ignored. */
	(void)read_status(g->arena, result, &g->about[g->next_ctr]);
	g->next_ctr++;
	ask_next_ctr(g);
}

static void ask_next_ctr(struct gather *g)
{
	while (g->next_ctr < g->ctrs->n_containers &&
	       !gather_counts(g->ctrs->containers[g->next_ctr]))
		g->next_ctr++;
	if (g->next_ctr == g->ctrs->n_containers) {
		gather_finish(g);
		return;
	}
	Cri__StatusRequest m = CRI__STATUS_REQUEST__INIT;
	m.id = g->ctrs->containers[g->next_ctr]->id;
	m.verbose = true;
	if (intercept_call_runtime(g->intercept, "ContainerStatus", &m.base, LIST_MS, on_ctr, g))
		give_up(g, "the runtime is not reachable");
}

static void ask_next_pod(struct gather *g);

static void on_pod(const struct grpc_result *result, void *arg)
{
	struct gather *g = arg;
	const Cri__PodStatusResponse *m =
		result->error ? NULL
			      : gather_unpack(g, &cri__pod_status_response__descriptor, result);
	if (m)
		g->parents[g->next_pod] = cri_info_parent(g->arena, INFO_OF(m));
	g->next_pod++;
	ask_next_pod(g);
}

static bool has_parent(const struct gather *g, size_t i)
{
	const Cri__ListedPod *pod = g->pods->items[i];
	g->parents[i] = cri_listed_parent(pod);
	return g->parents[i] || pod->state != STATE_READY;
}

static void ask_next_pod(struct gather *g)
{
	while (g->next_pod < g->pods->n_items && has_parent(g, g->next_pod))
		g->next_pod++;
	if (g->next_pod == g->pods->n_items) {
		ask_next_ctr(g);
		return;
	}
	Cri__StatusRequest m = CRI__STATUS_REQUEST__INIT;
	m.id = g->pods->items[g->next_pod]->id;
	m.verbose = true;
	if (intercept_call_runtime(g->intercept, "PodSandboxStatus", &m.base, LIST_MS, on_pod, g))
		give_up(g, "the runtime is not reachable");
}

static void on_ctrs(const struct grpc_result *result, void *arg)
{
	struct gather *g = arg;
	g->ctrs = result->error ? NULL : gather_unpack(g, &cri__container_list__descriptor, result);
	if (g->ctrs) {
		g->about = arena_array(g->arena, g->ctrs->n_containers + 1, sizeof *g->about);
		g->parents = arena_array(g->arena, g->pods->n_items + 1, sizeof *g->parents);
	}
	if (!g->ctrs || !g->about || !g->parents)
		give_up(g, result->error ? result->text : "a reply that cannot be decoded");
	else
		ask_next_pod(g);
}

static int ask_pods(struct gather *g);

/* Switches to v1alpha2 if the runtime does not implement v1. Returns true if it has switched. */
static bool is_of_another_version(struct intercept *p, const struct grpc_result *result)
{
	if (result->error != -EREMOTEIO || result->status != GRPC_UNIMPLEMENTED ||
	    !str_eq(p->service, SERVICE_V1))
		return false;
	(void)snprintf(p->service, sizeof p->service, "%s", SERVICE_V1ALPHA2);
	return true;
}

static void on_pods(const struct grpc_result *result, void *arg)
{
	struct gather *g = arg;
	Cri__Id none = CRI__ID__INIT;
	if (is_of_another_version(g->intercept, result) && ask_pods(g) == 0)
		return;
	g->pods = result->error ? NULL : gather_unpack(g, &cri__pod_list__descriptor, result);
	if (!g->pods)
		give_up(g, result->error ? result->text : "a reply that cannot be decoded");
	else if (intercept_call_runtime(g->intercept, "ListContainers", &none.base, LIST_MS,
					on_ctrs, g))
		give_up(g, "the runtime is not reachable");
}

static int ask_pods(struct gather *g)
{
	Cri__Id none = CRI__ID__INIT;
	return intercept_call_runtime(g->intercept, "ListPodSandbox", &none.base, LIST_MS, on_pods,
				      g);
}

void gather_begin(void *arg)
{
	struct intercept *p = arg;
	struct gather *g = calloc(1, sizeof *g);
	if (g)
		g->arena = arena_new(ARENA_BLOCK, 0);
	if (!g || !g->arena) {
		free(g);
		nri_runtime_not_synchronized(p->plugin.nri, "out of memory");
		return;
	}
	g->intercept = p;
	p->gather = g;
	if (ask_pods(g))
		give_up(g, "the runtime is not reachable");
}

/* ---- cgroup and process of a container ------------------------------------------------------- */

struct place {
	struct intercept *intercept;
	struct ctr *ctr;
};

static void on_placed(const struct grpc_result *result, void *arg)
{
	struct place *place = arg;
	_arena_ struct arena *a = arena_new(ARENA_BLOCK, ARENA_MAX);
	struct cri_about about = {0};
	place->ctr->placing = false;
	if (a && read_status(a, result, &about) == 0)
		ctr_set_place(place->ctr, about.cgroups_path, about.pid);
	intercept_unpark(place->intercept, place->ctr);
	ctr_unref(place->ctr);
	free(place);
}

void gather_place(struct intercept *p, struct ctr *ctr)
{
	Cri__StatusRequest m = CRI__STATUS_REQUEST__INIT;
	struct place *place =
		nri_runtime_is_active(p->plugin.nri) ? calloc(1, sizeof *place) : NULL;
	if (!place)
		return;
	*place = (struct place){p, ctr_ref(ctr)};
	m.id = ctr->cri_id;
	m.verbose = true;
	ctr->placing = intercept_call_runtime(p, "ContainerStatus", &m.base, PLACE_MS, on_placed,
					      place) == 0;
	if (ctr->placing)
		return;
	ctr_unref(ctr);
	free(place);
}
