/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values of a container by key ("pod/labels/app"), expressions over such values, and texts that
 * refer to them.
 */
#pragma once

#include <stdbool.h>

#include <nri-rp/lib/blocks.h>

#define MATCH_VALUE_MAX 4096u

/*
 * Writes the value of a key, "" if there is none. A key that begins with a colon joins several:
 * ":KVa<K>b" is the values of a and b with V between them (":a:b" is ":::a:b"). Returns true if any
 * part has a value. A value that does not fit is cut.
 */
bool match_value(const struct modhost *h, const struct rp_ctr_info *info, const char *key,
		 char *buf, size_t size);

struct expr {
	const char *key;
	uint32_t op;
	struct texts values;
};

struct exprs {
	struct expr *list;
	uint32_t n;
};

/* Reads and checks an expression {key, operator, values}, or a list of expressions. `what` begins
 * the messages. */
int32_t match_read_one(const struct modhost *h, struct blocks *memory, rp_cfg node,
		       const char *what, struct expr *ret);
int32_t match_read(const struct modhost *h, struct blocks *memory, rp_cfg list, const char *what,
		   struct exprs *ret);
/* Returns true if the expression holds for the container. */
bool match_holds(const struct modhost *h, const struct expr *e, const struct rp_ctr_info *info);
/* Returns the index of the first expression that holds, or -1. */
int32_t match_any(const struct modhost *h, const struct exprs *exprs,
		  const struct rp_ctr_info *info);

/* Checks a text with references "${key}", "$key" and "$$". Returns NULL, or the error. */
const char *match_check_text(const char *text);
/* Replaces the references in a text. False: a key has no value, which is treated as "", or the text
 * is malformed and the result is "". */
bool match_expand(const struct modhost *h, const struct rp_ctr_info *info, const char *text,
		  char *buf, size_t size);
