/* SPDX-License-Identifier: Apache-2.0 */
/* Hash table from handles to pointers. */
#ifndef NRI_RP_LIB_TABLE_H
#define NRI_RP_LIB_TABLE_H

#include <stdint.h>

/* All zeros: empty. */
struct table {
	struct table_slot {
		uint64_t key;
		void *value; /* value of the entry; NULL: the slot is free */
	} * slots;
	uint32_t n_slots, n;
};

void table_fini(struct table *t); /* frees the table, not the values */
/* Removes all entries but keeps the memory. */
void table_clear(struct table *t);
/* Returns the value of a key; NULL: there is no entry. */
void *table_get(const struct table *t, uint64_t key);
/* Reserves memory for n more entries, so that table_put() cannot fail. -RP_ENOMEM. */
int32_t table_reserve(struct table *t, uint32_t n);
/* Adds or replaces an entry. Replacing cannot fail. -RP_ENOMEM. */
int32_t table_put(struct table *t, uint64_t key, void *value);
/* Removes an entry, if there is one. */
void table_del(struct table *t, uint64_t key);

#endif
