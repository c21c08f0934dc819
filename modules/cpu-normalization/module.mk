# SPDX-License-Identifier: Apache-2.0
CPU_NORMALIZATION_SRCS := $(sort $(wildcard modules/cpu-normalization/*.c))
$(eval $(call module,cpu-normalization,$(CPU_NORMALIZATION_SRCS)))
