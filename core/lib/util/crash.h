/* SPDX-License-Identifier: Apache-2.0 */
/* Signals of a crash, and the stack for their handlers, because the regular one may have
 * overflowed. */
#pragma once

#include <signal.h>

#define CRASH_SIGNALS                                                                              \
	{                                                                                          \
		SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGSYS, SIGTRAP                          \
	}
#define CRASH_STACK 32768u
