/* SPDX-License-Identifier: Apache-2.0 */
/* The signals a program sends itself by what it does wrong, and the stack their handlers get: one
 * that overflowed is of no use. */
#ifndef UTIL_CRASH_H
#define UTIL_CRASH_H

#include <signal.h>

#define CRASH_SIGNALS                                                                              \
	{                                                                                          \
		SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGSYS, SIGTRAP                          \
	}
#define CRASH_STACK 32768u

#endif
