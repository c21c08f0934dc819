/* SPDX-License-Identifier: Apache-2.0 */
/* Text: comparison, suggestions, globs, UTF-8. Numbers are parsed by number.h. */
#pragma once

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
/* Formats into a malloc'd text; NULL: out of memory. */
char *str_printf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
char *str_vprintf(const char *fmt, va_list ap) __attribute__((format(printf, 1, 0)));
/* Compares in natural order: sequences of digits compare as numbers ("c2" < "c10"). */
int str_cmp_natural(const char *a, const char *b);
/* Returns the candidate closest to word, for "did you mean"; NULL: none is close. */
const char *str_closest(const char *word, const char *const *candidates, unsigned n);
/* Replaces control characters by blanks, so that untrusted text is one line. */
void str_one_line(char *s);
/* Returns true if the shell glob (*, ?, [..]) matches the whole text. */
bool str_glob(const char *pattern, const char *s);

/* Returns the length of the character that starts at s, at most n bytes; 0: no valid character. */
size_t utf8_char(const char *s, size_t n);
bool utf8_valid(const char *s, size_t n);
/* Returns the length of the longest prefix of at most max bytes that does not cut a character. */
size_t utf8_cut(const char *s, size_t max);
/* Makes untrusted text valid UTF-8: if it is not, every byte that is not ASCII becomes "?". */
void utf8_mend(char *s);
