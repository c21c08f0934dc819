/* SPDX-License-Identifier: Apache-2.0 */
/* nri-rp.host.usage/1: measured usage of containers. */
#include "core/nri-rpd/cache/usage.h"
#include "core/nri-rpd/host/service/services.h"
#include "core/lib/util/sized.h"
#include "core/lib/util/clock.h"

static int64_t usage_level(const struct usage *u, enum figure f)
{
	uint64_t v = u->now[f].value;
	return !usage_known(u, f) ? RP_NOT_MEASURED : v > INT64_MAX ? INT64_MAX : (int64_t)v;
}

/* Returns the growth of a measured counter per second, as a multiple of `unit`. */
static int64_t usage_do_rate(const struct usage *u, enum figure f, double unit)
{
	double v;
	if (!usage_rate(u, f, &v))
		return RP_NOT_MEASURED;
	v /= unit;
	return v < 1e18 ? (int64_t)v : (int64_t)1e18;
}

static int64_t wait_of(const struct usage *u, enum figure f)
{
	int64_t v = usage_do_rate(u, f, 1000); /* microseconds per second */
	return v > 1000 ? 1000 : v;
}

static int32_t get(void *ctx, rp_ctr handle, struct rp_usage *out)
{
	MAIN_ONLY(ctx, RP_HOST_USAGE_1, -RP_EPERM);
	const struct instance *i = instance_of(ctx);
	const struct ctr *ctr = cache_ctr_of(i->env->cache, handle);
	if (!ctr)
		return -RP_ESTALE;
	const struct usage *u = ctr->usage;
	if (!u)
		return -RP_ENOENT;
	struct rp_usage full = {
		.size = sizeof full,
		.pressure = u->pressure,
		.age_ms = (int64_t)(clock_ms() - u->now[FIG_CPU].at_ms),
		.cpu = usage_do_rate(u, FIG_CPU, 1e6),
		.throttled = RP_NOT_MEASURED,
		.memory = usage_level(u, FIG_MEMORY),
		.cpu_wait = wait_of(u, FIG_CPU_WAIT),
		.memory_wait = wait_of(u, FIG_MEMORY_WAIT),
		.io_wait = wait_of(u, FIG_IO_WAIT),
		.io_read = usage_do_rate(u, FIG_IO_READ, 1),
		.io_written = usage_do_rate(u, FIG_IO_WRITTEN, 1),
		.llc = usage_level(u, FIG_LLC),
		.traffic = usage_do_rate(u, FIG_TRAFFIC, 1),
	};
	(void)usage_permille(u, FIG_THROTTLED_PERIODS, FIG_PERIODS, &full.throttled);
	sized_fill(out, &full, sizeof full);
	return 0;
}

const struct rp_host_usage host_usage_service = {
	.size = sizeof host_usage_service,
	.get = get,
};

void host_figure(void *ctx, rp_ctr handle, uint32_t figure, uint64_t value)
{
	MAIN_ONLY(ctx, RP_HOST_WORK_1, );
	const struct instance *i = instance_of(ctx);
	const struct ctr *ctr = cache_ctr_of(i->env->cache, handle);
	if (!ctr || !ctr->usage || i->env->trial)
		return;
	if (figure == RP_FIGURE_LLC)
		usage_put(ctr->usage, FIG_LLC, value, clock_ms());
	else if (figure == RP_FIGURE_TRAFFIC)
		usage_put(ctr->usage, FIG_TRAFFIC, value, clock_ms());
}
