/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the kernel's counters of cache occupancy and bandwidth, for each group and monitoring
 * group. */
#include "modules/lib/private/room.h"
#include "modules/rdt/rdt.h"

#define READINGS_MAX 8192u

struct reader {
	const struct rdt_groups *g;
	struct rdt_readings *to;
	const char *dir; /* directory that is being listed */
	const char *class, *monitor;
	const struct rdt_names *keep;
};

/* Reads a domain directory such as "mon_L3_01". */
static int32_t read_domain(void *arg, const char *name, uint32_t kind)
{
	static const char *const files[] = {"llc_occupancy", "mbm_local_bytes", "mbm_total_bytes"};
	struct reader *r = arg;
	struct rdt_reading v = {0};
	uint64_t id;
	if (kind != RP_FILE_DIR || strncmp(name, "mon_L3_", 7) != 0 ||
	    ctl_number(name + 7, 10, &id, NULL) || id > UINT32_MAX)
		return 0;
	v.cache_id = (uint32_t)id;
	for (unsigned i = 0; i < 3; i++) {
		char path[CTL_PATH_MAX];
		if (ctl_format(path, sizeof path, "%s/%s/%s", r->dir, name, files[i]))
			continue;
		/* the texts "Unavailable" and "Error" are no numbers */
		v.has[i] = ctl_read_u64(r->g->h, path, &v.value[i]) == 0;
	}
	struct rdt_readings *to = r->to;
	if (to->n == READINGS_MAX || !room_for(&to->list, &to->cap, to->n + 1, sizeof *to->list))
		return 0;
	(void)snprintf(v.class, sizeof v.class, "%s", r->class);
	(void)snprintf(v.monitor, sizeof v.monitor, "%s", r->monitor);
	to->list[to->n++] = v;
	return 0;
}

static void read_data(const struct reader *r, const char *group)
{
	char dir[CTL_PATH_MAX];
	struct reader here = *r;
	if (ctl_format(dir, sizeof dir, "%s/mon_data", group))
		return;
	here.dir = dir;
	(void)r->g->h->work->list_dir(r->g->h->ctx, dir, read_domain, &here);
}

static const char *monitor_ours(const char *name, uint32_t kind)
{
	if (kind != RP_FILE_DIR || strncmp(name, RDT_PREFIX, sizeof RDT_PREFIX - 1) != 0)
		return NULL;
	return name + sizeof RDT_PREFIX - 1;
}

static int32_t read_monitor(void *arg, const char *name, uint32_t kind)
{
	const struct reader *above = arg;
	struct reader r = *above;
	char dir[CTL_PATH_MAX];
	r.monitor = monitor_ours(name, kind);
	if (r.monitor && ctl_format(dir, sizeof dir, "%s/%s", above->dir, name) == 0)
		read_data(&r, dir);
	return 0;
}

static int32_t sweep_monitor(void *arg, const char *name, uint32_t kind)
{
	const struct reader *r = arg;
	const char *monitor = monitor_ours(name, kind);
	char dir[CTL_PATH_MAX];
	if (monitor && !rdt_names_has(r->keep, monitor) &&
	    ctl_format(dir, sizeof dir, "%s/%s", r->dir, name) == 0)
		(void)r->g->h->work->remove_dir(r->g->h->ctx, dir);
	return 0;
}

/* Calls fn for the monitoring groups of each group of the module, the root group first. */
static void each_group(const struct reader *r,
		       int32_t (*fn)(void *arg, const char *name, uint32_t kind))
{
	for (uint32_t i = 0; i <= r->g->n; i++) {
		char dir[CTL_PATH_MAX], list[CTL_PATH_MAX];
		struct reader here = *r;
		here.class = i ? r->g->list[i - 1].name : "";
		here.monitor = "";
		if ((i && !*here.class) || rdt_group_dir(r->g, here.class, dir, sizeof dir) ||
		    ctl_format(list, sizeof list, "%s/mon_groups", dir))
			continue;
		if (r->to)
			read_data(&here, dir);
		here.dir = list;
		(void)r->g->h->work->list_dir(r->g->h->ctx, list, fn, &here);
	}
}

void rdt_monitor_read(const struct rdt_groups *g, struct rdt_readings *ret)
{
	const struct reader r = {.g = g, .to = ret};
	ret->n = 0;
	each_group(&r, read_monitor);
}

void rdt_monitor_sweep(const struct rdt_groups *g, const struct rdt_names *keep)
{
	const struct reader r = {.g = g, .keep = keep};
	each_group(&r, sweep_monitor);
}
