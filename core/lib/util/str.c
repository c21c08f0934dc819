/* SPDX-License-Identifier: Apache-2.0 */
#include "core/lib/util/str.h"

#include <stdio.h>
#include <stdlib.h>

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static char str_fold(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

bool str_has_prefix(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

bool str_has_suffix(const char *s, const char *suffix)
{
	size_t len = strlen(s), n = strlen(suffix);
	return len >= n && str_eq(s + len - n, suffix);
}

char *str_vprintf(const char *fmt, va_list ap)
{
	char *s = NULL;
	return vasprintf(&s, fmt, ap) < 0 ? NULL : s;
}

char *str_printf(const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	char *s = str_vprintf(fmt, ap);
	va_end(ap);
	return s;
}

/* ---- comparison ------------------------------------------------------------------------------ */

/* Compares two sequences of digits by value and moves both texts behind them. */
static int cmp_numbers(const char **a, const char **b)
{
	const char *p = *a, *q = *b;
	while (*p == '0')
		p++;
	while (*q == '0')
		q++;
	size_t n = strspn(p, "0123456789"), m = strspn(q, "0123456789");
	*a = p + n;
	*b = q + m;
	if (n != m)
		return n < m ? -1 : 1;
	return memcmp(p, q, n);
}

#define EACH_BYTE(b) (UINT64_C(0x0101010101010101) * (b))
#define HIGH_BITS EACH_BYTE(0x80)

/* Returns true if some of eight bytes may be control characters: below 0x20, or 0x7f. False
 * positives are possible, because a borrow may affect the bytes behind such a byte. */
static bool may_control(uint64_t word)
{
	uint64_t low = (word - EACH_BYTE(0x20)) & ~word, del = word ^ EACH_BYTE(0x7f);
	return ((low | ((del - EACH_BYTE(1)) & ~del)) & HIGH_BITS) != 0;
}

void str_one_line(char *s)
{
	char *end = s + strlen(s);
	uint64_t word;
	while (s < end) {
		if (end - s >= (ptrdiff_t)sizeof word &&
		    (memcpy(&word, s, sizeof word), !may_control(word))) {
			s += sizeof word;
			continue;
		}
		if ((unsigned char)*s < ' ' || *s == 0x7f)
			*s = ' ';
		s++;
	}
}

int str_cmp_natural(const char *a, const char *b)
{
	const char *p = a, *q = b;
	while (*p && *q) {
		if (is_digit(*p) && is_digit(*q)) {
			int r = cmp_numbers(&p, &q);
			if (r)
				return r;
			continue;
		}
		if (*p != *q)
			break;
		p++;
		q++;
	}
	if (*p != *q)
		return (unsigned char)*p < (unsigned char)*q ? -1 : 1;
	return strcmp(a, b); /* "1" and "01": still needs an order */
}

#define SHORT 3 /* letters; a longer distance than 1 changes most of a word this short */
#define CLOSEST_MAX 64 /* longer words get no suggestion */

static unsigned str_min3(unsigned a, unsigned b, unsigned c)
{
	unsigned m = a < b ? a : b;
	return m < c ? m : c;
}

/* Returns the number of insertions, deletions, substitutions and swaps of neighbours that lead from
 * a to b. ASCII case is ignored. */
static unsigned edit_distance(const char *a, size_t n, const char *b, size_t m)
{
	unsigned rows[3][CLOSEST_MAX + 1];
	unsigned *before = rows[0], *last = rows[1], *row = rows[2];
	for (size_t j = 0; j <= m; j++)
		last[j] = (unsigned)j;
	for (size_t i = 1; i <= n; i++) {
		char c = str_fold(a[i - 1]);
		row[0] = (unsigned)i;
		for (size_t j = 1; j <= m; j++) {
			char d = str_fold(b[j - 1]);
			row[j] = str_min3(last[j] + 1, row[j - 1] + 1, last[j - 1] + (c != d));
			if (i > 1 && j > 1 && c == str_fold(b[j - 2]) && str_fold(a[i - 2]) == d &&
			    before[j - 2] + 1 < row[j])
				row[j] = before[j - 2] + 1;
		}
		unsigned *free_row = before;
		before = last;
		last = row;
		row = free_row;
	}
	return last[m];
}

const char *str_closest(const char *word, const char *const *candidates, unsigned n)
{
	size_t len = strlen(word);
	if (len > CLOSEST_MAX)
		return NULL;
	unsigned best = len / 3 > 2 ? (unsigned)(len / 3) + 1 : 3;
	const char *closest = NULL;
	for (unsigned i = 0; i < n; i++) {
		size_t m = strlen(candidates[i]), longer = m > len ? m : len;
		if (m > CLOSEST_MAX)
			continue;
		unsigned d = edit_distance(word, len, candidates[i], m);
		/* Short words need a common first letter: "a" is not a misspelt "on", "foo" no
		 * "log". */
		if (len <= SHORT && d > 1 && str_fold(word[0]) != str_fold(candidates[i][0]))
			continue;
		if (d < best && d < longer) {
			best = d;
			closest = candidates[i];
		}
	}
	return closest;
}

/* Returns true if the bracket expression at *pattern ("[a-z]") matches c, and moves the pattern
 * behind it. An expression without end is a plain '['. */
static bool match_bracket(const char **pattern, char c)
{
	const char *p = *pattern + 1;
	bool negated = *p == '!' || *p == '^', found = false;
	unsigned char u = (unsigned char)c;
	if (negated)
		p++;
	for (bool first = true; *p && (first || *p != ']'); first = false) {
		unsigned char from = (unsigned char)*p++, to = from;
		if (from == '\\' && *p)
			from = to = (unsigned char)*p++;
		if (p[0] == '-' && p[1] && p[1] != ']') {
			to = (unsigned char)p[1];
			p += 2;
			if (to == '\\' && *p)
				to = (unsigned char)*p++;
		}
		if (u >= from && u <= to)
			found = true;
	}
	if (!*p) {
		++*pattern;
		return c == '[';
	}
	*pattern = p + 1;
	return found != negated;
}

/* Matches one character of the text with one element of the pattern other than '*', and moves the
 * pattern behind it. */
static bool match_one(const char **pattern, char c)
{
	switch (**pattern) {
	case '?':
		++*pattern;
		return true;
	case '[':
		return match_bracket(pattern, c);
	case '\\':
		if ((*pattern)[1])
			++*pattern;
		break;
	}
	return *(*pattern)++ == c;
}

/* Matches the text. Backtracking only needs the last '*', so the time is at most the product of the
 * two lengths. */
bool str_glob(const char *pattern, const char *s)
{
	const char *star = NULL, *from = NULL;
	while (*s) {
		if (*pattern == '*') {
			star = ++pattern;
			from = s;
			continue;
		}
		if (*pattern && match_one(&pattern, *s)) {
			s++;
			continue;
		}
		if (!star)
			return false;
		pattern = star;
		s = ++from;
	}
	while (*pattern == '*')
		pattern++;
	return !*pattern;
}

/* ---- UTF-8 ----------------------------------------------------------------------------------- */

size_t utf8_char(const char *s, size_t n)
{
	if (!n)
		return 0;
	const unsigned char *u = (const unsigned char *)s;
	size_t len = u[0] < 0x80   ? 1
		     : u[0] < 0xc2 ? 0
		     : u[0] < 0xe0 ? 2
		     : u[0] < 0xf0 ? 3
		     : u[0] < 0xf5 ? 4
				   : 0;
	if (!len || len > n)
		return 0;
	for (size_t i = 1; i < len; i++)
		if ((u[i] & 0xc0) != 0x80)
			return 0;
	if ((u[0] == 0xe0 && u[1] < 0xa0) || (u[0] == 0xf0 && u[1] < 0x90))
		return 0; /* overlong encoding */
	if ((u[0] == 0xed && u[1] > 0x9f) || (u[0] == 0xf4 && u[1] > 0x8f))
		return 0; /* surrogate, or beyond U+10FFFF */
	return len;
}

#define ASCII_NEVER 0x8080808080808080u /* bits that no ASCII character has */

bool utf8_valid(const char *s, size_t n)
{
	uint64_t word;
	while (n) {
		if (n >= sizeof word && (memcpy(&word, s, sizeof word), !(word & ASCII_NEVER))) {
			s += sizeof word;
			n -= sizeof word;
			continue;
		}
		size_t len = utf8_char(s, n);
		if (!len)
			return false;
		s += len;
		n -= len;
	}
	return true;
}

size_t utf8_cut(const char *s, size_t max)
{
	size_t len = strnlen(s, max);
	if (len < max || !s[len])
		return len;
	size_t cut = max;
	while (cut && max - cut < 3 && ((unsigned char)s[cut] & 0xc0) == 0x80)
		cut--;
	/* Continuation bytes without a start byte are no character. */
	return ((unsigned char)s[cut] & 0xc0) == 0x80 ? max : cut;
}

void utf8_mend(char *s)
{
	if (utf8_valid(s, strlen(s)))
		return;
	for (; *s; s++)
		if ((unsigned char)*s >= 0x80)
			*s = '?';
}
