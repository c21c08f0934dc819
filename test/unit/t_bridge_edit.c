/* SPDX-License-Identifier: Apache-2.0 */
/* Tests how a plugin's adjustment is written into a request to create a container: each kind of
 * field, and the kinds that CRI has no field for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/nri-rp-bridge/cri_edit.h"
#include "core/lib/util/pb.h"

static char *text(const char *s)
{
	return (char *)(uintptr_t)s;
}

struct fixture {
	struct arena *a;
	Cri__ContainerConfig config;
	Nri__ContainerAdjustment adjust;
	Nri__LinuxContainerAdjustment lnx;
	Nri__LinuxResources resources;
	struct cri_missing missing;
};

static int setup(void **state)
{
	struct fixture *f = test_calloc(1, sizeof *f);
	f->a = arena_new(4096, 0);
	cri__container_config__init(&f->config);
	nri__container_adjustment__init(&f->adjust);
	nri__linux_container_adjustment__init(&f->lnx);
	nri__linux_resources__init(&f->resources);
	f->adjust.lnx = &f->lnx;
	f->lnx.resources = &f->resources;
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	arena_free(f->a);
	test_free(f);
	return 0;
}

static void adjust(struct fixture *f)
{
	assert_int_equal(cri_adjust(f->a, &f->config, &f->adjust, &f->missing), 0);
}

static void test_cpus_and_memory(void **state)
{
	struct fixture *f = *state;
	Nri__LinuxCPU cpu = NRI__LINUX_CPU__INIT;
	Nri__LinuxMemory memory = NRI__LINUX_MEMORY__INIT;
	Nri__OptionalInt64 quota = NRI__OPTIONAL_INT64__INIT, limit = NRI__OPTIONAL_INT64__INIT;
	Nri__OptionalInt oom = NRI__OPTIONAL_INT__INIT;
	Cri__LinuxContainer lnx = CRI__LINUX_CONTAINER__INIT;
	Cri__Resources before = CRI__RESOURCES__INIT;
	f->config.lnx = &lnx;
	lnx.resources = &before;
	before.cpu_shares = 1024;
	before.cpu_quota = 100000;
	before.memory_limit = before.memory_swap = 2048;
	cpu.quota = &quota;
	cpu.cpus = text("1-2");
	cpu.mems = text("0");
	quota.value = -1;
	limit.value = 4096;
	memory.limit = &limit;
	oom.value = -997;
	f->lnx.oom_score_adj = &oom;
	f->resources.cpu = &cpu;
	f->resources.memory = &memory;
	adjust(f);
	const Cri__Resources *r = f->config.lnx->resources;
	assert_int_equal(r->cpu_shares, 1024); /* fields that are not set are unchanged */
	assert_int_equal(r->cpu_quota, -1);
	assert_string_equal(r->cpuset_cpus, "1-2");
	assert_string_equal(r->cpuset_mems, "0");
	assert_int_equal(r->memory_limit, 4096);
	assert_int_equal(r->memory_swap, 4096);
	assert_int_equal(r->oom_score_adj, -997);
	assert_int_equal(f->missing.n, 0);
	limit.value = 0; /* no change */
	adjust(f);
	assert_int_equal(r->memory_limit, 4096);
}

static void test_a_request_without_resources_gets_them(void **state)
{
	struct fixture *f = *state;
	Nri__LinuxCPU cpu = NRI__LINUX_CPU__INIT;
	cpu.cpus = text("3");
	f->resources.cpu = &cpu;
	adjust(f);
	assert_string_equal(f->config.lnx->resources->cpuset_cpus, "3");
}

static void test_annotations_are_set_replaced_and_removed(void **state)
{
	struct fixture *f = *state;
	Nri__ContainerAdjustment__AnnotationsEntry
		replace = NRI__CONTAINER_ADJUSTMENT__ANNOTATIONS_ENTRY__INIT,
		remove = NRI__CONTAINER_ADJUSTMENT__ANNOTATIONS_ENTRY__INIT,
		take_over = NRI__CONTAINER_ADJUSTMENT__ANNOTATIONS_ENTRY__INIT;
	Nri__ContainerAdjustment__AnnotationsEntry *list[] = {&replace, &remove, &take_over};
	assert_int_equal(cri_annotate_container(f->a, &f->config, "a", "1"), 0);
	assert_int_equal(cri_annotate_container(f->a, &f->config, "b", "2"), 0);
	assert_int_equal(cri_annotate_container(f->a, &f->config, "c", "3"), 0);
	replace.key = text("c");
	replace.value = text("4");
	remove.key = text("-a");
	take_over.key = text("-c");
	f->adjust.annotations = list;
	f->adjust.n_annotations = 3;
	adjust(f);
	assert_int_equal(f->config.n_annotations, 2);
	assert_string_equal(f->config.annotations[0]->key, "b");
	assert_string_equal(f->config.annotations[1]->key, "c");
	assert_string_equal(f->config.annotations[1]->value, "4");
}

static void test_environment_is_set_replaced_and_removed(void **state)
{
	struct fixture *f = *state;
	Cri__KeyValue a = CRI__KEY_VALUE__INIT, b = CRI__KEY_VALUE__INIT, c = CRI__KEY_VALUE__INIT;
	Cri__KeyValue *before[] = {&a, &b, &c};
	Nri__KeyValue remove = NRI__KEY_VALUE__INIT, set = NRI__KEY_VALUE__INIT,
		      more = NRI__KEY_VALUE__INIT, take_over = NRI__KEY_VALUE__INIT;
	Nri__KeyValue *list[] = {&remove, &more, &set, &take_over};
	a.key = text("A");
	b.key = text("B");
	c.key = text("C");
	f->config.envs = before;
	f->config.n_envs = 3;
	remove.key = text("-A");
	set.key = text("B");
	set.value = text("x");
	take_over.key = text("-B");
	more.key = text("D");
	f->adjust.env = list;
	f->adjust.n_env = 4;
	adjust(f);
	assert_int_equal(f->config.n_envs, 3);
	assert_string_equal(f->config.envs[0]->key, "B");
	assert_string_equal(f->config.envs[0]->value, "x");
	assert_string_equal(f->config.envs[1]->key, "C");
	assert_string_equal(f->config.envs[2]->key, "D");
}

static void test_mounts_and_devices(void **state)
{
	struct fixture *f = *state;
	Nri__Mount bind = NRI__MOUNT__INIT, tmpfs = NRI__MOUNT__INIT;
	Nri__Mount *mounts[] = {&bind, &tmpfs};
	Nri__LinuxDevice device = NRI__LINUX_DEVICE__INIT, gone = NRI__LINUX_DEVICE__INIT;
	Nri__LinuxDevice *devices[] = {&device, &gone};
	Cri__Device first = CRI__DEVICE__INIT, second = CRI__DEVICE__INIT;
	Cri__Device *before[] = {&first, &second};
	char *options[] = {text("ro"), text("rslave")};
	bind.destination = text("/in");
	bind.source = text("/out");
	bind.options = options;
	bind.n_options = 2;
	tmpfs.destination = text("/tmp");
	tmpfs.type = text("tmpfs");
	first.container_path = device.path = text("/dev/x");
	second.container_path = text("/dev/y");
	gone.path = text("-/dev/y");
	f->config.devices = before;
	f->config.n_devices = 2;
	f->adjust.mounts = mounts;
	f->adjust.n_mounts = 2;
	f->lnx.devices = devices;
	f->lnx.n_devices = 2;
	adjust(f);
	assert_int_equal(f->config.n_mounts, 1);
	assert_string_equal(f->config.mounts[0]->container_path, "/in");
	assert_string_equal(f->config.mounts[0]->host_path, "/out");
	assert_true(f->config.mounts[0]->readonly);
	assert_int_equal(f->config.mounts[0]->propagation, 1);
	assert_int_equal(f->config.n_devices, 1);
	assert_string_equal(f->config.devices[0]->host_path, "/dev/x");
	assert_int_equal(f->missing.n, 1); /* tmpfs */
}

static void test_cdi_devices(void **state)
{
	struct fixture *f = *state;
	Cri__CDIDevice has = CRI__CDIDEVICE__INIT;
	Cri__CDIDevice *before[] = {&has};
	Nri__CDIDevice same = NRI__CDIDEVICE__INIT, more = NRI__CDIDEVICE__INIT;
	Nri__CDIDevice *list[] = {&same, &more};
	has.name = same.name = text("v.example/gpu=0");
	more.name = text("v.example/gpu=1");
	f->config.cdi_devices = before;
	f->config.n_cdi_devices = 1;
	const Nri__Container *c = cri_container(f->a, "id", "pod", &f->config);
	assert_non_null(c);
	assert_int_equal(c->n_cdi_devices, 1);
	assert_string_equal(c->cdi_devices[0]->name, "v.example/gpu=0");
	f->adjust.cdi_devices = list;
	f->adjust.n_cdi_devices = 2;
	adjust(f);
	assert_int_equal(f->config.n_cdi_devices, 2);
	assert_string_equal(f->config.cdi_devices[1]->name, "v.example/gpu=1");
	assert_int_equal(f->missing.n, 0);
}

static void test_classes_are_annotations_that_runtimes_read(void **state)
{
	struct fixture *f = *state;
	Nri__OptionalString gold = NRI__OPTIONAL_STRING__INIT;
	gold.value = text("gold");
	f->resources.rdt_class = &gold;
	f->resources.blockio_class = &gold;
	adjust(f);
	assert_int_equal(f->config.n_annotations, 2);
	assert_string_equal(f->config.annotations[0]->key, "io.kubernetes.cri.rdt-class");
	assert_string_equal(f->config.annotations[1]->key, "io.kubernetes.cri.blockio-class");
}

static void test_what_cri_has_no_place_for_is_named(void **state)
{
	struct fixture *f = *state;
	Nri__Hooks hooks = NRI__HOOKS__INIT;
	Nri__LinuxPids pids = NRI__LINUX_PIDS__INIT;
	char *args[] = {text("x")};
	f->adjust.hooks = &hooks;
	f->adjust.args = args;
	f->adjust.n_args = 1;
	f->resources.pids = &pids;
	f->lnx.cgroups_path = text("/x");
	adjust(f);
	static const char *const expected[] = {"resources.pids", "cgroups_path", "hooks", "args"};
	assert_int_equal(f->missing.n, 4);
	for (unsigned i = 0; i < 4; i++)
		assert_string_equal(f->missing.fields[i], expected[i]);
}

static void test_ids_of_ours_win_over_the_runtimes(void **state)
{
	Cri__ListedContainer ctr = CRI__LISTED_CONTAINER__INIT;
	Cri__ListedContainer__AnnotationsEntry e = CRI__LISTED_CONTAINER__ANNOTATIONS_ENTRY__INIT;
	Cri__ListedContainer__AnnotationsEntry *list[] = {&e};
	ctr.id = text("theirs");
	assert_string_equal(cri_container_id(&ctr), "theirs");
	e.key = text(CRI_ID_ANNOTATION);
	e.value = text("ours");
	ctr.annotations = list;
	ctr.n_annotations = 1;
	assert_string_equal(cri_container_id(&ctr), "ours");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_cpus_and_memory),
		TEST(test_a_request_without_resources_gets_them),
		TEST(test_annotations_are_set_replaced_and_removed),
		TEST(test_environment_is_set_replaced_and_removed),
		TEST(test_mounts_and_devices),
		TEST(test_cdi_devices),
		TEST(test_classes_are_annotations_that_runtimes_read),
		TEST(test_what_cri_has_no_place_for_is_named),
		cmocka_unit_test(test_ids_of_ours_win_over_the_runtimes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
