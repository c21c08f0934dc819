/* SPDX-License-Identifier: Apache-2.0 */
/* The fake host: the decided values of a container. */
#include <stdlib.h>
#include <string.h>

#include "test/unit/fake_impl.h"

void fake_values_init(struct fake_values *v)
{
	memset(v, 0, sizeof *v);
	for (uint32_t i = 0; i < FAKE_N_INTS; i++)
		v->ints[i] = RP_NOT_SET;
}

void fake_values_fini(struct fake_values *v)
{
	for (uint32_t i = 0; i < FAKE_N_TEXTS; i++)
		free(v->texts[i]);
	for (uint32_t i = 0; i < v->n_pairs; i++) {
		free(v->pairs[i].key);
		free(v->pairs[i].value);
	}
	free(v->pairs);
	free(v->private_data);
	free(v->degraded);
	fake_values_init(v);
}

void fake_values_copy(struct fake_values *dst, const struct fake_values *src)
{
	*dst = *src;
	dst->pairs = NULL;
	for (uint32_t i = 0; i < FAKE_N_TEXTS; i++)
		dst->texts[i] = fake_strdup(src->texts[i]);
	if (src->n_pairs)
		dst->pairs = fake_grow(NULL, src->n_pairs, sizeof *dst->pairs);
	for (uint32_t i = 0; i < src->n_pairs; i++)
		dst->pairs[i] =
			(struct fake_pair){src->pairs[i].field, fake_strdup(src->pairs[i].key),
					   fake_strdup(src->pairs[i].value)};
	dst->degraded = fake_strdup(src->degraded);
	dst->private_data = NULL;
	if (src->private_size) {
		dst->private_data = fake_alloc(src->private_size);
		memcpy(dst->private_data, src->private_data, src->private_size);
	}
}

struct fake_pair *fake_values_find_pair(struct fake_values *v, uint32_t field, const char *key)
{
	for (uint32_t i = 0; i < v->n_pairs; i++)
		if (v->pairs[i].field == field && strcmp(v->pairs[i].key, key) == 0)
			return &v->pairs[i];
	return NULL;
}

void fake_values_put_pair(struct fake_values *v, uint32_t field, const char *key, const char *value)
{
	struct fake_pair *p = fake_values_find_pair(v, field, key);
	if (p && !*value) {
		free(p->key);
		free(p->value);
		*p = v->pairs[--v->n_pairs];
		return;
	}
	if (!*value)
		return;
	if (!p) {
		v->pairs = fake_grow(v->pairs, v->n_pairs + 1, sizeof *v->pairs);
		p = &v->pairs[v->n_pairs++];
		*p = (struct fake_pair){field, fake_strdup(key), NULL};
	}
	free(p->value);
	p->value = fake_strdup(value);
}

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

bool fake_values_same(const struct fake_values *a, const struct fake_values *b)
{
	bool same = rp_ids_equal(rp_ids_of(&a->cpus), rp_ids_of(&b->cpus)) &&
		    rp_ids_equal(rp_ids_of(&a->mems), rp_ids_of(&b->mems)) &&
		    rp_ids_equal(rp_ids_of(&a->exclusive), rp_ids_of(&b->exclusive)) &&
		    memcmp(a->ints, b->ints, sizeof a->ints) == 0 && a->group == b->group &&
		    same_text(a->degraded, b->degraded);
	for (uint32_t i = 0; i < FAKE_N_TEXTS; i++)
		same = same && same_text(a->texts[i], b->texts[i]);
	return same;
}
