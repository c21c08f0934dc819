# SPDX-License-Identifier: Apache-2.0
STATIC_POOLS_SRCS := $(sort $(wildcard modules/static-pools/*.c))
$(eval $(call module,static-pools,$(STATIC_POOLS_SRCS)))

STATIC_POOLS_OBJS := $(STATIC_POOLS_SRCS:%.c=$(O)/pic/%.o)
$(patsubst test/unit/%.c,$(O)/test/%,$(wildcard test/unit/t_pools*.c)): $$(FAKE_HOST_OBJS) $(STATIC_POOLS_OBJS)
$(O)/fuzz-bin/fuzz_isolate $(O)/fuzz-replay/fuzz_isolate: $(STATIC_POOLS_OBJS)
