# SPDX-License-Identifier: Apache-2.0
# The host daemon and the programs beside it. Everything that is not a main program goes into libcore.a; a program links what it uses.

PROTOS := $(sort $(wildcard proto/*.proto))
GENERATED_HEADERS := $(PROTOS:%.proto=$(O)/gen/%.pb-c.h)
PROTO_OBJS := $(PROTOS:%.proto=$(O)/gen/%.pb-c.o)

CORE_LIB_DIRS := util topo conf wire cache host noderes pipeline runtime metrics ctl map agent grpc kube nri-runtime machines term
CORE_SRCS := $(sort $(foreach d,$(CORE_LIB_DIRS),$(wildcard core/$(d)/*.c core/$(d)/*/*.c)))
# What of modules/lib the core uses (core/host/expressions.c).
CORE_OBJS := $(CORE_SRCS:%.c=$(O)/%.o) $(O)/core/map/page.o $(patsubst %,$(O)/pic/modules/lib/%.o,glob host match)

# The map's page is part of the daemon.
$(O)/core/map/page.o: core/map/page.S $(wildcard core/map/page/*) $(O)/flags
	$(call say,AS,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) -c -o $@ $<

$(O)/libcore.a: $(CORE_OBJS) $(PROTO_OBJS)
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

# $(call program,NAME,FOLDER,LIBS)
define program
programs: $(O)/bin/$(1)
$(O)/bin/$(1): $(patsubst %.c,$(O)/%.o,$(sort $(wildcard core/$(2)/*.c))) $(if $(COVERAGE),$(O)/test/unit/coverage_exit.o) $(O)/libcore.a
	$$(call say,LD,$$@)
	@mkdir -p $$(@D)
	$(Q)$$(CC) -pie -o $$@ $$(filter %.o,$$^) $(O)/libcore.a $$(ALL_LDFLAGS) $(3)
endef

$(if $(wildcard core/daemon/*.c),$(eval $(call program,nri-rpd,daemon,$$(LIBS_DAEMON))))
$(if $(wildcard core/nri-rpctl/*.c),$(eval $(call program,nri-rpctl,nri-rpctl,$$(LIBS_CTL))))
$(if $(wildcard core/nri-rp-sim/*.c),$(eval $(call program,nri-rp-sim,nri-rp-sim,$$(LIBS_SIM))))
$(if $(wildcard core/nri-rp-modcheck/*.c),$(eval $(call program,nri-rp-modcheck,nri-rp-modcheck,$$(LIBS_DAEMON))))
$(if $(wildcard core/nri-rp-agent/*.c),$(eval $(call program,nri-rp-agent,nri-rp-agent,$$(LIBS_AGENT))))
$(if $(wildcard core/nri-rp-bridge/*.c),$(eval $(call program,nri-rp-bridge,nri-rp-bridge,$$(LIBS_BRIDGE))))

# The checker of modules as its --sanitize runs it: all of it built with sanitizers, for modules that are too.
SANITIZED_MODCHECK := $(O)/lib/nri-rp/nri-rp-modcheck-sanitized
sanitized-modcheck: ## the checker of modules with sanitizers, for nri-rp-modcheck --sanitize
	$(Q)$(MAKE) --no-print-directory O=$(O)/sanitized SANITIZE=address,undefined COVERAGE= CFLAGS='-O1 -g' $(O)/sanitized/bin/nri-rp-modcheck
	$(Q)install -D -m 755 $(O)/sanitized/bin/nri-rp-modcheck $(SANITIZED_MODCHECK)
.PHONY: sanitized-modcheck
