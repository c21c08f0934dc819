/* SPDX-License-Identifier: Apache-2.0 */
/* What another process has left in the file of found values. Nothing but storable records comes of it, and they make the same file again. */
#include <assert.h>

#include "core/host/found.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int take(void *arg, const char *path, const char *value)
{
	assert(found_storable(path, value ? value : ""));
	assert(found_add(arg, path, value) == 0);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf records = BUF_INIT;
	int r = found_decode(data, size, "boot /", take, &records);
	assert(r == 0 || r == -EBADMSG || (r == -ESTALE && !buf_len(&records)));
	assert(buf_len(&records) < size || !size);
	buf_fini(&records);
	return 0;
}
