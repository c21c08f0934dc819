# SPDX-License-Identifier: Apache-2.0
$(eval $(call module,cpuset,$(sort $(wildcard modules/cpuset/*.c))))
