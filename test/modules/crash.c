/* SPDX-License-Identifier: Apache-2.0 */
/* Dies in allocate(). */
#define TEST_ALLOCATE *(volatile int *)16 = 1

#include "common.h"

RP_MODULE_DEFINE("crash", "1.0", RP_KIND_POLICY, TEST_FUNCTIONS);
