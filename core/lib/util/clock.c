/* SPDX-License-Identifier: Apache-2.0 */
#include "core/lib/util/clock.h"

#include <time.h>

static uint64_t read_clock(clockid_t id)
{
	struct timespec ts = {0, 0};
	(void)clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

uint64_t clock_ns(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

uint64_t clock_us(void)
{
	return clock_ns() / 1000u;
}

uint64_t clock_ms(void)
{
	return clock_ns() / 1000000u;
}

uint64_t clock_wall_ns(void)
{
	return read_clock(CLOCK_REALTIME);
}
