# SPDX-License-Identifier: Apache-2.0
# Modules with one thing wrong each, for tests of the host. They are built without instrumentation, whatever the rest is built with, since
# instrumented ones have constructors.

TEST_MODULE_NAMES := good devices-old devices-wrong puppet puppet2 hand hand2 hand3 fickle shorter constructor crash hang hang-zones overlap old newer undefined misnamed no-symbol wrong-major longer \
	$(foreach n,1 2 3 4 5 6 7 8 9 10,struct-$(n)) $(foreach n,1 2 3 4 5 6 7 8 9 10 11 12 13 14,schema-$(n)) \
	$(foreach n,0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23,conduct-$(n)) \
	$(foreach n,0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24,curious-$(n))
TEST_MODULES := $(TEST_MODULE_NAMES:%=$(O)/test/modules/%.so) $(O)/test/modules/garbage.so $(O)/test/modules/rebuilt/good.so
TEST_MODULE_CFLAGS := -std=gnu11 -O1 -g -Wall -Wextra -Wno-unused-parameter -Wno-override-init -Wno-initializer-overrides -Wno-unknown-warning-option \
	-fPIC -fvisibility=hidden -fno-strict-aliasing -Iinclude
TEST_MODULE_LDFLAGS := -shared -Wl,--build-id=sha1 -Wl,-z,noexecstack -Wl,-z,relro,-z,now
TEST_MODULE_COMPLETE := -Wl,-z,defs
TEST_MODULE_HEADERS := test/modules/common.h $(wildcard include/nri-rp/*.h)

define build_test_module
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(TEST_MODULE_CFLAGS) $(1) -o $@ $< $(TEST_MODULE_LDFLAGS)
endef

$(O)/test/modules/struct-%.so: test/modules/struct.c $(TEST_MODULE_HEADERS)
	$(call build_test_module,-DSTRUCT_CASE=$* $(TEST_MODULE_COMPLETE))
$(O)/test/modules/schema-%.so: test/modules/schema.c $(TEST_MODULE_HEADERS)
	$(call build_test_module,-DSCHEMA_CASE=$* $(TEST_MODULE_COMPLETE))
$(O)/test/modules/conduct-%.so: test/modules/conduct.c $(TEST_MODULE_HEADERS)
	$(call build_test_module,-DCONDUCT_CASE=$* $(TEST_MODULE_COMPLETE))
$(O)/test/modules/curious-%.so: test/modules/curious.c $(TEST_MODULE_HEADERS)
	$(call build_test_module,-DCURIOUS_CASE=$* $(TEST_MODULE_COMPLETE))
# The same module, another build.
$(O)/test/modules/rebuilt/%.so: test/modules/%.c $(TEST_MODULE_HEADERS)
	$(call build_test_module,-O2 -DREBUILT $(TEST_MODULE_COMPLETE))
$(O)/test/modules/undefined.so: test/modules/undefined.c $(TEST_MODULE_HEADERS)
	$(call build_test_module)
$(O)/test/modules/garbage.so:
	@mkdir -p $(@D)
	@echo 'this is not a shared object' > $@
$(O)/test/modules/%.so: test/modules/%.c $(TEST_MODULE_HEADERS)
	$(call build_test_module,$(TEST_MODULE_COMPLETE))

$(O)/test/modules/puppet2.so: test/modules/puppet.c
$(O)/test/modules/hand2.so $(O)/test/modules/hand3.so: test/modules/hand.c

test-modules: $(TEST_MODULES)
$(O)/test/t_apply $(O)/test/t_apply_sst $(O)/test/t_apply_settings $(O)/test/t_collector $(O)/test/t_drift $(O)/test/t_loader $(O)/test/t_note $(O)/test/t_pipeline $(O)/test/t_pipeline_config $(O)/test/t_pipeline_former $(O)/test/t_pipeline_updates $(O)/test/t_nri_front: | $(TEST_MODULES)
$(O)/test/t_apply_settings $(O)/test/t_apply_sst: | $(O)/modules/balloons.so $(O)/modules/topology-aware.so $(O)/modules/cpu.so $(O)/modules/none.so
.PHONY: test-modules
