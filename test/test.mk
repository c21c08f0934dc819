# SPDX-License-Identifier: Apache-2.0
# Tests. Unit tests are programs of cmocka, one a file test/unit/t_*.c; the rest is driven by pytest.

include test/modules/modules.mk

# Code of the tests is compiled with -O1, in two thirds of the time.
$(O)/test/%.o: private ALL_CFLAGS += $(if $(COVERAGE),,-O1)

UNIT_SRCS := $(sort $(wildcard test/unit/t_*.c))
UNIT_BINS := $(UNIT_SRCS:test/unit/%.c=$(O)/test/%)

$(O)/test/t_%: $(O)/test/unit/t_%.o $(if $(SANITIZE),$(O)/test/unit/sanitized_fork.o) $(CORE_LIBS) $(O)/libnri-rp-module.a
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -pie -o $@ $(filter %.o,$^) $(O)/libnri-rp-module.a $(CORE_LIBS) $(ALL_LDFLAGS) -lcmocka $(LIBS_DAEMON)

# What a test needs besides core and modules/lib it names as further prerequisites, in the fragment of the module that it tests:
#	$(O)/test/t_mine: $$(FAKE_HOST_OBJS) $(O)/pic/modules/mine/mine.o
FAKE_HOST_OBJS := $(patsubst %.c,$(O)/%.o,$(sort $(wildcard test/unit/fake_*.c)))

# Prints what core/lib/topo makes of a tree; test/topo-hwloc.py compares it with what hwloc does.
$(O)/test/topo_table: $(O)/test/unit/topo_table.o $(CORE_LIBS)
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -pie -o $@ $^ $(ALL_LDFLAGS) $(LIBS_DAEMON)

$(O)/test/t_conf_show $(O)/test/t_conf_oom: $(O)/core/nri-rpctl/jsonschema.o
$(O)/test/t_daemon_options: $(O)/core/nri-rpd/options.o
$(O)/test/t_module_oom: $$(FAKE_HOST_OBJS) | modules
$(O)/test/t_controller_oom: $$(FAKE_HOST_OBJS) $(O)/test/unit/ctl_host.o | modules
$(O)/test/t_life: $$(FAKE_HOST_OBJS)

# What is loaded into a daemon before everything else; never instrumented, as the sanitizers want to be first themselves.
PRELOADS := $(patsubst test/preload/%.c,$(O)/test/%.so,$(sort $(wildcard test/preload/*.c)))
$(O)/test/%.so: test/preload/%.c
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(filter-out -fsanitize=% -fno-sanitize-recover=% --coverage,$(ALL_CFLAGS)) $(ALL_CPPFLAGS) -fPIC -shared -o $@ $<

# Has system calls of a program fail; never instrumented.
$(O)/test/supervise: test/faults/supervise.c
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(filter-out -fsanitize=% -fno-sanitize-recover=% --coverage,$(ALL_CFLAGS)) $(ALL_CPPFLAGS) -o $@ $<
test-programs: $(O)/test/supervise

unit-bins: $(UNIT_BINS)

FUZZ_SRCS := $(sort $(wildcard test/fuzz/fuzz_*.c))
FUZZ_BINS := $(FUZZ_SRCS:test/fuzz/%.c=$(O)/fuzz/%)
.PHONY: unit-bins

# A fuzz target with libFuzzer: make fuzz builds them all under $(O)/fuzz with clang and runs each for FUZZ_RUNS inputs, but at most for
# FUZZ_SECONDS. With any compiler, $(O)/fuzz-replay/NAME runs a target over files, by a plain driver.
FUZZ_RUNS ?= 100000
FUZZ_SECONDS ?= 60

$(O)/fuzz-bin/%: $(O)/test/fuzz/%.o $(CORE_LIBS) $(O)/libnri-rp-module.a
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -pie -o $@ $(filter %.o,$^) $(O)/libnri-rp-module.a $(CORE_LIBS) $(ALL_LDFLAGS) -fsanitize=fuzzer $(LIBS_DAEMON)

# The whole daemon with one policy linked in.
SESSION_OBJS := $(patsubst %.c,$(O)/pic/%.o,$(sort $(wildcard modules/static/*.c)))
$(O)/fuzz-bin/fuzz_session $(O)/fuzz-replay/fuzz_session: $(SESSION_OBJS)

$(O)/fuzz-replay/%: $(O)/test/fuzz/%.o $(O)/test/fuzz/replay.o $(CORE_LIBS) $(O)/libnri-rp-module.a
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -pie -o $@ $(filter %.o,$^) $(O)/libnri-rp-module.a $(CORE_LIBS) $(ALL_LDFLAGS) $(LIBS_DAEMON)

fuzz-bins: $(FUZZ_SRCS:test/fuzz/%.c=$(O)/fuzz-bin/%)
replay-bins: $(FUZZ_SRCS:test/fuzz/%.c=$(O)/fuzz-replay/%)

test-programs: programs modules unit-bins replay-bins test-modules $(PRELOADS)
test-modules:

# As many jobs as there are CPUs, unless -j says otherwise.
check: ## install what is missing and run every test; ends with "N passed, N failed"
	$(Q)packaging/deps check
	$(Q)$(MAKE) --no-print-directory $(if $(filter -j%,$(MAKEFLAGS)),,-j$$(nproc)) test-programs
	$(Q)test/run --build $(O) $(TESTFLAGS)

quick: programs modules unit-bins test-modules $(PRELOADS) ## units without the long models, stories, structure and ABI: under two minutes
	$(Q)test/run --build $(O) --quick $(TESTFLAGS)

check-unit: unit-bins ## run the unit tests only
	$(Q)test/run --build $(O) --only unit $(TESTFLAGS)

fuzz: ## run each fuzz target for FUZZ_RUNS inputs, at most FUZZ_SECONDS (clang)
	$(Q)$(MAKE) --no-print-directory O=$(O)/fuzz CC=$(CLANG) SANITIZE=address,undefined CFLAGS='-O1 -g -fsanitize=fuzzer-no-link' fuzz-bins \
		$(O)/fuzz/test/modules/good.so
	$(Q)test/fuzz/run $(O)/fuzz/fuzz-bin $(FUZZ_RUNS) $(FUZZ_SECONDS)

coverage: ## lines covered by the unit and scenario tests, a folder a line
	$(Q)$(MAKE) --no-print-directory O=$(O)/coverage COVERAGE=1 CFLAGS='-O0 -g' test-programs
	$(Q)test/coverage $(O)/coverage

# Lies of the runtime, a line that ends after each byte, and: the first, the second ... and the FAULT_DEPTH-th call of the C library fails in the running daemon; `make check` tries the first few.
# Of a day of a node's work, lived again and again, each call fails with each error, every FAULT_EVERY-th of a kind in the same day.
FAULT_DEPTH ?= 100
FAULT_EVERY ?= 16
faults: test-programs ## let calls of the daemon, the agent and the bridge fail: of the C library, of the kernel, one at a time and all of a day
	$(Q)FAULT_DEPTH=$(FAULT_DEPTH) FAULT_EVERY=$(FAULT_EVERY) CUT_STEP=1 UNKNOWN=20000 test/run --build $(O) --only scenario -k 'test_fault or test_lies' $(TESTFLAGS)

# make check has two hours of it.
day: test-programs ## a day of a node's load a thousand times as fast: build/day.csv, build/day.svg
	$(Q)DAY_HOURS=24 test/run --build $(O) --only scenario -k test_node_day $(TESTFLAGS)

lint: $(GENERATED_HEADERS) ## clang-format, clang-tidy, cppcheck, gcc -fanalyzer, mandoc, shellcheck
	$(Q)test/lint --build $(O) $(LINTFLAGS) -- $(ALL_CFLAGS) $(ALL_CPPFLAGS)

format: ## clang-format everything
	$(Q)git ls-files '*.c' '*.h' | xargs $(CLANG)-format -i

# make check has a few seconds of it.
SOAK_SECONDS ?= 86400
SOAK_RATE ?= 10
soak: test-programs ## the churn of a busy node, SOAK_RATE starts a second for SOAK_SECONDS, a day: build/soak.csv, build/soak.svg
	$(Q)SOAK_SECONDS=$(SOAK_SECONDS) SOAK_RATE=$(SOAK_RATE) test/run --build $(O) --only scenario -k test_soak $(TESTFLAGS)

# kill -9 at any moment: make check has a few of each.
KILL_ROUNDS ?= 10000
kills: test-programs ## kill -9 the daemon KILL_ROUNDS times while policies, configurations and pods change
	$(Q)KILL_ROUNDS=$(KILL_ROUNDS) test/run --build $(O) --only scenario -k test_kill_switches $(TESTFLAGS)

.PHONY: fuzz-bins replay-bins test-programs test-modules check quick check-unit fuzz faults day soak kills coverage lint format

# What nri-rpd costs beside a plugin that does nothing, on a simulated machine of 128 CPUs. With BENCH_NAMED above 0 and policy
# cpuset a cycle is a pod that names the CPUs of so many others.
BENCH_LIVE ?= 10,1000
BENCH_CYCLES ?= 1000
BENCH_NAMED ?= 0
BENCH_POLICIES ?= none static
BENCH_MACHINE ?= n4c128

$(O)/bench/noop: $(O)/test/bench/noop.o $(CORE_LIBS)
$(O)/bench/bench $(O)/bench/relief: $(O)/test/bench/play.o $(O)/test/bench/target.o $(CORE_LIBS)
$(O)/bench/bench: $(O)/test/bench/main.o
$(O)/bench/relief: $(O)/test/bench/relief.o
# A plugin that looks whether a runtime keeps what NRI promises to plugins.
$(O)/test/judge/judge: $(O)/test/judge/judge.o $(CORE_LIBS)
$(O)/bench/noop $(O)/bench/bench $(O)/bench/relief $(O)/test/judge/judge:
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -pie -o $@ $^ $(ALL_LDFLAGS) $(LIBS_DAEMON)

bench: all $(O)/bench/noop $(O)/bench/bench ## what nri-rpd costs beside a plugin that does nothing
	$(Q)test/bench/run $(O) $(BENCH_MACHINE) $(BENCH_LIVE) $(BENCH_CYCLES) $(BENCH_NAMED) $(BENCH_POLICIES)

bench-relief: all $(O)/bench/relief ## what three moves for one container cost beside 1,000 others
	$(Q)test/bench/relief.sh $(O)

bench-bridge: all $(O)/bench/noop ## what nri-rp-bridge costs beside calls without it
	$(Q)test/bench/bridge.py $(O)

bench-plugin: all ## what a resource plugin adds to the admission of pods
	$(Q)test/bench/plugin.py

bench-cluster: all ## what nri-rp-agent asks of an API server, and what that comes to in a large cluster; takes a quarter of an hour
	$(Q)test/bench/cluster.py

.PHONY: bench bench-relief bench-bridge bench-plugin bench-cluster

# Mutations of a session, a configuration, a store and its records: some in `make check`, many with `make mutate MUTATIONS=100000`.
MUTATIONS ?= 300
$(O)/test/mutate/mutate: $(O)/test/mutate/mutate.o $(O)/test/mutate/record.o $(O)/test/mutate/stores.o $(O)/test/fuzz/fuzz_session.o $(SESSION_OBJS) \
		$(CORE_LIBS) $(O)/libnri-rp-module.a
	$(call say,LD,$@)
	$(Q)$(CC) -pie -o $@ $(filter %.o,$^) $(O)/libnri-rp-module.a $(CORE_LIBS) $(ALL_LDFLAGS) $(LIBS_DAEMON)

test-programs: $(O)/test/mutate/mutate $(O)/test/judge/judge $(O)/bench/noop

mutate: ## mutate what the daemon reads, MUTATIONS of each kind, in a sanitized build
	$(Q)$(MAKE) --no-print-directory O=$(O)/sanitized SANITIZE=address,undefined $(O)/sanitized/test/mutate/mutate
	$(Q)$(O)/sanitized/test/mutate/mutate -o $(O)/sanitized $(MUTATIONS)

.PHONY: mutate

# Errors in the sources of modules: the share of them that the tests catch. Takes about half a minute each.
MUTANTS ?= 20
mutants: ## make MUTANTS small errors in modules/, one at a time, and tell which tests catch them
	$(Q)test/mutants.py --work $(O)/mutants $(MUTANTS)

# Where policies put random workloads; make check plays them again.
record: programs modules ## record placements of random workloads again, after an intended change: test/scenario/recorded.json
	$(Q)test/record.py

quality: programs modules ## how many containers are spread over NUMA nodes without need, by policy and machine
	$(Q)test/quality.py

.PHONY: mutants record quality

# What speaks gRPC.
GRPC_TESTS := $(foreach d,$(O)/fuzz-bin $(O)/fuzz-replay,$(d)/fuzz_grpc) $(patsubst test/unit/%.c,$(O)/test/%,$(wildcard test/unit/t_grpc*.c))
$(GRPC_TESTS): LIBS_DAEMON += -lnghttp2
$(foreach d,$(O)/fuzz-bin $(O)/fuzz-replay,$(d)/fuzz_cri) $(O)/test/t_bridge_edit: $(O)/core/nri-rp-bridge/cri_edit.o \
		$(O)/core/nri-rp-bridge/cri_info.o

$(O)/test/t_bridge_proxy: LIBS_DAEMON += -lnghttp2

# The test plays those that tell it of pods.
$(O)/test/t_bridge_podlist: $(O)/core/nri-rp-bridge/podlist.o

# The bridge's: all of it but main().
BRIDGE_OBJS := $(patsubst %.c,$(O)/%.o,$(sort $(filter-out %/main.c,$(wildcard core/nri-rp-bridge/*.c))))
BRIDGE_TESTS := $(foreach d,$(O)/fuzz-bin $(O)/fuzz-replay,$(d)/fuzz_bypass) $(O)/test/t_bridge_cgroups
$(BRIDGE_TESTS): $(BRIDGE_OBJS)
$(BRIDGE_TESTS): LIBS_DAEMON += -lnghttp2 -lcurl

# The agent's: all of it but main().
AGENT_OBJS := $(patsubst %.c,$(O)/%.o,$(sort $(filter-out %/main.c,$(wildcard core/nri-rp-agent/*.c))))
$(patsubst test/unit/%.c,$(O)/test/%,$(wildcard test/unit/t_agent_*.c)): $(AGENT_OBJS)
$(patsubst test/unit/%.c,$(O)/test/%,$(wildcard test/unit/t_agent_*.c)): LIBS_DAEMON += -lnghttp2 -lcurl
AGENT_FUZZ := $(foreach d,fuzz-bin fuzz-replay,$(O)/$(d)/fuzz_agent $(O)/$(d)/fuzz_kube $(O)/$(d)/fuzz_plugins $(O)/$(d)/fuzz_lister)
$(AGENT_FUZZ): $(AGENT_OBJS)
$(AGENT_FUZZ): LIBS_DAEMON += -lnghttp2 -lcurl
# The other objects of the agent are its stand-ins.
$(O)/fuzz-bin/fuzz_dra $(O)/fuzz-replay/fuzz_dra: $(O)/core/nri-rp-agent/claim_work.o $(O)/core/nri-rp-agent/claim_object.o
