/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the log of found values that another process has left. Only storable records are read from
 * it. */
#include <assert.h>
#include <stdint.h>

#include "core/nri-rpd/host/former_settings.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int take(void *arg, const char *path, const char *value)
{
	assert(found_storable(path, value ? value : ""));
	*(size_t *)arg += 1;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t n = 0;
	struct err err = ERR_INIT;
	int r = found_parse(data, size, "boot /", take, &n, &err);
	assert(r == 0 || err.text[0]);
	assert(r == 0 || r == -EBADMSG || !n);
	assert(n <= size);
	return 0;
}
