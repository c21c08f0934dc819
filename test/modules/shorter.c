/* SPDX-License-Identifier: Apache-2.0 */
/* Built with headers whose policy ended before the optional calls. */
#include <stddef.h>

#include <nri-rp/policy.h>

#define TEST_POLICY_SIZE offsetof(struct rp_policy, event)

#include "common.h"

RP_MODULE_DEFINE("shorter", "1.0", RP_KIND_POLICY, TEST_FUNCTIONS);
