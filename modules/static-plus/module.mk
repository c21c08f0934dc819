# SPDX-License-Identifier: Apache-2.0
STATIC_PLUS_SRCS := $(sort $(wildcard modules/static-plus/*.c))
$(eval $(call module,static-plus,$(STATIC_PLUS_SRCS)))

STATIC_PLUS_OBJS := $(STATIC_PLUS_SRCS:%.c=$(O)/pic/%.o)
$(patsubst test/unit/%.c,$(O)/test/%,$(wildcard test/unit/t_plus*.c)): $$(FAKE_HOST_OBJS) $(STATIC_PLUS_OBJS)
