# SPDX-License-Identifier: Apache-2.0
$(eval $(call module,template-calculator,$(wildcard modules/template-calculator/*.c)))
