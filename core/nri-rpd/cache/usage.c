/* SPDX-License-Identifier: Apache-2.0 */
/* Storage and rates of measured usage. */
#include "core/nri-rpd/cache/usage.h"

void usage_put(struct usage *u, enum figure f, uint64_t value, uint64_t now_ms)
{
	static const uint32_t levels = 1u << FIG_MEMORY | 1u << FIG_MEMORY_ANON |
				       1u << FIG_MEMORY_KEPT | 1u << FIG_MEMORY_FILES |
				       1u << FIG_LLC;
	bool anew = value < u->now[f].value && !(levels & 1u << f);
	u->before[f] = anew ? (struct reading){0, 0} : u->now[f];
	u->now[f] = (struct reading){value, now_ms};
}

bool usage_known(const struct usage *u, enum figure f)
{
	return u && u->now[f].at_ms;
}

static bool usage_growth(const struct usage *u, enum figure f, uint64_t *ret)
{
	const struct reading *now = &u->now[f], *before = &u->before[f];
	if (!before->at_ms || now->at_ms <= before->at_ms)
		return false;
	*ret = now->value - before->value;
	return true;
}

bool usage_rate(const struct usage *u, enum figure f, double *ret)
{
	uint64_t grown;
	if (!usage_growth(u, f, &grown))
		return false;
	*ret = (double)grown * 1000 / (double)(u->now[f].at_ms - u->before[f].at_ms);
	return true;
}

bool usage_permille(const struct usage *u, enum figure part, enum figure whole, int64_t *ret)
{
	uint64_t a, b;
	if (!usage_growth(u, part, &a) || !usage_growth(u, whole, &b))
		return false;
	double share = b ? (double)a * 1000 / (double)b : 0;
	*ret = share > 1000 ? 1000 : (int64_t)share;
	return true;
}
