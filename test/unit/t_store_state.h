/* SPDX-License-Identifier: Apache-2.0 */
/* What tests of the store's journal share: what a death leaves behind, as bytes and as a state. */
#ifndef TEST_UNIT_T_STORE_STATE_H
#define TEST_UNIT_T_STORE_STATE_H

#include "t_store.h"

#include "core/util/buf.h"

UNUSED static void commit_urgent(struct store *s)
{
	struct err err = ERR_INIT;
	if (store_commit_urgent(s, &err))
		fail_msg("store_commit_urgent: %s", err.text);
}

/* By the number of add_ctr. */
UNUSED static struct ctr *ctr_with(struct cache *c, unsigned i)
{
	char id[80];
	(void)snprintf(id, sizeof id, "%064x", 0xc0000 + i);
	struct ctr *ctr = cache_ctr(c, id);
	assert_non_null(ctr);
	return ctr;
}

/* ---- files ----------------------------------------------------------------------------------------------------------- */

struct bytes {
	uint8_t *data;
	size_t len;
};

UNUSED static struct bytes read_file(const struct place *p, const char *name)
{
	char path[512];
	struct stat st;
	int fd = open(place_path(p, name, path), O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	struct bytes b = {malloc((size_t)st.st_size + 1), (size_t)st.st_size};
	assert_int_equal(read(fd, b.data, b.len), b.len);
	(void)close(fd);
	return b;
}

UNUSED static struct bytes copy_bytes(const struct bytes *from)
{
	struct bytes b = {malloc(from->len + 1), from->len};
	memcpy(b.data, from->data, from->len);
	return b;
}

UNUSED static void write_file(const struct place *p, const char *name, const void *data, size_t len)
{
	char path[512];
	int fd = open(place_path(p, name, path), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, len), len);
	(void)close(fd);
}

/* What a process that dies now leaves; its own goes on. */
UNUSED static struct place copy_of(const struct place *p)
{
	struct place copy;
	struct err err = ERR_INIT;
	place_init(&copy);
	assert_int_equal(mkdir(copy.dir, 0700), 0);
	if (store_copy(p->dir, copy.dir, &err))
		fail_msg("store_copy: %s", err.text);
	return copy;
}

/* ---- a state --------------------------------------------------------------------------------------------------------- */

/* Any two caches with the same objects in the same order, and the same notes, have the same text. */
struct state_text {
	uint8_t *text;
	size_t len;
};

/* A record's bytes say all that is to be restored of an object; the key is a part of their sum. */
UNUSED static void add_record(struct buf *b, const struct record *r)
{
	struct record_key key;
	record_key_number(&key, RECORD_FACTS, 1);
	size_t size = record_size(r);
	uint8_t *room = malloc(size);
	record_write(r, &key, room);
	assert_int_equal(buf_add(b, room, size), 0);
	free(room);
}

UNUSED static struct state_text text_of(struct cache *c, const struct store *s)
{
	struct buf b = BUF_INIT;
	struct record r;
	size_t len = 0;
	for (const struct pod *pod = cache_pods(c); pod; pod = pod->hh.next) {
		record_of_pod(&r, pod);
		add_record(&b, &r);
	}
	for (const struct ctr *ctr = cache_ctrs(c); ctr; ctr = ctr->next) {
		struct ctr plain = *ctr;
		plain.flags &= ~RP_CTR_RESTORED;
		record_of_facts(&r, &plain);
		add_record(&b, &r);
		record_of_decision(&r, ctr, cache_policy_name(c, ctr->cur.policy));
		add_record(&b, &r);
	}
	const void *note = store_note(s, "note", &len);
	if (note)
		assert_int_equal(buf_add(&b, note, len), 0);
	struct state_text t = {malloc(buf_len(&b) + 1), buf_len(&b)};
	memcpy(t.text, buf_bytes(&b), t.len);
	buf_fini(&b);
	return t;
}

UNUSED static bool same_text(const struct state_text *a, const struct state_text *b)
{
	return a->len == b->len && !memcmp(a->text, b->text, a->len);
}

/* What a start there finds: nothing is bad of it. */
UNUSED static struct state_text state_at(const struct place *p)
{
	struct store *s = open_at(p, STORE_FOUND);
	struct cache *c = new_cache();
	assert_int_equal(restore(s, c).bad, 0);
	struct state_text t = text_of(c, s);
	(void)store_close(s);
	(void)cache_free(c);
	return t;
}

UNUSED static struct state_text state_of_copy(const struct place *p)
{
	struct place copy = copy_of(p);
	struct state_text t = state_at(&copy);
	place_fini(&copy);
	return t;
}

/* All of the cache, and the note. */
UNUSED static void expect_copy(const struct place *p, struct cache *want, const char *note)
{
	struct place copy = copy_of(p);
	struct store *s = open_at(&copy, STORE_FOUND);
	struct cache *c = new_cache();
	size_t len = 0;
	assert_int_equal(restore(s, c).bad, 0);
	same_cache(want, c);
	const char *got = store_note(s, "note", &len);
	assert_int_equal(got != NULL, note != NULL);
	if (note)
		assert_string_equal(got, note);
	(void)store_close(s);
	(void)cache_free(c);
	place_fini(&copy);
}

#endif
