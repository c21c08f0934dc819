/* SPDX-License-Identifier: Apache-2.0 */
/* Built when the policy service had no optional members yet. */
#include <nri-rp/policy.h>
#define TEST_POLICY_SIZE offsetof(struct rp_policy, event)

#include "common.h"

RP_MODULE_DEFINE("old", "1.0", RP_KIND_POLICY, TEST_FUNCTIONS);
