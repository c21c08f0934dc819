/* SPDX-License-Identifier: Apache-2.0 */
/* CRC-32C (Castagnoli), as iSCSI and ext4 have it; by the processor's instruction where there is
 * one. */
#ifndef UTIL_CRC32C_H
#define UTIL_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* The sum of what `sum` is the sum of (0: nothing) followed by these bytes. */
uint32_t crc32c(uint32_t sum, const void *data, size_t len);
/* The same without the instruction; for comparison. */
uint32_t crc32c_portable(uint32_t sum, const void *data, size_t len);

#endif
