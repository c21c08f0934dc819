/* SPDX-License-Identifier: Apache-2.0 */
/* Text that grows, and labels of a metric as such a text: name="value",… */
#ifndef NRI_RP_LIB_TEXT_H
#define NRI_RP_LIB_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include <nri-rp/set.h>

/* All zeros: empty. */
struct text {
	char *bytes;
	size_t len, cap;
	bool failed; /* memory ran out: it stays as it is */
};

void text_fini(struct text *t);
void text_clear(struct text *t); /* empty again; what has failed stays so */
void text_put(struct text *t, const char *more);
void text_put_set(struct text *t, struct rp_ids ids);
const char *text_of(const struct text *t); /* "" when it has failed */

/* One label more, its value quoted. */
void text_label(struct text *t, const char *name, const char *value);
void text_label_number(struct text *t, const char *name, int64_t value);
/* A set, and how many are in it; count: the name of that, or NULL. */
void text_label_set(struct text *t, const char *name, const char *count, struct rp_ids ids);

#endif
