# SPDX-License-Identifier: Apache-2.0
MEMORY_SRCS := $(sort $(wildcard modules/memory/*.c))
$(eval $(call module,memory,$(MEMORY_SRCS)))

MEMORY_OBJS := $(MEMORY_SRCS:%.c=$(O)/pic/%.o)
$(patsubst test/unit/%.c,$(O)/test/%,$(wildcard test/unit/t_memory*.c)): $$(FAKE_HOST_OBJS) $(O)/test/unit/ctl_host.o $(MEMORY_OBJS)
$(O)/fuzz-bin/fuzz_memory $(O)/fuzz-replay/fuzz_memory: $(MEMORY_OBJS)
