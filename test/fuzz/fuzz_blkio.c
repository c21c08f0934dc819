/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the kernel's files on disks and on a container's limits: /sys/block, io.max, io.weight,
 * blkio.throttle.* */
#include <stdlib.h>

#include "modules/blkio/blkio.h"
#include "test/fuzz/fake_work.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char pattern[] = "/dev/sd*", *patterns[] = {pattern};
	static struct blkio_entry entries[] = {
		{.weight = 50,
		 .rate = {BLKIO_NOT_SET, BLKIO_NOT_SET, BLKIO_NOT_SET, BLKIO_NOT_SET}},
		{.devices = patterns,
		 .n_devices = 1,
		 .weight = 20,
		 .rate = {1000, BLKIO_NOT_SET, 0, UINT64_MAX - 1}},
	};
	static const struct blkio_class class = {"slow", entries, 2};
	struct fake_work f;
	for (unsigned i = 0; i < 2; i++) {
		struct blkio_worker worker = {.h = &f.h};
		struct blkio_item item = {.item.ref = (char[]){"1 /cg"},
					  .class = i ? &class : NULL};
		fake_work_init(&f, data, size);
		blkio_apply(&worker, &item);
		blkio_devices_fini(&worker.last);
	}
	return 0;
}
