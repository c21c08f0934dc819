/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Detects invalid uses of memory: reads after free, out of bounds, or of uninitialised bytes. The
 * checker replaces its own process by a build of itself with sanitizers (for modules built with
 * sanitizers), or by valgrind (for any module).
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "core/lib/util/buf.h"
#include "core/lib/util/err.h"

/* Factors for the time limits of cases under sanitizers and valgrind. */
#define WATCH_SANITIZED_FACTOR 5u
#define WATCH_VALGRIND_FACTOR 50u

/* Replaces the process. Returns only on failure, or with 0 if the process is already the
 * replacement. */
int watch_with_sanitizers(char **argv, struct err *err);
int watch_with_valgrind(char **argv, struct err *err);

/* Returns the file descriptor of valgrind's log if the process runs under valgrind, otherwise
 * -1. */
int watch_valgrind_log(void);
/* Returns the factor by which time limits are extended. */
unsigned watch_factor(void);

/* Appends the first finding of sanitizers or valgrind in `text`, such as "heap-use-after-free: READ
 * of size 4 in place mine.c:20". Appends nothing if there is none. */
void watch_finding(const char *text, struct buf *ret);
