/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In coverage builds (INSTRUMENTED), children that leave by _exit still write their counters. For
 * tests of code that runs in forked children; to be included in the test's one source file.
 */
#ifndef TEST_COVERAGE_EXIT_H
#define TEST_COVERAGE_EXIT_H

#if defined(INSTRUMENTED) && !defined(SANITIZED)
#include <sys/syscall.h>
#include <unistd.h>

void __gcov_dump(void);

void _exit(int status)
{
	__gcov_dump();
	for (;;)
		(void)syscall(SYS_exit_group, status);
}
#endif

#endif
