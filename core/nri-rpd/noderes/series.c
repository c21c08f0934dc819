/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rpd/noderes/series.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/lib/util/cleanup.h"
#include "core/lib/util/clock.h"

#define STAT_MAX (1u << 20)
#define MEMINFO_MAX (64u << 10)
#define NS_PER_S UINT64_C(1000000000)
/* limit of a field, so that eight fields can be added in ns */
#define TICKS_MAX (UINT64_MAX / NS_PER_S / 8)

/* Returns the i-th reading from the last one. */
static const struct series_reading *series_back(const struct series *s, uint32_t i)
{
	return &s->list[(s->next + 2 * SERIES_READINGS - 1 - i) % SERIES_READINGS];
}

/* Returns the least distance of readings. A part of the readings has to span the window, because
 * they do not arrive evenly. */
static uint64_t stride_ms(uint64_t window_ms)
{
	return window_ms / (SERIES_READINGS * 3 / 4);
}

void series_put(struct series *s, const struct series_reading *r, uint64_t window_ms)
{
	const struct series_reading *last = series_back(s, 0);
	if (s->n && (r->cpu_ns < last->cpu_ns || r->at_ms < last->at_ms))
		s->n = 0;
	if ((s->n && r->at_ms == last->at_ms) ||
	    (s->n > 1 && r->at_ms - last->at_ms < stride_ms(window_ms)))
		return;
	s->list[s->next] = *r;
	s->next = (s->next + 1) % SERIES_READINGS;
	s->n += s->n < SERIES_READINGS;
}

static int64_t mcpu_between(const struct series_reading *first, const struct series_reading *last)
{
	return (int64_t)((last->cpu_ns - first->cpu_ns) / 1000 / (last->at_ms - first->at_ms));
}

uint32_t series_rates(const struct series *s, uint64_t now_ms, uint64_t window_ms,
		      struct series_rate ret[SERIES_READINGS])
{
	uint32_t n = 0;
	for (; n + 1 < s->n && now_ms <= series_back(s, n)->at_ms + window_ms; n++)
		ret[n] =
			(struct series_rate){mcpu_between(series_back(s, n + 1), series_back(s, n)),
					     series_back(s, n)->memory};
	return n;
}

bool series_average(const struct series *s, uint64_t now_ms, uint64_t window_ms, int64_t *ret_mcpu,
		    int64_t *ret_memory)
{
	const struct series_reading *last = series_back(s, 0), *first = last;
	double memory = 0;
	uint32_t n = 0;
	if (s->n < 2 || now_ms > last->at_ms + window_ms)
		return false;
	/* Use two readings even if the distance between them exceeds the window. */
	for (; n < s->n && (n < 2 || now_ms <= series_back(s, n)->at_ms + window_ms); n++) {
		first = series_back(s, n);
		memory += (double)first->memory;
	}
	*ret_mcpu = mcpu_between(first, last);
	*ret_memory = (int64_t)(memory / n);
	return true;
}

/* Parses the fields user nice system idle iowait irq softirq and adds all except idle and
 * iowait. */
int series_parse_stat(const char *text, long ticks_per_second, uint64_t *ret_cpu_ns)
{
	unsigned long long f[7];
	static const unsigned used[] = {0, 1, 2, 5, 6};
	uint64_t sum = 0;
	if (ticks_per_second <= 0 ||
	    sscanf(text, "cpu %20llu %20llu %20llu %20llu %20llu %20llu %20llu", &f[0], &f[1],
		   &f[2], &f[3], &f[4], &f[5], &f[6]) != 7)
		return -EINVAL;
	for (unsigned i = 0; i < sizeof used / sizeof *used; i++) {
		if (f[used[i]] > TICKS_MAX)
			return -EINVAL;
		sum += f[used[i]];
	}
	*ret_cpu_ns = sum * (NS_PER_S / (uint64_t)ticks_per_second);
	return 0;
}

static bool find_kib(const char *text, const char *key, int64_t *ret)
{
	long long kib;
	const char *at = strstr(text, key);
	if (!at || (at != text && at[-1] != '\n') ||
	    sscanf(at + strlen(key), " %18lld kB", &kib) != 1 || kib < 0 || kib > INT64_MAX / 1024)
		return false;
	*ret = kib * 1024;
	return true;
}

int series_parse_meminfo(const char *text, bool cached, int64_t *ret_used)
{
	int64_t total, left;
	if (!find_kib(text, "MemTotal:", &total) ||
	    !find_kib(text, cached ? "MemFree:" : "MemAvailable:", &left) || left > total)
		return -EINVAL;
	*ret_used = total - left;
	return 0;
}

int series_read_node(const struct fs_root *root, bool cached, struct series_reading *ret,
		     struct err *err)
{
	_free_ char *stat = NULL, *meminfo = NULL;
	size_t len;
	int r = fs_read_all(root, "proc/stat", STAT_MAX, &stat, &len);
	if (!r)
		r = series_parse_stat(stat, sysconf(_SC_CLK_TCK), &ret->cpu_ns);
	if (r)
		return err_errno(err, r, "/proc/stat");
	r = fs_read_all(root, "proc/meminfo", MEMINFO_MAX, &meminfo, &len);
	if (!r)
		r = series_parse_meminfo(meminfo, cached, &ret->memory);
	if (r)
		return err_errno(err, r, "/proc/meminfo");
	ret->at_ms = clock_ms();
	return 0;
}
