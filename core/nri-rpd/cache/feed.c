/* SPDX-License-Identifier: Apache-2.0 */
/* The pod feed: storage by UID, resources that are counted as other resources, and sums over a
 * pod's containers. */
#include "core/nri-rpd/cache/feed.h"

#include <errno.h>

#include "core/nri-rpd/cache/internal.h"
#include "core/lib/util/hash.h"
#include "core/lib/util/getter.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/str.h"

#define POD_BLOCK 512u
#define POD_MAX (1u << 20)

/* ---- resources that count as others ---------------------------------------------------------- */

static const char *feed_renamed(const struct feed *f, const char *name)
{
	for (uint32_t i = 0; i < f->n_renamed; i++)
		if (str_eq(f->renamed[i].asked, name))
			return f->renamed[i].counts_as;
	return NULL;
}

static int64_t to_milli(int64_t amount, const char *name)
{
	if (str_has_suffix(name, FEED_MILLI))
		return amount;
	return amount > FEED_AMOUNT_MAX / 1000 ? FEED_AMOUNT_MAX : amount * 1000;
}

static bool asks_for(const struct fed_ctr *c, uint32_t until, const char *resource)
{
	if (str_eq(resource, "cpu") || str_eq(resource, "memory"))
		return str_eq(resource, "cpu") ? c->needs.cpu_request : c->needs.mem_request;
	for (uint32_t i = 0; i < c->n_extended; i++)
		if (str_eq(c->extended[i].name, resource) ||
		    (i < until && c->extended[i].counts_as &&
		     str_eq(c->extended[i].counts_as, resource)))
			return true;
	return false;
}

static void count_one(const struct feed *f, struct fed_ctr *c, uint32_t at)
{
	struct fed_amount *e = (struct fed_amount *)(uintptr_t)&c->extended[at];
	e->counts_as = feed_renamed(f, e->name);
	if (!e->counts_as)
		return;
	if (asks_for(c, at, e->counts_as)) {
		c->twice = e->name;
		return;
	}
	if (str_eq(e->counts_as, "cpu")) {
		c->needs.cpu_request = to_milli(e->request, e->name);
		c->needs.cpu_limit = to_milli(e->limit, e->name);
	} else if (str_eq(e->counts_as, "memory")) {
		c->needs.mem_request = e->request;
		c->needs.mem_limit = e->limit;
	}
}

static void feed_count(const struct feed *f, const struct fed_pod *pod)
{
	for (uint32_t i = 0; i < pod->n_ctrs; i++) {
		struct fed_ctr *c = (struct fed_ctr *)(uintptr_t)&pod->ctrs[i];
		c->needs = c->told;
		c->twice = NULL;
		for (uint32_t k = 0; k < c->n_extended; k++)
			count_one(f, c, k);
	}
}

int feed_rename(struct feed *f, const struct conf_rename *list, uint32_t n)
{
	_arena_ struct arena *a = arena_new(POD_BLOCK, POD_MAX);
	struct conf_rename *copy = a ? arena_array(a, n + 1, sizeof *copy) : NULL;
	for (uint32_t i = 0; copy && i < n; i++) {
		copy[i] = (struct conf_rename){arena_strdup(a, list[i].asked),
					       arena_strdup(a, list[i].counts_as)};
		if (!copy[i].asked || !copy[i].counts_as)
			return -ENOMEM;
	}
	if (!copy)
		return -ENOMEM;
	arena_free(f->names);
	f->names = TAKE(a);
	f->renamed = copy;
	f->n_renamed = n;
	for (const struct fed_pod *pod = f->pods; pod; pod = pod->hh.next)
		feed_count(f, pod);
	return 0;
}

/* ---- pods ------------------------------------------------------------------------------------ */

static int copy_ctr(struct arena *a, const struct fed_ctr *from, struct fed_ctr *to)
{
	struct fed_amount *list = arena_array(a, from->n_extended + 1, sizeof *list);
	*to = *from;
	to->told = from->needs;
	to->name = arena_strdup(a, from->name);
	to->extended = list;
	if (!to->name || !list)
		return -ENOMEM;
	for (uint32_t i = 0; i < from->n_extended; i++) {
		list[i] = from->extended[i];
		list[i].name = arena_strdup(a, from->extended[i].name);
		if (!list[i].name)
			return -ENOMEM;
	}
	return 0;
}

static struct fed_pod *copy_pod(struct arena *a, const struct fed_pod *from)
{
	struct fed_pod *to = arena_alloc(a, sizeof *to);
	struct fed_ctr *ctrs = arena_array(a, from->n_ctrs + 1, sizeof *ctrs);
	if (!to || !ctrs)
		return NULL;
	*to = *from;
	to->ctrs = ctrs;
	to->uid = arena_strdup(a, from->uid);
	to->ns = arena_strdup(a, from->ns);
	to->name = arena_strdup(a, from->name);
	to->owner = arena_strdup(a, from->owner);
	if (!to->uid || !to->ns || !to->name || !to->owner)
		return NULL;
	for (uint32_t i = 0; i < from->n_ctrs; i++)
		if (copy_ctr(a, &from->ctrs[i], &ctrs[i]))
			return NULL;
	return to;
}

static struct fed_pod *feed_do_find(const struct feed *f, const char *uid)
{
	struct fed_pod *pod = NULL;
	HASH_FIND(hh, f->pods, uid, strlen(uid), pod);
	return pod;
}

static void feed_drop(struct feed *f, struct fed_pod *pod)
{
	HASH_DEL(f->pods, pod);
	f->n_ended -= pod->ended;
	f->bytes -= arena_held(pod->arena);
	arena_free(pod->arena);
}

int feed_put(struct feed *f, const struct fed_pod *desc)
{
	feed_del(f, desc->uid);
	_arena_ struct arena *a = arena_new(POD_BLOCK, POD_MAX);
	struct fed_pod *pod = a ? copy_pod(a, desc) : NULL;
	if (!pod)
		return -ENOMEM;
	if (HASH_COUNT(f->pods) >= FEED_PODS_MAX || f->bytes + arena_held(a) > FEED_BYTES_MAX)
		return -ENOSPC;
	pod->listed = true;
	feed_count(f, pod);
	HASH_ADD_KEYPTR(hh, f->pods, pod->uid, strlen(pod->uid), pod);
	if (!pod->hh.tbl)
		return -ENOMEM;
	f->bytes += arena_held(a);
	f->n_ended += pod->ended;
	pod->arena = TAKE(a);
	return 0;
}

void feed_del(struct feed *f, const char *uid)
{
	struct fed_pod *pod = feed_do_find(f, uid);
	if (pod)
		feed_drop(f, pod);
}

void feed_begin(struct feed *f)
{
	for (struct fed_pod *pod = f->pods; pod; pod = pod->hh.next)
		pod->listed = false;
}

void feed_complete(struct feed *f)
{
	struct fed_pod *pod, *next;
	HASH_ITER (hh, f->pods, pod, next)
		if (!pod->listed)
			feed_drop(f, pod);
}

void feed_clear(struct feed *f)
{
	feed_begin(f);
	feed_complete(f);
}

const struct fed_pod *feed_find(const struct feed *f, const char *uid)
{
	return feed_do_find(f, uid);
}

DEFINE_GETTER_OF(feed_n_ended, unsigned, const struct feed *f, f->n_ended)
DEFINE_GETTER_OF(feed_pods, const struct fed_pod *, const struct feed *f, f->pods)
DEFINE_GETTER_OF(feed_n_pods, unsigned, const struct feed *f, HASH_COUNT(f->pods))

/* ---- requests -------------------------------------------------------------------------------- */

void feed_use(struct feed *f, bool yes)
{
	f->unused = !yes;
}

const struct fed_pod *pod_fed(const struct cache *c, const struct pod *pod)
{
	return c->feed.unused ? NULL : feed_do_find(&c->feed, pod->uid);
}

const struct fed_ctr *fed_ctr(const struct fed_pod *pod, const char *name)
{
	for (uint32_t i = 0; i < pod->n_ctrs; i++)
		if (str_eq(pod->ctrs[i].name, name))
			return &pod->ctrs[i];
	return NULL;
}

int fed_extended(const struct fed_ctr *ctr, const char *resource, int64_t *ret_request,
		 int64_t *ret_limit)
{
	for (uint32_t i = 0; i < ctr->n_extended; i++) {
		const char *as = ctr->extended[i].counts_as;
		if (!str_eq(ctr->extended[i].name, resource) && !(as && str_eq(as, resource)))
			continue;
		*ret_request = ctr->extended[i].request;
		*ret_limit = ctr->extended[i].limit;
		return 0;
	}
	return -ENOENT;
}

static void feed_add(struct needs *sum, const struct needs *n)
{
	sum->cpu_request += n->cpu_request;
	sum->cpu_limit += n->cpu_limit;
	sum->mem_request += n->mem_request;
	sum->mem_limit += n->mem_limit;
}

static int64_t feed_larger(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static void raise_to(struct needs *to, const struct needs *n)
{
	to->cpu_request = feed_larger(to->cpu_request, n->cpu_request);
	to->cpu_limit = feed_larger(to->cpu_limit, n->cpu_limit);
	to->mem_request = feed_larger(to->mem_request, n->mem_request);
	to->mem_limit = feed_larger(to->mem_limit, n->mem_limit);
}

static void fed_put_own(int64_t *sum, int64_t own)
{
	if (own)
		*sum = own;
}

/* Sums the containers that run at the same time: an init container with the sidecars before it, the
 * apps with all sidecars. */
static struct needs fed_sum(const struct fed_pod *pod, bool all_limited)
{
	struct needs running = {0}, peak = {0};
	bool cpu_limited = true, mem_limited = true;
	for (uint32_t i = 0; i < pod->n_ctrs; i++) {
		const struct fed_ctr *ctr = &pod->ctrs[i];
		struct needs beside = running;
		feed_add(&beside, &ctr->needs);
		raise_to(&peak, &beside);
		if (ctr->kind != FED_INIT)
			running = beside;
		cpu_limited = cpu_limited && ctr->needs.cpu_limit;
		mem_limited = mem_limited && ctr->needs.mem_limit;
	}
	if (all_limited && !cpu_limited)
		peak.cpu_limit = 0;
	if (all_limited && !mem_limited)
		peak.mem_limit = 0;
	return peak;
}

static struct needs fed_sum_or_own(const struct fed_pod *pod, bool all_limited)
{
	struct needs peak = fed_sum(pod, all_limited);
	fed_put_own(&peak.cpu_request, pod->own.cpu_request);
	fed_put_own(&peak.cpu_limit, pod->own.cpu_limit);
	fed_put_own(&peak.mem_request, pod->own.mem_request);
	fed_put_own(&peak.mem_limit, pod->own.mem_limit);
	return peak;
}

struct needs fed_needs(const struct fed_pod *pod)
{
	return fed_sum_or_own(pod, true);
}

struct needs fed_sandbox_needs(const struct fed_pod *pod)
{
	return fed_sum_or_own(pod, false);
}

int64_t fed_cpu_extra(const struct fed_pod *pod, const struct fed_ctr *ctr)
{
	uint32_t first = 0;
	while (first < pod->n_ctrs && pod->ctrs[first].kind != FED_APP)
		first++;
	int64_t sum = fed_sum(pod, false).cpu_request;
	return first < pod->n_ctrs && &pod->ctrs[first] == ctr && pod->own.cpu_request > sum
		       ? pod->own.cpu_request - sum
		       : 0;
}

void feed_follow_pod(const struct cache *c, struct ctr *ctr)
{
	const struct fed_pod *pod = pod_fed(c, ctr->pod);
	const struct fed_ctr *fed = pod ? fed_ctr(pod, ctr->name) : NULL;
	ctr->pod_cpu_extra_before = ctr->pod_cpu_extra;
	if (!fed)
		return;
	ctr->pod_cpu_extra = fed_cpu_extra(pod, fed);
	if (ctr->pod_cpu_extra != ctr->pod_cpu_extra_before)
		ctr->store.facts = false;
}
