/* SPDX-License-Identifier: Apache-2.0 */
/* The version in a binary. */
#include <stdint.h>

#include "core/lib/util/runc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct runc_version v;
	if (size)
		(void)runc_version_in((const char *)data, size, &v);
	return 0;
}
