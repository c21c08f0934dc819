/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Admission of pods before their containers exist. The request of the pod as a whole reserves
 * capacity (a grant): no other pod gets it until the main container is created, and again after the
 * main container has ended, as long as the pod exists. Admission changes no container.
 */
#include <stdlib.h>
#include <string.h>

#include <nri-rp/lib/text.h>
#include "modules/qos/qos.h"

struct kept {
	struct record is; /* role ROLE_GRANT */
	/* name of the main container once it was created; "": not yet */
	char main[MAIN_NAME_MAX + 1];
};

static bool read_kept(const struct rp_instance *inst, rp_pod pod, struct kept *ret)
{
	const struct modhost *h = &inst->h;
	const void *data;
	uint32_t size;
	if (h->cache->get_pod_private(h->ctx, pod, &data, &size) || size != sizeof *ret)
		return false;
	memcpy(ret, data, sizeof *ret);
	return record_is_sound(&ret->is) && ret->is.role == ROLE_GRANT &&
	       memchr(ret->main, '\0', sizeof ret->main);
}

static int32_t admit_put(struct rp_instance *inst, rp_txn txn, const struct entry *e,
			 const char *main)
{
	const struct modhost *h = &inst->h;
	struct kept kept = {.is = e->is};
	size_t len = strlen(main);
	if (len <= MAIN_NAME_MAX)
		memcpy(kept.main, main, len + 1);
	return h->cache->set_pod_private(h->ctx, txn, e->pod, &kept, sizeof kept);
}

static int32_t admit_drop(struct rp_instance *inst, rp_txn txn, struct entry *e)
{
	rp_pod pod = e->pod;
	table_remove(inst, e);
	return inst->h.cache->set_pod_private(inst->h.ctx, txn, pod, NULL, 0);
}

/* Reads the pods of the host into the scratch list. Returns their number, or -RP_ENOMEM with a
 * message. */
static int32_t list_pods(struct rp_instance *inst)
{
	const struct modhost *h = &inst->h;
	uint32_t n = h->cache->list_pods(h->ctx, inst->pods, inst->n_pods);
	if (n <= inst->n_pods)
		return (int32_t)n;
	rp_pod *pods = realloc(inst->pods, 2 * (size_t)n * sizeof *pods);
	if (!pods)
		return modhost_no_memory(h);
	inst->pods = pods;
	inst->n_pods = 2 * n;
	return (int32_t)h->cache->list_pods(h->ctx, inst->pods, inst->n_pods);
}

int32_t admit_unuse(struct rp_instance *inst, rp_pod pod)
{
	struct kept kept;
	const struct entry *main = table_main(inst, pod);
	if (table_grant(inst, pod) || !read_kept(inst, pod, &kept) ||
	    (kept.is.flags & ASK_USED && main && !(main->is.flags & ASK_LOST)))
		return 0;
	struct entry e = {.pod = pod, .is = kept.is};
	e.is.flags &= ~ASK_USED;
	return table_add(inst, &e);
}

int32_t admit_load(struct rp_instance *inst)
{
	int32_t n = list_pods(inst), r = n < 0 ? n : 0;
	for (int32_t i = 0; !r && i < n; i++)
		r = admit_unuse(inst, inst->pods[i]);
	return r;
}

/* Moves the grant of the earliest sandbox of the same pod to the new one. */
static int32_t take_over(struct rp_instance *inst, rp_txn txn, const struct rp_pod_info *pod,
			 uint64_t uid, struct record *ret)
{
	const struct modhost *h = &inst->h;
	struct entry *first = NULL;
	for (struct entry *e = NULL; (e = table_of_uid(inst, uid, e));) {
		struct rp_pod_info other = {.size = sizeof other};
		if (!h->cache->get_pod(h->ctx, e->pod, &other) && !strcmp(other.uid, pod->uid) &&
		    (!first || e->number < first->number))
			first = e;
	}
	if (!first)
		return 0;
	*ret = first->is;
	return first->is.role == ROLE_MAIN ? 0 : admit_drop(inst, txn, first);
}

/* Returns true if an earlier grant of a shared pod suffices, so that no search is necessary. */
static bool is_granted(const struct ask *a, const struct record *former)
{
	return former && a->level == LEVEL_SHARED && former->level == LEVEL_SHARED &&
	       !((former->flags | a->flags) & (ASK_BOUND | ASK_USED)) && former->cpu >= a->cpu &&
	       former->mem >= a->mem;
}

/* Returns true if devices of the container are at other nodes than an unused grant, which was made
 * before the devices were known. */
static bool is_far(const struct rp_instance *inst, rp_ctr ctr, const struct record *former)
{
	struct hint near[2];
	return former && former->nodes && !(former->flags & ASK_USED) &&
	       inst->plan->topology != HINTS_NONE && others_devices(inst, ctr, near) &&
	       former->nodes & ~near[0].nodes;
}

/* Chooses nodes, preferably those of an earlier grant if it was at least as large and they still
 * suit. */
int32_t admit_choose(struct rp_instance *inst, rp_ctr ctr, const struct ask *a,
		     const struct record *former, rp_pod but, struct record *rec)
{
	struct room room;
	rec->nodes = rec->mem_nodes = 0;
	if (is_far(inst, ctr, former))
		former = NULL;
	if (is_granted(a, former))
		return 0;
	room_of(inst, but, a, &room);
	if (former && former->nodes && former->level == a->level && former->cpu >= a->cpu) {
		struct ask again = *a;
		char why[MODHOST_TEXT_MAX];
		char *kept_why = inst->h.why;
		struct counters counters = inst->counters;
		again.granted = former->nodes;
		inst->h.why = why;
		int32_t r = hints_choose(inst, ctr, &again, &room, rec);
		inst->h.why = kept_why;
		if (!r)
			return 0;
		inst->counters = counters; /* not refused yet */
	}
	return hints_choose(inst, ctr, a, &room, rec);
}

/* Returns the CPU that the pod requests beyond its containers, which is counted for its main
 * container. */
static int64_t extra_of(const struct rp_instance *inst, const struct rp_pod_info *pod)
{
	const struct modhost *h = &inst->h;
	struct rp_pod_ctr_info c = {.size = sizeof c};
	int64_t running = 0, most = 0;
	if (!(pod->flags & RP_POD_OWN_RESOURCES))
		return 0;
	for (uint32_t i = 0; !h->cache->pod_ctr(h->ctx, pod->pod, i, &c); i++) {
		int64_t beside = running + c.cpu_request;
		most = beside > most ? beside : most;
		if (c.kind != RP_POD_CTR_INIT)
			running = beside;
	}
	return pod->cpu_request > most ? pod->cpu_request - most : 0;
}

/* Sets the amounts of the main container if the cluster has reported it, else the amounts of the
 * whole pod. */
static void asked_of(const struct rp_instance *inst, const struct rp_pod_info *pod, struct ask *a)
{
	struct rp_pod_ctr_info main = {.size = sizeof main};
	bool known = ask_main(inst, pod->pod, &main);
	a->cpu = known ? main.cpu_request + extra_of(inst, pod) : pod->cpu_request;
	a->mem = known ? ask_memory(main.mem_request, main.mem_limit)
		       : ask_memory(0, pod->mem_limit);
}

static int32_t admit_reserve(struct rp_instance *inst, rp_txn txn, const struct rp_pod_info *pod,
			     struct ask *a)
{
	struct entry e = {.pod = pod->pod,
			  .is = {.version = RECORD_VERSION,
				 .level = (uint16_t)a->level,
				 .role = ROLE_GRANT,
				 .flags = a->flags,
				 .uid = text_hash(pod->uid)}};
	struct record former = {.nodes = 0};
	/* For the explanations of others: its containers are not known yet. */
	const struct rp_ctr_info as_ctr = {
		.pod_namespace = pod->pod_namespace, .pod_name = pod->name, .name = "*"};
	int64_t cpu, mem;
	int32_t r = ask_aggregated(inst, pod->pod, &cpu, &mem);
	if (!r)
		r = take_over(inst, txn, pod, e.is.uid, &former);
	if (r)
		return r;
	asked_of(inst, pod, a);
	e.is.cpu = a->cpu = cpu ? cpu : a->cpu;
	e.is.mem = a->mem = mem ? mem : a->mem;
	memcpy(e.is.pool, a->pool, sizeof e.is.pool);
	r = admit_choose(inst, 0, a, &former, pod->pod, &e.is);
	bool moved = r == -RP_ENOSPC && relief_make_room(inst, a, pod->pod, &as_ctr) > 0;
	if (moved)
		r = admit_choose(inst, 0, a, &former, pod->pod, &e.is);
	if (!r)
		r = table_add(inst, &e);
	if (!r)
		r = admit_put(inst, txn, &e, "");
	return r || !moved ? r : stage_all(inst, txn);
}

int32_t admit_pod(struct rp_instance *inst, rp_txn txn, rp_pod pod)
{
	const struct modhost *h = &inst->h;
	struct rp_pod_info info = {.size = sizeof info};
	struct entry *e = table_grant(inst, pod);
	struct ask a;
	const char *nothing;
	int32_t r = h->cache->get_pod(h->ctx, pod, &info);
	if (!r)
		r = ask_for_nothing(inst, txn, pod, &nothing);
	if (r || nothing || table_main(inst, pod))
		return r;
	if (e)
		table_remove(inst, e); /* admitted again: start from nothing */
	r = ask_read(inst, pod, &a);
	if (r)
		return r;
	bool reserves = (a.level == LEVEL_DEDICATED || a.level == LEVEL_SHARED) &&
			info.cpu_request != RP_NOT_SET;
	bool bound = a.level == LEVEL_DEDICATED || a.flags & ASK_BOUND;
	if (!reserves || !bound)
		r = others_merge(inst, pod);
	a.admitted = pod;
	return r || !reserves ? r : admit_reserve(inst, txn, &info, &a);
}

bool admit_grant(const struct rp_instance *inst, rp_pod pod, struct record *ret)
{
	const struct entry *e = table_grant(inst, pod);
	struct kept kept;
	if (e)
		*ret = e->is;
	else if (read_kept(inst, pod, &kept))
		*ret = kept.is;
	else
		return false;
	return true;
}

static void admit_forget(struct rp_instance *inst, rp_pod pod)
{
	struct entry *e = table_grant(inst, pod);
	if (e)
		table_remove(inst, e);
}

int32_t admit_use(struct rp_instance *inst, rp_txn txn, struct entry *main, const char *name)
{
	const struct modhost *h = &inst->h;
	struct rp_pod_info pod = {.size = sizeof pod, .uid = ""};
	if (main->is.level != LEVEL_DEDICATED && main->is.level != LEVEL_SHARED)
		return 0;
	int32_t r = h->cache->get_pod(h->ctx, main->pod, &pod);
	main->is.uid = text_hash(pod.uid);
	struct entry used = {.pod = main->pod, .is = main->is};
	used.is.role = ROLE_GRANT;
	used.is.flags |= ASK_USED;
	used.is.ramp_end_ms = 0;
	admit_forget(inst, main->pod);
	return r ? r : admit_put(inst, txn, &used, name);
}

int32_t admit_end(struct rp_instance *inst, rp_txn txn, rp_pod pod)
{
	struct kept kept;
	admit_forget(inst, pod);
	return read_kept(inst, pod, &kept)
		       ? inst->h.cache->set_pod_private(inst->h.ctx, txn, pod, NULL, 0)
		       : 0;
}

const char *admit_main(const struct rp_instance *inst, rp_pod pod, char name[MAIN_NAME_MAX + 1])
{
	struct kept kept;
	name[0] = '\0';
	if (read_kept(inst, pod, &kept))
		memcpy(name, kept.main, sizeof kept.main);
	return name;
}

int32_t admit_check(struct rp_instance *inst, rp_txn txn)
{
	int32_t n = list_pods(inst), r = n < 0 ? n : 0;
	for (int32_t i = 0; !r && i < n; i++) {
		struct kept kept;
		if (read_kept(inst, inst->pods[i], &kept) &&
		    (kept.is.nodes | kept.is.mem_nodes) & ~inst->plan->node_mask)
			r = admit_end(inst, txn, inst->pods[i]);
	}
	return r;
}
