/* SPDX-License-Identifier: Apache-2.0 */
#include "core/cache/store_internal.h"

#include "core/cache/derive.h"
#include "core/cache/txn.h"
#include "core/util/log.h"

#define LOG_SOURCE "store"
#define ARENA_BLOCK 16384u
#define WARNINGS 20u /* then they are only counted */

/* A record in the file's map. */
struct found {
	uint64_t number;
	const uint8_t *message;
	size_t len;
	struct ctr *ctr; /* of facts: what they became */
	bool moved; /* of facts: the last word on its sets was found */
};

struct found_list {
	struct found *at;
	uint32_t n, cap;
};

struct restore {
	struct store *s;
	struct cache *cache;
	struct arena *arena; /* for one record at a time */
	struct found_list pods, facts, decisions, moved;
	struct stored_decision decision; /* large */
	struct store_counts counts;
};

static void warn_bad(struct restore *r, const char *what, uint64_t number, const char *why)
{
	r->counts.bad++;
	if (r->counts.bad <= WARNINGS)
		log_warning("the stored %s number %llu is left out: %s", what,
			    (unsigned long long)number, why);
}

static int remember(struct found_list *list, uint64_t number, const uint8_t *message, size_t len)
{
	if (list->n == list->cap) {
		uint32_t cap = list->cap ? list->cap * 2 : 256;
		struct found *grown = realloc(list->at, cap * sizeof *grown);
		if (!grown)
			return -ENOMEM;
		list->at = grown;
		list->cap = cap;
	}
	list->at[list->n++] = (struct found){.number = number, .message = message, .len = len};
	return 0;
}

/* ---- objects ------------------------------------------------------------------------------------------------------- */

static int restore_blob(struct restore *r, enum record_kind kind, const MDB_val *key,
			const uint8_t *message, size_t len)
{
	struct stored_blob b;
	struct err err = ERR_INIT;
	char name[STORE_NAME_MAX + 1];
	memcpy(name, (const char *)key->mv_data + 1, key->mv_size - 1);
	name[key->mv_size - 1] = '\0';
	arena_reset(r->arena);
	int res = record_decode_blob(r->arena, message, len, &b, &err);
	if (!res)
		res = store_keep(r->s, kind, name, b.version, b.data, b.len);
	if (res == -ENOMEM)
		return res;
	if (res)
		warn_bad(r, name, 0, err_text(&err, res));
	else
		r->counts.blobs++;
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
	*field = (struct kvs){from->n, from->size, data};
	return 0;
}

static int restore_pod(struct restore *r, const struct found *f)
{
	struct stored_pod p;
	struct pod *pod;
	struct err err = ERR_INIT;
	arena_reset(r->arena);
	int res = record_decode_pod(r->arena, f->message, f->len, &p, &err);
	if (!res && cache_pod(r->cache, p.desc.id))
		res = err_set(&err, -EEXIST, "pod %s is there already", p.desc.id);
	if (!res)
		res = cache_put_pod(r->cache, &p.desc, &pod, &err);
	if (!res)
		res = take_kvs(&pod->labels, &p.labels);
	if (!res)
		res = take_kvs(&pod->annotations, &p.annotations);
	if (res == -ENOMEM)
		return res;
	if (res) {
		warn_bad(r, "pod", f->number, err.text);
		return 0;
	}
	pod->annotated = annotations_ours(&pod->annotations);
	pod->stopped = p.stopped;
	r->counts.pods++;
	return 0;
}

static int take_set(struct cache *c, struct iset **field, const struct stored_set *set)
{
	struct iset *made = set->present ? intern_get(cache_sets(c), rp_ids_of(&set->ids)) : NULL;
	txn_put_set(c, field, made);
	return set->present && !made ? -ENOMEM : 0;
}

static int take_blob(struct blob **field, const struct stored_bytes *b)
{
	struct blob *made = b->data ? blob_new(b->data, b->len) : NULL;
	txn_put_blob(field, made);
	return b->data && !made ? -ENOMEM : 0;
}

static int fill_acked(struct cache *c, struct values *v, const struct stored_values *from)
{
	v->shares = from->shares;
	v->quota = from->quota;
	v->period = from->period;
	v->mem_limit = from->mem_limit;
	int r = take_set(c, &v->cpus, &from->cpus);
	return r ? r : take_set(c, &v->mems, &from->mems);
}

static int fill_decision(struct cache *c, struct decision *d, const struct stored_decision *from)
{
	d->shares = from->decided.shares;
	d->quota = from->decided.quota;
	d->period = from->decided.period;
	d->mem_limit = from->decided.mem_limit;
	d->needs = from->needs;
	d->state = from->state;
	d->group = from->group;
	d->policy = *from->policy ? cache_policy_number(c, from->policy) : 0;
	int r = take_set(c, &d->cpus, &from->decided.cpus);
	if (!r)
		r = take_set(c, &d->mems, &from->decided.mems);
	if (!r)
		r = take_set(c, &d->exclusive, &from->exclusive);
	if (!r)
		r = take_blob(&d->rdt_class, &from->rdt_class);
	if (!r)
		r = take_blob(&d->blockio_class, &from->blockio_class);
	if (!r)
		r = take_blob(&d->cpu_class, &from->cpu_class);
	if (!r)
		r = take_blob(&d->private_data, &from->private_data);
	if (!r)
		r = take_blob(&d->degraded, &from->degraded);
	if (!r)
		r = take_blob(&d->data, &from->data);
	return r;
}

/* Through a transaction, so that the cache's counts of who has which CPU are right. */
static int apply_decision(struct restore *r, struct ctr *ctr, const struct stored_decision *from)
{
	struct txn *t = txn_begin(r->cache);
	struct decision *d = t ? txn_stage(t, ctr) : NULL;
	int res = d ? fill_decision(r->cache, d, from) : -ENOMEM;
	if (!res)
		txn_commit(t);
	txn_end(t);
	if (!res)
		res = fill_acked(r->cache, &ctr->acked, &from->acked);
	ctr->pid = from->pid;
	if (from->degraded.data)
		ctr->flags |= RP_CTR_DEGRADED;
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
		res = err_set(&err, -EEXIST, "container %s is there already", s.desc.id);
	if (!res) {
		s.desc.state = RP_STATE_RUNNING; /* if there is no decision to tell */
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
	(*ret)->flags = s.flags | RP_CTR_RESTORED;
	r->counts.ctrs++;
	return res;
}

/* Both lists are in ascending order. */
static int restore_ctrs(struct restore *r)
{
	const struct found_list *decisions = &r->decisions;
	uint32_t d = 0;
	for (uint32_t i = 0; i < r->facts.n; i++) {
		struct found *f = &r->facts.at[i];
		struct ctr *ctr = NULL;
		int res = restore_ctr(r, f, &ctr);
		f->ctr = ctr;
		while (!res && d < decisions->n && decisions->at[d].number < f->number)
			warn_bad(r, "decision", decisions->at[d++].number,
				 "its container is not there");
		if (!res && d < decisions->n && decisions->at[d].number == f->number)
			res = ctr ? restore_decision(r, ctr, &decisions->at[d++]) : (d++, 0);
		if (res)
			return res;
	}
	for (; d < decisions->n; d++)
		warn_bad(r, "decision", decisions->at[d].number, "its container is not there");
	return 0;
}

static struct found *facts_of(const struct restore *r, uint64_t number)
{
	uint32_t low = 0, high = r->facts.n;
	while (low < high) {
		uint32_t mid = low + (high - low) / 2;
		if (r->facts.at[mid].number == number)
			return &r->facts.at[mid];
		if (r->facts.at[mid].number < number)
			low = mid + 1;
		else
			high = mid;
	}
	return NULL;
}

/* Whether the runtime has it was not stored: it is not known to. */
static int move_ctr(struct restore *r, struct txn *t, struct ctr *ctr,
		    const struct stored_moved *moved)
{
	const struct iset *own = txn_view(ctr)->exclusive;
	if (own && !rp_ids_subset(own->ids, rp_ids_of(&moved->cpus.ids))) {
		warn_bad(r, "move of container", ctr->seq, "it has not the CPUs that are its own");
		return 0;
	}
	struct decision *d = txn_stage(t, ctr);
	int res = d ? take_set(r->cache, &d->cpus, &moved->cpus) : -ENOMEM;
	txn_put_set(r->cache, &ctr->acked.cpus, NULL);
	txn_put_set(r->cache, &ctr->acked.mems, NULL);
	return res ? res : take_set(r->cache, &d->mems, &moved->mems);
}

static int apply_moved(struct restore *r, const struct stored_moved *moved)
{
	struct txn *t = txn_begin(r->cache);
	int res = t ? 0 : -ENOMEM;
	for (uint32_t i = 0; !res && i < moved->n; i++) {
		struct found *f = facts_of(r, moved->numbers[i]);
		if (!f || !f->ctr || f->moved)
			continue;
		f->moved = true;
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
		return apply_moved(r, &moved);
	warn_bad(r, "move", f->number, err.text);
	return 0;
}

/* ---- the file ------------------------------------------------------------------------------------------------------ */

static int sort_record(struct restore *r, const MDB_val *key, const MDB_val *value)
{
	const uint8_t *message;
	size_t len;
	if (record_open(key->mv_data, key->mv_size, value->mv_data, value->mv_size, &message,
			&len)) {
		warn_bad(r, "record", r->counts.bad + 1u, "its checksum is wrong");
		return 0;
	}
	switch (record_key_get_kind(key->mv_data)) {
	case RECORD_POD:
		return remember(&r->pods, record_key_get_number(key->mv_data), message, len);
	case RECORD_FACTS:
		return remember(&r->facts, record_key_get_number(key->mv_data), message, len);
	case RECORD_DECISION:
		return remember(&r->decisions, record_key_get_number(key->mv_data), message, len);
	case RECORD_MOVED:
		return remember(&r->moved, record_key_get_number(key->mv_data), message, len);
	case RECORD_BLOB:
		return restore_blob(r, RECORD_BLOB, key, message, len);
	case RECORD_NOTE:
		return restore_blob(r, RECORD_NOTE, key, message, len);
	default:
		return 0;
	}
}

/* The file was read to its end before, by the probe. If that cannot be done again, what was read is restored. */
static int collect(struct restore *r, struct store_reader *reader)
{
	MDB_val key, value;
	int rc, res = 0;
	while (!(rc = store_reader_next(reader, &key, &value)) && !res)
		res = sort_record(r, &key, &value);
	if (rc && rc != MDB_NOTFOUND)
		log_warning("the stored state cannot be read to its end: %s", mdb_strerror(rc));
	return res;
}

static int read_file(struct restore *r, const char *path)
{
	struct store_reader reader;
	int rc = store_reader_open(&reader, path);
	if (rc) {
		log_warning("the stored state cannot be read: %s", mdb_strerror(rc));
		return 0;
	}
	rc = store_reader_add_journal(&reader, path, r->s->found_journal);
	if (rc)
		log_warning("the journal of the stored state cannot be read: %s", mdb_strerror(rc));
	int res = store_passes(rc) ? -rc : collect(r, &reader);
	for (uint32_t i = 0; !res && i < r->pods.n; i++)
		res = restore_pod(r, &r->pods.at[i]);
	if (!res)
		res = restore_ctrs(r);
	/* of each the last one: what came before may be of a time when it had no CPUs of its own */
	for (uint32_t i = r->moved.n; !res && i > 0; i--)
		res = restore_moved(r, &r->moved.at[i - 1]);
	store_reader_close(&reader);
	return res;
}

int store_restore(struct store *s, struct cache *cache, struct store_counts *ret, struct err *err)
{
	char path[STORE_PATH_MAX];
	struct restore r = {.s = s, .cache = cache};
	s->cache = cache;
	*ret = (struct store_counts){0};
	if (!s->found)
		return 0;
	s->found = false;
	store_dir_path(&s->dir, STORE_FILE, path);
	r.arena = arena_new(ARENA_BLOCK, RECORD_ARENA_LIMIT);
	int res = r.arena ? read_file(&r, path) : -ENOMEM;
	arena_free(r.arena);
	free(r.pods.at);
	free(r.facts.at);
	free(r.decisions.at);
	free(r.moved.at);
	*ret = r.counts;
	if (r.counts.bad > WARNINGS)
		log_warning("%u stored records are left out", r.counts.bad);
	return res ? err_errno(err, res, "cannot restore the stored state") : 0;
}
