# SPDX-License-Identifier: Apache-2.0
CPU_SRCS := $(sort $(wildcard modules/cpu/*.c))
$(eval $(call module,cpu,$(CPU_SRCS)))

CPU_OBJS := $(CPU_SRCS:%.c=$(O)/pic/%.o)
$(patsubst test/unit/%.c,$(O)/test/%,$(wildcard test/unit/t_cpuctl*.c)): $$(FAKE_HOST_OBJS) $(O)/test/unit/ctl_host.o $(CPU_OBJS)
