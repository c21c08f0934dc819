# SPDX-License-Identifier: Apache-2.0
BALLOONS_SRCS := $(sort $(wildcard modules/balloons/*.c))
$(eval $(call module,balloons,$(BALLOONS_SRCS)))

BALLOONS_OBJS := $(BALLOONS_SRCS:%.c=$(O)/pic/%.o)
$(patsubst test/unit/%.c,$(O)/test/%,$(wildcard test/unit/t_balloons*.c)): $$(FAKE_HOST_OBJS) $(BALLOONS_OBJS)
$(O)/fuzz-bin/fuzz_balloons $(O)/fuzz-replay/fuzz_balloons: $$(FAKE_HOST_OBJS) $(BALLOONS_OBJS)
