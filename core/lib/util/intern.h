/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interned sets: equal sets are one object. Comparing two sets is comparing pointers, a thousand
 * containers on one shared pool need one set, and its text is made once.
 */
#pragma once

#include <nri-rp/set.h>

struct intern;

struct iset {
	uint32_t refs;
	uint32_t count; /* number of ids in the set */
	uint32_t text_len;
	uint32_t hash;
	const char *text; /* the set in list form, such as "0-3,8" */
	struct rp_ids ids;
	/* For the owner of the table: number of containers that have this set with the same
	 * exclusive part (core/nri-rpd/cache/txn.c). */
	uint64_t users;
	const struct iset *users_own;
	uint32_t users_key;
	void *next; /* next set of the bucket */
};

struct intern *intern_new(void);
struct intern *intern_free(struct intern *t); /* all sets have to be released before */
unsigned intern_count(const struct intern *t);
/* Returns a reference to the set of these ids; NULL: out of memory. The empty set is valid, too. */
struct iset *intern_get(struct intern *t, struct rp_ids ids);
struct iset *intern_ref(struct iset *s); /* NULL gives NULL */
struct iset *intern_unref(struct intern *t, struct iset *s); /* returns NULL */
