/* SPDX-License-Identifier: Apache-2.0 */
/* Interned sets in a chained hash table. A set, its words and its text are one allocation. */
#include "core/lib/util/intern.h"

#include <assert.h>
#include <stdlib.h>

#define N_BUCKETS_MIN 64u

struct intern {
	struct iset **buckets;
	uint32_t n_buckets; /* number of buckets, a power of two */
	uint32_t n_sets;
};

struct intern *intern_new(void)
{
	struct intern *t = malloc(sizeof *t);
	struct iset **buckets = calloc(N_BUCKETS_MIN, sizeof(struct iset *));
	if (!t || !buckets) {
		free(t);
		free(buckets);
		return NULL;
	}
	*t = (struct intern){buckets, N_BUCKETS_MIN, 0};
	return t;
}

struct intern *intern_free(struct intern *t)
{
	if (t)
		free(t->buckets);
	free(t);
	return NULL;
}

unsigned intern_count(const struct intern *t)
{
	return t->n_sets;
}

static uint32_t hash_words(struct rp_ids ids)
{
	uint64_t h = ids.nw;
	for (uint32_t i = 0; i < ids.nw; i++) {
		h = (h ^ ids.w[i]) * UINT64_C(0x9e3779b97f4a7c15);
		h ^= h >> 32;
	}
	return (uint32_t)h;
}

static struct iset **bucket_of(struct intern *t, uint32_t hash)
{
	return &t->buckets[hash & (t->n_buckets - 1)];
}

/* Doubles the table. If that fails, the table only gets slower. */
static void intern_grow(struct intern *t)
{
	struct iset **buckets = calloc((size_t)t->n_buckets * 2, sizeof(struct iset *));
	if (!buckets)
		return;
	struct intern bigger = {buckets, t->n_buckets * 2, t->n_sets};
	for (uint32_t i = 0; i < t->n_buckets; i++)
		for (struct iset *s = t->buckets[i], *next; s; s = next) {
			struct iset **to = bucket_of(&bigger, s->hash);
			next = s->next;
			s->next = *to;
			*to = s;
		}
	free(t->buckets);
	*t = bigger;
}

static struct iset *intern_make(struct rp_ids ids, uint32_t hash)
{
	uint32_t text_len = rp_ids_format(ids, NULL, 0);
	size_t n_bytes = ids.nw * sizeof(uint64_t);
	struct iset *s = malloc(sizeof *s + n_bytes + text_len + 1);
	if (!s)
		return NULL;
	uint64_t *words = (uint64_t *)(void *)(s + 1);
	char *text = (char *)words + n_bytes;
	if (n_bytes)
		memcpy(words, ids.w, n_bytes);
	rp_ids_format(ids, text, text_len + 1);
	*s = (struct iset){.refs = 1,
			   .count = rp_ids_count(ids),
			   .text_len = text_len,
			   .hash = hash,
			   .text = text,
			   .ids = {words, ids.nw, 0}};
	return s;
}

struct iset *intern_get(struct intern *t, struct rp_ids ids)
{
	while (ids.nw && !ids.w[ids.nw - 1])
		ids.nw--;
	uint32_t hash = hash_words(ids);
	for (struct iset *s = *bucket_of(t, hash); s; s = s->next)
		if (s->hash == hash && rp_ids_equal(s->ids, ids))
			return intern_ref(s);
	struct iset *s = intern_make(ids, hash);
	if (!s)
		return NULL;
	if (t->n_sets >= t->n_buckets)
		intern_grow(t);
	struct iset **bucket = bucket_of(t, hash);
	s->next = *bucket;
	*bucket = s;
	t->n_sets++;
	return s;
}

struct iset *intern_ref(struct iset *s)
{
	if (s)
		s->refs++;
	return s;
}

struct iset *intern_unref(struct intern *t, struct iset *s)
{
	assert(!s || s->refs);
	if (!s || --s->refs)
		return NULL;
	assert(t->n_sets);
	struct iset **bucket = bucket_of(t, s->hash);
	if (*bucket == s) {
		*bucket = s->next;
	} else {
		struct iset *before = *bucket;
		while (before->next != s)
			before = before->next;
		before->next = s->next;
	}
	t->n_sets--;
	free(s);
	return NULL;
}
