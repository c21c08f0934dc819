/* SPDX-License-Identifier: Apache-2.0 */
/* Determines the version of runc from its binary, without running it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define RUNC_SIZE_MAX (128u << 20) /* largest part of the runc binary that is searched, in bytes */

struct runc_version {
	unsigned major, minor, patch;
};

/* Searches for the version that builds leave: "v1.1.5-0-gf19387a6" (upstream's git describe) and
 * "1.1.5+ds1" (Debian's). False: not found. */
bool runc_version_in(const char *data, size_t len, struct runc_version *ret);
/* Reads the version of a binary. -errno; -ENODATA: the binary does not state it. */
int runc_version_of(const char *path, struct runc_version *ret);
/* Returns true if this runc reverses the bytes of the cpusets that it passes to systemd. */
bool runc_swaps_bytes(const struct runc_version *v);
