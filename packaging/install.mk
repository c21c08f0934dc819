# SPDX-License-Identifier: Apache-2.0
# make install: programs, modules, headers, manual pages, unit, sample configuration. DESTDIR and PREFIX are honoured.

BINDIR := $(PREFIX)/bin
MANDIR := $(PREFIX)/share/man
UNITDIR ?= /lib/systemd/system
INSTALL ?= install
MANS := $(sort $(wildcard man/*.[1-8]) $(wildcard modules/*/*.[1-8]))

$(O)/nri-rpd.service: packaging/systemd/nri-rpd.service.in
	@mkdir -p $(@D)
	$(Q)sed 's|@bindir@|$(BINDIR)|g' $< > $@

$(O)/nri-rp-module.pc: packaging/nri-rp-module.pc.in
	@mkdir -p $(@D)
	$(Q)sed 's|@prefix@|$(PREFIX)|g; s|@version@|$(VERSION)|g; s|@moduledir@|$(MODULEDIR)|g' $< > $@

install: all $(O)/nri-rpd.service $(O)/nri-rp-module.pc $(O)/libnri-rp-module.a ## install into DESTDIR/PREFIX
	$(INSTALL) -d $(DESTDIR)$(BINDIR) $(DESTDIR)$(MODULEDIR) $(DESTDIR)$(PREFIX)/include/nri-rp $(DESTDIR)$(PREFIX)/lib/nri-rp \
		$(DESTDIR)$(PREFIX)/lib/pkgconfig $(DESTDIR)$(PREFIX)/share/nri-rp/template $(DESTDIR)$(UNITDIR) \
		$(DESTDIR)$(SYSCONFDIR)/nri-rp/rp.conf.d $(DESTDIR)$(PREFIX)/share/bash-completion/completions
	$(INSTALL) -m 755 $(wildcard $(O)/bin/*) $(DESTDIR)$(BINDIR)
	$(INSTALL) -m 644 $(wildcard $(O)/modules/*.so) $(DESTDIR)$(MODULEDIR)
	$(INSTALL) -m 644 include/nri-rp/*.h $(DESTDIR)$(PREFIX)/include/nri-rp
	$(INSTALL) -d $(DESTDIR)$(PREFIX)/share/nri-rp/include/modules/lib
	$(INSTALL) -m 644 modules/lib/*.h $(DESTDIR)$(PREFIX)/share/nri-rp/include/modules/lib
	$(INSTALL) -m 644 $(O)/libnri-rp-module.a packaging/author/module.mk $(DESTDIR)$(PREFIX)/lib/nri-rp
	$(INSTALL) -m 644 $(O)/nri-rp-module.pc $(DESTDIR)$(PREFIX)/lib/pkgconfig
	$(INSTALL) -m 644 modules/template/* $(DESTDIR)$(PREFIX)/share/nri-rp/template
	$(INSTALL) -m 644 $(O)/nri-rpd.service $(DESTDIR)$(UNITDIR)
	$(INSTALL) -m 644 packaging/completion/nri-rpctl.bash $(DESTDIR)$(PREFIX)/share/bash-completion/completions/nri-rpctl
	test -e $(DESTDIR)$(SYSCONFDIR)/nri-rp/rp.conf || $(INSTALL) -m 644 conf/rp.conf $(DESTDIR)$(SYSCONFDIR)/nri-rp
	for page in $(MANS); do $(INSTALL) -D -m 644 $$page $(DESTDIR)$(MANDIR)/man$${page##*.}/$${page##*/} || exit 1; done

deps: ## install the packages that building needs
	$(Q)packaging/deps build
deps-check: ## install the packages that testing needs
	$(Q)packaging/deps check

.PHONY: install deps deps-check
