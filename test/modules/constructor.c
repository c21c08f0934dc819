/* SPDX-License-Identifier: Apache-2.0 */
/* Has a constructor, which would end whoever loads it. */
#include "common.h"

__attribute__((constructor)) static void before_all(void)
{
	abort();
}

RP_MODULE_DEFINE("constructor", "1.0", RP_KIND_POLICY, TEST_FUNCTIONS);
