/* SPDX-License-Identifier: Apache-2.0 */
/* From the future: a later minor with a longer struct, content with today'\''s hosts. */
#include "common.h"

TEST_NOTE(RP_ABI_MAJOR, 9, 0, RP_KIND_POLICY, "longer");

struct longer {
	struct rp_module module;
	uint64_t unheard_of[4];
};

TEST_EXPORT extern const struct longer rp_module_1;
const struct longer rp_module_1 = {
	{.size = sizeof(struct longer),
	 .abi_minor = 9,
	 .kinds = RP_KIND_POLICY,
	 .name = "longer",
	 .version = "1.0",
	 TEST_FUNCTIONS},
	{UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX},
};
