# SPDX-License-Identifier: Apache-2.0
BLKIO_SRCS := $(sort $(wildcard modules/blkio/*.c))
$(eval $(call module,blkio,$(BLKIO_SRCS)))

BLKIO_OBJS := $(BLKIO_SRCS:%.c=$(O)/pic/%.o)
$(patsubst test/unit/%.c,$(O)/test/%,$(wildcard test/unit/t_blkio*.c)): $$(FAKE_HOST_OBJS) $(O)/test/unit/ctl_host.o $(BLKIO_OBJS)
$(O)/fuzz-bin/fuzz_blkio $(O)/fuzz-replay/fuzz_blkio: $(BLKIO_OBJS)
