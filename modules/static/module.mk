# SPDX-License-Identifier: Apache-2.0
$(eval $(call module,static,$(wildcard modules/static/*.c)))
