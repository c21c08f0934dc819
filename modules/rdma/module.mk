# SPDX-License-Identifier: Apache-2.0
RDMA_SRCS := $(sort $(wildcard modules/rdma/*.c))
$(eval $(call module,rdma,$(RDMA_SRCS)))
