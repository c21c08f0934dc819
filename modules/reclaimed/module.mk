# SPDX-License-Identifier: Apache-2.0
RECLAIMED_SRCS := $(sort $(wildcard modules/reclaimed/*.c))
$(eval $(call module,reclaimed,$(RECLAIMED_SRCS)))
