# SPDX-License-Identifier: Apache-2.0
# Copy this folder, rename the module here and in the source, run make.

MODULE := @name@
SOURCES := @name@.c

PKG_CONFIG ?= pkg-config
include $(or $(shell $(PKG_CONFIG) --variable=makefile nri-rp-module),$(error pkg-config does not find nri-rp-module))
