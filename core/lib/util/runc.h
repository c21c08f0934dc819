/* SPDX-License-Identifier: Apache-2.0 */
/* The version of a runc, as its binary has it: nothing is run to find it out. */
#ifndef UTIL_RUNC_H
#define UTIL_RUNC_H

#include <stdbool.h>
#include <stddef.h>

#define RUNC_SIZE_MAX (128u << 20) /* bytes of the binary that are looked at */

struct runc_version {
	unsigned major, minor, patch;
};

/* Looks for what builds leave: "v1.1.5-0-gf19387a6" (upstream's git describe) and "1.1.5+ds1"
 * (Debian's). False: it is not to be seen. */
bool runc_version_in(const char *data, size_t len, struct runc_version *ret);
/* -errno; -ENODATA: the binary does not say. */
int runc_version_of(const char *path, struct runc_version *ret);
/* Do its cpusets come to systemd with their bytes turned around? */
bool runc_swaps_bytes(const struct runc_version *v);

#endif
