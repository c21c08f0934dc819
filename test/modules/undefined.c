/* SPDX-License-Identifier: Apache-2.0 */
/* Needs a function that does not exist. */
#define TEST_ALLOCATE return no_such_function()

#include <stdint.h>
int32_t no_such_function(void);

#include "common.h"

RP_MODULE_DEFINE("undefined", "1.0", RP_KIND_POLICY, TEST_FUNCTIONS);
