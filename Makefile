# SPDX-License-Identifier: Apache-2.0
# One non-recursive build. `make help` lists the targets.

VERSION := 0.2.0
O ?= build
PREFIX ?= /usr
SYSCONFDIR ?= /etc
MODULEDIR ?= $(PREFIX)/lib/nri-rp/modules
CC ?= gcc
ifeq ($(origin CC),default)
CC := gcc
endif
PROTOC_C ?= protoc-c
CLANG ?= clang
SANITIZE ?=
COVERAGE ?=
WERROR ?=
V ?= 0
Q := $(if $(filter 1,$(V)),,@)
say = $(if $(filter 1,$(V)),,@printf '  %-8s %s\n' '$(1)' '$(2)')

WARN := -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion -Wvla -Wformat=2 -Wstrict-prototypes -Wmissing-prototypes \
	-Wundef -Wpointer-arith -Wwrite-strings -Wno-unused-parameter
CFLAGS ?= -O2 -g
ALL_CFLAGS := -std=gnu11 -Ulinux -D_GNU_SOURCE -DNRI_RP_VERSION='"$(VERSION)"' -DNRI_RP_MODULEDIR='"$(MODULEDIR)"' -DNRI_RP_DATADIR='"$(PREFIX)/share/nri-rp"' $(CFLAGS) $(WARN) $(if $(WERROR),-Werror) \
	-fstack-protector-strong -fvisibility=hidden -fno-strict-aliasing -fno-common \
	$(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-omit-frame-pointer -fno-sanitize-recover=undefined -DSANITIZED,$(if $(COVERAGE),--coverage -O0 -DINSTRUMENTED,-D_FORTIFY_SOURCE=2))
ALL_CPPFLAGS := -I. -Iinclude -I$(O)/gen
ALL_LDFLAGS := $(LDFLAGS) -Wl,-z,relro,-z,now -Wl,--as-needed $(if $(SANITIZE),-fsanitize=$(SANITIZE)) $(if $(COVERAGE),--coverage)
MODULE_LDFLAGS := -shared -fPIC $(if $(SANITIZE),,-Wl,-z,defs) -Wl,-z,noexecstack $(ALL_LDFLAGS)

LIBS_DAEMON := -lprotobuf-c -ljansson -levent_core -levent_extra -levent_pthreads -lyaml -lnuma -lpthread -ldl -lm
LIBS_CTL := -lprotobuf-c -levent_core -levent_pthreads -lyaml -ljansson -lpthread -lm
LIBS_SIM := $(LIBS_CTL)
LIBS_BRIDGE := -lprotobuf-c -lnghttp2 -lcurl -ljansson -levent_core -levent_pthreads -lpthread -lm
LIBS_AGENT := -lprotobuf-c -lnghttp2 -lcurl -ljansson -lyaml -levent_core -levent_pthreads -lpthread -lm

.DELETE_ON_ERROR:
.SECONDEXPANSION:
.SECONDARY:

all: programs modules
programs:
modules:

# $(call module,NAME,SOURCES): a shared object with one exported symbol.
define module
ifneq ($(2),)
modules: $(O)/modules/$(1).so
$(O)/modules/$(1).so: $(patsubst %.c,$(O)/pic/%.o,$(2)) $(O)/libnri-rp-module.a
	$$(call say,LD,$$@)
	@mkdir -p $$(@D)
	$(Q)$$(CC) -o $$@ $$^ $$(MODULE_LDFLAGS)
endif
endef

include core/core.mk
include $(sort $(wildcard modules/*/module.mk))
include test/test.mk
include $(sort $(wildcard packaging/*.mk man/*.mk conf/*.mk))

# Objects are made anew when the flags change, unless KEEP_FLAGS=1: a test that installs what is built compiles nothing.
$(O)/flags: $(if $(KEEP_FLAGS),,FORCE)
	@mkdir -p $(@D)
	@echo '$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS)' | cmp -s - $@ || echo '$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS)' > $@
FORCE:

$(O)/gen/%.pb-c.c $(O)/gen/%.pb-c.h &: %.proto
	$(call say,PROTOC,$<)
	@mkdir -p $(O)/gen
	$(Q)$(PROTOC_C) --c_out=$(O)/gen $<

$(O)/gen/%.pb-c.o: $(O)/gen/%.pb-c.c $(O)/flags
	$(call say,CC,$<)
	$(Q)$(CC) $(filter-out -W%,$(ALL_CFLAGS)) $(ALL_CPPFLAGS) -MMD -MP -c -o $@ $<

$(O)/%.o: %.c $(O)/flags | $(GENERATED_HEADERS)
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -fPIE $(ALL_CPPFLAGS) -MMD -MP -c -o $@ $<

$(O)/pic/%.o: %.c $(O)/flags
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -fPIC $(MODULE_CPPFLAGS) -MMD -MP -c -o $@ $<

# A module sees the public headers, nothing of core/; those of the tree also modules/lib/private.
MODULE_CPPFLAGS := -Iinclude -I.

-include $(shell find $(O) -type f -name '*.d' 2>/dev/null)

help: ## this list
	@printf 'Targets:\n'; grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sort -u | sed -E 's/^([a-z-]+):.*## */  \1\t/' | expand -t 18
	@printf '\nVariables: V=1 shows commands, O=DIR builds elsewhere, SANITIZE=address,undefined, COVERAGE=1, WERROR=1, CC=clang,\n  PREFIX, SYSCONFDIR, MODULEDIR, DESTDIR.\n'

all: ## programs and modules (the default)
clean: ## remove the build folder
	rm -rf $(O)

.PHONY: all programs modules help clean FORCE
