/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cache's objects. Facts come from the runtime (cache_put_pod, cache_put_ctr) and are replaced
 * whenever the runtime repeats them. Decisions come from policies through transactions (txn.c).
 * Sets are interned (core/lib/util/intern.h), so a decision is a few pointers, and staging it
 * copies those. A handle is a slot's index and generation. The slot of a removed object is used
 * again with the next generation, which makes old handles invalid.
 */
#include "core/nri-rpd/cache/cache.h"

#include <assert.h>
#include <stdlib.h>
#include <utlist.h>

#include "core/nri-rpd/cache/claim.h"
#include "core/nri-rpd/cache/derive.h"
#include "core/nri-rpd/cache/annotation_rules.h"
#include "core/nri-rpd/cache/internal.h"
#include "core/nri-rpd/cache/pod_level.h"
#include "core/nri-rpd/cache/txn.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/getter.h"
#include "core/lib/util/log.h"
#include "core/lib/util/str.h"
#include "core/nri-rpd/cache/resources.h"
#include "core/nri-rpd/cache/hugepages.h"

#define LOG_SOURCE "cache"
/* largest number of containers of a pod whose requests are derived again */
#define DERIVED_SIBLINGS_MAX 256u

/* ---- slots ----------------------------------------------------------------------------------- */

static uint64_t slots_add(struct slots *s, void *object)
{
	if (!s->free) {
		uint32_t cap = s->cap ? s->cap * 2 : 64;
		struct slot *grown = realloc(s->slot, cap * sizeof *grown);
		if (!grown)
			return 0;
		s->slot = grown;
		for (uint32_t i = s->cap; i < cap; i++)
			s->slot[i] = (struct slot){NULL, 1, i + 1 < cap ? i + 2 : 0};
		s->free = s->cap + 1;
		s->cap = cap;
	}
	uint32_t i = s->free - 1;
	s->free = s->slot[i].next_free;
	s->slot[i].object = object;
	s->n++;
	return (uint64_t)s->slot[i].generation << 32 | (i + 1);
}

static void slots_del(struct slots *s, uint64_t handle)
{
	uint32_t i = (uint32_t)handle - 1;
	assert(i < s->cap && s->slot[i].object && s->n);
	s->slot[i].object = NULL;
	s->slot[i].generation++;
	s->slot[i].next_free = s->free;
	s->free = i + 1;
	s->n--;
}

static void *slots_get(const struct slots *s, uint64_t handle)
{
	uint32_t i = (uint32_t)handle - 1;
	if (i >= s->cap || s->slot[i].generation != (uint32_t)(handle >> 32))
		return NULL;
	return s->slot[i].object;
}

/* ---- blobs ----------------------------------------------------------------------------------- */

struct blob *blob_room(uint32_t len)
{
	struct blob *b = malloc(sizeof *b + len + 1);
	if (!b)
		return NULL;
	b->refs = 1;
	b->len = len;
	b->data[len] = '\0';
	return b;
}

struct blob *blob_new(const void *data, uint32_t len)
{
	struct blob *b = blob_room(len);
	if (b && len)
		memcpy(b->data, data, len);
	return b;
}

struct blob *blob_str(const char *s)
{
	return blob_new(s, (uint32_t)strlen(s));
}

struct blob *blob_ref(struct blob *b)
{
	if (b) {
		assert(b->refs);
		b->refs++;
	}
	return b;
}

struct blob *blob_unref(struct blob *b)
{
	assert(!b || b->refs);
	if (b && --b->refs == 0)
		free(b);
	return NULL;
}

bool blob_equal(const struct blob *a, const struct blob *b)
{
	if (!a || !b)
		return a == b;
	return a == b || (a->len == b->len && !memcmp(a->data, b->data, a->len));
}

/* ---- values ---------------------------------------------------------------------------------- */

static int overlay_set(struct cache *c, struct iset **field, const char *text, uint32_t max)
{
	struct rp_idset ids;
	if (!text || !*text)
		return 0;
	if (rp_idset_parse(&ids, text, max))
		return -EINVAL;
	struct iset *set = intern_get(c->sets, rp_ids_of(&ids));
	if (!set)
		return -ENOMEM;
	txn_put_set(c, field, set);
	return 0;
}

static void overlay_number(int64_t *field, int64_t value, bool zero_is_absent)
{
	if (value != RP_NOT_SET && !(zero_is_absent && value == 0))
		*field = value;
}

int values_overlay(struct cache *c, struct values *v, const struct res_desc *res,
		   bool zero_is_absent)
{
	overlay_number(&v->shares, res->shares, zero_is_absent);
	overlay_number(&v->quota, res->quota, zero_is_absent);
	overlay_number(&v->period, res->period, zero_is_absent);
	overlay_number(&v->mem_limit, res->mem_limit, zero_is_absent);
	int r1 = overlay_set(c, &v->cpus, res->cpus, RP_CPUS_MAX);
	int r2 = overlay_set(c, &v->mems, res->mems, RP_NODES_MAX);
	return r1 ? r1 : r2;
}

void values_fini(struct cache *c, struct values *v)
{
	txn_put_set(c, &v->cpus, NULL);
	txn_put_set(c, &v->mems, NULL);
	*v = (struct values)VALUES_NONE;
}

void values_copy(struct values *dst, const struct values *src)
{
	*dst = *src;
	intern_ref(dst->cpus);
	intern_ref(dst->mems);
}

static void follow_number(int64_t *decided, int64_t was, int64_t now)
{
	if (*decided != RP_NOT_SET && *decided == was)
		*decided = now;
}

void decision_follow(struct decision *d, const struct values *was, const struct values *now)
{
	follow_number(&d->shares, was->shares, now->shares);
	follow_number(&d->quota, was->quota, now->quota);
	follow_number(&d->period, was->period, now->period);
	follow_number(&d->mem_limit, was->mem_limit, now->mem_limit);
}

static bool number_differs(int64_t wanted, int64_t has)
{
	return wanted != RP_NOT_SET && wanted != has;
}

static bool set_differs(const struct iset *wanted, const struct iset *has)
{
	return wanted && wanted->count && wanted != has;
}

uint32_t ctr_diff(const struct ctr *ctr)
{
	const struct decision *d = txn_view(ctr);
	const struct values *has = &ctr->acked;
	if (ctr->device)
		return 0; /* a claim, which no runtime has */
	return (set_differs(d->cpus, has->cpus) ? DIFF_CPUS : 0u) |
	       (set_differs(d->mems, has->mems) ? DIFF_MEMS : 0u) |
	       (number_differs(d->shares, has->shares) ? DIFF_SHARES : 0u) |
	       (number_differs(d->quota, has->quota) ? DIFF_QUOTA : 0u) |
	       (number_differs(d->period, has->period) ? DIFF_PERIOD : 0u) |
	       (number_differs(d->mem_limit, has->mem_limit) ? DIFF_MEM_LIMIT : 0u);
}

struct values ctr_decided(const struct ctr *ctr)
{
	const struct decision *d = &ctr->cur;
	return (struct values){.amounts = d->amounts, .cpus = d->cpus, .mems = d->mems};
}

/* Copies the amounts of these fields (DIFF_…). */
static void amounts_copy(struct cpu_amounts *to, uint32_t fields, const struct cpu_amounts *from)
{
	if (fields & DIFF_SHARES)
		to->shares = from->shares;
	if (fields & DIFF_QUOTA)
		to->quota = from->quota;
	if (fields & DIFF_PERIOD)
		to->period = from->period;
	if (fields & DIFF_MEM_LIMIT)
		to->mem_limit = from->mem_limit;
}

void ctr_note_sent(struct ctr *ctr, uint32_t fields, const struct values *v)
{
	amounts_copy(&ctr->sent.amounts, fields, &v->amounts);
}

void ctr_ack_values(struct cache *c, struct ctr *ctr, uint32_t fields, const struct values *v)
{
	struct values *a = &ctr->acked;
	if (fields & DIFF_CPUS)
		txn_put_set(c, &a->cpus, intern_ref(v->cpus));
	if (fields & DIFF_MEMS)
		txn_put_set(c, &a->mems, intern_ref(v->mems));
	amounts_copy(&a->amounts, fields, &v->amounts);
	const struct values none = VALUES_NONE;
	ctr_note_sent(ctr, fields, &none);
	ctr->store.missing |= ctr_unstored_acked(fields);
}

void ctr_ack(struct cache *c, struct ctr *ctr, uint32_t fields)
{
	const struct values v = ctr_decided(ctr);
	ctr_ack_values(c, ctr, fields, &v);
}

uint32_t ctr_unstored_acked(uint32_t fields)
{
	const uint32_t sets = DIFF_CPUS | DIFF_MEMS;
	return (fields & ~sets) | (fields & sets ? CTR_UNSTORED_ACKED_SETS : 0);
}

/* ---- the cache itself ------------------------------------------------------------------------ */

struct cache *cache_new(uint64_t memory_total)
{
	struct cache *c = calloc(1, sizeof *c);
	if (!c)
		return NULL;
	c->memory_total = memory_total;
	c->sets = intern_new();
	c->cpu_sets = calloc(RP_CPUS_MAX, sizeof *c->cpu_sets);
	c->cpu_owner = calloc(RP_CPUS_MAX, sizeof *c->cpu_owner);
	c->cpu_owners = calloc(RP_CPUS_MAX, sizeof *c->cpu_owners);
	if (!c->sets || !c->cpu_sets || !c->cpu_owner || !c->cpu_owners)
		return cache_free(c);
	return c;
}

struct cache *cache_free(struct cache *c)
{
	if (!c)
		return NULL;
	if (c->txn)
		txn_end(c->txn);
	for (struct pod *pod = c->pods, *next; pod; pod = next) {
		next = pod->hh.next;
		cache_del_pod(c, pod);
	}
	while (c->spare_stages) {
		struct stage *s = c->spare_stages;
		c->spare_stages = s->link;
		free(s);
	}
	feed_clear(&c->feed);
	arena_free(c->feed.names);
	if (c->sets)
		intern_free(c->sets);
	for (uint32_t i = 0; i < c->n_policies; i++)
		free(c->policies[i]);
	free(c->pod_slots.slot);
	free(c->ctr_slots.slot);
	free(c->cpu_sets);
	free(c->huge_others);
	free(c->cpu_owner);
	free(c->cpu_owners);
	free(c);
	return NULL;
}

DEFINE_GETTER_OF(cache_sets, struct intern *, struct cache *c, c->sets)
DEFINE_GETTER_OF(cache_feed, struct feed *, struct cache *c, &c->feed)

void cache_set_memory_total(struct cache *c, uint64_t bytes)
{
	c->memory_total = bytes;
}

uint32_t cache_policy_number(struct cache *c, const char *name)
{
	for (uint32_t i = 0; i < c->n_policies; i++)
		if (str_eq(c->policies[i], name))
			return i + 1;
	if (c->n_policies == POLICY_NAMES_MAX)
		return 0;
	char *copy = strdup(name);
	if (!copy)
		return 0;
	c->policies[c->n_policies++] = copy;
	return c->n_policies;
}

const char *cache_policy_name(const struct cache *c, uint32_t number)
{
	return number && number <= c->n_policies ? c->policies[number - 1] : "";
}

/* ---- pods ------------------------------------------------------------------------------------ */

static int check_text(const char *what, const char *text, size_t max, struct err *err)
{
	if (strlen(text) > max)
		return err_set(err, -EINVAL, "the runtime's %s is longer than %zu bytes", what,
			       max);
	return 0;
}

static int check_pod(const struct pod_desc *d, struct err *err)
{
	if (!*d->id)
		return err_set(err, -EINVAL, "the runtime sent a pod without an id");
	int r = check_text("pod id", d->id, CACHE_ID_MAX, err);
#define CHECK_TEXT(member, what, max) r = r ? r : check_text(what, d->member, max, err);
	POD_TEXTS(CHECK_TEXT)
	return r;
}

/* Replaces *field and sets *changed, unless the text is equal. */
static int put_text(char **field, const char *text, bool *changed)
{
	if (*field && str_eq(*field, text))
		return 0;
	char *copy = strdup(text);
	if (!copy)
		return -ENOMEM;
	free(*field);
	*field = copy;
	*changed = true;
	return 0;
}

/* Stores labels or annotations once: they do not change after the creation of a pod or
 * container. */
static int put_kvs(struct kvs *field, const struct kv *pairs, uint32_t n, bool *changed)
{
	if (!n || field->n)
		return 0;
	int r = kvs_init(field, pairs, n);
	*changed = true;
	return r < 0 ? r : 0;
}

static void fill_sums(struct pod *pod, const struct res_desc *d)
{
	if (!d)
		return;
	bool limited = d->quota != RP_NOT_SET && d->quota > 0 && d->period > 0;
	const struct needs was = pod->sums;
	pod->sums = (struct needs){
		.cpu_request =
			d->shares == RP_NOT_SET ? RP_NOT_SET : derive_shares_to_mcpu(d->shares),
		.cpu_limit = limited ? derive_quota_to_mcpu(d->quota, d->period) : 0,
		.mem_request = RP_NOT_SET,
		.mem_limit = d->mem_limit != RP_NOT_SET && d->mem_limit > 0 ? d->mem_limit : 0,
	};
	if (memcmp(&was, &pod->sums, sizeof was) != 0)
		pod->sums_stale = false;
}

void cache_resize_pod(struct pod *pod, const struct res_desc *res)
{
	if (res->shares <= 0)
		return;
	fill_sums(pod, res);
	pod->resized = true;
}

static int fill_pod(const struct cache *c, struct pod *pod, const struct pod_desc *d)
{
	bool changed = false;
	fill_sums(pod, d->sums);
	if (!*d->name && pod->name && *pod->name)
		return 0; /* containerd reports only an id after the end of a sandbox */
	int r = 0;
#define PUT_TEXT(member, what, max) r = r ? r : put_text(&pod->member, d->member, &changed);
	POD_TEXTS(PUT_TEXT)
	if (!r)
		r = put_kvs(&pod->labels, d->labels, d->n_labels, &changed);
	if (!r)
		r = put_kvs(&pod->annotations, d->annotations, d->n_annotations, &changed);
	if (!changed)
		return r;
	if (!r)
		r = hear_pod(c, pod);
	pod->qos = derive_qos(pod->cgroup_parent ? pod->cgroup_parent : "");
	pod->store.facts = false;
	return r;
}

static void free_pod(struct pod *pod)
{
	free(pod->id);
#define FREE_TEXT(member, what, max) free(pod->member);
	POD_TEXTS(FREE_TEXT)
	blob_unref(pod->private_data);
	blob_unref(pod->grants);
	kvs_fini(&pod->labels);
	kvs_fini(&pod->annotations);
	kvs_fini(&pod->heard);
	free(pod);
}

/* Returns false without memory. */
static bool pod_index(struct cache *c, struct pod *pod)
{
	struct pod *first = cache_pod_by_uid(c, pod->uid);
	if (first) {
		pod->uid_next = first->uid_next;
		first->uid_next = pod;
		return true;
	}
	pod->uid_next = NULL;
	HASH_ADD_KEYPTR(hh_uid, c->pods_by_uid, pod->uid, strlen(pod->uid), pod);
	return pod->hh_uid.tbl != NULL;
}

static void pod_unindex(struct cache *c, struct pod *pod)
{
	struct pod *at = cache_pod_by_uid(c, pod->uid), *next = pod->uid_next;
	if (at != pod) {
		while (at && at->uid_next != pod)
			at = at->uid_next;
		if (at)
			at->uid_next = next;
		return;
	}
	/* add the next sandbox first: the table then exists, so that this needs no memory */
	if (next)
		HASH_ADD_KEYPTR(hh_uid, c->pods_by_uid, next->uid, strlen(next->uid), next);
	HASH_DELETE(hh_uid, c->pods_by_uid, pod);
}

int cache_put_pod(struct cache *c, const struct pod_desc *desc, struct pod **ret, struct err *err)
{
	int r = check_pod(desc, err);
	if (r)
		return r;
	bool fresh = true;
	struct pod *pod = cache_pod(c, desc->id);
	if (pod) {
		pod_unindex(c, pod);
		r = fill_pod(c, pod, desc);
		if (!pod_index(c, pod))
			r = -ENOMEM;
		*ret = pod;
		return r ? err_set(err, r, "pod %s: out of memory", desc->id) : 0;
	}
	if (c->pod_slots.n >= CACHE_PODS_MAX)
		return err_set(err, -ENOSPC, "more than %u pods", CACHE_PODS_MAX);
	pod = calloc(1, sizeof *pod);
	if (pod)
		pod->sums = (struct needs){RP_NOT_SET, RP_NOT_SET, RP_NOT_SET, RP_NOT_SET};
	if (!pod || put_text(&pod->id, desc->id, &fresh) || fill_pod(c, pod, desc) ||
	    !(pod->handle = slots_add(&c->pod_slots, pod))) {
		if (pod)
			free_pod(pod);
		return err_set(err, -ENOMEM, "pod %s: out of memory", desc->id);
	}
	pod->seq = ++c->seq;
	HASH_ADD_KEYPTR(hh, c->pods, pod->id, strlen(pod->id), pod);
	if (!pod->hh.tbl || !pod_index(c, pod)) {
		if (pod->hh.tbl)
			HASH_DEL(c->pods, pod);
		slots_del(&c->pod_slots, pod->handle);
		free_pod(pod);
		return err_set(err, -ENOMEM, "pod %s: out of memory", desc->id);
	}
	*ret = pod;
	return 0;
}

void cache_del_pod(struct cache *c, struct pod *pod)
{
	while (pod->ctrs)
		cache_del_ctr(c, pod->ctrs);
	pod_unindex(c, pod);
	HASH_DEL(c->pods, pod);
	slots_del(&c->pod_slots, pod->handle);
	free_pod(pod);
}

/* ---- containers ------------------------------------------------------------------------------ */

static int check_ctr(const struct ctr_desc *d, struct err *err)
{
	if (!*d->id)
		return err_set(err, -EINVAL, "the runtime sent a container without an id");
	int r = check_text("container id", d->id, CACHE_ID_MAX, err);
	if (!r)
		r = check_text("container name", d->name, CACHE_ID_MAX, err);
	if (!r)
		r = check_text("cgroups path", d->cgroups_path, CACHE_PATH_MAX, err);
	return r;
}

static void derive_from_runtime(const struct cache *c, struct ctr *ctr)
{
	bool estimated = false;
	derive_needs(ctr->pod->qos, &ctr->requested, ctr->oom_score_adj, c->memory_total,
		     &ctr->wanted, &estimated);
	ctr->flags &= ~(RP_CTR_EXACT_NEEDS | RP_CTR_ESTIMATED_MEM);
	ctr->flags |= estimated ? RP_CTR_ESTIMATED_MEM : 0u;
}

void cache_derive_resized(struct cache *c, struct ctr *ctr)
{
	const struct needs had = ctr->wanted;
	derive_from_runtime(c, ctr);
	if (ctr->flags & RP_CTR_POD_RESOURCES)
		pod_level_keep(ctr, &had);
	else
		ctr->pod->sums_stale = true;
}

/* Reads a container's requests and limits as written in the pod's specification, from the cluster's
 * report or a webhook's annotation. -ENOENT: neither has them. */
static int told_needs(const struct cache *c, struct ctr *ctr, struct needs *ret, bool *ret_init,
		      struct err *err)
{
	const struct fed_pod *pod = pod_fed(c, ctr->pod);
	const struct fed_ctr *fed = pod ? fed_ctr(pod, ctr->name) : NULL;
	if (!fed)
		return resources_annotation(ctr->pod, ctr->name, ret, ret_init, err);
	*ret = fed->needs;
	*ret_init = fed->kind == FED_INIT;
	ctr->flags |= pod->has_own ? RP_CTR_POD_RESOURCES : 0u;
	ctr->pod_cpu_extra = fed_cpu_extra(pod, fed);
	if (hugepages_set_fed(ctr, pod, fed))
		log_warning("%s: out of memory for its huge pages", ctr->full_name);
	return 0;
}

/* Derives the container's needs and flags from the runtime's values (ctr->requested) and the pod's
 * annotations. */
static void cache_derive(struct cache *c, struct ctr *ctr)
{
	bool init = false;
	struct err parse = ERR_INIT;
	ctr->flags &= ~RP_CTR_POD_RESOURCES;
	ctr->pod_cpu_extra = 0;
	int r = told_needs(c, ctr, &ctr->wanted, &init, &parse);
	if (r == -EINVAL)
		log_warning("%s; using the runtime's values", parse.text);
	if (r) {
		derive_from_runtime(c, ctr);
		pod_level_amend(ctr);
	} else {
		ctr->flags = (ctr->flags & ~RP_CTR_ESTIMATED_MEM) | RP_CTR_EXACT_NEEDS;
	}
	ctr->flags &= ~RP_CTR_INIT;
	ctr->flags |= init ? RP_CTR_INIT : 0u;
	derive_preserved(ctr);
}

void cache_set_created(struct ctr *ctr, uint64_t wall_ns)
{
	if (!wall_ns || ctr->created_ns == wall_ns)
		return;
	ctr->created_ns = wall_ns;
	ctr->store.missing |= TXN_CHANGED_OTHER;
}

static int fill_ctr(struct ctr *ctr, const struct ctr_desc *d)
{
	bool changed = false;
	int r = put_text(&ctr->cgroups_path, d->cgroups_path, &changed);
	if (!r)
		r = put_kvs(&ctr->labels, d->labels, d->n_labels, &changed);
	if (!r)
		r = put_kvs(&ctr->annotations, d->annotations, d->n_annotations, &changed);
	if (!r && !ctr->huge)
		r = hugepages_set(ctr, &d->huge);
	cache_set_created(ctr, d->created_ns);
	if (d->pid)
		ctr->pid = d->pid;
	if (d->oom_score_adj != RP_NOT_SET && d->oom_score_adj != ctr->oom_score_adj) {
		ctr->oom_score_adj = d->oom_score_adj;
		changed = true;
	}
	if (changed)
		ctr->store.facts = false;
	return r;
}

static void free_ctr(struct cache *c, struct ctr *ctr)
{
	decision_fini(c, &ctr->cur);
	values_fini(c, &ctr->requested);
	values_fini(c, &ctr->acked);
	free(ctr->id);
	free(ctr->name);
	free(ctr->cgroups_path);
	free(ctr->full_name);
	free(ctr->trail.text);
	free(ctr->usage);
	free(ctr->huge);
	free(ctr->device);
	free(ctr->users);
	kvs_fini(&ctr->labels);
	kvs_fini(&ctr->annotations);
	free(ctr);
}

static char *put_name(char *out, const char *name, size_t n, char after)
{
	memcpy(out, name, n);
	out[n] = after;
	return out + n + 1;
}

static char *full_name(const char *ns, const char *pod, const char *name)
{
	size_t n_ns = strlen(ns), n_pod = strlen(pod), n_name = strlen(name);
	char *s = malloc(n_ns + n_pod + n_name + 3), *p = s;
	if (!s)
		return NULL;
	p = put_name(p, ns, n_ns, '/');
	p = put_name(p, pod, n_pod, '/');
	(void)put_name(p, name, n_name, '\0');
	return s;
}

static struct ctr *new_ctr(struct cache *c, struct pod *pod, const struct ctr_desc *d)
{
	bool fresh = true;
	struct ctr *ctr = calloc(1, sizeof *ctr);
	if (!ctr)
		return NULL;
	ctr->pod = pod;
	ctr->store.missing = TXN_CHANGED_OTHER;
	ctr->oom_score_adj = RP_NOT_SET;
	ctr->requested = (struct values)VALUES_NONE;
	ctr->acked = (struct values)VALUES_NONE;
	ctr->sent = (struct values)VALUES_NONE;
	ctr->cur = (struct decision){.amounts = CPU_AMOUNTS_NONE, .state = d->state};
	ctr->full_name = full_name(pod->ns, pod->name, d->name);
	if (!ctr->full_name || put_text(&ctr->id, d->id, &fresh) ||
	    put_text(&ctr->name, d->name, &fresh) || fill_ctr(ctr, d) ||
	    values_overlay(c, &ctr->requested, &d->res, false) == -ENOMEM ||
	    !(ctr->handle = slots_add(&c->ctr_slots, ctr))) {
		free_ctr(c, ctr);
		return NULL;
	}
	values_copy(&ctr->acked, &ctr->requested);
	return ctr;
}

void cache_set_cgroup(struct ctr *ctr, const char *path)
{
	bool changed = false;
	struct err err = ERR_INIT;
	if (check_text("cgroups path", path, CACHE_PATH_MAX, &err) == 0)
		(void)put_text(&ctr->cgroups_path, path, &changed);
	if (changed)
		ctr->store.facts = false;
}

void cache_claim_name(struct cache *c, struct ctr *ctr)
{
	struct ctr *old = NULL;
	size_t len = strlen(ctr->full_name);
	HASH_FIND(hh_name, c->by_name, ctr->full_name, len, old);
	if (old == ctr)
		return;
	HASH_ADD_KEYPTR(hh_name, c->by_name, ctr->full_name, len, ctr);
	if (ctr->hh_name.tbl && old)
		HASH_DELETE(hh_name, c->by_name, old);
}

/* Derives the needs of the pod's other containers again, after a Synchronize has revealed that they
 * share the pod's resources with this one. Containers with a decision are skipped. */
static void derive_siblings(struct cache *c, const struct ctr *ctr)
{
	uint32_t n = 0;
	if (ctr->pod->sums.cpu_request == RP_NOT_SET || !ctr->wanted.cpu_request)
		return;
	for (struct ctr *s = ctr->pod->ctrs; s && n < DERIVED_SIBLINGS_MAX; s = s->pod_next, n++) {
		if (s == ctr || s->flags & RP_CTR_RESTORED || s->cur.cpus || !s->wanted.cpu_request)
			continue;
		cache_derive(c, s);
		s->cur.needs = s->wanted;
	}
}

int cache_put_ctr(struct cache *c, const struct ctr_desc *desc, struct ctr **ret, struct err *err)
{
	int r = check_ctr(desc, err);
	if (r)
		return r;
	struct ctr *ctr = cache_ctr(c, desc->id);
	if (ctr) {
		r = fill_ctr(ctr, desc);
		*ret = ctr;
		return r ? err_set(err, r, "container %s: out of memory", desc->id) : 0;
	}
	struct pod *pod = cache_pod(c, desc->pod_id);
	if (!pod)
		return err_set(err, -ENOENT, "container %s (%s): its pod %s is unknown", desc->name,
			       desc->id, desc->pod_id);
	if (c->ctr_slots.n >= CACHE_CTRS_MAX)
		return err_set(err, -ENOSPC, "more than %u containers", CACHE_CTRS_MAX);
	ctr = new_ctr(c, pod, desc);
	if (!ctr)
		return err_set(err, -ENOMEM, "container %s: out of memory", desc->id);
	ctr->seq = ++c->seq;
	cache_derive(c, ctr);
	ctr->cur.needs = ctr->wanted;
	HASH_ADD_KEYPTR(hh, c->by_id, ctr->id, strlen(ctr->id), ctr);
	cache_claim_name(c, ctr);
	DL_APPEND(c->ctrs, ctr);
	DL_APPEND2(pod->ctrs, ctr, pod_prev, pod_next);
	if (!ctr->hh.tbl || !ctr->hh_name.tbl) {
		cache_del_ctr(c, ctr);
		return err_set(err, -ENOMEM, "container %s: out of memory", desc->id);
	}
	if (desc->state != RP_STATE_CREATING)
		derive_siblings(c, ctr);
	*ret = ctr;
	return 0;
}

void cache_del_ctr(struct cache *c, struct ctr *ctr)
{
	struct ctr *named = NULL;
	assert(!ctr->stage);
	if (ctr->device)
		claim_detach(c, ctr);
	count_decision(c, ctr, &ctr->cur, false);
	claim_attach(ctr, NULL);
	if (ctr->hh.tbl)
		HASH_DEL(c->by_id, ctr);
	HASH_FIND(hh_name, c->by_name, ctr->full_name, strlen(ctr->full_name), named);
	if (named == ctr)
		HASH_DELETE(hh_name, c->by_name, ctr);
	DL_DELETE(c->ctrs, ctr);
	DL_DELETE2(ctr->pod->ctrs, ctr, pod_prev, pod_next);
	slots_del(&c->ctr_slots, ctr->handle);
	free_ctr(c, ctr);
}

/* ---- look-ups -------------------------------------------------------------------------------- */

struct pod *cache_pod(struct cache *c, const char *id)
{
	struct pod *pod = cache_pod_of(c, c->latest_pod);
	if (!pod || !str_eq(pod->id, id))
		HASH_FIND_STR(c->pods, id, pod);
	c->latest_pod = pod ? pod->handle : 0;
	return pod;
}

struct pod *cache_pod_by_uid(const struct cache *c, const char *uid)
{
	struct pod *pod = NULL;
	HASH_FIND(hh_uid, c->pods_by_uid, uid, strlen(uid), pod);
	return pod;
}

struct ctr *cache_ctr(struct cache *c, const char *id)
{
	struct ctr *ctr = cache_ctr_of(c, c->latest_ctr);
	if (!ctr || !str_eq(ctr->id, id))
		HASH_FIND_STR(c->by_id, id, ctr);
	c->latest_ctr = ctr ? ctr->handle : 0;
	return ctr;
}

struct ctr *cache_ctr_by_name(struct cache *c, const char *full_name)
{
	struct ctr *ctr = NULL;
	HASH_FIND(hh_name, c->by_name, full_name, strlen(full_name), ctr);
	return ctr;
}

struct ctr *cache_ctr_named(struct cache *c, const char *ns, const char *pod, const char *name)
{
	_free_ char *full = full_name(ns, pod, name);
	return full ? cache_ctr_by_name(c, full) : NULL;
}

static bool cache_matches(const struct ctr *ctr, const char *text)
{
	const char *pod_name = strchr(ctr->full_name, '/') + 1;
	if (claim_is_named(ctr, text))
		return true;
	return str_has_prefix(ctr->id, text) || str_eq(ctr->full_name, text) ||
	       str_eq(pod_name, text) || str_eq(ctr->name, text);
}

struct ctr *cache_ctr_find(struct cache *c, const char *text, struct err *err)
{
	struct ctr *found = cache_ctr(c, text), *ctr;
	unsigned n = 0;
	if (!found)
		found = cache_ctr_by_name(c, text);
	if (found)
		return found;
	DL_FOREACH (c->ctrs, ctr) {
		if (*text && cache_matches(ctr, text) && n++ == 0)
			found = ctr;
	}
	if (n == 1)
		return found;
	if (n)
		(void)err_set(
			err, -EINVAL,
			"\"%s\" matches %u containers; use NAMESPACE/POD/CONTAINER or a longer id",
			text, n);
	else
		(void)err_set(err, -ENOENT, "unknown container \"%s\"", text);
	return NULL;
}

struct pod *cache_pod_of(struct cache *c, rp_pod handle)
{
	return slots_get(&c->pod_slots, handle);
}

struct ctr *cache_ctr_of(struct cache *c, rp_ctr handle)
{
	return slots_get(&c->ctr_slots, handle);
}

DEFINE_GETTER_OF(cache_pods, struct pod *, struct cache *c, c->pods)
DEFINE_GETTER_OF(cache_ctrs, struct ctr *, struct cache *c, c->ctrs)
DEFINE_GETTER_OF(cache_n_pods, unsigned, const struct cache *c, c->pod_slots.n)
DEFINE_GETTER_OF(cache_n_ctrs, unsigned, const struct cache *c, c->ctr_slots.n)
