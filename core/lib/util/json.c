/* SPDX-License-Identifier: Apache-2.0 */
#include "core/lib/util/json.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/lib/util/str.h"

void json_init(struct json *j, struct buf *out)
{
	*j = (struct json){.out = out};
	j->fresh[0] = true;
}

/* Writes the comma before a value or a key. */
static void json_separate(struct json *j)
{
	if (j->after_key) {
		j->after_key = false;
		return;
	}
	if (!j->fresh[j->depth])
		buf_add(j->out, j->depth ? "," : "\n", 1);
	j->fresh[j->depth] = false;
}

/* Opens an object or array. Nesting may depend on external data, so too much of it is an error of
 * the output, not of the caller. */
static void open_scope(struct json *j, const char *bracket)
{
	json_separate(j);
	buf_add(j->out, bracket, 1);
	if (j->depth + 1 == JSON_DEPTH_MAX) {
		if (!j->out->failed)
			j->out->failed = -E2BIG;
		j->n_too_deep++;
		return;
	}
	j->fresh[++j->depth] = true;
}

static void close_scope(struct json *j, const char *bracket)
{
	if (j->n_too_deep)
		j->n_too_deep--;
	else if (j->depth)
		j->depth--;
	buf_add(j->out, bracket, 1);
}

void json_obj(struct json *j)
{
	open_scope(j, "{");
}

void json_end_obj(struct json *j)
{
	close_scope(j, "}");
}

void json_arr(struct json *j)
{
	open_scope(j, "[");
}

void json_end_arr(struct json *j)
{
	close_scope(j, "]");
}

static void add_escape(struct buf *out, unsigned char c)
{
	static const char short_forms[] = "\"\"\\\\\bb\ff\nn\rr\tt";
	for (size_t i = 0; i + 1 < sizeof short_forms; i += 2)
		if (c == (unsigned char)short_forms[i]) {
			const char text[] = {'\\', short_forms[i + 1]};
			buf_add(out, text, sizeof text);
			return;
		}
	buf_printf(out, "\\u%04x", c);
}

static bool needs_escape(unsigned char c)
{
	return c < 0x20 || c == '"' || c == '\\' || c == 0x7f;
}

static void add_string(struct json *j, const char *s)
{
	struct buf *out = j->out;
	size_t left = strlen(s);
	buf_add(out, "\"", 1);
	while (left) {
		size_t plain = 0, n = 0;
		while (plain < left && !needs_escape((unsigned char)s[plain])) {
			n = utf8_char(s + plain, left - plain);
			if (!n)
				break;
			plain += n;
		}
		buf_add(out, s, plain);
		s += plain;
		left -= plain;
		if (!left)
			break;
		if (needs_escape((unsigned char)*s))
			add_escape(out, (unsigned char)*s);
		else
			buf_add_str(out, "\xef\xbf\xbd");
		s++;
		left--;
	}
	buf_add(out, "\"", 1);
}

void json_key(struct json *j, const char *key)
{
	json_separate(j);
	add_string(j, key);
	buf_add(j->out, ":", 1);
	j->after_key = true;
}

void json_str(struct json *j, const char *s)
{
	if (!s) {
		json_nil(j);
		return;
	}
	json_separate(j);
	add_string(j, s);
}

void json_int(struct json *j, int64_t v)
{
	json_separate(j);
	buf_printf(j->out, "%" PRId64, v);
}

void json_uint(struct json *j, uint64_t v)
{
	json_separate(j);
	buf_printf(j->out, "%" PRIu64, v);
}

/* Writes the shortest text that reads back as the same number; infinity and NaN become null. */
void json_num(struct json *j, double v)
{
	if (!isfinite(v)) {
		json_nil(j);
		return;
	}
	char text[32];
	for (int precision = 15; precision <= 17; precision++) {
		(void)snprintf(text, sizeof text, "%.*g", precision, v);
		if (strtod(text, NULL) == v)
			break;
	}
	json_separate(j);
	buf_add_str(j->out, text);
}

void json_bool(struct json *j, bool v)
{
	json_separate(j);
	buf_add_str(j->out, v ? "true" : "false");
}

void json_nil(struct json *j)
{
	json_separate(j);
	buf_add_str(j->out, "null");
}

void json_kobj(struct json *j, const char *key)
{
	json_key(j, key);
	json_obj(j);
}

void json_karr(struct json *j, const char *key)
{
	json_key(j, key);
	json_arr(j);
}

void json_kstr(struct json *j, const char *key, const char *s)
{
	json_key(j, key);
	json_str(j, s);
}

void json_kint(struct json *j, const char *key, int64_t v)
{
	json_key(j, key);
	json_int(j, v);
}

void json_kuint(struct json *j, const char *key, uint64_t v)
{
	json_key(j, key);
	json_uint(j, v);
}

void json_kbool(struct json *j, const char *key, bool v)
{
	json_key(j, key);
	json_bool(j, v);
}
