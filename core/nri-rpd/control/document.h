/* SPDX-License-Identifier: Apache-2.0 */
/* Writes parts that several documents have: times, sets, amounts, texts. */
#pragma once

#include "core/nri-rpd/control/internal.h"

/* Writes a time as "2026-01-31T12:00:00.123Z", or null for 0. */
void put_time(struct json *j, const char *key, uint64_t wall_ns);
/* Begins an object, or writes null if there is none. Returns `there`. */
bool put_object(struct json *j, const char *key, bool there);
void put_set(struct json *j, const char *key, const struct iset *set); /* null when NULL */
void put_ids(struct json *j, const char *key, struct rp_ids ids);
void put_amount(struct json *j, const char *key, int64_t v); /* null for RP_NOT_SET */
void put_text(struct json *j, const char *key, const char *s); /* null for NULL and "" */

/* Returns the form of a text that these flags permit: the text itself, or only that an annotation
 * is at fault. */
const char *told(const char *text, uint32_t flags);
void put_lines(struct json *j, const char *key, const char *lines); /* list; empty for NULL */
/* Does so, each line in the form that the flags permit. */
void put_told(struct json *j, const char *key, const char *lines, uint32_t flags);
/* Writes the names of the bits that are set, as a list: PUT_BITS(j, "kinds", kinds, names). */
struct bit_name {
	uint32_t bit;
	const char *name;
};
void put_bits(struct json *j, const char *key, uint32_t bits, const struct bit_name *list,
	      size_t n);
#define PUT_BITS(j, key, bits, list) put_bits(j, key, bits, list, sizeof(list) / sizeof(list)[0])
const char *state_name(uint32_t state);

/* Returns true if `name` matches the pattern: a glob if it has wildcards, else a substring. NULL
 * and "" match all. */
bool matches(const char *pattern, const char *name);

/* Returns the number in a line "VmRSS: 1234 kB" of the process's status; 0: there is none. */
uint64_t process_number(const char *name, int base);
