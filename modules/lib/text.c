/* SPDX-License-Identifier: Apache-2.0 */
/* Growing text, and metric labels with quoted values. */
#include <nri-rp/lib/text.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void text_fini(struct text *t)
{
	free(t->bytes);
	*t = (struct text){0};
}

void text_clear(struct text *t)
{
	t->len = 0;
	text_put(t, "");
}

void text_put(struct text *t, const char *more)
{
	size_t n = strlen(more);
	if (t->failed)
		return;
	if (t->cap - t->len < n + 1) {
		size_t cap = (t->len + n + 1) * 2;
		char *grown = realloc(t->bytes, cap);
		if (!grown) {
			t->failed = true;
			return;
		}
		t->bytes = grown;
		t->cap = cap;
	}
	memcpy(t->bytes + t->len, more, n + 1);
	t->len += n;
}

uint64_t text_hash(const char *text)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);
	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
	return hash;
}

void text_put_set(struct text *t, struct rp_ids ids)
{
	char set[RP_IDSET_TEXT_MAX];
	(void)rp_ids_format(ids, set, sizeof set);
	text_put(t, set);
}

const char *text_of(const struct text *t)
{
	return t->failed || !t->bytes ? "" : t->bytes;
}

void text_label(struct text *t, const char *name, const char *value)
{
	text_put(t, t->len ? "," : "");
	text_put(t, name);
	text_put(t, "=\"");
	for (; *value; value++) {
		char c[3] = {*value, 0, 0};
		if (*value == '"' || *value == '\\') {
			c[0] = '\\';
			c[1] = *value;
		}
		text_put(t, *value == '\n' ? "\\n" : c);
	}
	text_put(t, "\"");
}

void text_label_number(struct text *t, const char *name, int64_t value)
{
	char number[24];
	(void)snprintf(number, sizeof number, "%lld", (long long)value);
	text_label(t, name, number);
}

void text_label_set(struct text *t, const char *name, const char *count, struct rp_ids ids)
{
	char set[RP_IDSET_TEXT_MAX];
	(void)rp_ids_format(ids, set, sizeof set);
	text_label(t, name, set);
	if (count)
		text_label_number(t, count, rp_ids_count(ids));
}
