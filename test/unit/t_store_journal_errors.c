/* SPDX-License-Identifier: Apache-2.0 */
/* Journals that must not be read, those that are set aside, and what can keep one from being made or written. */
#include "t_store_state.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>

#define JOURNAL "store.mdb.journal"
#define NOT_PERMITTED 77 /* exit code */

void __gcov_dump(void) __attribute__((weak));

static void put_note(struct store *s, const char *text)
{
	assert_int_equal(store_put_note(s, "note", text, strlen(text)), 0);
}

/* A store with something in its journal, and nobody at work. */
static struct cache *left_behind(const struct place *p)
{
	struct running r = run(p, STORE_WRITE_AUTO, 2);
	put_note(r.store, "in the journal");
	commit_urgent(r.store);
	(void)store_close(r.store);
	return r.cache;
}

/* ---- what must not be read ------------------------------------------------------------------------------------------- */

enum odd { LINK, FIFO, FOLDER, WRITABLE, FOREIGN };

static const char *make_odd(const struct place *p, enum odd odd)
{
	char path[512], target[512];
	(void)place_path(p, JOURNAL, path);
	(void)snprintf(target, sizeof target, "%s/target", p->top);
	switch (odd) {
	case LINK:
		assert_int_equal(rename(path, target), 0);
		assert_int_equal(symlink(target, path), 0);
		return "its journal is a symbolic link";
	case FIFO:
		assert_int_equal(unlink(path), 0);
		assert_int_equal(mkfifo(path, 0600), 0);
		return "its journal is not a regular file";
	case FOLDER:
		assert_int_equal(unlink(path), 0);
		assert_int_equal(mkdir(path, 0700), 0);
		return "its journal is not a regular file";
	case WRITABLE:
		assert_int_equal(chmod(path, 0620), 0);
		return "others may write to its journal (mode 0620)";
	case FOREIGN:
		break;
	}
	return chown(path, 12345, 12345) ? NULL : "its journal belongs to user 12345";
}

static void expect_refused(const struct place *p, const char *why)
{
	const struct store_params params = {.dir = p->dir, .boot_id = BOOT};
	struct store_opening opening;
	struct err err = ERR_INIT;
	struct store *s;
	assert_int_equal(store_copy(p->dir, p->top, &err), -EPERM);
	assert_string_equal(err.text, why);
	assert_int_equal(store_open(&params, &s, &opening, NULL), 0);
	assert_int_equal(opening.outcome, STORE_UNSAFE);
	assert_non_null(strstr(opening.why, why));
	assert_false(place_has(p, "store.mdb"));
	assert_false(place_has(p, JOURNAL));
	struct cache *c = new_cache();
	assert_int_equal(restore(s, c).ctrs, 0);
	fill(c, 1, 1);
	commit(s);
	(void)store_close(s);
	expect_copy(p, c, NULL);
	(void)cache_free(c);
}

static void odd_journals(void **state)
{
	struct place *p = *state;
	for (enum odd odd = LINK; odd <= FOREIGN; odd++) {
		struct cache *c = left_behind(p);
		const char *why = make_odd(p, odd);
		if (why)
			expect_refused(p, why);
		(void)cache_free(c);
		place_empty(p->dir);
	}
}

/* The check of a directory and the opening of a file are two things: it may have become something else meanwhile. */
static void odd_when_it_is_opened(void **state)
{
	struct place *p = *state;
	char path[512];
	for (enum odd odd = LINK; odd <= FOLDER; odd++) {
		struct journal_reader reader;
		struct probe_result result;
		struct cache *c = left_behind(p);
		(void)make_odd(p, odd);
		(void)place_path(p, "store.mdb", path);
		assert_int_equal(store_journal_read(&reader, path, 1),
				 odd == LINK ? ELOOP : EINVAL);
		assert_null(reader.data);
		store_check_file(path, BOOT, &result);
		assert_int_equal(result.outcome, STORE_DAMAGED);
		assert_non_null(strstr(result.why, "its journal cannot be read"));
		(void)cache_free(c);
		place_empty(p->dir);
	}
}

/* A small one's end is its end; of one that is larger than any of ours, the rest is not looked at. */
static void empty_and_huge(void **state)
{
	struct place *p = *state;
	struct cache *c = left_behind(p);
	char path[512];
	assert_int_equal(truncate(place_path(p, JOURNAL, path), (off_t)1 << 40), 0);
	struct store *s = open_at(p, STORE_FOUND);
	struct cache *found = new_cache();
	size_t len;
	(void)restore(s, found);
	assert_string_equal(store_note(s, "note", &len), "in the journal");
	(void)store_close(s);
	assert_int_equal(truncate(path, 0), 0);
	expect_copy(p, c, NULL);
	(void)cache_free(found);
	(void)cache_free(c);
}

/* ---- set aside ------------------------------------------------------------------------------------------------------- */

struct names {
	unsigned bad, bad_journals, others;
};

static int count_name(const char *name, void *arg)
{
	struct names *n = arg;
	bool journal = strstr(name, ".journal") != NULL;
	if (strstr(name, "store.bad.") && journal)
		n->bad_journals++;
	else if (strstr(name, "store.bad."))
		n->bad++;
	else if (strcmp(name, "lock") != 0)
		n->others++;
	return 0;
}

static struct names names_at(const struct place *p)
{
	struct names n = {0};
	struct fs_root root = {.path = (char *)p->dir};
	root.fd = open(p->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(fs_list(&root, ".", count_name, &n), 0);
	(void)close(root.fd);
	return n;
}

static void with_its_file(void **state)
{
	struct place *p = *state;
	for (unsigned i = 1; i <= STORE_BAD_KEEP + 2; i++) {
		struct cache *c = left_behind(p);
		write_file(p, "store.mdb", "damage", 6);
		(void)store_close(open_at(p, STORE_DAMAGED));
		unsigned want = i < STORE_BAD_KEEP ? i : STORE_BAD_KEEP;
		struct names n = names_at(p);
		assert_int_equal(n.bad, want);
		assert_int_equal(n.bad_journals, want);
		assert_int_equal(n.others, 0);
		(void)cache_free(c);
	}
}

/* That of an earlier one would be taken for that of a later one otherwise. */
static void reset_and_reset_again(void **state)
{
	struct place *p = *state;
	const struct store_params params = {.dir = p->dir, .boot_id = BOOT, .reset = true};
	char path[512];
	for (unsigned i = 0; i < 2; i++) {
		struct cache *c = left_behind(p);
		if (i)
			assert_int_equal(unlink(place_path(p, JOURNAL, path)), 0);
		(void)store_close(open_with(&params, STORE_RESET));
		assert_true(place_has(p, "store.old"));
		assert_int_equal(place_has(p, "store.old.journal"), !i);
		assert_false(place_has(p, JOURNAL));
		(void)cache_free(c);
	}
}

/* One without a file, as a death while its file is set aside leaves it. */
static void without_its_file(void **state)
{
	struct place *p = *state;
	struct cache *c = left_behind(p);
	char path[512];
	assert_int_equal(unlink(place_path(p, "store.mdb", path)), 0);
	struct running r = run(p, STORE_WRITE_AUTO, 1);
	expect_copy(p, r.cache, NULL);
	(void)store_close(r.store);
	(void)cache_free(r.cache);
	(void)cache_free(c);
}

/* ---- failures -------------------------------------------------------------------------------------------------------- */

static void it_cannot_be_made(void **state)
{
	struct place *p = *state;
	char path[512];
	struct err err = ERR_INIT;
	for (unsigned m = 0; m < 2; m++) {
		struct running r = run(p, modes[m], 2);
		put_note(r.store, "before");
		commit_urgent(r.store);
		r.store->lost_track = true;
		assert_int_equal(mkdir(place_path(p, "store.new.journal", path), 0700), 0);
		put_note(r.store, "after");
		assert_int_equal(store_commit_urgent(r.store, &err), -EEXIST);
		assert_non_null(strstr(err.text, "cannot make the journal"));
		assert_non_null(strstr(err.text, "store.new.journal"));
		assert_true(store_pending(r.store));
		expect_copy(p, r.cache, "before");
		assert_int_equal(rmdir(path), 0);
		commit_urgent(r.store);
		expect_copy(p, r.cache, "after");
		assert_false(store_pending(r.store)); /* it was a complete one */
		(void)store_close(r.store);
		(void)cache_free(r.cache);
		place_empty(p->dir);
	}
}

/* The file has its name then, and is complete. */
static void it_cannot_get_its_name(void **state)
{
	struct place *p = *state;
	struct store *s = open_at(p, STORE_FRESH);
	struct cache *c = new_cache();
	struct err err = ERR_INIT;
	char path[512];
	(void)restore(s, c);
	fill(c, 2, 2);
	assert_int_equal(mkdir(place_path(p, JOURNAL, path), 0700), 0);
	put_note(s, "complete");
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(store_commit_urgent(s, &err), -EISDIR);
		assert_non_null(strstr(err.text, "cannot rename the journal"));
		assert_true(store_pending(s));
	}
	assert_int_equal(rmdir(path), 0);
	expect_copy(p, c, "complete");
	put_note(s, "later");
	commit_urgent(s);
	expect_copy(p, c, "later");
	put_note(s, "in the journal");
	commit_urgent(s);
	assert_true(s->journal.end > 0);
	expect_copy(p, c, "in the journal");
	(void)store_close(s);
	(void)cache_free(c);
}

static void limit_files(rlim_t size, struct rlimit *ret_was)
{
	assert_int_equal(getrlimit(RLIMIT_FSIZE, ret_was), 0);
	const struct rlimit limit = {size, ret_was->rlim_max};
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* Not a byte of the batch is written, or some of them: then the file is, if that goes on. */
static void it_cannot_be_written(void **state)
{
	struct place *p = *state;
	(void)signal(SIGXFSZ, SIG_IGN);
	for (unsigned i = 0; i < 2; i++) {
		struct running r = run(p, STORE_WRITE_PLAIN, 2);
		struct err err = ERR_INIT;
		struct rlimit was;
		put_note(r.store, "before");
		commit_urgent(r.store);
		put_note(r.store, "after");
		limit_files(r.store->journal.end + i * 20, &was);
		int res = store_commit_urgent(r.store, &err);
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
		assert_int_equal(res, -EFBIG);
		assert_non_null(strstr(err.text, "cannot write the state"));
		assert_true(store_pending(r.store));
		expect_copy(p, r.cache, "before");
		commit_urgent(r.store);
		expect_copy(p, r.cache, "after");
		assert_false(store_pending(r.store));
		(void)store_close(r.store);
		(void)cache_free(r.cache);
		place_empty(p->dir);
	}
	(void)signal(SIGXFSZ, SIG_DFL);
}

/* The journal alone: the file is written. */
static void only_the_journal_fails(void **state)
{
	struct place *p = *state;
	struct running r = run(p, STORE_WRITE_PLAIN, 2);
	put_note(r.store, "before");
	commit_urgent(r.store);
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_true(null >= 0 && dup2(null, r.store->journal.fd) == r.store->journal.fd);
	(void)close(null);
	put_note(r.store, "after");
	commit_urgent(r.store);
	assert_int_equal(r.store->journal.end, 0);
	expect_copy(p, r.cache, "after");
	(void)store_close(r.store);
	(void)cache_free(r.cache);
}

/* Puts notes of growing numbers until that fails; the last one that was written. */
static unsigned until_it_fails(struct store *s, int *ret_res)
{
	char text[2000];
	struct err err = ERR_INIT;
	unsigned n = 0;
	memset(text, 'x', sizeof text);
	do {
		(void)snprintf(text, 16, "%08u", ++n);
		text[8] = ' ';
		assert_int_equal(store_put_note(s, "note", text, sizeof text), 0);
		*ret_res = store_commit_urgent(s, &err);
	} while (*ret_res == 0 && n < 1000);
	return n - 1;
}

static unsigned note_of_copy(const struct place *p)
{
	struct store *s = open_at(p, STORE_FOUND);
	struct cache *c = new_cache();
	size_t len;
	assert_int_equal(restore(s, c).bad, 0);
	const char *note = store_note(s, "note", &len);
	assert_non_null(note);
	unsigned n = (unsigned)strtoul(note, NULL, 10);
	(void)store_close(s);
	(void)cache_free(c);
	return n;
}

static int on_small_disk(const struct place *p, int mode)
{
	static const char zeros[4096];
	char ballast[512];
	int res;
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("tmpfs", p->top, "tmpfs", 0, "size=4m") < 0)
		return NOT_PERMITTED;
	struct running r = run(p, mode, 4);
	put_note(r.store, "00000000");
	commit_urgent(r.store);
	(void)snprintf(ballast, sizeof ballast, "%s/ballast", p->top);
	int fd = creat(ballast, 0600);
	while (write(fd, zeros, sizeof zeros) == sizeof zeros)
		;
	unsigned n = until_it_fails(r.store, &res);
	/* there is room already: for all of the journal, and for the file as well */
	assert_int_equal(res, 0);
	assert_int_equal(n, 999);
	struct place copy;
	struct err err = ERR_INIT;
	(void)close(fd);
	/* what a death leaves is looked at elsewhere: there is no room here */
	char top[] = "/tmp/nri-rp-journal-XXXXXX";
	assert_non_null(mkdtemp(top));
	(void)snprintf(copy.top, sizeof copy.top, "%s", top);
	(void)snprintf(copy.dir, sizeof copy.dir, "%s/state", top);
	assert_int_equal(mkdir(copy.dir, 0700), 0);
	assert_int_equal(store_copy(p->dir, copy.dir, &err), 0);
	assert_int_equal(note_of_copy(&copy), 1000);
	place_fini(&copy);
	/* a journal for a new file */
	r.store->lost_track = true;
	put_note(r.store, "more");
	assert_int_equal(store_commit_urgent(r.store, &err), -ENOSPC);
	assert_true(store_pending(r.store));
	assert_int_equal(unlink(ballast), 0);
	commit_urgent(r.store);
	assert_false(store_pending(r.store));
	(void)store_close(r.store);
	(void)cache_free(r.cache);
	return 0;
}

static void full_disk(void **state)
{
	for (unsigned m = 0; m < 2; m++) {
		int status;
		pid_t pid = fork();
		if (pid == 0) {
			(void)setenv("CMOCKA_TEST_ABORT", "1", 1);
			int code = on_small_disk(*state, modes[m]);
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
}

#define T(f) cmocka_unit_test_setup_teardown(f, place_setup, place_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(odd_journals),
		T(odd_when_it_is_opened),
		T(empty_and_huge),
		T(with_its_file),
		T(reset_and_reset_again),
		T(without_its_file),
		T(it_cannot_be_made),
		T(it_cannot_get_its_name),
		T(it_cannot_be_written),
		T(only_the_journal_fails),
		T(full_disk),
	};
	log_init("t_store_journal_errors");
	log_set_level(LOG_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
