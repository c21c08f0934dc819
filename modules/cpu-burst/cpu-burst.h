/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cpu-burst.so: containers that their CPU limit stops may go beyond it for a while: by what the
 * kernel saves up for them (cpu.max.burst), and by a larger quota as long as the shared CPUs have
 * room. cgroup v2 alone.
 *
 *	rule.c		how full the shared CPUs are, which way a quota goes, whose savings are
 *                      spent
 *	answer.c	the same of given figures
 *	apply.c		[worker] quota and burst of a container and of its pod
 *	cpu-burst.c	the module
 */
#ifndef CPU_BURST_H
#define CPU_BURST_H

#include <stdbool.h>

#include "modules/lib/decide.h"
#include "modules/lib/koord.h"

#define BURST_NO_PERIOD (-1) /* a quota may be larger for any time */

enum burst_node { BURST_UNKNOWN, BURST_IDLE, BURST_COOLING, BURST_OVERLOAD };

extern const char *const burst_node_names[];

/* Milli-CPU: the CPUs that nobody owns, and what is used of them; used RP_NOT_SET: not known. */
enum burst_node burst_node_state(int64_t shared, int64_t used, int64_t threshold_percent);

struct burst_config {
	bool by_kernel, by_quota; /* what the policy lets be done */
	int64_t kernel_percent, quota_percent; /* of the limit */
	int64_t period_s; /* BURST_NO_PERIOD, or so long a quota may be as large as it can be */
};

/* The policy's name; false: there is no such. */
bool burst_policy(const char *name, struct burst_config *ret);

enum burst_way { BURST_RESET, BURST_DOWN, BURST_REMAIN, BURST_UP };

/* throttled: its limit has stopped it since it was last asked. allowed: by its savings. */
enum burst_way burst_way(const struct burst_config *c, bool allowed, bool throttled,
			 enum burst_node node);
#define BURST_UNLIMITED (-1) /* a quota that is none */

/* base: the quota of the limit. A container without a limit, or whose quota was taken away, keeps
 * BURST_UNLIMITED. */
int64_t burst_quota(enum burst_way way, int64_t base, int64_t quota_percent, int64_t current);

/* What a container has saved, in percent of its limit times seconds: by using less than 60 percent
 * of it, and spent by using more than all. */
struct burst_savings {
	int64_t period_s, max_percent; /* by which they were begun */
	int64_t tokens, capacity;
};
void burst_savings_begin(struct burst_savings *s, int64_t period_s, int64_t max_percent,
			 int64_t tokens_permille);
/* May it go on? */
bool burst_savings_put(struct burst_savings *s, int64_t usage_percent, int64_t elapsed_s);

extern const struct rp_decision burst_decision;
/* For answers, which need no more of an instance. */
const struct modhost *burst_host(const struct rp_instance *inst);

/* ---- [worker] -------------------------------------------------------------------------------- */

struct burst_item {
	struct ctl_item item;
	char *ref;
	enum burst_way way;
	int64_t limit; /* milli-CPU */
	int64_t quota_percent, kernel_percent; /* kernel 0: nothing is saved up */
	int64_t ret_quota, ret_period; /* that it has now; quota -1: it has no limit */
	uint32_t n_writes;
};
void burst_apply(const struct modhost *h, struct burst_item *b);

#endif
