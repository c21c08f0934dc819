/* SPDX-License-Identifier: Apache-2.0 */
/* /proc/stat and /proc/meminfo, as a kernel of any make may have them, and averages over readings
 * of any kind. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/nri-rpd/noderes/series.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void average(const uint8_t *data, size_t size)
{
	struct series s = {0};
	struct series_reading r;
	int64_t cpu, memory;
	for (; size >= sizeof r; data += sizeof r, size -= sizeof r) {
		memcpy(&r, data, sizeof r);
		r.at_ms >>= 8;
		r.memory >>= 16;
		series_put(&s, &r, 300000);
		assert(s.n >= 1 && s.n <= SERIES_READINGS);
		(void)series_average(&s, r.at_ms, 60000, &cpu, &memory);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	uint64_t cpu_ns;
	int64_t used;
	assert(text);
	memcpy(text, data, size);
	text[size] = '\0';
	(void)series_parse_stat(text, 100, &cpu_ns);
	if (series_parse_meminfo(text, size % 2 != 0, &used) == 0)
		assert(used >= 0);
	free(text);
	average(data, size);
	return 0;
}
