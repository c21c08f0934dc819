/* SPDX-License-Identifier: Apache-2.0 */
/* Text: comparison, numbers, quantities, UTF-8. Parsers take the whole text or fail with -EINVAL
 * (-ERANGE: too large). */
#ifndef UTIL_STR_H
#define UTIL_STR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline bool str_eq(const char *a, const char *b)
{
	return strcmp(a, b) == 0;
}

bool str_has_prefix(const char *s, const char *prefix);
bool str_has_suffix(const char *s, const char *suffix);
/* malloc'd; NULL when out of memory. */
char *str_printf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
char *str_vprintf(const char *fmt, va_list ap) __attribute__((format(printf, 1, 0)));
/* Natural order: runs of digits compare as numbers ("c2" < "c10"). */
int str_cmp_natural(const char *a, const char *b);
/* The candidate closest to word, for "did you mean"; NULL when none is close. */
const char *str_closest(const char *word, const char *const *candidates, unsigned n);
/* Makes control characters blanks: text of strangers as one line. */
void str_one_line(char *s);
/* Shell glob (*, ?, [..]) over the whole text. */
bool str_glob(const char *pattern, const char *s);

/* Length of the character that starts at s, at most n bytes; 0 when there is none or it is not
 * valid. */
size_t utf8_char(const char *s, size_t n);
bool utf8_valid(const char *s, size_t n);
/* Length of the longest prefix of at most max bytes that does not cut a character. */
size_t utf8_cut(const char *s, size_t max);
/* Text of strangers: where it is not valid, what is not ASCII becomes "?". */
void utf8_mend(char *s);

#endif
