# SPDX-License-Identifier: Apache-2.0
# The host daemon and the programs beside it. A program links what it uses of two archives.

PROTOS := $(sort $(wildcard proto/*.proto))
GENERATED_HEADERS := $(PROTOS:%.proto=$(O)/gen/%.pb-c.h)
PROTO_OBJS := $(PROTOS:%.proto=$(O)/gen/%.pb-c.o)

# core/lib: what the programs share. It knows nothing of the daemon.
LIB_SRCS := $(sort $(wildcard core/lib/*/*.c))
# core/nri-rpd without its main function, and what it uses of modules/lib (core/nri-rpd/host/expressions.c).
RPD_MAIN := core/nri-rpd/main.c core/nri-rpd/options.c
RPD_SRCS := $(sort $(filter-out $(RPD_MAIN),$(shell find core/nri-rpd -name '*.c')))
RPD_OBJS := $(RPD_SRCS:%.c=$(O)/%.o) $(O)/core/nri-rpd/metrics/map/page.o $(patsubst %,$(O)/pic/modules/lib/%.o,glob host private/match)

# The map's page is part of the daemon.
$(O)/core/nri-rpd/metrics/map/page.o: core/nri-rpd/metrics/map/page.S $(wildcard core/nri-rpd/metrics/map/page/*) $(O)/flags
	$(call say,AS,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) -c -o $@ $<

$(O)/libcommon.a: $(LIB_SRCS:%.c=$(O)/%.o) $(PROTO_OBJS)
$(O)/libnri-rpd.a: $(RPD_OBJS)
$(O)/libcommon.a $(O)/libnri-rpd.a:
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

# Tests link both.
CORE_LIBS := $(O)/libnri-rpd.a $(O)/libcommon.a

# $(call program,NAME,SOURCES,ARCHIVES,LIBRARIES)
define program
programs: $(O)/bin/$(1)
$(O)/bin/$(1): $(patsubst %.c,$(O)/%.o,$(2)) $(if $(COVERAGE),$(O)/test/unit/coverage_exit.o) $(if $(SANITIZE),$(O)/test/unit/sanitized_fork.o) $(3)
	$$(call say,LD,$$@)
	@mkdir -p $$(@D)
	$(Q)$$(CC) -pie -o $$@ $$^ $$(ALL_LDFLAGS) $(4)
endef
sources_of = $(sort $(wildcard core/$(1)/*.c))

# Which program links what. nri-rpctl reads modules' schemas by the daemon's loader where no daemon runs; modcheck drives the
# daemon's pipeline. The other programs know nothing of the daemon but the messages it exchanges with them.
$(eval $(call program,nri-rpd,$(RPD_MAIN),$$(CORE_LIBS),$$(LIBS_DAEMON)))
$(eval $(call program,nri-rpctl,$(call sources_of,nri-rpctl),$$(CORE_LIBS),$$(LIBS_CTL)))
$(eval $(call program,nri-rp-modcheck,$(call sources_of,nri-rp-modcheck),$$(CORE_LIBS),$$(LIBS_DAEMON)))
$(eval $(call program,nri-rp-sim,$(call sources_of,nri-rp-sim),$(O)/libcommon.a,$$(LIBS_SIM)))
$(eval $(call program,nri-rp-agent,$(call sources_of,nri-rp-agent),$(O)/libcommon.a,$$(LIBS_AGENT)))
$(eval $(call program,nri-rp-bridge,$(call sources_of,nri-rp-bridge),$(O)/libcommon.a,$$(LIBS_BRIDGE)))

# The checker of modules as its --sanitize runs it: all of it built with sanitizers, for modules that are too.
SANITIZED_MODCHECK := $(O)/lib/nri-rp/nri-rp-modcheck-sanitized
sanitized-modcheck: ## the checker of modules with sanitizers, for nri-rp-modcheck --sanitize
	$(Q)$(MAKE) --no-print-directory O=$(O)/sanitized SANITIZE=address,undefined COVERAGE= CFLAGS='-O1 -g' $(O)/sanitized/bin/nri-rp-modcheck
	$(Q)install -D -m 755 $(O)/sanitized/bin/nri-rp-modcheck $(SANITIZED_MODCHECK)
.PHONY: sanitized-modcheck
