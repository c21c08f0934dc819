/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Assembly of a line of text without printf: a synchronization makes several lines for each of
 * thousands of containers, and printf would take most of its time. Text that does not fit is cut.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define LINE_MAX_BYTES 1000u /* limit including the NUL; MODHOST_TEXT_MAX */

struct line {
	size_t n; /* bytes in use */
	char text[LINE_MAX_BYTES]; /* NUL-terminated after the first append */
};

/* Appends a text of known length. */
void line_add(struct line *l, const char *text, size_t len);
/* Appends a text. Inline, so that the compiler knows the length of a literal. */
static inline void line_say(struct line *l, const char *text)
{
	line_add(l, text, strlen(text));
}
/* Appends a number in decimal digits. */
void line_number(struct line *l, int64_t value);
/* Appends formatted text; slow, for rare cases. */
void line_printf(struct line *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
