# SPDX-License-Identifier: Apache-2.0
# Static helpers for modules, in or out of tree: never part of the ABI.
MODULE_LIB_OBJS := $(patsubst %.c,$(O)/pic/%.o,$(sort $(wildcard modules/lib/*.c)))
$(O)/libnri-rp-module.a: $(MODULE_LIB_OBJS)
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) rcs $@ $^
$(patsubst test/unit/%.c,$(O)/test/%,$(wildcard test/unit/t_modlib*.c)) $(O)/test/t_ctl_table $(O)/test/t_pct $(O)/test/t_pct_model: $$(FAKE_HOST_OBJS)
