# SPDX-License-Identifier: Apache-2.0
DYNAMIC_POOLS_SRCS := $(sort $(wildcard modules/dynamic-pools/*.c))
$(eval $(call module,dynamic-pools,$(DYNAMIC_POOLS_SRCS)))

DYNAMIC_POOLS_OBJS := $(DYNAMIC_POOLS_SRCS:%.c=$(O)/pic/%.o)
$(patsubst test/unit/%.c,$(O)/test/%,$(wildcard test/unit/t_dynpools*.c)): $$(FAKE_HOST_OBJS) $(DYNAMIC_POOLS_OBJS)
$(O)/test/t_members: $$(FAKE_HOST_OBJS) $(O)/pic/modules/dynamic-pools/members.o
