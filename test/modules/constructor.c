/* SPDX-License-Identifier: Apache-2.0 */
/* Aborts any program that runs the constructor of this module. */
#include "common.h"

__attribute__((constructor)) static void before_all(void)
{
	abort();
}

RP_MODULE_DEFINE("constructor", "1.0", RP_KIND_POLICY, TEST_FUNCTIONS);
