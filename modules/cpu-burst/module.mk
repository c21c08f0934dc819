# SPDX-License-Identifier: Apache-2.0
CPU_BURST_SRCS := $(sort $(wildcard modules/cpu-burst/*.c))
$(eval $(call module,cpu-burst,$(CPU_BURST_SRCS)))
