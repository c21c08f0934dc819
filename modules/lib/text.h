/* SPDX-License-Identifier: Apache-2.0 */
/* Growing text, and metric labels as such a text: name="value",… */
#ifndef NRI_RP_LIB_TEXT_H
#define NRI_RP_LIB_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include <nri-rp/set.h>

/* All zeros: empty. */
struct text {
	char *bytes;
	size_t len, cap;
	bool failed; /* memory was short; further text is dropped */
};

/* Frees the text. It is empty afterwards. */
void text_fini(struct text *t);
void text_clear(struct text *t); /* makes the text empty; does not reset `failed` */
/* Appends a text, or the list form of a set. */
void text_put(struct text *t, const char *more);
void text_put_set(struct text *t, struct rp_ids ids);
const char *text_of(const struct text *t); /* "" if it has failed */

/* Returns a hash of a text (64-bit FNV-1a), equal in all processes. */
uint64_t text_hash(const char *text);

/* Adds a label with its quoted value. */
void text_label(struct text *t, const char *name, const char *value);
void text_label_number(struct text *t, const char *name, int64_t value);
/* Adds a label with a set. count: name of a label with the size of the set; NULL: none. */
void text_label_set(struct text *t, const char *name, const char *count, struct rp_ids ids);

#endif
