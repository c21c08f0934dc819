/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The journal: what an urgent commit has written is there after a death right behind it, whatever came before; and bytes that are no
 * finished batch, or not of the file's state, have no say.
 */
#include "t_store_state.h"

#include "core/util/crc32c.h"

#define JOURNAL "store.mdb.journal"
#define BATCHES 2u

static void no_sets_of_its_own(struct cache *c, struct ctr *ctr)
{
	struct txn *t = txn_begin(c);
	put_set(c, &txn_stage(t, ctr)->exclusive, "");
	txn_commit(t);
	txn_end(t);
}

/* Something of everything: each of these commits is a batch. */
static void batch(const struct running *r, unsigned number)
{
	struct pod *pod = add_pod(r->cache, 50 + number);
	struct ctr *ctr = add_ctr(r->cache, pod, 50 + number);
	char note[32];
	(void)snprintf(note, sizeof note, "after batch %u", number);
	store_put_pod(r->store, pod);
	store_put_ctr_now(r->store, ctr);
	assert_int_equal(store_put_note(r->store, "note", note, strlen(note)), 0);
	commit_urgent(r->store);
}

/* ---- one commit that writes nothing ---------------------------------------------------------------------------------- */

static void ends(struct running *r)
{
	(void)store_close(r->store);
	(void)cache_free(r->cache);
}

/* The number in the file stays as it is then, and so does that of the journal. */
static void nothing_to_write(void **state)
{
	struct place *p = *state;
	for (unsigned m = 0; m < 2; m++) {
		struct running r = run(p, modes[m], 2);
		store_put_ctr(r.store, cache_ctrs(r.cache)); /* it is stored as it is */
		assert_true(store_pending(r.store));
		commit(r.store);
		batch(&r, 0);
		expect_copy(p, r.cache, "after batch 0");
		commit(r.store);
		store_put_pod(r.store, cache_pods(r.cache));
		commit(r.store);
		batch(&r, 1);
		expect_copy(p, r.cache, "after batch 1");
		ends(&r);
		place_empty(p->dir);
	}
}

static void written_and_void(void **state)
{
	struct place *p = *state;
	struct running r = run(p, STORE_WRITE_AUTO, 2);
	assert_int_equal(r.store->journal.end, 0);
	batch(&r, 0);
	size_t first = r.store->journal.end;
	assert_true(first > 0);
	assert_true(store_pending(r.store));
	batch(&r, 1);
	assert_true(r.store->journal.end > first);
	commit(r.store);
	assert_int_equal(r.store->journal.end, 0);
	assert_false(store_pending(r.store));
	expect_copy(p, r.cache, "after batch 1");
	ends(&r);
}

/* ---- room ------------------------------------------------------------------------------------------------------------ */

static void it_is_full(void **state)
{
	struct place *p = *state;
	_free_ char *large = malloc(100000);
	memset(large, 'x', 100000);
	for (unsigned m = 0; m < 2; m++) {
		struct running r = run(p, modes[m], 2);
		unsigned n = 0;
		size_t before;
		do {
			before = r.store->journal.end;
			assert_int_equal(
				store_put_blob(r.store, "module", "1", large, 100000 - n++), 0);
			batch(&r, n);
			assert_true(n < 10);
		} while (r.store->journal.end > before);
		/* five go in, the sixth does not */
		assert_int_equal(n, 6);
		assert_int_equal(r.store->journal.end, 0);
		assert_false(store_pending(r.store));
		expect_copy(p, r.cache, "after batch 6");
		batch(&r, 0);
		expect_copy(p, r.cache, "after batch 0");
		ends(&r);
		place_empty(p->dir);
	}
}

static void a_record_larger_than_it(void **state)
{
	struct place *p = *state;
	struct running r = run(p, STORE_WRITE_AUTO, 2);
	_free_ char *large = calloc(1, JOURNAL_SIZE + 1);
	batch(&r, 0);
	memset(large, 'x', JOURNAL_SIZE);
	assert_int_equal(store_put_note(r.store, "large", large, JOURNAL_SIZE), 0);
	batch(&r, 1);
	assert_int_equal(r.store->journal.end, 0);
	expect_copy(p, r.cache, "after batch 1");
	(void)store_close(r.store);
	struct store *s = open_at(p, STORE_FOUND);
	struct cache *c = new_cache();
	size_t len = 0;
	(void)restore(s, c);
	const void *note = store_note(s, "large", &len);
	assert_int_equal(len, JOURNAL_SIZE);
	assert_memory_equal(note, large, JOURNAL_SIZE);
	(void)store_close(s);
	(void)cache_free(c);
	(void)cache_free(r.cache);
}

/* ---- bytes that are not what they were ------------------------------------------------------------------------------- */

struct small {
	struct state_text after[BATCHES + 1]; /* what is restored after so many batches */
	size_t ends[BATCHES + 1];
	struct bytes file, journal;
};

static void small_init(struct small *a, const struct place *p)
{
	struct running r = run(p, STORE_WRITE_PLAIN, 1);
	*a = (struct small){0};
	a->after[0] = state_of_copy(p);
	for (unsigned i = 1; i <= BATCHES; i++) {
		batch(&r, i);
		a->after[i] = state_of_copy(p);
		a->ends[i] = r.store->journal.end;
	}
	a->file = read_file(p, "store.mdb");
	a->journal = read_file(p, JOURNAL);
	assert_int_equal(a->journal.len, JOURNAL_SIZE);
	a->journal.len = a->ends[BATCHES]; /* the rest is room */
	ends(&r);
}

static void small_fini(struct small *a)
{
	for (unsigned i = 0; i <= BATCHES; i++)
		free(a->after[i].text);
	free(a->file.data);
	free(a->journal.data);
}

static unsigned batches_before(const struct small *a, size_t at)
{
	unsigned n = 0;
	while (n < BATCHES && a->ends[n + 1] <= at)
		n++;
	return n;
}

/* As a start finds it, without the child that a start has read it first: there are thousands of these. */
static struct state_text state_here(const struct place *p)
{
	char path[512], hidden[512];
	struct probe_result found;
	(void)place_path(p, "hidden", hidden);
	assert_int_equal(rename(place_path(p, "store.mdb", path), hidden), 0);
	struct store *s = open_at(p, STORE_FRESH);
	struct cache *c = new_cache();
	assert_int_equal(rename(hidden, path), 0);
	store_check_file(path, BOOT, &found);
	assert_int_equal(found.outcome, STORE_FOUND);
	assert_int_equal(found.n_bad, 0);
	s->found = true;
	s->found_journal = found.journal;
	assert_int_equal(restore(s, c).bad, 0);
	struct state_text t = text_of(c, s);
	(void)store_close(s);
	(void)cache_free(c);
	return t;
}

static void expect_batches(const struct small *a, const struct place *p, const void *journal,
			   size_t len, unsigned n)
{
	write_file(p, JOURNAL, journal, len);
	struct state_text got = state_here(p);
	if (!same_text(&got, &a->after[n]))
		fail_msg("with %zu bytes of the journal it is not the state after batch %u", len,
			 n);
	free(got.text);
}

static void every_prefix(void **state)
{
	struct place *p = *state;
	struct small a;
	small_init(&a, p);
	for (size_t len = 0; len <= a.journal.len; len++)
		expect_batches(&a, p, a.journal.data, len, batches_before(&a, len));
	small_fini(&a);
}

/* In front of it what stood there before has its end cut off: neither is that a batch. */
static void every_prefix_over_an_older_one(void **state)
{
	struct place *p = *state;
	struct small a;
	small_init(&a, p);
	_free_ uint8_t *mixed = malloc(a.journal.len);
	for (size_t len = 0; len < a.journal.len; len++) {
		for (size_t i = 0; i < a.journal.len; i++)
			mixed[i] = i < len ? a.journal.data[i] : (uint8_t)~a.journal.data[i];
		expect_batches(&a, p, mixed, a.journal.len, batches_before(&a, len));
	}
	small_fini(&a);
}

static void every_flipped_bit(void **state)
{
	struct place *p = *state;
	struct small a;
	small_init(&a, p);
	for (size_t at = 0; at < a.journal.len; at++) {
		uint8_t was = a.journal.data[at];
		a.journal.data[at] = was ^ (uint8_t)(1u << at % 8);
		expect_batches(&a, p, a.journal.data, a.journal.len, batches_before(&a, at));
		a.journal.data[at] = (uint8_t)~was;
		expect_batches(&a, p, a.journal.data, a.journal.len, batches_before(&a, at));
		a.journal.data[at] = was;
	}
	expect_batches(&a, p, a.journal.data, a.journal.len, BATCHES);
	small_fini(&a);
}

/* A batch as a program with an error would write it, with the right number and sum. */
static void forge(const struct place *p, uint64_t number, const void *entries, uint32_t size)
{
	uint8_t bytes[256];
	uint32_t sum;
	assert_true(16 + size <= sizeof bytes);
	memcpy(bytes + 4, &size, 4);
	memcpy(bytes + 8, &number, 8);
	memcpy(bytes + 16, entries, size);
	sum = crc32c(0, bytes + 4, 12 + size);
	memcpy(bytes, &sum, 4);
	write_file(p, JOURNAL, bytes, 16 + size);
}

static void entries_that_are_none(void **state)
{
	static const struct {
		uint32_t size;
		uint32_t entries[4];
		int rc;
		uint32_t n;
	} cases[] = {
		{0, {0}, 0, 0},
		{8, {0, 0}, 0, 1},
		{4, {0}, EBADMSG, 0},
		{8, {1, 0}, EBADMSG, 0},
		{8, {0, 1}, EBADMSG, 0},
		{12, {4, 1}, EBADMSG, 0},
		{12, {0xffffffff, 4}, EBADMSG, 0},
		{12, {4, 0xffffffff}, EBADMSG, 0},
		{12, {0xfffffffc, 8}, EBADMSG, 0},
		{12, {4, 0, 7}, 0, 1},
		{12, {0, 0, 7}, EBADMSG, 0},
		{16, {0, 0, 0, 0}, 0, 1}, /* of one key the last */
	};
	struct place *p = *state;
	struct journal_reader reader;
	char path[512];
	assert_int_equal(mkdir(p->dir, 0700), 0);
	for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
		forge(p, 7, cases[i].entries, cases[i].size);
		int rc = store_journal_read(&reader, place_path(p, "store.mdb", path), 7);
		if (rc != cases[i].rc || reader.n != cases[i].n)
			fail_msg("case %u: %d, %u entries", i, rc, reader.n);
		store_journal_forget(&reader);
		assert_int_equal(store_journal_read(&reader, path, 8), 0);
		assert_int_equal(reader.n, 0);
		store_journal_forget(&reader);
	}
}

/* Records in it that are none are left out one by one, as those of the file are; keys of no kind as well. */
static void records_that_are_none(void **state)
{
	static const struct __attribute__((packed)) {
		uint32_t value_len, key_len;
		char bytes[12];
		uint32_t value_len2, key_len2;
		char bytes2[12];
	} entries = {2, 10, "o\0\0\0\0\0\0\1cxx", 11, 1, "zvvvvvvvvvv"};
	struct place *p = *state;
	struct running r = run(p, STORE_WRITE_AUTO, 2);
	uint64_t number = r.store->journal.number;
	(void)store_close(r.store);
	forge(p, number, &entries, sizeof entries);
	struct store *s = open_at(p, STORE_FOUND);
	struct cache *c = new_cache();
	assert_int_equal(restore(s, c).bad, 2);
	(void)store_close(s);
	(void)cache_free(c);
	/* and what is no batch at all is damage */
	forge(p, number, "\1", 1);
	s = open_at(p, STORE_DAMAGED);
	(void)store_close(s);
	(void)cache_free(r.cache);
}

/* ---- of another number ----------------------------------------------------------------------------------------------- */

static void of_before_a_complete_commit(void **state)
{
	struct place *p = *state;
	for (unsigned m = 0; m < 2; m++) {
		struct running r = run(p, modes[m], 2);
		batch(&r, 0);
		struct bytes old = read_file(p, JOURNAL);
		/* what it says of this one is not so any more */
		struct ctr *ctr = ctr_with(r.cache, 50);
		store_del_ctr(r.store, ctr);
		cache_del_ctr(r.cache, ctr);
		commit(r.store);
		(void)store_close(r.store);
		write_file(p, JOURNAL, old.data, old.len);
		expect_copy(p, r.cache, "after batch 0");
		(void)cache_free(r.cache);
		free(old.data);
		place_empty(p->dir);
	}
}

static void of_another_file(void **state)
{
	struct place *p = *state;
	struct running r = run(p, STORE_WRITE_AUTO, 2);
	batch(&r, 0);
	struct bytes old = read_file(p, JOURNAL);
	r.store->lost_track = true; /* and the next one is a new file */
	struct ctr *ctr = ctr_with(r.cache, 50);
	store_del_ctr(r.store, ctr);
	cache_del_ctr(r.cache, ctr);
	commit(r.store);
	(void)store_close(r.store);
	write_file(p, JOURNAL, old.data, old.len);
	expect_copy(p, r.cache, "after batch 0");
	char path[512];
	assert_int_equal(unlink(place_path(p, JOURNAL, path)), 0);
	expect_copy(p, r.cache, "after batch 0"); /* as between the two renames */
	(void)cache_free(r.cache);
	free(old.data);
}

/* Where LMDB 0.9 keeps a meta page's transaction number. */
#define PAGE 4096u
#define TXNID_AT 144u

static uint64_t txnid(const struct bytes *file, unsigned page)
{
	uint64_t number;
	memcpy(&number, file->data + (size_t)page * PAGE + TXNID_AT, sizeof number);
	return number;
}

static void set_txnid(struct bytes *file, unsigned page, uint64_t number)
{
	memcpy(file->data + (size_t)page * PAGE + TXNID_AT, &number, sizeof number);
}

/* One of the meta pages of a state at rest is lost: the journal goes with either. */
static void either_meta_page(void **state)
{
	struct place *p = *state;
	for (unsigned m = 0; m < 2; m++) {
		struct running r = run(p, modes[m], 2);
		batch(&r, 0);
		commit(r.store);
		batch(&r, 1);
		(void)store_close(r.store);
		struct bytes file = read_file(p, "store.mdb");
		for (unsigned lost = 0; lost < 2; lost++) {
			struct bytes damaged = copy_bytes(&file);
			memcpy(damaged.data + (size_t)lost * PAGE, file.data + (size_t)!lost * PAGE,
			       PAGE);
			write_file(p, "store.mdb", damaged.data, damaged.len);
			expect_copy(p, r.cache, "after batch 1");
			free(damaged.data);
		}
		free(file.data);
		(void)cache_free(r.cache);
		place_empty(p->dir);
	}
}

/* A complete commit consists of two: death in the meta page of the first leaves what was before, with the journal … */
static void torn_first_half(void **state)
{
	struct place *p = *state;
	struct running r = run(p, STORE_WRITE_MAP, 2);
	batch(&r, 0);
	commit(r.store);
	batch(&r, 1);
	(void)store_close(r.store);
	struct bytes file = read_file(p, "store.mdb");
	unsigned older = txnid(&file, 0) > txnid(&file, 1);
	set_txnid(&file, older, txnid(&file, !older) + 1);
	write_file(p, "store.mdb", file.data, file.len);
	expect_copy(p, r.cache, "after batch 1");
	free(file.data);
	(void)cache_free(r.cache);
}

/* … and after the first, or in the meta page of the second, what is complete, without it. */
static void torn_second_half(void **state)
{
	struct place *p = *state;
	for (unsigned torn = 0; torn < 2; torn++) {
		struct running r = run(p, STORE_WRITE_MAP, 2);
		batch(&r, 0);
		struct bytes before = read_file(p, "store.mdb"), old = read_file(p, JOURNAL);
		struct ctr *ctr = ctr_with(r.cache, 50);
		store_del_ctr(r.store, ctr);
		cache_del_ctr(r.cache, ctr);
		commit(r.store);
		(void)store_close(r.store);
		struct bytes file = read_file(p, "store.mdb");
		unsigned second = txnid(&file, 1) > txnid(&file, 0);
		uint64_t number = txnid(&file, second);
		/* that page as it was before the commit */
		memcpy(file.data + (size_t)second * PAGE, before.data + (size_t)second * PAGE,
		       PAGE);
		assert_int_equal(txnid(&file, second) + 2, number);
		if (torn)
			set_txnid(&file, second, number);
		write_file(p, "store.mdb", file.data, file.len);
		write_file(p, JOURNAL, old.data, old.len);
		expect_copy(p, r.cache, "after batch 0");
		free(before.data);
		free(old.data);
		free(file.data);
		(void)cache_free(r.cache);
		place_empty(p->dir);
	}
}

/* ---- what is gone ---------------------------------------------------------------------------------------------------- */

static bool copy_has_blob(const struct place *p)
{
	struct place copy = copy_of(p);
	struct store *s = open_at(&copy, STORE_FOUND);
	struct cache *c = new_cache();
	const char *version;
	size_t len;
	(void)restore(s, c);
	bool has = store_blob(s, "module", &version, &len) != NULL;
	(void)store_close(s);
	(void)cache_free(c);
	place_fini(&copy);
	return has;
}

/* Number 1 owns a CPU: that it has given it up may not wait. */
static void a_removal_hides_the_record(void **state)
{
	struct place *p = *state;
	for (unsigned m = 0; m < 2; m++) {
		struct running r = run(p, modes[m], 2);
		struct ctr *owner = ctr_with(r.cache, 1);
		assert_true(owner->stored_exclusive);
		store_del_ctr(r.store, owner);
		cache_del_ctr(r.cache, owner);
		assert_int_equal(store_put_blob(r.store, "module", "1", "blob", 4), 0);
		commit_urgent(r.store);
		assert_true(r.store->journal.end > 0);
		expect_copy(p, r.cache, NULL);
		assert_true(copy_has_blob(p));
		/* of what the journal has, and then of what the file has */
		assert_int_equal(store_put_blob(r.store, "module", "", NULL, 0), 0);
		commit_urgent(r.store);
		expect_copy(p, r.cache, NULL);
		assert_false(copy_has_blob(p));
		batch(&r, 0);
		commit(r.store);
		assert_int_equal(store_put_note(r.store, "note", NULL, 0), 0);
		commit_urgent(r.store);
		expect_copy(p, r.cache, NULL);
		commit(r.store);
		expect_copy(p, r.cache, NULL);
		assert_false(copy_has_blob(p));
		ends(&r);
		place_empty(p->dir);
	}
}

/* Removed in the journal, and there again by it. */
static void gone_and_back(void **state)
{
	struct place *p = *state;
	struct running r = run(p, STORE_WRITE_AUTO, 2);
	batch(&r, 0);
	commit(r.store);
	assert_int_equal(store_put_note(r.store, "note", NULL, 0), 0);
	commit_urgent(r.store);
	batch(&r, 1);
	expect_copy(p, r.cache, "after batch 1");
	struct ctr *ctr = ctr_with(r.cache, 1);
	decide(r.cache, ctr, 1, 3);
	store_put_ctr_now(r.store, ctr);
	commit_urgent(r.store);
	/* no owner any more, and then gone, which may wait then */
	no_sets_of_its_own(r.cache, ctr);
	store_put_ctr(r.store, ctr);
	commit_urgent(r.store);
	expect_copy(p, r.cache, "after batch 1");
	store_del_ctr(r.store, ctr);
	cache_del_ctr(r.cache, ctr);
	commit(r.store);
	expect_copy(p, r.cache, "after batch 1");
	ends(&r);
}

#define T(f) cmocka_unit_test_setup_teardown(f, place_setup, place_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(nothing_to_write),
		T(written_and_void),
		T(it_is_full),
		T(a_record_larger_than_it),
		T(every_prefix),
		T(every_prefix_over_an_older_one),
		T(every_flipped_bit),
		T(entries_that_are_none),
		T(records_that_are_none),
		T(of_before_a_complete_commit),
		T(of_another_file),
		T(either_meta_page),
		T(torn_first_half),
		T(torn_second_half),
		T(a_removal_hides_the_record),
		T(gone_and_back),
	};
	log_init("t_store_journal");
	log_set_level(LOG_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
