/* SPDX-License-Identifier: Apache-2.0 */
/* CRC-32C (Castagnoli), as used by iSCSI and ext4, with the processor's instruction if it
 * exists. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Returns the checksum of data whose first part has the checksum `sum` (0: no first part) and
 * continues with these bytes. */
uint32_t crc32c(uint32_t sum, const void *data, size_t len);
/* Computes crc32c() without the instruction, for comparison. */
uint32_t crc32c_portable(uint32_t sum, const void *data, size_t len);
