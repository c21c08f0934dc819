/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocations of resource plugins for the containers of a pod (proto/grants.proto). The packed
 * message is stored with the pod, in memory and in the store, so that a plugin's answer outlives
 * the daemon from the moment at which the runtime gets its answer. Plugins are not trusted: the
 * component that receives a grant checks it first.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/lib/util/arena.h"
#include "core/lib/util/err.h"
#include "proto/grants.pb-c.h"

#define GRANTS_MAX 512u /* largest number of grants of one pod */
#define GRANTS_BYTES_MAX (1u << 20) /* largest size of the packed message of one pod, in bytes */
/* largest number of items of one kind (environment variables, mounts …) in a grant */
#define GRANT_ITEMS_MAX 128u
#define GRANT_NAME_MAX 256u
#define GRANT_PATH_MAX 4096u
#define GRANT_VALUE_MAX 65536u
#define GRANT_HINTS_MAX 256u

/* Checks a grant. -EINVAL: err has the reason. */
int grant_check(const Grants__Grant *g, struct err *err);
/* Unpacks the message into the arena and checks all of it. An empty message has no grants.
 * -EBADMSG, -EINVAL, -E2BIG, -ENOMEM. */
int grants_unpack(struct arena *a, const void *data, size_t len, const Grants__Grants **ret,
		  struct err *err);

/* Returns true for a valid name of a container or a resource: printable ASCII without blanks. */
bool grant_name(const char *name);
