/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rpd/control/usage.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/nri-rpd/cache/usage.h"
#include "core/nri-rpd/control/document.h"
#include "core/nri-rpd/host/cgroup.h"
#include "core/nri-rpd/pipeline/request/rebalance.h"
#include "core/nri-rpd/pipeline/pipeline.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/str.h"

#define FILE_MAX 65536u

int64_t usage_cpu_milli(const struct ctr *ctr)
{
	double rate;
	return ctr->usage && usage_rate(ctr->usage, FIG_CPU, &rate) ? (int64_t)(rate / 1e6) : 0;
}

/* Adds the numbers of a line "NAME… N0=1 N1=2" to the sums by node. */
static void usage_add_nodes(const char *line, uint64_t sums[RP_NODES_MAX], uint64_t unit)
{
	const char *end = line + strcspn(line, "\n");
	for (const char *p = strstr(line, " N"); p && p < end; p = strstr(p + 1, " N")) {
		unsigned node;
		unsigned long long n;
		if (sscanf(p, " N%u=%llu", &node, &n) == 2 && node < RP_NODES_MAX)
			sums[node] += n * unit;
	}
}

/* Writes the memory of a container by node, which the kernel counts in bytes (cgroup v2) or pages
 * (v1). */
static void put_memory_nodes(struct json *j, const struct fs_root *root, const struct ctr *ctr)
{
	char number[16];
	_free_ char *text = malloc(FILE_MAX);
	_free_ uint64_t *sums = calloc(RP_NODES_MAX, sizeof *sums);
	_close_ int dir =
		cgroup_open(root, cgroup_unified(root), ctr->cgroups_path, ctr->pid, "memory");
	if (!text || !sums || dir < 0 || fs_read_at(dir, "memory.numa_stat", text, FILE_MAX) < 0)
		return;
	if (str_has_prefix(text, "total="))
		usage_add_nodes(text, sums, (uint64_t)sysconf(_SC_PAGESIZE));
	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n')
		if (str_has_prefix(line, "anon ") || str_has_prefix(line, "file "))
			usage_add_nodes(line, sums, 1);
	json_kobj(j, "memory_by_node");
	for (unsigned node = 0; node < RP_NODES_MAX; node++) {
		(void)snprintf(number, sizeof number, "%u", node);
		if (sums[node])
			json_kuint(j, number, sums[node]);
	}
	json_end_obj(j);
}

static void put_pressure(struct json *j, const struct usage *u)
{
	static const char *const names[] = {"throttled", "cpu", "memory", "io"};
	json_karr(j, "pressure");
	for (unsigned bit = 0; bit < sizeof names / sizeof names[0]; bit++)
		if (u->pressure & 1u << bit)
			json_str(j, names[bit]);
	json_end_arr(j);
}

void put_usage(struct json *j, struct pipeline *p, const struct ctr *ctr, bool by_node)
{
	const struct usage *u = ctr->usage;
	int64_t permille;
	double rate;
	if (!u || !ctr_live(ctr->cur.state)) {
		put_text(j, "usage", NULL);
		return;
	}
	json_kobj(j, "usage");
	if (usage_rate(u, FIG_CPU, &rate))
		json_kint(j, "cpu_milli", usage_cpu_milli(ctr));
	if (usage_permille(u, FIG_THROTTLED_PERIODS, FIG_PERIODS, &permille))
		json_kint(j, "throttled_permille", permille);
	if (usage_known(u, FIG_MEMORY))
		json_kuint(j, "memory", u->now[FIG_MEMORY].value);
	if (by_node)
		put_memory_nodes(j, pipeline_root(p), ctr);
	put_pressure(j, u);
	json_end_obj(j);
}

void put_node_used(struct json *j, struct pipeline *p, uint32_t node)
{
	uint64_t used;
	if (pipeline_usage_stats(p)->on && topo_node_used(pipeline_topo(p), node, &used) == 0)
		json_kuint(j, "memory_used", used);
}
