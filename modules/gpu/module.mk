# SPDX-License-Identifier: Apache-2.0
GPU_SRCS := $(sort $(wildcard modules/gpu/*.c))
$(eval $(call module,gpu,$(GPU_SRCS)))
