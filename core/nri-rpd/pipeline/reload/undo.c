/* SPDX-License-Identifier: Apache-2.0 */
/* Undo of configurations: the mark of undone files, the timer for confirmations, and the reload of
 * the former configuration. */
#include "core/nri-rpd/pipeline/reload/undo.h"
#include "core/nri-rpd/pipeline/reload/report.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/nri-rpd/pipeline/reload/last_good.h"
#include "core/nri-rpd/pipeline/internal.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/log.h"
#include "core/lib/util/str.h"
#include "core/lib/util/clock.h"
#include "core/lib/util/worker.h"
#include "core/nri-rpd/pipeline/reload/reload.h"

#define LOG_SOURCE "config"
#define SUM_TEXT_MAX 24u
#define AGAIN_MS 5000u /* delay before an undo that failed is tried again */

/* ---- mark of undone files -------------------------------------------------------------------- */

/* Write or removal of the mark, for the disk worker. */
struct marking {
	char path[CACHE_PATH_MAX + sizeof UNDONE_FILE];
	uint64_t sum; /* checksum of the undone files to write; 0: remove the mark */
	struct err err;
};

static int write_mark(void *arg)
{
	struct marking *m = arg;
	char text[SUM_TEXT_MAX];
	int n = snprintf(text, sizeof text, "%016" PRIx64 "\n", m->sum);
	if (m->sum)
		return fs_replace(m->path, text, (size_t)n, 0600, true, &m->err);
	return unlink(m->path) && errno != ENOENT ? err_errno(&m->err, -errno, "%s", m->path) : 0;
}

static void mark_written(void *arg, int result)
{
	struct marking *m = arg;
	if (result)
		log_warning("a restart may use another configuration than the active one: %s",
			    err_text(&m->err, result));
	free(m);
}

static void undo_mark(struct pipeline *p, uint64_t sum)
{
	struct marking *m = calloc(1, sizeof *m);
	if (m)
		(void)snprintf(m->path, sizeof m->path, "%s/" UNDONE_FILE, p->reloads.dir);
	if (!m)
		return;
	m->sum = sum;
	if (worker_submit(p->disk, write_mark, mark_written, m))
		free(m);
}

bool undo_rejects(const struct pipeline *p, const struct conf_files *files)
{
	_free_ char *path = str_printf("%s/" UNDONE_FILE, p->reloads.dir), *text = NULL;
	struct err err = ERR_INIT;
	size_t len;
	if (!path || fs_read_own(path, SUM_TEXT_MAX, &text, &len, &err))
		return false;
	char *end;
	unsigned long long sum = strtoull(text, &end, 16);
	return end != text && sum == kept_sum(files);
}

/* ---- states ---------------------------------------------------------------------------------- */

static void stop_waiting(struct pipeline *p)
{
	conf_files_fini(&p->reloads.undo.unconfirmed);
	p->reloads.undo.unconfirmed = (struct conf_files){0};
	p->reloads.undo.due_ms = 0;
	loop_timer_disarm(p->reloads.undo.timer);
}

void undo_forget(struct pipeline *p)
{
	stop_waiting(p);
	p->reloads.undo.undone = false;
	undo_mark(p, 0);
}

void undo_await(struct pipeline *p, struct conf_files *files, uint32_t seconds)
{
	assert(seconds);
	stop_waiting(p);
	p->reloads.undo.undone = false;
	p->reloads.undo.unconfirmed = *files;
	*files = (struct conf_files){0};
	p->reloads.undo.due_ms = clock_ms() + UINT64_C(1000) * seconds;
	undo_mark(p, kept_sum(&p->reloads.undo.unconfirmed));
	(void)loop_timer_arm(p->reloads.undo.timer, UINT64_C(1000) * seconds);
	pipeline_event(p, EV_CONFIG, "to be confirmed within %u s, or it is undone", seconds);
}

void undo_done(struct pipeline *p, uint64_t sum)
{
	stop_waiting(p);
	p->reloads.undo.undone = true;
	undo_mark(p, sum);
}

/* ---- confirm and undo ------------------------------------------------------------------------ */

int pipeline_confirm(struct pipeline *p, struct err *err)
{
	if (!p->reloads.undo.due_ms)
		return err_set(err, -ENOENT, "no reload is waiting for confirmation");
	config_keep(p, &p->reloads.undo.unconfirmed);
	undo_forget(p);
	pipeline_event(p, EV_CONFIG, "confirmed");
	log_notice("the active configuration is confirmed");
	return 0;
}

unsigned pipeline_unconfirmed_s(const struct pipeline *p)
{
	uint64_t now = clock_ms();
	if (!p->reloads.undo.due_ms)
		return 0;
	return p->reloads.undo.due_ms > now
		       ? (unsigned)((p->reloads.undo.due_ms - now + 999) / 1000)
		       : 1;
}

/* Undo in progress. The disk worker reads the former configuration, because it also writes it: the
 * file is complete even right after the reload that has saved it. */
struct undoing {
	struct pipeline *p;
	const char *file;
	bool plan; /* true: try the former configuration without activating it */
	uint64_t sum; /* checksum of the configuration to undo; 0: unknown */
	reload_done done;
	void *arg;
	struct kept kept;
	struct err err;
};

static int read_former(void *arg)
{
	struct undoing *u = arg;
	int r = kept_read_file(u->p->reloads.dir, u->file, &u->kept, &u->err);
	return r == -ENOENT ? err_set(&u->err, r, "no previous configuration is saved") : r;
}

static void former_read(void *arg, int result)
{
	struct undoing *u = arg;
	struct pipeline *p = u->p;
	if (!result && p->reloads.running && !u->plan) {
		conf_files_fini(&u->kept.files);
		result = err_set(&u->err, -EBUSY, "a reload is in progress");
	}
	if (!result)
		result = config_undo(p, &u->kept, u->plan, u->sum, u->done, u->arg, &u->err);
	if (result) {
		const struct reload_result res = {
			.code = -EAGAIN, .err = u->err, .warnings = "", .report = &report_none};
		if (!u->plan)
			log_error("cannot undo: %s", err_text(&u->err, result));
		if (!u->plan && p->reloads.undo.due_ms)
			(void)loop_timer_arm(p->reloads.undo.timer, AGAIN_MS);
		if (u->done)
			u->done(&res, u->arg);
	}
	free(u);
}

int pipeline_undo(struct pipeline *p, bool plan, reload_done done, void *arg, struct err *err)
{
	bool waits = p->reloads.undo.due_ms != 0;
	struct undoing *u = calloc(1, sizeof *u);
	if (!u)
		return err_errno(err, -ENOMEM, "undo");
	*u = (struct undoing){
		.p = p,
		.file = waits ? KEPT_FILE : FORMER_FILE,
		.plan = plan,
		.sum = waits ? kept_sum(&p->reloads.undo.unconfirmed) : p->reloads.saved_sum,
		.done = done,
		.arg = arg,
	};
	int r = worker_submit(p->disk, read_former, former_read, u);
	if (r)
		free(u);
	return r ? err_errno(err, r, "undo") : 0;
}

static void not_confirmed(void *arg)
{
	assert(((struct pipeline *)arg)->reloads.undo.due_ms);
	struct pipeline *p = arg;
	struct err err = ERR_INIT;
	log_warning("the configuration was not confirmed in time: restoring the previous "
		    "configuration");
	pipeline_event(p, EV_CONFIG, "not confirmed in time: restoring the previous configuration");
	if (pipeline_undo(p, false, NULL, NULL, &err))
		log_error("cannot undo: %s", err.text);
}

int undo_init(struct pipeline *p)
{
	p->reloads.undo.timer = loop_timer_new(p->env.loop, not_confirmed, p);
	return p->reloads.undo.timer ? 0 : -ENOMEM;
}

void undo_fini(struct pipeline *p)
{
	conf_files_fini(&p->reloads.undo.unconfirmed);
	p->reloads.undo.timer = loop_timer_free(p->reloads.undo.timer);
}
