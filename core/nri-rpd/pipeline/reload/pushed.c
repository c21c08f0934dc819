/* SPDX-License-Identifier: Apache-2.0 */
/* Pushed configurations: keeps the active files in memory, compares and replaces them by kind, and
 * saves them with the disk worker. */
#include "core/nri-rpd/pipeline/reload/pushed.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/nri-rpd/pipeline/reload/last_good.h"
#include "core/nri-rpd/pipeline/internal.h"
#include "core/lib/util/fs.h"
#include "core/lib/util/log.h"
#include "core/lib/util/str.h"
#include "core/lib/util/clock.h"
#include "core/lib/util/worker.h"

#define LOG_SOURCE "config"

static bool is_adjustments(const struct conf_source *s)
{
	return str_has_prefix(s->name, PUSHED_ADJUSTMENTS);
}

/* Returns the pushed files of one kind. The list holds the configuration first, then
 * adjustments. */
static struct conf_files of_kind(const struct pipeline *p, bool adjustments)
{
	unsigned n = 0;
	while (n < p->reloads.pushed.n_sources && !is_adjustments(&p->reloads.pushed.sources[n]))
		n++;
	return adjustments ? (struct conf_files){p->reloads.pushed.sources + n,
						 p->reloads.pushed.n_sources - n}
			   : (struct conf_files){p->reloads.pushed.sources, n};
}

bool pushed_is(const struct pipeline *p, const struct conf_source *sources, unsigned n,
	       bool adjustments)
{
	const struct conf_files files = {(struct conf_source *)(uintptr_t)sources, n};
	const struct conf_files now = of_kind(p, adjustments);
	return now.n_sources == n && kept_sum(&files) == kept_sum(&now);
}

int pushed_replace(const struct pipeline *p, const struct conf_source *sources, unsigned n,
		   bool adjustments, struct conf_files *ret)
{
	const struct conf_files stay = of_kind(p, !adjustments);
	int r = adjustments ? conf_files_append(ret, stay.sources, stay.n_sources)
			    : conf_files_append(ret, sources, n);
	if (r)
		return r;
	return adjustments ? conf_files_append(ret, sources, n)
			   : conf_files_append(ret, stay.sources, stay.n_sources);
}

const char *pushed_source(const struct pipeline *p)
{
	const struct conf_files of = of_kind(p, false);
	return of.n_sources ? of.sources[0].name : NULL;
}

void pushed_load(struct pipeline *p)
{
	struct kept kept = {0};
	struct err err = ERR_INIT;
	int r = kept_read_file(p->reloads.dir, PUSHED_FILE, &kept, &err);
	if (r && r != -ENOENT)
		log_warning("the last configuration from the cluster is unknown until the agent "
			    "connects: %s",
			    err.text);
	for (unsigned i = 0; i < kept.files.n_sources; i++)
		kept.files.sources[i].pushed = true;
	p->reloads.pushed = kept.files;
}

/* Write of the pushed files, for the disk worker. */
struct writing {
	char path[CACHE_PATH_MAX + sizeof PUSHED_FILE];
	struct buf data;
	struct err err;
};

static int write_pushed(void *arg)
{
	struct writing *w = arg;
	return fs_replace(w->path, buf_text(&w->data), buf_len(&w->data), 0600, true, &w->err);
}

static void pushed_written(void *arg, int result)
{
	struct writing *w = arg;
	if (result)
		log_warning(
			"the configuration from the cluster cannot be saved for later starts: %s",
			err_text(&w->err, result));
	buf_fini(&w->data);
	free(w);
}

void pushed_take(struct pipeline *p, struct conf_files *files)
{
	struct writing *w = calloc(1, sizeof *w);
	conf_files_fini(&p->reloads.pushed);
	p->reloads.pushed = *files;
	*files = (struct conf_files){0};
	int r = w ? kept_write(&p->reloads.pushed, clock_wall_ns(), &w->data) : -ENOMEM;
	if (w)
		(void)snprintf(w->path, sizeof w->path, "%s/" PUSHED_FILE, p->reloads.dir);
	if (!r)
		r = worker_submit(p->disk, write_pushed, pushed_written, w);
	if (r && w)
		pushed_written(w, r);
}

void pushed_fini(struct pipeline *p)
{
	conf_files_fini(&p->reloads.pushed);
}
