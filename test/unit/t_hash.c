/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "core/lib/util/hash.h"

#define BUCKETS 1024u
#define KEYS (16u * BUCKETS)

static void the_same_wherever_it_lies(void **state)
{
	char text[] = "0123456789abcdefghijklmnopqrstuvwxyz", moved[64];
	for (size_t n = 0; n < sizeof text; n++)
		for (size_t at = 0; at < 9; at++) {
			memset(moved, 'x', sizeof moved);
			memcpy(moved + at, text, n);
			assert_int_equal(hash_bytes(moved + at, n), hash_bytes(text, n));
		}
}

static void every_bit_and_the_length_count(void **state)
{
	uint8_t bytes[33] = {0};
	for (size_t n = 1; n < sizeof bytes; n++) {
		unsigned plain = hash_bytes(bytes, n);
		assert_int_not_equal(plain, hash_bytes(bytes, n - 1));
		for (size_t bit = 0; bit < 8 * n; bit++) {
			bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
			assert_int_not_equal(plain, hash_bytes(bytes, n));
			bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
		}
	}
}

/* Ids that differ in a few digits, wherever these are, do not crowd in a few buckets, by their low
 * bits as uthash takes them. */
static void spreads(void **state)
{
	char key[64];
	for (size_t at = 0; at + 8 < sizeof key; at++) {
		unsigned count[BUCKETS] = {0}, most = 0;
		memset(key, 'a', sizeof key);
		for (unsigned i = 0; i < KEYS; i++) {
			char digits[9];
			(void)snprintf(digits, sizeof digits, "%08u", i);
			memcpy(key + at, digits, 8);
			unsigned *c = &count[hash_bytes(key, sizeof key) % BUCKETS];
			most = ++*c > most ? *c : most;
		}
		/* 16 on average; with chance alone one of a thousand has more than 56 in one run of
		 * 10^10 */
		assert_true(most <= 56);
	}
}

static void tables_find(void **state)
{
	struct entry {
		char key[24];
		UT_hash_handle hh;
	} *table = NULL, *found, *next;
	for (unsigned i = 0; i < 3000; i++) {
		struct entry *e = calloc(1, sizeof *e);
		assert_non_null(e);
		(void)snprintf(e->key, sizeof e->key, "container-%u", i);
		HASH_ADD_STR(table, key, e);
	}
	HASH_FIND_STR(table, "container-2999", found);
	assert_non_null(found);
	HASH_FIND_STR(table, "container-3000", found);
	assert_null(found);
	HASH_ITER (hh, table, found, next) {
		HASH_DEL(table, found);
		free(found);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_same_wherever_it_lies),
		cmocka_unit_test(every_bit_and_the_length_count),
		cmocka_unit_test(spreads),
		cmocka_unit_test(tables_find),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
