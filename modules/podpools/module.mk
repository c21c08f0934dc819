# SPDX-License-Identifier: Apache-2.0
PODPOOLS_SRCS := $(sort $(wildcard modules/podpools/*.c))
$(eval $(call module,podpools,$(PODPOOLS_SRCS)))

PODPOOLS_OBJS := $(PODPOOLS_SRCS:%.c=$(O)/pic/%.o)
$(patsubst test/unit/%.c,$(O)/test/%,$(wildcard test/unit/t_podpools*.c)): $$(FAKE_HOST_OBJS) $(PODPOOLS_OBJS)
