# SPDX-License-Identifier: Apache-2.0
# For modules built out of tree:
#
#   MODULE := mine
#   SOURCES := mine.c
#   include $(shell pkg-config --variable=makefile nri-rp-module)
#
# gives $(MODULE).so, `make check` (all that nri-rp-modcheck knows to try), `make check-sanitized` and `make check-valgrind` (the same,
# looking at each use of memory) and `make install`. The module's name in its source has to be $(MODULE) too. With PKG_CONFIG='pkg-config --define-prefix' the installed tree may lie anywhere.

PKG_CONFIG ?= pkg-config
CFLAGS ?= -O2 -g
MODULE_CFLAGS := -std=gnu11 -fPIC -fvisibility=hidden -Wall -Wextra $(CFLAGS) $(shell $(PKG_CONFIG) --cflags nri-rp-module)
MODULE_LDFLAGS := -shared -Wl,-z,defs,-z,relro,-z,now,-z,noexecstack $(LDFLAGS)
MODULE_LIB := $(shell $(PKG_CONFIG) --libs nri-rp-module)
MODULE_DIR := $(shell $(PKG_CONFIG) --variable=moduledir nri-rp-module)
MODCHECK ?= $(shell $(PKG_CONFIG) --variable=modcheck nri-rp-module)

all: $(MODULE).so

$(MODULE).so: $(SOURCES) $(HEADERS) $(MAKEFILE_LIST)
	$(CC) $(MODULE_CFLAGS) -o $@ $(SOURCES) $(MODULE_LDFLAGS) $(MODULE_LIB)

check: $(MODULE).so
	$(MODCHECK) $(CURDIR)/$(MODULE).so

SANITIZE := -O1 -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -U_FORTIFY_SOURCE
sanitized/$(MODULE).so: $(SOURCES) $(HEADERS) $(MAKEFILE_LIST)
	mkdir -p $(@D)
	$(CC) $(MODULE_CFLAGS) $(SANITIZE) -o $@ $(SOURCES) $(MODULE_LDFLAGS) -Wl,-z,undefs $(MODULE_LIB)

check-sanitized: sanitized/$(MODULE).so
	$(MODCHECK) --sanitize $(CURDIR)/sanitized/$(MODULE).so

check-valgrind: $(MODULE).so
	$(MODCHECK) --valgrind $(CURDIR)/$(MODULE).so

install: $(MODULE).so
	install -D -m 644 $(MODULE).so $(DESTDIR)$(MODULE_DIR)/$(MODULE).so

clean:
	rm -rf $(MODULE).so sanitized

.PHONY: all check check-sanitized check-valgrind install clean
