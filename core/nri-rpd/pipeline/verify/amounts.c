/* SPDX-License-Identifier: Apache-2.0 */
/* Comparison of cgroup files with expected amounts, for cgroup v1 and v2. */
#include "core/nri-rpd/pipeline/verify/amounts.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/lib/util/str.h"
#include "core/nri-rpd/cache/derive.h"

#define VALUE_MAX 64u

struct cpu_amounts amounts_of(const struct ctr *ctr)
{
	uint32_t diff = ctr_diff(ctr);
	const struct decision *d = &ctr->cur;
	return (struct cpu_amounts){
		.shares = diff & DIFF_SHARES ? RP_NOT_SET : d->shares,
		.quota = diff & DIFF_QUOTA ? RP_NOT_SET : d->quota,
		.period = diff & DIFF_PERIOD ? RP_NOT_SET : d->period,
		.mem_limit = diff & DIFF_MEM_LIMIT ? RP_NOT_SET : d->mem_limit,
	};
}

bool amounts_any(const struct cpu_amounts *a)
{
	return a->shares != RP_NOT_SET || a->quota != RP_NOT_SET || a->mem_limit != RP_NOT_SET;
}

bool amounts_file(const char *name)
{
	static const char *const files[] = {
		"cpu.weight",	    "cpu.max",		 "memory.max",		 "cpu.shares",
		"cpu.cfs_quota_us", "cpu.cfs_period_us", "memory.limit_in_bytes"};
	for (unsigned i = 0; i < sizeof files / sizeof *files; i++)
		if (str_eq(name, files[i]))
			return true;
	return false;
}

static bool read_at(int dir, const char *file, char value[VALUE_MAX])
{
	return dir >= 0 && fs_read_at(dir, file, value, VALUE_MAX) > 0;
}

static bool amounts_near(int64_t a, double b)
{
	return (double)a >= b - 1 && (double)a <= b + 1;
}

/* Returns true if runtimes derive this weight from these shares. They use a linear formula, and
 * since 2025 a curve on which 1024 shares are weight 100. */
static bool is_weight_of(int64_t weight, int64_t shares)
{
	double s = (double)(shares < DERIVE_SHARES_MIN	 ? DERIVE_SHARES_MIN
			    : shares > DERIVE_SHARES_MAX ? DERIVE_SHARES_MAX
							 : shares);
	double l = log2(s);
	return amounts_near(weight, 1 + (s - 2) * 9999 / 262142) ||
	       amounts_near(weight, pow(10, (l * l + 125 * l) / 612 - 7.0 / 34));
}

/* Returns true if the quota is the expected one. systemd stores a quota as time per second, rounded
 * up to 10 ms. */
static bool is_quota(int64_t found, int64_t found_period, int64_t quota)
{
	if (found < 0 || quota < 0)
		return found < 0 && quota < 0;
	int64_t second =
		(quota * 1000000 / (found_period > 0 ? found_period : 1) + 9999) / 10000 * 10000;
	return found == quota || found == second * found_period / 1000000;
}

/* Returns true if the limit is the expected one. The kernel rounds to whole pages. */
static bool is_limit(int64_t found, int64_t limit)
{
	int64_t page = sysconf(_SC_PAGESIZE);
	return found / page == limit / page;
}

static void amounts_say(char text[AMOUNTS_TEXT_MAX], const char *file, const char *found,
			int64_t expected)
{
	if (!*text)
		(void)snprintf(text, AMOUNTS_TEXT_MAX, "%s %.24s instead of %" PRId64, file, found,
			       expected);
}

static uint32_t other_shares(const struct cpu_amounts *a, int dir, char *text)
{
	char value[VALUE_MAX];
	bool v2 = read_at(dir, "cpu.weight", value);
	if (a->shares == RP_NOT_SET || (!v2 && !read_at(dir, "cpu.shares", value)))
		return 0;
	int64_t found = strtoll(value, NULL, 10);
	if (v2 ? is_weight_of(found, a->shares) : found == a->shares)
		return 0;
	amounts_say(text, v2 ? "cpu.weight" : "cpu.shares", value, a->shares);
	return DIFF_SHARES;
}

static uint32_t other_quota(const struct cpu_amounts *a, int dir, char *text)
{
	char value[VALUE_MAX], period[VALUE_MAX];
	char *end = value;
	if (a->quota == RP_NOT_SET)
		return 0;
	bool v2 = read_at(dir, "cpu.max", value);
	if (!v2 && (!read_at(dir, "cpu.cfs_quota_us", value) ||
		    !read_at(dir, "cpu.cfs_period_us", period)))
		return 0;
	int64_t found = v2 && str_has_prefix(value, "max") ? -1 : strtoll(value, &end, 10);
	int64_t found_period = strtoll(!v2 ? period : found < 0 ? value + 3 : end, NULL, 10);
	if (!is_quota(found, found_period, a->quota)) {
		amounts_say(text, v2 ? "cpu.max" : "cpu.cfs_quota_us", value, a->quota);
		return DIFF_QUOTA;
	}
	if (a->period == RP_NOT_SET || a->quota < 0 || found_period == a->period)
		return 0;
	amounts_say(text, v2 ? "cpu.max" : "cpu.cfs_period_us", v2 ? value : period, a->period);
	return DIFF_PERIOD;
}

static uint32_t other_limit(const struct cpu_amounts *a, int dir, char *text)
{
	char value[VALUE_MAX];
	bool v2 = read_at(dir, "memory.max", value);
	if (a->mem_limit == RP_NOT_SET || a->mem_limit <= 0 ||
	    (!v2 && !read_at(dir, "memory.limit_in_bytes", value)))
		return 0;
	int64_t found = str_has_prefix(value, "max") ? INT64_MAX : strtoll(value, NULL, 10);
	if (is_limit(found, a->mem_limit))
		return 0;
	amounts_say(text, v2 ? "memory.max" : "memory.limit_in_bytes", value, a->mem_limit);
	return DIFF_MEM_LIMIT;
}

uint32_t amounts_other(const struct cpu_amounts *a, int cpu_dir, int memory_dir,
		       char text[AMOUNTS_TEXT_MAX])
{
	*text = '\0';
	return other_shares(a, cpu_dir, text) | other_quota(a, cpu_dir, text) |
	       other_limit(a, memory_dir, text);
}
