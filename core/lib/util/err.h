/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors for people. Functions return 0 or a negative errno. If people will read the failure, the
 * last parameter is a `struct err *`, which receives one sentence: the attempt, its object, the
 * cause. The origin fills it, callers may prefix it and never overwrite it. A NULL err is allowed
 * everywhere.
 */
#pragma once

#include <errno.h>
#include <stdarg.h>

#define ERR_TEXT_MAX 1000 /* limit of what NRI can carry to a pod's event */

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
/* Works like err_set() and appends ": " and the text of errno `-code`. */
int err_errno(struct err *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Prefixes the existing text; returns the existing code. */
int err_prefix(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Returns the text, or the errno's text if there is none. */
const char *err_text(const struct err *e, int code);
