# SPDX-License-Identifier: Apache-2.0
# The quick start, and what the simulator needs beside core.mk: the machines inside it.

$(O)/core/nri-rp-sim/shipped.o: $(wildcard conf/machines/*.yaml)
