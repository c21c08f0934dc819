/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What only a creation can give a container: environment, mounts, devices, scheduling and the like.
 * Several ask: the policy, controllers, and plugins that the agent speaks to. Equal values of two
 * of them are one; different ones are an error that names both, since whichever came last would
 * have won unseen. An asker that says another value than before has changed its mind.
 */
#ifndef CACHE_EXTRAS_H
#define CACHE_EXTRAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nri-rp/cache.h>

#include "core/lib/util/arena.h"
#include "core/lib/util/err.h"

#define EXTRAS_MAX 256u
#define EXTRA_VALUE_MAX 192u /* of a value as people see it, the NUL included */

/* Fields of those that have functions of their own in rp_host_cache. */
#define EXTRA_MOUNT 300u
#define EXTRA_DEVICE 301u
#define EXTRA_CDI 302u

struct extra {
	uint32_t field; /* RP_F_…, EXTRA_… */
	int64_t number; /* of set_int fields */
	const char *key; /* of pairs; where a mount or a device is; a CDI device's name */
	const char *text; /* of set_text and set_pair fields */
	const struct rp_mount *mount;
	const struct rp_device *device;
	const char *by; /* who asks; has to live as long as the transaction */
};

/* In order of asking. Zeroed at first. */
struct extras {
	struct arena *arena; /* all of it and its text; made when first needed */
	struct extra *list;
	uint32_t n;
	const char **args; /* process arguments; NULL: the container keeps its own */
	uint32_t n_args;
	const char *args_by;
};

/* Copies it. -EINVAL: it is malformed; -EBUSY: another asker wants something else, and both are
 * named; -E2BIG: too many, or too much text; -ENOMEM. */
int extras_put(struct extras *x, const struct extra *e, struct err *err);
int extras_put_args(struct extras *x, const char *const *args, uint32_t n, const char *by,
		    struct err *err);
void extras_clear(struct extras *x);
void extras_fini(struct extras *x);

/* What it is and its value, for people: "environment variable", "mount". */
const char *extra_name(uint32_t field);
void extra_value(const struct extra *e, char ret[EXTRA_VALUE_MAX]);

#endif
