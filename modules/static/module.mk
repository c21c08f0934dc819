# SPDX-License-Identifier: Apache-2.0
STATIC_SRCS := $(sort $(wildcard modules/static/*.c))
$(eval $(call module,static,$(STATIC_SRCS)))

STATIC_OBJS := $(STATIC_SRCS:%.c=$(O)/pic/%.o)
$(patsubst test/unit/%.c,$(O)/test/%,$(wildcard test/unit/t_static*.c)): $$(FAKE_HOST_OBJS) $(STATIC_OBJS)
