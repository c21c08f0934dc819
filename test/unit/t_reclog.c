/* SPDX-License-Identifier: Apache-2.0 */
/* The log of records: what comes back of it, whatever becomes of its bytes, its file system and the
 * process. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/lib/util/cleanup.h"
#include "core/lib/util/fs.h"
#include "core/lib/util/reclog.h"
#include "test/unit/t_oom.h"

#define SIZE_MAX_OF_TEST ((size_t)8 << 20)

static const struct reclog_head head = {"words", 2, "boot one", "1.2.3"};

struct place {
	char dir[64], path[96];
	struct reclog log;
};

static int setup(void **state)
{
	struct place *p = calloc(1, sizeof *p);
	(void)strcpy(p->dir, "/tmp/t_reclog-XXXXXX");
	assert_non_null(mkdtemp(p->dir));
	(void)snprintf(p->path, sizeof p->path, "%s/log", p->dir);
	assert_int_equal(reclog_init(&p->log, p->path, &head, SIZE_MAX_OF_TEST), 0);
	*state = p;
	return 0;
}

static int teardown(void **state)
{
	struct place *p = *state;
	reclog_fini(&p->log);
	(void)unlink(p->path);
	assert_int_equal(rmdir(p->dir), 0); /* the log leaves no other files */
	free(p);
	return 0;
}

static void put(struct place *p, const char *word)
{
	assert_int_equal(reclog_put(&p->log, word, strlen(word)), 0);
}

static void begin(struct place *p)
{
	struct err err = ERR_INIT;
	if (reclog_begin_anew(&p->log, &err))
		fail_msg("%s", err.text);
}

static void commit(struct place *p)
{
	struct err err = ERR_INIT;
	if (reclog_commit(&p->log, &err))
		fail_msg("%s", err.text);
}

static int collect(void *arg, const void *record, size_t len)
{
	struct buf *all = arg;
	(void)buf_add(all, record, len);
	return buf_add(all, " ", 1);
}

/* Returns the result of reading, and the words. */
static int parse(const void *data, size_t size, const struct reclog_head *as, char ret[256],
		 struct err *err)
{
	struct buf all = BUF_INIT;
	*err = (struct err)ERR_INIT;
	int r = reclog_parse(data, size, as, collect, &all, err);
	(void)snprintf(ret, 256, "%s", buf_text(&all));
	buf_fini(&all);
	return r;
}

static char *load(const struct place *p, size_t *size)
{
	struct err err = ERR_INIT;
	char *data = NULL;
	if (fs_read_own(p->path, SIZE_MAX_OF_TEST, &data, size, &err))
		fail_msg("%s", err.text);
	return data;
}

static void expect(const struct place *p, const char *words)
{
	char all[256];
	struct err err;
	size_t size;
	_free_ char *data = load(p, &size);
	if (parse(data, size, &head, all, &err))
		fail_msg("%s", err.text);
	assert_string_equal(all, words);
}

static void write_three(struct place *p)
{
	begin(p);
	put(p, "one");
	commit(p);
	put(p, "two");
	put(p, "");
	commit(p);
	put(p, "three");
	commit(p);
}

static void comes_back(void **state)
{
	struct place *p = *state;
	struct stat st;
	assert_false(reclog_is_open(&p->log));
	begin(p);
	assert_int_equal(access(p->path, F_OK), -1); /* until it is complete */
	commit(p);
	expect(p, "");
	assert_true(reclog_is_open(&p->log));
	write_three(p);
	expect(p, "one two  three ");
	assert_int_equal(stat(p->path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(st.st_size, p->log.size);
	commit(p); /* an empty commit */
	put(p, "four");
	reclog_drop(&p->log);
	commit(p);
	expect(p, "one two  three ");
	begin(p);
	put(p, "five");
	reclog_drop(&p->log);
	put(p, "four");
	commit(p);
	expect(p, "one two  three four ");
}

static void nothing_to_add_to(void **state)
{
	struct place *p = *state;
	put(p, "one");
	assert_int_equal(reclog_commit(&p->log, NULL), -EBADF);
	write_three(p);
	reclog_close(&p->log);
	put(p, "four");
	assert_int_equal(reclog_commit(&p->log, NULL), -EBADF);
	expect(p, "one two  three ");
}

/* Checks that any changed byte leaves a prefix of the records, and the loss of further records
 * is reported. */
static void damage(void **state)
{
	static const char want[] = "one two  three ";
	struct place *p = *state;
	char all[256];
	struct err err;
	size_t size;
	write_three(p);
	_free_ char *data = load(p, &size);
	for (size_t i = 0; i < size * 8; i++) {
		data[i / 8] ^= (char)(1 << i % 8);
		int r = parse(data, size, &head, all, &err);
		data[i / 8] ^= (char)(1 << i % 8);
		assert_true(r == -EBADMSG || ((r == -ENOMSG || r == -EPROTO) && !*all));
		assert_true(err.text[0] != '\0');
		assert_true(strlen(all) < strlen(want) && !strncmp(all, want, strlen(all)));
	}
}

/* Checks that an unfinished commit is dropped without counting as damage. Bytes behind its end
 * are damage. */
static void torn(void **state)
{
	static const char *const prefixes[] = {"", "one ", "one two  ", "one two  three "};
	struct place *p = *state;
	char all[256];
	struct err err;
	size_t size;
	unsigned last = 0;
	write_three(p);
	_free_ char *data = load(p, &size);
	for (size_t n = 0; n <= size; n++) {
		int r = parse(data, n, &head, all, &err);
		assert_true(r == 0 || (r == -ENOMSG && last == 0 && !*all));
		while (strcmp(prefixes[last], all) != 0)
			assert_in_range(++last, 1, 3);
	}
	assert_int_equal(last, 3);
	_free_ char *more = calloc(1, size + 64);
	memcpy(more, data, size);
	assert_int_equal(parse(more, size + 64, &head, all, &err), -EBADMSG);
	assert_string_equal(all, prefixes[3]);
}

/* Checks that a batch copied to another place is damage. */
static void twice(void **state)
{
	struct place *p = *state;
	char all[256];
	struct err err;
	size_t size, before;
	begin(p);
	commit(p);
	before = p->log.size;
	put(p, "one");
	commit(p);
	_free_ char *data = load(p, &size);
	_free_ char *more = malloc(2 * size);
	memcpy(more, data, size);
	memcpy(more + size, data + before, size - before);
	assert_int_equal(parse(more, 2 * size - before, &head, all, &err), -EBADMSG);
	assert_string_equal(all, "one ");
}

static void heads(void **state)
{
	static const struct {
		struct reclog_head head;
		int result;
		const char *why;
	} rows[] = {
		{{"words", 2, "boot one", "9"}, 0, ""},
		{{"words", 3, "boot one", "9"}, 0, ""},
		{{"words", 1, "boot one", ""}, -EPROTO, "has format 2, written by version 1.2.3"},
		{{"words", 2, "boot two", ""}, -ESTALE, "from another boot"},
		{{"other", 2, "boot one", ""}, -ENOMSG, "not a log of other"},
	};
	struct place *p = *state;
	char all[256];
	struct err err;
	size_t size;
	write_three(p);
	_free_ char *data = load(p, &size);
	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		assert_int_equal(parse(data, size, &rows[i].head, all, &err), rows[i].result);
		assert_non_null(strstr(err.text, rows[i].why));
		assert_int_equal(*all != '\0', rows[i].result == 0);
	}
	data[7]++;
	assert_int_equal(parse(data, size, &head, all, &err), -EPROTO);
	assert_int_equal(parse("", 0, &head, all, &err), -ENOMSG);
}

static int end_early(void *arg, const void *record, size_t len)
{
	return --*(int *)arg ? 0 : -E2BIG;
}

static void reader_ends_it(void **state)
{
	struct place *p = *state;
	size_t size;
	int left = 2;
	write_three(p);
	_free_ char *data = load(p, &size);
	assert_int_equal(reclog_parse(data, size, &head, end_early, &left, NULL), -E2BIG);
	assert_int_equal(left, 0);
}

static int count(void *arg, const void *record, size_t len)
{
	const char *bytes = record;
	unsigned *n = arg;
	assert_true(len >= 1000 && bytes[0] == (char)*n && bytes[len - 1] == (char)*n);
	++*n;
	return 0;
}

/* Checks that a new log of any size is written in pieces, and that more records can follow. */
static void much(void **state)
{
	struct place *p = *state;
	char record[2000];
	size_t size;
	unsigned n = 0;
	begin(p);
	for (unsigned i = 0; i < 1500; i++) {
		memset(record, (int)(i % 256), sizeof record);
		assert_int_equal(reclog_put(&p->log, record, 1000 + i % 1000), 0);
		assert_true(p->log.batch.cap < 1 << 20);
	}
	commit(p);
	assert_false(reclog_is_long(&p->log));
	for (unsigned i = 1500; !reclog_is_long(&p->log); i++, n++) {
		memset(record, (int)(i % 256), sizeof record);
		assert_int_equal(reclog_put(&p->log, record, sizeof record), 0);
		commit(p);
	}
	assert_in_range(p->log.size, p->log.new_size * 2, p->log.new_size * 2 + 4096);
	_free_ char *data = load(p, &size);
	unsigned seen = 0;
	assert_int_equal(reclog_parse(data, size, &head, count, &seen, NULL), 0);
	assert_int_equal(seen, 1500 + n);
}

static void limits(void **state)
{
	struct place *p = *state;
	_free_ char *large = calloc(1, RECLOG_RECORD_MAX + 1);
	write_three(p);
	assert_int_equal(reclog_put(&p->log, large, RECLOG_RECORD_MAX + 1), -E2BIG);
	/* the next record belongs to the same batch */
	assert_int_equal(reclog_put(&p->log, "x", 1), -E2BIG);
	assert_int_equal(reclog_commit(&p->log, NULL), -E2BIG);
	assert_int_equal(reclog_put(&p->log, large, SIZE_MAX_OF_TEST), 0);
	assert_int_equal(reclog_commit(&p->log, NULL), -EFBIG);
	begin(p);
	assert_int_equal(reclog_put(&p->log, large, SIZE_MAX_OF_TEST), -EFBIG);
	assert_int_equal(reclog_commit(&p->log, NULL), -EFBIG);
	expect(p, "one two  three ");
	put(p, "four");
	commit(p);
	expect(p, "one two  three four ");
}

/* Checks a disk without room for the second half of a batch: the first half is removed, and the
 * next commit continues from there. */
static void full_disk(void **state)
{
	struct place *p = *state;
	struct rlimit was, now;
	write_three(p);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
	(void)signal(SIGXFSZ, SIG_IGN);
	now = was;
	now.rlim_cur = p->log.size + 20;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &now), 0);
	put(p, "a record that is longer than the room");
	int appended = reclog_commit(&p->log, NULL);
	begin(p);
	put(p, "a log that is longer than the room: ");
	put(p, "what has to be said of it takes more bytes than those three words");
	int anew = reclog_commit(&p->log, NULL);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
	assert_int_equal(appended, -ENOSPC);
	assert_int_equal(anew, -ENOSPC);
	expect(p, "one two  three ");
	put(p, "four");
	commit(p);
	expect(p, "one two  three four ");
}

static void no_folder(void **state)
{
	struct place *p = *state;
	struct reclog l;
	struct err err = ERR_INIT;
	assert_int_equal(reclog_init(&l, "/proc/nri-rp/log", &head, SIZE_MAX_OF_TEST), 0);
	assert_int_equal(reclog_begin_anew(&l, &err), -ENOENT);
	assert_non_null(strstr(err.text, "/proc/nri-rp/log"));
	reclog_fini(&l);
	/* a link is not followed, and a stale one is no hindrance */
	char stale[128], target[128];
	(void)snprintf(stale, sizeof stale, "%s.new", p->path);
	(void)snprintf(target, sizeof target, "%s.target", p->path);
	assert_int_equal(symlink(target, stale), 0);
	write_three(p);
	assert_int_equal(access(target, F_OK), -1);
	/* a folder in its place is one */
	assert_int_equal(mkdir(stale, 0700), 0);
	assert_int_equal(reclog_begin_anew(&p->log, &err), -EEXIST);
	assert_int_equal(rmdir(stale), 0);
	expect(p, "one two  three ");
}

static int all_of_it(void *arg)
{
	struct place *p = arg;
	struct reclog l;
	int r = reclog_init(&l, p->path, &head, SIZE_MAX_OF_TEST);
	if (r)
		return r;
	r = reclog_begin_anew(&l, NULL);
	if (!r)
		(void)reclog_put(&l, "one", 3);
	if (!r)
		r = reclog_commit(&l, NULL);
	if (!r)
		(void)reclog_put(&l, "two", 3);
	if (!r)
		r = reclog_commit(&l, NULL);
	reclog_fini(&l);
	return r;
}

static void out_of_memory(void **state)
{
	struct place *p = *state;
	oom_each(all_of_it, p);
	expect(p, "one two ");
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(comes_back), T(nothing_to_add_to),
		T(damage),     T(torn),
		T(twice),      T(heads),
		T(much),       T(reader_ends_it),
		T(limits),     T(full_disk),
		T(no_folder),  T(out_of_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
