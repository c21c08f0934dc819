/* SPDX-License-Identifier: Apache-2.0 */
/* Transactions: stages of decisions, commit and roll-back, and the per-CPU counts of sets and
 * owners. */
#include "core/nri-rpd/cache/txn.h"

#include <assert.h>
#include <stdlib.h>

#include "core/nri-rpd/cache/internal.h"
#include "core/lib/util/getter.h"

struct txn {
	struct cache *cache;
	uint64_t id;
	struct stage *first, *last;
	unsigned n;
	bool committed;
	struct ctr *created;
	struct extras extras;
	struct pod_stage *pods;
	struct patience patience;
	const struct stage *broken; /* stage that broke an invariant in the latest txn_check() */
};

/* ---- decisions ------------------------------------------------------------------------------- */

void txn_put_set(struct cache *c, struct iset **field, struct iset *set)
{
	struct iset *old = *field;
	*field = set;
	if (old)
		intern_unref(c->sets, old);
}

void txn_put_blob(struct blob **field, struct blob *blob)
{
	struct blob *old = *field;
	*field = blob;
	blob_unref(old);
}

static void decision_copy(struct decision *dst, const struct decision *src)
{
	*dst = *src;
	intern_ref(dst->cpus);
	intern_ref(dst->mems);
	intern_ref(dst->exclusive);
	blob_ref(dst->rdt_adjusted);
	blob_ref(dst->blockio_adjusted);
#define REF_BLOB(member, what, max) blob_ref(dst->member);
	DECISION_BLOBS(REF_BLOB)
}

void decision_fini(struct cache *c, struct decision *d)
{
	txn_put_set(c, &d->cpus, NULL);
	txn_put_set(c, &d->mems, NULL);
	txn_put_set(c, &d->exclusive, NULL);
	txn_put_blob(&d->rdt_adjusted, NULL);
	txn_put_blob(&d->blockio_adjusted, NULL);
#define DROP_BLOB(member, what, max) txn_put_blob(&d->member, NULL);
	DECISION_BLOBS(DROP_BLOB)
}

/* ---- counts ---------------------------------------------------------------------------------- */

/* Counts an owner's set with the CPU. A CPU with another owner is not counted; the check of the new
 * owner's container finds the conflict. */
static void count_owned(struct cache *c, uint32_t cpu, uint32_t key, bool in)
{
	if (in && !c->cpu_owner[cpu]) {
		c->cpu_owner[cpu] = key;
		c->n_owned++;
	}
	if (c->cpu_owner[cpu] != key)
		return;
	assert(in || (c->cpu_owners[cpu] && c->n_owned));
	c->cpu_owners[cpu] += in ? 1u : -1u;
	if (!c->cpu_owners[cpu]) {
		c->cpu_owner[cpu] = 0;
		c->n_owned--;
	}
}

/* Returns true if this use of a set needs no counting. Most users of a set have the same owner key
 * and exclusive part as the first one, so one count covers all of them. Users with other exclusive
 * CPUs, mostly about to be refused, are counted one by one. */
static bool counted_already(struct iset *cpus, const struct iset *own, uint32_t key, bool in)
{
	if (!cpus->users && in) {
		cpus->users_own = own;
		cpus->users_key = key;
	}
	if (!cpus->users && !in)
		return false;
	if (cpus->users_own != own || cpus->users_key != key)
		return false;
	return in ? cpus->users++ != 0 : --cpus->users != 0;
}

void count_decision(struct cache *c, const struct ctr *ctr, const struct decision *d, bool in)
{
	const struct iset *own = owned_of(d);
	uint32_t key = owner_key(ctr, d);
	if (!ctr_live(d->state) || !d->cpus || counted_already(d->cpus, own, key, in))
		return;
	RP_IDS_EACH (cpu, d->cpus->ids) {
		if (own && rp_ids_has(own->ids, cpu))
			count_owned(c, cpu, key, in);
		else if (in)
			c->cpu_sets[cpu]++;
		else
			c->cpu_sets[cpu]--;
	}
}

/* ---- transactions ---------------------------------------------------------------------------- */

struct txn *txn_begin(struct cache *c)
{
	assert(!c->txn);
	struct txn *t = calloc(1, sizeof *t);
	if (!t)
		return NULL;
	t->cache = c;
	t->id = ++c->txn_ids;
	c->txn = t;
	return t;
}

DEFINE_GETTER_OF(txn_id, uint64_t, const struct txn *t, t->id)
DEFINE_GETTER_OF(txn_cache, struct cache *, const struct txn *t, t->cache)
DEFINE_GETTER_OF(cache_owned, uint32_t, const struct cache *c, c->n_owned)

struct iset *ctr_exclusive(const struct cache *c, const struct ctr *ctr)
{
	struct iset *own = owned_of(&ctr->cur);
	if (!own || !ctr_live(ctr->cur.state))
		return NULL;
	/* Containers of one group are counted together if they have the same set, and one by one if
	 * the set was first counted for other owners. */
	const struct iset *cpus = ctr->cur.cpus;
	bool together = cpus->users_own == own && cpus->users_key == owner_key(ctr, &ctr->cur);
	if (together && cpus->users > 1)
		return NULL;
	RP_IDS_EACH (cpu, own->ids)
		if (c->cpu_owners[cpu] != 1)
			return NULL;
	return own;
}

uint64_t cache_running_txn(const struct cache *c)
{
	return c->txn && !c->txn->committed ? c->txn->id : 0;
}

DEFINE_GETTER_OF(cache_last_txn, uint64_t, const struct cache *c, c->txn_ids)

struct txn *txn_of(struct cache *c, uint64_t id)
{
	return c->txn && !c->txn->committed && c->txn->id == id ? c->txn : NULL;
}

struct decision *txn_stage(struct txn *t, struct ctr *ctr)
{
	assert(t->cache->txn == t && !t->committed);
	struct cache *c = t->cache;
	if (ctr->stage)
		return &ctr->stage->next;
	struct stage *s = c->spare_stages;
	if (s)
		c->spare_stages = s->link;
	else
		s = malloc(sizeof *s);
	if (!s)
		return NULL;
	s->ctr = ctr;
	s->link = NULL;
	s->counted = false;
	decision_copy(&s->next, &ctr->cur);
	if (t->last)
		t->last->link = s;
	else
		t->first = s;
	t->last = s;
	t->n++;
	ctr->stage = s;
	return &s->next;
}

const struct decision *txn_view(const struct ctr *ctr)
{
	return ctr->stage ? &ctr->stage->next : &ctr->cur;
}

int txn_put_pod_private(struct txn *t, struct pod *pod, uint32_t policy, struct blob *data)
{
	assert(!t->committed);
	struct pod_stage *s = pod->stage;
	if (!s) {
		s = calloc(1, sizeof *s);
		if (!s) {
			blob_unref(data);
			return -ENOMEM;
		}
		s->pod = pod;
		s->link = t->pods;
		t->pods = pod->stage = s;
	}
	txn_put_blob(&s->private_data, data);
	s->policy = policy;
	return 0;
}

const struct blob *txn_pod_private(const struct pod *pod, uint32_t *ret_policy)
{
	*ret_policy = pod->stage ? pod->stage->policy : pod->policy;
	return pod->stage ? pod->stage->private_data : pod->private_data;
}

DEFINE_GETTER_OF(txn_pods, const struct pod_stage *, const struct txn *t, t->pods)

void txn_set_created(struct txn *t, struct ctr *ctr)
{
	assert(!t->committed);
	t->created = ctr;
}

DEFINE_GETTER_OF(txn_created, struct ctr *, const struct txn *t, t->created)
DEFINE_GETTER_OF(txn_extras, struct extras *, struct txn *t, &t->extras)

void txn_set_patience(struct txn *t, struct patience patience)
{
	assert(patience.quiet_ms <= patience.longest_ms);
	t->patience = patience;
}

DEFINE_GETTER_OF(txn_patience, struct patience, const struct txn *t, t->patience)

void txn_set_broken(struct txn *t, const struct stage *s)
{
	t->broken = s;
}

DEFINE_GETTER_OF(txn_broken, const struct stage *, const struct txn *t, t->broken)
DEFINE_GETTER_OF(txn_committed, bool, const struct txn *t, t->committed)
DEFINE_GETTER_OF(txn_touched, const struct stage *, const struct txn *t, t->first)
DEFINE_GETTER_OF(txn_n_touched, unsigned, const struct txn *t, t->n)

uint32_t txn_changed(const struct stage *s)
{
	const struct decision *a = &s->ctr->cur, *b = &s->next;
	return (a->cpus != b->cpus ? DIFF_CPUS : 0u) | (a->mems != b->mems ? DIFF_MEMS : 0u) |
	       (a->shares != b->shares ? DIFF_SHARES : 0u) |
	       (a->quota != b->quota ? DIFF_QUOTA : 0u) |
	       (a->period != b->period ? DIFF_PERIOD : 0u) |
	       (a->mem_limit != b->mem_limit ? DIFF_MEM_LIMIT : 0u) |
	       (!blob_equal(a->rdt_class, b->rdt_class) ||
				!blob_equal(a->blockio_class, b->blockio_class) ||
				!blob_equal(a->rdt_adjusted, b->rdt_adjusted) ||
				!blob_equal(a->blockio_adjusted, b->blockio_adjusted) ||
				!blob_equal(a->cpu_class, b->cpu_class)
			? TXN_CHANGED_CLASS
			: 0u) |
	       (a->toptier_adjusted != b->toptier_adjusted ? TXN_CHANGED_TOPTIER : 0u) |
	       (a->exclusive != b->exclusive || a->state != b->state || a->policy != b->policy ||
				a->group != b->group || a->confined != b->confined ||
				a->claimed != b->claimed ||
				!blob_equal(a->private_data, b->private_data) ||
				!blob_equal(a->degraded, b->degraded) ||
				!blob_equal(a->data, b->data) ||
				memcmp(&a->needs, &b->needs, sizeof a->needs) != 0
			? TXN_CHANGED_OTHER
			: 0u);
}

void txn_commit(struct txn *t)
{
	struct cache *c = t->cache;
	assert(!t->committed);
	for (struct stage *s = t->first; s; s = s->link) {
		s->ctr->store.missing |= txn_changed(s) & ~TXN_CHANGED_TOPTIER;
		count_decision(c, s->ctr, &s->ctr->cur, false);
	}
	/* All previous owners are removed, so a CPU that changes hands has no owner when its new
	 * one is counted. */
	for (struct stage *s = t->first; s; s = s->link) {
		struct decision before = s->ctr->cur;
		count_decision(c, s->ctr, &s->next, true);
		s->ctr->cur = s->next;
		s->next = before;
		s->ctr->stage = NULL;
	}
	for (struct pod_stage *s = t->pods; s; s = s->link) {
		struct blob *before = s->pod->private_data;
		if (!blob_equal(before, s->private_data) || s->pod->policy != s->policy)
			s->pod->store.facts = false;
		s->pod->private_data = s->private_data;
		s->pod->policy = s->policy;
		s->pod->stage = NULL;
		s->private_data = before;
	}
	t->committed = true;
}

static void drop_stages(struct txn *t)
{
	struct cache *c = t->cache;
	for (struct stage *s = t->first, *next; s; s = next) {
		next = s->link;
		if (!t->committed)
			s->ctr->stage = NULL;
		decision_fini(c, &s->next);
		s->link = c->spare_stages;
		c->spare_stages = s;
	}
	t->first = t->last = NULL;
	t->n = 0;
	for (struct pod_stage *s = t->pods, *next; s; s = next) {
		next = s->link;
		if (!t->committed)
			s->pod->stage = NULL;
		blob_unref(s->private_data);
		free(s);
	}
	t->pods = NULL;
}

void txn_rollback(struct txn *t)
{
	assert(!t->committed);
	drop_stages(t);
	extras_clear(&t->extras);
}

void txn_end(struct txn *t)
{
	if (!t)
		return;
	drop_stages(t);
	extras_fini(&t->extras);
	assert(t->cache->txn == t);
	t->cache->txn = NULL;
	free(t);
}
