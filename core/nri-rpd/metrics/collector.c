/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs rounds of readings on a timer, stores the results with the containers, and detects
 * pressures.
 */
#include "core/nri-rpd/metrics/collector.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "core/nri-rpd/metrics/reader.h"
#include "core/nri-rpd/pipeline/observe/observe.h"
#include "core/nri-rpd/pipeline/node/apps.h"
#include "core/nri-rpd/pipeline/node/noderes.h"
#include "core/nri-rpd/pipeline/pipeline.h"
#include "core/lib/util/log.h"
#include "core/lib/util/clock.h"
#include "core/lib/util/worker.h"
#include "core/nri-rpd/pipeline/request/rebalance.h"

#define LOG_SOURCE "metrics"
#define STOP_MS 3000u
#define FILES_WANTED 65536u

struct collector {
	struct pipeline *p;
	struct fs_root root; /* a copy: a thread that hangs outlives the pipeline */
	struct worker *worker;
	struct reader *reader; /* used by the worker during a round */
	struct loop_timer *timer;
	uint64_t interval_ms;
	uint32_t limits[4];
	bool under_way, closing;
};

/* ---- a round --------------------------------------------------------------------------------- */

/* Handle of an application outside of pods, which differs from every container's handle. */
#define APP_BIT (UINT64_C(1) << 63)
#define APP_OF(generation, index) (APP_BIT | (uint64_t)(generation) << 16 | (index))

struct asked {
	rp_ctr ctr; /* container, or APP_OF an application */
	uint32_t pid;
	uint32_t path; /* offset of its cgroup path */
	bool found;
	struct figures figures;
};

struct round {
	struct collector *c;
	struct reader *reader;
	uint32_t waits; /* FIGURES_…_WAIT that have a limit */
	struct asked *list;
	uint32_t n;
	struct buf paths; /* cgroup paths, NUL-terminated */
	uint64_t cpu_ns, began_ns;
};

static void round_free(struct round *r)
{
	buf_fini(&r->paths);
	free(r->list);
	free(r);
}

/* [worker] Reads the figures of all containers of the round. */
static int read_all(void *arg)
{
	struct round *r = arg;
	uint64_t began = thread_cpu_ns();
	reader_begin(r->reader, clock_ms());
	for (uint32_t i = 0; i < r->n; i++) {
		struct asked *a = &r->list[i];
		const struct figures_cgroup of = {(const char *)buf_bytes(&r->paths) + a->path,
						  a->pid};
		a->found = reader_read(r->reader, a->ctr, &of, r->waits, &a->figures) == 0;
	}
	reader_end(r->reader);
	r->cpu_ns = thread_cpu_ns() - began;
	return 0;
}

/* ---- results of a round ---------------------------------------------------------------------- */

/* Returns the pressure of a resource in per mille; false: unknown. */
static bool collector_suffering(const struct usage *u, unsigned bit, int64_t *ret)
{
	static const enum figure waits[] = {FIG_CPU_WAIT, FIG_CPU_WAIT, FIG_MEMORY_WAIT,
					    FIG_IO_WAIT};
	double us;
	if (bit == 0)
		return usage_permille(u, FIG_THROTTLED_PERIODS, FIG_PERIODS, ret);
	if (!usage_rate(u, waits[bit], &us))
		return false;
	*ret = us > 1e6 ? 1000 : (int64_t)(us / 1000);
	return true;
}

uint32_t collector_judge(struct usage *u, const uint32_t limits[4])
{
	uint32_t lacks = u->pressure;
	for (unsigned bit = 0; bit < 4; bit++) {
		uint32_t flag = 1u << bit;
		int64_t permille, limit = (int64_t)limits[bit] * 10;
		if (!limits[bit]) {
			lacks &= ~flag;
			continue;
		}
		if (!collector_suffering(u, bit, &permille))
			continue;
		bool change = lacks & flag ? permille < limit / 2 : permille >= limit;
		u->streak[bit] = change ? (uint8_t)(u->streak[bit] + 1) : 0;
		if (u->streak[bit] < COLLECTOR_STREAK)
			continue;
		u->streak[bit] = 0;
		lacks ^= flag;
	}
	return lacks;
}

static void collector_put(struct usage *u, const struct figures *figures, uint64_t now_ms)
{
	for (unsigned f = 0; f < N_FIGURES; f++)
		if (figures->has & 1u << f)
			usage_put(u, (enum figure)f, figures->value[f], now_ms);
}

static void take_app(struct collector *c, const struct asked *a, uint64_t now_ms)
{
	struct usage *u = pipeline_app_usage(c->p, (uint32_t)((a->ctr & ~APP_BIT) >> 16),
					     (uint32_t)(a->ctr & 0xffff));
	if (u)
		collector_put(u, &a->figures, now_ms);
}

static void collector_take(struct collector *c, const struct asked *a, uint64_t now_ms)
{
	if (a->ctr & APP_BIT) {
		take_app(c, a, now_ms);
		return;
	}
	struct ctr *ctr = cache_ctr_of(pipeline_cache(c->p), a->ctr);
	if (!ctr || !ctr_live(ctr->cur.state))
		return;
	if (!ctr->usage)
		ctr->usage = calloc(1, sizeof *ctr->usage);
	if (!ctr->usage)
		return;
	collector_put(ctr->usage, &a->figures, now_ms);
	uint32_t lacks = collector_judge(ctr->usage, c->limits);
	if (lacks != ctr->usage->pressure)
		pipeline_pressure(c->p, ctr, lacks);
}

static void round_done(void *arg, int result)
{
	struct round *r = arg;
	struct collector *c = r->c;
	struct usage_stats *stats = pipeline_usage_stats(c->p);
	uint64_t now_ms = clock_ms();
	c->under_way = false;
	if (!result && !c->closing) {
		stats->rounds++;
		stats->n_ctrs = r->n;
		stats->cpu_ns += r->cpu_ns;
		stats->last_ns = clock_ns() - r->began_ns;
		for (uint32_t i = 0; i < r->n; i++) {
			stats->files += r->list[i].figures.n_files;
			stats->missing += !r->list[i].found;
			if (r->list[i].found)
				collector_take(c, &r->list[i], now_ms);
		}
		if (c->interval_ms)
			pipeline_measure(c->p);
		else
			reader_forget(c->reader);
	}
	round_free(r);
}

static int collector_add(struct round *r, uint64_t id, uint32_t pid, const char *path)
{
	r->list[r->n++] =
		(struct asked){.ctr = id, .pid = pid, .path = (uint32_t)buf_len(&r->paths)};
	return buf_add(&r->paths, path, strlen(path) + 1);
}

static struct round *round_new(struct collector *c)
{
	struct cache *cache = pipeline_cache(c->p);
	const struct host_apps *apps = pipeline_host_apps(c->p);
	struct round *r = calloc(1, sizeof *r);
	int e = r ? 0 : -ENOMEM;
	if (r) {
		r->c = c;
		r->reader = c->reader;
		r->waits = (c->limits[1] ? FIGURES_CPU_WAIT : 0) |
			   (c->limits[2] ? FIGURES_MEMORY_WAIT : 0) |
			   (c->limits[3] ? FIGURES_IO_WAIT : 0);
		r->began_ns = clock_ns();
		r->list = calloc(cache_n_ctrs(cache) + apps->n + 1, sizeof *r->list);
		e = r->list ? 0 : -ENOMEM;
	}
	for (const struct ctr *ctr = cache_ctrs(cache); ctr && !e; ctr = ctr->next)
		if (ctr->cur.state == RP_STATE_RUNNING && *ctr->cgroups_path)
			e = collector_add(r, ctr->handle, ctr->pid, ctr->cgroups_path);
	for (uint32_t i = 0; i < apps->n && !e; i++)
		e = collector_add(r, APP_OF(apps->generation, i), 0, apps->list[i].cgroup);
	if (!e && r->n)
		return r;
	if (e)
		log_warning("usage of containers is not collected: %s", strerror(-e));
	if (r)
		round_free(r);
	return NULL;
}

bool collector_round(struct collector *c)
{
	if (c->under_way) {
		pipeline_usage_stats(c->p)->skipped++;
		return false;
	}
	struct round *r = round_new(c);
	if (!r)
		return false;
	c->under_way = worker_submit(c->worker, read_all, round_done, r) == 0;
	if (!c->under_way)
		round_free(r);
	return c->under_way;
}

/* ---- life ------------------------------------------------------------------------------------ */

static void collector_tick(void *arg)
{
	struct collector *c = arg;
	(void)collector_round(c);
	(void)loop_timer_arm(c->timer, c->interval_ms);
}

/* Returns the limit of descriptors for the reader: half of those that the process may have, after
 * raising that limit as far as needed and allowed. */
static unsigned files_max(void)
{
	struct rlimit files;
	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return 0;
	if (files.rlim_cur < FILES_WANTED && files.rlim_cur < files.rlim_max) {
		struct rlimit more = {files.rlim_max < FILES_WANTED ? files.rlim_max : FILES_WANTED,
				      files.rlim_max};
		if (setrlimit(RLIMIT_NOFILE, &more) == 0)
			files = more;
	}
	return files.rlim_cur / 2 < FILES_WANTED ? (unsigned)files.rlim_cur / 2 : FILES_WANTED;
}

struct collector *collector_new(struct loop *loop, struct pipeline *pipeline, struct err *err)
{
	struct collector *c = calloc(1, sizeof *c);
	if (!c)
		return NULL;
	c->p = pipeline;
	c->root.fd = -1;
	if (fs_root_open(&c->root, pipeline_root(pipeline)->path, err)) {
		free(c);
		return NULL;
	}
	c->worker = worker_new(loop, "figures");
	c->reader = reader_new(&c->root, files_max());
	c->timer = loop_timer_new(loop, collector_tick, c);
	if (c->worker && c->reader && c->timer)
		return c;
	(void)err_errno(err, -ENOMEM, "collector");
	return collector_free(c);
}

static void forget_all(struct collector *c)
{
	if (!c->under_way)
		reader_forget(c->reader);
	for (struct ctr *ctr = cache_ctrs(pipeline_cache(c->p)); ctr; ctr = ctr->next) {
		free(ctr->usage);
		ctr->usage = NULL;
	}
}

void collector_configure(struct collector *c, const struct conf_core *core)
{
	bool same = c->interval_ms == core->metrics.collect_ms;
	memcpy(c->limits, core->metrics.pressure, sizeof c->limits);
	c->interval_ms = core->metrics.collect_ms;
	pipeline_usage_stats(c->p)->on = c->interval_ms != 0;
	if (same)
		return;
	loop_timer_disarm(c->timer);
	if (c->interval_ms)
		collector_tick(c);
	else
		forget_all(c);
}

struct collector *collector_free(struct collector *c)
{
	if (!c)
		return NULL;
	c->closing = true;
	loop_timer_free(c->timer);
	if (worker_free_within(c->worker, STOP_MS)) {
		log_error("reading a cgroup does not end: skipping it");
		return NULL; /* the thread still uses the memory */
	}
	c->reader = reader_free(c->reader);
	fs_root_close(&c->root);
	free(c);
	return NULL;
}
