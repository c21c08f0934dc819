/* SPDX-License-Identifier: Apache-2.0 */
/* Valid module with a small schema. */
#define TEST_SCHEMA &schema
#include <nri-rp/config.h>

static const struct rp_key keys[] = {
	{.path = "pinCPU", .type = RP_T_BOOL, .fallback = "true", .doc = "Pin containers to CPUs."},
	{.path = "reservedResources", .type = RP_T_MAP},
	{.path = "reservedResources.cpu", .type = RP_T_AMOUNT, .flags = RP_KEY_REQUIRED},
	{.path = "order", .type = RP_T_ENUM, .choices = "packed|spread"},
};
static const struct rp_schema schema = {
	.size = sizeof schema,
	.flags = RP_SCHEMA_FOLD_CASE,
	.keys = keys,
	.n_keys = sizeof keys / sizeof keys[0],
	.key_size = sizeof keys[0],
	.cr_kind = "GoodPolicy",
};

#include "common.h"

RP_MODULE_DEFINE("good", "1.0", RP_KIND_POLICY, .summary = "A good module", .licence = "Apache-2.0",
		 TEST_FUNCTIONS);
