/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-sim/expect.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/nri-rp-sim/expect_internal.h"
#include "core/nri-rp-sim/model.h"
#include "core/lib/util/str.h"
#include "core/lib/util/number.h"

/* ---- words ----------------------------------------------------------------------------------- */

static bool name_char(char c)
{
	return isalnum((unsigned char)c) || strchr("_.-/", c);
}

/* Returns the length of a list such as "2-3,8", which is one word without blanks. */
static size_t list_length(const char *p)
{
	size_t n = 0;
	while (isdigit((unsigned char)p[n]) ||
	       (n && (p[n] == '-' || p[n] == ',') && isdigit((unsigned char)p[n + 1])))
		n++;
	return n;
}

static enum word operator_at(const char *p, size_t *ret_len)
{
	static const struct {
		const char *text;
		enum word word;
	} operators[] = {{"==", W_EQUAL},    {"!=", W_UNEQUAL}, {"<=", W_AT_MOST},
			 {">=", W_AT_LEAST}, {"<", W_LESS},	{">", W_MORE},
			 {"(", W_OPEN},	     {")", W_CLOSE},	{",", W_COMMA},
			 {"+", W_PLUS},	     {"-", W_MINUS},	{"|", W_PLUS},
			 {"&", W_INTERSECT}};
	for (unsigned i = 0; i < sizeof operators / sizeof *operators; i++) {
		*ret_len = strlen(operators[i].text);
		if (strncmp(p, operators[i].text, *ret_len) == 0)
			return operators[i].word;
	}
	*ret_len = 1;
	return W_WRONG;
}

static enum word expect_keyword(const char *p, size_t len)
{
	static const struct {
		const char *text;
		enum word word;
	} words[] = {{"and", W_AND}, {"or", W_OR}, {"not", W_NOT}, {"in", W_IN}};
	for (unsigned i = 0; i < sizeof words / sizeof *words; i++)
		if (strlen(words[i].text) == len && strncmp(p, words[i].text, len) == 0)
			return words[i].word;
	return W_NAME;
}

static void set_word(struct parser *p, enum word word, const char *text, size_t len, size_t skip)
{
	p->word = word;
	p->at = p->next;
	p->text = text;
	p->len = len;
	p->next += skip;
}

void parser_advance(struct parser *p)
{
	size_t n;
	p->next += strspn(p->next, " \t\n");
	const char *at = p->next;
	if (!*at) {
		set_word(p, W_END, at, 0, 0);
	} else if (isdigit((unsigned char)*at)) {
		n = list_length(at);
		set_word(p, memchr(at, '-', n) || memchr(at, ',', n) ? W_LIST : W_NUMBER, at, n, n);
	} else if (isalpha((unsigned char)*at) || *at == '_') {
		for (n = 1; at[n] && name_char(at[n]);)
			n++;
		set_word(p, expect_keyword(at, n), at, n, n);
	} else if (*at == '\'' || *at == '"') {
		const char *end = strchr(at + 1, *at);
		n = end ? (size_t)(end - at - 1) : 0;
		set_word(p, end ? W_TEXT : W_WRONG, at + 1, n, end ? n + 2 : 1);
	} else {
		enum word word = operator_at(at, &n);
		set_word(p, word, at, n, n);
	}
}

int parser_wrong(struct parser *p, const char *expected)
{
	return err_set(p->err, -EINVAL, "%s: expected %s at \"%s\"", p->whole, expected, p->at);
}

/* ---- values ---------------------------------------------------------------------------------- */

void value_number(struct value *v, int64_t number)
{
	v->kind = V_NUMBER;
	v->number = number;
}

void value_text(struct value *v, const char *text, size_t len)
{
	v->kind = V_TEXT;
	(void)snprintf(v->text, sizeof v->text, "%.*s", (int)len, text);
}

int value_to_set(const struct parser *p, struct value *v)
{
	if (v->kind == V_SET)
		return 0;
	if (v->kind == V_CTR) {
		model_cpus(p->s, v->ctr, &v->set);
	} else if (v->kind == V_NUMBER && v->number >= 0 && v->number < RP_CPUS_MAX) {
		rp_idset_clear(&v->set);
		rp_idset_add(&v->set, (uint32_t)v->number);
	} else {
		return err_set(p->err, -EINVAL, "%s: expected a set", p->whole);
	}
	v->kind = V_SET;
	return 0;
}

static bool expect_truth(const struct value *v)
{
	switch (v->kind) {
	case V_NUMBER:
		return v->number != 0;
	case V_SET:
		return !rp_ids_empty(rp_ids_of(&v->set));
	case V_TEXT:
		return v->text[0];
	default:
		return true;
	}
}

void value_add_to(const struct value *v, struct buf *out)
{
	char text[RP_IDSET_TEXT_MAX];
	switch (v->kind) {
	case V_NUMBER:
		buf_printf(out, "%" PRId64, v->number);
		break;
	case V_SET:
		(void)rp_ids_format(rp_ids_of(&v->set), text, sizeof text);
		buf_add_str(out, *text ? text : "empty");
		break;
	case V_TEXT:
		buf_printf(out, "'%s'", v->text);
		break;
	default:
		buf_add_str(out, v->ctr->name);
	}
}

/* ---- operators ------------------------------------------------------------------------------- */

static int compare_numbers(enum word op, int64_t a, int64_t b)
{
	switch (op) {
	case W_EQUAL:
		return a == b;
	case W_UNEQUAL:
		return a != b;
	case W_AT_MOST:
		return a <= b;
	case W_AT_LEAST:
		return a >= b;
	case W_LESS:
		return a < b;
	default:
		return a > b;
	}
}

/* Compares sets; "less" means "is a proper subset". */
static int compare_sets(enum word op, struct rp_ids a, struct rp_ids b)
{
	switch (op) {
	case W_EQUAL:
		return rp_ids_equal(a, b);
	case W_UNEQUAL:
		return !rp_ids_equal(a, b);
	case W_IN:
	case W_AT_MOST:
		return rp_ids_subset(a, b);
	case W_AT_LEAST:
		return rp_ids_subset(b, a);
	case W_LESS:
		return rp_ids_subset(a, b) && !rp_ids_equal(a, b);
	default:
		return rp_ids_subset(b, a) && !rp_ids_equal(a, b);
	}
}

static int expect_compare(struct parser *p, enum word op, struct value *a, struct value *b,
			  bool *ret)
{
	if (a->kind == V_TEXT && b->kind == V_TEXT) {
		if (op == W_IN) {
			*ret = strstr(b->text, a->text) != NULL;
			return 0;
		}
		if (op != W_EQUAL && op != W_UNEQUAL)
			return err_set(p->err, -EINVAL, "%s: texts are ==, != or in", p->whole);
		*ret = str_eq(a->text, b->text) == (op == W_EQUAL);
		return 0;
	}
	if (a->kind == V_NUMBER && b->kind == V_NUMBER && op != W_IN) {
		*ret = compare_numbers(op, a->number, b->number);
		return 0;
	}
	int r = value_to_set(p, a);
	if (!r)
		r = value_to_set(p, b);
	if (!r)
		*ret = compare_sets(op, rp_ids_of(&a->set), rp_ids_of(&b->set));
	return r;
}

static int expect_combine(struct parser *p, enum word op, struct value *a, struct value *b)
{
	if (op == W_AND || op == W_OR) {
		bool left = expect_truth(a), right = expect_truth(b);
		value_number(a, op == W_AND ? left && right : left || right);
		return 0;
	}
	if (a->kind == V_NUMBER && b->kind == V_NUMBER && op != W_INTERSECT) {
		a->number = op == W_PLUS ? a->number + b->number : a->number - b->number;
		return 0;
	}
	int r = value_to_set(p, a);
	if (!r)
		r = value_to_set(p, b);
	if (r)
		return r;
	if (op == W_PLUS)
		rp_idset_or(&a->set, rp_ids_of(&a->set), rp_ids_of(&b->set));
	else if (op == W_MINUS)
		rp_idset_andnot(&a->set, rp_ids_of(&a->set), rp_ids_of(&b->set));
	else
		rp_idset_and(&a->set, rp_ids_of(&a->set), rp_ids_of(&b->set));
	return 0;
}

/* ---- grammar, from the inside out ------------------------------------------------------------ */

static int parse_word(struct parser *p, struct value *v)
{
	char text[256];
	uint64_t number;
	(void)snprintf(text, sizeof text, "%.*s", (int)p->len, p->text);
	switch (p->word) {
	case W_NUMBER:
		if (str_to_u64(text, &number) || number > INT64_MAX)
			return parser_wrong(p, "a smaller number");
		value_number(v, (int64_t)number);
		break;
	case W_LIST:
		v->kind = V_SET;
		if (rp_idset_parse(&v->set, text, RP_CPUS_MAX))
			return parser_wrong(p, "a list such as 0-3,8");
		break;
	case W_TEXT:
		value_text(v, p->text, p->len);
		break;
	default:
		return parser_wrong(p, "a value");
	}
	parser_advance(p);
	return 0;
}

static int parse_factor(struct parser *p, struct value *v)
{
	if (p->word == W_NAME)
		return function_parse(p, v);
	if (p->word != W_OPEN)
		return parse_word(p, v);
	parser_advance(p);
	int r = parser_expression(p, v);
	if (!r && p->word != W_CLOSE)
		return parser_wrong(p, "\")\"");
	parser_advance(p);
	return r;
}

/* Parses operands with the operators `first` to `last` between them, from left to right. */
static int parse_chain(struct parser *p, struct value *v, enum word first, enum word last,
		       int (*operand)(struct parser *p, struct value *v))
{
	int r = operand(p, v);
	while (!r && p->word >= first && p->word <= last) {
		struct value right;
		enum word op = p->word;
		parser_advance(p);
		r = operand(p, &right);
		if (!r)
			r = expect_combine(p, op, v, &right);
	}
	return r;
}

static int parse_term(struct parser *p, struct value *v)
{
	return parse_chain(p, v, W_INTERSECT, W_INTERSECT, parse_factor);
}

static int parse_sum(struct parser *p, struct value *v)
{
	return parse_chain(p, v, W_PLUS, W_MINUS, parse_term);
}

/* Parses comparisons; `a == b == c` requires both, and `a not in b` negates. */
static int parse_comparison(struct parser *p, struct value *v)
{
	int r = parse_sum(p, v);
	bool all = true, any = false;
	while (!r && (p->word >= W_EQUAL && p->word <= W_NOT)) {
		struct value right, kept;
		bool holds = false, negate = p->word == W_NOT;
		if (negate)
			parser_advance(p);
		enum word op = p->word;
		if (negate && op != W_IN)
			return parser_wrong(p, "\"in\"");
		parser_advance(p);
		r = parse_sum(p, &right);
		kept = right;
		if (!r)
			r = expect_compare(p, op, v, &right, &holds);
		if (!r)
			all &= holds != negate;
		any = true;
		*v = kept;
	}
	if (!r && any)
		value_number(v, all);
	return r;
}

static int parse_not(struct parser *p, struct value *v)
{
	bool negate = false;
	while (p->word == W_NOT) {
		negate = !negate;
		parser_advance(p);
	}
	int r = parse_comparison(p, v);
	if (!r && negate)
		value_number(v, !expect_truth(v));
	return r;
}

static int parse_and(struct parser *p, struct value *v)
{
	return parse_chain(p, v, W_AND, W_AND, parse_not);
}

int parser_expression(struct parser *p, struct value *v)
{
	if (p->depth++ == EXPECT_DEPTH_MAX)
		return err_set(p->err, -EINVAL, "%s: nested too deep", p->whole);
	int r = parse_chain(p, v, W_OR, W_OR, parse_and);
	p->depth--;
	return r;
}

int expect_holds(const struct sim *s, const char *text, bool *ret, struct buf *why, struct err *err)
{
	struct parser p = {.s = s, .whole = text, .next = text, .why = why, .err = err};
	struct value v;
	parser_advance(&p);
	int r = parser_expression(&p, &v);
	if (!r && p.word != W_END)
		r = parser_wrong(&p, "the end");
	if (!r)
		*ret = expect_truth(&v);
	return r;
}

int expect_check(const char *text, struct err *err)
{
	struct parser p = {.whole = text, .next = text, .err = err};
	int open = 0;
	for (parser_advance(&p); p.word != W_END; parser_advance(&p)) {
		if (p.word == W_WRONG)
			return parser_wrong(&p, "a word");
		open += (p.word == W_OPEN) - (p.word == W_CLOSE);
		if (open < 0)
			return parser_wrong(&p, "no \")\"");
	}
	return open ? parser_wrong(&p, "\",\" or \")\"") : 0;
}
