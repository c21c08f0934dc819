# SPDX-License-Identifier: Apache-2.0
MEMORY_QOS_SRCS := $(sort $(wildcard modules/memory-qos/*.c))
$(eval $(call module,memory-qos,$(MEMORY_QOS_SRCS)))
