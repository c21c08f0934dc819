# SPDX-License-Identifier: Apache-2.0
# Tests. Unit tests are programs of cmocka, one a file test/unit/t_*.c; the rest is driven by pytest.

UNIT_SRCS := $(sort $(wildcard test/unit/t_*.c) $(wildcard modules/*/t_*.c))
UNIT_BINS := $(patsubst test/unit/%.c,$(O)/test/%,$(filter test/unit/%,$(UNIT_SRCS)))

$(O)/test/t_%: $(O)/test/unit/t_%.o $(O)/libcore.a $(O)/libnri-rp-module.a
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -pie -o $@ $< $(O)/libnri-rp-module.a $(O)/libcore.a $(ALL_LDFLAGS) -lcmocka $(LIBS_DAEMON)

unit-bins: $(UNIT_BINS)

FUZZ_SRCS := $(sort $(wildcard test/fuzz/fuzz_*.c))
FUZZ_BINS := $(FUZZ_SRCS:test/fuzz/%.c=$(O)/fuzz/%)
.PHONY: unit-bins
