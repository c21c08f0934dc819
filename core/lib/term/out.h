/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text for people: what the terminal can do, colours, tables, units. Everything from the daemon
 * goes through out_text and its like, which let nothing through that a terminal would take for a
 * command: names and annotations are written by any user of a cluster.
 */
#ifndef TERM_OUT_H
#define TERM_OUT_H

#include <stdbool.h>
#include <stdint.h>

#include "core/lib/util/buf.h"

enum style { PLAIN, BOLD, DIM, RED, GREEN, YELLOW, BLUE, MAGENTA, CYAN, N_STYLES };

struct term {
	unsigned width; /* columns; 0: no end, it is no terminal */
	bool colour, utf8;
};

struct out {
	struct term term;
	struct buf buf;
};

/* What stdout is, by the environment's wishes (NO_COLOR, TERM, COLUMNS, the locale). */
void term_init(struct term *t, int fd);

void out_init(struct out *o, const struct term *term);
void out_fini(struct out *o);
/* Writes it to stdout. -errno. */
int out_flush(struct out *o);

/* Literal text of ours; what is not ASCII is replaced where the terminal has no UTF-8. */
void out_put(struct out *o, const char *s);
void out_printf(struct out *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Text from elsewhere, on one line. */
void out_text(struct out *o, const char *s);
void out_styled(struct out *o, enum style style, const char *s);
/* The same, lines kept. */
void out_lines(struct out *o, const char *s);
void out_style(struct out *o, enum style style); /* PLAIN ends it */
void out_pad(struct out *o, unsigned n); /* blanks */
/* A heading, and "  name   value" below it; value NULL: the caller goes on. */
void out_heading(struct out *o, const char *text);
void out_field(struct out *o, const char *name, const char *value);
/* Words broken into lines at blanks and commas; all but the first begin with `indent` blanks.
 * `column`: where the first begins. */
void out_wrap(struct out *o, const char *s, unsigned column, unsigned indent);

/* Columns that text takes, and the bytes of its beginning that take at most `columns`. */
unsigned text_width(const char *s);
unsigned text_cut(const char *s, unsigned columns);
/* A copy without what controls terminals, as the terminal can show it. malloc'd; NULL when out of
 * memory. */
char *text_clean(const struct term *term, const char *s);

/* ---- units ---- */

#define UNIT_MAX 40u
const char *unit_bytes(uint64_t bytes, char buf[UNIT_MAX]); /* "1.5 GiB" */
const char *unit_cpu(int64_t milli, char buf[UNIT_MAX]); /* "1.5", "250m" */
const char *unit_us(uint64_t us, char buf[UNIT_MAX]); /* "1.2 ms" */
const char *unit_age(int64_t seconds, char buf[UNIT_MAX]); /* "3d 4h" */
const char *unit_count(uint64_t n, const char *one, const char *many, char buf[UNIT_MAX]);
/* "2026-01-31T12:00:00.123Z" → wall clock seconds; 0: not a time. */
int64_t time_parse(const char *text);
const char *unit_time(const char *text, char buf[UNIT_MAX]); /* local, "Jan 31 12:00:00" */

/* ---- tables ---- */

#define COLUMN_EXTRA 5u
struct column {
	const char *title;
	bool right; /* aligned */
	bool flex; /* may be cut when the terminal is narrow */
	/* Not 0: left out on a narrow terminal, the highest first: from COLUMN_EXTRA on before
	 * anything is cut, below when cutting does not suffice. */
	unsigned drop;
};

struct table;
struct table *table_new(const struct term *term, const struct column *columns, unsigned n_columns);
/* The next cell, row by row. */
void table_add(struct table *t, enum style style, const char *text);
/* Prints and frees it. With no rows nothing is printed. Returns NULL. */
struct table *table_end(struct table *t, struct out *o);
unsigned table_rows(const struct table *t);

#endif
