/* SPDX-License-Identifier: Apache-2.0 */
#include "core/cache/store_internal.h"

#include <assert.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "core/util/cleanup.h"
#include "core/util/log.h"
#include "core/util/loop.h"

#define LOG_SOURCE "store"

/* The room a file starts with; it grows when that was not enough. */
#define ROOM_BASE ((size_t)512 << 10)
#define ROOM_PER_OBJECT ((size_t)3 << 9)
#define USUAL_PER_OBJECT 1000u
#define PROBE_SECONDS 5u
#define MANY 64u /* changes, and as many as half of the containers: then all is looked at */
#define CHUNK                                                                                      \
	256u /* records of a new file between commits: LMDB keeps the memory of changed pages for good */

/* ---- opening and closing ------------------------------------------------------------------------------------------- */

static void tell(struct store_opening *o, enum store_outcome outcome, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void tell(struct store_opening *o, enum store_outcome outcome, const char *fmt, ...)
{
	va_list ap;
	o->outcome = outcome;
	va_start(ap, fmt);
	(void)vsnprintf(o->why, sizeof o->why, fmt, ap);
	va_end(ap);
}

static void set_aside(struct store *s, enum store_outcome outcome, const char *why,
		      struct store_opening *ret)
{
	bool bad = outcome != STORE_RESET && outcome != STORE_OTHER_BOOT;
	char name[64];
	int r = store_dir_set_aside(&s->dir, bad, name);
	if (r)
		tell(ret, outcome,
		     "the stored state in %s is not used: %s; it cannot be renamed: %s",
		     s->dir.path, why, strerrordesc_np(-r));
	else
		tell(ret, outcome, "the stored state in %s is not used: %s; it is called %s now",
		     s->dir.path, why, name);
}

/* What was being written when the process ended was not answered yet: all that was is in the commit before. */
static void probe(const struct store *s, const char *path, struct probe_result *ret)
{
	store_probe(path, s->boot_id, s->dir.lock_fd, PROBE_SECONDS, ret);
	uint64_t torn = ret->commit;
	if (!ret->torn || store_file_step_back(path, torn))
		return;
	store_probe(path, s->boot_id, s->dir.lock_fd, PROBE_SECONDS, ret);
	if (ret->outcome == STORE_FOUND && ret->commit != torn - 1)
		*ret = (struct probe_result){
			.outcome = STORE_DAMAGED,
			.why = "its last commit is not whole, and the one before is not there"};
}

static void look(struct store *s, bool reset, struct store_opening *ret)
{
	char path[STORE_PATH_MAX];
	struct err err = ERR_INIT;
	struct probe_result found;
	int r = store_dir_check(&s->dir, &err);
	*ret = (struct store_opening){.outcome = STORE_FRESH};
	if (r == -ENOENT)
		return;
	if (reset) {
		set_aside(s, STORE_RESET, "a reset was asked for", ret);
		return;
	}
	if (r) {
		set_aside(s, STORE_UNSAFE, err.text, ret);
		return;
	}
	store_dir_path(&s->dir, STORE_FILE, path);
	probe(s, path, &found);
	s->found = found.outcome == STORE_FOUND;
	s->found_journal = found.journal;
	if (!s->found)
		set_aside(s, found.outcome, found.why, ret);
	else if (found.n_bad)
		tell(ret, STORE_FOUND, "found %u records in %s, %u of them damaged",
		     found.n_records, path, found.n_bad);
	else
		tell(ret, STORE_FOUND, "found %u records in %s", found.n_records, path);
}

int store_open(const struct store_params *params, struct store **ret,
	       struct store_opening *ret_opening, struct err *err)
{
	char stale[STORE_PATH_MAX];
	struct store *s = calloc(1, sizeof *s);
	if (!s)
		return err_set(err, -ENOMEM, "out of memory");
	s->dir.fd = s->dir.lock_fd = s->journal.fd = -1;
	s->write = params->write;
	s->moved.epoch = 1;
	s->noting = 1;
	s->boot_id = strdup(params->boot_id);
	int r = store_file_init(&s->file, params->size_max);
	if (r || !s->boot_id) {
		free(s->boot_id);
		free(s);
		return err_set(err, -ENOMEM, "out of memory");
	}
	r = store_dir_open(&s->dir, params->dir, err);
	if (r) {
		(void)store_close(s);
		return r;
	}
	store_dir_path(&s->dir, STORE_FILE_NEW, stale);
	(void)unlink(stale);
	store_dir_path(&s->dir, STORE_FILE_NEW STORE_JOURNAL, stale);
	(void)unlink(stale);
	look(s, params->reset, ret_opening);
	*ret = s;
	return 0;
}

static void free_store(struct store *s)
{
	store_kept_free(s);
	free(s->urgent.list);
	free(s->later.list);
	store_moved_free(&s->moved);
	store_journal_close(&s->journal);
	store_dir_close(&s->dir);
	free(s->boot_id);
	free(s);
}

struct store *store_close(struct store *s)
{
	if (!s)
		return NULL;
	store_file_fini(&s->file);
	free_store(s);
	return NULL;
}

struct store *store_abandon(struct store *s)
{
	if (!s)
		return NULL;
	/* the lock may have been held by a thread that is not here, and closing writes nothing */
	if (s->file.env)
		mdb_env_close(s->file.env);
	if (s->file.fd >= 0)
		(void)close(s->file.fd);
	s->file.env = NULL;
	s->file.fd = -1;
	store_journal_close(&s->journal);
	store_dir_close(&s->dir);
	s->abandoned = true;
	return s;
}

/* ---- notes of changes ---------------------------------------------------------------------------------------------- */

static void note(struct store *s, struct changes *to, struct change change)
{
	if (!to->list || to->n == to->cap) {
		uint32_t cap = to->cap ? to->cap * 2 : 32;
		struct change *grown = realloc(to->list, cap * sizeof *grown);
		if (!grown) {
			s->lost_track = true;
			return;
		}
		to->list = grown;
		to->cap = cap;
	}
	to->list[to->n++] = change;
}

/* Or everything gets written anyway, or nothing. */
static bool takes_notes(const struct store *s)
{
	return s && s->file.env;
}

static void note_later(struct store *s, enum change_what what, uint64_t handle, uint32_t *noted)
{
	if (!takes_notes(s) || *noted == s->noting)
		return;
	*noted = s->noting;
	note(s, &s->later, (struct change){.what = what, .handle = handle});
}

static void note_urgent(struct store *s, const struct ctr *ctr)
{
	const struct change *last = s->urgent.n ? &s->urgent.list[s->urgent.n - 1] : NULL;
	if (!last || last->what != CHANGE_CTR || last->handle != ctr->handle)
		note(s, &s->urgent, (struct change){.what = CHANGE_CTR, .handle = ctr->handle});
}

static void note_del(struct store *s, enum record_kind kind, uint64_t number, bool urgent)
{
	if (takes_notes(s))
		note(s, urgent ? &s->urgent : &s->later,
		     (struct change){.what = CHANGE_DEL, .kind = kind, .number = number});
}

void store_put_pod(struct store *s, struct pod *pod)
{
	note_later(s, CHANGE_POD, pod->handle, &pod->noted);
}

/* Sets that were stored by themselves would go over those of its record. */
void store_put_ctr_now(struct store *s, struct ctr *ctr)
{
	if (!takes_notes(s))
		return;
	bool only = store_moved_only(ctr);
	if (!only)
		note_urgent(s, ctr);
	if ((only || ctr->moved == s->moved.epoch) && store_moved_add(&s->moved, ctr))
		s->lost_track = true;
}

void store_put_ctr(struct store *s, struct ctr *ctr)
{
	if (ctr->stored_exclusive)
		store_put_ctr_now(s, ctr);
	else if (s && ctr->moved != s->moved.epoch) /* or the complete commit finds it */
		note_later(s, CHANGE_CTR, ctr->handle, &ctr->noted);
}

void store_del_ctr(struct store *s, const struct ctr *ctr)
{
	if (s)
		store_moved_forget(&s->moved, ctr);
	note_del(s, RECORD_FACTS, ctr->seq, ctr->stored_exclusive);
	note_del(s, RECORD_DECISION, ctr->seq, ctr->stored_exclusive);
}

void store_del_pod(struct store *s, const struct pod *pod)
{
	for (const struct ctr *ctr = pod->ctrs; ctr; ctr = ctr->pod_next)
		store_del_ctr(s, ctr);
	note_del(s, RECORD_POD, pod->seq, false);
}

/* ---- writing ------------------------------------------------------------------------------------------------------- */

enum scope {
	WRITE_URGENT, /* to the journal */
	WRITE_CHANGES, /* this and all else is complete, and to the file */
	WRITE_MANY, /* what is not stored, in the order of keys, as pages fill better and the list has no order */
	WRITE_WHOLE, /* the file is new: everything, in the order of keys */
};

/* One commit; the first error stays: LMDB's or an errno value, JOURNAL_FULL. */
struct batch {
	struct store *s;
	enum scope scope;
	int rc;
	uint32_t n;
	bool append; /* no key has come yet that does not belong at the end: full pages stay full */
};

static void put(struct batch *b, const struct record_key *key, const struct record *r)
{
	if (b->rc)
		return;
	b->rc = b->scope == WRITE_URGENT ? store_journal_put(&b->s->journal, key, r)
					 : store_file_put(&b->s->file, key, r, &b->append);
	if (b->rc == MDB_BAD_VALSIZE) {
		log_warning("a record of kind %c has %zu bytes, more than the store takes; it is "
			    "left out",
			    (char)record_key_get_kind(key->bytes), record_size(r));
		b->rc = 0;
		return;
	}
	b->n++;
	if (!b->rc && b->scope == WRITE_WHOLE && b->n % CHUNK == 0)
		b->rc = store_file_turn(&b->s->file);
}

static void put_pod(struct batch *b, const struct pod *pod)
{
	struct record_key key;
	struct record r;
	record_key_number(&key, RECORD_POD, pod->seq);
	record_of_pod(&r, pod);
	put(b, &key, &r);
}

static void put_facts(struct batch *b, const struct ctr *ctr)
{
	struct record_key key;
	struct record r;
	record_key_number(&key, RECORD_FACTS, ctr->seq);
	record_of_facts(&r, ctr);
	put(b, &key, &r);
}

static void put_decision(struct batch *b, const struct ctr *ctr)
{
	struct record_key key;
	struct record r;
	record_key_number(&key, RECORD_DECISION, ctr->seq);
	record_of_decision(&r, ctr, cache_policy_name(b->s->cache, ctr->cur.policy));
	put(b, &key, &r);
}

static void put_moved(struct batch *b)
{
	struct moved *m = &b->s->moved;
	for (uint32_t at = 0; at < m->n;) {
		struct record_key key;
		struct record r;
		record_key_moved(&key, m->next++);
		at = store_moved_group(m, at, &r);
		put(b, &key, &r);
	}
}

static void del(struct batch *b, const struct record_key *key)
{
	if (!b->rc)
		b->rc = b->scope == WRITE_URGENT ? store_journal_del(&b->s->journal, key)
						 : store_file_del(&b->s->file, key);
	b->n++;
}

static void put_meta(struct batch *b)
{
	struct record_key key = {1, {RECORD_META}};
	struct record r;
	record_of_meta(&r, b->s->boot_id, store_file_number(&b->s->file), b->s->journal.number + 1);
	put(b, &key, &r);
}

static void put_kept(struct batch *b, enum record_kind kind)
{
	for (uint32_t i = 0; i < b->s->n_kept; i++) {
		const struct kept *k = &b->s->kept[i];
		struct record_key key;
		struct record r;
		if (k->kind != kind || (k->stored && b->scope != WRITE_WHOLE &&
					!(k->journaled && b->scope != WRITE_URGENT)))
			continue;
		record_key_name(&key, kind, k->name);
		record_of_blob(&r, k->version, k->data, k->len);
		if (k->data)
			put(b, &key, &r);
		else
			del(b, &key);
	}
}

/* What the journal has is due again when the file is written. */
static bool pod_due(const struct batch *b, const struct pod *pod)
{
	return !pod->stored || (pod->journaled && b->scope != WRITE_URGENT);
}

static bool facts_due(const struct batch *b, const struct ctr *ctr)
{
	return !ctr->stored || ((ctr->journaled & JOURNAL_FACTS) && b->scope != WRITE_URGENT);
}

static bool decision_due(const struct batch *b, const struct ctr *ctr)
{
	return ctr->unstored || ((ctr->journaled & JOURNAL_DECISION) && b->scope != WRITE_URGENT);
}

/* Pods and containers in the order of their arrival, which is that of their keys. */
static void write_objects(struct batch *b)
{
	bool all = b->scope == WRITE_WHOLE;
	const struct pod *pod = cache_pods(b->s->cache);
	const struct ctr *ctr = cache_ctrs(b->s->cache);
	while (pod || ctr) {
		if (!ctr || (pod && pod->seq < ctr->seq)) {
			if (all || pod_due(b, pod))
				put_pod(b, pod);
			pod = pod->hh.next;
			continue;
		}
		if (all || facts_due(b, ctr))
			put_facts(b, ctr);
		if (all || decision_due(b, ctr))
			put_decision(b, ctr);
		ctr = ctr->next;
	}
}

static void write_everything(struct batch *b)
{
	put_kept(b, RECORD_BLOB);
	put_kept(b, RECORD_NOTE);
	b->append = true; /* keys of objects are behind all of these */
	write_objects(b);
}

static void write_change(struct batch *b, const struct change *change)
{
	struct record_key key;
	const struct pod *pod;
	const struct ctr *ctr;
	switch (change->what) {
	case CHANGE_POD:
		pod = cache_pod_of(b->s->cache, change->handle);
		if (pod && pod_due(b, pod))
			put_pod(b, pod);
		break;
	case CHANGE_CTR:
		ctr = cache_ctr_of(b->s->cache, change->handle);
		/* without it the container could not be restored */
		if (ctr && b->scope == WRITE_URGENT && pod_due(b, ctr->pod))
			put_pod(b, ctr->pod);
		if (ctr && facts_due(b, ctr))
			put_facts(b, ctr);
		if (ctr && decision_due(b, ctr))
			put_decision(b, ctr);
		break;
	case CHANGE_DEL:
		record_key_number(&key, change->kind, change->number);
		del(b, &key);
		break;
	}
}

/* Where all objects have been looked at, what is gone remains. */
static void write_noted(struct batch *b, const struct changes *changes)
{
	for (uint32_t i = 0; i < changes->n; i++)
		if (b->scope != WRITE_MANY || changes->list[i].what == CHANGE_DEL)
			write_change(b, &changes->list[i]);
}

static void write_changes(struct batch *b)
{
	if (b->scope == WRITE_MANY)
		write_objects(b);
	if (b->scope == WRITE_URGENT)
		put_moved(b);
	write_noted(b, &b->s->urgent);
	if (b->scope != WRITE_URGENT)
		write_noted(b, &b->s->later);
	put_kept(b, RECORD_BLOB);
	put_kept(b, RECORD_NOTE);
}

static int commit_batch(struct batch *b)
{
	put_meta(b);
	if (!b->rc)
		return store_file_commit(&b->s->file);
	store_file_abort(&b->s->file);
	return b->rc;
}

static size_t n_objects(const struct store *s)
{
	return (size_t)cache_n_pods(s->cache) + cache_n_ctrs(s->cache);
}

/* LMDB's result; *ret_n counts what was written. */
static int write_batch(struct store *s, enum scope scope, uint32_t *ret_n)
{
	struct batch b = {.s = s, .scope = scope, .append = scope >= WRITE_MANY};
	b.rc = store_file_begin(&s->file);
	if (b.rc)
		return b.rc;
	if (scope >= WRITE_MANY)
		s->file.coming = n_objects(s) * USUAL_PER_OBJECT;
	if (scope == WRITE_WHOLE)
		write_everything(&b);
	else
		write_changes(&b);
	*ret_n = b.n;
	if (b.rc || (!b.n && !s->journal.end && scope != WRITE_WHOLE)) {
		store_file_abort(&s->file);
		return b.rc;
	}
	int rc = commit_batch(&b);
	/* at rest either meta page leads to all records, so that one may be lost */
	if (!rc)
		rc = store_file_begin(&s->file);
	if (!rc)
		rc = commit_batch(&b);
	/* the file has the next number, and only then */
	if (!rc)
		store_journal_restart(&s->journal);
	return rc;
}

/* JOURNAL_FULL, or a positive errno. */
static int write_journal(struct store *s)
{
	struct batch b = {.s = s, .scope = WRITE_URGENT};
	store_journal_begin(&s->journal);
	write_changes(&b);
	if (!b.rc && b.n)
		b.rc = store_journal_write(&s->journal);
	if (!b.rc)
		s->stats.records += b.n;
	return b.rc;
}

static void mark_pod(struct pod *pod)
{
	pod->stored = true;
	pod->journaled = false;
}

static void mark_ctr(struct ctr *ctr)
{
	ctr->stored = true;
	ctr->unstored = 0;
	ctr->journaled = 0;
	ctr->stored_exclusive = ctr->cur.exclusive && ctr->cur.exclusive->count;
}

static void mark_ctr_journaled(struct store *s, struct ctr *ctr)
{
	uint8_t journaled = ctr->journaled;
	if (!ctr->stored)
		journaled |= JOURNAL_FACTS;
	if (ctr->unstored)
		journaled |= JOURNAL_DECISION;
	mark_ctr(ctr);
	ctr->journaled = journaled;
	note_later(s, CHANGE_CTR, ctr->handle, &ctr->noted);
	if (ctr->pod->stored)
		return;
	ctr->pod->stored = ctr->pod->journaled = true;
	note_later(s, CHANGE_POD, ctr->pod->handle, &ctr->pod->noted);
}

/* The complete commit has it all to do again. */
static void mark_journaled(struct store *s)
{
	for (uint32_t i = 0; i < s->urgent.n; i++) {
		const struct change *change = &s->urgent.list[i];
		struct ctr *ctr =
			change->what == CHANGE_CTR ? cache_ctr_of(s->cache, change->handle) : NULL;
		if (ctr)
			mark_ctr_journaled(s, ctr);
		if (change->what == CHANGE_DEL)
			note(s, &s->later, *change);
	}
	s->urgent.n = 0;
	store_moved_written(&s->moved);
	store_kept_journaled(s);
}

static void mark_changes(struct store *s, struct changes *changes)
{
	for (uint32_t i = 0; i < changes->n; i++) {
		const struct change *change = &changes->list[i];
		struct pod *pod =
			change->what == CHANGE_POD ? cache_pod_of(s->cache, change->handle) : NULL;
		struct ctr *ctr =
			change->what == CHANGE_CTR ? cache_ctr_of(s->cache, change->handle) : NULL;
		if (pod)
			mark_pod(pod);
		if (ctr)
			mark_ctr(ctr);
	}
	changes->n = 0;
}

static void mark_stored(struct store *s, enum scope scope)
{
	mark_changes(s, &s->urgent);
	mark_changes(s, &s->later);
	store_moved_settled(&s->moved);
	if (scope == WRITE_WHOLE || scope == WRITE_MANY) {
		for (struct pod *pod = cache_pods(s->cache); pod; pod = pod->hh.next)
			mark_pod(pod);
		for (struct ctr *ctr = cache_ctrs(s->cache); ctr; ctr = ctr->next)
			mark_ctr(ctr);
	}
	store_kept_settled(s);
	s->noting++;
}

static size_t room_wanted(const struct store *s)
{
	size_t size = ROOM_BASE;
	size += n_objects(s) * ROOM_PER_OBJECT;
	for (uint32_t i = 0; i < s->n_kept; i++)
		size += s->kept[i].len;
	return size;
}

static int create_file(struct store *s, struct err *err)
{
	char path[STORE_PATH_MAX];
	store_dir_path(&s->dir, STORE_FILE_NEW, path);
	s->published = false;
	int r = store_file_create(&s->file, path, room_wanted(s), s->write, err);
	return r ? r : store_journal_create(&s->journal, path, s->file.mapped, err);
}

/* A file that is full is found out late, and all is written again: most of the time it can be foreseen. */
static int write_growing(struct store *s, enum scope scope, struct err *err)
{
	uint32_t n = 0;
	struct err soft = ERR_INIT; /* it may do without */
	while (s->file.size < room_wanted(s) && s->file.size < s->file.size_max &&
	       store_file_grow(&s->file, &soft) == 0)
		;
	for (;;) {
		int rc = write_batch(s, scope, &n);
		if (!rc) {
			s->stats.records += n;
			return 0;
		}
		if (rc != MDB_MAP_FULL)
			return store_file_error(rc, err, "cannot write the state");
		int r = store_file_grow(&s->file, err);
		if (r)
			return r;
	}
}

/* What the changes have become too many for, or what is stored elsewhere for the time being, is found by looking at all there is. */
static bool has_many(struct store *s, enum scope scope)
{
	uint32_t n = s->urgent.n + (scope == WRITE_URGENT ? 0 : s->later.n);
	if (n > MANY && n > cache_n_ctrs(s->cache) / 2)
		return true;
	return scope == WRITE_URGENT ? !store_moved_fits(&s->moved)
				     : s->moved.n || s->moved.first != s->moved.next;
}

static int write_complete(struct store *s, enum scope scope, struct err *err)
{
	if (has_many(s, scope))
		scope = WRITE_MANY;
	if (!s->file.env)
		scope = WRITE_WHOLE;
	int r = scope == WRITE_WHOLE ? create_file(s, err) : 0;
	if (!r)
		r = write_growing(s, scope, err);
	if (!r)
		mark_stored(s, scope);
	return r;
}

/* A batch that was begun and not finished is void with the complete commit, like all of the journal. */
static int write_urgent(struct store *s, struct err *err)
{
	static struct log_limit limit = LOG_LIMIT(3, 60000);
	int rc = !s->file.env || !s->published || has_many(s, WRITE_URGENT) ? JOURNAL_FULL
									    : write_journal(s);
	if (!rc) {
		mark_journaled(s);
		return 0;
	}
	if (rc != JOURNAL_FULL && log_allowed(&limit, LOG_SOURCE))
		log_warning("the journal cannot be written: %s; the file is written instead",
			    strerrordesc_np(rc));
	return write_complete(s, WRITE_CHANGES, err);
}

/* After an error the file is given up: the next commit writes all there is to a new one. */
static int write_records(struct store *s, enum scope scope, struct err *err)
{
	if (s->lost_track)
		store_file_close(&s->file);
	s->lost_track = false;
	int r = scope == WRITE_URGENT ? write_urgent(s, err) : write_complete(s, scope, err);
	if (!r)
		return 0;
	store_file_close(&s->file);
	s->urgent.n = s->later.n = s->moved.n = 0;
	s->noting++;
	return r;
}

static int publish(struct store *s, struct err *err)
{
	if (renameat(s->dir.fd, STORE_FILE_NEW, s->dir.fd, STORE_FILE) < 0)
		return err_errno(err, -errno, "cannot rename %s/" STORE_FILE_NEW " to " STORE_FILE,
				 s->dir.path);
	/* until then there is none that goes with it: its number is another one */
	if (renameat(s->dir.fd, STORE_FILE_NEW STORE_JOURNAL, s->dir.fd, STORE_FILE STORE_JOURNAL) <
	    0) {
		int r = err_errno(err, -errno, "cannot rename the journal in %s", s->dir.path);
		store_file_close(&s->file);
		return r;
	}
	s->published = true;
	store_trim(s);
	return 0;
}

bool store_pending(const struct store *s)
{
	return s && !s->abandoned &&
	       (!s->file.env || !s->published || s->urgent.n || s->later.n || s->moved.n ||
		s->journal.end || s->lost_track || store_kept_pending(s));
}

static int commit(struct store *s, enum scope scope, struct err *err)
{
	if (!store_pending(s))
		return 0;
	assert(s->cache); /* or what is to be restored would be written over */
	uint64_t start = clock_ns();
	int r = write_records(s, scope, err);
	if (!r && !s->published)
		r = publish(s, err);
	s->stats.last_duration_ns = clock_ns() - start;
	if (r) {
		s->stats.failures++;
		return r;
	}
	s->stats.commits++;
	s->stats.last_commit_ns = clock_wall_ns();
	return 0;
}

int store_commit(struct store *s, struct err *err)
{
	return commit(s, WRITE_CHANGES, err);
}

int store_commit_urgent(struct store *s, struct err *err)
{
	return commit(s, WRITE_URGENT, err);
}

/* ---- the rest ------------------------------------------------------------------------------------------------------ */

int store_sync(struct store *s)
{
	if (!s)
		return 0;
	(void)pthread_mutex_lock(&s->file.sync_lock);
	_close_ int fd = s->file.fd >= 0 ? fcntl(s->file.fd, F_DUPFD_CLOEXEC, 0) : -1;
	bool none = s->file.fd < 0;
	(void)pthread_mutex_unlock(&s->file.sync_lock);
	if (none)
		return 0;
	if (fd < 0 || fdatasync(fd) < 0 || fsync(s->dir.fd) < 0)
		return -errno;
	return 0;
}

void store_trim(struct store *s)
{
	if (!s || !s->file.env)
		return;
	store_journal_trim(&s->journal);
	if (store_file_remap(&s->file))
		store_file_close(&s->file); /* and the next commit makes a new one */
}

void store_stats(const struct store *s, struct store_stats *ret)
{
	MDB_envinfo info;
	MDB_stat stat;
	struct stat st;
	*ret = s ? s->stats : (struct store_stats){0};
	if (!s)
		return;
	ret->mapped = s->file.mapped;
	if (!s->file.env || mdb_env_info(s->file.env, &info) || mdb_env_stat(s->file.env, &stat))
		return;
	ret->used_bytes = (info.me_last_pgno + 1) * (uint64_t)stat.ms_psize;
	if (!fstat(s->file.fd, &st))
		ret->file_bytes = (uint64_t)st.st_size;
}
