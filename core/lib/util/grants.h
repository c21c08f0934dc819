/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What resource plugins have allocated to the containers of a pod (proto/grants.proto). It is kept
 * with the pod as the packed message, in memory and in the store: a plugin's answer outlives the
 * daemon as soon as the runtime is answered. Plugins are anybody's programs: what is taken here has
 * been checked, by whoever has it from outside.
 */
#ifndef UTIL_GRANTS_H
#define UTIL_GRANTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/lib/util/arena.h"
#include "core/lib/util/err.h"
#include "proto/grants.pb-c.h"

#define GRANTS_MAX 512u /* of one pod */
#define GRANTS_BYTES_MAX (1u << 20) /* packed, of one pod */
#define GRANT_ITEMS_MAX 128u /* environment variables, mounts … of one grant */
#define GRANT_NAME_MAX 256u
#define GRANT_PATH_MAX 4096u
#define GRANT_VALUE_MAX 65536u
#define GRANT_HINTS_MAX 256u

/* -EINVAL: what is wrong with it is in err. */
int grant_check(const Grants__Grant *g, struct err *err);
/* The packed message, all of it checked, in the arena. No bytes are no grants. -EBADMSG, -EINVAL,
 * -E2BIG, -ENOMEM. */
int grants_unpack(struct arena *a, const void *data, size_t len, const Grants__Grants **ret,
		  struct err *err);

/* A name of a container or a resource: printable ASCII without blanks. */
bool grant_name(const char *name);

#endif
