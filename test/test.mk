# SPDX-License-Identifier: Apache-2.0
# Tests. Unit tests are programs of cmocka, one a file test/unit/t_*.c; the rest is driven by pytest.

UNIT_SRCS := $(sort $(wildcard test/unit/t_*.c) $(wildcard modules/*/t_*.c))
UNIT_BINS := $(patsubst test/unit/%.c,$(O)/test/%,$(filter test/unit/%,$(UNIT_SRCS)))

$(O)/test/t_%: $(O)/test/unit/t_%.o $(O)/libcore.a $(O)/libnri-rp-module.a
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -pie -o $@ $(filter %.o,$^) $(O)/libnri-rp-module.a $(O)/libcore.a $(ALL_LDFLAGS) -lcmocka $(LIBS_DAEMON)

# What a test needs besides core and modules/lib it names as further prerequisites, in the fragment of the module that it tests:
#	$(O)/test/t_mine: $$(FAKE_HOST_OBJS) $(O)/pic/modules/mine/mine.o
FAKE_HOST_OBJS := $(patsubst %.c,$(O)/%.o,$(sort $(wildcard test/unit/fake_*.c)))

# Prints what core/topo makes of a tree; test/topo-hwloc.py compares it with what hwloc does.
$(O)/test/topo_table: $(O)/test/unit/topo_table.o $(O)/libcore.a
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -pie -o $@ $^ $(ALL_LDFLAGS) $(LIBS_DAEMON)

unit-bins: $(UNIT_BINS)

FUZZ_SRCS := $(sort $(wildcard test/fuzz/fuzz_*.c))
FUZZ_BINS := $(FUZZ_SRCS:test/fuzz/%.c=$(O)/fuzz/%)
.PHONY: unit-bins
