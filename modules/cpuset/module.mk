# SPDX-License-Identifier: Apache-2.0
CPUSET_SRCS := $(sort $(wildcard modules/cpuset/*.c))
$(eval $(call module,cpuset,$(CPUSET_SRCS)))

CPUSET_OBJS := $(CPUSET_SRCS:%.c=$(O)/pic/%.o)
$(patsubst test/unit/%.c,$(O)/test/%,$(wildcard test/unit/t_cpuset*.c)): $$(FAKE_HOST_OBJS) $(CPUSET_OBJS)
$(O)/fuzz-bin/fuzz_cpuset $(O)/fuzz-replay/fuzz_cpuset: $$(FAKE_HOST_OBJS) $(CPUSET_OBJS)
