/* SPDX-License-Identifier: Apache-2.0 */
/* Contains a note, but no module symbol. */
#include <nri-rp/module.h>

#include "common.h"

TEST_NOTE(RP_ABI_MAJOR, RP_ABI_MINOR, 0, RP_KIND_POLICY, "no-symbol");

struct elsewhere {
	struct rp_module module;
};
TEST_EXPORT extern const struct elsewhere rp_elsewhere;
const struct elsewhere rp_elsewhere = {{.size = sizeof rp_elsewhere, TEST_FUNCTIONS}};
