/* SPDX-License-Identifier: Apache-2.0 */
/* Functions by which a case reports: check_note() adds a line to its output, check_doing() sets the
 * activity that is named after a crash or hang, check_skip() ends it as skipped with a reason. */
#include "core/nri-rp-modcheck/check.h"

#include <stdarg.h>
#include <stdio.h>

void check_note(struct check *c, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	(void)buf_vprintf(c->out, fmt, ap);
	va_end(ap);
	(void)buf_add_str(c->out, "\n");
}

void check_doing(struct check *c, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	(void)vsnprintf(c->scene->doing, sizeof c->scene->doing, fmt, ap);
	va_end(ap);
}

int check_skip(struct check *c, const char *fmt, ...)
{
	va_list ap;
	buf_reset(c->out);
	va_start(ap, fmt);
	(void)buf_vprintf(c->out, fmt, ap);
	va_end(ap);
	return CHECK_SKIPPED;
}
