# SPDX-License-Identifier: Apache-2.0
QOS_SRCS := $(sort $(wildcard modules/qos/*.c))
$(eval $(call module,qos,$(QOS_SRCS)))

$(O)/test/t_qos: $$(FAKE_HOST_OBJS) $(QOS_SRCS:%.c=$(O)/pic/%.o)
