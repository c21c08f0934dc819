# SPDX-License-Identifier: Apache-2.0
CPU_SUPPRESS_SRCS := $(sort $(wildcard modules/cpu-suppress/*.c))
$(eval $(call module,cpu-suppress,$(CPU_SUPPRESS_SRCS)))
