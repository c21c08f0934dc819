/* SPDX-License-Identifier: Apache-2.0 */
/* The store on directories and disks that are not as they should be, and for who only looks. */
#include "t_store.h"

#include <sys/resource.h>

/* Checks a read-only opening beside a daemon that has the lock, which leaves no trace. */
static void look_only(void **state)
{
	struct place *p = *state;
	const struct store_params params = {.dir = p->dir, .boot_id = BOOT, .read_only = true};
	struct store_opening opening;
	struct err err = ERR_INIT;
	struct store *s;
	assert_int_equal(store_open(&params, &s, &opening, &err), -ENOENT);
	assert_int_equal(err.code, 0);
	assert_int_equal(access(p->dir, F_OK), -1);
	struct running r = run(p, 5);
	s = open_with(&params, STORE_FOUND);
	struct cache *c = new_cache();
	assert_int_equal(restore(s, c).bad, 0);
	same_cache(r.cache, c);
	assert_false(store_pending(s));
	(void)store_close(s);
	(void)cache_free(c);
	stop(&r, p);
	write_file(p, "store.log", "not a log", 0600);
	s = open_with(&params, STORE_DAMAGED);
	assert_false(store_pending(s));
	(void)store_close(s);
	assert_true(place_has(p, "store.log"));
	assert_int_equal(count_bad(p), 0);
}

/* ---- directories and disks that cannot be written -------------------------------------------- */

/* Checks a folder of root as another user, because root may write anywhere. */
static void folder_that_cannot_be_written(void **state)
{
	struct place *p = *state;
	int status;
	if (geteuid())
		skip();
	struct running r = run(p, 3);
	char path[512];
	(void)place_path(p, "store.log", path);
	assert_int_equal(chmod(p->top, 0755), 0);
	assert_int_equal(chmod(p->dir, 0555), 0);
	assert_int_equal(chown(path, 65534, 65534), 0);
	(void)place_path(p, "lock", path);
	assert_int_equal(chmod(path, 0644), 0);
	(void)store_close(r.store);
	pid_t pid = fork();
	if (pid == 0) {
		struct store_params params = {.dir = p->dir, .boot_id = BOOT};
		struct store_opening opening;
		struct store_counts counts;
		struct err err = ERR_INIT;
		struct store *s;
		struct cache *c = new_cache();
		if (setresuid(65534, 65534, 65534) || store_open(&params, &s, &opening, &err))
			_exit(1);
		if (opening.outcome != STORE_FOUND || store_restore(s, c, &counts, &err))
			_exit(2);
		if (counts.pods != 3 || store_commit(s, &err) != -EACCES || !store_pending(s))
			_exit(3);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	(void)cache_free(r.cache);
}

static void limit_files(rlim_t bytes, struct rlimit *was)
{
	assert_int_equal(getrlimit(RLIMIT_FSIZE, was), 0);
	struct rlimit now = *was;
	now.rlim_cur = bytes;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &now), 0);
}

/* Checks that a failed commit loses neither the noted records nor the stored ones. */
static void full_disk(void **state)
{
	struct place *p = *state;
	struct running r = run(p, 10);
	struct store_stats stats;
	struct rlimit was;
	struct err err = ERR_INIT;
	struct cache *before = new_cache();
	(void)signal(SIGXFSZ, SIG_IGN);
	fill(before, 10, 2);
	for (unsigned i = 0; i < 3; i++) {
		store_stats(r.store, &stats);
		limit_files((rlim_t)stats.file_bytes + 100 * i, &was);
		store_put_ctr(r.store, add_ctr(r.cache, cache_pods(r.cache), 100 + i));
		int result = store_commit(r.store, &err);
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
		assert_true(result == -ENOSPC || result == -EFBIG);
		assert_true(store_pending(r.store));
		char copy[512];
		(void)place_path(p, "store.log", copy);
		const struct store_params params = {
			.dir = p->dir, .boot_id = BOOT, .read_only = true};
		struct store *s = open_with(&params, STORE_FOUND);
		struct cache *c = new_cache();
		assert_int_equal(restore(s, c).bad, 0);
		same_cache(before, c);
		(void)store_close(s);
		(void)cache_free(c);
	}
	commit(r.store);
	stop(&r, p);
	(void)cache_free(before);
}

/* Checks that a full disk prevents the first log, and that the previous one remains. */
static void full_disk_at_the_start(void **state)
{
	struct place *p = *state;
	struct cache *old = make_store(p, 10);
	struct rlimit was;
	struct err err = ERR_INIT;
	struct store *s = open_at(p, STORE_FOUND);
	struct cache *c = new_cache();
	(void)signal(SIGXFSZ, SIG_IGN);
	(void)restore(s, c);
	limit_files(1000, &was);
	int result = store_commit(s, &err);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
	assert_true(result == -ENOSPC || result == -EFBIG);
	assert_false(place_has(p, "store.log.new"));
	(void)store_close(s);
	expect_restored(p, old);
	(void)cache_free(c);
	(void)cache_free(old);
}

/* Adds n pods with a container each. */
static void add_many(const struct running *r, unsigned from, unsigned n)
{
	for (unsigned i = from; i < from + n; i++) {
		struct pod *pod = add_pod(r->cache, i);
		store_put_pod(r->store, pod);
		store_put_ctr(r->store, add_ctr(r->cache, pod, 1000 + i));
	}
}

/* Checks that a log whose contents are new is rewritten, and extended where that fails. */
static void many_new(void **state)
{
	struct place *p = *state;
	struct running r = run(p, 10);
	char path[512];
	assert_int_equal(mkdir(place_path(p, "store.log.new", path), 0700), 0);
	add_many(&r, 100, 140);
	commit(r.store);
	assert_true(r.store->log.size > r.store->log.new_size);
	assert_int_equal(rmdir(path), 0);
	add_many(&r, 300, 400);
	commit(r.store);
	assert_int_equal(r.store->log.size, r.store->log.new_size);
	stop(&r, p);
}

/* ---- damage ---------------------------------------------------------------------------------- */

static void overwrite(const struct place *p, long at)
{
	char path[512];
	FILE *f = fopen(place_path(p, "store.log", path), "r+");
	assert_non_null(f);
	assert_int_equal(fseek(f, at, SEEK_SET), 0);
	assert_int_equal(fputc(0xa5, f), 0xa5);
	assert_int_equal(fclose(f), 0);
}

/* Checks that the records before the damage are loaded and the damaged file is quarantined. A
 * death before the first commit loses neither. */
static void damage_in_the_middle(void **state)
{
	struct place *p = *state;
	struct running r = run(p, 5);
	struct store_stats stats;
	store_stats(r.store, &stats);
	struct cache *before = new_cache();
	fill(before, 5, 2);
	for (unsigned i = 0; i < 3; i++) {
		store_put_ctr(r.store, add_ctr(r.cache, cache_pods(r.cache), 100 + i));
		commit(r.store);
	}
	(void)store_close(r.store);
	(void)cache_free(r.cache);
	overwrite(p, (long)stats.file_bytes + 50);
	for (unsigned i = 0; i < 3; i++) {
		struct store *s = open_at(p, i < 2 ? STORE_PART : STORE_FOUND);
		struct cache *c = new_cache();
		assert_int_equal(restore(s, c).bad, 0);
		same_cache(before, c);
		if (i == 1)
			commit(s);
		(void)store_close(s);
		(void)cache_free(c);
		assert_int_equal(count_bad(p), i ? 2 : 1);
	}
	(void)cache_free(before);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, place_setup, place_teardown)
	const struct CMUnitTest tests[] = {
		T(look_only), T(folder_that_cannot_be_written),
		T(full_disk), T(full_disk_at_the_start),
		T(many_new),  T(damage_in_the_middle),
	};
	log_init("t_store_disk");
	log_set_level(LOG_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
