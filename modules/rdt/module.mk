# SPDX-License-Identifier: Apache-2.0
RDT_SRCS := $(sort $(wildcard modules/rdt/*.c))
$(eval $(call module,rdt,$(RDT_SRCS)))

RDT_OBJS := $(RDT_SRCS:%.c=$(O)/pic/%.o)
$(patsubst test/unit/%.c,$(O)/test/%,$(wildcard test/unit/t_rdt*.c)): $$(FAKE_HOST_OBJS) $(O)/test/unit/ctl_host.o $(RDT_OBJS)
$(O)/fuzz-bin/fuzz_rdt $(O)/fuzz-replay/fuzz_rdt: $(RDT_OBJS)
