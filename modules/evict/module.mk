# SPDX-License-Identifier: Apache-2.0
EVICT_SRCS := $(sort $(wildcard modules/evict/*.c))
$(eval $(call module,evict,$(EVICT_SRCS)))
$(O)/test/t_evict: $(O)/pic/modules/evict/rule.o
