/* SPDX-License-Identifier: Apache-2.0 */
/* A schema with one fault: SCHEMA_CASE says which. */
#define TEST_SCHEMA SCHEMA_POINTER
#include <stdio.h>

#include <nri-rp/config.h>

#define GOOD_ROW                                                                                   \
	{                                                                                          \
		.path = "key", .type = RP_T_INT                                                    \
	}
#define SCHEMA_POINTER (&schema)
#define ROWS GOOD_ROW
#define CHANGE .flags = 0

#if SCHEMA_CASE == 1 /* not data of the module */
#undef SCHEMA_POINTER
#define SCHEMA_POINTER ((const struct rp_schema *)(const void *)stdin)
#elif SCHEMA_CASE == 2
#undef CHANGE
#define CHANGE .size = 8
#elif SCHEMA_CASE == 3
#undef CHANGE
#define CHANGE .key_size = 4
#elif SCHEMA_CASE == 4
#undef CHANGE
#define CHANGE .n_keys = 1000000
#elif SCHEMA_CASE == 5 /* more rows than there are */
#undef CHANGE
#define CHANGE .n_keys = 4000
#elif SCHEMA_CASE == 6
#undef ROWS
#define ROWS                                                                                       \
	{                                                                                          \
		.type = RP_T_INT                                                                   \
	}
#elif SCHEMA_CASE == 7
#undef ROWS
#define ROWS                                                                                       \
	GOOD_ROW,                                                                                  \
	{                                                                                          \
		.path = "key2", .type = 99                                                         \
	}
#elif SCHEMA_CASE == 8
#undef ROWS
#define ROWS                                                                                       \
	{                                                                                          \
		.path = "key", .type = RP_T_ENUM                                                   \
	}
#elif SCHEMA_CASE == 9
#undef ROWS
#define ROWS                                                                                       \
	{                                                                                          \
		.path = "", .type = RP_T_INT                                                       \
	}
#elif SCHEMA_CASE == 10
#undef ROWS
#define ROWS                                                                                       \
	{                                                                                          \
		.path = "key", .type = RP_T_INT, .doc = (const char *)24                           \
	}
#elif SCHEMA_CASE == 11
#undef CHANGE
#define CHANGE .cr_kind = (const char *)24
#elif SCHEMA_CASE == 12 ||                                                                         \
	SCHEMA_CASE ==                                                                             \
		14 /* 12: nothing is wrong: rows are longer than this host knows, and say no more */
#undef CHANGE
#define CHANGE .key_size = sizeof(struct longer_row), .keys = &longer[0].row, .n_keys = 2
#elif SCHEMA_CASE == 13 /* valid: no schema */
#undef SCHEMA_POINTER
#define SCHEMA_POINTER NULL
#endif

struct longer_row {
	struct rp_key row;
	uint64_t unheard_of;
};
__attribute__((used)) static const struct longer_row longer[] = {
	{{.path = "first", .type = RP_T_INT, .min = 1, .max = 9}, 0},
	{{.path = "second", .type = RP_T_STRING}, SCHEMA_CASE == 14},
};
static const struct rp_key keys[] = {ROWS};
__attribute__((used)) static const struct rp_schema schema = {.size = sizeof schema,
							      .keys = keys,
							      .n_keys =
								      sizeof keys / sizeof keys[0],
							      .key_size = sizeof keys[0],
							      CHANGE};

#include "common.h"

#define NAME_OF(n) NAME_OF_(n)
#define NAME_OF_(n) "schema-" #n

RP_MODULE_DEFINE(NAME_OF(SCHEMA_CASE), "1.0", RP_KIND_POLICY, TEST_FUNCTIONS);
