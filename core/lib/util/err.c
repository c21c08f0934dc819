/* SPDX-License-Identifier: Apache-2.0 */
/*
 * core/lib/util: foundations of the other folders of core, independent of containers.
 *
 *   err, log      errors for people; one line a message, never in the caller's way
 *   arena, buf    memory that is freed together; growable bytes
 *   str, json     text: strict parsers, a streaming writer
 *   intern        equal sets as one object
 *   fs            files below a root, which is "/" on a node and a recorded tree elsewhere
 *   loop, worker  the thread that decides, a second one that may block, and the clocks
 *
 * The folder has no global state except the log sink. Only log, clock, loop_post and worker_submit
 * may be used off the loop's thread. None of these takes a lock that a forked child could find
 * locked (loop_post and worker_submit refuse after loop_abandon).
 */
#include "core/lib/util/err.h"

#include <stdio.h>
#include <string.h>

#include "core/lib/util/str.h"

/* Completes an error: a text that is too long is cut between characters. */
static void err_finish(struct err *e, int code, int len)
{
	e->code = code;
	if (len < 0)
		e->text[0] = '\0';
	else if ((size_t)len >= sizeof e->text)
		e->text[utf8_cut(e->text, sizeof e->text - 2)] = '\0';
}

int err_vset(struct err *e, int code, const char *fmt, va_list ap)
{
	if (e)
		err_finish(e, code, vsnprintf(e->text, sizeof e->text, fmt, ap));
	return code;
}

int err_set(struct err *e, int code, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	err_vset(e, code, fmt, ap);
	va_end(ap);
	return code;
}

static const char *errno_text(int code, char *buf, size_t size)
{
	return strerror_r(code < 0 ? -code : code, buf, size);
}

int err_errno(struct err *e, int code, const char *fmt, ...)
{
	if (!e)
		return code;
	va_list ap;
	va_start(ap, fmt);
	err_vset(e, code, fmt, ap);
	va_end(ap);
	char reason[128];
	size_t len = strlen(e->text);
	int n = snprintf(e->text + len, sizeof e->text - len, ": %s",
			 errno_text(code, reason, sizeof reason));
	err_finish(e, code, (int)len + n);
	return code;
}

int err_prefix(struct err *e, const char *fmt, ...)
{
	if (!e)
		return 0;
	char old[ERR_TEXT_MAX];
	memcpy(old, e->text, strlen(e->text) + 1);
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(e->text, sizeof e->text, fmt, ap);
	va_end(ap);
	if (n < 0)
		n = 0;
	if ((size_t)n < sizeof e->text)
		n += snprintf(e->text + n, sizeof e->text - (size_t)n, "%s", old);
	err_finish(e, e->code, n);
	return e->code;
}

const char *err_text(const struct err *e, int code)
{
	if (e && e->text[0])
		return e->text;
	const char *text = code ? strerrordesc_np(code < 0 ? -code : code) : "no error";
	return text ? text : "unknown error";
}
