/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Uses of memory that the C library cannot see: what is read after it was freed, beyond an end, or
 * never set. The checker replaces its own process by a build of itself with sanitizers (for a
 * module that was built with them), or runs in valgrind (for any module).
 */
#ifndef MODCHECK_WATCH_H
#define MODCHECK_WATCH_H

#include <stdbool.h>
#include <sys/types.h>

#include "core/lib/util/buf.h"
#include "core/lib/util/err.h"

/* What a case may take longer than usual. */
#define WATCH_SANITIZED_FACTOR 5u
#define WATCH_VALGRIND_FACTOR 50u

/* Both return when that fails alone; at once with 0 in a process that is what they make. */
int watch_with_sanitizers(char **argv, struct err *err);
int watch_with_valgrind(char **argv, struct err *err);

/* The file that valgrind, in which this process runs, writes to; -1: it runs in none. */
int watch_valgrind_log(void);
/* How much longer all takes. */
unsigned watch_factor(void);

/* "heap-use-after-free: READ of size 4 in place mine.c:20", the first of what they found; nothing
 * is added if `text` tells of none. */
void watch_finding(const char *text, struct buf *ret);

#endif
