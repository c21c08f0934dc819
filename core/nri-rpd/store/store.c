/* SPDX-License-Identifier: Apache-2.0 */
/* Opening, pending changes and commits. A commit writes the changes, or everything into a new
 * log. */
#include "core/nri-rpd/store/internal.h"

#include <assert.h>

#include "core/lib/util/cleanup.h"
#include "core/lib/util/fs.h"
#include "core/lib/util/grow.h"
#include "core/lib/util/log.h"
#include "core/lib/util/clock.h"
#include "core/nri-rpd/store/directory.h"

#define LOG_SOURCE "store"
#define KIND "state"
#define RECORD_USUAL 4096u
#define NEW_MANY 128u /* smallest number of new objects for which the log is rewritten */
#define SETS (DIFF_CPUS | DIFF_MEMS)

/* ---- opening and closing --------------------------------------------------------------------- */

static void store_tell(struct store_opening *o, enum store_outcome outcome, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void store_tell(struct store_opening *o, enum store_outcome outcome, const char *fmt, ...)
{
	va_list ap;
	o->outcome = outcome;
	va_start(ap, fmt);
	(void)vsnprintf(o->why, sizeof o->why, fmt, ap);
	va_end(ap);
}

/* Moves or quarantines a file. ret: the result, for the end of a sentence about the file. */
static void set_aside(const struct store *s, const char *file, enum store_aside how, char ret[128])
{
	char name[64];
	int r = s->abandoned ? 0 : store_dir_set_aside(&s->dir, file, how, name);
	if (s->abandoned)
		(void)snprintf(ret, 128, "it is unchanged");
	else if (r)
		(void)snprintf(ret, 128, "it cannot be renamed: %s", strerrordesc_np(-r));
	else
		(void)snprintf(ret, 128, "it was renamed to %s", name);
}

static void not_used(struct store *s, enum store_outcome outcome, const char *why,
		     struct store_opening *ret)
{
	bool bad = outcome != STORE_RESET && outcome != STORE_OTHER_BOOT;
	char aside[128];
	set_aside(s, STORE_FILE, bad ? ASIDE_BAD : ASIDE_OLD, aside);
	free(s->found);
	s->found = NULL;
	store_tell(ret, outcome, "the stored state in %s is not used: %s; %s", s->dir.path, why,
		   aside);
}

static int count_record(void *arg, const void *record, size_t len)
{
	++*(uint32_t *)arg;
	return 0;
}

static void look_into(struct store *s, struct store_opening *ret)
{
	struct err err = ERR_INIT;
	char aside[128];
	uint32_t n = 0;
	int r = reclog_parse(s->found, s->found_size, &s->head, count_record, &n, &err);
	if (r == 0) {
		store_tell(ret, STORE_FOUND, "found %u records in %s", n, s->log.path);
	} else if (r == -EBADMSG) {
		set_aside(s, STORE_FILE, ASIDE_COPY, aside);
		store_tell(ret, STORE_PART, "found %u records in %s: %s; %s", n, s->log.path,
			   err.text, aside);
	} else {
		not_used(s,
			 r == -ESTALE	? STORE_OTHER_BOOT
			 : r == -EPROTO ? STORE_NEWER
					: STORE_DAMAGED,
			 err.text, ret);
	}
}

/* Reads the existing log. Returns -ENOMEM; other problems are outcomes. */
static int store_look(struct store *s, bool reset, struct store_opening *ret, struct err *err)
{
	struct err why = ERR_INIT;
	char *data = NULL;
	*ret = (struct store_opening){.outcome = STORE_FRESH};
	if (reset && store_dir_has(&s->dir, STORE_FILE)) {
		not_used(s, STORE_RESET, "a reset was requested", ret);
		return 0;
	}
	int r = fs_read_own(s->log.path, s->log.size_max, &data, &s->found_size, &why);
	if (r == -ENOENT)
		return 0;
	if (r == -ENOMEM)
		return err_set(err, r, "%s", why.text);
	if (r) {
		not_used(s, r == -EPERM ? STORE_UNSAFE : STORE_DAMAGED, why.text, ret);
		return 0;
	}
	s->found = data;
	look_into(s, ret);
	return 0;
}

static int store_init(struct store *s, const struct store_params *params, struct err *err)
{
	char path[STORE_PATH_MAX];
	size_t size_max = params->size_max ? params->size_max : STORE_SIZE_MAX;
	s->dir.fd = s->dir.lock_fd = s->log.fd = s->log.next_fd = -1;
	s->abandoned = params->read_only;
	s->boot_id = strdup(params->boot_id);
	s->head = (struct reclog_head){KIND, STORE_FORMAT, s->boot_id, NRI_RP_VERSION};
	int r = store_dir_open(&s->dir, params, err);
	if (r)
		return r;
	store_dir_path(&s->dir, STORE_FILE, path);
	if (!s->boot_id || reclog_init(&s->log, path, &s->head, size_max))
		return err_set(err, -ENOMEM, "out of memory");
	if (!s->abandoned)
		(void)unlinkat(s->dir.fd, STORE_FILE_NEW, 0);
	return 0;
}

int store_open(const struct store_params *params, struct store **ret,
	       struct store_opening *ret_opening, struct err *err)
{
	struct store *s = calloc(1, sizeof *s);
	if (!s)
		return err_set(err, -ENOMEM, "out of memory");
	int r = store_init(s, params, err);
	if (!r)
		r = store_look(s, params->reset, ret_opening, err);
	if (r)
		(void)store_close(s);
	else
		*ret = s;
	return r;
}

struct store *store_close(struct store *s)
{
	if (!s)
		return NULL;
	store_kept_free(s);
	reclog_fini(&s->log);
	store_dir_close(&s->dir);
	free(s->changes);
	free(s->moved);
	free(s->found);
	free(s->boot_id);
	free(s);
	return NULL;
}

struct store *store_abandon(struct store *s)
{
	if (!s)
		return NULL;
	reclog_close(&s->log);
	store_dir_close(&s->dir);
	s->abandoned = true;
	return s;
}

/* ---- pending changes ------------------------------------------------------------------------- */

/* Returns false if the store is closed (nothing is written) or has lost track of changes
 * (everything will be written). */
static bool takes_notes(const struct store *s)
{
	return s && reclog_is_open(&s->log) && !s->lost_track;
}

static void store_do_note(struct store *s, enum change_what what, uint64_t number)
{
	assert(takes_notes(s));
	if (HAS_ROOM(s->changes, s->n_changes, s->cap_changes, 32))
		s->changes[s->n_changes++] = (struct change){what, number};
	else
		s->lost_track = true;
}

void store_put_pod(struct store *s, struct pod *pod)
{
	if (!takes_notes(s) || pod->store.noted || pod->store.facts)
		return;
	pod->store.noted = true;
	s->n_new++;
	store_do_note(s, CHANGE_POD, pod->handle);
}

void store_put_ctr(struct store *s, struct ctr *ctr)
{
	if (!takes_notes(s) || ctr->store.noted || (ctr->store.facts && !ctr->store.missing))
		return;
	ctr->store.noted = true;
	s->n_new += !ctr->store.facts;
	store_do_note(s, CHANGE_CTR, ctr->handle);
}

void store_del_ctr(struct store *s, const struct ctr *ctr)
{
	if (takes_notes(s))
		store_do_note(s, CHANGE_GONE, ctr->seq);
}

void store_del_pod(struct store *s, const struct pod *pod)
{
	for (const struct ctr *ctr = pod->ctrs; ctr; ctr = ctr->pod_next)
		store_del_ctr(s, ctr);
	if (takes_notes(s))
		store_do_note(s, CHANGE_GONE, pod->seq);
}

bool store_pending(const struct store *s)
{
	return s && !s->abandoned &&
	       (!reclog_is_open(&s->log) || s->n_changes || s->lost_track || store_kept_pending(s));
}

/* ---- records --------------------------------------------------------------------------------- */

/* Running commit; rc is the first error. */
struct writing {
	struct store *s;
	int rc;
	uint32_t n;
};

/* Writes a record. Most records fit into the local buffer and are encoded in one pass. */
static int put_record(struct reclog *log, const struct record *r)
{
	uint8_t room[RECORD_USUAL];
	size_t len = record_pack(r, room, sizeof room);
	if (len)
		return reclog_put(log, room + sizeof room - len, len);
	len = record_size(r);
	if (len > RECORD_MAX) {
		log_warning("a record of kind %c has %zu bytes, more than the store accepts; it is "
			    "not saved",
			    (char)r->kind, len);
		return 0;
	}
	_free_ uint8_t *large = malloc(len);
	if (!large)
		return -ENOMEM;
	record_write(r, large);
	return reclog_put(log, large, len);
}

static void store_put(struct writing *w, const struct record *r)
{
	if (w->rc)
		return;
	w->rc = put_record(&w->s->log, r);
	w->n++;
}

static void put_pod(struct writing *w, const struct pod *pod)
{
	struct record r;
	record_of_pod(&r, pod, cache_policy_name(w->s->cache, pod->policy));
	store_put(w, &r);
}

static void put_facts(struct writing *w, const struct ctr *ctr)
{
	struct record r;
	record_of_facts(&r, ctr);
	store_put(w, &r);
}

static void put_decision(struct writing *w, const struct ctr *ctr)
{
	struct record r;
	record_of_decision(&r, ctr, cache_policy_name(w->s->cache, ctr->cur.policy));
	store_put(w, &r);
}

static void put_kept(struct writing *w, bool all)
{
	for (uint32_t i = 0; i < w->s->n_kept; i++) {
		const struct saved_blob *k = &w->s->kept[i];
		struct record r;
		if (all ? !k->data : k->stored)
			continue;
		record_of_blob(&r, k->kind, k->name, k->version, k->data, k->len);
		store_put(w, &r);
	}
}

/* ---- sets of many containers ----------------------------------------------------------------- */

/*
 * Containers of which only the sets have changed come in large numbers: all containers of a shared
 * pool that grows or shrinks. One record (Moved) covers all containers with the same sets.
 */

static bool has_what_was_decided(const struct ctr *ctr)
{
	return (!ctr->cur.cpus || ctr->acked.cpus == ctr->cur.cpus) &&
	       (!ctr->cur.mems || ctr->acked.mems == ctr->cur.mems);
}

/* Returns true if only the container's sets are not stored, and a Moved record can express what the
 * runtime has acknowledged. */
static bool moved_only(const struct ctr *ctr)
{
	return ctr->store.facts && !(ctr->store.missing & ~(SETS | CTR_UNSTORED_ACKED_SETS)) &&
	       (!(ctr->store.missing & CTR_UNSTORED_ACKED_SETS) || has_what_was_decided(ctr));
}

static bool note_moved(struct store *s, struct ctr *ctr)
{
	if (!HAS_ROOM(s->moved, s->n_moved, s->cap_moved, 64))
		return false;
	s->moved[s->n_moved++] = ctr;
	return true;
}

static int compare_pointers(const void *a, const void *b)
{
	return a < b ? -1 : a > b;
}

/* Orders containers with the same sets next to each other, in their order of arrival. */
static int compare_moved(const void *left, const void *right)
{
	const struct ctr *a = *(struct ctr *const *)left, *b = *(struct ctr *const *)right;
	int c = compare_pointers(a->cur.cpus, b->cur.cpus);
	if (!c)
		c = compare_pointers(a->cur.mems, b->cur.mems);
	if (!c)
		c = has_what_was_decided(a) - has_what_was_decided(b);
	return c ? c : a->seq < b->seq ? -1 : 1;
}

static bool moved_alike(const struct ctr *a, const struct ctr *b)
{
	return a->cur.cpus == b->cur.cpus && a->cur.mems == b->cur.mems &&
	       has_what_was_decided(a) == has_what_was_decided(b);
}

static void put_moved(struct writing *w)
{
	struct store *s = w->s;
	_free_ uint64_t *numbers = s->n_moved ? malloc(s->n_moved * sizeof *numbers) : NULL;
	if (s->n_moved && !numbers)
		w->rc = -ENOMEM;
	if (s->n_moved)
		qsort(s->moved, s->n_moved, sizeof(struct ctr *), compare_moved);
	for (uint32_t at = 0, n; at < s->n_moved && !w->rc; at += n) {
		const struct ctr *like = s->moved[at];
		struct record r;
		for (n = 0; at + n < s->n_moved && moved_alike(like, s->moved[at + n]); n++)
			numbers[n] = s->moved[at + n]->seq;
		record_of_moved(&r, like->cur.cpus, like->cur.mems, has_what_was_decided(like),
				numbers, n);
		store_put(w, &r);
	}
	s->n_moved = 0;
}

/* ---- commits --------------------------------------------------------------------------------- */

static void put_ctr(struct writing *w, struct ctr *ctr)
{
	if (ctr->store.facts && !ctr->store.missing)
		return;
	/* a container cannot be restored without its pod */
	if (!ctr->pod->store.facts && !ctr->pod->store.noted)
		put_pod(w, ctr->pod);
	if (moved_only(ctr) && note_moved(w->s, ctr))
		return;
	if (!ctr->store.facts)
		put_facts(w, ctr);
	if (ctr->store.missing)
		put_decision(w, ctr);
}

static void put_change(struct writing *w, const struct change *change)
{
	struct record r;
	const struct pod *pod;
	struct ctr *ctr;
	switch (change->what) {
	case CHANGE_POD:
		pod = cache_pod_of(w->s->cache, change->number);
		if (pod)
			put_pod(w, pod);
		break;
	case CHANGE_CTR:
		ctr = cache_ctr_of(w->s->cache, change->number);
		if (ctr)
			put_ctr(w, ctr);
		break;
	case CHANGE_GONE:
		record_of_gone(&r, change->number);
		store_put(w, &r);
		break;
	}
}

static void settle_pod(struct pod *pod)
{
	pod->store.facts = true;
	pod->store.noted = false;
}

static void settle_ctr(struct ctr *ctr)
{
	ctr->store.facts = true;
	ctr->store.noted = false;
	ctr->store.missing = 0;
	ctr->pod->store.facts = true;
}

static void settle_changes(struct store *s)
{
	for (uint32_t i = 0; i < s->n_changes; i++) {
		const struct change *change = &s->changes[i];
		struct pod *pod =
			change->what == CHANGE_POD ? cache_pod_of(s->cache, change->number) : NULL;
		struct ctr *ctr =
			change->what == CHANGE_CTR ? cache_ctr_of(s->cache, change->number) : NULL;
		if (pod)
			settle_pod(pod);
		if (ctr)
			settle_ctr(ctr);
	}
	s->n_changes = s->n_new = 0;
}

static int write_changes(struct store *s, uint32_t *ret_n, struct err *err)
{
	struct writing w = {.s = s};
	for (uint32_t i = 0; i < s->n_changes; i++)
		put_change(&w, &s->changes[i]);
	put_moved(&w);
	put_kept(&w, false);
	int r = w.rc;
	if (r)
		reclog_drop(&s->log);
	r = r ? err_errno(err, r, "cannot write %s", s->log.path) : reclog_commit(&s->log, err);
	if (r)
		return r;
	settle_changes(s);
	*ret_n = w.n;
	return 0;
}

/* Writes pods and containers in the order of their arrival, which is that of their numbers. */
static void put_objects(struct writing *w)
{
	const struct pod *pod = cache_pods(w->s->cache);
	const struct ctr *ctr = cache_ctrs(w->s->cache);
	while (pod || ctr) {
		if (!ctr || (pod && pod->seq < ctr->seq)) {
			put_pod(w, pod);
			pod = pod->hh.next;
			continue;
		}
		put_facts(w, ctr);
		put_decision(w, ctr);
		ctr = ctr->next;
	}
}

static int write_anew(struct store *s, uint32_t *ret_n, struct err *err)
{
	struct writing w = {.s = s};
	int r = reclog_begin_anew(&s->log, err);
	if (r)
		return r;
	put_kept(&w, true);
	put_objects(&w);
	if (w.rc)
		reclog_drop(&s->log);
	r = w.rc ? err_errno(err, w.rc, "cannot write %s", s->log.path)
		 : reclog_commit(&s->log, err);
	if (r)
		return r;
	for (struct pod *pod = cache_pods(s->cache); pod; pod = pod->hh.next)
		settle_pod(pod);
	for (struct ctr *ctr = cache_ctrs(s->cache); ctr; ctr = ctr->next)
		settle_ctr(ctr);
	s->n_changes = s->n_new = 0;
	s->lost_track = false;
	*ret_n = w.n;
	return 0;
}

static int store_do_commit(struct store *s, bool anew, struct err *err)
{
	uint32_t n = 0;
	assert(s->cache); /* otherwise the log that is to be restored would be overwritten */
	uint64_t start = clock_ns();
	int r = anew ? write_anew(s, &n, err) : write_changes(s, &n, err);
	if (r == -EFBIG && !anew)
		r = write_anew(s, &n, err);
	else if (r && anew && s->n_changes && takes_notes(s)) /* the present log can be extended */
		r = write_changes(s, &n, err);
	s->stats.last_duration_ns = clock_ns() - start;
	if (r) {
		s->stats.failures++;
		(void)snprintf(s->stats.last_error, sizeof s->stats.last_error, "%s",
			       err_text(err, r));
		return r;
	}
	store_kept_settled(s);
	s->stats.records += n;
	s->stats.commits++;
	s->stats.last_commit_ns = clock_wall_ns();
	s->stats.last_commit_ms = clock_ms();
	return 0;
}

int store_commit(struct store *s, struct err *err)
{
	if (!store_pending(s))
		return 0;
	/* A log whose contents are new is written in pieces, without memory for all records. */
	bool is_new = s->n_new >= NEW_MANY && s->n_new >= cache_n_ctrs(s->cache);
	return store_do_commit(s, !reclog_is_open(&s->log) || s->lost_track || is_new, err);
}

int store_tidy(struct store *s, struct err *err)
{
	if (!s || s->abandoned || !reclog_is_long(&s->log))
		return 0;
	return store_do_commit(s, true, err);
}

void store_stats(const struct store *s, struct store_stats *ret)
{
	*ret = s ? s->stats : (struct store_stats){0};
	if (s)
		ret->file_bytes = s->log.size;
}
