# SPDX-License-Identifier: Apache-2.0
$(eval $(call module,batch-limits,$(sort $(wildcard modules/batch-limits/*.c))))
