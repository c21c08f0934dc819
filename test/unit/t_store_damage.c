/* SPDX-License-Identifier: Apache-2.0 */
/* What a file of an earlier run may look like after anything at all has happened to it. */
#include "t_store.h"

#include "core/util/crc32c.h"

struct damage {
	struct place place;
	struct cache *cache; /* what was stored */
	uint8_t *bytes; /* the file, up to the last page in use */
	size_t len;
};

static void read_bytes(struct damage *d, size_t used)
{
	char path[512];
	int fd = open(place_path(&d->place, "store.mdb", path), O_RDONLY);
	assert_true(fd >= 0);
	d->bytes = malloc(used);
	d->len = used;
	assert_int_equal(read(fd, d->bytes, used), used);
	(void)close(fd);
}

static int setup(void **state)
{
	struct damage *d = calloc(1, sizeof *d);
	struct store_stats stats;
	place_init(&d->place);
	struct store *s = open_at(&d->place, STORE_FRESH);
	d->cache = new_cache();
	(void)restore(s, d->cache);
	fill(d->cache, 12, 2);
	(void)store_put_note(s, STORE_NOTE_POLICY, "balloons", 8);
	commit(s);
	for (unsigned i = 0; i < 20; i++) { /* so that there are freed pages */
		struct ctr *ctr = cache_ctrs(d->cache);
		decide(d->cache, ctr, 0, i);
		store_put_ctr(s, ctr);
		commit(s);
	}
	store_stats(s, &stats);
	(void)store_close(s);
	read_bytes(d, stats.used_bytes);
	*state = d;
	return 0;
}

static int teardown(void **state)
{
	struct damage *d = *state;
	place_fini(&d->place);
	(void)cache_free(d->cache);
	free(d->bytes);
	free(d);
	return 0;
}

static void write_bytes(const struct damage *d, const void *bytes, size_t len)
{
	char path[512];
	int fd = open(place_path(&d->place, "store.mdb", path), O_WRONLY | O_CREAT | O_TRUNC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, len), len);
	(void)close(fd);
}

/* Whatever came back is as it was stored. */
static void no_lies(struct damage *d, struct cache *c)
{
	for (const struct pod *pod = cache_pods(c); pod; pod = pod->hh.next)
		same_pod(cache_pod(d->cache, pod->id), pod);
	for (const struct ctr *ctr = cache_ctrs(c); ctr; ctr = ctr->next) {
		const struct ctr *was = cache_ctr(d->cache, ctr->id);
		assert_non_null(was);
		assert_string_equal(was->name, ctr->name);
		if (!ctr->cur.cpus)
			continue; /* its decision was lost */
		same_ctr(d->cache, was, c, ctr);
	}
}

/* Opens what is there, looks, and goes on working with it. */
static enum store_outcome survive(struct damage *d, struct store_counts *ret)
{
	struct store_params params = {.dir = d->place.dir, .boot_id = BOOT};
	struct store_opening opening;
	struct err err = ERR_INIT;
	struct store *s;
	struct cache *c = new_cache();
	if (store_open(&params, &s, &opening, &err))
		fail_msg("%s", err.text);
	*ret = restore(s, c);
	no_lies(d, c);
	(void)add_ctr(c, add_pod(c, 77), 77);
	commit(s);
	(void)store_close(s);
	expect_restored(&d->place, c);
	(void)cache_free(c);
	return opening.outcome;
}

static void pristine(void **state)
{
	struct damage *d = *state;
	struct store_counts n;
	write_bytes(d, d->bytes, d->len);
	assert_int_equal(survive(d, &n), STORE_FOUND);
	assert_int_equal(n.ctrs, 24);
	assert_int_equal(n.blobs, 1);
	assert_int_equal(n.bad, 0);
}

static bool worth_flipping(size_t at)
{
	size_t in_page = at % 4096;
	return at < 8192 ? in_page < 168 : in_page < 24 || at % 101 == 0;
}

/* A bit of every byte of the meta pages and of the page headers, and of a sample of all else. */
static void flipped_bits(void **state)
{
	struct damage *d = *state;
	unsigned outcomes[STORE_UNSAFE + 1] = {0}, partly = 0, tried = 0;
	for (size_t at = 0; at < d->len; at++) {
		struct store_counts n;
		if (!worth_flipping(at))
			continue;
		d->bytes[at] ^= (uint8_t)(1u << (at * 7 + at / 4096) % 8);
		write_bytes(d, d->bytes, d->len);
		enum store_outcome o = survive(d, &n);
		outcomes[o]++;
		partly += o == STORE_FOUND && n.bad;
		tried++;
		d->bytes[at] ^= (uint8_t)(1u << (at * 7 + at / 4096) % 8);
	}
	print_message(
		"%u flips: %u unnoticed or harmless, %u with records left out, %u set aside\n",
		tried, outcomes[STORE_FOUND] - partly, partly, outcomes[STORE_DAMAGED]);
	assert_int_equal(outcomes[STORE_FOUND] + outcomes[STORE_DAMAGED], tried);
	assert_true(partly > 0 && outcomes[STORE_DAMAGED] > 0);
}

static void overwritten_pages(void **state)
{
	struct damage *d = *state;
	uint8_t *bytes = malloc(d->len);
	struct store_counts n;
	unsigned seed = 12345;
	for (size_t page = 0; page < d->len / 4096; page++) {
		for (unsigned how = 0; how < 4; how++) {
			memcpy(bytes, d->bytes, d->len);
			uint8_t *at = bytes + page * 4096;
			if (how == 0)
				memset(at, 0, 4096);
			else if (how == 1)
				memset(at, 0xff, 4096);
			else if (how == 2) /* another page of the same file */
				memcpy(at, d->bytes + (page + 3) * 4096 % d->len, 4096);
			else
				for (unsigned i = 0; i < 4096; i++)
					at[i] = (uint8_t)(rand_r(&seed) >> 8);
			write_bytes(d, bytes, d->len);
			enum store_outcome o = survive(d, &n);
			assert_true(o == STORE_FOUND || o == STORE_DAMAGED);
		}
	}
	free(bytes);
}

static void truncated(void **state)
{
	struct damage *d = *state;
	struct store_counts n;
	for (size_t len = 0; len < d->len; len += len < 9000 ? 500 : 3000) {
		write_bytes(d, d->bytes, len);
		enum store_outcome o = survive(d, &n);
		assert_true(o == STORE_DAMAGED || (o == STORE_FOUND && len > 8192));
	}
}

static void foreign(void **state)
{
	struct damage *d = *state;
	static const char *const texts[] = {
		"{\"Version\":\"1\",\"Pods\":{}}",
		"\177ELF and so on",
		"\n",
	};
	struct store_counts n;
	uint8_t *noise = malloc(64 << 10);
	unsigned seed = 1;
	for (unsigned i = 0; i < sizeof texts / sizeof *texts; i++) {
		write_bytes(d, texts[i], strlen(texts[i]));
		assert_int_equal(survive(d, &n), STORE_DAMAGED);
	}
	for (unsigned i = 0; i < 64 << 10; i++)
		noise[i] = (uint8_t)rand_r(&seed);
	write_bytes(d, noise, 64 << 10);
	assert_int_equal(survive(d, &n), STORE_DAMAGED);
	free(noise);
}

/* ---- files by other hands ------------------------------------------------------------------------------------------ */

struct forged {
	const char *key;
	size_t key_len;
	const ProtobufCMessage *message;
	bool bad_sum;
};

/* A sound LMDB file with these records. */
static void forge(struct damage *d, const struct forged *records, unsigned n)
{
	char path[512];
	MDB_env *env;
	MDB_txn *txn;
	MDB_dbi dbi;
	(void)unlink(place_path(&d->place, "store.mdb", path));
	assert_int_equal(mdb_env_create(&env), 0);
	assert_int_equal(mdb_env_set_mapsize(env, 16 << 20), 0);
	assert_int_equal(mdb_env_open(env, path, MDB_NOSUBDIR | MDB_NOLOCK | MDB_NOSYNC, 0600), 0);
	assert_int_equal(mdb_txn_begin(env, NULL, 0, &txn), 0);
	assert_int_equal(mdb_dbi_open(txn, NULL, 0, &dbi), 0);
	for (unsigned i = 0; i < n; i++) {
		struct record r = {.message = records[i].message};
		struct record_key key = {.len = records[i].key_len};
		memcpy(key.bytes, records[i].key, key.len);
		size_t size = record_size(&r);
		uint8_t *value = malloc(size);
		record_write(&r, &key, value);
		value[0] ^= records[i].bad_sum;
		MDB_val k = {key.len, key.bytes}, v = {size, value};
		assert_int_equal(mdb_put(txn, dbi, &k, &v, 0), 0);
		free(value);
	}
	assert_int_equal(mdb_txn_commit(txn), 0);
	mdb_env_close(env);
}

static RpStore__Meta good_meta(void)
{
	RpStore__Meta m = RP_STORE__META__INIT;
	m.format = STORE_FORMAT;
	m.boot_id = (char *)BOOT;
	m.has_commit = true;
	m.commit = 1;
	return m;
}

/* By the check as such, and by all that stands on it. */
static void expect_outcome(struct damage *d, enum store_outcome want)
{
	struct probe_result r;
	struct store_counts n;
	char path[512];
	store_check_file(place_path(&d->place, "store.mdb", path), BOOT, &r);
	assert_int_equal(r.outcome, want);
	assert_int_equal(survive(d, &n), want);
}

static void heads(void **state)
{
	struct damage *d = *state;
	RpStore__Meta m = good_meta();
	struct forged f = {"m", 1, &m.base, false};
	forge(d, &f, 1);
	expect_outcome(d, STORE_FOUND);
	forge(d, &f, 0);
	expect_outcome(d, STORE_DAMAGED);
	f.bad_sum = true;
	forge(d, &f, 1);
	expect_outcome(d, STORE_DAMAGED);
	f.bad_sum = false;
	m.format = 0;
	forge(d, &f, 1);
	expect_outcome(d, STORE_DAMAGED);
	m.format = STORE_FORMAT;
	m.commit = 2; /* torn, and nothing before it */
	forge(d, &f, 1);
	expect_outcome(d, STORE_DAMAGED);
	m.commit = 1;
	m.boot_id = (char *)"";
	forge(d, &f, 1);
	expect_outcome(d, STORE_DAMAGED);
	m.boot_id = (char *)"other";
	forge(d, &f, 1);
	expect_outcome(d, STORE_OTHER_BOOT);
}

static void newer(void **state)
{
	struct damage *d = *state;
	struct store_params params = {.dir = d->place.dir, .boot_id = BOOT};
	struct store_opening opening;
	struct probe_result r;
	struct store *s;
	char path[512];
	RpStore__Meta m = good_meta();
	struct forged f = {"m", 1, &m.base, false};
	m.format = STORE_FORMAT + 1;
	m.version = (char *)"9.9";
	m.boot_id = (char *)"another boot, which matters less";
	forge(d, &f, 1);
	store_check_file(place_path(&d->place, "store.mdb", path), BOOT, &r);
	assert_int_equal(r.outcome, STORE_NEWER);
	assert_int_equal(store_open(&params, &s, &opening, NULL), 0);
	assert_int_equal(opening.outcome, STORE_NEWER);
	assert_non_null(strstr(opening.why, "written by version 9.9"));
	assert_non_null(strstr(opening.why, "store.bad."));
	(void)store_close(s);
}

static ProtobufCBinaryData some_bytes(const char *s)
{
	return (ProtobufCBinaryData){strlen(s), (uint8_t *)s};
}

/* Records that are sound each for itself, but not together; and some that a later version might add to. */
static void odd_records(void **state)
{
	struct damage *d = *state;
	RpStore__Meta meta = good_meta();
	RpStore__Pod pod = RP_STORE__POD__INIT, endless = RP_STORE__POD__INIT;
	RpStore__Facts facts = RP_STORE__FACTS__INIT, lost = RP_STORE__FACTS__INIT;
	RpStore__Facts undecided = RP_STORE__FACTS__INIT;
	RpStore__Decision decision = RP_STORE__DECISION__INIT, wrong = RP_STORE__DECISION__INIT;
	RpStore__Values values = RP_STORE__VALUES__INIT;
	RpStore__Needs needs = RP_STORE__NEEDS__INIT;
	RpStore__Blob blob = RP_STORE__BLOB__INIT;
	struct store_counts n;
	char *x = (char *)"x";
	pod.id = pod.name = pod.uid = pod.ns = pod.runtime_handler = pod.cgroup_parent = x;
	endless = pod;
	endless.id = (char *)"";
	facts.id = facts.pod = facts.name = facts.cgroups_path = x;
	facts.requested = &values;
	facts.wanted = &needs;
	undecided = lost = facts;
	lost.id = lost.pod = (char *)"nobody's";
	undecided.id = (char *)"undecided";
	decision.decided = decision.acked = &values;
	decision.needs = &needs;
	wrong = decision;
	wrong.state = 99;
	blob.data = some_bytes("blob");
	const struct forged records[] = {
		{"bmodule", 7, &blob.base, false},
		{"bbroken", 7, &meta.base, false},
		{"o\0\0\0\0\0\0\0\2c", 10, &facts.base, false},
		{"o\0\0\0\0\0\0\0\3c", 10, &lost.base, false}, /* no pod */
		{"o\0\0\0\0\0\0\0\4c", 10, &facts.base, false}, /* twice */
		{"o\0\0\0\0\0\0\0\5c", 10, &undecided.base, false},
		{"o\0\0\0\0\0\0\0\1d", 10, &decision.base, false}, /* on nothing */
		{"o\0\0\0\0\0\0\0\2d", 10, &decision.base, false},
		{"o\0\0\0\0\0\0\0\3d", 10, &decision.base, false},
		{"o\0\0\0\0\0\0\0\5d", 10, &wrong.base, false},
		{"o\0\0\0\0\0\0\0\6d", 10, &decision.base, false},
		{"m", 1, &meta.base, false},
		{"o\0\0\0\0\0\0\0\1p", 10, &pod.base, false},
		{"o\0\0\0\0\0\0\0\2p", 10, &pod.base, false}, /* twice */
		{"o\0\0\0\0\0\0\0\3p", 10, &endless.base, false},
		{"o\0\0\0\0\0\0\0\4p", 10, &pod.base, true},
		{"z", 1, &meta.base, false}, /* unknown */
	};
	forge(d, records, sizeof records / sizeof *records);
	struct store *s = open_at(&d->place, STORE_FOUND);
	struct cache *c = new_cache();
	n = restore(s, c);
	assert_int_equal(n.pods, 1);
	assert_int_equal(n.ctrs, 2);
	assert_int_equal(n.decisions, 1);
	assert_int_equal(n.blobs, 1);
	assert_int_equal(n.bad, 10);
	assert_int_equal(cache_ctr(c, "x")->cur.state, RP_STATE_CREATING);
	assert_int_equal(cache_ctr(c, "undecided")->cur.state, RP_STATE_RUNNING);
	(void)store_close(s);
	(void)cache_free(c);
}

static void keys_out_of_order(void **state)
{
	struct damage *d = *state;
	RpStore__Meta meta = good_meta();
	RpStore__Blob blob = RP_STORE__BLOB__INIT;
	struct probe_result r;
	struct stat st;
	char path[512];
	blob.data = some_bytes("blob");
	const struct forged records[] = {{"bmodule", 7, &blob.base, false},
					 {"m", 1, &meta.base, false},
					 {"nnote", 5, &blob.base, false}};
	forge(d, records, 3);
	int fd = open(place_path(&d->place, "store.mdb", path), O_RDWR);
	assert_int_equal(fstat(fd, &st), 0);
	uint8_t *bytes = malloc((size_t)st.st_size);
	assert_int_equal(pread(fd, bytes, (size_t)st.st_size, 0), st.st_size);
	uint8_t *key = memmem(bytes, (size_t)st.st_size, "bmodule", 7);
	assert_non_null(key);
	key[0] = 'z';
	assert_int_equal(pwrite(fd, bytes, (size_t)st.st_size, 0), st.st_size);
	(void)close(fd);
	store_check_file(path, BOOT, &r);
	assert_int_equal(r.outcome, STORE_DAMAGED);
	free(bytes);
}

/* Between the probe and the restoration. */
static void changed_behind_our_back(void **state)
{
	struct damage *d = *state;
	char path[512];
	for (unsigned i = 0; i < 2; i++) {
		write_bytes(d, d->bytes, d->len);
		struct store *s = open_at(&d->place, STORE_FOUND);
		if (i)
			write_bytes(d, "something else", 14);
		else
			(void)unlink(place_path(&d->place, "store.mdb", path));
		struct cache *c = new_cache();
		struct store_counts n = restore(s, c);
		assert_int_equal(n.ctrs + n.bad, 0);
		commit(s);
		(void)store_close(s);
		(void)cache_free(c);
	}
}

static void many_bad_records(void **state)
{
	struct damage *d = *state;
	RpStore__Meta meta = good_meta();
	struct forged records[60] = {{"m", 1, &meta.base, false}};
	char keys[60][10];
	struct store_counts n;
	for (unsigned i = 1; i < 60; i++) {
		memset(keys[i], 0, 10);
		keys[i][0] = 'o';
		keys[i][8] = (char)i;
		keys[i][9] = 'p';
		records[i] = (struct forged){keys[i], 10, &meta.base, false};
	}
	forge(d, records, 60);
	assert_int_equal(survive(d, &n), STORE_FOUND);
	assert_int_equal(n.bad, 59);
}

/* ---- the meta pages ------------------------------------------------------------------------------------------------ */

/* Where LMDB 0.9 keeps a meta page's transaction number: after the page's header (16) and all else (128). */
#define TXNID_AT 144u

static uint64_t *txnid(uint8_t *page)
{
	return (uint64_t *)(void *)(page + TXNID_AT);
}

/*
 * Dying between two stores of a commit through the map leaves a meta page with a new number and an old root. The page that a commit
 * writes is the older one; so: give that the number that the next commit would have.
 */
static void torn_meta_page(void **state)
{
	struct damage *d = *state;
	uint8_t *pages[] = {d->bytes, d->bytes + 4096};
	unsigned older = *txnid(pages[0]) > *txnid(pages[1]);
	struct store_counts n;
	assert_true(*txnid(pages[!older]) == *txnid(pages[older]) + 1);
	*txnid(pages[older]) = *txnid(pages[!older]) + 1;
	write_bytes(d, d->bytes, d->len);
	/* nothing of the last commit is missing */
	expect_restored(&d->place, d->cache);
	write_bytes(d, d->bytes, d->len);
	assert_int_equal(survive(d, &n), STORE_FOUND);
	assert_int_equal(n.decisions, 24);
}

/* The same with commits made through write(2), where nothing tears, after one that only the number tells from the one before. */
static void torn_after_one_change(void **state)
{
	struct damage *d = *state;
	struct store_params params = {
		.dir = d->place.dir, .boot_id = BOOT, .reset = true, .write = STORE_WRITE_PLAIN};
	struct store_stats stats;
	struct cache *c = new_cache(), *got = new_cache();
	struct store *s = open_with(&params, STORE_RESET);
	(void)restore(s, c);
	struct ctr *ctr = add_ctr(c, add_pod(c, 1), 1);
	commit(s);
	decide(c, ctr, 1, 5);
	store_put_ctr(s, ctr);
	commit(s);
	store_stats(s, &stats);
	(void)store_close(s);
	free(d->bytes);
	read_bytes(d, stats.used_bytes);
	uint8_t *pages[] = {d->bytes, d->bytes + 4096};
	unsigned older = *txnid(pages[0]) > *txnid(pages[1]);
	*txnid(pages[older]) = *txnid(pages[!older]) + 1;
	write_bytes(d, d->bytes, d->len);
	s = open_at(&d->place, STORE_FOUND);
	(void)restore(s, got);
	assert_true(ctr->cur.shares == 7);
	assert_true(cache_ctrs(got)->cur.shares == 7);
	(void)store_close(s);
	(void)cache_free(c);
	(void)cache_free(got);
}

/* ---- the probe ----------------------------------------------------------------------------------------------------- */

static void probe_in_process(void **state)
{
	struct damage *d = *state;
	struct probe_result r;
	char path[512];
	write_bytes(d, d->bytes, d->len);
	store_check_file(place_path(&d->place, "store.mdb", path), BOOT, &r);
	assert_int_equal(r.outcome, STORE_FOUND);
	assert_int_equal(r.n_records, 1 + 1 + 12 + 24 + 24);
	assert_int_equal(r.n_bad, 0);
	store_check_file(path, "other", &r);
	assert_int_equal(r.outcome, STORE_OTHER_BOOT);
	store_check_file("/nowhere/store.mdb", BOOT, &r);
	assert_int_equal(r.outcome, STORE_DAMAGED);
	assert_non_null(strstr(r.why, "No such file"));
}

static void probe_that_hangs(void **state)
{
	struct damage *d = *state;
	struct probe_result r;
	char path[512];
	(void)unlink(place_path(&d->place, "store.mdb", path));
	assert_int_equal(mkfifo(path, 0600), 0);
	store_probe(path, BOOT, -1, 1, &r);
	assert_int_equal(r.outcome, STORE_DAMAGED);
	assert_string_equal(r.why, "reading it takes more than 1 s");
}

static void probe_that_crashes(void **state)
{
	struct damage *d = *state;
	struct probe_result r;
	char path[512];
	/* meta pages that promise more than there is */
	write_bytes(d, d->bytes, 8192);
	store_probe(place_path(&d->place, "store.mdb", path), BOOT, -1, 5, &r);
	assert_int_equal(r.outcome, STORE_DAMAGED);
	assert_non_null(strstr(r.why, "reading it ends in Bus error"));
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(pristine),
		T(flipped_bits),
		T(overwritten_pages),
		T(truncated),
		T(foreign),
		T(heads),
		T(newer),
		T(odd_records),
		T(many_bad_records),
		T(keys_out_of_order),
		T(changed_behind_our_back),
		T(torn_meta_page),
		T(torn_after_one_change),
		T(probe_in_process),
		T(probe_that_hangs),
		T(probe_that_crashes),
	};
	log_init("t_store_damage");
	log_set_level(LOG_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
