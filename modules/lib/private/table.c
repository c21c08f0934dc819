/* SPDX-License-Identifier: Apache-2.0 */
/* Hash table with linear probing. */
#include "modules/lib/private/table.h"

#include <stdlib.h>
#include <string.h>

#include <nri-rp/module.h>

#define SLOTS_MIN 64u

static uint32_t slot_of(const struct table *t, uint64_t key)
{
	return (uint32_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & (t->n_slots - 1);
}

static struct table_slot *find_slot(const struct table *t, uint64_t key)
{
	uint32_t i = slot_of(t, key);
	while (t->slots[i].value && t->slots[i].key != key)
		i = (i + 1) & (t->n_slots - 1);
	return &t->slots[i];
}

void table_fini(struct table *t)
{
	free(t->slots);
	*t = (struct table){0};
}

void table_free(struct table *t)
{
	for (uint32_t i = 0; i < t->n_slots; i++)
		free(t->slots[i].value);
	table_fini(t);
}

void table_clear(struct table *t)
{
	if (t->n)
		memset(t->slots, 0, t->n_slots * sizeof *t->slots);
	t->n = 0;
}

void *table_get(const struct table *t, uint64_t key)
{
	return t->n_slots ? find_slot(t, key)->value : NULL;
}

void *table_make(struct table *t, uint64_t key, size_t size)
{
	void *value = table_get(t, key);
	if (value || table_reserve(t, 1))
		return value;
	value = calloc(1, size);
	if (value)
		(void)table_put(t, key, value); /* cannot fail: memory is reserved */
	return value;
}

int32_t table_reserve(struct table *t, uint32_t n)
{
	struct table larger = {.n_slots = t->n_slots ? t->n_slots : SLOTS_MIN, .n = t->n};
	if ((t->n + n) * 2 <= t->n_slots)
		return 0;
	while (larger.n_slots < (t->n + n) * 2)
		larger.n_slots *= 2;
	larger.slots = calloc(larger.n_slots, sizeof *larger.slots);
	if (!larger.slots)
		return -RP_ENOMEM;
	for (uint32_t i = 0; i < t->n_slots; i++)
		if (t->slots[i].value)
			*find_slot(&larger, t->slots[i].key) = t->slots[i];
	free(t->slots);
	*t = larger;
	return 0;
}

int32_t table_put(struct table *t, uint64_t key, void *value)
{
	struct table_slot *s = t->n_slots ? find_slot(t, key) : NULL;
	if (s && s->value) {
		s->value = value;
		return 0;
	}
	if (table_reserve(t, 1))
		return -RP_ENOMEM;
	*find_slot(t, key) = (struct table_slot){key, value};
	t->n++;
	return 0;
}

void table_del(struct table *t, uint64_t key)
{
	if (!table_get(t, key))
		return;
	uint32_t hole = (uint32_t)(find_slot(t, key) - t->slots), mask = t->n_slots - 1;
	t->n--;
	/* Close the gap: move entries back that the removed one had displaced. */
	for (uint32_t i = (hole + 1) & mask; t->slots[i].value; i = (i + 1) & mask) {
		uint32_t home = slot_of(t, t->slots[i].key);
		if (((i - home) & mask) < ((i - hole) & mask))
			continue;
		t->slots[hole] = t->slots[i];
		hole = i;
	}
	t->slots[hole] = (struct table_slot){0, NULL};
}
