/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rpd/metrics/expo.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/lib/util/hash.h"
#include "core/lib/util/str.h"

struct family {
	char name[EXPO_NAME_MAX];
	enum expo_type type;
	char *help;
	struct buf samples;
	UT_hash_handle hh;
};

/* Key "NAME{LABELS}" of a sample. */
struct sample_key {
	UT_hash_handle hh;
	char text[];
};

void expo_init(struct expo *e)
{
	*e = (struct expo){0};
}

void expo_fini(struct expo *e)
{
	struct family *f, *next;
	struct sample_key *k, *next_key;
	HASH_ITER (hh, e->families, f, next) {
		HASH_DEL(e->families, f);
		buf_fini(&f->samples);
		free(f->help);
		free(f);
	}
	HASH_ITER (hh, e->seen, k, next_key) {
		HASH_DEL(e->seen, k);
		free(k);
	}
}

/* ---- words ----------------------------------------------------------------------------------- */

static bool is_letter(char c, bool colon)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (colon && c == ':');
}

static size_t word_length(const char *s, bool colon)
{
	size_t n = 0;
	if (!is_letter(s[0], colon))
		return 0;
	while (is_letter(s[n], colon) || (s[n] >= '0' && s[n] <= '9'))
		n++;
	return n;
}

bool expo_name_valid(const char *name)
{
	size_t n = word_length(name, true);
	return n && n < EXPO_NAME_MAX && !name[n];
}

/* Returns the position after the closing quote of the value that starts at s; NULL: no valid
 * value. */
static const char *skip_value(const char *s)
{
	if (*s++ != '"')
		return NULL;
	for (; *s != '"'; s++) {
		if (!*s || *s == '\n')
			return NULL;
		if (*s == '\\' && *++s != '\\' && *s != '"' && *s != 'n')
			return NULL;
	}
	return s + 1;
}

bool expo_labels_valid(const char *labels)
{
	size_t len = strnlen(labels, EXPO_LABELS_MAX + 1);
	if (len > EXPO_LABELS_MAX || !utf8_valid(labels, len))
		return false;
	for (const char *s = labels; *s;) {
		size_t n = word_length(s, false);
		if (!n || s[n] != '=')
			return false;
		s = skip_value(s + n + 1);
		if (!s || (*s && *s != ','))
			return false;
		if (*s == ',' && !*++s)
			return false;
	}
	return true;
}

/* Escapes a help text or, with `quotes`, a label's value. */
static void add_escaped(struct buf *out, const char *s, bool quotes)
{
	size_t left = strlen(s);
	while (left) {
		size_t n = utf8_char(s, left);
		if (!n)
			(void)buf_add_str(out, "\xef\xbf\xbd");
		else if (*s == '\n')
			(void)buf_add_str(out, "\\n");
		else if (*s == '\\' || (quotes && *s == '"'))
			(void)buf_printf(out, "\\%c", *s);
		else
			(void)buf_add(out, s, n);
		s += n ? n : 1;
		left -= n ? n : 1;
	}
}

void expo_label(struct buf *labels, const char *name, const char *value)
{
	(void)buf_printf(labels, "%s%s=\"", buf_len(labels) ? "," : "", name);
	add_escaped(labels, value ? value : "", true);
	(void)buf_add_str(labels, "\"");
}

/* Appends the shortest text that reads back as the same number. */
static void add_number(struct buf *out, double v)
{
	char text[40];
	if (isnan(v)) {
		(void)buf_add_str(out, "NaN");
		return;
	}
	if (isinf(v)) {
		(void)buf_add_str(out, v < 0 ? "-Inf" : "+Inf");
		return;
	}
	for (int precision = 15; precision <= 17; precision++) {
		(void)snprintf(text, sizeof text, "%.*g", precision, v);
		if (strtod(text, NULL) == v)
			break;
	}
	(void)buf_add_str(out, text);
}

/* ---- families -------------------------------------------------------------------------------- */

static struct family *family_new(struct expo *e, const char *name, enum expo_type type,
				 const char *help)
{
	struct family *f = calloc(1, sizeof *f);
	if (!f)
		return NULL;
	(void)snprintf(f->name, sizeof f->name, "%s", name);
	f->type = type;
	f->help = strndup(help ? help : "", utf8_cut(help ? help : "", EXPO_HELP_MAX));
	if (!f->help) {
		free(f);
		return NULL;
	}
	HASH_ADD_STR(e->families, name, f);
	if (f->hh.tbl)
		return f;
	free(f->help);
	free(f);
	return NULL;
}

struct family *expo_family(struct expo *e, const char *name, enum expo_type type, const char *help)
{
	struct family *f;
	if (!expo_name_valid(name))
		return NULL;
	HASH_FIND_STR(e->families, name, f);
	if (f)
		return f->type == type ? f : NULL;
	f = family_new(e, name, type, help);
	if (!f)
		e->failed = -ENOMEM;
	return f;
}

void expo_add(struct expo *e, struct family *f, const char *suffix, const char *labels,
	      double value)
{
	if (!f)
		return;
	(void)buf_printf(&f->samples, "%s%s", f->name, suffix);
	if (*labels)
		(void)buf_printf(&f->samples, "{%s}", labels);
	(void)buf_add_str(&f->samples, " ");
	add_number(&f->samples, value);
	if (buf_add_str(&f->samples, "\n"))
		e->failed = -ENOMEM;
}

/* Records a sample. Returns false if it exists already or there is no memory. */
static bool note_sample(struct expo *e, const struct family *f, const char *labels)
{
	size_t size = strlen(f->name) + strlen(labels) + 3;
	struct sample_key *k = malloc(sizeof *k + size), *found;
	if (!k) {
		e->failed = -ENOMEM;
		return false;
	}
	(void)snprintf(k->text, size, "%s{%s}", f->name, labels);
	HASH_FIND(hh, e->seen, k->text, size - 1, found);
	if (found) {
		free(k);
		return false;
	}
	HASH_ADD_KEYPTR(hh, e->seen, k->text, size - 1, k);
	if (k->hh.tbl)
		return true;
	free(k);
	e->failed = -ENOMEM;
	return false;
}

bool expo_add_checked(struct expo *e, struct family *f, const char *labels, double value)
{
	if (!f || !expo_labels_valid(labels) || !note_sample(e, f, labels))
		return false;
	expo_add(e, f, "", labels, value);
	return true;
}

void expo_single(struct expo *e, const char *name, const char *help, double value)
{
	enum expo_type type = str_has_suffix(name, "_total") ? EXPO_COUNTER : EXPO_GAUGE;
	expo_add(e, expo_family(e, name, type, help), "", "", value);
}

void expo_rows(struct expo *e, const struct expo_row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++)
		expo_single(e, rows[i].name, rows[i].help, rows[i].value);
}

int expo_write(const struct expo *e, struct buf *out)
{
	static const char *const types[] = {
		[EXPO_GAUGE] = "gauge",
		[EXPO_COUNTER] = "counter",
		[EXPO_HISTOGRAM] = "histogram",
	};
	for (const struct family *f = e->families; f; f = f->hh.next) {
		if (!buf_len(&f->samples))
			continue;
		if (*f->help) {
			(void)buf_printf(out, "# HELP %s ", f->name);
			add_escaped(out, f->help, false);
			(void)buf_add_str(out, "\n");
		}
		(void)buf_printf(out, "# TYPE %s %s\n", f->name, types[f->type]);
		(void)buf_add(out, buf_bytes(&f->samples), buf_len(&f->samples));
	}
	return e->failed ? e->failed : out->failed;
}
