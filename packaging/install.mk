# SPDX-License-Identifier: Apache-2.0
# make install: what a node needs (install-node) and what a module's author needs (install-dev). DESTDIR and PREFIX are honoured.

BINDIR ?= $(PREFIX)/bin
LIBDIR := $(PREFIX)/lib/nri-rp
DATADIR := $(PREFIX)/share/nri-rp
MANDIR ?= $(PREFIX)/share/man
UNITDIR ?= $(PREFIX)/lib/systemd/system
COMPLETIONDIR := $(PREFIX)/share/bash-completion/completions
PKGCONFIGDIR ?= $(PREFIX)/lib/pkgconfig
ZSHDIR ?= $(PREFIX)/share/zsh/site-functions
DOCDIR := $(PREFIX)/share/doc/nri-rp
FISHDIR := $(PREFIX)/share/fish/vendor_completions.d
CONFDIR := $(SYSCONFDIR)/nri-rp
INSTALL ?= install

DEV_MANS := $(wildcard man/nri-rp-mod*.[1-8] man/nri-rp-template.7 modules/template/*.[1-8])
NODE_MANS := $(filter-out $(DEV_MANS),$(sort $(wildcard man/*.[1-8] modules/*/*.[1-8])))
DEV_PROGRAMS := $(if $(wildcard core/nri-rp-modcheck/*.c),$(O)/bin/nri-rp-modcheck)
DEV_HEADERS := $(wildcard modules/lib/*.h)
SAMPLES := $(sort $(wildcard conf/samples/* modules/*/*.conf))

UNITS := $(patsubst packaging/systemd/%.in,$(O)/%,$(sort $(wildcard packaging/systemd/*.service.in packaging/systemd/*.socket.in)))

# Made anew each time, as folders may be others than last time.
$(UNITS): $(O)/%: packaging/systemd/%.in FORCE
	@mkdir -p $(@D)
	$(Q)sed 's|@bindir@|$(BINDIR)|g; s|@datadir@|$(DATADIR)|g' $< > $@

# Parts of units that an operator may want.
DROPINS := $(patsubst packaging/systemd/%.in,$(O)/%,$(sort $(wildcard packaging/systemd/*.conf.in)))
$(DROPINS): $(O)/%: packaging/systemd/%.in FORCE
	@mkdir -p $(@D)
	$(Q)sed 's|@datadir@|$(DATADIR)|g' $< > $@

# What zsh and fish offer comes from bash's tables.
FISH := $(patsubst packaging/completion/%.bash,$(O)/completion/%.fish,$(sort $(wildcard packaging/completion/nri-rp*.bash)))
$(FISH) $(O)/completion/_nri-rp: $(O)/completion/%: packaging/completion FORCE
	@mkdir -p $(@D)
	$(Q)sed 's|@datadir@|$(DATADIR)|g; s|@completiondir@|$(COMPLETIONDIR)|g; s|@program@|$(basename $*)|g' \
		packaging/completion/$(if $(filter %.fish,$*),fish,zsh).in > $@

# What a module is built for says its header alone.
abi = $(shell sed -n 's/^.define RP_ABI_$(1) \([0-9]*\)u$$/\1/p' include/nri-rp/module.h)
lib_version = $(shell sed -n 's/^.define NRI_RP_LIB_$(1) \([0-9]*\)$$/\1/p' modules/lib/version.h)
$(O)/nri-rp-module.pc: packaging/nri-rp-module.pc.in FORCE
	@mkdir -p $(@D)
	$(Q)sed -e 's|@prefix@|$(PREFIX)|g; s|@version@|$(VERSION)|g; s|@moduledir@|$(MODULEDIR)|g; s|@abi_major@|$(call abi,MAJOR)|; s|@abi_minor@|$(call abi,MINOR)|' \
		-e 's|@lib_major@|$(call lib_version,MAJOR)|; s|@lib_minor@|$(call lib_version,MINOR)|' $< > $@

# $(call put,MODE,FILES,FOLDER); nothing where there are no files
put = $(if $(strip $(2)),$(Q)$(INSTALL) -d $(DESTDIR)$(3) && $(INSTALL) -m $(1) $(2) $(DESTDIR)$(3))
put_pages = $(Q)for page in $(1); do \
		$(INSTALL) -D -m 644 $$page $(DESTDIR)$(MANDIR)/man$${page\#\#*.}/$${page\#\#*/} || exit 1; done

# $(call put_template,NAME): a module's source, with a Makefile beside it
define put_template
	$(call put,644,$(wildcard modules/$(1)/*.c modules/$(1)/*.h),$(DATADIR)/$(1))
	$(Q)sed 's/@name@/$(1)/' packaging/author/template.mk >$(DESTDIR)$(DATADIR)/$(1)/Makefile && \
		chmod 644 $(DESTDIR)$(DATADIR)/$(1)/Makefile
endef

# The shell expands what has been built: make may have looked into the folders before.
install-node: all kubernetes $(UNITS) $(DROPINS) $(FISH) $(O)/completion/_nri-rp
	$(call put,755,$$(ls $(O)/bin/nri-rp* | grep -v /nri-rp-modcheck$$),$(BINDIR))
	$(call put,644,$$(ls $(O)/modules/*.so | grep -v /template-calculator),$(MODULEDIR))
	$(call put,644,$(UNITS),$(UNITDIR))
	$(call put,644,$(DROPINS),$(DATADIR)/systemd)
	$(call put,644,$(SAMPLES),$(DATADIR)/samples)
	$(call put,644,$(sort $(wildcard conf/machines/*)),$(DATADIR)/machines)
	$(call put,644,$(sort $(wildcard conf/demo/*)),$(DATADIR)/demo)
	$(Q)for file in packaging/completion/nri-rp*.bash; do \
		$(INSTALL) -D -m 644 $$file $(DESTDIR)$(COMPLETIONDIR)/$$(basename $$file .bash) || exit 1; done
	$(call put,644,packaging/completion/complete.bash,$(DATADIR))
	$(call put,755,packaging/kubernetes/enable-nri/enable-nri,$(DATADIR))
	$(call put,644,$(O)/completion/_nri-rp,$(ZSHDIR))
	$(call put,644,$(FISH),$(FISHDIR))
	$(call put,644,README.md,$(DOCDIR))
	$(call put,644,$(sort $(wildcard man/*.svg man/*.png)),$(DOCDIR)/man)
	$(Q)cd $(O)/kubernetes && find . -type f -exec $(INSTALL) -D -m 644 {} $(DESTDIR)$(DATADIR)/kubernetes/{} \;
	$(call put,644,packaging/sysusers.d/nri-rp.conf,$(PREFIX)/lib/sysusers.d)
	$(call put,644,packaging/tmpfiles.d/nri-rp.conf,$(PREFIX)/lib/tmpfiles.d)
	$(call put_pages,$(NODE_MANS))
	$(Q)$(INSTALL) -d $(DESTDIR)$(CONFDIR)/rp.conf.d
	$(Q)test -e $(DESTDIR)$(CONFDIR)/rp.conf || { \
		sed 's|/usr/lib/nri-rp/modules|$(MODULEDIR)|' conf/rp.conf >$(DESTDIR)$(CONFDIR)/rp.conf && \
		chmod 644 $(DESTDIR)$(CONFDIR)/rp.conf; }

install-dev: all $(MAN3) $(O)/nri-rp-module.pc $(O)/libnri-rp-module.a
	$(call put,755,$(DEV_PROGRAMS),$(BINDIR))
	$(call put,644,include/nri-rp/*.h,$(PREFIX)/include/nri-rp)
	$(call put,644,$(DEV_HEADERS) modules/lib/README,$(PREFIX)/include/nri-rp/lib)
	$(call put,644,$(O)/libnri-rp-module.a packaging/author/module.mk,$(LIBDIR))
	$(call put,644,$(O)/nri-rp-module.pc,$(PKGCONFIGDIR))
	$(call put_template,template)
	$(call put_template,template-calculator)
	$(call put,644,$(sort $(wildcard conf/resource-plugin/*)),$(DATADIR)/resource-plugin)
	$(call put,644,proto/resourceplugin.proto,$(DATADIR)/resource-plugin/proto)
	$(call put_pages,$(DEV_MANS) $(MAN3))

sanitized-announced:
	@echo "Building nri-rp-modcheck a second time, with sanitizers, for nri-rp-dev: this takes some minutes."

# Takes a second build: for packages.
install-sanitized: sanitized-announced sanitized-modcheck
	$(call put,755,$(SANITIZED_MODCHECK),$(LIBDIR))

install: install-node install-dev ## install into DESTDIR/PREFIX; on this machine with the account and folders that it needs
	$(Q)test -n "$(DESTDIR)" || test "$$(id -u)" -ne 0 || ! command -v systemd-sysusers >/dev/null || \
		systemd-sysusers $(PREFIX)/lib/sysusers.d/nri-rp.conf
	$(Q)test -n "$(DESTDIR)" || test "$$(id -u)" -ne 0 || ! command -v systemd-tmpfiles >/dev/null || \
		systemd-tmpfiles --create $(PREFIX)/lib/tmpfiles.d/nri-rp.conf

deps: ## install the packages that building needs
	$(Q)packaging/deps build
deps-check: ## install the packages that testing needs
	$(Q)packaging/deps check

.PHONY: install install-node install-dev install-sanitized sanitized-announced deps deps-check
