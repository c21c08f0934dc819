# SPDX-License-Identifier: Apache-2.0
TA_SRCS := $(sort $(wildcard modules/topology-aware/*.c))
$(eval $(call module,topology-aware,$(TA_SRCS)))

TA_OBJS := $(TA_SRCS:%.c=$(O)/pic/%.o)
$(patsubst test/unit/%.c,$(O)/test/%,$(wildcard test/unit/t_ta*.c)): $$(FAKE_HOST_OBJS) $(TA_OBJS)
$(O)/fuzz-bin/fuzz_ta $(O)/fuzz-replay/fuzz_ta: $$(FAKE_HOST_OBJS) $(TA_OBJS)
