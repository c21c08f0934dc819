/* SPDX-License-Identifier: Apache-2.0 */
/* Forecast: the file of models, samples for training, and the sum of reclaimable resources. */
#include "core/nri-rpd/pipeline/node/forecast.h"

#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "core/nri-rpd/pipeline/internal.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/log.h"
#include "core/lib/util/clock.h"
#include "core/lib/util/worker.h"

#define LOG_SOURCE "node"

#define FILE_NAME "/" FORECAST_FILE
#define TRAIN_MS 60000u
#define WRITE_MS 600000u
/* age in seconds of the last sample after which a model's pod is considered removed */
#define UNSEEN_S 1800
#define SAMPLE_PERCENT 90u
#define NODE_MODEL "__node__"
#define SYSTEM_MODEL "__node-sys__"

static const char *const class_models[] = {[RP_PRIO_NONE] = "__node-none__",
					   [RP_PRIO_PROD] = "__node-prod__",
					   [RP_PRIO_MID] = "__node-mid__",
					   [RP_PRIO_BATCH] = "__node-batch__",
					   [RP_PRIO_FREE] = "__node-free__"};
#define CLASSES (sizeof class_models / sizeof *class_models)

static int64_t clock_s(const struct forecast *f, uint64_t now_ms)
{
	return f->start_s + (int64_t)((now_ms - f->start_ms) / 1000);
}

/* ---- the file -------------------------------------------------------------------------------- */

struct filing {
	struct pipeline *p;
	struct forecast *f;
	char path[CACHE_PATH_MAX + sizeof FILE_NAME];
	char *text; /* content that was read */
	struct buf data; /* content to be written */
	struct err err;
};

static struct filing *filing_new(struct pipeline *p, struct forecast *f)
{
	struct filing *one = calloc(1, sizeof *one);
	if (!one)
		return NULL;
	one->p = p;
	one->f = f;
	one->err = (struct err)ERR_INIT;
	(void)snprintf(one->path, sizeof one->path, "%s" FILE_NAME, p->state_dir);
	return one;
}

static void filing_free(struct filing *one)
{
	free(one->text);
	buf_fini(&one->data);
	free(one);
}

/* Reads the file. Runs on the disk worker. */
static int read_file(void *arg)
{
	struct filing *one = arg;
	size_t len;
	return fs_read_own(one->path, MODELS_TEXT_MAX, &one->text, &len, &one->err);
}

static void file_read(void *arg, int result)
{
	struct filing *one = arg;
	struct forecast *f = one->f;
	f->reading = false;
	f->known = true;
	if (!result)
		result = models_read(&f->models, one->text, clock_s(f, clock_ms()), &one->err);
	if (result && result != -ENOENT)
		log_warning("%s: %s; predictions are learned again", one->path,
			    err_text(&one->err, result));
	filing_free(one);
}

/* Writes the file. Runs on the disk worker. */
static int write_file(void *arg)
{
	struct filing *one = arg;
	return fs_replace(one->path, buf_text(&one->data), buf_len(&one->data), 0600, true,
			  &one->err);
}

static void file_written(void *arg, int result)
{
	struct filing *one = arg;
	one->f->writing = false;
	if (result)
		log_warning("cannot save predictions for later starts: %s",
			    err_text(&one->err, result));
	filing_free(one);
}

static void begin_reading(struct pipeline *p, struct forecast *f)
{
	struct filing *one = filing_new(p, f);
	f->reading = one && worker_submit(p->disk, read_file, file_read, one) == 0;
	if (one && !f->reading)
		filing_free(one);
}

static void begin_writing(struct pipeline *p, struct forecast *f, uint64_t now_ms)
{
	struct filing *one = f->writing ? NULL : filing_new(p, f);
	if (!one)
		return;
	f->written_ms = now_ms;
	f->writing = models_write(&f->models, &one->data) == 0 &&
		     worker_submit(p->disk, write_file, file_written, one) == 0;
	if (!f->writing)
		filing_free(one);
}

void forecast_switch(struct pipeline *p, struct forecast *f, bool on)
{
	if (on && !f->on) {
		f->start_ms = f->written_ms = clock_ms();
		f->start_s = (int64_t)(clock_wall_ns() / 1000000000u);
		if (!f->known && !f->reading)
			begin_reading(p, f);
	}
	f->on = on;
}

void forecast_stop(struct pipeline *p, struct forecast *f)
{
	bool disk_hangs = p->disk != NULL; /* the hanging worker is left running */
	struct filing *one = f->on && f->known && !disk_hangs ? filing_new(p, f) : NULL;
	if (one && models_write(&f->models, &one->data) == 0)
		file_written(one, write_file(one));
	else if (one)
		filing_free(one);
	models_fini(&f->models);
}

/* ---- samples --------------------------------------------------------------------------------- */

/* Usage of several containers together, summed at the times of their readings. */
struct sums {
	uint32_t n;
	struct series_rate of[SERIES_READINGS];
};

static void add_series(struct sums *to, const struct series *s, uint64_t now_ms)
{
	struct series_rate rates[SERIES_READINGS];
	uint32_t n = s ? series_rates(s, now_ms, TRAIN_MS, rates) : 0;
	for (uint32_t i = 0; i < n; i++) {
		to->of[i].mcpu += rates[i].mcpu;
		to->of[i].memory += rates[i].memory;
	}
	to->n = n > to->n ? n : to->n;
}

static void add_sums(struct sums *to, const struct sums *more)
{
	for (uint32_t i = 0; i < more->n; i++) {
		to->of[i].mcpu += more->of[i].mcpu;
		to->of[i].memory += more->of[i].memory;
	}
	to->n = more->n > to->n ? more->n : to->n;
}

static int forecast_compare(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

static int64_t most_of(int64_t *list, uint32_t n)
{
	uint32_t at = n * SAMPLE_PERCENT / 100;
	qsort(list, n, sizeof *list, forecast_compare);
	return list[at ? at - 1 : 0];
}

static void train_one(struct forecast *f, const char *name, const struct sums *of, int64_t now_s)
{
	int64_t cpu[SERIES_READINGS], memory[SERIES_READINGS];
	if (!of->n)
		return;
	for (uint32_t i = 0; i < of->n; i++) {
		cpu[i] = of->of[i].mcpu;
		memory[i] = of->of[i].memory;
	}
	const int64_t sample[RP_NR_AMOUNTS] = {most_of(cpu, of->n), most_of(memory, of->n)};
	int r = models_train(&f->models, name, sample, now_s);
	if (r)
		log_debug("%s: its usage is not predicted: %s", name, strerror(-r));
}

static struct sums sums_of_pod(const struct measure *m, const struct pod *pod, uint64_t now_ms)
{
	struct sums sum = {0};
	const struct ctr *ctr;
	DL_FOREACH2(pod->ctrs, ctr, pod_next)
	if (ctr_live(ctr->cur.state))
		add_series(&sum, measure_ctr(m, ctr->handle), now_ms);
	return sum;
}

static struct sums forecast_beyond(const struct sums *node, const struct sums *pods)
{
	struct sums left = {.n = node->n};
	for (uint32_t i = 0; i < node->n; i++) {
		int64_t cpu = node->of[i].mcpu - pods->of[i].mcpu;
		int64_t memory = node->of[i].memory - pods->of[i].memory;
		left.of[i] = (struct series_rate){cpu > 0 ? cpu : 0, memory > 0 ? memory : 0};
	}
	return left;
}

bool forecast_due(const struct forecast *f, const struct measure *m, uint64_t now_ms)
{
	return f->on && f->known && m->node.n > 1 &&
	       (!f->trained_ms || now_ms - f->trained_ms >= TRAIN_MS);
}

void forecast_train(struct pipeline *p, struct forecast *f, const struct measure *m,
		    const struct forecast_pod *pods, uint32_t n, uint64_t now_ms)
{
	struct sums node = {0}, all = {0}, classes[CLASSES] = {{0}};
	int64_t now_s = clock_s(f, now_ms);
	f->trained_ms = now_ms;
	add_series(&node, &m->node, now_ms);
	for (uint32_t i = 0; i < n; i++) {
		struct sums of = sums_of_pod(m, pods[i].pod, now_ms);
		train_one(f, pods[i].pod->uid, &of, now_s);
		add_sums(&classes[pods[i].prio], &of);
		add_sums(&all, &of);
	}
	for (uint32_t c = 0; c < CLASSES; c++)
		train_one(f, class_models[c], &classes[c], now_s);
	train_one(f, NODE_MODEL, &node, now_s);
	struct sums system = forecast_beyond(&node, &all);
	train_one(f, SYSTEM_MODEL, &system, now_s);
	models_forget(&f->models, now_s - UNSEEN_S);
	if (now_ms - f->written_ms >= WRITE_MS)
		begin_writing(p, f, now_ms);
}

/* ---- reclaimable resources ------------------------------------------------------------------- */

static struct predicted_pod forecast_predict(const struct forecast *f,
					     const struct forecast_pod *of, int64_t now_s)
{
	const struct model *m = models_find(&f->models, of->pod->uid);
	struct predicted_pod ret = {.leaves = of->pod->stopped, .has_peak = m != NULL};
	memcpy(ret.request, of->request, sizeof ret.request);
	if (m) {
		ret.age_s = now_s - m->born_s;
		model_peak(m, ret.peak);
	}
	return ret;
}

int forecast_reclaimable(const struct forecast *f, const struct forecast_limits *limits,
			 const struct forecast_pod *pods, uint32_t n,
			 const int64_t allocatable[RP_NR_AMOUNTS], uint64_t now_ms,
			 struct rp_nr_measured *ret)
{
	const char *const names[] = {SYSTEM_MODEL, class_models[RP_PRIO_PROD],
				     class_models[RP_PRIO_NONE]};
	struct reclaim_input in = {.margin_percent = limits->margin_percent,
				   .cold_start_s = limits->cold_start_s};
	struct reclaimable found;
	for (uint32_t k = 0; k < RP_NR_AMOUNTS; k++)
		ret->prod_reclaimable[k] = ret->prod_peak[k] = RP_NOT_SET;
	if (!f->on || !models_find(&f->models, SYSTEM_MODEL))
		return 0;
	_free_ struct predicted_pod *list = calloc(n + 1u, sizeof *list);
	if (!list)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		if (pods[i].prio == RP_PRIO_PROD || pods[i].prio == RP_PRIO_NONE)
			list[in.n_pods++] = forecast_predict(f, &pods[i], clock_s(f, now_ms));
	in.pods = list;
	memcpy(in.allocatable, allocatable, sizeof in.allocatable);
	for (size_t c = 0; c < sizeof names / sizeof *names; c++) {
		const struct model *m = models_find(&f->models, names[c]);
		int64_t peak[RP_NR_AMOUNTS] = {0};
		if (m)
			model_peak(m, peak);
		for (uint32_t k = 0; k < RP_NR_AMOUNTS; k++)
			in.classes[k] += peak[k];
	}
	reclaim(&in, &found);
	memcpy(ret->prod_reclaimable, found.both, sizeof found.both);
	memcpy(ret->prod_peak, found.peak, sizeof found.peak);
	return 0;
}
