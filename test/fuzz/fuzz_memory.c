/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the kernel's files on a container's memory: files of its cgroup, its processes and their
 * mappings. The annotations of its pod are further pieces of the input. */
#include <assert.h>
#include <stdlib.h>

#include "modules/memory/memory.h"
#include "test/fuzz/fake_work.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int32_t count(void *arg, uint32_t id)
{
	*(uint64_t *)arg += id;
	return 0;
}

static const char *annotation(void *ctx, rp_pod pod, const char *key)
{
	static char text[512];
	assert(strlen(key) < 1024);
	return fake_read(ctx, key, text, sizeof text) > 0 ? text : NULL;
}

static const char *scoped(void *ctx, rp_ctr ctr, const char *key, uint32_t *ret_scope)
{
	return annotation(ctx, ctr, key);
}

static int32_t get_ctr(void *ctx, rp_ctr ctr, struct rp_ctr_info *info)
{
	info->ctr = ctr;
	info->name = "main";
	info->qos = (uint32_t)fake_byte(ctx) % 3;
	info->mem_limit = (int64_t)fake_byte(ctx) << fake_byte(ctx) % 56;
	return 0;
}

static int32_t get_int(void *ctx, rp_ctr ctr, uint32_t field, int64_t *ret)
{
	*ret = (int64_t)fake_byte(ctx) << fake_byte(ctx) % 56;
	return -(fake_byte(ctx) & 1);
}

static void read_annotations(struct fake_work *f, bool v1)
{
	static struct memory_class classes[] = {{"bronze", 0.5}, {"silver", 0}, {"all", 1}};
	struct rp_ctr_info info = {.size = sizeof info};
	const struct rp_plan config = {.v1 = v1,
				       .classes = classes,
				       .n_classes = 3,
				       .files = {"memory.high", "memory.swap.max"},
				       .n_files = 2};
	static const struct rp_host_cache cache = {.size = sizeof cache,
						   .annotation = scoped,
						   .pod_annotation = annotation,
						   .get_ctr = get_ctr,
						   .get_int = get_int};
	static struct memory_values v;
	f->h.cache = &cache;
	if (cache.get_ctr(f->h.ctx, 1, &info))
		return;
	int32_t r = memory_values_of(&f->h, &config, &info, &v);
	assert(r <= 0 && (r == 0) == !v.why[0] && v.n <= 4);
	for (uint32_t i = 0; i < v.n; i++) {
		assert(strncmp(v.list[i].file, "memory.", 7) == 0 && v.list[i].text[0]);
		assert(!strpbrk(v.list[i].text, "\n\r"));
		for (uint32_t k = 0; k < i; k++)
			assert(strcmp(v.list[i].file, v.list[k].file) != 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fake_work f;
	uint64_t n = 0;
	struct memory_item item = {
		.item.ref = (char[]){"1 /cg"},
		.values = {.list = {{"memory.high", "4096"}, {"memory.swap.max", "-1"}}, .n = 2}};
	struct memory_step step = {.item.ref = (char[]){"1 /cg"}, .budget = 64};
	fake_work_init(&f, data, size);
	memory_apply(&f.h, &item);
	fake_work_init(&f, data, size);
	rp_idset_clear(&step.nodes);
	rp_idset_add(&step.nodes, 1);
	memory_step_run(&f.h, &step);
	fake_work_init(&f, data, size);
	(void)ctl_each_thread(&f.h, "/cg", count, &n);
	for (unsigned v1 = 0; v1 < 2; v1++) {
		fake_work_init(&f, data, size);
		read_annotations(&f, v1);
	}
	return 0;
}
