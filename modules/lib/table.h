/* SPDX-License-Identifier: Apache-2.0 */
/* Handles to pointers. */
#ifndef NRI_RP_LIB_TABLE_H
#define NRI_RP_LIB_TABLE_H

#include <stdint.h>

/* All zeros: empty. */
struct table {
	struct table_slot {
		uint64_t key;
		void *value; /* NULL: the slot is free */
	} * slots;
	uint32_t n_slots, n;
};

void table_fini(struct table *t); /* empty again; values are the caller's */
/* Forgets all and keeps the room for them. */
void table_clear(struct table *t);
void *table_get(const struct table *t, uint64_t key); /* NULL: there is none */
/* Room for n more, which table_put() then cannot fail for. -RP_ENOMEM. */
int32_t table_reserve(struct table *t, uint32_t n);
/* -RP_ENOMEM; in place of another value it cannot fail. */
int32_t table_put(struct table *t, uint64_t key, void *value);
void table_del(struct table *t, uint64_t key);

#endif
