/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store that the last version with LMDB has written, in test/unit/former: eight pods with a
 * container each, two notes. Its journal has what came then: containers 0 and 1 got CPUs of their
 * own, 1 gave them up and got others twice, 7 ended.
 */
#include "t_store.h"

#define FOLDER "test/unit/former/"
#define FORMER_BOOT "11111111-2222-3333-4444-555555555555"
#define FILE_MAX ((size_t)1 << 20)

struct copy {
	char *file, *journal;
	size_t size, journal_size;
};

static struct copy load(void)
{
	struct copy c;
	struct err err = ERR_INIT;
	struct fs_root here;
	assert_int_equal(fs_root_open(&here, ".", &err), 0);
	if (fs_read_all(&here, FOLDER "store.mdb", FILE_MAX, &c.file, &c.size) ||
	    fs_read_all(&here, FOLDER "store.mdb.journal", FILE_MAX, &c.journal, &c.journal_size))
		fail_msg("no " FOLDER " here");
	fs_root_close(&here);
	return c;
}

static void drop(struct copy *c)
{
	free(c->file);
	free(c->journal);
}

static void write_bytes(const struct place *p, const char *name, const void *data, size_t size)
{
	char path[512];
	assert_int_equal(fs_replace(place_path(p, name, path), data, size, 0600, false, NULL), 0);
}

static void write_copy(const struct place *p, const struct copy *c)
{
	write_bytes(p, "store.mdb", c->file, c->size);
	write_bytes(p, "store.mdb.journal", c->journal, c->journal_size);
}

static const struct store_params *params_of(const struct place *p)
{
	static struct store_params params;
	params = (struct store_params){.dir = p->dir, .boot_id = FORMER_BOOT};
	return &params;
}

static void set_is(const struct iset *set, const char *want)
{
	assert_string_equal(set ? set->text : "none", want);
}

/* Of container number i: all CPUs, and its own. */
static void has(struct cache *c, unsigned i, const char *cpus, const char *own)
{
	char id[16];
	(void)snprintf(id, sizeof id, "ctr%u", i);
	const struct ctr *ctr = cache_ctr(c, id);
	assert_non_null(ctr);
	set_is(ctr->cur.cpus, cpus);
	set_is(ctr->cur.exclusive, own);
	if (ctr->cur.exclusive) {
		assert_string_equal(ctr->cur.private_data->data + 1, "data");
		assert_string_equal(cache_policy_name(c, ctr->cur.policy), "static");
	}
}

static void check_restored(const struct place *p)
{
	struct store *s = open_with(params_of(p), STORE_FOUND);
	struct cache *c = new_cache();
	struct store_counts n = restore(s, c);
	const char *version;
	size_t len;
	assert_int_equal(n.pods, 8);
	assert_int_equal(n.ctrs, 7);
	assert_int_equal(n.bad, 0);
	assert_int_equal(n.blobs, 2);
	has(c, 0, "8", "8");
	has(c, 1, "0-6", "none");
	for (unsigned i = 2; i < 7; i++) {
		char own[8];
		(void)snprintf(own, sizeof own, "%u", 8 + i);
		has(c, i, own, own);
	}
	assert_null(cache_ctr(c, "ctr7"));
	assert_string_equal(store_note(s, STORE_NOTE_POLICY, &len), "balloons");
	assert_string_equal(store_blob(s, "static", &version, &len), "state");
	assert_string_equal(version, "1.0");
	(void)store_close(s);
	(void)cache_free(c);
}

static void becomes_a_log(void **state)
{
	struct place *p = *state;
	struct copy c = load();
	(void)store_close(open_at(p, STORE_FRESH));
	write_file(p, "store.log", "of the time before that version", 0600);
	write_copy(p, &c);
	check_restored(p);
	assert_true(place_has(p, "store.log") && place_has(p, "store.old"));
	assert_false(place_has(p, "store.mdb") || place_has(p, "store.mdb.journal"));
	check_restored(p); /* whether the first process has written anything or not */
	drop(&c);
}

static void is_not_touched_by_a_look(void **state)
{
	struct place *p = *state;
	struct copy c = load();
	struct store_params params = *params_of(p);
	(void)store_close(open_at(p, STORE_FRESH));
	write_copy(p, &c);
	params.read_only = true;
	(void)store_close(open_with(&params, STORE_FORMER));
	assert_true(place_has(p, "store.mdb") && place_has(p, "store.mdb.journal"));
	assert_false(place_has(p, "store.log"));
	drop(&c);
}

static void of_no_use(void **state)
{
	struct place *p = *state;
	struct copy c = load();
	struct store_params params = *params_of(p);
	(void)store_close(open_at(p, STORE_FRESH));
	write_copy(p, &c);
	(void)store_close(open_at(p, STORE_OTHER_BOOT));
	assert_true(place_has(p, "store.old") && !place_has(p, "store.mdb"));
	write_copy(p, &c);
	params.reset = true;
	(void)store_close(open_with(&params, STORE_RESET));
	assert_false(place_has(p, "store.mdb") || place_has(p, "store.log"));
	drop(&c);
}

/* The page that was written last is that of a commit that was not finished: the one before has
 * all. */
static void torn(void **state)
{
	struct place *p = *state;
	struct copy c = load();
	uint64_t commits[2], root = 2;
	for (unsigned i = 0; i < 2; i++)
		memcpy(&commits[i], c.file + i * 4096 + 16 + 128, sizeof commits[i]);
	size_t last = commits[1] > commits[0] ? 4096 : 0;
	(void)store_close(open_at(p, STORE_FRESH));
	memcpy(c.file + last + 16 + 112, &root, sizeof root);
	write_copy(p, &c);
	check_restored(p);
	drop(&c);
}

/* Whatever byte is another one: some of it comes back, or it is set aside. */
static void damaged(void **state)
{
	struct place *p = *state;
	struct copy c = load();
	unsigned found = 0, refused = 0;
	(void)store_close(open_at(p, STORE_FRESH));
	for (size_t i = 0; i < c.size; i += i < 300 ? 1 : 41) {
		struct store_opening opening;
		struct store *s;
		c.file[i] ^= (char)0x55;
		write_copy(p, &c);
		c.file[i] ^= (char)0x55;
		assert_int_equal(store_open(params_of(p), &s, &opening, NULL), 0);
		bool is_found = opening.outcome == STORE_FOUND;
		assert_true(is_found || opening.outcome == STORE_FORMER ||
			    opening.outcome == STORE_OTHER_BOOT);
		found += is_found;
		refused += !is_found;
		struct cache *cache = new_cache();
		struct store_counts n = restore(s, cache);
		assert_true(n.ctrs <= 8 && n.pods <= 8);
		(void)store_close(s);
		(void)cache_free(cache);
		place_empty(p->dir);
	}
	assert_true(found && refused);
	drop(&c);
}

#define T(f) cmocka_unit_test_setup_teardown(f, place_setup, place_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(becomes_a_log), T(is_not_touched_by_a_look), T(of_no_use), T(torn), T(damaged),
	};
	log_init("t_store_former");
	log_set_level(LOG_ERROR - 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
