/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-modcheck/fixture.h"
#include "core/nri-rp-modcheck/machines.h"

#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define CGROUP_MOUNT "sys/fs/cgroup"
#define RESCTRL "sys/fs/resctrl"

struct fixture_file {
	const char *name, *text; /* text NULL: the list of online CPUs */
};

static const struct fixture_file node_files[] = {
	{"proc/stat", "cpu  1000 0 500 90000 10 20 30 0 0 0\n"},
	{"proc/mounts", "resctrl /" RESCTRL " resctrl rw 0 0\n"},
	{"sys/block/sda/dev", "8:0\n"},
	{"sys/block/sda/queue/scheduler", "none [bfq]\n"},
	{"proc/loadavg", "0.50 0.40 0.30 1/200 4711\n"},
	{CGROUP_MOUNT "/cgroup.controllers", "cpuset cpu io memory pids\n"},
	{RESCTRL "/schemata", "L3:0=fff\nMB:0=100\n"},
	{RESCTRL "/tasks", ""},
	{RESCTRL "/mode", "shareable\n"},
	{RESCTRL "/info/L3/cbm_mask", "fff\n"},
	{RESCTRL "/info/L3/min_cbm_bits", "1\n"},
	{RESCTRL "/info/L3/num_closids", "16\n"},
	{RESCTRL "/info/L3/shareable_bits", "0\n"},
	{RESCTRL "/info/MB/bandwidth_gran", "10\n"},
	{RESCTRL "/info/MB/min_bandwidth", "10\n"},
	{RESCTRL "/info/MB/num_closids", "8\n"},
};

static const char *const node_dirs[] = {"proc", CGROUP_MOUNT, RESCTRL "/info/L3",
					RESCTRL "/info/MB", "sys/block/sda/queue"};

static const struct fixture_file cgroup_files[] = {
	{"cgroup.controllers", "cpuset cpu io memory pids\n"},
	{"cgroup.procs", ""},
	{"cgroup.threads", ""},
	{"cpu.idle", "0\n"},
	{"cpu.max", "max 100000\n"},
	{"cpu.max.burst", "0\n"},
	{"cpu.stat", "usage_usec 100000\nnr_periods 10\nnr_throttled 1\nthrottled_usec 100\n"},
	{"cpu.weight", "100\n"},
	{"cpuset.cpus", "\n"},
	{"cpuset.cpus.effective", NULL},
	{"cpuset.mems", "\n"},
	{"cpuset.mems.effective", "0\n"},
	{"io.bfq.weight", "default 100\n"},
	{"io.max", "\n"},
	{"io.weight", "default 100\n"},
	{"memory.current", "1048576\n"},
	{"memory.high", "max\n"},
	{"memory.low", "0\n"},
	{"memory.max", "max\n"},
	{"memory.min", "0\n"},
	{"memory.oom.group", "0\n"},
	{"memory.stat", "anon 524288\nfile 524288\npgmajfault 0\n"},
	{"memory.swap.max", "max\n"},
};

static int fixture_put(const struct check_machine *m, const char *path, const char *text,
		       struct err *err)
{
	char line[PATH_MAX];
	if (!text) {
		(void)snprintf(line, sizeof line, "%s\n", m->online);
		text = line;
	}
	return machine_put(m, path, text, err);
}

int fixture_node(const struct check_machine *m, struct err *err)
{
	int r = 0;
	for (unsigned i = 0; !r && i < sizeof node_dirs / sizeof *node_dirs; i++)
		r = machine_put_dir(m, node_dirs[i], err);
	for (unsigned i = 0; !r && i < sizeof node_files / sizeof *node_files; i++)
		r = fixture_put(m, node_files[i].name, node_files[i].text, err);
	return r;
}

static int fixture_level(const struct check_machine *m, const char *dir, struct err *err)
{
	char path[PATH_MAX];
	int r = machine_put_dir(m, dir, err);
	for (unsigned i = 0; !r && i < sizeof cgroup_files / sizeof *cgroup_files; i++) {
		(void)snprintf(path, sizeof path, "%.3000s/%s", dir, cgroup_files[i].name);
		r = fixture_put(m, path, cgroup_files[i].text, err);
	}
	return r;
}

int fixture_cgroup(const struct check_machine *m, const char *path, struct err *err)
{
	char dir[PATH_MAX];
	int r = 0;
	if (*path != '/')
		return err_set(err, -EINVAL, "cgroup %s: not a path", path);
	for (const char *end = path + 1; !r && *end;) {
		end += strcspn(end, "/");
		(void)snprintf(dir, sizeof dir, CGROUP_MOUNT "%.*s", (int)(end - path), path);
		r = fixture_level(m, dir, err);
		end += *end == '/';
	}
	return r;
}

static int fixture_remove_entry(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	return remove(path);
}

void fixture_remove(const struct check_machine *m)
{
	static const char *const parts[] = {"proc/stat", "proc/mounts", "proc/loadavg",
					    "sys/block", CGROUP_MOUNT,	RESCTRL};
	char path[PATH_MAX];
	for (unsigned i = 0; i < sizeof parts / sizeof *parts; i++) {
		(void)snprintf(path, sizeof path, "%s/%s", m->root, parts[i]);
		(void)nftw(path, fixture_remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	}
}
