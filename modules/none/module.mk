# SPDX-License-Identifier: Apache-2.0
$(eval $(call module,none,$(wildcard modules/none/*.c)))
