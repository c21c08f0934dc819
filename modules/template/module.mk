# SPDX-License-Identifier: Apache-2.0
$(eval $(call module,template,$(wildcard modules/template/*.c)))
$(O)/test/t_template: $$(FAKE_HOST_OBJS) $(O)/pic/modules/template/template.o
