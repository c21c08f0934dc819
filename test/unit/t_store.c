/* SPDX-License-Identifier: Apache-2.0 */
#include "t_store.h"
#include "core/nri-rpd/store/blobs.h"

/* ---- the directory --------------------------------------------------------------------------- */

static void directory_is_made(void **state)
{
	struct place *p = *state;
	struct stat st;
	struct store *s = open_at(p, STORE_FRESH);
	assert_int_equal(stat(p->dir, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0710);
	assert_true(place_has(p, "lock"));
	assert_false(place_has(p, "store.log"));
	assert_null(store_close(s));
	assert_null(store_close(NULL));
	assert_null(store_abandon(NULL));
}

static void directory_is_closed_to_others(void **state)
{
	struct place *p = *state;
	struct stat st;
	assert_int_equal(mkdir(p->dir, 0700), 0);
	assert_int_equal(chmod(p->dir, 01777), 0);
	(void)store_close(open_at(p, STORE_FRESH));
	assert_int_equal(stat(p->dir, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0710);
	assert_int_equal(chmod(p->dir, 0755), 0); /* more than needed, but harmless */
	(void)store_close(open_at(p, STORE_FRESH));
	assert_int_equal(stat(p->dir, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0755);
}

static void refuse(const struct place *p, const char *dir, int code, const char *why)
{
	struct store *s = NULL;
	struct store_opening opening;
	struct err err = ERR_INIT;
	struct store_params params = {.dir = dir, .boot_id = BOOT};
	assert_int_equal(store_open(&params, &s, &opening, &err), code);
	assert_null(s);
	if (!strstr(err.text, why))
		fail_msg("\"%s\" does not mention \"%s\"", err.text, why);
}

static void directory_that_is_none(void **state)
{
	struct place *p = *state;
	char other[256], slashes[512];
	_free_ char *endless = malloc(5000);
	(void)snprintf(other, sizeof other, "%s/other", p->top);
	assert_int_equal(mkdir(other, 0700), 0);
	assert_int_equal(symlink(other, p->dir), 0);
	refuse(p, p->dir, -ENOTDIR, "is a link");
	(void)snprintf(slashes, sizeof slashes, "%s//", p->dir);
	refuse(p, slashes, -ENOTDIR, "is a link");
	assert_int_equal(unlink(p->dir), 0);
	assert_int_equal(rmdir(other), 0);
	int fd = creat(p->dir, 0600);
	assert_true(fd >= 0);
	(void)close(fd);
	refuse(p, p->dir, -ENOTDIR, "Not a directory");
	assert_int_equal(unlink(p->dir), 0);
	memset(endless, 'a', 5000);
	endless[0] = '/';
	endless[4999] = '\0';
	refuse(p, endless, -ENAMETOOLONG, "too long");
	refuse(p, "/proc/nri-rp", -ENOENT, "/proc/nri-rp");
}

static void directory_of_somebody_else(void **state)
{
	struct place *p = *state;
	if (geteuid())
		skip();
	assert_int_equal(mkdir(p->dir, 0710), 0);
	assert_int_equal(chown(p->dir, 12345, 0), 0);
	refuse(p, p->dir, -EPERM, "is owned by user 12345");
}

static void lock_that_is_none(void **state)
{
	struct place *p = *state;
	char lock[512];
	assert_int_equal(mkdir(p->dir, 0710), 0);
	assert_int_equal(symlink("/dev/null", place_path(p, "lock", lock)), 0);
	refuse(p, p->dir, -ELOOP, "lock");
	assert_int_equal(unlink(lock), 0);
	assert_int_equal(mkdir(lock, 0700), 0);
	refuse(p, p->dir, -EISDIR, "lock");
	assert_int_equal(rmdir(lock), 0);
}

static void no_store_at_all(void **state)
{
	struct cache *c = new_cache();
	struct store_stats stats;
	const char *version;
	size_t len;
	fill(c, 1, 1);
	store_put_pod(NULL, cache_pods(c));
	store_put_ctr(NULL, cache_ctrs(c));
	store_del_ctr(NULL, cache_ctrs(c));
	store_del_pod(NULL, cache_pods(c));
	assert_int_equal(store_put_blob(NULL, "static", "1", "x", 1), 0);
	assert_int_equal(store_put_note(NULL, "policy", "x", 1), 0);
	assert_null(store_blob(NULL, "static", &version, &len));
	assert_null(store_note(NULL, "policy", &len));
	assert_false(store_pending(NULL));
	assert_int_equal(store_commit(NULL, NULL), 0);
	assert_int_equal(store_tidy(NULL, NULL), 0);
	store_stats(NULL, &stats);
	assert_int_equal(stats.commits, 0);
	(void)cache_free(c);
}

static void second_instance(void **state)
{
	struct place *p = *state;
	char pid[64];
	struct store *s = open_at(p, STORE_FRESH);
	(void)snprintf(pid, sizeof pid, "(pid %d)", (int)getpid());
	refuse(p, p->dir, -EBUSY, pid);
	write_file(p, "lock", "", 0600);
	refuse(p, p->dir, -EBUSY, "another instance uses");
	write_file(p, "lock", "99999999999999\n", 0600);
	refuse(p, p->dir, -EBUSY, "another instance uses");
	(void)store_close(s);
	(void)store_close(open_at(p, STORE_FRESH));
}

/* ---- there and back -------------------------------------------------------------------------- */

static void round_trip(void **state)
{
	struct place *p = *state;
	struct cache *c = make_store(p, 40);
	expect_restored(p, c);
	expect_restored(p, c); /* reading changes nothing */
	(void)cache_free(c);
}

static void restored_ones_are_marked(void **state)
{
	struct place *p = *state;
	struct cache *old = make_store(p, 3), *c = new_cache();
	struct store *s = open_at(p, STORE_FOUND);
	struct store_counts n = restore(s, c);
	assert_int_equal(n.pods, 3);
	assert_int_equal(n.ctrs, 6);
	assert_int_equal(n.decisions, 6);
	for (struct ctr *ctr = cache_ctrs(c); ctr; ctr = ctr->next)
		assert_true(ctr->flags & RP_CTR_RESTORED);
	/* a second time there is nothing left to restore */
	struct store_counts again = restore(s, c);
	assert_int_equal(again.pods, 0);
	(void)store_close(s);
	(void)cache_free(c);
	(void)cache_free(old);
}

static void empty_store(void **state)
{
	struct place *p = *state;
	struct cache *c = make_store(p, 0);
	expect_restored(p, c);
	(void)cache_free(c);
}

static void order_survives_generations(void **state)
{
	struct place *p = *state;
	struct cache *c = make_store(p, 5);
	for (unsigned generation = 1; generation < 6; generation++) {
		struct cache *next = new_cache();
		struct store *s = open_at(p, STORE_FOUND);
		(void)restore(s, next);
		same_cache(c, next);
		struct ctr *first = cache_ctrs(next);
		store_del_ctr(s, first);
		cache_del_ctr(next, first);
		struct pod *pod = add_pod(next, 100 + generation);
		struct ctr *ctr = add_ctr(next, pod, 200 + generation);
		store_put_pod(s, pod);
		store_put_ctr(s, ctr);
		commit(s);
		(void)store_close(s);
		(void)cache_free(c);
		c = next;
	}
	expect_restored(p, c);
	(void)cache_free(c);
}

/* ---- commits --------------------------------------------------------------------------------- */

static void changes(void **state)
{
	struct place *p = *state;
	struct running r = run(p, 10);
	struct ctr *a = cache_ctrs(r.cache), *b = a->next->next;
	uint64_t before = n_records(&r);
	decide(r.cache, a, 1, 7);
	assert_true(a->store.missing);
	store_put_ctr(r.store, a);
	store_put_ctr(r.store, a);
	assert_true(store_pending(r.store));
	commit(r.store);
	assert_false(a->store.missing);
	assert_true(n_records(&r) - before == 1); /* the decision, not the facts */

	store_put_ctr(r.store, b); /* an unchanged container writes no record */
	assert_false(store_pending(r.store));
	commit(r.store);
	assert_true(n_records(&r) - before == 1);

	a->store.facts = false;
	b->store.missing = TXN_CHANGED_OTHER;
	b->wanted.cpu_request = 12345;
	b->store.facts = false;
	store_put_ctr(r.store, a);
	store_put_ctr(r.store, b);
	struct pod *pod = cache_pods(r.cache);
	pod->stopped = !pod->stopped;
	pod->store.facts = false;
	store_put_pod(r.store, pod);
	commit(r.store);
	assert_true(a->store.facts && b->store.facts && !b->store.missing && pod->store.facts);
	assert_true(n_records(&r) - before == 5);
	stop(&r, p);
}

/* Checks that a container is stored with its pod, once, whether or not the pod was noted. */
static void pod_comes_with_it(void **state)
{
	struct place *p = *state;
	struct running r = run(p, 1);
	uint64_t before = n_records(&r);
	struct pod *pod = add_pod(r.cache, 50);
	store_put_ctr(r.store, add_ctr(r.cache, pod, 50));
	commit(r.store);
	assert_int_equal(n_records(&r) - before, 3);
	pod = add_pod(r.cache, 51);
	store_put_ctr(r.store, add_ctr(r.cache, pod, 51));
	store_put_ctr(r.store, add_ctr(r.cache, pod, 52));
	store_put_pod(r.store, pod);
	commit(r.store);
	assert_int_equal(n_records(&r) - before, 3 + 5);
	stop(&r, p);
}

/* ---- sets of many ---------------------------------------------------------------------------- */

static void move_all(struct running *r, const char *cpus, bool acked)
{
	struct txn *t = txn_begin(r->cache);
	for (struct ctr *ctr = cache_ctrs(r->cache); ctr; ctr = ctr->next)
		if (!ctr->cur.exclusive || !ctr->cur.exclusive->count)
			put_set(r->cache, &txn_stage(t, ctr)->cpus, cpus);
	txn_commit(t);
	for (const struct stage *s = txn_touched(t); s; s = s->link) {
		if (acked)
			ctr_ack(r->cache, s->ctr, ctr_diff(s->ctr) & (DIFF_CPUS | DIFF_MEMS));
		store_put_ctr(r->store, s->ctr);
	}
	txn_end(t);
}

/* Checks that a change of many containers is stored once for all that get the same values, and
 * so are their acknowledgements. */
static void many_are_moved_at_once(void **state)
{
	struct place *p = *state;
	struct running r = run(p, 100);
	struct store_stats stats;
	store_stats(r.store, &stats);
	uint64_t before = n_records(&r), bytes = stats.file_bytes;
	move_all(&r, "4-5000", false);
	commit(r.store);
	move_all(&r, "4-5001", true);
	commit(r.store);
	store_stats(r.store, &stats);
	/* The containers have one of two sets of memory nodes, or none. */
	assert_in_range(n_records(&r) - before, 2, 12);
	assert_in_range(stats.file_bytes - bytes, 1, 4096);
	decide(r.cache, cache_ctrs(r.cache), 0, 9); /* a later record of a single container */
	store_put_ctr(r.store, cache_ctrs(r.cache));
	commit(r.store);
	stop(&r, p);
}

/* Checks that a record for many containers cannot express acknowledged values that differ from
 * the decision. */
static void moved_and_not_told(void **state)
{
	struct place *p = *state;
	struct running r = run(p, 10);
	move_all(&r, "4-5000", true);
	commit(r.store);
	for (struct ctr *ctr = cache_ctrs(r.cache); ctr; ctr = ctr->next) {
		put_set(r.cache, &ctr->acked.cpus, "17");
		ctr->store.missing |= ctr_unstored_acked(DIFF_CPUS);
		store_put_ctr(r.store, ctr);
	}
	commit(r.store);
	move_all(&r, "4-5001", false);
	commit(r.store);
	stop(&r, p);
}

/* Checks that a container with exclusive CPUs keeps them when a record for many containers
 * changes their CPUs. The store itself never writes such a record. */
static void owners_keep_their_own(void **state)
{
	struct place *p = *state;
	struct running r = run(p, 3);
	struct ctr *owner = cache_ctrs(r.cache);
	while (owner && !(owner->cur.exclusive && owner->cur.exclusive->count))
		owner = owner->next;
	assert_non_null(owner);
	struct record m;
	struct cache *sets = r.cache;
	struct iset *set = NULL;
	put_set(sets, &set, "4000-4001");
	record_of_moved(&m, set, NULL, true, &owner->seq, 1);
	uint8_t bytes[256];
	assert_in_range(record_size(&m), 1, sizeof bytes);
	record_write(&m, bytes);
	assert_int_equal(reclog_put(&r.store->log, bytes, record_size(&m)), 0);
	assert_int_equal(reclog_commit(&r.store->log, NULL), 0);
	txn_put_set(sets, &set, NULL);
	(void)store_close(r.store);
	struct store *s = open_at(p, STORE_FOUND);
	struct cache *c = new_cache();
	assert_int_equal(restore(s, c).bad, 1);
	same_cache(r.cache, c);
	(void)store_close(s);
	(void)cache_free(c);
	(void)cache_free(r.cache);
}

static void removals(void **state)
{
	struct place *p = *state;
	struct running r = run(p, 10);
	struct ctr *ctr = cache_ctrs(r.cache);
	struct pod *pod = cache_pods(r.cache)->hh.next;
	store_put_ctr(r.store, ctr);
	store_del_ctr(r.store, ctr);
	cache_del_ctr(r.cache, ctr);
	store_del_pod(r.store, pod);
	cache_del_pod(r.cache, pod);
	/* A pod and its container are created and removed between two commits. */
	pod = add_pod(r.cache, 50);
	ctr = add_ctr(r.cache, pod, 50);
	store_put_pod(r.store, pod);
	store_put_ctr(r.store, ctr);
	store_del_pod(r.store, pod);
	cache_del_pod(r.cache, pod);
	/* A pod and its container return with the same ids. */
	pod = add_pod(r.cache, 50);
	ctr = add_ctr(r.cache, pod, 50);
	store_put_pod(r.store, pod);
	store_put_ctr(r.store, ctr);
	commit(r.store);
	stop(&r, p);
}

static void nothing_to_commit(void **state)
{
	struct place *p = *state;
	struct running r = run(p, 1);
	struct store_stats before, after;
	store_stats(r.store, &before);
	commit(r.store);
	store_stats(r.store, &after);
	assert_true(before.commits == 1 && after.commits == 1);
	assert_true(after.last_commit_ns > UINT64_C(1600000000000000000));
	assert_true(after.last_duration_ns > 0);
	assert_true(after.file_bytes > 0);
	stop(&r, p);
}

/* A start is stored in one small record: the container's facts are in the log already. */
static void start_of_a_container(void **state)
{
	struct place *p = *state;
	struct running r = run(p, 4);
	struct ctr *ctr = cache_ctrs(r.cache);
	struct store_stats before, after;
	store_stats(r.store, &before);
	ctr->pid = 4711;
	cache_set_created(ctr, UINT64_C(1700000009123456789));
	store_put_ctr(r.store, ctr);
	commit(r.store);
	store_stats(r.store, &after);
	assert_int_equal(after.records, before.records + 1);
	cache_set_created(ctr, UINT64_C(1700000009123456789));
	cache_set_created(ctr, 0);
	store_put_ctr(r.store, ctr);
	assert_false(store_pending(r.store));
	stop(&r, p);
}

static void many_changes(void **state)
{
	struct place *p = *state;
	struct running r = run(p, 600);
	for (unsigned round = 1; round < 4; round++) {
		unsigned i = 0;
		for (struct ctr *ctr = cache_ctrs(r.cache); ctr; ctr = ctr->next) {
			decide(r.cache, ctr, i++, round);
			store_put_ctr(r.store, ctr);
		}
		commit(r.store);
	}
	assert_false(store_pending(r.store));
	stop(&r, p);
}

static void churn_does_not_grow_the_log(void **state)
{
	struct place *p = *state;
	struct running r = run(p, 20);
	struct store_stats stats;
	uint64_t anew = 0, last = 0;
	for (unsigned i = 0; i < 3000; i++) {
		struct pod *pod = cache_pods(r.cache);
		store_del_pod(r.store, pod);
		cache_del_pod(r.cache, pod);
		pod = add_pod(r.cache, 100 + i);
		store_put_pod(r.store, pod);
		for (unsigned k = 0; k < 2; k++)
			store_put_ctr(r.store, add_ctr(r.cache, pod, 1000 + i * 2 + k));
		commit(r.store);
		assert_int_equal(store_tidy(r.store, NULL), 0);
		store_stats(r.store, &stats);
		anew += stats.file_bytes < last;
		last = stats.file_bytes;
		assert_in_range(last, 1, (1 << 20) + 8192);
	}
	assert_in_range(anew, 1, 10);
	stop(&r, p);
}

/* Checks that reaching the size limit within a commit moves all records to a new, shorter log. */
static void limit_of_the_log(void **state)
{
	struct place *p = *state;
	struct store_params params = {.dir = p->dir, .boot_id = BOOT, .size_max = 100000};
	struct running r = {open_with(&params, STORE_FRESH), new_cache()};
	struct store_stats stats;
	struct err err = ERR_INIT;
	(void)restore(r.store, r.cache);
	fill(r.cache, 20, 2);
	for (unsigned i = 0; i < 1000; i++) {
		decide(r.cache, cache_ctrs(r.cache), 0, i);
		store_put_ctr(r.store, cache_ctrs(r.cache));
		commit(r.store);
		store_stats(r.store, &stats);
		assert_in_range(stats.file_bytes, 1, 100000);
	}
	unsigned n = 100;
	do {
		struct pod *pod = add_pod(r.cache, n);
		store_put_ctr(r.store, add_ctr(r.cache, pod, n++));
	} while (store_commit(r.store, &err) == 0);
	assert_int_equal(err.code, -EFBIG);
	assert_true(store_pending(r.store));
	struct pod *last = cache_pod_of(r.cache, cache_ctrs(r.cache)->pod->handle);
	store_del_pod(r.store, last);
	cache_del_pod(r.cache, last);
	while (cache_n_pods(r.cache) > 20) {
		struct pod *pod = cache_pods(r.cache);
		store_del_pod(r.store, pod);
		cache_del_pod(r.cache, pod);
	}
	commit(r.store);
	stop(&r, p);
}

/* ---- blobs and notes ------------------------------------------------------------------------- */

static void expect_blob(const struct store *s, const char *name, const char *version,
			const char *text)
{
	const char *got_version = NULL;
	size_t len = 0;
	const char *data = store_blob(s, name, &got_version, &len);
	assert_non_null(data);
	assert_string_equal(got_version, version);
	assert_string_equal(data, text);
	assert_int_equal(len, strlen(text));
}

static void blobs(void **state)
{
	struct place *p = *state;
	struct running r = run(p, 1);
	const char *version;
	size_t len;
	assert_null(store_blob(r.store, "balloons", &version, &len));
	assert_null(store_note(r.store, "policy", &len));
	assert_int_equal(store_put_blob(r.store, "balloons", "1.0", "abc", 3), 0);
	assert_int_equal(store_put_blob(r.store, "static", "2", "xyz", 3), 0);
	assert_int_equal(store_put_note(r.store, STORE_NOTE_POLICY, "balloons", 8), 0);
	expect_blob(r.store, "balloons", "1.0", "abc");
	assert_true(store_pending(r.store));
	commit(r.store);
	assert_int_equal(store_put_blob(r.store, "balloons", "1.0", "abc", 3), 0);
	assert_false(store_pending(r.store)); /* an equal blob writes no record */
	assert_int_equal(store_put_blob(r.store, "balloons", "1.1", "abc", 3), 0);
	assert_true(store_pending(r.store));
	assert_int_equal(store_put_blob(r.store, "static", "2", NULL, 17), 0);
	assert_int_equal(store_put_blob(r.store, "unknown", "", NULL, 0), 0);
	assert_null(store_blob(r.store, "static", &version, &len));
	commit(r.store);
	assert_null(store_blob(r.store, "static", &version, &len));
	assert_int_equal(store_put_note(r.store, "balloons", "a note of a module's name", 25), 0);
	commit(r.store);
	(void)store_close(r.store);

	struct cache *c = new_cache();
	struct store *s = open_at(p, STORE_FOUND);
	struct store_counts n = restore(s, c);
	assert_int_equal(n.blobs, 3);
	expect_blob(s, "balloons", "1.1", "abc");
	assert_null(store_blob(s, "static", &version, &len));
	assert_string_equal(store_note(s, STORE_NOTE_POLICY, &len), "balloons");
	assert_int_equal(len, 8);
	assert_string_equal(store_note(s, "balloons", &len), "a note of a module's name");
	/* The blobs are copied into the new file as well. */
	commit(s);
	(void)store_close(s);
	s = open_at(p, STORE_FOUND);
	(void)cache_free(c);
	c = new_cache();
	n = restore(s, c);
	assert_int_equal(n.blobs, 3);
	(void)store_close(s);
	(void)cache_free(c);
	(void)cache_free(r.cache);
}

static void blob_limits(void **state)
{
	struct place *p = *state;
	struct running r = run(p, 0);
	char name[STORE_NAME_MAX + 2];
	_free_ char *large = calloc(1, STORE_BLOB_MAX + 1);
	memset(name, 'n', sizeof name);
	name[sizeof name - 1] = '\0';
	assert_int_equal(store_put_blob(r.store, name, "1", "x", 1), -E2BIG);
	assert_int_equal(store_put_blob(r.store, "", "1", "x", 1), -E2BIG);
	assert_int_equal(store_put_blob(r.store, "a", name, "x", 1), -E2BIG);
	assert_int_equal(store_put_note(r.store, "a", large, STORE_BLOB_MAX + 1), -E2BIG);
	assert_int_equal(store_put_note(r.store, "a", large, STORE_BLOB_MAX), 0);
	name[STORE_NAME_MAX] = '\0';
	assert_int_equal(store_put_note(r.store, name, "x", 1), 0);
	commit(r.store); /* grows for it */
	for (unsigned i = 2; i < STORE_BLOBS_MAX; i++) {
		(void)snprintf(name, sizeof name, "n%u", i);
		assert_int_equal(store_put_note(r.store, name, "x", 1), 0);
	}
	assert_int_equal(store_put_note(r.store, "more", "x", 1), -E2BIG);
	assert_int_equal(store_put_note(r.store, "n2", "y", 1), 0);
	commit(r.store);
	stop(&r, p);
}

/* ---- unusable files -------------------------------------------------------------------------- */

static void reset(void **state)
{
	struct place *p = *state;
	struct store_params params = {.dir = p->dir, .boot_id = BOOT, .reset = true};
	(void)cache_free(make_store(p, 2));
	(void)store_close(open_with(&params, STORE_RESET));
	assert_true(place_has(p, "store.old"));
	assert_false(place_has(p, "store.log"));
	(void)store_close(open_with(&params, STORE_FRESH));
	(void)cache_free(make_store(p, 2));
	(void)store_close(open_with(&params, STORE_RESET)); /* over the former one */
	(void)store_close(open_at(p, STORE_FRESH));
}

static void another_boot(void **state)
{
	struct place *p = *state;
	struct store_params params = {.dir = p->dir, .boot_id = "another"};
	struct store_counts n;
	(void)cache_free(make_store(p, 2));
	struct store *s = open_with(&params, STORE_OTHER_BOOT);
	struct cache *c = new_cache();
	n = restore(s, c);
	assert_int_equal(n.ctrs, 0);
	assert_true(place_has(p, "store.old"));
	(void)store_close(s);
	(void)cache_free(c);
}

static void bad_ones_are_few(void **state)
{
	struct place *p = *state;
	(void)store_close(open_at(p, STORE_FRESH));
	write_file(p, "store.bad.999", "the oldest", 0600);
	for (unsigned i = 1; i < 8; i++) {
		write_file(p, "store.log", "not a store", 0600);
		(void)store_close(open_at(p, STORE_DAMAGED));
		assert_int_equal(count_bad(p), i < STORE_BAD_KEEP ? i + 1 : STORE_BAD_KEEP);
		assert_int_equal(place_has(p, "store.bad.999"), i < STORE_BAD_KEEP);
	}
}

static void unsafe_files(void **state)
{
	struct place *p = *state;
	char path[512];
	(void)store_close(open_at(p, STORE_FRESH));
	(void)place_path(p, "store.log", path);
	assert_int_equal(symlink("/etc/passwd", path), 0);
	(void)store_close(open_at(p, STORE_UNSAFE));
	assert_int_equal(mkdir(path, 0700), 0);
	(void)store_close(open_at(p, STORE_UNSAFE));
	assert_int_equal(mkfifo(path, 0600), 0);
	(void)store_close(open_at(p, STORE_UNSAFE));
	write_file(p, "store.log", "", 0620);
	(void)store_close(open_at(p, STORE_UNSAFE));
	if (!geteuid()) {
		write_file(p, "store.log", "", 0600);
		assert_int_equal(chown(path, 12345, 0), 0);
		(void)store_close(open_at(p, STORE_UNSAFE));
	}
	write_file(p, "store.log", "", 0600);
	(void)store_close(open_at(p, STORE_DAMAGED));
	write_file(p, "store.log", "x", 0600);
	assert_int_equal(truncate(path, (off_t)STORE_SIZE_MAX + 1), 0);
	(void)store_close(open_at(p, STORE_DAMAGED));
}

static void stale_new_file(void **state)
{
	struct place *p = *state;
	struct cache *c = make_store(p, 3);
	write_file(p, "store.log.new", "half of somethi", 0600);
	(void)store_close(open_at(p, STORE_FOUND));
	assert_false(place_has(p, "store.log.new"));
	expect_restored(p, c);
	(void)cache_free(c);
}

static void cannot_be_renamed(void **state)
{
	struct place *p = *state;
	struct store_opening opening;
	struct store *s;
	char path[512];
	struct store_params params = {.dir = p->dir, .boot_id = BOOT, .reset = true};
	(void)cache_free(make_store(p, 1));
	assert_int_equal(mkdir(place_path(p, "store.old", path), 0700), 0);
	assert_int_equal(store_open(&params, &s, &opening, NULL), 0);
	assert_int_equal(opening.outcome, STORE_RESET);
	assert_non_null(strstr(opening.why, "cannot be renamed"));
	struct cache *c = new_cache();
	struct store_counts n = restore(s, c);
	assert_int_equal(n.ctrs, 0);
	commit(s);
	(void)store_close(s);
	expect_restored(p, c);
	(void)cache_free(c);
}

/* ---- threads and children -------------------------------------------------------------------- */

static void child_lets_go(void **state)
{
	struct place *p = *state;
	struct running r = run(p, 5);
	int status, ready[2];
	char c;
	assert_int_equal(store_put_blob(r.store, "abc", "1.0", "saved", 5), 0);
	commit(r.store);
	assert_int_equal(pipe(ready), 0);
	pid_t pid = fork();
	if (pid == 0) {
		struct err err = ERR_INIT;
		const char *version;
		size_t len = 0;
		struct store *s = store_abandon(r.store);
		const void *blob = store_blob(s, "abc", &version, &len);
		bool good =
			blob && len == 5 && !memcmp(blob, "saved", 5) && !strcmp(version, "1.0");
		/* A blob that the child puts stays in its memory: no commit is pending. */
		good = good && !store_put_blob(s, "abc", "1.0", "mine", 4) && !store_pending(s) &&
		       !store_commit(s, &err) && store_blob(s, "abc", &version, &len) && len == 4;
		(void)store_close(s);
		(void)cache_free(r.cache);
		if (!good || write(ready[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			(void)pause();
	}
	assert_int_equal(read(ready[0], &c, 1), 1);
	decide(r.cache, cache_ctrs(r.cache), 0, 77);
	store_put_ctr(r.store, cache_ctrs(r.cache));
	commit(r.store);
	/* the child, still there, holds no lock */
	const char *version;
	size_t len = 0;
	assert_non_null(store_blob(r.store, "abc", &version, &len));
	assert_int_equal(len, 5);
	stop(&r, p);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	(void)close(ready[0]);
	(void)close(ready[1]);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, place_setup, place_teardown)
	const struct CMUnitTest tests[] = {
		T(directory_is_made),
		T(directory_is_closed_to_others),
		T(directory_that_is_none),
		T(directory_of_somebody_else),
		T(lock_that_is_none),
		T(second_instance),
		T(no_store_at_all),
		T(round_trip),
		T(restored_ones_are_marked),
		T(empty_store),
		T(order_survives_generations),
		T(changes),
		T(pod_comes_with_it),
		T(many_are_moved_at_once),
		T(moved_and_not_told),
		T(owners_keep_their_own),
		T(removals),
		T(nothing_to_commit),
		T(start_of_a_container),
		T(many_changes),
		T(churn_does_not_grow_the_log),
		T(limit_of_the_log),
		T(blobs),
		T(blob_limits),
		T(reset),
		T(another_boot),
		T(bad_ones_are_few),
		T(unsafe_files),
		T(stale_new_file),
		T(cannot_be_renamed),
		T(child_lets_go),
	};
	log_init("t_store");
	log_set_level(LOG_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
