/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of cpu-burst, as functions of their inputs. */
#include <string.h>

#include "modules/cpu-burst/cpu-burst.h"
#include <nri-rp/lib/calc.h>

#define SAVING_BELOW 60 /* usage below which a container saves CPU time, in percent of its limit */
#define UP_PERCENT 120
#define DOWN_PERCENT 80

const char *const burst_node_names[] = {[BURST_UNKNOWN] = "unknown",
					[BURST_IDLE] = "idle",
					[BURST_COOLING] = "cooling",
					[BURST_OVERLOAD] = "overload"};

enum burst_node burst_node_state(int64_t shared, int64_t used, int64_t threshold_percent)
{
	if (used == RP_NOT_SET)
		return BURST_UNKNOWN;
	/* compare used / shared with the threshold, and with nine tenths of it */
	int64_t part = shared > 0 ? 1000 * used : 1000, whole = shared > 0 ? shared : 1;
	if (part >= 10 * threshold_percent * whole)
		return BURST_OVERLOAD;
	return part >= 9 * threshold_percent * whole ? BURST_COOLING : BURST_IDLE;
}

bool burst_policy(const char *name, struct burst_config *ret)
{
	bool is_auto = strcmp(name, "auto") == 0, is_none = strcmp(name, "none") == 0;
	bool kernel = strcmp(name, "cpuBurstOnly") == 0;
	bool quota = strcmp(name, "cfsQuotaBurstOnly") == 0;
	ret->by_kernel = is_auto || kernel;
	ret->by_quota = is_auto || quota;
	return is_auto || is_none || kernel || quota;
}

enum burst_way burst_way(const struct burst_config *c, bool allowed, bool throttled,
			 enum burst_node node)
{
	bool limited = c->period_s >= 0;
	enum burst_way way = throttled ? BURST_UP : BURST_REMAIN;
	if (!c->by_quota)
		return BURST_RESET;
	if (limited && (c->quota_percent < 100 || !allowed))
		return BURST_DOWN;
	if (node == BURST_OVERLOAD)
		return BURST_DOWN;
	return node == BURST_IDLE ? way : BURST_REMAIN;
}

int64_t burst_quota(enum burst_way way, int64_t base, int64_t quota_percent, int64_t current)
{
	if (base <= 0 || current == BURST_UNLIMITED)
		return BURST_UNLIMITED;
	int64_t most = quota_percent > 100 ? calc_percent(base, quota_percent) : base;
	int64_t quota = way == BURST_RESET  ? base
			: way == BURST_UP   ? calc_percent(current, UP_PERCENT)
			: way == BURST_DOWN ? calc_percent(current, DOWN_PERCENT)
					    : current;
	return calc_min(calc_max(quota, base), most);
}

void burst_savings_begin(struct burst_savings *s, int64_t period_s, int64_t max_percent,
			 int64_t tokens_permille)
{
	int64_t capacity = period_s * (max_percent - 100);
	*s = (struct burst_savings){period_s, max_percent, capacity * tokens_permille / 1000,
				    capacity};
}

bool burst_savings_put(struct burst_savings *s, int64_t usage_percent, int64_t elapsed_s)
{
	if (usage_percent >= 100 || usage_percent < SAVING_BELOW)
		s->tokens += (100 - usage_percent) * elapsed_s;
	s->tokens = calc_max(calc_min(s->tokens, s->capacity), -s->capacity);
	return s->tokens > 0;
}
