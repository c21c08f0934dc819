/* SPDX-License-Identifier: Apache-2.0 */
/* Built for a major that does not exist yet: another note, another symbol. */
#include "common.h"

TEST_NOTE(2, 0, 0, RP_KIND_POLICY, "wrong-major");

TEST_EXPORT extern const struct rp_module rp_module_2;
const struct rp_module rp_module_2 = {
	.size = sizeof rp_module_2, .name = "wrong-major", .version = "1.0", TEST_FUNCTIONS};
