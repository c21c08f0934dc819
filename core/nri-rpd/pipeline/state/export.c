/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The data file of a container: its policy's data about its placement, as shell assignments,
 * mounted read-only. Off by default (cache.exportData), because it adds a mount to every container.
 * The directory has to exist when the runtime mounts it. The disk worker writes the file under
 * another name and renames it.
 */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/nri-rpd/pipeline/internal.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/log.h"
#include "core/lib/util/str.h"
#include "core/lib/util/worker.h"
#include "core/nri-rpd/pipeline/state/export.h"

#define LOG_SOURCE "export"
#define DIR_MODE 0755
#define FILE_MODE 0644
#define FILE_NAME "resources.sh"

struct export_job {
	char *dir;
	struct blob *data; /* contents of the file; NULL: remove the directory */
	struct err err;
};

static bool export_enabled(const struct pipeline *p)
{
	return p->conf && conf_core(p->conf)->export_data && pipeline_records(p);
}

/* Returns the directory of a container, or NULL: ids come from the runtime and may be invalid as
 * file names. */
static char *dir_of(const struct pipeline *p, const char *id)
{
	if (strchr(id, '/') || *id == '.')
		return NULL;
	return str_printf("%s/containers/%s", p->state_dir, id);
}

/* Removes the directory with the file and temporary files of a killed daemon. */
static int remove_dir(const struct export_job *job)
{
	_closedir_ DIR *dir = opendir(job->dir);
	const struct dirent *e;
	while (dir && (e = readdir(dir)))
		if (str_has_prefix(e->d_name, FILE_NAME))
			(void)unlinkat(dirfd(dir), e->d_name, 0);
	return rmdir(job->dir) < 0 && errno != ENOENT ? -errno : 0;
}

static int run_job(void *arg)
{
	struct export_job *job = arg;
	_free_ char *path = str_printf("%s/" FILE_NAME, job->dir);
	if (!path)
		return -ENOMEM;
	if (job->data) {
		int r = fs_replace(path, job->data->data, job->data->len, FILE_MODE, false,
				   &job->err);
		/* There is no directory if the option was off at the container's creation, or if
		 * the container has just been removed. */
		return r == -ENOENT ? 0 : r;
	}
	int r = remove_dir(job);
	return r ? err_errno(&job->err, r, "removing %s", job->dir) : 0;
}

static void job_done(void *arg, int result)
{
	static struct log_limit limit = LOG_LIMIT(3, 60000);
	struct export_job *job = arg;
	if (result && log_allowed(&limit, LOG_SOURCE))
		log_warning("a container's data file: %s", err_text(&job->err, result));
	blob_unref(job->data);
	free(job->dir);
	free(job);
}

static void export_submit(struct pipeline *p, const char *id, struct blob *data)
{
	struct export_job *job = calloc(1, sizeof *job);
	if (!job)
		return;
	job->dir = dir_of(p, id);
	/* a copy, because reference counts belong to the loop's thread */
	job->data = data ? blob_new(data->data, data->len) : NULL;
	if (!job->dir || (data && !job->data) || worker_submit(p->disk, run_job, job_done, job))
		job_done(job, -ENOMEM);
}

void export_created(struct pipeline *p, const struct ctr *ctr, struct reply *reply)
{
	if (!export_enabled(p) || !ctr->cur.data)
		return;
	_free_ char *dir = dir_of(p, ctr->id);
	struct err err = ERR_INIT;
	if (!dir || fs_mkdirs(dir, DIR_MODE, &err)) {
		log_warning("%s: cannot write its data file: %s", ctr->full_name,
			    dir ? err.text : "its id is not a file name");
		return;
	}
	p->state.exported = true;
	(void)snprintf(reply->data_path, sizeof reply->data_path, "%s", dir);
	reply->data_dir = true;
	export_submit(p, ctr->id, ctr->cur.data);
}

void export_touched(struct pipeline *p, const struct ctr *skip)
{
	if (!export_enabled(p))
		return;
	for (const struct stage *s = decide_touched(p); s; s = s->link)
		if (s->ctr != skip && ctr_live(s->ctr->cur.state) && s->ctr->cur.data &&
		    !blob_equal(s->ctr->cur.data, s->next.data))
			export_submit(p, s->ctr->id, s->ctr->cur.data);
}

void export_removed(struct pipeline *p, const struct ctr *ctr)
{
	if (pipeline_records(p) && ctr->cur.data && p->state.exported)
		export_submit(p, ctr->id, NULL);
}

void export_clean(struct pipeline *p)
{
	if (p->env.trial)
		return;
	_free_ char *top = str_printf("%s/containers", p->state_dir);
	_closedir_ DIR *dir = top ? opendir(top) : NULL;
	const struct dirent *e;
	while (dir && (e = readdir(dir))) {
		const struct ctr *ctr = cache_ctr(p->env.cache, e->d_name);
		p->state.exported = true;
		/* existing files are written again: the daemon may have been killed between commit
		 * and write */
		if (e->d_name[0] != '.' && (!ctr || (export_enabled(p) && ctr->cur.data)))
			export_submit(p, e->d_name, ctr ? ctr->cur.data : NULL);
	}
}
