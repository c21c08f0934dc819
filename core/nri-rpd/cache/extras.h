/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values that only a creation can set: environment, mounts, devices, scheduling and others.
 * Policies, controllers and resource plugins request them. Equal requests are merged. Different
 * requests of two sources are an error that names both, because otherwise the last one would win
 * unnoticed. A source may replace its own earlier request.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nri-rp/cache.h>

#include "core/lib/util/arena.h"
#include "core/lib/util/err.h"

#define EXTRAS_MAX 256u
#define EXTRA_VALUE_MAX 192u /* largest value for display, with the NUL */

/* Fields that have separate functions in rp_host_cache. */
#define EXTRA_MOUNT 300u
#define EXTRA_DEVICE 301u
#define EXTRA_CDI 302u

struct extra {
	uint32_t field; /* RP_F_…, EXTRA_… */
	int64_t number; /* value of integer fields */
	const char *key; /* key of a pair, path of a mount or device, or name of a CDI device */
	const char *text; /* value of text fields and pairs */
	const struct rp_mount *mount;
	const struct rp_device *device;
	const char *by; /* source of the request; has to live as long as the transaction */
};

/* Requests for values outside of struct values, in the order of extras_put(). All zeros: empty. */
struct extras {
	struct arena *arena; /* owns all entries and texts; created at the first use */
	struct extra *list;
	uint32_t n;
	const char **args; /* process arguments; NULL: unchanged */
	uint32_t n_args;
	const char *args_by;
};

/* Adds a copy of a request. -EINVAL: malformed. -EBUSY: another source requests a different value;
 * err names both. -E2BIG: too many requests or too much text. -ENOMEM. */
int extras_put(struct extras *x, const struct extra *e, struct err *err);
int extras_put_args(struct extras *x, const char *const *args, uint32_t n, const char *by,
		    struct err *err);
void extras_clear(struct extras *x);
void extras_fini(struct extras *x);

/* Returns the kind of a request ("environment variable", "mount") and its value for display. */
const char *extra_name(uint32_t field);
void extra_value(const struct extra *e, char ret[EXTRA_VALUE_MAX]);
