# SPDX-License-Identifier: Apache-2.0
$(eval $(call module,template,$(wildcard modules/template/*.c)))
