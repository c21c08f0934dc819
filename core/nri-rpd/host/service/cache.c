/* SPDX-License-Identifier: Apache-2.0 */
/* nri-rp.host.cache/1: getters over the cache, setters into its running transaction. */
#include <stdlib.h>

#include <utlist.h>

#include "core/nri-rpd/cache/claim.h"
#include "core/nri-rpd/cache/derive.h"
#include "core/nri-rpd/cache/feed.h"
#include "core/nri-rpd/cache/hugepages.h"
#include "core/nri-rpd/cache/annotation_rules.h"
#include "core/nri-rpd/cache/txn.h"
#include "core/nri-rpd/host/service/services.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/sized.h"
#include "core/lib/util/str.h"
#include "core/nri-rpd/cache/extras_check.h"
#include "core/nri-rpd/cache/resources.h"

#define TEXT_MAX 4096u
#define DATA_MAX 16384u
#define DATA_KEY_MAX 64

/* ---- reading --------------------------------------------------------------------------------- */

static struct ctr *ctr_of(void *ctx, rp_ctr handle)
{
	return cache_ctr_of(instance_of(ctx)->env->cache, handle);
}

static struct pod *pod_of(void *ctx, rp_pod handle)
{
	return cache_pod_of(instance_of(ctx)->env->cache, handle);
}

#define RETURN_IF(condition, result)                                                               \
	do {                                                                                       \
		if (condition)                                                                     \
			return result;                                                             \
	} while (0)
/* First statements of a service function: define `ctr` or `pod`. The function returns `refused` on
 * a wrong thread and `missing` if there is no such container or pod. */
#define WITH_CTR(ctx, handle, refused, missing)                                                    \
	MAIN_ONLY(ctx, RP_HOST_CACHE_1, refused);                                                  \
	const struct ctr *ctr = ctr_of(ctx, handle);                                               \
	RETURN_IF(!ctr, missing)
#define WITH_POD(ctx, handle, refused, missing)                                                    \
	MAIN_ONLY(ctx, RP_HOST_CACHE_1, refused);                                                  \
	const struct pod *pod = pod_of(ctx, handle);                                               \
	RETURN_IF(!pod, missing)
/* Defines `d`, the staged decision of the container, or returns the error. */
#define WITH_STAGED(i, id, handle, ret_ctr)                                                        \
	int32_t r_ = 0;                                                                            \
	struct decision *d = cache_stage(i, id, handle, ret_ctr, &r_);                             \
	RETURN_IF(!d, r_)

static int sync_cmp(const void *a, const void *b)
{
	const struct ctr *x = *(struct ctr *const *)a, *y = *(struct ctr *const *)b;
	if (x->pod->qos != y->pod->qos)
		return x->pod->qos < y->pod->qos ? -1 : 1;
	if (x->created_ns != y->created_ns)
		return x->created_ns < y->created_ns ? -1 : 1;
	return strcmp(x->id, y->id);
}

/* Returns true if the instance has to know the object. A policy does not place containers that use
 * a claim of CPUs, and a controller handles only claims of its devices. */
static bool is_visible(const struct instance *i, const struct ctr *ctr)
{
	bool controlled = claim_is_controlled(ctr);
	if (i->policy)
		return !txn_view(ctr)->claimed && !controlled;
	return !ctr->device || (controlled && instance_owns_device(i, ctr->device));
}

/* Returns true if the container is listed in this order. A container under creation is not listed
 * during a resync: its request has failed and it is about to be removed. */
static bool is_listed(const struct ctr *ctr, uint32_t order)
{
	return ctr_live(txn_view(ctr)->state) && (order != RP_ORDER_SYNC || !ctr->coming);
}

static uint32_t list_created(const struct instance *i, struct cache *c, uint32_t order, rp_ctr *ret,
			     uint32_t cap)
{
	uint32_t n = 0;
	struct ctr *ctr;
	DL_FOREACH (cache_ctrs(c), ctr) {
		if (!is_listed(ctr, order) || !is_visible(i, ctr))
			continue;
		if (n < cap)
			ret[n] = ctr->handle;
		n++;
	}
	return n;
}

static uint32_t list(void *ctx, uint32_t order, rp_ctr *ret, uint32_t cap)
{
	MAIN_ONLY(ctx, RP_HOST_CACHE_1, 0);
	struct cache *c = instance_of(ctx)->env->cache;
	uint32_t n = list_created(ctx, c, order, ret, cap);
	if (order != RP_ORDER_SYNC || n > cap || n < 2)
		return n;
	_free_ struct ctr **sorted = calloc(n, sizeof *sorted);
	if (!sorted)
		return n;
	bool in_order = true;
	for (uint32_t i = 0; i < n; i++) {
		sorted[i] = cache_ctr_of(c, ret[i]);
		in_order = in_order && (!i || sync_cmp(&sorted[i - 1], &sorted[i]) < 0);
	}
	if (in_order) /* in the order in which runtimes list them */
		return n;
	qsort(sorted, n, sizeof *sorted, sync_cmp);
	for (uint32_t i = 0; i < n; i++)
		ret[i] = sorted[i]->handle;
	return n;
}

static struct rp_ids ids_of(const struct iset *s)
{
	return s ? s->ids : rp_ids_none();
}

static bool runs_already(const struct instance *i, const struct ctr *ctr)
{
	return ctr->coming && i->env->runtime &&
	       (i->env->runtime->flags & RP_RUNTIME_CREATION_IS_LATE);
}

static int32_t get_ctr(void *ctx, rp_ctr handle, struct rp_ctr_info *out)
{
	WITH_CTR(ctx, handle, -RP_EPERM, -RP_ESTALE);
	const struct decision *d = txn_view(ctr);
	struct rp_ctr_info full = {
		.state = d->state,
		.qos = ctr->pod->qos,
		.flags = ctr->flags | (d->degraded ? RP_CTR_DEGRADED : 0u) |
			 (runs_already(ctx, ctr) ? RP_CTR_RUNS_ALREADY : 0u),
		.ctr = ctr->handle,
		.pod = ctr->pod->handle,
		.id = ctr->id,
		.name = ctr->name,
		.pod_name = ctr->pod->name,
		.pod_namespace = ctr->pod->ns,
		.created_ns = ctr->created_ns,
		.cpu_request = d->needs.cpu_request,
		.cpu_limit = d->needs.cpu_limit,
		.mem_request = d->needs.mem_request,
		.mem_limit = d->needs.mem_limit,
		.cpus = ids_of(d->cpus),
		.mems = ids_of(d->mems),
		.exclusive = ids_of(d->exclusive),
		.shares = d->shares,
		.quota = d->quota,
		.period = d->period,
		.has_cpus = ids_of(ctr->acked.cpus),
		.has_mems = ids_of(ctr->acked.mems),
		.asked_shares = ctr->requested.shares,
		.asked_quota = ctr->requested.quota,
		.asked_period = ctr->requested.period,
		.pod_cpu_extra = ctr->pod_cpu_extra,
	};
	sized_fill(out, &full, sizeof full);
	return 0;
}

static int64_t memory(void *ctx, rp_ctr handle)
{
	WITH_CTR(ctx, handle, 0, 0);
	const struct needs *needs = &txn_view(ctr)->needs;
	return needs->mem_limit > 0 ? needs->mem_limit : needs->mem_request;
}

static int32_t get_pod(void *ctx, rp_pod handle, struct rp_pod_info *out)
{
	WITH_POD(ctx, handle, -RP_EPERM, -RP_ESTALE);
	struct needs sums = pod->sums;
	const struct fed_pod *fed = pod_fed(instance_of(ctx)->env->cache, pod);
	if (fed)
		sums = fed_needs(fed);
	struct rp_pod_info full = {
		.qos = pod->qos,
		.pod = pod->handle,
		.id = pod->id,
		.name = pod->name,
		.pod_namespace = pod->ns,
		.uid = pod->uid,
		.runtime_handler = pod->runtime_handler,
		.cgroup_parent = pod->cgroup_parent,
		.flags = (pod->stopped ? RP_POD_STOPPED : 0u) | (fed ? RP_POD_FED : 0u) |
			 (fed && fed->has_own ? RP_POD_OWN_RESOURCES : 0u) |
			 (fed && str_eq(fed->owner, "DaemonSet") ? RP_POD_DAEMON_SET : 0u),
		.priority = fed ? fed->priority : 0,
		.cpu_request = sums.cpu_request,
		.cpu_limit = sums.cpu_limit,
		.mem_limit = sums.mem_limit,
		.mem_request = sums.mem_request,
	};
	sized_fill(out, &full, sizeof full);
	return 0;
}

static const uint32_t fed_kinds[] = {[FED_APP] = RP_POD_CTR_APP,
				     [FED_INIT] = RP_POD_CTR_INIT,
				     [FED_SIDECAR] = RP_POD_CTR_SIDECAR};

static int32_t pod_ctr(void *ctx, rp_pod handle, uint32_t index, struct rp_pod_ctr_info *out)
{
	WITH_POD(ctx, handle, -RP_EPERM, -RP_ESTALE);
	const struct fed_pod *fed = pod_fed(instance_of(ctx)->env->cache, pod);
	if (!fed || index >= fed->n_ctrs)
		return -RP_ENOENT;
	const struct fed_ctr *ctr = &fed->ctrs[index];
	struct rp_pod_ctr_info full = {
		.kind = fed_kinds[ctr->kind],
		.name = ctr->name,
		.cpu_request = ctr->needs.cpu_request,
		.cpu_limit = ctr->needs.cpu_limit,
		.mem_request = ctr->needs.mem_request,
		.mem_limit = ctr->needs.mem_limit,
	};
	sized_fill(out, &full, sizeof full);
	return 0;
}

static const char *annotation(void *ctx, rp_ctr handle, const char *key, uint32_t *ret_scope)
{
	WITH_CTR(ctx, handle, NULL, NULL);
	struct site_name name;
	key = service_name(ctx, key, &name);
	return annotation_effective(ctr->pod, ctr->name, key, ret_scope);
}

static const char *pod_annotation(void *ctx, rp_pod handle, const char *key)
{
	WITH_POD(ctx, handle, NULL, NULL);
	struct site_name name;
	return kvs_get(pod_heard(pod), service_name(ctx, key, &name));
}

static void pod_annotations(void *ctx, rp_pod handle, const char *const *keys, uint32_t n,
			    const char **ret)
{
	for (uint32_t i = 0; i < n; i++)
		ret[i] = NULL;
	MAIN_ONLY(ctx, RP_HOST_CACHE_1, );
	const struct pod *pod = pod_of(ctx, handle);
	const struct kvs *heard = pod ? pod_heard(pod) : NULL;
	const struct prefixes *names = instance_prefixes(instance_of(ctx));
	uint64_t beginnings = heard ? heard->beginnings : 0;
	bool as_is = !names || !names->any;
	struct site_name name;
	for (uint32_t i = 0; i < n; i++) {
		const char *key = as_is ? keys[i] : site_name(names, keys[i], &name);
		ret[i] = beginnings & kvs_beginning(key) ? kvs_get(heard, key) : NULL;
	}
}

static const char *pod_label(void *ctx, rp_pod handle, const char *key)
{
	WITH_POD(ctx, handle, NULL, NULL);
	struct site_name name;
	return kvs_get(&pod->labels, service_name(ctx, key, &name));
}

static const char *ctr_label(void *ctx, rp_ctr handle, const char *key)
{
	WITH_CTR(ctx, handle, NULL, NULL);
	return kvs_get(&ctr->labels, key);
}

static const char *ctr_annotation(void *ctx, rp_ctr handle, const char *key)
{
	WITH_CTR(ctx, handle, NULL, NULL);
	return kvs_get(&ctr->annotations, key);
}

static const char *env(void *ctx, rp_ctr handle, const char *name)
{
	MAIN_ONLY(ctx, RP_HOST_CACHE_1, NULL);
	const struct ctr *ctr = ctr_of(ctx, handle);
	size_t len = strlen(name);
	for (uint32_t i = 0; ctr && ctr->desc && i < ctr->desc->n_env; i++) {
		const char *item = ctr->desc->env[i];
		if (!strncmp(item, name, len) && item[len] == '=')
			return item + len + 1;
	}
	return NULL;
}

/* Define functions that return an item of a list in the runtime's description of a container under
 * creation: a copy of a struct, or a text. */
#define DESCRIBED_ITEM(name, type, list, n)                                                        \
	static int32_t name(void *ctx, rp_ctr handle, uint32_t index, struct type *out)            \
	{                                                                                          \
		WITH_CTR(ctx, handle, -RP_EPERM, -RP_ESTALE);                                      \
		if (!ctr->desc || index >= ctr->desc->n)                                           \
			return -RP_ENOENT;                                                         \
		sized_fill(out, &ctr->desc->list[index], sizeof *out);                             \
		return 0;                                                                          \
	}
#define DESCRIBED_TEXT(name, list, n)                                                              \
	static const char *name(void *ctx, rp_ctr handle, uint32_t index)                          \
	{                                                                                          \
		WITH_CTR(ctx, handle, NULL, NULL);                                                 \
		return ctr->desc && index < ctr->desc->n ? ctr->desc->list[index] : NULL;          \
	}
DESCRIBED_ITEM(mount, rp_mount_info, mounts, n_mounts)
DESCRIBED_ITEM(device, rp_device_info, devices, n_devices)
DESCRIBED_TEXT(cdi, cdi, n_cdi)
DESCRIBED_TEXT(arg, args, n_args)

static int32_t pod_resource(void *ctx, rp_ctr handle, uint32_t index,
			    struct rp_pod_resource_info *out)
{
	WITH_CTR(ctx, handle, -RP_EPERM, -RP_ESTALE);
	const struct host_env *env = instance_of(ctx)->env;
	struct rp_pod_resource_info full = {0};
	if (!env->pod_resource || env->pod_resource(ctr, index, &full, env->arg))
		return -RP_ENOENT;
	sized_fill(out, &full, sizeof full);
	return 0;
}

#define DECIDED(member) .decided = true, .at = offsetof(struct decision, member)
/* Number fields. Fields without a row, or with an empty one, take any number that is not
 * negative. */
static const struct number_field {
	int64_t min, max; /* max 0: no upper limit */
	bool unlimited; /* -1 is accepted, too */
	bool decided; /* a member of decisions; false: the field can only be set at creation */
	size_t at; /* place in a decision */
} numbers[] = {
	[RP_F_SHARES] = {.min = DERIVE_SHARES_MIN, .max = DERIVE_SHARES_MAX, DECIDED(shares)},
	[RP_F_QUOTA] = {.min = 1000, .unlimited = true, DECIDED(quota)},
	[RP_F_PERIOD] = {.min = 1000, .max = 1000000, DECIDED(period)},
	[RP_F_MEMORY_LIMIT] = {.min = 1, DECIDED(mem_limit)},
	[RP_F_NICE] = {.min = -20, .max = 19},
	[RP_F_IO_CLASS] = {.min = 0, .max = 3},
	[RP_F_IO_PRIORITY] = {.min = 0, .max = 7},
	[RP_F_OOM_SCORE_ADJ] = {.min = -1000, .max = 1000},
	[RP_F_SWAP] = {.min = 1, .unlimited = true},
};

static const struct number_field *number_field(uint32_t field)
{
	return &numbers[field < sizeof numbers / sizeof *numbers ? field : 0];
}

/* Returns the decision's member of a number field; NULL: the field can only be set at creation. */
static int64_t *number_of(struct decision *d, uint32_t field)
{
	const struct number_field *f = number_field(field);
	return f->decided ? (int64_t *)(void *)((char *)d + f->at) : NULL;
}

static struct blob **text_of(struct decision *d, uint32_t field)
{
	struct blob **const texts[] = {&d->rdt_class, &d->blockio_class, &d->cpu_class};
	uint32_t i = field - RP_F_RDT_CLASS;
	return i < sizeof texts / sizeof *texts ? texts[i] : NULL;
}

static int32_t get_int(void *ctx, rp_ctr handle, uint32_t field, int64_t *ret)
{
	WITH_CTR(ctx, handle, -RP_EPERM, -RP_ESTALE);
	struct decision d = *txn_view(ctr);
	const int64_t *number =
		field == RP_F_TOPTIER_LIMIT ? &d.toptier_adjusted : number_of(&d, field);
	if (!number || *number == RP_NOT_SET || (field == RP_F_TOPTIER_LIMIT && !*number))
		return -RP_ENOENT;
	*ret = *number;
	return 0;
}

static const char *get_text(void *ctx, rp_ctr handle, uint32_t field)
{
	WITH_CTR(ctx, handle, NULL, NULL);
	struct decision d = *txn_view(ctr);
	struct blob **text = text_of(&d, field);
	if (field == RP_F_RDT_CLASS)
		return blob_text(decision_rdt(&d));
	if (field == RP_F_BLOCKIO_CLASS)
		return blob_text(decision_blockio(&d));
	return text ? blob_text(*text) : NULL;
}

static int32_t get_private(void *ctx, rp_ctr handle, const void **ret, uint32_t *ret_size)
{
	WITH_CTR(ctx, handle, -RP_EPERM, -RP_ESTALE);
	const struct instance *i = instance_of(ctx);
	const struct decision *d = txn_view(ctr);
	if (!d->private_data || d->policy != i->number)
		return -RP_ENOENT;
	*ret = d->private_data->data;
	*ret_size = d->private_data->len;
	return 0;
}

static uint32_t list_pods(void *ctx, rp_pod *ret, uint32_t cap)
{
	MAIN_ONLY(ctx, RP_HOST_CACHE_1, 0);
	uint32_t n = 0;
	for (const struct pod *pod = cache_pods(instance_of(ctx)->env->cache); pod;
	     pod = pod->hh.next) {
		if (n < cap)
			ret[n] = pod->handle;
		n++;
	}
	return n;
}

static int32_t get_pod_private(void *ctx, rp_pod handle, const void **ret, uint32_t *ret_size)
{
	WITH_POD(ctx, handle, -RP_EPERM, -RP_ESTALE);
	const struct instance *i = instance_of(ctx);
	uint32_t policy;
	const struct blob *data = txn_pod_private(pod, &policy);
	if (!data || policy != i->number)
		return -RP_ENOENT;
	*ret = data->data;
	*ret_size = data->len;
	return 0;
}

static int32_t extended(void *ctx, rp_ctr handle, const char *resource, int64_t *ret_request,
			int64_t *ret_limit)
{
	WITH_CTR(ctx, handle, -RP_EPERM, -RP_ESTALE);
	const struct fed_pod *pod = pod_fed(instance_of(ctx)->env->cache, ctr->pod);
	const struct fed_ctr *fed = pod ? fed_ctr(pod, ctr->name) : NULL;
	if (fed)
		return fed_extended(fed, resource, ret_request, ret_limit);
	return resources_annotation_extended(ctr->pod, ctr->name, resource, ret_request, ret_limit);
}

/* ---- staging --------------------------------------------------------------------------------- */

/* Returns the staged decision of the container; NULL: *ret has the error. */
static struct decision *cache_stage(struct instance *i, rp_txn id, rp_ctr handle,
				    struct ctr **ret_ctr, int32_t *ret)
{
	struct cache *c = i->env->cache;
	struct txn *t = txn_of(c, id);
	struct ctr *ctr = cache_ctr_of(c, handle);
	if (!t || !ctr) {
		*ret = t ? -RP_ESTALE : -RP_EINVAL;
		return NULL;
	}
	struct decision *d = txn_stage(t, ctr);
	if (!d)
		*ret = -RP_ENOMEM;
	else if (i->policy)
		d->policy = i->number;
	if (ret_ctr)
		*ret_ctr = ctr;
	return d;
}

static int32_t set_ids(struct instance *i, rp_txn id, rp_ctr handle, struct rp_ids ids,
		       size_t member, uint32_t max)
{
	if (ids.nw > RP_IDSET_WORDS)
		return -RP_E2BIG;
	uint32_t last = rp_ids_last(ids);
	if (last != RP_IDSET_NONE && last >= max)
		return -RP_E2BIG;
	WITH_STAGED(i, id, handle, NULL);
	struct iset **field = (struct iset **)((char *)d + member);
	struct iset *set = intern_get(cache_sets(i->env->cache), ids);
	if (!set)
		return -RP_ENOMEM;
	if (member == offsetof(struct decision, exclusive) && !set->count)
		set = intern_unref(cache_sets(i->env->cache), set);
	txn_put_set(i->env->cache, field, set);
	if (member == offsetof(struct decision, cpus)) {
		d->confined = d->unpinned = false;
		d->granted &= ~DIFF_CPUS;
	} else if (member == offsetof(struct decision, mems)) {
		d->granted &= ~DIFF_MEMS;
	}
	return 0;
}

SERVICE_CALL(int32_t, RP_HOST_CACHE_1, -RP_EPERM, set_cpus,
	     (void *ctx, rp_txn id, rp_ctr handle, struct rp_ids cpus),
	     set_ids(ctx, id, handle, cpus, offsetof(struct decision, cpus), RP_CPUS_MAX))
SERVICE_CALL(int32_t, RP_HOST_CACHE_1, -RP_EPERM, set_mems,
	     (void *ctx, rp_txn id, rp_ctr handle, struct rp_ids mems),
	     set_ids(ctx, id, handle, mems, offsetof(struct decision, mems), RP_NODES_MAX))
SERVICE_CALL(int32_t, RP_HOST_CACHE_1, -RP_EPERM, set_exclusive,
	     (void *ctx, rp_txn id, rp_ctr handle, struct rp_ids cpus),
	     set_ids(ctx, id, handle, cpus, offsetof(struct decision, exclusive), RP_CPUS_MAX))
static bool in_range(uint32_t field, int64_t value)
{
	const struct number_field *f = number_field(field);
	return (value >= f->min && (!f->max || value <= f->max)) || (f->unlimited && value == -1);
}

static int32_t set_int(void *ctx, rp_txn id, rp_ctr handle, uint32_t field, int64_t value)
{
	MAIN_ONLY(ctx, RP_HOST_CACHE_1, -RP_EPERM);
	struct instance *i = instance_of(ctx);
	struct decision probe;
	if (!in_range(field, value))
		return -RP_EINVAL;
	if (!number_of(&probe, field)) {
		if (field < RP_F_SCHED_POLICY || field > RP_F_SWAP)
			return -RP_ENOTSUP;
		return creation_put(i, id, handle, (struct extra){.field = field, .number = value});
	}
	WITH_STAGED(i, id, handle, NULL);
	*number_of(d, field) = value;
	return 0;
}

static int32_t set_text(void *ctx, rp_txn id, rp_ctr handle, uint32_t field, const char *value)
{
	MAIN_ONLY(ctx, RP_HOST_CACHE_1, -RP_EPERM);
	struct instance *i = instance_of(ctx);
	struct decision probe;
	if (!extra_text(value, TEXT_MAX))
		return -RP_EINVAL;
	if (!text_of(&probe, field)) {
		if (field != RP_F_MEMPOLICY_NODES && field != RP_F_MEMPOLICY_FLAGS &&
		    field != RP_F_RDT_GROUP)
			return -RP_ENOTSUP;
		return creation_put(i, id, handle, (struct extra){.field = field, .text = value});
	}
	struct ctr *ctr;
	WITH_STAGED(i, id, handle, &ctr);
	if (field == RP_F_RDT_CLASS && i->policy && ctr->claim && claim_class(ctr->claim))
		return 0; /* the claim's class has precedence over the policy's class */
	struct blob *blob = blob_str(value);
	if (!blob)
		return -RP_ENOMEM;
	txn_put_blob(text_of(d, field), blob);
	return 0;
}

static int32_t set_group(void *ctx, rp_txn id, rp_ctr handle, uint32_t group)
{
	MAIN_ONLY(ctx, RP_HOST_CACHE_1, -RP_EPERM);
	if (group > RP_GROUP_MAX)
		return -RP_EINVAL;
	WITH_STAGED(ctx, id, handle, NULL);
	d->group = group;
	return 0;
}

static int32_t leave_unpinned(void *ctx, rp_txn id, rp_ctr handle)
{
	MAIN_ONLY(ctx, RP_HOST_CACHE_1, -RP_EPERM);
	WITH_STAGED(ctx, id, handle, NULL);
	d->unpinned = true;
	return 0;
}

static int32_t may_wait(void *ctx, rp_txn id, uint32_t quiet_ms, uint32_t longest_ms)
{
	MAIN_ONLY(ctx, RP_HOST_CACHE_1, -RP_EPERM);
	const struct instance *i = instance_of(ctx);
	struct txn *t = txn_of(i->env->cache, id);
	if (!t)
		return -RP_ESTALE;
	if (longest_ms > RP_WAIT_MAX_MS || quiet_ms > longest_ms)
		return -RP_EINVAL;
	txn_set_patience(t, (struct patience){quiet_ms, longest_ms});
	return 0;
}

static int32_t set_private(void *ctx, rp_txn id, rp_ctr handle, const void *data, uint32_t size)
{
	MAIN_ONLY(ctx, RP_HOST_CACHE_1, -RP_EPERM);
	struct instance *i = instance_of(ctx);
	if (size > RP_PRIVATE_MAX)
		return -RP_E2BIG;
	WITH_STAGED(i, id, handle, NULL);
	struct blob *old = d->private_data;
	if (old && old->len == size && (!size || !memcmp(old->data, data, size)))
		return 0;
	struct blob *blob = size ? blob_new(data, size) : NULL;
	if (size && !blob)
		return -RP_ENOMEM;
	txn_put_blob(&d->private_data, blob);
	return 0;
}

static int32_t set_pod_private(void *ctx, rp_txn id, rp_pod handle, const void *data, uint32_t size)
{
	MAIN_ONLY(ctx, RP_HOST_CACHE_1, -RP_EPERM);
	const struct instance *i = instance_of(ctx);
	struct txn *t = txn_of(i->env->cache, id);
	struct pod *pod = pod_of(ctx, handle);
	if (!t || !pod)
		return t ? -RP_ESTALE : -RP_EINVAL;
	if (size > RP_PRIVATE_MAX)
		return -RP_E2BIG;
	struct blob *blob = size ? blob_new(data, size) : NULL;
	if (size && !blob)
		return -RP_ENOMEM;
	return txn_put_pod_private(t, pod, i->number, blob);
}

static int32_t set_degraded(void *ctx, rp_txn id, rp_ctr handle, const char *reason)
{
	MAIN_ONLY(ctx, RP_HOST_CACHE_1, -RP_EPERM);
	WITH_STAGED(ctx, id, handle, NULL);
	struct blob *blob =
		reason ? blob_new(reason, (uint32_t)utf8_cut(reason, ERR_TEXT_MAX)) : NULL;
	if (reason && !blob)
		return -RP_ENOMEM;
	txn_put_blob(&d->degraded, blob);
	return 0;
}

#define ESCAPED "\"\\$`" /* characters that the shell interprets within quotes */

static size_t escaped_len(const char *value)
{
	size_t n = strlen(value);
	for (const char *v = value; (v = strpbrk(v, ESCAPED)); v++)
		n++;
	return n;
}

static char *append_escaped(char *p, const char *value)
{
	for (const char *v = value; *v; v++) {
		if (strchr(ESCAPED, *v))
			*p++ = '\\';
		*p++ = *v;
	}
	return p;
}

struct line_place {
	/* start and end of the key's line; equal if the key has no line, which then belongs
	 * there */
	size_t at, end;
	size_t size; /* bytes of all lines */
};

/* Finds the line of a key. Lines are sorted by key. A malformed line, from a damaged store, ends
 * the search. */
static struct line_place find_line(const char *lines, const char *key, size_t key_len)
{
	struct line_place r = {0, 0, 0};
	for (const char *line = lines, *eol; *line; line = eol + 1) {
		eol = strchr(line, '\n');
		const char *equals = eol ? memchr(line, '=', (size_t)(eol - line)) : NULL;
		if (!equals)
			break;
		size_t len = (size_t)(equals - line);
		int c = memcmp(line, key, len < key_len ? len : key_len);
		if (!c)
			c = (len > key_len) - (len < key_len);
		if (c <= 0) {
			r.end = (size_t)(eol + 1 - lines);
			r.at = c ? r.end : (size_t)(line - lines);
		}
		r.size = (size_t)(eol + 1 - lines);
	}
	return r;
}

/* Adds a line KEY="value" or replaces the line of that key; an empty value removes it. */
static int32_t put_line(struct decision *d, const char *key, const char *value)
{
	const char *had = d->data ? d->data->data : "";
	size_t key_len = strlen(key), added = *value ? key_len + escaped_len(value) + 4 : 0;
	struct line_place line = find_line(had, key, key_len);
	size_t behind = line.size - line.end, len = line.at + added + behind;
	if (!added && len == (d->data ? d->data->len : 0))
		return 0; /* there was no such line */
	struct blob *blob = len ? blob_room((uint32_t)len) : NULL;
	if (len && !blob)
		return -RP_ENOMEM;
	if (blob) {
		memcpy(blob->data, had, line.at);
		char *p = blob->data + line.at;
		if (added) {
			memcpy(p, key, key_len);
			memcpy(p + key_len, "=\"", 2);
			p = append_escaped(p + key_len + 2, value);
			memcpy(p, "\"\n", 2);
			p += 2;
		}
		memcpy(p, had + line.end, behind);
	}
	txn_put_blob(&d->data, blob);
	return 0;
}

/* Returns true if the key is valid as the name of an environment variable. */
static bool good_data_key(const char *key)
{
	const char *k = key;
	while ((*k >= 'A' && *k <= 'Z') || (*k >= '0' && *k <= '9') || *k == '_')
		k++;
	return !*k && k != key && k - key <= DATA_KEY_MAX;
}

static int32_t set_data(void *ctx, rp_txn id, rp_ctr handle, const char *key, const char *value)
{
	MAIN_ONLY(ctx, RP_HOST_CACHE_1, -RP_EPERM);
	if (!value)
		value = "";
	if (!good_data_key(key) || !extra_text(value, TEXT_MAX) || strchr(value, '\n'))
		return -RP_EINVAL;
	WITH_STAGED(ctx, id, handle, NULL);
	if (d->data && d->data->len > DATA_MAX)
		return -RP_E2BIG;
	return put_line(d, key, value);
}

/* ---- huge pages ------------------------------------------------------------------------------ */

static int32_t hugepages(void *ctx, rp_pod pod, rp_ctr ctr, struct rp_ids nodes, char *why,
			 uint32_t cap)
{
	MAIN_ONLY(ctx, RP_HOST_CACHE_1, -RP_EPERM);
	const struct host_env *env = instance_of(ctx)->env;
	const struct ctr *c = ctr ? ctr_of(ctx, ctr) : NULL;
	const struct pod *p = ctr ? NULL : pod_of(ctx, pod);
	if (!c && !p)
		return -RP_ESTALE;
	return hugepages_check(env->cache, env->topo, p, c, nodes, why, cap);
}

static int32_t node_hugepages(void *ctx, uint32_t node, uint32_t index,
			      struct rp_hugepages_info *out)
{
	MAIN_ONLY(ctx, RP_HOST_CACHE_1, -RP_EPERM);
	static const char *const names[] = {"hugepages-64Ki",  "hugepages-1Mi",	  "hugepages-2Mi",
					    "hugepages-4Mi",   "hugepages-8Mi",	  "hugepages-16Mi",
					    "hugepages-32Mi",  "hugepages-256Mi", "hugepages-1Gi",
					    "hugepages-512Mi", "hugepages-16Gi",  "hugepages-2Gi"};
	const struct host_env *env = instance_of(ctx)->env;
	uint64_t page = topo_hugepage_size(env->topo, index);
	if (!page)
		return -RP_ENOENT;
	char text[HUGE_SIZE_TEXT];
	struct huge_node n = {0};
	(void)hugepages_count(env->cache, env->topo, node, page, NULL, &n);
	struct rp_hugepages_info full = {.resource = "",
					 .page = page,
					 .total = n.total,
					 .others = n.others,
					 .claimed = n.claimed};
	full.left = n.total - (n.others + n.granted < n.total ? n.others + n.granted : n.total);
	(void)hugepages_text(page, text);
	for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
		if (str_eq(strchr(names[i], '-') + 1, text))
			full.resource = names[i];
	sized_fill(out, &full, sizeof full);
	return 0;
}

const struct rp_host_cache host_cache_service = {
	.size = sizeof host_cache_service,
	.list = list,
	.get_ctr = get_ctr,
	.get_pod = get_pod,
	.annotation = annotation,
	.pod_annotation = pod_annotation,
	.pod_label = pod_label,
	.ctr_label = ctr_label,
	.ctr_annotation = ctr_annotation,
	.env = env,
	.mount = mount,
	.device = device,
	.get_int = get_int,
	.get_text = get_text,
	.get_private = get_private,
	.extended = extended,
	.set_cpus = set_cpus,
	.set_mems = set_mems,
	.set_exclusive = set_exclusive,
	.set_int = set_int,
	.set_text = set_text,
	.set_pair = creation_set_pair,
	.set_private = set_private,
	.set_degraded = set_degraded,
	.set_data = set_data,
	.pod_resource = pod_resource,
	.arg = arg,
	.set_args = creation_set_args,
	.set_group = set_group,
	.leave_unpinned = leave_unpinned,
	.may_wait = may_wait,
	.pod_ctr = pod_ctr,
	.list_pods = list_pods,
	.get_pod_private = get_pod_private,
	.set_pod_private = set_pod_private,
	.add_mount = creation_add_mount,
	.add_device = creation_add_device,
	.add_cdi = creation_add_cdi,
	.cdi = cdi,
	.hugepages = hugepages,
	.node_hugepages = node_hugepages,
	.pod_annotations = pod_annotations,
	.memory = memory,
};
