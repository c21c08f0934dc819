/* SPDX-License-Identifier: Apache-2.0 */
/* Cannot work with a host as old as this one. */
#define RP_MIN_HOST_MINOR 999u

#include "common.h"

RP_MODULE_DEFINE("newer", "1.0", RP_KIND_POLICY, TEST_FUNCTIONS);
