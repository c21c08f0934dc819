/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random work on a store, and a look behind every commit, as if the process had died there: all
 * that was noted is there as it is.
 *
 * NRI_RP_TEST_SEED repeats one that failed, NRI_RP_TEST_STEPS sets how many steps there are.
 */
#include "t_store.h"
#include "core/nri-rpd/store/blobs.h"

#define STEPS 6000u
#define CTRS_MAX 24u
#define SLOTS 64u /* CPU 200 + slot may be an exclusive CPU of a container */
#define NAMES 6u

struct model {
	const struct place *p;
	struct running r;
	unsigned next; /* number of the next object */
	unsigned seed;
	unsigned commits, tidied, deaths;
	char kept[2][NAMES][64]; /* blobs, notes; "": none */
};

static unsigned draw(struct model *m, unsigned n)
{
	return (unsigned)rand_r(&m->seed) % n;
}

/* ---- state after a kill ---------------------------------------------------------------------- */

static void check_kept(const struct model *m, const struct store *s)
{
	for (unsigned i = 0; i < 2 * NAMES; i++) {
		const char *want = m->kept[i % 2][i / 2], *version, *got;
		char name[16];
		size_t len = 0;
		(void)snprintf(name, sizeof name, "name%u", i / 2);
		got = i % 2 ? store_note(s, name, &len) : store_blob(s, name, &version, &len);
		assert_int_equal(got != NULL, *want != '\0');
		if (got)
			assert_string_equal(got, want);
	}
}

static void look(const struct model *m)
{
	const struct store_params params = {.dir = m->p->dir, .boot_id = BOOT, .read_only = true};
	struct store *s = open_with(&params, STORE_FOUND);
	struct cache *found = new_cache();
	assert_int_equal(restore(s, found).bad, 0);
	check_kept(m, s);
	same_cache(m->r.cache, found);
	(void)store_close(s);
	(void)cache_free(found);
}

/* ---- steps ----------------------------------------------------------------------------------- */

static struct ctr *some_ctr(struct model *m)
{
	unsigned n = cache_n_ctrs(m->r.cache), i = n ? draw(m, n) : 0;
	struct ctr *ctr = cache_ctrs(m->r.cache);
	while (ctr && i--)
		ctr = ctr->next;
	return ctr;
}

static struct pod *some_pod(struct model *m)
{
	unsigned n = cache_n_pods(m->r.cache), i = n ? draw(m, n) : 0;
	struct pod *pod = cache_pods(m->r.cache);
	while (pod && i--)
		pod = pod->hh.next;
	return pod;
}

static void decide_something(struct model *m, struct ctr *ctr)
{
	char own[16], cpus[32];
	struct cache *c = m->r.cache;
	unsigned cpu = 200 + draw(m, SLOTS);
	bool owns = draw(m, 3) == 0 && (!c->cpu_owner[cpu] || c->cpu_owner[cpu] == ctr->handle);
	struct txn *t = txn_begin(c);
	struct decision *d = txn_stage(t, ctr);
	(void)snprintf(own, sizeof own, "%u", cpu);
	(void)snprintf(cpus, sizeof cpus, "%u-%u,%s", draw(m, 9), 10 + draw(m, 9), own);
	put_set(c, &d->exclusive, owns ? own : "");
	put_set(c, &d->cpus, cpus);
	put_set(c, &d->mems, draw(m, 2) ? "0" : "0-1");
	d->shares = 2 + draw(m, 1000);
	d->state = draw(m, 4);
	txn_put_blob(&d->private_data, draw(m, 2) ? blob_new("\0private", 8) : NULL);
	txn_commit(t);
	txn_end(t);
}

static void come(struct model *m)
{
	struct pod *pod = draw(m, 3) ? NULL : some_pod(m);
	if (cache_n_ctrs(m->r.cache) >= CTRS_MAX)
		return;
	if (!pod) {
		pod = add_pod(m->r.cache, m->next++);
		store_put_pod(m->r.store, pod);
	}
	struct ctr *ctr = add_ctr(m->r.cache, pod, m->next++);
	decide_something(m, ctr);
	store_put_ctr(m->r.store, ctr);
}

static void decide_anew(struct model *m)
{
	struct ctr *ctr = some_ctr(m);
	if (!ctr)
		return;
	decide_something(m, ctr);
	store_put_ctr(m->r.store, ctr);
}

/* Gives other CPUs to some or all containers without exclusive CPUs. */
static void move(struct model *m)
{
	char cpus[32];
	struct cache *c = m->r.cache;
	unsigned some = 1 + draw(m, 3);
	struct txn *t = txn_begin(c);
	(void)snprintf(cpus, sizeof cpus, "%u-%u", draw(m, 20), 20 + draw(m, 20));
	for (struct ctr *ctr = cache_ctrs(c); ctr; ctr = ctr->next)
		if ((!ctr->cur.exclusive || !ctr->cur.exclusive->count) && draw(m, some) == 0)
			put_set(c, &txn_stage(t, ctr)->cpus, cpus);
	txn_commit(t);
	for (const struct stage *s = txn_touched(t); s; s = s->link)
		if (s->ctr->store.missing || !s->ctr->store.facts)
			store_put_ctr(m->r.store, s->ctr);
	txn_end(t);
}

static void acknowledge(struct model *m)
{
	struct ctr *ctr = some_ctr(m);
	if (!ctr)
		return;
	ctr_ack(m->r.cache, ctr, ctr_diff(ctr));
	store_put_ctr(m->r.store, ctr);
}

static void other_facts(struct model *m)
{
	struct ctr *ctr = some_ctr(m);
	struct pod *pod = some_pod(m);
	if (ctr && draw(m, 2)) {
		ctr->oom_score_adj = (int)draw(m, 1000);
		ctr->store.facts = false;
		store_put_ctr(m->r.store, ctr);
	} else if (pod) {
		pod->stopped = !pod->stopped;
		pod->store.facts = false;
		store_put_pod(m->r.store, pod);
	}
}

static void nothing_new(struct model *m)
{
	if (cache_ctrs(m->r.cache))
		store_put_ctr(m->r.store, cache_ctrs(m->r.cache));
	if (cache_pods(m->r.cache))
		store_put_pod(m->r.store, cache_pods(m->r.cache));
}

static void go(struct model *m)
{
	struct ctr *ctr = some_ctr(m);
	struct pod *pod = some_pod(m);
	if (ctr && draw(m, 3)) {
		store_del_ctr(m->r.store, ctr);
		cache_del_ctr(m->r.cache, ctr);
	} else if (pod) {
		store_del_pod(m->r.store, pod);
		cache_del_pod(m->r.cache, pod);
	}
}

static void keep(struct model *m)
{
	unsigned i = draw(m, NAMES), note = draw(m, 2);
	char name[16], *text = m->kept[note][i];
	(void)snprintf(name, sizeof name, "name%u", i);
	(void)snprintf(text, sizeof m->kept[note][i], "text %u", draw(m, 5));
	if (draw(m, 3) == 0)
		*text = '\0';
	if (note)
		assert_int_equal(store_put_note(m->r.store, name, text, strlen(text)), 0);
	else
		assert_int_equal(store_put_blob(m->r.store, name, "1", text, strlen(text)), 0);
}

static void commit_some(struct model *m)
{
	commit(m->r.store);
	look(m);
	m->commits++;
}

/* Ends the process and starts the next one. */
static void die(struct model *m)
{
	commit_some(m);
	(void)store_close(m->r.store);
	(void)cache_free(m->r.cache);
	m->r.store = open_at(m->p, STORE_FOUND);
	m->r.cache = new_cache();
	assert_int_equal(restore(m->r.store, m->r.cache).bad, 0);
	m->deaths++;
}

static void tidy(struct model *m)
{
	struct store_stats before, after;
	store_stats(m->r.store, &before);
	assert_int_equal(store_tidy(m->r.store, NULL), 0);
	store_stats(m->r.store, &after);
	if (after.file_bytes < before.file_bytes)
		look(m);
	m->tidied += after.file_bytes < before.file_bytes;
}

static void step(struct model *m)
{
	static void (*const often[])(struct model * m) = {
		come,	     come,	  decide_anew, decide_anew, move, move, acknowledge,
		acknowledge, other_facts, go,	       go,	    keep, keep, nothing_new,
	};
	unsigned what = draw(m, 1000);
	if (what < 300)
		commit_some(m);
	else if (what < 303)
		die(m);
	else if (what < 330)
		tidy(m);
	else if (what < 335)
		m->r.store->lost_track = true;
	else
		often[draw(m, sizeof often / sizeof *often)](m);
}

static unsigned number_of(const char *name, unsigned usual)
{
	const char *text = getenv(name);
	return text ? (unsigned)strtoul(text, NULL, 10) : usual;
}

static void random_work(const struct place *p, size_t size_max, unsigned seed)
{
	const struct store_params params = {.dir = p->dir, .boot_id = BOOT, .size_max = size_max};
	struct model *m = calloc(1, sizeof *m);
	m->p = p;
	m->seed = number_of("NRI_RP_TEST_SEED", seed);
	m->r = (struct running){open_with(&params, STORE_FRESH), new_cache()};
	(void)restore(m->r.store, m->r.cache);
	print_message("seed %u\n", m->seed);
	for (unsigned i = number_of("NRI_RP_TEST_STEPS", STEPS); i; i--)
		step(m);
	print_message("%u commits, %u logs that had grown long, %u new processes\n", m->commits,
		      m->tidied, m->deaths);
	assert_true(m->commits > 0);
	commit(m->r.store);
	look(m);
	(void)store_close(m->r.store);
	(void)cache_free(m->r.cache);
	free(m);
}

static void as_long_as_it_likes(void **state)
{
	random_work(*state, 0, 1);
}

/* Checks a log that reaches its size limit every few commits. */
static void little_room(void **state)
{
	random_work(*state, 60000, 2);
}

#define T(f) cmocka_unit_test_setup_teardown(f, place_setup, place_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(as_long_as_it_likes),
		T(little_room),
	};
	log_init("t_store_model");
	log_set_level(LOG_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
