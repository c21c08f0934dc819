/* SPDX-License-Identifier: Apache-2.0 */
/* Room for the file: growing, limits, full disks, and what else can keep a commit from succeeding. */
#include "t_store.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>

void __gcov_dump(void) __attribute__((weak));

static void file_grows(void **state)
{
	struct place *p = *state;
	for (unsigned m = 0; m < 2; m++) {
		struct running r = run(p, modes[m], 0);
		struct store_stats before, after;
		store_stats(r.store, &before);
		fill(r.cache, 1500, 2);
		for (struct pod *pod = cache_pods(r.cache); pod; pod = pod->hh.next)
			store_put_pod(r.store, pod);
		for (struct ctr *ctr = cache_ctrs(r.cache); ctr; ctr = ctr->next)
			store_put_ctr(r.store, ctr);
		commit(r.store);
		store_stats(r.store, &after);
		assert_true(after.file_bytes > before.file_bytes);
		assert_int_equal(after.mapped, modes[m] == STORE_WRITE_MAP);
		assert_true(after.used_bytes > before.file_bytes);
		assert_int_equal(after.failures, 0);
		stop(&r, p);
		place_empty(p->dir);
	}
}

static void limit_of_the_file(void **state)
{
	struct place *p = *state;
	for (unsigned m = 0; m < 2; m++) {
		struct store_params params = {
			.dir = p->dir, .boot_id = BOOT, .write = modes[m], .size_max = 256 << 10};
		struct running r = {open_with(&params, STORE_FRESH), new_cache()};
		struct err err = ERR_INIT;
		struct store_stats stats;
		(void)restore(r.store, r.cache);
		fill(r.cache, 10, 2);
		commit(r.store);
		struct pod *first_new = NULL;
		for (unsigned i = 100; i < 1100; i++) {
			struct pod *pod = add_pod(r.cache, i);
			first_new = first_new ? first_new : pod;
			store_put_pod(r.store, pod);
			store_put_ctr(r.store, add_ctr(r.cache, pod, i));
		}
		assert_int_equal(store_commit(r.store, &err), -ENOSPC);
		assert_non_null(strstr(err.text, "limit of 262144 bytes"));
		assert_false(first_new->stored);
		assert_true(store_pending(r.store));
		assert_int_equal(store_commit(r.store, &err), -ENOSPC);
		store_stats(r.store, &stats);
		assert_int_equal(stats.failures, 2);
		/* what was committed before is still there */
		struct probe_result probe;
		char path[512];
		store_check_file(place_path(p, "store.mdb", path), BOOT, &probe);
		assert_int_equal(probe.outcome, STORE_FOUND);
		assert_int_equal(probe.n_records, 1 + 10 + 20 + 20);
		assert_int_equal(probe.n_bad, 0);
		/* and with fewer of them all is well again */
		while (cache_n_pods(r.cache) > 50) {
			struct pod *pod = cache_pods(r.cache);
			store_del_pod(r.store, pod);
			cache_del_pod(r.cache, pod);
		}
		commit(r.store);
		stop(&r, p);
		place_empty(p->dir);
	}
}

#define NOT_PERMITTED 77 /* exit code */

static int on_small_disk(const struct place *p, int mode)
{
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("tmpfs", p->top, "tmpfs", 0, "size=9m") < 0)
		return NOT_PERMITTED;
	struct running r = run(p, mode, 20);
	struct err err = ERR_INIT;
	char path[512], ballast[512];
	(void)snprintf(ballast, sizeof ballast, "%s/ballast", p->top);
	int fd = creat(ballast, 0600);
	static const char zeros[4096];
	while (write(fd, zeros, sizeof zeros) == sizeof zeros)
		;
	/* a few changes need no more room; a lot do */
	for (unsigned i = 0; i < 500; i++) {
		struct ctr *ctr = cache_ctrs(r.cache);
		decide(r.cache, ctr, 0, i);
		store_put_ctr(r.store, ctr);
		commit(r.store);
	}
	for (unsigned i = 100; i < 1800; i++) {
		struct pod *pod = add_pod(r.cache, i);
		store_put_pod(r.store, pod);
		store_put_ctr(r.store, add_ctr(r.cache, pod, i));
	}
	for (unsigned i = 0; i < 3; i++) {
		int res = store_commit(r.store, &err);
		if (res != -ENOSPC)
			fail_msg("%d: %s", res, err.text);
		assert_true(store_pending(r.store));
	}
	struct probe_result probe;
	store_check_file(place_path(p, "store.mdb", path), BOOT, &probe);
	assert_int_equal(probe.outcome, STORE_FOUND);
	assert_int_equal(probe.n_records, 1 + 20 + 40 + 40);
	/* room again */
	(void)close(fd);
	assert_int_equal(unlink(ballast), 0);
	commit(r.store);
	assert_false(store_pending(r.store));
	stop(&r, p);
	/* a start with a full disk: what is there is read, and nothing can be written */
	fd = creat(ballast, 0600);
	while (write(fd, zeros, sizeof zeros) == sizeof zeros)
		;
	struct cache *c = new_cache();
	struct store *s = open_at(p, STORE_FOUND);
	struct store_counts n = restore(s, c);
	assert_int_equal(n.ctrs, 1740);
	assert_int_equal(store_commit(s, &err), -ENOSPC);
	(void)store_close(s);
	(void)cache_free(c);
	(void)close(fd);
	return 0;
}

/* A file system of which nobody knows whether it keeps what was allocated; this one cannot even allocate. */
static int on_other_file_system(const struct place *p, int mode)
{
	struct store_stats stats;
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("ramfs", p->top, "ramfs", 0, NULL) < 0)
		return NOT_PERMITTED;
	struct running r = run(p, mode, 300);
	store_stats(r.store, &stats);
	assert_false(stats.mapped);
	stop(&r, p);
	return 0;
}

/* In a child, which may have a mount namespace of its own. */
static void in_child(const struct place *p, int (*fn)(const struct place *p, int mode), int mode)
{
	int status;
	pid_t pid = fork();
	if (pid == 0) {
		(void)setenv("CMOCKA_TEST_ABORT", "1", 1);
		int code = fn(p, mode);
		if (__gcov_dump)
			__gcov_dump();
		_exit(code);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == NOT_PERMITTED)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void full_disk(void **state)
{
	for (unsigned m = 0; m < 2; m++)
		in_child(*state, on_small_disk, modes[m]);
}

static void other_file_system(void **state)
{
	in_child(*state, on_other_file_system, STORE_WRITE_AUTO);
}

static void rename_fails(void **state)
{
	struct place *p = *state;
	struct store *s = open_at(p, STORE_FRESH);
	struct cache *c = new_cache();
	struct err err = ERR_INIT;
	char path[512];
	(void)restore(s, c);
	fill(c, 3, 2);
	assert_int_equal(mkdir(place_path(p, "store.mdb", path), 0700), 0);
	assert_int_equal(store_commit(s, &err), -EISDIR);
	assert_non_null(strstr(err.text, "store.new"));
	assert_true(store_pending(s));
	decide(c, cache_ctrs(c), 0, 3);
	store_put_ctr(s, cache_ctrs(c));
	assert_int_equal(store_commit(s, &err), -EISDIR);
	assert_int_equal(rmdir(path), 0);
	commit(s);
	assert_false(store_pending(s));
	(void)store_close(s);
	expect_restored(p, c);
	(void)cache_free(c);
}

static void directory_disappears(void **state)
{
	struct place *p = *state;
	struct store *s = open_at(p, STORE_FRESH);
	struct cache *c = new_cache();
	struct err err = ERR_INIT;
	(void)restore(s, c);
	place_empty(p->dir);
	assert_int_equal(rmdir(p->dir), 0);
	assert_int_equal(store_commit(s, &err), -ENOENT);
	assert_int_equal(store_sync(s), 0); /* there is nothing to sync */
	assert_true(store_pending(s));
	(void)store_close(s);
	(void)cache_free(c);
}

static void lost_track(void **state)
{
	struct place *p = *state;
	struct running r = run(p, STORE_WRITE_AUTO, 5);
	/* as if memory had not sufficed to note this change */
	decide(r.cache, cache_ctrs(r.cache), 0, 9);
	r.store->lost_track = true;
	assert_true(store_pending(r.store));
	commit(r.store);
	assert_false(store_pending(r.store));
	stop(&r, p);
}

static void oversized_record(void **state)
{
	struct place *p = *state;
	struct running r = run(p, STORE_WRITE_AUTO, 1);
	struct ctr *ctr = cache_ctrs(r.cache);
	_free_ char *large = calloc(1, RECORD_MAX);
	struct txn *t = txn_begin(r.cache);
	txn_put_blob(&txn_stage(t, ctr)->data, blob_new(large, RECORD_MAX));
	txn_commit(t);
	txn_end(t);
	store_put_ctr(r.store, ctr);
	commit(r.store); /* the others matter more */
	(void)store_close(r.store);
	(void)cache_free(r.cache);
}

/* Records of a new file are committed in portions; that they do not fit shows when some are in already. */
static void new_file_grows(void **state)
{
	struct place *p = *state;
	_free_ char *value = calloc(1, 20001);
	memset(value, 'v', 20000);
	const struct kv annotation = {"large", value};
	for (unsigned m = 0; m < 2; m++) {
		struct store_params params = {.dir = p->dir, .boot_id = BOOT, .write = modes[m]};
		struct running r = {open_with(&params, STORE_FRESH), new_cache()};
		struct store_stats stats;
		(void)restore(r.store, r.cache);
		fill(r.cache, 600, 1);
		for (struct pod *pod = cache_pods(r.cache); pod; pod = pod->hh.next) {
			kvs_fini(&pod->annotations);
			assert_int_equal(kvs_init(&pod->annotations, &annotation, 1), 0);
		}
		commit(r.store);
		store_stats(r.store, &stats);
		assert_true(stats.used_bytes > 12000000);
		stop(&r, p);
		place_empty(p->dir);
	}
}

/* Wherever the last portion of a new file ends, the number in it is that of the last commit. */
static void portions(void **state)
{
	struct place *p = *state;
	for (unsigned n = 250; n < 260; n++) {
		struct store *s = open_at(p, STORE_FRESH);
		struct cache *c = new_cache(), *got = new_cache();
		(void)restore(s, c);
		fill(c, n, 0);
		commit(s);
		(void)store_close(s);
		s = open_at(p, STORE_FOUND);
		assert_int_equal(restore(s, got).pods, n);
		(void)store_close(s);
		(void)cache_free(c);
		(void)cache_free(got);
		place_empty(p->dir);
	}
}

static void no_descriptors(void **state)
{
	struct place *p = *state;
	struct running r = run(p, STORE_WRITE_AUTO, 1);
	struct rlimit was, none;
	struct probe_result probe;
	struct err err = ERR_INIT;
	char path[512];
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	none = was;
	none.rlim_cur = 3;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	store_probe(place_path(p, "store.mdb", path), BOOT, -1, 5, &probe);
	int synced = store_sync(r.store);
	r.store->lost_track = true;
	int committed = store_commit(r.store, &err);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	assert_int_equal(probe.outcome, STORE_DAMAGED);
	assert_string_equal(probe.why, "it cannot be checked: Too many open files");
	assert_int_equal(synced, -EMFILE);
	assert_int_equal(committed, -EMFILE);
	commit(r.store);
	stop(&r, p);
}

/* The library's errors end the file, and the next commit makes a new one. */
static void library_gives_up(void **state)
{
	struct place *p = *state;
	struct running r = run(p, STORE_WRITE_AUTO, 2);
	MDB_txn *other;
	assert_int_equal(mdb_txn_begin(r.store->file.env, NULL, 0, &other), 0);
	store_trim(r.store); /* not while there is a transaction */
	assert_null(r.store->file.env);
	assert_true(store_pending(r.store));
	commit(r.store);
	stop(&r, p);
}

static void errors_of_the_library(void **state)
{
	struct err err = ERR_INIT;
	(void)state;
	assert_int_equal(store_file_error(MDB_CORRUPTED, &err, "reading"), -EIO);
	assert_non_null(strstr(err.text, "reading: MDB_CORRUPTED"));
	assert_int_equal(store_file_error(MDB_MAP_FULL, &err, "writing"), -ENOSPC);
	assert_int_equal(store_file_error(EACCES, &err, "opening"), -EACCES);
	assert_string_equal(err.text, "opening: Permission denied");
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, place_setup, place_teardown)
	const struct CMUnitTest tests[] = {
		T(file_grows),
		T(new_file_grows),
		T(limit_of_the_file),
		T(full_disk),
		T(other_file_system),
		T(rename_fails),
		T(directory_disappears),
		T(lost_track),
		T(oversized_record),
		T(no_descriptors),
		T(portions),
		T(library_gives_up),
		T(errors_of_the_library),
	};
	log_init("t_store_room");
	log_set_level(LOG_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
