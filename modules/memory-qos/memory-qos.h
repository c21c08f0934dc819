/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory-qos.so: memory that the kernel keeps for containers (memory.min, memory.low), and from
 * which point on it holds them back (memory.high), by the class of their pods. cgroup v2 alone has
 * these.
 *
 *	rule.c		what a container is to have
 *	apply.c		[worker] that, and what it comes to for pods and all that is above them
 *	memory-qos.c	the module
 */
#ifndef MEMORY_QOS_H
#define MEMORY_QOS_H

#include <stdbool.h>

#include <nri-rp/controller.h>

#include "modules/lib/ctl_queue.h"
#include "modules/lib/ctl_table.h"
#include "modules/lib/decide.h"
#include "modules/lib/koord.h"

#define MEMQOS_PAGE 4096
#define MEMQOS_NO_LIMIT INT64_MAX

enum memqos_class { MEMQOS_LSR, MEMQOS_LS, MEMQOS_BE, MEMQOS_CLASSES };

struct memqos_rule {
	int64_t min_percent, low_percent; /* of the request */
	int64_t high_percent; /* of the way from request to limit; 0: it is not held back */
};

struct memqos_values {
	int64_t min, low, high; /* bytes; high: or MEMQOS_NO_LIMIT */
};

/* limit 0: none, what all pods of the node may have counts. */
struct memqos_values memqos_decide(const struct memqos_rule *rule, int64_t request, int64_t limit,
				   int64_t allocatable);

struct memqos_config {
	struct memqos_rule rules[MEMQOS_CLASSES];
	bool annotations;
	int64_t allocatable;
};

/* The values of a container. -RP_EINVAL with `why`: its annotation cannot be read; values are those
 * without it. */
int32_t memqos_values_of(const struct modhost *h, const struct memqos_config *c,
			 const struct rp_ctr_info *info, struct memqos_values *ret,
			 char why[CTL_TEXT_MAX]);
static inline bool memqos_is_nothing(const struct memqos_values *v)
{
	return !v->min && !v->low && v->high == MEMQOS_NO_LIMIT;
}
/* As the files have it. size: at least 32. */
void memqos_text(int64_t value, char *buf, size_t size);

/* ---- [worker] -------------------------------------------------------------------------------- */

/* A container's own. */
struct memqos_item {
	struct ctl_item item;
	uint32_t serial;
	char *ref;
	struct memqos_values values;
	uint32_t n_writes;
};
void memqos_apply(const struct modhost *h, struct memqos_item *item);

/* Directories above containers, and what those below are kept. */
struct memqos_dir {
	char *path;
	int64_t min, low;
	bool has; /* a container is below it */
	struct memqos_dir *next;
};

/* Of all containers at once. */
struct memqos_sums {
	struct ctl_item item;
	struct memqos_dir **dirs; /* the instance's: touched by the worker alone */
	uint32_t n, n_writes;
	struct memqos_part {
		char *ref;
		int64_t min, low;
	} * parts;
};
void memqos_sum(const struct modhost *h, struct memqos_sums *sums);
void memqos_dirs_free(struct memqos_dir *d);

#endif
