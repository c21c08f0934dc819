/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rpd/noderes/result.h"

#include <stdlib.h>
#include <string.h>

#include "core/lib/util/str.h"

static void value_fini(struct nr_value *v)
{
	free(v->name);
	free(v->zones);
	free(v->message);
	*v = (struct nr_value){0};
}

static void pairs_fini(struct nr_pair *pairs, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		free(pairs[i].key);
		free(pairs[i].value);
	}
	free(pairs);
}

void nr_result_fini(struct nr_result *r)
{
	for (unsigned i = 0; i < r->n_values; i++)
		value_fini(&r->values[i]);
	free(r->values);
	pairs_fini(r->labels, r->n_labels);
	pairs_fini(r->annotations, r->n_annotations);
	*r = (struct nr_result){0};
}

const struct nr_value *nr_result_value(const struct nr_result *r, const char *name)
{
	for (unsigned i = 0; i < r->n_values; i++)
		if (str_eq(r->values[i].name, name))
			return &r->values[i];
	return NULL;
}

static int copy_value(const struct rp_nr_item *item, struct nr_value *ret)
{
	uint32_t n = item->zones ? item->n_zones : 0;
	*ret = (struct nr_value){.quantity = item->quantity,
				 .reset = item->flags & RP_NR_ITEM_RESET,
				 .n_zones = n,
				 .name = strdup(item->name),
				 .zones = n ? calloc(n, sizeof *ret->zones) : NULL,
				 .message = item->message && *item->message ? strdup(item->message)
									    : NULL};
	if (!ret->name || (n && !ret->zones) ||
	    (item->message && *item->message && !ret->message)) {
		value_fini(ret);
		return -ENOMEM;
	}
	if (n)
		memcpy(ret->zones, item->zones, n * sizeof *ret->zones);
	return 0;
}

/* Appends a zeroed entry and returns it; NULL: no memory or too many. */
static void *result_grow(void *list, unsigned n, size_t size, void **ret_list)
{
	void *more = n < NR_ITEMS_MAX ? realloc(list, (n + 1u) * size) : NULL;
	if (!more)
		return NULL;
	*ret_list = more;
	void *last = (char *)more + n * size;
	memset(last, 0, size);
	return last;
}

int nr_result_set(struct nr_result *r, const struct rp_nr_item *item)
{
	struct nr_value next, *at;
	if (strlen(item->name) > NR_NAME_MAX || item->n_zones > NR_ZONES_MAX)
		return -E2BIG;
	int bad = copy_value(item, &next);
	if (bad)
		return bad;
	at = (struct nr_value *)(uintptr_t)nr_result_value(r, item->name);
	if (!at) {
		at = result_grow(r->values, r->n_values, sizeof *at, (void **)&r->values);
		if (!at) {
			value_fini(&next);
			return r->n_values < NR_ITEMS_MAX ? -ENOMEM : -E2BIG;
		}
		r->n_values++;
	}
	value_fini(at);
	*at = next;
	return 0;
}

void nr_result_remove(struct nr_result *r, const char *name)
{
	for (unsigned i = 0; i < r->n_values; i++) {
		if (!str_eq(r->values[i].name, name))
			continue;
		value_fini(&r->values[i]);
		memmove(&r->values[i], &r->values[i + 1], (--r->n_values - i) * sizeof *r->values);
		return;
	}
}

struct nr_pair *nr_pair_find(struct nr_pair *pairs, unsigned n, const char *key)
{
	for (unsigned i = 0; i < n; i++)
		if (str_eq(pairs[i].key, key))
			return &pairs[i];
	return NULL;
}

static int set_pair(struct nr_pair **pairs, unsigned *n, const char *key, const char *value)
{
	struct nr_pair *has = nr_pair_find(*pairs, *n, key);
	unsigned i = has ? (unsigned)(has - *pairs) : *n;
	if (strlen(key) > NR_NAME_MAX || (value && strlen(value) > NR_TEXT_MAX))
		return -E2BIG;
	if (!value) {
		if (i == *n)
			return 0;
		free((*pairs)[i].key);
		free((*pairs)[i].value);
		memmove(&(*pairs)[i], &(*pairs)[i + 1], (--*n - i) * sizeof **pairs);
		return 0;
	}
	char *text = strdup(value);
	char *name = i == *n ? strdup(key) : NULL;
	struct nr_pair *at =
		i < *n ? &(*pairs)[i] : result_grow(*pairs, *n, sizeof **pairs, (void **)pairs);
	if (!text || !at || (i == *n && !name)) {
		free(text);
		free(name);
		return -ENOMEM;
	}
	if (name) {
		at->key = name;
		++*n;
	}
	free(at->value);
	at->value = text;
	return 0;
}

int nr_result_annotate(struct nr_result *r, const char *key, const char *value)
{
	return set_pair(&r->annotations, &r->n_annotations, key, value);
}

int nr_result_label(struct nr_result *r, const char *key, const char *value)
{
	return set_pair(&r->labels, &r->n_labels, key, value);
}

const char *nr_result_annotation(const struct nr_result *r, const char *key)
{
	const struct nr_pair *p = nr_pair_find(r->annotations, r->n_annotations, key);
	return p ? p->value : NULL;
}
