/* SPDX-License-Identifier: Apache-2.0 */
/* CPU sets of pods: record, size, resize, and the containers that share the rest of a set. */
#include "modules/static/pod_set.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RECORD_VERSION 1u
#define SET_TEXT_MAX 128u
/* bit that marks an owner of CPUs as a pod instead of a container */
#define POD_OWNER (UINT64_C(1) << 63)

/* Record saved with a pod: version, number of words of its CPU set, and these. */
#define RECORD_SIZE_MAX (2 * sizeof(uint32_t) + sizeof(((struct rp_idset *)0)->w))

rp_ctr pod_set_owner(rp_pod pod)
{
	return pod | POD_OWNER;
}

uint32_t pod_set_group(rp_pod pod)
{
	return 1 + (uint32_t)(pod & UINT32_MAX) % RP_GROUP_MAX;
}

static bool pod_set_read(const struct rp_instance *inst, rp_pod pod, struct rp_idset *ret)
{
	const struct modhost *h = &inst->h;
	const void *data;
	uint32_t size;
	if (h->cache->get_pod_private(h->ctx, pod, &data, &size))
		return false;
	struct bytes_left left = bytes_of(data, size);
	uint32_t version = bytes_take_u32(&left), n = bytes_take_u32(&left);
	return bytes_take_set(&left, n, ret) && version == RECORD_VERSION && !bytes_n_left(&left);
}

static int32_t pod_set_write(struct rp_instance *inst, rp_txn txn, rp_pod pod,
			     const struct rp_idset *cpus)
{
	const struct modhost *h = &inst->h;
	uint8_t data[RECORD_SIZE_MAX];
	struct bytes rec = BYTES_IN(data);
	bytes_put_u32(&rec, RECORD_VERSION);
	bytes_put_u32(&rec, cpus->nw);
	bytes_put_set(&rec, rp_ids_of(cpus));
	return h->cache->set_pod_private(h->ctx, txn, pod, data, rec.size);
}

/* ---- size of a set --------------------------------------------------------------------------- */

/* Returns the largest sum of whole CPUs of the pod's containers that run at the same time. */
static int64_t pod_set_sum(const struct rp_instance *inst, rp_pod pod)
{
	const struct modhost *h = &inst->h;
	struct rp_pod_ctr_info c = {.size = sizeof c};
	int64_t running = 0, most = 0;
	for (uint32_t i = 0; !h->cache->pod_ctr(h->ctx, pod, i, &c); i++) {
		bool whole = c.cpu_request % 1000 == 0 && c.cpu_request == c.cpu_limit;
		int64_t beside = running + (whole ? c.cpu_request / 1000 : 0);
		most = beside > most ? beside : most;
		if (c.kind != RP_POD_CTR_INIT)
			running = beside;
	}
	return most;
}

/*
 * Checks that a pod with resources of its own leaves CPUs to its containers without exclusive CPUs,
 * as the kubelet does. Only the pod feed knows the containers that are still to be created.
 */
static int32_t pod_set_check_rest(const struct rp_instance *inst, rp_pod pod, struct placing *p)
{
	const struct modhost *h = &inst->h;
	struct rp_pod_info info = {.size = sizeof info};
	struct rp_pod_ctr_info c = {.size = sizeof c};
	int64_t exclusive = 0;
	const char *sharer = NULL;
	if (h->cache->get_pod(h->ctx, pod, &info) || info.qos != RP_QOS_GUARANTEED ||
	    !(info.flags & RP_POD_OWN_RESOURCES))
		return 0;
	for (uint32_t i = 0; !h->cache->pod_ctr(h->ctx, pod, i, &c); i++) {
		bool whole = c.cpu_request > 0 && c.cpu_request % 1000 == 0 &&
			     c.cpu_request == c.cpu_limit;
		if (c.kind == RP_POD_CTR_INIT)
			continue;
		exclusive += whole ? c.cpu_request : 0;
		sharer = whole ? sharer : c.name;
	}
	if (!sharer || exclusive < info.cpu_request)
		return 0;
	return place_refuse(p,
			    "the pod's %lld CPUs all are exclusive ones of its containers: none is "
			    "left for its container %s",
			    (long long)info.cpu_request / 1000, sharer);
}

/*
 * Returns the number of CPUs of the pod's set. Without the pod feed the values of the runtime are
 * used, which are the pod-level resources or the sum of the containers.
 */
static int64_t pod_set_size(const struct rp_instance *inst, rp_pod pod)
{
	const struct isolation_keys *keys = &inst->plan->settings.isolation;
	struct rp_pod_info info = {.size = sizeof info};
	if (inst->h.cache->get_pod(inst->h.ctx, pod, &info) || info.qos != RP_QOS_GUARANTEED ||
	    info.cpu_request <= 0)
		return 0;
	if ((info.flags & RP_POD_FED) && !(info.flags & RP_POD_OWN_RESOURCES))
		return isolation_cores(keys, pod_set_sum(inst, pod));
	return isolation_cores(keys, info.cpu_request / 1000);
}

/* ---- set of a pod ---------------------------------------------------------------------------- */

/*
 * Calls `each` for the pod's live containers. life_walk() is not usable here, because another walk
 * may be running.
 */
static int32_t pod_set_each(struct rp_instance *inst, rp_pod pod,
			    int32_t (*each)(struct rp_instance *inst,
					    const struct rp_ctr_info *info, void *arg),
			    void *arg)
{
	struct ctr_list list = {0};
	int32_t n = ctr_list(&inst->h, &list, RP_ORDER_CREATED), r = n < 0 ? n : 0;
	for (int32_t i = 0; !r && i < n; i++) {
		struct rp_ctr_info info;
		r = ctr_info(&inst->h, list.ctrs[i], &info);
		if (!r && info.pod == pod && !(info.flags & RP_CTR_PRESERVE_CPU))
			r = each(inst, &info, arg);
	}
	ctr_list_free(&list);
	return r;
}

static int32_t pod_set_add_owned(struct rp_instance *inst, const struct rp_ctr_info *info,
				 void *arg)
{
	struct rp_idset own, *sum = arg;
	if (owners_owned(&inst->owners, info->ctr, &own))
		rp_idset_or(sum, rp_ids_of(sum), rp_ids_of(&own));
	return 0;
}

/*
 * Resizes the set after a resize of the pod: adds CPUs close to the set, or frees CPUs that no
 * container of the pod owns.
 */
static int32_t pod_set_resize(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
			      struct rp_idset *set, int64_t n, struct placing *p)
{
	struct rp_idset rest;
	uint32_t n_set = rp_ids_count(rp_ids_of(set));
	if (n <= 0 || n == n_set)
		return 0;
	if (n > n_set) {
		int32_t r = place_resize(inst, info->ctr, rp_ids_of(set), n, p);
		if (r)
			return r;
		rp_idset_andnot(&rest, rp_ids_of(&p->cpus), rp_ids_of(set));
		owners_give(&inst->owners, rp_ids_of(&rest), pod_set_owner(info->pod));
		return pod_set_write(inst, txn, info->pod, &p->cpus);
	}
	uint32_t spare = owners_owned(&inst->owners, pod_set_owner(info->pod), &rest);
	uint32_t less = n_set - (uint32_t)n < spare ? n_set - (uint32_t)n : spare;
	if (!less || plan_take(inst->plan, rp_ids_of(&rest), less, &rest))
		return 0;
	owners_take(&inst->owners, pod_set_owner(info->pod), rp_ids_of(&rest));
	rp_idset_andnot(set, rp_ids_of(set), rp_ids_of(&rest));
	return pod_set_write(inst, txn, info->pod, set);
}

/*
 * Adjusts an existing set to the pod's resources. A container that was resized before its pod may
 * own CPUs outside of the set, which become a part of the set.
 */
static int32_t pod_set_follow_pod(struct rp_instance *inst, rp_txn txn,
				  const struct rp_ctr_info *info, struct rp_idset *set, int64_t n,
				  struct placing *p)
{
	uint32_t n_set = rp_ids_count(rp_ids_of(set));
	int32_t r = n > (int64_t)n_set ? pod_set_each(inst, info->pod, pod_set_add_owned, set) : 0;
	if (!r && rp_ids_count(rp_ids_of(set)) != n_set)
		r = pod_set_write(inst, txn, info->pod, set);
	return r ? r : pod_set_resize(inst, txn, info, set, n, p);
}

int32_t pod_set_ensure(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
		       struct placing *p)
{
	struct rp_idset had;
	if (!inst->plan->settings.pod_scope)
		return 0;
	int64_t n = pod_set_size(inst, info->pod);
	if (pod_set_read(inst, info->pod, &had))
		return pod_set_follow_pod(inst, txn, info, &had, n, p);
	if (n <= 0)
		return 0;
	rp_idset_clear(&had);
	if (pod_set_check_rest(inst, info->pod, p))
		return -RP_ENOSPC;
	int32_t r = pod_set_each(inst, info->pod, pod_set_add_owned, &had);
	if (r)
		return r;
	/* Containers placed before the scope became pod keep their CPUs. */
	uint32_t n_had = rp_ids_count(rp_ids_of(&had));
	if (n_had > n)
		return 0;
	r = n_had ? place_resize(inst, info->ctr, rp_ids_of(&had), n, p)
		  : place_find(inst, info->ctr, n, p);
	if (r)
		return r;
	struct rp_idset rest;
	rp_idset_andnot(&rest, rp_ids_of(&p->cpus), rp_ids_of(&had));
	owners_give(&inst->owners, rp_ids_of(&rest), pod_set_owner(info->pod));
	char cpus[SET_TEXT_MAX];
	modhost_note(&inst->h, info->ctr, "CPUs %s of the pod: %s",
		     modhost_set_text(rp_ids_of(&p->cpus), cpus, sizeof cpus),
		     p->hint[0] ? p->hint : "one set for all of its containers");
	return pod_set_write(inst, txn, info->pod, &p->cpus);
}

bool pod_set_exists(const struct rp_instance *inst, rp_pod pod)
{
	struct rp_idset set;
	return inst->plan->settings.pod_scope && pod_set_read(inst, pod, &set);
}

bool pod_set_rest(const struct rp_instance *inst, rp_pod pod, struct rp_idset *ret)
{
	return inst->plan->settings.pod_scope &&
	       owners_owned(&inst->owners, pod_set_owner(pod), ret) > 0;
}

bool pod_set_take(struct rp_instance *inst, const struct rp_ctr_info *info, struct rp_ids own,
		  int64_t n, struct placing *p)
{
	struct rp_idset rest;
	uint32_t n_own = rp_ids_count(own);
	if (n <= n_own || !pod_set_rest(inst, info->pod, &rest) ||
	    rp_ids_count(rp_ids_of(&rest)) + n_own < n)
		return false;
	*p = (struct placing){.ctr = info->ctr, .n = n};
	uint32_t more = (uint32_t)n - n_own;
	if (n_own ? machine_grow(inst->plan->machine, own, rp_ids_of(&rest), more, &p->cpus)
		  : plan_take(inst->plan, rp_ids_of(&rest), more, &p->cpus))
		return false;
	char cpus[SET_TEXT_MAX], from[SET_TEXT_MAX];
	(void)snprintf(p->text, sizeof p->text, "CPUs %s of the pod's %s",
		       modhost_set_text(rp_ids_of(&p->cpus), cpus, sizeof cpus),
		       modhost_set_text(rp_ids_of(&rest), from, sizeof from));
	return true;
}

void pod_set_return(struct rp_instance *inst, rp_pod pod, struct rp_ids released)
{
	struct rp_idset set;
	if (!inst->plan->settings.pod_scope || !pod_set_read(inst, pod, &set))
		return;
	rp_idset_and(&set, rp_ids_of(&set), released);
	rp_idset_andnot(&set, rp_ids_of(&set), rp_ids_of(&inst->owners.taken));
	owners_give(&inst->owners, rp_ids_of(&set), pod_set_owner(pod));
}

uint32_t pod_set_each_pod(struct rp_instance *inst, bool stopped,
			  bool (*each)(struct rp_instance *inst, rp_pod pod))
{
	const struct modhost *h = &inst->h;
	uint32_t n = h->cache->list_pods(h->ctx, NULL, 0), n_true = 0;
	rp_pod *pods = calloc(n + 1, sizeof *pods);
	n = pods ? h->cache->list_pods(h->ctx, pods, n) : 0;
	for (uint32_t i = 0; i < n; i++) {
		struct rp_pod_info info = {.size = sizeof info};
		if (!h->cache->get_pod(h->ctx, pods[i], &info) &&
		    !(info.flags & RP_POD_STOPPED) != stopped)
			n_true += each(inst, pods[i]);
	}
	free(pods);
	return n_true;
}

static bool pod_set_restore_one(struct rp_instance *inst, rp_pod pod)
{
	struct rp_idset set, usable;
	if (!pod_set_read(inst, pod, &set))
		return false;
	plan_assignable(inst->plan, &usable);
	rp_idset_and(&set, rp_ids_of(&set), rp_ids_of(&usable));
	rp_idset_andnot(&set, rp_ids_of(&set), rp_ids_of(&inst->owners.taken));
	owners_give(&inst->owners, rp_ids_of(&set), pod_set_owner(pod));
	return true;
}

void pod_set_restore(struct rp_instance *inst)
{
	if (inst->plan->settings.pod_scope)
		(void)pod_set_each_pod(inst, false, pod_set_restore_one);
}

bool pod_set_free(struct rp_instance *inst, rp_pod pod)
{
	struct rp_idset had;
	return owners_release(&inst->owners, pod_set_owner(pod), &had) > 0;
}

bool pod_set_free_stopped(struct rp_instance *inst)
{
	const struct settings *s = &inst->plan->settings;
	return (s->pod_scope || s->isolation.follow) &&
	       pod_set_each_pod(inst, true, pod_set_free) > 0;
}

/* ---- containers that share a set ------------------------------------------------------------- */

bool pod_set_shares(const struct rp_instance *inst, const struct rp_ctr_info *info,
		    struct rp_idset *ret)
{
	return (info->flags & RP_CTR_POD_RESOURCES) && !place_wanted(inst, info) &&
	       pod_set_rest(inst, info->pod, ret);
}

int32_t pod_set_stage(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
		      struct rp_ids rest)
{
	char text[SET_TEXT_MAX];
	modhost_note(&inst->h, info->ctr, "shares CPUs %s of its pod",
		     modhost_set_text(rest, text, sizeof text));
	struct rp_idset set;
	int32_t r = stage_shared(inst, txn, info, rest);
	if (!r)
		r = ctr_stage(&inst->h, txn, info->ctr,
			      &(struct ctr_stage){.cpus = rest,
						  .own = rest,
						  .group = pod_set_group(info->pod)});
	if (r || !pod_set_read(inst, info->pod, &set))
		return r;
	return stage_pod_memory(inst, txn, info, rp_ids_of(&set));
}

struct following {
	rp_txn txn;
	rp_ctr except;
};

static int32_t pod_set_follow_one(struct rp_instance *inst, const struct rp_ctr_info *info,
				  void *arg)
{
	const struct following *f = arg;
	struct rp_idset rest;
	if (info->ctr == f->except || !(info->flags & RP_CTR_POD_RESOURCES) ||
	    place_wanted(inst, info))
		return 0;
	if (pod_set_rest(inst, info->pod, &rest))
		return rp_ids_equal(rp_ids_of(&rest), info->cpus)
			       ? 0
			       : pod_set_stage(inst, f->txn, info, rp_ids_of(&rest));
	plan_shared(inst->plan, &inst->owners, &rest);
	return rp_ids_empty(rp_ids_of(&rest)) ? 0
					      : stage_shared(inst, f->txn, info, rp_ids_of(&rest));
}

int32_t pod_set_follow(struct rp_instance *inst, rp_txn txn, rp_pod pod, rp_ctr except)
{
	if (!inst->plan->settings.pod_scope)
		return 0;
	struct following f = {txn, except};
	return pod_set_each(inst, pod, pod_set_follow_one, &f);
}
