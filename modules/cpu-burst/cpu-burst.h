/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cpu-burst.so: lets containers exceed their CPU limit for a while when it throttles them: by the
 * kernel's burst (cpu.max.burst), and by a larger quota as long as the shared CPUs are not busy.
 * Requires cgroup v2.
 *
 *	rule.c		load of the shared CPUs, direction of a quota, savings of containers
 *	answer.c	decisions for given figures
 *	apply.c		[worker] quota and burst of a container and its pod
 *	cpu-burst.c	the module
 */
#pragma once

#include <stdbool.h>

#include "modules/lib/private/decide.h"
#include "modules/lib/private/koord.h"

#define BURST_NO_PERIOD (-1) /* no limit on the duration of a larger quota */

enum burst_node { BURST_UNKNOWN, BURST_IDLE, BURST_COOLING, BURST_OVERLOAD };

extern const char *const burst_node_names[];

/* Returns the load state of the CPUs that are not exclusive. shared and used are in milli-CPU; used
 * RP_NOT_SET: unknown. */
enum burst_node burst_node_state(int64_t shared, int64_t used, int64_t threshold_percent);

struct burst_config {
	bool by_kernel, by_quota; /* kinds of burst that the policy allows */
	int64_t kernel_percent, quota_percent; /* burst in percent of the limit */
	/* seconds that a quota may be at its maximum; BURST_NO_PERIOD: no limit */
	int64_t period_s;
};

/* Reads the name of a policy. False: there is no such policy. */
bool burst_policy(const char *name, struct burst_config *ret);

enum burst_way { BURST_RESET, BURST_DOWN, BURST_REMAIN, BURST_UP };

/* Returns the direction of a quota. throttled: the limit has throttled the container since the last
 * round. allowed: its savings suffice. */
enum burst_way burst_way(const struct burst_config *c, bool allowed, bool throttled,
			 enum burst_node node);
#define BURST_UNLIMITED (-1) /* cpu.max has no quota */

/* Returns the new quota. base: the quota of the limit. For a container without a limit, or whose
 * quota was removed, BURST_UNLIMITED is returned again. */
int64_t burst_quota(enum burst_way way, int64_t base, int64_t quota_percent, int64_t current);

/* Savings of a container, in percent of its limit times seconds. Usage below 60 percent of the
 * limit adds savings, usage above the limit spends them. */
struct burst_savings {
	int64_t period_s, max_percent; /* configuration with which the savings began */
	int64_t tokens, capacity;
};
void burst_savings_begin(struct burst_savings *s, int64_t period_s, int64_t max_percent,
			 int64_t tokens_permille);
/* Adds an interval with this usage. Returns true if the container may continue to burst. */
bool burst_savings_put(struct burst_savings *s, int64_t usage_percent, int64_t elapsed_s);

extern const struct rp_decision burst_decision;

/* ---- [worker] -------------------------------------------------------------------------------- */

struct burst_item {
	struct ctl_item item;
	enum burst_way way;
	int64_t limit; /* CPU limit of the container in milli-CPU */
	int64_t quota_percent, kernel_percent; /* kernel_percent 0: no burst of the kernel */
	int64_t ret_quota, ret_period; /* present values, set by run(); quota -1: no limit */
};
void burst_apply(const struct modhost *h, struct burst_item *b);
