/* SPDX-License-Identifier: Apache-2.0 */
/* Packing, sorting and lookup of labels and annotations. */
#include "core/nri-rpd/cache/kvs.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/lib/util/cleanup.h"
#include "core/lib/util/str.h"

#define SMALL 32u

struct ranked {
	const struct kv *kv;
	uint32_t index;
	size_t key, value; /* sizes in bytes, with the NUL */
};

static int ranked_cmp(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;
	int c = strcmp(x->kv->key, y->kv->key);
	if (c)
		return c;
	return x->index < y->index ? -1 : 1;
}

const char *kvs_after(const char *text)
{
	return text + strlen(text) + 1;
}

static bool same_key(const struct ranked *a, const struct ranked *b)
{
	return a->key == b->key && !memcmp(a->kv->key, b->kv->key, a->key);
}

static uint32_t kvs_pack(struct kvs *s, const struct ranked *sorted, uint32_t n)
{
	uint32_t left_out = 0;
	char *p = s->data;
	for (uint32_t i = 0; i < n; i++) {
		const struct ranked *r = &sorted[i];
		if (i + 1 < n && same_key(r, r + 1))
			continue;
		if (r->key > KVS_VALUE_MAX || r->value > KVS_VALUE_MAX ||
		    (size_t)(p - s->data) + r->key + r->value > KVS_TOTAL_MAX) {
			left_out++;
			continue;
		}
		memcpy(p, r->kv->key, r->key);
		memcpy(p + r->key, r->kv->value, r->value);
		p += r->key + r->value;
		s->beginnings |= kvs_beginning(r->kv->key);
		s->n++;
	}
	s->size = (uint32_t)(p - s->data);
	return left_out;
}

/* Sorts the pairs. Insertion sort, because maps are small and mostly sorted already. */
static void kvs_sort(struct ranked *r, uint32_t n)
{
	if (n > SMALL) {
		qsort(r, n, sizeof *r, ranked_cmp);
		return;
	}
	for (uint32_t i = 1; i < n; i++) {
		if (ranked_cmp(&r[i - 1], &r[i]) < 0)
			continue;
		struct ranked x = r[i];
		uint32_t k = i;
		for (; k > 0 && ranked_cmp(&r[k - 1], &x) > 0; k--)
			r[k] = r[k - 1];
		r[k] = x;
	}
}

int kvs_init(struct kvs *s, const struct kv *pairs, uint32_t n)
{
	struct ranked few[SMALL], *sorted = few;
	_free_ struct ranked *many = NULL;
	size_t total = 0;
	*s = (struct kvs){0};
	if (!n)
		return 0;
	if (n > SMALL && !(sorted = many = calloc(n, sizeof *many)))
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		sorted[i] = (struct ranked){&pairs[i], i, strlen(pairs[i].key) + 1,
					    strlen(pairs[i].value) + 1};
		total += sorted[i].key + sorted[i].value;
	}
	kvs_sort(sorted, n);
	s->data = malloc(total < KVS_TOTAL_MAX ? total : KVS_TOTAL_MAX);
	if (!s->data)
		return -ENOMEM;
	return (int)kvs_pack(s, sorted, n);
}

void kvs_fini(struct kvs *s)
{
	free(s->data);
	*s = (struct kvs){0};
}

const char *kvs_get(const struct kvs *s, const char *key)
{
	if (!(s->beginnings & kvs_beginning(key)))
		return NULL;
	KVS_EACH(k, v, s)
	{
		/* most keys differ in the first character */
		int c = *k == *key ? strcmp(k, key) : (unsigned char)*k - (unsigned char)*key;
		if (c == 0)
			return v;
		if (c > 0)
			break;
	}
	return NULL;
}

const char *kv_text(const struct kv *list, uint32_t n, const char *key)
{
	for (uint32_t i = 0; i < n; i++)
		if (str_eq(list[i].key, key))
			return list[i].value;
	return NULL;
}
