/* SPDX-License-Identifier: Apache-2.0 */
/* Types and functions shared by expect.c and functions.c. */
#pragma once

#include "core/nri-rp-sim/expect.h"

enum word {
	W_END,
	W_WRONG,
	W_NAME,
	W_NUMBER,
	W_LIST,
	W_TEXT,
	W_OPEN,
	W_CLOSE,
	W_COMMA,
	W_PLUS,
	W_MINUS,
	W_INTERSECT,
	W_AND,
	W_OR,
	/* comparisons: */
	W_EQUAL,
	W_UNEQUAL,
	W_AT_MOST,
	W_AT_LEAST,
	W_LESS,
	W_MORE,
	W_IN,
	W_NOT,
};

#define VALUE_TEXT_MAX 512u

struct value {
	enum { V_NUMBER, V_SET, V_TEXT, V_CTR } kind;
	int64_t number;
	struct sim_ctr *ctr;
	char text[VALUE_TEXT_MAX];
	struct rp_idset set;
};

struct parser {
	const struct sim *s;
	const char *whole;
	const char *next; /* text behind the current word */
	enum word word; /* current word */
	const char *at, *text; /* start of the current word; its text */
	size_t len;
	unsigned depth;
	struct buf *why;
	struct err *err;
};

void parser_advance(struct parser *p);
int parser_wrong(struct parser *p, const char *expected);
int parser_expression(struct parser *p, struct value *v);

void value_number(struct value *v, int64_t number);
void value_text(struct value *v, const char *text, size_t len);
int value_to_set(const struct parser *p, struct value *v);
void value_add_to(const struct value *v, struct buf *out);

/* Parses a name: a function with its arguments, a value of the machine, or a container. */
int function_parse(struct parser *p, struct value *v);
