/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sets of many containers stored in one go: what is restored after a death right behind the commit is what was decided last, in
 * whatever order sets, whole decisions and complete commits came.
 */
#include "t_store.h"

#define CTRS 40u

/* Containers that all share, with all there is to be stored. */
static struct running sharers(const struct place *p)
{
	struct running r = run(p, STORE_WRITE_AUTO, CTRS / 2);
	for (struct ctr *ctr = cache_ctrs(r.cache); ctr; ctr = ctr->next) {
		txn_put_set(r.cache, &ctr->cur.exclusive, NULL);
		ctr->cur.state = RP_STATE_RUNNING;
		ctr->unstored = TXN_CHANGED_OTHER;
		store_put_ctr(r.store, ctr);
	}
	assert_int_equal(store_commit(r.store, NULL), 0);
	assert_int_equal(cache_n_ctrs(r.cache), CTRS);
	return r;
}

/* Decides CPUs for some containers, one transaction of the pipeline's kind: every `step`th from the one numbered `first`. */
static void move(const struct running *r, unsigned first, unsigned step, const char *cpus)
{
	struct txn *t = txn_begin(r->cache);
	unsigned i = 0;
	for (struct ctr *ctr = cache_ctrs(r->cache); ctr; ctr = ctr->next, i++)
		if (i >= first && (i - first) % step == 0)
			put_set(r->cache, &txn_stage(t, ctr)->cpus, cpus);
	txn_commit(t);
	for (const struct stage *s = txn_touched(t); s; s = s->link)
		store_put_ctr_now(r->store, s->ctr);
	txn_end(t);
}

/* The runtime has got it. */
static void acknowledge(const struct running *r)
{
	for (struct ctr *ctr = cache_ctrs(r->cache); ctr; ctr = ctr->next) {
		ctr_ack(r->cache, ctr, DIFF_CPUS);
		store_put_ctr(r->store, ctr);
	}
}

static void commit_urgent(const struct running *r)
{
	struct err err = ERR_INIT;
	assert_int_equal(store_commit_urgent(r->store, &err), 0);
}

static void commit_complete(const struct running *r)
{
	struct err err = ERR_INIT;
	assert_int_equal(store_commit(r->store, &err), 0);
	assert_false(store_pending(r->store));
}

/* It was decided, it is safe, and the runtime has got it. */
static void answer(const struct running *r, unsigned first, unsigned step, const char *cpus)
{
	move(r, first, step, cpus);
	commit_urgent(r);
	acknowledge(r);
}

static void decide_anew(const struct running *r, struct ctr *ctr, const char *cpus, int64_t shares)
{
	struct txn *t = txn_begin(r->cache);
	struct decision *d = txn_stage(t, ctr);
	put_set(r->cache, &d->cpus, cpus);
	d->shares = shares;
	txn_commit(t);
	txn_end(t);
}

static void assert_set(const struct iset *a, const struct iset *b)
{
	assert_int_equal(a != NULL, b != NULL);
	if (a)
		assert_string_equal(a->text, b->text);
}

/* What a daemon finds that starts after this one was killed here. All of ours have to be there as they are, and nobody else. */
static void die(struct running *r, const struct place *p)
{
	struct cache *again = new_cache();
	(void)store_close(r->store);
	struct store *s = open_at(p, STORE_FOUND);
	assert_int_equal(restore(s, again).bad, 0);
	assert_int_equal(cache_n_ctrs(again), cache_n_ctrs(r->cache));
	for (const struct ctr *ctr = cache_ctrs(r->cache); ctr; ctr = ctr->next) {
		const struct ctr *found = cache_ctr(again, ctr->id);
		assert_non_null(found);
		assert_set(found->cur.cpus, ctr->cur.cpus);
		assert_set(found->cur.mems, ctr->cur.mems);
		assert_true(found->cur.shares == ctr->cur.shares);
		assert_true(found->cur.needs.cpu_request == ctr->cur.needs.cpu_request);
		/* it is known to have what it has, or nothing is known */
		if (found->acked.cpus)
			assert_set(found->acked.cpus, ctr->acked.cpus);
	}
	(void)cache_free(again);
	(void)store_close(s);
	(void)cache_free(r->cache);
}

static void one_record_for_all(void **state)
{
	struct place *p = *state;
	struct running r = sharers(p);
	uint64_t before = n_records(&r);
	move(&r, 0, 1, "0-6");
	assert_true(store_pending(r.store));
	commit_urgent(&r);
	/* some have memory nodes 0-1, the others none: two records for forty containers */
	assert_int_equal(n_records(&r) - before, 2);
	assert_true(store_pending(r.store));
	acknowledge(&r);
	die(&r, p);
}

static void the_last_word_counts(void **state)
{
	struct place *p = *state;
	struct running r = sharers(p);
	answer(&r, 0, 1, "0-6");
	answer(&r, 0, 2, "0-7");
	move(&r, 1, 3, "0-6,9");
	commit_urgent(&r);
	die(&r, p);
}

/* 0-6, then 0-7, of which the runtime knows, then 0-6 again, of which it does not: that it has 0-6 must not be believed. */
static void there_and_back(void **state)
{
	struct place *p = *state;
	struct running r = sharers(p);
	answer(&r, 0, 1, "0-6");
	commit_complete(&r);
	answer(&r, 0, 1, "0-7");
	move(&r, 0, 1, "0-6");
	commit_urgent(&r);
	die(&r, p);
}

static void a_whole_decision_in_between(void **state)
{
	struct place *p = *state;
	struct running r = sharers(p);
	struct ctr *ctr = cache_ctrs(r.cache)->next;
	move(&r, 0, 1, "0-6");
	commit_urgent(&r);
	/* it alone gets others, and with them more shares: the older word on its CPUs has no say any more */
	decide_anew(&r, ctr, "20-23", 4711);
	store_put_ctr_now(r.store, ctr);
	commit_urgent(&r);
	die(&r, p);
}

static void a_complete_commit_ends_it(void **state)
{
	struct place *p = *state;
	struct running r = sharers(p);
	answer(&r, 0, 1, "0-6");
	commit_complete(&r);
	for (const struct ctr *ctr = cache_ctrs(r.cache); ctr; ctr = ctr->next)
		assert_int_equal(ctr->unstored, 0);
	/* were the records of the sets still there, they would go over this */
	struct ctr *ctr = cache_ctrs(r.cache);
	decide_anew(&r, ctr, "31", 99);
	store_put_ctr(r.store, ctr);
	commit_complete(&r);
	assert_non_null(ctr->acked.cpus);
	die(&r, p);
}

/* As when an owner's new set is acknowledged: no urgent commit comes for that. */
static void a_complete_commit_comes_first(void **state)
{
	struct place *p = *state;
	struct running r = sharers(p);
	move(&r, 0, CTRS, "0-6");
	assert_int_equal(r.store->moved.n, 1);
	commit_complete(&r);
	assert_int_equal(cache_ctrs(r.cache)->unstored, 0);
	die(&r, p);
}

static void who_goes_meanwhile(void **state)
{
	struct place *p = *state;
	struct running r = sharers(p);
	move(&r, 0, 1, "0-6");
	commit_urgent(&r);
	struct ctr *ctr = cache_ctrs(r.cache);
	store_del_ctr(r.store, ctr);
	cache_del_ctr(r.cache, ctr);
	commit_complete(&r);
	struct pod *pod = cache_pods(r.cache);
	move(&r, 0, 1, "0-5");
	commit_urgent(&r);
	store_del_pod(r.store, pod);
	cache_del_pod(r.cache, pod);
	commit_complete(&r);
	die(&r, p);
}

/* Before any commit has told of their sets: the one in the middle, the last one, and a whole pod. */
static void who_goes_before_the_commit(void **state)
{
	struct place *p = *state;
	struct running r = sharers(p);
	struct ctr *ctr = cache_ctrs(r.cache)->next->next, *last = cache_ctrs(r.cache);
	while (last->next)
		last = last->next;
	move(&r, 0, 1, "0-6");
	store_del_ctr(r.store, ctr);
	cache_del_ctr(r.cache, ctr);
	store_del_ctr(r.store, last);
	cache_del_ctr(r.cache, last);
	assert_int_equal(r.store->moved.n, CTRS - 2);
	struct pod *pod = cache_pods(r.cache);
	store_del_pod(r.store, pod);
	cache_del_pod(r.cache, pod);
	for (uint32_t i = 0; i < r.store->moved.n; i++)
		assert_non_null(cache_ctr(r.cache, r.store->moved.list[i]->id));
	commit_urgent(&r);
	commit_complete(&r); /* which tells that they have gone */
	die(&r, p);
}

/* Without end, only sets change: the file does not grow without end. */
static void not_for_ever(void **state)
{
	struct place *p = *state;
	struct running r = sharers(p);
	struct store_stats before, after;
	uint64_t first = r.store->moved.first;
	for (unsigned i = 0; i < 3 * MOVED_RECORDS_MAX; i++) {
		char cpus[16];
		(void)snprintf(cpus, sizeof cpus, "0-%u", i % 7 + 1);
		move(&r, 0, 1, cpus);
		commit_urgent(&r);
		if (i == MOVED_RECORDS_MAX)
			store_stats(r.store, &before);
		assert_in_range(r.store->moved.next - r.store->moved.first, 0,
				MOVED_RECORDS_MAX + MOVED_GROUPS_MAX);
	}
	store_stats(r.store, &after);
	assert_true(r.store->moved.first > first);
	assert_int_equal(after.used_bytes, before.used_bytes);
	die(&r, p);
}

/* Everybody gets something else. */
static void more_sets_than_records(void **state)
{
	struct place *p = *state;
	struct running r = sharers(p);
	struct pod *pod = add_pod(r.cache, 5000);
	for (unsigned i = 0; i < 2 * MOVED_GROUPS_MAX; i++)
		txn_put_set(r.cache, &add_ctr(r.cache, pod, 5000 + i)->cur.exclusive, NULL);
	for (struct ctr *ctr = cache_ctrs(r.cache); ctr; ctr = ctr->next)
		store_put_ctr(r.store, ctr);
	store_put_pod(r.store, pod);
	commit_complete(&r);
	move(&r, 0, 1, "0-6");
	commit_urgent(&r);
	for (unsigned i = 0; i < cache_n_ctrs(r.cache); i++) {
		char cpus[16];
		(void)snprintf(cpus, sizeof cpus, "%u", i);
		move(&r, i, 100000, cpus);
	}
	commit_urgent(&r);
	die(&r, p);
}

/* Such a thing is not written by us; a file may say so all the same. */
static void an_owner_keeps_its_own(void **state)
{
	struct place *p = *state;
	struct running r = sharers(p);
	struct ctr *ctr = cache_ctrs(r.cache);
	put_set(r.cache, &ctr->cur.cpus, "5,7");
	put_set(r.cache, &ctr->cur.exclusive, "5");
	ctr->unstored = TXN_CHANGED_OTHER;
	store_put_ctr(r.store, ctr);
	commit_complete(&r);
	put_set(r.cache, &ctr->cur.cpus, "7");
	ctr->unstored = DIFF_CPUS;
	store_put_ctr_now(r.store, ctr);
	commit_urgent(&r);
	(void)store_close(r.store);
	struct cache *again = new_cache();
	struct store *s = open_at(p, STORE_FOUND);
	assert_int_equal(restore(s, again).bad, 1);
	assert_string_equal(cache_ctr(again, ctr->id)->cur.cpus->text, "5,7");
	(void)cache_free(again);
	(void)store_close(s);
	(void)cache_free(r.cache);
}

/* One that shared, and was moved as such: what was said of it then is no error of what is stored. */
static void who_becomes_an_owner(void **state)
{
	struct place *p = *state;
	struct running r = sharers(p);
	struct ctr *ctr = cache_ctrs(r.cache);
	move(&r, 0, 1, "0-6");
	commit_urgent(&r);
	struct txn *t = txn_begin(r.cache);
	put_set(r.cache, &txn_stage(t, ctr)->cpus, "20-21");
	put_set(r.cache, &txn_stage(t, ctr)->exclusive, "20-21");
	txn_commit(t);
	txn_end(t);
	store_put_ctr_now(r.store, ctr);
	commit_urgent(&r);
	die(&r, p);
}

/* After a failure all is written anew. */
static void when_track_is_lost(void **state)
{
	struct place *p = *state;
	struct running r = sharers(p);
	move(&r, 0, 1, "0-6");
	commit_urgent(&r);
	move(&r, 0, 2, "0-5");
	r.store->lost_track = true;
	commit_urgent(&r);
	move(&r, 1, 2, "0-4");
	commit_urgent(&r);
	die(&r, p);
}

#define T(f) cmocka_unit_test_setup_teardown(f, place_setup, place_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(one_record_for_all),
		T(the_last_word_counts),
		T(there_and_back),
		T(a_whole_decision_in_between),
		T(a_complete_commit_ends_it),
		T(a_complete_commit_comes_first),
		T(who_goes_meanwhile),
		T(who_goes_before_the_commit),
		T(not_for_ever),
		T(more_sets_than_records),
		T(an_owner_keeps_its_own),
		T(who_becomes_an_owner),
		T(when_track_is_lost),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
