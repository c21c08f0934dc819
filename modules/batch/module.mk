# SPDX-License-Identifier: Apache-2.0
BATCH_SRCS := $(sort $(wildcard modules/batch/*.c))
$(eval $(call module,batch,$(BATCH_SRCS)))
