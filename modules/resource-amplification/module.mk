# SPDX-License-Identifier: Apache-2.0
RESOURCE_AMPLIFICATION_SRCS := $(sort $(wildcard modules/resource-amplification/*.c))
$(eval $(call module,resource-amplification,$(RESOURCE_AMPLIFICATION_SRCS)))
