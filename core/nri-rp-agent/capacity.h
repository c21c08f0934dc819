/* SPDX-License-Identifier: Apache-2.0 */
/* Resources of the Node that devices of claims have by size, and their names in the capacity of a
 * device, which the API server requires to be C identifiers. */
#pragma once

#include <stdint.h>

#define CAPACITY_HUGE 1u /* index of the first size of huge pages */
#define CAPACITY_SIZES 3u

static const struct capacity_size {
	const char *resource, *name;
	int64_t unit; /* in MiB */
} capacity_sizes[CAPACITY_SIZES] = {
	{"memory", "memory", 1},
	{"hugepages-2Mi", "hugepages2Mi", 2},
	{"hugepages-1Gi", "hugepages1Gi", 1024},
};
