/* SPDX-License-Identifier: Apache-2.0 */
/* What has to hold in a fuzz target, whatever NDEBUG says. */
#ifndef TEST_FUZZ_CHECK_H
#define TEST_FUZZ_CHECK_H

#include <stdlib.h>

#define check(condition)                                                                           \
	do {                                                                                       \
		if (!(condition))                                                                  \
			abort();                                                                   \
	} while (0)

#endif
