/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors for people. Functions return 0 or a negative errno; those whose failure somebody will read
 * take a `struct err *` as their last parameter and leave one sentence in it: what was attempted,
 * on what, why. The origin fills it, callers may prefix it, nobody overwrites it. A NULL err is
 * allowed everywhere.
 */
#ifndef UTIL_ERR_H
#define UTIL_ERR_H

#include <errno.h>
#include <stdarg.h>

#define ERR_TEXT_MAX 1000 /* also what NRI can carry to a pod's event */

struct err {
	int code;
	char text[ERR_TEXT_MAX];
};

#define ERR_INIT                                                                                   \
	{                                                                                          \
		0, ""                                                                              \
	}

/* Fills e and returns code: return err_set(e, -EINVAL, "…", …). */
int err_set(struct err *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
int err_vset(struct err *e, int code, const char *fmt, va_list ap)
	__attribute__((format(printf, 3, 0)));
/* The same with ": " and the text of errno `-code` appended. */
int err_errno(struct err *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Puts text in front of what is there; returns the code that is there. */
int err_prefix(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The text, or that of the errno when nobody left one. */
const char *err_text(const struct err *e, int code);

#endif
