# SPDX-License-Identifier: Apache-2.0
# make deb: nri-rp_VERSION_ARCH.deb for nodes, nri-rp-dev_VERSION_ARCH.deb for authors of modules, below $(O). With SANITIZED=1 the
# latter has the sanitized checker, too, which takes a second build.

DEB := $(O)/deb
# Packages of the same tree are the same, byte by byte, whenever they are made: nothing in them is younger than its last commit.
DEB_EPOCH = $(or $(SOURCE_DATE_EPOCH),$(shell git log -1 --format=%ct 2>/dev/null),$(shell stat -c %Y LICENSE))
DEB_ARCH = $(shell dpkg --print-architecture)

deb: all ## Debian packages: nri-rp for nodes, nri-rp-dev for authors of modules (SANITIZED=1: with the sanitized checker)
	$(Q)packaging/deps deb
	$(Q)rm -rf $(DEB)
	$(Q)$(MAKE) --no-print-directory DESTDIR=$(abspath $(DEB))/nri-rp PREFIX=/usr SYSCONFDIR=/etc UNITDIR=/lib/systemd/system \
		ZSHDIR=/usr/share/zsh/vendor-completions \
		install-node
	$(Q)$(MAKE) --no-print-directory DESTDIR=$(abspath $(DEB))/nri-rp-dev PREFIX=/usr \
		PKGCONFIGDIR=/usr/share/pkgconfig install-dev $(if $(SANITIZED),install-sanitized)
	$(Q)SOURCE_DATE_EPOCH=$(DEB_EPOCH) packaging/debian/build $(DEB) $(VERSION) $(DEB_ARCH)

lintian: deb ## what Debian's checker says of the packages
	$(Q)lintian --allow-root --fail-on error,warning --suppress-tags initial-upload-closes-no-bugs $(DEB)/*.deb

.PHONY: deb lintian
