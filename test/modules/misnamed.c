/* SPDX-License-Identifier: Apache-2.0 */
/* Calls itself by another name than its file. */
#include "common.h"

RP_MODULE_DEFINE("other", "1.0", RP_KIND_POLICY, TEST_FUNCTIONS);
