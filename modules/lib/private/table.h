/* SPDX-License-Identifier: Apache-2.0 */
/* Hash table from handles to pointers. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All zeros: empty. */
struct table {
	struct table_slot {
		uint64_t key;
		void *value; /* value of the entry; NULL: the slot is free */
	} * slots;
	uint32_t n_slots, n;
};

/* Visits the values, in no order. The body may delete the visited entry, but must not add any. */
#define TABLE_EACH(each_, t)                                                                       \
	for (uint32_t at_ = 0; at_ < (t)->n_slots && ((each_) = (t)->slots[at_].value, true);      \
	     at_ += (t)->slots[at_].value == (each_))                                              \
		if (each_)

void table_fini(struct table *t); /* frees the table, not the values */
void table_free(struct table *t); /* frees the table and the values, which are from malloc() */
/* Removes all entries but keeps the memory. */
void table_clear(struct table *t);
/* Returns the value of a key; NULL: there is no entry. */
void *table_get(const struct table *t, uint64_t key);
/* Returns the value of a key. If there is none, adds `size` zeroed bytes as the value. NULL: out of
 * memory. */
void *table_make(struct table *t, uint64_t key, size_t size);
/* Reserves memory for n more entries, so that table_put() cannot fail. -RP_ENOMEM. */
int32_t table_reserve(struct table *t, uint32_t n);
/* Adds or replaces an entry. Replacing cannot fail. -RP_ENOMEM. */
int32_t table_put(struct table *t, uint64_t key, void *value);
/* Removes an entry, if there is one. */
void table_del(struct table *t, uint64_t key);
