# SPDX-License-Identifier: Apache-2.0
$(eval $(call module,none,$(wildcard modules/none/*.c)))
$(O)/test/t_none: $$(FAKE_HOST_OBJS) $(O)/pic/modules/none/none.o
