/* SPDX-License-Identifier: Apache-2.0 */
/* A streaming JSON writer. It adds commas and brackets; invalid UTF-8 in strings becomes U+FFFD.
 * Errors are in out->failed. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/lib/util/buf.h"

#define JSON_DEPTH_MAX 32

struct json {
	struct buf *out;
	unsigned depth;
	bool fresh[JSON_DEPTH_MAX]; /* true: no output yet at this depth */
	bool after_key;
	unsigned n_too_deep; /* open scopes beyond the limit: out->failed is -E2BIG */
};

void json_init(struct json *j, struct buf *out);
void json_obj(struct json *j); /* "{" … json_end_obj */
void json_end_obj(struct json *j);
void json_arr(struct json *j);
void json_end_arr(struct json *j);
void json_key(struct json *j, const char *key);
void json_str(struct json *j, const char *s); /* s NULL writes null */
void json_int(struct json *j, int64_t v);
void json_uint(struct json *j, uint64_t v);
void json_num(struct json *j, double v);
void json_bool(struct json *j, bool v);
void json_nil(struct json *j);
/* Writes key and value, or the key and the beginning of an object or a list. */
void json_kobj(struct json *j, const char *key);
void json_karr(struct json *j, const char *key);
void json_kstr(struct json *j, const char *key, const char *s);
void json_kint(struct json *j, const char *key, int64_t v);
void json_kuint(struct json *j, const char *key, uint64_t v);
void json_kbool(struct json *j, const char *key, bool v);

/* Writes up to nine members of a struct by their names: JSON_MEMBERS(j, pod, name, id). */
#define JSON_MEMBERS(j, s, ...)                                                                    \
	do {                                                                                       \
		JSON_PICK(__VA_ARGS__, JSON_9, JSON_8, JSON_7, JSON_6, JSON_5, JSON_4, JSON_3,     \
			  JSON_2, JSON_1, 0)                                                       \
		(j, s, __VA_ARGS__);                                                               \
	} while (0)
/* Writes a list of objects with such members. `item`: a pointer to the item number i: JSON_LIST(j,
 * "costs", zone->costs[i], zone->n_costs, name, value). */
#define JSON_LIST(j, key, item, n, ...)                                                            \
	do {                                                                                       \
		json_karr(j, key);                                                                 \
		for (size_t i = 0; i < (n); i++) {                                                 \
			json_obj(j);                                                               \
			JSON_MEMBERS(j, item, __VA_ARGS__);                                        \
			json_end_obj(j);                                                           \
		}                                                                                  \
		json_end_arr(j);                                                                   \
	} while (0)
#define JSON_PICK(a, b, c, d, e, f, g, h, i, pick, ...) pick
#define JSON_1(j, s, m)                                                                            \
	_Generic((s)->m,                                                                           \
		bool: json_kbool,                                                                  \
		int: json_kint,                                                                    \
		int64_t: json_kint,                                                                \
		char *: json_kstr,                                                                 \
		const char *: json_kstr,                                                           \
		unsigned: json_kuint,                                                              \
		uint64_t: json_kuint)(j, #m, (s)->m)
#define JSON_2(j, s, m, ...) JSON_1(j, s, m), JSON_1(j, s, __VA_ARGS__)
#define JSON_3(j, s, m, ...) JSON_1(j, s, m), JSON_2(j, s, __VA_ARGS__)
#define JSON_4(j, s, m, ...) JSON_1(j, s, m), JSON_3(j, s, __VA_ARGS__)
#define JSON_5(j, s, m, ...) JSON_1(j, s, m), JSON_4(j, s, __VA_ARGS__)
#define JSON_6(j, s, m, ...) JSON_1(j, s, m), JSON_5(j, s, __VA_ARGS__)
#define JSON_7(j, s, m, ...) JSON_1(j, s, m), JSON_6(j, s, __VA_ARGS__)
#define JSON_8(j, s, m, ...) JSON_1(j, s, m), JSON_7(j, s, __VA_ARGS__)
#define JSON_9(j, s, m, ...) JSON_1(j, s, m), JSON_8(j, s, __VA_ARGS__)
