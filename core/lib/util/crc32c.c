/* SPDX-License-Identifier: Apache-2.0 */
#include "core/lib/util/crc32c.h"

#include <string.h>

/* Remainders of the sixteen half bytes for the reflected polynomial 0x82f63b78. */
static const uint32_t half_byte[16] = {
	0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3,
	0x61c69362, 0x7198540d, 0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
	0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
};

uint32_t crc32c_portable(uint32_t sum, const void *data, size_t len)
{
	const uint8_t *p = data;
	uint32_t c = ~sum;
	for (size_t i = 0; i < len; i++) {
		c ^= p[i];
		c = c >> 4 ^ half_byte[c & 15];
		c = c >> 4 ^ half_byte[c & 15];
	}
	return ~c;
}

#ifdef __x86_64__

__attribute__((target("sse4.2"))) static uint32_t crc32c_sse42(uint32_t sum, const void *data,
							       size_t len)
{
	const uint8_t *p = data;
	uint64_t c = (uint32_t)~sum;
	for (; len >= 8; p += 8, len -= 8) {
		uint64_t word;
		memcpy(&word, p, 8);
		c = __builtin_ia32_crc32di(c, word);
	}
	for (; len; p++, len--)
		c = __builtin_ia32_crc32qi((uint32_t)c, *p);
	return ~(uint32_t)c;
}

uint32_t crc32c(uint32_t sum, const void *data, size_t len)
{
	if (__builtin_cpu_supports("sse4.2"))
		return crc32c_sse42(sum, data, len);
	return crc32c_portable(sum, data, len);
}

#else

uint32_t crc32c(uint32_t sum, const void *data, size_t len)
{
	return crc32c_portable(sum, data, len);
}

#endif
