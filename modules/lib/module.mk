# SPDX-License-Identifier: Apache-2.0
# Static helpers for modules, in or out of tree: never part of the ABI. Authors get the headers of this folder as <nri-rp/lib/NAME.h>,
# by the link in include/nri-rp here, and none of private/.
MODULE_LIB_OBJS := $(patsubst %.c,$(O)/pic/%.o,$(sort $(wildcard modules/lib/*.c modules/lib/private/*.c)))
$(O)/libnri-rp-module.a: $(MODULE_LIB_OBJS)
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) rcs $@ $^
$(patsubst test/unit/%.c,$(O)/test/%,$(wildcard test/unit/t_modlib*.c)) $(O)/test/t_ctl_table $(O)/test/t_pct $(O)/test/t_pct_model: $$(FAKE_HOST_OBJS)
