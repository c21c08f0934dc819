/* SPDX-License-Identifier: Apache-2.0 */
/* Assembly of a line of text. */
#include "modules/lib/private/line.h"

#include <stdarg.h>
#include <stdio.h>

void line_add(struct line *l, const char *text, size_t len)
{
	size_t left = sizeof l->text - 1 - l->n;
	len = len < left ? len : left;
	memcpy(l->text + l->n, text, len);
	l->n += len;
	l->text[l->n] = '\0';
}

void line_number(struct line *l, int64_t value)
{
	char digits[24], *p = digits + sizeof digits - 1;
	uint64_t left = value < 0 ? -(uint64_t)value : (uint64_t)value;
	*p = '\0';
	do {
		*--p = (char)('0' + left % 10);
		left /= 10;
	} while (left);
	if (value < 0)
		*--p = '-';
	line_say(l, p);
}

void line_printf(struct line *l, const char *fmt, ...)
{
	char text[LINE_MAX_BYTES];
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	line_say(l, n < 0 ? "" : text);
}
