/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text for people: abilities of the terminal, colours, tables, units. All text from the daemon has
 * to be written by out_text and similar functions, which remove terminal control sequences, because
 * any user of a cluster may write names and annotations.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/lib/util/buf.h"

enum style { PLAIN, BOLD, DIM, RED, GREEN, YELLOW, BLUE, MAGENTA, CYAN, N_STYLES };

struct term {
	unsigned width; /* columns; 0: no limit, because it is no terminal */
	bool colour, utf8;
};

struct out {
	struct term term;
	struct buf buf;
};

/* Determines the abilities of stdout, from the descriptor and the environment (NO_COLOR, TERM,
 * COLUMNS, the locale). */
void term_init(struct term *t, int fd);

void out_init(struct out *o, const struct term *term);
void out_fini(struct out *o);
/* Writes the output to stdout. -errno. */
int out_flush(struct out *o);

/* Adds text of this program; other characters than ASCII are replaced if the terminal has no
 * UTF-8. */
void out_put(struct out *o, const char *s);
void out_printf(struct out *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Adds external text on one line. */
void out_text(struct out *o, const char *s);
void out_styled(struct out *o, enum style style, const char *s);
/* Adds external text with its lines. */
void out_lines(struct out *o, const char *s);
void out_style(struct out *o, enum style style); /* begins a style; PLAIN ends it */
void out_pad(struct out *o, unsigned n); /* prints n blanks */
/* Adds the heading of a group of fields. */
void out_heading(struct out *o, const char *text);
/* Adds a line with the name of a field and its value. value NULL: the caller adds the value. */
void out_field(struct out *o, const char *name, const char *value);
void out_fieldf(struct out *o, const char *name, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Adds words broken into lines at blanks and commas; all lines but the first begin with `indent`
 * blanks. `column`: begin of the first line. */
void out_wrap(struct out *o, const char *s, unsigned column, unsigned indent);
/* Adds a mark at the beginning of the line, external text behind the mark like out_wrap(), and a
 * newline. */
void out_item(struct out *o, enum style style, const char *mark, const char *s, unsigned indent);

/* Returns the columns that a text needs, and the bytes of its beginning that need at most
 * `columns`. */
unsigned text_width(const char *s);
unsigned text_cut(const char *s, unsigned columns);
/* Returns a copy without terminal control sequences, as the terminal can show it. malloc'd; NULL:
 * out of memory. */
char *text_clean(const struct term *term, const char *s);

/* ---- units ---- */

#define UNIT_MAX 40u
const char *unit_bytes(uint64_t bytes, char buf[UNIT_MAX]); /* for example "1.5 GiB" */
const char *unit_cpu(int64_t milli, char buf[UNIT_MAX]); /* for example "1.5" or "250m" */
const char *unit_us(uint64_t us, char buf[UNIT_MAX]); /* for example "1.2 ms" */
const char *unit_age(int64_t seconds, char buf[UNIT_MAX]); /* for example "3d 4h" */
const char *unit_count(uint64_t n, const char *one, const char *many, char buf[UNIT_MAX]);
/* Parses "2026-01-31T12:00:00.123Z" as wall-clock seconds; 0: invalid. */
int64_t time_parse(const char *text);
const char *unit_time(const char *text, char buf[UNIT_MAX]); /* local time, "Jan 31 12:00:00" */

/* ---- tables ---- */

#define COLUMN_EXTRA 5u
struct column {
	const char *title;
	bool right; /* the column is right-aligned */
	bool flex; /* the column can be cut on a narrow terminal */
	/* Order in which columns are left out on a narrow terminal, the highest first; 0: never.
	 * From COLUMN_EXTRA on, a column is left out before any is cut; below, only if cutting does
	 * not suffice. */
	unsigned drop;
};

struct table;
struct table *table_new(const struct term *term, const struct column *columns, unsigned n_columns);
/* Adds the next cell, row by row. */
void table_add(struct table *t, enum style style, const char *text);
void table_addf(struct table *t, enum style style, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Prints and frees the table. Without rows nothing is printed. Returns NULL. */
struct table *table_end(struct table *t, struct out *o);
unsigned table_rows(const struct table *t);
