/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random work on a store, and a death behind every commit. A complete commit has all there is. An urgent one has what was noted for it,
 * blobs and notes, and that owners of CPUs have gone; of anything else it has what an earlier commit had, or what is now.
 *
 * NRI_RP_TEST_SEED repeats one that failed, NRI_RP_TEST_STEPS sets how many steps each kind of file gets.
 */
#include "t_store_state.h"

#define STEPS 2000u
#define CTRS_MAX 24u
#define SLOTS 64u /* CPU 200 + slot may be somebody's own */
#define NAMES 6u
#define KNOWN_MAX 256u

/* What was written of an object, by the last commit that had to. */
struct known {
	char id[80];
	bool pod;
	bool gone; /* the next complete commit has to know */
	bool must_be_gone; /* the next urgent one, too */
	bool urgent; /* it was noted for the next urgent commit */
	bool written;
	struct state_text full, plain; /* without which sets the runtime has */
};

struct model {
	const struct place *p;
	struct running r;
	int mode;
	struct known known[KNOWN_MAX];
	unsigned n;
	unsigned next; /* number of the next object */
	unsigned seed;
	unsigned journaled, complete, deaths; /* commits */
	char kept[2][NAMES][64]; /* blobs, notes; "": none */
};

static unsigned draw(struct model *m, unsigned n)
{
	return (unsigned)rand_r(&m->seed) % n;
}

/* ---- what an object is ------------------------------------------------------------------------------------------------ */

static struct state_text taken(struct buf *b)
{
	struct state_text t = {malloc(buf_len(b) + 1), buf_len(b)};
	memcpy(t.text, buf_bytes(b), t.len);
	buf_fini(b);
	return t;
}

static struct state_text pod_text(const struct pod *pod)
{
	struct buf b = BUF_INIT;
	struct record r;
	record_of_pod(&r, pod);
	add_record(&b, &r);
	return taken(&b);
}

static struct state_text ctr_text(struct cache *c, const struct ctr *ctr, bool plain)
{
	struct buf b = BUF_INIT;
	struct record r;
	struct ctr copy = *ctr;
	copy.flags &= ~RP_CTR_RESTORED;
	if (plain)
		copy.acked.cpus = copy.acked.mems = NULL;
	record_of_facts(&r, &copy);
	add_record(&b, &r);
	record_of_decision(&r, &copy, cache_policy_name(c, ctr->cur.policy));
	add_record(&b, &r);
	return taken(&b);
}

static struct known *find(struct model *m, const char *id)
{
	for (unsigned i = 0; i < m->n; i++)
		if (!strcmp(m->known[i].id, id))
			return &m->known[i];
	return NULL;
}

static struct known *remember(struct model *m, const char *id, bool pod)
{
	struct known *k = &m->known[m->n++];
	assert_true(m->n < KNOWN_MAX);
	*k = (struct known){.pod = pod};
	(void)snprintf(k->id, sizeof k->id, "%s", id);
	return k;
}

static void forget_texts(struct known *k)
{
	free(k->full.text);
	free(k->plain.text);
	k->full = k->plain = (struct state_text){0};
}

static void forget_gone(struct model *m)
{
	unsigned n = 0;
	for (unsigned i = 0; i < m->n; i++) {
		if (m->known[i].gone)
			forget_texts(&m->known[i]);
		else
			m->known[n++] = m->known[i];
	}
	m->n = n;
}

/* As it is now. */
static void written(struct known *k, struct cache *c)
{
	forget_texts(k);
	k->written = true;
	if (k->pod) {
		k->full = pod_text(cache_pod(c, k->id));
		k->plain = pod_text(cache_pod(c, k->id));
	} else {
		k->full = ctr_text(c, cache_ctr(c, k->id), false);
		k->plain = ctr_text(c, cache_ctr(c, k->id), true);
	}
}

/* ---- what a death leaves --------------------------------------------------------------------------------------------- */

/* That the runtime has some sets is known as it is, or not at all. */
static bool is_ctr(struct cache *c, const struct ctr *ctr, const struct state_text *full,
		   const struct state_text *plain)
{
	struct state_text got = ctr_text(c, ctr, false), got_plain = ctr_text(c, ctr, true);
	bool known = ctr->acked.cpus || ctr->acked.mems;
	bool same = known ? same_text(&got, full) : same_text(&got_plain, plain);
	free(got.text);
	free(got_plain.text);
	return same;
}

static bool as_written(const struct known *k, struct cache *found)
{
	struct state_text got;
	if (!k->written)
		return false;
	if (!k->pod)
		return is_ctr(found, cache_ctr(found, k->id), &k->full, &k->plain);
	got = pod_text(cache_pod(found, k->id));
	bool same = same_text(&got, &k->full);
	free(got.text);
	return same;
}

static bool as_it_is(const struct known *k, struct cache *found, struct cache *now)
{
	struct known current = *k;
	if (k->gone)
		return false;
	current.full = current.plain = (struct state_text){0};
	written(&current, now);
	bool same = as_written(&current, found);
	forget_texts(&current);
	return same;
}

static void check_known(const struct model *m, const struct known *k, struct cache *found)
{
	bool there = k->pod ? cache_pod(found, k->id) != NULL : cache_ctr(found, k->id) != NULL;
	const char *what = NULL;
	if (k->must_be_gone && there)
		what = "the owner of a CPU is there again";
	else if (k->urgent && !k->gone && !there)
		what = "what was noted as urgent is not there";
	else if (k->urgent && !k->gone && !as_it_is(k, found, m->r.cache))
		what = "what was noted as urgent is not as it is";
	else if (k->written && !k->gone && !there)
		what = "what was written is not there any more";
	else if (there && !as_written(k, found) && !as_it_is(k, found, m->r.cache))
		what = "it is neither as it was written nor as it is";
	if (what)
		fail_msg("%s: %s %s", what, k->pod ? "pod" : "container", k->id);
}

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

static void check_urgent(struct model *m, struct cache *found)
{
	for (unsigned i = 0; i < m->n; i++)
		check_known(m, &m->known[i], found);
	/* and nothing that there never was */
	for (const struct pod *pod = cache_pods(found); pod; pod = pod->hh.next)
		assert_non_null(find(m, pod->id));
	for (const struct ctr *ctr = cache_ctrs(found); ctr; ctr = ctr->next)
		assert_non_null(find(m, ctr->id));
}

static void look_at_a_copy(struct model *m, bool complete)
{
	struct place copy = copy_of(m->p);
	struct store *s = open_at(&copy, STORE_FOUND);
	struct cache *found = new_cache();
	assert_int_equal(restore(s, found).bad, 0);
	check_kept(m, s);
	if (complete)
		same_cache(m->r.cache, found);
	else
		check_urgent(m, found);
	(void)store_close(s);
	(void)cache_free(found);
	place_fini(&copy);
}

/* ---- steps ----------------------------------------------------------------------------------------------------------- */

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

static void put_now(struct model *m, struct ctr *ctr)
{
	find(m, ctr->id)->urgent = true;
	store_put_ctr_now(m->r.store, ctr);
}

/* Who is noted for the next urgent commit is noted for more than its sets when there is more. */
static void put_some_time(struct model *m, struct ctr *ctr)
{
	if (find(m, ctr->id)->urgent || ctr->stored_exclusive)
		put_now(m, ctr);
	else
		store_put_ctr(m->r.store, ctr);
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
		(void)remember(m, pod->id, true);
		store_put_pod(m->r.store, pod);
	}
	struct ctr *ctr = add_ctr(m->r.cache, pod, m->next++);
	(void)remember(m, ctr->id, false);
	decide_something(m, ctr);
	if (draw(m, 4))
		put_now(m, ctr);
	else
		put_some_time(m, ctr);
}

static void decide_anew(struct model *m)
{
	struct ctr *ctr = some_ctr(m);
	if (!ctr)
		return;
	decide_something(m, ctr);
	if (draw(m, 3))
		put_now(m, ctr);
	else
		put_some_time(m, ctr);
}

/* All who own nothing, or some of them, get other CPUs. */
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
		if (s->ctr->unstored || !s->ctr->stored)
			put_now(m, s->ctr);
	txn_end(t);
}

static void acknowledge(struct model *m)
{
	struct ctr *ctr = some_ctr(m);
	if (!ctr)
		return;
	ctr_ack(m->r.cache, ctr, ctr_diff(ctr));
	put_some_time(m, ctr);
}

static void other_facts(struct model *m)
{
	struct ctr *ctr = some_ctr(m);
	struct pod *pod = some_pod(m);
	if (ctr && draw(m, 2)) {
		ctr->oom_score_adj = (int)draw(m, 1000);
		ctr->stored = false;
		put_some_time(m, ctr);
	} else if (pod) {
		pod->stopped = !pod->stopped;
		pod->stored = false;
		store_put_pod(m->r.store, pod);
	}
}

static void nothing_new(struct model *m)
{
	if (cache_ctrs(m->r.cache))
		put_some_time(m, cache_ctrs(m->r.cache));
	if (cache_pods(m->r.cache))
		store_put_pod(m->r.store, cache_pods(m->r.cache));
}

static void has_gone(struct model *m, const struct ctr *ctr)
{
	struct known *k = find(m, ctr->id);
	k->gone = true;
	k->must_be_gone = ctr->stored_exclusive;
}

static void go(struct model *m)
{
	struct ctr *ctr = some_ctr(m);
	struct pod *pod = some_pod(m);
	if (ctr && draw(m, 3)) {
		has_gone(m, ctr);
		store_del_ctr(m->r.store, ctr);
		cache_del_ctr(m->r.cache, ctr);
	} else if (pod) {
		for (ctr = pod->ctrs; ctr; ctr = ctr->pod_next)
			has_gone(m, ctr);
		find(m, pod->id)->gone = true;
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

static void after_complete(struct model *m)
{
	m->complete++;
	look_at_a_copy(m, true);
	forget_gone(m);
	for (unsigned i = 0; i < m->n; i++) {
		m->known[i].urgent = false;
		written(&m->known[i], m->r.cache);
	}
}

/* It says itself what it has of the others; the next look shows whether that is so. */
static bool said_to_be_stored(const struct known *k, struct cache *c)
{
	if (k->pod)
		return cache_pod(c, k->id)->stored;
	const struct ctr *ctr = cache_ctr(c, k->id);
	return ctr->stored && !ctr->unstored;
}

static void after_urgent(struct model *m)
{
	m->journaled++;
	look_at_a_copy(m, false);
	for (unsigned i = 0; i < m->n; i++) {
		struct known *k = &m->known[i];
		if (!k->gone && (k->urgent || said_to_be_stored(k, m->r.cache)))
			written(k, m->r.cache);
		k->urgent = false;
	}
}

static void commit_some(struct model *m)
{
	bool complete = draw(m, 6) == 0;
	uint64_t number = m->r.store->journal.number;
	if (complete)
		commit(m->r.store);
	else
		commit_urgent(m->r.store);
	if (complete || m->r.store->journal.number != number)
		after_complete(m);
	else
		after_urgent(m);
}

/* The next process has it now, and what it found is what counts. */
static void die(struct model *m)
{
	const struct store_params params = {.dir = m->p->dir, .boot_id = BOOT, .write = m->mode};
	commit_some(m);
	(void)store_close(m->r.store);
	(void)cache_free(m->r.cache);
	m->r.store = open_with(&params, STORE_FOUND);
	m->r.cache = new_cache();
	assert_int_equal(restore(m->r.store, m->r.cache).bad, 0);
	for (unsigned i = 0; i < m->n; i++)
		forget_texts(&m->known[i]);
	m->n = 0;
	for (const struct pod *pod = cache_pods(m->r.cache); pod; pod = pod->hh.next)
		written(remember(m, pod->id, true), m->r.cache);
	for (const struct ctr *ctr = cache_ctrs(m->r.cache); ctr; ctr = ctr->next)
		written(remember(m, ctr->id, false), m->r.cache);
	m->deaths++;
}

static void step(struct model *m)
{
	static void (*const often[])(struct model * m) = {
		come,	     come,	  decide_anew, decide_anew, move, move, acknowledge,
		acknowledge, other_facts, go,	       go,	    keep, keep, nothing_new,
	};
	unsigned what = draw(m, 100);
	if (what < 30)
		commit_some(m);
	else if (what < 31)
		die(m);
	else if (what < 32)
		store_trim(m->r.store);
	else if (what < 33)
		m->r.store->lost_track = draw(m, 2);
	else
		often[draw(m, sizeof often / sizeof *often)](m);
}

static unsigned number_of(const char *name, unsigned usual)
{
	const char *text = getenv(name);
	return text ? (unsigned)strtoul(text, NULL, 10) : usual;
}

static void random_work(const struct place *p, int mode, unsigned seed)
{
	const struct store_params params = {.dir = p->dir, .boot_id = BOOT, .write = mode};
	struct model *m = calloc(1, sizeof *m);
	m->p = p;
	m->mode = mode;
	m->seed = number_of("NRI_RP_TEST_SEED", seed);
	m->r = (struct running){open_with(&params, STORE_FRESH), new_cache()};
	(void)restore(m->r.store, m->r.cache);
	print_message("seed %u\n", m->seed);
	for (unsigned i = number_of("NRI_RP_TEST_STEPS", STEPS); i; i--)
		step(m);
	print_message("%u urgent commits, %u complete ones, %u new processes\n", m->journaled,
		      m->complete, m->deaths);
	assert_true(m->journaled > m->complete && m->complete > 0);
	commit(m->r.store);
	look_at_a_copy(m, true);
	(void)store_close(m->r.store);
	(void)cache_free(m->r.cache);
	for (unsigned i = 0; i < m->n; i++)
		forget_texts(&m->known[i]);
	free(m);
}

static void through_the_map(void **state)
{
	random_work(*state, STORE_WRITE_MAP, 1);
}

static void through_write(void **state)
{
	random_work(*state, STORE_WRITE_PLAIN, 2);
}

static void as_the_file_system_has_it(void **state)
{
	random_work(*state, STORE_WRITE_AUTO, 3);
}

#define T(f) cmocka_unit_test_setup_teardown(f, place_setup, place_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(through_the_map),
		T(through_write),
		T(as_the_file_system_has_it),
	};
	log_init("t_store_model");
	log_set_level(LOG_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
