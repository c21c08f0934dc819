/* SPDX-License-Identifier: Apache-2.0 */
/* Formats numbers for people. */
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "core/lib/term/out.h"

const char *unit_bytes(uint64_t bytes, char buf[UNIT_MAX])
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	unsigned u = 0;
	uint64_t whole = bytes, rest = 0;
	for (; whole >= 1024 && u + 1 < sizeof units / sizeof units[0]; u++) {
		rest = whole % 1024;
		whole /= 1024;
	}
	uint64_t tenths = rest * 10 / 1024;
	if (tenths && whole < 100)
		(void)snprintf(buf, UNIT_MAX, "%" PRIu64 ".%" PRIu64 " %s", whole, tenths,
			       units[u]);
	else
		(void)snprintf(buf, UNIT_MAX, "%" PRIu64 " %s", whole, units[u]);
	return buf;
}

const char *unit_cpu(int64_t milli, char buf[UNIT_MAX])
{
	if (milli % 1000 == 0)
		(void)snprintf(buf, UNIT_MAX, "%" PRId64, milli / 1000);
	else if (milli > 1000 && milli % 100 == 0)
		(void)snprintf(buf, UNIT_MAX, "%" PRId64 ".%" PRId64, milli / 1000,
			       milli % 1000 / 100);
	else
		(void)snprintf(buf, UNIT_MAX, "%" PRId64 "m", milli);
	return buf;
}

const char *unit_us(uint64_t us, char buf[UNIT_MAX])
{
	if (us < 1000)
		(void)snprintf(buf, UNIT_MAX, "%" PRIu64 " µs", us);
	else if (us < 10000)
		(void)snprintf(buf, UNIT_MAX, "%" PRIu64 ".%" PRIu64 " ms", us / 1000,
			       us % 1000 / 100);
	else if (us < 1000000)
		(void)snprintf(buf, UNIT_MAX, "%" PRIu64 " ms", us / 1000);
	else
		(void)snprintf(buf, UNIT_MAX, "%" PRIu64 ".%" PRIu64 " s", us / 1000000,
			       us % 1000000 / 100000);
	return buf;
}

const char *unit_age(int64_t s, char buf[UNIT_MAX])
{
	if (s < 0)
		s = 0;
	if (s < 60)
		(void)snprintf(buf, UNIT_MAX, "%" PRId64 "s", s);
	else if (s < 3600)
		(void)snprintf(buf, UNIT_MAX, "%" PRId64 "m %" PRId64 "s", s / 60, s % 60);
	else if (s < 86400)
		(void)snprintf(buf, UNIT_MAX, "%" PRId64 "h %" PRId64 "m", s / 3600, s % 3600 / 60);
	else
		(void)snprintf(buf, UNIT_MAX, "%" PRId64 "d %" PRId64 "h", s / 86400,
			       s % 86400 / 3600);
	return buf;
}

const char *unit_count(uint64_t n, const char *one, const char *many, char buf[UNIT_MAX])
{
	(void)snprintf(buf, UNIT_MAX, "%" PRIu64 " %s", n, n == 1 ? one : many);
	return buf;
}

int64_t time_parse(const char *text)
{
	struct tm tm = {0};
	int n = 0;
	if (sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d%n", &tm.tm_year, &tm.tm_mon, &tm.tm_mday,
		   &tm.tm_hour, &tm.tm_min, &tm.tm_sec, &n) != 6 ||
	    !n)
		return 0;
	tm.tm_year -= 1900;
	tm.tm_mon--;
	return timegm(&tm);
}

const char *unit_time(const char *text, char buf[UNIT_MAX])
{
	static const char *const months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
					     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
	const time_t s = time_parse(text);
	struct tm tm;
	buf[0] = '\0';
	if (s && localtime_r(&s, &tm))
		(void)snprintf(buf, UNIT_MAX, "%s %2d %02d:%02d:%02d", months[tm.tm_mon],
			       tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec);
	return buf;
}
