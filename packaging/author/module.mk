# SPDX-License-Identifier: Apache-2.0
# For modules built out of tree:
#
#   MODULE := mine
#   SOURCES := mine.c
#   include $(shell pkg-config --variable=makefile nri-rp-module)
#
# gives $(MODULE).so, `make check` (runs nri-rp-modcheck when it is installed) and `make install`.

CFLAGS ?= -O2 -g
MODULE_CFLAGS := -std=gnu11 -fPIC -fvisibility=hidden -Wall -Wextra $(CFLAGS) $(shell pkg-config --cflags nri-rp-module)
MODULE_LDFLAGS := -shared -Wl,-z,defs,-z,relro,-z,now,-z,noexecstack $(LDFLAGS)
MODULE_LIB := $(shell pkg-config --variable=libdir nri-rp-module)/libnri-rp-module.a
MODULE_DIR := $(shell pkg-config --variable=moduledir nri-rp-module)

$(MODULE).so: $(SOURCES)
	$(CC) $(MODULE_CFLAGS) -o $@ $(SOURCES) $(MODULE_LIB) $(MODULE_LDFLAGS)

check: $(MODULE).so
	nri-rp-modcheck $(CURDIR)/$(MODULE).so

install: $(MODULE).so
	install -D -m 644 $(MODULE).so $(DESTDIR)$(MODULE_DIR)/$(MODULE).so

clean:
	rm -f $(MODULE).so

.PHONY: check install clean
