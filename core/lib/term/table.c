/* SPDX-License-Identifier: Apache-2.0 */
/* Prints tables with columns as wide as their contents. On a narrow terminal some columns are cut,
 * and others are left out. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/lib/term/out.h"
#include "core/lib/util/str.h"

#define COLUMNS_MAX 24u
#define GAP 2u
#define FLEX_MIN 12u /* minimum width after cutting */

struct cell {
	char *text;
	enum style style;
};

struct table {
	const struct term *term;
	const struct column *columns;
	unsigned n_columns;
	struct cell *cells;
	size_t n, cap;
	bool failed;
	unsigned width[COLUMNS_MAX];
	bool dropped[COLUMNS_MAX];
};

struct table *table_new(const struct term *term, const struct column *columns, unsigned n_columns)
{
	struct table *t = n_columns <= COLUMNS_MAX ? calloc(1, sizeof *t) : NULL;
	if (!t)
		return NULL;
	t->term = term;
	t->columns = columns;
	t->n_columns = n_columns;
	for (unsigned c = 0; c < n_columns; c++)
		t->width[c] = text_width(columns[c].title);
	return t;
}

void table_add(struct table *t, enum style style, const char *text)
{
	if (!t || t->failed)
		return;
	if (t->n == t->cap) {
		size_t cap = t->cap ? 2 * t->cap : 64;
		struct cell *grown = realloc(t->cells, cap * sizeof *grown);
		t->failed = !grown;
		if (!grown)
			return;
		t->cells = grown;
		t->cap = cap;
	}
	char *clean = text_clean(t->term, text && *text ? text : "-");
	t->failed = !clean;
	if (!clean)
		return;
	unsigned c = (unsigned)(t->n % t->n_columns), width = text_width(clean);
	if (width > t->width[c])
		t->width[c] = width;
	t->cells[t->n++] = (struct cell){clean, style};
}

void table_addf(struct table *t, enum style style, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	char *text = str_vprintf(fmt, ap);
	va_end(ap);
	table_add(t, style, text ? text : "?");
	free(text);
}

unsigned table_rows(const struct table *t)
{
	return t ? (unsigned)(t->n / t->n_columns) : 0;
}

/* ---- fitting --------------------------------------------------------------------------------- */

static unsigned total_width(const struct table *t)
{
	unsigned total = 0;
	for (unsigned c = 0; c < t->n_columns; c++)
		if (!t->dropped[c])
			total += t->width[c] + GAP;
	return total ? total - GAP : 0;
}

/* Returns the width after cutting all columns as far as possible. */
static unsigned least_width(const struct table *t)
{
	unsigned total = total_width(t);
	for (unsigned c = 0; c < t->n_columns; c++)
		if (!t->dropped[c] && t->columns[c].flex && t->width[c] > FLEX_MIN)
			total -= t->width[c] - FLEX_MIN;
	return total;
}

static bool drop_one(struct table *t, unsigned least)
{
	unsigned worst = t->n_columns;
	for (unsigned c = 0; c < t->n_columns; c++)
		if (!t->dropped[c] && t->columns[c].drop >= least &&
		    (worst == t->n_columns || t->columns[c].drop > t->columns[worst].drop))
			worst = c;
	if (worst == t->n_columns)
		return false;
	t->dropped[worst] = true;
	return true;
}

static unsigned widest_flex(const struct table *t)
{
	unsigned widest = t->n_columns;
	for (unsigned c = 0; c < t->n_columns; c++)
		if (!t->dropped[c] && t->columns[c].flex && t->width[c] > FLEX_MIN &&
		    (widest == t->n_columns || t->width[c] > t->width[widest]))
			widest = c;
	return widest;
}

static void table_fit(struct table *t)
{
	unsigned limit = t->term->width;
	if (!limit)
		return;
	while (total_width(t) > limit && drop_one(t, COLUMN_EXTRA))
		;
	while (least_width(t) > limit && drop_one(t, 1))
		;
	for (unsigned c; total_width(t) > limit && (c = widest_flex(t)) < t->n_columns;)
		t->width[c]--;
}

/* ---- printing -------------------------------------------------------------------------------- */

static void print_cell(const struct table *t, struct out *o, unsigned c, const char *text,
		       enum style style, bool last)
{
	unsigned width = text_width(text), room = t->width[c];
	const char *mark = o->term.utf8 ? "…" : "~";
	bool cut = width > room;
	unsigned bytes = cut ? text_cut(text, room - 1) : (unsigned)strlen(text);
	unsigned pad = cut ? 0 : room - width;
	if (t->columns[c].right)
		out_pad(o, pad);
	if (style != PLAIN)
		out_style(o, style);
	(void)buf_add(&o->buf, text, bytes);
	if (cut)
		(void)buf_add_str(&o->buf, mark);
	if (style != PLAIN)
		out_style(o, PLAIN);
	if (!t->columns[c].right && !last)
		out_pad(o, pad);
	if (!last)
		out_pad(o, GAP);
}

static void print_row(const struct table *t, struct out *o, const struct cell *cells)
{
	unsigned last = 0;
	for (unsigned c = 0; c < t->n_columns; c++)
		if (!t->dropped[c])
			last = c;
	for (unsigned c = 0; c < t->n_columns; c++)
		if (!t->dropped[c])
			print_cell(t, o, c, cells ? cells[c].text : t->columns[c].title,
				   cells ? cells[c].style : BOLD, c == last);
	(void)buf_add_str(&o->buf, "\n");
}

struct table *table_end(struct table *t, struct out *o)
{
	if (!t) {
		o->buf.failed = -ENOMEM;
		return NULL;
	}
	if (t->failed)
		o->buf.failed = -ENOMEM;
	unsigned rows = table_rows(t);
	if (rows && !t->failed) {
		table_fit(t);
		print_row(t, o, NULL);
		for (unsigned r = 0; r < rows; r++)
			print_row(t, o, t->cells + (size_t)r * t->n_columns);
	}
	for (size_t i = 0; i < t->n; i++)
		free(t->cells[i].text);
	free(t->cells);
	free(t);
	return NULL;
}
