/* SPDX-License-Identifier: Apache-2.0 */
/* Restores the cache: sorts the log's records by object, takes the last ones of each, decodes and
 * inserts them. Invalid records are skipped with a warning. */
#include "core/nri-rpd/store/internal.h"

#include "core/nri-rpd/cache/annotation_rules.h"
#include "core/nri-rpd/cache/claim.h"
#include "core/nri-rpd/cache/txn.h"
#include "core/lib/util/grow.h"
#include "core/lib/util/log.h"
#include "core/nri-rpd/store/restore.h"

#define LOG_SOURCE "store"
#define ARENA_BLOCK 16384u
#define RECORDS_MAX (1u << 22) /* largest number of records in a log */
#define WARNINGS 20u /* number of warnings that are logged; further ones are only counted */

/* Record of the log. */
struct found {
	uint64_t number;
	uint32_t order;
	enum record_kind kind;
	const uint8_t *message;
	size_t len;
};

/* Last records of a container. */
struct found_ctr {
	const struct found *facts, *decision;
	struct ctr *ctr; /* restored container; NULL: none */
};

struct restore {
	struct store *s;
	struct cache *cache;
	struct arena *arena; /* reset for each record */
	/* Records of objects, sorted by number and order. Moves have no number and come first, in
	 * their order. */
	struct found *at;
	uint32_t n, cap;
	struct found_ctr *ctrs; /* by number */
	uint32_t n_ctrs;
	struct stored_decision decision; /* a member because of its size */
	struct store_counts counts;
};

static void warn_bad(struct restore *r, const char *what, uint64_t number, const char *why)
{
	r->counts.bad++;
	if (r->counts.bad <= WARNINGS)
		log_warning("ignoring the stored %s number %llu: %s", what,
			    (unsigned long long)number, why);
}

/* ---- objects --------------------------------------------------------------------------------- */

static int restore_blob(struct restore *r, const struct record_view *v)
{
	struct stored_blob b;
	struct err err = ERR_INIT;
	arena_reset(r->arena);
	int res = record_decode_blob(r->arena, v->message, v->len, &b, &err);
	if (!res)
		res = store_keep(r->s, v->kind, b.name, b.version, b.data, b.len);
	if (res == -ENOMEM)
		return res;
	if (res)
		warn_bad(r, "blob", r->n, err_text(&err, res));
	return 0;
}

static int take_kvs(struct kvs *field, const struct kvs *from)
{
	if (!from->n)
		return 0;
	char *data = malloc(from->size);
	if (!data)
		return -ENOMEM;
	memcpy(data, from->data, from->size);
	kvs_fini(field);
	*field = *from;
	field->data = data;
	return 0;
}

static int take_blob(struct blob **field, const struct stored_bytes *b)
{
	struct blob *made = b->data ? blob_new(b->data, b->len) : NULL;
	txn_put_blob(field, made);
	return b->data && !made ? -ENOMEM : 0;
}

static int restore_pod(struct restore *r, const struct found *f)
{
	struct stored_pod p;
	struct pod *pod;
	struct err err = ERR_INIT;
	arena_reset(r->arena);
	int res = record_decode_pod(r->arena, f->message, f->len, &p, &err);
	if (!res && cache_pod(r->cache, p.desc.id))
		res = err_set(&err, -EEXIST, "pod %s already exists", p.desc.id);
	if (!res)
		res = cache_put_pod(r->cache, &p.desc, &pod, &err);
	if (!res)
		res = take_kvs(&pod->labels, &p.labels);
	if (!res)
		res = take_kvs(&pod->annotations, &p.annotations);
	if (!res)
		res = hear_pod(r->cache, pod);
	if (!res)
		res = take_blob(&pod->private_data, &p.private_data);
	if (!res)
		res = take_blob(&pod->grants, &p.grants);
	if (res == -ENOMEM)
		return res;
	if (res) {
		warn_bad(r, "pod", f->number, err.text);
		return 0;
	}
	pod->stopped = p.stopped;
	pod->policy = *p.policy ? cache_policy_number(r->cache, p.policy) : 0;
	r->counts.pods++;
	return 0;
}

static int take_set(struct cache *c, struct iset **field, const struct stored_set *set)
{
	struct iset *made = set->present ? intern_get(cache_sets(c), rp_ids_of(&set->ids)) : NULL;
	txn_put_set(c, field, made);
	return set->present && !made ? -ENOMEM : 0;
}

static int fill_acked(struct cache *c, struct values *v, const struct stored_values *from)
{
	v->amounts = from->amounts;
	int r = take_set(c, &v->cpus, &from->cpus);
	return r ? r : take_set(c, &v->mems, &from->mems);
}

static int fill_decision(struct cache *c, struct decision *d, const struct stored_decision *from)
{
	d->amounts = from->decided.amounts;
	d->needs = from->needs;
	d->state = from->state;
	d->group = from->group;
	d->confined = from->confined;
	d->claimed = from->claimed;
	d->policy = *from->policy ? cache_policy_number(c, from->policy) : 0;
	int r = take_set(c, &d->cpus, &from->decided.cpus);
	if (!r)
		r = take_set(c, &d->mems, &from->decided.mems);
	if (!r)
		r = take_set(c, &d->exclusive, &from->exclusive);
#define RESTORE_BLOB(member, what, max) r = r ? r : take_blob(&d->member, &from->member);
	DECISION_BLOBS(RESTORE_BLOB)
	return r;
}

/* Applies a decision in a transaction, which keeps the cache's per-CPU counts correct. */
static int apply_decision(struct restore *r, struct ctr *ctr, const struct stored_decision *from)
{
	struct txn *t = txn_begin(r->cache);
	struct decision *d = t ? txn_stage(t, ctr) : NULL;
	int res = d ? fill_decision(r->cache, d, from) : -ENOMEM;
	if (d && d->claimed && !ctr->claim) { /* the claim could not be restored */
		d->claimed = false;
		txn_put_set(r->cache, &d->exclusive, NULL);
	}
	if (!res)
		txn_commit(t);
	txn_end(t);
	if (!res)
		res = fill_acked(r->cache, &ctr->acked, &from->acked);
	ctr->sent = (struct values){.amounts = from->sent.amounts};
	ctr->pid = from->pid;
	ctr->created_ns = from->created_ns;
	return res;
}

static int restore_decision(struct restore *r, struct ctr *ctr, const struct found *f)
{
	struct err err = ERR_INIT;
	arena_reset(r->arena);
	int res = record_decode_decision(r->arena, f->message, f->len, &r->decision, &err);
	if (res == -EINVAL) {
		warn_bad(r, "decision", f->number, err.text);
		return 0;
	}
	if (!res)
		res = apply_decision(r, ctr, &r->decision);
	if (!res)
		r->counts.decisions++;
	return res;
}

static int restore_ctr(struct restore *r, const struct found *f, struct ctr **ret)
{
	struct stored_facts s;
	struct err err = ERR_INIT;
	arena_reset(r->arena);
	int res = record_decode_facts(r->arena, f->message, f->len, &s, &err);
	if (!res && cache_ctr(r->cache, s.desc.id))
		res = err_set(&err, -EEXIST, "container %s already exists", s.desc.id);
	if (!res) {
		s.desc.state = RP_STATE_RUNNING; /* default without a decision */
		res = cache_put_ctr(r->cache, &s.desc, ret, &err);
	}
	if (res == -ENOMEM)
		return res;
	if (res) {
		warn_bad(r, "container", f->number, err.text);
		*ret = NULL;
		return 0;
	}
	res = take_kvs(&(*ret)->labels, &s.labels);
	if (!res)
		res = take_kvs(&(*ret)->annotations, &s.annotations);
	(*ret)->wanted = s.wanted;
	(*ret)->pod_cpu_extra = s.pod_cpu_extra;
	(*ret)->flags = s.flags | RP_CTR_RESTORED;
	if (!res && s.device)
		res = claim_mark(*ret, s.device, s.users);
	claim_attach(*ret, s.claim ? claim_of_id(r->cache, s.claim) : NULL);
	r->counts.ctrs++;
	return res;
}

static int restore_pair(struct restore *r, struct found_ctr *f)
{
	int res = restore_ctr(r, f->facts, &f->ctr);
	return res || !f->ctr || !f->decision ? res : restore_decision(r, f->ctr, f->decision);
}

/* ---- sets of many containers ----------------------------------------------------------------- */

static const struct found_ctr *find_ctr(const struct restore *r, uint64_t number)
{
	uint32_t low = 0, high = r->n_ctrs;
	while (low < high) {
		uint32_t mid = low + (high - low) / 2;
		if (r->ctrs[mid].facts->number == number)
			return &r->ctrs[mid];
		if (r->ctrs[mid].facts->number < number)
			low = mid + 1;
		else
			high = mid;
	}
	return NULL;
}

static int move_ctr(struct restore *r, struct txn *t, struct ctr *ctr,
		    const struct stored_moved *moved)
{
	const struct iset *own = txn_view(ctr)->exclusive;
	if (own && !rp_ids_subset(own->ids, rp_ids_of(&moved->cpus.ids))) {
		warn_bad(r, "move of container", ctr->seq,
			 "its exclusive CPUs are not among its CPUs");
		return 0;
	}
	struct decision *d = txn_stage(t, ctr);
	int res = d ? take_set(r->cache, &d->cpus, &moved->cpus) : -ENOMEM;
	if (!res)
		res = take_set(r->cache, &d->mems, &moved->mems);
	if (!res && moved->acked && moved->cpus.present)
		res = take_set(r->cache, &ctr->acked.cpus, &moved->cpus);
	if (!res && moved->acked && moved->mems.present)
		res = take_set(r->cache, &ctr->acked.mems, &moved->mems);
	return res;
}

/* Applies a move to containers whose decision is older. A later decision has its own record. */
static int apply_moved(struct restore *r, const struct stored_moved *moved, uint32_t order)
{
	struct txn *t = txn_begin(r->cache);
	int res = t ? 0 : -ENOMEM;
	for (uint32_t i = 0; !res && i < moved->n; i++) {
		const struct found_ctr *f = find_ctr(r, moved->numbers[i]);
		if (f && f->ctr && f->decision && f->decision->order < order)
			res = move_ctr(r, t, f->ctr, moved);
	}
	if (!res)
		txn_commit(t);
	txn_end(t);
	return res;
}

static int restore_moved(struct restore *r, const struct found *f)
{
	struct stored_moved moved;
	struct err err = ERR_INIT;
	arena_reset(r->arena);
	int res = record_decode_moved(r->arena, f->message, f->len, &moved, &err);
	if (!res)
		return apply_moved(r, &moved, f->order);
	warn_bad(r, "move", f->order, err.text);
	return 0;
}

/* ---- the log --------------------------------------------------------------------------------- */

static int restore_remember(struct restore *r, const struct record_view *v)
{
	if (r->n == RECORDS_MAX)
		return -E2BIG;
	if (!HAS_ROOM(r->at, r->n, r->cap, 1024))
		return -ENOMEM;
	r->at[r->n] = (struct found){v->number, r->n, v->kind, v->message, v->len};
	r->n++;
	return 0;
}

/* Collects a record by its kind. Records of moves have no number; all others have one. */
static int sort_record(void *arg, const void *record, size_t len)
{
	struct restore *r = arg;
	struct record_view v;
	if (record_open(record, len, &v)) {
		warn_bad(r, "record", r->n, "unknown kind");
		return 0;
	}
	if (v.kind == RECORD_BLOB || v.kind == RECORD_NOTE)
		return restore_blob(r, &v);
	if ((v.kind == RECORD_MOVED) != (v.number == 0)) {
		warn_bad(r, "record", r->n, "its number does not match its kind");
		return 0;
	}
	return restore_remember(r, &v);
}

static int compare_found(const void *left, const void *right)
{
	const struct found *a = left, *b = right;
	if (a->number != b->number)
		return a->number < b->number ? -1 : 1;
	return a->order < b->order ? -1 : 1;
}

/* Finds the last records of the object at `from`. Returns the position of the next object. */
static uint32_t last_of(const struct restore *r, uint32_t from, const struct found **ret_pod,
			struct found_ctr *ret_ctr)
{
	uint32_t i = from;
	*ret_pod = NULL;
	*ret_ctr = (struct found_ctr){0};
	for (; i < r->n && r->at[i].number == r->at[from].number; i++) {
		const struct found *f = &r->at[i];
		if (f->kind == RECORD_POD)
			*ret_pod = f;
		else if (f->kind == RECORD_FACTS)
			ret_ctr->facts = f;
		else if (f->kind == RECORD_DECISION)
			ret_ctr->decision = f;
		else { /* removed, with all earlier records */
			*ret_pod = NULL;
			*ret_ctr = (struct found_ctr){0};
		}
	}
	return i;
}

/* Restores objects in the order of their numbers, which is their order of arrival: pods precede
 * their containers. */
static int restore_objects(struct restore *r, uint32_t from)
{
	int res = 0;
	r->ctrs = calloc(r->n - from + 1, sizeof *r->ctrs);
	if (!r->ctrs)
		return -ENOMEM;
	while (!res && from < r->n) {
		const struct found *pod;
		struct found_ctr ctr;
		uint64_t number = r->at[from].number;
		from = last_of(r, from, &pod, &ctr);
		if (pod)
			res = restore_pod(r, pod);
		if (!ctr.facts && ctr.decision)
			warn_bad(r, "decision", number, "its container does not exist");
		if (res || !ctr.facts)
			continue;
		r->ctrs[r->n_ctrs] = ctr;
		res = restore_pair(r, &r->ctrs[r->n_ctrs++]);
	}
	return res;
}

static int restore_records(struct restore *r)
{
	uint32_t n_moves = 0;
	if (r->n)
		qsort(r->at, r->n, sizeof *r->at, compare_found);
	while (n_moves < r->n && !r->at[n_moves].number)
		n_moves++;
	int res = restore_objects(r, n_moves);
	for (uint32_t i = 0; !res && i < n_moves; i++)
		res = restore_moved(r, &r->at[i]);
	return res;
}

static int restore_log(struct restore *r)
{
	const struct store *s = r->s;
	int res = reclog_parse(s->found, s->found_size, &s->head, sort_record, r, NULL);
	if (res == -E2BIG)
		log_warning("the stored state has more than %u records; ignoring the rest",
			    RECORDS_MAX);
	return res == -ENOMEM ? res : restore_records(r);
}

int store_restore(struct store *s, struct cache *cache, struct store_counts *ret, struct err *err)
{
	struct restore *r = calloc(1, sizeof *r);
	int res = r ? 0 : -ENOMEM;
	s->cache = cache;
	*ret = (struct store_counts){0};
	if (r && s->found) {
		r->s = s;
		r->cache = cache;
		r->arena = arena_new(ARENA_BLOCK, RECORD_ARENA_LIMIT);
		res = r->arena ? restore_log(r) : -ENOMEM;
		arena_free(r->arena);
		free(r->at);
		free(r->ctrs);
		for (uint32_t i = 0; i < s->n_kept; i++)
			r->counts.blobs += s->kept[i].data != NULL;
		*ret = r->counts;
	}
	free(r);
	free(s->found);
	s->found = NULL;
	if (ret->bad > WARNINGS)
		log_warning("ignored %u stored records", ret->bad);
	return res ? err_errno(err, res, "cannot restore the stored state") : 0;
}
