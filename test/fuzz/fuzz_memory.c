/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel says of a container's memory: files of its cgroup, its processes and their mappings. */
#include <stdlib.h>

#include "modules/memory/memory.h"
#include "test/fuzz/fake_work.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int32_t count(void *arg, uint32_t id)
{
	*(uint64_t *)arg += id;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fake_work f;
	uint64_t n = 0;
	struct memory_item item = {
		.ref = (char[]){"1 /cg"},
		.values = {.list = {{"memory.high", "4096"}, {"memory.swap.max", "-1"}}, .n = 2}};
	struct memory_step step = {.ref = (char[]){"1 /cg"}, .budget = 64};
	fake_work_init(&f, data, size);
	memory_apply(&f.h, &item);
	fake_work_init(&f, data, size);
	rp_idset_clear(&step.nodes);
	rp_idset_add(&step.nodes, 1);
	memory_step_run(&f.h, &step);
	fake_work_init(&f, data, size);
	(void)ctl_each_thread(&f.h, "/cg", count, &n);
	return 0;
}
