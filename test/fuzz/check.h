/* SPDX-License-Identifier: Apache-2.0 */
/* Aborts a fuzz target if the condition is false, regardless of NDEBUG. */
#ifndef TEST_FUZZ_CHECK_H
#define TEST_FUZZ_CHECK_H

#include <stdlib.h>

#define check(condition)                                                                           \
	do {                                                                                       \
		if (!(condition))                                                                  \
			abort();                                                                   \
	} while (0)

#endif
