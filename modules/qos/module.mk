# SPDX-License-Identifier: Apache-2.0
QOS_SRCS := $(sort $(wildcard modules/qos/*.c))
$(eval $(call module,qos,$(QOS_SRCS)))
