/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics nri_rp_container_*: usage of containers, one series per container and figure, and the
 * cost of measuring it. */
#include <stdio.h>

#include "core/nri-rpd/cache/usage.h"
#include "core/nri-rpd/pipeline/observe/observe.h"
#include "core/nri-rpd/pipeline/pipeline.h"
#include "core/nri-rpd/metrics/containers.h"
#include "core/nri-rpd/pipeline/request/rebalance.h"

static const struct figure_row {
	enum figure figure;
	enum expo_type type;
	double scale;
	const char *name, *help;
} figure_rows[] = {
	{FIG_CPU, EXPO_COUNTER, 1e-9, "nri_rp_container_cpu_usage_seconds_total",
	 "CPU time used by the container."},
	{FIG_PERIODS, EXPO_COUNTER, 1, "nri_rp_container_cpu_periods_total",
	 "Periods of the CPU limit in which the container ran."},
	{FIG_THROTTLED_PERIODS, EXPO_COUNTER, 1, "nri_rp_container_cpu_throttled_periods_total",
	 "Periods in which the CPU limit throttled the container."},
	{FIG_THROTTLED, EXPO_COUNTER, 1e-9, "nri_rp_container_cpu_throttled_seconds_total",
	 "Time for which the CPU limit throttled the container."},
	{FIG_MEMORY, EXPO_GAUGE, 1, "nri_rp_container_memory_bytes",
	 "Memory charged to the container, including files."},
	{FIG_MEMORY_ANON, EXPO_GAUGE, 1, "nri_rp_container_memory_anon_bytes",
	 "Anonymous memory of the container."},
	{FIG_MEMORY_FAULTS, EXPO_COUNTER, 1, "nri_rp_container_memory_major_faults_total",
	 "Page faults that waited for a disk."},
	{FIG_OOM_KILLS, EXPO_COUNTER, 1, "nri_rp_container_oom_kills_total",
	 "Processes of the container that were killed for lack of memory."},
	{FIG_CPU_WAIT, EXPO_COUNTER, 1e-6, "nri_rp_container_cpu_waiting_seconds_total",
	 "Time in which any task of the container waited for a CPU."},
	{FIG_MEMORY_WAIT, EXPO_COUNTER, 1e-6, "nri_rp_container_memory_waiting_seconds_total",
	 "Time in which any task of the container waited for memory."},
	{FIG_IO_WAIT, EXPO_COUNTER, 1e-6, "nri_rp_container_io_waiting_seconds_total",
	 "Time in which any task of the container waited for a disk."},
	{FIG_IO_READ, EXPO_COUNTER, 1, "nri_rp_container_io_read_bytes_total",
	 "Bytes read from disks."},
	{FIG_IO_WRITTEN, EXPO_COUNTER, 1, "nri_rp_container_io_written_bytes_total",
	 "Bytes written to disks."},
	{FIG_LLC, EXPO_GAUGE, 1, "nri_rp_container_llc_occupancy_bytes",
	 "Last-level cache in use, if the controller rdt monitors containers."},
	{FIG_TRAFFIC, EXPO_COUNTER, 1, "nri_rp_container_memory_traffic_bytes_total",
	 "Bytes moved to and from memory, if the controller rdt monitors containers."},
};
#define N_ROWS (sizeof figure_rows / sizeof figure_rows[0])

static void collect_container(struct expo *e, struct family *families[N_ROWS],
			      struct family *pressure, const struct ctr *ctr)
{
	static const char *const lacks[] = {"throttled", "cpu", "memory", "io"};
	struct buf labels = BUF_INIT;
	expo_label(&labels, "namespace", ctr->pod->ns);
	expo_label(&labels, "pod", ctr->pod->name);
	expo_label(&labels, "container", ctr->name);
	for (size_t i = 0; i < N_ROWS; i++)
		if (usage_known(ctr->usage, figure_rows[i].figure))
			expo_add(e, families[i], "", buf_text(&labels),
				 (double)ctr->usage->now[figure_rows[i].figure].value *
					 figure_rows[i].scale);
	for (unsigned bit = 0; bit < 4; bit++) {
		if (!(ctr->usage->pressure & 1u << bit))
			continue;
		struct buf with = BUF_INIT;
		(void)buf_add_str(&with, buf_text(&labels));
		expo_label(&with, "lacks", lacks[bit]);
		expo_add(e, pressure, "", buf_text(&with), 1);
		buf_fini(&with);
	}
	buf_fini(&labels);
}

static void collect_cost(struct expo *e, const struct usage_stats *s)
{
	const struct expo_row rows[] = {
		{"nri_rp_collect_containers", "Containers whose usage was read in the last round.",
		 s->n_ctrs},
		{"nri_rp_collect_last_duration_seconds", "Duration of the last round.",
		 (double)s->last_ns / 1e9},
		{"nri_rp_collect_rounds_total", "Rounds of reading usage.", (double)s->rounds},
		{"nri_rp_collect_skipped_total",
		 "Rounds skipped because the previous one was still running.", (double)s->skipped},
		{"nri_rp_collect_cpu_seconds_total", "CPU time spent on reading usage.",
		 (double)s->cpu_ns / 1e9},
		{"nri_rp_collect_files_total", "Files read for usage.", (double)s->files},
		{"nri_rp_collect_missing_total", "Cgroups that were not found.",
		 (double)s->missing},
	};
	EXPO_ROWS(e, rows);
}

void collect_containers(struct expo *e, struct pipeline *p)
{
	struct family *families[N_ROWS];
	const struct usage_stats *stats = pipeline_usage_stats(p);
	if (!stats->on)
		return;
	for (size_t i = 0; i < N_ROWS; i++)
		families[i] = expo_family(e, figure_rows[i].name, figure_rows[i].type,
					  figure_rows[i].help);
	struct family *pressure = expo_family(
		e, "nri_rp_container_pressure", EXPO_GAUGE,
		"1 while a container is short of the labelled resource (metrics.pressure).");
	for (const struct ctr *ctr = cache_ctrs(pipeline_cache(p)); ctr; ctr = ctr->next)
		if (ctr->usage && ctr_live(ctr->cur.state) &&
		    cache_ctr_by_name(pipeline_cache(p), ctr->full_name) == ctr)
			collect_container(e, families, pressure, ctr);
	collect_cost(e, stats);
}
