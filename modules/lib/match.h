/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values of a container by key ("pod/labels/app"), expressions over them, and texts with such
 * keys in them.
 */
#ifndef NRI_RP_LIB_MATCH_H
#define NRI_RP_LIB_MATCH_H

#include <stdbool.h>

#include "modules/lib/blocks.h"

#define MATCH_VALUE_MAX 4096u

/*
 * The value of a key, "" when there is none. A key that begins with a colon joins several:
 * ":KVa<K>b" is the values of a and b with V between them (":a:b" is ":::a:b"). True if any part
 * has a value. What does not fit is cut off.
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

/* Reads and checks {key, operator, values}, or a list of such; `what` begins error messages. */
int32_t match_read_one(const struct modhost *h, struct blocks *memory, rp_cfg node,
		       const char *what, struct expr *ret);
int32_t match_read(const struct modhost *h, struct blocks *memory, rp_cfg list, const char *what,
		   struct exprs *ret);
bool match_holds(const struct modhost *h, const struct expr *e, const struct rp_ctr_info *info);
/* The index of the first expression that holds, or -1. */
int32_t match_any(const struct modhost *h, const struct exprs *exprs,
		  const struct rp_ctr_info *info);

/* "${key}", "$key" and "$$" in a text. NULL when it is well-formed, else what is wrong. */
const char *match_check_text(const char *text);
/* Replaces them. False: some key has no value, which counts as ""; or it is malformed and the
 * result is "". */
bool match_expand(const struct modhost *h, const struct rp_ctr_info *info, const char *text,
		  char *buf, size_t size);

#endif
