/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory-qos.so: memory that the kernel protects for containers (memory.min, memory.low), and the
 * amount from which it throttles them (memory.high), by the class of their pods. Requires cgroup
 * v2.
 *
 *	rule.c		values of a container
 *	apply.c		[worker] writes them, and their sums for pods and the directories above
 *	memory-qos.c	the module
 */
#pragma once

#include <stdbool.h>

#include "modules/lib/private/decide.h"
#include "modules/lib/private/koord.h"

#define MEMQOS_PAGE 4096
#define MEMQOS_NO_LIMIT INT64_MAX

enum memqos_class { MEMQOS_LSR, MEMQOS_LS, MEMQOS_BE, MEMQOS_CLASSES };

struct memqos_rule {
	int64_t min_percent, low_percent; /* protected memory in percent of the request */
	int64_t high_percent; /* percent of the way from request to limit; 0: no throttling */
};

struct memqos_values {
	int64_t min, low, high; /* bytes; high may be MEMQOS_NO_LIMIT */
};

/* Returns the values for a request and a limit in bytes. limit 0: none, so the node's allocatable
 * memory is used. */
struct memqos_values memqos_decide(const struct memqos_rule *rule, int64_t request, int64_t limit,
				   int64_t allocatable);

struct rp_plan {
	CTL_PLAN;
	struct memqos_rule rules[MEMQOS_CLASSES];
	bool annotations;
	int64_t allocatable;
};

/* Determines the values of a container. -RP_EINVAL with `why`: its annotation is malformed, and
 * *ret has the values without it. */
int32_t memqos_values_of(const struct modhost *h, const struct rp_plan *c,
			 const struct rp_ctr_info *info, struct memqos_values *ret,
			 char why[CTL_TEXT_MAX]);
static inline bool memqos_is_nothing(const struct memqos_values *v)
{
	return !v->min && !v->low && v->high == MEMQOS_NO_LIMIT;
}
/* Writes a value in the format of the files. size: at least 32. */
void memqos_text(int64_t value, char *buf, size_t size);

/* ---- [worker] -------------------------------------------------------------------------------- */

/* Values of a container. */
struct memqos_item {
	struct ctl_item item;
	struct memqos_values values;
};
void memqos_apply(const struct modhost *h, struct memqos_item *item);

/* A directory above containers, with the sums of the values below. */
struct memqos_dir {
	char *path;
	int64_t min, low;
	bool has; /* a container is below the directory */
	struct memqos_dir *next;
};

/* Values of all containers. */
struct memqos_sums {
	struct ctl_item item;
	struct memqos_dir **dirs; /* belongs to the instance; used by the worker only */
	uint32_t n;
	struct memqos_part {
		char *ref;
		int64_t min, low;
	} * parts;
};
void memqos_sum(const struct modhost *h, struct memqos_sums *sums);
void memqos_dirs_free(struct memqos_dir *d);
