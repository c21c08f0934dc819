# SPDX-License-Identifier: Apache-2.0
# The quick start, and what the simulator needs beside core.mk: the machines inside it.

$(O)/core/lib/machines/shipped.o: $(wildcard conf/machines/*.yaml)

# From a bare system to a story: each line of progress says what takes the time.
MAP_ADDRESS := 127.0.0.1:8891
demo: ## install what is missing, build, and play a story on a simulated node (MAP=1: with the live map)
	@mkdir -p $(O)
	@echo '== 1/3 packages that building needs'
	$(Q)$(MAKE) --no-print-directory O=$(O) deps
	@echo '== 2/3 building into $(O), which takes half a minute (what it does: $(O)/demo.log)'
	$(Q)$(MAKE) --no-print-directory O=$(O) -j$$(nproc) programs modules > $(O)/demo.log 2>&1 || { tail -30 $(O)/demo.log; exit 1; }
	@echo '== 3/3 a real nri-rpd on a simulated node'
	$(Q)$(O)/bin/nri-rp-sim play -v $(if $(MAP),--map $(MAP_ADDRESS)) $(wildcard conf/demo/*.yaml)
	@printf '%s\n' '' 'What to look at next:' \
		'  make demo MAP=1                        the same with the live map at http://$(MAP_ADDRESS)/map' \
		'  conf/demo/story.yaml                   what was just played; change it and play it again:' \
		'  $(O)/bin/nri-rp-sim play -v conf/demo/story.yaml' \
		'  $(O)/bin/nri-rp-sim machines           other machines to play on: --machine server-2s' \
		'  conf/rp.conf                           the configuration of a real node, every key explained' \
		'  make help                              what else there is; README.md says how to install it'


# Its tests need all of it but main().
SIM_OBJS := $(patsubst %.c,$(O)/%.o,$(sort $(filter-out %/main.c,$(wildcard core/nri-rp-sim/*.c))))
$(patsubst test/unit/%.c,$(O)/test/%,$(wildcard test/unit/t_sim_*.c)): $(SIM_OBJS)

.PHONY: demo
