/* SPDX-License-Identifier: Apache-2.0 */
/* Never returns from allocate(). */
#define TEST_ALLOCATE wait_for_ever()

static void wait_for_ever(void)
{
	static volatile int for_ever = 1;
	while (for_ever)
		;
}

#include "common.h"

RP_MODULE_DEFINE("hang", "1.0", RP_KIND_POLICY, TEST_FUNCTIONS);
