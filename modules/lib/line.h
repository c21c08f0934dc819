/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A line of text put together by hand: several are made for each container, of thousands in a
 * synchronization, and printf would be most of the work. What does not fit is left out.
 */
#ifndef NRI_RP_LIB_LINE_H
#define NRI_RP_LIB_LINE_H

#include <stddef.h>
#include <stdint.h>

#define LINE_MAX_BYTES 1000u /* with the NUL; MODHOST_TEXT_MAX */

struct line {
	size_t n; /* bytes that are there */
	char text[LINE_MAX_BYTES]; /* ends with a NUL once something was said */
};

void line_say(struct line *l, const char *text);
void line_number(struct line *l, int64_t value);
/* For what is rarely said. */
void line_printf(struct line *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
