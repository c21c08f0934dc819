# SPDX-License-Identifier: Apache-2.0
MID_SRCS := $(sort $(wildcard modules/mid/*.c))
$(eval $(call module,mid,$(MID_SRCS)))
